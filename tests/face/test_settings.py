"""Settings from every layer: flag over environment over file over default."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.config import KEYS, PAPER_POLICIES, ConfigError, RunSettings, load
from justitia.engines.sim import preset_names
from justitia.policy import names
from tests.face.builders import agents_file, toml
from tests.face.conftest import Justitia

SettingsOf = Callable[..., RunSettings]

LAYERS: dict[str, tuple[Any, ...]] = {
    # key: field, default, and what file, variable and flag say
    "engine": ("engine", "sim", "vllm", "sglang", "openai"),
    "preset": ("preset", None, *preset_names()[::2][:2], "./small.toml"),
    "model": ("model", None, "a/model", "./b", "c"),
    "url": ("url", (), "http://a", "https://b:1/v1,http://c", "http://d"),
    "key_env": ("key_env", None, "A", "B", "C"),
    "capacity": ("capacity", None, 1, 2, 3),
    "slots": ("slots", None, 1, 2, 3),
    "policy": ("policies", PAPER_POLICIES, "vtc", "fcfs,sjf", "srjf"),
    "tags": ("tags", None, "stage", "agent", "stage"),
    "admission": ("admission", "none", "prompt", "predicted", "max"),
    "preemption": ("preemption", "recompute", "swap", "recompute", "swap"),
    "agents": ("agents", 300, 1, 2, 3),
    "workload": ("workload", "paper", "a.jsonl", "b.jsonl", "c.jsonl"),
    "arrivals": ("arrivals", None, "poisson", "burst", "workload"),
    "density": ("density", None, 1.0, 2.5, 3.0),
    "load": ("load", None, 0.5, 0.9, 1.5),
    "predictor": ("predictor", "oracle", "noisy:2", "noisy:3", "noisy:1.5"),
    "seed": ("seed", 7, 8, -9, 10),
    "jobs": ("jobs", os.cpu_count(), 1, 2, 3),
    "json": ("json_file", None, "a.json", "b.json", "-"),
    "plot": ("plot_file", None, "a.png", "b.svg", "c.pdf"),
    "report": ("report_file", None, "a.html", "b.html", "c.html"),
}


def test_every_setting_is_tested_here() -> None:
    assert list(LAYERS) == list(KEYS)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("in_file", [False, True])
def test_flag_over_environment_over_file_over_default(
    key: str, in_file: bool, variable: bool, flag: bool, settings_of: SettingsOf
) -> None:
    field, expected, *values = LAYERS[key]
    for name in ("a", "b", "c"):
        agents_file(f"{name}.jsonl")
    # The fixture's own settings, which stand in the way of two of the keys.
    environment = {"JUSTITIA_JOBS": "", "JUSTITIA_PRESET": ""}
    if key == "model":  # sim has none
        environment["JUSTITIA_ENGINE"] = "vllm"
    if key in ("url", "key_env", "capacity", "slots"):
        environment["JUSTITIA_ENGINE"] = "openai"
    arguments: list[str] = []
    if in_file:
        expected = values[0]
        arguments += ["--config", toml("c.toml", **{key: expected})]
    if variable:
        expected = values[1]
        environment[f"JUSTITIA_{key.upper()}"] = str(expected)
    if flag:
        expected = values[2]
        arguments += [f"--{key.replace('_', '-')}", str(expected)]
    if field in ("policies", "url") and isinstance(expected, str):
        expected = tuple(expected.replace("/v1", "").split(","))
    assert getattr(settings_of(*arguments, environment=environment), field) == expected


@pytest.mark.parametrize("higher", ["density", "load"])
@pytest.mark.parametrize("lower", ["density", "load"])
def test_a_higher_layer_says_density_or_load_for_both(
    lower: str, higher: str, settings_of: SettingsOf
) -> None:
    file = toml("c.toml", **{lower: 1.5})
    expected = {"density": None, "load": None, higher: 0.5}
    from_flag = settings_of("--config", file, f"--{higher}", "0.5")
    from_variable = settings_of(
        "--config", file, environment={f"JUSTITIA_{higher.upper()}": "0.5"}
    )
    over_variable = settings_of(
        f"--{higher}", "0.5", environment={f"JUSTITIA_{lower.upper()}": "9"}
    )
    for settings in (from_flag, from_variable, over_variable):
        assert {key: getattr(settings, key) for key in expected} == expected


def test_density_and_load_in_one_layer_are_refused() -> None:
    with pytest.raises(ConfigError, match="--density and --load: give a density or a"):
        load({"density": "1", "load": "1"})
    with pytest.raises(ConfigError, match="JUSTITIA_DENSITY and JUSTITIA_LOAD: give"):
        load({}, environment={"JUSTITIA_DENSITY": "1", "JUSTITIA_LOAD": "1"})
    with pytest.raises(ConfigError, match=r"c\.toml: density and c\.toml: load: give"):
        load({}, file=toml("c.toml", density=1, load=1))
    # ... and are of no consequence under one that says it again.
    assert load({"load": "2"}, file=toml("c.toml", density=1, load=1)).load == 2


def test_the_environment_may_name_the_file(settings_of: SettingsOf) -> None:
    first, second = toml("a.toml", agents=1), toml("b.toml", agents=2)
    environment = {"JUSTITIA_CONFIG": first}
    assert settings_of(environment=environment).agents == 1
    assert settings_of("--config", second, environment=environment).agents == 2


def test_an_empty_variable_is_as_good_as_none() -> None:
    empty = {f"JUSTITIA_{key.upper()}": "" for key in (*KEYS, "CONFIG")}
    assert load({}, environment=empty) == load({}, environment={})


def test_other_variables_are_left_alone() -> None:
    load({}, environment={"JUSTITIA_CI_VENV": "x", "JUSTITIA_": "y", "AGENTS": "z"})


# Policies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "policies", "options"),
    [
        ('policy = "justitia"', ("justitia",), {}),
        ('policy = ["vtc", "sjf"]', ("vtc", "sjf"), {}),
        ('policy = "vtc, sjf"', ("vtc", "sjf"), {}),
        ('policies = "vtc"', ("vtc",), {}),
        ('policies = ["vtc", "vtc", "sjf"]', ("vtc", "sjf"), {}),
        (
            'policies = ["sjf"]\n[policy.sjf]\nby = "cost"\n[policy.vtc]',
            ("sjf",),
            {"sjf": {"by": "cost"}, "vtc": {}},
        ),
        (
            '[policy.justitia]\ntags = "stage"',
            PAPER_POLICIES,
            {"justitia": {"tags": "stage"}},
        ),
        ('policy.sjf.by = "cost"', PAPER_POLICIES, {"sjf": {"by": "cost"}}),
    ],
)  # fmt: skip
def test_policies_in_the_file(
    content: str, policies: tuple[str, ...], options: dict[str, Any]
) -> None:
    Path("c.toml").write_text(content)
    settings = load({}, file="c.toml")
    assert (settings.policies, settings.options) == (policies, options)


def test_choosing_other_policies_keeps_their_tables() -> None:
    Path("c.toml").write_text('policies = ["vtc"]\n[policy.sjf]\nby = "cost"')
    settings = load({"policy": ["sjf", "fcfs"]}, file="c.toml")
    assert settings.policies == ("sjf", "fcfs")
    assert settings.options == {"sjf": {"by": "cost"}}


def test_policies_by_flag_and_variable(settings_of: SettingsOf) -> None:
    several = settings_of("--policy", "vtc", "--policy", "sjf,fcfs", "--policy", "vtc")
    assert several.policies == ("vtc", "sjf", "fcfs")
    variable = {"JUSTITIA_POLICY": "vtc, srjf"}
    assert settings_of(environment=variable).policies == ("vtc", "srjf")


# The file -----------------------------------------------------------------------------


def test_a_byte_order_mark_and_crlf_are_no_matter() -> None:
    content = 'agents = 3\r\npolicy = "vtc"\r\n'
    Path("c.toml").write_bytes(content.encode("utf-8-sig"))
    assert load({}, file="c.toml").agents == 3


ALL_KEYS = ", ".join(KEYS)
BAD_FILES: list[tuple[bytes, str]] = [
    (b"agents = ", "c.toml: not a TOML file in UTF-8: Invalid value"),
    (b"agents: 3", "c.toml: not a TOML file in UTF-8: Expected '='"),
    (b"agents = 3\nagents = 4", "c.toml: not a TOML file in UTF-8: Cannot overwrite"),
    (b"\xff\xfea\x00g\x00", "c.toml: not a TOML file in UTF-8: 'utf-8' codec"),
    (b"seed = " + b"9" * 5000, "c.toml: not a TOML file in UTF-8: Exceeds the limit"),
    (b"a = " + b"[" * 9999, "c.toml: not a TOML file in UTF-8: "),
    (b'policy = "vtc"\n[policy.vtc]', "c.toml: not a TOML file in UTF-8: Cannot"),
    (b"speed = 3", f"c.toml: no setting 'speed'; there are: {ALL_KEYS}, policies (a"),
    (b"options = 3", "c.toml: no setting 'options'; there are: "),
    (b"json_file = 'x'", "c.toml: no setting 'json_file'; there are: "),
    (b"[agents]\nn = 3", "c.toml: agents: must be a valid integer, not {'n': 3}"),
    (b"policy = 'vtc'\npolicies = ['sjf']", "c.toml: policy and policies are the same"),
    (b"policies = []", "c.toml: policies: must name a policy"),
    (b"policies = [3]", "c.toml: policies.0: must be a valid string, not 3"),
    (b"policies = 3", "c.toml: policies: must be a name or a list of names, not 3"),
    (b"policies = ['no']", "c.toml: policies: must be one of justitia, "),
    (b"[policy.no]", "c.toml: policy: must be one of justitia, "),
    (b"[policy]\nvtc = 3", "c.toml: policy.vtc: must be a table, not 3"),
    (b"engine = 3", "c.toml: engine: must be a valid string, not 3"),
    (b"engine = 'x'", "c.toml: engine: must be one of sim, vllm, sglang, openai, not"),
    (b"agents = true", "c.toml: agents: must not be true"),
    (b"density = false", "c.toml: density: must not be false"),
    (b"agents = 2.5", "c.toml: agents: must be a valid integer, not 2.5"),
    (b"agents = 1979-05-27", "c.toml: agents: must be a valid integer, not datetime"),
    (b"load = nan", "c.toml: load: must be "),
    (b"load = inf", "c.toml: load: must be less than or equal to 1000000, not inf"),
    (b'workload = "a\\u0000b"', "c.toml: workload: must be paper, or a file of agents"),
    (b'preset = "a/\\u0000b"', "c.toml: preset: cannot read preset"),
    (b"json = ''", "c.toml: json: must not be empty"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), BAD_FILES)
def test_a_bad_file_is_told(content: bytes, message: str, justitia: Justitia) -> None:
    Path("c.toml").write_bytes(content)
    ran = justitia("run", "--config", "c.toml", environment={"JUSTITIA_PRESET": ""})
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"justitia: {message}")


def test_a_file_that_cannot_be_read_is_told(justitia: Justitia) -> None:
    Path("folder").mkdir()
    for file, reason in (
        ("folder", "folder: cannot be read: Is a directory"),
        ("none.toml", "none.toml: cannot be read: No such file or directory"),
        ("small.toml/x", "small.toml/x: cannot be read: Not a directory"),
        ("a\0b", "a\x00b: not a TOML file in UTF-8: embedded null"),
        ("", "--config: must not be empty"),
    ):
        ran = justitia("run", "--config", file)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"justitia: {reason}")


@pytest.mark.parametrize(
    ("policy", "option", "message"),
    [
        ("vtc", "x = 3", "policy 'vtc' has no option 'x'; it takes: prompt_price, dec"),
        ("fcfs", "x = 3", "policy 'fcfs' has no option 'x'; it takes: none"),
        ("vtc", "prompt_price = -1", "prompt_price must be a finite number"),
        ("vtc", "prompt_price = nan", "prompt_price must be a finite number"),
        ("vtc", "prompt_price = '1'", "prompt_price must be a finite number"),
        ("vtc", "prompt_price = 1979-05-27", "prompt_price must be a finite number"),
        ("justitia", "cost = ['kv']", "cost must be one of kv, "),
        ("justitia", "tags = 'no'", "tags must be one of agent, stage, not 'no'"),
        ("sjf", "by = {}", "by must be "),
    ],
)
@pytest.mark.parametrize("running", ["vtc", "srjf"])
def test_a_bad_option_is_told_whether_or_not_its_policy_runs(
    policy: str, option: str, message: str, running: str, justitia: Justitia
) -> None:
    Path("c.toml").write_text(f"[policy.{policy}]\n{option}\n")
    ran = justitia("run", "--config", "c.toml", "--policy", running)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"justitia: [policy.{policy}]: {message}")


literals = st.one_of(
    st.none().map(lambda _: "nan"),
    st.sampled_from(
        ["inf", "-inf", "true", "[]", "{}", "[[1]]", "1979-05-27", "'vtc'"]
    ),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.lists(st.sampled_from([*names(), "x"])).map(repr),
    st.text("abc[]{}=\"'\n\\ ", max_size=9),
)


@given(st.dictionaries(st.sampled_from((*KEYS, "policies", "x")), literals))
def test_whatever_a_file_says_is_used_or_told(content: dict[str, str]) -> None:
    Path("f.toml").write_text("".join(f"{k} = {v}\n" for k, v in content.items()))
    settings = _settings_or_complaint({}, "f.toml")
    if isinstance(settings, str):
        assert "f.toml" in settings
    else:
        assert settings.policies
        assert set(settings.policies) <= set(names())


@given(st.sampled_from(KEYS), st.text(max_size=12) | st.floats().map(str))
def test_whatever_is_typed_is_used_or_told(key: str, value: str) -> None:
    settings = _settings_or_complaint({key: [value] if key == "policy" else value})
    if isinstance(settings, str):
        assert settings.startswith(f"--{key.replace('_', '-')}: ")


def _settings_or_complaint(
    flags: dict[str, Any], file: str | None = None
) -> RunSettings | str:
    try:
        return load(flags, file=file, environment={})
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize(
    ("said", "flags", "tags"),
    [
        ('[policy.justitia]\ntags = "stage"', [], "stage"),
        ('[policy.justitia]\ntags = "stage"', ["--tags", "agent"], "agent"),
        ('tags = "agent"\n[policy.justitia]\ntags = "stage"', [], "agent"),
        ("", ["--tags", "stage"], "stage"),
        ("", [], "agent"),
    ],
)
def test_tags_of_a_run_are_stronger_than_those_of_a_table(
    said: str, flags: list[str], tags: str, justitia: Justitia
) -> None:
    Path("c.toml").write_text(said)
    workload = agents_file()
    run = justitia(
        *(
            "run",
            "--config",
            "c.toml",
            "--policy",
            "justitia",
            "--workload",
            str(workload),
        ),
        *("--json", "a", *flags),
    )
    assert run.code == 0
    content = json.loads(Path("a").read_text())
    assert content["runs"][0]["options"]["tags"] == tags
