"""The paper's nine classes of agents as tables of numbers.

Each class says how many calls an agent makes, how they are staged, and how long they
are, as quantiles of lengths that were recorded from real runs of such agents (FacTool,
CodeT, self-consistency and Tree of Thoughts, Natural Program, ReAct, FActScore,
KnowAgent on ALFWorld, Plan-and-Solve on InterCode, recursive summaries, Graph of
Thoughts), rounded. MapReduce, the elephant of the paper's starvation experiment, is
made up: 30 to 80 maps.

`justitia.workloads.generate` makes agents from these.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import erf, sqrt
from typing import Literal

PLACES = (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)
"""Where the quantiles of a `Spread` stand."""

SIZES = {"small": 72, "medium": 26, "large": 2}
"""Percent of the agents of a mix by size, as in the paper."""

_ROOT = sqrt(2)


@dataclass(frozen=True, slots=True)
class Spread:
    """How a length varies, and what gives it away.

    Parameters
    ----------
    quantiles
        Its values at `PLACES`, ascending; straight lines between them.
    length, wording
        Correlation of its score with the length of the agent's text and with the share
        of telling words in it: what a predictor can learn.
    agent
        Correlation with what all calls of an agent have in common and the text does not
        tell. The rest, 1 less the squares of the three, is drawn anew for each call.
    """

    quantiles: tuple[int, int, int, int, int, int]
    length: float = 0.0
    wording: float = 0.0
    agent: float = 0.0

    def at(self, score: float) -> int:
        """Return the value of a standard normal score, a whole number."""
        place = (1 + erf(score / _ROOT)) / 2
        marks = zip(pairwise(PLACES), pairwise(self.quantiles), strict=True)
        for (left, right), (low, high) in marks:
            if place <= right:
                return round(low + (high - low) * (place - left) / (right - left))
        return self.quantiles[-1]

    def score(self, length: float, wording: float, agent: float, own: float) -> float:
        """Return the score that the four standard normal scores give together."""
        shares = (self.length, self.wording, self.agent)
        rest = sqrt(max(0.0, 1 - sum(share * share for share in shares)))
        known = self.length * length + self.wording * wording + self.agent * agent
        return known + rest * own


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a class's plan: calls side by side, or one after the other.

    Parameters
    ----------
    decode
        Tokens produced by each call.
    prompt
        Prompt tokens of a call; with `base` other than ``"fresh"``, what they are on
        top of the base.
    calls
        How many: 1, 3, …, or ``"size"`` for the agent's size.
    order
        ``"together"``: one stage. ``"chain"``: a stage each.
    base
        What a prompt starts with. ``"fresh"``: nothing. ``"previous"``: prompt and
        answer of the call before it (of the same place in the part before it, for the
        first of a chain). ``"answers"``: the answers of all calls of the part before.
    """

    decode: Spread
    prompt: Spread
    calls: int | Literal["size"] = "size"
    order: Literal["together", "chain"] = "together"
    base: Literal["fresh", "previous", "answers"] = "fresh"


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of agents.

    Parameters
    ----------
    name, size
        Its name, and its place in `SIZES`.
    count
        The size of an agent, which `Part.calls` refers to.
    parts
        Its plan, one after the other.
    words
        Words of an agent's text.
    opening
        How its texts begin.
    plain, telling
        The words that its texts are made of; the share of telling ones is the wording.
    """

    name: str
    size: Literal["small", "medium", "large"]
    count: Spread
    parts: tuple[Part, ...]
    words: Spread
    opening: str
    plain: str
    telling: str


def _fixed(value: int) -> Spread:
    return Spread((value,) * 6)


_TABLE = (
    Kind(
        "FV",
        "small",
        Spread((1, 1, 1, 3, 5, 7), wording=0.2),
        (
            Part(
                decode=Spread((18, 24, 28, 35, 42, 46), length=0.3, agent=0.4),
                prompt=Spread((805, 807, 810, 816, 823, 840), length=0.8),
                calls=1,
            ),
            Part(
                decode=Spread((5, 24, 31, 42, 58, 106), length=0.2, agent=0.4),
                prompt=Spread((1, 13, 115, 170, 350, 600)),
                order="chain",
                base="previous",
            ),
        ),
        words=Spread((3, 5, 8, 12, 19, 33)),
        opening="Claim:",
        plain="the film actor was born in a city and played for two seasons",
        telling="reportedly neither disputed allegedly unreleased co-produced",
    ),
    Kind(
        "FVP",
        "small",
        Spread((3, 5, 7, 11, 16, 19), length=0.9, wording=0.1),
        (
            Part(
                decode=Spread((6, 25, 44, 74, 110, 481), length=0.05, wording=0.3),
                prompt=Spread((12, 23, 33, 46, 62, 212), agent=0.3),
            ),
        ),
        words=Spread((38, 91, 141, 213, 330, 376)),
        opening="Biography:",
        plain="she began her career as a singer and later appeared in several shows",
        telling="nominated subsequently collaborated discography philanthropic",
    ),
    Kind(
        "PE",
        "small",
        Spread((2, 3, 4, 7, 10, 18), length=0.25, wording=0.35),
        (
            Part(
                decode=Spread(
                    (35, 48, 66, 175, 390, 510), length=0.3, wording=0.4, agent=0.3
                ),
                prompt=Spread((265, 269, 275, 378, 394, 422), length=0.3, wording=0.5),
                calls=1,
            ),
            Part(
                decode=Spread((1, 3, 10, 36, 90, 512), length=0.1, wording=0.2),
                prompt=Spread((2, 3, 14, 75, 260, 2600), wording=0.2, agent=0.2),
                order="chain",
                base="previous",
            ),
        ),
        words=Spread((4, 7, 12, 18, 26, 34)),
        opening="Question:",
        plain="which list the names of all owners and count how many files are in",
        telling="descending recursively excluding aggregate checksum intersect",
    ),
    Kind(
        "CC",
        "small",
        _fixed(10),
        (
            Part(
                decode=Spread(
                    (1, 1, 52, 250, 400, 1118), length=0.45, wording=0.25, agent=0.35
                ),
                prompt=Spread((15, 39, 190, 500, 700, 835), length=0.92, agent=0.37),
            ),
        ),
        words=Spread((8, 22, 133, 377, 537, 595)),
        opening="Write a function:",
        plain="given a list of numbers return the sum of each pair in the string",
        telling="lexicographically modulo permutations constraint subsequence",
    ),
    Kind(
        "KBQAV",
        "medium",
        Spread((1, 2, 6, 15, 20, 27), length=0.9, wording=0.2),
        (
            Part(
                decode=Spread((16, 46, 217, 542, 700, 739), length=0.85, wording=0.2),
                prompt=Spread((559, 586, 737, 1121, 1300, 1325), length=0.9),
                calls=1,
            ),
            Part(
                decode=Spread((12, 28, 39, 57, 83, 128), wording=0.4, agent=0.4),
                prompt=Spread((259, 271, 280, 298, 323, 362), wording=0.3, agent=0.5),
            ),
            Part(
                decode=Spread((45, 75, 108, 168, 260, 424), wording=0.35, agent=0.25),
                prompt=Spread((326, 556, 1008, 1401, 1527, 1656), agent=0.5),
            ),
        ),
        words=Spread((10, 20, 70, 180, 260, 300)),
        opening="Answer to check:",
        plain="the capital of the country was moved when the river trade grew large",
        telling="epidemiological furthermore jurisdiction approximately statistically",
    ),
    Kind(
        "EV",
        "medium",
        Spread((3, 6, 9, 12, 14, 15), length=0.7, wording=0.1),
        tuple(
            Part(
                decode=Spread(decode, wording=0.25, agent=0.2),
                prompt=Spread(prompt, length=0.4, wording=0.3, agent=0.5),
            )
            for prompt, decode in (
                ((441, 464, 492, 526, 569, 682), (16, 25, 58, 92, 140, 207)),
                ((548, 571, 599, 633, 676, 789), (37, 60, 82, 125, 160, 239)),
                ((483, 506, 534, 568, 611, 724), (14, 25, 49, 105, 190, 221)),
            )
        ),
        words=Spread((80, 132, 163, 236, 300, 330)),
        opening="Question and solution to verify:",
        plain="she had some apples and gave half of them to her friend each day",
        telling="therefore calculate respectively remainder combined statement",
    ),
    Kind(
        "SC",
        "medium",
        Spread((10, 10, 10, 19, 20, 20), length=-0.95),
        (
            Part(
                decode=Spread(
                    (12, 75, 228, 379, 450, 700), length=0.9, wording=0.25, agent=0.25
                ),
                prompt=Spread((90, 109, 529, 547, 560, 562), length=-0.93, agent=-0.3),
            ),
        ),
        words=Spread((4, 4, 24, 49, 66, 77)),
        opening="Question:",
        plain="today is the first day of the month what is the date in a week",
        telling="anniversary rescheduled whichever fortnight consecutive",
    ),
    Kind(
        "MRS",
        "medium",
        Spread((2, 2, 4, 6, 7, 9), length=0.9),
        (
            Part(
                decode=Spread((21, 44, 74, 165, 380, 600), wording=0.5, agent=0.4),
                prompt=Spread((38, 480, 590, 720, 1000, 1124), length=0.3, agent=0.7),
            ),
            Part(
                decode=Spread((36, 66, 125, 400, 700, 943), wording=0.5, agent=0.4),
                prompt=Spread((20, 50, 80, 130, 200, 250)),
                calls=1,
                base="answers",
            ),
        ),
        words=Spread((649, 962, 1423, 2998, 3978, 4524)),
        opening="Write a detailed summary of the following:",
        plain="she said to the king that it was a long time since they had gone out",
        telling="proclaimed melancholy curiously solemnly indignantly whereupon",
    ),
    Kind(
        "ALFWI",
        "medium",
        Spread((11, 21, 49, 49, 49, 49), wording=0.25),
        (
            Part(
                decode=Spread((20, 25, 29, 48, 68, 116), agent=0.4),
                prompt=Spread((1859, 1906, 2265, 2603, 2685, 2798), length=0.4),
                calls=1,
            ),
            Part(
                decode=Spread((1, 4, 11, 27, 60, 118), agent=0.15),
                prompt=Spread((2, 2, 4, 23, 58, 147)),
                order="chain",
                base="previous",
            ),
        ),
        words=Spread((45, 57, 91, 144, 189, 189)),
        opening="You are in the middle of a room. You see",
        plain="a drawer a shelf a cabinet a table a bed a sofa a desk and one lamp",
        telling="microwave fridge examine heat cool sinkbasin countertop",
    ),
    Kind(
        "DM",
        "large",
        _fixed(3),
        (
            Part(
                decode=Spread((171, 400, 810, 1500, 2800, 4200), agent=0.85),
                prompt=Spread(
                    (783, 850, 1220, 1600, 1900, 1924), wording=0.1, agent=0.2
                ),
            ),
            Part(
                decode=Spread((217, 420, 850, 1450, 2400, 4200), agent=0.85),
                prompt=Spread((10, 60, 100, 150, 250, 400)),
                base="previous",
            ),
        ),
        words=Spread((30, 35, 50, 70, 80, 90)),
        opening="Merge the documents into one, keep what matters:",
        plain="the agreement between both parties on the terms of use of the data",
        telling="notwithstanding hereinafter confidentiality indemnify",
    ),
    Kind(
        "MapReduce",
        "large",
        Spread((30, 35, 55, 75, 80, 80), length=0.95, wording=0.1),
        (
            Part(
                decode=Spread((30, 60, 100, 160, 200, 240), wording=0.4, agent=0.2),
                prompt=Spread((800, 900, 1300, 1700, 1790, 1800), agent=0.3),
            ),
            Part(
                decode=Spread((150, 300, 500, 750, 900, 1000), wording=0.4, agent=0.3),
                prompt=Spread((40, 60, 80, 120, 150, 200)),
                calls=1,
                base="answers",
            ),
        ),
        words=Spread((180, 220, 350, 480, 520, 540)),
        opening="Read every file of the collection and report on all:",
        plain="annual report part one table of sales by region and year appendix",
        telling="consolidated discontinued impairment contingent restatement",
    ),
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in _TABLE}
"""The classes by name, the small ones first."""
