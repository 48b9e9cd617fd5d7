"""An import from upload to index: detection, its first steps, built indexes, and refusals."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from small_workspace import PASSAGES, RECORDS, write_lines

from rallebench.core.chunking import Chunking
from rallebench.core.errors import BadFileError, NotFoundError, StoppedError, UsageError
from rallebench.corpora.chunking import default_chunking
from rallebench.services import imports, uploads
from rallebench.services.imports import ImportRequest
from rallebench.services.workbench import Workbench


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "titan.md").write_text("# Titan\n\nTitan is a moon of Saturn.\n")
    (folder / "sub" / "long.txt").write_text("A river flows to the sea. " * 100)
    return folder


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """A folder with a corpus and its questions."""
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    write_lines(folder / "corpus.jsonl", [{"_id": "d1", "title": "", "text": "Titan is a moon."}])
    write_lines(folder / "queries.jsonl", [{"_id": "q1", "text": "Which moon?"}])
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return folder


def zip_members(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def import_result(bench: Workbench, request: ImportRequest) -> Any:
    job = imports.start(bench.workspace, bench.data, bench.jobs, request)
    assert job.wait(60)
    if job.error:
        raise job.error
    return job.result


# uploads and archives


def test_an_upload_keeps_names_and_folders(bench: Workbench, tmp_path: Path, docs: Path) -> None:
    many = [(docs / "titan.md", "docs/titan.md"), (docs / "sub" / "long.txt", "docs/sub/long.txt")]
    folder = uploads.lay_out(bench.workspace, many)
    assert folder.name == "docs" and (folder / "sub" / "long.txt").is_file()
    loose = [(docs / "titan.md", "titan.v2.md"), (docs / "sub" / "long.txt", "long.txt")]
    assert uploads.lay_out(bench.workspace, loose).name == "titan"
    single = uploads.lay_out(bench.workspace, [(docs / "titan.md", "../../titan.md")])
    assert single.name == "titan.md" and bench.workspace.cache in single.parents
    uploads.forget(bench.workspace, single)
    assert not single.exists() and folder.exists()
    uploads.forget(bench.workspace, docs)
    assert docs.exists(), "only what was uploaded is removed"


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_an_archive_is_unpacked_without_hidden_files_and_ways_out(
    bench: Workbench, tmp_path: Path, name: str
) -> None:
    path, members = tmp_path / name, {"in/a.txt": "A", "in/.hidden": "x", "../out.txt": "B"}
    if name == "a.zip":
        zip_members(path, members)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for member, text in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
            link = tarfile.TarInfo("in/link")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(link)
    folder = uploads.unpack_upload(bench.workspace, path)
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert folder.name == "in" and files == ["a.txt"]
    assert not [*tmp_path.rglob("out.txt")]
    zip_members(tmp_path / "two moons.zip", {"a.txt": "A", "b.txt": "B"})
    assert uploads.unpack_upload(bench.workspace, tmp_path / "two moons.zip").name == "two moons"


def test_a_damaged_archive_and_one_that_unpacks_to_far_too_much_leave_nothing(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.zip").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(BadFileError, match=r"bad\.zip is a damaged archive"):
        uploads.unpack_upload(bench.workspace, tmp_path / "bad.zip")
    monkeypatch.setattr(uploads, "MAX_UNPACKED", 1000)
    zip_members(tmp_path / "bomb.zip", {"a.txt": "0" * 5_000_000})
    with pytest.raises(BadFileError, match="more than 200 times its size"):
        uploads.unpack_upload(bench.workspace, tmp_path / "bomb.zip")
    assert not list((bench.workspace.cache / "uploads").iterdir())


def test_what_is_no_archive_stays_where_it_is(bench: Workbench, docs: Path) -> None:
    assert uploads.unpack_upload(bench.workspace, docs) == docs


# recognised


def test_corpus_and_dataset_are_told_apart_by_what_they_hold(
    bench: Workbench, tmp_path: Path, docs: Path, beir: Path
) -> None:
    place = bench.workspace.path
    questions = tmp_path / "questions.csv"
    questions.write_text("id,question,answer\nq1,Which moon?,Titan\n")
    rows = tmp_path / "rows.csv"
    rows.write_text("id,text,title\nd1,Titan is a moon.,Titan\n")
    tables = (place / "corpus.tsv", place / "datasets" / "tiny-qa.jsonl", questions, rows)
    kinds = [imports.look(path).kind for path in (*tables, docs, beir)]
    assert kinds == ["corpus", "dataset", "dataset", "corpus", "corpus", "both"]


def test_what_is_chosen_counts_and_the_rest_is_told(bench: Workbench, tmp_path: Path) -> None:
    corpus = bench.workspace.path / "corpus.tsv"
    assert imports.look(corpus, kind="corpus", form="tsv").corpus is not None
    with pytest.raises(NotFoundError, match="does not exist"):
        imports.look(tmp_path / "nowhere")


def test_documents_are_cut_by_what_the_encoder_reads_and_rows_stay_whole(
    bench: Workbench, docs: Path
) -> None:
    long = imports.look(docs / "sub").corpus
    short = imports.look(bench.workspace.path / "corpus.tsv").corpus
    assert long is not None and short is not None
    chunking = imports.chunking_of_preview(long, "minilm")
    assert chunking is not None and (chunking.size, chunking.tokenizer) == (254, "minilm")
    assert imports.chunking_of_preview(short, "minilm") is None
    assert bench.data.default_chunking(docs) == chunking
    assert bench.data.default_chunking(bench.workspace.path / "corpus.tsv") is None
    first = imports.first_chunks(long.rows, chunking)[:2]
    assert [passage.doc_id for passage, _ in first] == ["long.txt#0", "long.txt#1"]


def test_passages_longer_than_the_encoder_reads_are_told_before_and_after(
    bench: Workbench, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.tsv"
    long = "A river flows to the sea. " * 100
    rows.write_text(f"1\tTitan is a moon.\n2\t{long}\n")
    corpus = imports.look(rows).corpus
    assert corpus is not None
    told = imports.long_sentence(corpus, None, "minilm")
    assert told.startswith(
        "1 of 2 passages (50 %) is longer than the 254 tokens that minilm reads;"
    )
    assert imports.long_sentence(corpus, default_chunking("minilm"), "minilm") == ""
    many = imports.long_sentence(corpus, Chunking(400), "minilm")
    assert "1 of 3 passages" in many and many.endswith("Choose smaller chunks.")
    request = ImportRequest("rivers", rows, "corpus", indexes=("dense",))
    assert import_result(bench, request).long.startswith("1 of 2 passages (50 %) is longer")
    manifest = bench.workspace.manifests()["rivers-minilm"]
    assert (manifest.window, manifest.longer, manifest.longer_counted) == (254, 1, 2)


# brought in


def test_an_import_builds_words_dense_and_hybrid_by_default(bench: Workbench, docs: Path) -> None:
    request = ImportRequest(
        "handbook",
        docs,
        "corpus",
        chunking=Chunking(50),
        indexes=("bm25", "dense", "hybrid"),
        encoder="hashing",
    )
    result = import_result(bench, request)
    assert result.corpus.passages == 2
    assert result.indexes == ("handbook-bm25", "handbook-hashing", "handbook-hybrid")
    manifests = bench.workspace.manifests()
    assert manifests["handbook-bm25"].chunking == {"size": 50, "overlap": 0, "unit": "words"}
    assert bench.workspace.retriever("handbook-hybrid").of == ["handbook-bm25", "handbook-hashing"]  # type: ignore[union-attr]
    assert import_result(bench, request).indexes == result.indexes, "the same again changes nothing"


def test_a_dataset_and_both_are_imported(bench: Workbench, tmp_path: Path, beir: Path) -> None:
    write_lines(tmp_path / "qa.jsonl", RECORDS)
    assert (
        import_result(
            bench, ImportRequest("mine", tmp_path / "qa.jsonl", "dataset")
        ).dataset.questions
        == 8
    )
    result = import_result(bench, ImportRequest("sci", beir, "both", "beir"))
    assert result.corpus.passages == 1 and result.dataset.questions == 1
    assert "sci" in bench.workspace.corpus_cards() and "sci" in bench.workspace.dataset_paths()


def test_an_import_of_an_upload_removes_the_upload(bench: Workbench, docs: Path) -> None:
    source = uploads.lay_out(bench.workspace, [(docs / "titan.md", "titan.md")])
    import_result(bench, ImportRequest("titan", source, "corpus"))
    assert not source.exists() and "titan" in bench.workspace.corpus_cards()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "../x"}, "cannot be a folder name"),
        ({"indexes": ("bm25", "hybrid")}, "tick both"),
        ({"name": "mine", "indexes": ("bm25",)}, "'mine-bm25' is taken"),
    ],
)
def test_what_cannot_be_is_said_before_anything_begins(
    bench: Workbench, docs: Path, change: dict[str, Any], sentence: str
) -> None:
    (bench.workspace.path / "llms.json").write_text(
        json.dumps({"mine-bm25": {"backend": "scripted"}})
    )
    with pytest.raises(UsageError, match=sentence):
        imports.start(
            bench.workspace,
            bench.data,
            bench.jobs,
            ImportRequest(**{"name": "new", "source": docs, "kind": "corpus", **change}),
        )
    assert bench.jobs.list("import") == () and not bench.workspace.corpus_cards()


def test_an_import_that_is_stopped_leaves_no_corpus(bench: Workbench, tmp_path: Path) -> None:
    lines = (f"d{n}\t{PASSAGES[n % 6][1]} {n}\t\n" for n in range(200_000))
    (tmp_path / "big.tsv").write_text("".join(lines))
    job = imports.start(
        bench.workspace,
        bench.data,
        bench.jobs,
        ImportRequest("big", tmp_path / "big.tsv", "corpus"),
    )
    next(job.follow())
    job.stop()
    assert job.wait(30) and isinstance(job.error, StoppedError)
    assert "big" not in bench.workspace.corpus_cards()
