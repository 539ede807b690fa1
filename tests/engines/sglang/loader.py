"""SGLang's own loader of plugins, run many times, in a process that imported it once.

``python loader.py`` reads cases from its standard input, a JSON object by name, each
with ``variables`` and a ``change``, which is a program. It prints what came of each: an
object with ``reason``, if the process was to end, and the number of hooked targets.
Every process of SGLang's begins by calling that loader; it logs what goes wrong, and
serves on.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Load for every case, each in a fork of this process."""
    # What takes the time, once: the scheduler, and what the main process has beside.
    import sglang.srt.entrypoints.engine
    import sglang.srt.managers.scheduler  # noqa: F401 - as an attribute of the package

    told = {name: forked(case) for name, case in json.load(sys.stdin).items()}
    print(json.dumps(told))


def forked(case: dict[str, Any]) -> Any:
    """Return what comes of a case, in a process that ends with it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            told = load(case)
        except BaseException as error:  # a test shows it
            told = {"error": repr(error)}
        with os.fdopen(writer, "w") as answer:
            json.dump(told, answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        told = json.load(answer)
    os.waitpid(child, 0)
    return told


def load(case: dict[str, Any]) -> dict[str, Any]:
    """Change what there is, and let SGLang load its plugins."""
    os.environ.update(case.get("variables", {}))
    exec(case.get("change", ""), {})  # noqa: S102 - the test wrote it
    from sglang.srt.plugins import load_plugins
    from sglang.srt.plugins.hook_registry import HookRegistry

    reason = None
    try:
        load_plugins()
    except SystemExit as ended:
        reason = str(ended)
    return {"reason": reason, "hooked": sorted(HookRegistry._patched)}


if __name__ == "__main__":
    main()
