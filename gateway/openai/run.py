"""A workload on servers: agents come, their inferences go out as the dispatcher says.

Time is the servers': it passes while one has something to do, and is skipped while
there is nothing to run. A step is a part of an answer that came: those of the engines
cannot be seen from here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns

from justitia.engines.base import EngineError
from justitia.engines.course import Course
from justitia.engines.lag import Lump
from justitia.engines.limits import without_displacing
from justitia.engines.records import RunRecord
from justitia.engines.results import PICOSECONDS
from justitia.engines.roster import Task
from justitia.engines.scaling import most_tokens
from justitia.engines.serving.claims import Claim
from justitia.engines.serving.running import Running
from justitia.gateway.dispatcher import MOST_ATTEMPTS, Call, Dispatcher
from justitia.gateway.openai.answers import Answer
from justitia.gateway.openai.counts import Counts
from justitia.gateway.openai.holding import Holding
from justitia.gateway.openai.line import Line, owned
from justitia.gateway.openai.requests import PATH, Requests
from justitia.gateway.openai.servers import complaint_in, hidden, refused
from justitia.gateway.settings import OPEN_TENANT
from justitia.gateway.upstream import EngineLost, EngineSilent, Upstream
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_LEAST = 1
"""Tokens of a prompt and of an output: no server does with less."""
_ANY = 10**12
"""Tokens that an inference may have where nobody says how many."""


@dataclass(slots=True, kw_only=True)
class Sent(Running):
    """An inference that is in the dispatcher's line, or sent.

    Attributes
    ----------
    sending
        What sends it and reads the answer, once it had its turn.
    answer
        The last one to it.
    """

    call: Call
    sending: "asyncio.Task[None] | None" = None
    answer: Answer | None = None

    @property
    def prompt_tokens(self) -> int:
        """The tokens of its prompt, as its server counted them if it did."""
        said = None if self.answer is None else self.answer.prompt_tokens
        return self.call.prompts[0] if said is None else said


class ServedRun(Course[Sent]):
    """One run of a workload on servers, within one event loop.

    Parameters
    ----------
    dispatcher
        With the policy, and with engines named as `upstreams` are.
    requests
        Writes what is sent.
    room
        Tokens that an inference may have, None where not known.
    by_stage
        What the fair reference of the lag finishes.
    """

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        dispatcher: Dispatcher,
        predictor: Predictor,
        upstreams: Mapping[str, Upstream],
        requests: Requests,
        *,
        room: int | None,
        by_stage: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        super().__init__(
            agents,
            Line(dispatcher),
            predictor,
            by_stage=by_stage,
            progress=progress,
            least=_LEAST,
        )
        self._dispatcher = dispatcher
        self._upstreams = upstreams
        self._requests = requests
        self._longest = _ANY if room is None else room
        self._inside: dict[str, Sent] = {}
        self._preemptions = 0
        self._counts = Counts()
        self._holding = Holding(dispatcher.fleet.capacity)
        self._began = perf_counter_ns()
        self._skipped = 0  # time in which nothing was there to run
        self._last = 0  # when something was last told to the meter
        self._tasks: set[asyncio.Task[None]] = set()
        self._away: dict[str, asyncio.Task[None]] = {}  # looks for servers that left
        self._failure: BaseException | None = None
        self._wake = asyncio.Event()

    async def run(self) -> RunRecord:
        """Run to the end.

        Raises
        ------
        EngineError
            If a server refuses a request, is silent, or breaks off in an answer; or is
            gone and no other is left.
        """
        try:
            while self._events or self._live:
                self._wake.clear()
                if self._failure is not None:
                    raise self._failure
                with self._dispatcher.together():
                    self._happen()
                if self._live:
                    await self._until_something_is()
                elif self._events:
                    self._skipped += max(0, self._events[0][0] - self._time())
                    self._last = self._time()
        finally:
            left = (*self._tasks, *self._away.values())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        policy = self._dispatcher.agents.policy
        return RunRecord(
            policy=policy.name,
            agents=self._results.agents(self._meter),
            inferences=self._results.inferences(),
            steps=self._steps,
            utilisation=self._holding.mean,
            preemptions=self._preemptions,
            lag=self._meter.result(),
            limits=without_displacing(policy),
            remarks=self._counts.remarks(self._dispatcher.sent_again),
        )

    async def _until_something_is(self) -> None:
        """Wait until an inference ended or failed, or the next agent comes or goes."""
        if not self._tasks:
            raise EngineError(
                f"nothing of {len(self._live)} inferences in line can be sent: "
                "no server is left"
            )
        left = None
        if self._events:
            left = max(0, self._events[0][0] - self._time()) / PICOSECONDS
        try:
            async with asyncio.timeout(left):
                await self._wake.wait()
        except TimeoutError:
            return

    # One inference ------------------------------------------------------------------

    def _enter(self, task: Task) -> Sent:
        spec, told = task.spec, task.told
        call = Call(
            id=f"{OPEN_TENANT}/{told.id}",
            tenant=OPEN_TENANT,
            claim=Claim(
                agent=owned(task.member.spec.id),
                stage=told.stage,
                tokens=told.decode_tokens,
            ),
            prompts=(max(_LEAST, spec.prompt_tokens),),
            most=max(_LEAST, most_tokens(spec)),
        )
        one = Sent(task, call=call)
        call.on_turn = partial(self._start, one)
        call.on_cancel = partial(self._stop, one)
        self._dispatcher.submit(call)  # its turn is when all that comes now has come
        return one

    def _start(self, one: Sent) -> None:
        """Send one, whose turn it is."""
        now = self._time()
        self._holding.passed(now)
        self._holding.enter(one.call.prompts[0])
        one.inside = True
        self._inside[one.id] = one
        self._started(one, now)
        self._meter_to(now, 0)
        one.sending = asyncio.create_task(self._send(one))
        self._tasks.add(one.sending)
        one.sending.add_done_callback(self._over)

    def _stop(self, one: Sent) -> None:
        """Send or read no more of one whose agent was cancelled."""
        if one.sending is not None:
            one.sending.cancel()

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._failure is None:  # others fail for the same reason, as a rule
            self._failure = error
        self._wake.set()

    async def _send(self, one: Sent) -> None:
        """Send a request and read its answer."""
        assert one.call.engine is not None
        upstream = self._upstreams[one.call.engine.name]
        answer = one.answer = Answer()
        most = max(_LEAST, one.task.spec.decode_tokens)
        body = self._requests.content(upstream.kind, one.call.prompts[0], most)
        url = upstream.settings.url
        try:
            async with upstream.send(PATH, body) as response:
                if response.status != 200:
                    told = await complaint_in(response)
                    refused(upstream, response.status, told, PATH)
                await answer.read(response, partial(self._produced, one))
        except EngineSilent:
            silence = upstream.limits.idle_seconds
            raise EngineError(
                f"server {url} was silent for {silence:g} seconds in the answer to "
                f"{shown(one.id)}"
            ) from None
        except EngineLost as error:
            await self._lost(one, upstream, f"{error}")
            return
        except ValueError as error:
            raise EngineError(f"server {url}: {error}") from None
        if answer.complaint is not None:
            raise EngineError(
                f"server {url} broke off its answer to {shown(one.id)}: "
                f"{hidden(upstream, answer.complaint)}"
            )
        with self._dispatcher.together():
            self._end(one, answer)

    def _produced(self, one: Sent, tokens: int) -> None:
        """Take note of tokens that came."""
        self._dispatcher.expire()  # policies have to know the time
        self._dispatcher.produced(one.call, 0, tokens)
        now = self._time()
        self._holding.passed(now)
        self._holding.grow(tokens)
        self._meter_to(now, one.produce(tokens))
        self._steps += 1

    def _meter_to(self, now: int, service: int) -> None:
        """Tell the meter of service since it was last told, and what is under way."""
        self._meter.serve(Lump(1, service, 0, self._last, now - self._last, 0))
        if self._meter.starting:
            self._meter.in_flight(one.owed for one in self._inside.values())
        self._last = now

    def _end(self, one: Sent, answer: Answer) -> None:
        """Let one end, of which all has come."""
        more = answer.tokens - one.produced
        if more > 0:
            self._produced(one, more)
        prompt = answer.prompt_tokens
        self._dispatcher.settle(
            one.call, None if prompt is None else (prompt,), answer.tokens
        )
        if one.owed:  # the reference is of the workload, and so is what it is served
            self._meter_to(self._time(), one.owed)
            self._steps += 1
            one.produced = max(1, one.task.spec.decode_tokens)
        self._counts.take(one.task.spec, one.prompt_tokens, answer)
        self._finish(one)
        self._progress(1)

    async def _lost(self, one: Sent, upstream: Upstream, reason: str) -> None:
        """Let one whose server is gone wait again, if nothing of it had come.

        The server is looked at once more: it may only have closed a connection.
        """
        answer, engine, url = one.answer, one.call.engine, upstream.settings.url
        assert answer is not None
        assert engine is not None
        if answer.began or one.call.attempts >= MOST_ATTEMPTS:
            raise EngineError(
                f"server {url} is lost, with {answer.tokens} tokens of its answer to "
                f"{shown(one.id)}: {reason}"
            )
        with self._dispatcher.together():
            self._leave(one)
            one.preempted += 1
            self._preemptions += 1
            self._dispatcher.lost(one.call, streamed=False)
        try:
            await upstream.look(fresh=False)
        except EngineLost as error:
            if not any(other.up for other in self._dispatcher.fleet):
                raise EngineError(f"server {url} is gone: {error}") from None
            if url not in self._away:
                self._away[url] = asyncio.create_task(self._until_back(upstream))
        else:
            self._dispatcher.up(engine)

    async def _until_back(self, upstream: Upstream) -> None:
        """Take a server in again when it is well."""
        while not upstream.engine.up:
            await asyncio.sleep(upstream.limits.health_seconds)
            with suppress(EngineLost):
                await upstream.look(fresh=False)
                self._dispatcher.up(upstream.engine)
        del self._away[upstream.settings.url]

    def _leave(self, one: Sent) -> None:
        """Take one out of what is under way."""
        if self._inside.pop(one.id, None) is not None:
            self._holding.passed(self._time())
            self._holding.leave(one.call.prompts[0] + sum(one.call.counted))
            one.inside = False

    # What a course asks -------------------------------------------------------------

    def _gone(self, one: Sent) -> None:
        self._leave(one)
        self._dispatcher.finish(one.call)

    def _time(self) -> int:
        return (perf_counter_ns() - self._began) * 1_000 + self._skipped

    def _room(self) -> int:
        return self._longest

    def _cached(self, one: Sent) -> int | None:
        return None if one.answer is None else one.answer.cached_tokens

    def _counted(self, one: Sent) -> tuple[int, int]:
        tokens = 0 if one.answer is None else one.answer.tokens
        return one.prompt_tokens, tokens
