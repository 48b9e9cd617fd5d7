"""Cosine similarity of sentence embeddings, by any encoder."""

from __future__ import annotations

from rallebench.encoders import Encoder
from rallebench.encoders.references import check_encoder, open_encoder
from rallebench.metrics import METRICS, Pairs
from rallebench.metrics._reading import final_answer
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
def similarity(pairs: Pairs, option: str = "") -> list[float | None]:
    """The cosine of the embeddings of the answer and the nearest accepted answer.

    An empty answer scores 0, as in CRUD-RAG.

    Normalisation: none; both texts are encoded as passages.
    Not scored: the gold has no answers.
    Option: an encoder, written as for a retriever; by default the embedded MiniLM.
    Source: Reimers and Gurevych 2019, arXiv:1908.10084; CRUD-RAG's "bertScore" is this with text2vec-base-chinese.
    Traps: Values of different encoders cannot be compared, and unrelated texts score above 0. MiniLM reads no
    Chinese, and only the first 256 tokens. A negation changes it little.
    """
    answers = [final_answer(episode) if gold.answers else "" for episode, gold in pairs]
    texts = list(
        dict.fromkeys(
            text
            for answer, (_, gold) in zip(answers, pairs)
            if answer
            for text in (answer, *gold.answers)
        )
    )
    encoded = _open(option or DEFAULT).encode(texts, role="passage") if texts else ()
    vectors = dict(zip(texts, encoded))
    values: list[float | None] = []
    for answer, (_, gold) in zip(answers, pairs):
        near = [float(vectors[answer] @ vectors[alias]) for alias in gold.answers if answer]
        none = 0.0 if gold.answers else None
        values.append(min(1.0, max(-1.0, *near)) if near else none)
    return values


@single
def _open(name: str) -> Encoder:
    return open_encoder(name)
