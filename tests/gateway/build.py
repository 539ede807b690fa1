"""Builders in which every knob has a default, so a test shows only what it is about."""

from typing import Any

from justitia.engines.serving import Agents, Claim
from justitia.gateway.dispatcher import Call, Dispatcher
from justitia.gateway.fleet import Engine, Fleet
from justitia.policy import Policy, create


class Clock:
    """A time that goes as a test says."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def engine(name: str = "one", up: bool = True, **more: Any) -> Engine:
    made = Engine(name, **{"capacity": 100, **more})
    made.up = up
    return made


def dispatcher(
    *engines: Engine, policy: Policy | None = None, linger: float = 10, **more: Any
) -> Dispatcher:
    agents = Agents(policy or create("justitia"), now=Clock(), linger=linger)
    return Dispatcher(agents, Fleet(engines or (engine(),)), **more)


_numbers = iter(range(10**9))


def call(
    agent: str | None = None,
    prompt: int = 10,
    most: int = 10,
    *,
    tenant: str = "t",
    count: int = 1,
    model: str | None = None,
    marks: tuple[bytes, ...] = (),
    **claim: Any,
) -> Call:
    name = None if agent is None else f"{tenant}/{agent}"
    return Call(
        f"{tenant}/{next(_numbers)}",
        tenant,
        Claim(name, **claim),
        (prompt,) * count,
        most,
        model,
        marks,
    )
