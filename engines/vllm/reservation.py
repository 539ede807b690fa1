"""Setting memory aside before a request starts, by vLLM's own count of its blocks."""

from collections.abc import Callable, Iterable
from typing import Any

from vllm.v1.core.kv_cache_manager import KVCacheBlocks, KVCacheManager
from vllm.v1.core.single_type_kv_cache_manager import FullAttentionManager
from vllm.v1.request import Request, RequestStatus

_STARTING = frozenset({RequestStatus.WAITING, RequestStatus.PREEMPTED})


class Reservation:
    """Admits a request only where it, and all that run, can grow to what is set aside.

    How many blocks that takes vLLM counts itself, shared prefixes included. With all
    that a request may ever hold set aside, nothing that runs ever gives way.

    A request that is alone is admitted whatever it needs: else one for which more is
    set aside than there is would wait for ever.

    Parameters
    ----------
    manager
        vLLM's.
    tokens
        Up to how many tokens a request may grow.
    holders
        The requests that hold memory.

    Notes
    -----
    Complexity of `fits`: O(holders); it is asked once for each request that starts, and
    once a step for the head that has no room.
    """

    def __init__(
        self,
        manager: KVCacheManager,
        tokens: Callable[[Request], int],
        holders: Callable[[], Iterable[Request]],
    ) -> None:
        self._manager = manager
        self._tokens = tokens
        self._holders = holders
        managers = manager.coordinator.single_type_managers
        self._plain = [m for m in managers if type(m) is FullAttentionManager]
        self._all_plain = len(self._plain) == len(managers)

    def fits(
        self,
        request: Request,
        computed: KVCacheBlocks | None = None,
        computed_tokens: int = 0,
        external_tokens: int = 0,
        encoder_tokens: int = 0,
    ) -> bool:
        """Return whether a request may start.

        Parameters
        ----------
        computed, computed_tokens
            The blocks that it would share, and the tokens in them.
        external_tokens
            Tokens whose KV is loaded from elsewhere.
        encoder_tokens
            Tokens that its encoder's output takes.
        """
        others = [other for other in self._holders() if other is not request]
        if not others:
            return True
        local = request.num_computed_tokens + computed_tokens
        free = self._manager.block_pool.get_num_free_blocks()
        free -= self._needed(
            request, computed, local, local + external_tokens, encoder_tokens
        )
        for other in others:
            if free < 0:
                return False
            free -= self._growth(other)
        return free >= 0

    def _growth(self, request: Request) -> int:
        """Return the blocks that one that holds memory may still ask for."""
        if not self._all_plain:
            computed = request.num_computed_tokens
            return self._needed(request, None, computed, computed, 0)
        tokens, more = self._tokens(request), 0
        for manager in self._plain:  # what `_needed` says, in a tenth of the time
            held = len(manager.req_to_blocks.get(request.request_id, ()))
            more += max(0, -(-tokens // manager.block_size) - held)
        return more

    def _needed(
        self,
        request: Request,
        computed: KVCacheBlocks | None,
        local: int,
        total: int,
        encoder_tokens: int,
    ) -> int:
        """Return the blocks that a request needs to grow, beyond those that it holds.

        Blocks that it would share, but that are free for now, are among them.
        """
        blocks = self._manager.empty_kv_cache_blocks if computed is None else computed
        tokens = self._tokens(request)
        return self._manager.coordinator.get_num_blocks_to_allocate(
            request_id=request.request_id,
            num_tokens=tokens,
            new_computed_blocks=blocks.blocks,
            num_encoder_tokens=encoder_tokens,
            total_computed_tokens=total,
            num_local_computed_tokens=local,
            num_tokens_main_model=tokens,
            apply_admission_cap=True,
        )


class Gate:
    """Stands before ``allocate_slots`` while requests are started, and only then.

    vLLM calls it for all that run, in every step: in their way even a test of the
    status would be a tenth of the time that a step takes to schedule.

    Parameters
    ----------
    manager
        vLLM's.
    reservation
        Who may start; None: whoever vLLM has room for.
    refused
        Told of a request that has no room.
    """

    def __init__(
        self,
        manager: KVCacheManager,
        reservation: Reservation | None,
        refused: Callable[[str], None],
    ) -> None:
        self._manager = manager
        self._reservation = reservation
        self._refused = refused
        self._allocate = manager.allocate_slots

    def close(self) -> None:
        """Stand in the way: the running have what they need, others may start."""
        self._manager.allocate_slots = self._ask  # type: ignore[method-assign]

    def open(self) -> None:
        """Get out of the way."""
        self._manager.allocate_slots = self._allocate  # type: ignore[method-assign]

    def _ask(
        self, request: Request, num_new_tokens: int, *args: Any, **kwargs: Any
    ) -> KVCacheBlocks | None:
        if request.status not in _STARTING:
            return self._allocate(request, num_new_tokens, *args, **kwargs)
        blocks = None
        if self._reservation is None or self._reservation.fits(
            request,
            kwargs.get("new_computed_blocks"),
            kwargs.get("num_new_computed_tokens", 0),
            kwargs.get("num_external_computed_tokens", 0),
            kwargs.get("num_encoder_tokens", 0),
        ):
            blocks = self._allocate(request, num_new_tokens, *args, **kwargs)
        if blocks is None:
            self._refused(request.request_id)
        return blocks
