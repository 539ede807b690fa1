"""A history of events and what a policy says to it, to compare between processes.

Run as a program it prints the logs of all variants as JSON. The hash seed of the
process must be nothing to them.
"""

import json
import sys

from justitia.policy import Policy, Step
from tests.policy.builders import VARIANTS, agent, inference, make


def dispatch_log(variant: str, *, backwards: bool = False) -> list[object]:
    """Return what a policy says after each of some events.

    Parameters
    ----------
    variant
        See `tests.policy.builders.VARIANTS`.
    backwards
        Tell of the inferences in each step in the opposite order.
    """
    policy = make(variant)
    log: list[object] = []
    running: list[str] = []
    for number in range(6):  # all alike, so that ties decide
        name = f"agent-{number % 3}-{number}"
        policy.arrive(agent(name, 40, stage_costs=(20, 20)))
        for index in range(4):
            policy.submit(inference(f"{name}/{index}", stage=index // 2))
    for round_ in range(12):
        for _ in range(2):
            head = policy.pop()
            if head is not None:
                running.append(head.id)
                log.append(head.id)
        told = dict.fromkeys(running, 1)
        policy.serve(_step(told, backwards=backwards))
        policy.advance(1)
        if round_ % 3 == 2:
            policy.requeue(running.pop(0))
        if round_ % 2:
            policy.finish(running.pop(0))
        if round_ == 7:
            policy.leave("agent-0-3")
            running = [name for name in running if not name.startswith("agent-0-3")]
        log += _shown(policy)
    return log


def _step(told: dict[str, int], *, backwards: bool) -> Step:
    names = sorted(told, reverse=backwards)
    return Step(dict.fromkeys(names, 2), {name: told[name] for name in names})


def _shown(policy: Policy) -> list[object]:
    tag = policy.tag("agent-1-1")
    return [
        [item.id for item in policy.order()],
        [item.id for item in policy.victims()],
        str(tag),
    ]


if __name__ == "__main__":
    json.dump({variant: dispatch_log(variant) for variant in VARIANTS}, sys.stdout)
