"""A run on a real engine that takes down what each step did and how long it took."""

from collections import deque
from typing import Any

from justitia.engines.calibration.samples import Sample
from justitia.engines.serving.run import LiveRun
from justitia.engines.serving.running import Running
from justitia.policy import Step

_NANO = 1e-9


class Recorded(LiveRun):
    """A `LiveRun` whose steps are taken down, as `sim` counts what is in them.

    Where an engine keeps two steps in flight, a turn that begins one ends with the
    result of the one before: its time is that one's.

    Parameters
    ----------
    samples
        Gets one for each step that ran something.

    Notes
    -----
    Complexity: O(requests in the step) a step, beside the run's own.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        samples: list[Sample],
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self._samples = samples
        self._computed: dict[str, int] = {}  # KV tokens by name, of those that run
        self._held = 0
        self._in_flight: deque[tuple[int, int, int]] = deque()
        self._began_one = False
        self._before = self._clock()

    def _happen(self) -> bool:
        if not self._live:
            self._before = self._clock()  # nothing was there to run until now
            self._in_flight.clear()
        return super()._happen()

    def served(self, step: Step) -> None:
        """Take down what a step does."""
        super().served(step)
        name = self._backend.name
        sequences = {name(each): 1 for each in step.decode}
        sequences |= {name(each): count for each, count in step.prefill.items()}
        for each, count in sequences.items():
            self._computed[each] = self._computed.get(each, 0) + count
        self._held += sum(sequences.values())
        prefill = sum(step.prefill.values())
        self._in_flight.append((prefill, len(sequences), self._held))
        self._began_one = True

    def requeued(self, request_id: str) -> None:
        """Take note of memory that is free again."""
        super().requeued(request_id)
        self._held -= self._computed.pop(self._backend.name(request_id), 0)

    def _gone(self, one: Running) -> None:
        self._held -= self._computed.pop(one.id, 0)

    def _run_step(self) -> None:
        self._began_one = False
        super()._run_step()
        if len(self._in_flight) < self._backend.depth and self._began_one:
            return  # it was only begun
        now = self._clock()
        if self._in_flight:
            did = self._in_flight.popleft()
            self._samples.append(Sample(*did, (now - self._before) * _NANO))
        self._before = now
