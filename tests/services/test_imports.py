"""An import from upload to index: detection, its first steps, built indexes, and refusals."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from office_files import docx, epub, paragraph, xlsx
from small_workspace import PASSAGES, RECORDS, write_lines

from rallebench.core.chunking import Chunking
from rallebench.core.errors import BadFileError, NotFoundError, StoppedError, UsageError
from rallebench.corpora.chunking import default_chunking
from rallebench.services import import_previews, imports, uploads
from rallebench.services.chunk_surveys import long_sentence, survey_chunks
from rallebench.services.import_previews import Choices
from rallebench.services.imports import ImportRequest, QuestionFile
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
    assert uploads.lay_out(bench.workspace, loose).name == "files"
    single = uploads.lay_out(bench.workspace, [(docs / "titan.md", "../../titan.md")])
    assert single.name == "titan.md" and bench.workspace.cache in single.parents
    uploads.forget(bench.workspace, single)
    assert not single.exists() and folder.exists()
    uploads.forget(bench.workspace, docs)
    assert docs.exists(), "only what was uploaded is removed"


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar.zst"])
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
    if name == "a.tar.zst":
        path.write_bytes(zstandard.compress(gzip.decompress(path.read_bytes())))
    folder = uploads.unpack_upload(bench.workspace, path)
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert folder.name == "in" and files == ["a.txt"]
    assert not [*tmp_path.rglob("out.txt")]
    zip_members(tmp_path / "two moons.zip", {"a.txt": "A", "b.txt": "B"})
    assert uploads.unpack_upload(bench.workspace, tmp_path / "two moons.zip").name == "two-moons"


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
    kinds = [import_previews.look(path).kind for path in (*tables, docs, beir)]
    assert kinds == ["corpus", "dataset", "dataset", "corpus", "corpus", "both"]


LANGCHAIN = {"page_content": "Titan is a moon.", "metadata": {"source": "a.pdf"}}
NODE = {"__data__": {"id_": "n1", "text": "Titan is a moon."}, "__type__": "1"}
FILES: dict[str, tuple[str, bytes, str]] = {
    "a Word document": ("a.docx", docx(paragraph("Titan is a moon.")), "folder"),
    "a book": ("a.epub", epub("<p>Titan is a moon.</p>"), "folder"),
    "a spreadsheet": ("a.xlsx", xlsx(A=[("Titan is a moon.",)]), "folder"),
    "reStructuredText": ("a.rst", b"Titan is a moon.\n", "folder"),
    "LangChain": ("a.jsonl", json.dumps(LANGCHAIN).encode(), "jsonl"),
    "LlamaIndex": ("docstore.json", json.dumps({"docstore/data": {"n1": NODE}}).encode(), "jsonl"),
    "MS MARCO": (
        "a.jsonl.zst",
        zstandard.compress(b'{"pid": "1", "passage": "Titan is a moon."}'),
        "jsonl",
    ),
    "bzip2": ("a.tsv.bz2", bz2.compress(b"1\tTitan is a moon.\n"), "tsv"),
    "UTF-16": ("a.csv", "id,text\n1,Titan is a moon.\n".encode("utf-16"), "csv"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_corpus_of_any_kind_is_recognised_and_previewed(kind: str, tmp_path: Path) -> None:
    name, content, form = FILES[kind]
    (tmp_path / name).write_bytes(content)
    seen = import_previews.look(tmp_path / name)
    assert seen.kind == "corpus" and seen.corpus is not None and seen.corpus.form == form
    [passage] = seen.corpus.rows
    assert "Titan is a moon." in passage.text and seen.corpus.problems == ()


def test_what_is_chosen_counts_and_the_rest_is_told(bench: Workbench, tmp_path: Path) -> None:
    corpus = bench.workspace.path / "corpus.tsv"
    assert import_previews.look(corpus, kind="corpus", form="tsv").corpus is not None
    with pytest.raises(NotFoundError, match="does not exist"):
        import_previews.look(tmp_path / "nowhere")


def test_documents_are_cut_by_what_the_encoder_reads_and_rows_stay_whole(
    bench: Workbench, docs: Path
) -> None:
    long = import_previews.look(docs / "sub").corpus
    short = import_previews.look(bench.workspace.path / "corpus.tsv").corpus
    assert long is not None and short is not None
    chunking = import_previews.chunking_of_preview(long, "minilm")
    assert chunking is not None and (chunking.size, chunking.tokenizer) == (254, "minilm")
    assert import_previews.chunking_of_preview(short, "minilm") is None
    assert bench.data.default_chunking(docs) == chunking
    assert bench.data.default_chunking(bench.workspace.path / "corpus.tsv") is None
    first = import_previews.first_chunks(long.rows, chunking)[:2]
    assert [passage.doc_id for passage, _ in first] == ["long.txt#0", "long.txt#1"]


def test_passages_longer_than_the_encoder_reads_are_told_before_and_after(
    bench: Workbench, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.tsv"
    long = "A river flows to the sea. " * 100
    rows.write_text(f"1\tTitan is a moon.\n2\t{long}\n")
    corpus = import_previews.look(rows).corpus
    assert corpus is not None

    def sentence(chunking: Chunking | None) -> str:
        *_, survey = survey_chunks(corpus.seen, chunking, "minilm")
        return long_sentence(survey, chunking, "minilm")

    whole = "1 of 2 passages (50 %) is longer than the 254 tokens that minilm reads;"
    assert sentence(None).startswith(whole) and sentence(None).endswith("Cut them into chunks.")
    assert sentence(default_chunking("minilm")) == ""
    assert "1 of 3 passages" in sentence(Chunking(400))
    assert sentence(Chunking(400)).endswith("Choose smaller chunks.")
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


def test_a_file_of_questions_is_imported_after_the_corpus_whose_pages_it_names(
    bench: Workbench, tmp_path: Path, docs: Path
) -> None:
    table = tmp_path / "ask.csv"
    table.write_text("frage,antwort,seite\nWhich planet has Titan?,Saturn,titan.md\n")
    columns = {"question": "frage", "answer": "antwort", "page": "seite"}
    asked = QuestionFile(table, columns=columns)
    result = import_result(bench, ImportRequest("docs", docs, "corpus", questions=asked))
    assert result.corpus.passages == 2 and result.dataset.questions == 1
    assert bench.workspace.questions("docs")[0].gold.pages == {"titan.md"}


def test_a_folder_is_previewed_while_it_is_read(docs: Path) -> None:
    steps = import_previews.watch(Choices(docs))
    first = next(steps)
    assert [row.doc_id for row in first.rows] == ["sub/long.txt"] and first.count == 1
    with pytest.raises(StopIteration) as end:
        while True:
            next(steps)
    assert len(end.value.value.corpus.seen) == 2


def test_a_document_is_read_once_for_its_preview_and_its_import(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "a.docx").write_bytes(docx(paragraph("Titan is a moon.")))
    assert import_previews.look(folder).corpus is not None
    monkeypatch.setattr("rallebench.corpora._guarded._start", lambda: pytest.fail("read again"))
    assert import_result(bench, ImportRequest("books", folder, "corpus")).corpus.passages == 1
    (folder / "a.docx").write_bytes(docx(paragraph("Rhea is a moon, too.")))
    with pytest.raises(pytest.fail.Exception):
        import_previews.look(folder)


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
