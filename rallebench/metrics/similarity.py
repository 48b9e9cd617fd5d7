"""Cosine similarity of sentence embeddings, by any encoder."""

from __future__ import annotations

from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder, open_encoder
from rallebench.metrics import METRICS, OpenEncoder, Pairs
from rallebench.metrics._reading import answer_of
from rallebench.metrics._single import single

DEFAULT = "minilm"


@METRICS.register_batch(
    "similarity",
    label="Similarity",
    unit="cosine",
    range=(-1, 1),
    tool="encoder",
    check=check_encoder,
)
def similarity(
    pairs: Pairs, option: str = "", encoders: OpenEncoder | None = None
) -> list[float | None]:
    """The cosine of the embeddings of the answer and the nearest accepted answer.

    An empty answer scores 0, as in CRUD-RAG.

    Normalisation: none; both texts are encoded as passages.
    Not scored: the gold has no answers.
    Option: the encoder, by its name or as a retriever's is written; the embedded MiniLM without one.
    Source: Reimers and Gurevych 2019, arXiv:1908.10084; CRUD-RAG's "bertScore" is this with text2vec-base-chinese.
    Traps: Values of different encoders cannot be compared, and unrelated texts score above 0. MiniLM reads no
        Chinese, and only the first 256 tokens. A negation changes it little.
    """
    texts: dict[str, int] = {}
    for episode, gold in pairs:
        if gold.answers and answer_of(episode):
            for text in (answer_of(episode), *gold.answers):
                texts.setdefault(text, len(texts))
    if not texts:
        return [0.0 if gold.answers else None for _, gold in pairs]
    vectors = (encoders or _opened)(option or DEFAULT).encode(list(texts), role="passage")
    values: list[float | None] = []
    for episode, gold in pairs:
        answer = answer_of(episode)
        if not gold.answers or not answer:
            values.append(0.0 if gold.answers else None)
            continue
        near = max(float(vectors[texts[answer]] @ vectors[texts[alias]]) for alias in gold.answers)
        values.append(min(1.0, max(-1.0, near)))
    return values


@single
def _opened(name: str) -> Encoder:
    return open_encoder(name)
