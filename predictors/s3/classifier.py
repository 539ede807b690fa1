"""The network of S³: transformers' DistilBERT with a head that sorts into buckets.

This module loads torch and transformers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from justitia.policy.exact import shown
from justitia.predictors.errors import ModelError, TrainingError
from justitia.predictors.s3.tokens import FILE, FromFile, HashedWords, Tokens

RARE = 1e-12


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a DistilBERT, in the words of its configuration.

    Parameters
    ----------
    vocab_size
        Ids of tokens.
    dim, n_layers, n_heads, hidden_dim
        Width, depth, heads, and width inside a layer.
    max_position_embeddings
        The tokens of a text that are read, its first.

    Raises
    ------
    ModelError
        If one is not an int from 1 to `LARGEST` of it, or the heads do not divide the
        width.
    """

    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    hidden_dim: int
    max_position_embeddings: int

    def __post_init__(self) -> None:
        for name, most in LARGEST.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ModelError(
                    f"{name} of a DistilBERT must be 1 to {most:,}, not {shown(value)}"
                )
        if self.dim % self.n_heads:
            raise ModelError(
                f"n_heads of a DistilBERT must divide dim, {self.dim}, "
                f"not {self.n_heads}"
            )


LARGEST = {
    "vocab_size": 200_000,
    "dim": 1024,
    "n_layers": 24,
    "n_heads": 64,
    "hidden_dim": 4096,
    "max_position_embeddings": 4096,
}
"""What a file may ask for: beyond what was ever published."""
REAL = Size(30_522, 768, 6, 12, 3072, 512)
"""distilbert-base-uncased: 67 million weights."""
SMALL = Size(4_096, 128, 2, 4, 512, 128)
"""What is trained from nothing within a minute."""


@dataclass(slots=True)
class Classifier:
    """A DistilBERT and its tokenizer.

    Attributes
    ----------
    base
        The folder that its first weights came from; None for random ones.
    """

    network: DistilBertForSequenceClassification
    tokens: Tokens
    size: Size
    base: Path | None = None

    @classmethod
    def random(cls, size: Size, buckets: int, seed: int) -> "Classifier":
        """Return one with random weights, the same for the same seed."""
        with calm(seed):
            network = DistilBertForSequenceClassification(_config(size, buckets))
        return cls(network.eval(), HashedWords(size.vocab_size), size)

    @classmethod
    def pretrained(cls, folder: Path, buckets: int, seed: int) -> "Classifier":
        """Return one with the weights of a local folder and a new head.

        The folder is as transformers saves a DistilBERT: ``config.json``,
        ``model.safetensors`` and ``tokenizer.json``. Nothing is fetched, and weights in
        any other format are not looked at.

        Raises
        ------
        ModelError
            If it holds no such model.
        """
        tokens = FromFile.of(folder)
        try:
            config = DistilBertConfig.from_pretrained(folder, local_files_only=True)
            # Before weights of whatever size that asks for are made.
            size = Size(**{name: getattr(config, name) for name in LARGEST})
            config.num_labels = buckets
            with calm(seed):
                network = DistilBertForSequenceClassification.from_pretrained(
                    folder,
                    config=config,
                    local_files_only=True,
                    use_safetensors=True,
                    ignore_mismatched_sizes=True,
                )
        except ModelError:
            raise
        except Exception as error:  # transformers raises of all kinds
            raise ModelError(
                f"{folder}: no DistilBERT to start from: {error}"
            ) from None
        tokens.limit(size.vocab_size, folder / FILE)
        return cls(network.eval(), tokens, size, folder)

    def fit(
        self,
        texts: Sequence[str],
        shares: Sequence[Sequence[float]],
        weights: Sequence[float],
        *,
        seed: int,
        epochs: int,
        rate: float,
        batch: int = 16,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Learn what part of the outputs after a text falls into each bucket.

        Parameters
        ----------
        texts, shares
            Each text with the part of its outputs in each bucket.
        weights
            How many outputs it has. The loss is that of a row for each output.
        epochs, rate, batch
            Rounds over all texts, learning rate of AdamW, texts at once.
        progress
            Called with batches done and all there are.

        Raises
        ------
        TrainingError
            If the loss is not finite any more; the weights are of no use then.
        """
        most = self.size.max_position_embeddings
        ids = [self.tokens.ids(text, most) for text in texts]
        target = torch.tensor(shares, dtype=torch.float32)
        mass = torch.tensor(weights, dtype=torch.float32)
        mass /= max(float(mass.mean()), RARE)
        total = epochs * -(-len(ids) // batch)
        done = 0
        with calm(seed):
            self.network.train()
            optimiser = torch.optim.AdamW(self.network.parameters(), lr=rate)
            for _ in range(epochs):
                # Of like length together, so that little is padded.
                chunks = _chunks([len(one) for one in ids], batch)
                for chunk in chunks:
                    logits = self._logits([ids[place] for place in chunk])
                    loss = cross_entropy(logits, target[chunk], reduction="none")
                    mean = (loss * mass[chunk]).mean()
                    if not torch.isfinite(mean):
                        raise TrainingError(
                            f"the training of S³ went to a loss of {mean.item()}"
                        )
                    optimiser.zero_grad()
                    mean.backward()
                    torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                    optimiser.step()
                    done += 1
                    if progress is not None:
                        progress(done, total)
            self.network.eval()

    def buckets(self, texts: Sequence[str], batch: int = 32) -> list[int]:
        """Return the most likely bucket after each text."""
        most = self.size.max_position_embeddings
        ids = [self.tokens.ids(text, most) for text in texts]
        found: list[int] = []
        with calm(), torch.inference_mode():
            for start in range(0, len(ids), batch):
                logits = self._logits(ids[start : start + batch])
                found += logits.argmax(dim=1).tolist()
        return found

    def _logits(self, ids: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, ids))
        rows = [[*one, *[self.tokens.pad] * (width - len(one))] for one in ids]
        mask = [[1] * len(one) + [0] * (width - len(one)) for one in ids]
        logits: torch.Tensor = self.network(
            input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask)
        ).logits
        return logits


def _config(size: Size, buckets: int) -> DistilBertConfig:
    config = DistilBertConfig(**asdict(size))
    config.num_labels = buckets
    return config


def shapes(size: Size, buckets: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight, without making any."""
    with torch.device("meta"):
        network = DistilBertForSequenceClassification(_config(size, buckets))
    return {name: tuple(one.shape) for name, one in network.state_dict().items()}


def _chunks(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Return places in batches of like length, in random order."""
    places = torch.randperm(len(lengths)).tolist()
    places.sort(key=lambda place: lengths[place] // 16)
    chunks = [places[at : at + batch] for at in range(0, len(places), batch)]
    return [chunks[place] for place in torch.randperm(len(chunks)).tolist()]


@contextmanager
def calm(seed: int | None = None) -> Iterator[None]:
    """Compute on one core, from a seed, and leave torch as it was.

    On one core sums are added up in one order, so the same seed gives the same weights.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        torch.set_num_threads(1)
        try:
            if seed is not None:
                torch.manual_seed(seed % 2**63)
            yield
        finally:
            torch.set_num_threads(threads)
