"""TREC's files keep ids, grades, order and empty results, so that trec_eval and an import agree with the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_folders import described, spec
from small_workspace import CommandLine

from rallebench.analysis import trec
from rallebench.analysis.exporting import FORMS
from rallebench.analysis.prediction_files import detect_form
from rallebench.analysis.predictions import import_run
from rallebench.analysis.ranking import read_scores
from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Hit, Outcome, Passage, Reply, Retrieve, Step
from rallebench.engine.store import RunFolder
from rallebench.services.exchange import export_lines as services_exported
from rallebench.workspace.paths import WorkspaceFolder

NAMES = {"ndcg@10": "nDCG@10", "map": "AP", "mrr": "RR", "success@1": "Success@1"}
"""Our metric → ir_measures' name."""
ODD = [
    "Black Sea",
    "Black_Sea",
    "100%",
    "a%20b",
    "%",
    "x\ty",
    "Zürich",
    "\u3000deep\xa0sea",
    "\x1bq",
    "字",
]
IDS = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4
)
CLEAN = IDS.filter(lambda text: (text == text.strip() and text.isprintable()) or text in ODD[:7])


def workspace_with(folder: Path, golds: Mapping[str, Mapping[str, int]]) -> WorkspaceFolder:
    """A workspace with the dataset ``asked``: question → gold page → grade."""
    records = [
        {
            "id": qid,
            "input": f"question {number}",
            "output": [
                {"provenance": [{"wikipedia_id": page, "relevance": grade}]}
                for page, grade in pages.items()
            ],
        }
        for number, (qid, pages) in enumerate(golds.items())
    ]
    (folder / "datasets").mkdir(parents=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "datasets" / "asked.jsonl").write_text(text, encoding="utf-8")
    return WorkspaceFolder(folder)


def make_run(
    workspace: WorkspaceFolder, found: Mapping[str, Sequence[str]], name: str = "own"
) -> RunFolder:
    """A run that retrieved these pages, best first."""
    file = workspace.path / f"{name}.jsonl"
    lines = ({"id": qid, "pages": list(pages)} for qid, pages in found.items())
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return import_run(workspace, file, "asked", name).run


def export_run(workspace: WorkspaceFolder, run: RunFolder) -> tuple[Path, Path]:
    """(the run's file, its qrels)."""
    pages, qrels = workspace.path / f"{run.name}.run", workspace.path / f"{run.name}.qrels"
    pages.write_text("".join(trec.run_lines(run)), encoding="utf-8")
    qrels.write_text("".join(trec.qrels_lines(run)), encoding="utf-8")
    return pages, qrels


def by_ir_measures(pages: Path, qrels: Path) -> dict[str, dict[str, float]]:
    """Our metric → column of a question → the value of ir_measures."""
    ir = pytest.importorskip("ir_measures")
    measures = {ir.parse_measure(theirs): ours for ours, theirs in NAMES.items()}
    judged, listed = (
        list(ir.read_trec_qrels(str(qrels))),
        list(ir.read_trec_run(str(pages))),
    )
    values: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for row in ir.iter_calc(list(measures), judged, listed):
        values[measures[row.measure]][row.query_id] = row.value
    return values


@settings(max_examples=30, deadline=None)
@given(
    golds=st.lists(
        st.dictionaries(CLEAN, st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=3
    ).filter(lambda golds: any(grade for gold in golds for grade in gold.values())),
    data=st.data(),
)
def test_a_run_scores_alike_here_in_ir_measures_and_when_it_is_imported_again(
    golds: list[dict[str, int]], data: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    qids = [f"q {n}%" for n in range(len(golds))]
    known = sorted({page for gold in golds for page in gold})
    pages = st.lists(st.sampled_from(known) | st.sampled_from(ODD[:3]), max_size=6, unique=True)
    found = {qid: data.draw(pages) for qid in qids[1:]}
    found[qids[0]] = data.draw(pages.filter(bool))
    workspace = workspace_with(tmp_path_factory.mktemp("w"), dict(zip(qids, golds)))
    run = make_run(workspace, found)
    file, qrels = export_run(workspace, run)
    again = import_run(workspace, file, "asked", "again")
    ours, theirs = read_scores(run, list(NAMES)), by_ir_measures(file, qrels)
    assert again.silent == sum(not listed for listed in found.values()) == trec.without_line(run)
    assert read_scores(again.run, list(NAMES)) == ours
    for form in ("msmarco", "run-json"):
        other = file.with_suffix(f".{form}")
        other.write_text("".join(FORMS[form][0](run)), encoding="utf-8")
        assert detect_form(other) == form
        back = import_run(workspace, other, "asked", form).run
        assert read_scores(back, list(NAMES)) == ours
    for name, values in ours.items():
        assert {trec.encode(qid): value for qid, value in values.items()} == pytest.approx(
            theirs[name], abs=1e-9
        )


@given(st.text(st.characters()).filter(lambda text: text == text.strip() != ""))
def test_an_id_is_one_column_and_comes_back(text: str) -> None:
    column = trec.encode(text)
    assert column.split() == [column] == column.splitlines()
    assert trec.decode(column) == text


def test_an_id_of_another_program_that_looks_encoded_stays_as_the_dataset_has_it(
    tmp_path: Path,
) -> None:
    workspace = workspace_with(tmp_path, {"q": {"http://x/a%20b": 1}, "r": {"c%d": 1}})
    (tmp_path / "their.run").write_text("q Q0 http://x/a%20b 1 2 t\nr Q0 c%d 1 2 t\n")
    run = import_run(workspace, tmp_path / "their.run", "asked", "theirs").run
    assert read_scores(run, ["success@1"])["success@1"] == {"q": 1.0, "r": 1.0}


def test_grades_are_exported_as_they_are(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"q": {"a": 3, "b": 1, "c d": 2}})
    _, qrels = export_run(workspace, make_run(workspace, {"q": ["b", "a"]}))
    assert qrels.read_text() == "q 0 a 3\nq 0 b 1\nq 0 c%20d 2\n"


def test_grades_that_trec_eval_cannot_read_are_told(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"q": {"a": 0.5, "b": 1}})  # type: ignore[dict-item]
    run = make_run(workspace, {"q": ["b"]})
    lines, warning = services_exported(run, "qrels")
    assert [*lines] == ["q 0 a 0.5\n", "q 0 b 1\n"]
    assert warning == "1 grade with a fraction, which trec_eval cannot read."


def test_equal_scores_are_ordered_by_id_descending_as_in_trec_eval(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"q": {"a": 1}, "r": {"é": 1}})
    file = tmp_path / "tied.run"
    file.write_text(
        "q Q0 a 1 1.00000001 t\nq Q0 c 2 1 t\nq Q0 b 3 1.0 t\nr 0 é 1 5 t\nr 0 z 2 5 t\n",
        encoding="utf-8",
    )
    run = import_run(workspace, file, "asked", "tied").run
    found = {qid: [hit.passage.page_id for hit in e.hits] for qid, e in run.episodes().items()}
    assert found == {"q": ["c", "b", "a"], "r": ["é", "z"]}
    _, qrels = export_run(workspace, run)
    ours = read_scores(run, list(NAMES))
    for name, theirs in by_ir_measures(file, qrels).items():
        assert ours[name] == pytest.approx(theirs), name


def test_the_second_column_is_q0_or_0_and_blank_lines_do_not_hide_it(tmp_path: Path) -> None:
    for number, column in enumerate(("Q0", "q0", "0")):
        (tmp_path / f"{number}.run").write_text(f"\n1 {column} p1 1 2.5 t\n")
        assert detect_form(tmp_path / f"{number}.run") == "trec"


def test_a_line_with_a_space_in_its_id_is_refused_rather_than_read_as_another(
    tmp_path: Path,
) -> None:
    file = tmp_path / "r.trec"
    file.write_text("q1 Q0 d 5 1 2.5 tag\n")
    with pytest.raises(BadFileError, match="line 1 is not 'qid Q0 page rank score tag'"):
        list(trec.read_run(Source(file)))


def test_a_page_that_stands_twice_for_a_question_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "twice.run").write_text("q Q0 a 1 2 t\nq Q0 b 2 1 t\nq Q0 a 3 0.5 t\n")
    with pytest.raises(BadFileError, match="line 3 names 'a' a second time for the question 'q'"):
        list(trec.read_run(Source(tmp_path / "twice.run")))


def test_a_question_without_a_line_scores_0_and_is_counted(
    cli: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "short.run"
    file.write_text("q1 Q0 p1 1 2.0 t\nq2 Q0 p2 1 2.0 t\n")
    ran = cli.predictions(file, "short")
    assert "6 of 8 questions have no line in short.run" in ran.err and "score 0" in ran.err
    report = json.loads((tmp_path / "workspace" / "runs" / "short" / "report.json").read_text())
    assert report["n_errors"] == 0
    assert (report["metrics"]["Rprec"]["value"], report["metrics"]["Rprec"]["n"]) == (0.25, 8)
    out = cli("export", "short", "--format", "trec")
    assert len(out.out.splitlines()) == 2
    assert "6 of 8 questions have no line" in out.err


def test_a_run_judged_by_passages_is_exported_by_passage(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, {"q": {}})
    record = {"id": "q", "input": "?", "output": [{"provenance": [{"doc_id": "d 1"}]}]}
    (tmp_path / "datasets" / "asked.jsonl").write_text(json.dumps(record) + "\n")
    run = RunFolder.create(workspace.runs, described("own", spec()), [record])
    hits = tuple(Hit(Passage(f"d {n}", "", "", "p"), 1.0 / n) for n in (2, 1))
    step = Step(Retrieve("x", "?", 2), Reply("", hits))
    with run.log() as log:
        run.append(log, Episode("q", "chain", (step,), Outcome("")), "s", 0.0)
    pages, qrels = export_run(workspace, run)
    assert [line.split()[2] for line in pages.read_text().splitlines()] == ["d%202", "d%201"]
    assert qrels.read_text() == "q 0 d%201 1\n"
