"""Real vLLM servers."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from justitia.engines.vllm.surroundings import IN_PROCESS, TINY_ON_CPU
from tests.engines.servers import MODEL, Server, serving, started

SMALL = (
    f"--served-model-name={MODEL} --enforce-eager --dtype=float32 --block-size=32 "
    "--num-gpu-blocks-override=64 --max-model-len=512 --max-num-seqs=64 "
    "--max-num-batched-tokens=1024"
).split()
STOCK = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
JUSTITIA = (sys.executable, "-m", "justitia", "serve")


def process(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> AbstractContextManager[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command in a folder, in a process group that ends with the block."""
    return started(command, folder, _variables(environment))


def server(
    command: tuple[str, ...], folder: Path, **environment: str
) -> AbstractContextManager[Server]:
    """Start a server, to which ``--port`` is added, and wait until it answers."""
    return serving(command, folder, _variables(environment))


@contextmanager
def held(served: Server) -> Iterator[None]:
    """Let requests come while vLLM makes no step: they wait, however busy the machine.

    It answers everything else meanwhile.
    """
    served.http.post("/pause", params={"mode": "keep"}).raise_for_status()
    try:
        yield
    finally:
        served.http.post("/resume").raise_for_status()


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    variables = {**os.environ, **TINY_ON_CPU, **environment}
    for name in ("PYTHONDEVMODE", *IN_PROCESS):  # what these tests have for themselves
        variables.pop(name, None)
    # In its development mode a server can be held.
    return variables | {"VLLM_NO_USAGE_STATS": "1", "VLLM_SERVER_DEV_MODE": "1"}
