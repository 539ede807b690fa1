"""The command line in this process, with nothing from outside in the way."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from justitia import running
from justitia.cli import main
from justitia.config import PREFIX, RunSettings
from tests.face.builders import PRESET


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


Justitia = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start in an empty folder, without settings in the environment."""
    for name in list(os.environ):
        if name.startswith(PREFIX) or name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def justitia(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Justitia:
    """Run the command line in this process, on a small engine unless told another."""

    def run(*arguments: str, environment: Mapping[str, str] | None = None) -> Ran:
        Path("small.toml").write_text(PRESET)
        with monkeypatch.context() as patch:
            patch.setenv("JUSTITIA_JOBS", "1")
            patch.setenv("JUSTITIA_PRESET", "./small.toml")
            for name, value in (environment or {}).items():
                patch.setenv(name, value)
            code = main(arguments)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return run


@pytest.fixture
def settings_of(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., RunSettings]:
    """Return the settings that a command line leads to, without running anything."""

    def settings(
        *arguments: str, environment: Mapping[str, str] | None = None
    ) -> RunSettings:
        seen: list[RunSettings] = []
        with monkeypatch.context() as patch:
            patch.setattr(running, "run_settings", seen.append)
            ran = justitia("run", *arguments, environment=environment)
        assert ran.code == 0, ran.err
        return seen[0]

    return settings
