"""What predicting costs: a run beside the one whose predictor knew."""

from dataclasses import dataclass
from statistics import fmean, median

from justitia.engines.document import Result


@dataclass(frozen=True, slots=True)
class Foresight:
    """A policy with predictions, beside the same policy with the oracle's.

    Attributes
    ----------
    mean_relative_error, median_relative_error
        Of |predicted - real| / real over the agents that arrived in both runs, in the
        policy's own cost model; None if there are none.
    oracle_mean_jct
        The mean JCT with the oracle, in seconds.
    jct_change
        How much longer the mean JCT is than that, as a part of it; None if one of the
        two has no value.
    notes
        What the predictor has to say of its answers.
    """

    mean_relative_error: float | None
    median_relative_error: float | None
    oracle_mean_jct: float | None
    jct_change: float | None
    notes: tuple[str, ...] = ()


def foresee(result: Result, oracle: Result) -> Foresight:
    """Compare the two runs of one policy. O(agents log agents)."""
    # The oracle predicts what is real, in the unit of the policy that asks it.
    real = {agent.id: agent.predicted_cost for agent in oracle.record.agents}
    errors = [
        abs(float(agent.predicted_cost) - float(cost)) / float(cost)
        for agent in result.record.agents
        if agent.predicted_cost is not None and (cost := real.get(agent.id)) is not None
    ]
    mine, known = result.summary.mean_jct, oracle.summary.mean_jct
    return Foresight(
        mean_relative_error=fmean(errors) if errors else None,
        median_relative_error=median(errors) if errors else None,
        oracle_mean_jct=known,
        jct_change=None if mine is None or not known else mine / known - 1,
        notes=result.record.notes,
    )
