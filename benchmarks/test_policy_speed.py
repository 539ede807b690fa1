"""Speed of the clock and the policies per event, as multiples of a bare binary heap.

Run with ``tox run -e bench``; ``docs/benchmarks.md`` has a table of results. All figures
of a table are of one run, the heap's among them, taken in turn, so that a slow or busy
machine slows both sides of every ratio.
"""

import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush
from statistics import median
from time import perf_counter

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from justitia.policy import Agent, Inference, Policy, Step, VirtualClock, create, names

SIZES = (10**3, 10**4, 10**5, 10**6)
EVENTS = 2_000
ROUNDS = 7

Work = Callable[[], None]
"""Performs `EVENTS` events and leaves the state as it found it."""
