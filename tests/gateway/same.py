"""What the official client gets through a gateway is what the engine itself gives it.

Each request goes to the engine twice and through the gateway once: the first time fills
the engine's cache of prefixes, so that the other two are computed alike.
"""

import asyncio
import json
import re
from typing import Any

import httpx
import openai
import pytest

from tests.engines.servers import KEY, MODEL
from tests.gateway.live import Live

CHAT, TEXT, MODELS = "/v1/chat/completions", "/v1/completions", "/v1/models"
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "the weather of a town",
        "parameters": {
            "type": "object",
            "properties": {"town": {"enum": ["Oslo", "Rome"]}},
            "required": ["town"],
            "additionalProperties": False,
        },
    },
}
FORCED: dict[str, Any] = {
    "tools": [WEATHER],
    "tool_choice": {"type": "function", "function": {"name": "weather"}},
    # Always the likeliest, it would never come out of a grammar's white space.
    "temperature": 1,
    "seed": 1,
    "max_tokens": 250,
}
CALLED: list[dict[str, Any]] = [
    {"role": "user", "content": "How is Oslo?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"town": "Oslo"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
]
PARTS = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {}),
    "log probabilities": (CHAT, {"logprobs": True, "top_logprobs": 2}),
    "choices": (CHAT, {"n": 3, "temperature": 1, "top_k": 1}),
    "a tool that must not be": (CHAT, {"tools": [WEATHER], "tool_choice": "none"}),
    "a tool's answer": (CHAT, {"messages": CALLED}),
    "parts": (CHAT, {"messages": [{"role": "user", "content": PARTS}]}),
    "text": (TEXT, {"prompt": "the agent", "logprobs": 2}),
    "token ids": (TEXT, {"prompt": [5, 6, 7, 8]}),
    "several prompts": (TEXT, {"prompt": ["the agent", "the engine"]}),
    "echo": (TEXT, {"prompt": "the agent", "echo": True}),
}
CALL = "a tool that must be called"
"""Of an engine that generates by a grammar."""
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "too long": (TEXT, {"prompt": "a token " * 6000}),
    "too long a chat": (
        CHAT, {"messages": [{"role": "user", "content": "a token " * 6000}]}
    ),
    "too hot": (CHAT, {"temperature": -1}),
    "no such parameter's value": (CHAT, {"top_p": "warm"}),
    "a function that is not there": (
        CHAT, {**FORCED, "tools": [], "tool_choice": FORCED["tool_choice"]}
    ),
}  # fmt: skip

_OWN = re.compile(rb'"(id|created|request_id)": ?("[^"]*"|\d+)')
_NUMBER = re.compile(rb"-?\d+\.\d+(e-?\d+)?")


def same(body: bytes) -> bytes:
    """Return an answer without what is another in every one: ids, times, rounding."""
    named = _OWN.sub(rb'"\1": 0', body)
    return _NUMBER.sub(lambda found: b"%.3g" % float(found[0]), named)


def asked(path: str, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a request that is answered alike each time."""
    whole: dict[str, Any] = {
        "model": MODEL, "max_tokens": 6, "temperature": 0, "seed": 1,
        "ignore_eos": True,
    }  # fmt: skip
    if path == CHAT:
        whole["messages"] = [{"role": "user", "content": "Why?"}]
    return {**whole, **body, **more}


def told(stream: bytes) -> dict[int, dict[str, Any]]:
    """Return what a stream says in all, by choice, however it was cut into events."""
    choices: dict[int, dict[str, Any]] = {}
    for line in stream.splitlines():
        if not line.startswith(b"data: {"):
            continue
        for part in json.loads(line[6:])["choices"]:
            choice = choices.setdefault(part["index"], {})
            for field, value in {**part, **part.get("delta", {})}.items():
                if field in ("content", "text") and value:
                    choice[field] = choice.get(field, "") + value
                elif field == "tool_calls" and value:
                    for call in value:
                        calls = choice.setdefault("calls", {})
                        one = calls.setdefault(call["index"], {"arguments": ""})
                        function = call["function"]
                        one["name"] = function.get("name") or one.get("name")
                        one["arguments"] += function.get("arguments") or ""
                elif field == "logprobs" and value:
                    texts = [one["token"] for one in value.get("content") or ()]
                    choice.setdefault("tokens", []).extend(texts)
                elif field == "finish_reason" and value:
                    choice[field] = value
    return choices


async def check_same(live: Live, url: str, *, grammar: bool) -> None:
    """Compare answers, streams and errors of an engine and of a gateway before it.

    Parameters
    ----------
    grammar
        Whether the engine generates by one, so that a tool can be forced.
    """
    forced = {CALL: (CHAT, FORCED)}
    answered, refused = REQUESTS, REFUSED | forced
    if grammar:
        answered, refused = REQUESTS | forced, REFUSED
    async with httpx.AsyncClient(
        base_url=url, headers={"authorization": f"Bearer {KEY}"}, timeout=300,
        trust_env=False,
    ) as engine:  # fmt: skip
        for name, (path, body) in answered.items():
            whole = asked(path, body)
            await engine.post(path, json=whole)
            one = await engine.post(path, json=whole)
            two = await live.http.post(path, json=whole)
            assert one.status_code == 200, (name, one.text)
            assert two.status_code == 200, (name, two.text)
            assert same(two.content) == same(one.content), name
            assert two.headers["content-type"] == one.headers["content-type"]
            options = {"stream_options": {"include_usage": True}}
            for more in ({"stream": True}, {"stream": True, **options}):
                whole = asked(path, body, **more)
                one = await engine.post(path, json=whole)
                two = await live.http.post(path, json=whole)
                assert (one.status_code, two.status_code) == (200, 200), name
                assert told(two.content) == told(one.content), name
                assert len(told(one.content)) >= 1
                assert (b'"usage":{' in two.content) == ("stream_options" in more)
                assert two.headers["content-type"] == one.headers["content-type"]
        for name, (path, body) in refused.items():
            for more in ({}, {"stream": True}):
                whole = asked(path, body, **more)
                one = await engine.post(path, json=whole)
                two = await live.http.post(path, json=whole)
                # SGLang refuses some streams in their first event.
                assert "error" in one.text, (name, one.text)
                assert more or 400 <= one.status_code < 500, (name, one.text)
                assert two.status_code == one.status_code, (name, two.text)
                assert same(two.content) == same(one.content), name
        names = [one["id"] for one in (await engine.get(MODELS)).json()["data"]]
    async with live.client() as client:
        assert [model.id async for model in client.models.list()] == names
    await live.rests()


async def check_tools(live: Live) -> None:
    """The official client reads a call of a tool, whole and streamed."""
    messages: Any = [{"role": "user", "content": "How is Oslo?"}]
    more: dict[str, Any] = {"model": MODEL, "messages": messages, **FORCED}
    async with live.client() as client:
        answer = await client.chat.completions.create(**more)
        (call,) = answer.choices[0].message.tool_calls or [None]
        assert call is not None, answer
        assert call.type == "function"
        assert call.function.name == "weather"
        name, arguments = "", ""
        async for part in await client.chat.completions.create(**more, stream=True):
            for choice in part.choices:
                for delta in choice.delta.tool_calls or ():
                    assert delta.function is not None
                    name += delta.function.name or ""
                    arguments += delta.function.arguments or ""
        assert (name, arguments) == ("weather", call.function.arguments)
    await live.rests()


async def check_client(live: Live) -> None:
    """The official client's raw answers, timeouts and errors are as with an engine."""
    async with live.client() as client:
        raw = await client.completions.with_raw_response.create(
            model=MODEL, prompt="x", max_tokens=2
        )
        assert raw.headers["content-type"].startswith("application/json")
        assert raw.request_id == raw.headers["x-request-id"]
        assert (raw.parse().usage or raw).completion_tokens == 2  # type: ignore[union-attr]
        with pytest.raises(openai.BadRequestError, match=r"context|length|longer"):
            await client.completions.create(model=MODEL, prompt="a token " * 6000)
        with pytest.raises(openai.NotFoundError) as found:
            await client.completions.create(model="unknown", prompt="x")
        assert found.value.code == "model_not_found"
        long: dict[str, Any] = {
            "model": MODEL, "prompt": "x", "n": 16, "max_tokens": 400,
            "extra_body": {"ignore_eos": True},
        }  # fmt: skip
        with pytest.raises(openai.APITimeoutError):
            await client.with_options(timeout=0.05).completions.create(**long)
        await live.rests()

        async def read() -> None:
            async for _ in await client.completions.create(**long, stream=True):
                pass

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read(), 0.1)
        await live.rests()
        async with await client.completions.create(
            model=MODEL, prompt="x", max_tokens=400, stream=True
        ) as stream_:
            await anext(aiter(stream_))
    await live.rests()
