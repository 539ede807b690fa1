"""What is kept on disk, and what a gateway that is killed knows when it is back."""

import asyncio
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.gateway.memory import Memory
from justitia.gateway.store import Finished, Store, StoreError
from justitia.workloads import read
from tests.gateway.fault_server import Faults
from tests.gateway.live import gateway, listening, plain, request, run, settings

ONE = Finished("t", "t/a/1", "K", 0, 10, 5, 9, None, 1.0)


def test_what_was_flushed_is_there(tmp_path: Path) -> None:
    async def doing() -> None:
        store = Store(str(tmp_path / "x.db"))
        store.write('["a"]')
        await store.finish([ONE])
        with sqlite3.connect(tmp_path / "x.db") as other:
            assert other.execute("SELECT count(*) FROM finished").fetchone() == (1,)
            assert other.execute("SELECT text FROM verbs").fetchall() == [('["a"]',)]
        other.close()
        store.keep("print", "frozen")
        store.write('["b"]')
        await store.flushed()
        store.close()
        again = Store(str(tmp_path / "x.db"))
        assert again.kept() == ("print", "frozen", ['["b"]'])
        again.close()

    run(doing())


def test_two_gateways_do_not_share_a_store(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "x.db"))
    with pytest.raises(StoreError, match="another gateway has it open"):
        Store(str(tmp_path / "x.db"))
    store.close()
    Store(str(tmp_path / "x.db")).close()


@pytest.mark.parametrize("kind", ["text", "other", "version"])
def test_another_file_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.db"
    if kind == "text":
        path.write_text("no database " * 100)
    else:
        Store(str(path)).close()
        base = sqlite3.connect(path)
        base.execute(
            "PRAGMA application_id=7" if kind == "other" else "PRAGMA user_version=9"
        )
        base.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"x\.db: no store of a gateway"):
        Store(str(path))
    assert path.read_bytes() == before


def test_a_disk_that_fails_stops_nobody(tmp_path: Path) -> None:
    async def doing() -> None:
        store = Store(str(tmp_path / "x.db"))
        store._base.execute("DROP TABLE finished")
        await store.finish([ONE])
        assert "no such table" in store.broken
        await store.flushed()
        store.close()

    run(doing())


def test_predictors_can_read_the_log(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def doing() -> None:
        async with gateway(Faults(), store=str(path), keep_prompts=True) as live:
            for stage in (0, 1):
                answer = await live.post(
                    max_tokens=4, n=2, stream=stage == 1, prompt="Why is it?",
                    justitia={"agent": "a", "kind": "K", "stage": stage},
                )  # fmt: skip
                assert answer.status_code == 200
            await live.post(max_tokens=3)
            await live.rests()
            (agent, own) = read(path)  # while the gateway has it
            assert (agent.kind, agent.text) == ("K", "Why is it?")
            assert [one.stage for one in agent.inferences] == [0, 0, 1, 1]
            lengths = {(o.prompt_tokens, o.decode_tokens) for o in agent.inferences}
            assert lengths == {(7, 4)}
            assert len(own.inferences) == 1

    run(doing())


def test_prompts_are_kept_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def doing() -> None:
        async with gateway(Faults(), store=str(path)) as live:
            await live.post(prompt="CANARY", justitia={"agent": "a"})
            await live.post(True, messages=[{"role": "user", "content": "CANARY"}])
            await live.rests()

    run(doing())
    for file in tmp_path.iterdir():
        assert b"CANARY" not in file.read_bytes()


def test_an_agent_of_the_same_name_is_another_agent(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def doing() -> None:
        async with gateway(Faults(), store=str(path)) as live:
            for kind in ("K", "L"):
                await live.post(justitia={"agent": "a", "kind": kind, "inferences": 1})
            await live.rests()
            assert [agent.kind for agent in read(path)] == ["K", "L"]

    run(doing())


TENANTS = [{"name": "t", "keys": ["T"], "weight": 2}, {"name": "u", "keys": ["U"]}]


@pytest.mark.parametrize("tenants", [[], TENANTS])
def test_clocks_tags_and_service_go_on_where_they_were(
    tmp_path: Path, tenants: list[dict[str, Any]]
) -> None:
    more: dict[str, Any] = {"store": str(tmp_path / "x.db"), "tenants": tenants}
    headers = [{"authorization": f"Bearer {t['keys'][0]}"} for t in tenants] or [{}]

    async def seen(live: Any) -> list[Any]:
        found = []
        for header in headers:
            for name in ("a", "b", "c"):
                answer = await live.http.get(f"/v1/agents/{name}", headers=header)
                told = answer.json()
                told.pop("reference_finish", None)
                told.pop("promised_finish", None)
                found.append(told)
        policy = live.dispatcher.agents.policy.inner
        clock = policy.among if tenants else policy.clock
        return [found, clock.value, clock.active, dict(clock._members).keys()]

    async def doing() -> None:
        async with gateway(Faults(), **more) as live:
            for header in headers:
                for name, cost in (("a", 1000), ("b", 70), ("c", 5000)):
                    await live.http.post(
                        "/v1/agents", json={"id": name, "cost": cost}, headers=header
                    )
                    for stream in (True, False):
                        await live.http.post(
                            "/v1/completions",
                            json=request(
                                stream=stream, max_tokens=5, justitia={"agent": name}
                            ),
                            headers=header,
                        )
            await live.rests()
            before = await seen(live)
            memory = live.gateway.memory
            assert memory is not None
            await memory.store.flushed()
            # As it would be after kill -9: the file as it is now, and nothing more.
            base = sqlite3.connect(more["store"])
            copy = sqlite3.connect(tmp_path / "killed.db")
            base.backup(copy)
            base.close()
            copy.close()
        for store in ("killed.db", "x.db"):
            again = {**more, "store": str(tmp_path / store)}
            async with gateway(Faults(), **again) as live:
                assert await seen(live) == before

    run(doing())


def test_another_policy_begins_anew_and_the_log_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")

    async def doing() -> None:
        async with gateway(Faults(), store=path) as live:
            await live.http.post("/v1/agents", json={"id": "a", "cost": 5})
            await live.post()
            await live.rests()
        async with gateway(Faults(), store=path, adapter={"policy": "vtc"}) as live:
            assert len(live.dispatcher.agents) == 0
            assert len(read(path)) == 1

    run(doing())


def test_a_damaged_state_is_not_used(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    made = settings(["http://127.0.0.1:9"], store=path)
    memory = Memory(path, made)
    memory.store.keep(memory._fingerprint, '[[0], [["os:system", {}]]]')
    memory.store.close()
    again = Memory(path, made)
    assert again.watched is None
    again.store.close()


def test_killed_under_load_ten_times_nothing_finished_is_lost(tmp_path: Path) -> None:
    file, path = tmp_path / "justitia.toml", tmp_path / "x.db"

    async def serve_and_kill(url: str, done: set[str], round_: int) -> None:
        file.write_text(
            f'[gateway]\nstore = "{path}"\nport = 0\nlogs = "json"\n'
            f'engines = [{{url = "{url}", capacity = 2000}}]\n'
        )
        port = await free_port()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "justitia", "gateway", "--config", str(file),
            f"--port={port}",
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, trust_env=False) as http:
            for _ in range(600):
                with suppress(httpx.TransportError):
                    if (await http.get("/readyz")).status_code == 200:
                        break
                await asyncio.sleep(0.05)
            enough = asyncio.Event()
            finished = 0

            async def ask(number: int) -> None:
                nonlocal finished
                name = f"a{round_}-{number}"
                body = request(
                    stream=number % 2 == 0, max_tokens=number % 5 + 1,
                    justitia={"agent": name},
                )  # fmt: skip
                answer = await http.post("/v1/completions", json=body)
                if answer.status_code == 200 and (
                    number % 2 or answer.text.endswith("[DONE]\n\n")
                ):
                    done.add(name)
                    finished += 1
                    if finished == 20:
                        enough.set()

            tasks = [asyncio.create_task(ask(number)) for number in range(60)]
            await asyncio.wait_for(enough.wait(), 60)
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def doing() -> None:
        done: set[str] = set()
        async with listening(plain(Faults().app)) as port:
            for round_ in range(10):
                await serve_and_kill(f"http://127.0.0.1:{port}", done, round_)
                agents = read(path)
                names = [agent.id.split("/")[1] for agent in agents]
                assert len(set(names)) == len(names)  # nor doubled
                assert done <= set(names)
        assert len(done) >= 200
        made = settings(["http://127.0.0.1:9"], store=str(path))
        memory = Memory(str(path), made)
        assert memory.watched is not None
        known = memory.agents(memory.watched)
        for name in done:
            told = known.describe(f"everybody/{name}")
            number = int(name.split("-")[1])
            tokens = number % 5 + 1
            assert told is not None
            assert told["delivered"] >= 7 * tokens + tokens * (tokens + 1) // 2 - 20
        memory.store.close()

    run(doing(), seconds=240)


async def free_port() -> int:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = int(server.sockets[0].getsockname()[1])
    server.close()
    await server.wait_closed()
    return port
