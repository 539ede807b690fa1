"""A real engine in this process as an engine of `justitia run`."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.registry import PRESETS
from justitia.engines.scaling import Fitted, scaled_to
from justitia.engines.serving.backend import Limits, ReusableBackend
from justitia.engines.serving.run import LiveRun
from justitia.engines.serving.surroundings import quietly
from justitia.engines.sim.preset import Preset, load_preset
from justitia.policy import Policy
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

TINY = "tiny"
"""Stands for the model that is made on the spot."""

B = TypeVar("B", bound=ReusableBackend)


class LiveEngine(Engine, Generic[B]):
    """Runs workloads on a real engine, one after the other in one backend.

    The engine is imported and started with the first call that needs it. Only one can
    be open in a process.

    Parameters
    ----------
    model
        The path of a model, or its name on a hub that the engine can reach; None: a
        tiny one is made on the spot, with a cache of two thousand tokens, so that
        agents compete.
    admission
        See `justitia.engines.serving.ServingSettings`.
    preset
        The machine whose capacity and step time a scenario's load is measured in. The
        run itself takes the time that it takes.
    arguments
        More of the engine's own arguments.
    """

    alone = True

    def __init__(
        self,
        *,
        model: str | None = None,
        admission: str = "none",
        preset: Preset | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.admission = admission
        self.preset = preset or load_preset(PRESETS[self.name])
        self._given = dict(arguments or {})
        self._backend: B | None = None

    @abstractmethod
    def version(self) -> str:
        """Return the engine's version.

        Raises
        ------
        EngineError
            If it is not there, or not one that the adapter knows.
        """

    @abstractmethod
    def prepare(self) -> None:
        """Set what the engine must find, before it is imported."""

    @abstractmethod
    def start(self, folder: Path) -> B:
        """Import the engine and start it; `folder` is for a model made on the spot."""

    def fit(self, agents: Sequence[AgentSpec]) -> Fitted:
        """Return agents that fit into the model's context and the engine's cache."""
        return scaled_to(agents, self._open().room)

    def about(self) -> dict[str, object]:
        """Return what the results say of the engine; it has to be open for that."""
        backend = self._open()
        return {
            "name": self.name,
            "version": self.version(),
            "model": self.model or TINY,
            "preset": self.preset.name,
            "capacity_tokens": backend.capacity,
            "context_tokens": backend.context,
            "admission": self.admission,
            "preemption": "recompute",
        }

    def run(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
        kind: Callable[..., LiveRun] = LiveRun,
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`.

        Parameters
        ----------
        kind
            What makes the run: `LiveRun`, or one that looks at more.

        Raises
        ------
        EngineError
            Also if the engine does not start, or did not take the policy.
        """
        if tags not in ("agent", "stage"):
            raise EngineError(f"tags must be agent or stage, not {shown(tags)}")
        backend = self._open()
        backend.use(policy)
        try:
            record = kind(
                agents,
                policy,
                predictor,
                backend,
                by_stage=tags == "stage",
                progress=progress,
            ).run()
        except BaseException:
            self.close()  # with requests in it; another run starts another
            raise
        return conserved(record, agents)

    def room(self) -> int:
        """Return the tokens that one request may hold; opens the engine for that."""
        return self._open().room

    def limits(self) -> Limits:
        """Return what the engine's scheduler stays within; opens it for that."""
        return self._open().limits

    def close(self) -> None:
        """Let the engine go, and its memory."""
        backend, self._backend = self._backend, None
        if backend is not None:
            with quietly():
                backend.close()

    def _open(self) -> B:
        if self._backend is None:
            self.prepare()
            with quietly(), TemporaryDirectory() as folder:
                self._backend = self.start(Path(folder) / TINY)
                self._backend.warm_up()
        return self._backend
