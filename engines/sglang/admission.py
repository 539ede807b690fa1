"""Who may start, and who gives way when memory is short; imports SGLang.

SGLang admits a request where the prompt fits and, for it and all that run, a guess of
what they will still produce: a ratio that sinks as nothing goes wrong, of no more than
4096 tokens each. When the guess was too low it retracts requests.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sglang.srt.managers import schedule_policy

from justitia.engines.serving import Agents
from justitia.engines.serving.settings import ServingError
from justitia.engines.sglang import ADMISSIONS

_UNCLIPPED = 1 << 30
_LIMIT = "CLIP_MAX_NEW_TOKENS"
_CLIPPED = getattr(schedule_policy, _LIMIT)


def check_admission(admission: str) -> None:
    """Refuse an admission that SGLang cannot do.

    Raises
    ------
    ServingError
        Saying which there are.
    """
    if admission not in ADMISSIONS:
        raise ServingError(
            f"admission: must be one of {', '.join(ADMISSIONS)} with SGLang, which has "
            f"its own guess of what a request will need, not {admission!r}"
        )


class Reservation:
    """Has SGLang set aside all that a request may ever hold, so nothing gives way.

    SGLang counts what is free, cached prefixes included, and what a newcomer needs.
    What the running may still ask for is counted here instead of guessed, and nothing
    is clipped.

    Parameters
    ----------
    all
        Whether to; else SGLang guesses as it does.
    """

    def __init__(self, *, all: bool) -> None:
        self._all = all
        setattr(schedule_policy, _LIMIT, _UNCLIPPED if all else _CLIPPED)

    def growth(self, original: Callable[..., float], adder: Any, req: Any) -> float:
        """Return how many tokens a running request may still ask for."""
        if not self._all:
            return original(adder, req)
        return _missing(req) + adder.page_size - 1  # pages, begun and not filled

    def fits(self, adder: Any, req: Any) -> bool:
        """Return whether to ask SGLang, which has the last word.

        Where it caches no prefixes and a request cannot end early, SGLang counts on the
        running to end on time. Nothing is cached then, so the rest is plain.
        """
        if not self._all:
            return True
        prompt = len(req.origin_input_ids) + len(req.output_ids) - req.prefix_len
        return prompt + _missing(req) + adder.page_size < adder.rem_total_tokens


def let_it_start(scheduler: Any, req: Any) -> None:
    """See to it that SGLang can start a request once it is alone, or end it.

    SGLang (0.5.23) takes two that it never starts, and all behind them would wait for
    ever: one whose prompt leaves less than a page of the cache; and, where it caches no
    prefixes, one that cannot end early and may produce as much as SGLang lets it.
    """
    if getattr(scheduler, "is_hybrid_swa", False):  # two caches, and another count
        return
    page, prompt = scheduler.page_size, len(req.origin_input_ids)
    free = scheduler.max_total_num_tokens - page - 1
    if prompt > free:
        req.set_finish_with_abort(
            f"The prompt has {prompt:,} tokens; this server's cache takes {free:,}"
        )
    params = req.sampling_params
    if params.ignore_eos and getattr(scheduler.tree_cache, "disable", True):
        # What it has produced fills pages, too, where it has to come back.
        most = free - -(-prompt // page) * page - page
        params.max_new_tokens = min(params.max_new_tokens, max(0, most))


def _missing(req: Any) -> int:
    return max(0, req.sampling_params.max_new_tokens - len(req.output_ids))


def giving_way(agents: Agents, ids: Sequence[str | None]) -> list[int]:
    """Return the places of running requests, the first to give way last.

    Parameters
    ----------
    ids
        The policy's id of each, None for one that is not the policy's: it stays. One
        that the policy knows no more, since its agent was dismissed, goes first.

    Notes
    -----
    Complexity: O(r log r) with r running, when memory is short and only then.
    """
    ranks: dict[str | None, int] = {id: n for n, id in enumerate(agents.victims(), 1)}
    ranks[None] = len(ranks) + 1
    return sorted(range(len(ids)), key=lambda place: -ranks.get(ids[place], 0))
