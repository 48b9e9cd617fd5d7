"""``rallebench import``, and ``index`` over imported corpora."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from small_workspace import RECORDS, CommandLine, everything, write_lines

from rallebench.encoders.windows import passage_window


def test_a_corpus_is_imported_indexed_and_searched(cli: CommandLine, workspace: Path) -> None:
    source = ("import", workspace / "corpus.tsv", "--kind", "corpus", "--name", "moons")
    printed = cli.json(*source, "--page-map", workspace / "pages.json")
    assert printed == {"name": "moons", "rows": 6, "skipped": 0, "problems": [], "warnings": []}
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


def test_documents_are_cut_by_default_and_rows_are_not(cli: CommandLine, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    text = "".join(
        f"Castle {n} stands at the river, and its gate is of old iron. " for n in range(60)
    )
    (docs / "castles.md").write_text(f"# Castles\n\n{text}")
    (docs / "桥.txt").write_text("这座桥建于一八九八年，横跨多瑙河。它很长吗？是的！" * 40)
    (docs / "short.html").write_text("<title>Short</title><p>One line.")
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"id": "castles", "text": text}) + "\n")
    index = ("index", "--kind", "bm25", "--name")
    default = {"size": 254, "overlap": 50, "unit": "tokens", "how": "sentences"}
    default |= {"tokenizer": "minilm"}
    imported = cli("import", docs, "--kind", "corpus", "--name", "docs")
    assert "2 of 3 passages (67 %) are longer than the 254 tokens that minilm reads" in imported.err
    for name, corpus in (("folder", docs), ("of-import", "docs")):
        manifest = cli.json(*index, name, "--corpus", corpus)
        assert (manifest["chunking"], manifest["passages"] > 8) == (default, True)
    passages = [
        json.loads(line)
        for line in (cli.workspace / "indexes/folder/passages.jsonl").read_text().splitlines()
    ]
    assert {passage["page"] for passage in passages} == {"castles.md", "桥.txt", "short.html"}
    assert all(passage["text"][-1] in ".。？！" for passage in passages)
    window = passage_window("minilm")
    assert not window.count_longer([f"{p['title']}, {p['text']}" for p in passages])
    assert cli.json(*index, "whole", "--corpus", docs, "--chunking", "none")["passages"] == 3
    assert cli.json(*index, "rows", "--corpus", rows)["passages"] == 1
    both = cli(*index, "both", "--corpus", docs, "--chunking", "none", "--chunk-size", "9")
    assert (both.code, "leave it out" in both.last) == (2, True)


def test_an_index_says_which_share_of_its_passages_the_encoder_does_not_read_whole(
    cli: CommandLine, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.tsv"
    rows.write_text(f"1\tTitan is a moon.\n2\t{'A river flows to the sea. ' * 100}\n")
    told = "1 of 2 passages (50 %) is longer than the 254 tokens that minilm reads"
    ran = cli("index", "--corpus", rows, "--name", "rows", "--kind", "flat")
    assert ran.err.index(told) < ran.err.index("encoding passages"), "said before"
    assert f"Warning: {told}" in ran.err, "and after"


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


def test_a_dataset_tells_how_many_rows_have_gold_and_what_is_left_over(
    cli: CommandLine, tmp_path: Path
) -> None:
    rows = [{"question": "Which?", "gold_text": "Titan"}, {"question": "Who?"}]
    source = ("import", write_lines(tmp_path / "q.jsonl", rows), "--kind", "dataset", "--name")
    printed = cli.json(*source, "first")
    assert printed["gold"] == {"answers": 0, "pages": 0, "neither": 2, "unanswerable": 0}
    assert [w.partition(":")[0] for w in printed["warnings"]] == [
        "None of 2 questions has an answer or a gold page",
        "Unused fields that look like gold",
    ]
    lines = cli(*source, "again").out.splitlines()
    assert lines[0] == (
        "again: 2 rows, 0 skipped; 0 with answers, 0 with gold pages, 2 with neither"
    )
    assert lines[1].startswith("Warning: None of 2 questions has an answer")


def test_a_column_that_names_documents_of_an_imported_folder_gives_the_gold_pages(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "titan.md").write_text("# The moon\n\nTitan is a moon of Saturn.")
    (tmp_path / "q.csv").write_text("question,answer,source\nWhich moon?,Titan,titan.md\n")
    source = ("import", tmp_path / "q.csv", "--kind", "dataset", "--name")
    (warning,) = cli.json(*source, "before")["warnings"]
    assert warning.startswith("Ignored: 'source' (1 row) may name gold pages")
    cli.json("import", tmp_path / "docs", "--kind", "corpus", "--name", "docs")
    printed = cli.json(*source, "after")
    assert printed["gold"]["pages"] == 1 and printed["warnings"] == []
    assert "names pages of the corpus 'docs' in 1 of 1 rows" in printed["notes"][0]


def test_a_folder_names_and_counts_the_files_that_it_leaves_out(
    cli: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "titan.txt").write_text("Titan is a moon.")
    (folder / "old.txt").write_bytes("Caf\u00e9 Gen\u00e8ve, where it was seen.".encode("cp1252"))
    for name in ("b.doc", "c.odt", "d.tex", "e.csv", "f.csv"):
        (folder / name).write_text("x,y")
    left = (
        "5 files of other kinds left out of docs: 2 .csv, 1 .doc, 1 .odt, 1 .tex (b.doc, c.odt, d.tex, e.csv, f.csv). Save "
        "them as text, HTML or PDF to include them."
    )
    guessed = "1 file read as Windows-1252, since it is not UTF-8: old.txt. If letters look wrong, import again and name the encoding."
    source = ("import", folder, "--kind", "corpus", "--name")
    assert cli.json(*source, "docs")["warnings"] == [left, guessed]
    lines = cli(*source, "again").out.splitlines()
    assert lines == ["again: 2 rows, 0 skipped", f"Warning: {left}", f"Warning: {guessed}"]
    ran = cli("index", "--corpus", folder, "--name", "i", "--kind", "bm25")
    assert f"Warning: {left}" in ran.err and f"Warning: {guessed}" in ran.err
    manifest = json.loads((tmp_path / "workspace/indexes/i/manifest.json").read_text())
    assert manifest["warnings"] == [left, guessed]


def test_a_corpus_and_questions_in_another_encoding_are_imported_as_told(
    cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "old.csv").write_bytes("id,text\n1,Łódź leży w Polsce\n".encode("cp1250"))
    source = ("import", tmp_path / "old.csv", "--kind", "corpus", "--name")
    [warning] = cli.json(*source, "guessed")["warnings"]
    assert warning.startswith("1 file read as Windows-1252, since it is not UTF-8: old.csv.")
    assert cli.json(*source, "told", "--encoding", "Windows-1250")["warnings"] == []
    stored = cli.workspace / "corpora" / "told" / "passages.jsonl"
    assert "Łódź leży w Polsce" in stored.read_text(encoding="utf-8")
    questions = "question,answer\n哪颗卫星最大？,泰坦是最大的卫星\n"
    (tmp_path / "q.csv").write_bytes(questions.encode("gbk"))
    source = ("import", tmp_path / "q.csv", "--kind", "dataset", "--name")
    [warning] = [line for line in cli.json(*source, "guessed-qa")["warnings"] if "read as" in line]
    assert "GB18030 (GBK)" in warning
    assert "泰坦" in (cli.workspace / "datasets" / "guessed-qa.jsonl").read_text(encoding="utf-8")
    assert not any(
        "read as" in line for line in cli.json(*source, "b", "--encoding", "gbk")["warnings"]
    )
    ran = cli(*source, "c", "--encoding", "klingon")
    assert ran.code == 2 and "There is no text encoding 'klingon'; name one such as" in ran.last
    ran = cli(
        "import", tmp_path / "q.csv", "--kind", "predictions", "--name", "c", "--encoding", "gbk"
    )
    assert ran.code == 2 and "--encoding belongs to --kind corpus and dataset" in ran.last


def test_an_archive_of_beir_gives_corpus_and_questions(cli: CommandLine, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "moons.zip", "w") as archive:
        archive.writestr("moons/corpus.jsonl", '{"_id": "d1", "title": "", "text": "A moon."}\n')
        archive.writestr("moons/queries.jsonl", '{"_id": "q1", "text": "Which moon?"}\n')
        archive.writestr("moons/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    source = ("import", tmp_path / "moons.zip", "--kind")
    assert cli.json(*source, "corpus", "--name", "moons")["rows"] == 1
    printed = cli.json(*source, "dataset", "--name", "moons-qa")
    assert (printed["rows"], printed["gold"]["pages"]) == (1, 1)
    uploads = tmp_path / "workspace" / "cache" / "uploads"
    assert (tmp_path / "moons.zip").exists() and not list(uploads.iterdir())
