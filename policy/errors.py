"""The one exception type of the policy."""


class PolicyError(ValueError):
    """A bad argument or a verb in the wrong state.

    Whatever raised it has changed nothing.
    """
