"""Two ranks of tensor parallelism, each with a queue of its own, and one order."""

import json
from pathlib import Path

import pytest

from justitia.policy import names
from tests.engines.sglang.programs import start, told

pytest.importorskip(
    "sglang", reason="SGLang is not installed here; tox run -e sglang does it"
)

JOURNAL = """
def run(*args, **kwargs):
    from justitia.engines.serving import Agents
    from justitia.engines.sglang import binding
    def journal(name):
        original = getattr(Agents, name)
        def method(self, *told, **more):
            told_as = [str(one) for one in told]
            kept.write(json.dumps([name, *told_as]) + "\\n")
            kept.flush()
            return original(self, *told, **more)
        setattr(Agents, name, method)
    kept = open(os.path.join({folder!r}, "rank" + str(os.getpid())), "w")
    for name in ("submit", "start", "serve", "requeue", "refuse", "finish"):
        journal(name)
    from sglang.srt.managers.scheduler import run_scheduler_process
    run_scheduler_process(*args, **kwargs)

from sglang.srt.entrypoints.engine import Engine
Engine.run_scheduler_process_func = staticmethod(run)
"""
WORK = """
import asyncio
async def one(n):
    await asyncio.sleep(0.01 * (n % 7))
    most = 20 + n % 40
    claim = {"agent": "a" + str(n % 9), "cost": 1e4 + 1e3 * (n * n % 11)}
    params = {"max_new_tokens": most, "temperature": 0, "ignore_eos": n % 2 == 0}
    params["custom_params"] = {"justitia": claim}
    ids = [3 + (n * 31 + k) % 400 for k in range(20 + n)]
    await engine.async_generate(input_ids=ids, sampling_params=params)
async def all():
    await asyncio.gather(*(one(n) for n in range(60)))
engine.loop.run_until_complete(all())
"""


@pytest.mark.parametrize("name", ["justitia", "vtc", "mlfq"])
def test_both_ranks_are_told_the_same(model: Path, tmp_path: Path, name: str) -> None:
    """Every verb in the same order, with time made of iterations, in a full cache."""
    assert name in names()
    journals = tmp_path / "journals"
    journals.mkdir()
    done = start(
        model,
        tmp_path,
        before=JOURNAL.format(folder=str(journals)),
        then=WORK.strip(),
        more='{"tp_size": 2}',
        JUSTITIA_POLICY=name,
        JUSTITIA_LINGER="0.2",
        SGLANG_CPU_OMP_THREADS_BIND="0|1",
    )
    assert told(done)["policy"] == name
    first, second = (path.read_text().splitlines() for path in journals.iterdir())
    assert first == second
    verbs = [json.loads(line)[0] for line in first]
    assert verbs.count("submit") == verbs.count("finish") >= 60
    assert verbs.count("start") == 60 + verbs.count("requeue")
