"""The command line: ``justitia run``."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from justitia import __version__, config
from justitia.engines import EngineError
from justitia.engines.compare import Comparison, run_all
from justitia.engines.document import document, dumps
from justitia.engines.registry import EngineNotInstalled
from justitia.engines.scenario import build, step_seconds
from justitia.engines.sim import Preset, load_preset
from justitia.plots import check_plot, draw
from justitia.policy import PolicyError, options
from justitia.progress import Progresses
from justitia.tables import headline, show

RUN_FAILED = 1
USAGE = 2
INTERRUPTED = 130
PIPE_WIDTH = 100

app = App(
    name="justitia",
    help="Fair, memory-aware scheduling of task-parallel LLM agents.",
    version=__version__,
)


@app.command
def run(
    *,
    config_file: Annotated[Path | None, Parameter(name="--config")] = None,
    engine: str | None = None,
    preset: str | None = None,
    policy: list[str] | None = None,
    tags: str | None = None,
    admission: str | None = None,
    preemption: str | None = None,
    agents: int | None = None,
    workload: str | None = None,
    arrivals: str | None = None,
    density: float | None = None,
    load: float | None = None,
    predictor: str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    json_file: Annotated[str | None, Parameter(name="--json")] = None,
    plot_file: Annotated[str | None, Parameter(name="--plot")] = None,
) -> int:
    """Run agents under several policies and compare them.

    A flag is stronger than an environment variable (JUSTITIA_AGENTS for --agents),
    that is stronger than the file of --config, and that than the default.

    Parameters
    ----------
    config_file
        A TOML file with any of the settings below, and policies' options in tables
        [policy.NAME].
    engine
        sim, the embedded one (default); vllm, sglang, openai.
    preset
        What sim simulates: a shipped preset, or a TOML file (default:
        llama-7b-a100-40g).
    policy
        A policy to run; may be given several times (default: all).
    tags
        agent (default): one tag for all of an agent. stage: one for each of its stages;
        the delay bound holds for these.
    admission
        none (default), prompt, predicted, max or lookahead: what the engine sets aside
        before it starts an inference.
    preemption
        recompute (default) or swap: what becomes of the KV cache of one that gives way.
    agents
        How many agents (default: 300).
    workload
        paper (default), the generated mix; a file of agents; or a folder of such files
        to draw the mix from.
    arrivals
        poisson, burst, or a trace file (default: the workload's own, else poisson).
    density
        1 is the arrival rate at which the load is 0.7; 2 (default) and 3 are denser.
    load
        The load itself, instead of a density.
    predictor
        oracle (default), or noisy:LAMBDA, off by a factor of up to LAMBDA.
    seed
        Of everything random (default: 7).
    jobs
        Processes to use (default: one a core).
    json_file
        Write all results there, too; - for standard output instead of the table.
    plot_file
        Draw the distribution of JCT there (.png, .svg, .pdf).
    """
    flags = {
        "engine": engine,
        "preset": preset,
        "policy": policy,
        "tags": tags,
        "admission": admission,
        "preemption": preemption,
        "agents": agents,
        "workload": workload,
        "arrivals": arrivals,
        "density": density,
        "load": load,
        "predictor": predictor,
        "seed": seed,
        "jobs": jobs,
        "json": json_file,
        "plot": plot_file,
    }
    settings = config.load(flags, file=config_file)
    return run_settings(settings)


def run_settings(settings: config.RunSettings) -> int:
    """Run what the settings say and show the results; return the exit code."""
    out, err = _consoles()
    if settings.plot_file is not None:
        check_plot(Path(settings.plot_file))
    preset = load_preset(settings.preset)
    scenario = build(
        preset,
        workload=settings.workload,
        agents=settings.agents,
        arrivals=settings.arrivals,
        density=settings.density,
        load=settings.load,
        seed=settings.seed,
    )
    engine = {
        "name": settings.engine,
        "preset": settings.preset,
        "admission": settings.admission,
        "preemption": settings.preemption,
    }
    comparison = Comparison(
        scenario,
        engine,
        {name: _options(name, settings, preset) for name in settings.policies},
        settings.predictor,
        settings.tags,
    )
    comparison.check()
    names = list(comparison.policies)
    try:
        with Progresses(err, names, scenario.inferences) as progresses:
            results = run_all(comparison, jobs=settings.jobs, progress=progresses.tell)
    except EngineError as error:
        raise RunFailed(str(error)) from error
    if settings.json_file is not None:
        content = document(
            scenario,
            results,
            version=__version__,
            engine={
                "name": settings.engine,
                "preset": preset.name,
                "capacity_tokens": preset.capacity_tokens,
                "admission": settings.admission,
                "preemption": settings.preemption,
            },
            predictor=settings.predictor,
        )
        _write(dumps(content), settings.json_file)
    if settings.plot_file is not None:
        draw(results, headline(scenario), Path(settings.plot_file))
    if settings.json_file != "-":
        show(out, scenario, results)
    return 0


def _options(
    name: str, settings: config.RunSettings, preset: Preset
) -> dict[str, object]:
    """Return a policy's options: its table's, and what the run says of them."""
    given = dict(settings.options.get(name, {}))
    if "tags" in options(name):
        given.setdefault("tags", settings.tags)
    if given.get("clock") == "nominal":
        given.setdefault("capacity", preset.capacity_tokens)
        given.setdefault("step_seconds", step_seconds(preset))
    return given


def _write(text: str, file: str) -> None:
    """Write text to a file, whole or not at all; to standard output for ``-``."""
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise RunFailed(f"{file}: {error.strerror}") from error


def _consoles() -> tuple[Console, Console]:
    """Return standard output and standard error; wide enough where it is a pipe."""
    out, err = Console(), Console(stderr=True)
    return (out if out.is_terminal else Console(width=PIPE_WIDTH)), err


class RunFailed(PolicyError):
    """A run that began and could not be brought to its end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0: done; 1: the run failed; 2: the command or its settings cannot be used.
    """
    _, err = _consoles()
    try:
        code = app(
            list(sys.argv[1:] if arguments is None else arguments),
            exit_on_error=False,
            result_action="return_value",
        )
        return code if isinstance(code, int) else 0
    except CycloptsError:
        return USAGE  # cyclopts has said it
    except (RunFailed, EngineNotInstalled) as error:
        err.print(f"justitia: {error}", style="red", markup=False, highlight=False)
        return RUN_FAILED
    except PolicyError as error:
        err.print(f"justitia: {error}", style="red", markup=False, highlight=False)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
