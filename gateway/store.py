"""What a gateway keeps on disk: its agents' state, and a log of finished inferences.

One SQLite file, written by a thread of its own in batches, each a transaction (WAL). A
process that is killed loses what it was about to write, a few milliseconds of it;
whoever awaits `flushed` has it for sure. That is so for every inference whose client
was told that it is done, and for every agent that was announced. A machine that loses
its power may lose the last transactions, and never the file.
"""

import asyncio
import contextlib
import logging
import sqlite3
import sys
import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO

from justitia.policy import PolicyError

if sys.platform != "win32":
    import fcntl

APPLICATION = 0x4A555354  # "JUST"
VERSION = 1
_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE verbs (number INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE finished (
    number INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    stage INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    decode_tokens INTEGER NOT NULL,
    max_tokens INTEGER,
    text TEXT,
    ended REAL NOT NULL
);
"""

_log = logging.getLogger("justitia.gateway")


class StoreError(PolicyError):
    """A file that cannot be a gateway's store."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An inference that was finished.

    Attributes
    ----------
    agent
        Unique among all agents of all times.
    text
        Of its prompt; None unless that is to be kept.
    ended
        Seconds since 1970.
    """

    tenant: str
    agent: str
    kind: str
    stage: int
    prompt_tokens: int
    decode_tokens: int
    max_tokens: int | None
    text: str | None
    ended: float


class Store:
    """The file of one gateway.

    Parameters
    ----------
    path
        Made if it is not there; its folder must be.

    Attributes
    ----------
    broken
        Why nothing can be written any more, empty while it can.

    Raises
    ------
    StoreError
        If the file is something else, or of another version, or in use.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.broken = ""
        self.verbs_since = 0
        self._verbs: list[str] = []
        self._finished: list[Finished] = []
        self._snapshot: tuple[str, str] | None = None
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._changed = threading.Condition()
        self._closing = False
        self._lock = _locked(path)
        try:
            self._base = sqlite3.connect(path, check_same_thread=False, timeout=1)
            try:
                self._open()
            except sqlite3.Error:
                self._base.close()
                raise
        except sqlite3.Error as error:
            self._lock.close()
            raise StoreError(f"{path}: no store of a gateway: {error}") from None
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        base = self._base
        base.isolation_level = None
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=NORMAL")
        base.execute("BEGIN IMMEDIATE")
        (application,) = base.execute("PRAGMA application_id").fetchone()
        (version,) = base.execute("PRAGMA user_version").fetchone()
        (tables,) = base.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not application:
            for statement in _SCHEMA.split(";"):
                base.execute(statement)
            base.execute(f"PRAGMA application_id={APPLICATION}")
            base.execute(f"PRAGMA user_version={VERSION}")
        elif application != APPLICATION:
            raise sqlite3.DatabaseError("it is another program's")
        elif version != VERSION:
            raise sqlite3.DatabaseError(f"version {version}, known is {VERSION}")
        base.execute("COMMIT")

    def kept(self) -> tuple[str | None, str | None, list[str]]:
        """Return the fingerprint and the frozen state, if any, and the verbs since."""
        named = dict(self._base.execute("SELECT name, text FROM state"))
        verbs = [
            text
            for (text,) in self._base.execute("SELECT text FROM verbs ORDER BY number")
        ]
        self.verbs_since = len(verbs)
        return named.get("fingerprint"), named.get("frozen"), verbs

    # From the event loop --------------------------------------------------------------

    def write(self, verb: str) -> None:
        """Write a verb, soon."""
        with self._changed:
            self._verbs.append(verb)
            self.verbs_since += 1
            self._changed.notify()

    def keep(self, fingerprint: str, frozen: str) -> None:
        """Write a state, soon; the verbs before it are needed no more."""
        with self._changed:
            self._snapshot = (fingerprint, frozen)
            self._verbs.clear()
            self.verbs_since = 0
            self._changed.notify()

    async def finish(self, inferences: Sequence[Finished]) -> None:
        """Write inferences that were finished, and return when they are there."""
        with self._changed:
            self._finished.extend(inferences)
        await self.flushed()

    async def flushed(self) -> None:
        """Return when all that was to be written so far is there, or never can be."""
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._changed:
            if self.broken or self._closing:
                return
            self._waiters.append((loop, done))
            self._changed.notify()
        await done

    def close(self) -> None:
        """Write the rest, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()
        self._base.close()
        self._lock.close()

    # The thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (
                    self._verbs
                    or self._finished
                    or self._snapshot
                    or self._waiters
                    or self._closing
                ):
                    self._changed.wait()
                closing = self._closing
                verbs, self._verbs = self._verbs, []
                finished, self._finished = self._finished, []
                snapshot, self._snapshot = self._snapshot, None
                waiters, self._waiters = self._waiters, []
            try:
                self._write(verbs, finished, snapshot)
            except Exception as error:  # for whoever waits, the thread goes on
                if not self.broken:
                    _log.error("store %s cannot be written: %s", self.path, error)
                self.broken = str(error)
                with contextlib.suppress(sqlite3.Error):
                    self._base.execute("ROLLBACK")
            for loop, done in waiters:
                with contextlib.suppress(RuntimeError):  # a loop that has ended
                    loop.call_soon_threadsafe(_resolve, done)
            if closing:
                return

    def _write(
        self,
        verbs: Sequence[str],
        finished: Sequence[Finished],
        snapshot: tuple[str, str] | None,
    ) -> None:
        if not (verbs or finished or snapshot):
            return
        base = self._base
        base.execute("BEGIN")
        if snapshot is not None:
            base.execute("DELETE FROM verbs")
            base.executemany(
                "INSERT OR REPLACE INTO state VALUES (?, ?)",
                zip(("fingerprint", "frozen"), snapshot, strict=True),
            )
        base.executemany(
            "INSERT INTO verbs (text) VALUES (?)", [(verb,) for verb in verbs]
        )
        base.executemany(
            "INSERT INTO finished VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [astuple(one) for one in finished],
        )
        base.execute("COMMIT")
        self.broken = ""


def _locked(path: str) -> IO[bytes]:
    """Return what keeps other gateways from the file: they would not know of us."""
    try:
        lock = Path(f"{path}.lock").open("wb")  # noqa: SIM115 - held until it is closed
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None
    if sys.platform != "win32":
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StoreError(f"{path}: another gateway has it open") from None
    return lock


def _resolve(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)
