"""CRUD-RAG's four retrievers, its joins, and the rank of every gold document."""

from __future__ import annotations

from pathlib import Path

import pytest

from rallebench.core.errors import UsageError
from rallebench.core.types import Hit, Passage
from rallebench.papers.crud.records import GoldDocument
from rallebench.papers.crud.retrieval import RETRIEVERS, join_documents, searches_words, variant
from rallebench.papers.crud.scoring import reciprocal_ranks
from rallebench.retrievers._parts import IDENTITIES
from rallebench.retrievers.composites import written_out
from rallebench.retrievers.fusion import by_rank
from rallebench.workspace.paths import WorkspaceFolder

REPORT = "河北省运动员在2023年全国田径锦标赛中获得4枚金牌，创造了历史最好成绩。"
OTHER = "青禾市首条无人驾驶公交线路正式开通，线路全长12公里，设站9座。"


def hit(name: str, text: str, score: float = 1.0) -> Hit:
    return Hit(Passage(name, text), score)


def test_hybrid_scores_are_half_over_sixty_and_the_rank_and_equal_texts_are_one() -> None:
    words, vectors = [hit("1", "甲"), hit("2", "乙")], [hit("9", "乙"), hit("3", "丙")]
    fused = by_rank([words, vectors], [0.5, 0.5], 60, IDENTITIES["text"])
    assert [h.passage.text for h in fused] == ["乙", "甲", "丙"]
    assert [h.score for h in fused] == pytest.approx([0.5 / 62 + 0.5 / 61, 0.5 / 61, 0.5 / 62])


def test_the_four_variants_are_retrievers_of_the_workspace() -> None:
    names = [variant(kind, "bge", "words", 8, "/models/judge") for kind in RETRIEVERS]
    assert names[:2] == ["bge", "words"]
    fused, judged = (written_out(name)[1] for name in names[2:])
    assert fused is not None and (fused.kind, fused.of) == ("rrf", ["words", "bge"])
    assert fused.settings == {"weights": "0.5,0.5", "constant": 60, "depth": 8, "equal": "text"}
    assert judged is not None and (judged.kind, judged.of) == ("rerank", [names[2]])
    assert judged.settings["depth"] == 16
    with pytest.raises(UsageError, match="needs a cross-encoder"):
        variant("hybrid-rerank", "bge", "words", 8)


def test_bm25_alone_searches_words(tmp_path: Path) -> None:
    workspace = WorkspaceFolder(tmp_path)
    names = ("starter-bm25", "starter-minilm", "rrf:starter-bm25,starter-minilm")
    assert [searches_words(workspace, name) for name in names] == [True, False, False]


def test_the_original_cuts_documents_where_its_echo_would_end() -> None:
    hits = [hit("1", "甲\nGiven the context information 乙"), hit("2", "丙")]
    assert join_documents(hits, "\n\n", False).endswith("乙\n\n丙")
    assert join_documents(hits, "\n\n", True) == "甲"
    assert join_documents([], "\n", True) == ""


def test_every_gold_document_has_its_own_rank_by_id_page_or_chunk() -> None:
    hits = [hit("5#2", "甲"), hit("7", "乙"), Hit(Passage("c", "丙", page_id="9"), 0.1)]
    gold = [GoldDocument(frozenset({name})) for name in ("7", "9", "8", "5")]
    assert reciprocal_ranks(gold, hits) == [1 / 2, 1 / 3, 0, 1]


def test_without_ids_a_gold_document_is_known_by_its_text_also_in_part_and_with_its_date() -> None:
    hits = [hit("a", OTHER), hit("b", f"2023-07-01 10:00:00，正文：{REPORT[:30]}"), hit("c", "短")]
    gold = [GoldDocument(text=text) for text in (f"[ 2023 ] ，正文： {REPORT}", "短")]
    assert reciprocal_ranks(gold, hits) == [1 / 2, 0], "a few characters tell no document"
