"""What an engine says of itself, and what is made of nonsense."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from justitia.gateway.fleet import Engine
from justitia.gateway.settings import EngineSettings, Limits
from justitia.gateway.upstream import (
    EngineLost,
    Facts,
    Upstream,
    sglang_capacity,
    vllm_capacity,
)

VLLM = """# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="101"} 1.0
vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="51"} 1.0
vllm:cache_config_info{block_size="None",engine="2",num_gpu_blocks="None"} 1.0
"""


def look(answers: dict[str, Any], **more: Any) -> Facts:
    def answer(request: httpx.Request) -> httpx.Response:
        told = answers.get(request.url.path)
        if told is None:
            return httpx.Response(404)
        if isinstance(told, int):
            return httpx.Response(told)
        return httpx.Response(
            200, text=told if isinstance(told, str) else json.dumps(told)
        )

    async def doing() -> Facts:
        upstream = Upstream(
            Engine("e"),
            EngineSettings(url="http://e", **more),
            Limits(),
            httpx.MockTransport(answer),
        )
        try:
            return await upstream.look(fresh=True)
        finally:
            await upstream.close()

    return asyncio.run(doing())


def models(owner: str) -> dict[str, Any]:
    return {"data": [{"id": "m", "owned_by": owner, "max_model_len": 512}]}


def test_what_it_is_and_what_it_holds() -> None:
    vllm = {"/v1/models": models("vllm"), "/health": "", "/metrics": VLLM}
    assert look(vllm) == Facts("vllm", {"m": 512}, 150 * 16)
    told = {"max_total_num_tokens": 2048, "internal_states": [{}]}
    sglang = {"/v1/models": models("sglang"), "/health": "", "/server_info": told}
    assert look(sglang) == Facts("sglang", {"m": 512}, 2048)
    other = {"/v1/models": {"data": [{"id": "m"}]}}
    assert look(other) == Facts("openai", {"m": None}, None)
    assert look(other, capacity=77).capacity == 77


def test_capacities() -> None:
    assert vllm_capacity("") is None
    ranks = [{"max_total_num_tokens": 5}, {"max_total_num_tokens": 6}]
    assert sglang_capacity({"internal_states": ranks}) == 11
    assert sglang_capacity({"internal_states": [], "max_total_num_tokens": -1}) is None


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/v1/models": 500},
        {"/v1/models": "no json"},
        {"/v1/models": []},
        {"/v1/models": {"data": None}},
        {"/v1/models": {"data": {"a": 1}}},
        {"/v1/models": {"data": [1, "x"]}},
        {"/v1/models": "[" * 100_000},
        {"/v1/models": models("vllm")},
        {"/v1/models": models("vllm"), "/health": 503},
        {"/v1/models": models("vllm"), "/health": "", "/metrics": "}{ nonsense"},
        {"/v1/models": models("sglang"), "/health": "", "/server_info": [1]},
    ],
)
def test_who_talks_nonsense_is_not_well(answers: dict[str, Any]) -> None:
    with pytest.raises(EngineLost) as lost:
        look(answers)
    assert str(lost.value).isprintable()  # a line of the log


def test_a_key_that_an_engine_does_not_take_is_told() -> None:
    with pytest.raises(EngineLost) as lost:
        look({"/v1/models": 401})
    assert str(lost.value) == (
        "/v1/models is answered with 401: does it have another key?"
    )


@pytest.mark.parametrize(
    ("kind", "path", "told", "version"),
    [
        ("vllm", "/version", {"version": "0.32.0"}, "0.32.0"),
        ("sglang", "/server_info", {"version": "0.5.16", "more": 1}, "0.5.16"),
        ("openai", "/version", {"version": "1"}, None),
        ("vllm", "/version", {"version": 3}, None),
        ("vllm", "/version", {"version": "a\nb"}, None),
        ("vllm", "/version", [], None),
        ("vllm", "/version", "nonsense", None),
        ("vllm", "/other", {}, None),
    ],
)
def test_its_version_is_told_if_it_tells_one(
    kind: str, path: str, told: object, version: str | None
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        known = request.url.path == path
        return httpx.Response(200, json=told) if known else httpx.Response(404)

    async def doing() -> str | None:
        upstream = Upstream(
            Engine("e"),
            EngineSettings.model_validate({"url": "http://e", "kind": kind}),
            Limits(),
            httpx.MockTransport(answer),
        )
        try:
            return await upstream.version()
        finally:
            await upstream.close()

    assert asyncio.run(doing()) == version
