"""What `justitia predictor` does: train, evaluate, show and ask a model.

What learns is imported when it is asked for: it is an extra, and slow to load.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.console import Console

from justitia import __version__
from justitia.accuracy import document, show_evaluation, show_prediction, show_training
from justitia.engines.document import dumps
from justitia.output import STANDARD, Output
from justitia.plots import check_plot
from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.predictors.data import load as load_data
from justitia.predictors.errors import PredictorError
from justitia.predictors.extra import installed
from justitia.predictors.splits import MOST, SEED, SHARE, split
from justitia.progress import Progresses
from justitia.scatter import draw
from justitia.typed import whole

if TYPE_CHECKING:
    from justitia.predictors.model import Model

LARGEST_SEED = 2**63 - 1
MOST_AGENTS = 10**9
MOST_TOKENS = 2**63 - 1
NO_S3, SMALL_S3 = "none", "small"
ESTIMATORS = ("mlp", "s3")
_BAR = 1000
"""Parts of a progress bar."""


class PredictingError(PolicyError):
    """A command about predictors that cannot be run; says why."""


_whole = partial(whole, error=PredictingError)


def train_model(
    *,
    paths: Sequence[str],
    out: str,
    agents: str | None = None,
    share: str | None = None,
    seed: str | None = None,
    jobs: str | None = None,
    estimator: str | None = None,
    weights: str | None = None,
) -> None:
    """Train a model on a part of the agents, write it to a folder, and show it.

    Arguments are as they were typed.

    Raises
    ------
    TrainingError
        If nothing can be learned.
    PolicyError
        If something that was given cannot be used. Nothing is written then.
    """
    most = _whole("--agents", agents, MOST, 1, MOST_AGENTS)
    part = _part("--share", share, SHARE)
    number = _whole("--seed", seed, SEED, -LARGEST_SEED, LARGEST_SEED)
    processes = _whole("--jobs", jobs, os.cpu_count() or 1, 1, 1024)
    what = ESTIMATORS[0] if estimator is None else estimator
    if what not in ESTIMATORS:
        raise PredictingError(
            f"--estimator: must be one of {', '.join(ESTIMATORS)}, not {shown(what)}"
        )
    if weights is not None and what != "s3":
        raise PredictingError("--weights: is for --estimator s3")
    _some(paths)
    _not_empty("--out", out)
    with installed("justitia predictor"):
        from justitia.predictors import files, training  # noqa: PLC0415 - see above
        from justitia.predictors.s3 import S3  # noqa: PLC0415
        from justitia.predictors.s3 import files as s3_files  # noqa: PLC0415

    files.check_out(out)
    data, aside = split(load_data(paths), most=most, share=part, seed=number)
    began = perf_counter()
    model: Model
    with _bars(["train"]) as bars:
        if what == "s3":
            base = None if weights is None else Path(weights)
            model = S3(base=base, seed=number).fit(
                data.agents, lambda done, whole: _tell(bars, "train", done, whole),
                groups=data.groups,
            )  # fmt: skip
        else:
            model = training.train(
                data.agents,
                groups=data.groups,
                most=len(data.agents),
                seed=number,
                jobs=processes,
                progress=lambda done, whole, _: _tell(bars, "train", done, whole),
            )
    if isinstance(model, S3):
        s3_files.save(model, out)
    else:
        files.save(model, out)
    show_training(model, f"{out}: trained in {perf_counter() - began:.1f} s")
    if aside.agents:
        print(
            f"{len(aside.agents):,} agents were kept aside: justitia predictor "
            f"evaluate {' '.join(paths)} --model {out}"
        )


def evaluate_model(
    *,
    paths: Sequence[str],
    model: str,
    s3: str | None = None,
    json: str | None = None,
    plot: str | None = None,
) -> None:
    """Judge a model by agents that it was not trained on; show or save the results.

    Raises
    ------
    PolicyError
        If something that was given cannot be used, or no agent is left.
    OSError
        If results cannot be written all the same.
    """
    _some(paths)
    if plot is not None:
        check_plot(plot)
    with installed("justitia predictor"):
        from justitia.predictors.evaluation import STEPS, evaluate  # noqa: PLC0415
        from justitia.predictors.s3 import S3  # noqa: PLC0415

    learned = _load(model)
    baseline = None
    if s3 != NO_S3:
        base = None if s3 is None or s3 == SMALL_S3 else Path(s3)
        if base is not None and not base.is_dir():
            raise PredictingError(
                f"--s3: must be {SMALL_S3}, {NO_S3} or a folder that is there, "
                f"not {shown(s3)}"
            )
        baseline = S3(base=base)
    with ExitStack() as stack:
        outputs = [
            None if file is None else stack.enter_context(Output(file))
            for file in (json, plot)
        ]
        data = load_data(paths)
        steps = [name for name in STEPS if name != "s3" or baseline is not None]
        with _bars(steps) as bars:
            found = evaluate(
                learned,
                data,
                s3=baseline,
                progress=lambda what, done, whole: _tell(bars, what, done, whole),
            )
        if outputs[0] is not None:
            content = document(found, learned, version=__version__, model_path=model)
            outputs[0].save(dumps(content).encode())
        if outputs[1] is not None and plot is not None:
            outputs[1].save(draw(found, f"{model}: predicted and real cost", plot))
    if json != STANDARD:
        show_evaluation(found, f"justitia {__version__}, model {model}")


def show_model(*, model: str, json: str | None = None) -> None:
    """Show what a model was trained on, or save it.

    Raises
    ------
    PolicyError
        If there is no such model.
    """
    learned = _load(model)
    with ExitStack() as stack:
        if json is not None:
            output = stack.enter_context(Output(json))
            output.save(dumps(learned.about).encode())
    if json != STANDARD:
        show_training(learned, model)


def predict_cost(
    *,
    model: str,
    kind: str | None,
    prompt: str,
    prompt_tokens: str | None = None,
    max_tokens: str | None = None,
    json: str | None = None,
) -> None:
    """Predict what one agent will cost; show it, or save it.

    Raises
    ------
    PolicyError
        If there is no such model, or the text on standard input is not UTF-8.
    """
    lengths = {
        name: None if given is None else _whole(flag, given, 0, 0, MOST_TOKENS)
        for name, flag, given in (
            ("prompt_tokens", "--prompt-tokens", prompt_tokens),
            ("max_tokens", "--max-tokens", max_tokens),
        )
    }
    learned = _load(model)
    text = _standard_input() if prompt == STANDARD else prompt
    estimate = learned.estimate(kind or "", text, **lengths)
    with ExitStack() as stack:
        if json is not None:
            output = stack.enter_context(Output(json))
            content: dict[str, Any] = {
                "kind": kind or "",
                "cost": estimate.cost,
                "high": estimate.high,
                "source": estimate.source,
                "fallback": estimate.fallback,
            }
            output.save(dumps(content).encode())
    if json != STANDARD:
        show_prediction(estimate, kind or "")


def _not_empty(flag: str, folder: str) -> None:
    if not folder:
        raise PredictingError(f"{flag}: must not be empty")


def _load(folder: str) -> "Model":
    _not_empty("the folder of the model", folder)
    with installed("justitia predictor"):
        from justitia.predictors.model import load  # noqa: PLC0415 - see above

        return load(folder)


def _bars(names: Sequence[str]) -> Progresses:
    return Progresses(Console(stderr=True), names, _BAR)


def _tell(bars: Progresses, name: str, done: int, whole: int) -> None:
    bars.tell(name, -1 if done >= whole else _BAR * done // whole)


def _some(paths: Sequence[str]) -> None:
    if not paths:
        raise PredictingError("give files or folders of agents: DATA")


def _standard_input() -> str:
    if sys.stdin is None:
        raise PredictingError("standard input is closed")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise PredictorError(
            f"standard input: byte {error.start + 1}, "
            f"{error.object[error.start]:#04x}, is not UTF-8"
        ) from None


def _part(flag: str, typed: str | None, default: float) -> float:
    """Return a flag that must be a part of 1."""
    if typed is None:
        return default
    try:
        value = float(typed)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise PredictingError(f"{flag}: must be above 0 to 1, not {shown(typed)}")
    return value
