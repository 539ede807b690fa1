"""What runs: agents with their real lengths, when they arrive, where they come from.

Generate agents (`paper_mix`, `generate`), or `read` them from a file or a folder and
draw some (`sample`, `real_mix`); give them arrivals (`poisson`, `burst`, `from_trace`);
run them with `justitia.engines`, which ask `Readiness` what may run.
"""

from justitia.workloads.agents import AgentSpec, InferenceSpec, WorkloadError
from justitia.workloads.arrivals import burst, from_trace, normalised, poisson
from justitia.workloads.files import read, read_groups, write_dag_jsonl, write_jsonl
from justitia.workloads.generate import generate, paper_mix
from justitia.workloads.kinds import KINDS, SIZES
from justitia.workloads.mix import real_mix, sample
from justitia.workloads.readiness import Readiness
from justitia.workloads.stamps import read_stamps

__all__ = [
    "KINDS",
    "SIZES",
    "AgentSpec",
    "InferenceSpec",
    "Readiness",
    "WorkloadError",
    "burst",
    "from_trace",
    "generate",
    "normalised",
    "paper_mix",
    "poisson",
    "read",
    "read_groups",
    "read_stamps",
    "real_mix",
    "sample",
    "write_dag_jsonl",
    "write_jsonl",
]
