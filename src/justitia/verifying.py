"""What `justitia verify` does: a scheduler from its name, every property, a report."""

import importlib
import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from justitia import __version__
from justitia.engines.document import dumps
from justitia.output import STANDARD, Output
from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.progress import Progresses
from justitia.verdicts import show

OURS = "justitia.policy:SelectivePampering"
LARGEST_SEED = 2**63 - 1
_BAR = "verify"


class VerifyError(PolicyError):
    """Something that cannot be verified; says what, and why."""


@dataclass(frozen=True, slots=True)
class VerifySettings:
    """What `justitia verify` looks at.

    Attributes
    ----------
    target
        ``MODULE:CLASS``, the module by its name or as a file.
    profile, seed, properties
        See `justitia.proofs.verify.verify`; as they were typed. No properties: all.
    json_file
        Where the report goes, or None.
    """

    target: str = OURS
    profile: str = "quick"
    seed: str = "7"
    properties: tuple[str, ...] = ()
    json_file: str | None = None


def verify_settings(settings: VerifySettings) -> bool:
    """Verify what the settings say; show or save the report; return whether all held.

    Raises
    ------
    PolicyError
        If something that the settings name cannot be used. Nothing has run then.
    OSError
        If the report cannot be written all the same.
    """
    try:
        from justitia.proofs import verify as suite  # noqa: PLC0415 - it may be missing
    except ModuleNotFoundError as error:
        if error.name != "hypothesis":
            raise
        raise VerifyError(
            "justitia verify needs hypothesis, which is not installed; "
            "install it with: pip install 'justitia[proofs]'"
        ) from None
    if settings.profile not in suite.PROFILES:
        raise VerifyError(
            f"--profile: must be one of {', '.join(suite.PROFILES)}, "
            f"not {shown(settings.profile)}"
        )
    seed = _seed(settings.seed)
    try:
        properties = suite.choose(settings.properties or None)
    except suite.Unusable as error:
        raise VerifyError(f"--property: {error}") from error
    with ExitStack() as stack:
        stack.enter_context(_current_folder_importable())
        aside = stack.enter_context(ExitStack())
        aside.enter_context(redirect_stdout(_Aside()))
        make = load(settings.target)
        try:
            suite.check_usable(make)
        except suite.Unusable as error:
            raise VerifyError(f"{settings.target}: {error}") from error
        json = None
        if settings.json_file is not None:
            json = stack.enter_context(Output(settings.json_file))
        bars = Progresses(Console(stderr=True), [_BAR], len(properties))
        with bars:
            report = suite.verify(
                make,
                name=settings.target,
                profile=settings.profile,
                seed=seed,
                properties=properties,
                progress=lambda done: bars.tell(_BAR, done),
            )
            bars.tell(_BAR, -1)
        aside.close()
        try:
            if settings.json_file != STANDARD:
                show(report)
        finally:  # what cannot be shown can be saved, and the other way round
            if json is not None:
                json.save(dumps(report.document(version=__version__)).encode())
    return report.held


class _Aside(io.TextIOBase):
    """Where the scheduler prints to: standard error, which it cannot close."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if sys.stderr is not None:
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            sys.stderr.flush()


def load(target: str) -> Callable[..., object]:
    """Return what ``MODULE:CLASS`` names, a class or a function.

    Raises
    ------
    VerifyError
        Saying what is not there, or cannot be called.
    """
    module_name, colon, attribute = target.rpartition(":")
    if not colon or not module_name or not attribute:
        raise VerifyError(
            f"{shown(target)}: give MODULE:CLASS, such as {OURS} or ./mine.py:MyPolicy"
        )
    try:
        module = _module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        from justitia.proofs.recorder import said  # noqa: PLC0415 - may be missing

        raise VerifyError(
            f"{module_name}: cannot be imported: {said(error)}"
        ) from error
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise VerifyError(f"{module_name}: has no {attribute}") from None
    if not callable(found):
        raise VerifyError(
            f"{target}: is no class or function but {shown(found)}, "
            "which cannot be called"
        )
    make: Callable[..., object] = found
    return make


def _module(name: str) -> object:
    """Import a module by its name, or a file as one."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    path = Path(name).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {name}")
    known = path.stem if path.stem not in sys.modules else f"_{path.stem}"
    spec = importlib.util.spec_from_file_location(known, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[known] = module  # dataclasses and others look there
    sys.path.insert(0, str(path.parent))  # as when it is run
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known]
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


@contextmanager
def _current_folder_importable() -> Iterator[None]:
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _seed(typed: str) -> int:
    try:
        seed = int(typed)
    except ValueError:
        raise VerifyError(
            f"--seed: must be a valid integer, not {shown(typed)}"
        ) from None
    if not -LARGEST_SEED <= seed <= LARGEST_SEED:
        raise VerifyError(f"--seed: must be at most {LARGEST_SEED}, not {shown(typed)}")
    return seed
