"""S³: its buckets, what it learns, its folder, and what it refuses to read."""

import json
import pickle
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import COST_MODELS, KVTokenTime
from justitia.predictors.errors import ModelError, PredictorError, TrainingError
from justitia.predictors.s3.buckets import BUCKETS, Buckets
from justitia.workloads import AgentSpec, InferenceSpec, generate
from tests.predictors import extra  # noqa: F401 - skips where torch is not
from tests.workloads.builders import agent, call, shapes

# After it: these load torch.
from justitia.predictors.s3 import S3, create_s3, load_s3  # isort: skip
from justitia.predictors.s3.classifier import REAL, Classifier, Size, shapes as weights  # isort: skip
from justitia.predictors import files  # isort: skip
from justitia.predictors.folder import S3_CARD, check_out, digest, part  # isort: skip
from justitia.predictors.learned import Learned  # isort: skip
from justitia.predictors.model import load as load_model  # isort: skip
from tests.predictors.models import trained  # isort: skip
from justitia.predictors.s3.files import FORMAT, save  # isort: skip
from justitia.predictors.s3.tokens import FromFile  # isort: skip

KV = KVTokenTime()
TINY = Size(200, 8, 1, 2, 16, 16)
AGENTS = [generate(kind, number, 1) for kind in ("FVP", "CC") for number in range(12)]


def tiny(**fields: Any) -> S3:  # noqa: ANN401
    return S3(**{"size": TINY, "epochs": 2, **fields})


@pytest.fixture(scope="module")
def taught() -> S3:
    return tiny().fit(AGENTS)


# Buckets ------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**6), max_size=50), st.integers(1, 20))
def test_a_length_is_in_a_bucket_of_its_own_range(
    lengths: list[int], count: int
) -> None:
    buckets = Buckets.fit(lengths, count)
    assert len(buckets.tokens) == count
    width = (buckets.longest + 1) / count
    for length in lengths:
        place = buckets.of(length)
        assert place * width <= length < (place + 1) * width
        # What a bucket stands for is in it, but for rounding at its ends.
        assert place * width - 1 <= buckets.tokens[place] <= (place + 1) * width + 1
    assert buckets.of(2 * buckets.longest + 1) == count - 1


def test_ten_buckets_as_in_its_paper() -> None:
    buckets = Buckets.fit([0, 99, 100, 950, 999])
    assert [buckets.of(length) for length in (0, 99, 100, 950, 999)] == [0, 0, 1, 9, 9]
    assert len(buckets.tokens) == BUCKETS == 10
    assert buckets.tokens[0] == round((0 + 99) / 2)
    assert buckets.tokens[9] == round((950 + 999) / 2)
    assert buckets.tokens[4] == 500  # nothing was in it


# What it predicts ---------------------------------------------------------------------


def test_it_learns_which_texts_have_long_outputs() -> None:
    agents = [
        agent(call(10, d), id=f"{word}{n}", text=f"{word} of these {n}", kind="K")
        for n in range(40)
        for word, d in (("poem", 900), ("word", 5))
    ]
    size = Size(200, 32, 1, 2, 64, 16)
    taught = S3(size=size, epochs=30, rate=3e-3).fit(agents)
    texts = ["poem of these 99", "word of these 99"]
    assert taught.tokens(texts) == [900, 5]
    taught._check()


def test_what_a_cost_is_made_of(taught: S3) -> None:
    assert taught.buckets_ is not None
    for kind in ("FVP", "CC"):
        some = [one for one in AGENTS if one.kind == kind]
        calls = [one for each in some for one in each.inferences]
        (tokens,) = taught.tokens([some[0].text])
        assert tokens in taught.buckets_.tokens
        plan = taught.plans_[kind]
        assert plan.calls == len(calls) / len(some)
        assert plan.prompt_tokens == sum(c.prompt_tokens for c in calls) / len(calls)
        expected = plan.calls * KV(round(plan.prompt_tokens), tokens)
        assert taught.predict(some[0], KV).cost == pytest.approx(expected)
        assert taught.costs(some[:1], KV) == [taught.predict(some[0], KV).cost]


def test_nine_of_ten_agents_of_training_cost_no_more_than_the_90th_percentile(
    taught: S3,
) -> None:
    found = [taught.estimate_of(one) for one in AGENTS]
    within = sum(
        one.cost(KV) <= estimate.high * (1 + 1e-9)
        for one, estimate in zip(AGENTS, found, strict=True)
    )
    assert 0.9 * len(AGENTS) <= within <= 0.9 * len(AGENTS) + 2
    assert all(estimate.cost <= estimate.high for estimate in found)


def test_a_class_that_was_not_there_gets_the_plan_of_all(taught: S3) -> None:
    ours = [agent(kind="CC", text="x"), agent(kind="FVP", text="x")]
    assert len(set(taught.costs(ours, KV))) == 2
    assert len(set(taught.costs(ours, KV, one_plan=True))) == 1
    known = taught.predict(agent(kind="CC", text="x"), KV)
    unknown = taught.predict(agent(kind="never seen", text="x"), KV)
    assert (known.source, unknown.source) == ("class", "global")
    assert unknown.cost != known.cost


@given(shapes(), st.text(), st.text(), st.sampled_from(sorted(COST_MODELS)))
def test_b32_any_agent_gets_a_cost(
    taught: S3,
    calls: tuple[InferenceSpec, ...],
    text: str,
    kind: str,
    model: str,
) -> None:
    text = text.encode(errors="replace").decode()
    made = AgentSpec("a", calls, text=text)
    found = taught.predict(made, COST_MODELS[model]())  # Prediction checks
    assert len(found.decode_tokens) == len(calls)
    depths = made.depths()
    assert len(found.stage_costs) == max(depths, default=-1) + 1
    if calls:
        assert sum(found.stage_costs) == pytest.approx(float(found.cost))


def test_b38_a_long_text_is_cut(taught: S3) -> None:
    assert taught.classifier_ is not None
    tokens = taught.classifier_.tokens
    text = "word " * 10**6
    assert tokens.ids(text, 16) == tokens.ids("word " * 100, 16)
    assert len(tokens.ids(text, 16)) == 16
    assert isfinite(taught.costs([agent(text=text)], KV)[0])


def test_the_same_seed_gives_the_same_costs(taught: S3) -> None:
    assert tiny().fit(AGENTS).costs(AGENTS, KV) == taught.costs(AGENTS, KV)
    first, other = (
        Classifier.random(TINY, 3, seed).network.state_dict() for seed in (1, 2)
    )
    name = "classifier.weight"
    assert not bool((first[name] == other[name]).all())


def test_what_nothing_can_be_learned_from() -> None:
    with pytest.raises(TrainingError, match="an agent with inferences"):
        tiny().fit([AgentSpec("a", ())])
    with pytest.raises(PredictorError, match="has learned nothing yet"):
        tiny().predict(agent(), KV)
    tiny()._check()


def test_b34_a_training_that_diverges_is_not_kept(taught: S3) -> None:
    s3 = tiny().fit(AGENTS)
    before = s3.costs(AGENTS, KV)
    s3.rate = 1e30
    with pytest.raises(TrainingError, match="loss of"):
        s3.fit(AGENTS)
    s3._check()
    assert s3.costs(AGENTS, KV) == before


def test_the_real_size_is_that_of_distilbert() -> None:
    count = 0
    for shape in weights(REAL, 10).values():
        size = 1
        for side in shape:
            size *= side
        count += size
    assert count == pytest.approx(67e6, rel=0.01)


def test_one_for_generated_workloads_learns_when_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from justitia.predictors.s3 import predictor

    asked: list[int] = []

    def taught(seed: int) -> S3:
        asked.append(seed)
        return tiny(seed=seed).fit(AGENTS)

    monkeypatch.setattr(predictor, "_taught", taught)
    s3 = create_s3(seed=3)
    assert (s3.name, asked) == ("s3", [])
    s3.predict(AGENTS[0], KV)
    s3.predict(AGENTS[1], KV)
    s3._check()
    assert asked == [3]


# Its folder ---------------------------------------------------------------------------


@pytest.fixture
def folder(taught: S3, tmp_path: Path) -> Path:
    save(taught, tmp_path / "s3")
    return tmp_path / "s3"


def test_it_comes_back_to_the_bit(taught: S3, folder: Path) -> None:
    back = load_s3(folder)
    back._check()
    assert back.costs(AGENTS, KV) == taught.costs(AGENTS, KV)
    assert back.predict(AGENTS[0], KV) == taught.predict(AGENTS[0], KV)
    assert (back.seen, back.about) == (taught.seen, taught.about)
    again = folder.with_name("again")
    save(back, again)
    for file in folder.iterdir():
        assert file.read_bytes() == (again / file.name).read_bytes()


class Payload:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return (Path.touch, (Path("ran"),))  # type: ignore[return-value]


def edited(folder: Path, **fields: Any) -> None:  # noqa: ANN401
    about = json.loads((folder / S3_CARD).read_text())
    (folder / S3_CARD).write_text(json.dumps(about | fields))


def weights_of(folder: Path) -> Path:
    (file,) = folder.glob("weights-*.safetensors")
    return file


def rewritten(folder: Path, content: bytes) -> None:
    """Put other weights in place, under a digest that fits."""
    name = part("weights", content, ".safetensors")
    (folder / name).write_bytes(content)
    edited(folder, weights={"file": name, "digest": digest(content)})


SIZE = {"vocab_size": 200, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16,
        "max_position_embeddings": 16}  # fmt: skip
PLAN = {"calls": 1.0, "prompt_tokens": 1.0}
NOWHERE = {"file": "tokenizer-0123456789abcdef.json", "digest": "0" * 64}


@pytest.mark.parametrize("written", [1, 99, None, True, "2"])
def test_another_format_is_refused_naming_both(written: object, folder: Path) -> None:
    edited(folder, format=written, versions={"justitia": "99.1"})
    with pytest.raises(ModelError) as error:
        load_s3(folder)
    said = str(error.value)
    assert f"format {written!r} (written by justitia '99.1')" in said
    assert said.endswith(f"reads format {FORMAT}")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"size": {}}, "size.vocab_size: Field required"),
        ({"size": SIZE | {"dim": 10**9}}, "dim of a DistilBERT must be 1 to 1,024"),
        ({"size": SIZE | {"n_layers": -1}}, "n_layers of a DistilBERT must be 1 to 24"),
        ({"size": SIZE | {"n_heads": 3}}, "must divide dim, 8, not 3"),
        ({"size": SIZE | {"dim": 16}}, "but must be"),
        ({"size": 3}, "size: "),
        ({"tokens": [1] * 9}, "but must be"),
        ({"tokens": [1] * 2000}, "tokens: List should have at most 1000 items"),
        ({"tokens": []}, "tokens: "),
        ({"tokens": ["1"] * 10}, "tokens.0: "),
        ({"longest": -1}, "longest: "),
        ({"overall": PLAN | {"calls": 1e999}}, "overall.calls: "),
        ({"overall": PLAN | {"calls": "1"}}, "overall.calls: "),
        ({"overall": PLAN | {"more": 1}}, "overall.more: "),
        ({"overall": {"calls": 1}}, "overall.prompt_tokens: Field required"),
        ({"high": 0.5}, "high: "),
        ({"high": float("nan")}, "high: "),
        ({"classes": [1]}, "classes: "),
        ({"classes": {}}, "classes: "),
        ({"seed": "7"}, "seed: "),
        ({"seen": ["x"]}, "seen.0: "),
        ({"more": 1}, "more: Extra inputs are not permitted"),
        ({"tokenizer": "file"}, "tokenizer: "),
        ({"tokenizer": NOWHERE}, "cannot be read: No such file"),
        ({"weights": NOWHERE}, "weights.file: "),
        (
            {"weights": {"file": "../weights-0123456789abcdef.safetensors",
                         "digest": "0" * 64}},
            "weights.file: ",
        ),
    ],
)  # fmt: skip
def test_b37_what_does_not_fit_is_refused(
    fields: dict[str, Any], said: str, folder: Path
) -> None:
    edited(folder, **fields)
    with pytest.raises(ModelError) as error:
        load_s3(folder)
    assert said in str(error.value)
    assert str(folder) in str(error.value)
    assert len(str(error.value)) < 700


@pytest.mark.parametrize("card", [True, False])
@pytest.mark.parametrize("how", ["payload", "cut", "empty", "gone", "folder"])
def test_b37_a_file_that_is_damaged_is_refused(
    card: bool, how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    path = folder / S3_CARD if card else weights_of(folder)
    content = path.read_bytes()
    if how in ("gone", "folder"):
        path.unlink()
        if how == "folder":
            path.mkdir()
    else:
        made = {"payload": pickle.dumps(Payload()), "cut": content[:-9], "empty": b""}
        path.write_bytes(made[how])
    with pytest.raises(ModelError, match=path.name.replace(".", r"\.")):
        load_s3(folder)
    assert not Path("ran").exists()


@pytest.mark.parametrize("content", [pickle.dumps(Payload()), b"", b"\0" * 64])
def test_b37_weights_that_are_none_are_refused_whatever_their_digest(
    content: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    rewritten(folder, content)
    with pytest.raises(ModelError, match="cannot be read"):
        load_s3(folder)
    assert not Path("ran").exists()


def test_b37_weights_of_another_model_are_refused(folder: Path) -> None:
    weights_of(folder).write_bytes(weights_of(folder).read_bytes()[:-4] + b"\0" * 4)
    with pytest.raises(ModelError, match="its digest is another"):
        load_s3(folder)


@pytest.mark.parametrize("at", ["weights", "card", "clearing"])
def test_a_save_that_is_interrupted_leaves_a_whole_model(
    at: str, taught: S3, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tiny(seed=9).fit(AGENTS)
    begins = {"weights": ".weights-", "card": f".{S3_CARD}.", "clearing": "weights-"}
    replace, unlink = Path.replace, Path.unlink

    def replaces(file: Path, target: Path) -> Path:
        if file.name.startswith(begins[at]):
            raise KeyboardInterrupt
        return replace(file, target)

    def unlinks(file: Path, missing_ok: bool = False) -> None:
        if file.name.startswith(begins["clearing"]):
            raise KeyboardInterrupt
        unlink(file, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replaces)
        patched.setattr(Path, "unlink", unlinks)
        with pytest.raises(KeyboardInterrupt):
            save(other, folder)
    there = other if at == "clearing" else taught
    assert load_s3(folder).about == there.about
    assert there.about != (taught if there is other else other).about
    save(other, folder)
    assert load_s3(folder).about == other.about
    assert len(list(folder.iterdir())) == 2


def test_a_first_save_that_was_interrupted_can_be_made_again(
    taught: S3, folder: Path
) -> None:
    (folder / S3_CARD).unlink()
    weights = weights_of(folder)
    weights.rename(folder / f".{weights.name}.01234567.part")
    check_out(folder)
    save(taught, folder)
    assert len(list(folder.iterdir())) == 2


def test_it_is_not_saved_among_other_things(taught: S3, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="holds something that is not a model"):
        save(taught, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_one_kind_of_model_takes_the_place_of_another(taught: S3, folder: Path) -> None:
    learned = trained()
    files.save(learned, folder)
    assert isinstance(load_model(folder), Learned)
    assert sorted(file.name[:6] for file in folder.iterdir()) == ["arrays", "model."]
    save(taught, folder)
    assert isinstance(load_model(folder), S3)
    assert sorted(file.name[:6] for file in folder.iterdir()) == ["s3.jso", "weight"]


def test_weights_that_are_not_finite_are_refused(folder: Path) -> None:
    from safetensors.torch import load as unpack
    from safetensors.torch import save as pack

    state = unpack(weights_of(folder).read_bytes())
    state["classifier.bias"][0] = float("nan")
    rewritten(folder, pack(state))
    with pytest.raises(ModelError, match="not finite"):
        load_s3(folder)


# Weights to start from ----------------------------------------------------------------


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tiny DistilBERT as transformers saves one, with a vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = tmp_path / "base"
    Classifier.random(TINY, 2, seed=5).network.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "claim", "write", "a", "function", "biography"]
    tokenizer = Tokenizer(
        models.WordLevel({word: k for k, word in enumerate(words)}, "[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_it_starts_from_a_local_folder(base: Path, tmp_path: Path) -> None:
    s3 = S3(base=base, epochs=1).fit(AGENTS)
    assert s3.classifier_ is not None
    assert s3.classifier_.size == TINY
    assert s3.classifier_.tokens.ids("write a poem", 16) == [3, 4, 1]
    save(s3, tmp_path / "s3")
    back = load_s3(tmp_path / "s3")
    assert back.costs(AGENTS, KV) == s3.costs(AGENTS, KV)


def test_weights_that_are_a_pickle_are_not_looked_at(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base)
    (base / "model.safetensors").unlink()
    (base / "pytorch_model.bin").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ModelError, match="no DistilBERT to start from"):
        S3(base=base).fit(AGENTS)
    assert not Path("ran").exists()


def test_a_tokenizer_that_changes_later_is_not_the_one_that_is_saved(
    base: Path, tmp_path: Path
) -> None:
    s3 = S3(base=base, epochs=1).fit(AGENTS)
    (base / "tokenizer.json").write_text("{}")
    save(s3, tmp_path / "s3")
    assert load_s3(tmp_path / "s3").costs(AGENTS, KV) == s3.costs(AGENTS, KV)


def test_ids_that_the_model_does_not_know_are_none(base: Path) -> None:
    """A file may give its marks any id, and may make nothing of a text."""
    file = base / "tokenizer.json"
    content = json.loads(file.read_text())
    mark = {"id": "[UNK]", "ids": [10**6], "tokens": ["[UNK]"]}
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing", "special_tokens": {"[UNK]": mark},
        "single": [{"SpecialToken": {"id": "[UNK]", "type_id": 0}}, piece],
        "pair": [piece, {"Sequence": {"id": "B", "type_id": 0}}],
    }  # fmt: skip
    plain = FromFile.of(base)
    plain.limit(200, file)
    assert plain.ids("", 16) == [plain.pad]
    file.write_text(json.dumps(content))
    marked = FromFile.of(base)
    marked.limit(200, file)
    assert marked.ids("write", 16) == [marked.pad, 3]


@pytest.mark.parametrize(
    ("field", "value"), [("dim", 10**9), ("n_layers", 10**6), ("hidden_dim", -1)]
)
def test_weights_to_start_from_are_not_made_before_their_size_is_checked(
    field: str, value: int, base: Path
) -> None:
    file = base / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: value}))
    with pytest.raises(ModelError, match=f"{field} of a DistilBERT must be 1 to"):
        S3(base=base).fit(AGENTS)


def test_a_vocabulary_that_the_model_does_not_know_is_refused(base: Path) -> None:
    file = base / "tokenizer.json"
    content = json.loads(file.read_text())
    content["model"]["vocab"]["rare"] = 200
    file.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="has 201 ids, the model 200"):
        S3(base=base).fit(AGENTS)


def test_a_folder_without_a_tokenizer_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json: no tokenizer"):
        S3(base=tmp_path).fit(AGENTS)
