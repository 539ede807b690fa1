"""The servers of a run: what they are and serve, and how prompts are made for them."""

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import NoReturn

import httpx

from justitia.engines.base import EngineError
from justitia.gateway import connections
from justitia.gateway.fleet import Engine, total
from justitia.gateway.openai.answers import Answer, complaint
from justitia.gateway.openai.prompts import Ids, Prompts, first_number, measured, words
from justitia.gateway.openai.requests import EXACT, PATH, content
from justitia.gateway.settings import EngineSettings, Limits
from justitia.gateway.upstream import EngineLost, EngineSilent, Facts, Upstream
from justitia.policy.exact import shown

_FEW, _MANY = 8, 40
"""Words of the texts that are sent to learn how many tokens a word has."""
_SHORT = 8
"""Tokens of the prompt that is sent to learn whether token ids are taken."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers.

    Attributes
    ----------
    context
        Tokens of prompt and output that one request may have, None where not known.
    """

    settings: EngineSettings
    kind: str
    version: str | None
    capacity: int | None
    context: int | None

    @property
    def room(self) -> int | None:
        """Tokens that one inference may have, None where not known.

        SGLang keeps some pages of its cache and some tokens of the context, and cuts
        what would need them short; how many it does not say.
        """
        known = [size for size in (self.capacity, self.context) if size is not None]
        if not known:
            return None
        room = min(known)
        return room - room // 32 - 8 if self.kind == "sglang" else room


@dataclass(frozen=True, slots=True)
class Servers:
    """All servers of a run, and the model that all of them serve."""

    each: tuple[Server, ...]
    model: str
    prompts: Prompts

    @property
    def capacity(self) -> int | None:
        """KV tokens of all caches, None where one does not say."""
        return total(one.capacity for one in self.each)

    @property
    def context(self) -> int | None:
        """The shortest context, None where nobody says one."""
        known = [one.context for one in self.each if one.context is not None]
        return min(known, default=None)

    @property
    def room(self) -> int | None:
        """Tokens that one inference may have on any of them, None where not known.

        Texts come out a little longer or shorter than they are to be.
        """
        known = [one.room for one in self.each if one.room is not None]
        if not known:
            return None
        return min(known) if isinstance(self.prompts, Ids) else min(known) * 9 // 10


async def look_at(
    several: Sequence[EngineSettings],
    model: str | None,
    limits: Limits,
) -> Servers:
    """Ask servers what they are, and try each with a request or two.

    Parameters
    ----------
    model
        None: the only one that they serve.

    Raises
    ------
    EngineError
        If one does not answer, does not let us in, does not serve the model or text
        completions, or does not say how much it has room for.
    """
    async with AsyncExitStack() as stack:
        upstreams, facts = [], []
        for settings in several:
            upstream = Upstream(Engine(settings.url), settings, limits)
            stack.push_async_callback(upstream.close)
            upstreams.append(upstream)
            facts.append(await _facts(upstream))
        model = _model(model, several, facts)
        servers, prompts = [], []
        for upstream, told in zip(upstreams, facts, strict=True):
            upstream.kind = told.kind
            prompts.append(await _prompts(upstream, model))
            servers.append(
                Server(
                    upstream.settings,
                    told.kind,
                    await upstream.version(),
                    told.capacity,
                    told.models.get(model),
                )
            )
    texts = [made for made in prompts if not isinstance(made, Ids)]
    return Servers(tuple(servers), model, texts[0] if texts else Ids())


async def _facts(upstream: Upstream) -> Facts:
    url = upstream.settings.url
    try:
        facts = await upstream.look(fresh=True)
    except EngineLost as error:
        told = error.__context__
        if isinstance(told, httpx.HTTPStatusError):
            refused(upstream, told.response.status_code, "", told.request.url.path)
        raise EngineError(f"server {url} cannot be used: {error}") from None
    if facts.capacity is None and upstream.settings.slots is None:
        raise EngineError(
            f"server {url} does not say how much its cache holds: give its KV tokens "
            "(--capacity), or how many inferences it runs at once (--slots)"
        )
    return facts


def _model(
    asked: str | None, several: Sequence[EngineSettings], facts: Sequence[Facts]
) -> str:
    """Return the model to use, which all servers list."""
    served = set.intersection(*(set(told.models) for told in facts))
    if asked is None and len(served) == 1:
        return served.pop()
    for settings, told in zip(several, facts, strict=True):
        if asked is not None and asked not in told.models:
            raise EngineError(
                f"server {settings.url} does not serve model {shown(asked)}; "
                f"it serves: {_listed(told.models)}"
            )
    if asked is None:
        common = "" if len(several) == 1 else " in common"
        raise EngineError(
            f"server {several[0].url} serves {len(served)} models{common}: "
            f"{_listed(served)}; name one (--model)"
        )
    return asked


def _listed(models: Collection[str]) -> str:
    return shown(sorted(models)) if models else "none"


async def _prompts(upstream: Upstream, model: str) -> Prompts:
    """Try a request, and learn how prompts are made for a server."""
    number = first_number()
    if upstream.kind in EXACT:
        await _tokens_of(upstream, model, Ids().make(number, _SHORT))
        return Ids()
    few, many = [
        await _tokens_of(upstream, model, words(number + count, count)) or count
        for count in (_FEW, _MANY)
    ]
    return measured((_FEW, few), (_MANY, many))


async def _tokens_of(
    upstream: Upstream, model: str, prompt: list[int] | str
) -> int | None:
    """Send a request for one token; return how long the server says its prompt is."""
    answer = Answer()
    body = content(upstream.kind, model, prompt, 1)
    url = upstream.settings.url
    try:
        async with upstream.send(PATH, body) as response:
            if response.status != 200:
                refused(upstream, response.status, await complaint_in(response), PATH)
            await answer.read(response, lambda tokens: None)
    except EngineSilent:
        raise EngineError(f"server {url} is silent") from None
    except (EngineLost, ValueError) as error:
        raise EngineError(f"server {url} does not serve {PATH}: {error}") from None
    if answer.complaint is not None:
        raise EngineError(
            f"server {url} complains: {hidden(upstream, answer.complaint)}"
        )
    return answer.prompt_tokens


async def complaint_in(response: connections.Answer) -> str:
    """Return what the beginning of an answer complains of."""
    body = b""
    async for part in response.parts:
        body += part
        if len(body) > 65_536:
            break
    return complaint(body)


def hidden(upstream: Upstream, text: str) -> str:
    """Return what a server says, without the key that it was given."""
    key = upstream.settings.key
    return text if key is None else text.replace(key.get_secret_value(), "[key]")


def refused(upstream: Upstream, status: int, told: str, path: str) -> NoReturn:
    """Raise the error of an answer that is not 200."""
    what = f"server {upstream.settings.url} answers {status} to {path}"
    if told:
        what += f": {hidden(upstream, told)}"
    if status in (401, 403):
        what += " (its key goes in a variable, which --key-env names)"
    raise EngineError(what)
