"""How long a request is, before any engine has counted its tokens.

Prompts come as text; to send each to an engine to be counted would cost a round trip.
So tokens are estimated from characters, at the rate at which the engines' own counts
(``usage``) have shown them to come, by model. Prompts of token ids are exact.
"""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from justitia.gateway.errors import GatewayError
from justitia.policy.exact import shown

MOST_INFERENCES = 128
"""Of one request: its prompts, times the choices of each."""
MOST_TOKENS = 10**7
MARKS = (256, 1024, 4096, 16384)
"""Characters of a prompt that are compared with those sent before."""
PER_MESSAGE = 4
"""Tokens that a chat template adds to a message, about."""
FIRST_RATIO = 0.3
"""Tokens a character, before anything was counted: a little more than English has."""
LEAST_RATIO, MOST_RATIO = 0.02, 4.0
_HALF = 200_000
"""Characters after which what was counted before weighs half."""
_MODELS = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, as far as its request shows it.

    Attributes
    ----------
    characters
        Of its text.
    tokens
        Those that are known to be there: all of a prompt of ids, what a template adds.
    """

    characters: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """What a request's body says of its length.

    Attributes
    ----------
    each
        Its prompts.
    choices
        Inferences of each: `n`, or `best_of`.
    most
        The most tokens that each may produce, None where it does not say.
    marks
        Digests of the beginnings of the first prompt, the longest first.
    text
        The beginning of that.
    """

    each: tuple[Prompt, ...]
    choices: int
    most: int | None
    marks: tuple[bytes, ...]
    text: str


def read_lengths(body: Mapping[str, Any], *, chat: bool) -> Lengths:
    """Return the lengths of a request.

    Raises
    ------
    GatewayError
        400, for what no engine could serve.
    """
    each, text = _chat(body) if chat else _completion(body)
    count = whole_number(body, "n", 1, MOST_INFERENCES) or 1
    if not chat:
        count = max(count, whole_number(body, "best_of", 1, MOST_INFERENCES) or 1)
    if len(each) * count > MOST_INFERENCES:
        raise GatewayError(
            400,
            "too_many_choices",
            f"a request may have at most {MOST_INFERENCES} prompts times choices, "
            f"not {len(each) * count}",
            "n",
        )
    most = None
    if chat:
        most = whole_number(body, "max_completion_tokens", 0, MOST_TOKENS)
    if most is None:
        most = whole_number(body, "max_tokens", 0, MOST_TOKENS)
    return Lengths(tuple(each), count, most, _marks(body.get("model"), text), text)


def whole_number(
    body: Mapping[str, Any], field: str, least: int, most: int
) -> int | None:
    """Return a field's whole number, None where it is not there or null.

    Raises
    ------
    GatewayError
        400, naming the field and what is allowed.
    """
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not least <= value <= most
    ):
        raise GatewayError(
            400,
            "invalid_value",
            f"{field} must be a whole number from {least} to {most}, "
            f"not {shown(value)}",
            field,
        )
    return value


def _completion(body: Mapping[str, Any]) -> tuple[list[Prompt], str]:
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        return [Prompt(len(prompt), 0)], prompt[: MARKS[-1]]
    if isinstance(prompt, list) and prompt:
        if all(isinstance(one, str) for one in prompt):
            return [Prompt(len(one), 0) for one in prompt], prompt[0][: MARKS[-1]]
        if _are_ids(prompt):
            return [Prompt(0, len(prompt))], str(prompt[: MARKS[-1]])
        if all(isinstance(one, list) and one and _are_ids(one) for one in prompt):
            return [Prompt(0, len(one)) for one in prompt], str(prompt[0][:4096])
    raise GatewayError(
        400,
        "invalid_value",
        "prompt must be a text, a list of texts, a list of token ids or a list of "
        "such lists",
        "prompt",
    )


def _are_ids(values: Sequence[Any]) -> bool:
    return all(type(value) is int for value in values)


def _chat(body: Mapping[str, Any]) -> tuple[list[Prompt], str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise GatewayError(
            400,
            "invalid_value",
            "messages must be a list that is not empty",
            "messages",
        )
    characters, beginning = 0, ""
    for field in ("tools", "functions"):  # a template puts them first
        if body.get(field):
            text = json.dumps(body[field])
            characters += len(text)
            beginning += text[: MARKS[-1]]
    for message in messages:
        if not isinstance(message, dict):
            raise GatewayError(
                400, "invalid_value", "a message must be an object", "messages"
            )
        for text in _texts(message):
            characters += len(text)
            if len(beginning) < MARKS[-1]:
                beginning += text[: MARKS[-1]]
    return [Prompt(characters, PER_MESSAGE * len(messages))], beginning


def _texts(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    texts = [str(message.get("role", ""))]
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                texts.append(part["text"])
    if message.get("tool_calls"):
        texts.append(json.dumps(message["tool_calls"]))
    return texts


def _marks(model: object, text: str) -> tuple[bytes, ...]:
    sizes = [size for size in MARKS if len(text) >= size] or [len(text)]
    return tuple(
        blake2b(
            f"{model}\0{text[:size]}".encode(errors="surrogatepass"), digest_size=8
        ).digest()
        for size in reversed(sizes)
    )


class Ratios:
    """Tokens a character, by model, as engines count them.

    Notes
    -----
    Complexity: O(1). Memory: two numbers for each of at most 64 models, those used
    last.
    """

    def __init__(self) -> None:
        self._counted: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def ratio(self, model: str) -> float:
        """Return the tokens of one character."""
        known = self._counted.get(model)
        if known is None:
            return FIRST_RATIO
        characters, tokens = known
        return min(max(tokens / characters, LEAST_RATIO), MOST_RATIO)

    def tokens(self, model: str, prompt: Prompt) -> int:
        """Return how many tokens a prompt has, about; 1 at least."""
        return max(1, prompt.tokens + round(prompt.characters * self.ratio(model)))

    def learn(self, model: str, prompts: Sequence[Prompt], counted: int) -> None:
        """Take note of how many tokens an engine counted in some prompts."""
        characters = sum(prompt.characters for prompt in prompts)
        tokens = counted - sum(prompt.tokens for prompt in prompts)
        if characters < 16 or tokens <= 0:
            return
        before = self._counted.get(model, (2_000.0, 2_000.0 * FIRST_RATIO))
        keep = 0.5 ** (characters / _HALF)
        self._counted[model] = (
            before[0] * keep + characters,
            before[1] * keep + tokens,
        )
        self._counted.move_to_end(model)
        while len(self._counted) > _MODELS:
            self._counted.popitem(last=False)
