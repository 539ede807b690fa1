"""What `sim` promises, case by case."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines import EngineError, RunRecord
from justitia.engines.base import conserved
from justitia.engines.limits import displaces
from justitia.engines.records import InferenceRecord
from justitia.engines.sim import PREEMPTIONS, RULES, SimEngine, load_preset
from justitia.policy import (
    Agent,
    Inference,
    InferenceOrder,
    Policy,
    SelectivePampering,
    Step,
    create,
    names,
)
from justitia.policy.ledger import Entry
from justitia.predictors import Noisy, Oracle
from justitia.proofs.reference import fair_finishes
from justitia.workloads import AgentSpec
from tests.engines.build import (
    SECOND,
    TICK,
    Case,
    cases,
    make_agent,
    make_preset,
    run_sim,
    seconds,
)
from tests.engines.policies import DISPLACERS, Never, Urgent


def inference(record: RunRecord, inference_id: str) -> InferenceRecord:
    (found,) = (i for i in record.inferences if i.id == inference_id)
    return found


def finishes(record: RunRecord) -> dict[str, float | None]:
    return {agent.id: agent.finish for agent in record.agents}


def outcomes(record: RunRecord) -> dict[str, str]:
    return {inference.id: inference.outcome for inference in record.inferences}


def random_agents(seed: int, count: int, *, longest: int = 60) -> list[AgentSpec]:
    rng = Random(seed)
    return [
        make_agent(
            f"a{k}",
            *[
                (rng.randint(0, longest), rng.randint(0, longest))
                for _ in range(rng.randint(1, 8))
            ],
            at=rng.randint(0, 40 * count),
            longest=longest + 10 if rng.random() < 0.5 else None,
        )
        for k in range(count)
    ]


# --- steps --------------------------------------------------------------------------


def test_one_inference_step_by_step() -> None:
    """10 + 4 tokens under a budget of 4: three steps of prompt, the third a token."""
    preset = make_preset(budget=4, fixed=1000, per_prefill=10, per_sequence=5, per_kv=1)
    record = run_sim([make_agent("a", (10, 4))], preset=preset)
    (one,) = record.inferences
    assert (one.start_step, one.finish_step, one.preempted) == (0, 5, 0)
    held = [4, 8, 10, 11, 12, 13]
    assert record.steps == 6
    assert record.utilisation == sum(held) / (6 * 100)
    assert one.start == 0
    assert one.finish == (6 * 1000 + 10 * 10 + 6 * 5 + sum(held)) / SECOND
    (agent,) = record.agents
    assert agent.jct == agent.finish == one.finish
    assert agent.cost == agent.predicted_cost == agent.tag == 10 * 4 + 10
    assert agent.reference_finish == agent.finish


def test_an_inference_of_no_tokens_runs_for_one_step() -> None:
    record = run_sim([make_agent("a", (0, 0), (5, 0), (0, 1))])
    assert [(i.start_step, i.finish_step) for i in record.inferences] == [(0, 0)] * 3
    assert record.steps == 1


def test_arrivals_are_seen_at_the_next_boundary() -> None:
    agents = [
        make_agent("a", (1, 5)),
        make_agent("between", (1, 1), at=1.5),
        make_agent("on it", (1, 1), at=2),
        make_agent("idle", (1, 1), at=20.25),
    ]
    record = run_sim(agents)
    starts = {i.agent: (i.start_step, i.start) for i in record.inferences}
    assert starts == {
        "a": (0, 0.0),
        "between": (2, seconds(2)),
        "on it": (2, seconds(2)),
        "idle": (5, seconds(20.25)),
    }


@pytest.mark.parametrize("arrival", [1 / 3, 2 / 3, 86400.1, 1e-13, 1e7 / 3])
def test_nobody_finishes_before_arriving(arrival: float) -> None:
    """A picosecond is coarser than a double near 0."""
    agents = [
        replace(make_agent("empty"), arrival=arrival),
        replace(make_agent("a", (1, 1)), arrival=arrival),
    ]
    preset = make_preset(fixed=0, per_sequence=1)
    for agent in run_sim(agents, preset=preset).agents:
        assert agent.arrival == pytest.approx(arrival, rel=1e-15, abs=5e-13)
        assert agent.jct is not None
        assert agent.jct >= 0


def test_times_are_rounded_once_from_what_they_are_exactly() -> None:
    """As a float this cancellation would be 31 steps and 41 picoseconds later."""
    late = replace(make_agent("a", (1, 50), cancel_after=31), arrival=754120.9)
    record = run_sim([late])
    assert record.steps == 31
    assert record.agents[0].arrival == 754120.9


def test_a_run_repeats_to_the_last_bit() -> None:
    agents = random_agents(1, 12)
    preset = make_preset(blocks=120, budget=16, per_kv=3, per_prefill=77)
    first, second = (run_sim(agents, preset=preset) for _ in range(2))
    assert repr(first) == repr(second)


ADDITIVE = [name for name in names() if create(name).additive]


@pytest.mark.parametrize("name", ADDITIVE)
def test_equal_steps_are_told_at_once(name: str) -> None:
    """Otherwise a long run takes minutes. `test_twin` says that it changes nothing."""
    policy = create(name)
    served: list[Step] = []
    serve = policy.serve

    def count(step: Step) -> None:
        served.append(step)
        serve(step)

    policy.serve = count  # type: ignore[method-assign]
    agents = [make_agent("a", (10, 500), (10, 800))]
    preset = make_preset(blocks=2000)
    assert run_sim(agents, policy, preset=preset, check=False).steps == 800
    assert len(served) == 3
    assert [sum(step.decode.values()) for step in served] == [2, 998, 300]


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_full_engine_skips_whoever_waits(name: str) -> None:
    policy = create(name)
    calls: list[int] = []
    serve = policy.serve

    def count(step: Step) -> None:
        calls.append(len(step.decode))
        serve(step)

    policy.serve = count  # type: ignore[method-assign]
    agents = [make_agent("a", *[(10, 300)] * 4)]
    for changed in ({"seats": 2}, {"budget": 2}):
        calls.clear()
        run_sim(agents, policy, preset=make_preset(blocks=2000, **changed), check=False)
        assert len(calls) < 50
        assert policy.leave("a") is False


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", names())
def test_steps_are_skipped_while_the_head_has_no_room(name: str, rule: str) -> None:
    """Where service may move somebody else to the head, or let it in, they are not."""
    policy = create(name)
    calls: list[int] = []
    serve = policy.serve

    def count(step: Step) -> None:
        calls.append(len(step.decode))
        serve(step)

    policy.serve = count  # type: ignore[method-assign]
    agents = [make_agent("a", (200, 300)), make_agent("b", (400, 5), at=2)]
    preset = make_preset(blocks=501)
    run_sim(agents, policy, preset=preset, admission=rule, check=False)
    looked_at = not policy.static_order or rule == "lookahead"
    assert (len(calls) > 100) == looked_at


def test_progress_counts_every_end_once() -> None:
    agents = [
        make_agent("done", (5, 5), (5, 5), stages=(0, 1)),
        make_agent("too large", (500, 5), (1, 1)),
        make_agent("gone", (5, 50), (5, 2), (1, 1), stages=(0, 0, 1), cancel_after=4),
        make_agent("empty"),
    ]
    told: list[int] = []
    engine = SimEngine(make_preset())
    engine.run(agents, create("fcfs"), Oracle(), progress=told.append)
    assert sum(told) == sum(len(agent.inferences) for agent in agents)
    assert all(told)


# --- against the real engine --------------------------------------------------------


class NewestGivesWay(SelectivePampering):
    def victims(self) -> Iterator[Inference]:
        running = [entry.inference for entry in self._running.values()]
        return iter(running[::-1])


@pytest.mark.parametrize(
    ("policy", "admission", "ends", "preemptions"),
    [
        (create("fcfs"), "none", {"C": 444, "B": 478, "A": 413}, 15),
        (create("justitia"), "none", {"C": 44, "B": 174, "A": 524}, 16),
        (NewestGivesWay(), "none", {"C": 193, "B": 288, "A": 503}, 15),
        (create("justitia"), "max", {"C": 106, "B": 288, "A": 773}, 0),
    ],
    ids=["native fcfs", "native priority", "newest gives way", "full reservation"],
)
def test_vllm_does_the_same(
    policy: Policy, admission: str, ends: dict[str, int], preemptions: int
) -> None:
    """Measured on vLLM 0.32's scheduler with 31 blocks of 32."""
    agents = [
        make_agent("A", *[(64, 192)] * 10),
        make_agent("B", *[(64, 96)] * 6, at=5),
        make_agent("C", *[(32, 32)] * 3, at=10),
    ]
    preset = make_preset(blocks=31, block_size=32)
    record = run_sim(agents, policy, preset=preset, admission=admission)
    last: dict[str, int] = {}
    for one in record.inferences:
        assert one.finish_step is not None
        last[one.agent] = max(last.get(one.agent, 0), one.finish_step + 1)
    assert last == ends
    assert record.preemptions == preemptions


# --- ends ---------------------------------------------------------------------------


def test_what_can_never_fit_is_refused_with_a_reason() -> None:
    """50 blocks of 16, inferences that need 57."""
    preset = make_preset(blocks=50, block_size=16)
    large = [make_agent(f"large{k}", (10, 5), (812, 100)) for k in range(3)]
    record = run_sim(large, preset=preset)
    assert set(outcomes(record).values()) == {"refused"}
    assert len(record.inferences) == 6
    assert record.steps == record.preemptions == 0
    assert record.utilisation is None
    assert record.lag is None
    for agent in record.agents:
        assert agent.outcome == "refused"
        assert agent.finish is agent.jct is agent.tag is agent.predicted_cost is None
        assert agent.reason == (
            "inference 1 may need 812 + 100 KV tokens, the engine has 800"
        )
    some = run_sim([*large, make_agent("a", (10, 5))], preset=preset)
    assert outcomes(some).pop("a/0") == "finished"
    assert [agent.outcome for agent in some.agents] == ["refused"] * 3 + ["finished"]


def test_the_refused_are_never_announced() -> None:
    policy = create("justitia")
    told: list[str] = []
    arrive = policy.arrive

    def note(agent: Agent) -> None:
        told.append(agent.id)
        arrive(agent)

    policy.arrive = note  # type: ignore[method-assign]
    agents = [make_agent("large", (150, 1)), make_agent("b", (10, 5)), make_agent("no")]
    record = run_sim(agents, policy)
    assert told == ["b"]
    assert finishes(record) == {"large": None, "b": seconds(5), "no": 0.0}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("block_size", "blocks"), [(1, 96), (16, 6)])
def test_what_just_fits_runs(rule: str, block_size: int, blocks: int) -> None:
    preset = make_preset(blocks=blocks, block_size=block_size, budget=10)
    fits = [
        make_agent("fits", (90, 2), longest=6),
        make_agent("prompt", (96, 0)),
        make_agent("decode", (0, 96)),
    ]
    over = [
        make_agent("over", (90, 2), longest=7),
        make_agent("long prompt", (97, 0)),
        make_agent("long decode", (0, 97)),
    ]
    record = run_sim([*fits, *over], preset=preset, admission=rule)
    assert {a.id: a.outcome for a in record.agents} == {
        **dict.fromkeys(["fits", "prompt", "decode"], "finished"),
        **dict.fromkeys(["over", "long prompt", "long decode"], "refused"),
    }


@pytest.mark.parametrize(
    ("rule", "decode", "step"),
    [
        ("none", 12, 1),
        ("prompt", 12, 1),
        ("predicted", 2, 1),
        ("predicted", 12, 19),
        ("max", 2, 19),
        ("lookahead", 2, 11),
    ],
)
def test_each_rule_looks_as_far_ahead_as_it_says(
    rule: str, decode: int, step: int
) -> None:
    """On 110 runs 1 + 19, at most 20; at 1 comes 80 + `decode`, at most 25.

    With ``lookahead`` it is let in as soon as the two fit when the first is longest:
    in step s it holds 1 + s and has 20 - s to go, and 1 + s + 80 + 2 (20 - s) <= 110.
    """
    agents = [
        make_agent("small", (1, 19), longest=20),
        make_agent("large", (80, decode), at=1, longest=25),
    ]
    preset = make_preset(blocks=110)
    record = run_sim(agents, create("fcfs"), preset=preset, admission=rule)
    assert inference(record, "large/0").start_step == step


@pytest.mark.parametrize("rule", ["none", "prompt"])
def test_a_first_chunk_that_fits_is_not_enough(rule: str) -> None:
    """As vLLM has it (scheduler_reserve_full_isl): all of the prompt must fit.

    Step 3 has 4 tokens of its budget left, and 40 blocks free.
    """
    agents = [make_agent("a", (60, 1)), make_agent("b", (60, 1))]
    record = run_sim(agents, preset=make_preset(budget=16), admission=rule)
    assert inference(record, "b/0").start_step == 4


def test_who_gives_way_itself_ends_the_step_for_those_behind_it() -> None:
    """As in vLLM, whose loop over the running ends there.

    After step 10 one block is free. In step 11 the first of the running takes it, the
    second wants one and is the victim, and the third has a block but no token.
    """
    agents = [
        make_agent("first", (5, 30)),
        make_agent("large", (10, 60)),
        make_agent("behind", (30, 20), at=1),
    ]
    record = run_sim(agents, preset=make_preset(blocks=44 + 3 * 10 + 1))
    first, large, behind = (inference(record, f"{a.id}/0") for a in agents)
    assert (first.start_step, large.start_step, behind.start_step) == (0, 0, 1)
    assert (record.preemptions, large.preempted) == (1, 1)
    assert first.finish_step == 29
    assert behind.finish_step == 1 + 19 + 1


def test_nobody_is_admitted_on_the_prompt_alone_where_the_longest_is_reserved() -> None:
    """90 + 20 on 110, of which somebody holds 5 and will hold 35."""
    agents = [make_agent("small", (5, 30)), make_agent("large", (90, 20), at=1)]
    preset = make_preset(blocks=110)
    assert run_sim(agents, preset=preset, admission="prompt").preemptions > 0
    reserved = run_sim(agents, preset=preset, admission="max")
    assert reserved.preemptions == 0
    assert inference(reserved, "large/0").start_step == 30


def test_nothing_finished_is_a_record_all_the_same() -> None:
    agents = [
        make_agent("gone", (5, 50), cancel_after=3),
        make_agent("at once", (5, 5), (5, 5), cancel_after=0),
        make_agent("large", (500, 1)),
    ]
    record = run_sim(agents)
    assert outcomes(record) == {
        "gone/0": "cancelled",
        "at once/0": "cancelled",
        "at once/1": "cancelled",
        "large/0": "refused",
    }
    assert [agent.finish for agent in record.agents] == [None] * 3
    assert [agent.cost for agent in record.agents] == [5 * 3 + 6, 0, 501]
    gone = inference(record, "gone/0")
    assert (gone.start_step, gone.start, gone.finish_step, gone.finish) == (
        0,
        0.0,
        None,
        None,
    )
    assert record.steps == 3


def test_an_empty_workload_is_a_record() -> None:
    record = run_sim([])
    assert record.agents == ()
    assert record.inferences == ()
    assert record.utilisation is None
    assert record.lag is None


def test_an_agent_without_inferences_is_done_when_it_arrives() -> None:
    agents = [make_agent("empty", at=2.5, cancel_after=1), make_agent("a", (1, 9))]
    empty, _ = run_sim(agents).agents
    assert (empty.outcome, empty.finish, empty.jct) == ("finished", seconds(2.5), 0)
    assert (empty.cost, empty.tag, empty.predicted_cost) == (0, None, None)


def test_what_comes_out_is_counted_against_what_went_in() -> None:
    agents = [make_agent("a", (5, 5), (5, 5))]
    record = run_sim(agents)
    assert conserved(record, agents) is record
    lost = replace(record, inferences=record.inferences[:1])
    with pytest.raises(EngineError, match="2 inferences of agent 'a' went in, but 1 f"):
        conserved(lost, agents)
    none = replace(record, inferences=())
    with pytest.raises(EngineError, match="but none came out"):
        conserved(none, agents)
    first, second = record.inferences
    wrong = replace(record, inferences=(first, replace(second, outcome="cancelled")))
    with pytest.raises(EngineError, match="'a' finished, but with 1 cancelled, 1 fin"):
        conserved(wrong, agents)


# --- memory -------------------------------------------------------------------------


class Ranked(InferenceOrder):
    """By the number in the agent's kind: that has nothing to do with arrival."""

    name = "ranked"

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (entry.account.agent.kind,)


@pytest.mark.parametrize("largest", ["a", "b", "c"])
def test_one_free_block_keeps_the_two_smallest_and_skips_nobody(largest: str) -> None:
    """Three run, all of them need a block, one is free."""
    agents = [
        replace(make_agent(name, (4, 5)), kind="z" if name == largest else name)
        for name in "abc"
    ]
    preset = make_preset(blocks=4, block_size=4)
    record = run_sim(agents, Ranked(), preset=preset)
    for one in record.inferences:
        if one.agent == largest:
            assert one.preempted == 1
            assert one.finish_step is not None
            assert one.finish_step > 5
        else:
            assert (one.start_step, one.finish_step, one.preempted) == (0, 4, 0)


def test_a_step_that_preempts_admits_nobody() -> None:
    """Taking one out frees more than the small one in line would need."""
    agents = [
        replace(make_agent("a", (4, 8)), kind="1"),
        replace(make_agent("b", (4, 8)), kind="3"),
        replace(make_agent("small", (1, 1), at=1), kind="2"),
    ]
    preset = make_preset(blocks=3, block_size=4, seats=3)
    record = run_sim(agents, Ranked(), preset=preset)
    assert record.preemptions == 1
    assert inference(record, "b/0").preempted == 1
    # b is taken out in step 1, where both need a second block.
    assert inference(record, "small/0").start_step == 2


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_what_was_taken_out_is_computed_again_or_swapped(preemption: str) -> None:
    agents = [make_agent("a", (4, 6)), make_agent("b", (4, 6))]
    preset = make_preset(
        blocks=3, block_size=4, fixed=1, per_prefill=1000, per_swap=10**6
    )
    record = run_sim(agents, create("fcfs"), preset=preset, preemption=preemption)
    # In step 1 both need a second block; b has produced 1 token and has 4 in the cache.
    assert [i.preempted for i in record.inferences] == [0, 1]
    assert [i.finish_step for i in record.inferences] == [5, 10]
    prompts = 8 * 1000
    again = 5 * 1000 if preemption == "recompute" else 2 * 4 * 10**6
    assert record.agents[1].finish == (11 + prompts + again) / SECOND


@pytest.mark.parametrize("name", names())
def test_what_is_reserved_is_never_taken_back(name: str) -> None:
    """Ten thousand events; admission reserves the longest."""
    agents = random_agents(7, 150)
    preset = make_preset(blocks=30, block_size=8, budget=128, seats=16)
    record = run_sim(agents, create(name), preset=preset, admission="max", check=False)
    assert record.preemptions == 0
    assert set(outcomes(record).values()) == {"finished"}
    assert len(record.inferences) > 600
    assert record.steps > 6000
    if name == "fcfs":
        loose = run_sim(agents, create(name), preset=preset, check=False)
        assert loose.preemptions > 0


@given(seed=st.integers(0, 10**6), at=st.integers(1, 300))
def test_a_small_tag_waits_for_what_runs_and_no_longer(seed: int, at: int) -> None:
    herd = [replace(agent, arrival=0.0) for agent in random_agents(seed, 6)]
    mouse = make_agent("mouse", (1, 1), at=at, weight=10**6)
    preset = make_preset(blocks=30, block_size=8, budget=128, seats=16)
    record = run_sim([*herd, mouse], preset=preset, admission="max", check=False)
    start = inference(record, "mouse/0").start_step
    assert start is not None
    running = [
        i.finish_step
        for i in record.inferences
        if i.agent != "mouse"
        and i.start_step is not None
        and i.finish_step is not None
        and i.start_step < at <= i.finish_step
    ]
    assert start <= max(running, default=at) + 1


@given(cases(admissions=["lookahead"]))
def test_lookahead_prevents_preemption_of_prompts_in_one_chunk(case: Case) -> None:
    case = replace(case, preset=replace(case.preset, max_num_batched_tokens=10**6))
    for name in ("fcfs", "vtc", "justitia"):
        assert case.run(create(name), check=False).preemptions == 0


# --- cancelling ---------------------------------------------------------------------


def test_cancelling_stops_all_and_frees_all() -> None:
    """Four run, one is cancelled with them: what follows has the whole machine."""
    agents = [
        make_agent("gone", *[(20, 50)] * 4, cancel_after=2),
        make_agent("next", (90, 5), at=1),
    ]
    record = run_sim(agents, create("fcfs"), admission="max")
    assert {i.outcome for i in record.inferences if i.agent == "gone"} == {"cancelled"}
    assert inference(record, "next/0").start_step == 2
    gone, _ = record.agents
    assert gone.cost == 1 * (20 * 2 + 3)  # reserved memory let only one run
    assert gone.reference_finish is None


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_thousand_cancelled_agents_leave_nothing(after: float) -> None:
    agents = [
        make_agent(f"a{k}", *[(10, 30)] * 4, at=4 * k, cancel_after=after)
        for k in range(1000)
    ]
    policy = create("justitia")
    record = run_sim(agents, policy, check=False)
    assert set(outcomes(record).values()) == {"cancelled"}
    assert policy.peek() is None
    assert list(policy.victims()) == []
    policy._check()
    assert isinstance(policy, SelectivePampering)
    assert len(policy.clock) == len(policy._accounts) == 0 or after > 1
    assert len(policy._accounts) == 0


def test_cancelled_half_way_a_staged_agent_keeps_what_is_done() -> None:
    agent = make_agent("a", (2, 3), (2, 9), (1, 1), stages=(0, 1, 2), cancel_after=5)
    record = run_sim([agent])
    assert list(outcomes(record).values()) == ["finished", "cancelled", "cancelled"]
    assert record.agents[0].cost == (2 * 3 + 6) + (2 * 2 + 3)
    assert record.agents[0].outcome == "cancelled"


def test_long_prompts_that_are_given_up_are_no_stall() -> None:
    """Each computes for 14 steps and is cancelled before its first token."""
    agents = [
        make_agent(f"a{k}", (15, 1), at=14 * k, cancel_after=14) for k in range(9)
    ]
    preset = make_preset(blocks=16, budget=1)
    record = run_sim([*agents, make_agent("last", (15, 1), at=130)], preset=preset)
    assert record.agents[-1].outcome == "finished"


# --- parked, throttled, stuck -------------------------------------------------------


def test_what_is_not_ready_holds_no_seat() -> None:
    """Four wait for a long one; the one seat left goes to somebody who can use it."""
    agents = [
        make_agent("parked", (1, 50), *[(1, 1)] * 4, stages=(0, 1, 1, 1, 1)),
        make_agent("ready", (1, 1), at=3),
    ]
    record = run_sim(agents, preset=make_preset(seats=2))
    assert inference(record, "ready/0").start_step == 3


def test_a_policy_that_starts_nobody_is_an_error_with_the_state() -> None:
    agents = [make_agent("a", (5, 5)), make_agent("b", (5, 5), at=7)]
    with pytest.raises(EngineError) as caught:
        run_sim(agents, Never())
    message = str(caught.value)
    for part in (
        "no progress under never after 0 steps",
        "nothing runs and nothing may start",
        "0 running, 2 waiting",
        "100 blocks free of 100 tokens",
        "head of the line None",
    ):
        assert part in message


class Restless(InferenceOrder):
    """The one that waits longest always displaces what runs."""

    name = "restless"

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[str, int] = {}

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (self._starts.get(entry.inference.id, 0),)

    def started(self, entry: Entry) -> None:
        self._starts[entry.inference.id] = self._starts.get(entry.inference.id, 0) + 1

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        return True


def test_a_policy_that_never_lets_a_prompt_end_is_an_error_with_the_state() -> None:
    agents = [make_agent("a", (60, 5)), make_agent("b", (60, 5))]
    preset = make_preset(budget=10)
    with pytest.raises(EngineError, match=r"no progress under restless.*no token in"):
        run_sim(agents, Restless(), preset=preset, check=False)


class NoVictims(InferenceOrder):
    name = "no victims"

    def key(self, entry: Entry) -> tuple[object, ...]:
        return ()

    def victims(self) -> Iterator[Inference]:
        return iter(())


class WrongVictims(NoVictims):
    name = "wrong victims"

    def victims(self) -> Iterator[Inference]:
        return iter([Inference("who/0", "who", 1, 1)])


class WrongHead(NoVictims):
    name = "wrong head"

    def peek(self) -> Inference | None:
        return Inference("who/0", "who", 1, 1)


@pytest.mark.parametrize("policy", [NoVictims, WrongVictims, WrongHead])
def test_a_policy_that_talks_nonsense_is_named(policy: type[Policy]) -> None:
    agents = [make_agent("a", (4, 6)), make_agent("b", (4, 6))]
    preset = make_preset(blocks=3, block_size=4)
    with pytest.raises(EngineError, match=f"policy {policy.name} (has|names)"):
        run_sim(agents, policy(), preset=preset, check=False)


# --- displacing ---------------------------------------------------------------------


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_an_urgent_one_takes_the_place_of_what_runs(preemption: str) -> None:
    agents = [make_agent("long", (60, 9)), make_agent("short", (50, 2), at=3)]
    record = run_sim(agents, Urgent(), preemption=preemption)
    short, long = inference(record, "short/0"), inference(record, "long/0")
    assert (short.start_step, short.finish_step) == (3, 4)
    assert (long.start_step, long.preempted) == (0, 1)
    # Three tokens are kept, and the fourth comes in the step after `short` ended.
    assert long.finish_step == 5 + 5


def test_nothing_is_displaced_where_there_is_room() -> None:
    agents = [make_agent("long", (60, 9)), make_agent("short", (30, 2), at=3)]
    record = run_sim(agents, Urgent())
    assert record.preemptions == 0
    assert inference(record, "short/0").start_step == 3


def test_what_the_running_will_take_in_the_step_is_no_room() -> None:
    """One of three blocks is free, but `long` needs it for its next token."""
    agents = [make_agent("long", (8, 4)), make_agent("short", (4, 1), at=1)]
    preset = make_preset(blocks=3, block_size=4)
    record = run_sim(agents, Urgent(), preset=preset)
    assert inference(record, "short/0").start_step == 1
    assert record.preemptions == 1


@pytest.mark.parametrize("changed", [{"seats": 3}, {"budget": 3}])
def test_seats_and_the_budget_are_room_too(changed: dict[str, int]) -> None:
    """Three decode, with memory to spare; a fourth would find no place in the step."""
    agents = [
        make_agent("long", *[(3, 30)] * 3),
        make_agent("short", (2, 2), at=5),
    ]
    preset = make_preset(**changed)
    waits = run_sim(agents, create("fcfs"), preset=preset)
    assert waits.preemptions == 0
    record = run_sim(agents, Urgent(), preset=preset)
    assert inference(record, "short/0").start_step == 5
    assert record.preemptions == 1


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_all_that_are_urgent_take_their_places_in_one_step(preemption: str) -> None:
    """And no more than they need: the last two of five go, the newest first."""
    agents = [
        make_agent("long", *[(20, 9)] * 5),
        make_agent("short", (10, 2), (11, 2), (12, 2), at=3),
    ]
    preset = make_preset(blocks=115)
    record = run_sim(agents, Urgent(), preset=preset, preemption=preemption)
    starts = {i.id: i.start_step for i in record.inferences}
    assert [starts[f"short/{n}"] for n in range(3)] == [3, 3, 3]
    assert [inference(record, f"long/{n}").preempted for n in range(5)] == [
        0, 0, 0, 1, 1
    ]  # fmt: skip


def test_a_prompt_that_takes_the_budget_displaces_for_itself_only() -> None:
    agents = [
        make_agent("long", (30, 30), (30, 30)),
        make_agent("short", (20, 2), (21, 2), at=5),
    ]
    preset = make_preset(budget=22)
    record = run_sim(agents, Urgent(), preset=preset)
    first, second = inference(record, "short/0"), inference(record, "short/1")
    assert (first.start_step, first.preempted) == (5, 0)
    assert second.start_step is not None
    assert second.start_step > 5


@pytest.mark.parametrize("preemption", PREEMPTIONS)
def test_two_prompts_that_take_each_others_place_come_to_an_end(
    preemption: str,
) -> None:
    """Both starve again and again; cut into, neither would get through its prompt."""
    agents = [make_agent(name, (20, 10)) for name in "ab"]
    policy = create(
        "mlfq",
        quantum=Fraction(1, 10**6),
        prefill_seconds=0,
        prefill_token_seconds=0,
        starvation_seconds=Fraction(4, 10**6),
        starvation_steps=1,
    )
    preset = make_preset(blocks=32, budget=3)
    record = run_sim(agents, policy, preset=preset, preemption=preemption)
    assert record.preemptions > 0
    assert {agent.outcome for agent in record.agents} == {"finished"}


def test_one_policy_here_displaces() -> None:
    assert [name for name in names() if displaces(create(name))] == ["mlfq"]
    assert all(map(displaces, (policy() for policy in DISPLACERS)))


# --- what is asked of it ------------------------------------------------------------


def test_wrong_settings_are_refused() -> None:
    agents = [make_agent("a", (1, 1))]
    with pytest.raises(EngineError, match="admission must be one of none, prompt"):
        SimEngine(make_preset(), admission="hope")
    with pytest.raises(EngineError, match="preemption must be one of recompute, swap"):
        SimEngine(make_preset(), preemption="polite")
    with pytest.raises(EngineError, match="tags must be agent or stage, not 'no'"):
        run_sim(agents, create("fcfs"), tags="no")
    with pytest.raises(EngineError, match="agent 'a' is in the workload twice"):
        run_sim([*agents, make_agent("b", (1, 1)), *agents])


def test_a_wrong_prediction_moves_tags_and_not_the_truth() -> None:
    agents = [make_agent("a", (5, 20)), make_agent("b", (5, 20))]
    record = run_sim(agents, predictor=Noisy(3, seed=1))
    for agent in record.agents:
        assert agent.predicted_cost == agent.tag != agent.cost == 310
    assert {i.finish_step for i in record.inferences} == {19}


# --- calibration --------------------------------------------------------------------


def test_the_papers_worked_example() -> None:
    """M = 100: A (200, ten inferences) at 0, B (30) and C (40) at 1 second.

    A step here takes a hundredth of a second for each token-step that it delivers, so
    the engine delivers exactly 100 a second and real times are the paper's.
    """
    preset = make_preset(fixed=0, per_sequence=SECOND // 100, per_kv=SECOND // 100)
    agents = [
        make_agent("A", *[(19, 1)] * 10),
        replace(make_agent("B", (29, 1)), arrival=1.0),
        replace(make_agent("C", (39, 1)), arrival=1.0),
    ]
    record = run_sim(agents, preset=preset, admission="max")
    assert {a.id: a.cost for a in record.agents} == {"A": 200, "B": 30, "C": 40}
    assert {a.id: a.tag for a in record.agents} == {"A": 200, "B": 130, "C": 140}
    assert {a.id: a.reference_finish for a in record.agents} == {
        "A": 2.7,
        "B": 1.9,
        "C": 2.1,
    }
    finish = fair_finishes([("A", 0, 200), ("B", 1, 30), ("C", 1, 40)], rate=100)
    for agent in record.agents:
        assert agent.reference_finish == float(finish[agent.id])
    order = sorted(record.inferences, key=lambda i: (i.start, i.id))
    assert [i.agent for i in order] == ["A"] * 5 + ["A", "B", "C"] + ["A"] * 4
    assert finishes(record) == {"A": 2.7, "B": 1.9, "C": 1.9}


@pytest.mark.parametrize(
    ("load", "count", "tolerance"),
    [(0.3, 2000, 0.1), (0.6, 3000, 0.1), (0.9, 4000, 0.2)],
)
def test_one_server_waits_as_queueing_theory_says(
    load: float, count: int, tolerance: float
) -> None:
    """M/G/1, Pollaczek and Khinchine: mean wait = rate E[S²] / (2 (1 - load)).

    One at a time; lengths about exponential. Every start is where Lindley's recursion
    on the same draws puts it; their mean is within `tolerance` of the formula.
    """
    rng = Random(20)
    lengths = [ceil(rng.expovariate(1 / 20)) for _ in range(count)]
    rate = load / mean(lengths)
    agents, now, expected, free = [], 0, [], 0
    for k, decode in enumerate(lengths):
        now += round(rng.expovariate(rate) * TICK)
        agents.append(replace(make_agent(f"a{k}", (1, decode)), arrival=now / SECOND))
        start = max(now, free)
        expected.append(start - now)
        free = start + decode * TICK
    preset = make_preset(blocks=1000, seats=1)
    record = run_sim(agents, create("fcfs"), preset=preset, check=False)
    waits = []
    for agent, one in zip(record.agents, record.inferences, strict=True):
        assert one.start is not None
        waits.append(round((one.start - agent.arrival) * SECOND))
    assert waits == pytest.approx(expected, abs=8)  # doubles, a while after 0
    formula = rate * mean(d * d for d in lengths) / (2 * (1 - load)) * TICK
    assert mean(waits) == pytest.approx(formula, rel=tolerance)


def test_shipped_presets_run() -> None:
    preset = load_preset("llama-7b-a100-40g")
    agents = [make_agent(f"a{k}", *[(900, 300)] * 20) for k in range(6)]
    record = run_sim(agents, preset=preset, check=False)
    assert set(outcomes(record).values()) == {"finished"}
    assert record.utilisation is not None
    assert 0.5 < record.utilisation <= 1
