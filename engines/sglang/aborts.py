"""An abort of one id, where SGLang would end all whose ids begin with it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class _Spared(str):
    """An id that begins with no other, for SGLang's way to find those of an id."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        """Return that it does not."""
        return False


@contextmanager
def spared(recv_req: Any, requests: Iterable[Any]) -> Iterator[None]:
    """Within it SGLang finds only those of these requests whose id is that one.

    With an empty id, which a client may give its request, it would find everybody.

    Parameters
    ----------
    recv_req
        The abort; one of all spares nobody.
    requests
        All that may be found.

    Notes
    -----
    Complexity: O(requests), as is SGLang's own way.
    """
    rid = recv_req.rid
    others = [
        req
        for req in requests
        if req.rid != rid and not recv_req.abort_all and req.rid.startswith(rid)
    ]
    for req in others:
        req.rid = _Spared(req.rid)
    try:
        yield
    finally:
        for req in others:
            req.rid = str(req.rid)
