"""A policy and the fair reference, told the same."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor

from justitia.policy import Agent, Inference, Step
from justitia.proofs.plans import Number, Size, Work, delivered, kv_token_time
from justitia.proofs.properties.base import expect
from justitia.proofs.recorder import Recorder, same
from justitia.proofs.reference import FairReference


class Beside:
    """A policy, with a fair reference that is driven by what its inferences are served.

    An agent that leaves stays in the reference for what it was delivered, never more
    than it asked for. Nobody may leave last: whether debts outlive all agents is not
    for a property to say.

    Parameters
    ----------
    policy
        New.
    work
        What costs and service are counted in.
    """

    def __init__(self, policy: Recorder, work: Work = kv_token_time) -> None:
        self.policy = policy
        self.work = work
        self.fair = FairReference()
        self._keys: dict[str, int] = {}  # of agents that are here
        self._asked: dict[int, Fraction] = {}
        self._got: dict[int, Fraction] = {}
        self._seqs: dict[str, int] = {}  # of inferences
        self._produced: dict[str, int] = {}
        self.count = 0

    @property
    def level(self) -> Fraction:
        """Virtual time, as it should be."""
        return self.fair.level

    def join(
        self, name: str, cost: Number, *sizes: Size, weight: Number = 1
    ) -> list[str]:
        """Let an agent arrive with some inferences, (0, 1) unless told."""
        self.arrive(name, cost, weight)
        return [self.submit(name, p, d) for p, d in sizes or ((0, 1),)]

    def arrive(self, name: str, cost: Number, weight: Number = 1) -> None:
        """Let an agent arrive that submits nothing yet."""
        self.policy.arrive(Agent(name, cost, weight))
        self.count += 1
        key = self._keys[name] = self.count
        self.fair.arrive(key, cost, weight)
        self._asked[key], self._got[key] = Fraction(cost), Fraction(0)

    def submit(self, name: str, p: int = 0, d: int = 1) -> str:
        """Submit another inference of an agent; return its id."""
        self.count += 1
        one = f"{name}/{sum(i.startswith(name + '/') for i in self._seqs)}"
        self.policy.submit(Inference(one, name, p, d))
        self._seqs[one], self._produced[one] = self.count, 0
        return one

    def step(
        self, decode: Mapping[str, int], prefill: Mapping[str, int] | None = None
    ) -> Fraction:
        """Tell of a step; return what it delivered."""
        work = Fraction(0)
        for one, tokens in decode.items():
            inference = self.policy.running[one]
            size = (inference.prompt_tokens, inference.decode_tokens)
            before = self._produced[one]
            self._produced[one] = before + tokens
            gain = delivered(self.work, size, before + tokens)
            gain -= delivered(self.work, size, before)
            self._got[self._keys[inference.agent]] += gain
            work += gain
        self.policy.serve(Step(dict(prefill or {}), dict(decode)))
        self.fair.serve(work)
        return work

    def leave(self, name: str) -> None:
        """Let an agent leave, and settle it."""
        self.policy.leave(name)
        key = self._keys.pop(name)
        settled = min(self._got[key], self._asked[key])
        if settled:
            self.fair.revise(key, settled)
        else:
            self.fair.leave(key)

    def revise(self, name: str, cost: Number) -> None:
        """Give an agent another predicted cost."""
        self.policy.revise(name, cost)
        self.fair.revise(self._keys[name], cost)
        self._asked[self._keys[name]] = Fraction(cost)

    def place(self, inference: Inference) -> tuple[Fraction, int, int]:
        """Return what the line should be sorted by."""
        key = self._keys[inference.agent]
        return self.fair.finish_level(key), key, self._seqs[inference.id]

    def check_victims(self) -> None:
        """Compare who should give way with the order of those who run, backwards."""
        running = self.policy.running.values()
        should = [one.id for one in sorted(running, key=self.place, reverse=True)]
        victims = [one.id for one in self.policy.victims()]
        expect(
            victims == should,
            f"the victims are {victims}, and should be {should}, last in order first",
        )

    def check(self) -> None:
        """Compare the line with the order of the reference's finishes, and the tags."""
        should = sorted(self.policy.waiting.values(), key=self.place)
        line, fair = self.policy.line(), [one.id for one in should]
        if line != fair:
            levels = ", ".join(
                f"{name} at {self.fair.finish_level(self._keys[name])}"
                for name in dict.fromkeys(one.agent for one in should)
            )
            expect(
                False,
                f"the line is {line}, and should be {fair}: the fair reference, at "
                f"{self.level}, finishes {levels}",
            )
        for name, tag in self.policy.tags().items():
            if tag is not None:
                level = self.fair.finish_level(self._keys[name])
                expect(
                    same(tag, level),
                    f"the tag of {name} is {tag}, and the fair reference finishes it "
                    f"at {level}",
                )


BIG = 100
"""What an agent asks for that is not to end in the reference."""
MARK = 1000
"""What the agent asks for that a newcomer is measured against."""


class Race(Beside):
    """A marker that waits from the start, and a newcomer that must come out beside it.

    Virtual time shows only in the tag of a newcomer. So its cost is chosen such that it
    ends up on one side of the marker if virtual time is what it should be, and on the
    other if it is what a mistake makes of it.
    """

    def __init__(self, policy: Recorder, work: Work = kv_token_time) -> None:
        super().__init__(policy, work)
        self.join("mark", MARK)

    def run(self, name: str, cost: Number, size: Size, weight: Number = 1) -> str:
        """Let an agent arrive with one inference, and start it; return its id."""
        (one,) = self.join(name, cost, size, weight=weight)
        self.policy.start(one)
        return one

    def finish(self, wrong: Number) -> None:
        """Let the newcomer arrive, at a level that a mistake takes to be `wrong`."""
        low, high = sorted((self.level, Fraction(wrong)))
        if low < high:
            self.join("new", between(MARK - high, MARK - low))
        self.check()


def between(low: Fraction, high: Fraction) -> Number:
    """Return a number between two, an integer or else one of few digits."""
    for denominator in range(1, 1000):
        numerator = floor((low + high) / 2 * denominator)
        for one in (numerator, numerator + 1):
            if low < Fraction(one, denominator) < high:
                return one if denominator == 1 else Fraction(one, denominator)
    return (low + high) / 2
