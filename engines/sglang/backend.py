"""SGLang's scheduler in this process, a turn of its loop a step; imports SGLang."""

from array import array
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from sglang.srt.distributed.parallel_state import (
    destroy_distributed_environment,
    destroy_model_parallel,
)
from sglang.srt.managers.io_struct import AbortReq, TokenizedGenerateReqInput
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.scheduler_components.ipc_channels import SchedulerIpcChannels
from sglang.srt.runtime_context import SpawnRanks, publish
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import PortArgs, ServerArgs

from justitia.engines.serving.backend import Limits, ReusableBackend, lasting
from justitia.engines.serving.prompts import made_up
from justitia.engines.serving.settings import ServingSettings
from justitia.engines.sglang.binding import binding_of
from justitia.engines.sglang.plugin import install
from justitia.policy import Policy

IN_PROCESS = {
    "skip_tokenizer_init": True,
    "disable_overlap_schedule": True,
    "log_level": "error",
    "random_seed": 7,
    # Its thread would end the process that started this one.
    "watchdog_timeout": 1e6,
}
"""Server arguments that a scheduler in this process needs."""


class Outputs:
    """Where the scheduler sends what its clients would read.

    Attributes
    ----------
    ended
        The ids of the requests that have ended since this was last emptied.
    """

    def __init__(self) -> None:
        self.ended: list[str] = []

    def send_output(self, output: Any, recv_obj: Any = None) -> None:
        """Take note of those that have ended."""
        if isinstance(output, AbortReq):
            self.ended.append(str(output.rid))
            return
        reasons = getattr(output, "finished_reasons", ())
        for place, reason in enumerate(reasons):
            if reason is not None:
                self.ended.append(output.rids[place])


class InProcess(Scheduler):
    """SGLang's scheduler, whose clients are in the same process, and which steps.

    Its loop is the one that a server runs: `event_loop_normal` ends after a turn.
    """

    def init_ipc_channels(self, port_args: PortArgs) -> None:
        """Open no sockets."""
        self.outputs = Outputs()
        self.ipc_channels = SchedulerIpcChannels(
            recv_from_tokenizer=None,
            recv_from_rpc=None,
            send_to_tokenizer=self.outputs,
            send_to_detokenizer=self.outputs,
            send_metrics_from_scheduler=None,
        )
        self.load_snapshot_writer = None
        self.recv_from_tokenizer = None

    def ingest_requests(self, stop_at_pause: bool = False) -> list[Any]:
        """Begin a turn, the last for now: requests have been handed in."""
        self.gracefully_exit = True
        return []

    def turn(self) -> None:
        """Run a turn of the loop."""
        self.gracefully_exit = False
        with self.device_module.StreamContext(self.schedule_stream):
            self.event_loop_normal()


class SGLangBackend(ReusableBackend):
    """SGLang's scheduler and its model.

    Parameters
    ----------
    arguments
        Server arguments, a model among them.
    admission
        See `justitia.engines.serving.ServingSettings`.

    Raises
    ------
    EngineError
        If the policy is not in force.
    """

    def __init__(self, arguments: Mapping[str, Any], *, admission: str) -> None:
        install(ServingSettings(admission=admission))
        given = ServerArgs(**dict(arguments) | IN_PROCESS)
        given.resolve_once()
        given.check_server_args()
        publish(given, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
        ports = PortArgs.init_new(given)
        for name in vars(ports).values():  # files that nobody will open
            if isinstance(name, str) and name.startswith("ipc://"):
                Path(name.removeprefix("ipc://")).unlink(missing_ok=True)
        self._scheduler = scheduler = InProcess(given, ports)
        self._binding = binding_of(scheduler)
        self._binding.on_start = self._started
        self.agents = self._binding.agents
        # No token ends a request: a workload says how long it is. To say so for each
        # (ignore_eos) would have SGLang set aside all that it may produce.
        scheduler.model_config.hf_eos_token_id = None
        self.context = scheduler.model_config.context_len
        self.capacity = scheduler.max_total_num_tokens
        self._vocabulary = scheduler.model_config.vocab_size
        self._live: set[str] = set()  # names of those that have not ended
        self._cached: dict[str, int] = {}  # by name
        self._sent = 0
        scheduler.gracefully_exit = False
        scheduler.run_event_loop()  # a turn, for what it sets up before its loop

    @property
    def room(self) -> int:
        """Tokens that one request may hold: SGLang keeps a few of its own."""
        scheduler = self._scheduler
        return int(
            min(scheduler.max_req_input_len, self.capacity - 2 * scheduler.page_size)
        )

    @property
    def limits(self) -> Limits:
        """What its scheduler stays within; its pages are taken for tokens."""
        scheduler = self._scheduler
        chunk = scheduler.chunked_prefill_size or 0  # -1 or None: prompts are not cut
        longest = scheduler.max_prefill_tokens
        return Limits(
            self.capacity,
            1,
            scheduler.max_running_requests,
            min(chunk, longest) if chunk > 0 else longest,
            "sglang",
        )

    def use(self, policy: Policy) -> None:
        """Start afresh; nothing may be in the engine."""
        assert not self._live
        self.settle()
        self.agents = lasting(policy)
        self._binding.use(self.agents)
        assert self._scheduler.flush_cache(empty_cache=False)
        self._scheduler.outputs.ended.clear()  # of those that were aborted last
        self._cached.clear()
        self._sent = 0

    def settle(self) -> None:
        """Let the scheduler find that nothing is left to do, as its loop would."""
        while not self._scheduler.is_fully_idle():
            self._scheduler.turn()
        self._scheduler.turn()

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        """Send a request with a prompt that shares nothing with another."""
        prompt = made_up(self._sent + 1, prompt_tokens, self._vocabulary)
        self.send(name, prompt, most_tokens, claim, apart=True)

    def send(
        self,
        name: str,
        prompt: Iterable[int],
        most_tokens: int,
        claim: Mapping[str, object],
        *,
        apart: bool = False,
    ) -> None:
        """Send a request with these tokens; with `apart` it shares no prefix at all.

        Tokens that count requests tell only the prompts of a few hundred apart from
        their first token on.
        """
        self._sent += 1
        params = SamplingParams(
            temperature=0.0,
            max_new_tokens=most_tokens,
            custom_params={"justitia": dict(claim)},
        )
        params.normalize(None)
        self._live.add(name)
        self._scheduler.process_input_requests(
            [
                TokenizedGenerateReqInput(
                    rid=name,
                    input_text=None,
                    input_ids=array("q", prompt),
                    input_embeds=None,
                    mm_inputs=None,
                    token_type_ids=None,
                    sampling_params=params,
                    return_logprob=False,
                    logprob_start_len=-1,
                    top_logprobs_num=0,
                    token_ids_logprob=None,
                    stream=False,
                    extra_key=name if apart else None,
                )
            ]
        )

    def abort(self, names: Collection[str]) -> None:
        """Abort requests; one that runs takes part in one more step."""
        for name in self._live.intersection(names):
            self._live.discard(name)
            self._scheduler.process_input_requests([AbortReq(rid=name)])

    def step(self) -> list[str]:
        """Run a step."""
        scheduler = self._scheduler
        scheduler.turn()
        ended = [name for name in scheduler.outputs.ended if name in self._live]
        self._live.difference_update(ended)
        scheduler.outputs.ended.clear()
        return ended

    def name(self, request_id: str) -> str:
        """Return the id: SGLang takes those that it is given."""
        return request_id

    def cached(self, name: str) -> int | None:
        """Return how many tokens of a prompt RadixAttention served from the cache."""
        return self._cached.get(name)

    def usage(self) -> float:
        """Return the part of the KV cache that is in use, and not only kept."""
        scheduler = self._scheduler
        free = scheduler.token_to_kv_pool_allocator.available_size()
        kept = scheduler.tree_cache.evictable_size()
        return float(1 - (free + kept) / self.capacity)

    def _started(self, request_id: str, cached: int, prompt_tokens: int) -> None:
        self._cached[request_id] = cached

    def close(self) -> None:
        """Let the engine go."""
        self._scheduler.release_host_resources()
        destroy_model_parallel()
        destroy_distributed_environment()
