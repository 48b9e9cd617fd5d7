"""Citations: the passage that supports each sentence of an answer."""

from __future__ import annotations

from rallebench.core.types import Hit, Passage
from rallebench.services.citations import HOW, CitedSentence, cite_sentences

TITAN = "Titan is the largest moon of Saturn. It was discovered in 1655 by Christiaan Huygens. Titan has a thick atmosphere."
TRITON = "Triton orbits Neptune backwards. 海卫一是海王星最大的卫星。它于1846年被发现。"
HITS = (Hit(Passage("d1", TITAN, "Titan (moon)"), 1.0), Hit(Passage("d2", TRITON, "Triton"), 0.5))


def citation_rows(sentences: tuple[CitedSentence, ...]) -> list[list[tuple[int, str, str]]]:
    """(number, how, span) of the citations of each sentence."""
    return [
        [
            (c.number, c.how, HITS[c.number - 1].passage.text[slice(*c.place)] if c.place else "")
            for c in sentence.citations
        ]
        for sentence in sentences
    ]


def test_a_quoted_span_is_the_one_in_the_sentence_that_the_reader_names() -> None:
    note = "Extractive reader: taken from passage 1 (Titan (moon)): Titan has a thick atmosphere."
    (sentence,) = cite_sentences("Titan", HITS, note, copies=True)
    (citation,) = sentence.citations
    assert citation.how == "quoted" and citation.place == (
        TITAN.rindex("Titan"),
        TITAN.rindex("Titan") + 5,
    )
    (first,) = cite_sentences("Titan", HITS, "", copies=True)
    assert first.citations[0].place == (0, 5), "without a note the first place"


def test_a_verdict_of_the_reader_cites_the_sentence_that_it_judged_by() -> None:
    note = "Extractive reader: taken from passage 2 (Triton): Triton orbits Neptune backwards."
    assert citation_rows(cite_sentences("SUPPORTS", HITS, note, copies=True)) == [
        [(2, "read", "Triton orbits Neptune backwards")]
    ]
    refusal = "Extractive reader: declined; the nearest sentence is in passage 2: Triton orbits."
    assert citation_rows(cite_sentences("I can not answer.", HITS, refusal, copies=True)) == [[]]


def test_the_marks_that_a_model_writes_are_used_where_they_name_a_passage() -> None:
    sentences = cite_sentences(
        "Titan is big. [1] Triton is odd[2, 1]. See [9] and [1](http://x).", HITS
    )
    assert [s.text for s in sentences] == [
        "Titan is big. ",
        "Triton is odd. ",
        "See [9] and [1](http://x).",
    ]
    assert [[(n, how) for n, how, _ in row] for row in citation_rows(sentences)] == [
        [(1, "cited")],
        [(2, "cited"), (1, "cited")],
        [],
    ]
    assert citation_rows(sentences)[0][0][2] == "Titan is the largest moon of Saturn."
    assert citation_rows(cite_sentences("Both are moons[1-2]", HITS))[0][1][0] == 2


def test_a_sentence_is_cited_by_its_words_and_left_unmarked_without_support() -> None:
    answer = "Titan was discovered by Huygens in 1655. It was sold in 1999. I like cheese."
    assert citation_rows(cite_sentences(answer, HITS)) == [
        [(1, "similar", "It was discovered in 1655 by Christiaan Huygens.")],
        [],
        [],
    ]
    assert citation_rows(cite_sentences("Titan was discovered by Huygens in 1656.", HITS)) == [
        []
    ], "another number"
    assert citation_rows(cite_sentences("Titan was discovered by Galileo in 1655.", HITS)) == [
        []
    ], "another name"
    assert "".join(s.text for s in cite_sentences(answer, HITS)) == answer


def test_chinese_sentences_are_cited_one_by_one() -> None:
    sentences = cite_sentences("海卫一是海王星最大的卫星。它于1846年被人发现。你好吗？", HITS)
    assert [s.text for s in sentences] == [
        "海卫一是海王星最大的卫星。",
        "它于1846年被人发现。",
        "你好吗？",
    ]
    first, second, third = citation_rows(sentences)
    assert first == [(2, "same", "海卫一是海王星最大的卫星")]
    assert second[0][:2] == (2, "similar") and "1846" in second[0][2] and third == []


def test_an_empty_answer_and_no_passages_have_no_citations() -> None:
    assert citation_rows(cite_sentences("", HITS)) == []
    assert citation_rows(cite_sentences("Titan is a moon [1].", ())) == [[]]
    assert set(HOW) == {"quoted", "read", "same", "cited", "similar"}
