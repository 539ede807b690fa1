"""The longer form of B07: twenty seeds, one log."""

import pytest

from tests.policy.test_purity import run


@pytest.mark.parametrize("seeds", [range(10), range(10, 20)], ids=["first", "second"])
def test_B07_twenty_hash_seeds(seeds: range) -> None:
    logs = {run("-m", "tests.policy.history", PYTHONHASHSEED=str(s)) for s in seeds}
    logs.add(run("-m", "tests.policy.history", PYTHONHASHSEED="0"))
    assert len(logs) == 1
