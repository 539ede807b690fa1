"""How far simulator and policy go, and the lag against Theorem B as load grows."""

from typing import TYPE_CHECKING, Any

from justitia.experiments.cells import Cell, cell
from justitia.experiments.drawing import INK, STAGED, beside, colour, dash, marker
from justitia.experiments.estimate import Estimate, estimate
from justitia.experiments.scope import PRESETS, Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

GROWN: dict[str, tuple[str, dict[str, str]]] = {
    "justitia": ("justitia", {}),
    "justitia, stage tags": ("justitia", {"tags": "stage"}),
    "vtc": ("vtc", {}),
}
MILLION = 1_000_000
TAGS: dict[str, dict[str, str]] = {"agent": {}, "stage": {"tags": "stage"}}
TIMES = (
    Column("policy", "policy", "text"),
    Column("inferences", "inferences", "count"),
    Column("run_s", "simulated in, s"),
    Column("rate", "inferences a second", "count"),
    Column("policy_s", "of it the policy, s"),
    Column("decision_us", "µs an inference"),
    Column("peak_mib", "memory, MiB", "count"),
    Column("policy_mib", "policy's, MiB"),
)
GROWTH = (
    Column("policy", "policy", "text"),
    Column("agents", "agents", "count"),
    Column("inferences", "inferences", "count"),
    Column("mean_jct", "mean JCT, s"),
    Column("ratio", "lag", "ratio"),
)
LAGS = (
    Column("load", "load", "ratio"),
    Column("tags", "tags", "text"),
    Column("worst", "lag", "mega"),
    Column("allowed", "allowed", "mega"),
    Column("excess", "most above", "mega"),
    Column("ratio", "ratio", "ratio"),
)


def _sizes(scope: Scope, name: str) -> tuple[int, ...]:
    if scope.quick:
        return (1_000, 10_000)
    small = (1_000, 10_000, 100_000)
    return (*small, MILLION) if name == "justitia" else small


def _densities(scope: Scope) -> tuple[float, ...]:
    return (1, 2, 3) if scope.quick else (0.5, 1, 1.5, 2, 2.5, 3, 4)


def _grown(scope: Scope, name: str, inferences: int) -> Cell:
    policy, options = GROWN[name]
    given: dict[str, Any] = {"options": options} if options else {}
    return cell(
        "grow",
        size=inferences,
        policy=policy,
        seed=scope.seed,
        preset=PRESETS[0],
        inferences=inferences,
        **given,
    )


def _lagging(scope: Scope, tags: str, density: float) -> list[Cell]:
    given: dict[str, Any] = {"options": TAGS[tags]} if TAGS[tags] else {}
    return [
        scope.simulate("justitia", seed, density=density, **given)
        for seed in scope.all_seeds
    ]


def _cells(scope: Scope) -> list[Cell]:
    grown = [
        _grown(scope, name, inferences)
        for name in GROWN
        for inferences in _sizes(scope, name)
    ]
    lagging = [
        one
        for density in _densities(scope)
        for tags in TAGS
        for one in _lagging(scope, tags, density)
    ]
    return grown + lagging


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    growth: list[dict[str, Value]] = []
    times: list[dict[str, Value]] = []
    for name in GROWN:
        for size in _sizes(scope, name):
            outcome = outcomes[_grown(scope, name, size)]
            result, timed = outcome["result"], outcome["timings"]
            growth.append({"policy": name, **result})
            times.append(
                {
                    "policy": name,
                    "inferences": result["inferences"],
                    "rate": result["inferences"] / timed["run_s"],
                    **timed,
                }
            )
    lags: list[dict[str, Value]] = []
    for density in _densities(scope):
        for tags in TAGS:
            results = [
                outcomes[one]["result"] for one in _lagging(scope, tags, density)
            ]
            runs = [result["lag"] for result in results]
            keys = ("worst", "allowed", "excess", "ratio")
            lags.append(
                {
                    "load": results[0]["load"],
                    "tags": tags,
                    **{key: estimate(run[key] for run in runs) for key in keys},
                }
            )
    highest = {
        tags: max(
            run["lag"]["ratio"]
            for density in _densities(scope)
            for one in _lagging(scope, tags, density)
            for run in [outcomes[one]["result"]]
        )
        for tags in TAGS
    }
    return Section(
        name="scale",
        title="Up to a million inferences",
        about=(
            "The same mix at density 2 with ever more agents, each run in a process of "
            "its own; and the lag behind the fair reference against what Theorem B "
            "allows, as the load grows."
        ),
        findings=(
            f"With a tag for each stage the lag is never above what Theorem B allows: "
            f"its largest ratio in all these runs is {highest['stage'] + 0.0:.2f}. "
            f"With one tag an agent, the paper's rule, it is {highest['agent']:.2f} "
            "of the largest inference's cost: that rule has no such bound for agents "
            "of several stages.",
            "A decision takes hardly longer with more that waits (Time of a decision); "
            "an inference takes the simulator longer as more of them run and wait at "
            "once.",
        ),
        tables=(
            Table(
                name="scale-lag",
                title="Lag behind the fair reference by load, Justitia, LLaMA-7B",
                columns=LAGS,
                rows=lags,
                note="In millions of token-steps: lag, the largest by which delivered "
                "service was ahead of the reference's finish when an inference first "
                "started; allowed, what Theorem B permits there; most above, the "
                "largest (lag - allowed) of any start; ratio, that over the cost of "
                "the largest inference. Where the theorem holds it is not above 0.",
            ),
            Table(
                name="scale-growth",
                title="More and more agents, density 2",
                columns=GROWTH,
                rows=growth,
                note=f"Seed {scope.seed}. The load is that of the main table, above "
                "what the engine bears, so the mean JCT grows with the number of "
                "agents. lag: the ratio as above.",
            ),
            Table(
                name="scale",
                title="Time and memory",
                columns=TIMES,
                rows=times,
                note="Seconds of the processor. of it the policy: all that it was "
                "told and asked, the watch included; µs an inference: that, over the "
                "inferences. memory: of the whole process. "
                "policy's: of the policy with all inferences in line at once.",
                timed=True,
            ),
        ),
        figures=(_lag_figure(lags), _time_figure(times)),
    )


def _lag_figure(lags: list[dict[str, Value]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(6, 3.2)
        axes = figure.subplots()
        for place, (tags, tint, style) in enumerate(
            (("agent", colour("justitia"), "-"), ("stage", STAGED, ":"))
        ):
            points = [
                (number(row["load"]), ratio)
                for row in lags
                if row["tags"] == tags and isinstance(ratio := row["ratio"], Estimate)
            ]
            axes.errorbar(
                [x + beside(place, len(TAGS), 0.02) for x, _ in points],
                [y.mean for _, y in points],
                yerr=[y.half or 0 for _, y in points], color=tint, linestyle=style,
                marker="os"[place], markersize=4, capsize=2, elinewidth=0.9,
                label=f"one tag {'an' if tags == 'agent' else 'a'} {tags}",
            )  # fmt: skip
        axes.axhline(0, color=INK, linewidth=1)
        axes.annotate(
            "Theorem B: not above 0", (1, 0), (0, -4), fontsize=8, ha="right", va="top",
            xycoords=axes.get_yaxis_transform(), textcoords="offset points",
        )  # fmt: skip
        axes.set(xlabel="load", ylabel="(lag − allowed) / largest cost")
        highest = max(number(row["ratio"]) for row in lags)
        axes.set_ylim(-0.4 * abs(highest) - 0.1, 1.8 * abs(highest) + 0.1)
        axes.legend(loc="upper right")

    return Figure(
        "lag-against-bound",
        "The largest lag above what Theorem B allows, in costs of the largest "
        "inference, by load; at most 0 where the theorem holds. 95 % intervals over "
        "seeds.",
        draw,
    )


def _time_figure(times: list[dict[str, Value]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(7, 3.2)
        left, right = figure.subplots(1, 2)
        for name, (policy, options) in GROWN.items():
            mine = [row for row in times if row["policy"] == name]
            for axes, key in ((left, "run_s"), (right, "peak_mib")):
                axes.plot(
                    [number(row["inferences"]) for row in mine],
                    [number(row[key]) for row in mine],
                    color=STAGED if options else colour(policy),
                    linestyle=":" if options else dash(policy),
                    marker="s" if options else marker(policy),
                    markersize=4, label=name,
                )  # fmt: skip
        left.set(
            xscale="log", yscale="log", xlabel="inferences", ylabel="processor time, s"
        )
        right.set(xscale="log", yscale="log", xlabel="inferences", ylabel="memory, MiB")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)

    return Figure(
        "scale", "Time and memory of a run by its inferences.", draw, timed=True
    )


EXPERIMENT = Experiment("scale", "Up to a million inferences", _cells, _section)
