"""Complaints in the log: soon, seldom, and counted."""

import pytest

from justitia.engines.serving.complaints import SECONDS, Complaints
from tests.engines.serving.test_idle import Clock


def test_a_field_is_written_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    complaints = Complaints(clock)
    for _ in range(1_000):
        for field in ("cost", "agent"):
            complaints.take(field, f"{field} must be something else")
    assert len(caplog.records) == 2
    clock.time = SECONDS
    complaints.take("cost", "cost must be 5, not 6")
    assert caplog.messages[2:] == [
        "a request goes on without what cannot be used of it: cost must be 5, not 6 "
        "(999 more of cost since the last such line)"
    ]
    clock.time += SECONDS
    complaints.take("cost", "")
    assert caplog.messages[-1].endswith(": cost")


def test_b12_a_clock_that_is_set_back_silences_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    complaints = Complaints(clock)
    complaints.take("cost", "one")
    clock.time = -3600.0
    complaints.take("cost", "two")
    assert len(caplog.records) == 2
