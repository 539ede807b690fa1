"""What a policy asks for that not every engine can do."""

from justitia.policy import Policy

NON_PREEMPTIVE = "non-preemptive"
"""Added to the name of a policy that would let who waits take the place of who runs,
on an engine where nobody does."""


def displaces(policy: Policy) -> bool:
    """Return whether a policy may want something running to make way for what waits.

    One that is looked at through another, its ``inner``, is asked itself.
    """
    asked = getattr(policy, "inner", policy)
    return type(asked).preempts is not Policy.preempts


def without_displacing(policy: Policy) -> str:
    """Return what of a policy an engine cannot honour that takes out nobody for it."""
    return NON_PREEMPTIVE if displaces(policy) else ""
