"""Runs over different versions of a dataset: only questions that did not change are compared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_views import run_of

from rallebench.core.dataset_edits import GoldPage, QuestionDraft, compare_questions, question_key
from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.types import Example, Gold, Question
from rallebench.engine.store import RunFolder
from rallebench.services.workbench import Workbench
from rallebench.views import comparing, run_questions
from rallebench.views.dataset_changes import changed_questions, dataset_changes


def edit_three(bench: Workbench) -> None:
    """Change an answer, a gold page and a text; delete a question and add another."""
    edits = bench.edits
    edits.edit("tiny-qa", "q1", answers=["Saturn VI"])
    edits.edit("tiny-qa", "q2", pages=["p9"])
    edits.edit("tiny-qa", "q3", text="In which of the states is Lamar County?")
    edits.edit("tiny-qa", "q4", group="rivers")
    edits.delete("tiny-qa", ["q8"])
    edits.add("tiny-qa", QuestionDraft("New?", ("x",)))


def runs(bench: Workbench, *names: str) -> list[RunFolder]:
    return [bench.runs.open(name) for name in names]


def test_changed_questions_are_not_compared(bench: Workbench) -> None:
    run_of(bench, "before")
    edit_three(bench)
    run_of(bench, "after")
    compared = comparing.compare(runs(bench, "before", "after"), "em")
    assert [e.question.qid for e in compared.comparison.common] == ["q4", "q5", "q6", "q7"]
    sentence = (
        "4 of 9 questions are the same in both; 5 changed or are in one only, and are left out."
    )
    assert compared.comparison.warnings[0] == compared.comparison.versions == sentence
    assert (compared.to_json()["changed"], compared.to_json()["n"]) == (3, 4)
    run_of(bench, "last")
    three = comparing.compare(runs(bench, "before", "after", "last"), "em").comparison
    assert three.warnings[0].startswith("4 of 9 questions are the same in all runs; 5 changed")
    same = comparing.compare(runs(bench, "after", "last"), "em").comparison
    assert (same.changed, same.versions, len(same.common)) == (0, "", 8)


def test_runs_without_an_equal_question_cannot_be_compared(bench: Workbench) -> None:
    run_of(bench, "before")
    for example in bench.workspace.questions("tiny-qa"):
        bench.edits.edit("tiny-qa", example.question.qid, answers=["another"])
    run_of(bench, "after")
    with pytest.raises(UsageError, match="share no question"):
        comparing.compare(runs(bench, "before", "after"))


def test_a_run_knows_what_was_edited_since(bench: Workbench) -> None:
    run_of(bench, "all")
    run_of(bench, "part", limit=4)
    every, part = runs(bench, "all", "part")
    assert dataset_changes(bench.workspace, every).words == ""
    edit_three(bench)
    changes = dataset_changes(bench.workspace, every)
    assert changes.words == "3 questions changed, 1 was deleted, 1 was added"
    assert dataset_changes(bench.workspace, part).words == "3 questions changed"
    assert changed_questions(bench.workspace, every) == {"q1", "q2", "q3"}
    verdicts = run_questions.last_verdicts(bench.workspace, "tiny-qa", "read")
    assert verdicts.keys() == {"q4"}, "a changed question has no verdict of an earlier run"
    bench.edits.restore("tiny-qa", 0)
    assert dataset_changes(bench.workspace, every).words == ""
    bench.data.delete_dataset("tiny-qa")
    assert dataset_changes(bench.workspace, every).words == ""


def test_a_resumed_run_asks_the_questions_that_it_began_with(bench: Workbench) -> None:
    run_of(bench, "x")
    run = bench.runs.open("x")
    before = run.records()
    file = run.path / "episodes.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))
    for gone in (False, True):
        if gone:
            bench.data.delete_dataset("tiny-qa")
        else:
            edit_three(bench)
        prepared = bench.runs.resume("x")
        assert "changed since this run began" in prepared.warnings[-1]
        assert [dict(e.record) for e in prepared.request.examples] == before
    options = replace(prepared.options, track=False)
    assert complete(bench.runs.run(replace(prepared, options=options))).n == 8
    assert run.records() == before and len(run.heads()) == 8


TEXTS = st.lists(st.sampled_from("abc"), max_size=3, unique=True)
EXAMPLES = st.lists(
    st.builds(
        lambda qid, text, answers, pages: Example(
            Question(str(qid), text),
            Gold(tuple(answers), provenance=tuple(frozenset(page) for page in pages)),
        ),
        st.integers(0, 5),
        st.sampled_from("xy"),
        TEXTS,
        TEXTS,
    ),
    max_size=6,
    unique_by=lambda example: example.question.qid,
)


@given(EXAMPLES, EXAMPLES)
def test_every_question_is_counted_once(before: list[Example], now: list[Example]) -> None:
    changes, back = compare_questions(before, now), compare_questions(now, before)
    assert changes.same + changes.changed + changes.deleted == len(before)
    assert changes.same + changes.changed + changes.added == len(now)
    assert (changes.same, changes.changed, changes.added) == (back.same, back.changed, back.deleted)
    assert not compare_questions(before, before).words


def test_the_order_of_answers_and_the_titles_of_pages_are_no_change() -> None:
    question = Question("q", "Which?")
    pages = (frozenset({"p"}), frozenset({"r"}))
    first = Example(question, Gold(("a", "b"), provenance=pages, titles={"p": "T"}))
    second = Example(question, Gold(("b", "a"), provenance=pages[::-1]))
    assert question_key(first) == question_key(second)
    assert question_key(first) != question_key(Example(question, Gold(("a",), provenance=pages)))
    assert GoldPage("p").key == ("p", "")
