"""``/v1/agents``: an agent is announced, looked at and ended by its client.

================================  ============================================  =======
route                             does                                          answers
================================  ============================================  =======
``POST /v1/agents``               announces an agent: ``id`` (made up where     201, 400
                                  there is none), ``cost``, ``stage_costs`` or  401, 409
                                  ``prompts``; if known ``kind``, ``weight``,   413
                                  ``inferences``
``GET /v1/agents/{id}``           tells how it is with it                       200, 404
``DELETE /v1/agents/{id}``        ends it, and its requests                     200, 404
================================  ============================================  =======

``prompts`` is a list of texts, or a list of such lists, one for each stage; what they
cost is predicted, each producing ``max_tokens`` or what the predictor says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from uuid import uuid4

from justitia.engines.serving import Agents, Claim
from justitia.engines.serving.agents import Predict
from justitia.engines.serving.claims import ClaimError
from justitia.engines.serving.desk import Refusal, read_announcement
from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.errors import GatewayError
from justitia.gateway.estimates import Pace, promise, reference_finish
from justitia.gateway.identity import check_cost, of_tenant
from justitia.gateway.lengths import MOST_TOKENS, Prompt, Ratios, whole_number
from justitia.policy.exact import Number, shown

MOST_PROMPTS = 10_000
_ONLY_PROMPTS = ("prompts", "max_tokens", "model")


@dataclass(slots=True)
class AgentsDesk:
    """Answers for the agents of a gateway.

    Attributes
    ----------
    predict
        Tells what a prompt will produce; None: `tokens`, where ``max_tokens`` says no
        less.
    steps
        The most tokens that any call so far may produce, `tokens` at least.
    """

    dispatcher: Dispatcher
    ratios: Ratios
    pace: Pace
    tokens: int
    predict: Predict | None = None
    steps: int = 1

    def __post_init__(self) -> None:
        # Before any call has said what it may produce there is a promise, too.
        self.steps = max(self.steps, self.tokens)

    def note_steps(self, steps: int, model: str | None) -> None:
        """Take note of what a call may produce; see `promise`.

        No engine produces more than its model's context, whatever a client says, and
        nothing for a model that none serves.
        """
        models = self.dispatcher.fleet.models
        if models and model is not None and model not in models:
            return
        context = self.dispatcher.fleet.context(model)
        self.steps = max(self.steps, steps if context is None else min(steps, context))

    @property
    def _agents(self) -> Agents:
        return self.dispatcher.agents

    def announce(self, tenant: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Let an agent arrive before its first request.

        Raises
        ------
        GatewayError
            400 or 409, naming the field and what is allowed.
        """
        told = {"id": uuid4().hex, **given}
        longest, model = (
            whole_number(told, "max_tokens", 1, MOST_TOKENS),
            told.get("model"),
        )
        if model is not None and not isinstance(model, str):
            raise GatewayError(
                400,
                "invalid_value",
                f"model must be a text, not {shown(model)}",
                "model",
            )
        if told.get("prompts") is not None:
            told["stage_costs"] = self._predicted(told, longest)
        for field in _ONLY_PROMPTS:
            told.pop(field, None)
        try:
            claim = read_announcement(told, further=_ONLY_PROMPTS)
            check_cost(claim)
        except (Refusal, ClaimError) as refusal:
            raise GatewayError(
                400, "invalid_value", str(refusal), refusal.field
            ) from None
        name = str(claim.agent)
        if f"{tenant}/{name}" in self._agents:
            raise GatewayError(
                409, "agent_exists", f"agent {shown(name)} is known already", "id"
            )
        self._agents.announce(of_tenant(claim, tenant))
        return self.describe(tenant, name)

    def describe(self, tenant: str, name: str) -> dict[str, Any]:
        """Return how it is with an agent."""
        inside = f"{tenant}/{name}"
        known = self._agents.describe(inside) if name else None
        if known is None:
            raise GatewayError(
                404, "agent_not_found", f"no agent {shown(name)} is known", "id"
            )
        policy = self._agents.policy
        capacity = self.dispatcher.fleet.capacity
        finish = reference_finish(policy, inside, self.pace)
        latest = promise(policy, inside, self.pace, capacity=capacity, steps=self.steps)
        return {
            "id": name,
            "object": "agent",
            **{field: _plain(value) for field, value in known.items()},
            "reference_finish": None if finish is None else finish.told(),
            "promised_finish": None if latest is None else latest.told(),
        }

    def dismiss(self, tenant: str, name: str) -> dict[str, Any]:
        """End an agent and its requests."""
        gone = self.dispatcher.dismiss(tenant, name) if name else None
        if gone is None:
            raise GatewayError(
                404, "agent_not_found", f"no agent {shown(name)} is known", "id"
            )
        return {"id": name, "object": "agent", "deleted": True, "cancelled": gone}

    def claim_predicting(self, claim: Claim, most: int | None) -> int | None:
        """Return what a request is thought to produce, where nobody has said."""
        if claim.tokens is not None or most is not None or self.predict is not None:
            return None
        return self.tokens

    def _predicted(self, told: Mapping[str, Any], longest: int | None) -> list[Number]:
        """Return what the prompts of an announcement cost, by stage."""
        if told.get("cost") is not None or told.get("stage_costs") is not None:
            raise GatewayError(
                400, "invalid_value", "give a cost or prompts, not both", "prompts"
            )
        stages = prompts = told["prompts"]
        if isinstance(prompts, list) and all(isinstance(p, str) for p in prompts):
            stages = [prompts]
        if (
            not isinstance(stages, list)
            or not stages
            or not all(
                isinstance(stage, list)
                and stage
                and all(isinstance(text, str) for text in stage)
                for stage in stages
            )
            or sum(map(len, stages)) > MOST_PROMPTS
        ):
            raise GatewayError(
                400,
                "invalid_value",
                f"prompts must be a list of 1 to {MOST_PROMPTS} texts, or of lists of "
                "them",
                "prompts",
            )
        kind = told.get("kind")
        return [
            sum(
                self._cost(
                    str(told.get("model") or ""),
                    kind if isinstance(kind, str) else "",
                    text,
                    longest,
                )
                for text in stage
            )
            for stage in stages
        ]

    def _cost(self, model: str, kind: str, text: str, longest: int | None) -> Number:
        tokens = self.ratios.tokens(model, Prompt(len(text), 0))
        produced = longest or self.tokens
        if self.predict is not None:
            produced = max(1, min(self.predict(kind, tokens, produced), produced))
        return self._agents.policy.cost_model(tokens, produced)


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value
