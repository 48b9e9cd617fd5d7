"""Runs of one dataset: a table over their common questions, each run against the first, and the stages at which runs lose
questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace, read_lines, record, write_lines

from rallebench.analysis.ranking import compare_many
from rallebench.core.comparison import Comparison
from rallebench.core.errors import UsageError
from rallebench.engine.score import examples_of_runs
from rallebench.engine.store import RunFolder

Compared = Callable[..., Comparison]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("many") / "workspace")


@pytest.fixture
def runs(cli: CommandLine, workspace: Path) -> Path:
    """Four runs (always right, never right, right on one of five, failed on questions without the Danube), and one of
    another question."""
    other = write_lines(workspace / "other.jsonl", [record("q1", "Another?", "x", "p1")])
    requests = {
        "titan": ("titan",),
        "echo": ("echo",),
        "short": ("titan", "--limit", 5),
        "picky": ("picky",),
        "other": ("titan", "--dataset", other),
    }
    for name, (llm, *more) in requests.items():
        if not (workspace / "runs" / name).exists():
            assert cli.run(name, llm, *more).code in (0, 1)
    return workspace / "runs"


@pytest.fixture
def compare_runs(runs: Path) -> Compared:
    return lambda *names, **more: compare_many(
        [RunFolder.open(runs, name) for name in names], **more
    )


def test_every_metric_has_one_mean_per_run_and_the_best_is_marked(compare_runs: Compared) -> None:
    found = compare_runs("titan", "echo")
    assert found.metric == "em"
    assert [mean.value for mean in found.cells["em"]] == [1 / 8, 0.0]
    assert found.best("em") == {0}
    assert found.best("recall@5") == frozenset(), "both retrieved alike: there is no best"
    assert found.warnings == []
    first, second = (mean.value for mean in found.cells["completion_tokens"])
    assert first is not None and second is not None and first < second
    assert found.best("completion_tokens") == {0}, "less is better for a cost"
    alone = compare_runs("titan", "echo", every=False)
    assert set(alone.cells) == {"em"}
    assert (alone.against, alone.measures) == (found.against, found.measures)


def test_questions_that_runs_have_in_equal_files_are_read_once(runs: Path) -> None:
    titan, echo, short = examples_of_runs(
        [RunFolder.open(runs, name) for name in ("titan", "echo", "short")]
    )
    assert titan is echo
    assert [e.question for e in short] == [e.question for e in titan[:5]]
    assert len(short) < len(titan)


def test_only_shared_questions_count_and_every_run_meets_the_first(compare_runs: Compared) -> None:
    found = compare_runs("titan", "echo", "short")
    assert {row[0].n for row in found.cells.values()} == {5}
    assert [side.left_out for side in found.sides] == [3, 3, 0]
    assert (
        "only the 5 that all share are compared (left out: 3 of titan, 3 of echo)"
        in found.warnings[0]
    )
    assert list(found.against) == ["echo", "short"]
    for pair in found.against.values():
        assert (pair.comparisons, pair.p, pair.note) == (2, None, "too few articles")
    assert found.against["echo"].lost == ("q1",)


def test_what_failed_in_one_run_is_left_out_for_all(
    compare_runs: Compared, cli: CommandLine
) -> None:
    found = compare_runs("titan", "echo", "picky")
    failed = found.sides[2].failed
    assert failed > 0
    assert {mean.n for mean in found.cells["em"]} == {8 - failed}
    assert f"picky: {failed} failed; these questions are left out" in found.warnings[0]
    first, *others = [mean.value for mean in found.cells["em"]]
    for pair, mean in zip(found.against.values(), others):
        assert (pair.n, pair.difference) == (found.cells["em"][0].n, mean - first)
    two = cli("compare", "titan", "picky")
    assert f"Warning: picky: {failed} failed; these questions are left out" in two.err


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("titan",), "at least two runs"),
        (("titan", "titan"), "chosen twice"),
        (("titan",) * 65, "at most 64"),
    ],
)
def test_a_choice_that_cannot_be_compared_is_one_sentence(
    compare_runs: Compared, names: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        compare_runs(*names)


def test_a_score_that_is_no_number_is_left_out_and_told(runs: Path, compare_runs: Compared) -> None:
    scores = runs / "echo" / "scores.jsonl"
    before = scores.read_text()
    lines = before.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"metric": "em"' in line)
    lines[at] = lines[at].replace('"value": 0.0', '"value": NaN')
    scores.write_text("".join(lines))
    try:
        found = compare_runs("titan", "echo")
    finally:
        scores.write_text(before)
    assert found.cells["em"][0].n == found.against["echo"].n == 7
    assert found.warnings == ["Only 7 of the 8 shared questions are scored by em in every run."]


# the command line


def test_the_difference_has_its_interval_p_and_the_flips(runs: Path, cli: CommandLine) -> None:
    found = cli.json("compare", "short", "echo", "--metric", "em")
    assert (found["metric"], found["n"], found["runs"]) == ("em", 5, ["short", "echo"])
    assert found["difference"] == pytest.approx(found["b"] - found["a"]) == -0.2
    assert (found["low"], found["p"], found["note"]) == (None, None, "too few articles")
    assert (found["wins"], found["ties"], found["losses"], found["flipped"]) == (0, 4, 1, ["q1"])
    ran = cli("compare", "short", "echo")
    assert ran.code == 0 and "echo wins 0, ties 4, loses 1" in ran.out
    assert "only the 5 that all share are compared (left out: 3 of echo)" in ran.err
    assert found["warning"] in ran.err
    later = cli.json("compare", "titan", "echo", "--metric", "recall@7")
    assert later["n"] == 8, "a metric that the runs did not keep is scored from what is stored"


@pytest.fixture
def two_graded_runs(cli: CommandLine, workspace: Path) -> tuple[str, str]:
    """Two runs over 30 articles, which differ by F1: nine are a little lower in the second, one is much higher."""
    questions = write_lines(
        workspace / "graded.jsonl", [record(f"q{n}", f"Why {n}?", "x", f"p{n}") for n in range(30)]
    )
    for name in ("high", "low"):
        if not (workspace / "runs" / name).exists():
            assert cli.run(name, "titan", "--dataset", questions).code == 0
        scores = workspace / "runs" / name / "scores.jsonl"
        lines = read_lines(scores)
        for line in lines:
            if line["metric"] == "f1":
                number = int(line["qid"][1:])
                lower, higher = number < 9 and name == "low", number == 9 and name == "low"
                line["value"] = 0.3 if lower else 1.0 if higher else 0.5
        write_lines(scores, lines)
    return "high", "low"


def test_few_changes_in_one_direction_are_told_and_no_run_is_called_worse(
    two_graded_runs: tuple[str, str], cli: CommandLine, workspace: Path
) -> None:
    words = "too few in one direction"
    found = cli.json("compare", *two_graded_runs, "--metric", "f1")
    assert (found["low"], found["high"], found["p"], found["needed"]) == (None,) * 4
    assert (found["note"], found["wins"], found["losses"]) == (words, 1, 9)
    plain = cli("compare", *two_graded_runs, "--metric", "f1")
    assert f"difference -0.0433  {words}  p" in plain.out
    assert "questions needed to see this difference: unknown" in plain.out
    page = workspace / "graded.html"
    assert cli("report", *two_graded_runs, "--metric", "f1", "--out", page).code == 0
    assert words in page.read_text("utf-8")


def test_more_than_two_runs_are_a_table(runs: Path, cli: CommandLine) -> None:
    found = cli.json("compare", "titan", "echo", "short")
    assert (found["runs"], found["n"], found["metric"]) == (["titan", "echo", "short"], 5, "em")
    assert [pair["run"] for pair in found["against"]] == ["echo", "short"]
    plain = cli("compare", "titan", "echo", "short")
    assert "EM against titan, question by question." in plain.out
    assert "Of 2 comparisons p is corrected by Holm, and the intervals hold together" in plain.out
    assert "Warning: The runs asked different questions" in plain.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("titan", "nobody"), "There is no run 'nobody'"),
        (("titan", "echo", "--metric", "emm"), "metric 'emm'"),
        (("titan", "other"), "share no question"),
    ],
)
def test_a_wrong_request_is_one_sentence(
    runs: Path, cli: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    ran = cli("compare", *words)
    assert ran.code == 2 and sentence in ran.last


def test_a_run_says_where_it_lost_its_questions_and_guesses_no_corpus(
    runs: Path, cli: CommandLine
) -> None:
    (found,) = cli.json("analyse", "titan")["runs"]
    assert (found["run"], found["n"], found["corpus_known"]) == ("titan", 8, True)
    assert sum(found["waterfall"].values()) == 8
    assert found["questions"]["right"] == ["q1"]
    assert found["waterfall"]["not_in_answer"] == 7 - found["waterfall"]["not_retrieved"]
    index = runs.parent / "indexes" / "tiny"
    index.rename(runs.parent / "away")
    try:
        ran = cli("analyse", "titan")
    finally:
        (runs.parent / "away").rename(index)
    assert ran.code == 0 and "the corpus could not be looked at" in ran.out
