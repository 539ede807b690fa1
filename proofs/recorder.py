"""What an object with the verbs of a policy was told, and what it answered.

A `Recorder` stands between a check and the object, keeps the books of who waits and who
runs, and writes down every call as a line of Python. `replay` tells such lines to
another object.
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
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


QUESTIONS = ("peek", "order", "victims", "tag", "_check")
"""Verbs that change nothing."""


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
        self._tell("start", inference_id)
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
        except (Exception, SystemExit) as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(f"{verb} {_raised(error)}; a PolicyError was due") from None
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
        except (Exception, SystemExit) as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(f"{verb} {_raised(error)}") from None
        said = "" if answer is None and shown is None else (shown or _short)(answer)
        if verb == "start":
            said = ""
        if verb == "tag" and answer is None:  # which says nothing
            return None
        self._write(f"{call}  # {said}" if said else call, verb)
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
        except (Exception, SystemExit) as error:
            self._lines.append(f"{call}  # {_raised(error)}")
            raise Raised(f"{verb} {_raised(error)}") from None
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
        return Recorder(self._made(options), self.lines, called)

    def unseen(self) -> Recorder:
        """Make an object, the calls of which are not."""
        return Recorder(self._made({}))

    def _made(self, options: Mapping[str, object]) -> object:
        try:
            return self.make(**options)
        except (Exception, SystemExit) as error:
            raise Raised(f"making one {_raised(error)}") from None


def replay(
    history: Sequence[str], make: Callable[..., object]
) -> Iterator[tuple[str, str]]:
    """Tell new objects what a history says; yield each line as it comes out now.

    Parameters
    ----------
    history
        Lines as a `Session` writes them. They are read, not executed: only calls of
        verbs on the objects that the history makes.
    make
        Makes the objects.

    Yields
    ------
    (str, str)
        The line of the history, and the line as it is this time. They are equal where
        the object is deterministic.
    """
    objects: dict[str, Recorder] = {}
    for text in history:
        statement = ast.parse(text).body[0]
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            assert isinstance(statement.value, ast.Call)
            options = {
                str(keyword.arg): _value(keyword.value)
                for keyword in statement.value.keywords
            }
            objects[target.id] = Recorder(make(**options), [], target.id)
            yield text, text
            continue
        assert isinstance(statement, ast.Expr)
        call = statement.value
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Attribute)
        assert isinstance(call.func.value, ast.Name)
        recorder, verb = objects[call.func.value.id], call.func.attr
        if verb not in (*NEEDED, "pop", "refuse", "advance", "tag", "_check"):
            raise ValueError(f"no verb: {verb}")
        arguments = [_value(argument) for argument in call.args]
        lines: list[str] = recorder._lines
        del lines[:]
        with suppress(Broken):
            if _is_refusal(text):
                recorder.is_refused(verb, *arguments)
            else:
                getattr(recorder, verb)(*arguments)
        yield text, lines[0]


def _is_refusal(line: str) -> bool:
    """Return whether a line is of a call that a `PolicyError` came of."""
    return "  # raised PolicyError" in line


_VALUES: dict[str, Callable[..., object]] = {
    "Agent": Agent,
    "Inference": Inference,
    "Step": Step,
    "Fraction": Fraction,
}


def _value(node: ast.expr) -> object:
    """Return what an argument in a line stands for."""
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
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


def _id(answer: object) -> str:
    return _short(getattr(answer, "id", answer))


def _ids(answers: Sequence[object]) -> str:
    return f"[{', '.join(map(_id, answers))}]"


def _raised(error: BaseException) -> str:
    text = _short(error, str).partition("\n")[0]
    return f"raised {type(error).__name__}" + (f": {text}" if text else "")


def _short(value: object, text: Callable[[object], str] = repr) -> str:
    try:
        said = text(value)
    except Exception as error:  # whatever somebody's __repr__ does
        said = f"<{type(value).__name__}, whose text raised {type(error).__name__}>"
    return said if len(said) <= MOST_SHOWN else said[: MOST_SHOWN - 1] + "…"
