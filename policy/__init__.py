"""The decision: which waiting inference an engine starts next.

Standard library only; reads no clock, does no I/O, draws no random number. To put it
into a scheduler of your own, make a policy with `create` and tell it what happens with
the verbs of `Policy`; ``README.md`` has a complete example.
"""

from justitia.policy.agents import Agent, Inference, Step
from justitia.policy.base import Policy
from justitia.policy.clock import VirtualClock
from justitia.policy.costs import (
    COST_MODELS,
    ComputeTokens,
    CostModel,
    KVTokenTime,
    PaperKVTokenTime,
    ReservedTokenTime,
)
from justitia.policy.errors import PolicyError
from justitia.policy.justitia import SelectivePampering
from justitia.policy.ledger import Account, Entry
from justitia.policy.levels import AgentOrder, InferenceOrder
from justitia.policy.registry import create, names, options, register

__all__ = [
    "COST_MODELS",
    "Account",
    "Agent",
    "AgentOrder",
    "ComputeTokens",
    "CostModel",
    "Entry",
    "Inference",
    "InferenceOrder",
    "KVTokenTime",
    "PaperKVTokenTime",
    "Policy",
    "PolicyError",
    "ReservedTokenTime",
    "SelectivePampering",
    "Step",
    "VirtualClock",
    "create",
    "names",
    "options",
    "register",
]
