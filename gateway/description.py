"""What the API is, for programs: an OpenAPI 3.1 document, ``GET /openapi.json``.

Names and bounds are those by which requests are read: headers and fields of `identity`
and `claims`, lengths of `lengths`, codes of `errors`. What an engine answers is the
engine's to describe, and is left open here.
"""

from collections.abc import Mapping
from typing import Any

from justitia import __version__
from justitia.engines.serving.claims import (
    LEAST_WEIGHT,
    LONGEST_NAME,
    MOST_STAGES,
    MOST_WEIGHT,
)
from justitia.engines.serving.claims import MOST_INFERENCES as MOST_DECLARED
from justitia.engines.serving.claims import MOST_TOKENS as MOST_PREDICTED
from justitia.gateway.agents import MOST_PROMPTS
from justitia.gateway.errors import CODES
from justitia.gateway.identity import (
    FIELD,
    MOST_COST,
    MOST_STAGE_COST,
    OTHERS,
    OURS,
)
from justitia.gateway.lengths import MOST_INFERENCES, MOST_TOKENS
from justitia.policy.exact import SMALLEST

Schema = dict[str, Any]

JSON, STREAM = "application/json", "text/event-stream"
_ANSWER = "what the engine answered, as it is"
_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_NAME,
    "pattern": "^[!-~]([ -~]*[!-~])?$",
}
_COST: Schema = {"type": "number", "minimum": SMALLEST, "maximum": MOST_COST}
_STAGE_COST: Schema = {**_COST, "maximum": MOST_STAGE_COST}
_SAID: dict[str, tuple[str, Schema]] = {
    "agent": ("its agent's id", _NAME),
    "kind": ("its agent's type", _NAME),
    "cost": ("predicted work of the whole agent, in token-steps", _COST),
    "weight": (
        "the agent's weight among those of its tenant",
        {"type": "number", "minimum": LEAST_WEIGHT, "maximum": MOST_WEIGHT},
    ),
    "stage": (
        "the stage that the request belongs to",
        {"type": "integer", "minimum": 0, "maximum": MOST_STAGES - 1},
    ),
    "inferences": (
        "how many inferences the agent will have in all",
        {"type": "integer", "minimum": 1, "maximum": MOST_DECLARED},
    ),
    "tokens": (
        "tokens that the request is predicted to produce",
        {"type": "integer", "minimum": 0, "maximum": MOST_PREDICTED},
    ),
    "stage_costs": (
        "the cost by stage; it adds up to the cost, if that is said, too",
        {"type": "array", "items": _STAGE_COST, "minItems": 1, "maxItems": MOST_STAGES},
    ),
}


def describe(*, keys: bool, state_key: bool) -> dict[str, Any]:
    """Return the document.

    Parameters
    ----------
    keys
        Whether clients need one.
    state_key
        Whether who looks at the state does.
    """
    key: Schema = {"key": []}
    guarded = [key] if keys else []
    watched = [key] if state_key else []
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Justitia gateway",
            "version": __version__,
            "description": "An OpenAI-compatible service that is fair to agents.",
        },
        "paths": {
            "/v1/chat/completions": {"post": _completion("Chat", guarded)},
            "/v1/completions": {"post": _completion("Text", guarded)},
            "/v1/models": {
                "get": _operation(
                    "models", "What the engines that are up serve", guarded,
                    {200: _listed("Model")}, 401,
                )
            },
            "/v1/models/{id}": {
                "parameters": [_id("of a model")],
                "get": _operation(
                    "model", "One of those", guarded,
                    {200: _of("Model", "the model")}, 401, 404,
                ),
            },
            "/v1/agents": {
                "post": _operation(
                    "announce", "Announces an agent before its first request", guarded,
                    {201: _of("Agent", "the agent") | _LINKS},
                    400, 401, 408, 409, 413,
                    body="Announcement",
                )
            },
            "/v1/agents/{id}": {
                "parameters": [_id("of an agent")],
                "get": _operation(
                    "agent", "How it is with an agent", guarded,
                    {200: _of("Agent", "the agent")}, 401, 404,
                ),
                "delete": _operation(
                    "dismiss", "Ends an agent, and its requests with 499", guarded,
                    {200: _of("Dismissed", "it is gone")}, 401, 404,
                ),
            },
            "/v1/state": {
                "get": _operation(
                    "state", "What the page shows: a tenant's own, and sums", watched,
                    {200: _of("State", "how it is, no older than a second")}, 401,
                )
            },
            "/healthz": {
                "get": _operation(
                    "alive", "The process is there", [], {200: _of("Health", "it is")}
                )
            },
            "/readyz": {
                "get": _operation(
                    "ready", "An engine is there", [],
                    {200: _of("Ready", "one is"), 503: _of("Ready", "none is")},
                )
            },
            "/metrics": {
                "get": _operation(
                    "metrics", "For Prometheus", [],
                    {200: {
                        "description": "all metrics",
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    }},
                )
            },
            "/openapi.json": {
                "get": _operation(
                    "description", "This document", [],
                    {200: _json({"type": "object"}, "the document")},
                )
            },
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "a key of a tenant; without tenants none is asked "
                    "for. The operator's is for the state alone",
                }
            },
        },
    }  # fmt: skip


def _operation(
    name: str,
    summary: str,
    guarded: list[Schema],
    answers: Mapping[int | str, Schema],
    *errors: int,
    body: str | None = None,
) -> Schema:
    told: Schema = {
        "operationId": name,
        "summary": summary,
        "security": guarded,
        "responses": {
            **{str(status): answer for status, answer in answers.items()},
            **{str(status): _error(status) for status in errors},
        },
    }
    if body is not None:
        content = {JSON: {"schema": _ref(body)}}
        told["requestBody"] = {"required": True, "content": content}
    return told


def _completion(form: str, guarded: list[Any]) -> Schema:
    request_id = {"x-request-id": {"schema": {"type": "string"}}}
    told = _operation(
        form.lower(),
        f"{form} completions: every field but `{FIELD}` goes to the engine as it is",
        guarded,
        {
            200: {
                "description": f"{_ANSWER}: a stream, if one was asked for. An error "
                "in a stream that has begun is its last event",
                "headers": request_id,
                "content": {
                    JSON: {"schema": {"type": "object"}},
                    STREAM: {
                        "schema": {
                            "type": "object",
                            "description": "an event, by its fields",
                            "properties": {"data": {"type": "string"}},
                        }
                    },
                },
            },
            **{
                f"{hundred}XX": {
                    "description": f"{_ANSWER}; it has the form of an error, in "
                    "OpenAI's engines",
                    "content": {"*/*": {"schema": {}}},
                }
                for hundred in (4, 5)
            },
        },
        body=form,
    )
    told["responses"] |= {
        str(status): _error(status, alone=status in (401, 408, 499))
        for status in (400, 401, 404, 408, 413, 429, 499, 502, 503, 504)
    }
    told["parameters"] = [
        *(_header(header, *_SAID[field]) for header, field in OURS.items()),
        *(
            _header(header, "the agent's id, where nothing of ours names one", _NAME)
            for header in OTHERS
        ),
    ]
    return told


def _header(name: str, meaning: str, schema: Schema) -> Schema:
    return {"name": name, "in": "header", "description": meaning, "schema": schema}


def _id(what: str) -> Schema:
    return {
        "name": "id",
        "in": "path",
        "required": True,
        "description": f"{what}, with all but letters and digits percent-encoded",
        "schema": {"type": "string", "minLength": 1},
    }


_LINKS: Schema = {
    "links": {
        name: {"operationId": name, "parameters": {"id": "$response.body#/id"}}
        for name in ("agent", "dismiss")
    }
}


def _schemas() -> dict[str, Schema]:
    count = _or_null({"type": "integer", "minimum": 0, "maximum": MOST_TOKENS})
    some = _or_null({"type": "integer", "minimum": 1, "maximum": MOST_INFERENCES})
    common: Schema = {
        "model": {
            "type": ["string", "null"],
            "description": "null: any that an engine serves",
        },
        "n": some,
        "max_tokens": count,
        "stream": {"type": ["boolean", "null"]},
        "stream_options": {"type": ["object", "null"]},
        FIELD: {"anyOf": [_ref("Claim"), {"type": "null"}]},
    }
    ids: Schema = {"type": "array", "minItems": 1, "items": {"type": "integer"}}
    texts: Schema = {"type": "array", "items": {"type": "string"}}
    several = {"minItems": 1, "maxItems": MOST_INFERENCES}
    number: Schema = {"type": ["number", "null"]}
    name: Schema = {"anyOf": [_NAME, {"type": "integer"}]}
    said = {**_SAID, "agent": (_SAID["agent"][0], name)}
    estimate = _or_null(
        _object({"work": {"type": "number"}, "seconds": number}, "work", "seconds")
    )
    announced = {
        field: _or_null(_SAID[field][1])
        for field in ("kind", "weight", "inferences", "cost", "stage_costs")
    }
    longest: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS}
    stage = {**texts, "minItems": 1, "maxItems": MOST_PROMPTS}
    prompts = [stage, {"type": "array", "items": stage, "minItems": 1}]
    absent: Schema = {"type": "null"}
    listed: Schema = {"type": "array", "items": {"type": "object"}}
    priced = {
        "prompts": {"anyOf": prompts},
        "cost": _COST,
        "stage_costs": _SAID["stage_costs"][1],
    }
    return {
        "Claim": {
            **_object(
                {f: {"description": d, **_or_null(s)} for f, (d, s) in said.items()}
            ),
            "additionalProperties": {"type": "null"},
            "description": "what a request says of its agent and of itself; a header "
            "of the same meaning is stronger",
        },
        "Chat": _object(
            {
                "messages": {
                    "type": "array", "minItems": 1, "items": {"type": "object"},
                },
                "max_completion_tokens": count,
                **common,
            },
            "messages",
        ),
        "Text": _object(
            {
                "prompt": {
                    "anyOf": [
                        {"type": "string"},
                        {**texts, **several},
                        ids,
                        {"type": "array", **several, "items": ids},
                    ]
                },
                "best_of": some,
                **common,
            },
            "prompt",
        ),
        "Announcement": {
            **_object(
                {
                    "id": name,
                    **announced,
                    "prompts": {
                        "anyOf": [*prompts, {"type": "null"}],
                        "description": "texts, or lists of texts by stage, whose cost "
                        f"is predicted; {MOST_PROMPTS} texts at most",
                    },
                    "max_tokens": _or_null(longest),
                    "model": {"type": ["string", "null"]},
                }
            ),
            "additionalProperties": False,
            "oneOf": [
                {
                    "required": [field],
                    "properties": {**dict.fromkeys(priced, absent), field: schema},
                }
                for field, schema in priced.items()
            ],
        },
        "Agent": _object(
            {
                "id": {"type": "string"},
                "object": {"const": "agent"},
                "kind": {"type": "string"},
                "weight": {"type": "number"},
                "cost": number,
                "tag": number,
                "waiting": {"type": "integer", "minimum": 0},
                "running": {"type": "integer", "minimum": 0},
                "delivered": {"type": "number", "minimum": 0},
                "reference_finish": estimate,
                "promised_finish": estimate,
            },
            "id", "object", "kind", "weight", "cost", "tag", "waiting", "running",
            "delivered", "reference_finish", "promised_finish",
        ),
        "Dismissed": _object(
            {
                "id": {"type": "string"},
                "object": {"const": "agent"},
                "deleted": {"const": True},
                "cancelled": {"type": "integer", "minimum": 0},
            },
            "id", "object", "deleted", "cancelled",
        ),
        "Model": _object(
            {
                "id": {"type": "string"},
                "object": {"const": "model"},
                "created": {"type": "integer"},
                "owned_by": {"type": "string"},
                "max_model_len": {"type": ["integer", "null"]},
            },
            "id", "object", "created", "owned_by",
        ),
        "State": _object(
            {
                "version": {"type": "string"},
                "policy": {"type": "string"},
                "viewer": {"type": ["string", "null"]},
                "totals": {"type": "object"},
                "reference": {"type": ["object", "null"]},
                "agents": listed,
                "agents_left_out": {"type": "integer", "minimum": 0},
                "engines": listed,
                "completions": listed,
                "tenants": listed,
            },
            "version", "policy", "viewer", "totals", "agents", "agents_left_out",
            "engines", "completions", "tenants",
        ),
        "Health": _object(
            {"status": {"const": "ok"}, "version": {"type": "string"}},
            "status", "version",
        ),
        "Ready": _object(
            {
                "ready": {"type": "boolean"},
                "engines": {
                    "type": "object", "additionalProperties": {"type": "boolean"},
                },
            },
            "ready", "engines",
        ),
    }  # fmt: skip


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: Schema, meaning: str) -> Schema:
    return {"description": meaning, "content": {JSON: {"schema": schema}}}


def _of(name: str, meaning: str) -> Schema:
    return _json(_ref(name), meaning)


def _listed(name: str) -> Schema:
    properties = {
        "object": {"const": "list"},
        "data": {"type": "array", "items": _ref(name)},
    }
    return _json(_object(properties, "object", "data"), "a list of them")


def _error(status: int, *, alone: bool = True) -> Schema:
    """Return an answer with an error of the gateway's, or of an engine's if not."""
    codes = CODES[status]
    error = _object(
        {
            "message": {"type": "string"},
            "type": {"type": "string"},
            "param": {"type": ["string", "null"]},
            "code": {"enum": list(codes)},
        },
        "message", "type", "param", "code",
    )  # fmt: skip
    whole = _object({"error": error}, "error")
    if alone:
        return _json(whole, ", ".join(codes))
    told = _json({"anyOf": [whole, {}]}, f"{', '.join(codes)}; or {_ANSWER}")
    told["content"]["*/*"] = {"schema": {}}
    return told
