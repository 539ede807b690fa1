"""Settings: where they come from, what is refused, and that no key is shown."""

import re
from pathlib import Path

import pytest

from justitia.gateway.loading import GatewaySettingsError, load
from justitia.gateway.settings import base_url

ONE = """
[gateway]
policy = "justitia"
port = 9000

[[gateway.engines]]
url = "http://127.0.0.1:8000/v1"
kind = "vllm"
key_env = "ENGINE_KEY"

[[gateway.tenants]]
name = "acme"
keys = ["CANARY-1"]
weight = 2

[[gateway.tenants]]
name = "other"
keys_env = "OTHER_KEYS"

[gateway.limits]
queue_seconds = 5

[policy.justitia]
tags = "stage"
"""
KEYS = {"ENGINE_KEY": "CANARY-2", "OTHER_KEYS": "CANARY-3, CANARY-4"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "justitia.toml"
    path.write_text(ONE)
    return path


def test_a_file_says_all(file: Path) -> None:
    settings = load({}, file=str(file), environment=KEYS)
    (engine,) = settings.engines
    assert (engine.url, engine.capacity) == ("http://127.0.0.1:8000", "auto")
    assert engine.key is not None
    assert engine.key.get_secret_value() == "CANARY-2"
    assert [t.weight for t in settings.tenants] == [2, 1]
    assert [len(t.keys) for t in settings.tenants] == [1, 2]
    assert settings.adapter.options == {"tags": "stage"}
    assert (settings.port, settings.limits.queue_seconds) == (9000, 5)


def test_a_flag_is_stronger_than_a_variable_and_that_than_the_file(file: Path) -> None:
    variables = {**KEYS, "JUSTITIA_PORT": "9001", "JUSTITIA_POLICY": "fcfs"}
    settings = load({"port": "9002"}, file=str(file), environment=variables)
    assert (settings.port, settings.adapter.policy) == (9002, "fcfs")
    assert load({}, file=str(file), environment=variables).port == 9001


def test_engines_alone_are_enough() -> None:
    settings = load({"engines": ["http://a:1", "http://b:2/v1/"]}, environment={})
    assert [e.url for e in settings.engines] == ["http://a:1", "http://b:2"]
    assert (settings.host, settings.tenants) == ("127.0.0.1", ())
    variables = {"JUSTITIA_ENGINES": "http://a:1, http://b:2"}
    assert load({}, environment=variables).engines == settings.engines


def test_no_key_is_ever_shown(file: Path) -> None:
    settings = load({}, file=str(file), environment=KEYS)
    assert "CANARY" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "::"])
def test_without_keys_only_this_machine_is_served(host: str) -> None:
    engines = {"engines": ["http://a:1"], "host": host}
    with pytest.raises(GatewaySettingsError, match="can be reached by others"):
        load(engines, environment={})
    assert load({**engines, "open": True}, environment={}).open
    assert load(engines, environment={"JUSTITIA_OPEN": "true"}).open


WITH = '[gateway]\nengines = [{url="http://x"}]\n'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "must have a table [gateway]"),
        ("[gateway]\n", "engines: must be given"),
        ("engines = 3", "no setting 'engines'; there are tables"),
        ("[gateway]\nengine = 3", "no setting 'engine' in [gateway]; there are"),
        ("[gateway]\nengines = []", "gateway.engines: must be"),
        ('[gateway]\nengines = [{url = "ftp://x"}]', "engines.0.url: must be a server"),
        ('[gateway]\nengines = [{url = "http://u:CANARY@x"}]', "no user and password"),
        (
            '[gateway]\nengines = [{url = "http://x", capacity = -1}]',
            "engines.0.capacity: must be",
        ),
        ('[gateway]\nengines = "http://x"', "gateway.engines: must be a list, not"),
        (
            '[gateway]\nengines = ["http://x"]',
            'engines.0: must be a table with a url, [[gateway.engines]] or {url = "…"}',
        ),
        (WITH + "keep_prompts = true", "give one, too"),
        (
            '[gateway]\nengines = [{url = "http://x", api_key = "CANARY"}]',
            "engines.0.api_key: there is no such setting",
        ),
        (
            '[gateway]\nengines = [{url = "http://x", key = "CANARY with space"}]',
            "engines.0.key: must be printable ASCII without spaces",
        ),
        (
            WITH + 'tenants = [{name="a", keys="CANARY"}]',
            "tenants.0.keys: must be a list",
        ),
        (
            WITH + 'tenants = [{name="a"}]',
            "tenant 'a' has no key",
        ),
        (
            WITH
            + 'tenants = [{name="a", keys=["CANARY"]}, {name="b", keys=["CANARY"]}]',
            "tenant 'b' has a key that another has, too",
        ),
        (
            WITH + 'tenants = [{name="a", keys=["1"]}, {name="a", keys=["2"]}]',
            "two tenants are named 'a'",
        ),
        (
            WITH + 'tenants = [{name="a\\n", keys=["1"]}]',
            "must be 1 to 64 letters",
        ),
        (
            WITH + 'tenants = [{name="a", keys_env="NO"}]',
            "variable NO, for a key, is not set",
        ),
        ('[gateway]\nengines = [{url="http://x"}, {url="http://x/v1"}]', "two engines"),
        ('[gateway]\nengines = [{url="http://x:8o"}]', "a port from 0 to 65535"),
        ('[gateway]\nengines = [{url="http://x:99999"}]', "a port from 0 to 65535"),
        ('[gateway]\npolicy = "x"\nengines = [{url="http://x"}]', "must be one of"),
        (
            '[gateway]\npolicy = "fcfs"\nengines = [{url="http://x"}]\n[policy.fcfs]\nx=1',
            "has no option 'x'",
        ),
        ('[gateway]\nport = true\nengines = [{url="http://x"}]', "port"),
        ('[gateway]\nhost = "0.0.0.0"\nengines = [{url="http://x"}]', "open = true"),
        (
            '[gateway]\nengines=[{url="http://x"}]\n[gateway.limits]\nidle_seconds=0',
            "limits.idle_seconds",
        ),
        ("[gateway", "not a TOML file"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, given: str, message: str
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(given)
    with pytest.raises(GatewaySettingsError, match=re.escape(message)) as error:
        load({}, file=str(path), environment={})
    assert "CANARY" not in str(error.value)
    assert "\n" not in str(error.value)


def test_priorities_have_no_tenants(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(ONE.replace("port = 9000", 'dispatch = "engine"'))
    with pytest.raises(GatewaySettingsError, match="no shares among tenants"):
        load({}, file=str(path), environment=KEYS)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(GatewaySettingsError, match=r"nowhere\.toml: cannot be read"):
        load({}, file="nowhere.toml", environment={})


def test_bases() -> None:
    assert base_url("https://x.y/api/v1/") == "https://x.y/api"
