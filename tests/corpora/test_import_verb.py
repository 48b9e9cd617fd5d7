"""``rallebench import``, and ``index`` over what was imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import RECORDS, CommandLine, everything, write_lines


def test_a_corpus_is_imported_indexed_and_searched(cli: CommandLine, workspace: Path) -> None:
    source = ("import", workspace / "corpus.tsv", "--kind", "corpus", "--name", "moons")
    printed = cli.json(*source, "--page-map", workspace / "pages.json")
    assert printed == {"name": "moons", "rows": 6, "skipped": 0, "problems": []}
    manifest = cli.json("index", "--corpus", "moons", "--name", "mine", "--kind", "bm25")
    assert (manifest["corpus"], manifest["passages"], manifest["chunking"]) == ("moons", 6, None)
    assert (
        manifest["corpus_sha256"]
        == json.loads((workspace / "corpora/moons/corpus.json").read_text())["sha256"]
    )
    passages = workspace / "corpora/moons/passages.jsonl"
    assert (workspace / "indexes/mine/passages.jsonl").samefile(passages)
    [found] = cli.json("search", "--index", "mine", "-k", "1", "Huygens discovered Titan")
    assert found["hits"][0]["page_id"] == "p5"


def test_an_imported_corpus_is_cut_when_it_is_indexed(cli: CommandLine, workspace: Path) -> None:
    cli.json("import", workspace / "corpus.tsv", "--kind", "corpus", "--name", "moons")
    index = ("index", "--corpus", "moons", "--kind", "bm25", "--name")
    cut = cli.json(*index, "cut", "--chunk-how", "sentences", "--chunk-size", "8")
    assert cut["passages"] > 6
    assert cut["chunking"] == {"size": 8, "overlap": 0, "unit": "tokens", "how": "sentences"}
    preset = cli.json(*index, "preset", "--chunk-preset", "barag")
    assert preset["chunking"]["prefix"] == "Title: {title}\n"
    [found] = cli.json("search", "--index", "preset", "-k", "1", "Charon")
    assert found["hits"][0]["text"].startswith("Title: Charon\nCharon is")
    ran = cli(*index, "x", "--chunk-preset", "crd")
    assert (ran.code, "Did you mean 'crud'" in ran.last) == (2, True)


def test_a_folder_of_documents_is_indexed_as_it_is(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "titan.md").write_text("# Titan\n\nA moon of Saturn.")
    (tmp_path / "docs" / "paris.html").write_text("<title>Paris</title><p>A city in Texas.")
    cli.json("index", "--corpus", tmp_path / "docs", "--name", "docs", "--kind", "bm25")
    [found] = cli.json("search", "--index", "docs", "-k", "1", "Saturn")
    assert (found["hits"][0]["doc_id"], found["hits"][0]["title"]) == ("titan.md", "Titan")


def test_bad_rows_are_told_by_their_line(cli: CommandLine, workspace: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("1\tone\nbroken\n1\tagain\n")
    before = everything(workspace)
    stopped = cli("import", bad, "--kind", "corpus", "--name", "bad")
    assert (stopped.code, stopped.out) == (2, "")
    assert "line 2 has one column" in stopped.last
    assert stopped.last.endswith("; leave bad rows out with --skip-bad.")
    assert everything(workspace) == before
    printed = cli.json("import", bad, "--kind", "corpus", "--name", "bad", "--skip-bad")
    assert (printed["rows"], printed["skipped"]) == (1, 2)
    assert [problem["line"] for problem in printed["problems"]] == [2, 3]
    shown = cli("import", bad, "--kind", "corpus", "--name", "bad", "--skip-bad")
    assert shown.out.splitlines()[0] == "bad: 1 rows, 2 skipped"
    assert "line 3 repeats the id '1' of line 1" in shown.out


def test_a_dataset_is_imported_and_asked_by_its_name(cli: CommandLine, tmp_path: Path) -> None:
    questions = write_lines(tmp_path / "q.jsonl", [*RECORDS[:3], {"id": "bad"}])
    dataset = ("import", questions, "--kind", "dataset", "--name", "new-qa")
    stopped = cli(*dataset).last
    assert "line 4 has no 'input'" in stopped
    assert stopped.endswith("; leave bad rows out with --skip-bad.")
    printed = cli.json(*dataset, "--skip-bad")
    assert (printed["name"], printed["rows"], printed["skipped"]) == ("new-qa", 3, 1)
    ran = cli.json("run", "--chain", "read", "--dataset", "new-qa", "--no-mlflow")
    assert ran["n"] == 3


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("dataset --page-map m", "A dataset has no --page-map; its records name their pages."),
        (
            "corpus --dataset tiny-qa",
            "--dataset and --system belong to --kind predictions; leave them out for a corpus",
        ),
        ("dataset --system react:m", "leave them out for a dataset"),
        ("scholars --system react:m", "has no --page-map, --format, --dataset or --system"),
        ("predictions --dataset q --page-map pages.json", "Predictions have no --page-map"),
    ],
)
def test_a_flag_of_another_kind_of_import_is_refused(
    cli: CommandLine, workspace: Path, kind: str, sentence: str
) -> None:
    before = everything(workspace)
    ran = cli(f"import --name x --kind {kind}", workspace / "corpus.tsv")
    assert ran.code == 2 and sentence in ran.last and everything(workspace) == before


def test_the_refused_leave_no_folder(cli: CommandLine, workspace: Path, tmp_path: Path) -> None:
    before = everything(workspace)
    (tmp_path / "empty.tsv").write_text("")
    for kind in ("corpus", "dataset"):
        assert cli("import", tmp_path / "empty.tsv", "--kind", kind, "--name", "x").code == 2
    assert everything(workspace) == before
