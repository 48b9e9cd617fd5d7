"""The support of an answer on the page: sentences supported, unsupported or with a wrong citation, with their passage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from page_views import texts, view_of
from small_workspace import CommandLine, add_llm

from rallebench.gui.frame import Page

ANSWER = (
    "Titan is the largest moon of Saturn [1]. Triton is the largest moon of Uranus [2]. Nothing is known of <b>Io</b> [7]. "
    'It "goes round it backwards every day".'
)
METRICS = "support,citation_precision,citation_recall,wrong_citations,quotations"


@pytest.fixture
def run(workspace: Path, cli: CommandLine) -> Path:
    add_llm(workspace, "cites", default=ANSWER)
    add_llm(workspace, "yes", default="yes")
    add_llm(workspace, "silent", default="hm")
    ran = cli(
        "run --chain read --dataset tiny-qa --llm cites --name r --limit 2 --no-mlflow --metrics",
        METRICS,
    )
    assert ran.code == 0, ran.err
    return workspace / "runs" / "r"


def test_a_question_of_a_run_shows_each_sentence_with_its_verdict_and_passage(
    run: Path, page: Page
) -> None:
    view = view_of(page, "runs/run?id=r&q=q1")
    words = texts(view)
    assert (
        "Support 1 of 4 sentences supported · 1 with a wrong citation · by the embedded head"
        in words
    )
    assert (
        "Titan is the largest moon of Saturn. supported cites [1] Passage 1 Titan (moon)" in words
    )
    assert (
        "Triton is the largest moon of Uranus. unsupported cites [2] Nearest passage 1 Titan"
        in words
    )
    assert "wrong citation [7], unsupported" in words
    assert "goes round it backwards every day in no passage" in words
    assert "<b>Io</b>" not in view, "text of an answer is escaped"


def test_the_report_has_columns_and_the_card_says_what_they_are(run: Path, page: Page) -> None:
    report = json.loads((run / "report.json").read_text())
    assert set(METRICS.split(",")) <= set(report["metrics"])
    assert report["metrics"]["wrong_citations"]["value"] == pytest.approx(1 / 3)
    assert report["metrics"]["quotations"]["value"] == 0.0
    view = texts(view_of(page, "runs/run?id=r&part=metrics"))
    assert "Citation precision" in view and "Wrong citations" in view


def test_a_language_model_decides_by_yes_and_no(run: Path, cli: CommandLine, page: Page) -> None:
    ran = cli("score --run r --metrics support:yes,citation_recall:yes,faithfulness:silent")
    assert ran.code == 1 and "'support:silent' gave no scores" in ran.last
    report = json.loads((run / "report.json").read_text())
    assert report["suite"]["support:yes"]["value"] == 1.0
    assert report["suite"]["citation_recall:yes"]["value"] == 0.5, "without a citation, and wrong"
    assert report["suite"]["faithfulness:silent"]["n"] == 0
    assert "could not be read" in ran.err + ran.out
    assert report["metrics"]["support"]["value"] == 0.375, "the head's own values stay"
    folders = sorted(path.name.partition("-")[0] for path in (run / "judges").iterdir())
    assert folders == ["support", "support"]
    words = texts(view_of(page, "runs/run?id=r&q=q1"))
    assert "by yes" in words and "by the embedded head" in words


def test_support_of_another_answer_is_not_shown(run: Path, page: Page) -> None:
    lines = (run / "support.jsonl").read_text()
    (run / "support.jsonl").write_text(
        lines.replace("Titan is the largest", "Titan was the largest")
    )
    assert "sentences supported" not in texts(view_of(page, "runs/run?id=r&q=q1"))


def test_a_damaged_file_has_a_sentence(run: Path, page: Page) -> None:
    (run / "support.jsonl").write_text('{"qid": "q1"}\n')
    assert "score the run again by its support metrics" in texts(
        view_of(page, "runs/run?id=r&q=q1")
    )


def test_an_answer_that_declines_says_why_it_has_no_support(
    workspace: Path, cli: CommandLine, page: Page
) -> None:
    add_llm(workspace, "shy", default="I don't know.")
    words = (
        "run --chain read --dataset tiny-qa --llm shy --name shy --limit 1 --no-mlflow --metrics"
    )
    ran = cli(words, "support,em")
    report = json.loads((workspace / "runs" / "shy" / "report.json").read_text())
    assert report["metrics"]["support"]["value"] is None, ran.err
    assert report["not_scored"]["support"] == "the answer declines"
    assert "Not checked: the answer declines." in texts(view_of(page, "runs/run?id=shy&q=q1"))
