"""What of SGLang the adapter hooks and relies on.

A version that changes any of it fails here by name, as a server does when it starts.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from justitia.engines.sglang.targets import (
    HOOKED,
    LAUNCH,
    RELIED_ON,
    SGLangChanged,
    Target,
    check_targets,
)
from justitia.engines.sglang.version import BELOW, OLDEST, check_version
from tests.engines.sglang.stepped import stepped


def test_the_version_is_one_that_the_adapter_knows() -> None:
    assert (OLDEST, BELOW) == ((0, 5, 16), (0, 6, 0))
    assert check_version().startswith("0.5.")


@pytest.mark.parametrize("target", [*HOOKED, LAUNCH, *RELIED_ON], ids=lambda t: t.path)
def test_a_target(target: Target) -> None:
    assert target.fault() is None


def test_every_fault_is_named() -> None:
    first, second = HOOKED[:2]
    with pytest.raises(SGLangChanged) as caught:
        check_targets(
            [
                replace(first, path=first.path + "_renamed"),
                replace(second, parameters=("self", "tokens")),
                Target("sglang.srt.nothing.Nobody.does"),
                Target("sglang.srt.constants.HEALTH_CHECK_RID_PREFIX", ()),
            ]
        )
    told = str(caught.value)
    assert f"{first.path}_renamed is not there" in told
    assert f"{second.path} takes (self)" in told
    assert "the first must be (self, tokens)" in told
    assert "sglang.srt.nothing.Nobody.does is not there" in told
    assert "HEALTH_CHECK_RID_PREFIX is no function" in told
    assert check_version() in told


def test_what_a_scheduler_and_its_requests_have(model: Path) -> None:
    """Attributes that no signature shows."""
    with stepped(model, overlap=True) as scheduler:
        for name in (
            "server_args", "waiting_queue", "running_batch", "last_batch",
            "result_queue", "chunked_req", "forward_ct", "max_total_num_tokens",
            "tree_cache", "enable_hierarchical_cache", "enable_priority_scheduling",
            "enable_lora", "enable_overlap", "is_generation", "grammar_manager",
            "is_hybrid_swa", "page_size",
        ):  # fmt: skip
            assert hasattr(scheduler, name), name
        assert type(scheduler.waiting_queue) is list
        seen: dict[str, Any] = {}

        def script() -> Any:
            scheduler.send("a", 8, 4)
            (req,) = scheduler.waiting_queue
            seen["line"] = dict(vars(req))
            yield
            seen["batch"] = scheduler.last_batch
            seen["run"] = dict(vars(req))

        scheduler.play(script())
    for name in (
        "rid", "session", "session_id", "routing_key", "origin_input_ids", "output_ids",
        "sampling_params", "finished_reason", "to_finish", "cached_tokens",
        "prefix_len",
    ):  # fmt: skip
        assert name in seen["line"], name
    for name in ("reqs", "forward_mode", "chunked_req", "decoding_reqs", "extend_lens"):
        assert hasattr(seen["batch"], name), name
    assert seen["batch"].spec_algorithm.is_none()
    assert seen["run"]["cached_tokens"] == 0
