"""How long a policy takes to decide, by how many inferences wait."""

from collections.abc import Mapping
from statistics import median
from time import perf_counter_ns
from typing import Any

from justitia.experiments.cells import Outcome
from justitia.policy import Agent, Inference, Policy, Step, create

AN_AGENT = 10
"""Inferences of each agent."""
PROMPT, DECODE = 500, 100
RUNNING = 64
"""Inferences in a step that is served."""
DECISIONS = 1_000
STEPS = 300


def decide(
    *, policy: str, waiting: int, options: Mapping[str, Any] | None = None
) -> Outcome:
    """Time decisions, and steps, of a policy with so many inferences in line."""
    made = _filled(policy, waiting, options or {})
    decisions = sorted(_decision(made, number) for number in range(DECISIONS))
    running = []
    for _ in range(min(RUNNING, waiting)):
        head = made.pop()
        assert head is not None
        running.append(head.id)
    step = Step({}, dict.fromkeys(running, 1))
    steps = sorted(_step(made, step) for _ in range(STEPS))
    return {
        "result": {"waiting": waiting, "running": len(running)},
        "timings": {
            "decision_us": median(decisions) / 1000,
            "decision_p99_us": decisions[int(0.99 * len(decisions))] / 1000,
            "step_us": median(steps) / 1000,
        },
    }


def _filled(policy: str, waiting: int, options: Mapping[str, Any]) -> Policy:
    made = create(policy, **options)
    for number in range(waiting // AN_AGENT):
        name, size = f"agent-{number}", 50_000 + 7_919 * number % 900_000
        made.arrive(Agent(name, size * AN_AGENT, kind="made", inferences=AN_AGENT))
        for place in range(AN_AGENT):
            made.submit(Inference(f"{name}/{place}", name, PROMPT, DECODE))
    return made


def _decision(policy: Policy, number: int) -> int:
    """Return the nanoseconds in which a newcomer is put in line and the head taken."""
    name = f"new-{number}"
    agent = Agent(name, 60_000 + 104_729 * number % 800_000, kind="made", inferences=1)
    inference = Inference(f"{name}/0", name, PROMPT, DECODE)
    begin = perf_counter_ns()
    policy.arrive(agent)
    policy.submit(inference)
    head = policy.peek()
    assert head is not None
    policy.start(head.id)
    took = perf_counter_ns() - begin
    policy.requeue(head.id)
    policy.finish(inference.id)
    policy.leave(name)
    return took


def _step(policy: Policy, step: Step) -> int:
    begin = perf_counter_ns()
    policy.serve(step)
    return perf_counter_ns() - begin
