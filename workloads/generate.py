"""Agents made up from the tables of `justitia.workloads.kinds`, from a seed."""

from collections.abc import Sequence
from random import Random

from justitia.policy.exact import MOST_TOKENS, shown
from justitia.workloads.agents import AgentSpec, InferenceSpec, WorkloadError
from justitia.workloads.draws import below, shuffled, stream
from justitia.workloads.kinds import KINDS, SIZES, Kind, Part, Spread
from justitia.workloads.shares import split


def generate(kind: str, number: int, seed: int) -> AgentSpec:
    """Make the agent of a class that has this number.

    It depends on the three arguments and nothing else, so a workload of more agents
    has those of the smaller one in it.

    Parameters
    ----------
    kind
        A name in `KINDS`.
    number
        0, 1, …; the agent's id is ``"SC-00017"`` for number 17 of SC.
    seed
        Of everything that is drawn.

    Returns
    -------
    AgentSpec
        Without an arrival; its text tells its lengths as well as a real one's does.

    Raises
    ------
    WorkloadError
        If there is no such class, naming those that there are.
    """
    plan = KINDS.get(kind) if isinstance(kind, str) else None  # type: ignore[redundant-expr]
    if plan is None:
        raise WorkloadError(
            f"no class of agents {shown(kind)}; there are: {', '.join(KINDS)}"
        )
    return _Maker(plan, stream(seed, f"agent/{kind}/{number}")).agent(number)


def paper_mix(agents: int, seed: int) -> list[AgentSpec]:
    """Make the paper's mix: 72 % small agents, 26 % medium, 2 % large.

    The classes of one size have equal shares. Counts are exact, by largest remainder;
    what comes out even is decided by the seed, as is the order. No arrivals.

    Raises
    ------
    WorkloadError
        If `agents` is not a count.
    """
    check_count(agents, "agents of the mix")
    rng = stream(seed, "mix")
    counts = split(agents, SIZES, rng)
    mix = []
    for size, count in counts.items():
        equal = {kind.name: 1 for kind in KINDS.values() if kind.size == size}
        for name, many in split(count, equal, rng).items():
            mix += [generate(name, number, seed) for number in range(many)]
    return shuffled(rng, mix)


def check_count(value: object, what: str) -> None:
    """Raise `WorkloadError` unless `value` is an int that is not negative."""
    if type(value) is not int or not 0 <= value <= MOST_TOKENS:
        raise WorkloadError(f"{what} must be a count from 0, not {shown(value)}")


class _Maker:
    """Draws one agent; the scores that its lengths share are drawn first."""

    def __init__(self, kind: Kind, rng: Random) -> None:
        self._kind = kind
        self._rng = rng
        self._length = rng.normalvariate(0.0, 1.0)
        self._wording = rng.normalvariate(0.0, 1.0)
        self._agent = rng.normalvariate(0.0, 1.0)

    def agent(self, number: int) -> AgentSpec:
        size = self._draw(self._kind.count)
        calls: list[InferenceSpec] = []
        part: list[InferenceSpec] = []
        for plan in self._kind.parts:
            stage = calls[-1].stage + 1 if calls else 0
            part = self._part(plan, size, stage, part)
            calls += part
        return AgentSpec(
            id=f"{self._kind.name}-{number:05d}",
            inferences=tuple(calls),
            kind=self._kind.name,
            text=self._text(),
        )

    def _part(
        self, part: Part, size: int, stage: int, before: Sequence[InferenceSpec]
    ) -> list[InferenceSpec]:
        made: list[InferenceSpec] = []
        for place in range(size if part.calls == "size" else part.calls):
            prompt = self._draw(part.prompt)
            if part.base == "answers":
                prompt += sum(one.decode_tokens for one in before)
            elif part.base == "previous":
                last = made[-1] if part.order == "chain" and made else before[place]
                prompt += last.prompt_tokens + last.decode_tokens
            at = stage + place if part.order == "chain" else stage
            made.append(InferenceSpec(prompt, self._draw(part.decode), stage=at))
        return made

    def _draw(self, spread: Spread) -> int:
        own = self._rng.normalvariate(0.0, 1.0)
        return spread.at(spread.score(self._length, self._wording, self._agent, own))

    def _text(self) -> str:
        """Return sentences whose length and choice of words are the two scores."""
        kind, rng = self._kind, self._rng
        plain, telling = kind.plain.split(), kind.telling.split()
        share = 0.4 + 0.15 * max(-2.5, min(2.5, self._wording))
        words = []
        for place in range(kind.words.at(self._length)):
            source = telling if rng.random() < share else plain
            word = source[below(rng, len(source))]
            words.append(word + "." if place % 11 == 10 else word)
        return f"{kind.opening} {' '.join(words)}"
