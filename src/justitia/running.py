"""What `justitia run` does with its settings."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

from rich.console import Console

from justitia import __version__
from justitia.config import ConfigError, RunSettings
from justitia.engines.base import Engine
from justitia.engines.compare import Comparison, run_all
from justitia.engines.document import Result, document, dumps
from justitia.engines.foresight import Foresight, foresee
from justitia.engines.registry import create_engine
from justitia.engines.scenario import Scenario, build
from justitia.engines.sim import Preset
from justitia.engines.sim.told import told_by
from justitia.experiments import check_installed
from justitia.output import STANDARD, Output
from justitia.plots import check_plot, draw
from justitia.policy import create, options
from justitia.predictors import Oracle
from justitia.progress import Progresses
from justitia.reaching import NAME, reach
from justitia.reporting import report_of
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
    chosen: dict[str, Any] = {
        "name": settings.engine,
        "preset": settings.preset,
        "model": settings.model,
        "admission": settings.admission,
        "preemption": settings.preemption,
    }
    with ExitStack() as stack:
        is_served = settings.engine == NAME
        engine = reach(settings) if is_served else create_engine(**chosen)
        stack.callback(engine.close)
        preset = engine.preset
        policies = _policies(settings, preset)
        if settings.plot_file is not None:
            check_plot(settings.plot_file)
        if settings.report_file is not None:
            check_installed("a report")
        json, plot, page = (
            None if file is None else stack.enter_context(Output(file))
            for file in (settings.json_file, settings.plot_file, settings.report_file)
        )
        scenario = build(
            preset,
            workload=settings.workload,
            agents=settings.agents,
            arrivals=settings.arrivals,
            density=settings.density,
            load=settings.load,
            seed=settings.seed,
            fit=engine.fit,
        )
        about = _about(engine, scenario) | {"tags": _tags(settings)}
        heading = _heading(settings, about, scenario)
        comparison = Comparison(
            scenario, chosen, policies, settings.predictor, _tags(settings)
        )
        knows = settings.predictor == Oracle.name
        oracles = [] if knows else [_with_oracle(name) for name in policies]
        bars = Progresses(
            Console(stderr=True), [*policies, *oracles], scenario.inferences
        )
        with bars:
            results = run_all(
                comparison, jobs=settings.jobs, progress=bars.tell, engine=engine
            )
            known: list[Result] = []
            if not knows:
                known = run_all(
                    replace(comparison, predictor=Oracle.name),
                    jobs=settings.jobs,
                    progress=lambda name, ended: bars.tell(_with_oracle(name), ended),
                    engine=engine,
                )
        foresights = {
            result.policy: foresee(result, other)
            for result, other in zip(results, known, strict=False)
        }
        if json is not None:
            content = document(
                scenario,
                results,
                version=__version__,
                engine=about,
                predictor=settings.predictor,
                foresights=None if knows else _plain(foresights),
            )
            json.save(dumps(content).encode())
        if plot is not None and settings.plot_file is not None:
            plot.save(draw(results, heading, settings.plot_file))
        if page is not None:
            page.save(report_of(results, heading, foresights, settings).encode())
    if settings.json_file != STANDARD:
        show(heading, results, foresights)


def _with_oracle(policy: str) -> str:
    """Return what the run of a policy beside its own is called."""
    return f"{policy} ({Oracle.name})"


def _plain(foresights: Mapping[str, Foresight]) -> dict[str, dict[str, object]]:
    return {policy: asdict(one) for policy, one in foresights.items()}


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
    return told_by(preset, name, given)


def _tags(settings: RunSettings) -> str:
    return settings.tags or "agent"


def _about(engine: Engine, scenario: Scenario) -> dict[str, object]:
    """Return what the results say of the engine."""
    about = engine.about()
    return about if scenario.scaled is None else about | {"scaled": scenario.scaled}


def _heading(
    settings: RunSettings, about: Mapping[str, object], scenario: Scenario
) -> str:
    """Return what it takes to run the same again, in lines."""
    dense = ""
    if scenario.density is not None:
        dense += f", density {scenario.density:.3g}"
    if scenario.load is not None:
        dense += f", load {scenario.load:.3g}"
    heading = (
        f"justitia {__version__} on {_engine(about)}, seed {scenario.seed}\n"
        f"{len(scenario.agents):,} agents with {scenario.inferences:,} inferences "
        f"({scenario.source}), arrivals {scenario.arrivals}{dense}\n"
        f"predictor {settings.predictor}, tags {_tags(settings)}, "
        f"admission {about['admission']}"
    )
    if about["preemption"] is not None:
        heading += f", preemption {about['preemption']}"
    if scenario.scaled is not None:
        heading += f"\nprompts and outputs are {scenario.scaled:.4g} times as long"
    return heading.encode(
        errors="backslashreplace"
    ).decode()  # names of files are bytes


def _engine(about: Mapping[str, object]) -> str:
    """Return the engine in a few words."""
    name, cache = about["name"], f"{_count(about['capacity_tokens'])} KV tokens"
    if "model" not in about:
        return f"{name}, preset {about['preset']} ({cache})"
    engine = f"{name} {about['version']}"
    if "url" in about:
        told = about["version"] or "of a version it does not tell"
        engine = f"{about['url']} ({about['server']} {told})"
    return (
        f"{engine}, model {about['model']} "
        f"({_count(about['context_tokens'])} tokens, {cache}),\narrivals as for preset "
        f"{about['preset']}"
    )


def _count(tokens: object) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"
