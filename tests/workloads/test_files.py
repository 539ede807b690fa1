"""Workload files: round trips, what is recognised, and every way to be wrong."""

import gzip
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from justitia.workloads import (
    AgentSpec,
    InferenceSpec,
    WorkloadError,
    paper_mix,
    read,
    read_groups,
    write_jsonl,
)
from tests.workloads.builders import DATA, NO_DATA, agent, call, shapes

OWN = (
    '{"justitia_workload":1,"id":"a",'
    '"inferences":[{"prompt_tokens":3,"decode_tokens":2}]}'
)
RECORDED = (
    '{"agent_class":"MRS","agent_id":"MRS-1","group":"g","input":"Summarise: …",'
    '"calls":[[0,500,80],[0,510,90],[1,300,150]],"cost":1}'
)
VTC = (
    "req_id,model_dir,adapter_dir,prompt_len,output_len,req_time\n"
    "7,m,client-2,20,0,11.5\n"
    "8,m,client-1,30,4,10.0\n"
)

names = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8
)
times = st.none() | st.floats(0, 1e9)


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def written(folder: Path, content: str | bytes, name: str = "w.jsonl") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def complaint(path: Path) -> str:
    with pytest.raises(WorkloadError) as error:
        read(path)
    assert len(str(error.value)) < 700
    return str(error.value)


# Our own format ---------------------------------------------------------------------


@st.composite
def workloads(draw: st.DrawFn) -> list[AgentSpec]:
    timed = draw(st.booleans())
    return [
        AgentSpec(
            id=name,
            inferences=draw(shapes(most=4)),
            kind=draw(st.just("") | names),
            arrival=draw(st.floats(0, 1e9)) if timed else None,
            text=draw(st.text(max_size=20)),
            weight=draw(
                st.integers(1, 10**30)
                | st.floats(1e-9, 1e9)
                | st.fractions(Fraction(1, 10**9), 10**9)
            ),
            cancel_after=draw(times),
        )
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    ]


def test_a_weight_that_is_a_whole_fraction_comes_back(tmp_path: Path) -> None:
    agents = [AgentSpec("a", (InferenceSpec(1, 1),), weight=Fraction(5))]
    write_jsonl(tmp_path / "w.jsonl", agents)
    assert read(tmp_path / "w.jsonl") == agents


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workloads(), st.sampled_from(("w.jsonl", "w.jsonl.gz")))
def test_round_trip_is_exact(
    tmp_path: Path, agents: list[AgentSpec], name: str
) -> None:
    file = tmp_path / name
    write_jsonl(file, agents)
    back = read(file)
    assert back == agents
    assert [type(a.weight) for a in back] == [
        int if a.weight == 1 else type(a.weight) for a in agents
    ]


def test_limits_and_ids_survive(tmp_path: Path) -> None:
    made = agent(
        call(0, 0, max_tokens=0),
        call(1, 2, max_tokens=2, id="x"),
        call(3, 4, after=("0", "x")),
        call(5, 6, after=(), stage=3),
    )
    write_jsonl(tmp_path / "w", [made])
    assert read(tmp_path / "w") == [made]


def test_same_agents_give_the_same_bytes(tmp_path: Path) -> None:
    agents = paper_mix(20, seed=1)
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_jsonl(tmp_path / name, agents)
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == second.read_bytes()
    assert read(tmp_path / "a.jsonl.gz") == agents


def test_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    def broken() -> Iterator[AgentSpec]:
        yield agent()
        raise RuntimeError("half way")

    for name in ("w.jsonl", "w.jsonl.gz"):
        write_jsonl(tmp_path / name, [agent(id="old")])
        with pytest.raises(RuntimeError):
            write_jsonl(tmp_path / name, broken())
        assert [a.id for a in read(tmp_path / name)] == ["old"]
    assert sorted(f.name for f in tmp_path.iterdir()) == ["w.jsonl", "w.jsonl.gz"]


def test_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="cannot be written"):
        write_jsonl(tmp_path / "no folder" / "w.jsonl", [agent()])


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (":1,", ":2,", "justitia_workload: must be 1, the version known, not 2"),
        (":1,", ":true,", "justitia_workload: must be 1"),
        ('"id":"a"', '"id":""', "id: must be a string that is not empty, not ''"),
        ('"id":"a"', '"id":7', "id: must be a string that is not empty, not 7"),
        ('"id":"a",', "", "id: is missing"),
        ('"id":"a"', '"id":"a\\n"', "agent id must have no control characters"),
        ('"id":"a"', '"id":"\\ud800"', "id: it must be text that UTF-8 can write"),
        ('"id":"a"', '"id":"a","id":"b"', "the key 'id' is given twice"),
        ('"id":"a"', '"id":"a","wight":2', "wight: no such field; there are: "),
        ('"id":"a"', '"id":"a","weight":0', "weight of agent 'a'"),
        ('"id":"a"', '"id":"a","weight":-1', "weight: it must be a finite number"),
        ('"id":"a"', '"id":"a","weight":NaN', "weight: it must be a finite number"),
        ('"id":"a"', '"id":"a","weight":"1/0"', "weight: it must be a finite number"),
        ('"id":"a"', '"id":"a","weight":true', "weight: it must be a finite number"),
        ('"id":"a"', '"id":"a","arrival":-1', "arrival: it must be a finite number"),
        ('"id":"a"', '"id":"a","arrival":Infinity', "arrival: it must be a finite"),
        ('"id":"a"', '"id":"a","arrival":1e999', "arrival: it must be a finite"),
        ('"id":"a"', '"id":"a","cancel_after":"1"', "cancel_after: it must be"),
        ('"id":"a"', '"id":"a","kind":3', "kind of agent 'a' must be a str, not 3"),
        ('"id":"a"', '"id":"a","text":[]', "text of agent 'a' must be a str"),
        (":3,", ":-3,", "inferences[0].prompt_tokens: it must be a count"),
        (":3,", ":3.0,", "inferences[0].prompt_tokens: it must be an int, not 3.0"),
        (":3,", ":true,", "inferences[0].prompt_tokens: it must be an int, not True"),
        (":3,", ":null,", "inferences[0].prompt_tokens: it must be an int, not None"),
        (":3,", f":{10**30},", "inferences[0].prompt_tokens: it must be a count"),
        ('"prompt_tokens":3,', "", "inferences[0].prompt_tokens: is missing"),
        (":2}", ":-2}", "inferences[0].decode_tokens: it must be a count"),
        (":2}", ':2,"max_tokens":-1}', "inferences[0].max_tokens: it must be a count"),
        (":2}", ':2,"max_tokens":1}', "inferences[0]: decode_tokens of an inference"),
        (":2}", ':2,"stage":"0"}', "inferences[0].stage: it must be an int"),
        (":2}", ':2,"after":"0"}', "inferences[0].after: must be a list"),
        (":2}", ':2,"after":[0]}', "inferences[0].after[0]: must be a string"),
        (":2}", ':2,"after":["9"]}', "which is no inference of it"),
        (":2}", ':2,"after":["0"]}', "which is itself"),
        (":2}", ':2,"x":1}', "inferences[0].x: no such field"),
        ("[{", '["x",{', "inferences[0]: must be an object, not 'x'"),
        ('[{"prompt_tokens":3,"decode_tokens":2}]', "{}", "must be a list, not {}"),
        ("]}", "]", "not JSON: "),
        (OWN, "[1]", "not a format that is known"),
    ],
)
def test_b29_b56_wrong_row_names_file_line_and_field(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    good = replaced(OWN, '"a"', '"first"')
    file = written(tmp_path, f"{good}\n\n{replaced(OWN, old, new)}\n")
    message = complaint(file)
    if old == OWN:
        says = "must be a JSON object, not [1]"
    assert message.startswith(f"{file}, line 3: ")
    assert says in message


def test_hostile_numbers_and_nesting(tmp_path: Path) -> None:
    for hostile in ("9" * 10_000, "[" * 100_000):
        file = written(tmp_path, f"{OWN}\n" + replaced(OWN, ":3,", f":{hostile},"))
        assert f"{file}, line 2: " in complaint(file)


def test_zero_lengths_are_valid(tmp_path: Path) -> None:
    text = replaced(replaced(OWN, ":3,", ":0,"), ":2}", ":0}")
    assert read(written(tmp_path, text))[0].inferences == (InferenceSpec(0, 0, id="0"),)


def test_null_is_the_default(tmp_path: Path) -> None:
    extra = '"id":"a","weight":null,"arrival":null,"kind":null,"text":null'
    assert read(written(tmp_path, replaced(OWN, '"id":"a"', extra))) == read(
        written(tmp_path, OWN)
    )


def test_b56_arrivals_of_all_or_of_none(tmp_path: Path) -> None:
    timed = replaced(OWN, '"id":"a"', '"id":"b","arrival":0')
    file = written(tmp_path, f"{OWN}\n{timed}\n")
    assert f"{file}, line 2: arrival: is given for agent 'b'" in complaint(file)
    file = written(tmp_path, f"{timed}\n{OWN}\n")
    assert f"{file}, line 2: arrival: is missing for agent 'a'" in complaint(file)


def test_duplicate_id_names_both_lines(tmp_path: Path) -> None:
    file = written(tmp_path, f"{OWN}\n\n{OWN}\n")
    message = complaint(file)
    assert message.startswith(f"{file}, line 3: id: 'a' is the id of an agent already")
    assert message.endswith(f"({file}, line 1)")


# Bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        OWN.encode(),
        b"\xef\xbb\xbf" + OWN.encode(),
        b"\r\n  \r\n" + OWN.encode() + b"\r\n\r\n",
        gzip.compress(OWN.encode(), mtime=0),
        gzip.compress(b"\xef\xbb\xbf\n" + OWN.encode(), mtime=0),
        gzip.compress(b"\n", mtime=0) + gzip.compress(OWN.encode(), mtime=0),
    ],
)
def test_bom_crlf_blank_lines_and_gzip(tmp_path: Path, content: bytes) -> None:
    assert [a.id for a in read(written(tmp_path, content))] == ["a"]


def test_gzip_that_is_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress(
        "\n".join(OWN.replace('"a"', f'"{k}"') for k in range(9)).encode()
    )
    for end in (5, 20, len(whole) - 3):
        file = written(tmp_path, whole[:end])
        message = complaint(file)
        assert message.startswith(f"{file}, line ")
        assert "cut off" in message


def test_gzip_that_is_damaged(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(OWN.encode(), mtime=0))
    for place in (12, 30, len(whole) - 6):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        message = complaint(written(tmp_path, bytes(broken)))
        assert "gzip file is damaged" in message or "not JSON" in message


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    file = written(tmp_path, OWN.encode() + b'\n{"id": "\xff"}\n')
    assert f"{file}, line 2: byte 9 of the line, 0xff, is not UTF-8" in complaint(file)
    assert "line 1: byte 1" in complaint(written(tmp_path, OWN.encode("utf-16")))


def test_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from justitia.workloads.files import lines

    monkeypatch.setattr(lines, "LONGEST_LINE", 40)
    assert "line 1: longer than 40 bytes" in complaint(written(tmp_path, OWN))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_file_of_nothing(tmp_path: Path, content: bytes) -> None:
    assert "there are no agents in it" in complaint(written(tmp_path, content))


def test_missing_file(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in complaint(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", ["hello", '{"a":1}', "[]", '"x"', "a,b\n1,2", "{"])
def test_unknown_format_lists_the_formats(tmp_path: Path, content: str) -> None:
    message = complaint(written(tmp_path, content))
    assert "line 1: not" in message


def test_trace_is_not_a_workload(tmp_path: Path) -> None:
    assert "give it as the source of arrivals" in complaint(
        written(tmp_path, '{"timestamp":0,"input_length":1}')
    )


# Folders ----------------------------------------------------------------------------


def test_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    written(tmp_path, OWN.replace('"a"', '"second"'), "b.jsonl")
    written(tmp_path, gzip.compress(RECORDED.encode()), "a.jsonl.gz")
    written(tmp_path, "not a workload", "README.md")
    (tmp_path / "c.jsonl").mkdir()
    assert [a.id for a in read(tmp_path)] == ["MRS-1", "second"]


def test_folder_refuses_an_id_of_two_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        written(tmp_path, OWN, name)
    message = complaint(tmp_path)
    assert message.startswith(str(tmp_path / "b.jsonl"))
    assert str(tmp_path / "a.jsonl") in message


def test_folder_of_nothing(tmp_path: Path) -> None:
    assert "no file in it that ends in .jsonl" in complaint(tmp_path)


# Recorded agents --------------------------------------------------------------------


def test_recorded_agent(tmp_path: Path) -> None:
    file = written(tmp_path, RECORDED)
    assert read(file) == [
        AgentSpec(
            "MRS-1",
            (call(500, 80), call(510, 90), call(300, 150, stage=1)),
            kind="MRS",
            text="Summarise: …",
        )
    ]
    assert read_groups(file) == {"MRS-1": "g"}


def test_recorded_agent_without_input_or_group(tmp_path: Path) -> None:
    text = replaced(replaced(RECORDED, '"Summarise: …"', "null"), '"group":"g",', "")
    file = written(tmp_path, text)
    assert read(file)[0].text == ""
    assert read_groups(file) == {"MRS-1": "MRS-1"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"MRS"', "null", "agent_class: must be a string that is not empty"),
        ('"agent_id":"MRS-1",', "", "agent_id: is missing"),
        ('"Summarise: …"', "3", "text of agent 'MRS-1' must be a str, not 3"),
        ("[[0", "[0,[0", "calls[0]: must be [stage, prompt_tokens, decode_tokens]"),
        ("[0,510,90]", "[0,510]", "calls[1]: must be [stage, prompt_tokens"),
        ("[0,510,90]", "[0,510,-1]", "calls[1]: decode_tokens of an inference"),
        ("[0,510,90]", "[0,true,1]", "calls[1]: prompt_tokens of an inference"),
        ("[0,510,90]", "[0.5,510,1]", "calls[1]: stage of an inference"),
        ("[0,510,90]", "[0,NaN,1]", "calls[1]: prompt_tokens of an inference"),
        ('"calls"', '"cals"', "calls: is missing"),
    ],
)
def test_wrong_recorded_agent(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = written(tmp_path, replaced(RECORDED, old, new))
    message = complaint(file)
    assert message.startswith(f"{file}, line 1: ")
    assert says in message


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_DATA)
def test_recorded_agents() -> None:
    agents = read(DATA / "agents")
    groups = read_groups(DATA / "agents")
    assert len(agents) == 3251
    assert groups.keys() == {a.id for a in agents}
    # The costs in the files are the sum that `KVTokenTime` is.
    for line in gzip.decompress(
        (DATA / "agents" / "DM.jsonl.gz").read_bytes()
    ).splitlines():
        record = json.loads(line)
        made = next(a for a in agents if a.id == record["agent_id"])
        assert made.cost() == record["cost"]
        assert made.depths() == tuple(c[0] for c in record["calls"])


# VTC's trace ------------------------------------------------------------------------


def test_b56_vtc_rows_are_sorted_and_start_at_0(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, VTC))
    assert (first.id, first.kind, first.arrival) == ("8", "client-1", 0.0)
    assert (second.id, second.kind, second.arrival) == ("7", "client-2", 1.5)
    assert second.inferences == (call(20, 0, id="0"),)


def test_b56_vtc_ties_stay_in_order(tmp_path: Path) -> None:
    agents = read(written(tmp_path, replaced(VTC, "11.5", "10")))
    assert [a.id for a in agents] == ["7", "8"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("11.5", "", "line 2: req_time: must be a finite number"),
        ("11.5", "nan", "line 2: req_time: must be a finite number"),
        ("11.5", "-1", "line 2: req_time: must be a finite number"),
        ("11.5", "1e999", "line 2: req_time: must be a finite number"),
        ("11.5", "1_0", "line 2: req_time: must be a finite number"),
        (",20,", ",-20,", "line 2: prompt_len: must be a count"),
        (",20,", ",2e1,", "line 2: prompt_len: must be a count"),
        (",20,", ",٣,", "line 2: prompt_len: must be a count"),
        (",20,", f",{'9' * 19},", "line 2: prompt_len: must be a count"),
        (",20,", ",", "line 2: has 5 cells, not 6"),
        ("client-2", "", "line 2: adapter_dir: must be a string"),
        ("client-2", '"x', "line 2: not CSV"),
        ("prompt_len", "prompt", "prompt_len: is missing"),
        ("8,m", "7,m", "id: '7' is the id of an agent already"),
    ],
)
def test_b56_wrong_vtc_row(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = written(tmp_path, replaced(VTC, old, new), "w.csv")
    message = complaint(file)
    assert message.startswith(str(file))
    assert says in message
