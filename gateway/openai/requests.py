"""The requests of a run: what a server is sent for an inference."""

import json
from typing import Any

from justitia.gateway.openai.prompts import Prompts

PATH = "/v1/completions"
EXACT = ("vllm", "sglang")
"""Kinds of servers that take token ids, and go on when a model would end its text."""


class Requests:
    """Writes requests, each with a prompt of its own.

    Parameters
    ----------
    number
        Of the first prompt.
    """

    def __init__(self, model: str, prompts: Prompts, number: int) -> None:
        self._model = model
        self._prompts = prompts
        self._number = number

    def content(self, kind: str, prompt_tokens: int, most: int) -> bytes:
        """Return the body of a request for `most` tokens, for a kind of server."""
        prompt = self._prompts.make(self._number, prompt_tokens)
        self._number += 1
        return content(kind, self._model, prompt, most)


def content(kind: str, model: str, prompt: list[int] | str, most: int) -> bytes:
    """Return the body of a request.

    vLLM and SGLang are asked to count as they go, too, since they may send several
    tokens in one part, or a part without text.
    """
    options: dict[str, Any] = {"include_usage": True}
    body: dict[str, Any] = {
        "model": model,
        "prompt": prompt,
        "max_tokens": most,
        "temperature": 0,
        "stream": True,
        "stream_options": options,
    }
    if kind in EXACT:
        body["ignore_eos"] = True
        options["continuous_usage_stats"] = True
    return json.dumps(body).encode()
