"""`justitia run` in this process: what it prints, writes and returns."""

import builtins
import json
import os
import stat
import sys
from pathlib import Path
from types import ModuleType

import pytest

from justitia import __version__, cli, running
from justitia.cli import main
from justitia.config import KEYS, RunSettings
from justitia.engines import EngineError
from justitia.engines.registry import PRESETS as PRESETS_OF
from justitia.engines.sim import PREEMPTIONS, RULES, preset_names
from justitia.flags import RUN_FAILED, USAGE
from justitia.policy import names
from justitia.workloads import AgentSpec, write_jsonl
from tests.face.builders import agents_file
from tests.face.conftest import Justitia

FEW = ("run", "--agents", "3")
REAL = {"vllm": "vLLM", "sglang": "SGLang"}
"""Engines that run in this process where they are installed."""


# Help ---------------------------------------------------------------------------------


def test_help_leads_a_newcomer_on(capsys: pytest.CaptureFixture[str]) -> None:
    pages = []
    for arguments in ([], ["--help"], ["-h"]):
        assert main(arguments) == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1] == pages[2]
    assert "run " in pages[0]
    assert "Start with: justitia run --agents 50" in pages[0]
    assert max(map(len, pages[0].splitlines())) <= 80


def test_help_of_run_names_every_setting_and_every_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--help"]) == 0
    page = capsys.readouterr().out
    flags = [key.replace("_", "-") for key in (*KEYS, "config")]
    assert all(f" --{flag} " in page for flag in flags)
    words = page.replace(", ", " ").replace(": ", " ").replace(". ", " ").split()
    for name in (*names(), *preset_names(), *RULES, *PREEMPTIONS, "agent", "stage"):
        assert name in words, name
    fields = RunSettings.model_fields
    assert all(f"{preset}" in page for preset in PRESETS_OF.values())
    for key in ("agents", "seed", "workload", "predictor"):
        assert f"{fields[key].default}" in page
    assert max(map(len, page.splitlines())) <= 80


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


# What cannot be used ------------------------------------------------------------------

POLICIES = ", ".join(names())
PRESETS = ", ".join(preset_names())
BAD = [
    ("--agents x", "--agents: must be a valid integer, not 'x'"),
    ("--agents 2.7", "--agents: must be a valid integer, not '2.7'"),
    ("--agents 0", "--agents: must be greater than or equal to 1, not '0'"),
    ("--agents -3", "--agents: must be greater than or equal to 1, not '-3'"),
    ("--agents 1e99", "--agents: must be a valid integer, not '1e99'"),
    (f"--agents {'9' * 30}", "--agents: must be less than or equal to 10000000, not"),
    (f"--seed {'9' * 5000}", "--seed: "),
    ("--seed 9223372036854775808", "--seed: must be less than or equal to 92233720"),
    ("--seed nan", "--seed: must be a valid integer, not 'nan'"),
    ("--jobs 0", "--jobs: must be greater than or equal to 1, not '0'"),
    ("--density 0", "--density: must be greater than or equal to 0.000001, not '0'"),
    ("--density -2", "--density: must be greater than or equal to 0.000001, not '-2'"),
    ("--density nan", "--density: must be "),
    ("--density 1e400", "--density: must be less than or equal to 1000000, not"),
    ("--load inf", "--load: must be less than or equal to 1000000, not 'inf'"),
    ("--load much", "--load: must be a valid number, not 'much'"),
    ("--density 1 --load 1", "--density and --load: give a density or a load, no"),
    ("--policy wfq", f"--policy: must be one of {POLICIES}, not 'wfq'"),
    ("--policy vtc --policy VTC", f"--policy: must be one of {POLICIES}, not 'VTC'"),
    ("--policy ,", f"--policy: must be one of {POLICIES}, not ''"),
    ("--policy é", f"--policy: must be one of {POLICIES}, not 'é'"),
    ("--tags both", "--tags: must be one of agent, stage, not 'both'"),
    ("--admission all", f"--admission: must be one of {', '.join(RULES)}, not 'all'"),
    ("--preemption no", f"--preemption: must be one of {', '.join(PREEMPTIONS)}, not"),
    ("--model x", "--model: is for a real engine; sim simulates a preset"),
    ("--engine vllm --model=", "--model: must not be empty"),
    ("--engine vllm --preemption swap", "--preemption: vllm recomputes what gives wa"),
    ("--engine vllm --admission lookahead", "--admission: must be one of none, prompt"),
    ("--engine sglang --admission prompt", "--admission: must be one of none, max, no"),
    ("--engine sglang --preemption swap", "--preemption: sglang recomputes what gives"),
    ("--engine vllm --preset no", "--preset: unknown preset 'no'; shipped are "),
    ("--engine tgi", "--engine: must be one of sim, vllm, sglang, openai, not 'tgi'"),
    ("--preset gpt", f"--preset: unknown preset 'gpt'; shipped are {PRESETS}; a file"),
    ("--preset ./no.toml", "--preset: cannot read preset './no.toml': "),
    ("--predictor no", "--predictor: no predictor 'no'; there are: oracle, noisy:"),
    ("--predictor noisy", "--predictor: no predictor 'noisy'; there are: oracle, n"),
    ("--predictor noisy:x", "--predictor: noisy:LAMBDA takes a number of at least 1"),
    ("--predictor noisy:0.5", "--predictor: the spread λ of noisy must be at least 1"),
    ("--predictor noisy:nan", "--predictor: the spread λ of noisy must be "),
    ("--workload no", "--workload: must be paper, or a file of agents or a folder of "),
    (f"--workload {'x' * 5000}", "--workload: must be paper, or a file of agents or "),
    ("--arrivals no", "--arrivals: must be one of poisson, burst, workload, or the f"),
    ("--arrivals workload", "paper: has no arrivals of its own"),
    ("--plot a.jpg", "a plot is a .png, .svg, .pdf file, not 'a.jpg'"),
    ("--plot png", "a plot is a .png, .svg, .pdf file, not 'png'"),
    ("--plot no/a.png", "no/a.png: cannot be written: No such file or directory"),
    ("--json no/a.json", "no/a.json: cannot be written: No such file or directory"),
    ("--json .", ".: cannot be written: Is a directory"),
    ("--json small.toml/a", "small.toml/a: cannot be written: Not a directory"),
    (f"--json {'x' * 300}", f"{'x' * 300}: cannot be written: File name too long"),
    ("--json --plot", 'Invalid value "--plot" for --json. It must be a file, or -; '),
    ("--json", 'Command "run" parameter --json requires an argument.'),
    ("--agents", 'Command "run" parameter --agents requires an argument.'),
    ("--agents 3 --agents 4", "Parameter --agents specified multiple times."),
    ("--agent 3", "Unknown option: --agent. Did you mean --agents?"),
    ("-x", "Unknown option: -x."),
    ("--no-agents", "Unknown option: --no-agents."),
    ("--empty-policy", "Unknown option: --empty-policy."),
    ("3", "Unused Tokens: ['3']."),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "message"), BAD)
def test_what_cannot_be_used_is_told_before_anything_runs(
    flags: str, message: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run_all", lambda *_, **__: pytest.fail("it ran"))
    ran = justitia("run", *flags.split(" "))
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.startswith(f"justitia: {message}")
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 600
    assert os.listdir() == ["small.toml"]


def test_the_variable_is_named_where_it_is_at_fault(justitia: Justitia) -> None:
    ran = justitia("run", environment={"JUSTITIA_AGENTS": "many"})
    assert ran.err == "justitia: JUSTITIA_AGENTS: must be a valid integer, not 'many'\n"
    ran = justitia("run", environment={"JUSTITIA_POLICY": "vtc,wfq"})
    assert ran.err.startswith(f"justitia: JUSTITIA_POLICY: must be one of {POLICIES}")
    assert justitia("run", "--policy", "vtc", "--agents", "2", environment={
        "JUSTITIA_AGENTS": "many"}).code == 0  # fmt: skip


def test_other_commands_are_told(justitia: Justitia) -> None:
    ran = justitia("walk")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(
        'justitia: Unknown command "walk". Available commands: run'
    )


@pytest.mark.parametrize(("engine", "name"), REAL.items())
def test_a_real_engine_that_is_not_installed_is_told_with_how_to(
    engine: str, name: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = f"justitia.engines.{engine}.version"
    monkeypatch.setattr(f"{version}.find_spec", lambda name: None)
    ran = justitia("run", "--engine", engine, "--model", "some/model")
    assert (ran.code, ran.out) == (RUN_FAILED, "")
    assert ran.err == (
        f"justitia: engine '{engine}' cannot be used here: {name} is not installed; "
        f"install it with: pip install 'justitia[{engine}]' "
        f"(without a GPU as docs/{engine}.md says)\n"
    )


@pytest.mark.parametrize(("engine", "name"), REAL.items())
@pytest.mark.parametrize("found", ["0.99.1", "0.5.15", "nightly"])
def test_a_real_engine_of_a_version_that_is_not_known_is_told(
    engine: str,
    name: str,
    found: str,
    justitia: Justitia,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = f"justitia.engines.{engine}.version"
    monkeypatch.setattr(f"{version}.find_spec", lambda name: 1)
    monkeypatch.setattr(f"{version}.version", lambda name: found)
    ran = justitia("run", "--engine", engine)
    assert (ran.code, ran.out) == (RUN_FAILED, "")
    assert f"engine '{engine}' cannot be used here: {name} {found} is " in ran.err
    assert f"pip install 'justitia[{engine}]'" in ran.err


@pytest.mark.parametrize("name", ["httpx", "prometheus_client"])
def test_what_servers_are_spoken_to_with_is_told_where_it_is_not_installed(
    name: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    ran = justitia("run", "--engine", "openai", "--url", "http://127.0.0.1:9")
    assert (ran.code, ran.out) == (RUN_FAILED, "")
    assert ran.err == (
        f"justitia: engine 'openai' needs {name}, which is not installed; install it "
        "with: pip install 'justitia[gateway]'\n"
    )


def test_what_the_gateway_needs_is_told_where_it_is_not_installed(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    ran = justitia("gateway", "--engine", "http://127.0.0.1:9")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "justitia: justitia gateway needs starlette, which is not installed; "
        "install it with: pip install 'justitia[gateway]'\n"
    )


@pytest.mark.parametrize("content", ["", "\n\n", "{}", "x", '{"agent_class": 3}'])
def test_a_workload_that_is_none_is_told(content: str, justitia: Justitia) -> None:
    Path("agents.jsonl").write_text(content)
    ran = justitia("run", "--workload", "agents.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("justitia: agents.jsonl")


def test_ids_given_twice_are_told(justitia: Justitia) -> None:
    line = Path(agents_file(n=1)).read_text()
    Path("agents.jsonl").write_text(line * 2)
    ran = justitia("run", "--workload", "agents.jsonl")
    assert ran.code == 2
    assert "line 2: id: 'agent-0' is the id of an agent already" in ran.err


@pytest.mark.parametrize("content", ["", "x", '{"timestamp": -1}', '{"time": 3}'])
def test_a_trace_that_is_none_is_told(content: str, justitia: Justitia) -> None:
    Path("trace.jsonl").write_text(content)
    ran = justitia(*FEW, "--arrivals", "trace.jsonl")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("justitia: trace.jsonl")


# What is printed ----------------------------------------------------------------------


def test_the_heading_says_how_to_run_it_again(justitia: Justitia) -> None:
    ran = justitia(*FEW, "--seed", "5", "--load", "0.35", "--predictor", "noisy:2")
    assert ran.out.splitlines()[:3] == [
        f"justitia {__version__} on sim, preset small (8,192 KV tokens), seed 5",
        f"3 agents with {_inferences(ran.out)} inferences (paper), arrivals poisson, "
        "density 0.5, load 0.35",
        "predictor noisy:2, tags agent, admission none, preemption recompute",
    ]


def test_a_line_for_each_policy_in_each_table_and_none_of_progress(
    justitia: Justitia,
) -> None:
    ran = justitia(*FEW, "--policy", "vtc", "--policy", "justitia")
    rows = [line.split()[0] for line in ran.out.splitlines()[3:] if line]
    assert [r for r in rows if r in names()] == ["vtc", "justitia"] * 3
    assert ran.err == "vtc: done (1 of 2)\njustitia: done (2 of 2)\n"
    assert "\x1b" not in ran.out + ran.err
    assert all(line == line.rstrip() for line in ran.out.splitlines())


def test_one_agent(justitia: Justitia) -> None:
    ran = justitia("run", "--agents", "1")
    assert ran.code == 0
    assert ran.out.splitlines()[1].startswith("1 agents with ")


def test_without_vtc_there_is_nothing_to_compare_with(justitia: Justitia) -> None:
    ran = justitia(*FEW, "--policy", "fcfs", "--json", "a.json")
    (run,) = json.loads(Path("a.json").read_text())["runs"]
    for key in ("gain_vs_vtc", "share_later", "worst_later", "worst_later_seconds"):
        assert run["summary"][key] is None
    assert _cells(ran.out, "Fairness")[:3] == ["fcfs", "-", "-"]


def test_agents_that_are_all_refused(justitia: Justitia) -> None:
    """B53, B54: the run ends, says so, and has no numbers where there are none."""
    workload = agents_file(prompt=9_000)
    ran = justitia("run", "--workload", workload, "--json", "a.json")
    assert ran.code == 0
    assert _cells(ran.out, "JCT")[1:] == [
        *"-" * 1,
        "164.2",
        *"-" * 5,
        "+57.5",
        "%",
        "4",
    ]
    assert _cells(ran.out, "Fairness")[1:] == ["-"] * 5
    assert _cells(ran.out, "Engine")[1:] == ["-", "0", "0", "0", "0", "8"]
    assert "The JCT of agents that are not done is in no column." in ran.out
    for run in json.loads(Path("a.json").read_text())["runs"]:
        summary = run["summary"]
        assert summary["refused"] == 8
        assert [k for k, value in summary.items() if value not in (None, 0, 8)] == []
        assert {agent["finish"] for agent in run["agents"]} == {None}
        assert {agent["outcome"] for agent in run["agents"]} == {"refused"}
        assert all("8192" in agent["reason"] for agent in run["agents"])


def test_agents_that_give_up_are_counted(justitia: Justitia) -> None:
    workload = agents_file(n=9, decode=500, cancel_after=6.0, arrivals=(0.0,) * 9)
    ran = justitia("run", "--workload", workload, "--policy", "fcfs")
    assert ran.code == 0
    assert _cells(ran.out, "JCT")[-1] == "9"
    assert _cells(ran.out, "Engine")[-2] == "9"


def test_a_workload_with_arrivals_of_its_own(justitia: Justitia) -> None:
    workload = agents_file(n=3, arrivals=(4.0, 0.0, 1.0))
    ran = justitia("run", "--workload", workload, "--json", "a.json")
    assert "arrivals workload, load 0.0" in ran.out
    content = json.loads(Path("a.json").read_text())
    assert content["workload"]["arrivals"] == "workload"
    assert content["workload"]["density"] is None
    agents = content["runs"][0]["agents"]
    assert {a["id"]: a["arrival"] for a in agents} == {
        "agent-0": 4.0, "agent-1": 0.0, "agent-2": 1.0,
    }  # fmt: skip


def test_a_file_with_a_strange_name(justitia: Justitia) -> None:
    agents_file("tést\udcff.jsonl")
    ran = justitia("run", "--workload", "tést\udcff.jsonl", "--json", "a.json")
    assert ran.code == 0
    assert "(tést\\udcff.jsonl)" in ran.out
    source = json.loads(Path("a.json").read_bytes())["workload"]["source"]
    assert source == "tést\udcff.jsonl"


# Files --------------------------------------------------------------------------------


def test_json_on_standard_output_is_all_that_is_there(justitia: Justitia) -> None:
    ran = justitia(*FEW, "--policy", "vtc", "--json", "-")
    assert ran.code == 0
    assert json.loads(ran.out)["schema"] == 1
    assert ran.err == "vtc: done (1 of 1)\n"
    justitia(*FEW, "--policy", "vtc", "--json", "a.json")
    assert Path("a.json").read_text() == ran.out


def test_what_cannot_be_written_is_told_before_the_run(justitia: Justitia) -> None:
    Path("closed").mkdir()
    Path("closed").chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access("closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    ran = justitia(*FEW, "--json", "closed/a.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "justitia: closed/a.json: cannot be written: Permission denied\n"


@pytest.mark.parametrize("before", [None, "something of old"])
@pytest.mark.parametrize(
    "error", [EngineError("it got stuck"), KeyboardInterrupt(), BrokenPipeError()]
)
def test_nothing_is_left_of_a_run_that_failed(
    before: str | None,
    error: BaseException,
    justitia: Justitia,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(running, "run_all", fail)
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    if before:
        Path("a.json").write_text(before)
    ran = justitia(*FEW, "--json", "a.json", "--plot", "a.svg")
    assert ran.out == ""
    if isinstance(error, EngineError):
        assert (ran.code, ran.err) == (1, "justitia: it got stuck\n")
    elif isinstance(error, KeyboardInterrupt):
        assert (ran.code, ran.err) == (130, "justitia: interrupted\n")
    else:
        assert (ran.code, ran.err) == (1, "")
    assert sorted(os.listdir()) == sorted(["small.toml"] + ["a.json"] * bool(before))
    assert not before or Path("a.json").read_text() == before


def test_a_policy_that_goes_wrong_is_named(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("justitia.policy.fcfs.FCFS.submit", submit)
    ran = justitia(*FEW, "--policy", "vtc", "--policy", "fcfs", "--json", "a.json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "vtc: done (1 of 2)\n"
        "justitia: policy 'fcfs' failed: ZeroDivisionError: division by zero\n"
    )
    assert not Path("a.json").exists()


# Plots --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "start"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")]
)
def test_a_plot_is_drawn_the_same_each_time(
    file: str, start: bytes, justitia: Justitia
) -> None:
    drawn = []
    for _ in range(2):
        ran = justitia(*FEW, "--policy", "vtc,justitia,srjf", "--plot", file)
        assert ran.code == 0
        drawn.append(Path(file).read_bytes())
    assert drawn[0].startswith(start)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--policy", "vtc"),
        ("--policy", "fcfs,sjf"),
        ("--policy", "justitia"),
        ("--policy", "vtc,justitia", "--workload", "refused.jsonl"),
        ("--policy", "vtc,justitia", "--workload", "at once.jsonl"),
        ("--workload", "$x_{漢.jsonl"),
    ],
)
def test_a_plot_of_whatever_there_is(
    arguments: tuple[str, ...], justitia: Justitia
) -> None:
    agents_file("refused.jsonl", prompt=9_000)
    write_jsonl("at once.jsonl", [AgentSpec("a", ()), AgentSpec("b", ())])
    agents_file("$x_{漢.jsonl")
    ran = justitia("run", "--agents", "3", *arguments, "--plot", "a.svg")
    assert ran.code == 0, ran.err
    assert Path("a.svg").stat().st_size > 1000


def test_without_matplotlib_the_extra_is_named(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object) -> ModuleType:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    ran = justitia(*FEW, "--plot", "a.png", "--policy", "vtc")
    assert (ran.code, ran.out) == (2, "")
    assert "needs matplotlib: pip install 'justitia[experiments]'" in ran.err
    assert not Path("a.png").exists()
    assert justitia(*FEW, "--policy", "vtc").code == 0


def _cells(page: str, table: str) -> list[str]:
    """Return the words of the first row of a table."""
    lines = page.splitlines()
    (title,) = (n for n, line in enumerate(lines) if line.split(",")[0].endswith(
        {"JCT": "(JCT)"}.get(table, table)))  # fmt: skip
    return lines[title + 2].split()


def _inferences(page: str) -> str:
    return page.partition(" inferences")[0].rpartition(" ")[2]
