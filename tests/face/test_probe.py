"""`justitia probe`: what it takes, says and returns.

``tests/engines/vllm/test_stock.py`` has it on the real vLLM, in both of its modes.
"""

import builtins
from types import ModuleType

import pytest

pytest.importorskip("httpx", reason="comes with the extra gateway")

from justitia.engines.serving.probe import PriorityIgnored
from justitia.probing import ProbeSettings, load, probe_settings
from tests.engines.serving.test_probe import Fake
from tests.face.conftest import Justitia


def test_a_server_that_honours_priorities(capsys: pytest.CaptureFixture[str]) -> None:
    probe_settings(load("http://there/", "sesame", "200"), server := Fake("priority"))
    before, after = capsys.readouterr().out.splitlines()
    assert before.startswith("http://there/v1 is sent requests of low priority")
    assert "(at most 200)" in before
    assert after.startswith("It honours priorities")
    assert server.keys == {"Bearer sesame"}


def test_a_server_that_ignores_them() -> None:
    with pytest.raises(PriorityIgnored, match="takes priorities and ignores them"):
        probe_settings(load("http://there", None, None), Fake("fcfs"))


@pytest.mark.parametrize("most", [1, 30, 64, 100])
def test_no_more_is_sent_than_was_said(most: int) -> None:
    server = Fake("priority", places=1_000)
    with pytest.raises(PriorityIgnored, match=f"^{most} requests at once left none"):
        probe_settings(load("http://there", None, f"{most}"), server)
    assert server.came == most + 1  # the first asks whether a priority is taken at all


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1//"])
def test_the_base_may_be_given_in_full(end: str) -> None:
    assert load(f"http://a:1{end}", None, None).url == "http://a:1/v1"


def test_the_key_may_be_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUSTITIA_API_KEY", "variable")
    assert load("http://a", None, None) == ProbeSettings(
        "http://a/v1", "variable", 4096
    )
    assert load("http://a", "flag", None).api_key == "flag"


def test_nobody_there_is_a_failure(justitia: Justitia) -> None:
    ran = justitia("probe", "http://127.0.0.1:9")
    assert ran.code == 1
    assert ran.err.startswith("justitia: http://127.0.0.1:9/v1 is no such server: ")
    assert ran.out.startswith("http://127.0.0.1:9/v1 is sent ")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["127.0.0.1:8000"], "URL: must be a server's"),
        (["ftp://a"], "URL: must be a server's"),
        (["http://"], "URL: must be a server's"),
        (["http://a\nb"], "URL: must be a server's"),
        (["http://a:port"], "URL: "),
        (["http://a", "--most", "0"], "--most: must be from 1 to 100,000, not 0"),
        (["http://a", "--most", "1e3"], "--most: must be a whole number, not '1e3'"),
        (["http://a", "--most", "9" * 5_000], "--most: must be a whole number"),
        (["http://a", "--api-key", "ü"], "--api-key: must be printable ASCII"),
        ([], "See: justitia probe --help"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_probed_is_told(
    given: list[str], error: str, justitia: Justitia
) -> None:
    ran = justitia("probe", *given)
    assert ran.code == 2
    assert error in ran.err
    assert len(ran.err) < 400


def test_httpx_that_is_not_installed_is_told(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **named: object) -> ModuleType:
        if name == "httpx":
            raise ModuleNotFoundError("No module named 'httpx'", name="httpx")
        return real(name, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    ran = justitia("probe", "http://a")
    monkeypatch.undo()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "justitia: justitia probe needs httpx, which is not installed; "
        "install it with: pip install 'justitia[gateway]'\n"
    )
