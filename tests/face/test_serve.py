"""`justitia serve`: what it becomes, and what it refuses to become."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from justitia import serving
from justitia.cli import main
from justitia.config import ConfigError
from justitia.engines.vllm import version
from justitia.flags import DONE, RUN_FAILED, USAGE
from justitia.serving import Command, ServeSettings


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """A vLLM is there; what the command would become is kept."""
    seen: list[Command] = []
    monkeypatch.setattr(version, "installed", lambda: "0.32.0")
    monkeypatch.setattr(serving, "entry_points", lambda **_: ("one",))
    monkeypatch.setattr(Command, "become", lambda one: seen.append(one))  # noqa: PLW0108 - bound
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    return seen


def told(one: Command) -> dict[str, object]:
    (text,) = [a for a in one.arguments if a.startswith("--additional-config=")]
    given: dict[str, object] = json.loads(text.partition("=")[2])
    return given


def test_it_becomes_vllms_own_server(become: list[Command]) -> None:
    assert main(["serve", "--model", "/models/m"]) == DONE
    (one,) = become
    assert one.arguments[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert {
        "--model=/models/m",
        "--host=127.0.0.1",
        "--port=8000",
        "--scheduler-cls=justitia.engines.vllm.Scheduler",
    } < set(one.arguments)
    assert told(one) == {
        "justitia": {"policy": "justitia", "options": {}, "admission": "none"}
    }
    assert one.environment["VLLM_PLUGINS"] == "justitia"


def test_settings_come_from_flags_variables_and_a_file(
    become: list[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        'model = "file"\nport = 9000\nhost = "0.0.0.0"\nadmission = "max"\n'
        '[policy.justitia]\ntags = "stage"\n[policy.vtc]\n'
    )
    monkeypatch.setenv("JUSTITIA_PORT", "9001")
    monkeypatch.setenv("JUSTITIA_HOST", "::1")
    assert main(["serve", "--config", str(file), "--host", "::"]) == DONE
    (one,) = become
    assert {"--model=file", "--port=9001", "--host=::"} < set(one.arguments)
    assert told(one) == {
        "justitia": {
            "policy": "justitia",
            "options": {"tags": "stage"},
            "admission": "max",
        }
    }


def test_what_the_user_gives_vllm_is_kept(
    become: list[Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "mine,other")
    arguments = ["--max-model-len", "100", "--additional-config", '{"mine": 1}']
    assert main(["serve", "--model", "m", "--", *arguments]) == DONE
    (one,) = become
    assert one.arguments[-2:] == ("--max-model-len", "100")
    assert one.environment["VLLM_PLUGINS"] == "mine,other,justitia"
    assert told(one)["mine"] == 1


def test_the_users_variables_are_stronger_than_those_of_the_tiny_model(
    become: list[Command], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(serving, "_tiny", lambda environment: tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert main(["serve", "--model", "tiny"]) == DONE
    (one,) = become
    assert f"--model={tmp_path}" in one.arguments
    assert one.environment["OMP_NUM_THREADS"] == "7"
    assert one.environment["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "--model: give a path"),
        (["--model", ""], "--model: must be"),
        (["--model", "m", "--policy", "nix"], "--policy: must be one of justitia, "),
        (
            ["--model", "m", "--admission", "lookahead"],
            "--admission: must be one of none",
        ),
        (["--model", "m", "--engine", "nix"], "--engine: must be one of vllm"),
        (["--model", "m", "--port", "65536"], "--port: must be a port from 0 to 65535"),
        (["--model", "m", "--port", "http"], "--port: must be a port"),
        (["--model", "m", "--nix"], "Unknown option"),
        (["--model", "m", "--config", "no such file"], "cannot be read"),
        (["--model", "m", "--", "--scheduler-cls", "x.Y"], "justitia sets"),
        (["--model", "m", "--", "--scheduler_cls=x.Y"], "justitia sets"),
        (["--model", "m", "--", "--scheduling-policy=priority"], "justitia sets"),
        (["--model", "m", "--", "--port", "1"], "write --port before the --"),
        (["--model", "m", "--", "--additional-config", "{"], "not JSON"),
        (["--model", "m", "--", "--additional-config"], "not JSON"),
        (
            ["--model", "m", "--", '--additional-config={"justitia": {}}'],
            "without justitia",
        ),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, list) else None,
)
def test_what_cannot_be_is_said(
    arguments: list[str],
    reason: str,
    become: list[Command],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", *arguments]) == USAGE
    assert reason in capsys.readouterr().err
    assert not become


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("nix = 1", "no setting 'nix'"),
        ("port = true", "port: must be a str"),
        ("model = [1]", "model: must be a str"),
        ("[policy.nix]", "must be one of justitia"),
        ("[policy.justitia]\nnix = 1", "options: "),
        ("=", "not a TOML file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    content: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(content)
    flags = dict.fromkeys(("engine", "model", "policy", "admission", "host", "port"))
    with pytest.raises(ConfigError, match=r"serve\.toml|options") as caught:
        serving.load(flags, file=str(file), environment={})
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "vLLM is not installed; install it with: pip install"),
        ("0.31.2", "vLLM 0.31.2 is installed; this version of justitia knows 0.32"),
        ("0.34.0", "vLLM 0.34.0 is installed"),
        ("1.0.0", "vLLM 1.0.0 is installed"),
        ("of no known version", "of no known version"),
    ],
)
def test_a_vllm_that_is_not_there_or_not_known_is_refused(
    found: str | None,
    reason: str,
    become: list[Command],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(version, "installed", lambda: found)
    assert main(["serve", "--model", "m"]) == RUN_FAILED
    assert reason in capsys.readouterr().err
    assert not become


@pytest.mark.parametrize("found", ["0.32.0", "0.33.1+cu129", "0.33.0rc1"])
def test_a_vllm_that_is_known_is_taken(
    found: str, become: list[Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version, "installed", lambda: found)
    assert main(["serve", "--model", "m"]) == DONE
    assert become


def test_without_its_plugin_in_reach_it_does_not_start(
    become: list[Command],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(serving, "entry_points", lambda **_: ())
    assert main(["serve", "--model", "m"]) == RUN_FAILED
    assert "does not find justitia's plugin" in capsys.readouterr().err
    assert not become


def test_another_engine_is_not_served_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--engine", "sglang", "--model", "m"]) == RUN_FAILED
    assert "serves with vllm, not with sglang" in capsys.readouterr().err


def test_the_process_itself_becomes_the_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []
    monkeypatch.setattr("os.execve", lambda *given: seen.extend(given))
    one = Command(("/bin/python", "-m", "a b"), {"A": "1"})
    becoming: Callable[[], None] = one.become
    becoming()
    assert seen == ["/bin/python", ("/bin/python", "-m", "a b"), {"A": "1"}]
    assert capsys.readouterr().err == "justitia: /bin/python -m 'a b'\n"


def test_defaults() -> None:
    assert serving.load({}, environment={}) == ServeSettings()
