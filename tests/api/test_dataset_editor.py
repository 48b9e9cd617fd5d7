"""Editing a dataset from Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rallebench import RalleError, Workspace


@pytest.fixture
def ws(workspace: Path) -> Iterator[Workspace]:
    with Workspace(workspace, track=False) as opened:
        yield opened


def test_a_dataset_is_edited_and_every_edit_undone(ws: Workspace) -> None:
    editor = ws.edit_dataset("tiny-qa")
    before = list(ws.dataset("tiny-qa"))
    assert editor.add("New?", ["x"], pages=["p1"], group="g") == "own-9"
    assert editor.change("q1", answers=["Titan", "Saturn VI"])
    assert not editor.change("q1", answers=["Titan", "Saturn VI"])
    assert editor.delete("q2", "q3") == 7
    assert [edit.kind for edit in editor.history] == ["add", "change", "delete"]
    assert "tiny-qa: 3 edits" in repr(editor) and "<table" in editor._repr_html_()
    editor.undo()
    assert len(ws.dataset("tiny-qa")) == 9
    editor.return_to(0)
    assert list(ws.dataset("tiny-qa")) == before


def test_the_wrong_questions_of_a_run_are_added(ws: Workspace) -> None:
    ws.run("read", "tiny-qa", name="x")
    assert len(ws.edit_dataset("hard").add_from_run("x")) == 7
    assert len(ws.dataset("hard")) == 7
    with pytest.raises(RalleError, match="is failed, so nothing was added"):
        ws.edit_dataset("hard").add_from_run("x", "failed")


def test_a_dataset_from_elsewhere_is_edited_as_a_copy(ws: Workspace) -> None:
    with pytest.raises(RalleError, match="edit a copy of it"):
        ws.edit_dataset("starter-qa").delete("qa-001")
    assert ws.edit_dataset("mine", copy_of="starter-qa").delete("qa-001") == 221
