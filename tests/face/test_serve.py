"""`justitia serve`: what it becomes, and what it refuses to become."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from justitia import serving
from justitia.cli import main
from justitia.config import ConfigError
from justitia.engines.serving import ServingSettings
from justitia.engines.sglang import version as sglang_version
from justitia.engines.sglang.cpu import FOLDER
from justitia.engines.vllm import version
from justitia.flags import DONE, RUN_FAILED, USAGE
from justitia.serving import Command, ServeSettings, commands
from justitia.serving import sglang as sglang_module
from justitia.serving import vllm as vllm_module


class Plugin:
    """An entry point; `fault` is raised when it is loaded."""

    fault: Exception | None = None

    def load(self) -> None:
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def plugin() -> Plugin:
    return Plugin()


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch, plugin: Plugin) -> list[Command]:
    """The engines are there, with no GPU; what the command would become is kept."""
    seen: list[Command] = []
    monkeypatch.setattr(version, "installed", lambda: "0.32.0")
    monkeypatch.setattr(sglang_version, "installed", lambda: "0.5.23")
    monkeypatch.setattr(sglang_module, "on_cpu", lambda: True)
    monkeypatch.setattr(sglang_module, "use_cpu", lambda: None)
    monkeypatch.setattr(commands, "entry_points", lambda **_: (plugin,))
    monkeypatch.setattr(Command, "become", lambda one: seen.append(one))  # noqa: PLW0108 - bound
    for name in ("VLLM_PLUGINS", "SGLANG_PLUGINS", "SGLANG_USE_CPU_ENGINE"):
        monkeypatch.delenv(name, raising=False)
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
    assert told(one) == {"justitia": ServingSettings().model_dump()}
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
    adapter = ServingSettings(options={"tags": "stage"}, admission="max")
    assert told(one) == {"justitia": adapter.model_dump()}


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


def test_every_setting_of_the_adapter_may_come_from_anywhere(
    become: list[Command], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('linger = 1.5\nmost_agents = 1\n[policy.justitia]\ntags="agent"\n')
    command = ["serve", "--model", "m", "--config", str(file)]
    assert main(command) == DONE
    monkeypatch.setenv("JUSTITIA_LINGER", "2")
    monkeypatch.setenv("JUSTITIA_MOST_AGENTS", "2")
    monkeypatch.setenv("JUSTITIA_OPTIONS", '{"tags": "stage"}')
    assert main(command) == DONE
    flags = ["--linger=3", "--most-agents=3", '--options={"growth": 2}']
    assert main([*command, *flags]) == DONE
    seen = [
        [one["linger"], one["most_agents"], one["options"]]
        for one in (told(one)["justitia"] for one in become)
        if isinstance(one, dict)
    ]
    assert seen == [
        [1.5, 1, {"tags": "agent"}],
        [2.0, 2, {"tags": "stage"}],
        [3.0, 3, {"growth": 2}],
    ]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("JUSTITIA_OPTIONS", '{"tags": "all"}'),
        ("JUSTITIA_OPTIONS", "{"),
        ("JUSTITIA_LINGER", "nan"),
        ("JUSTITIA_LINGER", "-1"),
        ("JUSTITIA_MOST_AGENTS", "many"),
        ("JUSTITIA_POLICY", "foo"),
        ("JUSTITIA_PORT", "x"),
    ],
)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_is_wrong_is_told_where_it_stands_before_the_server_starts(
    *,
    engine: str,
    variable: str,
    value: str,
    become: list[Command],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, value)
    assert main(["serve", "--engine", engine, "--model", "m"]) == USAGE
    assert f"justitia: {variable}: " in capsys.readouterr().err
    assert not become


def test_the_users_variables_are_stronger_than_those_of_the_tiny_model(
    become: list[Command], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vllm_module, "tiny_model", lambda environment: tmp_path)
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
        (["--model", "m", "--max-model-len", "9"], "arguments go after --"),
        (["--model", "m", "--options", "{"], "--options: "),
        (["--model", "m", "--linger", "x"], "--linger: "),
        (["--model", "m", "--most-agents", "-1"], "--most-agents: "),
        (["--model", "m", "--config", "no such file"], "cannot be read"),
        (["--model", "m", "--", "--scheduler-cls", "x.Y"], "justitia sets"),
        (["--model", "m", "--", "--scheduler_cls=x.Y"], "justitia sets"),
        (["--model", "m", "--", "--scheduling-policy=priority"], "justitia sets"),
        (["--model", "m", "--", "--port", "1"], "write --port before the --"),
        (["--model", "m", "--", "--scheduler-c", "x.Y"], "justitia sets"),
        (["--model", "m", "--", "--api-server-count=2"], "takes `vllm serve`"),
        (["--model", "m", "--", "--additional-config.a", "1"], "with one JSON object"),
        (["--model", "m", "--", "--additional_config.a=1"], "with one JSON object"),
        (["--model", "m", "--", "--addit.a=1"], "with one JSON object"),
        (["--model", "m", "--", "--addit={"], "not JSON"),
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
        ("[policy.justitia]\nnix = 1", "[policy.justitia]: policy 'justitia' has no"),
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
    monkeypatch.setattr(commands, "entry_points", lambda **_: ())
    for engine in ("vllm", "sglang"):
        assert main(["serve", "--engine", engine, "--model", "m"]) == RUN_FAILED
        assert "does not find justitia's plugin" in capsys.readouterr().err
    assert not become


def test_another_engine_is_not_served_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--engine", "openai", "--model", "m"]) == RUN_FAILED
    assert "serves with vllm and sglang, not with openai" in capsys.readouterr().err


SGLANG = ("serve", "--engine", "sglang", "--model")


def test_it_becomes_sglangs_own_server(become: list[Command]) -> None:
    assert main([*SGLANG, "/models/m", "--", "--device", "cuda"]) == DONE
    (one,) = become
    assert one.arguments[1:] == (
        "-m",
        "sglang.launch_server",
        "--model-path=/models/m",
        "--host=127.0.0.1",
        "--port=8000",
        "--device",
        "cuda",
    )
    assert one.environment["JUSTITIA_POLICY"] == "justitia"
    assert one.environment["JUSTITIA_ADMISSION"] == "none"
    assert one.environment["JUSTITIA_OPTIONS"] == "{}"
    for name in ("SGLANG_USE_CPU_ENGINE", "SGLANG_PLUGINS"):
        assert name not in one.environment
    assert FOLDER not in one.environment.get("PYTHONPATH", "")


@pytest.mark.parametrize("device", [(), ("--device", "cpu"), ("--device=cpu",)])
def test_flags_and_stand_ins_of_the_cpu_are_for_the_cpu(
    device: tuple[str, ...], become: list[Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sglang_module, "on_cpu", lambda: not device)
    monkeypatch.setenv("PYTHONPATH", "/mine")
    assert main([*SGLANG, "m", "--", *device]) == DONE
    (one,) = become
    assert one.environment["SGLANG_USE_CPU_ENGINE"] == "1"
    assert one.environment["PYTHONPATH"].split(os.pathsep) == [FOLDER, "/mine"]
    assert "--device cpu --attention-backend torch_native" in " ".join(one.arguments)
    assert "OMP_NUM_THREADS" not in one.environment.keys() - os.environ.keys()


def test_sglang_is_told_the_settings_by_variables(
    become: list[Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(
        'engine = "sglang"\nmodel = "m"\nadmission = "max"\n'
        '[policy.justitia]\ntags = "stage"\n'
    )
    monkeypatch.setenv("SGLANG_PLUGINS", "mine")
    monkeypatch.setenv("JUSTITIA_LINGER", "5")
    assert main(["serve", "--config", str(file)]) == DONE
    (one,) = become
    assert one.environment["JUSTITIA_ADMISSION"] == "max"
    assert json.loads(one.environment["JUSTITIA_OPTIONS"]) == {"tags": "stage"}
    assert one.environment["JUSTITIA_LINGER"] == "5.0"
    assert one.environment["SGLANG_PLUGINS"] == "mine,justitia"


def test_a_tiny_model_for_sglang(
    become: list[Command], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sglang_module, "tiny_model", lambda environment: tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert main([*SGLANG, "tiny", "--", "--max-total-tokens=512"]) == DONE
    (one,) = become
    assert f"--model-path={tmp_path}" in one.arguments
    assert "--served-model-name tiny" in " ".join(one.arguments)
    assert one.arguments[-1] == "--max-total-tokens=512"  # the last one holds
    assert one.environment["OMP_NUM_THREADS"] == "7"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--admission", "predicted"], "must be one of none, max, not 'predicted'"),
        (["--", "--schedule-policy", "lpm"], "the policy says who is next"),
        (["--", "--enable_priority_scheduling"], "the policy says who is next"),
        (["--", "--schedule-low-priority-values-first"], "the policy says"),
        (["--", "--model-path=x"], "write --model before the --"),
        (["--", "--port=1"], "write --port before the --"),
    ],
)
def test_what_cannot_be_with_sglang_is_said(
    arguments: list[str],
    reason: str,
    become: list[Command],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*SGLANG, "m", *arguments]) == USAGE
    assert reason in capsys.readouterr().err
    assert not become


def test_a_plugin_that_sglang_would_pass_over_is_said(
    become: list[Command], plugin: Plugin, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin.fault = ImportError("no such module")
    assert main([*SGLANG, "m"]) == RUN_FAILED
    told = capsys.readouterr().err
    assert "justitia's plugin cannot be loaded: ImportError('no such module')" in told
    assert not become


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "SGLang is not installed; install it with: pip install"),
        ("0.5.15", "SGLang 0.5.15 is installed; this version of justitia knows 0.5.16"),
        ("0.6.0", "SGLang 0.6.0 is installed"),
    ],
)
def test_an_sglang_that_is_not_there_or_not_known_is_refused(
    found: str | None,
    reason: str,
    become: list[Command],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sglang_version, "installed", lambda: found)
    assert main([*SGLANG, "m"]) == RUN_FAILED
    assert reason in capsys.readouterr().err
    assert not become


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


def test_no_key_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.execve", lambda *given: None)
    keys = ("--api-key", "A", "B", "--port", "1", "--admin-api-key=C", "--hf-token=D")
    becoming: Callable[[], None] = Command(("python", *keys), {}).become
    becoming()
    assert capsys.readouterr().err == (
        "justitia: python --api-key '***' '***' --port 1 '--admin-api-key=***' "
        "'--hf-token=***'\n"
    )


def test_defaults() -> None:
    assert serving.load({}, environment={}) == ServeSettings()
