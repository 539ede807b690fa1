"""Arithmetic that stays exact, and bounded for ever.

Virtual time is a sum of quotients ``work / weight``. In floats such a sum drifts: two
tags that are equal in truth come out unequal, in either order, and beside a large V a
cost vanishes altogether. So such sums are kept in ints and Fractions, with a float
taken for the binary fraction that it is. Denominators would grow without end in a
service that runs for years; past `DENOMINATOR_BITS` an increment is rounded down to
multiples of 2**-`GRAIN_BITS`, and of 2**-`GRAIN_BITS` of itself where that is finer.
After a year at 100 steps a second the error is below 1e-9 token-steps, where a double's
own grain at the value then reached (about 1.3e14) is 0.016.

`fractions`, like `typing` and `dataclasses`, takes longer to import than all of the
policy, so it is loaded with the first Fraction that is needed.
"""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Rational, Real

from justitia.policy.errors import PolicyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import TypeAlias

    Exact: TypeAlias = int | Fraction
    Number: TypeAlias = int | float | Fraction
else:
    Exact, Number = Rational, Real

DENOMINATOR_BITS = 4096
GRAIN_BITS = 64

SMALLEST = 1e-150
LARGEST = 1e150
"""Costs and weights lie between these: no quotient or sum of them overflows."""
MOST_TOKENS = 2**63 - 1


def positive(value: object, what: str) -> Number:
    """Return `value` as an int, Fraction or float; refuse all that is not a size.

    Parameters
    ----------
    value
        An int, a Fraction, a float, or anything registered as `numbers.Real` (numpy's
        scalars are). A bool, a string, None are refused.
    what
        What it is, for the message.

    Raises
    ------
    PolicyError
        If it is not a real number between `SMALLEST` and `LARGEST` (so NaN, infinities,
        zero and negative numbers are refused).
    """
    number = _real(value, what)
    if not SMALLEST <= number <= LARGEST:
        raise PolicyError(
            f"{what} must be a finite positive number "
            f"({SMALLEST:g} to {LARGEST:g}), not {shown(value)}"
        )
    return number


def not_negative(value: object, what: str) -> Number:
    """Return `value` as a number that may be zero; see `positive`."""
    number = _real(value, what)
    if not 0 <= number <= LARGEST:
        raise PolicyError(
            f"{what} must be a finite number that is not negative "
            f"(0 to {LARGEST:g}), not {shown(value)}"
        )
    return number


def finite(value: object, what: str) -> Number:
    """Return `value` as a finite number of either sign; see `positive`."""
    number = _real(value, what)
    if not -LARGEST <= number <= LARGEST:
        raise PolicyError(f"{what} must be a finite number, not {shown(value)}")
    return number


def tokens(value: object, what: str) -> int:
    """Return `value` as a count of tokens: an int that is not negative."""
    kind: object = type(value)
    if kind is not bool and isinstance(value, Integral):
        count = int(value)  # numpy's integers
    else:
        raise PolicyError(f"{what} must be an int, not {shown(value)}")
    if not 0 <= count <= MOST_TOKENS:
        raise PolicyError(
            f"{what} must be a count from 0 to {MOST_TOKENS}, not {shown(value)}"
        )
    return count


def quotient(work: Number, weight: Number) -> Number:
    """Return work / weight: an int where it comes out even, exact where it can be.

    >>> quotient(200, 2), quotient(100, 3), quotient(1.0, 4)
    (100, Fraction(100, 3), 0.25)
    """
    if isinstance(work, int) and isinstance(weight, int):
        whole, rest = divmod(work, weight)
        return _fraction(work, weight) if rest else whole
    return work / weight


def advanced(value: Exact, work: Exact, weight: Exact) -> Exact:
    """Return value + work / weight, rounded down only when denominators grow too long.

    With `work` not negative the result is not less than `value`, and greater with
    `work` positive.

    Complexity: O(1); numbers have at most a few times `DENOMINATOR_BITS` bits.
    """
    increment: Exact = quotient(work, weight)  # type: ignore[assignment]
    total = value + increment
    if type(total) is int:
        return total
    if total.denominator == 1:
        return total.numerator
    if total.denominator.bit_length() > DENOMINATOR_BITS:
        smaller = increment.denominator.bit_length() - increment.numerator.bit_length()
        grain = 1 << (GRAIN_BITS + max(0, smaller))
        return value + _fraction(int(increment * grain // 1), grain)
    return total


def exactly(value: Number) -> Exact:
    """Return `value` without rounding: a float as the binary fraction that it is."""
    if isinstance(value, float):
        numerator, denominator = value.as_integer_ratio()
        return numerator if denominator == 1 else _fraction(numerator, denominator)
    return value


def shown(value: object) -> str:
    """Return `value` for a message, cut where a hostile one would fill the log."""
    try:
        text = repr(value)
    except ValueError:  # it is, or holds, an int of more digits than Python prints
        text = f"a value of type {type(value).__name__} with too many digits to show"
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"


def _real(value: object, what: str) -> Number:
    kind: object = type(value)
    if kind is int:
        return value  # type: ignore[return-value]
    if isinstance(value, Real) and kind is not bool:
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, Rational):
            return _fraction(int(value.numerator), int(value.denominator))
        number = float(value)
        if isfinite(number):
            return number
    raise PolicyError(f"{what} must be a finite number, not {shown(value)}")


def _fraction(numerator: int, denominator: int) -> Fraction:
    from fractions import Fraction  # noqa: PLC0415 - see the top

    return Fraction(numerator, denominator)
