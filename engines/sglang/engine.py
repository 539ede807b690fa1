"""SGLang as an engine of `justitia run`: in this process, with the policy inside it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.scaling import Fitted, scaled_to
from justitia.engines.serving.run import LiveRun
from justitia.engines.serving.surroundings import prepare, quietly
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    IN_PROCESS,
    TINY_ON_CPU,
    on_cpu,
    use_cpu,
)
from justitia.engines.sglang.version import check_version
from justitia.engines.sim.preset import Preset, load_preset
from justitia.engines.tiny import CONTEXT, make_tiny_model
from justitia.policy import Policy
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

if TYPE_CHECKING:
    from justitia.engines.sglang.backend import SGLangBackend

PRESET = "tiny-llama-cpu-sglang"
"""What places arrivals in time unless something else is given."""
TINY = "tiny"
"""Stands for the model that is made on the spot."""
TINY_ARGUMENTS = {
    "context_length": CONTEXT,
    "max_total_tokens": 2048,
    "max_running_requests": 64,
    "chunked_prefill_size": 1024,
    "page_size": 1,
}
ADMISSIONS = ("none", "max")
KNOWN = "0.5.23"
"""A version whose scheduler can be made and stepped as the backend does it.

How it is made has changed between versions (0.5.20 takes its ranks as parameters), and
says nothing of the hooks, which a server needs alone.
"""


class SGLangEngine(Engine):
    """Runs workloads on the real SGLang, one after the other in one scheduler.

    SGLang is imported and started with the first call that needs it. Only one can be
    open in a process.

    Parameters
    ----------
    model
        The path of a model, or its name on a hub that SGLang can reach; None: a tiny
        one is made on the spot, with a cache of two thousand tokens, so that agents
        compete.
    admission
        ``none`` or ``max``; see `justitia.engines.serving.ServingSettings`.
    preset
        The machine whose capacity and step time a scenario's load is measured in. The
        run itself takes the time that it takes.
    arguments
        More of SGLang's server arguments.

    Raises
    ------
    EngineError
        For another admission.
    """

    name = "sglang"
    alone = True

    def __init__(
        self,
        *,
        model: str | None = None,
        admission: str = "none",
        preset: Preset | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        if admission not in ADMISSIONS:
            raise EngineError(
                f"admission on sglang must be one of {', '.join(ADMISSIONS)}, "
                f"not {shown(admission)}"
            )
        self.model = model
        self.admission = admission
        self.preset = load_preset(PRESET) if preset is None else preset
        self._given = dict(arguments or {})
        self._backend: SGLangBackend | None = None

    def fit(self, agents: Sequence[AgentSpec]) -> Fitted:
        """Return agents that fit into the model's context and the engine's cache."""
        return scaled_to(agents, self._open().room)

    def about(self) -> dict[str, object]:
        """Return what the results say of the engine; it has to be open for that."""
        backend = self._open()
        return {
            "name": self.name,
            "version": check_version(),
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
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`.

        Raises
        ------
        EngineError
            Also if SGLang does not start, or did not take the policy.
        """
        if tags not in ("agent", "stage"):
            raise EngineError(f"tags must be agent or stage, not {shown(tags)}")
        backend = self._open()
        backend.use(policy)
        try:
            record = LiveRun(
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

    def close(self) -> None:
        """Let SGLang go, and its memory."""
        backend, self._backend = self._backend, None
        if backend is not None:
            with quietly():
                backend.close()

    def _open(self) -> "SGLangBackend":
        if self._backend is None:
            prepare(IN_PROCESS)
            if self.model is None:
                prepare(TINY_ON_CPU)  # before torch is there, which `on_cpu` may ask
            if on_cpu():
                use_cpu()
            logging.getLogger("sglang").setLevel(logging.ERROR)
            with quietly(), TemporaryDirectory() as folder:
                self._backend = _backend()(
                    self._arguments(Path(folder) / TINY), admission=self.admission
                )
                self._backend.warm_up()
        return self._backend

    def _arguments(self, folder: Path) -> dict[str, Any]:
        ours = dict(ARGUMENTS_ON_CPU) if on_cpu() else {}
        if self.model is not None:
            return ours | {"model_path": self.model} | self._given
        model = {"model_path": str(make_tiny_model(folder))}
        return ours | model | TINY_ARGUMENTS | self._given


def _backend() -> "type[SGLangBackend]":
    """Import the backend, which imports SGLang and takes ten seconds."""
    try:
        from justitia.engines.sglang.backend import SGLangBackend  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(
            f"SGLang {check_version()} cannot be run in this process, as {KNOWN} can: "
            f"{error}. Serve with it, or install {KNOWN}"
        ) from error
    return SGLangBackend
