"""Several runs of one question set: one table over the questions that all share, everyone against the first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace

from rallebench.analysis.ranking import MultiRunComparison, compare_many
from rallebench.core.errors import UsageError
from rallebench.engine.score import examples_of_runs
from rallebench.engine.store import RunFolder

Compared = Callable[..., MultiRunComparison]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("many") / "workspace")


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    return CommandLine(capfd, workspace)


@pytest.fixture
def runs(rallebench: CommandLine, workspace: Path) -> Path:
    """Right once, right never, right on one of five, failed wherever no Danube is."""
    made = {"titan": (), "echo": (), "short": ("--limit", "5"), "picky": ()}
    for name, more in made.items():
        if not (workspace / "runs" / name).exists():
            llm = "titan" if name == "short" else name
            asked = (
                "run",
                "--dataset",
                "tiny-qa",
                "--no-mlflow",
                "--chain",
                "read",
                "--name",
                name,
                "--llm",
                llm,
            )
            assert rallebench(*asked, *more).code in (0, 1)
    return workspace / "runs"


@pytest.fixture
def compared(runs: Path) -> Compared:
    return lambda *names, **more: compare_many(
        [RunFolder.open(runs, name) for name in names], **more
    )


def test_every_metric_has_one_mean_per_run_and_the_best_is_marked(compared: Compared) -> None:
    found = compared("titan", "echo")
    assert found.metric == "em"
    assert [mean.value for mean in found.cells["em"]] == [1 / 8, 0.0]
    assert found.best["em"] == {0}
    assert found.best["recall@5"] == frozenset(), "both retrieved alike: there is no best"
    assert found.warnings == []


def test_questions_that_runs_have_in_equal_files_are_read_once(runs: Path) -> None:
    titan, echo, short = examples_of_runs(
        [RunFolder.open(runs, name) for name in ("titan", "echo", "short")]
    )
    assert titan is echo
    assert [e.question for e in short] == [e.question for e in titan[:5]]
    assert len(short) < len(titan)


def test_less_is_better_for_a_cost(compared: Compared) -> None:
    found = compared("titan", "echo")
    means = [mean.value for mean in found.cells["completion_tokens"]]
    assert means[0] is not None and means[1] is not None and means[0] < means[1]
    assert found.best["completion_tokens"] == {0}


def test_only_questions_that_all_runs_share_are_counted_and_that_is_said(
    compared: Compared,
) -> None:
    found = compared("titan", "echo", "short")
    assert {row[0].n for row in found.cells.values()} == {5}
    assert [side.left_out for side in found.sides] == [3, 3, 0]
    assert "only the 5 that all share are compared (left out: titan 3, echo 3)" in found.warnings[0]


def test_a_question_that_failed_in_one_run_is_left_out_for_all_and_counted(
    compared: Compared,
) -> None:
    found = compared("titan", "picky")
    assert found.sides[1].failed > 0
    assert {mean.n for mean in found.cells["em"]} == {8 - found.sides[1].failed}
    assert f"picky: {found.sides[1].failed} failed" in found.warnings[0]


def test_every_run_is_compared_with_the_first_and_p_is_corrected_for_as_many(
    compared: Compared,
) -> None:
    found = compared("titan", "echo", "short")
    assert [one.name for one in found.against] == ["echo", "short"]
    assert [one.paired.comparisons for one in found.against] == [2, 2]
    assert [(one.paired.p, one.paired.note) for one in found.against] == [
        (None, "too few articles")
    ] * 2, "5 questions show nothing"
    assert found.against[0].paired.lost == ("q1",)


def test_no_difference_contradicts_the_means_above_it(compared: Compared) -> None:
    found = compared("titan", "echo", "picky")
    first, *others = [mean.value for mean in found.cells["em"]]
    for one, mean in zip(found.against, others):
        assert (one.paired.n, one.paired.difference) == (found.cells["em"][0].n, mean - first)


def test_a_metric_that_the_runs_did_not_keep_is_scored_from_what_is_stored(
    compared: Compared,
) -> None:
    found = compared("titan", "echo", chosen="recall@7")
    assert found.metric == "recall@7" and found.cells["recall@7"][0].n == 8


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("titan",), "at least two runs"),
        (("titan", "titan"), "chosen twice"),
        (("titan",) * 65, "at most 64"),
    ],
)
def test_a_choice_that_cannot_be_compared_is_one_sentence(
    compared: Compared, names: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        compared(*names)


def test_the_command_line_prints_the_table_for_more_than_two_runs(
    rallebench: CommandLine, runs: Path
) -> None:
    found = rallebench("compare", "titan", "echo", "short", "--json").json
    assert (found["runs"], found["n"], found["metric"]) == (["titan", "echo", "short"], 5, "em")
    assert [one["run"] for one in found["against"]] == ["echo", "short"]
    plain = rallebench("compare", "titan", "echo", "short")
    assert "EM against titan, question by question." in plain.out
    assert "Of 2 comparisons p is corrected by Holm, and the intervals hold together" in plain.out
    assert "Warning: The runs asked different questions" in plain.err


def test_two_runs_say_what_failed_in_one_of_them_and_is_left_out(
    runs: Path, rallebench: CommandLine
) -> None:
    ran = rallebench("compare", "titan", "picky")
    assert (
        ran.code == 0
        and "Warning: picky: " in ran.err
        and "failed; these questions are left out." in ran.err
    )


def test_a_score_that_is_no_number_is_left_out_and_that_is_said(
    runs: Path, compared: Compared
) -> None:
    scores = runs / "echo" / "scores.jsonl"
    before = scores.read_text()
    lines = before.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"metric": "em"' in line)
    lines[at] = lines[at].replace('"value": 0.0', '"value": NaN')
    scores.write_text("".join(lines))
    try:
        found = compared("titan", "echo")
    finally:
        scores.write_text(before)
    assert found.cells["em"][0].n == found.against[0].paired.n == 7
    assert found.warnings == ["Only 7 of the 8 shared questions are scored by em in every run."]
