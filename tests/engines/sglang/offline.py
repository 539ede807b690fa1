"""The experiment on SGLang's Engine, which has no server; a program of its own.

``python offline.py MODEL`` prints, as JSON, whose the requests were as they completed,
and what the scheduler says of its policy. Each request says whose it is, whether or not
the environment has a policy for them. A process of its own, since SGLang ends the one
that it is in when one of its own dies.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from justitia.engines.sglang.surroundings import ARGUMENTS_ON_CPU, on_cpu, use_cpu
from tests.engines.sglang.experiment import CAPACITY, completed, cost
from tests.engines.sglang.servers import STEP


def main(model: str) -> None:
    given = {}
    if on_cpu():
        use_cpu()
        given = ARGUMENTS_ON_CPU
    from sglang import Engine
    from sglang.srt.managers.io_struct import SlowDownReqInput

    engine = Engine(
        model_path=model,
        max_total_tokens=CAPACITY,
        page_size=1,
        sleep_on_idle=True,
        log_level="error",
        **given,
    )

    async def send(agent: str, prompt: list[int], tokens: int) -> AsyncIterator[object]:
        claim = {"agent": agent, "cost": cost(agent)}
        params = {
            "max_new_tokens": tokens,
            "ignore_eos": True,
            "custom_params": {"justitia": claim},
        }
        parts = await engine.async_generate(
            input_ids=prompt, sampling_params=params, stream=True
        )
        async for part in parts:
            yield part

    @asynccontextmanager
    async def held() -> AsyncIterator[None]:
        manager = engine.tokenizer_manager
        await manager.slow_down(SlowDownReqInput(forward_sleep_time=STEP))
        yield
        await manager.slow_down(SlowDownReqInput(forward_sleep_time=0))

    async def run() -> list[str]:
        return await completed(send, lambda: asyncio.sleep(0), held())

    try:
        ended = engine.loop.run_until_complete(run())
        (state,) = engine.get_server_info()["internal_states"]
        print(json.dumps([ended, state.get("justitia")]), flush=True)
    finally:
        engine.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
