"""The hooks: what SGLang does, told to the binding of the scheduler that does it."""

from collections.abc import Callable, Iterator
from pkgutil import resolve_name
from typing import Any

from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from justitia.engines.serving import ServingSettings
from justitia.engines.sglang import targets
from justitia.engines.sglang.binding import ATTRIBUTE, Binding, binding_of
from justitia.engines.sglang.control import answer, introduce
from justitia.engines.sglang.targets import SGLangChanged, Target

Hook = Callable[..., Any]


class Present:
    """What the process has: settings for the next scheduler, the last one's binding.

    SGLang has one scheduler in a process. What it does in other places than methods of
    the scheduler has no other way to it.
    """

    settings: ServingSettings | None = None
    binding: Binding | None = None


present = Present()


def bind(result: object, scheduler: Any) -> None:
    """Put the policy in place of SGLang's; its cache is there, its queue is empty."""
    assert present.settings is not None
    present.binding = Binding(scheduler, present.settings)
    setattr(scheduler, ATTRIBUTE, present.binding)


def prove(scheduler: Any) -> None:
    """Stop a scheduler that would say that it is ready, and is not as it should be."""
    check_applied(type(scheduler))
    binding_of(scheduler).prove()


def queued(result: object, scheduler: Any, req: Any, *_: Any, **__: Any) -> None:
    """Tell of a request that was to be put in the queue."""
    binding_of(scheduler).queued(req)


def look(scheduler: Any, running_batch: Any) -> None:
    """Tell that SGLang looks for whom to start."""
    binding_of(scheduler).look(running_batch)


def ask(original: Hook, adder: Any, req: Any, *rest: Any, **more: Any) -> Any:
    """Ask whether a request may be added to the next batch."""
    return _binding().ask(lambda: original(adder, req, *rest, **more), adder, req)


def growth(original: Hook, adder: Any, req: Any) -> float:
    """Ask how much a running request may still grow."""
    return _binding().growth(original, adder, req)


def run(scheduler: Any, batch: Any, *_: Any, **__: Any) -> None:
    """Tell of a batch that is fixed."""
    binding_of(scheduler).run(batch)


def result(original: Hook, scheduler: Any, batch: Any, *rest: Any, **more: Any) -> Any:
    """Tell what a batch has come to."""
    return binding_of(scheduler).result(
        lambda: original(scheduler, batch, *rest, **more), batch
    )


def victims(original: Hook, reqs: list[Any], *rest: Any, **more: Any) -> Any:
    """Ask who gives way, where SGLang can take whom it likes."""
    if more.get("allow_policy_sort") is False:
        return original(reqs, *rest, **more)
    return _binding().give_way(reqs)


def retracted(result: Any, *_: Any, **__: Any) -> None:
    """Tell of requests that were to be retracted, and are gone for good."""
    _binding().retracted(result[2])


def idle(result: object, scheduler: Any) -> None:
    """Tell that there was nothing to run."""
    binding_of(scheduler).idle()


def abort(original: Hook, scheduler: Any, recv_req: Any) -> Any:
    """Have requests end."""
    return binding_of(scheduler).abort_exactly(
        lambda: original(scheduler, recv_req), recv_req
    )


HOOKS: dict[Target, tuple[tuple[HookType, Hook], ...]] = {
    targets.BIND: ((HookType.AFTER, bind),),
    targets.PROVE: ((HookType.BEFORE, prove), (HookType.AFTER, introduce)),
    targets.STATE: ((HookType.AROUND, answer),),
    targets.QUEUE: ((HookType.AFTER, queued),),
    targets.LOOK: ((HookType.BEFORE, look),),
    targets.ADMIT: ((HookType.AROUND, ask),),
    targets.GROWTH: ((HookType.AROUND, growth),),
    targets.RUN: ((HookType.BEFORE, run),),
    targets.RESULT: ((HookType.AROUND, result),),
    targets.VICTIMS: ((HookType.AROUND, victims),),
    targets.RETRACT: ((HookType.AFTER, retracted),),
    targets.IDLE: ((HookType.AFTER, idle),),
    targets.ABORT: ((HookType.AROUND, abort),),
}


def register(settings: ServingSettings) -> None:
    """Register all of them, once a process, for policies of these settings.

    SGLang applies them when all plugins are loaded. Then, and whenever it does so, it
    is looked whether they are in place.
    """
    registered = present.settings is not None
    present.settings = settings
    if registered:
        return
    for target, hooks in HOOKS.items():
        for kind, hook in hooks:
            HookRegistry.register(target.path, hook, kind)
    HookRegistry.apply_hooks = _apply_and_check


_apply = HookRegistry.apply_hooks


def apply() -> None:
    """Have SGLang apply the hooks, and look whether they are in place.

    Raises
    ------
    SGLangChanged
        If they are not.
    """
    _apply()
    check_applied()


def _apply_and_check() -> None:
    """Do what `apply` does, where SGLang logs an exception and goes on."""
    try:
        apply()
    except SGLangChanged as error:
        raise SystemExit(f"justitia: {error}") from None


def check_applied(scheduler: type | None = None) -> None:
    """Look whether all hooks are in place.

    Parameters
    ----------
    scheduler
        The class of a scheduler, where it may be another than SGLang's.

    Raises
    ------
    SGLangChanged
        Naming every target without its hook.
    """
    missing = []
    for target, hooks in HOOKS.items():
        owner, _, name = target.path.rpartition(".")
        holder = scheduler
        if holder is None or owner != targets.SCHEDULER:
            holder = resolve_name(owner)
        inside = list(_inside(getattr(holder, name)))
        missing += [target.path for _, hook in hooks if hook not in inside]
    if missing:
        raise SGLangChanged(
            "SGLang did not put the policy's hooks in place, or another plugin took "
            f"them away: {', '.join(dict.fromkeys(missing))}"
        )


def _inside(function: Any) -> Iterator[object]:
    """Yield what a function holds on to, and the functions that it wraps do."""
    while function is not None:
        for cell in getattr(function, "__closure__", None) or ():
            yield cell.cell_contents
        function = getattr(function, "__wrapped__", None)


def _binding() -> Binding:
    assert present.binding is not None
    return present.binding
