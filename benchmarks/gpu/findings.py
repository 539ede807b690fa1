"""What a check finds: each with whether it holds, and whether that is judged."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    judged
        Whether it counts if it does not hold; what depends on a machine's speed, or on
        a GPU, is only told on a CPU.
    """

    name: str
    holds: bool
    told: str
    judged: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """A policy's run of the workload; `lag` and `allowed` in token-steps."""

    policy: str
    mean_jct: float
    p99_jct: float
    tokens_a_second: float
    preemptions: int
    lag: float | None
    allowed: float | None
    policy_ms: float


@dataclass(slots=True)
class Report:
    """All that was found with one engine."""

    engine: str
    version: str
    machine: str
    device: str
    facts: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, name: str, holds: bool, told: str, *, judged: bool = True) -> None:
        """Take down a finding."""
        self.findings.append(Finding(name, bool(holds), told, judged))

    def plain(self) -> dict[str, Any]:
        """Return it as data."""
        return asdict(self)


def report_of(plain: dict[str, Any]) -> Report:
    """Return a report from its data."""
    return Report(
        **plain
        | {
            "rows": [Row(**row) for row in plain["rows"]],
            "findings": [Finding(**one) for one in plain["findings"]],
        }
    )
