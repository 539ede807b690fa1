"""`justitia run --engine openai`: workloads on servers, some of which fail."""

import asyncio
import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.cli import main
from justitia.engines import EngineError, RunRecord
from justitia.engines.sim import SimEngine, load_preset
from justitia.flags import DONE, RUN_FAILED, USAGE
from justitia.gateway.openai import OpenAIEngine
from justitia.gateway.openai.answers import Answer
from justitia.gateway.openai.prompts import Ids, Words, measured
from justitia.gateway.openai.run import ServedRun
from justitia.gateway.settings import EngineSettings, Limits
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, InferenceSpec
from tests.engines.build import make_agent
from tests.gateway.model_server import Model, length, serving

KEY = "CANARY-OF-A-KEY"


@contextmanager
def engine_of(
    *models: Model, limits: Limits | None = None, model: str | None = None, **more: Any
) -> Iterator[OpenAIEngine]:
    with serving_all(models) as urls:
        settings = [EngineSettings(url=url, **more) for url in urls]
        yield OpenAIEngine(settings, limits=limits, model=model)


@contextmanager
def serving_all(models: Sequence[Model]) -> Iterator[list[str]]:
    if not models:
        yield []
        return
    with serving(models[0]) as url, serving_all(models[1:]) as urls:
        yield [url, *urls]


def run_on(
    model: Model,
    agents: Sequence[AgentSpec],
    policy: str = "justitia",
    tags: str = "agent",
    **more: Any,
) -> RunRecord:
    with engine_of(model, **more) as engine:
        return engine.run(agents, create(policy), Oracle(), tags=tags)


# What is sent and what is told --------------------------------------------------------


def agents_of(count: int) -> list[AgentSpec]:
    """Agents of two stages, no two inferences of which have prompts of one length."""
    return [
        make_agent(
            f"a{k}",
            (20 + k, 2 + k % 4 * 3),
            (50 + k, 3),
            (80 + k, 2 + k % 3),
            stages=(0, 0, 1),
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("tags", ["agent", "stage"])
def test_a_run_is_complete_and_exact(tags: str) -> None:
    model, agents = Model(bundle=2), agents_of(8)
    ended: list[int] = []
    with engine_of(model) as engine:
        record = engine.run(
            agents,
            create("justitia", tags=tags),
            Oracle(),
            tags=tags,
            progress=ended.append,
        )
        about = engine.about()
    assert sum(ended) == 24
    assert {one.outcome for one in record.inferences} == {"finished"}
    for spec, agent in zip(agents, record.agents, strict=True):
        assert agent.cost == spec.cost(create("justitia").cost_model)
        assert agent.reference_finish is not None
        assert agent.finish is not None
    for one in record.inferences:
        assert one.start_step is not None
        assert one.finish_step is not None
        assert one.start_step <= one.finish_step < record.steps
        assert one.start is not None
        assert one.finish is not None
        assert one.start < one.finish
    planned = {
        (one.prompt_tokens, one.decode_tokens)
        for spec in agents
        for one in spec.inferences
    }
    assert planned == {(i.prompt_tokens, i.decode_tokens) for i in record.inferences}
    assert planned == {
        (len(body["prompt"]), body["max_tokens"])
        for body in model.bodies
        if body["max_tokens"] > 1
    }
    assert record.remarks == ()
    assert record.utilisation is not None
    assert 0 < record.utilisation <= 1
    assert (about["name"], about["server"], about["version"]) == (
        ("openai", "vllm", "9.9")
    )
    assert (about["capacity_tokens"], about["context_tokens"]) == (64 * 16, 512)
    if tags == "stage":
        assert record.lag is not None
        assert record.lag.excess <= 0


@pytest.mark.parametrize(
    "policy", ["justitia", "justitia-c", "fcfs", "agent-fcfs", "sjf", "srjf", "vtc"]
)
def test_one_after_the_other_is_the_order_of_sim(policy: str) -> None:
    agents = agents_of(6)
    model = Model()
    record = run_on(model, agents, policy, slots=1)
    assert model.most_running == 1
    preset = replace(load_preset("tiny-llama-cpu"), max_num_seqs=1)
    theirs = SimEngine(preset).run(agents, create(policy), Oracle())

    def in_order(one: RunRecord) -> list[str]:
        return [i.id for i in sorted(one.inferences, key=lambda i: i.start_step or 0)]

    assert in_order(record) == in_order(theirs)
    lengths = {
        f"{spec.id}/{one.id}": one.prompt_tokens
        for spec in agents
        for one in spec.inferences
    }
    assert model.lengths == [lengths[name] for name in in_order(theirs)]


def test_no_more_is_sent_than_there_is_room_for() -> None:
    agents = [make_agent(f"a{k}", (90, 10)) for k in range(20)]
    model = Model(blocks=21, gathers=3)  # 320 tokens
    record = run_on(model, agents)
    assert model.most_running == 3
    assert record.utilisation is not None
    assert 0.5 < record.utilisation <= 1


def test_prompts_begin_alike_in_no_two_requests() -> None:
    model = Model()
    with engine_of(model) as engine:
        for _ in range(2):
            engine.run(agents_of(5), create("fcfs"), Oracle())
    begun = [tuple(body["prompt"][:16]) for body in model.bodies]
    assert len(set(begun)) == len(begun) == 31


def test_two_servers_share_a_run() -> None:
    models = (Model(), Model())
    with engine_of(*models, slots=2) as engine:
        record = engine.run(agents_of(6), create("justitia"), Oracle())
        assert engine.about()["slots"] == 4
    assert {one.outcome for one in record.inferences} == {"finished"}
    assert all(model.lengths for model in models)
    assert sum(len(model.lengths) for model in models) == 18


def test_agents_that_are_cancelled_leave_the_server() -> None:
    model, given_up = Model(hangs=5), make_agent("a", (5, 4), (6, 3), stages=(0, 1))
    agents = [
        replace(given_up, cancel_after=0.5),
        AgentSpec("b", (InferenceSpec(7, 2),), arrival=1e6),
    ]
    with engine_of(model) as engine:
        record = engine.run(agents, create("justitia"), Oracle())
        assert model.rests()  # nobody reads on
    assert [agent.outcome for agent in record.agents] == ["cancelled", "finished"]
    assert model.lengths[-1] == 7
    assert 6 not in model.lengths
    assert record.agents[1].finish is not None
    assert record.agents[1].finish >= 1e6  # the time without work was skipped


def test_what_has_no_room_is_refused_and_lengths_can_be_made_to_fit() -> None:
    agents = [make_agent("a", (500, 30)), make_agent("b", (5, 3))]
    with engine_of(Model(blocks=101)) as engine:
        record = engine.run(agents, create("fcfs"), Oracle())
        assert [agent.outcome for agent in record.agents] == ["refused", "finished"]
        assert "the engine has room for 512" in record.agents[0].reason
        fitted = engine.fit(agents)
    assert fitted is not None
    assert 0.9 < fitted.scale < 1


# Servers that count otherwise ---------------------------------------------------------


def test_what_was_really_produced_is_recorded() -> None:
    """A server that is neither takes texts, and ends them when it likes."""
    model = Model("somebody", ends=3, context=None)
    agents = [make_agent("a", (40, 8)), make_agent("b", (40, 2))]
    record = run_on(model, agents, capacity=1000)
    counted = [(one.prompt_tokens, one.decode_tokens) for one in record.inferences]
    long, short = [body for body in model.bodies if body["max_tokens"] > 1]
    assert counted == [(length(long), 3), (length(short), 2)]
    assert record.agents[0].cost == length(long) * 3 + 6
    assert record.agents[0].reference_finish is not None
    assert "ignore_eos" not in long
    assert 35 <= length(long) <= 45
    (remark,) = record.remarks
    assert "of 2 inferences had other tokens than the workload says" in remark
    assert "5 of outputs for 10" in remark


def test_what_is_not_counted_is_taken_from_the_parts() -> None:
    model = Model("somebody", counts=False)
    record = run_on(model, [make_agent("a", (40, 8))], slots=2)
    assert [one.decode_tokens for one in record.inferences] == [8]
    assert record.utilisation is None
    assert record.remarks == (
        "Of 1 inferences the server did not count the tokens: the parts in which they "
        "came are counted.",
    )


@pytest.mark.parametrize("each", [1, 1.5, 4])
@pytest.mark.parametrize("more", [0, 1, 5])
def test_texts_are_as_long_as_they_are_to_be(each: float, more: int) -> None:
    def tokens(count: int) -> int:
        return round(count * each) + more

    prompts = measured((8, tokens(8)), (40, tokens(40)))
    for wanted in (20, 100, 333):
        count = len(prompts.make(5, wanted).split())
        assert abs(tokens(count) - wanted) <= each
    assert prompts.make(5, 1) == prompts.make(5, 2 - 1) != ""


def test_prompts_of_neighbours_differ() -> None:
    for prompts in (Ids(), Words()):
        made = [str(prompts.make(number, 4)) for number in range(1000)]
        assert len(set(made)) == 1000


# Servers at fault ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "fault", "message"),
    [
        (3, "400", "answers 400 to /v1/completions: as told"),
        (3, "401", "answers 401 to /v1/completions: as told (its key goes in"),
        (3, "500", "answers 500 to /v1/completions: as told"),
        (3, "die", "is lost, with 1 tokens of its answer to 'a1/1': "),
        (3, "error", "broke off its answer to 'a1/1': no more"),
        (0, "hang", "was silent for 0.3 seconds in the answer to 'a0/0'"),
    ],
)
def test_a_server_at_fault_ends_the_run(number: int, fault: str, message: str) -> None:
    model = Model(fails={number: fault})
    with engine_of(model, slots=1) as engine:
        engine.about()
        engine.limits = Limits(idle_seconds=0.3 if fault == "hang" else 300)
        with pytest.raises(EngineError) as failed:
            engine.run(agents_of(6), create("fcfs"), Oracle())
        assert model.rests()
    assert message in str(failed.value)
    assert len(model.lengths) == number + 1


def test_when_several_fail_at_once_one_is_told_and_no_other_is_unheard() -> None:
    unheard: list[object] = []

    async def failing(number: int) -> None:
        raise EngineError(f"{number}")

    async def doing() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unheard.append(context))
        run = ServedRun.__new__(ServedRun)
        run._tasks, run._failure, run._wake = set(), None, asyncio.Event()
        tasks = [asyncio.create_task(failing(number)) for number in range(3)]
        for task in tasks:
            task.add_done_callback(run._over)
        await run._wake.wait()
        assert str(run._failure) == "0"
        del tasks, task, run
        gc.collect()

    asyncio.run(doing())
    assert not unheard


@given(st.lists(st.integers(-1, 20) | st.none(), max_size=12))
def test_tokens_are_told_of_once_whatever_a_server_says(said: list[int | None]) -> None:
    events = [{"choices": [{"text": "w"}]} for _ in said]
    for event, count in zip(events, said, strict=True):
        if count is not None:
            event["usage"] = {"completion_tokens": count}  # type: ignore[assignment]
    answer, told, most = Answer(), 0, 0

    def produced(tokens: int) -> None:
        nonlocal told
        assert tokens > 0
        told += tokens

    for event in events:
        answer._take(b"data: %s\n\n" % json.dumps(event).encode(), produced)
        most = max(most, answer.tokens)
        assert told == most


def test_what_had_not_begun_is_sent_again() -> None:
    model = Model(fails={2: "503"})
    record = run_on(model, agents_of(3))
    assert {one.outcome for one in record.inferences} == {"finished"}
    assert record.preemptions == sum(one.preempted for one in record.inferences) == 1
    assert len(model.lengths) == 10
    assert record.remarks == ("Requests sent again, since a connection was lost: 1.",)


def test_a_server_that_is_gone_ends_the_run_and_one_of_two_does_not() -> None:
    gone = Model(fails=dict.fromkeys(range(9), "503"))
    with engine_of(gone, slots=2) as engine:
        engine.about()
        gone.well = False
        with pytest.raises(EngineError, match=r"is gone: .*503"):
            engine.run(agents_of(6), create("fcfs"), Oracle())
    gone = Model(fails=dict.fromkeys(range(9), "503"))
    with engine_of(gone, Model(), slots=2) as engine:
        engine.about()
        gone.well = False
        record = engine.run(agents_of(6), create("fcfs"), Oracle())
    assert {one.outcome for one in record.inferences} == {"finished"}
    assert 1 <= len(gone.lengths) <= 2


def test_a_server_that_comes_back_is_used_again() -> None:
    first, other = Model(fails={0: "503"}), Model()
    with engine_of(first, other, slots=1) as engine:
        engine.about()
        engine.limits = Limits(health_seconds=0.01)
        first.well = False
        ended = 0

        def progress(count: int) -> None:
            nonlocal ended
            ended += count
            first.well = ended >= 10  # by then it was found to be gone

        record = engine.run(agents_of(60), create("fcfs"), Oracle(), progress=progress)
    assert {one.outcome for one in record.inferences} == {"finished"}
    assert len(first.lengths) > 1


def test_a_server_that_goes_on_failing_ends_the_run() -> None:
    with (
        engine_of(Model(fails=dict.fromkeys(range(99), "503"))) as engine,
        pytest.raises(EngineError, match="is lost, with 0 tokens"),
    ):
        engine.run(agents_of(6), create("fcfs"), Oracle())


@pytest.mark.parametrize(
    ("knobs", "more", "message"),
    [
        ({"key": KEY}, {}, "answers 401 to /v1/models (its key goes in a variable"),
        ({"well": False}, {}, "answers 503 to /v1/models"),
        ({}, {"model": "other"}, "does not serve model 'other'; it serves: ['m']"),
        ({"models": ("x", "y")}, {}, "serves 2 models: ['x', 'y']; name one (--model)"),
        ({"models": ()}, {"slots": 1}, "serves 0 models: none; name one"),
        ({"kind": "somebody"}, {}, "does not say how much its cache holds: give its"),
        ({"blocks": 0}, {}, "does not say how much its cache holds: give its"),
    ],
)
def test_a_server_that_cannot_be_used_is_told(
    knobs: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with (
        engine_of(Model(**knobs), **more) as engine,
        pytest.raises(EngineError) as failed,
    ):
        engine.about()
    assert message in str(failed.value)


# The command --------------------------------------------------------------------------

FEW = ("run", "--engine=openai", "--agents=4", "--policy=justitia,vtc", "--seed=3")
DENSE = "--arrivals=burst"


def test_the_command_and_its_json(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    model, file, page = Model(key=KEY), tmp_path / "a.json", tmp_path / "a.html"
    with serving(model) as url:
        words = (*FEW, DENSE, f"--url={url}/v1/", "--key-env=THE_KEY")
        assert main([*words, f"--json={file}", f"--report={page}"]) == DONE
    out, err = capsys.readouterr()
    assert out.startswith("justitia ")
    assert f"on {url} (vllm 9.9), model m (512 tokens, 1,024 KV tokens),\n" in out
    assert "admission predicted, preemption recompute\n" in out
    assert err == "justitia: done (1 of 2)\nvtc: done (2 of 2)\n"
    content = json.loads(file.read_text())
    assert content["engine"]["name"] == "openai"
    assert content["engine"]["url"] == url
    assert content["engine"]["server"] == "vllm"
    assert 0 < content["engine"]["scaled"] < 1
    for run in content["runs"]:
        assert run["remarks"] == []
        assert len(run["agents"]) == 4
        assert {one["outcome"] for one in run["inferences"]} == {"finished"}
        assert all(one["decode_tokens"] >= 1 for one in run["inferences"])
    assert "--key-env THE_KEY" in page.read_text()
    for text in (out, err, file.read_text(), page.read_text()):
        assert KEY not in text


def test_remarks_are_below_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(Model("somebody", ends=3)) as url:
        assert main([*FEW, DENSE, f"--url={url}", "--slots=3"]) == DONE
    out = capsys.readouterr().out
    assert f"on {url} (openai of a version it does not tell), model m" in out
    assert "(512 tokens, unknown KV tokens)" in out
    assert "inferences had other tokens than the workload says" in out
    assert all(len(line) <= 80 for line in out.splitlines()[3:])


def test_a_servers_complaint_shows_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says the key that it was given, and so would we."""
    monkeypatch.setenv("THE_KEY", "CANARY-WRONG")
    with serving(Model(key=KEY, is_listed=True)) as url:
        words = [*FEW, f"--url={url}", "--key-env=THE_KEY"]
        assert main(words) == RUN_FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert "answers 401 to /v1/completions: not Bearer [key] (its key goes in" in err
    assert "CANARY" not in err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), USAGE, "--url: must be given with engine openai: http://127.0.0.1:8000"),
        (("--url=ftp://x",), USAGE, "--url: must be a server's, http://127.0.0.1:8"),
        (("--url=http://a:b@x",), USAGE, "--url: must have no user and password in it"),
        (("--url=http://x", "--slots=0"), USAGE, "--slots: must be greater than or"),
        (("--url=http://x", "--capacity=x"), USAGE, "--capacity: must be a valid"),
        (
            ("--url=http://x", "--key-env=NO_KEY"),
            USAGE,
            "variable NO_KEY, for a key, is",
        ),
        (("--url=http://x", "--admission=max"), USAGE, "--admission: must be one of"),
        (
            ("--url=http://127.0.0.1:9", "--capacity=100"),
            RUN_FAILED,
            "server http://127.0.0.1:9 cannot be used: ConnectError",
        ),
    ],
)
def test_what_it_cannot_run_with_is_told(
    words: tuple[str, ...],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*FEW, *words]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"justitia: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "word", ["--url=http://x", "--slots=3", "--capacity=9", "--key-env=A"]
)
def test_other_engines_have_no_servers(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", word]) == USAGE
    assert "is for engine openai, servers that run already" in capsys.readouterr().err
