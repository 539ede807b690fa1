"""Numbers as the tables show them."""

import pytest

from justitia.tables import _mega


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "-"),
        (-1, "0.00"),
        (0, "0.00"),
        (-2e6, "-2.00"),
        (1_234_500_000, "1,234.50"),
    ],
)
def test_work_is_in_millions_and_zero_has_no_sign(
    value: float | None, told: str
) -> None:
    assert _mega(value) == told
