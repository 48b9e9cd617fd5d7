"""Gold pages chosen by searching: pages of an index, proposals that a person accepts, and one edit of the dataset."""

from __future__ import annotations

import json

import pytest
from page_views import refused, texts, view_of
from small_workspace import QUESTIONS

from rallebench.gui.frame import Page


@pytest.fixture
def bare(page: Page) -> Page:
    """The page with a dataset ``bare`` whose questions name no gold page."""
    rows = [
        {"id": qid, "input": text, "output": [{"answer": answer}]}
        for qid, text, answer, _ in QUESTIONS
    ]
    path = page.workspace.path / "datasets" / "bare.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return page


def pages(page: Page) -> list[set[str]]:
    return [set(example.gold.pages) for example in page.workspace.questions("bare")]


def test_a_question_is_opened_with_the_pages_of_an_index_and_the_answer_marked(bare: Page) -> None:
    drawn = bare.open("data/gold?id=bare&index=tiny").html
    assert "0 of 8 questions with a gold page" in texts(str(drawn["v-data-gold"]))
    hits = str(drawn["gold-hits"])
    assert "<mark" in hits and "1 Take as gold" in hits and "has the answer" in texts(hits)


def test_taken_pages_are_saved_as_one_edit_that_can_be_undone(bare: Page) -> None:
    bare.open("data/gold?id=bare&index=tiny")
    query = {"id": "bare"}
    patch = bare.call("gold.take", {"id": "bare", "page_id": "p1"}, **query)
    assert "Save gold of 1 question" in texts(str(patch.html["gold-bar"])) and not any(pages(bare))
    bare.call("gold.pick", {"id": "q2"}, **query)
    bare.call("gold.take", {"id": "bare", "page_id": "p2"}, **query)
    patch = bare.call("gold.save", {"id": "bare"}, **query)
    assert patch.say == "Saved the gold pages of 2 questions."
    assert pages(bare)[:3] == [{"p1"}, {"p2"}, set()]
    bare.call("gold.pick", {"id": "q1"}, **query)
    bare.call("gold.take", {"id": "bare", "page_id": "p1"}, **query)
    bare.call("gold.save", {"id": "bare"}, **query)
    assert pages(bare)[0] == set(), "a page that is taken twice is removed"
    assert len(bare.workbench.edits.history("bare").edits) == 2


def test_pages_that_are_needed_together_stay_together(page: Page) -> None:
    page.workbench.edits.edit("tiny-qa", "q1", pages=["p1", "p2"])
    page.open("data/gold?id=tiny-qa&index=tiny&q=q1")
    page.call("gold.take", {"id": "tiny-qa", "page_id": "p3"})
    page.call("gold.take", {"id": "tiny-qa", "page_id": "p4", "joined": "1"})
    page.call("gold.save", {"id": "tiny-qa"})
    sets = page.workbench.edits.read("tiny-qa", "q1").draft.evidence
    assert [[own.page_id for own in pages] for pages in sets] == [["p1", "p2"], ["p3", "p4"]]
    page.call("gold.drop", {"id": "tiny-qa", "position": "1"})
    page.call("gold.save", {"id": "tiny-qa"})
    sets = page.workbench.edits.read("tiny-qa", "q1").draft.evidence
    assert [[own.page_id for own in pages] for pages in sets] == [["p1"], ["p3", "p4"]]


def test_proposals_wait_for_a_person(bare: Page) -> None:
    bare.open("data/gold?id=bare&index=tiny")
    patch = bare.call("gold.propose", {"id": "bare"}, id="bare")
    assert "Check and accept them" in texts(str(patch.html["gold-status"]))
    assert "Accept all" in str(patch.html["gold-bar"]) and "disabled" in str(patch.html["gold-bar"])
    assert not any(pages(bare)), "nothing is written by a proposal"
    bare.call("gold.accept", {"id": "bare", "answer": "no"}, id="bare")
    bare.call("gold.accept_all", {"id": "bare"}, id="bare")
    assert not any(pages(bare))
    bare.call("gold.save", {"id": "bare"}, id="bare")
    assert pages(bare)[0] == set(), "the rejected proposal"
    assert pages(bare)[4] == {"p5"} and pages(bare)[5] == {"p6"}


def test_a_dataset_from_elsewhere_is_not_changed(page: Page) -> None:
    body = view_of(page, "data/gold?id=starter-qa&index=tiny")
    assert "edit a copy of it" in texts(body)
    page.call("gold.take", {"id": "starter-qa", "page_id": "p1"})
    refused(page, "gold.save", {"id": "starter-qa"}, "edit a copy of it")
