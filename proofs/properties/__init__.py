"""What a scheduler should keep, property by property.

`verbs` asks nothing of the order. `clock` and `delay` ask for the order of a fair
reference, and so that nobody is late. `ALL` has all of them, in that order.
"""

from justitia.proofs.properties import clock, delay, verbs
from justitia.proofs.properties.base import Family, Property, expect

ALL: tuple[Property, ...] = (
    *verbs.PROPERTIES,
    *clock.PROPERTIES,
    *delay.PROPERTIES,
)

__all__ = ["ALL", "Family", "Property", "expect"]
