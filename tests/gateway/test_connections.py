"""Connections to engines that close, answer early, answer twice, or are not trusted."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

import httpcore
import httpx

from justitia.gateway.connections import Connections
from justitia.gateway.settings import Limits
from tests.gateway.live import run

HOST = "127.0.0.1"
TRUST = httpx.create_ssl_context()
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def engine(
    serve: Serve,
    *,
    host: str = HOST,
    path: str = "",
    tls: ssl.SSLContext | None = None,
    trust: ssl.SSLContext = TRUST,
) -> AsyncIterator[Connections]:
    """Connections to an engine that does on each what `serve` does."""
    writers: list[asyncio.StreamWriter] = []

    async def serving(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(serving, host, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    scheme, shown = "http" if tls is None else "https", f"[{host}]"
    url = f"{scheme}://{shown if ':' in host else host}:{port}{path}"
    limits = Limits(idle_seconds=20, connect_seconds=5)
    connections = Connections(url, None, limits, trust)
    try:
        yield connections
    finally:
        connections.close()
        server.close()
        for writer in writers:
            writer.transport.abort()


async def taken(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read a request; return its head and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    return head, await reader.readexactly(size)


def said(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\ncontent-length: %d\r\n\r\n%s" % (status, len(body), body)


async def ask(connections: Connections, body: bytes) -> tuple[int, bytes]:
    async with connections.post("/v1/completions", body) as answer:
        return answer.status, b"".join([part async for part in answer.parts])


def test_a_connection_that_was_closed_at_rest_is_no_loss() -> None:
    """It is closed as it is used again, which nobody could know before."""
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append((await taken(reader))[1])
        writer.write(said(bodies[-1]))
        await reader.readuntil(b"\r\n\r\n")

    async def doing() -> None:
        async with engine(serve) as connections:
            for number in range(20):
                body = b"%d" % number
                assert await ask(connections, body) == (200, body)
            assert len(bodies) == 20

    run(doing())


@pytest.mark.parametrize("began", [b"", b"HTTP/1.1 2"])
def test_what_a_new_connection_lost_is_lost_and_what_was_answered_is(
    began: bytes,
) -> None:
    """A second time is the gateway's to decide; of one whose answer began nobody's."""
    heard = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        if began:
            writer.write(said((await taken(reader))[1]))
        await taken(reader)
        heard += 1
        writer.write(began)

    async def doing() -> None:
        async with engine(serve) as connections:
            if began:
                await ask(connections, b"a")
            with pytest.raises(httpcore.RemoteProtocolError):
                await ask(connections, b"b")
            assert (heard, len(connections)) == (1, 0)

    run(doing())


def test_an_answer_too_many_is_nobody_s() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, body = await taken(reader)
            writer.write(said(body) + said(b"of " + body))

    async def doing() -> None:
        async with engine(serve) as connections:
            for body in (b"a", b"b", b"c"):
                assert await ask(connections, body) == (200, body)
                assert len(connections) == 0

    run(doing())


@pytest.mark.parametrize("closes", [False, True])
def test_an_answer_may_come_before_all_was_sent(closes: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said(b"too large", b"413 Content Too Large"))
        await writer.drain()
        if not closes:
            await asyncio.Event().wait()

    async def doing() -> None:
        async with engine(serve) as connections:
            async with asyncio.timeout(10):  # half of what an engine may be silent
                told = await ask(connections, b"x" * 2**25)
            assert told == (413, b"too large")
            assert len(connections) == 0

    run(doing())


def test_a_body_is_read_as_slowly_as_the_engine_likes() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while True:
            _, body = await taken(reader)
            writer.write(said(b"%d" % len(body)))

    async def doing() -> None:
        async with engine(serve) as connections:
            for size in (2**25, 1, 2**24):
                assert await ask(connections, b"x" * size) == (200, b"%d" % size)

    run(doing())


@pytest.mark.parametrize("part", ["write", "head", "body"])
def test_who_is_cancelled_leaves_no_connection(part: str) -> None:
    there = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if part != "write":
            await taken(reader)
        if part == "body":
            writer.write(said(b"abc")[:-1])
        there.set()
        await asyncio.Event().wait()

    async def doing() -> None:
        async with engine(serve) as connections:
            asking = asyncio.create_task(ask(connections, b"x" * 2**24))
            await there.wait()
            await asyncio.sleep(0.01)
            assert len(connections) == 1
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert len(connections) == 0

    run(doing())


@pytest.mark.parametrize(
    ("host", "path", "target"),
    [
        (HOST, "", b"/v1/completions"),
        (HOST, "/a/b%20c", b"/a/b%20c/v1/completions"),
        ("::1", "", b"/v1/completions"),
    ],
)
def test_addresses(host: str, path: str, target: bytes) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await taken(reader))[0])
        writer.write(said(b""))

    async def doing() -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                connections = await stack.enter_async_context(
                    engine(serve, host=host, path=path)
                )
            except OSError as error:
                pytest.skip(f"this machine has no {host}: {error}")
            assert await ask(connections, b"") == (200, b"")
            assert heads[0].startswith(b"POST %s HTTP/1.1\r\n" % target)
            netloc = connections._base.netloc
            assert b"\r\nhost: %s\r\n" % netloc in heads[0].lower()

    run(doing())


# TLS ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that nobody but itself has signed, with its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate, is not here")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=engine", "-addext", f"subjectAltName=IP:{HOST}",
            "-keyout", "key.pem", "-out", "cert.pem",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


async def serve_twice(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    while True:
        writer.write(said((await taken(reader))[1]))


@pytest.mark.parametrize("trusted", [False, True])
def test_a_server_must_be_known(
    trusted: bool, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that SSL_CERT_FILE names are, if they are what they are asked for as."""
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))

    async def doing() -> None:
        trust = httpx.create_ssl_context()
        async with engine(serve_twice, tls=own, trust=trust) as connections:
            if not trusted:
                with pytest.raises(httpcore.ConnectError, match="CERTIFICATE_VERIFY"):
                    await ask(connections, b"a")
                return
            for body in (b"a", b"b" * 2**22):
                assert await ask(connections, body) == (200, body)
            assert len(connections) == 1
            port = connections._origin.port
            other = Connections(
                f"https://localhost:{port}", None, Limits(connect_seconds=5), trust
            )
            with pytest.raises(httpcore.ConnectError, match="localhost"):
                await ask(other, b"a")

    run(doing())


def test_a_server_without_tls_is_an_engine_that_is_not_there() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(5)
        writer.write(said(b"what?", b"400 Bad Request"))

    async def doing() -> None:
        async with engine(serve) as plain:
            url = f"https://{HOST}:{plain._origin.port}"
            connections = Connections(url, None, Limits(connect_seconds=5), TRUST)
            with pytest.raises(httpcore.ConnectError):
                await ask(connections, b"a")

    run(doing())
