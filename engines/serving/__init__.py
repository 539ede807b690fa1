"""What every real engine's adapter needs: whose a request is, and an agent's life.

Nothing here knows an engine. ``vllm/`` and ``sglang/`` turn their engine's events into
calls of `Agents`, and answer "who is next" from it; all deciding is the policy's.
"""

from justitia.engines.serving.agents import Agents
from justitia.engines.serving.claims import Claim, ClaimError, read_claim
from justitia.engines.serving.settings import ServingSettings, load_settings

__all__ = [
    "Agents",
    "Claim",
    "ClaimError",
    "ServingSettings",
    "load_settings",
    "read_claim",
]
