"""How large the check is: on a GPU, and on a CPU with a tiny model."""

from dataclasses import dataclass

from justitia.engines.tiny import BILLION, CONTEXT, TINY, Shape


@dataclass(frozen=True, slots=True)
class Scale:
    """Sizes of a check.

    Parameters
    ----------
    running
        Sequences that decode at once where throughput is compared.
    prompt, decode
        Tokens of each of those. The cache holds just so many of them: that is what
        agents compete for.
    context
        Tokens of prompt and output that a request may have.
    budget
        Most tokens of a step: below the longest prompt, so that some are cut.
    agents
        In the workload that all policies run.
    pairs
        Runs of each side of a comparison of throughput.
    """

    shape: Shape
    running: int
    prompt: int
    decode: int
    context: int
    budget: int
    agents: int
    pairs: int

    @property
    def cache(self) -> int:
        """KV tokens."""
        return self.running * (self.prompt + self.decode)


def scale_of(device: str, running: int | None = None) -> Scale:
    """Return the scale for a device, with so many sequences if that is said."""
    if device == "cpu":
        return Scale(TINY, running or 64, 16, 16, CONTEXT, 256, 12, 2)
    return Scale(BILLION, running or 256, 32, 64, 4096, 2048, 60, 7)
