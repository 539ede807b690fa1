"""The agents of a gateway, with a journal by which they are found again.

Each verb that changes what is known is written down. The last frozen state and the
verbs since then make the state of now, since a policy answers the same events in the
same way. Requests do not outlive a process, so those that lived are ended when it is
found again. What has no request then goes on as it was: tags, what agents and tenants
were delivered, what the fair reference owes.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any
from uuid import uuid4

from justitia.engines.serving import Agents, Claim
from justitia.engines.serving.agents import Predict
from justitia.gateway.freezing import FrozenError, Functions, freeze, thaw
from justitia.policy import Agent, Policy, PolicyError
from justitia.policy.exact import Number

Write = Callable[[str], None]
"""Takes a verb, as JSON."""

_log = logging.getLogger("justitia.gateway")


class Recorded(Agents):
    """`Agents` that write down what they are told.

    Parameters
    ----------
    write
        Takes each verb as soon as it was done.

    Attributes
    ----------
    epoch
        Since when agents are numbered: a word of its own for each fresh state.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        now: Callable[[], float],
        write: Write,
        linger: float = 300.0,
        most: int = 10_000,
        predict: Predict | None = None,
    ) -> None:
        super().__init__(policy, now=now, linger=linger, most=most, predict=predict)
        self.epoch = uuid4().hex[:8]
        self._write = write
        self._playing = False

    def announce(self, claim: Claim) -> Agent:
        """Let an agent arrive."""
        told = super().announce(claim)
        self._note("announce", _told(claim))
        return told

    def revise(self, name: str, cost: Number) -> None:
        """Replace a cost."""
        super().revise(name, cost)
        self._note("revise", name, cost)

    def dismiss(self, name: str) -> tuple[str, ...] | None:
        """End an agent."""
        gone = super().dismiss(name)
        if gone is not None:
            self._note("dismiss", name)
        return gone

    def submit(
        self, request_id: str, claim: Claim, prompt_tokens: int, longest: int
    ) -> None:
        """Put a request in line; what was predicted is written, and not asked again."""
        super().submit(request_id, claim, prompt_tokens, longest)
        predicted = self.predicted(request_id)
        self._note(
            "submit", request_id, _told(claim), prompt_tokens, longest, predicted
        )

    def start(self, request_id: str) -> None:
        """Take note that a request runs."""
        super().start(request_id)
        self._note("start", request_id)

    def requeue(self, request_id: str) -> None:
        """Take note that a request is back in line."""
        super().requeue(request_id)
        self._note("requeue", request_id)

    def serve(self, prefill: Mapping[str, int], decode: Mapping[str, int]) -> None:
        """Take note of tokens."""
        super().serve(prefill, decode)
        self._note("serve", dict(decode))

    def charge(self, request_id: str, work: int) -> None:
        """Take note of work that no step told of."""
        super().charge(request_id, work)
        self._note("charge", request_id, work)

    def finish(self, request_id: str) -> bool:
        """Take note of an end."""
        there = super().finish(request_id)
        if there:
            self._note("finish", request_id)
        return there

    def _forget_the_idle(self) -> None:
        while (agent_id := self._idle.due()) is not None:
            self.forgotten += 1
            self._leave(self._agents[agent_id])
            self._note("forget", agent_id)

    def _note(self, verb: str, *given: object) -> None:
        if not self._playing:
            self._write(json.dumps([verb, *given], separators=(",", ":")))

    # What is kept -------------------------------------------------------------------

    def frozen(self, functions: Functions) -> str:
        """Return all that is known, as text."""
        self.catch_up()
        kept = {
            "policy": self._policy,
            "agents": self._agents,
            "requests": self._requests,
            "produced": self._produced,
            "resting": list(self._idle._since),
            "arrivals": self._arrivals,
            "epoch": self.epoch,
        }
        return freeze(kept, functions)

    def recall(self, kept: Mapping[str, Any], verbs: list[str]) -> int:
        """Know again what was known, and return how many requests are ended by that.

        Parameters
        ----------
        kept
            What `read_frozen` gave; its policy must be the one that this was made with.
        verbs
            That were written since.

        Raises
        ------
        FrozenError
            If a verb is none.
        """
        self._playing = True
        try:
            self._agents = kept["agents"]
            self._requests = kept["requests"]
            self._produced = kept["produced"]
            self._arrivals = kept["arrivals"]
            self.epoch = kept["epoch"]
            for agent_id in kept["resting"]:
                self._idle.rest(agent_id)
            for verb in verbs:
                self._play(json.loads(verb))
            lived = list(self.requests)
            for request_id in lived:
                self.finish(request_id)
        except (ValueError, TypeError, LookupError) as error:
            if isinstance(error, FrozenError):
                raise
            raise FrozenError(
                f"the journal cannot be played: {error!r}"[:300]
            ) from None
        finally:
            self._playing = False
        return len(lived)

    def _play(self, verb: list[Any]) -> None:
        name, *given = verb
        if name == "submit":
            request_id, claim, prompt, longest, predicted = given
            told = {**_read(claim), "tokens": predicted}
            self.submit(request_id, Claim(**told), prompt, longest)
        elif name == "announce":
            self.announce(Claim(**_read(given[0])))
        elif name == "serve":
            self.serve({}, given[0])
        elif name == "forget":
            if given[0] in self._agents:
                self._leave(self._agents[given[0]])
        elif name in ("revise", "dismiss", "start", "requeue", "charge", "finish"):
            getattr(self, name)(*given)
        else:
            raise FrozenError(f"there is no verb {name!r}")


def read_frozen(text: str, functions: Functions) -> dict[str, Any]:
    """Return what `Recorded.frozen` wrote.

    Raises
    ------
    FrozenError
        If it did not.
    """
    kept = thaw(text, functions)
    fields = {
        "policy", "agents", "requests", "produced", "resting", "arrivals", "epoch"
    }  # fmt: skip
    if not isinstance(kept, dict) or kept.keys() != fields:
        raise FrozenError("not the state of agents")
    if not isinstance(kept["policy"], Policy):
        raise FrozenError("there is no policy in the state")
    try:
        kept["policy"]._check()
    except (AssertionError, AttributeError, PolicyError) as error:
        raise FrozenError(f"the state contradicts itself: {error!r}"[:300]) from None
    return kept


_FIELDS = ("agent", "cost", "stage_costs", "kind", "weight", "stage", "inferences")


def _told(claim: Claim) -> list[Any]:
    """Return a claim as JSON has it, without what is counted and logged once."""
    return list(astuple(claim)[: len(_FIELDS)])


def _read(told: list[Any]) -> dict[str, Any]:
    given = dict(zip(_FIELDS, told, strict=True))
    given["stage_costs"] = tuple(given["stage_costs"])
    return given
