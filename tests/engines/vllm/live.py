"""A workload on vLLM's real scheduler, without a model and without a clock.

The run is `LiveRun`, the one of ``justitia run --engine vllm``; only its time is
another: every step takes a tick, as on a `sim` whose preset says so.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from justitia.engines import RunRecord
from justitia.engines.roster import inference_id
from justitia.engines.serving import Agents
from justitia.engines.serving.backend import Backend
from justitia.engines.serving.run import LiveRun
from justitia.policy import Policy
from justitia.predictors import Oracle, Predictor
from justitia.workloads import AgentSpec
from tests.engines.build import Case
from tests.engines.ticking import Ticking
from tests.engines.vllm.real import Driver, make_scheduler

CONTEXT = 4096
"""Of the model that the fixture makes: more than any cache of a case holds."""


class Unmodelled(Backend):
    """A `Driver` as the backend of a run."""

    def __init__(
        self, driver: Driver, policy: Policy, agents: Sequence[AgentSpec]
    ) -> None:
        self.driver = driver
        self.agents = Agents(policy, now=lambda: 0.0, linger=1e9, most=10**9)
        driver.ours.use(self.agents)
        self._cache = driver.scheduler.kv_cache_manager
        blocks = self._cache.block_pool.num_gpu_blocks - 1
        self.capacity = blocks * driver.scheduler.block_size
        self.context = driver.scheduler.max_model_len
        self._decode = {
            inference_id(spec, one): one.decode_tokens
            for spec in agents
            for one in spec.inferences
        }

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        self.driver.add(
            name, prompt_tokens, self._decode[name], longest=most_tokens, claim=claim
        )

    def abort(self, names: Collection[str]) -> None:
        self.driver.abort(*names)

    def step(self) -> Collection[str]:
        before = len(self.driver.finishes)
        self.driver.advance()
        return list(self.driver.finishes)[before:]

    def name(self, request_id: str) -> str:
        return request_id

    def usage(self) -> float:
        return float(self._cache.usage)


def run_real(
    model: Path,
    case: Case,
    policy: Policy,
    predictor: Predictor | None = None,
    *,
    depth: int = 1,
    check: bool = False,
    kind: Callable[..., LiveRun] = Ticking,
) -> RunRecord:
    """Run a case on vLLM's scheduler; nothing may be left in it when all has ended."""
    preset = case.preset
    scheduler = make_scheduler(
        model,
        justitia={"admission": case.admission},
        blocks=preset.capacity_tokens // preset.block_size + 1,
        block=preset.block_size,
        seqs=preset.max_num_seqs,
        batched=preset.max_num_batched_tokens,
        context=CONTEXT,
        asynchronous=depth > 1,
    )
    driver = Driver(scheduler, depth=depth, check=check)
    backend = Unmodelled(driver, policy, case.agents)
    record = kind(
        case.agents,
        policy,
        predictor or Oracle(),
        backend,
        by_stage=case.tags == "stage",
        progress=None,
    ).run()
    while driver.advance():
        pass  # outputs in flight of requests that were aborted
    assert not backend.agents._agents
    assert not scheduler.requests
    assert backend.usage() == 0
    return record
