"""Engines as servers have them, with their tokens: native, and with the policy.

Each that is native is in a process of its own, so that the two can take turns on one
machine and know nothing of each other.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Protocol

AGENT = 8
"""Requests of an agent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a load came to.

    Attributes
    ----------
    outputs
        The tokens of each request, in the order in which they were sent.
    cached
        Tokens of each prompt that were in the cache.
    """

    seconds: float
    outputs: list[list[int]]
    cached: list[int]


class Served(Protocol):
    """An engine that is given all requests of a load at once."""

    def run(self, prompts: Sequence[Sequence[int]], tokens: int) -> Answer:
        """Serve requests greedily, each to so many tokens."""

    def close(self) -> None:
        """Let the engine go."""


# vLLM ---------------------------------------------------------------------------------


class VLLM:
    """An `LLMEngine` in this process."""

    def __init__(self, engine: Any) -> None:  # noqa: ANN401 - vLLM's
        self._engine = engine
        self._sent = 0

    def run(self, prompts: Sequence[Sequence[int]], tokens: int) -> Answer:
        """Serve requests; agents of eight."""
        from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415

        places: dict[str, int] = {}
        ended: dict[int, Any] = {}
        began = perf_counter()
        for place, prompt in enumerate(prompts):
            self._sent += 1
            params = SamplingParams(
                temperature=0.0,
                ignore_eos=True,
                max_tokens=tokens,
                detokenize=False,
                extra_args={"justitia_agent": f"{self._sent // AGENT}"},
            )
            name = f"served-{self._sent}"
            places[name] = place
            self._engine.add_request(
                name, TokensPrompt(prompt_token_ids=list(prompt)), params
            )
        while self._engine.has_unfinished_requests():
            for one in self._engine.step():
                if one.finished:
                    ended[places[one.request_id]] = one
        seconds = perf_counter() - began
        answers = [ended[place] for place in range(len(prompts))]
        return Answer(
            seconds,
            [list(one.outputs[0].token_ids) for one in answers],
            [one.num_cached_tokens or 0 for one in answers],
        )

    def close(self) -> None:
        """Let the engine go."""
        self._engine.engine_core.shutdown()


def native_vllm(pipe: Connection, arguments: Mapping[str, Any]) -> None:
    """Serve loads that come through a pipe with vLLM as it is, until None comes."""
    from justitia.engines.serving.surroundings import quietly  # noqa: PLC0415

    with quietly():
        from vllm import EngineArgs, LLMEngine  # noqa: PLC0415

        served = VLLM(LLMEngine.from_engine_args(EngineArgs(**arguments)))
    pipe.send(None)
    while (load := pipe.recv()) is not None:
        pipe.send(served.run(*load))
    with quietly():
        served.close()


class Apart:
    """vLLM as it is, in a process of its own."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        context = get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(
            target=native_vllm, args=(there, dict(arguments)), daemon=True
        )
        self._process.start()
        there.close()
        self._pipe.recv()

    def run(self, prompts: Sequence[Sequence[int]], tokens: int) -> Answer:
        """Serve requests."""
        self._pipe.send(([list(prompt) for prompt in prompts], tokens))
        answer = self._pipe.recv()
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        """Let the engine go, and its process."""
        self._pipe.send(None)
        self._process.join(30)
        self._process.kill()


# SGLang -------------------------------------------------------------------------------

SETTING = "JUSTITIA_POLICY"
"""Switches the plugin on in the processes that SGLang starts."""


class SGLang:
    """SGLang's `Engine`, which has processes of its own; `policy` None is its fcfs."""

    def __init__(self, arguments: Mapping[str, Any], policy: str | None) -> None:
        from justitia.engines.serving.surroundings import quietly  # noqa: PLC0415

        os.environ.pop(SETTING, None)
        if policy is not None:
            os.environ[SETTING] = policy
        try:
            with quietly():
                from sglang import Engine  # noqa: PLC0415

                self.engine = Engine(**arguments)
        finally:
            os.environ.pop(SETTING, None)
        self._sent = 0

    def run(self, prompts: Sequence[Sequence[int]], tokens: int) -> Answer:
        """Serve requests; agents of eight."""
        params = []
        for _ in prompts:
            self._sent += 1
            params.append(
                {
                    "temperature": 0.0,
                    "ignore_eos": True,
                    "max_new_tokens": tokens,
                    "custom_params": {"justitia": {"agent": f"{self._sent // AGENT}"}},
                }
            )
        began = perf_counter()
        answers = self.engine.generate(
            input_ids=[list(prompt) for prompt in prompts], sampling_params=params
        )
        seconds = perf_counter() - began
        return Answer(
            seconds,
            [list(one["output_ids"]) for one in answers],
            [int(one["meta_info"].get("cached_tokens") or 0) for one in answers],
        )

    def close(self) -> None:
        """Let the engine go, and its processes."""
        self.engine.shutdown()
