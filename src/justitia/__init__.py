"""Justitia: fair, memory-aware scheduling of task-parallel LLM agents.

The decision is in :mod:`justitia.policy`, which needs the standard library only.
Everything else carries events to it and its answer back.
"""

__version__ = "0.1.0"
