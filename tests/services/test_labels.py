"""Labels of people: given once, held for every run with the same answer, planned, and turned into corrected gold."""

from __future__ import annotations

import json

import pytest
from page_views import run_of

from rallebench.core.dataset_edits import EditHistory
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.labels import Grade, RunAnswer, normal_answer
from rallebench.core.types import Passage
from rallebench.datasets.label_file import label_file
from rallebench.services.labels import CorrectedCopy, usual_person
from rallebench.services.workbench import Workbench
from rallebench.views.labels import disagreements, find_answer, run_answers, run_labels


def answer(bench: Workbench, qid: str = "q1", run: str = "x") -> RunAnswer:
    return find_answer(bench.workspace, bench.runs.open(run), qid)


def give(bench: Workbench, qid: str, grade: Grade, who: str = "ann", **more: object) -> None:
    bench.labels.give(answer(bench, qid), grade, who=who, **more)  # type: ignore[arg-type]


@pytest.fixture
def ran(bench: Workbench) -> Workbench:
    run_of(bench, "x")
    return bench


def test_a_label_is_carried_to_every_run_with_the_same_answer(ran: Workbench) -> None:
    label = ran.labels.give(answer(ran), "right", who=" ann  lee ", note=" sure ", blind=True)
    assert (label.who, label.note, label.run, label.blind) == ("ann lee", "sure", "x", True)
    give(ran, "q2", "wrong", "ben")
    run_of(ran, "y")
    labels = run_labels(ran.workspace, ran.runs.open("y"))
    assert [(x.answer.qid, x.labels[0].grade) for x in labels.labelled_answers] == [
        ("q1", "right"),
        ("q2", "wrong"),
    ]
    assert all(x.is_carried for x in labels.labelled_answers)
    assert "2 of 8 answers labelled, 2 of them in other runs." in labels.sentences
    other = RunAnswer("tiny-qa", "z", "q1", answer(ran).question, "Triton")
    assert not ran.labels.book("tiny-qa").answer_labels(other.key), "another answer has no label"
    moved = RunAnswer("tiny-qa", "z", "new-id", f" {answer(ran).question} ", "TITAN ")
    assert ran.labels.book("tiny-qa").answer_labels(moved.key), "the text counts, not the id"


def test_a_person_may_change_a_label_and_take_it_back(ran: Workbench) -> None:
    give(ran, "q1", "wrong")
    give(ran, "q1", "partly")
    key = answer(ran).key
    assert [x.grade for x in ran.labels.book("tiny-qa").answer_labels(key)] == ["partly"]
    give(ran, "q1", "skip")
    assert ran.labels.book("tiny-qa").answer_labels(key) == ()
    assert len(label_file(ran.workspace.path, "tiny-qa").read_text().splitlines()) == 3


def test_without_a_name_the_user_of_the_machine_labels(ran: Workbench) -> None:
    assert ran.labels.give(answer(ran), "right").who == usual_person() != ""


@pytest.mark.parametrize(
    ("grade", "more", "sentence"),
    [
        ("good", {}, "no grade 'good'"),
        ("right", {"right": ["Titan"]}, "belong to the grade gold-wrong"),
        ("wrong", {"note": "x" * 3000}, "2,000 characters"),
        ("gold-wrong", {"right": ["x" * 3000]}, "1,000 characters"),
        ("right", {"who": "x" * 61}, "60 characters"),
    ],
)
def test_a_wrong_label_is_refused_and_nothing_is_written(
    ran: Workbench, grade: Grade, more: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        give(ran, "q1", grade, **{"who": "ann", **more})  # type: ignore[arg-type]
    assert not label_file(ran.workspace.path, "tiny-qa").exists()


def test_failed_and_unknown_questions_have_no_answer_to_label(bench: Workbench) -> None:
    run_of(bench, "x", llm="picky")
    assert [x.qid for x in run_answers(bench.workspace, bench.runs.open("x"))] == ["q4", "q7"]
    with pytest.raises(UsageError, match="'q1' of 'x' has no answer to label"):
        answer(bench)
    with pytest.raises(UsageError, match="has no question 'q99'"):
        answer(bench, "q99")


def test_passages_that_the_gold_lacks_are_counted_over_runs(ran: Workbench) -> None:
    def passage(page: str) -> Passage:
        return Passage("0", "text", page.upper(), page)

    ran.labels.give_passage(answer(ran), passage("p1"), True, who="ann")
    ran.labels.give_passage(answer(ran), passage("p5"), True, who="ann")
    ran.labels.give_passage(answer(ran), passage("p5"), False, who="ben")
    ran.labels.give_passage(answer(ran, "q2"), passage("p6"), False, who="ann")
    run_of(ran, "y")
    labels = run_labels(ran.workspace, ran.runs.open("y"))
    assert (labels.passages, labels.holes) == (3, 1), "the gold has p1, and in doubt p5 is relevant"
    assert "3 passages labelled; the gold lacks 1 passage called relevant." in labels.sentences


def test_a_sample_is_stored_with_its_chances_and_its_progress(ran: Workbench) -> None:
    folder = ran.runs.open("x")
    apart = disagreements(folder, ["em", "recall@5"])
    values = {(x.metric, x.qid): x.value for x in folder.scores()}
    assert apart == {q for m, q in values if m == "em" and values[m, q] != values["recall@5", q]}
    assert 4 < len(apart) < 8, "retrieved, but wrong"
    sample = ran.labels.plan(
        run_answers(ran.workspace, folder), 6, seed=1, graders=("em", "recall@5"), apart=apart
    )
    assert {x.qid: x.probability for x in sample.answers if x.apart} == dict.fromkeys(
        {x.qid for x in sample.answers} & apart, (6 - (8 - len(apart))) / len(apart)
    )
    assert {x.probability for x in sample.answers if not x.apart} == {1.0} and sample.total == 8
    give(ran, sample.answers[0].qid, "right")
    labels = run_labels(ran.workspace, folder)
    assert labels.sample == sample and labels.sample_progress == (1, 6)
    with pytest.raises(UsageError, match="name at least two columns"):
        disagreements(folder, ["em", "em"])
    with pytest.raises(UsageError, match="'seconds' has no lowest and highest value"):
        disagreements(folder, ["em", "seconds"])
    with pytest.raises(NotFoundError, match="has no column 'nothing'"):
        disagreements(folder, ["em", "nothing"])


def test_labels_of_another_dataset_are_named(ran: Workbench) -> None:
    foreign = RunAnswer("tiny-qa", "z", "q1", "What is the capital of Peru?", "Lima")
    ran.labels.give(foreign, "right", who="ann")
    labels = run_labels(ran.workspace, ran.runs.open("x"))
    assert "they are of another dataset" in labels.problem and not labels.labelled_answers


def test_wrong_gold_leads_to_a_corrected_copy_with_its_diff(ran: Workbench) -> None:
    with pytest.raises(UsageError, match="nothing to correct"):
        complete(ran.labels.corrected_copy("tiny-qa", "better"))
    give(ran, "q2", "gold-wrong")
    with pytest.raises(UsageError, match="No label has a right answer"):
        complete(ran.labels.corrected_copy("tiny-qa", "better"))
    give(ran, "q1", "gold-wrong", right=["Titan VI", " ", "Saturn VI"])
    give(ran, "q1", "gold-wrong", "ben", right=["Saturn VI", "Huygens' moon"])
    *_, copy = ran.labels.corrected_copy("tiny-qa", "better")
    assert isinstance(copy, CorrectedCopy) and copy.uncorrected == ("q2",)
    right = ("Titan VI", "Saturn VI", "Huygens' moon")
    assert [(x.qid, x.before, x.after) for x in copy.questions] == [("q1", ("Titan",), right)]
    better = {x.question.qid: x.gold for x in ran.workspace.questions("better")}
    assert better["q1"].answers == right and better["q1"].pages == {"p1"}
    assert better["q2"].answers == ("Triton",) and len(better) == 8
    assert ran.labels.book("better") == type(ran.labels.book("better"))(), "a new dataset"
    history: EditHistory = ran.edits.history("better")
    (change,) = history.edits[-1].changes
    assert json.loads(change.before or "")["output"][0]["answer"] == "Titan"
    assert ran.workspace.questions("tiny-qa")[0].gold.answers == ("Titan",)
    with pytest.raises(UsageError, match="exists already"):
        complete(ran.labels.corrected_copy("tiny-qa", "better"))


def test_wrong_gold_of_changed_questions_is_no_longer_theirs(ran: Workbench) -> None:
    give(ran, "q1", "gold-wrong", right=["Saturn VI"])
    ran.edits.edit("tiny-qa", "q1", text="Which moon has thick air?")
    with pytest.raises(UsageError, match="of other questions than those of 'tiny-qa'"):
        complete(ran.labels.corrected_copy("tiny-qa", "better"))
    assert "better" not in ran.workspace.dataset_paths()


def test_answers_have_a_normal_form() -> None:
    assert RunAnswer("d", "x", "q", "Q?", "A  b").key.answer == normal_answer("a B")
