"""Tiny random language models, made in a second: a Llama, a GPT-2, a T5 and their word-level tokenizer.

Their text is nonsense, but always the same nonsense. Everything else is as in real models: padding, chat templates,
end-of-text tokens, quantisation, streaming.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEXT = """
the river city king queen won lost founded wrote in of and was is on at by for a old new big small red blue
one two three four five six seven eight nine ten who what when where why how . , ? ! : ; answer question
passage context source Stop stop User Assistant user system assistant Bucharest Danube Ada Byron Paris France
"""
WORDS = TEXT.split()
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
CHAT_TEMPLATE = """{{ bos_token }}{% for message in messages -%}
{% if message['role'] == 'system' and not loop.first %}
{{ raise_exception('a system message must come first') }}{% endif -%}
{{ message['role'] }} : {{ message['content'] }} ; {% endfor -%}
{% if add_generation_prompt %}answer :{% endif %}"""
TOOL_TEMPLATE = """{{ bos_token }}{% if tools %}source {{ tools | tojson }} ; {% endif %}
{%- for message in messages -%}{{ message['role'] }} : {{ message['content'] }}
{%- for call in message.tool_calls or [] %} {{ call.function.name }} {{ call.function.arguments.query }}
{%- endfor %} ; {% endfor -%}
{% if enable_thinking is defined and not enable_thinking %}stop {% endif %}answer :"""
NO_SYSTEM_TEMPLATE = """{{ bos_token }}{% for message in messages -%}
{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif -%}
{{ message['role'] }} : {{ message['content'] }} ; {% endfor %}answer :"""
DEAF_TEMPLATE = """{{ bos_token }}{% for message in messages if message['role'] != 'system' -%}
{{ message['role'] }} : {{ message['content'] }} ; {% endfor %}answer :"""


def save_tokenizer(
    folder: Path,
    *,
    chat_template: str | None = None,
    pad: bool = True,
    adds_eos: bool = False,
    more: Sequence[str] = (),
    bytewise: bool = False,
) -> int:
    """Write a tokenizer of words into ``folder``, or of single bytes, which can reproduce every text; return its
    vocabulary's size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet()) if bytewise else WORDS
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *letters, *more])}
    if bytewise:
        words = Tokenizer(models.BPE(vocabulary, []))
        words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        words.decoder = decoders.ByteLevel()
    else:
        words = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
        words.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("isolated")]
        )
    words.add_tokens([piece for piece in more if piece == "<think>"])  # one token in a prompt too
    words.add_special_tokens(
        [piece for piece in more if piece.startswith(("[", "<|")) and piece[-1] in "]>"]
    )
    frame = "$A </s>" if adds_eos else "<s> $A"
    words.post_processor = processors.TemplateProcessing(
        single=frame, special_tokens=[("<s>", vocabulary["<s>"]), ("</s>", vocabulary["</s>"])]
    )
    names: dict[str, Any] = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    if pad:
        names["pad_token"] = "<pad>"
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **names)
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    return len(vocabulary)


def save_llama(
    folder: Path,
    *,
    hidden: int = 64,
    layers: int = 2,
    positions: int = 128,
    chat: bool | str = False,
    pad: bool = True,
    ends: bool = False,
    seed: int = 7,
    bytewise: bool = False,
) -> Path:
    """Write a random Llama. It never stops by itself unless ``ends``."""
    from transformers import LlamaConfig, LlamaForCausalLM

    template = CHAT_TEMPLATE if chat is True else chat or None
    vocabulary = save_tokenizer(folder, chat_template=template, pad=pad, bytewise=bytewise)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        pad_token_id=0 if pad else None,
        bos_token_id=2,
        eos_token_id=3,
    )
    return _save(LlamaForCausalLM, config, folder, seed, ends)


def save_parrot(folder: Path, pieces: Sequence[str], *, chat: str = TOOL_TEMPLATE) -> Path:
    """Write a Llama that always answers with ``pieces`` (all different), separated by spaces, and then stops.

    Its embeddings are unit vectors, its attention has no effect, and its head knows the successor of each piece.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    size = save_tokenizer(folder, chat_template=chat, more=pieces)
    wide = -(-size // 8) * 8
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=wide,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
    )
    model = LlamaForCausalLM(config)
    first, end = size - len(pieces), SPECIAL.index("</s>")
    with torch.no_grad():
        for layer in model.model.layers:
            for parameter in layer.parameters():
                parameter.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size, wide))
        head = torch.zeros(size, wide)
        head[first, :first] = 1.0
        for token in range(first, size):
            head[token + 1 if token + 1 < size else end, token] = 1.0
        model.lm_head.weight.copy_(head)
    model.save_pretrained(folder)
    return folder


def save_gpt2(folder: Path, *, positions: int = 48, seed: int = 7) -> Path:
    """Write a random GPT-2. It has learned positions, so one beyond the window is an index error."""
    from transformers import GPT2Config, GPT2LMHeadModel

    vocabulary = save_tokenizer(folder)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=positions,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=2,
        eos_token_id=3,
    )
    return _save(GPT2LMHeadModel, config, folder, seed, False)


def save_bloom(folder: Path, *, seed: int = 7) -> Path:
    """Write a random Bloom, which has only one implementation of attention."""
    from transformers import BloomConfig, BloomForCausalLM

    config = BloomConfig(vocab_size=save_tokenizer(folder), hidden_size=32, n_layer=1, n_head=2)
    return _save(BloomForCausalLM, config, folder, seed, True)


def save_t5(folder: Path, *, seed: int = 7, bytewise: bool = False) -> Path:
    """Write a random T5 (encoder–decoder)."""
    from transformers import T5Config, T5ForConditionalGeneration

    vocabulary = save_tokenizer(folder, adds_eos=True, bytewise=bytewise)
    config = T5Config(
        vocab_size=vocabulary,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        pad_token_id=0,
        eos_token_id=3,
        decoder_start_token_id=0,
        n_positions=64,
    )
    return _save(T5ForConditionalGeneration, config, folder, seed, False)


def _save(kind: Any, config: Any, folder: Path, seed: int, ends: bool) -> Path:
    import torch

    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        model = kind(config).eval()
    finally:
        torch.random.set_rng_state(state)
    with torch.no_grad():
        # With the default initialisation, which is small, one word wins everywhere. Larger weights vary the text.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(8.0)
        if not ends:
            # A row of zeros scores 0, which is never the best of some 60 random scores.
            model.get_output_embeddings().weight[: len(SPECIAL)] = 0.0
    model.save_pretrained(folder)
    return folder
