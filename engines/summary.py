"""What a run comes to, beside the run of VTC that it is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from justitia.engines.records import RunRecord
from justitia.policy.exact import Number

BASELINE = "vtc"
"""The policy that the paper compares with."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers; times in seconds, None where there is no value.

    Parameters
    ----------
    mean_jct, p50_jct, p90_jct, p99_jct, max_jct
        Over the agents that finished; percentiles by linear interpolation.
    gain_vs_vtc
        1 - mean / VTC's mean.
    share_later
        The share of agents that finished later than under VTC, of those that finished
        under both.
    worst_later, worst_later_seconds
        Of the one delayed most in proportion: how much later than under VTC, as a part
        of its JCT there, and in seconds; 0 where none was later.
    utilisation
        KV tokens held / capacity, mean over busy steps.
    finished, cancelled, refused
        Inferences.
    max_lag, max_lag_allowed, max_lag_ratio
        See `justitia.engines.Lag`: `worst`, `allowed` and `ratio`.
    cached_tokens
        Of all prompts, found in the engine's cache; None where it does not say.
    """

    mean_jct: float | None
    p50_jct: float | None
    p90_jct: float | None
    p99_jct: float | None
    max_jct: float | None
    gain_vs_vtc: float | None
    share_later: float | None
    worst_later: float | None
    worst_later_seconds: float | None
    utilisation: float | None
    preemptions: int
    steps: int
    finished: int
    cancelled: int
    refused: int
    max_lag: Number | None
    max_lag_allowed: Number | None
    max_lag_ratio: float | None
    cached_tokens: int | None = None


def summarise(run: RunRecord, baseline: RunRecord | None) -> Summary:
    """Return the numbers of `run`, beside `baseline` where there is one."""
    jcts = sorted(agent.jct for agent in run.agents if agent.jct is not None)
    mean = fmean(jcts) if jcts else None
    gain, later = None, Later(None, None, None)
    if baseline is not None:
        theirs = [agent.jct for agent in baseline.agents if agent.jct is not None]
        if mean is not None and theirs and fmean(theirs):
            gain = 1 - mean / fmean(theirs)
        later = compare(run, baseline)
    outcomes = [inference.outcome for inference in run.inferences]
    return Summary(
        mean_jct=mean,
        p50_jct=percentile(jcts, 50),
        p90_jct=percentile(jcts, 90),
        p99_jct=percentile(jcts, 99),
        max_jct=jcts[-1] if jcts else None,
        gain_vs_vtc=gain,
        share_later=later.share,
        worst_later=later.worst,
        worst_later_seconds=later.worst_seconds,
        utilisation=run.utilisation,
        preemptions=run.preemptions,
        steps=run.steps,
        finished=outcomes.count("finished"),
        cancelled=outcomes.count("cancelled"),
        refused=outcomes.count("refused"),
        max_lag=None if run.lag is None else run.lag.worst,
        max_lag_allowed=None if run.lag is None else run.lag.allowed,
        max_lag_ratio=None if run.lag is None else run.lag.ratio,
        cached_tokens=run.cached_tokens,
    )


@dataclass(frozen=True, slots=True)
class Later:
    """Which part of the agents was later than under a baseline, and the worst of them.

    `share` and `worst` are parts of 1; `worst_seconds` is of the same agent as `worst`.
    """

    share: float | None
    worst: float | None
    worst_seconds: float | None


def compare(run: RunRecord, baseline: RunRecord) -> Later:
    """Compare agent by agent; what finished under one of the two only is left out.

    An agent that took no time under the baseline can be later, but not in proportion.
    """
    theirs = {agent.id: agent.jct for agent in baseline.agents}
    pairs = [
        (mine, other)
        for agent in run.agents
        if (mine := agent.jct) is not None
        and (other := theirs.get(agent.id)) is not None
    ]
    if not pairs:
        return Later(None, None, None)
    late = [(mine, other) for mine, other in pairs if mine > other]
    worst = max(
        ((mine / other - 1, mine - other) for mine, other in late if other),
        default=(0.0, 0.0),
    )
    return Later(len(late) / len(pairs), *worst)


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """Return a percentile of numbers in order, by linear interpolation."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
