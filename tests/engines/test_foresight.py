"""What predicting costs, beside a run that knew."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from justitia.engines import RunRecord
from justitia.engines.document import Result
from justitia.engines.foresight import Foresight, foresee
from justitia.engines.summary import summarise
from justitia.policy import create
from justitia.predictors import Noisy, Oracle
from justitia.workloads import generate
from tests.engines.build import make_preset, run_sim
from tests.engines.test_summary import make_run


def result(run: RunRecord, predicted: Sequence[float | None] = ()) -> Result:
    agents = run.agents
    if predicted:
        pairs = zip(agents, predicted, strict=True)
        agents = tuple(replace(one, predicted_cost=cost) for one, cost in pairs)
    run = replace(run, agents=agents)
    return Result(run.policy, {}, run, summarise(run, None))


def test_by_hand() -> None:
    oracle = result(make_run(1.0, 3.0, 2.0), [10, 20, 40])
    mine = result(make_run(2.0, 3.0, 4.0), [15, 20, 10])
    found = foresee(mine, oracle)
    assert found.mean_relative_error == pytest.approx((0.5 + 0 + 0.75) / 3)
    assert found.median_relative_error == 0.5
    assert found.oracle_mean_jct == 2.0
    assert found.jct_change == pytest.approx(0.5)


def test_agents_that_were_never_announced_are_left_out() -> None:
    oracle = result(make_run(1.0, None), [10, None])
    assert foresee(result(make_run(1.0, None), [20, None]), oracle) == Foresight(
        1.0, 1.0, 1.0, 0.0
    )


def test_what_has_no_value_is_none() -> None:
    nobody = result(make_run(None), [None])
    assert foresee(nobody, nobody) == Foresight(None, None, None, None)
    at_once = result(make_run(0.0), [1])
    assert foresee(at_once, at_once) == Foresight(0, 0, 0, None)


@pytest.mark.parametrize("policy", ["justitia", "justitia-c"])
def test_errors_are_in_the_unit_of_the_policy(policy: str) -> None:
    """Noise is one factor an agent, whatever the cost model: errors are the same."""
    agents = [replace(generate("FVP", k, 1), arrival=0.0) for k in range(4)]
    preset = make_preset(blocks=400, block_size=4)
    noisy = Noisy(3.0, seed=2)
    mine, oracle = (
        result(run_sim(agents, create(policy), preset=preset, predictor=predictor))
        for predictor in (noisy, Oracle())
    )
    errors = [abs(noisy.factor(agent.id) - 1) for agent in agents]
    found = foresee(mine, oracle)
    assert found.mean_relative_error == pytest.approx(sum(errors) / 4)
