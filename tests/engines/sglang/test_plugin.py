"""The plugin in processes of SGLang's own: on, off, or a server that stops."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from justitia.engines.serving.settings import ServingSettings
from justitia.engines.sglang.plugin import configured
from tests.engines.sglang.programs import start, told

pytest.importorskip(
    "sglang", reason="SGLang is not installed here; tox run -e sglang does it"
)


def test_the_entry_point() -> None:
    (point,) = entry_points(group="sglang.srt.plugins", name="justitia")
    assert point.value == "justitia.engines.sglang.plugin:register"


@pytest.mark.parametrize("field", ServingSettings.model_fields)
def test_any_setting_turns_it_on(field: str) -> None:
    assert configured({f"JUSTITIA_{field.upper()}": "1"})
    assert not configured({f"JUSTITIA_{field.upper()}": ""})
    assert not configured({"JUSTITIA_CONFIG": "there.toml", "PATH": "x"})


def test_off_unless_it_is_configured(model: Path, tmp_path: Path) -> None:
    """SGLang's own policy, and no hook at all."""
    done = start(
        model,
        tmp_path,
        then=(
            "from sglang.srt.plugins.hook_registry import HookRegistry\n"
            "assert not HookRegistry._hooks, HookRegistry._hooks"
        ),
    )
    assert told(done) is None
    assert "justitia" not in done.stdout.replace("TOLD", "")


def test_in_force(model: Path, tmp_path: Path) -> None:
    done = start(
        model,
        tmp_path,
        JUSTITIA_POLICY="sjf",
        JUSTITIA_OPTIONS='{"by": "cost"}',
        JUSTITIA_ADMISSION="max",
    )
    state = told(done)
    assert state["policy"] == "sjf"
    assert state["options"] == {"by": "cost"}
    assert state["admission"] == "max"
    assert state["capacity_tokens"] == 512
    assert "is in force: policy sjf, admission max, 512 KV tokens" in done.stdout


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"JUSTITIA_POLICY": "best"}, "policy: must be one of"),
        ({"JUSTITIA_ADMISSION": "predicted"}, "admission: must be one of none, max"),
    ],
)
def test_a_setting_that_cannot_be_used(
    model: Path, tmp_path: Path, variables: dict[str, str], reason: str
) -> None:
    done = start(model, tmp_path, **variables)
    assert done.returncode != 0
    assert f"justitia: {reason}" in done.stderr
    assert "TOLD" not in done.stdout


RENAME = """
from sglang.srt.managers import scheduler as module
module.Scheduler.run_batches = module.Scheduler.run_batch
del module.Scheduler.run_batch
"""


def test_a_renamed_target_stops_the_server(model: Path, tmp_path: Path) -> None:
    """As a later SGLang would have it; the message says which it is."""
    done = start(model, tmp_path, inside=RENAME, JUSTITIA_POLICY="justitia")
    assert done.returncode != 0
    assert (
        "sglang.srt.managers.scheduler.Scheduler.run_batch is not there" in done.stderr
    )
    assert "TOLD" not in done.stdout


IN_CHILD = """
def run(*args, **kwargs):
    from sglang.srt.managers import scheduler as module
    {change}
    module.run_scheduler_process(*args, **kwargs)

from sglang.srt.entrypoints.engine import Engine
Engine.run_scheduler_process_func = staticmethod(run)
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            "module.Scheduler.idle = module.Scheduler.on_idle; "
            "del module.Scheduler.on_idle",
            "sglang.srt.managers.scheduler.Scheduler.on_idle is not there",
        ),
        (  # what SGLang does where applying a hook fails: a line in its log
            "from sglang.srt.plugins.hook_registry import HookRegistry; "
            "HookRegistry._apply_target = classmethod(lambda *args: 1 / 0)",
            "SGLang did not put the policy's hooks in place",
        ),
        (
            "os.environ['SGLANG_PLUGINS'] = 'another'",
            "justitia: not in force, so this server stops",
        ),
    ],
    ids=["renamed", "not applied", "not loaded"],
)
def test_a_mismatch_in_the_schedulers_process_alone(
    model: Path, tmp_path: Path, change: str, reason: str
) -> None:
    done = start(
        model,
        tmp_path,
        before=IN_CHILD.format(change=change),
        JUSTITIA_POLICY="justitia",
    )
    assert done.returncode != 0
    assert reason in done.stderr + done.stdout
    assert "TOLD" not in done.stdout


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"schedule_policy": "lpm"}, "--schedule-policy lpm has no effect"),
        ({"enable_priority_scheduling": True}, "--enable-priority-scheduling"),
    ],
)
def test_a_mode_that_would_not_keep_the_order(
    model: Path, tmp_path: Path, more: dict[str, object], reason: str
) -> None:
    done = start(model, tmp_path, more=repr(more), JUSTITIA_POLICY="justitia")
    assert done.returncode != 0
    assert reason in done.stderr + done.stdout
    assert "TOLD" not in done.stdout
