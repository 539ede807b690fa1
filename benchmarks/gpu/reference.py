"""What a model says greedily by transformers, which no engine has a part in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POSITIONS = 4
_CLEAR = {"cpu": 0.02, "cuda": 0.1}
"""How far the first token must be ahead of the second, in standard deviations of all:
below that the kernels of an engine may rightly say the other."""


@dataclass(frozen=True, slots=True)
class Said:
    """The tokens that follow a prompt, up to the first that is not clear."""

    prompt: list[int]
    tokens: list[int]


def prompts(count: int = 8, length: int = 12) -> list[list[int]]:
    """Return prompts that begin differently.

    >>> prompts(2, 3)
    [[5, 22, 39], [36, 53, 70]]
    """
    return [
        [5 + (31 * number + 17 * place) % 490 for place in range(length)]
        for number in range(count)
    ]


def reference(model: Path, device: str) -> list[Said]:
    """Return what transformers says to `prompts`."""
    import torch  # noqa: PLC0415 - engines bring these
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    with torch.device(device):
        llama = AutoModelForCausalLM.from_pretrained(model, dtype="auto").to(device)
    found = []
    with torch.no_grad():
        for prompt in prompts():
            ids, tokens = list(prompt), list[int]()
            while len(tokens) < POSITIONS:
                logits = llama(torch.tensor([ids], device=device)).logits[0, -1].float()
                first, second = logits.topk(2).values.tolist()
                if first - second < _CLEAR[device] * float(logits.std()):
                    break
                tokens.append(int(logits.argmax()))
                ids.append(tokens[-1])
            found.append(Said(prompt, tokens))
    return found


def compared(said: Sequence[Said], outputs: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return how many tokens are the same, and how many could be compared.

    Those behind one that differs are not: they follow another text.
    """
    same = of = 0
    for one, output in zip(said, outputs, strict=True):
        for mine, theirs in zip(one.tokens, output, strict=False):
            of += 1
            if mine != theirs:
                break
            same += 1
    return same, of
