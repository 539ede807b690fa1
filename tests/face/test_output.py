"""Files of results: whole or not at all, and opened before there are any."""

import os
import threading
from pathlib import Path

import pytest

from justitia.output import Output, OutputError


def test_the_file_is_as_it_was_until_it_is_saved() -> None:
    Path("a").write_text("old")
    with Output("a") as output:
        assert Path("a").read_text() == "old"
        output.save(b"new")
        assert Path("a").read_text() == "new"
    assert os.listdir() == ["a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_behind(error: type[BaseException]) -> None:
    with pytest.raises(error), Output("a"):
        raise error
    with Output("a"):
        pass
    assert os.listdir() == []


def test_a_link_stays_one() -> None:
    Path("folder").mkdir()
    Path("folder/a").write_text("old")
    Path("link").symlink_to("folder/a")
    with Output("link") as output:
        output.save(b"new")
    assert Path("link").is_symlink()
    assert Path("folder/a").read_text() == "new"
    assert os.listdir("folder") == ["a"]


def test_a_link_to_nothing_makes_what_it_points_to() -> None:
    Path("link").symlink_to("a")
    with Output("link") as output:
        output.save(b"new")
    assert Path("link").is_symlink()
    assert Path("a").read_text() == "new"


def test_links_in_a_circle_are_told() -> None:
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    with pytest.raises(OutputError, match="a: cannot be written: "):
        Output("a")


def test_a_device_stays_one() -> None:
    for _ in range(2):
        with Output("/dev/null") as output:
            output.save(b"new")
        assert Path("/dev/null").is_char_device()
    with Output("/dev/full") as output, pytest.raises(OSError, match="/dev/full"):
        output.save(b"new")


def test_a_pipe_is_written_to() -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    with Output("pipe") as output:
        output.save(b"new")
    reader.join()
    assert read == ["new"]
    assert Path("pipe").is_fifo()


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with Output("-") as output:
        output.save(b"new")
    assert capsys.readouterr().out == "new"
    assert os.listdir() == []


def test_standard_output_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(OutputError, match="standard output is closed"):
        Output("-")


def test_permissions_are_those_of_any_new_file() -> None:
    with Output("a") as output:
        output.save(b"new")
    Path("b").write_text("new")
    assert Path("a").stat().st_mode == Path("b").stat().st_mode
