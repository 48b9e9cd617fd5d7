"""Gains and costs of indexes: measured in separate processes, stored, and equal on the command line."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_workspace import CommandLine, everything, make_workspace

from rallebench.core.errors import BadFileError, StoppedError, UsageError
from rallebench.core.events import Event, Finished, Operation, Progress, complete
from rallebench.core.experiment_reports import Point, TradeoffReport
from rallebench.core.experiments import ExperimentRequest, ExperimentResult, RequestContent
from rallebench.core.json_values import object_json
from rallebench.core.runs import RunOptions
from rallebench.experiments.tradeoff import probe
from rallebench.experiments.tradeoff.exact import nearest_rows
from rallebench.experiments.tradeoff.measurements import ProbeJob
from rallebench.experiments.tradeoff.running import read_swept, search_settings, tradeoff_settings
from rallebench.services.jobs import job_pieces
from rallebench.services.workbench import Workbench

KINDS = ("flat", "hnsw")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the BM25 index ``tiny``, two vector indexes over the same passages, and a hybrid."""
    made = make_workspace(tmp_path_factory.mktemp("tradeoff"))
    bench = Workbench(made)
    more = {"encoder": "hashing", "page_map": made / "pages.json"}
    for kind in KINDS:
        list(bench.data.build_index(f"tiny-{kind}", made / "corpus.tsv", kind, **more))
    bench.data.combine("both", "rrf", ["tiny", "tiny-flat"], {})
    bench.close()
    (made / "datasets" / "bare.jsonl").write_text("")
    return made


def measure(
    bench: Workbench, name: str, indexes: Sequence[str], k: int = 10, **swept: list[int]
) -> Operation[ExperimentResult]:
    settings = tradeoff_settings(indexes, "tiny-qa", k=k, swept=swept)
    request = ExperimentRequest(bench.workspace, "", settings, 200, kind="tradeoff", name=name)
    return bench.experiments.run(request, RunOptions(track=False))


@pytest.fixture(scope="module")
def result(workspace: Path) -> TradeoffReport:
    """Five indexes and one damaged after its build, measured once for all tests."""
    bench = Workbench(workspace)
    list(bench.data.build_index("hurt", workspace / "corpus.tsv", "numpy-flat", encoder="hashing"))
    broken = workspace / "indexes" / "hurt" / "vectors.npy"
    broken.unlink()  # the cache has this file, too
    broken.write_bytes(b"half of it")
    names = ("hurt", "tiny", "tiny-flat", "tiny-hnsw", "both")
    events: list[Event] = []
    whole = complete(measure(bench, "mine", names, 5, ef_search=[8, 32]), events.append)
    told = {event.message for event in events if isinstance(event, Progress)}
    assert {"exact neighbours", "measuring setting 2 of 2"} <= told
    assert set(whole.report.failed) == {"hurt"}
    bench.data.delete_index("hurt")
    tradeoff = bench.experiments.open_tradeoff("mine")
    bench.close()
    return tradeoff


def read_report(workspace: Path, name: str) -> dict[str, Any]:
    """The report of a trade-off, without the lines common to all stored experiments."""
    report = json.loads((workspace / "experiments" / name / "report.json").read_text())
    return {key: value for key, value in report.items() if key not in ("request", "made", "seal")}


def points(result: TradeoffReport, index: str) -> list[Point]:
    return [point for point in result.points if point.index == index]


@pytest.mark.slow
def test_every_index_is_measured_at_gains_and_costs(
    bench: Workbench, result: TradeoffReport
) -> None:
    expected = ["hurt", "tiny", "tiny-flat", "tiny-hnsw", "both"]
    assert list(dict.fromkeys(point.index for point in result.points)) == expected
    for point in result.points[1:]:
        assert (point.error, point.n, point.n_gold, point.k) == ("", 8, 8, 5)
        assert point.single_ms and point.batch_ms and point.ram is not None
        assert set(point.quality) == {"Rprec", "success_rate@1", "success_rate@5"}
    (bm25,), (hybrid,), (flat,) = (points(result, name) for name in ("tiny", "both", "tiny-flat"))
    assert bm25.recall is None and hybrid.recall is None, "there are no vectors to be exact about"
    assert bm25.quality["Rprec"] == 1.0, "the questions share their rare words with one passage"
    assert bm25.encode_ms is None and flat.encode_ms is not None
    assert (hybrid.kind, hybrid.disk) == ("combined", 0)
    assert flat.disk == bench.workspace.manifests()["tiny-flat"].bytes and flat.passages == 6


def test_recall_is_of_exact_neighbours_at_the_settings_that_a_kind_has(
    result: TradeoffReport,
) -> None:
    (flat,), graphs = points(result, "tiny-flat"), points(result, "tiny-hnsw")
    assert (flat.recall, flat.label) == (1.0, "tiny-flat")
    assert [point.knobs for point in graphs] == [{"ef_search": 8}, {"ef_search": 32}]
    assert all(point.recall is not None for point in graphs), "another exact index stands in"
    (hurt,) = points(result, "hurt")
    assert "vectors.npy is missing or was changed" in hurt.error and hurt.recall is None
    assert all(point.error == "" for point in result.points[1:])


def test_a_kind_says_which_values_of_its_knobs_are_worth_comparing() -> None:
    assert {"ef_search": 64} in search_settings("hnsw") and len(search_settings("hnsw")) > 2
    assert search_settings("flat") == [{}] == search_settings("bm25")
    assert search_settings("hnsw", read_swept(["ef_search=16", "nprobe=4"])) == [{"ef_search": 16}]


@pytest.mark.slow
def test_a_measurement_is_never_made_again_or_replaced(
    bench: Workbench, result: TradeoffReport
) -> None:
    events: list[Event] = []
    names = ("tiny", "tiny-flat")
    first = complete(measure(bench, "again", names, 3), events.append)
    expected = ["tiny", "tiny-flat exact", "tiny-flat"]
    assert [e.task for e in events if isinstance(e, Finished) and not e.reused] == expected
    events.clear()
    assert complete(measure(bench, "again", names, 3), events.append).stored == first.stored
    assert all(isinstance(event, Finished) and event.reused for event in events)
    damaged = bench.workspace.path / "experiments" / "again" / "measurements" / "tiny.json"
    stored = damaged.read_text()
    for damage in (
        "[1",
        stored.replace('"measurements": [', '"measurements": [5, '),
        stored.replace("1", "2"),
    ):
        damaged.write_text(damage)
        events.clear()
        complete(measure(bench, "again", names, 3), events.append)
        assert [e.task for e in events if isinstance(e, Finished) and not e.reused] == ["tiny"]
        said = [event.message for event in events if isinstance(event, Progress)]
        assert any("tiny.json" in words and "it is measured anew" in words for words in said)
    assert bench.experiments.list("trade-off")[0] == "again"
    with pytest.raises(UsageError, match="'again' exists already with another content"):
        complete(measure(bench, "again", names, 4))
    assert bench.experiments.open_tradeoff("again").k == 3


@pytest.mark.slow
def test_an_index_that_was_built_anew_is_measured_anew(bench: Workbench) -> None:
    corpus = bench.workspace.path / "corpus.tsv"
    list(bench.data.build_index("other", corpus, "bm25"))
    complete(measure(bench, "changes", ["other"], 1))
    bench.data.delete_index("other")
    list(bench.data.build_index("other", corpus, "bm25", parameters={"k1": 0.1}))
    events: list[Event] = []
    complete(measure(bench, "changes", ["other"], 1), events.append)
    assert not events[-1].reused  # type: ignore[union-attr]
    bench.data.delete_index("other")


def test_the_plan_says_what_would_be_measured_and_writes_nothing(
    workspace: Path, cli: CommandLine
) -> None:
    before = everything(workspace)
    asked = ("tradeoff", "--index", "tiny,tiny-flat,starter-bm25", "--dataset", "tiny-qa")
    plan = cli.json(*asked, "--plan")
    assert plan["measurements"] == ["tiny", "tiny-flat exact", "tiny-flat", "starter-bm25"]
    assert plan["indexes"] == {"needed": 1, "to_build": 1} and plan["experiment"] == "tradeoff"
    assert "4 processes of their own" in cli(*asked, "--plan").out
    assert everything(workspace) == before


@pytest.mark.parametrize(
    ("report", "error", "sentence"),
    [
        (
            '{"points": [{"colour": 1}], "request": {}, "made": ""}',
            BadFileError,
            "was damaged by another program",
        ),
        (None, UsageError, "is not a finished trade-off; measure it under its name"),
    ],
)
def test_a_trade_off_without_a_whole_report_says_so(
    bench: Workbench, report: str | None, error: type[Exception], sentence: str
) -> None:
    bench.experiments.store.save_request("odd", "tradeoff", RequestContent(), {}, "trade-off")
    if report:
        (bench.workspace.path / "experiments" / "odd" / "report.json").write_text(report)
    with pytest.raises(error, match=sentence):
        bench.experiments.open_tradeoff("odd")
    shutil.rmtree(bench.workspace.path / "experiments" / "odd")


@pytest.mark.slow
def test_measuring_can_be_stopped_and_continued(bench: Workbench) -> None:
    def follow() -> Iterator[Any]:
        indexes = ["tiny", "tiny-hnsw"]
        work = measure(bench, "halted", indexes, 5)
        return job_pieces(
            bench.jobs.submit("trade-off", "halted", 0, lambda job: work), ExperimentResult
        )

    work = follow()
    while not isinstance(next(work), Finished):
        pass
    bench.jobs.stop("trade-off halted")
    with pytest.raises(StoppedError):
        list(work)
    assert "halted" not in bench.experiments.list("trade-off")
    deadline = time.monotonic() + 10
    while bench.jobs.list(active=True) and time.monotonic() < deadline:
        time.sleep(0.01)
    first, *_ = follow()
    assert (first.task, first.reused) == ("tiny", True)


def test_a_second_measuring_is_refused(bench: Workbench, cli: CommandLine) -> None:
    first = measure(bench, "twice", ["tiny-flat"], 5)
    next(first)
    second = cli("tradeoff", "--index", "tiny", "--dataset", "tiny-qa", "--name", "twice")
    assert second.code == 2 and second.out == ""
    assert "The trade-off 'twice' is being run by another process" in second.last
    first.close()
    assert not list((bench.workspace.path / "experiments").glob(".*twice*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--index", "nowhere"), "no index 'nowhere'"),
        (("--index", ","), "No index is chosen"),
        (("--index", "tiny", "-k", "0"), "k is 0; it must be from 1 to 1000"),
        (("--index", "tiny", "--limit", "0"), "number of questions is 0; it must be at least 1"),
        (("--index", "tiny", "--limit", "-1"), "must be at least 1"),
        (("--index", "tiny", "--dataset", "bare"), "contains no question"),
        (("--index", "tiny", "--dataset", "nothing"), "no dataset 'nothing'"),
        (
            ("--index", "tiny", "--name", "a/b"),
            "The trade-off name 'a/b' cannot be a folder name",
        ),
        (("--index", "tiny-hnsw", "--knob", "ef_search"), "should read key=value,value"),
        (("--index", "tiny-hnsw", "--knob", "ef_search=0"), "must be a whole number from 1"),
        (("--index", "tiny-hnsw", "--knob", "colour=1"), "'colour'"),
        (("--index", "tiny,(rrf:tiny,nowhere)"), "'rrf:tiny,nowhere' contains 'nowhere'"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_exit_code_2(
    workspace: Path, cli: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    more = () if "--dataset" in arguments else ("--dataset", "tiny-qa")
    before = everything(workspace)
    ran = cli("tradeoff", *arguments, *more)
    assert ran.code == 2 and sentence in ran.last and ran.out == "", ran.err
    assert everything(workspace) == before


def test_a_workspace_that_takes_no_file_is_refused_before_anything_is_measured(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = make_workspace(tmp_path / "closed")
    (made / "experiments").write_text("a file in the way")
    ran = CommandLine(capfd, made)("tradeoff", "--index", "tiny", "--dataset", "tiny-qa")
    assert ran.code == 1 and ran.out == ""
    (line,) = ran.err.splitlines()
    assert line.startswith(f"Could not write {made / 'experiments'}")


@pytest.mark.slow
def test_an_index_that_failed_makes_the_exit_code_1_and_the_others_results_are_printed_and_kept(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = make_workspace(tmp_path / "one-fails")
    shutil.copytree(made / "indexes" / "tiny", made / "indexes" / "hurt")
    (made / "indexes" / "hurt" / "passages.jsonl").write_bytes(b"short")
    ran = CommandLine(capfd, made)(
        "tradeoff", "--index", "hurt,tiny", "--dataset", "tiny-qa", "--name", "mixed", "--json"
    )
    assert ran.code == 1
    assert ran.last == "hurt could not be measured; the others' results are stored as 'mixed'."
    hurt, whole = ran.json["points"]
    assert "passages.jsonl is missing or was changed" in hurt["error"] and hurt["single_ms"] is None
    assert whole["error"] == "" and whole["single_ms"] > 0
    assert read_report(made, "mixed") == ran.json


@pytest.mark.slow
def test_the_command_line_prints_one_document_or_a_table(workspace: Path, cli: CommandLine) -> None:
    asked = ("tradeoff", "--index", "tiny", "--dataset", "tiny-qa", "-k", "3")
    document = cli.json(*asked, "--name", "as-json")
    assert document == read_report(workspace, "as-json")
    assert [point["index"] for point in document["points"]] == ["tiny"]
    table = cli(*asked).out
    assert "recall@k" in table and "k = 3, n = 8 questions of tiny-qa, 8 with gold pages" in table


@pytest.mark.slow
def test_a_combination_that_is_written_out_is_measured_like_an_index(cli: CommandLine) -> None:
    written = "rrf:tiny,tiny-flat?weights=0.7,0.3"
    words = ("--index", f"tiny,({written})", "--dataset", "tiny-qa", "-k", "3", "--name", "written")
    points = cli.json("tradeoff", *words)["points"]
    expected = [("tiny", "bm25", ""), (written, "combined", "")]
    assert [(point["index"], point["kind"], point["error"]) for point in points] == expected


@pytest.mark.slow
def test_without_an_exact_index_recall_is_told_from_the_kept_vectors(tmp_path: Path) -> None:
    made = make_workspace(tmp_path / "workspace")
    bench = Workbench(made)
    list(bench.data.build_index("graph", made / "corpus.tsv", "hnsw", encoder="hashing"))

    def recall(name: str) -> float | None:
        complete(measure(bench, name, ["graph"], 3, ef_search=[32]))
        return bench.experiments.open_tradeoff(name).points[0].recall

    assert recall("before") == 1.0
    shutil.rmtree(made / "cache" / "vectors")
    bench.close()
    assert recall("after") is None


def test_queries_are_timed_in_batches_that_hold_each_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batches: list[list[int]] = []

    def search(positions: Sequence[int]) -> list[list[Any]]:
        batches.append(list(positions))
        return [[] for _ in positions]

    monkeypatch.setattr(probe, "_retriever", lambda job: lambda knobs: search)
    job = ProbeJob("space", "mine", (), 3, [*"abcde"], 2, 1, [{}], None)
    *_, costs = probe.search_costs(object_json(job))
    assert costs["batch_ms"] >= 0 and costs["docs"] == [[]] * 5
    assert batches == [[0, 1, 2, 3, 4], [0], [1], [2], [3], [4], [0, 1], [2, 3], [4]]


def test_the_rows_of_largest_products_are_found_by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    vectors, queries = (rng.normal(size=(n, 8)).astype(np.float32) for n in (50, 7))
    products = queries @ vectors.T
    whole = np.argsort(-products, axis=1, kind="stable")[:, :6]
    monkeypatch.setattr("rallebench.experiments.tradeoff.exact.PIECE", 11)
    scores, rows = nearest_rows(vectors, queries, 6)
    assert (rows == whole).all()
    np.testing.assert_allclose(scores, np.take_along_axis(products, whole, axis=1), rtol=1e-5)
