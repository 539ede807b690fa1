"""The report as text: one table, the findings, and how many hold."""

from collections.abc import Iterator, Sequence

from benchmarks.gpu.findings import Report, Row

_HEADS = (
    "engine", "version", "policy", "mean JCT", "p99 JCT", "tokens/s", "preempted",
    "lag", "bound", "policy ms/step",
)  # fmt: skip


def text(reports: Sequence[Report]) -> str:
    """Return all of it, in lines."""
    cells: list[tuple[str, ...]] = [_HEADS]
    cells += [_cells(report, row) for report in reports for row in report.rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [_line(row, widths) for row in cells]
    for report in reports:
        lines += ["", f"{report.engine} {report.version} on {report.machine}"]
        lines += [f"  {key}: {value}" for key, value in report.facts.items()]
        lines += list(_findings(report))
    passed, failed = count(reports)
    return "\n".join([*lines, "", f"{passed} passed, {failed} failed"])


def count(reports: Sequence[Report]) -> tuple[int, int]:
    """Return how many of the findings that are judged hold, and how many do not."""
    judged = [one for report in reports for one in report.findings if one.judged]
    passed = sum(one.holds for one in judged)
    return passed, len(judged) - passed


def _findings(report: Report) -> Iterator[str]:
    for one in report.findings:
        mark = ("ok  " if one.holds else "FAIL") if one.judged else "told"
        yield f"  {mark} {one.name}: {one.told}"


def _cells(report: Report, row: Row) -> tuple[str, ...]:
    return (
        report.engine,
        report.version,
        row.policy,
        f"{row.mean_jct:.3f} s",
        f"{row.p99_jct:.3f} s",
        f"{row.tokens_a_second:,.0f}",
        f"{row.preemptions}",
        "" if row.lag is None else f"{row.lag:,.0f}",
        "" if row.allowed is None else f"{row.allowed:,.0f}",
        f"{row.policy_ms:.3f}",
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    left = "  ".join(
        cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)
    )
    right = "  ".join(
        cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)
    )
    return f"{left}  {right}".rstrip()
