"""Gold and scores on the traces of a run, as MLflow's own functions read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_folders import FAILURE, append, episode, make_run, mean, report

from rallebench.core.files import write_json, write_text
from rallebench.core.labels import AnswerLabel, LabelBook, question_digest
from rallebench.core.report import JudgeReport
from rallebench.core.types import Episode, Generate, Message, Outcome, Reply, Score, Step
from rallebench.core.waterfall import STAGES, QuestionStage, Waterfall
from rallebench.engine.judging import JudgeRemark, judge_remarks
from rallebench.engine.run_files import RunDescription
from rallebench.engine.store import REPORT, SCORES, RunFolder
from rallebench.tracking import runs, trace_rows, trace_store
from rallebench.tracking.assessments import (
    MOST_VALUES,
    SHORT_ERROR,
    Assessor,
    TraceAssessment,
)
from rallebench.tracking.content import MAX_CELL, MAX_KEY, MAX_LIST
from rallebench.tracking.links import read_link
from rallebench.tracking.runs import log_run

NewRun = Callable[..., RunFolder]
JUDGE = "truthfulness:(openai:gpt?api_key=sk-very-secret, temperature=0)"


def assess(
    answered: Episode | None = None, record: dict[str, Any] | None = None, **run: Any
) -> dict[str, TraceAssessment]:
    """The assessments of one question by their names."""
    assessor = Assessor(**{"dataset": "tiny-qa", "columns": ["em"], "scores": {}, **run})
    made = assessor.assess(record or {"id": "q"}, answered or episode("q"))
    assert len(made) == len({each.name for each in made})
    return {each.name: each for each in made}


def score(value: float | None, note: str = "") -> dict[str, dict[str, Score]]:
    """The score of the question "q" by exact match."""
    return {"q": {"em": Score("q", "em", value, note)}}


# the values


def test_gold_is_what_mlflows_pages_and_judges_call_the_expected_response() -> None:
    evidence = [{"wikipedia_id": "p1"}, {"wikipedia_id": "p2"}, {"wikipedia_id": "p1"}]
    output = [{"answer": "Ada Lovelace", "provenance": evidence}, {"answer": "Ada"}]
    made = assess(record={"id": "q", "output": output})
    assert made["expected_response"].value == "Ada Lovelace or Ada"
    assert made["expected_pages"].value == ["p1", "p2"]
    assert (made["expected_response"].source_type, made["expected_response"].source) == (
        "HUMAN",
        "tiny-qa",
    )


def test_a_question_without_gold_and_scores_has_no_assessments() -> None:
    assert assess() == {}


def test_a_metric_is_feedback_of_code_with_its_note_as_the_rationale() -> None:
    made = assess(scores=score(0.0, "the answer is longer"))["em"]
    assert made == TraceAssessment(
        "feedback", "em", 0.0, "CODE", "em", rationale="the answer is longer"
    )


def test_a_judge_is_feedback_of_its_model_with_the_reason_and_without_its_key() -> None:
    remarks = {"em": {"q": JudgeRemark(JUDGE.partition(":")[2], "It is so.")}}
    made = assess(scores=score(5.0), remarks=remarks)["em"]
    assert (made.source_type, made.source, made.rationale) == (
        "LLM_JUDGE",
        "openai:gpt",
        "It is so.",
    )


@pytest.mark.parametrize(
    ("answered", "values", "code", "error"),
    [
        (episode("q", error=FAILURE), {}, "QUESTION_FAILED", FAILURE),
        (episode("q", error="x" * 9000), {}, "QUESTION_FAILED", "x" * SHORT_ERROR),
        (episode("q"), {"scores": score(None, "no gold")}, "NOT_SCORED", "no gold"),
        (
            episode("q"),
            {"remarks": {"em": {"q": JudgeRemark("judge", failure="No score in the reply.")}}},
            "NOT_READABLE",
            "No score in the reply.",
        ),
    ],
)
def test_an_answer_without_a_score_is_an_error_and_never_0(
    answered: Episode, values: dict[str, Any], code: str, error: str
) -> None:
    made = assess(answered, **values)["em"]
    assert (made.value, made.code, made.error) == (None, code, error)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_no_number_is_no_feedback(value: float | None) -> None:
    assert assess(scores=score(value)) == {}


@pytest.mark.parametrize(
    ("stage", "em", "verdict"),
    [
        ("right", 1.0, "yes"),
        ("right_without_support", 1.0, "yes"),
        ("not_retrieved", 0.0, "no"),
        ("lost_by_format", 0.0, "no"),
        ("without_answers", None, None),
        ("", 1.0, None),
    ],
)
def test_the_overall_verdict_is_the_pages_and_says_where_a_question_was_lost(
    stage: str, em: float | None, verdict: str | None
) -> None:
    made = assess(scores=score(em), stages={"q": stage}).get("overall_assessment")
    assert (made and made.value) == verdict
    assert made is None or made.rationale == STAGES[stage]


def test_hostile_texts_are_bounded_and_can_be_stored() -> None:
    name = "m" * 900 + "\ud83d\0"
    record = {"id": "q", "output": [{"answer": "a\0\ud83d" * 5000}] * 3}
    record["output"] += [{"answer": str(i)} for i in range(100)]
    record["output"] += [{"provenance": [{"wikipedia_id": f"p{i}\0"} for i in range(100)]}]
    made = assess(
        record=record,
        columns=[name],
        dataset="d" * 900,
        scores={"q": {name: Score("q", name, 1.0, "n" * 90_000)}},
    )
    for each in made.values():
        text = json.dumps(each, ensure_ascii=False).encode()
        assert b"\\u0000" not in text and len(text) < 4 * MAX_CELL
        assert len(each.name) <= MAX_KEY and len(each.source) <= MAX_KEY
    pages = made["expected_pages"].value
    assert isinstance(pages, list) and len(pages) == MAX_LIST + 1


def test_mlflows_page_can_count_all_different_values_of_a_run() -> None:
    records = {f"q{i}": {"id": f"q{i}", "output": [{"answer": f"answer {i}"}]} for i in range(3000)}
    names = ("em", "f1", "rougel")
    scores = {
        qid: {name: Score(qid, name, i / 2999) for name in names} for i, qid in enumerate(records)
    }
    assessor = Assessor("tiny-qa", names, scores).within_limit(records)
    pairs = {
        (each.name, str(each.value))
        for qid, record in records.items()
        for each in assessor.assess(record, episode(qid))
    }
    assert 900 < len(pairs) <= MOST_VALUES and assessor.digits == 2
    assert {"expected_response", *names} == {name for name, _ in pairs}
    small = Assessor("tiny-qa", names, scores).within_limit({"q0": records["q0"]})
    assert small.with_gold == {"q0"}


# people's labels


def test_labels_are_feedback_of_people_whichever_run_they_were_given_in() -> None:
    question = question_digest("Which moon?")
    given = {
        who: AnswerLabel(1.0, who, "other", question, "an answer", grade, note, "earlier")  # type: ignore[arg-type]
        for who, grade, note in (
            ("ann", "right", "sure"),
            ("ben", "wrong", ""),
            ("eve", "skip", ""),
        )
    }
    book = LabelBook({given["ann"].key: given})
    answered = Episode("q", "chain", (), Outcome("An  Answer"))
    assessor = Assessor("tiny-qa", (), {}, labels=book)
    record = {"id": "q", "input": " Which moon? "}
    made = assessor.assess(record, answered)
    assert [(x.name, x.value, x.source_type, x.source, x.rationale) for x in made] == [
        ("label", "right", "HUMAN", "ann", "sure"),
        ("label", "wrong", "HUMAN", "ben", ""),
    ]
    assert len({each.id_on("trace") for each in made}) == 2, "one does not replace the other"
    assert assessor.assess({**record, "input": "Which sea?"}, answered) == ()
    assert assessor.assess(record, replace(answered, outcome=Outcome("Another"))) == ()


# a judge's remarks


def judged(folder: RunFolder, replies: dict[str, str], answers: dict[str, str]) -> RunFolder:
    """The run with a judge's pass of these replies, read as these judgements."""
    passed = "truthfulness-0"
    request = Generate("gpt", (Message("user", "judge"),))
    described = RunDescription.from_json(
        {**folder.description().to_json(), "name": passed}, path=Path("run.json")
    )
    inner = RunFolder.create(folder.path / "judges", described, folder.records())
    append(
        inner,
        [
            Episode(qid, "judge", (Step(request, Reply(reply)),), Outcome(answers[qid]))
            for qid, reply in replies.items()
        ],
    )
    judge = JudgeReport(JUDGE, f"judges/{passed}", ("truth",), len(replies))
    scored = {**report(6, 1, em=mean(1.0, 5)), "judges": {judge.name: judge.to_json()}}
    write_json(folder.path / REPORT, scored)
    lines = [
        *(json.loads(line) for line in (folder.path / SCORES).read_text("utf-8").splitlines()),
        *({"qid": qid, "metric": "truth", "value": 5.0} for qid in ("q0", "q1")),
        {"qid": "q3", "metric": "truth", "value": None},
    ]
    write_text(folder.path / SCORES, "".join(json.dumps(line) + "\n" for line in lines))
    return folder


REPLIES = {"q0": '{"truth": 5}', "q1": "Yes, it is true.", "q3": "I cannot say."}
ANSWERS = {
    "q0": '{"values": {"truth": 5.0}, "reason": "It agrees with the article."}',
    "q1": "yes",
    "q3": '{"failure": "The reply holds no score."}',
}


def test_a_judges_remark_is_its_reason_or_its_reply_or_why_it_could_not_be_read(
    new_run: NewRun,
) -> None:
    folder = judged(new_run(), REPLIES, ANSWERS)
    scored = folder.report()
    assert scored is not None
    model = JUDGE.partition(":")[2]
    assert judge_remarks(folder, scored) == {
        "truth": {
            "q0": JudgeRemark(model, "It agrees with the article."),
            "q1": JudgeRemark(model, "Yes, it is true."),
            "q3": JudgeRemark(model, "I cannot say.", "The reply holds no score."),
        }
    }


@pytest.mark.parametrize("answer", ["[1]", "{", '{"values": 3, "each": 7}', '{"reason": {"a": 1}}'])
def test_a_damaged_pass_of_a_judge_has_no_remarks(tmp_path: Path, answer: str) -> None:
    folder = judged(make_run(tmp_path, "judged"), REPLIES, {**ANSWERS, "q3": answer})
    scored = folder.report()
    assert scored is not None
    remarks = judge_remarks(folder, scored).get("truth", {})
    assert all(isinstance(remark.reason, str) for remark in remarks.values())


# read by MLflow


def test_mlflow_reads_the_gold_and_the_scores_of_every_question(
    workspace: Path, client: Any, new_run: NewRun
) -> None:
    import mlflow

    folder = judged(new_run(), REPLIES, ANSWERS)
    placed = (QuestionStage("q0", "right"), QuestionStage("q1", "right_without_support"))
    waterfall = Waterfall(placed, corpus_known=True)
    run_id = log_run(folder.path, workspace=workspace, waterfall=waterfall)
    experiment = client.get_run(run_id).info.experiment_id
    found = client.search_traces(locations=[experiment], run_id=run_id, max_results=100)
    by_qid = {trace.info.tags["rallebench.qid"]: trace for trace in found}
    assert set(by_qid) == {f"q{i}" for i in range(6)}

    def read(qid: str) -> dict[str, Any]:
        trace_id = by_qid[qid].info.trace_id
        trace = mlflow.MlflowClient(client.tracking_uri).get_trace(trace_id)
        assert {each.run_id for each in trace.info.assessments} == {run_id}
        return {each.name: each for each in trace.info.assessments}

    first = read("q0")
    assert set(first) == {"expected_response", "overall_assessment", "em", "recall@5", "truth"}
    assert first["expected_response"].expectation.value == "Ada Lovelace or Ada"
    assert (first["em"].value, first["em"].source.source_type) == (1.0, "CODE")
    truth = first["truth"]
    assert (truth.value, truth.rationale) == (5.0, "It agrees with the article.")
    assert (truth.source.source_type, truth.source.source_id) == ("LLM_JUDGE", "openai:gpt")
    assert first["overall_assessment"].value == "yes"
    verdict = read("q1")["overall_assessment"]
    assert (verdict.value, verdict.rationale) == ("yes", STAGES["right_without_support"])
    failed = read("q2")
    assert (failed["em"].value, failed["em"].error.error_message) == (None, FAILURE)
    assert read("q3")["truth"].error.error_code == "NOT_READABLE"
    right = client.search_traces(
        locations=[experiment], run_id=run_id, filter_string="feedback.em = '1.0'"
    )
    assert len(right) == 5


def test_new_scores_replace_the_old_ones_on_the_same_traces(
    workspace: Path, client: Any, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = new_run()
    run_id = log_run(folder.path, workspace=workspace)
    before = read_link(folder.path)
    written: list[int] = []
    write = trace_rows.write

    def counted(database: Path, experiment_id: str, traces: list[Any]) -> bool:
        written.append(len(traces))
        return write(database, experiment_id, traces)

    monkeypatch.setattr(trace_rows, "write", counted)
    log_run(folder.path, workspace=workspace)
    lines = [{"qid": f"q{i}", "metric": "em", "value": 0.5} for i in (0, 1, 3, 4, 5)]
    write_text(folder.path / SCORES, "".join(json.dumps(line) + "\n" for line in lines))
    log_run(folder.path, workspace=workspace)
    assert written == [0, 6]
    after = read_link(folder.path)
    assert (
        before
        and after
        and (before.traces, after.assessed != before.assessed)
        == (
            after.traces,
            True,
        )
    )
    experiment = client.get_run(run_id).info.experiment_id
    found = client.search_traces(locations=[experiment], run_id=run_id, max_results=100)
    values = [a.value for t in found for a in t.info.assessments if a.name == "em"]
    assert sorted(values, key=str) == [0.5] * 5 + [None]


def test_every_question_has_a_trace_and_those_beyond_the_budget_have_no_steps(
    workspace: Path, client: Any, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "STEP_CHARACTERS", 2000)
    monkeypatch.setattr(trace_store, "MOST_TRACES", 90)
    run_id = log_run(new_run(100, ()).path, workspace=workspace)
    experiment = client.get_run(run_id).info.experiment_id
    found = client.search_traces(locations=[experiment], run_id=run_id, max_results=200)
    whole = [trace for trace in found if len(trace.data.spans) == 3]
    roots = [trace.data.spans[0] for trace in found if len(trace.data.spans) == 1]
    assert len(found) == 90 and 50 < len(whole) < 60
    assert roots[0].attributes["steps"] == "2, in the folder of the run; MLflow has no more"
    assert all(trace.info.assessments for trace in found)


def test_a_run_of_an_earlier_version_gets_the_missing_traces_and_all_assessments(
    workspace: Path, client: Any
) -> None:
    folder = make_run(workspace / "runs", "of an earlier version")
    log_run(folder.path, workspace=workspace)
    link = json.loads((folder.path / "mlflow.json").read_text("utf-8"))
    del link["assessed"]
    write_json(folder.path / "mlflow.json", {**link, "traces": link["traces"][:2]})
    run_id = log_run(folder.path, workspace=workspace)
    assert run_id == link["run_id"]
    again = read_link(folder.path)
    assert again is not None and set(again.traces) == set(link["traces"])
