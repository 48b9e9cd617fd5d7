"""The tables of a report and of a comparison: a row per metric, and the meaning of a difference in a word."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace

from rallebench.analysis import tables
from rallebench.analysis.ranking import compare_many
from rallebench.core.comparison import PairedComparison
from rallebench.core.tables import Table
from rallebench.engine.store import RunFolder

OVER_ALL = "BLEU, over all answers"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("tables") / "workspace")


@pytest.fixture
def runs(cli: CommandLine, workspace: Path) -> list[RunFolder]:
    """Two runs of the same questions, scored by BLEU."""
    for llm in ("titan", "echo"):
        if not (workspace / "runs" / llm).exists():
            assert cli.run(llm, llm, "--metrics", "em,bleu").code == 0
    return [RunFolder.open(workspace / "runs", llm) for llm in ("titan", "echo")]


def table_row(table: Table, label: str) -> tuple[object, ...]:
    (row,) = (row for row in table.rows if str(row[0]).startswith(label))
    return row


def test_a_corpus_level_figure_stands_below_the_mean_of_its_metric(runs: list[RunFolder]) -> None:
    report = runs[0].report()
    assert report is not None
    table = tables.metrics(report)
    labels = [str(row[0]) for row in table.rows]
    assert labels.index(OVER_ALL) == labels.index("BLEU") + 1
    row = table_row(table, OVER_ALL)
    assert row[1] == "bleu" and row[2] == report["bleu"].corpus_level


def test_a_comparison_has_the_corpus_level_figure_of_every_run(runs: list[RunFolder]) -> None:
    compared = compare_many(runs)
    row = table_row(tables.comparison(compared), OVER_ALL)
    values = [score.value for score in compared.corpus_level["bleu"]]
    assert [mean.value for mean in row[1:3]] == values  # type: ignore[attr-defined]
    assert row[3:] == (None, 8), "no difference is drawn from it here"


@pytest.mark.parametrize(
    ("difference", "corrected", "upward", "words"),
    [
        (None, None, True, "no question is scored in both"),
        (0.1, None, True, "too few articles"),
        (0.1, 0.2, True, "no difference shown"),
        (0.1, 0.01, True, "better"),
        (-0.1, 0.01, True, "worse"),
        (0.1, 0.01, False, "worse"),
        (-0.1, 0.01, False, "better"),
        (0.1, 0.01, None, "higher"),
        (-0.1, 0.01, None, "lower"),
    ],
)
def test_a_difference_is_told_by_its_sign_and_by_whether_more_is_better(
    difference: float | None, corrected: float | None, upward: bool | None, words: str
) -> None:
    counts = {"wins": 0, "ties": 0, "losses": 0, "gained": (), "lost": (), "needed": None}
    ends = {"low": None, "high": None, "p": corrected, "corrected": corrected}
    pair = PairedComparison(
        "em",
        30,
        0.5,
        0.5,
        difference,
        note="too few articles",
        **counts,
        **ends,  # type: ignore[arg-type]
    )
    assert pair.verdict(upward) == words
