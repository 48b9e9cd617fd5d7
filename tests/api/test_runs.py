"""A run in Python: metrics with intervals, questions, differences; the same run as on the command line."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paying import paid_model
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import QUESTIONS, CommandLine

from rallebench import RalleError, Run, Workspace, chain, compare, generate, load_dataset, retrieve
from rallebench.core.errors import MismatchError, StoppedError
from rallebench.core.types import Generate


@pytest.fixture
def ws(workspace: Path) -> Iterator[Workspace]:
    with Workspace(workspace, track=False) as opened:
        yield opened


def replies(ws: Workspace, run: Run) -> int:
    """The requests that a run actually sent to its model."""
    steps = [step for q in run.questions for step in run.episode(q.qid).steps]
    return sum(isinstance(step.request, Generate) and not step.cached for step in steps)


def test_a_run_is_that_of_the_command_line(ws: Workspace, cli: CommandLine) -> None:
    run = ws.run("read", "tiny-qa", name="python", metrics=["em", "f1"])
    assert cli.run("terminal", "titan", "--metrics", "em,f1").code == 0
    mine, theirs = (
        json.loads((ws.path / "runs" / name / "run.json").read_text())
        for name in ("python", "terminal")
    )
    assert mine["fingerprint"] == theirs["fingerprint"] and mine["spec"] == theirs["spec"]
    assert run["em"].value == ws.run_result("terminal")["em"].value == 1 / 8


def test_a_metric_is_an_estimate_with_its_interval_and_counts(ws: Workspace) -> None:
    run = ws.run("read", "tiny-qa", name="first", metrics=["em"])
    em = run["em"]
    assert (em.n, em.missing, em.units) == (8, 0, 6) and float(em) == em.value == 0.125
    assert em.low is not None and em.high is not None and em.low < 0.125 < em.high
    assert str(em) == f"0.125 [{em.low:.3f}, {em.high:.3f}], n = 8, 6 articles"
    assert repr(em) == f"em {em}" and "em" in run and run.dataset == "tiny-qa"
    with pytest.raises(RalleError, match="'first' was not scored by 'f11'"):
        run["f11"]


def test_an_interval_or_score_that_is_missing_says_why(ws: Workspace) -> None:
    few = ws.run("read", "tiny-qa", limit=3, metrics=["em"])["em"]
    assert str(few) == "0.333 (too few articles), n = 3, 3 articles"
    half = ws.run("read", [{"question": "Which moon?", "answers": ["Titan"]}, "Which sea?"])["em"]
    assert str(half) == "1.000 (too few articles), n = 1, 1 not scored"


def test_questions_become_a_data_frame(ws: Workspace) -> None:
    frame = ws.run("read", "tiny-qa", metrics=["em"]).to_pandas()
    assert list(frame.index) == [row[0] for row in QUESTIONS]
    columns = ["question", "gold", "answer", "verdict", "lost_at", "em"]
    assert list(frame.columns) == [
        *columns,
        *("seconds", "prompt_tokens", "completion_tokens", "tokens", "error"),
    ]
    assert frame.loc["q1", ["answer", "verdict", "lost_at", "em"]].tolist() == [
        "Titan",
        "right",
        "",
        1,
    ]
    assert (
        frame.loc["q2", "verdict"] == "wrong" and frame.loc["q2", "lost_at"] == "not in the answer"
    )
    assert frame.loc["q1", "gold"] == ("Titan",) and frame.loc["q1", "tokens"] > 1


def test_failed_questions_stand_beside_the_others_with_their_error(ws: Workspace) -> None:
    run = ws.run("read", "tiny-qa", llm="picky")
    frame = run.to_pandas()
    assert frame.loc["q4", "answer"] == "Danube" and frame.loc["q1", "verdict"] == "failed"
    assert frame.loc["q1", "error"] and "failed" in repr(run)


def test_a_run_is_shown_as_text_and_as_escaped_html(ws: Workspace) -> None:
    rag = chain(retrieve("tiny", k=1), generate("titan", "{question}"), name="a & b")
    run = ws.run(rag, load_dataset(["<script>?"], name="<i>"))
    assert repr(run).startswith(f"{run.name}: 1 questions") and run.chain == rag
    assert "<i>" not in run._repr_html_() + ws.runs()._repr_html_()
    assert run.name in repr(ws.runs()) and run.name in ws.runs().to_pandas().index


def test_the_same_call_again_asks_nothing(ws: Workspace) -> None:
    first = ws.run("read", "tiny-qa", name="first")
    before = (first.path / "episodes.jsonl").read_bytes()
    again = ws.run("read", "tiny-qa", name="first")
    assert again == first and (first.path / "episodes.jsonl").read_bytes() == before
    assert len(ws.runs()) == 1


def test_a_run_grows_to_a_larger_limit_and_to_all_questions(ws: Workspace) -> None:
    assert [len(ws.run("read", "tiny-qa", name="g", limit=n).questions) for n in (3, 5)] == [3, 5]
    assert len(ws.run("read", "tiny-qa", name="g").questions) == 8
    with pytest.raises(RalleError, match="has 8 questions already"):
        ws.run("read", "tiny-qa", name="g", limit=2)


def test_another_run_of_that_name_is_refused_and_the_argument_named(ws: Workspace) -> None:
    ws.run("read", "tiny-qa", name="first")
    with pytest.raises(MismatchError, match="first"):
        ws.run("read", "tiny-qa", name="first", k=5)
    with pytest.raises(RalleError, match=r"exists already.*choose another name=, or .*resume=True"):
        ws.run("read", "tiny-qa", name="first", resume=False)


def test_questions_may_be_a_list_a_slice_or_a_sample(ws: Workspace) -> None:
    listed = ws.run("read", [{"question": QUESTIONS[0][1], "answers": ["Titan"]}], metrics=["em"])
    assert listed["em"].value == 1 and listed.dataset == "questions"
    part = ws.run("read", ws.dataset("tiny-qa")[2:4])
    assert [q.qid for q in part.questions] == ["q3", "q4"]
    drawn = [ws.run("read", "tiny-qa", sample=4, seed=seed) for seed in (1, 1, 2)]
    one, same, other = ([q.qid for q in run.questions] for run in drawn)
    assert one == same != other


def test_a_list_of_questions_is_resumed_under_its_name(ws: Workspace) -> None:
    questions = [{"question": text, "answers": [answer]} for _, text, answer, _ in QUESTIONS]
    first = ws.run("read", questions, name="mine", limit=2)
    assert len(first.questions) == 2
    assert len(ws.run("read", questions, name="mine").questions) == 8
    with pytest.raises(RalleError):
        ws.run("read", questions[::-1], name="mine")


def test_two_runs_are_compared_question_by_question(ws: Workspace) -> None:
    titan = ws.run("read", "tiny-qa", metrics=["em", "f1"])
    ws.add_model(
        "danube",
        backend="scripted",
        replies={"Question: Which sea": "Black Sea", "Question: Which river": "Danube"},
        default="x",
    )
    danube = ws.run("read", "tiny-qa", llm="danube", metrics=["em", "f1"])
    em = danube.compare(titan)["em"]
    assert (em.a, em.b, em.difference, em.n) == (0.125, 0.25, 0.125, 8)
    assert (em.wins, em.ties, em.losses) == (2, 5, 1) and em.flipped_ids == ("q4", "q7", "q1")
    assert str(em) == "+0.125 (too few articles), n = 8; 2 wins, 5 ties, 1 loss"
    assert compare(titan, danube)["em"] == em and {"em", "f1"} <= {*compare(titan, danube)}
    assert danube.compare(titan).to_pandas().loc["em", "wins"] == 2
    with pytest.raises(RalleError, match="has no 'mrr'"):
        compare(titan, danube)["mrr"]


def test_several_runs_are_compared_with_the_first(ws: Workspace) -> None:
    runs = [ws.run("read", "tiny-qa", k=k, metrics=["em"], name=f"k{k}") for k in (1, 2, 3)]
    compared = compare(*runs, metric="em")
    assert list(compared) == ["k2", "k3"] and compared["k3"].metric == "em"
    assert "k3" in repr(compared) and "<table" in compared._repr_html_()
    with pytest.raises(RalleError, match="at least two runs"):
        compare(runs[0])
    with pytest.raises(RalleError, match="share no question"):
        compare(runs[0], ws.run("read", [{"question": "Which?", "answers": ["a"]}]))


def test_runs_of_two_workspaces_are_compared(ws: Workspace, tmp_path: Path) -> None:
    first = ws.run("read", "tiny-qa", metrics=["em"], name="here")
    with Workspace(tmp_path / "other", track=False) as other:
        other.add_model("titan", backend="scripted", default="Titan")
        closed = chain(generate("titan", "{question}"))
        second = other.run(
            closed, ws.path / "datasets" / "tiny-qa.jsonl", metrics=["em"], name="there"
        )
        assert second.compare(first)["em"].difference == 0


def test_a_stored_run_is_scored_by_a_further_metric(ws: Workspace) -> None:
    run = ws.run("read", "tiny-qa", metrics=["em"])
    assert "f1" not in run
    assert {"em", "f1"} <= {*ws.score(run, ["f1"])} and "f1" in ws.run_result(run.name)


def test_ctrl_c_stops_after_the_batch_and_the_same_call_continues(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rallebench.engine.store import RunFolder

    append, before = RunFolder.append, signal.getsignal(signal.SIGINT)

    def interrupt(self: RunFolder, *arguments: Any) -> None:
        append(self, *arguments)
        monkeypatch.setattr(RunFolder, "append", append)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(RunFolder, "append", interrupt)
    closed = chain(generate("slow", "{question}"))
    with pytest.raises(StoppedError, match=r"Stopped after [246] of 8 questions; .*name='first'"):
        ws.run(closed, "tiny-qa", name="first", batch_size=2)
    assert not ws.run_result("first").is_complete
    assert signal.getsignal(signal.SIGINT) is before
    resumed = ws.run(closed, "tiny-qa", name="first", batch_size=2)
    assert resumed.is_complete and len(resumed.questions) == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limit": 3, "sample": 3}, "limit and sample exclude each other"),
        ({"sample": 0}, "sample is 0"),
        ({"limit": 0}, "The number of questions is 0"),
        ({"metrics": ["emm"]}, "emm"),
        ({"metrics": "em", "batch_size": 0}, "The batch size is 0"),
        ({"max_usd": -1}, "must be above 0"),
        ({"name": "a/b"}, "a/b"),
        ({"llm": "titanic"}, "titanic"),
        ({"llm": "mute", "max_errors": 0}, "max_errors="),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_leaves_no_run(
    ws: Workspace, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(RalleError, match=words) as error:
        ws.run("read", "tiny-qa", **arguments)  # type: ignore[arg-type]
    assert "--" not in str(error.value)


def test_paid_work_stops_at_its_limit_and_the_same_call_continues(
    ws: Workspace, workspace: Path
) -> None:
    with paid_model(workspace) as server:
        paid: dict[str, Any] = {"llm": "paid", "metrics": ["em"], "batch_size": 1}
        with pytest.raises(StoppedError, match=r"of at most 0\.025 US dollars"):
            ws.run("read", "tiny-qa", name="costly", max_usd=0.025, **paid)
        assert 3 <= len(server.bodies) < 8
        assert ws.run("read", "tiny-qa", name="costly", **paid).is_complete
        judged = ws.run("read", "tiny-qa", name="judged", metrics=["em"])
        with pytest.raises(StoppedError, match="spending limit"):
            ws.score(judged, ["rgb-rejection:paid"], max_usd=0.01)
        varied = {"llm": ["paid"], "k": [1, 2]}
        with pytest.raises(StoppedError, match="spending limit"):
            ws.sweep("read", "tiny-qa", varied, name="ks", strategy="grid", max_usd=0.01)


def test_an_unknown_run_and_a_closed_workspace_are_named(workspace: Path) -> None:
    with Workspace(workspace, track=False) as ws:
        run = ws.run("read", "tiny-qa", name="first", metrics=["em"])
        with pytest.raises(RalleError, match="second"):
            ws.run_result("second")
        with pytest.raises(RalleError, match="q99"):
            run.episode("q99")
    assert run["em"].value == 0.125, "what was read stays readable"
    with pytest.raises(RalleError, match="is closed"):
        ws.runs()


@pytest.mark.usefixtures("small_suites")
def test_a_published_benchmark_is_run_by_its_name(ws: Workspace) -> None:
    suite = ws.experiment("small-alone", llm="titan", name="s", limit=2, times=1)
    assert [run.name for run in suite.runs] and all(len(run.questions) == 2 for run in suite.runs)
    assert suite.tables and "<table" in suite._repr_html_() and suite.folder.is_dir()
    before = len(ws.runs())
    ws.experiment("small-alone", llm="titan", name="s", limit=2, times=1)
    assert len(ws.runs()) == before, "what has ended is not run again"
    for wrong, words in (({}, "name one with llm="), ({"llm": "titan", "times": 9}, "times=9")):
        with pytest.raises(RalleError, match=words):
            ws.experiment("small-alone", **wrong)  # type: ignore[arg-type]


def test_a_stored_run_is_logged_later(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    from rallebench.services.tracking import Tracking

    logged: list[str] = []
    monkeypatch.setattr(Tracking, "log_run", lambda self, run: logged.append(run.name))
    ws.log(ws.run("read", "tiny-qa", name="first"))
    assert logged == ["first"]
    with pytest.raises(RalleError, match="neither a run nor an experiment 'second'"):
        ws.log("second")


def test_a_sweep_is_an_experiment_with_its_runs(ws: Workspace) -> None:
    swept = ws.sweep("read", "tiny-qa", {"k": [1, 2]}, name="ks", metrics=["em"])
    assert len(swept.runs) == 2 and all("em" in run for run in swept.runs)
    assert "ks: 2 runs" in repr(swept) and not swept.failures
    again = ws.sweep("read", "tiny-qa", {"k": [1, 2]}, name="ks", metrics=["em"])
    assert {run.name for run in again.runs} == {run.name for run in swept.runs}
    with pytest.raises(RalleError, match="exists already"):
        ws.sweep("read", "tiny-qa", {"k": [1, 3]}, name="ks", metrics=["em"])
