"""A language model made on the spot: random weights, real files, a few hundred kB.

Real engines load it like any other model. What it says means nothing; how long it
takes, how much it holds and in what order requests are served does.
"""

from pathlib import Path

CONTEXT = 512
"""Tokens of prompt and output that the model takes."""
_VOCABULARY = 512
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
    "{% endfor %}assistant: "
)


def make_tiny_model(folder: Path, *, context: int = CONTEXT, seed: int = 7) -> Path:
    """Write a Llama of 2 layers and a byte-level tokenizer; return the folder.

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
            vocab_size=_VOCABULARY,
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
    config = LlamaConfig(
        vocab_size=_VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=context,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        # Engines take the type of the weights: in bfloat16 some kernels for CPUs with
        # AMX die of an illegal instruction on machines that only say they have it.
        torch_dtype=torch.float32,
    )
    disable_progress_bar()
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)
    return folder
