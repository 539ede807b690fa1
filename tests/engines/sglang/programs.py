"""SGLang's Engine in a program of its own: it ends its whole tree when a part dies."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from justitia.engines.serving.settings import PREFIX
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    ON_CPU,
    TINY_ON_CPU,
    on_cpu,
    path_on_cpu,
)

PATIENCE = 300
"""Seconds for which a process may run; only a broken one takes them."""
START = """
import json, os, sys
from pathlib import Path
{before}
def main():
    import sglang
    {inside}
    engine = sglang.Engine(**json.loads(os.environ["ARGUMENTS"]) | {more})
    told = engine.get_server_info()["internal_states"][0].get("justitia")
    print("TOLD", json.dumps(told), flush=True)
    {then}
    engine.shutdown()

if __name__ == "__main__":
    main()
"""


def start(
    model: Path,
    folder: Path,
    *,
    before: str = "",
    inside: str = "",
    then: str = "",
    more: str = "{}",
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Start SGLang's Engine in a program of its own, with some lines of ours in it."""
    script = folder / "program.py"
    script.write_text(
        START.format(
            before=before,
            inside=inside.replace("\n", "\n    "),
            then=then.replace("\n", "\n    "),
            more=more,
        )
    )
    arguments = {
        "model_path": str(model),
        "max_total_tokens": 512,
        "skip_tokenizer_init": True,
        "sleep_on_idle": True,
        "log_level": "warning",
        **(ARGUMENTS_ON_CPU if on_cpu() else {}),
    }
    return subprocess.run(
        [sys.executable, str(script)],
        env={**environment(), "ARGUMENTS": json.dumps(arguments), **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def environment() -> dict[str, str]:
    """Return what a process of SGLang's finds, where nobody has asked for a policy."""
    found = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(PREFIX) and name != "SGLANG_PLUGINS"
    }
    if on_cpu():
        found |= {**ON_CPU, **TINY_ON_CPU}
        found["PYTHONPATH"] = path_on_cpu(found.get("PYTHONPATH"))
    return found


def told(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what a scheduler said of its policy."""
    assert done.returncode == 0, done.stderr[-3_000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    return json.loads(line.removeprefix("TOLD "))
