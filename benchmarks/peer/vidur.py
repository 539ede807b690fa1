"""Simulated requests a second, beside Vidur's simulator on the same requests.

    tox run -e peer

Both simulate one replica that works as vLLM with chunked prefill does: first come,
first served, blocks of 16, the same cache, batch and budget, the same requests, and the
step times of the preset (Vidur's own come from profiles on a hub). So what is compared
is what a simulator does beside that: scheduling, events, bookkeeping. Runs go by turns,
so that whatever else the machine does slows both; time is the processor's.
"""

import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from time import process_time
from typing import Any

from justitia.engines.scenario import window
from justitia.engines.sim import Preset, SimEngine, load_preset
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, InferenceSpec, paper_mix, poisson

PRESET = "llama-7b-a100-40g"
AGENTS = 200
LOAD = 0.7
ROOM = 8
"""Times the preset's cache: Vidur 0.0.26 fails where something is preempted."""
ROUNDS = 5
SEED = 7


@dataclass(frozen=True)
class Simulated:
    """What a run came to: seconds of the processor, and each request's latency."""

    took: float
    latencies: Sequence[float]


def requests(preset: Preset) -> list[AgentSpec]:
    """Return the inferences of the paper's mix as requests of their own."""
    calls = [call for agent in paper_mix(AGENTS, SEED) for call in agent.inferences]
    made = [
        AgentSpec(
            f"request-{number}",
            (InferenceSpec(max(1, call.prompt_tokens), max(1, call.decode_tokens)),),
        )
        for number, call in enumerate(calls)
    ]
    times = poisson(len(made), window(preset, made, LOAD), SEED)
    return [
        AgentSpec(one.id, one.inferences, arrival=time)
        for one, time in zip(made, times, strict=True)
    ]


def ours(preset: Preset, work: Sequence[AgentSpec], *, skip: bool) -> Simulated:
    """Simulate with `sim`; `skip` lets it take equal steps together."""
    engine = SimEngine(preset, skip=skip)
    begin = process_time()
    record = engine.run(work, create("fcfs"), Oracle())
    took = process_time() - begin
    assert not record.preemptions
    return Simulated(took, [agent.jct or 0.0 for agent in record.agents])


def vidurs(preset: Preset, work: Sequence[AgentSpec], *, metrics: bool) -> Simulated:
    """Simulate with Vidur, with the metrics that it keeps of itself or without any."""
    simulator, made = _vidur(preset, work, metrics)
    begin = process_time()
    while simulator._event_queue:
        _, event = _pop(simulator._event_queue)
        simulator._set_time(event._time)
        simulator._add_events(
            event.handle_event(simulator._scheduler, simulator._metric_store)
        )
    took = process_time() - begin
    return Simulated(took, [one.completed_at - one.arrived_at for one in made])


def _vidur(
    preset: Preset, work: Sequence[AgentSpec], metrics: bool
) -> tuple[Any, list[Any]]:
    from vidur import config  # noqa: PLC0415 - of an environment of its own
    from vidur.entities import Replica, Request  # noqa: PLC0415
    from vidur.execution_time_predictor import (  # noqa: PLC0415
        ExecutionTimePredictorRegistry,
    )
    from vidur.request_generator import RequestGeneratorRegistry  # noqa: PLC0415
    from vidur.simulator import Simulator  # noqa: PLC0415

    made: list[Any] = []
    Replica._id = -1  # counted on from run to run, while requests go to number 0

    class Requests:
        def __init__(self, *_: object) -> None:
            pass

        def generate(self) -> list[Any]:
            for spec in work:
                call = spec.inferences[0]
                made.append(
                    Request(spec.arrival, call.prompt_tokens, call.decode_tokens)
                )
            return made

    chosen = config.SimulationConfig(
        log_level="error",
        cluster_config=config.ClusterConfig(
            num_replicas=1,
            replica_config=config.ReplicaConfig(
                model_name="meta-llama/Llama-2-7b-hf",
                num_pipeline_stages=1,
                tensor_parallel_size=1,
                device="a100",
                network_device="a100_dgx",
            ),
            cache_config=config.CacheConfig(
                block_size=preset.block_size,
                num_blocks=preset.capacity_tokens // preset.block_size,
                watermark_blocks_fraction=0.0,
            ),
            replica_scheduler_config=config.SarathiSchedulerConfig(
                batch_size_cap=preset.max_num_seqs,
                chunk_size=preset.max_num_batched_tokens,
            ),
        ),
        request_generator_config=config.SyntheticRequestGeneratorConfig(),
        execution_time_predictor_config=(
            config.LinearRegressionExecutionTimePredictorConfig()
        ),
        metrics_config=config.MetricsConfig(
            write_metrics=metrics, store_request_metrics=metrics,
            store_batch_metrics=metrics, store_utilization_metrics=metrics,
            enable_chrome_trace=False, store_plots=False,
            output_dir=tempfile.mkdtemp(),
        ),
    )  # fmt: skip
    _replace(ExecutionTimePredictorRegistry, _times_of(preset))
    _replace(RequestGeneratorRegistry, Requests)
    return Simulator(chosen), made


def _replace(registry: Any, made: Callable[..., Any]) -> None:  # noqa: ANN401 - Vidur's
    """Let a registry of Vidur's give something of ours, whatever it is asked for."""
    registry.get = classmethod(lambda _, __, *given, **named: made(*given, **named))


def _times_of(preset: Preset) -> Callable[..., Any]:
    from vidur._native.entities import ExecutionTime  # noqa: PLC0415
    from vidur.execution_time_predictor import (  # noqa: PLC0415
        BaseExecutionTimePredictor,
    )

    class Times(BaseExecutionTimePredictor):  # type: ignore[misc]
        """Step times of the preset, in place of those that Vidur has profiles for."""

        def get_execution_time(self, batch: Any, stage: int) -> Any:  # noqa: ANN401
            tokens, held = batch.num_q_tokens, batch.num_kv_tokens
            prompts = sum(n for n in tokens if n > 1)
            time = preset.duration_ps(prompts, len(tokens), sum(held)) / 1e9
            layers = self._num_layers_per_pipeline_stage
            return ExecutionTime(layers, time / layers, *[0.0] * 13)

    Times.__abstractmethods__ = frozenset()
    return Times


def _pop(queue: list[Any]) -> Any:  # noqa: ANN401 - Vidur's
    from heapq import heappop  # noqa: PLC0415

    return heappop(queue)


def main() -> int:
    """Run all by turns, and print what came."""
    plain = load_preset(PRESET)
    work = requests(plain)
    preset = replace(plain, capacity_tokens=ROOM * plain.capacity_tokens)
    sides: dict[str, Callable[[], Simulated]] = {
        "Vidur": lambda: vidurs(preset, work, metrics=True),
        "Vidur, bare": lambda: vidurs(preset, work, metrics=False),
        "sim": lambda: ours(preset, work, skip=True),
        "sim, every step": lambda: ours(preset, work, skip=False),
    }
    runs: dict[str, list[Simulated]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, simulate in sides.items():
            gc.collect()
            runs[name].append(simulate())
    base = median(run.took for run in runs["Vidur"])
    print(f"{len(work):,} requests, {PRESET}, load {LOAD}, medians of {ROUNDS} runs")
    print(f"{'simulator':<16}{'requests/s':>12}{'x Vidur':>9}{'mean latency, s':>17}")
    for name, several in runs.items():
        took = median(run.took for run in several)
        mean = fmean(several[0].latencies)
        print(f"{name:<16}{len(work) / took:>12,.0f}{base / took:>9.2f}{mean:>17.3f}")
    for (name, one), (other, two) in pairwise(runs.items()):
        apart = [
            abs(a / b - 1)
            for a, b in zip(one[0].latencies, two[0].latencies, strict=True)
        ]
        print(
            f"{name} and {other}: latencies {100 * median(apart):.2f} % apart (median)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
