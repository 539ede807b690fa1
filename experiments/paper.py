"""The figures that the paper prints, to put beside ours.

Source: the tables and sections 4 to 6 of the Justitia paper (LLaMA-7B on one A100, and
its own workload).
"""

from dataclasses import dataclass

from justitia.engines.summary import BASELINE


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler of ours, and the system of the paper that it stands for.

    Parameters
    ----------
    system
        What the paper calls it.
    mean_jct
        Seconds, in its main table; None where that does not have it.
    said
        What the paper says of it.
    """

    name: str
    system: str
    mean_jct: float | None = None
    said: str = ""

    @property
    def gain(self) -> float | None:
        """By how much its mean JCT is below VTC's, in the paper."""
        if self.mean_jct is None:
            return None
        return 1 - self.mean_jct / MEAN_JCT[BASELINE]


SCHEDULERS = (
    Scheduler("justitia", "Justitia", 164.2, "8 % later than under VTC"),
    Scheduler("justitia-c", "Justitia/C", 233.7, "42.3 % worse than Justitia"),
    Scheduler("srjf", "SRJF", 148.6, "starves elephants"),
    Scheduler("vtc", "VTC", 386.4, "the baseline"),
    Scheduler("fairserve", "FairServe"),
    Scheduler("fcfs", "vLLM FCFS", 388.2, "severe delay"),
    Scheduler("sjf", "vLLM-SJF", 215.4, "moderate delay"),
    Scheduler("mlfq", "FastServe MLFQ"),
    Scheduler("agent-fcfs", "Parrot", 412.5, "head-of-line blocking"),
    Scheduler("ayo", "Ayo"),
)  # fmt: skip
"""Every system in the paper's tables and related work, Justitia's own first."""

BY_NAME = {scheduler.name: scheduler for scheduler in SCHEDULERS}
MEAN_JCT = {s.name: s.mean_jct for s in SCHEDULERS if s.mean_jct is not None}
"""Seconds, of those that the paper's main table has."""

SHARE_LATER, WORST_LATER = 0.08, 0.26
"""Of the agents under Justitia: later than under VTC, and the worst by how much."""
COMPUTE_WORSE = 0.423
"""How much longer the mean JCT is under Justitia/C than under Justitia."""
NOISE_COSTS = 0.095
"""How much longer the mean JCT is with predictions off by a factor of up to 3."""
MLP_ERROR, S3_ERROR = 0.53, 4.52
"""Mean relative errors of predicted costs."""
MLP_MS, S3_MS = 2.16, 55.7
"""Milliseconds of a prediction."""
MLP_JCT, S3_JCT = 151.1, 366.7
"""Mean JCT in seconds at density 2."""
DECISION_MS = {"vtc": 5.0, "justitia": 10.0, "sjf": 55.0}
"""Milliseconds of a decision: about 5, below 10, about 55."""
