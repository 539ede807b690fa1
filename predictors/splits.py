"""Training and test agents, parted by group."""

from collections import defaultdict
from fractions import Fraction

from justitia.policy.exact import shown
from justitia.predictors.data import Data
from justitia.workloads.agents import AgentSpec, WorkloadError
from justitia.workloads.draws import shuffled, stream

MOST = 100
"""Training agents of a class, as in the paper."""
SHARE = 0.7
"""The largest part of a class that is trained on."""
SEED = 7


def split(
    data: Data, *, most: int = MOST, share: float = SHARE, seed: int = SEED
) -> tuple[Data, Data]:
    """Part agents into those to train on and those to be judged by.

    Of each class min(`most`, `share` of it) agents are to train on, or as many as whole
    groups come to without going over that: groups are taken in an order drawn with the
    seed, and one that no longer fits is left out. A group that is trained on in one
    class is not judged by in another. A class with one group only is trained on.

    Parameters
    ----------
    most
        At least 1.
    share
        From 0 to 1; at 1 with a large `most`, nothing is left to judge by.

    Returns
    -------
    (train, test)

    Raises
    ------
    WorkloadError
        If `most` or `share` is not in its range.
    """
    if type(most) is not int or most < 1:
        raise WorkloadError(f"training agents must be at least 1, not {shown(most)}")
    if not 0 < share <= 1:
        raise WorkloadError(f"the share must be above 0 to 1, not {shown(share)}")
    taken: set[str] = set()
    for kind in data.kinds():
        members: dict[str, list[AgentSpec]] = defaultdict(list)
        for agent in data.agents:
            if agent.kind == kind:
                members[data.groups[agent.id]].append(agent)
        size = sum(map(len, members.values()))
        left = max(1, min(most, int(Fraction(str(share)) * size)))
        order = shuffled(stream(seed, f"split/{kind}"), sorted(members))
        mine = {name for name in order if name in taken}
        left -= sum(len(members[name]) for name in mine)
        for name in order:
            if name not in mine and len(members[name]) <= left:
                mine.add(name)
                left -= len(members[name])
        taken |= mine or {order[0]}
    train = [a for a in data.agents if data.groups[a.id] in taken]
    test = [a for a in data.agents if data.groups[a.id] not in taken]
    return data.only(train), data.only(test)
