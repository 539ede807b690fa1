"""What the page is told: whose agents, in which order, with which numbers."""

import asyncio
import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.gateway import overview as module
from justitia.gateway.app import Gateway
from justitia.gateway.errors import GatewayError
from justitia.gateway.loading import GatewaySettingsError, load
from justitia.gateway.outlook import Outlook
from justitia.gateway.shares import Shares
from justitia.policy import VirtualClock
from tests.gateway.build import call
from tests.gateway.fault_server import Faults
from tests.gateway.live import gateway, run, settings

TENANTS = [
    {"name": "acme", "keys": ["key-a"], "weight": 3},
    {"name": "beta", "keys": ["key-b"]},
]


def made(capacity: int = 100, **more: Any) -> Gateway:
    """Return a gateway whose only engine is up, though there is none."""
    one = Gateway(
        settings(["http://127.0.0.1:9"], engine={"capacity": capacity}, **more)
    )
    for engine in one.dispatcher.fleet:
        one.dispatcher.up(engine)
    return one


def told(one: Gateway, viewer: str | None = None) -> dict[str, Any]:
    one.overview._views.clear()
    state: dict[str, Any] = json.loads(asyncio.run(one.overview.told(viewer)))
    return state


# Agents -------------------------------------------------------------------------------

mixed = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 40), st.sampled_from("ab")),
    min_size=1, max_size=30,
)  # fmt: skip


@given(mixed, st.sampled_from(["justitia", "vtc", "fcfs"]), st.booleans())
def test_agents_stand_as_the_policy_sends_them(
    calls: list[tuple[int, int, str]], policy: str, tenants: bool
) -> None:
    more: dict[str, Any] = {"adapter": {"policy": policy}}
    if tenants:
        more["tenants"] = [{"name": n, "keys": [f"key-{n}"]} for n in "ab"]
    one = made(**more)
    for agent, most, tenant in calls:
        name = tenant if tenants else "everybody"
        one.dispatcher.submit(call(f"{tenant}{agent}", most=most, tenant=name))
    agents, owner = one.dispatcher.agents, one.dispatcher.agents.owner
    line = dict.fromkeys(owner(request) for request in agents.order())
    for viewer in (None, "a", "b") if tenants else (None,):
        state = told(one, viewer)
        prefix = f"agent/{viewer or ('' if tenants else 'everybody')}"
        expected = [str(one) for one in line if str(one).startswith(prefix)]
        rows = state["agents"]
        found = [row["id"] for row in rows if row["place"] is not None]
        if viewer is None:
            assert found == [one.split("/")[2] for one in expected]
        assert sorted(found) == sorted(one.split("/")[2] for one in expected)
        places = [row["place"] for row in rows if row["place"] is not None]
        assert places == list(range(1, len(places) + 1))
        waiting = sum(row["waiting"] for row in rows)
        assert viewer is not None or waiting == state["totals"]["waiting"]
        assert state["agents_left_out"] == 0
        runs = [row for row in rows if row["place"] is None]
        assert all(row["running"] and not row["waiting"] for row in runs)
        for row in rows:  # each is told of as it is when it is asked for alone
            alone = one.desk.describe(row["tenant"] or "everybody", row["id"])
            for field in ("kind", "tag", "waiting", "running", "delivered"):
                assert row[field] == alone[field]
            promised = alone["promised_finish"]
            if promised is None:
                assert row["latest"] is None
            else:
                assert row["latest"] == pytest.approx(promised["work"])


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 5)), min_size=1),
    st.integers(0, 500),
)
def test_many_untils_at_once_are_what_each_is_alone(
    agents: list[tuple[int, int]], work: int
) -> None:
    clock = VirtualClock()
    for number, (cost, weight) in enumerate(agents):
        clock.arrive(number, cost, weight)
    clock.serve(work)
    places = clock.places()
    assert len(places) == clock.active
    tags = [float(clock.tag(number)) for number in range(len(agents))]
    for largest in (max(tags), sorted(tags)[len(tags) // 2]):
        outlook = Outlook(float(clock.value), places, largest)
        for number, tag in enumerate(tags):
            if tag <= largest:
                expected = clock.until(clock.tag(number))
                assert outlook.until(tag) == pytest.approx(float(expected))


def test_no_more_are_told_of_than_a_thousand() -> None:
    one = made(capacity=2000)
    for number in range(1_500):
        one.dispatcher.submit(call(f"a{number}"))
    state = told(one)
    assert len(state["agents"]) == module.MOST_SHOWN
    assert state["agents_left_out"] == 500
    assert {row["place"] is None for row in state["agents"]} == {True, False}


def test_many_who_look_are_one() -> None:
    one = made()
    made_ = one.overview._made
    count = 0

    async def counted(viewer: str | None) -> bytes:
        nonlocal count
        count += 1
        return await made_(viewer)

    one.overview._made = counted  # type: ignore[method-assign]

    async def doing() -> None:
        views = await asyncio.gather(*[one.overview.told(None) for _ in range(20)])
        assert len(set(views)) == 1

    asyncio.run(doing())
    assert count == 1


def test_many_who_each_look_at_their_own_leave_time_for_others() -> None:
    one = made(tenants=TENANTS)
    took: list[tuple[float, float]] = []

    async def slow(viewer: str | None) -> bytes:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        took.append((began, time.monotonic()))
        return b""

    one.overview._made = slow  # type: ignore[method-assign]

    async def doing() -> None:
        viewers = ["acme", "beta", None] * 5
        await asyncio.gather(*[one.overview.told(viewer) for viewer in viewers])

    asyncio.run(doing())
    assert len(took) == 3
    for (began, ended), (again, _) in pairwise(took):
        assert again - ended >= 3.9 * (ended - began)


def test_an_agent_that_ends_while_it_is_told_of_is_left_out() -> None:
    one = made()
    for number in range(300):
        one.dispatcher.submit(call(f"a{number}", tenant="everybody"))

    async def doing() -> list[str]:
        task = asyncio.create_task(one.overview.told(None))
        for number in range(299, -1, -1):
            await asyncio.sleep(0)
            one.dispatcher.dismiss("everybody", f"a{number}")
            if task.done():
                break
        return [row["id"] for row in json.loads(await task)["agents"]]

    names = asyncio.run(doing())
    assert names == sorted(names, key=lambda name: int(name[1:]))
    assert len(names) < 300


# What has been ------------------------------------------------------------------------


def test_completions_by_kind_are_of_agents_that_ended() -> None:
    one = made(capacity=10_000)
    ring = one.overview._ended
    for number in range(200):
        made_ = call(f"a{number}", kind=f"k{number % 40}", inferences=1)
        one.dispatcher.submit(made_)
        one.dispatcher.produced(made_, 0, 3)
        one.dispatcher.finish(made_)
    kinds = told(one)["completions"]
    assert sum(kind["count"] for kind in kinds) == 200
    assert len(kinds) == module.MOST_KINDS + 1
    assert kinds[-1]["kind"] == "other"
    ring["t"].clear()
    ring["t"].extend(("k", float(seconds)) for seconds in range(1, 201))
    (kind,) = told(one)["completions"]
    assert (kind["count"], kind["mean"]) == (200, 100.5)
    assert (kind["p50"], kind["p99"]) == (100, 198)
    waits = call("waits")
    one.dispatcher.submit(waits)
    one.dispatcher.dismiss("t", "waits")  # it never ran
    assert told(one)["completions"] == [kind]


def test_the_lag_is_work_since_the_reference_was_through() -> None:
    one = made(capacity=10_000)
    late, other = call("late", prompt=10, most=10, cost=5), call("other", most=100)
    for each in (other, late):
        one.dispatcher.submit(each)
    assert told(one)["reference"]["lag"] == 0
    one.dispatcher.produced(other, 0, 50)
    state = told(one)
    clock = one.overview._watched.clock
    assert clock is not None
    by_id = {row["id"]: row for row in state["agents"]}
    served = float(clock.delivered)
    assert served == 10 * 50 + 50 * 51 / 2
    # The reference gave each half until the small one had its 5.
    assert by_id["late"]["lag"] == served - 10
    assert by_id["other"]["lag"] == 0
    assert state["reference"]["lag"] == served - 10
    assert state["reference"]["allowed"] == 10_000 * one.desk.steps


# Who sees what ------------------------------------------------------------------------


def test_a_tenant_sees_its_own_and_sums_of_the_rest() -> None:
    one = made(capacity=10_000, tenants=TENANTS, operator_key="key-o")
    mine = call("mine", tenant="acme", kind="report")
    theirs = call("SECRET-plan", tenant="beta", kind="SECRET-kind", inferences=1)
    for each in (mine, theirs):
        one.dispatcher.submit(each)
        one.dispatcher.produced(each, 0, 5)
    one.dispatcher.finish(theirs)
    one.dispatcher.submit(call("SECRET-two", tenant="beta"))
    one.overview.sample(1)
    state = told(one, "acme")
    assert "SECRET" not in json.dumps(state)
    assert "beta" not in json.dumps(state)
    assert [row["name"] for row in state["tenants"]] == ["acme", None]
    own, others = state["tenants"]
    assert (own["due"], others["due"]) == (0.75, 0.25)
    assert own["got"] == others["got"] == 0.5
    assert state["reference"] is None
    assert state["completions"] == []
    everything = told(one)
    assert {row["tenant"] for row in everything["agents"]} == {"acme", "beta"}
    assert [kind["kind"] for kind in everything["completions"]] == ["SECRET-kind"]
    assert isinstance(one.overview._watched.inner, Shares)


def viewer(one: Gateway, key: str | None) -> str | None:
    headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
    return one.tenants.viewer(headers)


def test_keys_say_who_looks() -> None:
    assert viewer(made(), None) is None
    both = made(tenants=TENANTS, operator_key="key-o")
    assert viewer(both, "key-a") == "acme"
    assert viewer(both, "key-o") is None
    with pytest.raises(GatewayError):  # it sends no requests
        both.tenants.of([(b"authorization", b"Bearer key-o")])
    alone = made(operator_key="key-o")
    assert viewer(alone, "key-o") is None
    assert alone.tenants.of([]) == "everybody"
    for one in (both, alone):
        for wrong in (None, "", "key-x", "key-A"):
            with pytest.raises(GatewayError) as refused:
                viewer(one, wrong)
            assert refused.value.status == 401


def test_the_operator_s_key_is_another_and_is_not_shown(tmp_path: Any) -> None:
    file = tmp_path / "justitia.toml"
    engine = '\n[[gateway.engines]]\nurl = "http://a:1"\n'
    tenant = '[[gateway.tenants]]\nname = "t"\nkeys = ["CANARY-1"]\n'

    def read(line: str, **variables: str) -> Any:
        file.write_text(f"[gateway]\n{line}{engine}{tenant}")
        return load({}, file=str(file), environment=variables)

    found = read('operator_key_env = "OPERATOR"', OPERATOR="CANARY-2")
    assert found.operator_key.get_secret_value() == "CANARY-2"
    assert "CANARY" not in f"{found!r}{found.model_dump_json()}"
    for line in (
        'operator_key = "CANARY-1"', 'operator_key = "CANARY 3"', "operator_key = 7",
        'operator_key_env = "OPERATOR"',
        'operator_key = "CANARY-4"\noperator_key_env = "OPERATOR"',
    ):  # fmt: skip
        with pytest.raises(GatewaySettingsError) as refused:
            read(line)
        assert "CANARY" not in str(refused.value)


def test_files_and_state_over_http() -> None:
    async def doing() -> None:
        async with gateway(Faults(), tenants=TENANTS) as live:
            for path in ("/", "/page.css", "/page.js", "/icon.svg"):
                answer = await live.http.get(path)
                assert answer.status_code == 200
                policy = answer.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'")
                assert "unsafe" not in policy
                assert "://" not in answer.text.replace(
                    "http://www.w3.org/2000/svg", ""
                )
            assert (await live.http.post("/")).status_code == 405
            refused = await live.http.get("/v1/state")
            assert refused.status_code == 401
            assert (await live.http.get("/v1/state?key=key-a")).status_code == 401
            answer = await live.http.get(
                "/v1/state", headers={"authorization": "Bearer key-a"}
            )
            assert answer.json()["viewer"] == "acme"
            assert answer.headers["cache-control"] == "no-store"

    run(doing())
