"""A workload on SGLang's real scheduler, without a model and without a clock.

The run is `LiveRun`, the one of ``justitia run --engine sglang``; only its time is
another: every step takes a tick, as on a `sim` whose preset says so.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch and SGLang warn while they are imported
    pytest.importorskip(
        "sglang", reason="SGLang is not installed here; tox run -e sglang does it"
    )
    import torch
    from sglang.srt.environ import envs
    from sglang.srt.layers.logits_processor import LogitsProcessorOutput
    from sglang.srt.managers.schedule_batch import FINISH_LENGTH
    from sglang.srt.managers.scheduler_components.new_token_ratio_tracker import (
        NewTokenRatioTracker,
    )
    from sglang.srt.managers.utils import GenerationBatchResult

    from justitia.engines.sglang.backend import SGLangBackend

from justitia.engines import RunRecord
from justitia.engines.roster import inference_id
from justitia.engines.sglang.surroundings import ARGUMENTS_ON_CPU
from justitia.engines.sim import Preset
from justitia.engines.sim.prefill_first import SPARE, Ratio
from justitia.policy import Policy
from justitia.predictors import Oracle, Predictor
from justitia.workloads import AgentSpec
from tests.engines.build import Case, make_preset
from tests.engines.ticking import Ticking, runnable

MOST_TOKENS, MOST_SEATS = 512, 64
"""Of a case: its cache and its batch."""
_SAID = 5
"""What the model always says."""


class Unmodelled(SGLangBackend):
    """SGLang's scheduler with a cache of any size, and a model that computes nothing.

    A request ends with the last token of its inference, as if that were the end of its
    text, also where it may produce more.
    """

    def __init__(self, model: Path, *, admission: str, **arguments: Any) -> None:
        super().__init__(
            ARGUMENTS_ON_CPU
            | {
                "model_path": str(model),
                "max_total_tokens": MOST_TOKENS,
                "max_running_requests": MOST_SEATS,
                "chunked_prefill_size": MOST_TOKENS,
                "page_size": 1,
            }
            | arguments,
            admission=admission,
        )
        self.scheduler = self._scheduler
        self.binding = self._binding
        self.scheduler.model_worker.forward_batch_generation = _say
        self._room = 0
        self._decode: dict[str, int] = {}

    @property
    def room(self) -> int:
        return self._room

    def be(
        self, preset: Preset, agents: Sequence[AgentSpec] = (), *, ratio: float = 0.7
    ) -> None:
        """Be as large as a preset says, for inferences of these agents.

        `ratio` is SGLang's first guess of how much of what it may produce a request
        will; the smaller, the sooner memory is short.
        """
        self._room = preset.capacity_tokens
        self._decode = {
            inference_id(spec, one): max(1, one.decode_tokens)
            for spec in agents
            for one in spec.inferences
        }
        least = ratio * envs.SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR.get()
        fall = (ratio - least) / envs.SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS.get()
        self.scheduler.new_token_ratio_tracker = NewTokenRatioTracker(
            init=ratio, min=least, decay=fall, current=ratio
        )
        self.settle()
        scheduler, tokens = self.scheduler, preset.capacity_tokens + SPARE
        assert tokens <= MOST_TOKENS
        assert preset.max_num_seqs <= MOST_SEATS
        self.capacity = scheduler.token_to_kv_pool_allocator.size = tokens
        for holder in (
            scheduler,
            scheduler.pool_stats_observer,
            scheduler.invariant_checker,
        ):
            object.__setattr__(holder, "max_total_num_tokens", tokens)  # frozen, some
        scheduler.max_req_len = scheduler.max_req_input_len = tokens - 1
        scheduler.chunked_prefill_size = preset.max_num_batched_tokens
        seats = scheduler.req_to_token_pool
        seats.size, seats._alloc_size = preset.max_num_seqs, preset.max_num_seqs + 1
        assert scheduler.flush_cache(empty_cache=False)

    def ratio(self) -> Ratio | None:
        """Return the guess for `sim`; None with reservation."""
        if self.binding.settings.admission == "max":
            return None
        tracker = self.scheduler.new_token_ratio_tracker
        ahead = envs.SGLANG_RETRACT_DECODE_STEPS.get()
        return Ratio(tracker.init, tracker.min, tracker.decay, ahead)

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        self._decode.setdefault(name, most_tokens)
        super().add(name, prompt_tokens, most_tokens, claim)

    def step(self) -> list[str]:
        self._end_with_the_next_token()
        return super().step()

    def _end_with_the_next_token(self) -> None:
        """Let those end with their next token that will then have all of theirs."""
        scheduler = self.scheduler
        batches = [scheduler.running_batch, scheduler.last_batch]
        there = [*scheduler.waiting_queue, scheduler.chunked_req]
        there += [req for batch in batches if batch is not None for req in batch.reqs]
        for req in there:
            if req is None or req.finished():
                continue
            decode = self._decode[req.rid]
            if req.to_finish is None and len(req.output_ids) == decode - 1:
                req.to_finish = FINISH_LENGTH(length=decode)


def _say(batch: Any, **_: Any) -> GenerationBatchResult:
    """Be a model that is not there."""
    return GenerationBatchResult(
        logits_output=LogitsProcessorOutput(next_token_logits=None),
        next_token_ids=torch.full((len(batch.reqs),), _SAID),
    )


def run_real(
    backend: Unmodelled,
    case: Case,
    policy: Policy,
    predictor: Predictor | None = None,
    *,
    check: bool = False,
    ratio: float = 0.7,
) -> RunRecord:
    """Run a case on SGLang's scheduler; nothing may be left in it afterwards."""
    backend.be(case.preset, case.agents, ratio=ratio)
    backend.use(policy)
    run = Checking if check else Ticking
    record = run(
        case.agents,
        policy,
        predictor or Oracle(),
        backend,
        by_stage=case.tags == "stage",
        progress=None,
    ).run()
    backend.settle()
    assert not backend.agents._agents
    assert not backend._live
    assert backend.usage() == 0
    backend.binding._check()
    return record


class Checking(Ticking):
    """A run that asserts the binding's invariants after every step."""

    def _run_step(self) -> None:
        super()._run_step()
        backend = self._backend
        assert isinstance(backend, Unmodelled)
        backend.binding._check()


def paged(case: Case) -> Case:
    """Return a case as it runs on pages of one token, as SGLang's are here."""
    case = runnable(case)
    preset = case.preset
    return replace(
        case,
        preset=make_preset(
            blocks=preset.capacity_tokens,
            seats=preset.max_num_seqs,
            budget=preset.max_num_batched_tokens,
        ),
    )
