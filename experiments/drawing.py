"""Figures as files: what is drawn alike comes out alike to the byte."""

import re
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#24292f"
"""Of all text and lines that are not data; a page puts its own colour there."""
GRID = "#8a939d"
COLOURS = {
    "justitia": "#d1495b",
    "justitia-c": "#e8a13a",
    "srjf": "#7b5ea7",
    "vtc": "#2f7fb8",
    "fairserve": "#3aa6a0",
    "fcfs": "#7a828c",
    "sjf": "#9a7f57",
    "mlfq": "#4f9d5d",
    "agent-fcfs": "#b0668f",
    "ayo": "#5668c4",
}
"""Of the schedulers: to be told apart on white and on black."""
STAGED = "#e8a13a"
"""Of Justitia with a tag for each stage."""
DASHES: dict[str, Any] = {
    "justitia": "-",
    "vtc": "--",
    "srjf": "-.",
    "justitia-c": ":",
    "fcfs": (0, (6, 1.5)),
    "agent-fcfs": (0, (2, 2)),
    "ayo": (0, (1, 3)),
    "fairserve": (0, (6, 2, 2, 2)),
    "sjf": (0, (3, 1, 1, 1, 1, 1)),
    "mlfq": (0, (8, 2, 1, 2, 1, 2)),
}
"""Line styles, so that a copy without colours can be read."""
MARKERS = dict(zip(COLOURS, "oDsv^<PXp*", strict=True))
"""Marks of points, for the same reason."""
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
"""Formats, and what to leave out of each so that a run of one seed gives one figure."""
_STYLE: Any = {
    "svg.hashsalt": "justitia",
    "text.parse_math": False,
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.7,
    "figure.figsize": (7.0, 3.6),
}
_DPI = 200


def render(fill: Callable[["Figure"], None], suffix: str, title: str = "") -> bytes:
    """Return the figure that `fill` fills.

    Parameters
    ----------
    suffix
        A key of `METADATA`.
    title
        Small, above it.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - an extra, and slow to load
    from matplotlib.figure import Figure  # noqa: PLC0415

    content = BytesIO()
    with rc_context(_STYLE), catch_warnings():
        simplefilter("ignore")  # a letter that the font lacks
        figure = Figure(layout="constrained")
        if title:
            figure.suptitle(title, fontsize=9)
        fill(figure)
        for axes in figure.axes:
            _plain_logarithms(axes)
        figure.savefig(content, format=suffix, metadata=METADATA[suffix], dpi=_DPI)
    return content.getvalue()


def _plain_logarithms(axes: "Axes") -> None:
    """Write 1, 10, 100 along logarithmic axes: the font has no small powers.

    An axis on which there would be fewer than two of these has 2, 5, 20, 50, …, too.
    """
    from matplotlib.ticker import (  # noqa: PLC0415
        FuncFormatter,
        LogLocator,
        NullFormatter,
    )

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            low, high = axis.get_view_interval()
            if sum(low <= at <= high for at in axis.get_majorticklocs()) < 2:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            axis.set_minor_formatter(NullFormatter())


def inline(svg: bytes, name: str, label: str) -> str:
    """Return an SVG to put into a page: no prologue, ids of its own, the page's ink.

    Parameters
    ----------
    name
        Goes before every id, which must be unique in a page.
    label
        What it shows, for those who do not see it.
    """
    text = svg.decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    text = text.replace(INK, "currentColor")
    # The sheet that matplotlib puts behind the figure, and behind each of its axes.
    text = re.sub(r'style="fill: #ffffff"', 'style="fill: none"', text)
    # As wide as it was drawn, so that its letters are as large as the page's.
    wide = re.search(r'viewBox="0 0 ([\d.]+)', text)
    text = re.sub(
        r'(<svg[^>]*?) height="[^"]*"([^>]*?) width="[^"]*"', r"\1\2", text, count=1
    )
    width = "" if wide is None else f' style="max-width: {float(wide[1]):.0f}pt"'
    safe = label.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return text.replace("<svg", f'<svg role="img" aria-label="{safe}"{width}', 1)


def colour(policy: str) -> str:
    """Return the colour of a policy."""
    return COLOURS.get(policy, "#56606b")


def dash(policy: str) -> Any:  # noqa: ANN401 - what matplotlib takes
    """Return the line style of a policy."""
    return DASHES.get(policy, (0, (4, 1.5, 1, 1.5)))


def marker(policy: str) -> str:
    """Return the mark of a policy's points."""
    return MARKERS.get(policy, "o")


def beside(place: int, of: int, width: float) -> float:
    """Return how far to shift one of some series, so that intervals do not overlap.

    >>> [beside(place, 3, 0.2) for place in range(3)]
    [-0.1, 0.0, 0.1]
    """
    return width * (place / (of - 1) - 0.5) if of > 1 else 0.0


def interval_bars() -> dict[str, Any]:
    """Return how intervals are drawn over bars: in ink, to be seen on any colour."""
    return {"ecolor": INK, "elinewidth": 0.9, "capsize": 2.5, "capthick": 0.9}


def cut_off(axes: "Axes", highest: Iterable[float], *, across: bool = False) -> None:
    """Put an arrow where the interval of a bar goes on beyond the axes.

    Parameters
    ----------
    highest
        Of the interval of each bar, in order.
    across
        Whether bars lie.
    """
    end = (axes.get_xlim() if across else axes.get_ylim())[1]
    for place, high in enumerate(highest):
        if high > end:
            at = (end, place) if across else (place, end)
            axes.plot(
                *at, marker=">" if across else "^", color=INK, markersize=4,
                clip_on=False, linestyle="none",
            )  # fmt: skip


def outside_legend(axes: "Axes") -> None:
    """Put the legend to the right of the axes."""
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
