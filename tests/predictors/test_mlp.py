"""The perceptron: scikit-learn's conventions, and what makes it repeatable."""

from typing import Any

import pytest

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip
import torch  # isort: skip
from sklearn.base import clone  # isort: skip
from sklearn.utils.estimator_checks import parametrize_with_checks  # isort: skip

from justitia.predictors.errors import TrainingError  # isort: skip
from justitia.predictors.features import Row  # isort: skip
from justitia.predictors.mlp import MLP, _folds  # isort: skip


def quick(**options: Any) -> MLP:  # noqa: ANN401
    return MLP(**{"epochs": 60, "random_state": 0} | options)


def samples(count: int = 80, seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(count, 6))
    return rows, 3 + rows[:, 0] * 2 + np.abs(rows[:, 1])


@parametrize_with_checks([quick(members=3)])  # type: ignore[untyped-decorator]
def test_it_is_an_estimator(estimator: MLP, check: Any) -> None:  # noqa: ANN401
    check(estimator)


@pytest.mark.parametrize("shortcut", [0.0, 0.5, 1.0])
def test_it_learns(shortcut: float) -> None:
    model = quick(shortcut=shortcut, epochs=300).fit(*samples())
    rows, values = samples(seed=1)
    assert model.score(rows, values) > 0.6
    model.network_._check()


@pytest.mark.parametrize("shortcut", [0.0, 0.5])
def test_numpy_says_what_torch_says(shortcut: float) -> None:
    rows, values = samples()
    network = quick(shortcut=shortcut).fit(rows, values).network_
    hidden = torch.tensor(rows)
    for place, (weights, biases) in enumerate(network.layers):
        hidden = torch.relu(hidden) if place else hidden
        hidden = hidden @ torch.tensor(weights) + torch.tensor(biases)[:, None]
    linear = torch.tensor(network.linear)
    straight = torch.tensor(rows) @ linear[:, :-1].T + linear[:, -1]
    deep = hidden[..., 0]
    each = deep * (1 - network.share) + straight.T * network.share
    expected = each.mean(dim=0).numpy() * network.spread + network.mean
    assert network.values(rows) == pytest.approx(expected, rel=1e-12)
    for row, value in zip(rows, expected, strict=True):
        assert network.value(Row(np.arange(6), row, 1)) == pytest.approx(value)


def test_the_same_seed_gives_the_same_model() -> None:
    rows, values = samples()
    first, second = (quick().fit(rows, values) for _ in range(2))
    assert (first.predict(rows) == second.predict(rows)).all()
    assert (first.out_of_fold_ == second.out_of_fold_).all()
    other = quick(random_state=1).fit(rows, values)
    assert (first.predict(rows) != other.predict(rows)).any()
    threads = torch.get_num_threads()
    clone(first).fit(rows, values)
    assert torch.get_num_threads() == threads


def test_groups_are_never_parted() -> None:
    groups = [k // 7 for k in range(60)]
    folds = _folds(60, 4, groups, np.random.RandomState(0))
    for group in set(groups):
        mine = {fold for fold, name in zip(folds, groups, strict=True) if name == group}
        assert len(mine) == 1
    assert set(folds) == set(range(4))
    assert set(_folds(60, 4, [1] * 60, np.random.RandomState(0))) == {0}


def test_out_of_fold_is_worse_than_what_was_learned_by_heart() -> None:
    draw = np.random.default_rng(0)
    rows, values = draw.normal(size=(40, 300)), draw.normal(size=40)
    model = quick().fit(rows, values)
    own = np.mean((model.predict(rows) - values) ** 2)
    assert np.mean((model.out_of_fold_ - values) ** 2) > 2 * own


def test_one_group_still_gives_a_model() -> None:
    rows, values = samples(20)
    model = quick().fit(rows, values, groups=["one"] * 20)
    assert model.network_.members == 1
    assert np.isfinite(model.out_of_fold_).all()


def test_b34_training_that_diverges_says_so() -> None:
    rows, values = samples()
    with pytest.raises(TrainingError, match="diverged"):
        quick(learning_rate=1e30).fit(rows, values)


@pytest.mark.parametrize(
    ("name", "value"),
    [("members", 0), ("epochs", 1.5), ("patience", 0), ("shortcut", 1.1),
     ("ridge", 0.0), ("learning_rate", -1.0), ("weight_decay", -1.0),
     ("dropout", 1.0)],
)  # fmt: skip
def test_wrong_parameters_are_named(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        quick(**{name: value}).fit(*samples())


def test_groups_must_be_as_many_as_samples() -> None:
    with pytest.raises(ValueError, match="groups must be 80"):
        quick().fit(*samples(), groups=[1, 2])
