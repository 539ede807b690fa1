"""What a workload says of an agent: the truth, which a policy never sees.

`justitia.policy.Agent` and `Inference` are what a policy is told, with predictions;
the records here hold what really happens.
"""

from dataclasses import dataclass

from justitia.policy import CostModel, KVTokenTime, PolicyError
from justitia.policy.exact import Number

LONGEST_ID = 1024
"""Characters of an id in a workload file; a longer one is a fault of the file."""


class WorkloadError(PolicyError):
    """A workload, or a file of one, that cannot be used; says where and why."""


@dataclass(frozen=True, slots=True)
class InferenceSpec:
    """One inference as it will really run.

    Parameters
    ----------
    prompt_tokens, decode_tokens
        Real lengths. ``decode_tokens`` 0 computes the prompt only.
    stage
        It waits for all inferences of the agent's stages before this one.
    after
        Ids (see `id`) of the inferences of the same agent that it waits for instead;
        None where the stage says it.
    max_tokens
        The most tokens that its client lets it produce; the real length when None.
    id
        Unique in its agent; ``"<number>"`` by position when empty.
    """

    prompt_tokens: int
    decode_tokens: int
    stage: int = 0
    after: tuple[str, ...] | None = None
    max_tokens: int | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent as it will really run.

    Parameters
    ----------
    id
        Unique in the workload.
    inferences
        Its inferences; may be empty, such an agent is done when it arrives.
    kind
        Its class (``"MRS"``, …).
    arrival
        Seconds since the start of the run; None where the workload gives no times.
    text
        What is known of it when it arrives: what a predictor sees.
    weight
        Its share of the machine relative to the others'.
    cancel_after
        Seconds after its arrival at which its user gives up; None for never.
    """

    id: str
    inferences: tuple[InferenceSpec, ...]
    kind: str = ""
    arrival: float | None = None
    text: str = ""
    weight: Number = 1
    cancel_after: float | None = None

    def cost(self, model: CostModel = KVTokenTime()) -> Number:
        """Return the total real work of its inferences under `model`."""
        return sum(model(i.prompt_tokens, i.decode_tokens) for i in self.inferences)
