"""The extractive reader on the real encoder: its answers, its refusals, and its determinism."""

from __future__ import annotations

import time

import pytest

from rallebench.core.types import Passage
from rallebench.reader import ReaderAnswer, Task
from rallebench.reader.spans import SpanReader

PASSAGES = (
    Passage(
        "1",
        "Ludwig van Beethoven was born in Bonn in December 1770. He moved to Vienna in 1792 and stayed there. His only opera, Fidelio, was revised three times.",
    ),
    Passage(
        "2",
        "The Rhine is a river in Europe. It rises in the Swiss Alps and flows into the North Sea. It is 1,230 kilometres long, and about 50 million people live in its basin.",
    ),
    Passage(
        "3",
        "The saxophone was invented by the Belgian maker Adolphe Sax in the early 1840s. Sax patented it on 28 June 1846. It is made of brass but counts as a woodwind because of its reed.",
    ),
)


def ask(
    question: str, kind: str = "short", passages: tuple[Passage, ...] = PASSAGES, **more: object
) -> Task:
    return Task(kind, question, passages, **more)  # type: ignore[arg-type]


def answer(reader: SpanReader, task: Task) -> ReaderAnswer:
    (found,) = reader.read([task])
    return found


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who invented the saxophone?", "Adolphe Sax"),
        ("When did Sax patent the saxophone?", "28 June 1846"),
        ("Where was Beethoven born?", "Bonn"),
        ("In which year did Beethoven move to Vienna?", "1792"),
        ("How long is the Rhine?", "1,230 kilometres"),
        ("Into which sea does the Rhine flow?", "North Sea"),
        ("What is the place of birth of Ludwig van Beethoven?", "Bonn"),
    ],
)
def test_a_plain_question_gets_a_span(reader: SpanReader, question: str, expected: str) -> None:
    said = answer(reader, ask(question)).text
    assert said.removesuffix(" long").endswith(expected) and len(said.split()) <= 5


def test_an_answer_names_the_passage_and_sentence_it_stands_in(reader: SpanReader) -> None:
    found = answer(reader, ask("Who invented the saxophone?"))
    assert found.passage == 2
    assert found.text in found.sentence
    assert found.sentence in PASSAGES[2].text
    assert 0 < found.confidence < 1


@pytest.mark.parametrize(
    "question",
    [
        "What is the boiling point of tungsten?",
        "Who is the prime minister of Malaysia?",
        "How many eggs does a hen lay in a year?",
    ],
)
def test_a_question_about_something_else_is_declined(reader: SpanReader, question: str) -> None:
    found = answer(reader, ask(question))
    assert found.text == ""
    assert found.confidence < answer(reader, ask("Who invented the saxophone?")).confidence


def test_an_answer_is_withheld_sooner_where_the_prompt_asks_to_decline_or_no_word_of_the_question_stands_there(
    reader: SpanReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, strange = "Who repaired the saxophone?", "Who wrote the hymn?"
    sure = [
        answer(reader, ask(q, passages=PASSAGES[2:], decline_below=0.0)).confidence
        for q in (known, strange)
    ]
    borders = {"short": max(sure) + 0.01, "plain": min(sure) - 0.01, "long": 0.0}
    monkeypatch.setitem(reader.about, "refuse_below", borders)
    answered = [
        answer(reader, ask(question, passages=PASSAGES[2:], may_decline=may)).text != ""
        for question, may in ((known, False), (known, True), (strange, False), (strange, True))
    ]
    assert answered == [True, False, False, False]


def test_nothing_is_answered_from_a_passage_that_was_not_given(reader: SpanReader) -> None:
    answer(reader, ask("Who invented the saxophone?"))
    found = answer(reader, ask("Who invented the saxophone?", passages=PASSAGES[:2]))
    assert "Sax" not in found.text + found.sentence


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize(
    "question",
    ["When did Sax patent the saxophone?", "Who invented the saxophone?", "How long is the Rhine?"],
)
def test_an_answer_keeps_the_word_limit(reader: SpanReader, question: str, limit: int) -> None:
    assert len(answer(reader, ask(question, max_words=limit)).text.split()) <= limit


def test_a_long_answer_is_whole_sentences_of_one_passage_in_their_order(reader: SpanReader) -> None:
    found = answer(reader, ask("Why is the saxophone a woodwind?", "long", sentences=2))
    first, second = (s for s in PASSAGES[2].text.split(". ") if s.rstrip(".") in found.text)
    assert found.text.index(first) < found.text.index(second)
    assert "reed" in found.text
    assert answer(reader, ask("Why is the saxophone a woodwind?", "long")).text in PASSAGES[2].text


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The saxophone was invented by Adolphe Sax.", "SUPPORTS"),
        ("The saxophone was invented by Antonio Stradivari.", "REFUTES"),
        ("Beethoven moved to Vienna in 1792.", "SUPPORTS"),
        ("Beethoven moved to Vienna in 1801.", "REFUTES"),
        ("Beethoven was not born in Bonn.", "REFUTES"),
        ("The Rhine flows into the North Sea.", "SUPPORTS"),
    ],
)
def test_a_claim_is_compared_by_its_facts(reader: SpanReader, claim: str, label: str) -> None:
    found = answer(reader, ask(claim, "verdict", labels=("SUPPORTS", "REFUTES")))
    assert found.text == label
    assert 0.5 <= found.confidence <= 1


@pytest.mark.parametrize("third", ["", "NOT ENOUGH INFO"])
def test_a_claim_about_something_else_gets_no_verdict(reader: SpanReader, third: str) -> None:
    labels = tuple(filter(None, ("SUPPORTS", "REFUTES", third)))
    claim = "Photosynthesis needs chlorophyll."
    assert answer(reader, ask(claim, "verdict", labels=labels)).text == third


def test_a_question_for_yes_or_no_gets_yes_or_no(reader: SpanReader) -> None:
    assert answer(reader, ask("Was Beethoven born in Bonn?")).text == "Yes"
    assert answer(reader, ask("Did Beethoven move to Vienna in 1850?")).text == "No"


def test_a_title_is_one_of_those_listed(reader: SpanReader) -> None:
    titles = ("Paris, Texas", "Paris", "Paris Hilton")
    context = "The fans waited at the stadium of [START_ENT] Paris [END_ENT], the seat of Lamar County in Texas."
    found = answer(reader, ask("Paris", "title", (), titles=titles, context=context))
    assert found.text == "Paris, Texas"


def test_the_same_task_gives_the_same_result_alone_batched_or_moved(reader: SpanReader) -> None:
    tasks = [
        ask("Who invented the saxophone?"),
        ask("How long is the Rhine?", max_words=5),
        ask("The Rhine is 99 kilometres long.", "verdict", labels=("SUPPORTS", "REFUTES")),
        ask("What did Beethoven write?", "long", sentences=2),
        ask("Who is the prime minister of Malaysia?"),
        ask("Rhine", "title", titles=("Rhine", "Rhône")),
        Task("say", "as it is"),
    ]
    alone = [answer(reader, task) for task in tasks]
    assert reader.read(tasks) == alone
    assert reader.read(tasks[::-1]) == alone[::-1]


ODD = ("", "...", "\x00", "\ud800 \udfff", "Ünïcödé überall", "北京是中国的首都。", "مرحبا بالعالم")
ODD += ("🙂" * 50, "a" * 5000, "1 2 3 4 5", "' \" ' \"", "Sax, , , Sax")


@pytest.mark.parametrize("text", ODD, ids=lambda text: ascii(text)[:20])
@pytest.mark.parametrize("kind", ["short", "long", "verdict"])
def test_odd_passages_and_questions_never_fail(reader: SpanReader, kind: str, text: str) -> None:
    labels = ("SUPPORTS", "REFUTES") if kind == "verdict" else ()
    tasks = [
        ask("Who invented the saxophone?", kind, (Passage("1", text),), labels=labels),
        ask(text, kind, labels=labels),
        ask(text, kind, (Passage("1", text, text),), labels=labels),
    ]
    assert all(0.0 <= found.confidence <= 1.0 for found in reader.read(tasks))


@pytest.mark.slow
def test_a_hundred_thousand_characters_are_read_quickly(reader: SpanReader) -> None:
    filler = " ".join(
        f"The town number {i} lies on the river and has {i * 7} people." for i in range(1600)
    )
    task = ask("Who invented the saxophone?", passages=(Passage("0", filler), *PASSAGES))
    assert len(filler) > 90_000
    start = time.process_time()
    found = answer(reader, task)
    assert time.process_time() - start < 8
    assert found.text.endswith("Adolphe Sax")


def test_tokens_are_counted_as_word_pieces(reader: SpanReader) -> None:
    assert reader.count_tokens(["Oslo", "", "the capital of Norway"]) == [1, 0, 4]
    assert reader.count_tokens([]) == []
