"""One of SGLang's schedulers and its policy: events in, answers out; imports SGLang.

Which events of SGLang are which verbs:

- a request is in the waiting queue: its agent arrives if it is new, and it is
  submitted, or requeued if it ran before (retracted, or taken out by a pause);
- a batch is fixed: those in it that waited start, in the order of the batch, and all
  of it is served, before anything else can arrive;
- a result shows that a request has finished, or it is in the queue and the batches no
  more, for whatever reason: finish.

All of that is the same on every rank of tensor parallelism, and so is the time: it is
made of iterations. So every rank, which sorts its own queue, has the same order.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

from sglang.srt.constants import HEALTH_CHECK_RID_PREFIX
from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.managers.schedule_policy import AddReqResult

from justitia.engines.base import EngineError
from justitia.engines.serving import Agents, ServingSettings
from justitia.engines.serving.desk import Desk
from justitia.engines.serving.watch import Watched
from justitia.engines.sglang.aborts import spared
from justitia.engines.sglang.admission import (
    Reservation,
    check_admission,
    giving_way,
    let_it_start,
)
from justitia.engines.sglang.claims import claim_of
from justitia.engines.sglang.order import Front, PolicyOrder, passes_over
from justitia.engines.sglang.support import about, check_supported

ATTRIBUTE = "justitia"
"""Where a scheduler has its binding."""
ITERATIONS_A_SECOND = 100
"""What a second is where ranks must agree on it: for `linger`, and the policy's own."""
SWEEP = 1_024
"""Iterations after which a request that is nowhere in the engine is looked for."""


def binding_of(scheduler: Any) -> "Binding":
    """Return the binding of a scheduler.

    Raises
    ------
    EngineError
        If it has none: SGLang serves in its own order.
    """
    binding = getattr(scheduler, ATTRIBUTE, None)
    if not isinstance(binding, Binding):
        raise EngineError(
            "the policy is not in force: SGLang's scheduler was made without it"
        )
    return binding


class Binding:
    """Tells a policy what happens in a scheduler, and the scheduler who is next.

    Parameters
    ----------
    scheduler
        Its cache and its queue are there already.
    settings
        Of the policy.

    Attributes
    ----------
    agents
        Whose policy decides.
    watched, desk
        What measures the policy that was made from the settings, and answers for it.
    on_start
        Called with the id of a request, the tokens of its prompt that were in the
        cache, and all of its prompt, when it first starts.
    cached_tokens, prompt_tokens
        The sums of those.

    Raises
    ------
    ServingError
        For settings, or a mode of SGLang, that cannot be honoured.
    """

    def __init__(self, scheduler: Any, settings: ServingSettings) -> None:
        check_admission(settings.admission)
        check_supported(scheduler)
        self.settings = settings
        self.on_start: Callable[[str, int, int], None] | None = None
        self._scheduler = scheduler
        self._reservation = Reservation(all=settings.admission == "max")
        self._ids: dict[Any, str] = {}  # of those in line and running
        self._live: dict[str, Any] = {}  # the same, by id
        # Not the policy's: those that wait, before all others, and those that run.
        self._loose: dict[Any, None] = {}
        self._aside: dict[Any, None] = {}
        self._fresh: set[str] = set()  # never started
        self._lost: dict[str, int] = {}  # tokens told that must be produced again
        self._queued = 0
        self._refused: str | None = None
        self._to_refuse: str | None = None
        self._part: Any = None  # whose prompt was computed in part
        self._missing: set[Any] = set()  # nowhere, when last looked for
        self._sweep = SWEEP
        self.watched = Watched(settings.make(), now=monotonic)
        agents = Agents(
            self.watched,
            now=self.now,
            linger=settings.linger,
            most=settings.most_agents,
            predict=settings.predict,
        )
        self.facts = about(scheduler)
        self.desk = Desk(agents, self.watched, settings, self.facts)
        self.use(agents)

    def use(self, agents: Agents) -> None:
        """Take the policy of `agents`, which know nobody yet, as nobody does here."""
        assert not self._ids
        self.agents = agents
        self.cached_tokens = self.prompt_tokens = 0
        scheduler = self._scheduler
        self.front = Front(
            agents,
            self._live.__getitem__,
            self._loose,
            all=passes_over(scheduler),
        )
        scheduler.policy = PolicyOrder(scheduler, self.front)

    def now(self) -> float:
        """Return the time, in seconds of `ITERATIONS_A_SECOND`; it is no clock's."""
        return float(self._scheduler.forward_ct / ITERATIONS_A_SECOND)

    def answer(self, verb: str, payload: str) -> str:
        """Return what the desk says; between two steps, and on all ranks alike."""
        return self.desk.answer(verb, payload, self.abort)

    def abort(self, ids: Iterable[str]) -> None:
        """End requests, waiting or running."""
        for id in ids:
            if id in self._live:
                self._scheduler.abort_request(AbortReq(rid=self._live[id].rid))

    def prove(self) -> None:
        """Raise `EngineError` unless the scheduler asks this for its order."""
        policy = self._scheduler.policy
        if not isinstance(policy, PolicyOrder) or policy.front is not self.front:
            raise EngineError(
                f"the policy is not in force: SGLang's scheduler has {policy!r} instead"
            )

    # Events, each told by a hook of the same place ----------------------------------

    def queued(self, req: Any) -> None:
        """Take note of a request that was to be put in the queue, and perhaps was.

        A full queue may have refused it, also one that ran before.
        """
        queue = self._scheduler.waiting_queue
        if not queue or queue[-1] is not req:
            self._end(req)
            return
        self._queued += 1
        if req in self._ids:
            self.agents.requeue(self._ids[req])
        else:
            self._admit(req)
        self._loosen(req)

    def look(self, running_batch: Any) -> None:
        """Take note that SGLang looks for whom to start.

        Once there was no room SGLang looks no more until somebody leaves; it does if
        another is first in line now.
        """
        scheduler = self._scheduler
        if self._part is not None and self._part.finished_reason is not None:
            self._end(self._part)  # aborted between two parts: no result will show it
            self._part = None
        if len(scheduler.waiting_queue) != self._queued:
            self._recount()
        if scheduler.forward_ct >= self._sweep:
            self._sweep_up(running_batch)
        self.agents.expire()
        if running_batch.batch_is_full and (
            self._loose or self.agents.head() != self._refused
        ):
            running_batch.batch_is_full = False

    def ask(self, original: Callable[[], Any], adder: Any, req: Any) -> Any:
        """Return what SGLang says when a request is to be added to the next batch."""
        if not self.front.ask(req, self._scheduler.waiting_queue):
            return AddReqResult.OTHER
        if self._reservation.fits(adder, req):
            result = original()
        else:
            result = AddReqResult.NO_TOKEN
        admitted = adder.can_run_list
        if result is AddReqResult.NO_TOKEN and req not in admitted[-1:]:
            self._refused = self._ids.get(req)
            if admitted:
                self._to_refuse = self._refused  # when they have started, it is first
            elif self._refused is not None:
                self.agents.refuse(self._refused)
        return result

    def growth(self, original: Callable[..., float], adder: Any, req: Any) -> float:
        """Return how many tokens a running request may still ask for."""
        return self._reservation.growth(original, adder, req)

    def run(self, batch: Any) -> None:
        """Take note of a batch that is fixed."""
        mode = batch.forward_mode
        if mode.is_extend() and not mode.is_target_verify():
            self._tell_extend(batch)
        elif batch.reqs:
            ids = self._ids
            decode = {ids[req]: 1 for req in batch.reqs if req in ids}
            self._serve({}, decode)

    def result(self, original: Callable[[], Any], batch: Any) -> Any:
        """Take note of what a batch has come to.

        A step that guesses tokens may produce more than one of each request.
        """
        guesses = not batch.spec_algorithm.is_none() and bool(batch.reqs)
        before = [len(req.output_ids) for req in batch.reqs] if guesses else []
        told = original()
        if guesses and not batch.forward_mode.is_extend():
            self._serve({}, dict(self._more(batch.reqs, before)))
        for req in batch.reqs:
            if req.finished_reason is not None:
                self._end(req)
        return told

    def retracted(self, aborted: Iterable[Any]) -> None:
        """Take note of running requests that had to go and cannot come back."""
        for req in aborted:
            self._end(req)

    def idle(self) -> None:
        """Take note that there was nothing to run: if all is empty, all have ended."""
        everybody = self._everybody()
        if everybody and self._scheduler.is_fully_idle():
            for req in everybody:
                self._end(req)
            self._queued = 0

    def give_way(self, reqs: Iterable[Any]) -> list[int]:
        """Return the places of running requests, the first to give way last."""
        return giving_way(self.agents, [self._ids.get(req) for req in reqs])

    def abort_exactly(self, original: Callable[[], Any], recv_req: Any) -> Any:
        """Let SGLang end the requests of an id, and none whose id begins with it."""
        everybody = (*self._everybody(), *_compiling(self._scheduler))
        with spared(recv_req, everybody):
            return original()

    # What only this class does ------------------------------------------------------

    def _admit(self, req: Any) -> None:
        """Submit a request; one that is only to end, or a health check, is loose."""
        params = req.sampling_params
        if req.to_finish is None:
            let_it_start(self._scheduler, req)
        longest = getattr(params, "max_new_tokens", None) or 0
        checks = req.rid.startswith(HEALTH_CHECK_RID_PREFIX) and longest <= 1
        if checks or req.to_finish is not None or req.finished_reason is not None:
            self._aside.pop(req, None)
            self._loose[req] = None
            self.front.outdate()
            return
        id, number = req.rid or "-", 1
        while id in self._live:
            number += 1
            id = f"{req.rid or '-'}#{number}"
        self._ids[req] = id
        self._live[id] = req
        self._fresh.add(id)
        self.agents.submit(id, claim_of(req), len(req.origin_input_ids), longest)

    def _loosen(self, req: Any) -> None:
        """Let one that the policy does not know any more end, before all others."""
        id = self._ids.get(req)
        if id is not None and id not in self.agents.requests:
            self._forget(req)
            self._loose[req] = None
            self.front.outdate()

    def _tell_extend(self, batch: Any) -> None:
        """Tell of prompts: who has nothing left of it to compute produces a token."""
        prefill: dict[str, int] = {}
        decode: dict[str, int] = {}
        decoding = set(batch.decoding_reqs or ())
        self._part = batch.chunked_req
        for req, count in zip(batch.reqs, batch.extend_lens, strict=True):
            id = self._ids.get(req)
            if id is None:
                self._set_aside(req)
                continue
            if self.agents.waiting(id):
                self._start(req, id)
            if req not in decoding:
                prefill[id] = int(count)
            if req is not batch.chunked_req:
                decode[id] = int(req.sampling_params.max_new_tokens != 0)
        if self._to_refuse is not None:
            self.agents.refuse(self._to_refuse)
            self._to_refuse = None
        self._serve(prefill, decode)

    def _start(self, req: Any, id: str) -> None:
        self._queued -= 1
        self.agents.start(id)
        self.front.started()
        if id in self._fresh:
            self._fresh.discard(id)
            cached, prompt = int(req.cached_tokens), len(req.origin_input_ids)
            self.cached_tokens += cached
            self.prompt_tokens += prompt
            if self.on_start is not None:
                self.on_start(id, cached, prompt)
            return
        lost = self.agents.produced(id) - len(req.output_ids)
        if lost > 0:  # its last step was under way when it was taken out
            self._lost[id] = lost

    def _serve(self, prefill: dict[str, int], decode: dict[str, int]) -> None:
        """Serve those that the policy knows, and none twice with the same token."""
        for id in [id for id in self._lost if decode.get(id)]:
            decode[id] -= 1
            self._lost[id] -= 1
            if not self._lost[id]:
                del self._lost[id]
        known = self.agents.requests
        if len(known) != len(self._ids):  # an agent was dismissed
            prefill = {id: count for id, count in prefill.items() if id in known}
            decode = {id: count for id, count in decode.items() if id in known}
        if prefill or decode:
            self.agents.serve(prefill, decode)

    def _more(self, reqs: list[Any], before: list[int]) -> Iterator[tuple[str, int]]:
        """Yield tokens that requests produced beyond the one that was told."""
        for req, length in zip(reqs, before, strict=True):
            more = len(req.output_ids) - length - 1
            if more > 0 and req in self._ids:
                yield self._ids[req], more

    def _set_aside(self, req: Any) -> None:
        """Take note that one that is not the policy's starts."""
        if req in self._loose:
            del self._loose[req]
            self._aside[req] = None
            self._queued -= 1
            self.front.outdate()

    def _everybody(self) -> list[Any]:
        return [*self._ids, *self._loose, *self._aside]

    def _end(self, req: Any) -> None:
        """Take note that a request has ended, if it was there."""
        if req in self._loose:
            del self._loose[req]
            self.front.outdate()
        self._aside.pop(req, None)
        id = self._ids.get(req)
        if id is not None:
            self._forget(req)
            self.agents.finish(id)

    def _forget(self, req: Any) -> None:
        id = self._ids.pop(req)
        del self._live[id]
        self._fresh.discard(id)
        self._lost.pop(id, None)

    def _recount(self) -> None:
        """End those that have left the queue without a word: aborted, timed out."""
        queue = self._scheduler.waiting_queue
        there = set(queue)
        waiting = (req for req, id in self._ids.items() if self.agents.waiting(id))
        for req in [req for req in (*waiting, *self._loose) if req not in there]:
            self._end(req)
        for req in queue:
            if req not in self._ids and req not in self._loose:
                self._admit(req)
            self._loosen(req)
        self._queued = len(queue)

    def _sweep_up(self, running_batch: Any) -> None:
        """End requests that were nowhere in the engine twice in a row.

        None are known to be lost. SGLang has many ways to end one, and one more would
        be remembered for ever.
        """
        scheduler = self._scheduler
        self._sweep = scheduler.forward_ct + SWEEP
        batches = [running_batch, scheduler.running_batch, scheduler.last_batch]
        batches += [batch for batch, *_ in scheduler.result_queue]
        there = {req for batch in batches if batch is not None for req in batch.reqs}
        there.update(scheduler.waiting_queue)
        there.add(scheduler.chunked_req)
        missing = [req for req in self._everybody() if req not in there]
        for req in missing:
            if req in self._missing:
                self._end(req)
        self._missing = set(missing)

    def _check(self) -> None:
        """Assert all invariants."""
        self.agents._check()
        assert self._live == {id: req for req, id in self._ids.items()}
        assert set(self.agents.requests) <= set(self._live)
        assert self._fresh <= set(self._live)
        assert set(self._lost) <= set(self._live)
        assert all(count > 0 for count in self._lost.values())
        everybody = self._everybody()
        assert len(everybody) == len(set(everybody))
        assert self._queued == len(self._scheduler.waiting_queue)


def _compiling(scheduler: Any) -> Iterable[Any]:
    """Return the requests whose grammars are being compiled."""
    manager = getattr(scheduler, "grammar_manager", None)
    return getattr(manager, "grammar_queue", ())
