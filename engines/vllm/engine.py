"""vLLM as an engine of `justitia run`: in this process, with the policy inside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from justitia.engines.serving.engine import LiveEngine
from justitia.engines.serving.surroundings import prepare
from justitia.engines.tiny import CONTEXT, make_tiny_model
from justitia.engines.vllm.surroundings import IN_PROCESS, TINY_ON_CPU
from justitia.engines.vllm.version import check_version

if TYPE_CHECKING:
    from justitia.engines.vllm.backend import VLLMBackend

TINY_ARGUMENTS = {
    "enforce_eager": True,
    "max_model_len": CONTEXT,
    "num_gpu_blocks_override": 64,
    "block_size": 32,
    "max_num_seqs": 64,
    "max_num_batched_tokens": 1024,
}


class VLLMEngine(LiveEngine["VLLMBackend"]):
    """The real vLLM; ``arguments`` are its engine arguments."""

    name = "vllm"

    def version(self) -> str:
        """Return vLLM's version."""
        return check_version()

    def prepare(self) -> None:
        """Set what vLLM must find."""
        prepare(IN_PROCESS)
        if self.model is None:
            prepare(TINY_ON_CPU)

    def start(self, folder: Path) -> "VLLMBackend":
        """Import vLLM, which takes ten seconds, and start it."""
        from justitia.engines.vllm.backend import VLLMBackend  # noqa: PLC0415

        return VLLMBackend(self._arguments(folder))

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
