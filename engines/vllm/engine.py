"""vLLM as an engine of `justitia run`: in this process, with the policy inside it."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.serving.agents import Agents
from justitia.engines.serving.run import Backend, LiveRun
from justitia.engines.tiny import CONTEXT, make_tiny_model
from justitia.policy import Policy
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_IN_PROCESS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
_ON_CPU = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1"}


class VLLMEngine(Engine):
    """Runs a workload on the real vLLM.

    Parameters
    ----------
    model
        The path of a model, or its name on a hub that vLLM can reach; None: a tiny one
        is made on the spot, with a cache of a thousand tokens, so that agents compete.
    admission
        See `justitia.engines.serving.ServingSettings`.
    arguments
        More of vLLM's engine arguments.
    """

    name = "vllm"

    def __init__(
        self,
        *,
        model: str | None = None,
        admission: str = "none",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model
        self.admission = admission
        self.arguments = dict(arguments or {})

    def run(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`."""
        with TemporaryDirectory() as folder:
            backend = _VLLM(self._arguments(Path(folder)), policy)
            try:
                record = LiveRun(
                    agents,
                    policy,
                    predictor,
                    backend,
                    by_stage=tags == "stage",
                    progress=progress,
                ).run()
            finally:
                backend.close()
        return conserved(record, agents)

    def _arguments(self, folder: Path) -> dict[str, Any]:
        given = {
            "scheduler_cls": "justitia.engines.vllm.Scheduler",
            "additional_config": {"justitia": {"admission": self.admission}},
            "disable_log_stats": True,
        }
        if self.model is None:
            given |= {
                "model": str(make_tiny_model(folder / "model")),
                "enforce_eager": True,
                "max_model_len": CONTEXT,
                "num_gpu_blocks_override": 64,
                "block_size": 32,
                "max_num_seqs": 64,
                "max_num_batched_tokens": 1024,
            }
        else:
            given["model"] = self.model
        return given | self.arguments


class _VLLM(Backend):
    """vLLM's engine, its scheduler in reach."""

    def __init__(self, arguments: Mapping[str, Any], policy: Policy) -> None:
        for name, value in (_IN_PROCESS | _ON_CPU).items():
            os.environ.setdefault(name, value)
        from vllm import EngineArgs, LLMEngine  # noqa: PLC0415 - takes 10 s

        from justitia.engines.vllm.scheduler import PolicyScheduling  # noqa: PLC0415

        self._engine = LLMEngine.from_engine_args(EngineArgs(**arguments))
        core = self._engine.engine_core.engine_core
        scheduler = core.scheduler
        if not isinstance(scheduler, PolicyScheduling):
            raise EngineError(
                "vLLM did not take the policy's scheduler, it has "
                f"{type(scheduler).__name__}"
            )
        self._scheduler = scheduler
        self.agents = Agents(policy, now=monotonic, linger=1e9)
        scheduler.use(self.agents)
        config = self._engine.vllm_config
        self.context = config.model_config.max_model_len
        blocks = scheduler.kv_cache_manager.block_pool.num_gpu_blocks - 1
        self.capacity = blocks * config.cache_config.block_size
        self._internal: dict[str, str] = {}
        self._sent = 0

    def add(
        self,
        name: str,
        prompt_tokens: int,
        decode_tokens: int,
        longest: int,
        claim: Mapping[str, object],
    ) -> None:
        """Send a prompt of made-up tokens; no two requests share a prefix."""
        from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415

        self._sent += 1
        vocabulary = self._engine.vllm_config.model_config.get_vocab_size()
        tokens = [
            3 + (self._sent * 7919 + place * 104_729) % (vocabulary - 3)
            for place in range(max(1, prompt_tokens))
        ]
        extra = {f"justitia_{key}": value for key, value in claim.items()}
        params = SamplingParams(
            temperature=0.0,
            ignore_eos=True,
            max_tokens=max(1, decode_tokens),
            detokenize=False,
            extra_args=extra,
        )
        self._internal[name] = self._engine.add_request(
            name, TokensPrompt(prompt_token_ids=tokens), params
        )

    def abort(self, names: Collection[str]) -> None:
        """Abort requests."""
        internal = [self._internal.pop(name) for name in names]
        self._engine.abort_request(internal, internal=True)

    def step(self) -> list[str]:
        """Run a step."""
        ended = [
            output.request_id for output in self._engine.step() if output.finished
        ]
        for name in ended:
            del self._internal[name]
        return ended

    def name(self, request_id: str) -> str:
        """Return what stands before vLLM's suffix."""
        return request_id.rpartition("-")[0]

    def usage(self) -> float:
        """Return the part of the KV cache that is in use."""
        return float(self._scheduler.kv_cache_manager.usage)

    def close(self) -> None:
        """Let the engine go."""
        self._engine.engine_core.shutdown()
