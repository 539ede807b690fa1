"""Fit the step times of the shipped presets to published profiles.

``python benchmarks/fit_presets.py PROFILES_DIR`` prints the coefficients and how far
off they are; ``--write`` also writes the preset files. PROFILES_DIR holds two public
data sets: ``splitwise_perf_model.csv`` and ``a100_llama2-7b_mlp.csv`` (Vidur). The
method, and what it cannot know, is in ``docs/presets.md``.
"""

import argparse
import csv
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from justitia.engines.calibration.fitting import least_squares

SPLITWISE = "splitwise_perf_model.csv"
VIDUR = "a100_llama2-7b_mlp.csv"
PRESETS = Path(__file__).resolve().parents[1] / "engines" / "sim" / "presets"

BLOCK = 16
MAX_SEQUENCES = 256
MAX_BATCHED = 2048
FP16 = 2  # bytes

# Splitwise's decode batches that are fitted: above, measured times leave the line.
FIT_BATCH = 32
# Vidur's operators do not include attention. Its arithmetic is added to the price of
# a prompt token as if every prompt were this long; docs/presets.md says what it misses.
ATTENTION_PROMPT = 1024
# Up to here an operator's time is that of reading its weights.
MEMORY_BOUND = 16
# Between these the time grows with the tokens: arithmetic is the limit.
COMPUTE_BOUND = (1024, 4096)
SIGNIFICANT = 4  # digits kept: far below the error, far above the noise of a solver

GEMMS = ("attn_pre_proj", "attn_post_proj", "mlp_up_proj", "mlp_down_proj")
SMALL = (
    "input_layernorm",
    "attn_rope",
    "post_attention_layernorm",
    "mlp_act",
    "add",
)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Model:
    """Shapes of a decoder, from its published configuration."""

    layers: int
    hidden: int
    kv_hidden: int
    inner: int
    vocabulary: int
    gated: bool = True

    @property
    def layer_weights(self) -> int:
        """Weights of the matrices of one layer."""
        attention = self.hidden * (2 * self.hidden + 2 * self.kv_hidden)
        return attention + (3 if self.gated else 2) * self.hidden * self.inner

    @property
    def bytes_read(self) -> int:
        """Bytes of weights that a step reads: the layers and the output head.

        The input embedding is left out, since a step reads a few of its rows.
        """
        head = self.hidden * self.vocabulary
        return FP16 * (self.layers * self.layer_weights + head)

    @property
    def token_flops(self) -> int:
        """Operations per token in the layers, without attention and the head."""
        return 2 * self.layers * self.layer_weights

    @property
    def kv_bytes(self) -> int:
        """Bytes of the key and the value of one token, over all layers and cards."""
        return 2 * FP16 * self.layers * self.kv_hidden

    def attention_flops(self, context: float) -> float:
        """Operations per token of attention over `context` tokens."""
        return 4 * self.layers * self.hidden * context


@dataclass(frozen=True, slots=True)
class Card:
    """Peaks from the vendor's data sheet (SXM boards), dense fp16 or bf16."""

    bandwidth: float  # bytes/s
    flops: float
    link: float  # bytes/s to the host, one way, as reached rather than as printed


MODELS = {
    "llama-7b": Model(32, 4096, 4096, 11008, 32000),
    "llama-13b": Model(40, 5120, 5120, 13824, 32000),
    "qwen2.5-32b": Model(64, 5120, 1024, 27648, 152064),
    "llama2-70b": Model(80, 8192, 1024, 28672, 32000),
    "bloom-176b": Model(70, 14336, 14336, 57344, 250880, gated=False),
}
CARDS = {
    "v100-16gb": Card(0.900e12, 125e12, 12e9),
    "a100-40gb": Card(1.555e12, 312e12, 25e9),
    "a100-80gb": Card(2.039e12, 312e12, 25e9),
    "h100-80gb": Card(3.350e12, 989e12, 25e9),
    # Bandwidth and half-precision peak of the H800 are those of the H100.
    "h800-80gb": Card(3.350e12, 989e12, 25e9),
}


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The linear step time, in milliseconds."""

    fixed: float
    prefill: float
    sequence: float
    kv: float


@dataclass(frozen=True, slots=True)
class Fit:
    """One Splitwise configuration, fitted."""

    coefficients: Coefficients
    decode: Array  # relative errors, signed: model / measured - 1
    prefill: Array
    beyond: Array  # of the rows that were not fitted


@dataclass(frozen=True, slots=True)
class Seven:
    """The Vidur profile, carried to the 40 GB card and fitted."""

    coefficients: Coefficients
    gemm_bandwidth: float  # share of the 80 GB card's peak
    slope: float  # ms a token where arithmetic is the limit
    sequence_share: float  # price of a sequence in prices of a prompt token
    small_per_layer: float  # ms
    errors: dict[str, Array]


@dataclass(frozen=True, slots=True)
class Shipped:
    """One preset file in the making."""

    name: str
    description: str
    source: str
    model: str
    card: str
    parallel: int
    blocks: int


SHIPPED = (
    Shipped(
        "llama-7b-a100-40g",
        "LLaMA-7B in fp16 on one A100-40GB",
        "fitted to Vidur's operator times of LLaMA-2-7B on an A100-80GB, carried to "
        "the 40 GB card by bandwidth; attention by the bandwidth that Splitwise's "
        "BLOOM reached",
        "llama-7b",
        "a100-40gb",
        1,
        2560,
    ),
    Shipped(
        "llama-13b-4xv100-16g",
        "LLaMA-13B in fp16 on four V100-16GB, tensor parallel",
        "not measured: scaled from Splitwise's Llama-2-70B on four A100-80GB by the "
        "bytes and operations of the model and the peaks of the cards",
        "llama-13b",
        "v100-16gb",
        4,
        2300,
    ),
    Shipped(
        "qwen2.5-32b-h800-80g",
        "Qwen2.5-32B in bf16 on one H800-80GB",
        "not measured: scaled from Splitwise's Llama-2-70B on two H100-80GB and from "
        "Vidur's A100 kernels by the bytes and operations of the model and the peaks "
        "of the cards",
        "qwen2.5-32b",
        "h800-80gb",
        1,
        1550,
    ),
)

# --- reading ------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def splitwise(folder: Path) -> dict[tuple[str, str, int], list[dict[str, str]]]:
    """Return Splitwise's rows by model, card and degree of tensor parallelism."""
    groups: dict[tuple[str, str, int], list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(folder / SPLITWISE):
        # The power-capped rows are the uncapped ones with prompt times times 1.3 and
        # the same token times: computed, not measured.
        if row["hardware"].endswith("-pcap"):
            continue
        parallel = int(row["tensor_parallel"])
        # A prompt phase of 64 x 512 tokens that takes an eighth of the time of 32 x 512
        # has not run as one batch (70B on two cards leaves no room for it).
        if parallel == 2 and row["batch_size"] == "64":
            continue
        groups[row["model"], row["hardware"], parallel].append(row)
    return dict(groups)


def vidur(folder: Path) -> dict[int, dict[str, float]]:
    """Return operator times in ms of one layer by tokens in the batch, one card."""
    samples: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(folder / VIDUR):
        if row["num_tensor_parallel_workers"] == "1":
            for operator in (*GEMMS, *SMALL, "emb"):
                time = float(row[f"time_stats.{operator}.median"])
                samples[int(row["num_tokens"])][operator].append(time)
    return {
        tokens: {operator: fmean(times) for operator, times in operators.items()}
        for tokens, operators in sorted(samples.items())
    }


# --- fitting ------------------------------------------------------------------------


def slope_through(
    points: npt.NDArray[Any],
    times: Array,
    known: Array | float,
    weights: Array,
) -> float:
    """Fit the one price that is left when `known` is already said of each time."""
    relative = points / times
    rest = 1 - known / times
    return float((weights * relative) @ rest / ((weights * relative) @ relative))


def fit_splitwise(rows: Iterable[dict[str, str]]) -> Fit:
    """Fit fixed, sequence and kv to the token times, then prefill to the prompt times.

    A token time is a step that holds the prompt and, on average, half of what is
    produced. A prompt phase is one step of batch x prompt tokens. In this order the
    price of a KV token comes from decoding alone, where it shows.
    """
    decode: list[tuple[float, ...]] = []
    prompts: list[tuple[float, ...]] = []
    token_times: list[float] = []
    prompt_times: list[float] = []
    for row in rows:
        batch, prompt = int(row["batch_size"]), int(row["prompt_size"])
        tokens = batch * prompt
        decode.append((1, 0, batch, tokens + batch * int(row["token_size"]) / 2))
        prompts.append((1, tokens, batch, tokens))
        token_times.append(float(row["token_time"]))
        prompt_times.append(float(row["prompt_time"]))
    held, token_time = np.array(decode, float), np.array(token_times)
    computed, prompt_time = np.array(prompts, float), np.array(prompt_times)
    few, short = held[:, 2] <= FIT_BATCH, computed[:, 1] <= MAX_BATCHED

    fixed, sequence, kv = least_squares(
        held[few][:, (0, 2, 3)], token_time[few], shares(held[few])
    )
    prefill = slope_through(
        computed[short, 1],
        prompt_time[short],
        computed[short] @ (fixed, 0, sequence, kv),
        shares(computed[short]),
    )

    solution = np.array((fixed, prefill, sequence, kv))
    token_error = held @ solution / token_time - 1
    prompt_error = computed @ solution / prompt_time - 1
    return Fit(
        Coefficients(*(float(value) for value in solution)),
        token_error[few],
        prompt_error[short],
        np.concatenate((token_error[~few], prompt_error[~short])),
    )


def shares(design: Array) -> Array:
    """Weights that give each distinct setting the same say, however often it ran."""
    _, inverse, counts = np.unique(
        design, axis=0, return_inverse=True, return_counts=True
    )
    return np.asarray(1 / counts[inverse.ravel()], dtype=np.float64)


def spacing(points: Array) -> Array:
    """Weights that make a sum over uneven points an average over their range."""
    gaps = np.gradient(points)
    return np.asarray(gaps / gaps.sum(), dtype=np.float64)


def fit_seven(profile: dict[int, dict[str, float]], kv: float) -> Seven:
    """Fit LLaMA-7B on the 40 GB card.

    `kv` is its price of a KV token in ms, which the profile does not hold.
    """
    model, card = MODELS["llama-7b"], CARDS["a100-40gb"]
    slower = CARDS["a100-80gb"].bandwidth / card.bandwidth
    few = [operators for tokens, operators in profile.items() if tokens <= MEMORY_BOUND]
    floor = {name: fmean(times[name] for times in few) for name in GEMMS}
    read = FP16 * model.layer_weights / (sum(floor.values()) / 1e3)
    gemm_bandwidth = read / CARDS["a100-80gb"].bandwidth
    head = 1e3 * FP16 * model.hidden * model.vocabulary
    head /= gemm_bandwidth * card.bandwidth

    def step(tokens: int) -> float:
        times = profile[tokens]
        # A matrix product waits for its weights or for the arithmetic: only the first
        # is slower on the 40 GB card. The other operators only move data.
        products = sum(max(times[name], slower * floor[name]) for name in GEMMS)
        others = slower * sum(times[name] for name in SMALL)
        return model.layers * (products + others) + slower * times["emb"] + head

    batches = np.array([tokens for tokens in profile if tokens <= MAX_SEQUENCES])
    chunks = np.array([tokens for tokens in profile if tokens <= MAX_BATCHED])
    decode = np.array([step(int(tokens)) for tokens in batches])
    prefill = np.array([step(int(tokens)) for tokens in chunks])
    # Batches of all sizes weigh the same on a logarithmic scale, since the cache holds
    # some twenty to a hundred sequences; chunks by their tokens, which is what a step's
    # budget is shared out in.
    fixed, sequence = least_squares(
        np.column_stack((np.ones(len(batches)), batches)),
        decode,
        spacing(np.log(batches)),
    )
    per_token = slope_through(
        chunks, prefill, fixed + sequence, spacing(chunks.astype(float))
    )
    decode_error = (fixed + sequence * batches) / decode - 1
    prefill_error = (fixed + sequence + per_token * chunks) / prefill - 1

    # Prompt attention, at the speed of the matrix products in long prompts.
    slope = (step(COMPUTE_BOUND[1]) - step(COMPUTE_BOUND[0])) / (
        COMPUTE_BOUND[1] - COMPUTE_BOUND[0]
    )
    attention = model.attention_flops(ATTENTION_PROMPT / 2) * slope / model.token_flops
    regions: dict[str, Array] = {}
    for low, high in ((1, 64), (65, 128), (129, 256)):
        chosen = (low <= batches) & (batches <= high)
        regions[f"decode, {low} to {high} sequences"] = decode_error[chosen]
    for low, high in ((1, 64), (65, 256), (257, 1024), (1025, 2048)):
        chosen = (low <= chunks) & (chunks <= high)
        regions[f"prefill, {low} to {high} tokens"] = prefill_error[chosen]
    return Seven(
        Coefficients(
            float(fixed), float(per_token + attention), float(sequence), float(kv)
        ),
        gemm_bandwidth,
        slope,
        float(sequence / per_token),
        fmean(sum(times[name] for name in SMALL) for times in few),
        regions,
    )


# --- scaling ------------------------------------------------------------------------


def weights_ms(model: Model, card: Card, parallel: int, share: float) -> float:
    """Milliseconds to read the weights of a step at `share` of the peak bandwidth."""
    return 1e3 * model.bytes_read / parallel / (share * card.bandwidth)


def scaled_fixed(
    fit: Fit,
    source: tuple[str, str, int],
    model: Model,
    card: Card,
    share: float,
) -> float:
    """Carry a fixed time to another model and card at the same degree of parallelism.

    Reading the weights goes with bytes over bandwidth. What is left of the source's
    fixed time (communication, launches, the host) goes with the number of layers.
    """
    name, hardware, parallel = source
    origin = MODELS[name]
    left = fit.coefficients.fixed
    left -= weights_ms(origin, CARDS[hardware], parallel, share)
    return (
        weights_ms(model, card, parallel, share) + left / origin.layers * model.layers
    )


def flops_share(fit: Fit, source: tuple[str, str, int]) -> float:
    """Share of the peak that a source's prompt tokens reach, attention included."""
    name, hardware, parallel = source
    done = MODELS[name].token_flops / parallel / (fit.coefficients.prefill / 1e3)
    return done / CARDS[hardware].flops


def prefill_ms(model: Model, card: Card, parallel: int, share: float) -> float:
    return 1e3 * model.token_flops / parallel / (share * card.flops)


def kv_ms(model: Model, card: Card, parallel: int, share: float) -> float:
    return 1e3 * model.kv_bytes / parallel / (share * card.bandwidth)


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that is printed and written."""

    fits: dict[tuple[str, str, int], Fit]
    seven: Seven
    kv_share: float
    presets: dict[str, Coefficients]


def compute(folder: Path) -> Result:
    fits = {key: fit_splitwise(rows) for key, rows in splitwise(folder).items()}
    # Of the measured models only BLOOM holds enough KV bytes a token for the slope to
    # be bandwidth: see docs/presets.md.
    bloom = ("bloom-176b", "a100-80gb", 8)
    kv_share = (
        1e3 * MODELS[bloom[0]].kv_bytes / bloom[2] / fits[bloom].coefficients.kv
    ) / CARDS[bloom[1]].bandwidth

    small, big = MODELS["llama-7b"], CARDS["a100-40gb"]
    seven = fit_seven(vidur(folder), kv_ms(small, big, 1, kv_share))
    presets = {"llama-7b-a100-40g": seven.coefficients}

    model, card = MODELS["llama-13b"], CARDS["v100-16gb"]
    source = ("llama2-70b", "a100-80gb", 4)
    prefill = prefill_ms(model, card, 4, flops_share(fits[source], source))
    presets["llama-13b-4xv100-16g"] = Coefficients(
        scaled_fixed(fits[source], source, model, card, seven.gemm_bandwidth),
        prefill,
        seven.sequence_share * prefill,
        kv_ms(model, card, 4, kv_share),
    )

    model, card = MODELS["qwen2.5-32b"], CARDS["h800-80gb"]
    source = ("llama2-70b", "h100-80gb", 2)
    prefill = prefill_ms(model, card, 1, flops_share(fits[source], source))
    presets["qwen2.5-32b-h800-80g"] = Coefficients(
        # One card: no communication, so the small kernels of Vidur stand for the rest.
        weights_ms(model, card, 1, seven.gemm_bandwidth)
        + model.layers * seven.small_per_layer,
        prefill,
        seven.sequence_share * prefill,
        kv_ms(model, card, 1, kv_share),
    )
    return Result(fits, seven, kv_share, presets)


# --- printing and writing -----------------------------------------------------------


def rounded(value: float) -> int:
    """Whole picoseconds of `value` milliseconds, to `SIGNIFICANT` digits."""
    picoseconds = value * 1e9
    digits = SIGNIFICANT - 1 - math.floor(math.log10(picoseconds))
    return round(round(picoseconds, digits))


def fields_of(shipped: Shipped, coefficients: Coefficients) -> dict[str, Any]:
    """Return the preset's fields, in the order of the file."""
    model, card = MODELS[shipped.model], CARDS[shipped.card]
    swap = 1e3 * model.kv_bytes / shipped.parallel / card.link
    return {
        "name": shipped.name,
        "description": shipped.description,
        "source": shipped.source,
        "capacity_tokens": shipped.blocks * BLOCK,
        "block_size": BLOCK,
        "max_num_seqs": MAX_SEQUENCES,
        "max_num_batched_tokens": MAX_BATCHED,
        "step_fixed_ps": rounded(coefficients.fixed),
        "step_prefill_token_ps": rounded(coefficients.prefill),
        "step_sequence_ps": rounded(coefficients.sequence),
        "step_kv_token_ps": rounded(coefficients.kv),
        "swap_token_ps": rounded(swap),
    }


def toml(fields: dict[str, Any]) -> str:
    """Return the file's text; strings hold nothing that TOML would escape."""
    lines = ["# Written by benchmarks/fit_presets.py; docs/presets.md says how.", ""]
    for key, value in fields.items():
        if key in ("capacity_tokens", "step_fixed_ps"):
            lines.append("")
        lines.append(
            f"{key} = " + (f'"{value}"' if isinstance(value, str) else f"{value:_}")
        )
    return "\n".join(lines) + "\n"


def files(result: Result) -> dict[str, str]:
    """Return the text of every preset file by its name."""
    return {
        f"{shipped.name}.toml": toml(fields_of(shipped, result.presets[shipped.name]))
        for shipped in SHIPPED
    }


def percent(errors: Array) -> str:
    """Mean of the errors' sizes and the worst with its sign."""
    worst = float(errors[np.argmax(np.abs(errors))])
    return f"{np.abs(errors).mean():6.1%} {worst:+7.1%}"


def label(source: tuple[str, str, int]) -> str:
    return f"{source[0]} {source[1]} x{source[2]}"


def report(result: Result) -> str:
    """Return the tables."""
    out: list[str] = []
    write = out.append
    write("Splitwise: fixed ms, us a prompt token, us a sequence, us a KV token;")
    write("mean and worst relative error (model against row)")
    write(
        f"{'source':23} {'fixed':>6} {'prompt':>6} {'seq':>5} {'kv':>6}"
        f" {'decode':>14} {'prefill':>14} {'not fitted':>15}"
    )
    for source, fit in result.fits.items():
        c = fit.coefficients
        write(
            f"{label(source):23} {c.fixed:6.2f} {c.prefill * 1e3:6.1f} "
            f"{c.sequence * 1e3:5.0f} {c.kv * 1e3:6.3f} {percent(fit.decode)} "
            f"{percent(fit.prefill)} {percent(fit.beyond)}"
        )
    seven = result.seven
    write("")
    write("Vidur LLaMA-2-7B, carried to the A100-40GB: mean and worst relative error")
    for region, errors in seven.errors.items():
        write(f"{region:28} {len(errors):3} rows {percent(errors)}")
    write("")
    flops = prefill_ms(MODELS["llama-7b"], CARDS["a100-80gb"], 1, 1) / seven.slope
    write("Shares of a peak, and others that the presets are made of")
    write(f"{seven.gemm_bandwidth:6.3f} of the bandwidth, reading weights (Vidur)")
    write(f"{result.kv_share:6.3f} of the bandwidth, reading KV (BLOOM, A100)")
    write(
        f"{flops:6.3f} of the arithmetic, prompts of {COMPUTE_BOUND[0]} to "
        f"{COMPUTE_BOUND[1]}: {1e3 * seven.slope:.1f} us a token (Vidur)"
    )
    for source in (("llama2-70b", "a100-80gb", 4), ("llama2-70b", "h100-80gb", 2)):
        share = flops_share(result.fits[source], source)
        write(f"{share:6.3f} of the arithmetic, the prompt column of {label(source)}")
    write(f"{seven.sequence_share:6.3f} prompt tokens' time for a sequence (Vidur)")
    write(
        f"{1e3 * seven.small_per_layer:6.1f} us a layer for the small kernels (Vidur)"
    )
    for source, fit in result.fits.items():
        origin, of = MODELS[source[0]], label(source)
        left = fit.coefficients.fixed - weights_ms(
            origin, CARDS[source[1]], source[2], seven.gemm_bandwidth
        )
        write(f"{1e3 * left / origin.layers:6.1f} us a layer beside weights, {of}")
    write("")
    write("Scaling rule against what Splitwise measured: predicted / fitted")
    write(f"{'from':25} {'to':25} {'fixed':>6} {'prompt':>6} {'kv':>6}")
    for start, goal in CHECKS:
        fit, other = result.fits[start], result.fits[goal].coefficients
        model, card = MODELS[goal[0]], CARDS[goal[1]]
        fixed = scaled_fixed(fit, start, model, card, seven.gemm_bandwidth)
        prefill = prefill_ms(model, card, goal[2], flops_share(fit, start))
        kv = kv_ms(model, card, goal[2], result.kv_share)
        write(
            f"{label(start):25} {label(goal):25} {fixed / other.fixed:6.2f} "
            f"{prefill / other.prefill:6.2f} {kv / other.kv:6.2f}"
        )
    write("")
    write(
        "Presets: ps; then ms of four steps: decode of 1 sequence (500 KV tokens), of"
    )
    write(
        "60 filling 88 % of the cache, of 256 in a full cache, and a prefill of 2,048"
    )
    write(
        f"{'preset':22} {'fixed':>14} {'prefill':>11} {'sequence':>10} {'kv':>7}"
        f" {'swap':>10} {'1':>5} {'60':>5} {'256':>5} {'2048':>6}"
    )
    for shipped in SHIPPED:
        f = fields_of(shipped, result.presets[shipped.name])
        fixed_ps, per_token = f["step_fixed_ps"], f["step_prefill_token_ps"]
        sequence, kv_ps = f["step_sequence_ps"], f["step_kv_token_ps"]
        full = f["capacity_tokens"]
        steps = (
            fixed_ps + sequence + 500 * kv_ps,
            fixed_ps + 60 * sequence + full * 88 // 100 * kv_ps,
            fixed_ps + 256 * sequence + full * kv_ps,
            fixed_ps + 2048 * per_token + sequence + 2048 * kv_ps,
        )
        write(
            f"{shipped.name:22} {fixed_ps:14,} {per_token:11,} {sequence:10,} "
            f"{kv_ps:7,} {f['swap_token_ps']:10,} "
            + " ".join(
                f"{t / 1e9:{w}.1f}" for t, w in zip(steps, (5, 5, 5, 6), strict=True)
            )
        )
    return "\n".join(out) + "\n"


CHECKS = (
    (("llama2-70b", "a100-80gb", 2), ("llama2-70b", "h100-80gb", 2)),
    (("llama2-70b", "a100-80gb", 4), ("llama2-70b", "h100-80gb", 4)),
    (("llama2-70b", "a100-80gb", 8), ("llama2-70b", "h100-80gb", 8)),
    (("llama2-70b", "a100-80gb", 8), ("bloom-176b", "a100-80gb", 8)),
    (("llama2-70b", "h100-80gb", 8), ("bloom-176b", "h100-80gb", 8)),
    (("llama2-70b", "a100-80gb", 8), ("bloom-176b", "h100-80gb", 8)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the shipped presets.")
    parser.add_argument("profiles", type=Path, help="folder of the published profiles")
    parser.add_argument("--write", action="store_true", help="write the preset files")
    arguments = parser.parse_args()
    result = compute(arguments.profiles)
    print(report(result), end="")
    if arguments.write:
        for name, text in files(result).items():
            (PRESETS / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
