"""What `justitia run` does with its settings."""

from contextlib import ExitStack

from rich.console import Console

from justitia import __version__
from justitia.config import ConfigError, RunSettings
from justitia.engines.compare import Comparison, run_all
from justitia.engines.document import Result, document, dumps
from justitia.engines.registry import create_engine
from justitia.engines.scenario import Scenario, build, step_seconds
from justitia.engines.sim import Preset, load_preset
from justitia.output import STANDARD, Output
from justitia.plots import check_plot, draw
from justitia.policy import create, options
from justitia.progress import Progresses
from justitia.tables import show


def run_settings(settings: RunSettings) -> None:
    """Run what the settings say; show the results, and save them where that is said.

    Raises
    ------
    EngineError
        If the engine is not there, or a run failed.
    PolicyError
        If something that the settings name cannot be used. Nothing has run then.
    OSError
        If results cannot be written all the same.
    """
    engine = {
        "name": settings.engine,
        "preset": settings.preset,
        "admission": settings.admission,
        "preemption": settings.preemption,
    }
    create_engine(**engine)
    preset = load_preset(settings.preset)
    policies = _policies(settings, preset)
    if settings.plot_file is not None:
        check_plot(settings.plot_file)
    with ExitStack() as stack:
        json, plot = (
            None if file is None else stack.enter_context(Output(file))
            for file in (settings.json_file, settings.plot_file)
        )
        scenario = build(
            preset,
            workload=settings.workload,
            agents=settings.agents,
            arrivals=settings.arrivals,
            density=settings.density,
            load=settings.load,
            seed=settings.seed,
        )
        heading = _heading(settings, preset, scenario)
        comparison = Comparison(
            scenario, engine, policies, settings.predictor, _tags(settings)
        )
        bars = Progresses(Console(stderr=True), list(policies), scenario.inferences)
        with bars:
            results = run_all(comparison, jobs=settings.jobs, progress=bars.tell)
        if json is not None:
            text = dumps(_document(settings, preset, scenario, results))
            json.save(text.encode())
        if plot is not None and settings.plot_file is not None:
            plot.save(draw(results, heading, settings.plot_file))
    if settings.json_file != STANDARD:
        show(heading, results)


def _policies(settings: RunSettings, preset: Preset) -> dict[str, dict[str, object]]:
    """Return the policies to run, each with its table and what the run says of it."""
    for name in settings.options:
        try:
            create(name, **_options(name, settings, preset))
        except (TypeError, ValueError) as error:  # whatever a policy refuses it with
            raise ConfigError(f"[policy.{name}]: {error}") from error
    return {name: _options(name, settings, preset) for name in settings.policies}


def _options(name: str, settings: RunSettings, preset: Preset) -> dict[str, object]:
    given = dict(settings.options.get(name, {}))
    if "tags" in options(name) and (settings.tags or "tags" not in given):
        given["tags"] = _tags(settings)
    if given.get("clock") == "nominal":
        given.setdefault("capacity", preset.capacity_tokens)
        given.setdefault("step_seconds", step_seconds(preset))
    return given


def _tags(settings: RunSettings) -> str:
    return settings.tags or "agent"


def _heading(settings: RunSettings, preset: Preset, scenario: Scenario) -> str:
    """Return what it takes to run the same again, in lines."""
    dense = ""
    if scenario.density is not None:
        dense += f", density {scenario.density:.3g}"
    if scenario.load is not None:
        dense += f", load {scenario.load:.3g}"
    heading = (
        f"justitia {__version__} on {settings.engine}, preset {preset.name} "
        f"({preset.capacity_tokens:,} KV tokens), seed {scenario.seed}\n"
        f"{len(scenario.agents):,} agents with {scenario.inferences:,} inferences "
        f"({scenario.source}), arrivals {scenario.arrivals}{dense}\n"
        f"predictor {settings.predictor}, tags {_tags(settings)}, "
        f"admission {settings.admission}, preemption {settings.preemption}"
    )
    return heading.encode(
        errors="backslashreplace"
    ).decode()  # names of files are bytes


def _document(
    settings: RunSettings,
    preset: Preset,
    scenario: Scenario,
    results: list[Result],
) -> dict[str, object]:
    return document(
        scenario,
        results,
        version=__version__,
        engine={
            "name": settings.engine,
            "preset": preset.name,
            "capacity_tokens": preset.capacity_tokens,
            "admission": settings.admission,
            "preemption": settings.preemption,
            "tags": _tags(settings),
        },
        predictor=settings.predictor,
    )
