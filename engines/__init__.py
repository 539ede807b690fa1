"""The same run on any engine: the contract, its records, and the engines."""

from justitia.engines.base import Engine, EngineError
from justitia.engines.records import AgentRecord, InferenceRecord, Lag, RunRecord

__all__ = [
    "AgentRecord",
    "Engine",
    "EngineError",
    "InferenceRecord",
    "Lag",
    "RunRecord",
]
