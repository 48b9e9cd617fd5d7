"""``run --repeats``: every question several times where a model samples, with the spread of each metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_workspace import (
    QUESTIONS,
    CommandLine,
    add_llm,
    chain,
    generate,
    read_lines,
    retrieve,
    write_lines,
)

from rallebench import RalleError, Workspace
from rallebench.engine.repeats import SEED_STEP
from rallebench.engine.store import REPEATS, RunFolder

WORDS = ("Titan", "Triton", "Texas", "none", "Danube", "Charon", "Titan", "Neptune", "Pluto")
"""Replies in turn: nine for eight questions, so that repeats differ."""


@pytest.fixture
def workspace(workspace: Path) -> Path:
    add_llm(workspace, "mixed", replies=WORDS * 6)
    for name, generation in (
        ("sampled", {"temperature": 0.7}),
        ("seeded", {"temperature": 0.7, "seed": 5}),
    ):
        action = generate("{question}", "mixed", generation=generation)
        (workspace / "chains" / f"{name}.json").write_text(json.dumps(chain(name, action)))
    return workspace


@pytest.fixture
def run(cli: CommandLine) -> Any:
    def start(name: str, used: str = "sampled", *more: str | int) -> Any:
        words = ("--chain", used, "--name", name, "--dataset", "tiny-qa", "--metrics", "em,f1")
        ran = cli("run --no-mlflow", *words, *more)
        assert ran.code == 0, ran.err
        return ran

    return start


def read_report(workspace: Path, name: str) -> Any:
    return json.loads((workspace / "runs" / name / "report.json").read_text())


def em_by_repeat(workspace: Path, name: str, metric: str = "em") -> Any:
    """(questions, repeats) scores, from the files of each repeat."""
    folder = workspace / "runs" / name
    columns = []
    for path in (folder, *sorted((folder / "repeats").glob("*"))):
        lines = read_lines(path / "scores.jsonl")
        columns.append([line["value"] for line in lines if line["metric"] == metric])
    return np.array(columns, dtype=float).T


def test_scores_are_means_over_the_repeats_and_their_spread_is_reported(
    run: Any, workspace: Path
) -> None:
    ran = run("r", "sampled", "--repeats", 3)
    scores = em_by_repeat(workspace, "r")
    assert scores.shape == (8, 3) and len({*map(tuple, scores.T)}) > 1
    report = read_report(workspace, "r")
    assert report["metrics"]["em"]["value"] == pytest.approx(scores.mean())
    assert (report["metrics"]["em"]["n"], report["cost"]["total"]["model_calls"]) == (8, 24)
    spread = report["repeats"]["metrics"]["em"]
    assert spread["between_repeats"] == pytest.approx(scores.var(axis=1, ddof=1).mean())
    assert spread["unstable"] == np.mean(scores.min(axis=1) != scores.max(axis=1))
    assert spread["pass_at"][2] == pytest.approx(scores.max(axis=1).mean())
    assert spread["pass_all"][2] == pytest.approx(scores.min(axis=1).mean())
    assert "Each question was asked 3 times; its score is the mean." in ran.out
    assert "pass@3" in ran.out and "pass^3" in ran.out


def test_the_first_repeat_is_the_run_that_would_be_made_without(run: Any, workspace: Path) -> None:
    run("one", "seeded")
    run("three", "seeded", "--repeats", 3)
    one, three = (
        json.loads((workspace / "runs" / name / "run.json").read_text())
        for name in ("one", "three")
    )
    assert one["fingerprint"] == three["fingerprint"]
    first = read_lines(workspace / "runs" / "three" / "episodes.jsonl")
    assert all(step["cached"] for episode in first for step in episode["steps"])
    assert not (workspace / "runs" / "one" / "repeats").exists()
    assert "repeats" not in read_report(workspace, "one")


def test_seeded_repeats_have_their_own_seeds_and_are_cached_by_them(
    run: Any, workspace: Path
) -> None:
    run("r", "seeded", "--repeats", 3)
    run("again", "seeded", "--repeats", 3)
    for number in (2, 3):
        path = workspace / "runs" / "again" / "repeats" / str(number)
        steps = [s for e in read_lines(path / "episodes.jsonl") for s in e["steps"]]
        assert {step["seed"] for step in steps} == {5 + SEED_STEP * (number - 1)}
        assert all(step["cached"] for step in steps)
    assert (em_by_repeat(workspace, "r") == em_by_repeat(workspace, "again")).all()


def test_a_deterministic_model_is_asked_once_and_the_report_says_so(
    cli: CommandLine, run: Any, workspace: Path
) -> None:
    ran = run("r", "read", "--repeats", 4)
    assert not (workspace / "runs" / "r" / "repeats").exists()
    repeats = read_report(workspace, "r")["repeats"]
    assert (repeats["requested"], repeats["number"]) == (4, 1)
    assert "No model samples" in ran.out and "each question was asked once" in ran.out


def test_more_repeats_ask_only_those_that_are_missing_and_a_later_call_keeps_them(
    run: Any, workspace: Path
) -> None:
    run("r")
    before = (workspace / "runs" / "r" / "episodes.jsonl").read_bytes()
    run("r", "sampled", "--repeats", 2, "--resume")
    second = (workspace / "runs" / "r" / "repeats" / "2" / "episodes.jsonl").read_bytes()
    run("r", "sampled", "--repeats", 3, "--resume")
    run("r", "sampled", "--resume")
    folder = workspace / "runs" / "r"
    assert (folder / "episodes.jsonl").read_bytes() == before
    assert (folder / "repeats" / "2" / "episodes.jsonl").read_bytes() == second
    assert read_report(workspace, "r")["repeats"]["number"] == 3


def test_a_run_that_grows_asks_the_new_questions_in_every_repeat(run: Any, workspace: Path) -> None:
    run("r", "sampled", "--limit", 5, "--repeats", 2)
    run("r", "sampled", "--limit", 8, "--resume")
    assert em_by_repeat(workspace, "r").shape == (8, 2)


def test_a_further_metric_scores_every_repeat(cli: CommandLine, run: Any, workspace: Path) -> None:
    run("r", "sampled", "--repeats", 3, "--threshold", "f1=0.5")
    assert cli("score --run r").code == 0
    assert cli("score --run r --metrics has_answer").code == 0
    scores = em_by_repeat(workspace, "r", "has_answer")
    report = read_report(workspace, "r")
    assert scores.shape == (8, 3)
    assert report["metrics"]["has_answer"]["value"] == pytest.approx(scores.mean())
    assert report["metrics"]["em"]["value"] == pytest.approx(em_by_repeat(workspace, "r").mean())
    assert report["repeats"]["thresholds"] == {"f1": 0.5} and report["repeats"]["number"] == 3


def test_judges_judge_every_repeat(cli: CommandLine, run: Any, workspace: Path) -> None:
    replies = [json.dumps({"truthfulness": i % 5 + 1, "relevance": 5}) for i in range(24)]
    add_llm(workspace, "judge", replies=replies)
    run("r", "sampled", "--repeats", 3)
    assert cli("score --run r --metrics truthfulness:judge").code == 0
    scores = em_by_repeat(workspace, "r", "truthfulness:judge")
    assert scores.shape == (8, 3) and scores.std() > 0
    value = read_report(workspace, "r")["suite"]["truthfulness:judge"]["value"]
    assert value == pytest.approx(scores.mean())


def test_comparisons_and_gates_read_the_means(cli: CommandLine, run: Any, workspace: Path) -> None:
    run("r", "sampled", "--repeats", 3)
    run("d", "read")
    compared = cli("compare d r --metric em --json")
    assert compared.json["b"] == pytest.approx(em_by_repeat(workspace, "r").mean())
    assert "number of repeats: d 1, r 3" in compared.err
    later = cli.json("compare d r --metric has_answer")
    assert later["b"] not in (0.0, 1.0) and (later["b"] * 24) % 1 == pytest.approx(0, abs=1e-9)
    assert cli("gate r --against d --json").json["new_mean"] == compared.json["b"]


def test_the_html_report_and_python_have_the_spread(
    cli: CommandLine, run: Any, workspace: Path, tmp_path: Path
) -> None:
    run("r", "sampled", "--repeats", 3)
    assert cli("report r --out", tmp_path / "r.html").code == 0
    assert "pass^3" in (tmp_path / "r.html").read_text()
    run("d", "read")
    with Workspace(workspace, track=False) as ws:
        stored = read_report(workspace, "r")["repeats"]
        assert (
            ws.run_result("r").repeats.metrics["em"].unstable
            == (stored["metrics"]["em"]["unstable"])
        )
        with pytest.raises(RalleError) as error:
            ws.run_result("d").repeats  # noqa: B018
        assert str(error.value) == (
            "The run 'd' was made without repeats; run it again under its name with a number of repeats."
        )
        more = ws.run("sampled", "tiny-qa", name="r", metrics=["em", "f1"], repeats=4)
        assert more.repeats.number == 4 and len(more.questions) == len(QUESTIONS)


@pytest.mark.parametrize("inside", [False, True])
def test_a_run_that_is_stopped_in_any_repeat_continues_with_the_rest(
    inside: bool, run: Any, cli: CommandLine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "run --no-mlflow --chain sampled --name r --dataset tiny-qa --metrics em,f1"
    with monkeypatch.context() as patch:
        patch.setattr(
            RunFolder, "stop_asked", lambda folder: inside == (folder.path.parent.name == REPEATS)
        )
        ran = cli(f"{words} --batch-size 2 --repeats 3 --threshold f1=0.5")
    assert ran.code == 130, ran.err
    assert (workspace / "runs" / "r" / "repeats").exists() == inside
    stopped = read_report(workspace, "r").get("repeats")
    assert stopped is None or stopped["number"] == 2, "never called deterministic"
    ran = cli(f"{words} --resume --batch-size 2")
    assert ran.code == 0, ran.err
    assert read_report(workspace, "r")["repeats"]["number"] == 3
    assert em_by_repeat(workspace, "r").shape == (8, 3)
    spread = read_report(workspace, "r")["repeats"]
    passed = em_by_repeat(workspace, "r", "f1") >= 0.5
    assert spread["thresholds"] == {"f1": 0.5}, "kept although the run was stopped"
    assert spread["metrics"]["f1"]["pass_at"][2] == pytest.approx(passed.max(axis=1).mean())


SWEEP = "sweep --chain sampled --dataset tiny-qa --vary seed=1,2 --metrics em --name s --no-mlflow"


def test_every_variant_of_a_sweep_is_repeated_and_the_plan_counts_all_repeats(
    cli: CommandLine, workspace: Path
) -> None:
    ran = cli(f"{SWEEP} --repeats 3")
    assert ran.code == 0, ran.err
    for name in ("s seed=1", "s seed=2"):
        assert em_by_repeat(workspace, name).shape == (8, 3)
        report = read_report(workspace, name)
        assert report["metrics"]["em"]["value"] == pytest.approx(
            em_by_repeat(workspace, name).mean()
        )


def test_a_plan_counts_every_repeat_of_a_model_that_samples(
    cli: CommandLine, workspace: Path
) -> None:
    write_lines(workspace / "datasets" / "lands.jsonl", LANDS)
    words = "improve sampled --dataset lands --set examples= --name x --plan --probe 0"
    once = cli.json(words)["total"]
    plan = cli.json(f"{words} --repeats 3")
    assert plan["total"]["left"] == 3 * once["left"]
    assert plan["total"]["generations"]["high"] == 3 * once["generations"]["high"]
    assert plan["total"]["generations"]["low"] == 3 * once["generations"]["low"]
    assert "proof, the chain/repeat 3" in [part["label"] for part in plan["plan"]]
    assert [part.get("repeat", 1) for part in plan["plan"][:3]] == [1, 2, 3]
    assert any("A repeat counts its questions again" in note for note in plan["notes"])
    (workspace / "chains" / "cold.json").write_text(
        json.dumps(chain("cold", generate("{question}", "mixed", generation={"temperature": 0})))
    )
    cold = words.replace("sampled", "cold")
    assert cli.json(f"{cold} --repeats 3")["total"] == cli.json(cold)["total"], "asked once"


LANDS = [
    {"id": f"q{i}", "input": f"Which town rules land{i}?", "output": [{"answer": f"Town{i}"}]}
    for i in range(40)
]


def test_the_probe_of_a_plan_prices_all_repeats(cli: CommandLine, workspace: Path) -> None:
    write_lines(workspace / "datasets" / "lands.jsonl", LANDS)
    add_llm(workspace, "mixed", default="Titan")
    words = (
        "improve sampled --dataset lands --set examples= --set variants=2 --name x --plan --probe 1"
    )
    once, thrice = (
        cli.json(f"{words} --repeats {n}")["probe"]["total"]["model_calls"]["value"] for n in (1, 3)
    )
    assert once > 0 and thrice == pytest.approx(3 * once)


def test_baselines_are_repeated(cli: CommandLine, run: Any, workspace: Path) -> None:
    add_llm(workspace, "mixed", default="Titan")
    action = generate(target="mixed", generation={"temperature": 0.7})
    content = chain("searching", retrieve(), action)
    (workspace / "chains" / "searching.json").write_text(json.dumps(content))
    run("b", "searching", "--repeats", 2)
    ran = cli("baselines b --no-mlflow --repeats 2")
    assert ran.code == 0, ran.err
    assert read_report(workspace, "b oracle")["repeats"]["number"] == 2


def test_a_failed_question_counts_in_the_repeats_that_answered_it(
    run: Any, cli: CommandLine, workspace: Path
) -> None:
    add_llm(workspace, "mixed", replies=WORDS[:8] + WORDS[:5])
    ran = cli("run --no-mlflow --chain sampled --name r --dataset tiny-qa --metrics em --repeats 2")
    assert ran.code == 0, ran.err
    assert "Answers that failed in a repeat and are left out: 3." in ran.out
    report = read_report(workspace, "r")
    assert report["metrics"]["em"]["n"] == 8 and report["repeats"]["metrics"]["em"]["n"] == 5


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--repeats 0", "The number of repeats is 0; it must be from 1 to 100."),
        ("--repeats 1 --threshold f1=1", "--threshold goes with --repeats"),
        ("--repeats 2 --threshold f1", "The threshold 'f1' is not METRIC=SCORE"),
    ],
)
def test_wrong_repeats_are_refused(words: str, sentence: str, cli: CommandLine) -> None:
    ran = cli(f"run --no-mlflow --chain sampled --name r --dataset tiny-qa {words}")
    assert ran.code == 2 and ran.last.startswith(sentence)
