"""`justitia run --engine openai` on any real engine."""

import json
from pathlib import Path

import pytest

from justitia.cli import main
from justitia.flags import DONE
from justitia.workloads import AgentSpec, InferenceSpec, write_jsonl
from tests.engines.servers import KEY, MODEL, Server


def check_run(
    served: Server,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    **expected: object,
) -> None:
    """Run agents: the engine counts what the workload says, and order is kept."""
    monkeypatch.setenv("KEY_OF_THE_ENGINE", KEY)
    file, workload = folder / "run.json", folder / "agents.jsonl"
    write_jsonl(workload, agents())
    words = (
        *("run", "--engine=openai", f"--url={served.url}/v1"),
        *("--key-env=KEY_OF_THE_ENGINE", f"--workload={workload}", "--slots=4"),
        *("--policy=justitia", "--tags=stage", "--arrivals=burst", f"--json={file}"),
    )
    assert main(words) == DONE
    content = json.loads(file.read_text())
    engine = content["engine"]
    assert {key: engine[key] for key in expected} == expected
    assert (engine["url"], engine["model"]) == (served.url, MODEL)
    (run,) = content["runs"]
    # On a busy machine a server may close a connection that is just used again.
    assert all("sent again" in remark for remark in run["remarks"])
    assert {one["outcome"] for one in run["inferences"]} == {"finished"}
    planned = sorted(
        (one.prompt_tokens, one.decode_tokens)
        for spec in agents()
        for one in spec.inferences
    )
    assert planned == sorted(
        (one["prompt_tokens"], one["decode_tokens"]) for one in run["inferences"]
    )
    assert 0 < run["summary"]["utilisation"] <= 1
    assert run["remarks"] or run["summary"]["max_lag_ratio"] <= 0


def agents() -> list[AgentSpec]:
    """Agents of two stages, of which four inferences run at once."""
    return [
        AgentSpec(
            f"a{k}",
            (
                InferenceSpec(20 + 7 * k, 5 + k),
                InferenceSpec(40, 12),
                InferenceSpec(400 - k, 4 + k, stage=1),
            ),
        )
        for k in range(6)
    ]
