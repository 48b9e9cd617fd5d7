"""``run --until-decided``: a run asks whole articles in a random order, and ends once it is decided against a base."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from page_views import opened_page, text_of
from small_workspace import CommandLine, chain, generate, read_lines, record, scripted, write_lines

from rallebench import RalleError, Workspace
from rallebench.gui.places._runs_cells import question_count
from rallebench.services.workbench import Workbench
from rallebench.views import run_list

COUNT, EACH = 60, 2
"""Articles, and questions of each."""


def wrong_on(every: int) -> dict[str, Any]:
    """Settings of a model that is wrong on each article whose number this divides."""
    wrong = {f"number {i:02} ": "no" for i in range(0, COUNT, every)}
    return {"replies": wrong, "default": "yes"}


MODELS: Mapping[str, Mapping[str, Any]] = {
    "right": {"default": "yes"},
    "wrong": {"default": "no"},
    "half": wrong_on(2),
    "seldom": wrong_on(20),
}


@pytest.fixture(scope="session")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decided") / "workspace"
    for name in ("chains", "datasets"):
        (folder / name).mkdir(parents=True)
    (folder / "llms.json").write_text(json.dumps(scripted(MODELS)))
    closed = chain("closed", generate("{question}", "right"))
    (folder / "chains" / "closed.json").write_text(json.dumps(closed))
    rows = [
        record(f"q{i:02}-{j}", f"Is number {i:02} so, {j}?", "yes", f"p{i}")
        for i in range(COUNT)
        for j in range(EACH)
    ]
    write_lines(folder / "datasets" / "items.jsonl", rows)
    return folder


@pytest.fixture
def run(cli: CommandLine) -> Any:
    """Run the chain with a model, under the model's name or another."""

    def start(llm: str, *more: str | int, name: str = "") -> Any:
        words = ("--llm", llm, "--name", name or llm, "--metrics", "em,completion_tokens")
        return cli("run --no-mlflow --batch-size 4 --chain closed --dataset items", *words, *more)

    return start


def report(cli: CommandLine, name: str) -> Any:
    return json.loads((cli.workspace / "runs" / name / "report.json").read_text())


UNTIL = ("--until-decided", "--against", "right")


def test_a_clearly_worse_run_ends_early_with_whole_articles_in_a_random_order(
    cli: CommandLine, run: Any
) -> None:
    assert run("right").code == 0
    ran = run("wrong", *UNTIL)
    assert ran.code == 0, ran.err
    found = report(cli, "wrong")
    asked = read_lines(cli.workspace / "runs" / "wrong" / "questions.jsonl")
    assert found["complete"] is True and found["n"] == len(asked) < COUNT * EACH / 2
    articles = [row["id"].partition("-")[0] for row in asked]
    assert articles[::2] == articles[1::2], "whole articles"
    assert articles != sorted(articles), "in a random order"
    assert f"decided after {len(asked)} of 120 questions: worse than right" in ran.out
    watched = found["until_decided"]["watched"]
    assert watched["high"] < -0.02 and watched["questions"] == len(asked)


def test_equal_runs_need_many_questions_and_the_margin_says_how_many(
    cli: CommandLine, run: Any
) -> None:
    run("right")
    run("right", *UNTIL, "--margin", 0.3, name="loose")
    run("right", *UNTIL, "--margin", 0.001, name="strict")
    loose, strict = report(cli, "loose"), report(cli, "strict")
    assert loose["n"] < strict["n"] == COUNT * EACH
    assert loose["until_decided"]["watched"]["low"] > -0.3
    assert strict["until_decided"]["watched"]["low"] < -0.001
    gate = cli("gate strict --against right --margin 0.001")
    assert (
        gate.code == 3
        and "All 120 questions were asked; ask more than these, or choose" in gate.out
    )
    with Workspace(cli.workspace) as ws:
        assert (
            "was to end once it was decided"
            in ws.run_result("strict").metrics["completion_tokens"].note
        )


def test_every_view_shows_the_sequential_interval_and_no_p(cli: CommandLine, run: Any) -> None:
    run("right")
    run("half", *UNTIL)
    watched = report(cli, "half")["until_decided"]["watched"]
    gate = cli("gate half --against right --json")
    assert (gate.code, gate.json["low"], gate.json["high"]) == (
        4,
        pytest.approx(watched["low"]),
        pytest.approx(watched["high"]),
    )
    compared = cli("compare right half --json").json
    pair = compared["against"]["half"] if "against" in compared else compared
    assert '"p": null' in json.dumps(pair) or pair.get("p") is None
    words = cli("compare right half").out
    assert "holds whenever one stops" in words and " p 0" not in words
    report_file = cli.workspace.parent / "half.md"
    assert cli("report half --out", report_file).code == 0
    assert "decided after" in report_file.read_text()
    with Workspace(cli.workspace) as ws:
        mean = ws.run_result("half").metrics["completion_tokens"]
        assert (mean.low, mean.n) == (None, report(cli, "half")["n"])
        assert "without two bounds" in mean.note


def test_the_page_says_so_in_the_list_in_the_run_and_in_the_comparison(
    cli: CommandLine, run: Any
) -> None:
    run("right")
    run("half", *UNTIL)
    asked = f"decided after {report(cli, 'half')['n']} of 120 questions"
    with opened_page(cli.workspace) as page:
        (row,) = [r for r in run_list.rows(page.workspace) if r.name == "half"]
        assert question_count(row) == asked
        assert f"{asked}: worse than right by more than 0.02 em" in text_of(
            page, "#/runs/run?id=half"
        )
        compared = text_of(page, "#/runs/compare?a=right&b=half")
    assert "which holds whenever one stops" in compared and "p =" not in compared


def test_python_ends_a_run_once_it_is_decided(cli: CommandLine, run: Any) -> None:
    run("right")
    with Workspace(cli.workspace, track=False) as ws:
        base = ws.run_result("right")
        half = ws.run("closed", "items", llm="half", name="half", until_decided=base, margin=0.1)
        assert len(half.questions) < COUNT * EACH
        assert ws.run("closed", "items", llm="half", name="half", until_decided="right", margin=0.1)
        with pytest.raises(RalleError, match="The margin is -1"):
            ws.run("closed", "items", until_decided=base, margin=-1)


def test_the_means_of_such_a_run_have_intervals_that_hold_whenever_one_stops(
    cli: CommandLine, run: Any
) -> None:
    run("right")
    run("half", *UNTIL)
    run("half", "--limit", report(cli, "half")["n"], name="fixed")
    decided, fixed = (report(cli, name)["metrics"]["em"] for name in ("half", "fixed"))
    assert decided["high"] - decided["low"] > fixed["high"] - fixed["low"]


def test_it_continues_where_it_stopped_and_asks_nothing_twice(cli: CommandLine, run: Any) -> None:
    run("right")
    run("half", *UNTIL)
    asked = report(cli, "half")["n"]
    again = run("half", *UNTIL, "--resume")
    assert again.code == 0 and report(cli, "half")["n"] == asked
    bench = Workbench(cli.workspace)
    prepared = bench.runs.resume("half")
    bench.close()
    assert len(prepared.request.examples) == COUNT * EACH
    assert prepared.request.stopping is not None


def test_without_its_base_a_run_names_the_way_out(cli: CommandLine, run: Any) -> None:
    run("right")
    run("half", *UNTIL)
    bench = Workbench(cli.workspace)
    bench.runs.delete("right")
    with pytest.raises(RalleError, match="'right', which was deleted; bring it back from the bin"):
        bench.runs.resume("half")
    bench.runs.empty_bin()
    with pytest.raises(RalleError, match="deleted for good, so it cannot be resumed"):
        bench.runs.resume("half")
    bench.close()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--until-decided",), "--until-decided needs --against BASE"),
        (("--against", "right"), "--against belongs to --until-decided"),
        (("--until-decided", "--against", "nowhere"), "There is no run 'nowhere'"),
        ((*UNTIL, "--metric", "completion_tokens"), "completion_tokens has no two bounds"),
        ((*UNTIL, "--metric", "nothing"), "nothing"),
        ((*UNTIL, "--margin", -1), "The margin is -1; it must be 0 or more."),
        ((*UNTIL, "--margin", 2), "so no run could be worse by more; 2 points are written 0.02."),
        ((*UNTIL, "--confidence", 1), "The confidence is 1; it must lie between 0 and 1"),
        ((*UNTIL, "--name", "right", "--resume"), "cannot be decided against itself"),
    ],
)
def test_a_wrong_rule_is_one_sentence_and_starts_nothing(
    cli: CommandLine, run: Any, flags: tuple[str | int, ...], sentence: str
) -> None:
    run("right")
    ran = run("half", *flags)
    assert ran.code == 2 and sentence in ran.err and "Traceback" not in ran.err
    assert not (cli.workspace / "runs" / "half").exists()


def test_a_base_with_other_questions_is_refused(cli: CommandLine, run: Any) -> None:
    run("right", "--limit", 40)
    ran = run("half", *UNTIL)
    assert ran.code == 2
    assert "80 of the 120 questions are not scored by em in the run 'right'" in ran.err
