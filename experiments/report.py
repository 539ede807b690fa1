"""A report as one page of HTML that needs nothing from outside."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from justitia.experiments.section import Section

TEMPLATE = "report.html.j2"


def tied(text: str) -> str:
    """Return text in which no line ends between a figure and its unit.

    >>> tied("by 7 % in 3 s") == "by 7\u00a0% in 3\u00a0s"
    True
    """
    return re.sub(r"(?<=\d) (?=(%|s|ms|µs)\b|%)", "\u00a0", text)


def report(
    sections: Sequence[Section],
    drawn: Mapping[str, str],
    *,
    heading: str,
    version: str,
    settings: Mapping[str, str],
    command: str,
    notes: Sequence[str] = (),
    engine: str = "sim",
) -> str:
    """Return the page.

    Parameters
    ----------
    drawn
        SVG of each figure, by its name.
    heading
        Of the page.
    settings
        What it was run with, in words.
    command
        What repeats it.
    notes
        What to say of the whole.
    engine
        Whose times they are.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - an extra
    from markupsafe import Markup  # noqa: PLC0415 - comes with it

    source = resources.files("justitia.experiments").joinpath(TEMPLATE)
    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page.filters["tied"] = tied
    return page.from_string(source.read_text("utf-8")).render(
        sections=sections,
        drawn={name: Markup(svg) for name, svg in drawn.items()},
        heading=heading,
        version=version,
        settings=settings,
        command=command,
        notes=notes,
        simulated=engine == "sim",
        highlights=[one for section in sections for one in section.highlights],
    )
