"""What an object with the verbs of a policy was told, and what it answered.

A `Recorder` stands between a check and the object, keeps the books of who waits and who
runs, and writes down every call as a line of Python. `replay` tells such lines to
another object.
"""

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from math import isfinite
from pathlib import Path
from traceback import walk_tb
from typing import Any

from justitia.policy import Agent, Inference, Policy, PolicyError, Step
from justitia.proofs.plans import Number

MOST_SHOWN = 200
"""Letters of what an object raised, or answered, in a line."""
NEEDED = (
    "arrive", "submit", "start", "serve", "requeue", "finish", "leave", "revise",
    "peek", "order", "victims",
)  # fmt: skip
"""The verbs that there must be. `pop`, `refuse`, `advance`, `tag` and `_check` are used
where they are."""


VERBS = (*NEEDED, "pop", "refuse", "advance", "tag", "_check", "preempts")
QUESTIONS = ("peek", "order", "victims", "tag", "_check")
"""Verbs that change nothing."""


def same(told: Number, exact: Fraction) -> bool:
    """Return whether a number is the exact one; a float, to 9 digits."""
    if isinstance(told, float):
        if not isfinite(told):
            return False
        return abs(Fraction(told) - exact) <= max(abs(exact), Fraction(1)) / 10**9
    return bool(told == exact)


class Broken(Exception):
    """What was promised was not kept; says how."""


class Raised(Broken):
    """The object raised what it should not have."""


class Recorder(Policy):
    """An object with the verbs of a policy, every call of which is written down.

    Parameters
    ----------
    policy
        The object.
    lines
        Where to; several recorders may share it. None: nothing is written.
    called
        The name of the object in the lines.

    Attributes
    ----------
    agents, waiting, running
        Who is here, as the verbs leave it if the object does what it should.
    started
        What `start` answered last.
    """

    def __init__(
        self, policy: object, lines: list[str] | None = None, called: str = "policy"
    ) -> None:
        self._policy: Any = policy
        self._lines = [] if lines is None else lines
        self._called = called
        self.agents: dict[str, Agent] = {}
        self.waiting: dict[str, Inference] = {}
        self.running: dict[str, Inference] = {}
        self.started: object = None

    def has(self, verb: str) -> bool:
        """Return whether the object has a verb that is not needed."""
        return callable(getattr(self._policy, verb, None))

    @property
    def wrapped(self) -> object:
        """The object itself."""
        return self._policy

    # What happened ------------------------------------------------------------

    def arrive(self, agent: Agent) -> None:
        """Tell of a new agent."""
        self._tell("arrive", agent)
        self.agents[agent.id] = agent

    def submit(self, inference: Inference) -> None:
        """Put an inference in line."""
        self._tell("submit", inference)
        self.waiting[inference.id] = inference

    def start(self, inference_id: str) -> Inference:
        """Take an inference out of the line."""

        def unless_it(answer: object) -> str:
            return "" if id_of(answer) == inference_id else _short(answer)

        self.started = self._tell("start", inference_id, shown=unless_it)
        return self._started(inference_id)

    def pop(self) -> Inference | None:
        """Start the head of the line."""
        if not self.has("pop"):
            return super().pop()
        head = self._inference("pop", self._tell("pop", shown=_id))
        return None if head is None else self._started(head.id)

    def serve(self, step: Step) -> None:
        """Tell of a step."""
        self._tell("serve", step)

    def requeue(self, inference_id: str) -> None:
        """Put an inference back in line."""
        self._tell("requeue", inference_id)
        if inference_id not in self.running:
            raise Broken(f"{inference_id!r} was taken back, which is not running")
        self.waiting[inference_id] = self.running.pop(inference_id)

    def finish(self, inference_id: str) -> bool:
        """Tell that an inference ended."""
        answer = self._tell("finish", inference_id)
        self.waiting.pop(inference_id, None)
        self.running.pop(inference_id, None)
        return bool(answer)

    def leave(self, agent_id: str) -> bool:
        """Tell that an agent ended, or was cancelled with all it still had."""
        answer = self._tell("leave", agent_id)
        self.agents.pop(agent_id, None)
        for state in (self.waiting, self.running):
            for one in [i.id for i in state.values() if i.agent == agent_id]:
                del state[one]
        return bool(answer)

    def revise(self, agent_id: str, cost: Number) -> None:
        """Replace a predicted cost."""
        self._tell("revise", agent_id, cost)

    def refuse(self, inference_id: str) -> None:
        """Tell that the head did not fit."""
        if self.has("refuse"):
            self._tell("refuse", inference_id)

    def advance(self, seconds: Number) -> None:
        """Tell that time passed."""
        if self.has("advance"):
            self._tell("advance", seconds)

    def is_refused(self, verb: str, *arguments: object) -> bool:
        """Tell of something that is not allowed; return whether `PolicyError` came."""
        call = self._call(verb, arguments)
        try:
            answer = getattr(self._policy, verb)(*arguments)
        except PolicyError as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            return True
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(
                f"{verb} raised {said(error)}; a PolicyError was due"
            ) from None
        self._lines.append(call if answer is None else f"{call}  # {_short(answer)}")
        return False

    # What to do ---------------------------------------------------------------

    def peek(self) -> Inference | None:
        """Ask for the head of the line."""
        head = self._inference("peek", self._tell("peek", shown=_id))
        if head is not None and head.id not in self.waiting:
            raise Broken(f"peek() answered {head.id!r}, which is not waiting")
        return head

    def order(self) -> Iterator[Inference]:
        """Ask for the line, all of it."""
        return iter(self._walk("order"))

    def victims(self) -> Iterator[Inference]:
        """Ask for the running, all of them."""
        return iter(self._walk("victims"))

    def line(self) -> list[str]:
        """Return the ids of the line."""
        return [one.id for one in self._walk("order")]

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        """Ask whether one should give way to the other."""
        if not self.has("preempts"):
            return False
        return bool(self._tell("preempts", waiting, running))

    def tag(self, agent_id: str) -> Number | None:
        """Ask for a tag; None where there is no such thing."""
        if not self.has("tag"):
            return None
        answer: Number | None = self._tell("tag", agent_id)
        return answer

    def tags(self) -> dict[str, Number | None]:
        """Return the tags of all that are here."""
        return {name: self.tag(name) for name in self.agents} if self.has("tag") else {}

    def _check(self) -> None:
        if self.has("_check"):
            self._tell("_check")

    # How ----------------------------------------------------------------------

    def _tell(
        self,
        verb: str,
        *arguments: object,
        shown: Callable[[object], str] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever it answers
        call = self._call(verb, arguments)
        try:
            answer = getattr(self._policy, verb)(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(f"{verb} raised {said(error)}") from None
        text = "" if answer is None and shown is None else (shown or _short)(answer)
        if verb == "tag" and answer is None:  # which says nothing
            return None
        self._write(f"{call}  # {text}" if text else call, verb)
        return answer

    def _write(self, line: str, verb: str) -> None:
        """Write down a call, but not a question that was just asked and answered."""
        if verb not in QUESTIONS or self._lines[-1:] != [line]:
            self._lines.append(line)

    def _walk(self, verb: str) -> list[Inference]:
        """Ask for a walk; no longer than there are inferences, and one to tell."""
        most = len(self.waiting) + len(self.running) + 1

        def read() -> list[object]:
            walk = iter(getattr(self._policy, verb)())
            return [one for one, _ in zip(walk, range(most), strict=False)]

        call = self._call(verb, ())
        try:
            found = read()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(f"{verb} raised {said(error)}") from None
        self._write(f"{call}  # {_ids(found)}", verb)
        inferences = []
        for one in found:
            inference = self._inference(verb, one)
            if inference is None:
                raise Broken(f"{verb}() yielded None")
            inferences.append(inference)
        return inferences

    def _inference(self, verb: str, answer: object) -> Inference | None:
        if answer is not None and not isinstance(getattr(answer, "id", None), str):
            raise Broken(f"{verb}() answered {_short(answer)}, which is no Inference")
        return answer  # type: ignore[return-value]

    def _started(self, inference_id: str) -> Inference:
        if inference_id not in self.waiting:
            raise Broken(f"{inference_id!r} was started, which is not waiting")
        self.running[inference_id] = self.waiting.pop(inference_id)
        return self.running[inference_id]

    def _call(self, verb: str, arguments: Collection[object]) -> str:
        return f"{self._called}.{verb}({', '.join(map(_argument, arguments))})"


class Session:
    """One run of a check: the objects that it makes, and what they were told.

    Parameters
    ----------
    make
        The class, or a function that makes an object.
    name
        What `make` is called in the lines.
    """

    def __init__(self, make: Callable[..., object], name: str = "make") -> None:
        self.make, self.name = make, name
        self.lines: list[str] = []

    def policy(
        self, options: Mapping[str, object] | None = None, *, called: str = "policy"
    ) -> Recorder:
        """Make an object, with options, the calls of which are written down."""
        options = options or {}
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        self.lines.append(f"{called} = {self.name}({given})")
        return Recorder(_made(self.make, options), self.lines, called)

    def end_at(self, call: str) -> None:
        """Forget what came after a call was first made."""
        for number, line in enumerate(self.lines, 1):
            if line == call or line.startswith(f"{call}  # "):
                del self.lines[number:]
                return

    def unseen(self) -> Recorder:
        """Make an object, the calls of which are not."""
        return Recorder(_made(self.make, {}))


def _made(make: Callable[..., object], options: Mapping[str, object]) -> object:
    try:
        return make(**options)
    except (Exception, SystemExit) as error:
        raise Raised(f"making one raised {said(error)}") from None


def replay(
    history: Iterable[str], make: Callable[..., object]
) -> Iterator[tuple[str, str]]:
    """Tell new objects what a history says; yield each line as it comes out now.

    Parameters
    ----------
    history
        Lines as a `Session` writes them, indented or not; those that are blank, or
        nothing but a comment, are passed over. They are read, not executed: only calls
        of verbs on the objects that the history makes.
    make
        Makes the objects.

    Yields
    ------
    (str, str)
        The line of the history, and the line as it is this time. They are equal where
        the object is deterministic, and where another answers the same: numbers of
        another type are compared by value, floats to 9 digits.

    Raises
    ------
    ValueError
        If a line is no such call, naming it; also where lines were left out.
    """
    objects: dict[str, Recorder] = {}
    for number, line in enumerate(history, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            now = _replayed(text, objects, make)
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            why = f"lines were left out here; {_WHOLE}" if text[0] == "…" else error
            raise ValueError(f"line {number}, {text!r}: {why}") from None
        yield text, text if _same_line(text, now) else now


_WHOLE = "--json FILE, or Result.history, has all of them"


def _replayed(
    text: str, objects: dict[str, Recorder], make: Callable[..., object]
) -> str:
    """Tell what a line says; return the line as it is this time."""
    (statement,) = ast.parse(text).body
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Call(args=[], keywords=keywords)
        ):
            options = {str(word.arg): _value(word.value) for word in keywords}
            objects[name] = Recorder(_made(make, options), [], name)
            return text
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=verb), args=given
            )
        ):
            pass
        case _:
            raise ValueError("no call of a verb")
    if name not in objects:
        raise ValueError(f"nothing made {name}")
    if verb not in VERBS:
        raise ValueError(f"no verb: {verb}")
    recorder, arguments = objects[name], [_value(argument) for argument in given]
    lines = recorder._lines
    del lines[:]
    if verb == "pop" and not recorder.has("pop"):
        with suppress(Broken):
            head = recorder.pop()
            return f"{name}.pop()  # {_id(head)}"
        return lines[-1].replace(f"{name}.peek(", f"{name}.pop(")
    with suppress(Broken):
        if _is_refusal(text):
            recorder.is_refused(verb, *arguments)
        else:
            getattr(recorder, verb)(*arguments)
    return lines[0] if lines else text  # it has no such verb, or that says nothing


def _same_line(told: str, now: str) -> bool:
    """Return whether two lines are of the same call, and the answers are equal."""
    (call, _, answer), (call_now, _, answer_now) = (
        line.partition("  # ") for line in (told, now)
    )
    if ast.unparse(ast.parse(call)) != ast.unparse(ast.parse(call_now)):
        return False
    if answer == answer_now:
        return True
    try:
        before, after = (_number(said) for said in (answer, answer_now))
    except (ValueError, SyntaxError, TypeError, KeyError, ZeroDivisionError):
        return False
    if isinstance(before, float):
        before, after = after, before
    return isfinite(before) and same(after, Fraction(before))


def _number(text: str) -> Number:
    value = _value(ast.parse(text, mode="eval").body)
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool):
        return value
    raise ValueError(f"no number: {text}")


def _is_refusal(line: str) -> bool:
    """Return whether a line is of a call that a `PolicyError` came of."""
    return "  # raised PolicyError" in line


_VALUES: dict[str, Callable[..., object]] = {
    "Agent": Agent,
    "Inference": Inference,
    "Step": Step,
    "Fraction": Fraction,
}


def _value(node: ast.expr) -> Any:  # noqa: ANN401 - any of `_VALUES`, or a literal
    """Return what an argument in a line stands for."""
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _VALUES:
            raise ValueError(f"no value: {ast.unparse(node)}")
        named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
        return _VALUES[node.func.id](*map(_value, node.args), **named)
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    return ast.literal_eval(node)


def _argument(value: object) -> str:
    """Return an argument as Python, without what is as it is by default."""
    if isinstance(value, Agent):
        parts = [repr(value.id), repr(value.cost)]
        for field, default in (
            ("weight", 1), ("kind", ""), ("stage_costs", ()), ("inferences", None)
        ):  # fmt: skip
            if (given := getattr(value, field)) != default:
                parts.append(f"{field}={given!r}")
        return f"Agent({', '.join(parts)})"
    if isinstance(value, Inference):
        sizes = (value.prompt_tokens, value.decode_tokens)
        parts = [repr(part) for part in (value.id, value.agent, *sizes)]
        if value.stage:
            parts.append(f"stage={value.stage}")
        return f"Inference({', '.join(parts)})"
    if isinstance(value, Step):
        parts = [
            f"{field}={dict(counts)!r}"
            for field, counts in (("prefill", value.prefill), ("decode", value.decode))
            if counts
        ]
        return f"Step({', '.join(parts)})"
    return _short(value)


def id_of(answer: object) -> object:
    """Return the id of an answer, or the answer if it has none."""
    return getattr(answer, "id", answer)


def _id(answer: object) -> str:
    return _short(id_of(answer))


def _ids(answers: Sequence[object]) -> str:
    return f"[{', '.join(map(_id, answers))}]"


def _raised(error: BaseException) -> str:
    text = _short(error, str).partition("\n")[0]
    return f"raised {type(error).__name__}" + (f": {text}" if text else "")


def said(error: BaseException) -> str:
    """Return what was raised, and where in files that are not ours."""
    return _raised(error).removeprefix("raised ") + place(error)


def place(error: BaseException) -> str:
    """Return the last file and line, in brackets, that is none of ours; or nothing."""
    lines = [
        f" ({Path(frame.f_code.co_filename).name}:{line})"
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_THEIRS
    ]
    return lines[-1] if lines else ""


_NOT_THEIRS = ("justitia", "importlib")


def _short(value: object, text: Callable[[object], str] = repr) -> str:
    try:
        said = text(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever somebody's __repr__ does
        said = f"<{type(value).__name__}, whose text raised {type(error).__name__}>"
    return said if len(said) <= MOST_SHOWN else said[: MOST_SHOWN - 1] + "…"
