"""What indexes give and cost: measured in processes of their own, kept, and the same on the command line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from small_workspace import CommandLine, make_workspace

from rallebench.core.errors import StoppedError, UsageError
from rallebench.experiments.tradeoff import Point, Tradeoff, from_json
from rallebench.experiments.tradeoff.kept import kept, measure_and_keep, opened
from rallebench.experiments.tradeoff.measure import nearest_rows, read_swept, settings_of
from rallebench.services.workbench import Workbench

KINDS = ("flat", "hnsw")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the BM25 index ``tiny``, two vector indexes over the same passages, and a hybrid."""
    made = make_workspace(tmp_path_factory.mktemp("tradeoff"))
    bench = Workbench(made)
    for kind in KINDS:
        pages = made / "pages.json"
        list(
            bench.build_index(
                f"tiny-{kind}", made / "corpus.tsv", kind, encoder="hashing", page_map=pages
            )
        )
    bench.data.combine("both", "rrf", ["tiny", "tiny-flat"], {})
    bench.close()
    return made


@pytest.fixture
def bench(folder: Path) -> Iterator[Workbench]:
    made = Workbench(folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def result(folder: Path) -> Tradeoff:
    """Five indexes and one that was damaged after its build, measured once for all tests."""
    bench = Workbench(folder)
    list(bench.build_index("hurt", folder / "corpus.tsv", "numpy-flat", encoder="hashing"))
    broken = folder / "indexes" / "hurt" / "vectors.npy"
    broken.unlink()  # the cache has this file, too
    broken.write_bytes(b"half of it")
    names = ("hurt", "tiny", "tiny-flat", "tiny-hnsw", "both")
    found = list(
        bench.measure_tradeoff(names, "tiny-qa", k=5, name="mine", swept={"ef_search": [8, 32]})
    )
    bench.data.delete_index("hurt")
    bench.close()
    assert isinstance(found[-1], Tradeoff) and any(isinstance(piece, str) for piece in found)
    return found[-1]


def points(result: Tradeoff, index: str) -> list[Point]:
    return [point for point in result.points if point.index == index]


@pytest.mark.slow
def test_every_index_is_measured_at_what_it_gives_and_costs(
    bench: Workbench, result: Tradeoff
) -> None:
    assert list(dict.fromkeys(point.index for point in result.points)) == [
        "hurt",
        "tiny",
        "tiny-flat",
        "tiny-hnsw",
        "both",
    ]
    for point in result.points[1:]:
        assert (point.error, point.n, point.n_gold, point.k) == ("", 8, 8, 5)
        assert point.single_ms and point.batch_ms and point.ram is not None
        assert set(point.quality) == {"Rprec", "success_rate@1", "success_rate@5"}
    (bm25,), (hybrid,), (flat,) = (points(result, name) for name in ("tiny", "both", "tiny-flat"))
    assert bm25.recall is None and hybrid.recall is None, "there are no vectors to be exact about"
    assert bm25.quality["Rprec"] == 1.0, "the questions share their rare words with one passage"
    assert bm25.encode_ms is None and flat.encode_ms is not None
    assert (hybrid.kind, hybrid.disk) == ("combined", 0)
    assert flat.disk == bench.manifest("tiny-flat").bytes and flat.passages == 6


def test_an_exact_index_finds_all_that_is_exact(result: Tradeoff) -> None:
    assert [point.recall for point in points(result, "tiny-flat")] == [1.0]


def test_a_damaged_index_is_a_point_with_its_sentence_and_the_others_go_on(
    result: Tradeoff,
) -> None:
    (hurt,) = points(result, "hurt")
    assert "vectors.npy is missing or was changed" in hurt.error and hurt.recall is None
    assert all(point.error == "" for point in result.points[1:])
    assert all(point.recall is not None for point in points(result, "tiny-hnsw")), (
        "another exact index stands in"
    )


def test_the_knobs_that_are_asked_for_are_swept_where_a_kind_has_them(result: Tradeoff) -> None:
    assert [point.knobs for point in points(result, "tiny-hnsw")] == [
        {"ef_search": 8},
        {"ef_search": 32},
    ]
    assert [point.label for point in points(result, "tiny-flat")] == ["tiny-flat"]


def test_a_kind_says_which_values_of_its_knobs_are_worth_comparing() -> None:
    assert {"ef_search": 64} in settings_of("hnsw") and len(settings_of("hnsw")) > 2
    assert settings_of("flat") == [{}] == settings_of("bm25")
    assert settings_of("hnsw", read_swept(["ef_search=16", "nprobe=4"])) == [{"ef_search": 16}]


def test_a_result_is_kept_and_never_replaced(bench: Workbench, result: Tradeoff) -> None:
    assert opened(bench.workspace, "mine") == result and "mine" in kept(bench.workspace)
    file = bench.workspace.path / "tradeoffs" / "mine.json"
    before = file.read_bytes()
    with pytest.raises(UsageError, match="'mine' exists already; choose another name"):
        list(bench.measure_tradeoff(["tiny"], "tiny-qa", name="mine"))
    assert file.read_bytes() == before


def test_a_kept_file_that_was_changed_says_so(bench: Workbench) -> None:
    path = bench.workspace.path / "tradeoffs" / "odd.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"points": [{"colour": 1}]}')
    with pytest.raises(UsageError, match="is no trade-off that rallebench measured"):
        opened(bench.workspace, "odd")
    path.unlink()


def test_measuring_can_be_stopped(bench: Workbench) -> None:
    work = bench.measure_tradeoff(["tiny-flat", "tiny-hnsw"], "tiny-qa", k=5, name="halted")
    next(iter(work))
    bench.stop_tradeoffs()
    with pytest.raises(StoppedError):
        list(work)
    assert "halted" not in kept(bench.workspace)


def test_a_trade_off_that_is_being_measured_is_refused_a_second_time(
    bench: Workbench, capfd: pytest.CaptureFixture[str]
) -> None:
    examples = bench.questions("tiny-qa")
    first = measure_and_keep(
        bench.workspace, "twice", ["tiny-flat"], "tiny-qa", examples, bench.loads.encoders, k=5
    )
    next(first)
    second = CommandLine(capfd, bench.workspace.path)(
        "tradeoff", "--index", "tiny", "--dataset", "tiny-qa", "--name", "twice"
    )
    assert (
        second.code == 2
        and "'twice' is being measured by another process" in second.last
        and second.out == ""
    )
    first.close()
    assert not list((bench.workspace.path / "tradeoffs").glob("*twice*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--index", "nowhere"), "no index 'nowhere'"),
        (("--index", ","), "No index is chosen"),
        (("--index", "tiny", "-k", "0"), "k is 0; it must be from 1 to 1000"),
        (("--index", "tiny", "--limit", "0"), "holds no question"),
        (("--index", "tiny", "--dataset", "nothing"), "no question set 'nothing'"),
        (("--index", "tiny", "--name", "a/b"), "cannot be a file name"),
        (("--index", "tiny-hnsw", "--knob", "ef_search"), "should read key=value,value"),
        (("--index", "tiny-hnsw", "--knob", "ef_search=0"), "must be a whole number from 1"),
        (("--index", "tiny-hnsw", "--knob", "colour=1"), "'colour'"),
        (("--index", "tiny,(rrf:tiny,nowhere)"), "'rrf:tiny,nowhere' is made of 'nowhere'"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_exit_code_2(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    more = () if "--dataset" in arguments else ("--dataset", "tiny-qa")
    before = sorted((folder / "tradeoffs").glob("*"))
    ran = CommandLine(capfd, folder)("tradeoff", *arguments, *more)
    assert ran.code == 2 and sentence in ran.last and ran.out == "", ran.err
    assert sorted((folder / "tradeoffs").glob("*")) == before


def test_a_workspace_that_takes_no_file_is_refused_before_anything_is_measured(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = make_workspace(tmp_path / "closed")
    place = made / "tradeoffs"
    place.write_text("a file in the way")
    ran = CommandLine(capfd, made)("tradeoff", "--index", "tiny", "--dataset", "tiny-qa")
    assert ran.code == 1 and ran.out == ""
    assert ran.err.splitlines() == [
        f"Could not write {place}: Not a directory. Nothing was measured; choose another --workspace."
    ]


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
    assert ran.last == "hurt could not be measured; the others' results are kept as 'mixed'."
    hurt, whole = ran.json["points"]
    assert "passages.jsonl is missing or was changed" in hurt["error"] and hurt["single_ms"] is None
    assert whole["error"] == "" and whole["single_ms"] > 0
    assert json.loads((made / "tradeoffs" / "mixed.json").read_text()) == ran.json


@pytest.mark.slow
def test_the_command_line_prints_one_document_or_a_table(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = CommandLine(capfd, folder)
    asked = ("tradeoff", "--index", "tiny", "--dataset", "tiny-qa", "-k", "3")
    document = command.json(*asked, "--name", "as-json")
    assert document == json.loads((folder / "tradeoffs" / "as-json.json").read_text())
    assert [point.index for point in from_json(document, "it").points] == ["tiny"]
    table = command(*asked).out
    assert "recall@k" in table and "k = 3, n = 8 questions of tiny-qa, 8 with gold pages" in table


@pytest.mark.slow
def test_a_combination_that_is_written_out_is_measured_like_an_index(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = (
        "tradeoff",
        "--index",
        "tiny,(rrf:tiny,tiny-flat?weights=0.7,0.3)",
        "--dataset",
        "tiny-qa",
        "-k",
        "3",
    )
    points = CommandLine(capfd, folder).json(*asked, "--name", "written")["points"]
    assert [(point["index"], point["kind"], point["error"]) for point in points] == [
        ("tiny", "bm25", ""),
        ("rrf:tiny,tiny-flat?weights=0.7,0.3", "combined", ""),
    ]


@pytest.mark.slow
def test_without_an_exact_index_recall_is_told_from_the_vectors_that_were_kept(
    tmp_path: Path,
) -> None:
    made = make_workspace(tmp_path / "workspace")
    bench = Workbench(made)
    list(bench.build_index("graph", made / "corpus.tsv", "hnsw", encoder="hashing"))

    def measured() -> Point:
        asked = bench.measure_tradeoff(
            ["graph"],
            "tiny-qa",
            k=3,
            name=f"t{len(kept(bench.workspace))}",
            swept={"ef_search": [32]},
        )
        *_, whole = asked
        assert isinstance(whole, Tradeoff)
        return whole.points[0]

    assert measured().recall == 1.0
    shutil.rmtree(made / "cache" / "vectors")
    bench.close()
    assert measured().recall is None


def test_the_rows_of_the_largest_products_are_found_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(4)
    vectors, queries = (
        rng.normal(size=(50, 8)).astype(np.float32),
        rng.normal(size=(7, 8)).astype(np.float32),
    )
    whole = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :6]
    monkeypatch.setattr("rallebench.experiments.tradeoff.measure.PIECE", 11)
    scores, rows = nearest_rows(vectors, queries, 6)
    assert (rows == whole).all()
    np.testing.assert_allclose(
        scores, np.take_along_axis(queries @ vectors.T, whole, axis=1), rtol=1e-5
    )
