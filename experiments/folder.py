"""What a folder of results holds: JSON, CSV, figures, and a report in one file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from justitia.experiments.drawing import inline, render
from justitia.experiments.report import report
from justitia.experiments.scope import Scope
from justitia.experiments.section import Section

SCHEMA = 1


def contents(
    sections: Sequence[Section],
    scope: Scope,
    *,
    version: str,
    command: str,
    notes: Sequence[str] = (),
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder of results, each name with its content.

    The same scope gives the same bytes, but for what was timed: timings.json, the files
    whose names begin with it, and the parts of report.html that show it.

    Parameters
    ----------
    command
        What repeats it.
    notes
        What to say of the whole: what was left out, and why.
    """
    drawn: dict[str, str] = {}
    for section in sections:
        for figure in section.figures:
            name = f"timings-{figure.name}" if figure.timed else figure.name
            svg = render(figure.draw, "svg")
            yield f"{name}.svg", svg
            yield f"{name}.png", render(figure.draw, "png")
            drawn[figure.name] = inline(svg, figure.name, figure.caption)
        for table in section.tables:
            name = f"timings-{table.name}" if table.timed else table.name
            yield f"{name}.csv", table.csv().encode()
    yield "results.json", text(results(sections, scope, version, notes)).encode()
    timed = timings(sections, version)
    if timed:
        yield "timings.json", text(timed).encode()
    page = report(
        sections,
        drawn,
        heading="The paper's tables, anew",
        version=version,
        settings=_settings(scope),
        command=command,
        notes=notes,
    )
    yield "report.html", page.encode()


def results(
    sections: Sequence[Section], scope: Scope, version: str, notes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return all but the timings as what `json.dumps` takes."""
    return {
        "schema": SCHEMA,
        "version": version,
        "seeds": list(scope.all_seeds),
        "quick": scope.quick,
        "agents": scope.agents,
        "workload": scope.workload,
        "arrivals": scope.arrivals,
        "notes": list(notes),
        "experiments": {
            section.name: {
                "title": section.title,
                "findings": list(section.findings),
                "tables": {
                    table.name: table.content()
                    for table in section.tables
                    if not table.timed
                },
            }
            for section in sections
        },
    }


def timings(sections: Sequence[Section], version: str) -> dict[str, Any]:
    """Return what was timed, by experiment; empty where nothing was."""
    found = {
        section.name: {table.name: table.content() for table in timed}
        for section in sections
        if (timed := [table for table in section.tables if table.timed])
    }
    return {"version": version, "experiments": found} if found else {}


def text(content: Mapping[str, Any]) -> str:
    """Return JSON in ASCII that ends in a newline."""
    return json.dumps(content, allow_nan=False, indent=1) + "\n"


def _settings(scope: Scope) -> dict[str, str]:
    seeds = scope.all_seeds
    return {
        "engine": "sim, simulated step by step",
        "workload": scope.workload,
        "arrivals": scope.arrivals or "poisson",
        "agents in a run of the mix": f"{scope.agents:,}",
        "seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}",
        "size": "quick" if scope.quick else "full",
    }
