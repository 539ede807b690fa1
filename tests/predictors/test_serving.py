"""A model in a live engine: it tells what requests will produce that do not say so."""

from pathlib import Path

import pytest

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
from justitia.engines.serving import Agents, load_settings, read_claim  # isort: skip
from justitia.engines.serving.settings import ServingError  # isort: skip
from justitia.predictors.files import save  # isort: skip
from tests.predictors.models import trained  # isort: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "model"
    save(trained(), made)
    return made


def test_a_request_that_does_not_say_is_predicted(folder: Path) -> None:
    settings = load_settings({}, {"JUSTITIA_PREDICTOR": str(folder)})
    agents = Agents(settings.make(), now=lambda: 0.0, predict=settings.predict)
    said: dict[str, dict[str, object]] = {
        "a": {"kind": "SC"},
        "b": {"kind": "new"},
        "c": {"kind": "SC", "tokens": 7},
    }
    for name, claim in said.items():
        agents.submit(name, read_claim(claim), 500, 4000)
    model = trained()
    assert agents.predicted("a") == model.tokens("SC", 500, 4000)
    assert agents.predicted("b") == model.tokens("new", 500, 4000)
    assert agents.predicted("c") == 7
    assert 1 < agents.predicted("a") < 4000
    assert not agents.faults["prediction"]
    agents._check()


def test_a_model_that_learns_on_is_refused(folder: Path) -> None:
    """It learns what agents cost; a request's tokens it does not tell."""
    with pytest.raises(ServingError, match="inference's tokens, not 'online:"):
        load_settings({"predictor": f"online:{folder}"}, {})


def test_a_directory_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"^predictor: .*not a model"):
        load_settings({"predictor": str(tmp_path)}, {})
