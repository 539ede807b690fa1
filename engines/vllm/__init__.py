"""The policy inside vLLM's own scheduler.

``vllm serve MODEL --scheduler-cls justitia.engines.vllm.Scheduler`` is all there is to
do; ``docs/vllm.md`` has the settings. vLLM is imported when the scheduler is made, and
not with this module.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm.v1.core.sched.interface import SchedulerInterface


def Scheduler(*args: Any, **kwargs: Any) -> "SchedulerInterface":
    """Make vLLM's scheduler, asynchronous where vLLM would, with the policy in place.

    vLLM resolves ``--scheduler-cls`` to this, in the engine's process, and calls it as
    it would call the class.
    """
    from justitia.engines.vllm.version import check_version  # noqa: PLC0415

    check_version()  # before anything of vLLM's is imported that may have moved
    from justitia.engines.vllm.control import take_control  # noqa: PLC0415
    from justitia.engines.vllm.scheduler import scheduler_class  # noqa: PLC0415

    config = kwargs["vllm_config"] if "vllm_config" in kwargs else args[0]
    made = scheduler_class(config)(*args, **kwargs)
    take_control(made)
    return made
