"""`justitia run --engine openai` on any real engine."""

import json
from pathlib import Path

import pytest

from justitia.cli import main
from justitia.flags import DONE
from tests.engines.servers import KEY, MODEL, Server


def check_run(
    served: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    **expected: object,
) -> None:
    """Run agents that just fit: the engine counts what the workload says, exactly."""
    monkeypatch.setenv("KEY_OF_THE_ENGINE", KEY)
    file = folder / "run.json"
    words = (
        *("run", "--engine=openai", f"--url={served.url}/v1"),
        *("--key-env=KEY_OF_THE_ENGINE", "--agents=6", "--arrivals=burst"),
        *("--policy=justitia,fcfs", "--tags=stage", f"--json={file}"),
    )
    assert main(words) == DONE
    content = json.loads(file.read_text())
    engine = content["engine"]
    assert {key: engine[key] for key in expected} == expected
    assert (engine["url"], engine["model"]) == (served.url, MODEL)
    for run in content["runs"]:
        # On a busy machine a server may close a connection that is just used again.
        assert all("sent again" in remark for remark in run["remarks"])
        assert {one["outcome"] for one in run["inferences"]} == {"finished"}
        assert run["summary"]["finished"] == content["workload"]["inferences"]
        assert 0 < run["summary"]["utilisation"] <= 1
    justitia, _ = content["runs"]
    assert justitia["remarks"] or justitia["summary"]["max_lag_ratio"] <= 0
