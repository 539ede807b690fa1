"""What Schemathesis is told of what a schema cannot say: its module of hooks."""

from importlib import import_module
from typing import Any

JOINT = ("n", "justitia.stage_costs", "stage_costs")
"""What is wrong with none of two fields, and with both together: prompts times choices,
and costs of stages that do not add up to a cost that is said elsewhere."""


def good_data_is_refused_for_what_two_fields_say_alone(
    _: Any, response: Any, case: Any
) -> None:
    """In place of ``positive_data_acceptance``, where two fields say one thing."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if response.status_code == 400:
        error = response.json()["error"]
        assert error["param"] in JOINT, error


import_module("schemathesis").check(good_data_is_refused_for_what_two_fields_say_alone)
