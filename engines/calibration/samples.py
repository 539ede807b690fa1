"""What a step did, and how long it took."""

from typing import NamedTuple


class Sample(NamedTuple):
    """One step of an engine.

    Parameters
    ----------
    prefill_tokens
        Prompt tokens computed in it.
    sequences
        Sequences in its batch.
    kv_tokens
        KV tokens held when it is done, by those that run and are not in it, too.
    seconds
        From the end of the step before, or of a pause: with all that was done between
        steps to make this one.
    """

    prefill_tokens: int
    sequences: int
    kv_tokens: int
    seconds: float
