"""Queries that a language model writes: HyDE, RAG-Fusion, step-back and decomposition, and the lines of a chain's query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import built
from in_memory import InMemory
from listed import combined, ids

from rallebench.core.backends import Backends
from rallebench.core.entries import Combination
from rallebench.core.errors import UsageError
from rallebench.core.types import Hit, Passage
from rallebench.encoders.checking import unit
from rallebench.encoders.hashing import Hashing
from rallebench.engine.run_warnings import judgements, unread
from rallebench.llms.scripted import Scripted
from rallebench.retrievers import INDEX_KINDS
from rallebench.retrievers.composites import check_settings
from rallebench.retrievers.rewriting import fuse_evenly, read_queries, take_turns
from rallebench.workspace.opening import open_combination

TEXTS = ("titan orbits saturn", "triton orbits neptune", "paris is in texas", "the king won")
PASSAGES = [Passage(str(n), text) for n, text in enumerate(TEXTS)]


def rewriting(kind: str, reply: str | list[str], part: Any = None, **settings: Any) -> Any:
    """A combination of that kind with a model that gives these replies."""
    llm = Scripted(replies=[reply] if isinstance(reply, str) else reply)
    entry = Combination(kind=kind, of=["part"], settings={"llm": "writer", **settings})
    entry = entry.model_copy(update={"settings": check_settings("combined", entry)})
    opened = open_combination("combined", entry, [part or InMemory(PASSAGES)], llm)
    opened.model = llm
    return opened


def test_queries_are_read_from_lists_of_any_kind_without_the_question() -> None:
    reply = "1. Moons of Saturn\n - “Titan?”\n\n(3) 土卫六在哪里？\n* WHO won?\nmoons of saturn\nQ5: last"
    assert read_queries(reply, "Who won?", 9) == [
        "Moons of Saturn",
        "Titan?",
        "土卫六在哪里？",
        "last",
    ]
    assert read_queries(reply, "Who won?", 2) == ["Moons of Saturn", "Titan?"]
    assert read_queries("1984 was a year\n2 moons", "", 9) == ["1984 was a year", "2 moons"]
    assert read_queries(' \n-\n""', "q", 9) == []


def test_lists_are_fused_by_reciprocal_rank_or_take_turns() -> None:
    a, b, c = PASSAGES[:3]
    lists = [[Hit(a, 9.0), Hit(b, 8.0)], [Hit(c, 0.2), Hit(b, 0.1)]]
    fused = {hit.passage.doc_id: hit.score for hit in fuse_evenly(lists)}
    assert fused == pytest.approx({"1": 0.5 / 62 + 0.5 / 62, "0": 0.5 / 61, "2": 0.5 / 61})
    assert list(fused) == ["1", "0", "2"]
    assert [(hit.passage.doc_id, hit.score) for hit in take_turns(lists)] == [
        ("0", 1.0),
        ("2", 1.0),
        ("1", 0.5),
    ]
    assert fuse_evenly(lists[:1]) == lists[0]


def test_other_wordings_find_what_the_question_misses() -> None:
    retriever = rewriting("multi-query", "who moves around neptune\n- paris texas")
    assert ids(retriever.search(["titan"], 5)[0]) == ["0", "1", "2"]
    assert retriever.rewrites == (1, 0)
    alone = rewriting("multi-query", "neptune\nparis", question=False, count=1)
    assert ids(alone.search(["titan"], 5)[0]) == ["1"]


def test_each_part_of_a_question_has_its_share() -> None:
    many = [*(Passage(f"s{n}", "saturn " * 3) for n in range(20)), PASSAGES[1]]
    retriever = rewriting(
        "decompose", "saturn saturn\nneptune", InMemory(many), question=False, depth=20
    )
    assert ids(retriever.search(["saturn or neptune"], 3)[0]) == ["s0", "1", "s1"]


def test_a_more_general_question_is_searched_too() -> None:
    retriever = rewriting("step-back", "General: neptune\nparis")
    assert ids(retriever.search(["titan"], 5)[0]) == ["0", "1"]
    assert "more general question" in retriever.model.requests[0].messages[0].content


@pytest.mark.parametrize("question", [True, False])
def test_hyde_searches_the_mean_of_the_vectors_in_a_dense_index(
    question: bool, tmp_path: Path
) -> None:
    corpus = tmp_path / "c.tsv"
    corpus.write_text("".join(f"{p.doc_id}\t{p.text}\t\n" for p in PASSAGES))
    manifest = built(tmp_path / "indexes", "x", corpus, "flat", encoder=Hashing())
    dense = INDEX_KINDS["flat"].open("x", tmp_path / "indexes" / "x", manifest, Hashing())
    replies = ["triton is a moon\nof neptune", "neptune"]
    retriever = rewriting("hyde", replies, dense, count=2, question=question)
    (hits,) = retriever.search(["who orbits"], 4)
    encode = Hashing().encode
    vectors = [encode(["triton is a moon of neptune"]), encode(["neptune"])]
    vectors += [encode(["who orbits"], role="query")] if question else []
    mean = unit(np.concatenate(vectors).mean(axis=0)[None])[0]
    expected = encode([f", {p.text}" for p in PASSAGES]) @ mean
    assert ids(hits) == [str(n) for n in np.argsort(-expected, kind="stable")]
    assert [hit.score for hit in hits] == pytest.approx(sorted(expected, reverse=True), abs=1e-6)
    sent = retriever.model.requests
    assert [request.seed for request in sent] == [0, 1]
    assert {request.temperature for request in sent} == {0.7}


def test_hyde_fuses_the_lists_of_any_other_retriever() -> None:
    retriever = rewriting("hyde", "Triton goes round neptune.")
    assert ids(retriever.search(["titan", ""], 3)[0]) == ["0", "1"]
    assert retriever.model.requests[0].temperature == 0.0


@pytest.mark.parametrize("kind", ["hyde", "multi-query", "step-back", "decompose"])
def test_a_reply_without_a_query_is_counted_and_the_question_searched(kind: str) -> None:
    retriever = rewriting(kind, " \n \n", question=False)
    backends = Backends(retrievers={"combined": retriever})
    before = judgements(["combined"], backends)
    assert ids(retriever.search(["titan"], 3)[0]) == ["0"]
    assert retriever.rewrites == (1, 1)
    (sentence,) = unread(before, judgements(["combined"], backends))
    assert sentence.startswith("1 of 1 replies for 'combined' contained no query")


def test_the_fingerprint_holds_model_prompt_and_settings(tmp_path: Path) -> None:
    prompt = tmp_path / "own.txt"
    prompt.write_text("Search for: {question}")
    prints = [
        rewriting("multi-query", "a").fingerprint,
        rewriting("multi-query", "a").fingerprint,
        rewriting("step-back", "a").fingerprint,
        rewriting("multi-query", "a", count=2).fingerprint,
        rewriting("multi-query", "a", prompt=str(prompt)).fingerprint,
    ]
    assert prints[0] == prints[1] and len(set(prints)) == 4
    prompt.write_text("Search")
    with pytest.raises(UsageError, match=r"lacks \{question\}"):
        rewriting("multi-query", "a", prompt=str(prompt))


def test_the_lines_of_a_chains_query_are_searched_each() -> None:
    fused = combined("lines", InMemory(PASSAGES))
    assert ids(fused.search(["titan\n1. neptune\n\ntitan"], 5)[0]) == ["0", "1"]
    single = fused.search(["titan saturn"], 5)[0]
    assert single == InMemory(PASSAGES).search(["titan saturn"], 5)[0]
    turns = combined("lines", InMemory(PASSAGES), merge="turns")
    assert ids(turns.search(["orbits\nparis"], 2)[0]) == ["0", "2"]
