"""vLLM's queue of waiting requests, in the order of the policy."""

from collections.abc import Callable, Iterable, Iterator

from vllm.v1.core.sched.request_queue import FCFSRequestQueue, RequestQueue
from vllm.v1.request import Request

from justitia.engines.serving import Agents


class PolicyQueue(RequestQueue):
    """Asks the policy who is next; keeps nothing but who is in it.

    A request that vLLM takes out and puts back in the same step, since it is not ready
    to run (its grammar is being compiled, its KV is on the way), is one that was
    started and requeued without a step: the policy charges nothing for it. One that
    vLLM takes out and keeps elsewhere, since it holds memory while its KV is loaded or
    its stream pauses, goes on as started.

    Parameters
    ----------
    submit
        Called with a request that is new, to put it in line.
    looked_at
        Called before the head is looked at: from here on a step starts requests.
    stops
        Whether a request that was taken out, and not started, stops those behind it.

    Notes
    -----
    The queue is not empty where somebody may start, which is less than that somebody
    waits: a policy may hold all back, an agent's requests, once it was dismissed, are
    in nobody's line until vLLM aborts them, and one that is passed over may stop the
    others until the step is fixed. `len` counts all of those, too.
    """

    def __init__(
        self,
        agents: Agents,
        submit: Callable[[Request], None],
        looked_at: Callable[[], None] = lambda: None,
        stops: Callable[[Request], bool] = lambda request: False,
    ) -> None:
        self._agents = agents
        self._submit = submit
        self._looked_at = looked_at
        self._stops = stops
        self._taken: Request | None = None  # the last in this step
        self._waiting: dict[str, Request] = {}
        self._known: set[str] = set()

    def new_step(self) -> None:
        """Take note that a step begins: nobody was passed over in it so far."""
        self._taken = None

    def add_request(self, request: Request) -> None:
        """Put a request in line; one that comes back (from a pause) at its place."""
        if request.request_id in self._known:
            self.prepend_request(request)
            return
        self._submit(request)
        self._known.add(request.request_id)
        self._waiting[request.request_id] = request

    def peek_request(self) -> Request:
        """Return the head of the line.

        Raises
        ------
        IndexError
            If nobody may start.
        """
        self._looked_at()
        head = self._agents.head()
        if head is None:
            raise IndexError("nobody may start")
        return self._waiting[head]

    def pop_request(self) -> Request:
        """Take out the head of the line: it starts."""
        request = self.peek_request()
        self._agents.start(request.request_id)
        del self._waiting[request.request_id]
        self._taken = request
        return request

    def prepend_request(self, request: Request) -> None:
        """Put a request back to its place in line."""
        self._agents.requeue(request.request_id)
        self._waiting[request.request_id] = request

    def prepend_requests(self, requests: Iterable[Request]) -> None:
        """Put requests back to their places in line."""
        for request in requests:
            self.prepend_request(request)

    def remove_request(self, request: Request) -> None:
        """Leave a request where it is: `forget` takes out those that end.

        vLLM removes others, too: a stream that was preempted and whose turn ended with
        an output that was on its way has just been put back, to wait for its next turn.
        """

    def remove_requests(self, requests: Iterable[Request]) -> None:
        """Leave requests where they are; see `remove_request`."""

    def forget(self, request_id: str) -> None:
        """Forget a request that ended, waiting or running."""
        self._known.discard(request_id)
        self._waiting.pop(request_id, None)
        self._agents.finish(request_id)

    def __bool__(self) -> bool:
        if self._taken is not None and self._stops(self._taken):
            return False
        return self._agents.head() is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return (self._waiting[request_id] for request_id in self._agents.order())


class HoldingQueue(FCFSRequestQueue):
    """vLLM's queue of those that wait and hold memory, which says when it is looked at.

    A stream that goes on and a request whose KV was loaded start from here, before all
    others. The policy has started them already.

    Parameters
    ----------
    looked_at
        See `PolicyQueue`.
    """

    def __init__(self, looked_at: Callable[[], None]) -> None:
        super().__init__()
        self._looked_at = looked_at

    def peek_request(self) -> Request:
        """Return the first."""
        self._looked_at()
        return super().peek_request()
