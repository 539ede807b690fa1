"""Agents for tests, with a default for every knob."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from justitia.workloads import AgentSpec, InferenceSpec

DATA = Path(__file__).parents[2].parent / "shared" / "data"
NO_DATA = "the recorded agents and traces are not beside this checkout"


def call(p: int = 10, d: int = 5, **fields: Any) -> InferenceSpec:  # noqa: ANN401
    return InferenceSpec(p, d, **fields)


def agent(*calls: InferenceSpec, id: str = "a", **fields: Any) -> AgentSpec:  # noqa: ANN401
    return AgentSpec(id, calls or (call(),), **fields)


@st.composite
def shapes(draw: st.DrawFn, most: int = 9) -> tuple[InferenceSpec, ...]:
    """Inferences with stages, ids to wait for, or both, never in a circle."""
    count = draw(st.integers(0, most))
    mode = draw(st.sampled_from(("stages", "after", "both")))
    stages = sorted(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    made = []
    for k, stage in enumerate(stages):
        after = None
        if mode == "after" or (mode == "both" and draw(st.booleans())):
            # Earlier ones of earlier stages: no circle whatever the stages add.
            earlier = [j for j in range(k) if mode == "after" or stages[j] < stage]
            if earlier:
                chosen = draw(st.sets(st.sampled_from(earlier), max_size=3))
                after = tuple(f"i{j}" for j in sorted(chosen))
            else:
                after = ()
        made.append(
            InferenceSpec(
                draw(st.integers(0, 50)),
                draw(st.integers(0, 50)),
                stage=3 * stage,
                after=after,
                id=f"i{k}",
            )
        )
    return tuple(draw(st.permutations(made)))
