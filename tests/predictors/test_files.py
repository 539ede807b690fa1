"""A model's directory: equal to the bit when it is read, refused when it is not one."""

import hashlib
import json
import os
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip
from safetensors.numpy import load as unpack, save as pack  # isort: skip

from justitia.policy import KVTokenTime, PolicyError  # isort: skip
from justitia.predictors import ModelError, create  # isort: skip
from justitia.predictors.files import CARD, FORMAT, check_out, load, save  # isort: skip
from justitia.predictors.model import load as load_model  # isort: skip
from justitia.predictors.training import train  # isort: skip
from tests.predictors.models import KINDS, QUICK, agents, trained  # isort: skip
from tests.workloads.builders import agent, call  # isort: skip

ROOT = Path(__file__).parents[2]
ELSEWHERE = "arrays-0123456789abcdef.safetensors"
Card = dict[str, Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    save(trained(), folder)
    return folder


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "copy"
    folder.mkdir()
    for file in saved.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def change(folder: Path, edit: Callable[[Card], object]) -> None:
    card = json.loads((folder / CARD).read_text())
    edit(card)
    (folder / CARD).write_text(json.dumps(card))


def repack(folder: Path, content: bytes) -> None:
    """Put other arrays in place, with a digest that fits."""
    digest = hashlib.sha256(content).hexdigest()
    name = f"arrays-{digest[:16]}.safetensors"
    (folder / name).write_bytes(content)
    change(folder, lambda card: card.update(arrays=name, digest=digest))


def test_predictions_are_equal_to_the_bit(saved: Path) -> None:
    before, after = trained(), load(saved)
    asked = [one for kind in KINDS for one in agents(kind, 10, first=30)]
    asked += [agents(kind, 1)[0] for kind in ("SC", "KBQAV", "DM")]
    for one in asked:
        assert after.predict(one, KVTokenTime()) == before.predict(one, KVTokenTime())
        assert after.estimate(one.kind, "") == before.estimate(one.kind, "")
    kinds, texts = [one.kind for one in asked], [one.text for one in asked]
    assert after.estimates(kinds, texts) == before.estimates(kinds, texts)
    assert after.seen == before.seen
    after._check()


def test_the_card_says_what_the_model_is(saved: Path) -> None:
    about = load(saved).about
    assert about["format"] == FORMAT
    assert {"numpy", "torch", "scikit-learn", "justitia"} <= set(about["versions"])
    assert about["seed"] == 3
    assert set(about["classes"]) == {*KINDS, "DM"}
    for kind in KINDS:
        told = about["classes"][kind]
        assert told["agents"] == 30
        assert told["features"] > 10
        assert 0 < told["validation"]["mean_relative_error"] < 10
        assert 0.8 < told["validation"]["coverage"] <= 1
    assert not about["classes"]["DM"]["text"]
    assert "seed" in json.loads((saved / CARD).read_text())


def test_saving_again_leaves_one_model(copy: Path) -> None:
    model = load(copy)
    model.models.pop("SC")
    save(model, copy)
    assert len(list(copy.glob("arrays-*"))) == 1
    assert set(load(copy).kinds) == {"MRS", "FVP", "DM"}
    assert sorted(p.name[:6] for p in copy.iterdir()) == ["arrays", "model."]


def test_create_takes_a_directory(saved: Path) -> None:
    made = create(str(saved))
    assert made.name == str(saved)
    (one,) = agents("SC", 1)
    assert made.predict(one, KVTokenTime()) == trained().predict(one, KVTokenTime())


class Payload:
    """What a file must never be able to do: run something when it is read."""

    ran = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _run, ()


def _run() -> None:
    Payload.ran = True


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_b37_a_payload_is_refused_and_does_not_run(copy: Path, protocol: int) -> None:
    payload = pickle.dumps(Payload(), protocol)
    pickle.loads(payload)  # noqa: S301 - our own, to see that it would run
    assert Payload.ran
    Payload.ran = False
    repack(copy, payload)
    with pytest.raises(ModelError, match="does not fit"):
        load(copy)
    (copy / CARD).write_bytes(payload)
    with pytest.raises(ModelError, match="not JSON"):
        load(copy)
    assert not Payload.ran


def test_b37_arrays_of_objects_are_refused(copy: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.array([Payload()], dtype=object), allow_pickle=True)
    repack(copy, file.read_bytes())
    with pytest.raises(ModelError):
        load(copy)
    assert not Payload.ran


def test_b37_nothing_of_ours_can_run_a_file() -> None:
    forbidden = re.compile(
        r"\bimport (cloud|_)?pickle\b|pickle\.loads?|\bjoblib\.load"
        r"|from joblib import .*\bload|torch\.load|allow_pickle=True|\bdill\b"
        r"|\bmarshal\.load|\bshelve\b|weights_only=False|trust_remote_code=True"
    )
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for folder in ("predictors", "policy", "workloads", "engines", "proofs", "src")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for number, text in enumerate(file.read_text().splitlines(), 1)
        if forbidden.search(text)
    ]
    assert found == []


def test_another_format_is_refused_naming_both(copy: Path) -> None:
    change(copy, lambda card: card.update(format=7, versions={"justitia": "99.1"}))
    with pytest.raises(ModelError, match=r"format 7 \(written by justitia '99\.1'\)"):
        load(copy)
    with pytest.raises(ModelError, match=f"reads format {FORMAT}"):
        load(copy)


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda card: card.pop("format"), "no format"),
        (lambda card: card.update(format=True), "format True"),
        (lambda card: card.update(format="1"), "format '1'"),
        (lambda card: card.update(more=1), "more"),
        (lambda card: card.update(arrays=f"../{ELSEWHERE}"), "arrays"),
        (lambda card: card.update(arrays=ELSEWHERE), "read"),
        (lambda card: card.update(digest="0"), "digest"),
        (lambda card: card["classes"]["SC"].update(floor=1e9), "floor"),
        (lambda card: card["classes"]["SC"].update(floor=200.0), "does not fit"),
        (lambda card: card["classes"]["SC"].update(agents=31), "does not fit"),
        (lambda card: card["classes"]["SC"]["text"].update(shift="0"), "shift"),
        (lambda card: card["classes"]["SC"]["text"]["terms"].pop(), "does not fit"),
        (lambda card: card["classes"].update(new=card["anyone"]), "does not fit"),
        (lambda card: card["anyone"]["lengths"].update(decode=-1), "decode"),
        (lambda card: card["anyone"]["lengths"].update(beyond=-1.0), "beyond"),
        (lambda card: card["anyone"]["lengths"].pop("beyond"), "beyond"),
        (lambda card: card.update(format=1), "format 1"),
        (lambda card: card.update(seen=["x"]), "seen"),
    ],
)  # fmt: skip
def test_a_card_that_does_not_fit_is_refused(
    copy: Path, edit: Callable[[Card], object], match: str
) -> None:
    change(copy, edit)
    with pytest.raises(ModelError, match=match):
        load(copy)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(copy: Path, value: str) -> None:
    text = (copy / CARD).read_text()
    (copy / CARD).write_text(re.sub(r'"margin": [-0-9.e]+', f'"margin": {value}', text))
    with pytest.raises(ModelError, match="margin"):
        load(copy)


@pytest.mark.parametrize("name", ["0.linear", "0.weights.1", "anyone.calls", "1.grams"])
def test_arrays_that_do_not_fit_are_refused(copy: Path, name: str) -> None:
    (file,) = copy.glob("arrays-*")
    arrays = unpack(file.read_bytes())
    for wrong in (
        {k: v for k, v in arrays.items() if k != name},
        arrays | {name: arrays[name].astype(np.float32)},
        arrays | {name: arrays[name][:-1].copy()},
        arrays | {name: np.full_like(arrays[name], -1)}
        if arrays[name].dtype == np.int64
        else arrays | {name: arrays[name][::-1].copy()}
        if name.endswith("grams")
        else arrays | {name: np.full_like(arrays[name], np.nan)},
    ):
        repack(copy, pack(wrong))
        with pytest.raises(ModelError, match="does not fit"):
            load(copy)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 10**5])
def test_a_card_that_is_not_json_is_refused(copy: Path, content: bytes) -> None:
    (copy / CARD).write_bytes(content)
    with pytest.raises(ModelError, match=CARD):
        load(copy)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not a model"):
        load(tmp_path)
    with pytest.raises(ModelError, match="not a model"):
        load(tmp_path / "nowhere")
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ModelError, match="not a model"):
        load(file)
    for wrong in (file, tmp_path):
        with pytest.raises(ModelError):
            check_out(wrong)
        with pytest.raises(ModelError):
            save(trained(), wrong)
    check_out(tmp_path / "new" / "model")
    with pytest.raises(ModelError, match="written"):
        check_out(file / "model")
    assert file.read_text() == "x"


def test_somebody_elses_model_json_is_not_written_over(tmp_path: Path) -> None:
    card = tmp_path / CARD
    for content in ('{"layers": [1, 2]}', '{"format": 2}', "[1]", "", "\0"):
        card.write_text(content)
        with pytest.raises(ModelError, match="holds something that is not a model"):
            save(trained(), tmp_path)
        assert card.read_text() == content


def test_an_older_model_may_be_written_over(copy: Path) -> None:
    change(copy, lambda card: card.update(format=1))
    save(trained(), copy)
    assert load(copy).about["format"] == FORMAT


def test_a_pipe_is_not_waited_for(copy: Path) -> None:
    (copy / CARD).unlink()
    os.mkfifo(copy / CARD)
    with pytest.raises(ModelError, match=r"model\.json: is not a regular file"):
        load(copy)


def test_a_link_that_leads_nowhere_is_told_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    for name, leads in (("dangling", "nowhere/at/all"), ("loop", "loop")):
        link = tmp_path / name
        link.symlink_to(leads)
        with pytest.raises(ModelError, match="is a link that leads nowhere"):
            check_out(link)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b"])
def test_a_path_that_can_be_none_is_told(name: str) -> None:
    for read in (load, load_model, create):
        with pytest.raises(PolicyError):
            read(f"./{name}")


def test_what_training_writes_can_be_read(tmp_path: Path) -> None:
    """However much more than what was ready at its arrival an agent costs."""
    made = [
        agent(call(0, 0), call(2**62, 2**62, stage=1), id=str(k), text=f"to {k} be")
        for k in range(12)
    ]
    save(train(made, options=QUICK), tmp_path / "model")
    found = load(tmp_path / "model").estimate_of(replace(made[0], kind="new"))
    assert found.source == "ready"
    assert found.cost <= found.high
