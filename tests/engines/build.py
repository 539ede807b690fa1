"""Builders for tests of engines: every knob has a default."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from hypothesis import strategies as st

from justitia.engines import RunRecord
from justitia.engines.sim import PREEMPTIONS, RULES, Preset, SimEngine
from justitia.policy import Policy, create
from justitia.policy.exact import Number
from justitia.predictors import Oracle, Predictor
from justitia.workloads import AgentSpec, InferenceSpec

SECOND = 10**12
"""Picoseconds."""
TICK = 10**6
"""Picoseconds of a step in small tests."""


def make_preset(
    *,
    blocks: int = 100,
    block_size: int = 1,
    seats: int = 64,
    budget: int = 1024,
    fixed: int = TICK,
    per_prefill: int = 0,
    per_sequence: int = 0,
    per_kv: int = 0,
    per_swap: int = 0,
) -> Preset:
    return Preset(
        name="toy",
        description="a toy",
        source="made up",
        capacity_tokens=blocks * block_size,
        block_size=block_size,
        max_num_seqs=seats,
        max_num_batched_tokens=budget,
        step_fixed_ps=fixed,
        step_prefill_token_ps=per_prefill,
        step_sequence_ps=per_sequence,
        step_kv_token_ps=per_kv,
        swap_token_ps=per_swap,
    )


def make_agent(
    agent_id: str = "a",
    *lengths: tuple[int, int],
    at: float = 0,
    stages: Sequence[int] = (),
    after: Sequence[tuple[str, ...] | None] = (),
    longest: int | None = None,
    weight: Number = 1,
    cancel_after: float | None = None,
) -> AgentSpec:
    """Make an agent of inferences of (prompt, decode) tokens; `at` is in ticks."""
    inferences = tuple(
        InferenceSpec(
            prompt,
            decode,
            stage=stages[k] if stages else 0,
            after=after[k] if after else None,
            max_tokens=longest,
        )
        for k, (prompt, decode) in enumerate(lengths)
    )
    return AgentSpec(
        agent_id,
        inferences,
        arrival=seconds(at),
        weight=weight,
        cancel_after=None if cancel_after is None else seconds(cancel_after),
    )


def seconds(ticks: float) -> float:
    return float(Fraction(ticks) * TICK / SECOND)


def run_sim(
    agents: Sequence[AgentSpec],
    policy: Policy | None = None,
    *,
    preset: Preset | None = None,
    predictor: Predictor | None = None,
    admission: str = "none",
    preemption: str = "recompute",
    tags: str = "agent",
    skip: bool = True,
    check: bool = True,
) -> RunRecord:
    engine = SimEngine(
        preset or make_preset(),
        admission=admission,
        preemption=preemption,
        skip=skip,
        check=check,
    )
    return engine.run(
        agents,
        create("justitia", tags=tags) if policy is None else policy,
        predictor or Oracle(),
        tags=tags,
    )


# --- random runs ----------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A small run: everything but the policy and its predictor."""

    agents: tuple[AgentSpec, ...]
    preset: Preset
    admission: str = "none"
    preemption: str = "recompute"
    tags: str = "agent"

    def run(
        self,
        policy: Policy,
        predictor: Predictor | None = None,
        *,
        skip: bool = True,
        check: bool = True,
    ) -> RunRecord:
        return run_sim(
            self.agents,
            policy,
            preset=self.preset,
            predictor=predictor,
            admission=self.admission,
            preemption=self.preemption,
            tags=self.tags,
            skip=skip,
            check=check,
        )


def cases(
    *,
    staged: bool = True,
    graphs: bool = True,
    cancels: bool = True,
    admissions: Sequence[str] = (*RULES, *["none"] * 4),
    tags: Sequence[str] = ("agent", "stage"),
) -> st.SearchStrategy[Case]:
    """Runs in which memory is short, on small caches, with ties and bursts.

    Drawn from a seed: Hypothesis left to itself draws mostly idle engines.
    """

    def make(seed: int) -> Case:
        rng = Random(seed)
        preset = _preset(rng)
        burst = rng.random() < 0.4
        same = rng.random() < 0.3
        agents: list[AgentSpec] = []
        for k in range(rng.choice((1, 2, 3, 4, 5, 6, 6, 6))):
            if same and agents and rng.random() < 0.7:
                agents.append(replace(agents[-1], id=f"a{k}"))
            else:
                agents.append(
                    _agent(
                        rng,
                        f"a{k}",
                        preset.capacity_tokens,
                        at=0 if burst else rng.choice(_TIMES),
                        staged=staged,
                        graphs=graphs and rng.random() < 0.3,
                        cancels=cancels and rng.random() < 0.25,
                    )
                )
        return Case(
            tuple(agents),
            preset,
            rng.choice(admissions),
            rng.choice(PREEMPTIONS),
            rng.choice(tags),
        )

    return st.integers(0, 2**32 - 1).map(make)


_TIMES = (0, 0, 1, 1.5, 2, 3, 7, 12, 20, 40)


def _preset(rng: Random) -> Preset:
    block_size = rng.choice((1, 1, 2, 4, 8))
    return make_preset(
        blocks=rng.randint(8, 40) // block_size + 1,
        block_size=block_size,
        seats=rng.choice((1, 2, 3, 8, 8, 8, 8)),
        budget=rng.choice((1, 2, 5, 8, 16, 64)),
        fixed=rng.choice((TICK, TICK, 1)),
        per_prefill=rng.choice((0, TICK // 10, 7)),
        per_sequence=rng.choice((0, 3)),
        per_kv=rng.choice((0, TICK // 3)),
        per_swap=rng.choice((0, TICK // 4)),
    )


def _agent(
    rng: Random,
    agent_id: str,
    capacity: int,
    *,
    at: float,
    staged: bool,
    graphs: bool,
    cancels: bool,
) -> AgentSpec:
    most = capacity // rng.choice((2, 2, 3, 6)) + rng.choice((*[0] * 8, capacity))
    count = rng.choice((0, 1, 1, 2, 3, 4, 6, 6))
    longest_prompt = most // rng.choice((1, 2, 8))
    least = most // 2 if rng.random() < 0.5 else 0

    def draw() -> tuple[int, int]:
        return rng.randint(0, longest_prompt), rng.randint(least, most)

    alike = rng.random() < 0.3
    lengths = [draw()] * count if alike else [draw() for _ in range(count)]
    after: list[tuple[str, ...] | None] = []
    if graphs:
        after = [
            None
            if rng.random() < 0.2
            else tuple(str(i) for i in range(k) if rng.random() < 0.4)
            for k in range(count)
        ]
    stages = sorted(rng.randint(0, 2) for _ in lengths) if staged else []
    decode = max((d for _, d in lengths), default=0)
    return make_agent(
        agent_id,
        *lengths,
        at=at,
        stages=stages,
        after=after,
        longest=rng.choice((None, None, decode, decode + 3)),
        weight=rng.choice((1, 1, 1, 2, 5, Fraction(1, 2), Fraction(2, 3))),
        cancel_after=rng.choice((0, 1, 2.5, 6, 20)) if cancels else None,
    )
