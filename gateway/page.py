"""The page at ``/``, for people: four files, as they are in the folder ``static``.

It asks for nothing but these and ``v1/state``, relative to where it is, and its policy
of content lets it do nothing else, whatever an agent is called.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "static"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""By path, with their types."""
_GUARDS = {
    "content-security-policy": "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "cache-control": "no-cache",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def routes(*, keyed: bool) -> list[Route]:
    """Return the routes to the page's files.

    Parameters
    ----------
    keyed
        Whether it must ask for a key before it asks for anything else.
    """
    mark = b'data-keyed="%s"'
    found = []
    for path, (name, kind) in FILES.items():
        content = (FOLDER / name).read_bytes()
        if keyed:
            content = content.replace(mark % b"false", mark % b"true")
        found.append(Route(path, _file(content, kind), methods=["GET"]))
    return found


def _file(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return Response(content, headers={**_GUARDS, "content-type": kind})

    return answer
