"""vLLM's queue of waiting requests, in the order of the policy."""

from collections.abc import Callable, Iterable, Iterator

from vllm.v1.core.sched.request_queue import RequestQueue
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

    Notes
    -----
    The queue is not empty where somebody may start, which is less than that somebody
    waits: a policy may hold all back, and an agent's requests, once it was dismissed,
    are in nobody's line until vLLM aborts them. `len` counts those, too.
    """

    def __init__(
        self,
        agents: Agents,
        submit: Callable[[Request], None],
        looked_at: Callable[[], None] = lambda: None,
    ) -> None:
        self._agents = agents
        self._submit = submit
        self._looked_at = looked_at
        self._waiting: dict[str, Request] = {}
        self._known: set[str] = set()

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
        """Take out a request that ends; absent ones are none of ours.

        The policy hears of it from `forget`, as of every other end.
        """
        self._waiting.pop(request.request_id, None)

    def remove_requests(self, requests: Iterable[Request]) -> None:
        """Take out requests that end."""
        for request in requests:
            self.remove_request(request)

    def forget(self, request_id: str) -> None:
        """Forget a request that ended, waiting or running."""
        self._known.discard(request_id)
        self._waiting.pop(request_id, None)
        self._agents.finish(request_id)

    def __bool__(self) -> bool:
        return self._agents.head() is not None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Request]:
        return (self._waiting[request_id] for request_id in self._agents.order())
