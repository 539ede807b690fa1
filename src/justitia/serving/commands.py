"""A server's command, and what goes into every engine's."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from tempfile import mkdtemp
from typing import NoReturn

from justitia.config import ConfigError
from justitia.engines.base import EngineError
from justitia.policy.exact import shown

TINY = "tiny"
"""Stands for a model made on the spot, to try things with."""
PLUGIN = "justitia"
_HIDDEN = "***"


@dataclass(frozen=True)
class Command:
    """A program with its arguments, and the environment to run it in."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def become(self) -> NoReturn:
        """Turn this process into the program."""
        told = shlex.join(_without_secrets(self.arguments))
        print(f"justitia: {told}", file=sys.stderr, flush=True)
        os.execve(self.arguments[0], self.arguments, dict(self.environment))


def plugin(group: str, engine: str) -> EntryPoint:
    """Return our plugin, as an engine's own process will find it.

    Raises
    ------
    EngineError
        If it will not.
    """
    for found in entry_points(group=group, name=PLUGIN):
        return found
    raise EngineError(
        f"{engine} does not find justitia's plugin, which proves that the policy is in "
        "force: install justitia again (pip install --force-reinstall justitia)"
    )


def named(model: str | None) -> str:
    """Return the model that is to be served.

    Raises
    ------
    ConfigError
        If there is none.
    """
    if model is None:
        raise ConfigError(
            "--model: give a path, a name on a hub, or tiny (a model made on the spot)"
        )
    return model


def listed(plugins: str | None) -> str:
    """Return a list of plugins, separated by commas, with ours among them."""
    others = [one for one in (plugins or "").split(",") if one]
    return ",".join(dict.fromkeys([*others, PLUGIN]))


def arguments(
    further: Sequence[str], ours: Mapping[str, str], *, shortened: bool = False
) -> Iterator[tuple[str, str, str | None]]:
    """Yield an engine's arguments: as given, the flag in it, its value if it has one.

    Parameters
    ----------
    ours
        Flags that the user may not give here, and what to do instead.
    shortened
        Whether the engine takes a flag by its beginning.

    Raises
    ------
    ConfigError
        For one of those.
    """
    for argument in further:
        flag, equals, value = argument.partition("=")
        if flag.startswith("--"):
            flag = flag.replace("_", "-")
        for one, instead in ours.items():
            if flag == one or (shortened and is_short_for(flag, one)):
                raise ConfigError(f"{shown(argument)}: {instead}")
        yield argument, flag, value if equals else None


def is_short_for(flag: str, whole: str) -> bool:
    """Return whether a flag is another one or its beginning."""
    return len(flag) > len("--") and whole.startswith(flag)


def before_the_dashes(*flags: str) -> dict[str, str]:
    """Return flags that this command has itself, for `arguments`."""
    return {flag: f"write {flag} before the --" for flag in flags}


def tiny_model(environment: Mapping[str, str]) -> Path:
    """Return the folder of the tiny model, made once for a user."""
    from justitia.engines.tiny import CONTEXT, make_tiny_model  # noqa: PLC0415

    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "justitia" / f"tiny-{CONTEXT}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = make_tiny_model(Path(mkdtemp(dir=folder.parent)) / "model")
        try:
            draft.rename(folder)
        except OSError:  # somebody else was faster
            if not folder.exists():
                raise
        else:
            draft.parent.rmdir()
    return folder


def _without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """Yield arguments as they may be logged: keys and tokens are not."""
    secret = False
    for argument in arguments:
        flag, equals, _ = argument.partition("=")
        if flag.startswith("--"):
            secret = flag.endswith(("key", "token", "password"))
            yield f"{flag}={_HIDDEN}" if secret and equals else argument
        else:
            yield _HIDDEN if secret else argument  # vLLM takes several after one flag
