"""A chunking applied to documents: counts, answers cut in two, and samples of large corpora."""

from __future__ import annotations

import pytest

from rallebench.core.chunking import Chunking
from rallebench.core.types import Example, Gold, Passage, Question
from rallebench.services import chunk_surveys
from rallebench.services.chunk_surveys import ChunkSurvey, find_places, survey_chunks

RIVER = Passage("d1", "The Danube flows into the Black Sea after ten countries.", "Danube", "p1")
MOON = Passage("d2", "Titan is a moon of Saturn. It is by the Black Sea.", "Titan", "p2")


def example(answer: str, *pages: str) -> Example:
    gold = Gold((answer,), provenance=(frozenset(pages),) if pages else ())
    return Example(Question(answer, f"Where is {answer}?"), gold)


def survey(chunking: Chunking | None, *examples: Example) -> ChunkSurvey:
    documents = (RIVER, MOON)
    *_, last = survey_chunks(documents, chunking, "minilm", find_places(documents, examples))
    return last


def test_chunks_are_counted_with_the_longest_and_those_beyond_the_encoder() -> None:
    whole = survey(None)
    assert (whole.documents, whole.chunks, whole.longer, whole.window) == (2, 2, 0, 254)
    assert survey(Chunking(3)).chunks == 8
    assert survey(Chunking(3)).longest < whole.longest


def test_an_answer_is_cut_only_if_no_chunk_of_its_gold_pages_holds_it() -> None:
    six = Chunking(6)  # the border of the first document is between Black and Sea
    assert survey(six, example("Black Sea")).cut == 0, "the second document holds it"
    lost = survey(six, example("Black Sea", "p1"))
    assert (lost.answers, lost.cut) == (1, 1)
    assert lost.example is not None and lost.example.document == "Danube"
    assert lost.example.before.endswith("into the Black")
    assert lost.example.after.startswith(" Sea after")
    assert survey(Chunking(6, 3), example("Black Sea", "p1")).cut == 0, "an overlap holds it"
    assert survey(None, example("Black Sea", "p1")).cut == 0


def test_questions_without_an_answer_in_the_documents_are_not_counted() -> None:
    foreign = survey(Chunking(6), example("Paris"), example("Saturn", "a page of another corpus"))
    assert (foreign.answers, foreign.cut) == (1, 0)


def test_of_many_documents_a_sample_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_surveys, "MOST_CHARACTERS", 40)
    documents = [Passage(f"d{n}", "ten letters"[:10], "", f"d{n}") for n in range(20)]
    sample = chunk_surveys.sample_documents(documents)
    assert [d.doc_id for d in sample.documents] == ["d0", "d5", "d10", "d15"]
    assert (sample.total, sample.share, sample.is_whole) == (20, 0.2, False)
    assert len(chunk_surveys.sample_documents([RIVER]).documents[0].text) == 40
