"""vLLM's real scheduler and cache manager without a model, driven step by step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from vllm import SamplingParams
from vllm.config import VllmConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.utils.hashing import sha256
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

BLOCK = 32


def vllm_config(
    model: Path,
    *,
    justitia: Mapping[str, object] | None = None,
    native: str | None = None,
    blocks: int = 32,
    block: int = BLOCK,
    seqs: int = 64,
    batched: int = 1024,
    prefix: bool = False,
    context: int = 512,
) -> VllmConfig:
    """Return vLLM's configuration, with ours or the native scheduler in it."""
    args = EngineArgs(
        model=str(model),
        skip_tokenizer_init=True,
        enforce_eager=True,
        block_size=block,
        num_gpu_blocks_override=blocks,
        max_model_len=context,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        enable_prefix_caching=prefix,
        scheduling_policy=native or "fcfs",
        scheduler_cls=None if native else "justitia.engines.vllm.Scheduler",
        additional_config={"justitia": dict(justitia or {})},
        disable_log_stats=True,
    )
    config = args.create_engine_config()
    config.cache_config.num_gpu_blocks = blocks
    return config


def scheduler(config: VllmConfig) -> Scheduler:
    """Make the scheduler that a configuration asks for."""
    spec = FullAttentionSpec(
        block_size=config.cache_config.block_size,
        num_kv_heads=1,
        head_size=32,
        dtype=torch.bfloat16,
    )
    assert config.cache_config.num_gpu_blocks is not None
    cache = KVCacheConfig(
        num_blocks=config.cache_config.num_gpu_blocks,
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
    )
    made: Scheduler = config.scheduler_config.get_scheduler_cls()(  # type: ignore[assignment]
        vllm_config=config,
        kv_cache_config=cache,
        structured_output_manager=StructuredOutputManager(config),
        block_size=config.cache_config.block_size,
        log_stats=False,
    )
    return made


@dataclass
class Driver:
    """A scheduler with made-up output: one token for all that sample one."""

    scheduler: Scheduler
    step: int = 0
    starts: dict[str, int] = field(default_factory=dict)
    finishes: dict[str, int] = field(default_factory=dict)
    preemptions: int = 0
    batches: list[dict[str, int]] = field(default_factory=list)
    in_flight: list[Any] = field(default_factory=list)
    depth: int = 1
    unique: int = 0

    def add(
        self,
        name: str,
        p: int,
        d: int,
        *,
        priority: int = 0,
        extra: Mapping[str, object] | None = None,
        session: str | None = None,
        prompt: list[int] | None = None,
        longest: int | None = None,
    ) -> Request:
        """Add a request that will produce `d` tokens, whatever it may."""
        self.unique += 1
        tokens = prompt or [(self.unique * 31 + i * 7) % 400 + 3 for i in range(p)]
        params = SamplingParams(
            max_tokens=longest or d,
            ignore_eos=True,
            stop_token_ids=[1],
            extra_args=dict(extra) if extra else None,
        )
        params.update_from_generation_config({}, 1)
        request = Request(
            request_id=name,
            prompt_token_ids=tokens,
            sampling_params=params,
            pooling_params=None,
            priority=priority,
            arrival_time=float(self.unique),
            session_id=session,
            block_hasher=_hasher(self.scheduler.block_size),
        )
        request.ends_after = d  # type: ignore[attr-defined]
        self.scheduler.add_request(request)
        return request

    def advance(self) -> bool:
        """Run one step; return False when there was nothing to run."""
        before = {r.request_id: r.num_preemptions for r in self.live()}
        output = self.scheduler.schedule()
        for request in self.live():
            done = before.get(request.request_id, 0)
            self.preemptions += request.num_preemptions - done
        if output.total_num_scheduled_tokens:
            for name in output.num_scheduled_tokens:
                self.starts.setdefault(name, self.step)
            self.batches.append(dict(output.num_scheduled_tokens))
            self.in_flight.append((self.step, output))
            self.step += 1
        if self.in_flight and (
            len(self.in_flight) >= self.depth or not output.total_num_scheduled_tokens
        ):
            self._answer(*self.in_flight.pop(0))
            return True
        return bool(output.total_num_scheduled_tokens)

    def live(self) -> list[Request]:
        """Return all requests that have not ended."""
        return list(self.scheduler.requests.values())

    def run(self, at: Mapping[int, Callable[[], object]] | None = None) -> None:
        """Run to the end, with things to do before given steps."""
        todo = dict(at or {})
        while True:
            for step in sorted(step for step in todo if step <= self.step):
                todo.pop(step)()
            if not self.advance() and not todo:
                return
            if not self.live() and todo and not self.in_flight:
                self.step = max(self.step, min(todo))

    def _answer(self, step: int, output: Any) -> None:
        names = list(output.num_scheduled_tokens)
        sampled: list[list[int]] = []
        for name in names:
            request = self.scheduler.requests.get(name)
            if request is None:
                sampled.append([7])
                continue
            computed = request.num_computed_tokens - request.num_output_placeholders
            samples = not request.is_prefill_chunk or request.num_output_placeholders
            produced = request.num_output_tokens
            ends = produced + 1 >= request.ends_after  # type: ignore[attr-defined]
            del computed
            sampled.append([1 if ends else 7] if samples else [])
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: i for i, name in enumerate(names)},
            sampled_token_ids=sampled,
            logprobs=None,
            prompt_logprobs_dict={},
            pooler_output=[],
        )
        self.scheduler.update_from_output(output, result)
        for name in names:
            if name not in self.scheduler.requests:
                self.finishes.setdefault(name, step)


_HASHER: dict[int, Any] = {}


def _hasher(block: int) -> Any:
    if block not in _HASHER:
        init_none_hash(sha256)
        _HASHER[block] = get_request_block_hasher(block, sha256)
    return _HASHER[block]


__all__ = ["BLOCK", "Driver", "Request", "RequestStatus", "scheduler", "vllm_config"]
