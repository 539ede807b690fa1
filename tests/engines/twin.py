"""The simulated engine once more: one step at a time, obvious rather than fast.

Nothing is skipped, nothing is counted along: the blocks in use, the tokens left in the
budget and the lag are worked out anew whenever they are asked for. It shares no code
with `justitia.engines.sim`.

The rules, which are vLLM's where it has any:

- What arrives or is cancelled is seen at the first step boundary at or after its time
  (rounded to a picosecond); together in order of time, arrivals first, then in the
  workload's order. An idle engine waits for the next of them.
- A step first gives the running, in order of start, the tokens that they have still to
  compute, up to the budget of the step. One that needs blocks that are not free makes
  the policy's first victim give way until they are, or it has given way itself; then
  those behind it get nothing. Tokens of one that gave way go back to the budget. If
  nothing is left to run, no step is taken and the next is planned at once.
- If nobody had to give way, the head of the line is started for as long as there are a
  seat, a token of the budget and room for it; the first that has no room ends it.
- A policy that lets the waiting displace the running is asked before all that: the
  longest front of its line that can be in the step is, at the cost of those that run
  and that it puts behind the one that would have no room.
- When all known tokens of a sequence are in the cache it produces one more (none if it
  wants none), and ends with its last.
"""

from dataclasses import dataclass
from fractions import Fraction

from justitia.engines import AgentRecord, InferenceRecord, Lag, RunRecord
from justitia.engines.records import Outcome
from justitia.policy import Agent, Inference, KVTokenTime, Policy, Step
from justitia.policy.exact import Number
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec
from tests.engines.build import Case
from tests.engines.fair import Fair

COST = KVTokenTime()
PICO = 10**12


@dataclass(eq=False)
class Client:
    """An agent that has arrived."""

    spec: AgentSpec
    number: int
    agent: Agent
    jobs: list["Job"]
    tag: Number | None = None


@dataclass(eq=False)
class Job:
    """An inference of one."""

    told: Inference
    prompt: int
    decode: int
    longest: int
    state: str = "blocked"  # then line, running, ended
    produced: int = 0
    cached: int = 0
    saved: int = 0  # in host memory
    prompting: bool = True
    preempted: int = 0
    outcome: Outcome = "cancelled"
    start_step: int | None = None
    start: int | None = None
    finish_step: int | None = None
    finish: int | None = None

    @property
    def known(self) -> int:
        return self.prompt + self.produced

    @property
    def got(self) -> int:
        """The work delivered."""
        if self.state == "ended" and self.outcome == "finished":
            return COST(self.prompt, self.decode)
        return COST(self.prompt, self.produced) if self.produced else 0


class Twin:
    def __init__(
        self,
        case: Case,
        policy: Policy,
        predictor: Predictor,
    ) -> None:
        agents = case.agents
        self.agents = agents
        self.policy = policy
        self.predictor = predictor
        self.preset = case.preset
        self.admission = case.admission
        self.swap = case.preemption == "swap"
        self.by_stage = case.tags == "stage"
        self.now = 0
        self.held: list[int] = []  # KV tokens, by step
        self.preemptions = 0
        self.moved = 0
        self.running: list[Job] = []
        self.chunks: dict[Job, int] = {}
        self.line: dict[str, Job] = {}
        self.clients: dict[str, Client] = {}
        self.owner: dict[str, Client] = {}
        self.ends: dict[str, tuple[Outcome, int, int | None]] = {}
        self.reasons: dict[str, str] = {}
        self.fair = Fair()
        events = []
        for place, spec in enumerate(agents):
            arrival = Fraction(spec.arrival or 0)
            events.append((round(arrival * PICO), 0, place))
            if spec.cancel_after is not None:
                gone = arrival + Fraction(spec.cancel_after)
                events.append((round(gone * PICO), 1, place))
        self.events = sorted(events)

    def run(self) -> RunRecord:
        while True:
            while self.events and self.events[0][0] <= self.now:
                _, cancelled, place = self.events.pop(0)
                if cancelled:
                    self.cancel(self.agents[place])
                else:
                    self.arrive(self.agents[place])
            if not self.running and not self.line:
                if not self.events:
                    return self.record()
                self.wait()
            elif not self.step():
                assert self.events, "nothing runs, and nothing will change"
                self.wait()

    def wait(self) -> None:
        until = self.events[0][0]
        self.policy.advance(Fraction(until - self.now, PICO))
        self.now = until

    # --- one step -------------------------------------------------------------------

    def step(self) -> bool:
        """Run one step; return whether anything ran."""
        self.chunks = {}
        before = self.preemptions
        self.displace()
        displaced = self.preemptions
        self.go_on()
        if self.preemptions == displaced:
            self.admit()
        if not self.chunks:
            return self.preemptions > before
        preset = self.preset
        prefill, decode = {}, {}
        service = 0
        ended = []
        for job, chunk in self.chunks.items():
            if job.prompting:
                prefill[job.told.id] = chunk
            job.cached += chunk
            if job.cached == job.known:
                job.prompting = False
                before = COST(job.prompt, job.produced) if job.produced else 0
                if job.decode:
                    job.produced += 1
                service += COST(job.prompt, job.produced) - before
                decode[job.told.id] = int(job.decode > 0)
                if job.produced == job.decode:
                    ended.append(job)
        held = sum(job.cached for job in self.running)
        duration = (
            preset.step_fixed_ps
            + sum(prefill.values()) * preset.step_prefill_token_ps
            + len(self.chunks) * preset.step_sequence_ps
            + held * preset.step_kv_token_ps
            + self.moved * preset.swap_token_ps
        )
        self.moved = 0
        owed = sum(
            COST(job.prompt, job.decode) - job.got
            for job in self.running
            if job not in ended
        )
        self.policy.serve(Step(prefill, decode))
        self.fair.step(service, self.now, duration, owed)
        self.policy.advance(Fraction(duration, PICO))
        self.now += duration
        self.held.append(held)
        for job in ended:
            self.end(job)
        return True

    def blocks(self, tokens: int) -> int:
        whole, rest = divmod(tokens, self.preset.block_size)
        return whole + (1 if rest else 0)

    def free(self) -> int:
        used = sum(self.blocks(j.cached + self.chunks.get(j, 0)) for j in self.running)
        return self.preset.capacity_tokens // self.preset.block_size - used

    def budget(self) -> int:
        return self.preset.max_num_batched_tokens - sum(self.chunks.values())

    def go_on(self) -> None:
        for job in list(self.running):
            if self.budget() <= 0:
                return
            if job not in self.running:
                continue  # it has given way
            chunk = min(job.known - job.cached, self.budget())
            while job in self.running:
                more = self.blocks(job.cached + chunk) - self.blocks(job.cached)
                if more <= self.free():
                    self.chunks[job] = chunk
                    break
                self.give_way(next(self.policy.victims()))
            if job not in self.running:
                return

    def give_way(self, victim: Inference) -> None:
        (job,) = (j for j in self.running if j.told.id == victim.id)
        self.running.remove(job)
        self.chunks.pop(job, None)
        self.line[job.told.id] = job
        job.state = "line"
        job.preempted += 1
        self.preemptions += 1
        if self.swap:
            job.saved = job.cached
            self.moved += job.cached
        else:
            job.prompting = True
        job.cached = 0
        self.policy.requeue(job.told.id)

    def admit(self) -> None:
        while len(self.running) < self.preset.max_num_seqs and self.budget() > 0:
            head = self.policy.peek()
            if head is None:
                return
            job = self.line[head.id]
            chunk = min(job.known - job.saved, self.budget())
            if not self.room(job, self.free()):
                self.policy.refuse(head.id)
                return
            self.policy.start(head.id)
            del self.line[head.id]
            self.running.append(job)
            job.state = "running"
            self.moved += job.saved
            job.cached, job.saved = job.saved, 0
            self.chunks[job] = chunk
            again = job.start_step is not None
            if not again:
                job.start_step, job.start = len(self.held), self.now
            client = self.owner[job.told.id]
            stage = job.told.stage if self.by_stage else 0
            cost = COST(job.prompt, job.decode)
            self.fair.start(client.number, stage, cost, again=again)

    def displace(self) -> None:
        """Make room for the first in line, then for the first two, and so on."""
        count = 1
        while self.policy.peek() and count <= len(self.line):
            coming = [self.line[i.id] for i in self.policy.order()][:count]
            chunks = {j: j.known - j.cached for j in self.running}
            room = self.fit(coming, chunks)
            if room is None:
                return
            if room:
                count += 1
                continue
            victim = next(self.policy.victims(), None)
            if victim is None or not self.policy.preempts(coming[-1].told, victim):
                return
            self.give_way(victim)
            count = 1

    def fit(self, coming: list[Job], chunks: dict[Job, int]) -> bool | None:
        """Whether the last has room beside all others; None: its prompt must wait."""
        *first, last = coming
        left = self.preset.max_num_batched_tokens - sum(chunks.values())
        for job in first:
            chunks[job] = min(job.known - job.saved, left)
            left -= chunks[job]
        if left <= 0:
            return None if first else False
        blocks = self.preset.capacity_tokens // self.preset.block_size
        for job, chunk in chunks.items():
            blocks -= self.blocks(job.cached + job.saved + chunk)
        everybody = [*self.running, *first]
        seat = len(everybody) < self.preset.max_num_seqs
        return seat and self.room(last, blocks, everybody)

    def room(self, job: Job, free: int, beside: list[Job] | None = None) -> bool:
        """Whether the admission rule lets a job start beside others, or the running."""
        beside = self.running if beside is None else beside
        if self.blocks(job.known) > free:
            return False
        if not beside or self.admission == "none":
            return True
        everybody = [*beside, job]
        if self.admission == "lookahead":
            return self.foresee(everybody)
        reserved = 0
        for each in everybody:
            tokens = {
                "prompt": each.known,
                "predicted": each.prompt + max(each.told.decode_tokens, each.produced),
                "max": each.prompt + each.longest,
            }[self.admission]
            now = self.blocks(each.cached + self.chunks.get(each, 0))
            reserved += max(self.blocks(tokens), now)
        return reserved <= self.preset.capacity_tokens // self.preset.block_size

    def foresee(self, jobs: list[Job]) -> bool:
        """Whether all would fit at any time, with a token each a step from now."""
        left = {job: job.longest - job.produced for job in jobs}
        for steps in range(max(left.values()) + 1):
            tokens = sum(
                job.known + steps + self.preset.block_size - 1
                for job in jobs
                if left[job] >= steps
            )
            if tokens > self.preset.capacity_tokens:
                return False
        return True

    # --- agents ---------------------------------------------------------------------

    def arrive(self, spec: AgentSpec) -> None:
        if not spec.inferences:
            self.ends[spec.id] = (
                "finished",
                round(Fraction(spec.arrival or 0) * PICO),
                0,
            )
            return
        for one in spec.inferences:
            longest = one.decode_tokens if one.max_tokens is None else one.max_tokens
            if one.prompt_tokens + longest > self.preset.capacity_tokens:
                self.ends[spec.id] = "refused", self.now, None
                self.reasons[spec.id] = (
                    f"inference {one.id} may need {one.prompt_tokens} + {longest} "
                    f"tokens, the engine has room for {self.preset.capacity_tokens}"
                )
                return
        guess = self.predictor.predict(spec, self.policy.cost_model)
        agent = Agent(
            spec.id,
            guess.cost,
            spec.weight,
            spec.kind,
            guess.stage_costs,
            len(spec.inferences),
        )
        jobs = [
            Job(
                Inference(f"{spec.id}/{i.id}", spec.id, i.prompt_tokens, d, stage),
                i.prompt_tokens,
                i.decode_tokens,
                i.decode_tokens if i.max_tokens is None else i.max_tokens,
            )
            for i, d, stage in zip(
                spec.inferences, guess.decode_tokens, spec.depths(), strict=True
            )
        ]
        client = Client(spec, len(self.clients) + 1, agent, jobs)
        self.clients[spec.id] = client
        self.policy.arrive(agent)
        if not self.by_stage:
            self.fair.ready(client.number, 0, spec.cost(COST), spec.weight)
        self.release(client)

    def release(self, client: Client) -> None:
        """Put in line what waits for nothing any more."""
        waits = client.spec.waits()
        for position, job in enumerate(client.jobs):
            self.owner[job.told.id] = client
            if job.state == "blocked" and all(
                client.jobs[other].state == "ended" for other in waits[position]
            ):
                job.state = "line"
                self.line[job.told.id] = job
                self.policy.submit(job.told)
                number, stage = client.number, job.told.stage
                sharer = self.fair.sharers.get(number)
                if self.by_stage and (sharer is None or stage not in sharer.units):
                    cost = client.spec.stage_costs(COST)[stage]
                    self.fair.ready(number, stage, cost, client.spec.weight)

    def end(self, job: Job) -> None:
        client = self.owner[job.told.id]
        self.running.remove(job)
        job.state, job.outcome = "ended", "finished"
        job.finish_step, job.finish = len(self.held) - 1, self.now
        self.policy.finish(job.told.id)
        if all(other.state == "ended" for other in client.jobs):
            client.tag = self.policy.tag(client.spec.id)
            self.policy.leave(client.spec.id)
            self.ends[client.spec.id] = "finished", self.now, None
        else:
            self.release(client)

    def cancel(self, spec: AgentSpec) -> None:
        if spec.id in self.ends:
            return
        client = self.clients[spec.id]
        delivered = sum(job.got for job in client.jobs)
        client.tag = self.policy.tag(spec.id)
        self.policy.leave(spec.id)
        for job in client.jobs:
            if job in self.running:
                self.running.remove(job)
            self.line.pop(job.told.id, None)
        self.fair.cancel(client.number, delivered)
        self.ends[spec.id] = "cancelled", self.now, delivered

    # --- the record -----------------------------------------------------------------

    def record(self) -> RunRecord:
        lag = self.fair.lag()
        steps = len(self.held)
        held = Fraction(sum(self.held), max(1, steps) * self.preset.capacity_tokens)
        return RunRecord(
            policy=self.policy.name,
            agents=tuple(self.agent_record(spec) for spec in self.agents),
            inferences=tuple(
                record for spec in self.agents for record in self.inferences(spec)
            ),
            steps=steps,
            utilisation=float(held) if steps else None,
            preemptions=self.preemptions,
            lag=None if lag is None else Lag(*lag),
        )

    def agent_record(self, spec: AgentSpec) -> AgentRecord:
        outcome, time, delivered = self.ends[spec.id]
        client = self.clients.get(spec.id)
        reached = None if client is None else self.fair.reached(client.number)
        return AgentRecord(
            id=spec.id,
            kind=spec.kind,
            arrival=float(Fraction(round(Fraction(spec.arrival or 0) * PICO), PICO)),
            finish=float(Fraction(time, PICO)) if outcome == "finished" else None,
            cost=spec.cost(COST) if delivered is None else delivered,
            predicted_cost=None if client is None else client.agent.cost,
            tag=None if client is None else client.tag,
            reference_finish=None if reached is None else float(reached / PICO),
            outcome=outcome,
            reason=self.reasons.get(spec.id, ""),
        )

    def inferences(self, spec: AgentSpec) -> list[InferenceRecord]:
        client = self.clients.get(spec.id)
        outcome = self.ends[spec.id][0]
        if client is None:
            return [
                InferenceRecord(
                    f"{spec.id}/{i.id}", spec.id, stage, outcome, *(None,) * 4, 0
                )
                for i, stage in zip(spec.inferences, spec.depths(), strict=True)
            ]

        def time(at: int | None) -> float | None:
            return None if at is None else float(Fraction(at, PICO))

        return [
            InferenceRecord(
                job.told.id,
                spec.id,
                job.told.stage,
                job.outcome,
                job.start_step,
                job.finish_step,
                time(job.start),
                time(job.finish),
                job.preempted,
                None,
                job.prompt if job.outcome == "finished" else None,
                job.decode if job.outcome == "finished" else None,
            )
            for job in client.jobs
        ]
