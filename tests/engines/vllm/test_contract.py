"""What of vLLM the adapter relies on, and vLLM does not call public.

A version that changes any of it fails here by name, before it misbehaves in service.
"""

from inspect import Parameter, signature
from pathlib import Path

import pytest

from justitia.engines.vllm.version import NEWEST, OLDEST, check_version
from tests.engines.vllm.real import (
    Driver,
    Request,
    RequestStatus,
    Scheduler,
    make_scheduler,
    scheduler_of,
)


def takes(function: object, *names: str) -> bool:
    """Return whether a function's parameters begin with some, in this order."""
    parameters = signature(function).parameters  # type: ignore[arg-type]
    return list(parameters)[: len(names)] == list(names)


def accepts(function: object, *names: str) -> bool:
    """Return whether a function can be called with some keywords."""
    parameters = signature(function).parameters  # type: ignore[arg-type]
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return all(n in parameters and parameters[n].kind in kinds for n in names)


def test_the_version_is_one_that_the_adapter_knows() -> None:
    assert (OLDEST, NEWEST) == ((0, 32), (0, 33))
    assert check_version().startswith(("0.32", "0.33"))


# --- the scheduler --------------------------------------------------------------------


def test_the_schedulers_hooks() -> None:
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler

    for base in (Scheduler, AsyncScheduler):
        assert takes(base.schedule, "self")
        assert takes(base.add_request, "self", "request")
        assert takes(base._free_request, "self", "request")
        assert takes(base._preempt_request, "self", "request", "timestamp")
        assert takes(
            base.update_from_output, "self", "scheduler_output", "model_runner_output"
        )
        assert takes(base.finish_requests, "self", "request_ids", "finished_status")
    assert takes(Scheduler.__init__, "self", "vllm_config", "kv_cache_config")
    assert issubclass(AsyncScheduler, Scheduler)


def test_what_a_scheduler_has(model: Path) -> None:
    """Before ours has put its own things in their places."""
    native = make_scheduler(model, native="fcfs")
    for name in ("waiting", "kv_holding_waiting", "running", "requests", "policy"):
        assert hasattr(native, name), name
    assert native._inflight_prefills == set()
    assert native.lora_config is None
    assert native.num_spec_tokens == native.num_lookahead_tokens == 0
    assert native.max_model_len == 512
    assert native.scheduler_reserve_full_isl  # all of a prompt must have room
    assert native.kv_cache_manager.watermark_blocks == 0
    assert native.kv_cache_manager.block_pool.num_gpu_blocks == 32
    assert native.kv_cache_manager.block_pool.get_num_free_blocks() == 31  # one is null


def test_the_scheduling_policies() -> None:
    """`Victims` needs the branch that takes out the largest priority."""
    from vllm.v1.core.sched.request_queue import SchedulingPolicy

    assert [policy.value for policy in SchedulingPolicy] == ["fcfs", "priority"]


def test_the_scheduler_class_is_a_path_or_a_factory(model: Path) -> None:
    from justitia.engines.vllm import Scheduler as factory
    from tests.engines.vllm.real import make_config

    config = make_config(model)
    assert config.scheduler_config.scheduler_cls == "justitia.engines.vllm.Scheduler"
    assert config.scheduler_config.get_scheduler_cls() is factory
    assert isinstance(scheduler_of(config), Scheduler)


# --- the queue ------------------------------------------------------------------------


def test_the_queues_methods() -> None:
    from vllm.v1.core.sched.request_queue import RequestQueue

    from justitia.engines.vllm.queue import PolicyQueue

    assert RequestQueue.__abstractmethods__ == {
        "add_request",
        "pop_request",
        "peek_request",
        "prepend_request",
        "prepend_requests",
        "remove_request",
        "remove_requests",
        "__bool__",
        "__len__",
        "__iter__",
    }
    assert not PolicyQueue.__abstractmethods__
    for name in RequestQueue.__abstractmethods__:
        theirs = signature(getattr(RequestQueue, name)).parameters
        assert list(signature(getattr(PolicyQueue, name)).parameters) == list(theirs)


def test_a_skipped_request_is_popped_and_prepended(model: Path) -> None:
    """Popped while it is not ready, put back in the same step."""
    driver = Driver(make_scheduler(model, justitia={"policy": "fcfs"}))
    calls: list[str] = []
    queue = driver.ours.waiting

    def note(name: str) -> None:
        method = getattr(queue, name)

        def noted(*args: object) -> object:
            calls.append(name)
            return method(*args)

        setattr(queue, name, noted)

    for name in ("peek_request", "pop_request", "prepend_requests"):
        note(name)
    driver.add("r", 10, 2, unready=True)
    driver.advance()
    assert (calls[:2], calls[-1]) == (
        ["peek_request", "pop_request"],
        "prepend_requests",
    )


def test_a_preempted_request_is_prepended(model: Path) -> None:
    """To `waiting`, out of the running ones, its blocks free, in the same step."""
    driver = Driver(make_scheduler(model, blocks=9))
    back: list[str] = []
    queue = driver.ours.waiting
    prepend = queue.prepend_request

    def noted(request: Request) -> None:
        assert request.status == RequestStatus.PREEMPTED
        assert request not in driver.scheduler.running
        back.append(request.request_id)
        prepend(request)

    queue.prepend_request = noted  # type: ignore[method-assign]
    for place in range(6):
        driver.add(f"r{place}", 32, 64)
    driver.run()
    assert len(back) == driver.preemptions > 0


@pytest.mark.parametrize("end", ["length", "stop", "waiting", "running"])
def test_every_end_goes_through_free_request(model: Path, end: str) -> None:
    driver = Driver(make_scheduler(model))
    freed: list[str] = []
    free = driver.scheduler._free_request

    def noted(request: Request, **kwargs: bool) -> object:
        freed.append(request.request_id)
        return free(request, **kwargs)

    driver.scheduler._free_request = noted  # type: ignore[method-assign]
    driver.add("r", 10, 3, longest=9 if end == "stop" else 3)
    if end == "running":
        driver.advance()
    if end in ("waiting", "running"):
        driver.abort("r")
    driver.run()
    assert freed == ["r"]


# --- steps and requests ---------------------------------------------------------------


def test_what_a_step_says() -> None:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.outputs import ModelRunnerOutput

    fields = SchedulerOutput.__dataclass_fields__
    assert {
        "num_scheduled_tokens",
        "total_num_scheduled_tokens",
        "scheduled_spec_decode_tokens",
    } <= fields.keys()
    fields = ModelRunnerOutput.__dataclass_fields__
    assert {"req_ids", "req_id_to_index", "sampled_token_ids"} <= fields.keys()


def test_what_a_request_says(model: Path) -> None:
    driver = Driver(make_scheduler(model, batched=64))
    request = driver.add("r", 100, 3, longest=9, claim={"kind": "k"}, session="s")
    assert request.session_id == "s"
    assert request.sampling_params is not None
    assert request.sampling_params.extra_args == {"justitia_kind": "k"}
    assert (request.max_tokens, request.num_prompt_tokens, request.num_tokens) == (
        9,
        100,
        100,
    )
    assert request.status == RequestStatus.WAITING
    seen = []
    while driver.advance():
        seen.append(
            (request.is_prefill_chunk, request.num_tokens, request.num_output_tokens)
        )
    # A part of the prompt; its rest and a token; two more.
    assert seen == [(True, 100, 0), (False, 101, 1), (False, 102, 2), (False, 103, 3)]


def test_a_priority_may_be_an_object_that_compares(model: Path) -> None:
    """The scheduler compares (priority, arrival) of the running, and no more."""
    driver = Driver(make_scheduler(model))
    request = driver.add("r", 10, 3, priority=5)
    assert isinstance(request.priority, int)
    assert request.priority == request.priority
    assert not request.priority != request.priority  # noqa: SIM202 - both are asked
    assert int(request.priority) == 0


# --- memory ---------------------------------------------------------------------------


def test_the_cache_managers_hooks(model: Path) -> None:
    from vllm.v1.core.kv_cache_manager import KVCacheManager

    assert takes(KVCacheManager.allocate_slots, "self", "request", "num_new_tokens")
    assert accepts(
        KVCacheManager.allocate_slots,
        "new_computed_blocks",
        "num_new_computed_tokens",
        "num_external_computed_tokens",
        "num_encoder_tokens",
    )
    manager = make_scheduler(model).kv_cache_manager
    assert accepts(
        manager.coordinator.get_num_blocks_to_allocate,
        "request_id",
        "num_tokens",
        "new_computed_blocks",
        "num_encoder_tokens",
        "total_computed_tokens",
        "num_local_computed_tokens",
        "num_tokens_main_model",
        "apply_admission_cap",
    )
    assert manager.empty_kv_cache_blocks.blocks == ((),)
    (single,) = manager.coordinator.single_type_managers
    assert single.block_size == 32
    assert dict(single.req_to_blocks) == {}


def test_who_starts_is_allocated_with_keywords(model: Path) -> None:
    """The hits in the prefix cache are keywords; the running come without."""
    scheduler = make_scheduler(model, native="fcfs", prefix=True)
    calls: list[tuple[str, frozenset[str]]] = []
    allocate = scheduler.kv_cache_manager.allocate_slots

    def noted(request: Request, tokens: int, **kwargs: object) -> object:
        calls.append((request.status.name, frozenset(kwargs)))
        return allocate(request, tokens, **kwargs)  # type: ignore[arg-type]

    scheduler.kv_cache_manager.allocate_slots = noted  # type: ignore[method-assign]
    driver = Driver(scheduler)
    driver.add("r", 10, 2)
    driver.run()
    assert [status for status, _ in calls] == ["WAITING", "RUNNING"]
    assert {"new_computed_blocks", "num_new_computed_tokens"} <= calls[0][1]


def test_the_count_of_blocks_is_the_one_that_is_taken(model: Path) -> None:
    """What the reservation takes a running request to need is what vLLM counts."""
    driver = Driver(make_scheduler(model, justitia={"admission": "max"}, block=16))
    for place in range(4):
        driver.add(f"r{place}", 17 * (place + 1), 40)
    coordinator = driver.scheduler.kv_cache_manager.coordinator
    reservation = driver.ours._gate._reservation
    assert reservation is not None
    steps = 0
    while driver.advance():
        for request in driver.scheduler.running:
            computed = request.num_computed_tokens
            steps += 1
            assert reservation._growth(request) == (
                coordinator.get_num_blocks_to_allocate(
                    request_id=request.request_id,
                    num_tokens=request.num_prompt_tokens + 40,
                    new_computed_blocks=((),),
                    num_encoder_tokens=0,
                    total_computed_tokens=computed,
                    num_local_computed_tokens=computed,
                    num_tokens_main_model=request.num_prompt_tokens + 40,
                )
            )
    assert steps > 100
