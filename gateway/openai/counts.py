"""Whether inferences had the tokens that the workload says."""

from justitia.gateway.openai.answers import Answer
from justitia.workloads import InferenceSpec


class Counts:
    """Adds up what was to be and what was."""

    def __init__(self) -> None:
        self._all = self._other = self._uncounted = 0
        self._planned = [0, 0]
        self._real = [0, 0]

    def take(self, spec: InferenceSpec, prompt: int, answer: Answer) -> None:
        """Take note of an inference that ended."""
        planned = max(1, spec.prompt_tokens), max(1, spec.decode_tokens)
        real = prompt, answer.tokens
        self._all += 1
        self._other += planned != real
        self._uncounted += not answer.counted
        for each, (total, count) in enumerate(zip(planned, real, strict=True)):
            self._planned[each] += total
            self._real[each] += count

    def remarks(self, sent_again: int) -> tuple[str, ...]:
        """Return what there is to say of it, in sentences."""
        said = []
        if self._other:
            prompts, outputs = zip(self._real, self._planned, strict=True)
            said.append(
                f"{self._other:,} of {self._all:,} inferences had other tokens than "
                f"the workload says, in all {prompts[0]:,} of prompts for "
                f"{prompts[1]:,} and {outputs[0]:,} of outputs for {outputs[1]:,}: "
                "costs are of what they had, lag and reference finish of what the "
                "workload says."
            )
        if self._uncounted:
            said.append(
                f"Of {self._uncounted:,} inferences the server did not count the "
                "tokens: the parts in which they came are counted."
            )
        if sent_again:
            said.append(
                f"Requests sent again, since a connection was lost: {sent_again:,}."
            )
        return tuple(said)
