"""SGLang's real scheduler without a model, a script between the turns of its loop.

Both of its loops are run, the plain one and the one that overlaps: a script is a
generator, and each time that it yields the loop has a turn.
"""

import warnings
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch and SGLang warn while they are imported
    pytest.importorskip(
        "sglang", reason="SGLang is not installed here; tox run -e sglang does it"
    )
    import torch
    from sglang.srt.distributed.parallel_state import (
        destroy_distributed_environment,
        destroy_model_parallel,
    )
    from sglang.srt.layers.logits_processor import LogitsProcessorOutput
    from sglang.srt.managers.io_struct import AbortReq, TokenizedGenerateReqInput
    from sglang.srt.managers.utils import GenerationBatchResult
    from sglang.srt.runtime_context import SpawnRanks, publish
    from sglang.srt.sampling.sampling_params import SamplingParams
    from sglang.srt.server_args import PortArgs, ServerArgs

    from justitia.engines.sglang.admission import check_admission, giving_way
    from justitia.engines.sglang.backend import IN_PROCESS, InProcess
    from justitia.engines.sglang.binding import SWEEP, Binding, binding_of
    from justitia.engines.sglang.order import FEW, MORE, Front
    from justitia.engines.sglang.plugin import install

from justitia.engines.serving import Agents, ServingSettings
from justitia.engines.sglang.surroundings import ARGUMENTS_ON_CPU
from justitia.policy import Agent, Inference, Policy, Step
from justitia.policy.fcfs import FCFS

__all__ = [
    "FEW", "FOREVER", "MORE", "SWEEP", "Binding", "Front", "Log", "Script", "Stepped",
    "binding_of", "check_admission", "giving_way", "stepped",
]  # fmt: skip

Script = Iterator[None]
FOREVER = 10**9
SAID, STOP = 5, 6
"""What the model says, and what it says to those that it ends."""


class Stepped(InProcess):
    """The scheduler, with what tests do to it.

    Attributes
    ----------
    stopping
        The ids of requests whose next token ends them.
    batches
        The ids in each batch that ran.
    """

    script: Script
    stopping: set[str]
    batches: list[list[str]]

    def ingest_requests(self, stop_at_pause: bool = False) -> list[Any]:
        """Let the script do something; its end is the loop's."""
        binding = binding_of(self)
        in_step = len(self.waiting_queue) == binding._queued  # but for the aborted
        if in_step and (len(self.batches) < 500 or len(self.batches) % 50 == 0):
            binding._check()
        try:
            next(self.script)
        except StopIteration:
            self.gracefully_exit = True
        return []

    def play(self, script: Script) -> None:
        """Run the loop for as long as a script does, and until nothing is left."""
        self.script = self._to_the_end(script)
        self.gracefully_exit = False
        with self.device_module.StreamContext(self.schedule_stream):
            if self.enable_overlap:
                self.event_loop_overlap()
            else:
                self.event_loop_normal()

    def _to_the_end(self, script: Script) -> Script:
        yield from script
        done, fruitless = -1, 0
        while not self.is_fully_idle():
            yield
            fruitless = fruitless + 1 if done == len(self.batches) else 0
            done = len(self.batches)
            if fruitless > 10:
                raise AssertionError(f"nobody runs, {self.waiting_queue} wait")
        yield

    def send(
        self,
        rid: str,
        prompt: int = 8,
        most: int = 4,
        claim: object = None,
        *,
        token: int = 7,
        ignore: bool = False,
        **more: Any,
    ) -> None:
        """Have a request arrive whose prompt is one token, repeated.

        With `ignore` no token ends it, which SGLang counts on.
        """
        custom = None if claim is None else {"justitia": claim}
        params = SamplingParams(
            temperature=0.0,
            max_new_tokens=most,
            custom_params=custom,
            stop_token_ids=None if ignore else [STOP],
            ignore_eos=ignore,
        )
        params.normalize(None)
        self.process_input_requests(
            [
                TokenizedGenerateReqInput(
                    **{
                        "rid": rid,
                        "input_text": None,
                        "input_ids": array("q", [token] * prompt),
                        "input_embeds": None,
                        "mm_inputs": None,
                        "token_type_ids": None,
                        "sampling_params": params,
                        "return_logprob": False,
                        "logprob_start_len": -1,
                        "top_logprobs_num": 0,
                        "token_ids_logprob": None,
                        "stream": False,
                    }
                    | more
                )
            ]
        )

    def cancel(self, rid: str = "", **more: Any) -> None:
        """Have a client give up."""
        self.process_input_requests([AbortReq(rid=rid, **more)])

    def ended(self) -> list[str]:
        """Return who has ended since this was last asked."""
        ended, self.outputs.ended = self.outputs.ended, []
        return ended

    def use(self, policy: Policy, *, linger: float = FOREVER) -> Agents:
        """Start afresh with a policy, an empty cache, and nothing remembered."""
        binding = binding_of(self)
        agents = Agents(policy, now=binding.now, linger=linger, most=FOREVER)
        binding.use(agents)
        assert self.flush_cache()
        self.stopping = set()
        self.batches = []
        self.outputs.ended.clear()
        return agents

    def say(self, batch: Any, **_: Any) -> GenerationBatchResult:
        """Be the model."""
        self.batches.append([req.rid for req in batch.reqs])
        said = [STOP if req.rid in self.stopping else SAID for req in batch.reqs]
        return GenerationBatchResult(
            logits_output=LogitsProcessorOutput(next_token_logits=None),
            next_token_ids=torch.tensor(said),
        )


class stepped:
    """Gives a scheduler, and ends it: SGLang has one in a process at a time."""

    def __init__(
        self, model: Path, *, admission: str = "none", overlap: bool, **arguments: Any
    ) -> None:
        self._settings = ServingSettings(admission=admission)
        self._arguments = {
            **ARGUMENTS_ON_CPU,
            "model_path": str(model),
            "max_total_tokens": 512,
            "max_running_requests": 64,
            "chunked_prefill_size": 64,
            "page_size": 1,
            **arguments,
            **IN_PROCESS,
            "disable_overlap_schedule": not overlap,
        }

    def __enter__(self) -> Stepped:
        install(self._settings)
        given = ServerArgs(**self._arguments)
        given.resolve_once()
        given.check_server_args()
        publish(given, role="scheduler", ranks=SpawnRanks(world_rank=0, gpu_id=0))
        ports = PortArgs.init_new(given)
        for name in vars(ports).values():  # files that nobody will open
            if isinstance(name, str) and name.startswith("ipc://"):
                Path(name.removeprefix("ipc://")).unlink(missing_ok=True)
        self._made = made = Stepped(given, ports)
        made.model_config.hf_eos_token_id = None
        made.model_worker.forward_batch_generation = made.say
        made.schedule_stream.synchronize = lambda: None  # as in `run_event_loop`
        made._war_barrier_enabled = False
        made.stopping, made.batches = set(), []
        binding_of(made).prove()
        return made

    def __exit__(self, *_: object) -> None:
        self._made.release_host_resources()
        destroy_model_parallel()
        destroy_distributed_environment()


class Log(FCFS):
    """First come, first served, and what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []
        self.prefill: dict[str, int] = {}
        self.decode: dict[str, int] = {}
        self.steps = 0

    def verbs(self, id: str) -> list[str]:
        """Return what was said of an inference, in order."""
        return [verb for verb, name in self.told if name == id]

    def arrive(self, agent: Agent) -> None:
        super().arrive(agent)
        self.told.append(("arrive", agent.id))

    def submit(self, inference: Inference) -> None:
        super().submit(inference)
        self.told.append(("submit", inference.id))

    def start(self, inference_id: str) -> Inference:
        self.told.append(("start", inference_id))
        return super().start(inference_id)

    def requeue(self, inference_id: str) -> None:
        super().requeue(inference_id)
        self.told.append(("requeue", inference_id))

    def finish(self, inference_id: str) -> bool:
        self.told.append(("finish", inference_id))
        return super().finish(inference_id)

    def refuse(self, inference_id: str) -> None:
        super().refuse(inference_id)
        self.told.append(("refuse", inference_id))

    def leave(self, agent_id: str) -> bool:
        self.told.append(("leave", agent_id))
        return super().leave(agent_id)

    def serve(self, step: Step) -> None:
        super().serve(step)
        self.steps += 1
        for told, total in ((step.prefill, self.prefill), (step.decode, self.decode)):
            for id, count in told.items():
                total[id] = total.get(id, 0) + count
