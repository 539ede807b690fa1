"""Other plugins of SGLang's beside ours, installed for as long as a folder is a path.

Two hook what ours hooks, and count; one fails when it is loaded.
"""

from pathlib import Path

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
_ENTRY = "[sglang.srt.plugins]\n{name} = {name}:register\n"
_MEDDLER = """
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler."
seen = {}

def register():
    def around(original, *args, **kwargs):
        seen["around"] = seen.get("around", 0) + 1
        return original(*args, **kwargs)
    def before(*args, **kwargs):
        seen["before"] = seen.get("before", 0) + 1
    def after(result, *args, **kwargs):
        seen["after"] = seen.get("after", 0) + 1
    for name in ("run_batch", "process_batch_result", "get_internal_state"):
        HookRegistry.register(SCHEDULER + name, around, HookType.AROUND)
        HookRegistry.register(SCHEDULER + name, before, HookType.BEFORE)
        HookRegistry.register(SCHEDULER + name, after, HookType.AFTER)
"""
_BROKEN = """
def register():
    raise RuntimeError("a plugin that cannot be loaded")
"""


def install(folder: Path) -> str:
    """Make them, and return what belongs on ``PYTHONPATH``.

    The names of those that hook come before and after ours in the alphabet.
    """
    plugins = {"aardvark": _MEDDLER, "mule": _BROKEN, "zebra": _MEDDLER}
    for name, program in plugins.items():
        (folder / f"{name}.py").write_text(program)
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(_METADATA.format(name=name))
        (metadata / "entry_points.txt").write_text(_ENTRY.format(name=name))
    return str(folder)
