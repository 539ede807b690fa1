"""The plugin, as SGLang's loader has it in each process: on, off, or the reason.

What a whole server makes of it is in test_offline.py and test_server.py.
"""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from justitia.engines.serving.settings import ServingError, ServingSettings
from justitia.engines.sglang.plugin import configured
from justitia.engines.sglang.support import check_supported
from justitia.engines.sglang.targets import HOOKED, LAUNCH
from tests.engines.sglang import loader, neighbours
from tests.engines.sglang.programs import PATIENCE, environment, start

pytest.importorskip(
    "sglang", reason="SGLang is not installed here; tox run -e sglang does it"
)

ON = {"JUSTITIA_POLICY": "justitia"}
RENAME = """
from sglang.srt.managers import scheduler as module
module.Scheduler.run_batches = module.Scheduler.run_batch
del module.Scheduler.run_batch
"""
ANOTHER = """
from sglang.srt.managers import scheduler as module
module.Scheduler.run_batch = lambda self, plan: None
"""
NOT_APPLIED = """
from sglang.srt.plugins.hook_registry import HookRegistry
HookRegistry._apply_target = classmethod(lambda *args: 1 / 0)
"""
OVERWRITE = """
from sglang.srt.plugins.hook_registry import HookRegistry
original = HookRegistry.apply_hooks.__func__
def apply(registry):
    original(registry)
    from sglang.srt.managers.scheduler import Scheduler
    Scheduler.on_idle = lambda self: None
HookRegistry.apply_hooks = classmethod(apply)
"""
SUBCLASS = """
from sglang.srt.managers import scheduler as module
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
class Own(module.Scheduler):
    def run_batch(self, batch, pp_proxy_tensors=None):
        return super().run_batch(batch, pp_proxy_tensors)
HookRegistry.register(
    "sglang.srt.managers.scheduler.Scheduler", Own, HookType.REPLACE
)
"""
CASES: dict[str, dict[str, Any]] = {
    "off": {},
    "empty": {"variables": {"JUSTITIA_POLICY": ""}},
    "on": {"variables": ON},
    "among others": {"variables": ON},
    "in a class of another's": {"variables": ON, "change": SUBCLASS},
    "not allowed": {"variables": {**ON, "SGLANG_PLUGINS": "aardvark"}},
    "policy": {"variables": {"JUSTITIA_POLICY": "best"}},
    "options": {"variables": {"JUSTITIA_OPTIONS": '{"tags": "colour"}'}},
    "no options": {"variables": {"JUSTITIA_OPTIONS": "{"}},
    "admission": {"variables": {"JUSTITIA_ADMISSION": "predicted"}},
    "linger": {"variables": {"JUSTITIA_LINGER": "-1"}},
    "renamed": {"variables": ON, "change": RENAME},
    "other parameters": {"variables": ON, "change": ANOTHER},
    "not applied": {"variables": ON, "change": NOT_APPLIED},
    "overwritten": {"variables": ON, "change": OVERWRITE},
}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What comes of each case; two that meddle and one that fails are beside ours."""
    variables = environment()
    beside = neighbours.install(tmp_path_factory.mktemp("beside"))
    variables["PYTHONPATH"] = os.pathsep.join([beside, variables["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, loader.__file__],
        input=json.dumps(CASES),
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_the_entry_point() -> None:
    (point,) = entry_points(group="sglang.srt.plugins", name="justitia")
    assert point.value == "justitia.engines.sglang.plugin:register"


@pytest.mark.parametrize("field", ServingSettings.model_fields)
def test_any_setting_turns_it_on(field: str) -> None:
    assert configured({f"JUSTITIA_{field.upper()}": "1"})
    assert not configured({f"JUSTITIA_{field.upper()}": ""})
    assert not configured({"JUSTITIA_CONFIG": "there.toml", "PATH": "x"})


OURS = {target.path for target in (*HOOKED, LAUNCH)}


@pytest.mark.parametrize("case", ["off", "empty", "not allowed"])
def test_no_hook_is_ours_unless_it_is_configured(
    loaded: dict[str, Any], case: str
) -> None:
    told = loaded[case]
    assert told["reason"] is None
    assert len(told["hooked"]) == 3  # a neighbour's
    assert not set(told["hooked"]) >= OURS


@pytest.mark.parametrize("case", ["on", "among others", "in a class of another's"])
def test_all_hooks_are_in_place(loaded: dict[str, Any], case: str) -> None:
    """Beside plugins that hook the same, fail, or bring a scheduler of their own."""
    told = loaded[case]
    assert told["reason"] is None
    assert set(told["hooked"]) >= OURS


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("policy", "policy: must be one of"),
        ("options", "options"),
        ("no options", "options"),
        ("admission", "admission: must be one of none, max"),
        ("linger", "linger"),
        ("renamed", "managers.scheduler.Scheduler.run_batch is not there"),
        ("other parameters", "Scheduler.run_batch takes (self, plan), where"),
        ("not applied", "SGLang did not put the policy's hooks in place"),
        ("overwritten", "took them away: sglang.srt.managers.scheduler.Scheduler.on_i"),
    ],
)
def test_what_cannot_be_in_force_ends_the_process_with_the_reason(
    loaded: dict[str, Any], case: str, reason: str
) -> None:
    told = loaded[case]["reason"]
    assert told.startswith("justitia: ")
    assert reason in told


NOT_IN_A_SCHEDULER = """
def run(*args, **kwargs):
    os.environ["SGLANG_PLUGINS"] = "another"
    from sglang.srt.managers import scheduler as module
    module.run_scheduler_process(*args, **kwargs)

from sglang.srt.entrypoints.engine import Engine
Engine.run_scheduler_process_func = staticmethod(run)
"""


def test_a_scheduler_that_loads_no_plugin_stops_the_server(
    model: Path, tmp_path: Path
) -> None:
    """It would serve in its own order; the main process sees that it has no policy."""
    done = start(model, tmp_path, before=NOT_IN_A_SCHEDULER, JUSTITIA_POLICY="justitia")
    assert done.returncode != 0
    assert "justitia: not in force, so this server stops" in done.stderr + done.stdout
    assert "TOLD" not in done.stdout


# What would not keep the order -------------------------------------------------------


def scheduler(**given: Any) -> Any:
    """Return what `check_supported` looks at, with these of SGLang's arguments."""
    arguments = {
        "schedule_policy": "fcfs", "disaggregation_mode": "null", "pp_size": 1, **given
    }  # fmt: skip
    return SimpleNamespace(
        server_args=SimpleNamespace(**arguments),
        enable_priority_scheduling=arguments.get("enable_priority_scheduling", False),
    )


def test_a_plain_scheduler_is_supported() -> None:
    check_supported(scheduler())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"schedule_policy": "lpm"}, "--schedule-policy lpm has no effect"),
        ({"schedule_policy": "random"}, "--schedule-policy random has no effect"),
        ({"enable_priority_scheduling": True}, "--enable-priority-scheduling"),
        ({"disaggregation_mode": "prefill"}, "--disaggregation-mode"),
        ({"pp_size": 2}, "--pp-size"),
        ({"enable_pdmux": True}, "--enable-pdmux"),
        ({"dllm_algorithm": "x"}, "--dllm-algorithm"),
        ({"enable_hisparse": True}, "--enable-hisparse"),
    ],
)
def test_a_mode_that_would_not_keep_the_order_is_refused_by_name(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(ServingError, match=named):
        check_supported(scheduler(**given))
