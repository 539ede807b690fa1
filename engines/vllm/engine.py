"""vLLM as an engine of `justitia run`: in this process, with the policy inside it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.scaling import Fitted, scaled_to
from justitia.engines.serving.run import LiveRun
from justitia.engines.serving.surroundings import prepare, quietly
from justitia.engines.sim.preset import Preset, load_preset
from justitia.engines.tiny import CONTEXT, make_tiny_model
from justitia.engines.vllm.surroundings import IN_PROCESS, TINY_ON_CPU
from justitia.engines.vllm.version import check_version
from justitia.policy import Policy
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

if TYPE_CHECKING:
    from justitia.engines.vllm.backend import VLLMBackend

PRESET = "tiny-llama-cpu"
"""What places arrivals in time unless something else is given."""
TINY = "tiny"
"""Stands for the model that is made on the spot."""
TINY_ARGUMENTS = {
    "enforce_eager": True,
    "max_model_len": CONTEXT,
    "num_gpu_blocks_override": 64,
    "block_size": 32,
    "max_num_seqs": 64,
    "max_num_batched_tokens": 1024,
}


class VLLMEngine(Engine):
    """Runs workloads on the real vLLM, one after the other in one engine.

    vLLM is imported and started with the first call that needs it. Only one can be
    open in a process.

    Parameters
    ----------
    model
        The path of a model, or its name on a hub that vLLM can reach; None: a tiny one
        is made on the spot, with a cache of two thousand tokens, so that agents
        compete.
    admission
        See `justitia.engines.serving.ServingSettings`.
    preset
        The machine whose capacity and step time a scenario's load is measured in. The
        run itself takes the time that it takes.
    arguments
        More of vLLM's engine arguments.
    """

    name = "vllm"
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
        self.preset = load_preset(PRESET) if preset is None else preset
        self._given = dict(arguments or {})
        self._backend: VLLMBackend | None = None

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
            Also if vLLM does not start, or did not take the policy's scheduler.
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
        """Let vLLM go, and its memory."""
        backend, self._backend = self._backend, None
        if backend is not None:
            with quietly():
                backend.close()

    def _open(self) -> "VLLMBackend":
        if self._backend is None:
            prepare(IN_PROCESS)
            if self.model is None:
                prepare(TINY_ON_CPU)
            with quietly(), TemporaryDirectory() as folder:
                # Here, since that takes ten seconds.
                from justitia.engines.vllm.backend import VLLMBackend  # noqa: PLC0415

                self._backend = VLLMBackend(self._arguments(Path(folder) / TINY))
                self._backend.warm_up()
        return self._backend

    def _arguments(self, folder: Path) -> dict[str, Any]:
        ours = {
            "scheduler_cls": "justitia.engines.vllm.Scheduler",
            "additional_config": {"justitia": {"admission": self.admission}},
            "disable_log_stats": True,
            "use_tqdm_on_load": False,
        }
        if self.model is not None:
            return ours | {"model": self.model} | self._given
        model = {"model": str(make_tiny_model(folder))}
        return ours | model | TINY_ARGUMENTS | self._given
