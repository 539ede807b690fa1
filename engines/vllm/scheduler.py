"""vLLM's scheduler with the policy in place of its order: events in, answers out."""

import time
from collections.abc import Mapping
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from justitia.engines.serving import Agents, Claim, load_settings, read_claim
from justitia.engines.vllm.queue import PolicyQueue
from justitia.engines.vllm.reservation import Reservation, reserve
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
        if key.startswith(PREFIX)
    }
    return read_claim(values, session=request.session_id)


class PolicyScheduling:
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

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(vllm_config, *args, **kwargs)
        given = vllm_config.additional_config
        told = given.get("justitia") if isinstance(given, Mapping) else None
        self.settings = load_settings(told)
        self.use(
            Agents(
                self.settings.make(),
                now=time.monotonic,
                linger=self.settings.linger,
                most=self.settings.most_agents,
            )
        )
        # Its branch takes out the largest priority; the other the newest request.
        self.policy = SchedulingPolicy.PRIORITY
        reservation = None
        if self.settings.admission != "none":
            reservation = Reservation(
                self.kv_cache_manager, self._set_aside, lambda: self.running
            )
        reserve(self.kv_cache_manager, reservation, lambda one: self.agents.refuse(one))

    def use(self, agents: Agents) -> None:
        """Take the policy of `agents`, which know nobody yet, as nobody does here."""
        self.agents = agents
        self.victims = Victims(agents)
        self.waiting = PolicyQueue(agents, claim_of)

    def add_request(self, request: Request) -> None:
        """Let a request, or the next part of a stream, in."""
        request.priority = self.victims.place(request.request_id)
        super().add_request(request)

    def schedule(self, *args: Any, **kwargs: Any) -> SchedulerOutput:
        """Fix the next batch, and tell the policy what it is."""
        self.agents.expire()
        self.victims.forget()
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

    def _tell(self, output: SchedulerOutput) -> None:
        prefill: dict[str, int] = {}
        decode: dict[str, int] = {}
        requests = self.requests
        for request_id, count in output.num_scheduled_tokens.items():
            # Whoever has nothing left to compute after this step samples a token.
            if not requests[request_id].is_prefill_chunk:
                decode[request_id] = 1
                if count > 1:
                    prefill[request_id] = count
            else:
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

    def _set_aside(self, request: Request) -> int:
        """Return up to how many tokens a request may grow, as the setting has it."""
        rule = self.settings.admission
        if rule == "prompt":
            return request.num_tokens
        if rule == "max":
            decode = request.max_tokens
        else:
            predicted = self.agents.predicted(request.request_id)
            decode = max(predicted, request.num_output_tokens)
        return min(request.num_prompt_tokens + decode, self.max_model_len)


class _Scheduler(PolicyScheduling, Scheduler):
    """vLLM's plain scheduler with a policy."""


class _AsyncScheduler(PolicyScheduling, AsyncScheduler):
    """vLLM's asynchronous scheduler with a policy."""


def scheduler_class(config: VllmConfig) -> type[Scheduler]:
    """Return the class that fits how vLLM would schedule."""
    if config.scheduler_config.async_scheduling:
        return _AsyncScheduler
    return _Scheduler
