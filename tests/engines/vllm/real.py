"""vLLM's real scheduler and cache manager without a model, driven step by step.

Nothing is computed: `Driver` makes up one token for every request that samples one.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch and vLLM warn while they are imported
    pytest.importorskip(
        "vllm", reason="vLLM is not installed here: see docs/vllm.md, or tox -e vllm"
    )
    import torch
    from vllm import SamplingParams
    from vllm.config import VllmConfig
    from vllm.engine.arg_utils import EngineArgs
    from vllm.lora.request import LoRARequest
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import (
        FullAttentionSpec,
        KVCacheConfig,
        KVCacheGroupSpec,
    )
    from vllm.v1.outputs import ModelRunnerOutput
    from vllm.v1.request import Request, RequestStatus
    from vllm.v1.structured_output import StructuredOutputManager

    from justitia.engines.vllm.scheduler import PolicyScheduling

BLOCK = 32
STOP = 1
"""The token that ends a request."""
TOKEN = 7


def make_config(
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
    asynchronous: bool = False,
) -> VllmConfig:
    """Return vLLM's configuration, with our scheduler in it, or a native one.

    `blocks` are those of the pool, one of which vLLM keeps for itself. Limits need not
    be ones that vLLM would start with: a budget below the seats, say.
    """
    config = copy(_base(model, native, context))
    config.additional_config = {"justitia": dict(justitia or {})}
    config.cache_config = copy(config.cache_config)
    config.cache_config.block_size = block
    config.cache_config.num_gpu_blocks = blocks
    config.cache_config.enable_prefix_caching = prefix
    config.scheduler_config = copy(config.scheduler_config)
    config.scheduler_config.max_num_seqs = seqs
    config.scheduler_config.max_num_batched_tokens = batched
    config.scheduler_config.async_scheduling = asynchronous  # CPU forces it off
    return config


@cache
def _base(model: Path, native: str | None, context: int) -> VllmConfig:
    args = EngineArgs(
        model=str(model),
        skip_tokenizer_init=True,
        enforce_eager=True,
        max_model_len=context,
        scheduling_policy=native or "fcfs",  # type: ignore[arg-type]
        scheduler_cls=None if native else "justitia.engines.vllm.Scheduler",
        disable_log_stats=True,
    )
    return args.create_engine_config()


def make_scheduler(model: Path, **knobs: Any) -> Scheduler:
    """Make the scheduler that `make_config` asks for."""
    return scheduler_of(make_config(model, **knobs))


def scheduler_of(config: VllmConfig) -> Scheduler:
    """Make the scheduler that a configuration asks for."""
    block = config.cache_config.block_size
    spec = FullAttentionSpec(
        block_size=block, num_kv_heads=1, head_size=32, dtype=torch.bfloat16
    )
    assert config.cache_config.num_gpu_blocks is not None
    made: Scheduler = config.scheduler_config.get_scheduler_cls()(  # type: ignore[assignment]
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=config.cache_config.num_gpu_blocks,
            kv_cache_tensors=[],
            kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
        ),
        structured_output_manager=StructuredOutputManager(config),
        block_size=block,
        log_stats=False,
    )
    return made


@dataclass
class Driver:
    """A scheduler with made-up output.

    Attributes
    ----------
    depth
        How many outputs are kept in flight: 1, or 2 with an asynchronous scheduler.
    step
        Steps that ran something, the number of the next one.
    starts, finishes
        The steps in which requests first ran and ended, by name.
    batches
        Tokens by name, of every step.
    check
        Whether to assert all invariants of ours after every step.
    """

    scheduler: Scheduler
    depth: int = 1
    check: bool = True
    step: int = 0
    starts: dict[str, int] = field(default_factory=dict)
    finishes: dict[str, int] = field(default_factory=dict)
    batches: list[dict[str, int]] = field(default_factory=list)
    preemptions: int = 0
    sent: int = 0
    _ends: dict[str, int] = field(default_factory=dict)
    _in_flight: list[tuple[int, SchedulerOutput, set[str]]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        preempt = self.scheduler._preempt_request

        def counted(*args: Any, **kwargs: Any) -> None:
            self.preemptions += 1
            preempt(*args, **kwargs)

        self.scheduler._preempt_request = counted  # type: ignore[method-assign]

    @property
    def ours(self) -> PolicyScheduling:
        """The scheduler, which is one of ours."""
        assert isinstance(self.scheduler, PolicyScheduling)
        return self.scheduler

    def add(
        self,
        name: str,
        prompt: int | Sequence[int],
        decode: int,
        *,
        longest: int | None = None,
        priority: int = 0,
        claim: Mapping[str, object] | None = None,
        session: str | None = None,
        unready: bool = False,
        resumable: bool = False,
        lora: LoRARequest | None = None,
    ) -> Request:
        """Add a request that will produce `decode` tokens, and might `longest`.

        Parameters
        ----------
        prompt
            Its tokens, or how many of them, made up and shared with nobody.
        claim
            What it says of itself.
        unready
            It waits for its grammar until `ready`.
        resumable
            It is a part of a stream, to be followed by another of this name.
        """
        self.sent += 1
        if isinstance(prompt, int):
            prompt = [3 + (self.sent * 7919 + i * 31) % 50_021 for i in range(prompt)]
        params = SamplingParams(
            max_tokens=longest or decode,
            ignore_eos=True,
            stop_token_ids=[STOP],
            extra_args={f"justitia_{k}": v for k, v in (claim or {}).items()} or None,
        )
        params.update_from_generation_config({}, STOP)
        request = Request(
            request_id=name,
            prompt_token_ids=list(prompt),
            sampling_params=params,
            pooling_params=None,
            priority=priority,
            arrival_time=float(self.sent),
            session_id=session,
            block_hasher=_hasher(self.scheduler.block_size),
            resumable=resumable,
            lora_request=lora,
        )
        if unready:
            request.status = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
        self._ends[name] = decode
        self.scheduler.add_request(request)
        return request

    def ready(self, name: str) -> None:
        """Let the grammar of a request be there."""
        self.scheduler.requests[name].status = RequestStatus.WAITING

    def abort(self, *names: str) -> None:
        """Abort requests, as a client that went away."""
        self.scheduler.finish_requests(names, RequestStatus.FINISHED_ABORTED)

    def live(self) -> list[Request]:
        """Return all requests that have not ended."""
        return list(self.scheduler.requests.values())

    def advance(self) -> bool:
        """Run one step; return False when there was nothing left to do."""
        before = self.preemptions
        output = self.scheduler.schedule()
        ran = output.total_num_scheduled_tokens > 0
        if ran:
            for name in output.num_scheduled_tokens:
                self.starts.setdefault(name, self.step)
            self.batches.append(dict(output.num_scheduled_tokens))
            sampling = {
                name
                for name in output.num_scheduled_tokens
                if not self.scheduler.requests[name].is_prefill_chunk
            }
            self._in_flight.append((self.step, output, sampling))
            self.step += 1
        answers = len(self._in_flight) >= self.depth or not ran
        if self._in_flight and answers:
            self._answer(*self._in_flight.pop(0))
        elif not ran and self.preemptions == before:
            return False
        if self.check and isinstance(self.scheduler, PolicyScheduling):
            self.scheduler.agents._check()
        return True

    def run(self, at: Mapping[int, Callable[[], object]] | None = None) -> "Driver":
        """Run to the end, with things to do before given steps."""
        todo = dict(at or {})
        while True:
            if not self.live() and todo and not self._in_flight:
                self.step = max(self.step, min(todo))  # nothing to run until then
            for step in sorted(step for step in todo if step <= self.step):
                todo.pop(step)()
            if not self.advance() and not todo:
                return self

    def _answer(self, step: int, output: SchedulerOutput, sampling: set[str]) -> None:
        """Hand over a step's output; a request that was aborted sampled, too."""
        names = list(output.num_scheduled_tokens)
        known = self.scheduler.requests
        sampled: list[list[int]] = []
        for name in names:
            request = known.get(name)
            done = 0 if request is None else request.num_output_tokens + 1
            token = STOP if done >= self._ends[name] else TOKEN
            sampled.append([token] if name in sampling else [])
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: i for i, name in enumerate(names)},
            sampled_token_ids=sampled,
        )
        self.scheduler.update_from_output(output, result)
        for name in names:
            if name not in known:
                self.finishes.setdefault(name, step)


@cache
def _hasher(block: int) -> Any:
    init_none_hash(sha256)
    return get_request_block_hasher(block, sha256)


__all__ = [
    "BLOCK",
    "Driver",
    "LoRARequest",
    "PolicyScheduling",
    "Request",
    "RequestStatus",
    "Scheduler",
    "make_config",
    "make_scheduler",
    "scheduler_of",
]
