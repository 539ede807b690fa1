"""`justitia predictor`: what it takes, prints, writes and returns."""

import io
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from justitia import predicting
from justitia.cli import main
from justitia.flags import RUN_FAILED, USAGE
from justitia.predictors.extra import LIBRARIES
from justitia.workloads import generate, write_jsonl
from tests.face.builders import DATA, NO_DATA, surroundings
from tests.face.conftest import Justitia
from tests.predictors.installed import MISSING, REASON

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("DeprecationWarning", "FutureWarning", "ResourceWarning")
]
needs_extra = pytest.mark.skipif(bool(MISSING), reason=REASON)
KINDS = ("FVP", "CC")


def agents(path: str | Path, first: int = 0, many: int = 20) -> str:
    """Write generated agents of two classes; return the path."""
    write_jsonl(
        path,
        [
            generate(kind, number, 1)
            for kind in KINDS
            for number in range(first, first + many)
        ],
    )
    return str(path)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two classes, trained once a session."""
    folder = tmp_path_factory.mktemp("predictor")
    data = agents(folder / "agents.jsonl.gz")
    predicting.train_model(paths=[data], out=str(folder / "model"), jobs="1")
    return folder


@pytest.fixture
def model(made: Path) -> str:
    """A copy of it, in the test's own folder."""
    shutil.copytree(made / "model", "model")
    return "model"


# Help, and what cannot be used --------------------------------------------------------

COMMANDS = ("train", "evaluate", "show", "predict")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predictor", *command.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    if command:
        assert "Exit codes: 0 done, 1 " in page
    else:
        assert all(f"{name} " in page for name in COMMANDS)


def test_help_leads_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "predictor " in capsys.readouterr().out


BAD = [
    ("train --out m", "give files or folders of agents: DATA"),
    ("train no.jsonl --out m", "no.jsonl: cannot be read: No such file or directory"),
    ("train a.jsonl", 'Command "predictor train" parameter --out requires an argument'),
    ("train a.jsonl --out m --agents 0", "--agents: must be a whole number from 1 to "),
    ("train a.jsonl --out m --agents x", "--agents: must be a whole number from 1 to "),
    ("train a.jsonl --out m --share 0", "--share: must be above 0 to 1, not '0'"),
    ("train a.jsonl --out m --share nan", "--share: must be above 0 to 1, not 'nan'"),
    ("train a.jsonl --out m --share 70%", "--share: must be above 0 to 1, not '70%'"),
    ("train a.jsonl --out m --seed 1e9", "--seed: must be a whole number from -92233"),
    ("train a.jsonl --out m --jobs -1", "--jobs: must be a whole number from 1 to 10"),
    ("train a.jsonl --out m --estimator x", "--estimator: must be one of mlp, s3, no"),
    ("train a.jsonl --out m --weights x", "--weights: is for --estimator s3"),
    ("train a.jsonl --out a.jsonl", "a.jsonl: is not a directory"),
    ("train a.jsonl --out=", "--out: must not be empty"),
    ("show --", "requires an argument"),
    ("evaluate a.jsonl --model=", "the folder of the model: must not be empty"),
    ("train a.jsonl --out full", "full: holds something that is not a model"),
    ("train bad.jsonl --out m", "bad.jsonl, line 1: "),
    ("train a.jsonl --out m --s3 x", "Unknown option: --s3."),
    ("evaluate --model m", "give files or folders of agents: DATA"),
    ("evaluate a.jsonl --model no", "no: not a model: "),
    ("evaluate a.jsonl --model model --s3 x", "--s3: must be small, none or a folder "),
    ("evaluate a.jsonl --model model --plot a.jpg", "a plot is a .png, .svg, .pdf fi"),
    ("evaluate no --model model", "no: cannot be read: No such file or directory"),
    ("evaluate a.jsonl --model model --json no/a", "no/a: cannot be written: "),
    ("evaluate a.jsonl --model model --json --plot", 'Invalid value "--plot" for --js'),
    ("show no", "no: not a model: "),
    ("show a.jsonl", "a.jsonl: not a model: not a directory"),
    ("show", "requires an argument"),
    ("predict --model model", "--prompt requires an argument"),
    ("predict --model no --prompt x", "no: not a model: "),
    ("predict --model model --prompt x --max-tokens -1", "--max-tokens: must be a who"),
    ("predict --model model --prompt x --prompt-tokens 9.5", "--prompt-tokens: must b"),
]


@needs_extra
@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_what_cannot_be_used_is_told(
    arguments: str, said: str, justitia: Justitia, model: str
) -> None:
    agents("a.jsonl", many=2)
    Path("bad.jsonl").write_text('{"agent_class": 3, "calls": []}\n')
    Path("full").mkdir()
    Path("full/notes.txt").write_text("mine")
    ran = justitia("predictor", *arguments.split())
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.startswith("justitia: ")
    assert said in ran.err
    assert not Path("m").exists()
    assert Path("full/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_flag_leads_to_the_help_of_the_command(
    command: str, justitia: Justitia
) -> None:
    ran = justitia("predictor", command, "--no-such-flag")
    assert (ran.code, ran.out) == (USAGE, "")
    assert ran.err.endswith(f" See: justitia predictor {command} --help\n")
    ran = justitia("predictor", "lern")
    assert ran.code == USAGE
    assert ran.err.endswith(" See: justitia predictor --help\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "predictor train a.jsonl --out new",
        "predictor evaluate a.jsonl --model m",
        "predictor show m",
        "predictor predict --model m --prompt x",
        "run --predictor m",
        "run --predictor s3",
    ],
)
def test_without_the_extra_it_says_what_to_install(arguments: str) -> None:
    agents("a.jsonl", many=2)
    Path("m").mkdir()
    Path("m/model.json").write_text("{}")
    blocked = f"sys.modules.update(dict.fromkeys({LIBRARIES}))"
    ran = subprocess.run(
        [
            *(sys.executable, "-W", "error", "-c"),
            f"import sys; {blocked}; from justitia.cli import main; "
            f"sys.exit(main({arguments.split()}))",
        ],
        env=surroundings({"JUSTITIA_PRESET": "llama-7b-a100-40g"}),
        text=True,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout) == (USAGE, ""), ran.stderr
    assert "install it with: pip install 'justitia[predictors]'" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not Path("new").exists()


@needs_extra
def test_b32_what_nothing_can_be_learned_from_is_told(justitia: Justitia) -> None:
    write_jsonl(
        "empty.jsonl", [_without_text(generate("FVP", k, 1)) for k in range(100)]
    )
    ran = justitia("predictor", "train", "empty.jsonl", "--out", "m")
    assert (ran.code, ran.out) == (RUN_FAILED, "")
    assert "nothing to learn from" in ran.err
    assert not Path("m").exists()


def _without_text(agent: Any) -> Any:  # noqa: ANN401
    return replace(agent, text="")


# Train and show -----------------------------------------------------------------------


@needs_extra
def test_train_writes_a_model_and_shows_it(justitia: Justitia) -> None:
    data = agents("a.jsonl", many=16)
    ran = justitia("predictor", "train", data, "--out", "m", "--jobs", "1")
    assert ran.code == 0, ran.err
    assert ran.err == "train: done (1 of 1)\n"
    assert ran.out.startswith("m: trained in ")
    assert "10 agents were kept aside: justitia predictor evaluate a.jsonl --mod" in (
        ran.out
    )
    rows = {line.split()[0]: line.split() for line in ran.out.splitlines() if line}
    for kind in KINDS:
        assert rows[kind][1] == "11"  # 70 % of 16
    shown = justitia("predictor", "show", "m")
    assert shown.code == 0
    assert shown.out.splitlines()[1:] == ran.out.splitlines()[1:-1]
    saved = justitia("predictor", "show", "m", "--json", "-")
    about = json.loads(saved.out)
    counts = {kind: one["agents"] for kind, one in about["classes"].items()}
    assert counts == dict.fromkeys(KINDS, 11)
    assert about["seed"] == 7
    assert {"justitia", "numpy", "torch"} <= set(about["versions"])


@needs_extra
def test_the_same_seed_writes_the_same_model(justitia: Justitia) -> None:
    data = agents("a.jsonl", many=14)
    for out in ("one", "two", "one"):  # a model may be written over another
        ran = justitia("predictor", "train", data, "--out", out, "--seed", "3")
        assert ran.code == 0, ran.err
    files = sorted(path.name for path in Path("one").iterdir())
    assert files == sorted(path.name for path in Path("two").iterdir())
    for name in files:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()


@needs_extra
def test_how_many_are_trained_on_can_be_told(justitia: Justitia) -> None:
    data = agents("a.jsonl", many=14)
    flags = ("--agents", "9", "--share", "1")
    ran = justitia("predictor", "train", data, "--out", "m", *flags)
    assert ran.code == 0, ran.err
    assert "10 agents were kept aside" in ran.out
    flags = ("--agents", "99", "--share", "1")
    ran = justitia("predictor", "train", data, "--out", "m", *flags)
    assert ran.code == 0, ran.err
    assert "kept aside" not in ran.out
    nobody = justitia("predictor", "evaluate", data, "--model", "m", "--s3", "none")
    assert (nobody.code, nobody.out) == (USAGE, "")
    assert "no agents to judge the model by: all 28 were trained on" in nobody.err


# Evaluate -----------------------------------------------------------------------------

SCORE = {
    *("agents", "mean_relative_error", "median_relative_error", "within_factor_2"),
    *("coverage_90", "rank_correlation", "fallbacks"),
}


@needs_extra
def test_evaluate_judges_by_agents_that_were_not_trained_on(
    made: Path, model: str, justitia: Justitia
) -> None:
    data = str(made / "agents.jsonl.gz")
    ran = justitia(
        *("predictor", "evaluate", data, "--model", model, "--s3", "none"),
        *("--json", "a.json", "--plot", "a.svg"),
    )
    assert ran.code == 0, ran.err
    assert ran.err == "ridge: done (1 of 2)\npredict: done (2 of 2)\n"
    assert max(map(len, ran.out.splitlines())) <= 80
    content = json.loads(Path("a.json").read_text())
    assert list(content["classes"]) == sorted(KINDS)
    for one in content["classes"].values():
        assert set(one) == SCORE | {"trained_on", "latency_ms", "baselines"}
        assert (one["agents"], one["trained_on"]) == (6, 14)
        assert one["mean_relative_error"] >= 0
        assert 0 <= one["coverage_90"] <= 1
        assert set(one["baselines"]) == {"mean", "ridge"}
        assert all(set(score) == SCORE for score in one["baselines"].values())
    assert 0 < content["latency_ms"]["p50"] <= content["latency_ms"]["p99"]
    assert content["left_out"] == {"trained_on": 28, "empty": 0}
    errors = [one["mean_relative_error"] for one in content["classes"].values()]
    assert content["mean_over_classes"]["mean_relative_error"] == pytest.approx(
        sum(errors) / 2
    )
    assert f"{100 * errors[0]:,.0f} %" in ran.out
    figure = Path("a.svg").read_text()
    assert figure.startswith("<?xml")
    assert "<svg" in figure


@needs_extra
def test_others_agents_alone_have_nothing_beside_them(
    model: str, justitia: Justitia
) -> None:
    data = agents("other.jsonl", first=500, many=4)
    ran = justitia("predictor", "evaluate", data, "--model", model, "--json", "a.json")
    assert ran.code == 0, ran.err
    assert "8 agents judged\n" in ran.out
    assert "None of the agents that the model was trained on are in the d" in ran.out
    content = json.loads(Path("a.json").read_text())
    assert all(not one["baselines"] for one in content["classes"].values())
    assert content["mean_over_classes"]["baselines"] == {}


@needs_extra
def test_s3_stands_beside_it(
    made: Path, model: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    from justitia.predictors.s3 import classifier

    monkeypatch.setattr(classifier, "SMALL", classifier.Size(200, 8, 1, 2, 16, 16))
    data = str(made / "agents.jsonl.gz")
    ran = justitia("predictor", "evaluate", data, "--model", model, "--json", "-")
    assert ran.code == 0, ran.err
    assert "s3: done (2 of 3)\n" in ran.err
    for one in json.loads(ran.out)["classes"].values():
        assert set(one["baselines"]) == {"mean", "ridge", "s3", "s3_one_plan"}
        assert one["baselines"]["s3"]["mean_relative_error"] > 0


@needs_extra
def test_s3_is_a_model_like_any_other(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    from justitia.predictors.s3 import classifier

    monkeypatch.setattr(classifier, "SMALL", classifier.Size(200, 8, 1, 2, 16, 16))
    data = agents("a.jsonl", many=10)
    ran = justitia("predictor", "train", data, "--out", "m", "--estimator", "s3")
    assert ran.code == 0, ran.err
    assert justitia("predictor", "show", "m").code == 0
    ran = justitia("predictor", "evaluate", data, "--model", "m", "--s3", "none")
    assert ran.code == 0, ran.err
    ran = justitia("predictor", "predict", "--model", "m", "--prompt", "x", "--json=-")
    assert json.loads(ran.out)["source"] == "global"
    ran = justitia("run", "--agents", "3", "--policy", "vtc", "--predictor", "m")
    assert ran.code == 0, ran.err


# Predict ------------------------------------------------------------------------------


@needs_extra
def test_predict_reads_standard_input(
    model: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = generate("FVP", 3, 1).text

    def typed(content: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    arguments = ("predictor", "predict", "--model", model, "--kind", "FVP")
    typed(text.encode())
    ran = justitia(*arguments, "--prompt", "-", "--json", "-")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert set(found) == {"kind", "cost", "high", "source", "fallback"}
    assert (found["kind"], found["source"], found["fallback"]) == (
        "FVP",
        "class",
        False,
    )
    assert 0 < found["cost"] <= found["high"]
    lines = justitia(*arguments, "--prompt", text).out.splitlines()
    assert lines == [
        f"cost  {found['cost']:,.0f} token-steps",
        f"90 %  at most {found['high']:,.0f}",
        "from  the model of class FVP",
    ]
    typed(b"caf\xe9")
    ran = justitia(*arguments, "--prompt", "-")
    assert (ran.code, ran.out) == (USAGE, "")
    assert "standard input: byte 4, 0xe9, is not UTF-8" in ran.err


@needs_extra
@pytest.mark.parametrize("prompt", ["", " ", "1 2", "\u0000", "zzz qqq", "-x", "語"])
@pytest.mark.parametrize("kind", ["FVP", "never seen", 'a "b"\n\x1b[31m', ""])
def test_b32_b35_any_text_of_any_class_gets_a_cost(
    prompt: str, kind: str, model: str, justitia: Justitia
) -> None:
    ran = justitia(
        *("predictor", "predict", "--model", model, f"--prompt={prompt}"),
        *([f"--kind={kind}"] if kind else []),
    )
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert [line[:6] for line in lines] == ["cost  ", "90 %  ", "from  "]
    assert "\x1b" not in ran.out
    if kind != "FVP":
        assert lines[2].endswith(", a fallback")


# Run with it --------------------------------------------------------------------------


@needs_extra
def test_run_uses_a_model(model: str, justitia: Justitia) -> None:
    ran = justitia(
        *("run", "--agents", "5", "--policy", "justitia", "--predictor", model),
        *("--json", "a.json"),
    )
    assert ran.code == 0, ran.err
    assert f"predictor {model}, tags agent" in ran.out
    content = json.loads(Path("a.json").read_text())
    assert content["workload"]["predictor"] == model
    assert content["runs"][0]["prediction"]["mean_relative_error"] > 0


@needs_extra
def test_run_says_what_a_fallback_answered(model: str, justitia: Justitia) -> None:
    """Of a class that the model has never seen, and the same under every policy."""
    write_jsonl("a.jsonl", [generate(kind, 900, 1) for kind in ("FVP", "MRS", "SC")])
    ran = justitia(
        *("run", "--workload", "a.jsonl", "--policy", "justitia,vtc"),
        *("--predictor", model, "--json", "a.json"),
    )
    assert ran.code == 0, ran.err
    said = "2 of 3 by a fallback: 2 ready"
    assert f"\n- {said}\n" in ran.out
    for run in json.loads(Path("a.json").read_text())["runs"]:
        assert run["prediction"]["notes"] == [said]


@needs_extra
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_run_goes_on_learning(jobs: str, model: str, justitia: Justitia) -> None:
    """A class that costs more than in training: it is followed, and that is said."""
    made = [generate("FVP", 900 + k, 1) for k in range(40)]
    write_jsonl(
        "a.jsonl",
        [
            replace(
                one,
                arrival=30.0 * place,
                inferences=tuple(
                    replace(i, id="") for i in one.inferences for _ in range(5)
                ),
            )
            for place, one in enumerate(made)
        ],
    )
    errors = {}
    for predictor in (model, f"online:{model}"):
        ran = justitia(
            *("run", "--workload", "a.jsonl", "--policy", "justitia,justitia-c"),
            *("--predictor", predictor, "--json", "a.json"),
            environment={"JUSTITIA_JOBS": jobs},
        )
        assert ran.code == 0, ran.err
        runs = json.loads(Path("a.json").read_text())["runs"]
        errors[predictor] = [r["prediction"]["mean_relative_error"] for r in runs]
    said = "drift: what class 'FVP' costs has changed"
    assert f"\n- {said}\n" in ran.out
    assert all(said in run["prediction"]["notes"] for run in runs)
    for fixed, followed in zip(*errors.values(), strict=True):
        assert followed < 0.8 * fixed


# A model from somebody else -----------------------------------------------------------


class Payload:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return Path.touch, (Path("ran"),)


def _pickle(folder: Path) -> None:
    for path in list(folder.iterdir()):
        path.write_bytes(pickle.dumps(Payload()))


def _truncated(folder: Path) -> None:
    (weights,) = folder.glob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])


def _version(folder: Path) -> None:
    card = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(card | {"format": 99}))


def _huge(folder: Path) -> None:
    text = (folder / "model.json").read_text()
    card = json.loads(text)
    card["anyone"]["cap"] = 1e300
    (folder / "model.json").write_text(json.dumps(card))


def _endless(folder: Path) -> None:
    (folder / "model.json").write_text('{"format": 1' + "0" * 5000 + "}")


def _deep(folder: Path) -> None:
    (folder / "model.json").write_text("[" * 100_000)


def _beside(folder: Path) -> None:
    card = json.loads((folder / "model.json").read_text())
    (weights,) = folder.glob("*.safetensors")
    shutil.copy(weights, "arrays-0000000000000000.safetensors")
    card["arrays"] = "../arrays-0000000000000000.safetensors"
    (folder / "model.json").write_text(json.dumps(card))


@needs_extra
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_pickle, "is not JSON"),
        (_truncated, "its digest is another"),
        (_version, "has format 99"),
        (_huge, "anyone.cap"),
        (_endless, "model.json"),
        (_deep, "is not JSON"),
        (_beside, "arrays"),
    ],
)
@pytest.mark.parametrize("command", ["show", "predict", "evaluate", "run"])
def test_b37_a_hostile_folder_is_refused(
    damage: Callable[[Path], None],
    said: str,
    command: str,
    model: str,
    justitia: Justitia,
) -> None:
    damage(Path(model))
    arguments = {
        "show": ("predictor", "show", model),
        "predict": ("predictor", "predict", "--model", model, "--prompt", "x"),
        "evaluate": (
            "predictor",
            "evaluate",
            agents("a.jsonl", 99, 1),
            "--model",
            model,
        ),
        "run": ("run", "--agents", "2", "--predictor", model),
    }
    ran = justitia(*arguments[command])
    assert (ran.code, ran.out) == (USAGE, "")
    assert model in ran.err
    assert said in ran.err
    assert len(ran.err) < 700
    assert not Path("ran").exists()


# The recorded agents ------------------------------------------------------------------


@needs_extra
@pytest.mark.skipif(not (DATA / "agents").is_dir(), reason=NO_DATA)
def test_recorded_agents_of_one_class(justitia: Justitia) -> None:
    data = str(DATA / "agents" / "FVP.jsonl.gz")
    ran = justitia("predictor", "train", data, "--out", "m", "--jobs", "1")
    assert ran.code == 0, ran.err
    ran = justitia(
        *("predictor", "evaluate", data, "--model", "m", "--s3", "none", "--json=-")
    )
    (found,) = json.loads(ran.out)["classes"].values()
    assert found["trained_on"] + found["agents"] == 394
    assert (
        found["mean_relative_error"] < found["baselines"]["mean"]["mean_relative_error"]
    )
    assert found["mean_relative_error"] < 0.3
    assert found["rank_correlation"] > 0.7
