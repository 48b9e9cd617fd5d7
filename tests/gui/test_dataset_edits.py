"""Editing a dataset on the page, without a browser: fields, gold pages, conflicts, history, questions of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from page_views import refused, run_of, text_of, texts, view_of

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.gui.frame import Page

Q1 = "#/data/dataset?id=tiny-qa&q=q1"


def form(page: Page, qid: str, **changes: str) -> dict[str, Any]:
    """The fields of a question as the page sends them."""
    question = page.workbench.edits.read("tiny-qa", qid)
    pages = [[p.page_id, p.title, p.doc_id] for p in question.draft.pages]
    fields = {
        "id": "tiny-qa",
        "qid": qid,
        "mark": question.mark,
        "text": question.draft.text,
        "answers": "\n".join(question.draft.answers),
        "gold": json.dumps([pages]),
        "group": question.draft.group,
    }
    return {**fields, **changes}


def answers(page: Page, qid: str) -> tuple[str, ...]:
    return page.workbench.edits.read("tiny-qa", qid).draft.answers


def test_a_question_of_the_workspace_has_fields_and_one_of_the_starter_is_read(page: Page) -> None:
    body = view_of(page, Q1)
    assert 'name="text"' in body and 'data-do="edit.save"' in body and "History" in body
    assert "No corpus has the gold page" not in body
    starter = view_of(page, "#/data/dataset?id=starter-qa")
    assert 'data-do="edit.save"' not in starter and 'data-do="edits.copy_form"' in starter
    assert "Add a question" in text_of(page, "#/data/dataset?id=tiny-qa&new=1")


def test_a_question_is_saved_and_an_unknown_page_is_told(page: Page) -> None:
    patch = page.call("edit.save", form(page, "q1", answers="Titan\n\nSaturn VI\n"))
    assert patch.say == "Saved." and answers(page, "q1") == ("Titan", "Saturn VI")
    gold = json.dumps([[["p99", "Nowhere", ""]]])
    page.call("edit.save", form(page, "q1", gold=gold))
    assert "No corpus has the gold page p99" in text_of(page, Q1)
    assert page.call("edit.save", form(page, "q1")).say == "Nothing was changed."
    refused(page, "edit.save", form(page, "q1", text=" "), "no question to save")
    refused(page, "edit.save", form(page, "q1", gold='[["x"]]'), "cannot be read; reload")
    refused(page, "edit.save", form(page, "q1", gold="{"), "cannot be read; reload")
    refused(page, "edit.save", form(page, "q1", unanswerable="on"), "unanswerable, but accepts")


def test_unsaved_changes_stay_until_they_are_saved_or_discarded(page: Page) -> None:
    patch = page.call("edit.keep", form(page, "q1", answers="Saturn VI"))
    assert "Unsaved changes" in patch.html["edit-state"]
    assert "Saturn VI" in view_of(page, Q1) and answers(page, "q1") == ("Titan",)
    assert "Unsaved changes" not in text_of(page, "#/data/dataset?id=tiny-qa&q=q2")
    assert page.call("edit.keep", form(page, "q1")).html["edit-state"] == ""
    page.call("edit.keep", form(page, "q1", answers="Saturn VI"))
    page.call("edit.discard", form(page, "q1"))
    assert "Saturn VI" not in view_of(page, Q1)


def test_gold_pages_are_found_taken_and_removed(page: Page) -> None:
    fields = form(page, "q5", gold="[]", index="tiny", query="Titan telescope")
    drawn = page.call("edit.find", fields).html["edit-hits"]
    assert "has the answer" in texts(drawn) and "Take as gold" in drawn and "as well" not in drawn
    taken = page.call("edit.take", {**fields, "page_id": "p5", "page_title": "H", "doc_id": "5"})
    assert "H" in texts(taken.html["edit-gold"]) and "Needed as well" in taken.html["edit-hits"]
    gold = json.dumps([[["p5", "H", ""]]])
    more = {**fields, "gold": gold, "page_id": "p1", "page_title": "T"}
    assert "or" in texts(page.call("edit.take", more).html["edit-gold"]).split()
    both = texts(page.call("edit.take", {**more, "joined": "1"}).html["edit-gold"])
    assert "and" in both.split() and "or" not in both.split()
    dropped = page.call("edit.drop", {**fields, "gold": gold, "position": "0"})
    assert "None yet" in texts(dropped.html["edit-gold"])
    refused(page, "edit.drop", {**fields, "position": "3"}, "no position '3' any more")


def test_a_second_window_is_asked_before_it_saves_over(page: Page) -> None:
    stale = form(page, "q1", answers="B")
    page.call("edit.save", form(page, "q1", answers="A"))
    asked = page.call("edit.save", stale, window="other")
    assert "q1 was changed in another window" in (asked.dialog or "") and answers(page, "q1") == (
        "A",
    )
    page.call("edit.save", {**stale, "over": "on"})
    assert answers(page, "q1") == ("B",)
    gone = form(page, "q1", answers="C")
    page.workbench.edits.delete("tiny-qa", ["q1"])
    asked = page.call("edit.save", gone)
    assert "q1 was deleted in another window" in (asked.dialog or "")
    page.call("edit.save", {**gone, "qid": "", "own": "q1"})
    assert answers(page, "q1") == ("C",)


def test_what_a_window_types_after_its_own_save_is_no_conflict(page: Page) -> None:
    drawn_before = form(page, "q1")
    page.call("edit.save", {**drawn_before, "answers": "A"})
    page.call("edit.keep", {**drawn_before, "answers": "A\nB"})
    assert "Unsaved changes" in text_of(page, Q1) and answers(page, "q1") == ("A",)
    assert page.call("edit.save", {**drawn_before, "answers": "A\nB"}).say == "Saved."
    assert page.call("edit.save", {**drawn_before, "answers": "Titan"}).say == "Saved."
    assert page.call("edit.save", form(page, "q1", answers="C")).say == "Saved."


def test_a_deleted_question_comes_back_and_history_returns(page: Page) -> None:
    deleted = page.call("edit.delete", form(page, "q1"))
    assert deleted.say == "Deleted “Which moon of Saturn has a thick atmosphere?”."
    assert "q=q2" in deleted.go and "edits.undo" in deleted.undo
    page.call("edits.undo", {"id": "tiny-qa", "number": "1"})
    drawer = texts(page.call("edits.show", {"id": "tiny-qa"}).drawer or "")
    assert "1 question deleted" in drawer and "back by Undo" in drawer
    assert "Answers: Titan" in drawer and "Gold pages: " in drawer and "{" not in drawer
    page.call("edits.restore", {"id": "tiny-qa", "number": "1"})
    with pytest.raises(NotFoundError):
        answers(page, "q1")
    refused(page, "edits.undo", {"id": "tiny-qa", "number": "9"}, "has no edit 9")


def test_questions_that_differ_from_the_first_version_are_marked_in_the_list(page: Page) -> None:
    def list_marks(name: str = "tiny-qa") -> dict[str, str]:
        key = {"view": "dataset", "id": name, "find": ""}
        sent = {"window": "w", "list": "data-dataset", "key": key, "start": 0, "count": 20}
        rows = page.list_rows(sent).to_json()["rows"]
        below = {qid: texts(row.partition("<small")[2].partition(">")[2]) for qid, row in rows}
        return {q: words.partition(" · ")[0] for q, words in below.items() if " · " in words}

    before = list_marks()
    page.call("edit.save", form(page, "q2", text="Which of them goes round Neptune?"))
    new = {"id": "tiny-qa", "qid": "", "text": "Who?", "answers": "Huygens", "gold": "[]"}
    page.call("edit.save", new)
    assert {**list_marks(), **before} == {**before, "q2": "changed", "own-9": "added"}
    page.call("edit.keep", form(page, "q3", answers="Another"))
    assert list_marks()["q3"] == "unsaved changes"
    page.call("edits.undo", {"id": "tiny-qa", "number": "1"})
    assert list_marks().get("q2") == before.get("q2")


def test_a_copy_opens_at_the_same_question(page: Page) -> None:
    asked = page.call("edits.copy_form", {"id": "starter-qa"}, q="qa-002")
    assert "my-starter-qa" in (asked.dialog or "")
    patch = page.call("edits.copy", {"id": "starter-qa", "as": "mine", "qid": "qa-002"})
    assert "id=mine" in patch.go and "q=qa-002" in patch.go
    refused(page, "edits.copy", {"id": "starter-qa", "as": "mine"}, "exists already")


def test_the_filtered_questions_of_a_run_are_saved(page: Page) -> None:
    refused(page, "edits.run_form", {"id": "tiny-qa"}, "There is no run yet")
    run_of(page.workbench, "x")
    assert "Save these 8 questions to a dataset" in text_of(page, "#/runs/run?id=x")
    asked = page.call("edits.keep_form", {"run": "x", "only": "wrong"})
    assert "Save 7 questions to a dataset" in (asked.dialog or "")
    patch = page.call("edits.add_run", {"run": "x", "only": "wrong", "dataset": "hard"})
    assert patch.say == "Added 7 questions to hard."
    assert "tiny-qa" in (page.call("edits.run_form", {"id": "hard"}).dialog or "")
    page.workbench.edits.edit("tiny-qa", "q1", answers=["x"])
    assert "tiny-qa was edited since: 1 question changed" in text_of(page, "#/runs/run?id=x")


def test_an_empty_search_is_refused(page: Page) -> None:
    refused(
        page, "edit.find", form(page, "q1", text="", index="tiny"), "The query is empty", UsageError
    )
