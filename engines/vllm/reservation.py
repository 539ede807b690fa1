"""Setting memory aside before a request starts, by vLLM's own count of its blocks."""

from collections.abc import Callable
from typing import Any

from vllm.v1.core.kv_cache_manager import KVCacheBlocks, KVCacheManager
from vllm.v1.request import Request, RequestStatus

_STARTING = frozenset({RequestStatus.WAITING, RequestStatus.PREEMPTED})


class Reservation:
    """Admits a request only where it, and all that run, can grow to what is set aside.

    It stands before ``KVCacheManager.allocate_slots``. How many blocks a request would
    need, shared prefixes and groups of several kinds included, vLLM counts itself.

    Parameters
    ----------
    manager
        vLLM's.
    tokens
        Up to how many tokens a request may grow.
    running
        The requests that run.
    refused
        Told of a request that has no room.

    Notes
    -----
    Complexity of an attempt: O(running), of a step without one: nothing.
    """

    def __init__(
        self,
        manager: KVCacheManager,
        tokens: Callable[[Request], int],
        running: Callable[[], list[Request]],
    ) -> None:
        self._manager = manager
        self._tokens = tokens
        self._running = running

    def fits(
        self, request: Request, computed: KVCacheBlocks | None, computed_tokens: int
    ) -> bool:
        """Return whether a request may start, given its hits in the prefix cache."""
        running = self._running()
        if not running:
            return True  # else what is larger than the cache would wait for ever
        free = self._manager.block_pool.get_num_free_blocks()
        free -= self._needed(request, computed, computed_tokens)
        for other in running:
            if free < 0:
                return False
            free -= self._growth(other)
        return free >= 0

    def _needed(
        self, request: Request, computed: KVCacheBlocks | None, computed_tokens: int
    ) -> int:
        blocks = self._manager.empty_kv_cache_blocks if computed is None else computed
        tokens = self._tokens(request)
        return self._manager.coordinator.get_num_blocks_to_allocate(
            request_id=request.request_id,
            num_tokens=tokens,
            new_computed_blocks=blocks.blocks,
            num_encoder_tokens=0,
            total_computed_tokens=request.num_computed_tokens + computed_tokens,
            num_local_computed_tokens=request.num_computed_tokens + computed_tokens,
            num_tokens_main_model=tokens,
        )

    def _growth(self, request: Request) -> int:
        """Return the blocks that a running request may still ask for."""
        tokens, more = self._tokens(request), 0
        for manager in self._manager.coordinator.single_type_managers:
            held = len(manager.req_to_blocks.get(request.request_id, ()))
            more += max(0, -(-tokens // manager.block_size) - held)
        return more


def reserve(
    manager: KVCacheManager,
    reservation: Reservation | None,
    refused: Callable[[str], None],
) -> None:
    """Let a cache manager ask a reservation, and tell of requests that do not fit."""
    allocate = manager.allocate_slots

    def allocate_slots(
        request: Request, num_new_tokens: int, *args: Any, **kwargs: Any
    ) -> KVCacheBlocks | None:
        if request.status not in _STARTING:
            return allocate(request, num_new_tokens, *args, **kwargs)
        blocks = None
        if reservation is None or reservation.fits(
            request,
            kwargs.get("new_computed_blocks"),
            kwargs.get("num_new_computed_tokens", 0),
        ):
            blocks = allocate(request, num_new_tokens, *args, **kwargs)
        if blocks is None:
            refused(request.request_id)
        return blocks

    manager.allocate_slots = allocate_slots  # type: ignore[method-assign]
