"""The JSON form of a comparison, version 1 of its schema.

Others read it: a change of meaning is a new version. On ``sim`` the same scenario gives
the same bytes, so nothing of the machine or the time of day is in it. On a real engine
the times are real, and differ from run to run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from justitia.engines.base import EngineError
from justitia.engines.records import AgentRecord, InferenceRecord, RunRecord
from justitia.engines.scenario import Scenario
from justitia.engines.summary import Summary

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Result:
    """One policy's run: what was asked for, and what came."""

    policy: str
    options: Mapping[str, object]
    record: RunRecord
    summary: Summary

    @property
    def label(self) -> str:
        """The policy's name, with what of it the engine could not honour."""
        limits = self.record.limits
        return f"{self.policy} ({limits})" if limits else self.policy


def document(
    scenario: Scenario,
    results: Sequence[Result],
    *,
    version: str,
    engine: Mapping[str, object],
    predictor: str,
    foresights: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, Any]:
    """Return the comparison as what `json.dumps` takes.

    Parameters
    ----------
    version
        Of the package.
    engine
        ``name``, ``preset``, ``capacity_tokens``, ``admission``, …; for a real engine
        also its ``version``, ``model``, ``context_tokens`` and ``scaled``, the factor
        of all lengths.
    predictor
        Its name.
    foresights
        By policy, what its predictions cost against the oracle's (the fields of
        `justitia.engines.foresight.Foresight`); None where the oracle is the predictor.
    """
    return {
        "schema": SCHEMA,
        "version": version,
        "seed": scenario.seed,
        "engine": dict(engine),
        "workload": {
            "source": scenario.source,
            "arrivals": scenario.arrivals,
            "density": scenario.density,
            "load": scenario.load,
            "agents": len(scenario.agents),
            "inferences": scenario.inferences,
            "predictor": predictor,
        },
        "runs": [
            {
                "policy": result.label,
                "options": dict(result.options),
                "summary": {k: _plain(v) for k, v in asdict(result.summary).items()},
                "remarks": list(result.record.remarks),
                "prediction": None
                if foresights is None
                else dict(foresights[result.policy]),
                "agents": [_agent(agent) for agent in result.record.agents],
                "inferences": [_inference(one) for one in result.record.inferences],
            }
            for result in results
        ],
    }


def dumps(content: Mapping[str, Any]) -> str:
    """Return a document as text in ASCII that ends in a newline.

    Raises
    ------
    EngineError
        If a number in it is not finite: JSON has none for that.
    """
    try:
        return json.dumps(content, allow_nan=False, indent=1, default=str) + "\n"
    except ValueError as error:
        raise EngineError(f"the results cannot be told in JSON: {error}") from None


def _agent(agent: AgentRecord) -> dict[str, Any]:
    return {
        "id": agent.id,
        "kind": agent.kind,
        "arrival": agent.arrival,
        "finish": agent.finish,
        "jct": agent.jct,
        "cost": _plain(agent.cost),
        "predicted_cost": _plain(agent.predicted_cost),
        "tag": _plain(agent.tag),
        "reference_finish": agent.reference_finish,
        "outcome": agent.outcome,
        "reason": agent.reason or None,
        "cached_tokens": agent.cached_tokens,
    }


def _inference(inference: InferenceRecord) -> dict[str, Any]:
    return {
        "id": inference.id,
        "agent": inference.agent,
        "stage": inference.stage,
        "start_step": inference.start_step,
        "finish_step": inference.finish_step,
        "start": inference.start,
        "finish": inference.finish,
        "preempted": inference.preempted,
        "outcome": inference.outcome,
        "cached_tokens": inference.cached_tokens,
        "prompt_tokens": inference.prompt_tokens,
        "decode_tokens": inference.decode_tokens,
    }


def _plain(value: object) -> object:
    """Return a number as the int or float that JSON has: a Fraction, one of numpy's."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value
