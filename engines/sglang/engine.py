"""SGLang as an engine of `justitia run`: in this process, with the policy inside it."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from justitia.engines.base import EngineError
from justitia.engines.serving.engine import LiveEngine
from justitia.engines.serving.surroundings import prepare
from justitia.engines.sglang import ADMISSIONS
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    IN_PROCESS,
    TINY_ON_CPU,
    on_cpu,
    use_cpu,
)
from justitia.engines.sglang.version import check_version
from justitia.engines.sim.preset import Preset
from justitia.engines.tiny import CONTEXT, make_tiny_model
from justitia.policy.exact import shown

if TYPE_CHECKING:
    from justitia.engines.sglang.backend import SGLangBackend

TINY_ARGUMENTS = {
    "context_length": CONTEXT,
    "max_total_tokens": 2048,
    "max_running_requests": 64,
    "chunked_prefill_size": 1024,
    "page_size": 1,
}
KNOWN = "0.5.23"
"""A version whose scheduler can be made and stepped as the backend does it.

How it is made has changed between versions (0.5.20 takes its ranks as parameters), and
says nothing of the hooks, which a server needs alone.
"""


class SGLangEngine(LiveEngine["SGLangBackend"]):
    """The real SGLang; ``arguments`` are its server arguments.

    Raises
    ------
    EngineError
        For another admission than ``none`` and ``max``.
    """

    name = "sglang"

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
        super().__init__(
            model=model, admission=admission, preset=preset, arguments=arguments
        )

    def version(self) -> str:
        """Return SGLang's version."""
        return check_version()

    def prepare(self) -> None:
        """Set what SGLang must find."""
        prepare(IN_PROCESS)
        if self.model is None:
            prepare(TINY_ON_CPU)  # before torch is there, which `on_cpu` may ask
        if on_cpu():
            use_cpu()
        logging.getLogger("sglang").setLevel(logging.ERROR)

    def start(self, folder: Path) -> "SGLangBackend":
        """Import SGLang, which takes ten seconds, and start it."""
        return _backend()(self._arguments(folder), admission=self.admission)

    def _arguments(self, folder: Path) -> dict[str, Any]:
        ours = dict(ARGUMENTS_ON_CPU) if on_cpu() else {}
        if self.model is not None:
            return ours | {"model_path": self.model} | self._given
        model = {"model_path": str(make_tiny_model(folder))}
        return ours | model | TINY_ARGUMENTS | self._given


def _backend() -> "type[SGLangBackend]":
    """Import the backend, and SGLang with it."""
    try:
        from justitia.engines.sglang.backend import SGLangBackend  # noqa: PLC0415
    except ImportError as error:
        raise EngineError(
            f"SGLang {check_version()} cannot be run in this process, as {KNOWN} can: "
            f"{error}. Serve with it, or install {KNOWN}"
        ) from error
    return SGLangBackend
