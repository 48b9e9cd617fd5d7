"""Groups of a run's questions: made blind to the answers, compared by article, used as filter, dataset and gate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from small_workspace import record, write_lines

from rallebench.analysis.question_clusters import clusters_file, slice_ids, stored_clusters
from rallebench.cli.main import main
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.failures import FailureReport, QuestionClusters, group_table
from rallebench.engine.store import RunFolder
from rallebench.services.question_groups import group_questions
from rallebench.services.workbench import Workbench
from rallebench.views.failures import explain_failures
from rallebench.views.gating import SLICED, gate_runs
from rallebench.views.run_questions import question_ids

HALF = 30
TEXTS = tuple(f"Which moon orbits planet {i}?" for i in range(HALF)) + tuple(
    f"Who cooked dish {i} in the kitchen?" for i in range(HALF)
)


class Topics:
    """An encoder of two topics, moons and dishes."""

    name, dim, fingerprint = "topics", 4, "topics"
    calls = 0

    def encode(self, texts: Sequence[str], *, role: str) -> np.ndarray:
        self.calls += 1
        rng = np.random.default_rng(len(texts))
        ends = np.array([[1.0, 0, 0, 0] if "moon" in text else [0, 1.0, 0, 0] for text in texts])
        vectors = ends + 0.05 * rng.normal(size=ends.shape)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def make_run(
    bench: Workbench, name: str, wrong: set[int], texts: Sequence[str] = TEXTS
) -> RunFolder:
    """Import answers as a run; those at the positions ``wrong`` are wrong."""
    folder = bench.workspace.path
    qids = [f"q{i:03}" for i in range(len(texts))]
    write_lines(
        folder / "datasets" / "topics.jsonl",
        [record(q, text, "yes", f"page {q}") for q, text in zip(qids, texts)],
    )
    rows = [
        {"id": q, "output": [{"answer": "no" if i in wrong else "yes"}]} for i, q in enumerate(qids)
    ]
    file = write_lines(folder.parent / f"{name}.jsonl", rows)
    call = ["import", str(file), "--kind", "predictions", "--name", name, "--dataset", "topics"]
    assert main([*call, "--workspace", str(folder)]) == 0
    return bench.runs.open(name)


def make_groups(
    bench: Workbench, run: RunFolder, encoder: Topics | None = None
) -> QuestionClusters:
    own = encoder or Topics()
    return complete(group_questions(bench.workspace, lambda _: own, run), lambda _: None)


def explain(bench: Workbench, run: RunFolder) -> FailureReport:
    make_groups(bench, run)
    return explain_failures(bench.workspace, run)


MOONS = set(range(0, HALF, 1)) - {0, 1, 2, 3, 4}


def test_the_group_that_is_wrong_more_often_is_named_by_its_words(bench: Workbench) -> None:
    report = explain(bench, make_run(bench, "a", MOONS | {40, 41}))
    first = report.groups[0]
    assert (first.n, first.wrong, first.kind) == (30, 25, "meaning")
    assert first.is_harder and {"moon", "planet"} <= set(first.words)
    assert first.share.value == pytest.approx(25 / 30) and first.question_words == {"which": 25}
    assert first.difference.value == pytest.approx(25 / 30 - 2 / 30)
    other = report.group("meaning-2" if first.key == "meaning-1" else "meaning-1")
    assert other is not None and other.is_easier and sum(other.stages.values()) == 2
    assert (
        first.key in report.sentences[0] and "Wrong more often than the rest" in report.sentences[0]
    )
    words = {group.key for group in report.groups if group.kind == "word"}
    assert words == {"word-which", "word-who"}
    assert len(group_table(report, "meaning").rows) == 2


def test_groups_do_not_depend_on_the_answers_and_are_made_once(bench: Workbench) -> None:
    first, second = make_run(bench, "a", MOONS), make_run(bench, "b", {40})
    encoder = Topics()
    assert make_groups(bench, first, encoder) == make_groups(bench, second, encoder)
    assert encoder.calls == 1 and clusters_file(bench.workspace, first) == clusters_file(
        bench.workspace, second
    )


def test_a_damaged_file_of_groups_is_made_again(bench: Workbench) -> None:
    run = make_run(bench, "a", MOONS)
    before = make_groups(bench, run)
    for text in ("{", "[]", '{"groups": 3}', '{"groups": [["q"]], "left_out": "x"}'):
        clusters_file(bench.workspace, run).write_text(text)
        assert stored_clusters(bench.workspace, run) is None
        assert make_groups(bench, run) == before


def test_a_group_filters_questions_and_fills_a_dataset(bench: Workbench) -> None:
    run = make_run(bench, "a", MOONS)
    make_groups(bench, run)
    ids = slice_ids(bench.workspace, run, "word-who")
    assert ids == {f"q{i:03}" for i in range(HALF, 2 * HALF)}
    assert set(question_ids(bench.workspace, run, "word-who")) == ids
    assert len(question_ids(bench.workspace, run, "word-who", "dish q037")) == 1
    both = [slice_ids(bench.workspace, run, f"meaning-{n}") for n in (1, 2)]
    assert set.union(*both) == {f"q{i:03}" for i in range(60)} and ids in both


def test_a_group_restricts_a_gate_and_the_choice_is_warned_of(bench: Workbench) -> None:
    base, new = make_run(bench, "a", MOONS), make_run(bench, "b", MOONS - {5, 6})
    value = gate_runs(new, base, "em", part="word-which", workspace=bench.workspace)
    assert value.n == HALF and value.difference == pytest.approx(2 / 30)
    assert "on word-which" in value.verdict and SLICED in value.warnings
    assert gate_runs(new, base, "em").n == 60


def test_unknown_groups_are_one_sentence(bench: Workbench) -> None:
    run = make_run(bench, "a", MOONS)
    with pytest.raises(UsageError, match="not grouped by meaning yet"):
        slice_ids(bench.workspace, run, "meaning-1")
    make_groups(bench, run)
    with pytest.raises(NotFoundError, match=r"no group 'meaning-9'\. Groups: meaning-1, meaning-2"):
        slice_ids(bench.workspace, run, "meaning-9")
    with pytest.raises(NotFoundError, match=r"no group 'word-why'\. Groups: word-which, word-who"):
        slice_ids(bench.workspace, run, "word-why")
    with pytest.raises(NotFoundError, match="There is no group 'colour'"):
        slice_ids(bench.workspace, run, "colour")


def test_a_run_without_wrong_or_without_right_answers_says_so(bench: Workbench) -> None:
    right = explain(bench, make_run(bench, "a", set()))
    assert right.sentences == ("No answer of 'a' is wrong by em, so there is nothing to explain.",)
    wrong = explain(bench, make_run(bench, "b", set(range(60))))
    assert "All answers of 'b' are wrong by em" in wrong.sentences[0] and not wrong.groups


def test_few_questions_have_no_groups_by_meaning(bench: Workbench) -> None:
    report = explain(bench, make_run(bench, "a", {1}, TEXTS[:20]))
    assert not report.groups
    assert "20 questions are too few for groups by meaning; that takes 30." in report.sentences


def test_a_group_of_one_question_has_no_interval(bench: Workbench) -> None:
    texts = (*TEXTS[:40], "Why is it so?")
    report = explain(bench, make_run(bench, "a", {1, 2, 40}, texts))
    single = report.group("word-why")
    assert single is not None and (single.n, single.wrong) == (1, 1)
    assert single.difference.low is None and single.difference.note == "too few articles"


def test_20000_questions_are_grouped_in_a_bounded_time(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.services.question_groups.MOST_ENCODED", 40)
    run = make_run(bench, "a", MOONS)
    clusters = make_groups(bench, run)
    assert sum(map(len, clusters.groups)) == 40 and clusters.left_out == 20
    notes = explain_failures(bench.workspace, run).notes
    assert "20 questions are in no group by meaning: at most 40 are encoded." in notes


def test_a_run_without_scores_is_one_sentence(bench: Workbench, tmp_path: Path) -> None:
    run = make_run(bench, "a", MOONS)
    with pytest.raises(NotFoundError, match="There is no metric 'nope'"):
        explain_failures(bench.workspace, run, "nope")
    with pytest.raises(UsageError, match="has no score that tells wrong answers"):
        explain_failures(bench.workspace, run, "confidence")
