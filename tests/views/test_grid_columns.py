"""Further columns of the grid: each assertion, and the values that it refuses."""

from __future__ import annotations

import pytest
from tiny_support import answer_pair

from rallebench.core.errors import UsageError
from rallebench.core.types import (
    Episode,
    Example,
    Gold,
    Hit,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
)
from rallebench.metrics.judges import judge_named
from rallebench.views.grid_columns import GridColumn, find_pattern, metric_names, score_answer

EXAMPLE = Example(Question("q1", "Which moon?"), Gold(("Titan",)))


def episode(answer: str, hits: int = 0) -> Episode:
    """An answer after a search with ``hits`` passages."""
    passages = tuple(Hit(Passage(str(n), "text", "title", "p"), 1.0) for n in range(hits))
    return Episode(
        "q1", "chain", (Step(Retrieve("x", "q", 5), Reply("", hits=passages)),), Outcome(answer)
    )


def value(column: str, answer: str, hits: int = 0) -> float | None:
    """The score of an answer in a column."""
    chosen = GridColumn.read(column)
    row = score_answer(chosen.scorer(lambda llm: ""), EXAMPLE, episode(answer, hits))
    return row.values[chosen.series[0].name]


@pytest.mark.parametrize(
    ("column", "holds", "fails"),
    [
        ("contains:titan", "It is Titan.", "Triton"),
        ("lacks:sorry", "Titan", "Sorry, no."),
        ("equals:the titan", "Titan!", "Titan, a moon"),
        ("matches:^[A-Z]\\w+$", "Titan", "It is Titan"),
        ("characters:5", " Titan ", "Triton"),
        ("words:2", "A moon", "It is Titan"),
        ("json", '{"a": [1]}', "{a: 1}"),
        ("metric:em", "titan", "Triton"),
    ],
)
def test_a_column_holds_or_not(column: str, holds: str, fails: str) -> None:
    assert (value(column, holds), value(column, fails)) == (1.0, 0.0)


def test_a_citation_names_a_passage_that_was_retrieved() -> None:
    assert value("cites", "Titan [2].", hits=2) == 1.0
    assert value("cites", "Titan [3].", hits=2) == value("cites", "Titan.", hits=2) == 0.0


def test_a_failed_answer_has_no_score() -> None:
    scorer = GridColumn("json").scorer(lambda llm: "")
    row = score_answer(scorer, EXAMPLE, Episode("q1", "chain", (), None, error="no answer"))
    assert row.values == {} and row.notes == {"is JSON": "the question failed"}


def test_a_pattern_never_backtracks() -> None:
    assert not find_pattern("(a|a)*(a|a)*c", "a" * 100_000), "Python's own module would need years"


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("matches:(", "not a pattern of RE2"),
        ("matches:(?=a)", "without look-around"),
        ("contains:", "needs a value"),
        ("words:many", "must be a whole number"),
        ("metric:nothing", "nothing"),
        ("judge:truthfulness", "Choose a judge and the model"),
        ("judge:em:echo", "Choose a judge and the model"),
        ("rhymes", "There is no column 'rhymes'"),
        ("contains:" + "x" * 501, "at most 500 characters"),
    ],
)
def test_a_wrong_column_is_refused_in_one_sentence(column: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("(", r"\(")):
        GridColumn.read(column)


def test_a_judge_gives_several_series_and_metrics_that_load_a_model_are_not_offered() -> None:
    judge = GridColumn.read("judge:truthfulness:echo")
    assert judge.label == "truthfulness by echo"
    assert [series.name for series in judge.series][:2] == ["truthfulness:echo", "relevance:echo"]
    assert metric_names(["em", "bert_score", "f1"]) == ["em", "f1"]


def test_support_is_a_column_by_the_head_or_by_a_language_model() -> None:
    pair = answer_pair("Titan is a moon of Saturn.", ["Titan is a moon of Saturn."])
    by_head = GridColumn.read("metric:support").scorer(lambda llm: "")
    assert score_answer(by_head, *pair).values == {"support": 1.0}
    column = GridColumn.read("judge:support:my-llm")
    assert column.label == "support by my-llm"
    scorer = column.scorer(lambda llm: "mark")
    judgement = Episode("q", "judge", (), Outcome("[0.75]"))
    assert score_answer(scorer, *pair, judgement).values == {column.series[0].name: 1.0}
    assert score_answer(scorer, *pair).values == {"support:my-llm": None}
    with pytest.raises(UsageError, match="not for a verdict on an answer"):
        judge_named("support:my-llm", lambda llm: "mark")
