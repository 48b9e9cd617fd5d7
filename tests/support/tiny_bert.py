"""Tiny random BERT models, made in a second: encoders as sentence-transformers save them, and cross-encoders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TEXT = """
the river city king queen won lost founded wrote in of and was is on at by for a old new big small red
blue one two three four five titan triton saturn neptune moon largest paris texas danube query passage : . , ?
"""
WORDS = TEXT.split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def save_bert(
    folder: Path,
    *,
    pooling: str = "mean",
    hidden: int = 32,
    layers: int = 2,
    inner: int = 0,
    words: int = 0,
    positions: int = 64,
    seed: int = 3,
    prompts: dict[str, str] | None = None,
    bare: bool = False,
    text: str = "",
) -> Path:
    """Write a model of ``hidden`` dimensions; ``bare``: without modules.json, as transformers saves it.

    ``inner``: the width inside a layer, by default twice ``hidden``; ``words``: the least size of the vocabulary;
    ``text``: words and Chinese characters that it knows besides its own.
    """
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    more = re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]", text.lower())
    known = [*SPECIAL, *dict.fromkeys([*WORDS, *more])]
    known += [f"##word{number}" for number in range(len(known), words)]
    vocabulary = {word: number for number, word in enumerate(known)}
    pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names: dict[str, Any] = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL))
    PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=positions,
        **{f"{key}_token": value for key, value in names.items()},
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden,
        intermediate_size=inner or 2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=positions,
    )
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        model = BertModel(config).eval()
    finally:
        torch.random.set_rng_state(state)
    with torch.no_grad():
        # With the default initialisation, which is small, all texts look alike.
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6.0)
    model.save_pretrained(folder)
    if not bare:
        _add_modules(folder, pooling, hidden, positions, prompts or {})
    return folder


def _add_modules(
    folder: Path, pooling: str, hidden: int, positions: int, prompts: dict[str, str]
) -> None:
    kinds = {
        "0": ("", "Transformer"),
        "1": ("1_Pooling", "Pooling"),
        "2": ("2_Normalize", "Normalize"),
    }
    modules = [
        {"idx": int(i), "name": i, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in kinds.items()
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    modes = {
        f"pooling_mode_{name}": name.startswith(pooling)
        for name in ("cls_token", "mean_tokens", "max_tokens")
    }
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": hidden, **modes})
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": positions}))
    own = {"prompts": prompts, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(own))


CROSS_TEXT = "the old new river city king and of title text a b c d , who"
CROSS_WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *CROSS_TEXT.split()]


def save_cross_encoder(
    folder: Path,
    labels: int = 1,
    kind: str = "BertForSequenceClassification",
    positions: int = 64,
) -> Path:
    """Write a two-layer BERT with its word-level tokenizer; it gives ``labels`` numbers for a pair of texts."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(CROSS_WORDS)}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **names).save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(CROSS_WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
        num_labels=labels,
        initializer_range=0.5,
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    return folder
