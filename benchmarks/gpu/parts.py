"""The parts of a check: one engine each, run in processes of their own by `part.py`."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.gpu.findings import Report
from benchmarks.gpu.reference import Said, compared
from benchmarks.gpu.scale import Scale
from benchmarks.gpu.served import VLLM, Apart, Served, SGLang
from benchmarks.gpu.workload import cut_prompt, run_policies, time_policy
from justitia.engines.calibration.machine import libraries, machine
from justitia.engines.serving.prompts import made_up
from justitia.engines.serving.surroundings import prepare
from justitia.policy import create

LEAST_TOKENS = 0.98
"""Of tokens a second over the native engine's."""
_BLOCK = {"cpu": 32, "cuda": 16}
_MEMORY = 0.3
"""Of a GPU's memory that one engine may take: there are two at a time."""


def vllm(
    model: str, scale: Scale, device: str, more: Mapping[str, Any], said: Sequence[Said]
) -> Report:
    """Check vLLM: in this process, beside one that is native in another."""
    from justitia.engines.vllm.engine import VLLMEngine  # noqa: PLC0415
    from justitia.engines.vllm.surroundings import TINY_ON_CPU  # noqa: PLC0415

    given: dict[str, Any] = {
        "max_model_len": scale.context,
        "block_size": _BLOCK[device],
        "num_gpu_blocks_override": scale.cache // _BLOCK[device] + 1,
        "max_num_seqs": scale.running,
        "max_num_batched_tokens": scale.budget,
    }
    if device == "cpu":
        prepare(TINY_ON_CPU)
        given["enforce_eager"] = True
    else:
        given["gpu_memory_utilization"] = _MEMORY
    given |= dict(more)
    engine = VLLMEngine(model=model, arguments=given)
    report = _report("vllm", engine.version(), device)
    try:
        backend = engine._open()
        _vllm_facts(report, backend._engine, backend._scheduler, backend.depth)
        run_policies(engine, scale, report)
        time_policy(engine, scale, report)
        cut_prompt(engine, scale, report)
        backend.use(create("justitia"))
        ours = VLLM(backend._engine)
        native = Apart(given | {"model": model, "disable_log_stats": True})
        try:
            _compare(report, ours, native, scale, said)
        finally:
            native.close()
    finally:
        engine.close()
    return report


def _vllm_facts(report: Report, engine: Any, scheduler: Any, depth: int) -> None:  # noqa: ANN401
    """Take down how vLLM runs, and what of it a GPU must have."""
    config = engine.vllm_config
    gpu = report.device != "cpu"
    graphs = str(getattr(config.compilation_config.cudagraph_mode, "name", "NONE"))
    runner = getattr(config, "use_v2_model_runner", None)
    report.facts["scheduler"] = " / ".join(
        base.__name__ for base in type(scheduler).__mro__[:3]
    )
    report.facts["model runner"] = "V2" if runner else "V1"
    report.facts["tensor parallel"] = config.parallel_config.tensor_parallel_size
    overlap = bool(config.scheduler_config.async_scheduling)
    report.add(
        "asynchronous scheduling, two steps in flight",
        overlap and depth == 2,
        f"async_scheduling {overlap}, steps in flight {depth}",
        judged=gpu,
    )
    report.add("CUDA graphs are on", graphs != "NONE", graphs, judged=gpu)
    report.add(
        "prefix caching and chunked prefill are on",
        config.cache_config.enable_prefix_caching
        and config.scheduler_config.enable_chunked_prefill,
        f"{config.cache_config.enable_prefix_caching}, "
        f"{config.scheduler_config.enable_chunked_prefill}",
    )


def sglang_arguments(
    model: str, scale: Scale, device: str, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return SGLang's server arguments; sets what a CPU needs."""
    from justitia.engines.sglang.surroundings import (  # noqa: PLC0415
        ARGUMENTS_ON_CPU,
        TINY_ON_CPU,
        use_cpu,
    )

    given: dict[str, Any] = {"mem_fraction_static": _MEMORY}
    if device == "cpu":
        prepare(TINY_ON_CPU)
        use_cpu()
        given = dict(ARGUMENTS_ON_CPU)
    given |= {
        "model_path": model,
        "context_length": scale.context,
        "max_total_tokens": scale.cache,
        "max_running_requests": scale.running,
        "chunked_prefill_size": scale.budget,
        "page_size": 1,
    }
    return given | dict(more)


def sglang(
    model: str, scale: Scale, device: str, more: Mapping[str, Any], said: Sequence[Said]
) -> Report:
    """Check SGLang's scheduler with the plugin, in this process."""
    arguments = sglang_arguments(model, scale, device, more)
    from justitia.engines.sglang.engine import SGLangEngine  # noqa: PLC0415

    path = arguments.pop("model_path")
    engine = SGLangEngine(model=path, arguments=arguments)
    report = _report("sglang", engine.version(), device)
    try:
        run_policies(engine, scale, report)
        time_policy(engine, scale, report)
        cut_prompt(engine, scale, report)
    finally:
        engine.close()
    return report


def sglang_served(
    model: str, scale: Scale, device: str, more: Mapping[str, Any], said: Sequence[Said]
) -> Report:
    """Check SGLang as it serves: overlapped, in processes of its own, two engines."""
    arguments = sglang_arguments(model, scale, device, more)
    from justitia.engines.sglang.version import check_version  # noqa: PLC0415

    arguments |= {
        # A guess of what the running will produce is set aside on top.
        "max_total_tokens": scale.cache * 2,
        "skip_tokenizer_init": True,
        "sleep_on_idle": True,
        "log_level": "error",
    }
    report = _report("sglang", check_version(), device)
    native = SGLang(arguments, None)
    try:
        ours = SGLang(arguments, "justitia")
        try:
            _sglang_facts(report, ours.engine, native.engine)
            _compare(report, ours, native, scale, said)
        finally:
            ours.close()
    finally:
        native.close()
    return report


def _sglang_facts(report: Report, ours: Any, native: Any) -> None:  # noqa: ANN401
    """Take down how SGLang runs, and that one has the policy and the other has not."""
    states = [
        engine.get_server_info()["internal_states"][0].get("justitia")
        for engine in (ours, native)
    ]
    policy = (states[0] or {}).get("policy")
    report.add(
        "the policy is in force, and in one of the two only",
        policy == "justitia" and states[1] is None,
        f"{policy}, {states[1]}",
    )
    given = ours.server_args
    gpu = report.device != "cpu"
    report.facts["attention"] = given.attention_backend
    report.facts["tensor parallel"] = given.tp_size
    report.add(
        "scheduling overlaps with computing",
        not given.disable_overlap_schedule,
        f"disable_overlap_schedule {given.disable_overlap_schedule}",
    )
    report.add(
        "CUDA graphs are on",
        not given.disable_cuda_graph,
        f"disable_cuda_graph {given.disable_cuda_graph}",
        judged=gpu,
    )
    report.add(
        "prefix caching is on",
        not given.disable_radix_cache,
        f"disable_radix_cache {given.disable_radix_cache}",
    )


def _report(engine: str, version: str, device: str) -> Report:
    report = Report(engine, version, machine(), device)
    report.facts["libraries"] = libraries()
    return report


def _compare(
    report: Report, ours: Served, native: Served, scale: Scale, said: Sequence[Said]
) -> None:
    """Compare tokens with transformers', and tokens a second with the native engine."""
    outputs = ours.run([one.prompt for one in said], 8).outputs
    same, of = compared(said, outputs)
    report.add(
        "greedy tokens are those of transformers",
        same == of > 0,
        f"{same} of {of} of the first positions",
    )
    prompt = made_up(90_000, scale.context // 4, 500)
    ours.run([prompt], 2)
    cached = ours.run([prompt], 2).cached[0]
    report.add(
        "prefix caching: a prompt is found again",
        cached > 0,
        f"{cached} of {len(prompt)} tokens",
    )
    ratios = []
    rates: list[list[float]] = [[], []]
    count = 2 * scale.running
    for pair in range(scale.pairs + 1):
        first = 1 + pair * count
        load = [made_up(first + n, scale.prompt, 500) for n in range(count)]
        sides = [ours, native] if pair % 2 else [native, ours]
        seconds = {id(side): side.run(load, scale.decode).seconds for side in sides}
        if pair:  # the first warms up
            ratios.append(seconds[id(native)] / seconds[id(ours)])
            for rate, side in zip(rates, (ours, native), strict=True):
                rate.append(count * scale.decode / seconds[id(side)])
    report.add(
        f"tokens a second, {scale.running} running: at least {LEAST_TOKENS} of native",
        median(ratios) >= LEAST_TOKENS,
        f"{median(ratios):.3f} in the median of {scale.pairs} pairs "
        f"({min(ratios):.3f} to {max(ratios):.3f}); {median(rates[0]):,.0f} against "
        f"{median(rates[1]):,.0f}",
        judged=report.device != "cpu",
    )


PARTS = {"vllm": vllm, "sglang": sglang, "sglang-served": sglang_served}
