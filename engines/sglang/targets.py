"""What of SGLang the adapter hooks and relies on, and whether it is as expected.

SGLang passes over a hook whose target is not there, with a line in its log, and serves
in its own order then. So every target is looked at before any hook is registered.
"""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pkgutil import resolve_name

from justitia.engines.base import EngineError
from justitia.engines.sglang.version import installed

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_POLICY = "sglang.srt.managers.schedule_policy"
_BATCH = "sglang.srt.managers.schedule_batch.ScheduleBatch"


@dataclass(frozen=True)
class Target:
    """Something of SGLang's.

    Attributes
    ----------
    path
        Where it is, with dots.
    parameters
        Those that are relied on, in order from the first; None for no function.
    """

    path: str
    parameters: tuple[str, ...] | None = None

    def fault(self) -> str | None:
        """Return what is wrong with it on this version, None for nothing."""
        try:
            found = resolve_name(self.path)
        except (AttributeError, ImportError, ValueError) as error:
            return f"{self.path} is not there ({error})"
        if self.parameters is None:
            return None
        try:
            names = tuple(inspect.signature(found).parameters)
        except (TypeError, ValueError):
            return f"{self.path} is no function"
        if names[: len(self.parameters)] != self.parameters:
            return (
                f"{self.path} takes ({', '.join(names)}), where the first must be "
                f"({', '.join(self.parameters)})"
            )
        return None


BIND = Target(f"{SCHEDULER}.init_schedule_policy", ("self",))
PROVE = Target(f"{SCHEDULER}.get_init_info", ("self",))
STATE = Target(f"{SCHEDULER}.get_internal_state", ("self", "recv_req"))
QUEUE = Target(f"{SCHEDULER}._add_request_to_queue", ("self", "req"))
LOOK = Target(f"{SCHEDULER}.get_new_batch_prefill", ("self", "running_batch"))
RUN = Target(f"{SCHEDULER}.run_batch", ("self", "batch"))
RESULT = Target(f"{SCHEDULER}.process_batch_result", ("self", "batch", "result"))
ABORT = Target(f"{SCHEDULER}.abort_request", ("self", "recv_req"))
IDLE = Target(f"{SCHEDULER}.on_idle", ("self",))
ADMIT = Target(f"{_POLICY}.PrefillAdder.add_one_req", ("self", "req"))
GROWTH = Target(
    f"{_POLICY}.PrefillAdder._get_running_request_total_token_offset", ("self", "req")
)
VICTIMS = Target(f"{_BATCH}._get_decode_retraction_order", ("reqs",))
RETRACT = Target(f"{_BATCH}.retract_decode", ("self",))

HOOKED = (
    BIND, PROVE, STATE, QUEUE, LOOK, RUN, RESULT, ABORT, IDLE, ADMIT, GROWTH, VICTIMS,
    RETRACT,
)  # fmt: skip
"""What is hooked in every process."""
LAUNCH = Target(
    "sglang.srt.entrypoints.engine.Engine._launch_subprocesses", ("server_args",)
)
"""What is hooked in the main process."""
RELIED_ON = (
    Target(
        f"{_POLICY}.SchedulePolicy.__init__",
        (
            "self",
            "policy",
            "tree_cache",
            "enable_hierarchical_cache",
            "enable_priority_scheduling",
            "schedule_low_priority_values_first",
        ),
    ),
    Target(f"{_POLICY}.SchedulePolicy.calc_priority", ("self", "waiting_queue")),
    Target(f"{_POLICY}.CacheAgnosticPolicy.FCFS"),
    Target(f"{_POLICY}.PrefillAdder.rem_total_tokens"),
    Target(f"{_POLICY}.AddReqResult.NO_TOKEN"),
    Target(f"{_POLICY}.AddReqResult.OTHER"),
    Target(f"{_POLICY}.CLIP_MAX_NEW_TOKENS"),
    Target(f"{SCHEDULER}.is_fully_idle", ("self",)),
    Target(
        "sglang.srt.managers.schedule_batch.Req.set_finish_with_abort",
        ("self", "error_msg"),
    ),
    Target("sglang.srt.constants.HEALTH_CHECK_RID_PREFIX"),
    Target("sglang.srt.managers.io_struct.AbortReq"),
    Target("sglang.srt.plugins.hook_registry.HookType.AROUND"),
    Target(
        "sglang.srt.plugins.hook_registry.HookRegistry.register",
        ("target", "hook", "hook_type"),
    ),
    Target("sglang.srt.plugins.hook_registry.HookRegistry.apply_hooks", ()),
)
"""What is used as it is."""


class SGLangChanged(EngineError):
    """A SGLang whose inside is not what the adapter knows."""


def check_targets(targets: Iterable[Target] = HOOKED + RELIED_ON) -> None:
    """Look at all of them; imports SGLang's scheduler.

    Raises
    ------
    SGLangChanged
        Naming every one that is not there, or takes other parameters.
    """
    faults = [fault for target in targets if (fault := target.fault()) is not None]
    if faults:
        raise SGLangChanged(
            f"SGLang {installed()} is not as this version of justitia knows it, and "
            f"would pass over the policy: {'; '.join(faults)}"
        )
