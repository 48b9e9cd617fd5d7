"""Labelling a run from Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from labelled_runs import QIDS, kinds_of_answers, label, make_quiz_run

from rallebench import RalleError, Workspace


@pytest.fixture
def ws(workspace: Path) -> Iterator[Workspace]:
    with Workspace(workspace, track=False) as opened:
        opened.run("read", "tiny-qa", name="x")
        yield opened


def test_labels_are_given_and_hold_for_a_later_run(ws: Workspace) -> None:
    labels = ws.run_result("x").labels
    labels.give("q1", "right", who="ann", note="sure")
    labels.give("q2", "wrong", who="ann", blind=True)
    labels.give("q2", "right", who="ben")
    later = ws.run("read", "tiny-qa", name="y").labels
    assert [(x.qid, x.who, x.grade) for x in later] == [
        ("q1", "ann", "right"),
        ("q2", "ann", "wrong"),
        ("q2", "ben", "right"),
    ]
    assert later.agreement.people == ("ann", "ben") and later.agreement.nominal == 0.0
    frame = later.to_pandas()
    assert list(frame["blind"]) == [False, True, False] and set(frame["run"]) == {"x"}
    assert "y: 2 labelled answers" in repr(later) and "<table" in later._repr_html_()


def test_a_sample_is_drawn_and_gold_corrected(ws: Workspace) -> None:
    labels = ws.run_result("x").labels
    assert labels.sample is None
    sample = labels.draw(4, seed=3, who="ann")
    assert labels.sample == sample and {x.probability for x in sample.answers} == {0.5}
    assert labels.draw(6, graders=["em", "recall@5"]).graders == ("em", "recall@5")
    assert labels.give_passage("q1", "p1", False).relevant is False
    labels.give("q1", "gold-wrong", right=["Saturn VI"])
    assert [x.after for x in labels.corrected_copy("better").questions] == [("Saturn VI",)]
    with pytest.raises(RalleError, match="has no question 'q99'"):
        labels.give("q99", "right")


def test_a_metric_is_corrected_by_labels_alone_and_as_a_difference(ws: Workspace) -> None:
    for name, seed in (("first", 1), ("second", 2)):
        kinds = kinds_of_answers(seed, 0.4)
        make_quiz_run(ws.path, name, kinds)
        label(ws.path, name, kinds, QIDS[:60])
    first, second = ws.run_result("first"), ws.run_result("second")
    mean = first.correct("em")
    assert repr(mean.corrected).startswith("corrected 0.") and float(mean.raw) < float(
        mean.corrected
    )
    gap = second.correct("em", against=first)
    assert gap.runs == ("first", "second") and gap.method == "corrected"
    assert float(gap.raw) == pytest.approx(float(second["em"]) - float(first["em"]))
    with pytest.raises(RalleError, match="No answer of 'x' that em scores is labelled"):
        ws.run_result("x").correct("em")
