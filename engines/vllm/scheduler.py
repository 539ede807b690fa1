"""vLLM's scheduler with the policy in place of its order: events in, answers out."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from justitia.engines.serving import Agents, Claim, load_settings, read_claim
from justitia.engines.serving.settings import ServingError
from justitia.engines.vllm.queue import HoldingQueue, PolicyQueue
from justitia.engines.vllm.reservation import Gate, Reservation
from justitia.engines.vllm.victims import Victims

PREFIX = "justitia_"
"""Of the keys in a request's ``vllm_xargs``."""


def claim_of(request: Request) -> Claim:
    """Return what a request says of itself: its ``vllm_xargs``, else its session."""
    params = request.sampling_params
    extra = (params.extra_args if params is not None else None) or {}
    values = {
        key.removeprefix(PREFIX): value
        for key, value in extra.items()
        if isinstance(key, str) and key.startswith(PREFIX)
    }
    return read_claim(values, session=request.session_id)


if TYPE_CHECKING:  # it is mixed in before one of vLLM's
    from vllm.v1.core.sched.scheduler import Scheduler as _Mixed
else:
    _Mixed = object


class PolicyScheduling(_Mixed):
    """What `Scheduler` and `AsyncScheduler` become with a policy; mixed in before them.

    Which events of vLLM are which verbs:

    - a request is added: its agent arrives if it is new, and it is submitted
      (`PolicyQueue.add_request`);
    - it is taken from the queue: it starts; put back, preempted or not ready: requeued;
    - `schedule` has fixed a batch: serve, before anything else can arrive;
    - `_free_request`, through which every end goes: finish.

    When memory is short vLLM takes out the running request of the largest priority. A
    request's priority says what the policy does (see `Victims`).
    """

    policy: SchedulingPolicy  # vLLM's name for which queue it has
    waiting: PolicyQueue

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(vllm_config, *args, **kwargs)
        given = vllm_config.additional_config
        told = given.get("justitia") if isinstance(given, Mapping) else None
        self.settings = load_settings(told)
        if self.policy is not SchedulingPolicy.FCFS:
            raise ServingError(
                "--scheduling-policy priority has no effect with this scheduler, whose "
                f"order is that of the policy {self.settings.policy!r}: leave it out"
            )
        # Its branch takes out the largest priority; the other the newest request.
        self.policy = SchedulingPolicy.PRIORITY
        reservation = None
        if self.settings.admission != "none":
            reservation = Reservation(
                self.kv_cache_manager, self._set_aside, self._holders
            )
        self._gate = Gate(self.kv_cache_manager, reservation, self._refused)
        self.use(
            Agents(
                self.settings.make(),
                now=time.monotonic,
                linger=self.settings.linger,
                most=self.settings.most_agents,
                predict=self.settings.predict,
            )
        )

    def use(self, agents: Agents) -> None:
        """Take the policy of `agents`, which know nobody yet, as nobody does here."""
        self.agents = agents
        self.victims = Victims(agents)
        self.waiting = PolicyQueue(
            agents, self._submit, self._gate.close, self._lacks_a_lora_slot
        )
        self.kv_holding_waiting = HoldingQueue(self._gate.close)

    def add_request(self, request: Request) -> None:
        """Let a request, or the next part of a stream, in."""
        request.priority = self.victims.place(request.request_id)
        super().add_request(request)

    def schedule(self, *args: Any, **kwargs: Any) -> SchedulerOutput:
        """Fix the next batch, and tell the policy what it is."""
        self.agents.expire()
        self.victims.forget()
        self.waiting.new_step()
        self._gate.open()
        output = super().schedule(*args, **kwargs)
        if output.total_num_scheduled_tokens:
            self._tell(output)
        return output

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> Any:
        """Tell of tokens beyond one a step, which only the output shows."""
        if scheduler_output.scheduled_spec_decode_tokens:
            self._tell_accepted(scheduler_output, model_runner_output)
        return super().update_from_output(scheduler_output, model_runner_output)

    def _free_request(self, request: Request, *args: Any, **kwargs: Any) -> Any:
        self.waiting.forget(request.request_id)
        return super()._free_request(request, *args, **kwargs)

    def _submit(self, request: Request) -> None:
        self.agents.submit(
            request.request_id,
            claim_of(request),
            request.num_prompt_tokens,
            self._longest(request),
        )

    def _longest(self, request: Request) -> int:
        """Return how many tokens a request may produce; 0 where it only embeds."""
        if request.sampling_params is None:
            return 0
        room = max(1, self.max_model_len - request.num_prompt_tokens)
        return min(request.max_tokens, room)

    def _tell(self, output: SchedulerOutput) -> None:
        """Tell of a batch: whoever has nothing left to compute samples a token."""
        prefill: dict[str, int] = {}
        decode: dict[str, int] = {}
        requests, drafts = self.requests, output.scheduled_spec_decode_tokens
        for request_id, count in output.num_scheduled_tokens.items():
            request = requests[request_id]
            if request.is_prefill_chunk:
                prefill[request_id] = count
                continue
            decode[request_id] = 0 if request.sampling_params is None else 1
            if count > 1 and request_id not in drafts:
                prefill[request_id] = count
        self.agents.serve(prefill, decode)

    def _tell_accepted(
        self, output: SchedulerOutput, results: ModelRunnerOutput
    ) -> None:
        more = {}
        for request_id in output.scheduled_spec_decode_tokens:
            index = results.req_id_to_index.get(request_id)
            if index is not None and results.sampled_token_ids:
                accepted = len(results.sampled_token_ids[index]) - 1
                if accepted > 0:
                    more[request_id] = accepted
        if more:
            self.agents.serve({}, more)

    def _lacks_a_lora_slot(self, request: Request) -> bool:
        """Return whether a request waits for a LoRA of those that run to be done with.

        vLLM would let those behind it start that share a LoRA with who runs. As long as
        such came it would wait.
        """
        if self.lora_config is None or request.lora_request is None:
            return False
        if request.status not in (RequestStatus.WAITING, RequestStatus.PREEMPTED):
            return False
        loras = {
            one.lora_request.lora_int_id for one in self.running if one.lora_request
        }
        return (
            len(loras) >= self.lora_config.max_loras
            and request.lora_request.lora_int_id not in loras
        )

    def _refused(self, request_id: str) -> None:
        self.agents.refuse(request_id)

    def _set_aside(self, request: Request) -> int:
        """Return up to how many tokens a request may grow, as the setting has it."""
        rule = self.settings.admission
        if rule == "prompt":
            return request.num_tokens
        decode = self._longest(request)
        if rule == "predicted":
            predicted = self.agents.predicted(request.request_id)
            decode = max(min(predicted, decode), request.num_output_tokens)
        drafts = self.num_spec_tokens + self.num_lookahead_tokens
        return min(request.num_prompt_tokens + decode + drafts, self.max_model_len)

    def _holders(self) -> list[Request]:
        """Return the requests that hold memory: those that run, load, or have loaded.

        None if none of them runs or loads: who is next may start then, for those that
        have loaded could wait for one another for ever. Neither does a paused stream
        keep anybody from starting: it may pause for ever.
        """
        running, loading = RequestStatus.RUNNING, RequestStatus.WAITING_FOR_REMOTE_KVS
        others = [one for one in self._inflight_prefills if one.status != running]
        if self.running or any(one.status == loading for one in others):
            return [*self.running, *others]
        return []


class _Scheduler(PolicyScheduling, Scheduler):
    """vLLM's plain scheduler with a policy."""


class _AsyncScheduler(PolicyScheduling, AsyncScheduler):
    """vLLM's asynchronous scheduler with a policy."""


def scheduler_class(config: VllmConfig) -> type[Scheduler]:
    """Return the class that fits how vLLM would schedule."""
    if config.scheduler_config.async_scheduling:
        return _AsyncScheduler
    return _Scheduler
