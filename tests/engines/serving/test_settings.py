"""How an adapter is set, and what it says of what it cannot use."""

import pytest

from justitia.engines.serving import ServingSettings, load_settings
from justitia.engines.serving.settings import ServingError
from justitia.policy import PolicyError


def test_the_defaults_need_nothing() -> None:
    settings = load_settings(None, {})
    assert settings == ServingSettings()
    assert settings.make().name == "justitia"


def test_the_engines_configuration_is_stronger_than_a_variable() -> None:
    environment = {
        "JUSTITIA_POLICY": "vtc",
        "JUSTITIA_ADMISSION": "max",
        "JUSTITIA_LINGER": "5",
        "JUSTITIA_MOST_AGENTS": "",
    }
    settings = load_settings({"policy": "srjf"}, environment)
    assert settings == ServingSettings(policy="srjf", admission="max", linger=5)


def test_options_in_a_variable_are_json() -> None:
    environment = {"JUSTITIA_OPTIONS": '{"tags": "stage"}'}
    assert load_settings({}, environment).options == {"tags": "stage"}


def test_the_environment_is_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUSTITIA_POLICY", "sjf")
    assert load_settings().policy == "sjf"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "lifo"}, r"^policy: must be one of justitia, .*, not 'lifo'$"),
        ({"policy": 5}, r"^policy: .* string, not 5$"),
        ({"admission": "all"}, r"^admission: must be one of none, .*, not 'all'$"),
        ({"linger": -1}, r"^linger: .* greater than or equal to 0, not -1$"),
        ({"linger": float("nan")}, r"^linger: "),
        ({"linger": float("inf")}, r"^linger: "),
        ({"most_agents": 1.5}, r"^most_agents: .* integer, .*not 1.5$"),
        ({"options": "[1]"}, r"^options: .* dictionary, not "),
        ({"options": "{"}, r"^options: "),
        ({"options": {"tags": "all"}}, r"^options: tags must be one of"),
        ({"options": {"weight": 1}}, r"^options: policy 'justitia' has no option"),
        ({"predictor": "oracle"}, r"^predictor: must be the directory .*'oracle'$"),
        ({"predictor": "nowhere"}, r"^predictor: no predictor 'nowhere'; there are: "),
        ({"predictor": 5}, r"^predictor: .* string, not 5$"),
        ({"polcy": "fcfs"}, r"^polcy: "),
        ({5: "fcfs"}, r"^(5|justitia): "),
        ("fcfs", r"^justitia: must be a table of settings, not 'fcfs'$"),
        ([], r"^justitia: must be a table of settings, not \[\]$"),
    ],
)
def test_what_cannot_be_used_is_named(given: object, message: str) -> None:
    with pytest.raises(ServingError, match=message):
        load_settings(given, {})


def test_a_variable_that_cannot_be_used_is_named_as_its_setting() -> None:
    with pytest.raises(PolicyError, match=r"^most_agents: .*, not 'many'$"):
        load_settings({}, {"JUSTITIA_MOST_AGENTS": "many"})
