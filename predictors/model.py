"""What every learned model can do, whatever it is; and its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from justitia.predictors.base import Estimate
from justitia.predictors.folder import S3_CARD
from justitia.predictors.s3 import load_s3
from justitia.workloads.agents import AgentSpec


class Model(Protocol):
    """Tells the cost of an agent from its class and its text, and what it is."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What it says of itself: format, seed, versions of libraries, classes."""

    @property
    def seen(self) -> frozenset[str]:
        """Fingerprints of the groups that it was trained on; see `fingerprint`."""

    def estimate(
        self,
        kind: str,
        text: str,
        *,
        prompt_tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> Estimate:
        """Return the cost of an agent in KV token-time, from its class and its text."""

    def estimate_of(self, agent: AgentSpec) -> Estimate:
        """Return the cost of `agent`, looking at what is known when it arrives."""


def load(folder: str | Path) -> Model:
    """Read a model from its folder: a network for each class, or an S³.

    Raises
    ------
    ModelError
        If there is none, or one that this version cannot use.
    """
    if os.path.isfile(Path(folder) / S3_CARD):
        return load_s3(folder)
    from justitia.predictors import files  # noqa: PLC0415 - loads numpy

    return files.load(folder)
