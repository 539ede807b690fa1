"""The scheduler's side of what a front end asks; imports SGLang.

SGLang's front end asks for a scheduler's internal state by a control message, which
goes to the scheduler of every rank and is answered between steps, in the scheduler's
own thread. Such a message may carry an id that SGLang leaves empty: one that begins
with `MARK` is a question to the policy's `Desk`, with a verb and a JSON object. SGLang
sends it on to all ranks of tensor parallelism, so that they stay alike.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sglang.srt.managers.io_struct import GetInternalStateReq, GetInternalStateReqOutput

from justitia.engines.sglang.binding import binding_of

KEY = "justitia"
"""Of what is ours in an internal state, and in what a scheduler says at its start."""
MARK = "justitia/"
_LASTING = (
    "version", "engine", "engine_version", "scheduler", "capacity_tokens", "policy",
    "options", "limits", "admission",
)  # fmt: skip


def question(call: int, verb: str, given: Mapping[str, Any]) -> GetInternalStateReq:
    """Return the message that asks a desk; `call` comes back with the answer."""
    asked = {"call": call, "verb": verb, "given": dict(given)}
    return GetInternalStateReq(rid=MARK + json.dumps(asked))


def answer(
    original: Callable[..., GetInternalStateReqOutput],
    scheduler: Any,
    recv_req: GetInternalStateReq,
) -> GetInternalStateReqOutput:
    """Answer in place of ``Scheduler.get_internal_state``.

    A question of ours is answered by the desk, and SGLang's own with the policy's state
    under `KEY` in it.
    """
    binding = binding_of(scheduler)
    if (recv_req.rid or "").startswith(MARK):
        asked = json.loads((recv_req.rid or "")[len(MARK) :])
        told = json.loads(binding.answer(asked["verb"], json.dumps(asked["given"])))
        ours = {"call": asked["call"], "told": told}
        return GetInternalStateReqOutput(internal_state={KEY: ours})
    output = original(scheduler, recv_req)
    output.internal_state[KEY] = _state(scheduler)
    return output


def introduce(result: dict[str, Any], scheduler: Any) -> dict[str, Any]:
    """Add to what a scheduler says at its start that the policy is in it.

    Called after ``Scheduler.get_init_info``; SGLang sends that to its main process.
    """
    told = _state(scheduler)
    result[KEY] = {fact: told[fact] for fact in _LASTING if fact in told}
    return result


def _state(scheduler: Any) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(binding_of(scheduler).answer("state", "{}"))
    del told["status"]
    return told
