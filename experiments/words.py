"""How findings write their figures."""

from justitia.experiments.estimate import Estimate


def percent(value: Estimate | float | None, digits: int = 0) -> str:
    """Return a part of 1 in per cent, without a sign.

    >>> percent(-0.257), percent(0.5, 1)
    ('26 %', '50.0 %')
    """
    part = value.mean if isinstance(value, Estimate) else value
    return "-" if part is None else f"{abs(100 * part):,.{digits}f} %"


def seconds(value: Estimate | float | None) -> str:
    """Return seconds.

    >>> seconds(31.27), seconds(431.27)
    ('31.3 s', '431 s')
    """
    time = value.mean if isinstance(value, Estimate) else value
    if time is None:
        return "-"
    return f"{time:,.{0 if abs(time) >= 100 else 1}f} s"


def side(value: Estimate | float | None, above: str, below: str) -> str:
    """Return one of two words: a figure is above 0, or it is not.

    >>> side(0.1, "longer", "shorter")
    'longer'
    """
    part = value.mean if isinstance(value, Estimate) else value
    return above if part is not None and part > 0 else below
