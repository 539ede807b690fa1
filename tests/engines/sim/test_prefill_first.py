"""`sim` with SGLang's rules, as a preset asks for them.

``tests/engines/sglang/test_sim.py`` holds the rules against SGLang itself.
"""

from dataclasses import replace

import pytest

from justitia.engines import EngineError
from justitia.engines.sim import Preset, PresetError, SimEngine, load_preset
from justitia.policy import create
from justitia.predictors import Oracle
from tests.engines.build import make_agent, make_preset


def preset(rules: str = "sglang") -> Preset:
    return replace(make_preset(blocks=64), rules=rules)


def last_step(engine: SimEngine) -> int:
    """Return in which step those end that came before another was to start."""
    agents = [make_agent(f"a{k}", (8, 8), at=0.0) for k in range(3)]
    late = make_agent("late", (8, 8), at=1e-9)
    record = engine.run([*agents, late], create("fcfs"), Oracle())
    ends = {one.finish_step for one in record.inferences if one.agent != "late"}
    assert len(ends) == 1
    return ends.pop() or 0


def test_prompts_have_steps_of_their_own() -> None:
    """Where they do not, those that run go on while another's prompt is computed."""
    assert last_step(SimEngine(preset("vllm"))) == 7
    assert last_step(SimEngine(preset(), check=True)) == 8


def test_with_reservation_nobody_gives_way() -> None:
    agents = [make_agent(f"a{k}", (4, 30)) for k in range(9)]
    engine = SimEngine(preset(), admission="max", check=True)
    record = engine.run(agents, create("justitia"), Oracle())
    assert record.preemptions == 0
    assert {one.outcome for one in record.inferences} == {"finished"}


def test_a_policy_that_displaces_is_told_so() -> None:
    record = SimEngine(preset()).run(
        [make_agent("a", (4, 4))], create("mlfq"), Oracle()
    )
    assert record.limits == "non-preemptive"


def test_what_would_leave_no_room_is_refused() -> None:
    agents = [make_agent("a", (32, 31)), make_agent("b", (32, 30))]
    record = SimEngine(preset()).run(agents, create("fcfs"), Oracle())
    assert [one.outcome for one in record.agents] == ["refused", "finished"]


@pytest.mark.parametrize(
    "choice",
    [("prompt", "recompute"), ("lookahead", "recompute"), ("none", "swap")],
)
def test_what_sglang_has_not(choice: tuple[str, str]) -> None:
    admission, preemption = choice
    with pytest.raises(EngineError, match="as SGLang, admission none or max"):
        SimEngine(preset(), admission=admission, preemption=preemption)


def test_pages_are_of_a_token() -> None:
    engine = SimEngine(replace(make_preset(blocks=8, block_size=4), rules="sglang"))
    with pytest.raises(EngineError, match="block_size of 1"):
        engine.run([make_agent("a", (4, 4))], create("fcfs"), Oracle())


def test_rules_are_of_an_engine_that_is_known() -> None:
    assert load_preset("llama-7b-a100-40g").rules == "vllm"
    with pytest.raises(PresetError, match="rules is 'tgi'; it must be one of vllm, sg"):
        preset("tgi")
