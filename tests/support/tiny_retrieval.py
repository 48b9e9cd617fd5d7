"""Tiny models for learned sparse retrieval and late interaction, made in a second, as sentence-transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_bert import save_bert


def _read_words_only(model: Any) -> None:
    """Make the vectors of a BERT depend on each token alone, so that texts with the same words are near each other."""
    embeddings = model.embeddings
    embeddings.word_embeddings.weight.normal_()
    embeddings.position_embeddings.weight.zero_()
    embeddings.token_type_embeddings.weight.zero_()
    for layer in model.encoder.layer:
        layer.attention.output.dense.weight.zero_()
        layer.output.dense.weight.zero_()


def save_splade(folder: Path, *, text: str = "", hidden: int = 64, seed: int = 3) -> Path:
    """Write a masked language model with pooling, in which each token mostly proposes itself."""
    import torch
    from sentence_transformers import SparseEncoder
    from transformers import BertConfig, BertForMaskedLM

    save_bert(folder, hidden=hidden, layers=1, positions=128, bare=True, text=text)
    config = BertConfig.from_pretrained(folder, hidden_act="relu")
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        model: Any = BertForMaskedLM(config).eval()
        head = model.cls.predictions
        with torch.no_grad():
            _read_words_only(model.bert)
            head.transform.dense.weight.copy_(torch.eye(hidden))
            head.bias.fill_(-0.25 * hidden)
    finally:
        torch.random.set_rng_state(state)
    model.save_pretrained(folder)
    SparseEncoder(str(folder), device="cpu").save_pretrained(str(folder))
    return folder


def save_colbert(
    folder: Path, *, text: str = "", dim: int = 32, seed: int = 3, prompts: bool = False
) -> Path:
    """Write an encoder with a vector of ``dim`` numbers for each token; ``prompts``: with marks for queries and passages."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    base = save_bert(folder / "base", hidden=64, positions=128, bare=True, text=text, seed=seed)
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    try:
        transformer = Transformer(str(base))
        with torch.no_grad():
            _read_words_only(transformer.model)
        project = Dense(
            in_features=64,
            out_features=dim,
            bias=False,
            activation_function=torch.nn.Identity(),
            module_input_name="token_embeddings",
        )
    finally:
        torch.random.set_rng_state(state)
    parts = [
        transformer,
        project,
        MultiVectorMask(skiplist_words=[".", ","]),
        Normalize(module_input_name="token_embeddings"),
    ]
    own = {"query": "query : ", "document": "passage : "} if prompts else None
    model = MultiVectorEncoder(modules=parts, device="cpu", prompts=own)
    target = folder / "model"
    model.save_pretrained(str(target))
    return target
