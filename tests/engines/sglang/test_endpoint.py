"""The front end's side beside schedulers that are made up."""

import asyncio
import json
import subprocess
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch and SGLang warn while they are imported
    pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")
    import httpx
    from fastapi import FastAPI
    from sglang.srt.managers.communicator import FanOutCommunicator
    from sglang.srt.managers.io_struct import (
        GetInternalStateReq,
        GetInternalStateReqOutput,
    )

    from justitia.engines.sglang import endpoint
    from justitia.engines.sglang.control import KEY, MARK
    from justitia.engines.sglang.endpoint import (
        FrontEnd,
        attach,
        launched,
        prove_first,
    )

STATE = {
    "status": 200, "version": "1", "policy": "justitia", "admission": "none",
    "capacity_tokens": 2048, "engine_version": "0.5.23",
}  # fmt: skip


class Manager:
    """SGLang's manager with its own communicator; answers when it is told to."""

    def __init__(self, ranks: int = 1) -> None:
        self.asked: list[GetInternalStateReq] = []
        self.get_internal_state_communicator = FanOutCommunicator[Any](
            self.asked.append, ranks
        )

    def auto_create_handle_loop(self) -> None:
        pass

    def answer(self, place: int, **told: object) -> None:
        """Answer a question as one rank does."""
        (mark, _, rest) = (self.asked[place].rid or "").partition("/")
        assert f"{mark}/" == MARK
        ours = {"call": json.loads(rest)["call"], "told": {**STATE, **told}}
        self.reply({KEY: ours})

    def reply(self, state: dict[str, object]) -> None:
        output = GetInternalStateReqOutput(internal_state=state)
        self.get_internal_state_communicator.handle_recv(output)


def run(doing: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(doing(), 60))


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_every_rank_answers() -> None:
    async def doing() -> None:
        manager = Manager(ranks=2)
        asking = asyncio.ensure_future(FrontEnd(manager).ask("state", {}))
        await turn()
        manager.answer(0, rank=0)
        manager.answer(0, rank=1)
        assert [told["rank"] for told in await asking] == [0, 1]

    run(doing)


def test_who_goes_away_leaves_no_answer_to_the_next() -> None:
    async def doing() -> None:
        manager = Manager()
        front = FrontEnd(manager)
        first = asyncio.ensure_future(front.ask("state", {}))
        await turn()
        first.cancel()
        second = asyncio.ensure_future(front.ask("dismiss", {"id": "a"}))
        await turn()
        assert len(manager.asked) == 1  # SGLang asks one after the other
        manager.answer(0, of="first")
        await turn()
        manager.answer(1, of="second")
        assert (await second)[0]["of"] == "second"

    run(doing)


def test_measures_are_asked_for_once_at_a_time() -> None:
    async def doing() -> None:
        manager = Manager()
        front = FrontEnd(manager)
        asking = [asyncio.ensure_future(front.ask("measures", {})) for _ in range(5)]
        await turn()
        asking[0].cancel()
        manager.answer(0)
        assert len([await one for one in asking[1:]]) == 4
        assert len(manager.asked) == 1
        again = asyncio.ensure_future(front.ask("measures", {}))
        await turn()
        manager.answer(1)
        await again

    run(doing)


@pytest.mark.parametrize("state", [{}, {KEY: STATE}, {KEY: {"call": 7, "told": STATE}}])
def test_another_answer_is_none(state: dict[str, object]) -> None:
    async def doing() -> None:
        manager = Manager()
        asking = asyncio.ensure_future(FrontEnd(manager).ask("state", {}))
        await turn()
        manager.reply(state)
        with pytest.raises(RuntimeError, match="did not answer"):
            await asking

    run(doing)


# When the schedulers are ready -------------------------------------------------------


class Watchdog:
    stopped = False

    def stop(self) -> None:
        self.stopped = True


def told(*infos: dict[str, Any], children: list[int] | None = None) -> tuple[Any, ...]:
    schedulers = Namespace(scheduler_infos=list(infos), all_child_pids=children or [])
    return Manager(), None, None, schedulers, Watchdog()


ARGS = Namespace(dp_size=1, tokenizer_worker_num=1, enable_metrics=True)


def test_it_says_what_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    launched(told({KEY: STATE}, {KEY: STATE}), object, ARGS)
    assert capsys.readouterr().out == (
        "justitia 1 is in force: policy justitia, admission none, 2,048 KV tokens, "
        "SGLang 0.5.23\n"
    )


def test_a_scheduler_without_the_policy_ends_with_the_others() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    result = told({KEY: STATE}, {}, children=[child.pid, 2**22 + 7])
    with pytest.raises(SystemExit, match="not in force, so this server stops") as it:
        launched(result, object, ARGS)
    assert it.value.code  # so that the process fails
    assert result[4].stopped
    assert child.wait(60) != 0
    child.communicate()


def test_a_node_that_only_computes_has_no_front_end() -> None:
    _, *rest = told({KEY: STATE})
    launched((None, *rest), object, ARGS)


def with_app(monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    app = FastAPI()
    monkeypatch.setitem(sys.modules, endpoint.HTTP_SERVER, Namespace(app=app))  # type: ignore[arg-type]
    return app


def paths(app: FastAPI) -> set[str]:
    return {route.path for route in app.router.routes}


def test_a_server_gets_the_routes_before_it_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = with_app(monkeypatch)
    without = Namespace(**{**vars(ARGS), "enable_metrics": False})
    launched(told({KEY: STATE}), object, without)
    assert {"/justitia/agents", "/justitia/agents/{id:path}"} < paths(app)
    assert "/metrics" not in paths(app)


def test_several_tokenizer_workers_get_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = with_app(monkeypatch)
    several = Namespace(**{**vars(ARGS), "tokenizer_worker_num": 2})
    launched(told({KEY: STATE}), object, several)
    assert "/justitia/state" not in paths(app)
    assert "its state is in /server_info" in capsys.readouterr().out


def test_what_a_client_asks_comes_from_the_desk() -> None:
    async def doing() -> None:
        app, manager = FastAPI(), Manager(ranks=2)
        attach(app, FrontEnd(manager), metrics=False)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as one:
            asking = asyncio.ensure_future(one.delete("/justitia/agents/a%2Fb"))
            while not manager.asked:
                await asyncio.sleep(0.01)
            manager.answer(0, id="a/b", aborted=1)
            manager.answer(0, id="a/b", aborted=2)
            answer = (await asking).json()
        assert (answer["id"], answer["aborted"]) == ("a/b", 3)
        asked = json.loads((manager.asked[0].rid or "")[len(MARK) :])
        assert (asked["verb"], asked["given"]) == ("dismiss", {"id": "a/b"})

    run(doing)


@pytest.mark.parametrize("well", [True, False])
def test_with_data_parallelism_all_are_asked_before_it_listens(
    well: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[object] = []

    def end(code: int) -> None:
        ended.append(code)
        raise KeyboardInterrupt  # as good as gone

    async def doing() -> None:
        app, manager = FastAPI(), Manager(ranks=2)
        prove_first(app, FrontEnd(manager), lambda: ended.append("children"))

        async def start() -> None:
            async with app.router.lifespan_context(app):
                ended.append("listens")

        starting = asyncio.ensure_future(start())
        await turn()
        for _ in range(2):
            manager.answer(0) if well else manager.reply({})
        await starting

    monkeypatch.setattr("os._exit", end)
    with suppress(KeyboardInterrupt):
        run(doing)
    told = capsys.readouterr()
    if well:
        assert ended == ["listens"]
        assert told.out.count("is in force") == 2
    else:
        assert ended == ["children", 1]
        assert "not in force, so this server stops" in told.err
