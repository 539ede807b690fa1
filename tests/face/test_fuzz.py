"""Whatever is typed, `justitia run` does it or says why not."""

import os
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from justitia.config import KEYS
from tests.face.builders import agents_file
from tests.face.conftest import Justitia

# No slash and no dot first: nothing is read or written outside of the test's folder.
texts = st.text(
    st.characters(exclude_characters="/.", exclude_categories=())
    | st.sampled_from("=-,:[]{}\0\n\x1b '\"\udcff"),
    max_size=8,
)
numbers = st.one_of(
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        ["0", "-0", "1e-6", "1e6", "1_0", "0x3", " 2 ", "½", "٣", "9" * 5000]
    ),
)
names = st.sampled_from(
    [
        *("sim", "vllm", "small.toml", "agents.jsonl", "timed.jsonl", "trace.jsonl"),
        *("paper", "poisson", "burst", "workload", "oracle", "noisy:2", "noisy:1e999"),
        *("agent", "stage", "prompt", "swap", "lookahead", "-", "a.json", "a.svg", ""),
    ]
)
anything = texts | numbers | names
fewer = settings(
    max_examples=max(10, settings().max_examples // 4),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KEPT_SMALL = ("agents", "jobs", "preset", "policy")


@fewer
@given(
    st.dictionaries(
        st.sampled_from([key for key in KEYS if key not in KEPT_SMALL]),
        anything,
        max_size=3,
    )
)
@example({"workload": "tést\udcff.jsonl", "json": "é\udcff.json", "plot": "\udcff.svg"})
@example({"arrivals": "trace.jsonl", "load": "1e-6", "seed": "-9223372036854775807"})
@example({"arrivals": "workload", "workload": "timed.jsonl", "density": "1e6"})
@example({"json": "a.svg", "plot": "a.svg"})
def test_values_of_flags(justitia: Justitia, flags: dict[str, str]) -> None:
    agents_file()
    agents_file("timed.jsonl", arrivals=(0.0, 1.0, 1.0, 2.0))
    agents_file("tést\udcff.jsonl")
    Path("trace.jsonl").write_text('{"timestamp": 0}\n{"timestamp": 3000}\n')
    ran = justitia(
        *("run", "--agents", "2", "--policy", "vtc"),
        *(f"--{key}={value}" for key, value in flags.items()),
    )
    assert ran.code in (0, 1, 2)
    if ran.code:
        assert ran.out == ""
        assert "justitia: " in ran.err
    written = {flags[key] for key in ("json", "plot") if key in flags and not ran.code}
    left = {name for name in os.listdir() if name.endswith(".part")}
    assert not left
    for name in written - {"-", "agents.jsonl", "timed.jsonl", "trace.jsonl"}:
        Path(name).unlink()


@fewer
@given(
    st.lists(
        st.sampled_from(
            ["run", "--help", "--version", "--", "-", "--json", "--agents="]
        )
        | st.sampled_from([f"--{key}" for key in KEYS])
        | texts,
        max_size=5,
    )
)
def test_words(justitia: Justitia, words: list[str]) -> None:
    """With an engine that is not there, so that nothing runs."""
    ran = justitia(*words, environment={"JUSTITIA_ENGINE": "vllm"})
    assert ran.code in (0, 1, 2)
    assert (ran.code == 0) == bool(ran.out)
    assert (ran.code == 0) == (not ran.err)
