"""A judge is a metric: any run can be judged, the judge's pass is a run inside the run, and no judgement is requested
twice."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from loopback import Handler, Loopback, answer, fail
from performing import prepared
from small_workspace import CommandLine, add_llm

from rallebench.metrics import METRICS
from rallebench.services.workbench import Workbench

RUN = ("run", "--chain", "closed", "--dataset", "tiny-qa", "--limit", "3", "--no-mlflow")
SCORES = {"replies": {"Pluto": "no idea"}, "default": '{"truthfulness": 4, "relevance": 5}'}
BROKEN = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0}


@pytest.fixture
def workspace(workspace: Path) -> Path:
    add_llm(workspace, "judge", **SCORES)
    add_llm(workspace, "gone", "openai_compatible", **BROKEN)
    return workspace


REPLIES = {
    "ragquesteval": '{"key_info": ["a"], "question": ["who?"]} <response>Ada</response>',
    "rgb-errors": "Yes.",
    "rgb-errors-choice": {"Yes": 0.9, "No": 0.1},
    "rgb-rejection-choice": {"Yes": 0.2, "No": 0.6},
    "truthfulness-choice": {"4": 0.5, "5": 0.5},
    "rgb-rejection": "No, the question is not addressed.",
    "truthfulness": "4, 5",
}
"""A reply that each judge of the package can read in every turn, or the probabilities of its options."""


def report(cli: CommandLine, run: str) -> dict[str, Any]:
    return dict(json.loads((cli.workspace / "runs" / run / "report.json").read_text()))


def passes(cli: CommandLine, run: str) -> list[Path]:
    return sorted((cli.workspace / "runs" / run / "judges").iterdir())


def test_a_run_is_judged_beside_its_other_metrics(cli: CommandLine) -> None:
    ran = cli(*RUN, "--name", "r", "--metrics", "em,truthfulness:judge", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["truthfulness:judge"]["value"] == 4.0
    assert ran.json["metrics"]["relevance:judge"]["n"] == 3
    assert set(report(cli, "r")["definitions"]) == {
        "truthfulness:judge",
        "relevance:judge",
        "perfect:judge",
    }
    (folder,) = passes(cli, "r")
    assert {"run.json", "episodes.jsonl", "report.json", "state.json"} <= {
        path.name for path in folder.iterdir()
    }
    episode = json.loads((folder / "episodes.jsonl").read_text().splitlines()[0])
    assert "truthfulness" in json.dumps(episode), "prompt, reply and reason can be read again"
    assert ran.json["judges"]["truthfulness:judge"]["judged"] == 3


def test_a_finished_run_is_judged_later_and_its_own_scores_stay(cli: CommandLine) -> None:
    add_llm(cli.workspace, "critic", default="Yes.")
    first = cli(*RUN, "--name", "r", "--metrics", "em,rouge-L:char", "--json")
    assert first.code == 0, first.err
    episodes = (cli.workspace / "runs/r/episodes.jsonl").read_bytes()
    later = cli("score", "--run", "r", "--metrics", "f1,rgb-errors:critic", "--json")
    assert later.code == 0, later.err
    assert "f1" in later.json["metrics"]
    for metric in ("em", "rouge-L:char"):
        assert later.json["metrics"][metric] == first.json["metrics"][metric]
    assert "rgb-errors:critic" in later.json["judges"]
    again = cli("score", "--run", "r", "--metrics", "truthfulness:judge", "--json")
    assert set(again.json["judges"]) == {"rgb-errors:critic", "truthfulness:judge"}
    assert "truthfulness:judge" in again.json["suite"]
    assert (cli.workspace / "runs/r/episodes.jsonl").read_bytes() == episodes


def test_a_judgement_is_asked_for_once_and_a_broken_pass_goes_on(cli: CommandLine) -> None:
    asked = (*RUN, "--name", "r", "--metrics", "truthfulness:judge")
    assert cli(*asked).code == 0
    (folder,) = passes(cli, "r")
    episodes = folder / "episodes.jsonl"
    lines = episodes.read_bytes()
    (cli.workspace / "cache" / "memo.sqlite").unlink()
    assert cli(*asked, "--resume").code == 0
    assert passes(cli, "r") == [folder] and episodes.read_bytes() == lines
    first = lines.splitlines(keepends=True)[0]
    episodes.write_bytes(first)
    (folder / "state.json").unlink()
    ran = cli(*asked, "--resume", "--json")
    assert ran.code == 0 and ran.json["metrics"]["truthfulness:judge"]["n"] == 3
    assert episodes.read_bytes().splitlines(keepends=True)[0] == first


@pytest.mark.parametrize("name", ["report.json", "scores.jsonl"])
def test_damaged_scores_of_judges_cost_a_resumed_run_a_warning(cli: CommandLine, name: str) -> None:
    assert cli(*RUN, "--name", "r", "--metrics", "em,truthfulness:judge").code == 0
    (cli.workspace / "runs/r" / name).write_text("rubbish")
    ran = cli(*RUN, "--name", "r", "--metrics", "em", "--resume", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["em"]["n"] == 3
    assert "The earlier judges' scores are lost" in ran.err
    again = cli("score", "--run", "r", "--metrics", "truthfulness:judge", "--json")
    assert again.json["suite"]["truthfulness:judge"]["n"] == 3


def test_an_unreadable_judgement_is_counted_and_is_no_score(cli: CommandLine) -> None:
    add_llm(cli.workspace, "judge", default="no idea")
    ran = cli(*RUN, "--name", "r", "--metrics", "em,truthfulness:judge", "--json")
    assert ran.code == 0
    unknown = dict.fromkeys(("value", "low", "high"))
    assert ran.json["metrics"]["truthfulness:judge"] == {**unknown, "n": 0}
    assert ran.json["judges"]["truthfulness:judge"]["unparsed"] == 3
    assert "3 could not be read; they are not scored" in ran.err


@pytest.mark.parametrize("name", METRICS.judge_names())
def test_every_judge_scores_a_run_with_it_and_after_it(cli: CommandLine, name: str) -> None:
    add_llm(cli.workspace, "reader", replies={"": REPLIES[name]})
    columns = {f"{column.name}:reader" for column in METRICS.entry(name).traits["judge"].columns}
    ran = cli(*RUN, "--name", "with", "--metrics", f"em,{name}:reader", "--json")
    assert ran.code == 0, ran.err
    assert {"em", *columns} == set(ran.json["metrics"])
    assert {ran.json["metrics"][column]["n"] for column in columns} == {3}
    assert cli(*RUN, "--name", "after", "--metrics", "em").code == 0
    later = cli("score", "--run", "after", "--metrics", f"{name}:reader", "--json")
    assert later.code == 0, later.err
    assert later.json["suite"] == {column: ran.json["metrics"][column] for column in columns}


def test_a_judging_model_with_commas_in_its_settings_stands_in_brackets(cli: CommandLine) -> None:
    metrics = "em,truthfulness:(scripted:?default=4, 5)"
    ran = cli(*RUN, "--name", "r", "--metrics", metrics, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["relevance:scripted:?default=4, 5"]["value"] == 5.0
    again = cli(*RUN, "--name", "r", "--metrics", metrics, "--resume", "--json")
    assert again.json["metrics"] == ran.json["metrics"] and len(passes(cli, "r")) == 1


def test_a_judge_without_scores_cannot_compare_runs(cli: CommandLine) -> None:
    for run in "ab":
        assert cli(*RUN, "--name", run, "--metrics", "em").code == 0
    ran = cli("compare", "a", "b", "--metric", "truthfulness:judge")
    assert ran.code == 2 and "score the run with it first" in ran.last


def test_judged_runs_are_compared_varied_and_exported_by_their_scores(cli: CommandLine) -> None:
    sweep = ("sweep", "--chain", "read", "--dataset", "tiny-qa", "--vary", "k=1,2", "--name", "ks")
    ran = cli(*sweep, "--metrics", "em,truthfulness:judge", "--no-mlflow", "--json")
    assert ran.code == 0, ran.err
    a, b = (variant["run"] for variant in ran.json["variants"])
    compared = cli("compare", a, b, "--metric", "truthfulness:judge", "--json")
    assert compared.code == 0 and compared.json["a"] == compared.json["b"] == 4.0
    assert compared.json["higher_is_better"] is True
    exported = cli("export", a, "--format", "csv")
    assert exported.code == 0, exported.err
    heads, first, *_ = exported.out.splitlines()
    assert dict(zip(heads.split(","), first.split(",")))["truthfulness:judge"] == "4.0"
    assert cli("baselines", a, "--no-mlflow").code == 0


def test_a_judge_that_fails_as_a_whole_costs_the_run_nothing(cli: CommandLine) -> None:
    ran = cli(*RUN, "--name", "r", "--metrics", "em,truthfulness:gone", "--json")
    assert ran.code == 0
    assert "em" in ran.json["metrics"] and "truthfulness:gone" not in ran.json["metrics"]
    assert "The judge 'truthfulness:gone' gave no scores" in ran.err
    assert "truthfulness:gone" in report(cli, "r")["failed_judges"]


def test_a_scoring_whose_judge_gives_no_score_has_failed_and_the_other_metrics_stay(
    cli: CommandLine,
) -> None:
    assert cli(*RUN, "--name", "r", "--metrics", "em").code == 0
    ran = cli("score", "--run", "r", "--metrics", "f1,truthfulness:gone")
    assert ran.code == 1 and "The judge 'truthfulness:gone' gave no scores: " in ran.last
    assert "Not scored: truthfulness:gone (" in ran.out and "f1" in report(cli, "r")["metrics"]
    assert cli("score", "--run", "r", "--metrics", "bleu").code == 0, "no judge was requested"
    assert "truthfulness:gone" in report(cli, "r")["failed_judges"]
    add_llm(cli.workspace, "gone", default="I would rather not say.")
    ran = cli("score", "--run", "r", "--metrics", "truthfulness:gone")
    assert ran.code == 1 and "3 could not be read" in ran.last
    assert "failed_judges" not in report(cli, "r"), "the pass itself has ended"


def test_a_judge_with_little_covered_warns_in_every_view_and_stands_in_the_report(
    cli: CommandLine, tmp_path: Path
) -> None:
    add_llm(cli.workspace, "critic", replies={"": {"Yes": 0.05, "No": 0.02}})
    assert cli(*RUN, "--name", "r", "--metrics", "em").code == 0
    ran = cli("score", "--run", "r", "--metrics", "rgb-rejection-choice:critic")
    sentence = "The options of 'rgb-rejection-choice:critic' have 7.0% of its model's probability"
    assert ran.code == 0 and sentence in ran.out
    page = tmp_path / "r.html"
    assert cli("report", "r", "--out", page).code == 0
    html = page.read_text("utf-8").replace("&#39;", "'").replace("&#x27;", "'")
    assert sentence in html
    for column, definition in report(cli, "r")["definitions"].items():
        assert column in html and definition[:30] in html


def test_a_judge_is_audited_by_its_own_name_and_by_that_of_its_column(cli: CommandLine) -> None:
    add_llm(cli.workspace, "critic", replies={"": {"4": 0.5, "5": 0.5}})
    assert cli(*RUN, "--name", "r", "--metrics", "em").code == 0
    for name in ("truthfulness_choice:critic", "truthfulness-choice:critic"):
        ran = cli("audit", "r", "--grader", name, "--truth", "em")
        assert ran.code == 2 and "Did you mean" not in ran.last
        assert "score" in ran.last and "first" in ran.last and "score the run" in ran.last
    ran = cli("score", "--run", "r", "--metrics", "truthfulness-choice:critic")
    assert ran.code == 0, ran.err
    audits = [
        cli("audit", "r", "--grader", name, "--truth", "em", "--json")
        for name in ("truthfulness-choice:critic", "truthfulness_choice:critic")
    ]
    assert [x.code for x in audits] == [0, 0] and audits[0].json == audits[1].json
    assert audits[0].json["grader"] == "truthfulness_choice:critic"


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ("truthfulness", "name the language model that judges, as in truthfulness:MODEL"),
        ("truthfulness:nobody", "nobody"),
        ("truthfulnes:judge", "There is no metric"),
    ],
)
def test_a_wrong_judge_writes_nothing(cli: CommandLine, metrics: str, sentence: str) -> None:
    ran = cli(*RUN, "--name", "r", "--metrics", metrics)
    assert ran.code == 2 and sentence in ran.last
    assert not (cli.workspace / "runs" / "r").exists()


def test_a_judge_with_nothing_to_judge_by_in_any_question_is_refused(cli: CommandLine) -> None:
    bare = cli.workspace / "bare.jsonl"
    bare.write_text('{"id": "q1", "input": "Which moon?"}\n')
    run = ("run", "--chain", "closed", "--dataset", bare, "--no-mlflow", "--name", "r")
    ran = cli(*run, "--metrics", "seconds,truthfulness:judge")
    assert ran.code == 2 and "an article, a reference or accepted answers" in ran.last
    assert not (cli.workspace / "runs" / "r").exists()
    ran = cli(*run, "--metrics", "seconds,rgb-errors:judge")
    assert ran.code == 0, "it judges by the answer alone"


def test_a_question_with_nothing_to_judge_by_is_counted_and_not_scored(cli: CommandLine) -> None:
    mixed = cli.workspace / "mixed.jsonl"
    answered = '{"id": "q2", "input": "Which sea?", "output": [{"answer": "Black Sea"}]}'
    mixed.write_text(f'{{"id": "q1", "input": "Which moon?"}}\n{answered}\n')
    run = ("run", "--chain", "closed", "--dataset", mixed, "--no-mlflow", "--name", "r")
    ran = cli(*run, "--metrics", "em,truthfulness:judge", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["truthfulness:judge"]["n"] == 1
    assert ran.json["judges"]["truthfulness:judge"]["not_judged"] == 1
    assert "1 had nothing to judge by; they are not scored" in ran.err


def test_a_resumed_run_keeps_the_scores_of_a_judge_not_named_again(cli: CommandLine) -> None:
    assert cli(*RUN, "--name", "r", "--metrics", "em").code == 0
    later = cli("score", "--run", "r", "--metrics", "truthfulness:judge", "--json")
    assert cli(*RUN, "--name", "r", "--metrics", "em", "--resume").code == 0
    after = report(cli, "r")
    assert after["suite"] == later.json["suite"] and after["judges"] == later.json["judges"]


def test_a_changed_judge_judges_anew_beside_the_earlier_pass(cli: CommandLine) -> None:
    asked = (*RUN, "--name", "r", "--metrics", "truthfulness:judge")
    assert cli(*asked).code == 0
    add_llm(cli.workspace, "judge", default='{"truthfulness": 2, "relevance": 2}')
    ran = cli(*asked, "--resume", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["truthfulness:judge"]["value"] == 2.0
    assert len(passes(cli, "r")) == 2


def test_a_run_is_stopped_while_it_is_judged_and_goes_on_with_that(cli: CommandLine) -> None:
    add_llm(cli.workspace, "judge", **SCORES, delay=0.2)
    bench = Workbench(cli.workspace)
    chain = bench.workspace.chain("closed")
    asked = {"metrics": ("em", "truthfulness:judge"), "batch_size": 1, "track": False}
    job = bench.runs.start(prepared(bench.workspace, chain, "tiny-qa", name="r", **asked))
    folder = cli.workspace / "runs" / "r" / "judges"
    end = time.monotonic() + 60
    while time.monotonic() < end and not any(
        path.stat().st_size for path in folder.glob("*/episodes.jsonl")
    ):
        time.sleep(0.01)
    bench.runs.stop("r")
    assert job.wait(60)
    state = bench.runs.open("r").state()
    bench.close()
    assert job.done and state.state == "stopped" and state.done == 8
    (lines,) = folder.glob("*/episodes.jsonl")
    before = lines.read_text().splitlines()
    assert 1 <= len(before) < 8
    again = ("run", "--chain", "closed", "--dataset", "tiny-qa", "--no-mlflow", "--resume")
    ran = cli(*again, "--name", "r", "--metrics", "em,truthfulness:judge", "--json")
    assert ran.code == 0 and ran.json["judges"]["truthfulness:judge"]["judged"] == 8
    assert lines.read_text().splitlines()[: len(before)] == before


def test_ragquesteval_judges_any_run_with_references_in_several_turns(cli: CommandLine) -> None:
    replies = {"key_info": '{"question": ["who?", "when?"]}'}
    answers = "<response>Ada</response> <response>无法推断</response>"
    add_llm(cli.workspace, "asks", replies=replies, default=answers)
    ran = cli(*RUN, "--name", "r", "--metrics", "em,ragquesteval:asks", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["metrics"]["QA_avg_F1:asks"]["value"] == 1.0
    assert ran.json["metrics"]["QA_recall:asks"]["n"] == 3
    (folder,) = passes(cli, "r")
    judgement = json.loads((folder / "episodes.jsonl").read_text().splitlines()[0])
    assert len([step for step in judgement["steps"] if step["ask"] == "generate"]) == 3
    content = json.loads(judgement["answer"])
    assert content["question"] == ["who?", "when?"] and content["answers"] == ["Ada", "无法推断"]
    later = cli(*RUN, "--name", "other", "--set", "max_tokens=1", "--json")
    assert later.code == 0, later.err
    again = cli("score", "--run", "other", "--metrics", "ragquesteval:asks", "--json")
    (folder,) = passes(cli, "other")
    steps = json.loads((folder / "episodes.jsonl").read_text().splitlines()[0])["steps"]
    assert [step["cached"] for step in steps][:2] == [True, True], "references are asked once"
    assert again.json["suite"]["QA_recall:asks"]["value"] == 1.0


def test_what_a_judges_server_refuses_is_left_out_and_stands_in_the_runs_warnings(
    cli: CommandLine,
) -> None:
    def picky(handler: Handler) -> None:
        roles = [message["role"] for message in handler.body["messages"]]
        for field in ("temperature", "seed"):
            if field in handler.body:
                return fail(400, f"Unsupported parameter: '{field}'", param=field)(handler)
        refused = "system" in roles
        return (fail(400, "System role not supported") if refused else answer("4, 5"))(handler)

    with Loopback(picky) as server:
        judge = f"(openai_compatible:m?base_url={server.url}&max_retries=0)"
        ran = cli(*RUN, "--name", "r", "--metrics", f"truthfulness:{judge}", "--json")
    assert ran.code == 0, ran.err
    (name,) = (name for name in ran.json["metrics"] if name.startswith("truthfulness"))
    assert ran.json["metrics"][name]["value"] == 4.0
    assert "came without temperature, seed, system messages, which the server refuses" in ran.err
    state = json.loads((cli.workspace / "runs" / "r" / "state.json").read_text())
    assert "came without temperature, seed, system messages" in state["message"]
