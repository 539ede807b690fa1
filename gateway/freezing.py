"""State as text and back, exactly: the books of policies, whichever they are.

A policy's books are objects that point at one another in circles, and to which it
matters that two of them are the same. They are written as a table of nodes: an object
is the name of its class and its attributes, a container what is in it, and whatever is
in two places is one node. Numbers stay what they are: an int, a Fraction, a float.

What is read makes nothing but bare objects of classes of this project that were named
to be such books, and sets their attributes: no code that a file names is ever run.
Functions that books hold (a clock) are not written; they are given by name.
"""

import json
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isfinite
from typing import Any

from justitia.policy import PolicyError
from justitia.policy.exact import shown

MODULES = (
    "justitia.policy.",
    "justitia.gateway.shares",
    "justitia.engines.serving.agents",
    "justitia.engines.serving.watch",
)
"""Where the classes are that may be read."""
_CONTAINERS: dict[str, type] = {
    "dict": dict,
    "list": list,
    "tuple": tuple,
    "set": set,
    "OrderedDict": OrderedDict,
    "Counter": Counter,
}
_NAME_OF = {kind: name for name, kind in _CONTAINERS.items()}
_MAPPINGS = (dict, OrderedDict, Counter)

Functions = Mapping[str, Any]
"""By name."""


class FrozenError(PolicyError):
    """State that cannot be written, or text that is none."""


def freeze(root: object, functions: Functions) -> str:
    """Return all that can be reached from an object, as JSON.

    Complexity: O(what can be reached), once for each object.
    """
    return json.dumps(_Freezer(functions).all_of(root), separators=(",", ":"))


def thaw(text: str, functions: Functions) -> Any:  # noqa: ANN401 - what was frozen
    """Return the object that was frozen, made anew.

    Raises
    ------
    FrozenError
        If the text is not of this form, or names a class that is no such book.
    """
    try:
        return _thawed(json.loads(text), functions)
    except FrozenError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise FrozenError(f"not a frozen state: {error!r}"[:300]) from None


class _Freezer:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._numbers: dict[int, int] = {}
        self._found: list[object] = []  # kept alive, so that no id comes twice

    def all_of(self, root: object) -> list[Any]:
        nodes: list[Any] = []
        first = self._told(root)
        while len(nodes) < len(self._found):
            nodes.append(self._node(self._found[len(nodes)]))
        return [first, nodes]

    def _told(self, value: object) -> object:
        """Return a value as it stands in a node: itself, or a list that leads to it."""
        if value is None or type(value) in (str, bool, int):
            return value
        if type(value) is float:
            if not isfinite(value):
                raise FrozenError(f"{value} cannot be written")
            return value
        if type(value) is Fraction:
            return [f"{value.numerator}/{value.denominator}"]
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._found)
            self._found.append(value)
        return [self._numbers[id(value)]]

    def _node(self, value: object) -> list[Any]:
        kind = type(value)
        if kind in _NAME_OF:
            name = _NAME_OF[kind]
            if kind in _MAPPINGS:
                assert isinstance(value, dict)
                pairs = value.items()
                return [name, [[self._told(k), self._told(v)] for k, v in pairs]]
            assert isinstance(value, list | tuple | set)
            return [name, [self._told(one) for one in value]]
        if callable(value) and not hasattr(kind, "delivered"):  # not a cost model
            for name, function in self._functions.items():
                if function == value:
                    return ["function", name]
            raise FrozenError(f"{shown(value)} is a function without a name")
        _class_of(kind.__module__, kind.__qualname__)
        attributes = {name: self._told(one) for name, one in _attributes(value)}
        return [f"{kind.__module__}:{kind.__qualname__}", attributes]


def _thawed(given: Any, functions: Functions) -> Any:  # noqa: ANN401 - of JSON
    first, nodes = given
    made: list[Any] = [_shell(name, payload, functions) for name, payload in nodes]
    pending = object()
    same: dict[Any, Any] = {}  # keys of two books are one object, as they were

    def value(told: Any) -> Any:  # noqa: ANN401 - whatever it was
        if not isinstance(told, list):
            return same.setdefault((type(told), told), told)
        (place,) = told
        if isinstance(place, str):
            numerator, denominator = place.split("/")
            return Fraction(int(numerator), int(denominator))
        if isinstance(place, bool) or not 0 <= place < len(made):
            raise FrozenError(f"there is no node {shown(place)}")
        if made[place] is None:  # a tuple, which is made of what is in it
            made[place] = pending
            made[place] = tuple(value(one) for one in nodes[place][1])
        if made[place] is pending:
            raise FrozenError("a tuple is in itself")
        return made[place]

    for (name, payload), one in zip(nodes, made, strict=True):
        if name not in _CONTAINERS and name != "function":
            for attribute, told in payload.items():
                object.__setattr__(one, attribute, value(told))
    for place, (name, payload) in enumerate(nodes):
        one = made[place]
        if name == "tuple":
            value([place])
        elif name == "list":
            one.extend(map(value, payload))
        elif name == "set":
            one.update(map(value, payload))
        elif name in _CONTAINERS:
            for key, told in payload:
                one[value(key)] = value(told)
    return value(first)


def _shell(name: str, payload: Any, functions: Functions) -> Any:  # noqa: ANN401
    """Return what a node becomes, still empty; None for a tuple."""
    if name == "tuple":
        return None
    if name == "function":
        return functions[payload]
    if name in _CONTAINERS:
        return _CONTAINERS[name]()
    kind = _class_of(*name.split(":"))
    return object.__new__(kind)


def _class_of(module: str, name: str) -> type:
    known = module.startswith(MODULES[0]) or module in MODULES[1:]
    kind = getattr(sys.modules.get(module), name, None) if known else None
    if (
        not isinstance(kind, type)
        or kind.__module__ != module
        or issubclass(kind, BaseException)
    ):
        raise FrozenError(f"{module}:{name} is no book that is kept")
    return kind


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name != "__dict__" and hasattr(value, name):
                yield name, getattr(value, name)
    yield from getattr(value, "__dict__", {}).items()
