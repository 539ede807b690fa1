"""Numbers as they were typed on the command line."""

from justitia.policy import PolicyError
from justitia.policy.exact import shown


def whole(
    flag: str,
    typed: str | None,
    default: int,
    least: int,
    most: int,
    *,
    error: type[PolicyError],
) -> int:
    """Return a flag that must be a whole number from `least` to `most`.

    Raises
    ------
    PolicyError
        An `error`, which names the flag, what is allowed and what was typed.
    """
    if typed is None:
        return default
    try:
        value = int(typed)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise error(
            f"{flag}: must be a whole number from {least} to {most}, not {shown(typed)}"
        )
    return value
