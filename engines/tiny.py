"""A language model made on the spot: random weights, real files, of any size.

Real engines load it like any other model. What it says means nothing; how long it
takes, how much it holds and in what order requests are served does.
"""

from dataclasses import dataclass
from pathlib import Path

CONTEXT = 512
"""Tokens of prompt and output that the model takes."""
_LEARNED = 512
"""Tokens that its tokenizer has."""
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
    "{% endfor %}assistant: "
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a Llama: its sizes, and the type and the device that it is made with.

    Engines take the type of the weights: in bfloat16 some kernels for CPUs with AMX die
    of an illegal instruction on machines that only say they have it.
    """

    layers: int = 2
    hidden: int = 64
    inner: int = 128
    heads: int = 2
    kv_heads: int = 1
    head: int = 32
    vocabulary: int = _LEARNED
    dtype: str = "float32"
    device: str = "cpu"


TINY = Shape()
"""A few hundred kB, for a CPU."""
BILLION = Shape(
    layers=16,
    hidden=2048,
    inner=8192,
    heads=32,
    kv_heads=8,
    head=64,
    vocabulary=32_000,
    dtype="bfloat16",
    device="cuda",
)
"""About 1.1 billion weights, 2.2 GB, made on a GPU."""


def make_tiny_model(
    folder: Path, *, context: int = CONTEXT, seed: int = 7, shape: Shape = TINY
) -> Path:
    """Write a Llama, tiny by default, and a byte-level tokenizer; return the folder.

    Parameters
    ----------
    folder
        Made if it is not there. What is in it from an earlier call is kept.
    context
        The longest prompt and output together, in tokens.
    seed
        Of the weights.

    Notes
    -----
    Needs torch, transformers and tokenizers, which the engines bring.
    """
    import torch  # noqa: PLC0415 - the engines bring these three
    from tokenizers import (  # noqa: PLC0415
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        trainers,
    )
    from transformers import (  # noqa: PLC0415
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )
    from transformers.utils.logging import disable_progress_bar  # noqa: PLC0415

    if (folder / "config.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        ["the agent asked the engine for a token and the engine gave it one " * 4],
        trainers.BpeTrainer(
            vocab_size=_LEARNED,
            special_tokens=["<s>", "</s>", "<pad>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        chat_template=_TEMPLATE,
        model_max_length=context,
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    dtype = getattr(torch, shape.dtype)
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        torch_dtype=dtype,
    )
    disable_progress_bar()
    with torch.device(shape.device):
        model = LlamaForCausalLM(config).to(dtype)
    model.save_pretrained(folder)
    return folder
