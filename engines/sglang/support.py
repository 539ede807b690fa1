"""Which of SGLang's modes the adapter knows, and what it says of a scheduler."""

from typing import Any

from justitia.engines.serving.settings import ServingError
from justitia.engines.sglang.version import check_version


def check_supported(scheduler: Any) -> None:
    """Refuse a scheduler that would not do what the policy says, or all of it.

    Raises
    ------
    ServingError
        Naming the argument of SGLang's and what to do.
    """
    args = scheduler.server_args
    if args.schedule_policy != "fcfs":
        raise ServingError(
            f"--schedule-policy {args.schedule_policy} has no effect with a policy of "
            "justitia, whose order it is: leave it out"
        )
    refused = {
        "--enable-priority-scheduling": scheduler.enable_priority_scheduling,
        "--disaggregation-mode": args.disaggregation_mode != "null",
        "--pp-size": args.pp_size > 1,
        "--enable-pdmux": getattr(args, "enable_pdmux", False),
        "--dllm-algorithm": getattr(args, "dllm_algorithm", None) is not None,
        "--enable-hisparse": getattr(args, "enable_hisparse", False),
        "the overlap scheduler of MLX": getattr(scheduler, "enable_overlap_mlx", False),
    }
    for argument, given in refused.items():
        if given:
            raise ServingError(
                f"{argument}: justitia does not work with it; leave it out, or unset "
                "the variables JUSTITIA_… to serve without a policy"
            )


def about(scheduler: Any) -> dict[str, Any]:
    """Return what there is to say of a scheduler."""
    ranks = getattr(scheduler, "ps", None)
    if ranks is None:
        from sglang.srt.runtime_context import get_parallel  # noqa: PLC0415

        ranks = get_parallel()
    return {
        "engine": "sglang",
        "engine_version": check_version(),
        "scheduler": [type(scheduler).__name__],
        "overlap": bool(scheduler.enable_overlap),
        "capacity_tokens": int(scheduler.max_total_num_tokens),
        "data_parallel_rank": ranks.dp_rank,
        "tensor_parallel_rank": ranks.tp_rank,
    }
