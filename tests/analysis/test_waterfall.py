"""The waterfall says, per question and without a judge, where it was lost."""

from __future__ import annotations

import pytest

from rallebench.analysis.waterfall import STAGES, Waterfall, figure, notes, waterfall
from rallebench.core.types import (
    Episode,
    Example,
    Generate,
    Gold,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
)

GOLD = Passage("d1", "Titan is a moon of Saturn.", "Titan", "p1")
OTHER = Passage("d2", "Rome is a city.", "Rome", "p2")
SECOND = Passage("d3", "Saturn is a planet.", "Saturn", "p3")
CORPUS = {"p1", "p2", "p3"}


def found(*passages: Passage) -> Step:
    hits = tuple(Hit(passage, 1.0 / rank) for rank, passage in enumerate(passages, 1))
    return Step(Retrieve("r", "q", len(hits)), Reply("", hits))


def opened(passage: Passage) -> Step:
    told = Note(f"Opened the page {passage.title!r}.", (passage,))
    return Step(told, told.reply())


def asked(prompt: str, reply: str) -> Step:
    return Step(Generate("m", (Message("user", prompt),)), Reply(reply))


def stage(
    *steps: Step,
    answer: str = "",
    gold: Gold | None = None,
    corpus: set[str] | None = CORPUS,
    error: str = "",
) -> str:
    gold = gold or Gold(("Titan",), provenance=(frozenset({"p1"}),))
    episode = Episode("q", "chain", steps, None if error else Outcome(answer), error)
    result = waterfall([Example(Question("q", "Which moon?"), gold)], [episode], corpus)
    assert sum(result.counts().values()) == 1
    return result.placed[0].stage


@pytest.mark.parametrize(
    ("steps", "answer", "expected"),
    [
        ((found(OTHER), asked("Rome is a city.", "no")), "no", "not_retrieved"),
        ((found(OTHER, GOLD), asked("Rome is a city.", "no")), "no", "not_in_prompt"),
        ((found(GOLD), asked(f"{GOLD.text} Which moon?", "Rhea")), "Rhea", "not_in_answer"),
        (
            (found(GOLD), asked(f"{GOLD.text} Which moon?", "It is Titan")),
            "It is Titan",
            "lost_by_format",
        ),
        ((found(GOLD), asked(f"{GOLD.text} Which moon?", "Titan")), "Titan", "right"),
        ((opened(GOLD), asked(f"Observation 1: {GOLD.text}", "Titan")), "Titan", "right"),
        ((opened(OTHER), asked(f"Observation 1: {OTHER.text}", "no")), "no", "not_retrieved"),
        ((found(OTHER), asked("Rome is a city.", "Titan")), "Titan", "right_without_support"),
        ((asked("Which moon?", "Titan"),), "Titan", "right_without_support"),
        ((asked("Which moon?", "Rhea"),), "Rhea", "not_retrieved"),
    ],
)
def test_a_question_falls_where_it_was_lost(
    steps: tuple[Step, ...], answer: str, expected: str
) -> None:
    assert stage(*steps, answer=answer) == expected


def test_a_gold_page_that_the_corpus_lacks_cannot_be_retrieved() -> None:
    assert stage(found(OTHER), answer="no", corpus={"p2"}) == "not_in_corpus"


def test_nothing_is_said_of_a_corpus_that_cannot_be_looked_at() -> None:
    assert stage(found(OTHER), answer="no", corpus=None) == "not_found"
    assert "it is unknown whether the corpus holds it" in STAGES["not_found"]
    assert stage(found(OTHER), answer="no", gold=Gold(("Titan",))) == "not_found", (
        "gold without pages says nothing of the corpus"
    )


def test_a_failed_question_is_failed_whatever_it_had_retrieved() -> None:
    assert stage(found(GOLD), error="the model was gone") == "failed"


def test_all_pages_of_an_evidence_set_are_needed_and_one_whole_set_is_enough() -> None:
    both = Gold(("Titan",), provenance=(frozenset({"p1", "p3"}),))
    prompt = asked(f"{GOLD.text}\n{SECOND.text}", "Titan")
    assert stage(found(GOLD), asked(GOLD.text, "no"), answer="no", gold=both) == "not_retrieved"
    assert stage(found(GOLD, SECOND), prompt, answer="Titan", gold=both) == "right"
    either = Gold(("Titan",), provenance=(frozenset({"p1", "p3"}), frozenset({"p3"})))
    assert stage(found(SECOND), asked(SECOND.text, "Titan"), answer="Titan", gold=either) == "right"


def test_two_retrievals_are_looked_at_together() -> None:
    steps = (
        found(OTHER),
        asked(OTHER.text, "Saturn's moon?"),
        found(GOLD),
        asked(GOLD.text, "Titan"),
    )
    assert stage(*steps, answer="Titan") == "right"


def test_a_passage_counts_as_shown_only_after_it_was_retrieved() -> None:
    assert stage(asked(GOLD.text, "no"), found(GOLD), answer="no") == "not_in_prompt"


def test_without_gold_pages_a_passage_that_holds_an_answer_is_the_support_and_that_is_said() -> (
    None
):
    gold = Gold(("Titan",))
    episode = Episode("q", "chain", (found(GOLD), asked(GOLD.text, "Titan")), Outcome("Titan"))
    result = waterfall([Example(Question("q", "Which moon?"), gold)], [episode], CORPUS)
    assert (result.placed[0].stage, result.placed[0].by, result.without_pages) == (
        "right",
        "answers",
        1,
    )


def test_an_identity_action_that_hands_on_the_first_title_shows_its_page() -> None:
    title = Step(Note("Titan"), Reply("Titan"))
    assert stage(found(GOLD), title, answer="Titan") == "right"


def test_long_gold_answers_are_not_judged_by_exact_match() -> None:
    long = Gold((" ".join(["word"] * 30),), provenance=(frozenset({"p1"}),))
    assert (
        stage(found(GOLD), asked(GOLD.text, "something"), answer="something", gold=long)
        == "in_prompt"
    )


@pytest.mark.parametrize("answer", ["", "something"])
def test_gold_with_pages_and_no_answers_has_none_to_be_compared_with(answer: str) -> None:
    pages = Gold(provenance=(frozenset({"p1"}),))
    assert (
        stage(found(GOLD), asked(GOLD.text, answer), answer=answer, gold=pages) == "without_answers"
    )
    assert (
        stage(found(OTHER), asked(OTHER.text, answer), answer=answer, gold=pages) == "not_retrieved"
    )
    assert "the gold has no answers" in STAGES["without_answers"]


def with_passages(*texts: str, prompt: str, answer: str, wanted: str = "Titan") -> Waterfall:
    """A question that came with its passages, answered without a retrieval."""
    question = Question(
        "q", "Which moon?", tuple(Passage(f"document {n}", text) for n, text in enumerate(texts, 1))
    )
    return waterfall(
        [Example(question, Gold((wanted,)))],
        [Episode("q", "rgb", (asked(prompt, answer),), Outcome(answer))],
    )


def test_passages_that_came_with_a_question_are_looked_at_and_no_corpus_is_missed() -> None:
    shown = with_passages(
        OTHER.text, GOLD.text, prompt=f"{OTHER.text}\n{GOLD.text}\nWhich moon?", answer="Rhea"
    )
    assert (shown.placed[0].stage, shown.placed[0].by) == ("not_in_answer", "given")
    assert (
        with_passages(GOLD.text, prompt=GOLD.text, answer="It is Titan").placed[0].stage
        == "lost_by_format"
    )
    assert (
        with_passages(GOLD.text, prompt="Which moon?", answer="Rhea").placed[0].stage
        == "not_in_prompt"
    )
    assert (
        with_passages(OTHER.text, prompt=OTHER.text, answer="Rhea").placed[0].stage == "not_given"
    )
    assert (
        with_passages("罗马是一座城市。", prompt="罗马是一座城市。", answer="北京", wanted="罗马")
        .placed[0]
        .stage
        == "not_in_answer"
    )
    assert (shown.given_passages, shown.without_pages, shown.misses_corpus, shown.tells) == (
        1,
        0,
        False,
        True,
    )
    (note,) = notes([("a", shown)])
    assert note.startswith("a: 1 question came with passages") and "corpus" not in note


def test_the_stages_come_in_order_and_every_question_is_in_one() -> None:
    gold = Gold(("Titan",), provenance=(frozenset({"p1"}),))
    examples = [Example(Question(f"q{i}", "Which moon?"), gold) for i in range(3)]
    episodes = [
        Episode("q0", "chain", (found(OTHER),), Outcome("")),
        Episode("q1", "chain", (found(GOLD), asked(GOLD.text, "Titan")), Outcome("Titan")),
        Episode("q2", "chain", (), None, "failed"),
    ]
    result = waterfall(examples, episodes, CORPUS)
    assert list(result.counts()) == list(STAGES)
    assert sum(result.counts().values()) == 3
    assert result.questions("right") == ["q1"]


def test_where_nothing_was_retrieved_and_no_pages_are_named_there_is_no_way_to_be_lost_on() -> None:
    examples = [Example(Question("q", "Which moon?"), Gold(("Titan",)))]
    alone = waterfall(
        examples, [Episode("q", "rgb", (asked("Documents: …", "Rhea"),), Outcome("Rhea"))]
    )
    assert not alone.tells and not alone.within({"q"}).tells
    (note,) = notes([("a", alone)])
    assert note.startswith("a: nothing was retrieved and no question names gold pages")
    assert not figure([("a", alone)]).series
    assert waterfall(examples, [Episode("q", "chain", (found(OTHER),), Outcome("Rhea"))]).tells
