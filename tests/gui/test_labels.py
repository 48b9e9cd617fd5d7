"""Label mode of a run without a browser: grades, the next question, blind labels, passages, samples and filters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_views import refused, run_of, texts, view_of

from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.views.labels import find_answer
from rallebench.views.run_questions import questions


@pytest.fixture
def open_run(page: Page) -> Page:
    """The page with a run ``x``."""
    run_of(page.workbench, "x")
    return page


def give(page: Page, qid: str, key: str, mode: str = "open", **more: Any) -> Patch:
    fields = {"run": "x", "qid": qid, "grade": key, "mode": mode, "who": "ann", **more}
    query = {key: more[key] for key in ("only",) if key in more}
    return page.call("labels.give", fields, id="x", q=qid, label=mode, **query)


def grades(page: Page, qid: str) -> list[tuple[str, str, bool]]:
    answer = find_answer(page.workspace, page.workbench.runs.open("x"), qid)
    labels = page.workbench.labels.book("tiny-qa").answers.get(answer.key, {})
    return [(label.who, label.grade, label.blind) for label in labels.values()]


def test_a_run_is_read_until_label_mode_is_chosen(open_run: Page) -> None:
    read = view_of(open_run, "#/runs/run?id=x&q=q1")
    assert "labels.give" not in read and "Label blind" in texts(read)
    body = view_of(open_run, "#/runs/run?id=x&q=q1&label=open")
    assert all(f'data-key="{key}"' in body for key in "12340")
    assert 'data-key="l"' in read and 'data-key="l"' in body
    assert "4 The gold is wrong" in texts(body) and "Unlabelled 8" in texts(body)


def test_a_key_labels_the_answer_and_opens_the_next_question(open_run: Page) -> None:
    patch = give(open_run, "q1", "1", note="sure")
    assert grades(open_run, "q1") == [("ann", "right", False)]
    assert "q=q2" in patch.address and "label=open" in patch.address
    assert "moon goes round Neptune" in patch.html["run-question"]
    assert "Unlabelled 7" in texts(patch.html["run-chips"])
    assert "Labelled 1" in texts(patch.html["run-chips"])
    again = view_of(open_run, "#/runs/run?id=x&q=q1&label=open")
    assert 'aria-pressed="true" title="Key 1"' in again and 'value="sure"' in again
    give(open_run, "q1", "0")
    assert grades(open_run, "q1") == [("ann", "skip", False)]
    last = give(open_run, "q8", "3")
    assert "q=q8" in last.address, "the last question stays open"


def test_a_label_leaves_the_list_of_unlabelled_answers_in_order(open_run: Page) -> None:
    patch = give(open_run, "q2", "3", only="unlabelled")
    assert "q=q3" in patch.address and 'data-total="7"' in patch.html["run-rows"]


def test_a_blind_label_is_given_without_gold_verdict_and_scores(open_run: Page) -> None:
    give(open_run, "q2", "3", who="ben")
    body = view_of(open_run, "#/runs/run?id=x&q=q2&label=blind")
    shown = texts(body[body.index('id="run-question"') :])
    assert "Titan" in shown and "gold" not in shown.replace("The gold is wrong", "").replace(
        "if the gold is wrong", ""
    )
    assert "Wrong (ben)" not in shown and "<mark" not in body[body.index('id="run-question"') :]
    assert "hidden while you label blind" in texts(body) and "R-precision" not in texts(body)
    chips = texts(body[body.index('id="run-chips"') : body.index('id="run-rows"')])
    assert "Not retrieved" not in chips and "Unlabelled 7" in chips
    rows = open_run.list_rows(
        {
            "window": "w",
            "list": "run-questions",
            "key": {"run": "x", "label": "blind"},
            "start": 0,
            "count": 8,
        }
    ).to_json()["rows"]
    assert not any("gold" in row[1] or "m wrong" in row[1] for row in rows)
    give(open_run, "q2", "2", mode="blind")
    assert grades(open_run, "q2")[-1] == ("ann", "partly", True)


def list_rows(page: Page, **key: str) -> str:
    window = {"window": "w", "list": "run-questions", "start": 0, "count": 8}
    rows = page.list_rows({**window, "key": {"run": "x", **key}}).to_json()["rows"]
    return texts(" ".join(row[1] for row in rows))


def test_wrong_gold_waits_for_the_right_answer_or_a_second_press(open_run: Page) -> None:
    patch = give(open_run, "q1", "4")
    assert patch.address == "" and "run-question" not in patch.html
    assert "data-begin" in patch.html["run-label"], "the focus is in the field"
    assert grades(open_run, "q1") == [("ann", "gold-wrong", False)]
    assert "q=q2" in give(open_run, "q1", "4").address
    blind = view_of(open_run, "#/runs/run?id=x&q=q3&label=blind")
    assert 'data-key="4"' not in blind and 'name="right"' not in blind
    fields = {"run": "x", "qid": "q3", "grade": "4", "mode": "blind", "who": "ann"}
    refused(open_run, "labels.give", fields, "reload")


def test_the_list_shows_the_grades_and_blind_only_the_own_ones(open_run: Page) -> None:
    give(open_run, "q1", "2", who="ben")
    assert "label ≈ partly right" in list_rows(open_run, label="open")
    assert "label" not in list_rows(open_run)
    assert "Labels by grade: partly right 1." in texts(
        open_run.call("labels.summary", {"run": "x"}).dialog or ""
    )


def test_wrong_gold_takes_a_right_answer(open_run: Page) -> None:
    give(open_run, "q1", "4", right="Saturn VI | Titan VI")
    give(open_run, "q2", "1", right="not sent with another grade")
    answer = find_answer(open_run.workspace, open_run.workbench.runs.open("x"), "q1")
    (label,) = open_run.workbench.labels.book("tiny-qa").answer_labels(answer.key)
    assert label.right == ("Saturn VI", "Titan VI")


def test_a_passage_is_labelled_and_the_choice_is_shown(open_run: Page) -> None:
    fields = {"run": "x", "qid": "q1", "mode": "open", "who": "ann"}
    patch = open_run.call("labels.passage", {**fields, "page": "p1", "relevant": "1"}, id="x")
    assert 'aria-pressed="true" data-do="labels.passage" data-page="p1"' in patch.html["run-label"]
    assert "1 passage labelled" in texts(open_run.call("labels.summary", {"run": "x"}).dialog or "")
    refused(open_run, "labels.passage", {**fields, "page": "p99"}, "did not retrieve 'p99'")


def test_the_mode_changes_at_the_open_question(open_run: Page) -> None:
    query = {"id": "x", "q": "q5", "label": "open", "only": "unlabelled"}
    blind = open_run.call("labels.choose_mode", {"mode": "blind"}, **query).go
    assert "q=q5" in blind and "label=blind" in blind and "only=unlabelled" in blind
    read = open_run.call("labels.choose_mode", {"mode": ""}, **query).go
    assert "q=q5" in read and "label" not in read, "reading has no filter by label"


def open_question(page: Page, address: str) -> str:
    """The question that a view of the run has open, by the field of its bar."""
    field = re.search(r'name="qid" value="(\w+)"', view_of(page, address))
    return field[1] if field else ""


def test_labelling_begins_at_the_first_question_of_the_list_without_a_label(
    open_run: Page,
) -> None:
    wrong = [
        row.qid
        for row in questions(open_run.workspace, open_run.workbench.runs.open("x"))
        if row.kind == "wrong"
    ]
    assert wrong and wrong[0] != "q1"
    address = open_run.call("labels.choose_mode", {"mode": "open"}, id="x", q=wrong[0]).go
    assert "q=" not in address and open_question(open_run, address) == "q1"
    give(open_run, "q1", "1")
    give(open_run, "q3", "0")
    assert open_question(open_run, address) == "q2"
    assert "q=q4" in give(open_run, "q2", "1").address, "a skipped question is not asked again"
    open_run.call(
        "labels.give",
        {"run": "x", "qid": "q5", "grade": "1", "mode": "open", "who": "ben"},
        id="x",
        q="q5",
        label="open",
    )
    assert open_question(open_run, address) == "q1", "another person labels all answers, too"
    assert open_question(open_run, f"{address}&q=q7") == "q7"


def test_a_filter_in_label_mode_opens_a_question_that_passes_it(open_run: Page) -> None:
    patch = open_run.call(
        "runs.choose", {"run": "x", "only": "wrong", "words": ""}, id="x", q="q1", label="open"
    )
    first = re.search(r"[?&]q=(\w+)", patch.address)
    assert first and first[1] != "q1" and f'value="{first[1]}"' in patch.html["run-question"]
    same = open_run.call(
        "runs.choose", {"run": "x", "only": "", "words": ""}, id="x", q=first[1], label="open"
    )
    assert f"q={first[1]}" in same.address and "run-question" not in same.html


def test_a_sample_is_drawn_and_listed(open_run: Page) -> None:
    dialog = open_run.call("labels.summary", {"run": "x"}).dialog or ""
    assert "0 of 8 answers labelled." in texts(dialog) and "labels.plan" in dialog
    patch = open_run.call("labels.plan", {"run": "x", "size": "3"}, id="x")
    assert "only=sample" in patch.go and "label=open" in patch.go
    assert "Sample 3 of 3 left" in texts(view_of(open_run, patch.go))
    more = {"run": "x", "size": "4", "first": "em", "second": "recall@5"}
    open_run.call("labels.plan", more, id="x")
    refused(open_run, "labels.plan", {**more, "second": ""}, "name at least two columns")
    refused(open_run, "labels.plan", {"run": "x", "size": "0"}, "draw at least 1")


def test_what_cannot_be_labelled_says_why(page: Page) -> None:
    run_of(page.workbench, "x", llm="picky")
    body = texts(view_of(page, "#/runs/run?id=x&q=q1&label=open"))
    assert "has no answer to label" in body
    refused(page, "labels.give", {"run": "x", "qid": "q1", "mode": "open", "grade": "9"}, "reload")


def test_labels_are_saved_as_csv_and_qrels(open_run: Page) -> None:
    give(open_run, "q1", "1", note="sure")
    passage = {"run": "x", "qid": "q1", "page": "p1", "relevant": "0", "mode": "open", "who": "ann"}
    open_run.call("labels.passage", passage, id="x")
    saved = {
        shape: open_run.call("labels.export", {"run": "x", "shape": shape}, id="x").download
        for shape in ("csv", "qrels")
    }
    csv, qrels = saved["csv"], saved["qrels"]
    assert csv is not None and qrels is not None and csv.name == "x-labels.csv"
    assert "q1" in csv.text and "right,ann,sure" in csv.text
    assert qrels.text.startswith("q1 0 p1 0\n")


def test_the_corrected_copy_of_the_dataset_opens(open_run: Page) -> None:
    dialog = texts(open_run.call("labels.summary", {"run": "x"}).dialog or "")
    assert "Save as CSV" in dialog and "Copy with corrected gold" in dialog
    refused(open_run, "labels.corrected_copy", {"run": "x", "copy": "fixed"}, "No label says that")
    give(open_run, "q1", "4", right="Saturn VI")
    give(open_run, "q2", "4")
    refused(open_run, "labels.corrected_copy", {"run": "x", "copy": ""}, "a name")
    patch = open_run.call("labels.corrected_copy", {"run": "x", "copy": "fixed"}, id="x")
    assert "fixed" in patch.go and "1 corrected question. Without a right answer: q2." in patch.say
    answers = {e.question.qid: e.gold.answers for e in open_run.workspace.questions("fixed")}
    assert answers["q1"] == ("Saturn VI",) and answers["q2"] == ("Triton",)


def test_passages_of_other_runs_are_labelled_too(open_run: Page) -> None:
    run_of(open_run.workbench, "wide", settings=("k=6",))
    fields = {"run": "x", "qid": "q1", "mode": "open", "who": "ann"}
    own = view_of(open_run, "#/runs/run?id=x&q=q1&label=open")
    pool = open_run.call("labels.pool", fields, id="x").html["run-label"]
    shown, pooled = (text.count('data-do="labels.passage"') // 2 for text in (own, pool))
    assert (shown, pooled) == (2, 6) and "other run: Danube" in texts(pool)
    chosen = {**fields, "page": "p4", "relevant": "1", "pooled": "1"}
    patch = open_run.call("labels.passage", chosen, id="x").html["run-label"]
    assert 'aria-pressed="true" data-do="labels.passage" data-page="p4"' in patch
    refused(open_run, "labels.passage", {**chosen, "page": "p99"}, "did not retrieve 'p99'")
