"""vLLM's engine in this process, its scheduler in reach; imports vLLM."""

from collections.abc import Collection, Mapping
from typing import Any

from vllm import EngineArgs, LLMEngine, SamplingParams, TokensPrompt

from justitia.engines.base import EngineError
from justitia.engines.serving.backend import Limits, ReusableBackend, lasting
from justitia.engines.serving.prompts import made_up
from justitia.engines.vllm.scheduler import PREFIX, PolicyScheduling
from justitia.policy import Policy


class VLLMBackend(ReusableBackend):
    """vLLM's engine.

    Parameters
    ----------
    arguments
        vLLM's engine arguments, a model and our scheduler among them.

    Raises
    ------
    EngineError
        If the scheduler is not ours all the same.
    """

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._engine = LLMEngine.from_engine_args(EngineArgs(**arguments))
        scheduler = self._engine.engine_core.engine_core.scheduler
        self._cache = scheduler.kv_cache_manager
        if not isinstance(scheduler, PolicyScheduling):
            self.close()
            raise EngineError(
                "vLLM did not take the policy's scheduler, it has "
                f"{type(scheduler).__name__}"
            )
        self._scheduler = scheduler
        self.agents = scheduler.agents
        config = self._engine.vllm_config
        self.context = config.model_config.max_model_len
        blocks = self._cache.block_pool.num_gpu_blocks - 1
        self.capacity = blocks * config.cache_config.block_size
        core = self._engine.engine_core.engine_core
        self.depth = 1 if core.batch_queue is None else core.batch_queue_size
        self._vocabulary = config.model_config.get_vocab_size()
        self._ids: dict[str, str] = {}  # vLLM's, by name
        self._sent = 0

    @property
    def limits(self) -> Limits:
        """What its scheduler stays within."""
        config = self._engine.vllm_config
        return Limits(
            self.capacity,
            config.cache_config.block_size,
            config.scheduler_config.max_num_seqs,
            config.scheduler_config.max_num_batched_tokens,
            "vllm",
        )

    def use(self, policy: Policy) -> None:
        """Start afresh; nothing may be in the engine."""
        assert not self._ids
        self.agents = lasting(policy)
        self._scheduler.use(self.agents)
        self._engine.reset_prefix_cache()
        self._sent = 0

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        """Send a request with a prompt that shares no block with another."""
        self._sent += 1
        params = SamplingParams(
            temperature=0.0,
            ignore_eos=True,
            max_tokens=most_tokens,
            detokenize=False,
            extra_args={PREFIX + field: value for field, value in claim.items()},
        )
        prompt = made_up(self._sent, prompt_tokens, self._vocabulary)
        self._ids[name] = self._engine.add_request(
            name, TokensPrompt(prompt_token_ids=prompt), params
        )

    def abort(self, names: Collection[str]) -> None:
        """Abort requests."""
        ids = [self._ids.pop(name) for name in names if name in self._ids]
        self._engine.abort_request(ids, internal=True)

    def step(self) -> list[str]:
        """Run a step."""
        ended = [one.request_id for one in self._engine.step() if one.finished]
        for name in ended:
            self._ids.pop(name, None)
        return ended

    def name(self, request_id: str) -> str:
        """Return what stands before the suffix that vLLM gives an id."""
        return request_id.rpartition("-")[0]

    def usage(self) -> float:
        """Return the part of the KV cache that is in use."""
        return float(self._cache.usage)

    def close(self) -> None:
        """Let the engine go."""
        self._engine.engine_core.shutdown()
