"""The commands ``justitia predictor train|evaluate|show|predict``."""

from collections.abc import Callable
from typing import Annotated, Any

from cyclopts import App, Parameter

from justitia.flags import DONE, RUN_FAILED, USAGE, FileOrDash, Name, Number, fail

predictor_app = App(
    name="predictor",
    help="Learn what an agent will cost before it runs. Needs the extra predictors.",
    help_epilogue="Start with: justitia predictor train DATA --out DIR, then\n"
    "justitia run --predictor DIR",
)

Folder = Annotated[str, Parameter(metavar="DIR")]
Text = Annotated[str, Parameter(metavar="TEXT|-", allow_leading_hyphen=True)]
_CODES = "Exit codes: 0 done, 1 {}, 2 the command, a setting or a file cannot be used."


@predictor_app.command(
    help_epilogue=_CODES.format("nothing could be learned or written")
)
def train(
    *data: str,
    out: Folder,
    agents: Number = None,
    share: Annotated[str | None, Parameter(metavar="PART")] = None,
    seed: Number = None,
    jobs: Number = None,
    estimator: Annotated[str | None, Parameter(metavar="mlp|s3")] = None,
    weights: Annotated[str | None, Parameter(metavar="DIR")] = None,
) -> int:
    """Learn from finished agents, and write a model to a folder.

    Of each class some agents are trained on, and the rest are kept aside for justitia
    predictor evaluate. Agents of one group stay together.

    Parameters
    ----------
    data
        Files or folders of agents, or of finished inferences: JSON lines, .gz or not.
    out
        The folder for the model.
    agents
        The most agents of a class to train on (default: 100).
    share
        The largest part of a class to train on (default: 0.7). With 1 and a large
        --agents all are trained on.
    seed
        Of the split and the training (default: 7).
    jobs
        Classes to train at once (default: one a core).
    estimator
        mlp (default), a network for each class; s3, the baseline: one DistilBERT for
        all classes.
    weights
        Of s3: a local folder with DistilBERT's weights to start from (default: small
        random ones).
    """
    return _run(
        "train_model",
        paths=data,
        out=out,
        agents=agents,
        share=share,
        seed=seed,
        jobs=jobs,
        estimator=estimator,
        weights=weights,
    )


@predictor_app.command(help_epilogue=_CODES.format("results cannot be written"))
def evaluate(
    *data: str,
    model: Folder,
    s3: Annotated[str | None, Parameter(metavar="small|none|DIR")] = None,
    json: FileOrDash = None,
    plot: Annotated[str | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Judge a model by agents that it was not trained on.

    Agents of a group that the model was trained on are left out. Where they are in the
    data, simpler predictors are trained on them and judged beside the model: the mean
    of the class, a ridge regression, and S³.

    Parameters
    ----------
    data
        Files or folders of agents, or of finished inferences: JSON lines, .gz or not.
    model
        The folder of the model.
    s3
        What S³ starts from: small random weights (default), or a local folder with
        DistilBERT's; none leaves it out, which is quicker.
    json
        Write all results there as JSON; - for standard output, in place of the table.
    plot
        Draw predicted against real costs there (.png, .svg or .pdf).
    """
    return _run("evaluate_model", paths=data, model=model, s3=s3, json=json, plot=plot)


@predictor_app.command(help_epilogue=_CODES.format("results cannot be written"))
def show(model: Folder, /, *, json: FileOrDash = None) -> int:
    """Show what a model was trained on, and how well it did then.

    Parameters
    ----------
    model
        The folder of the model.
    json
        Write it there as JSON; - for standard output, in place of the table.
    """
    return _run("show_model", model=model, json=json)


@predictor_app.command(help_epilogue=_CODES.format("results cannot be written"))
def predict(
    *,
    model: Folder,
    kind: Name = None,
    prompt: Text,
    prompt_tokens: Number = None,
    max_tokens: Number = None,
    json: FileOrDash = None,
) -> int:
    """Predict what one agent will cost.

    Parameters
    ----------
    model
        The folder of the model.
    kind
        The agent's class (default: none, which the model of all classes answers).
    prompt
        The agent's text; - reads it from standard input.
    prompt_tokens, max_tokens
        Lengths of its inference, for an agent of which the text says nothing or whose
        class was not in training.
    json
        Write it there as JSON; - for standard output, in place of the lines.
    """
    return _run(
        "predict_cost",
        model=model,
        kind=kind,
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        json=json,
    )


def _run(name: str, **given: Any) -> int:  # noqa: ANN401 - of many types
    """Run a command, whose module takes longer to load than --help should."""
    from justitia import predicting  # noqa: PLC0415
    from justitia.policy import PolicyError  # noqa: PLC0415
    from justitia.predictors.errors import TrainingError  # noqa: PLC0415

    command: Callable[..., None] = getattr(predicting, name)
    try:
        command(**given)
    except TrainingError as error:
        return fail(error, RUN_FAILED)
    except PolicyError as error:
        return fail(error, USAGE)
    return DONE
