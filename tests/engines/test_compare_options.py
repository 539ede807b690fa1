"""What a comparison makes of ids and of a policy's own tags."""

from dataclasses import replace
from typing import Any

from justitia.engines import RunRecord
from justitia.engines.compare import Comparison, run_all
from justitia.engines.scenario import Scenario
from justitia.engines.sim import SimEngine, load_preset
from justitia.workloads import AgentSpec, InferenceSpec

ENGINE = {"name": "sim", "preset": "llama-7b-a100-40g"}


def comparison(*agents: AgentSpec, **policies: dict[str, object]) -> Comparison:
    scenario = Scenario(agents, "made", "workload", None, None, 0)
    return Comparison(scenario, ENGINE, policies)


def test_ids_with_slashes_do_not_collide() -> None:
    both = (
        AgentSpec("a", (InferenceSpec(50, 50, id="b/c"),), arrival=0),
        AgentSpec("a/b", (InferenceSpec(5, 5, id="c"),), arrival=0),
    )
    (result,) = run_all(comparison(*both, justitia={}))
    assert result.summary.finished == 2
    assert len({one.id for one in result.record.inferences}) == 2


def test_the_reference_has_the_tags_of_the_policy() -> None:
    staged = [
        AgentSpec(
            f"a{k}",
            tuple(InferenceSpec(900 + k, 40, stage=stage) for stage in range(9)),
            arrival=k / 10,
        )
        for k in range(30)
    ]
    made = comparison(*staged, justitia={"tags": "stage"})
    (result,) = run_all(made)
    assert result.summary.max_lag_ratio is not None
    assert result.summary.max_lag_ratio <= 1e-9


class Alone(SimEngine):
    """An engine whose runs all go through one object, and which cannot displace."""

    alone = True

    def __init__(self) -> None:
        super().__init__(load_preset("llama-7b-a100-40g"))
        self.ran: list[str] = []

    def run(self, *arguments: Any, **options: Any) -> RunRecord:  # noqa: ANN401
        record = super().run(*arguments, **options)
        self.ran.append(record.policy)
        return replace(
            record, limits="non-preemptive" if record.policy == "vtc" else ""
        )


def test_an_engine_that_is_alone_runs_all_policies_here_one_by_one() -> None:
    engine = Alone()
    spec = AgentSpec("a", (InferenceSpec(50, 50),), arrival=0)
    results = run_all(comparison(spec, fcfs={}, vtc={}), jobs=2, engine=engine)
    assert engine.ran == ["fcfs", "vtc"]
    assert [result.label for result in results] == ["fcfs", "vtc (non-preemptive)"]
    assert results[0].summary.gain_vs_vtc == 0
