"""Corpora in a workspace: imported whole or not at all, with visible progress, and shared with indexes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.core.chunking import Chunking
from rallebench.core.errors import BackendError, BadFileError, NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.types import Passage
from rallebench.corpora.cards import Corpus, imported_corpora, read_card
from rallebench.corpora.imported import delete_corpus, import_corpus, store_corpus
from rallebench.corpora.reading import corpus_form, read_corpus
from rallebench.corpora.store import PassageStore

ROWS = "id\ttext\ttitle\n1\tTitan is a moon.\tTitan\n2\tTriton too.\tTriton\n3\tParis is none.\tParis\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "moons.tsv"
    path.write_text(ROWS, encoding="utf-8")
    return path


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / "corpora"


def bring(corpora: Path, name: str, source: Path, **more: object) -> Corpus:
    return complete(import_corpus(corpora, name, source, **more))  # type: ignore[arg-type]


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    stats = {p: p.stat() for p in sorted(folder.rglob("*"))} if folder.exists() else {}
    return {str(p): (s.st_size, s.st_mtime_ns) for p, s in stats.items() if p.is_file()}


def test_an_import_says_what_it_holds(corpora: Path, source: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages.json"
    pages.write_text('{"1": "p1", "2": "p2"}')
    corpus = bring(corpora, "moons", source, page_map=pages)
    names = (corpus.name, corpus.form, corpus.source)
    assert (names, corpus.passages) == (("moons", "tsv", "moons.tsv"), 3)
    assert (corpus.skipped, corpus.problems) == (0, [])
    assert (corpus.has_pages, corpus.passages_without_page) == (True, 1)
    assert corpus.files.keys() == {"passages.jsonl", "offsets.npy", "ids.npy"}
    assert corpus.bytes == sum(corpus.files.values())
    assert read_card(corpora / "moons") == corpus
    assert imported_corpora(corpora) == {"moons": corpus}
    store = PassageStore(corpora / "moons")
    assert store[2] == Passage("3", "Paris is none.", "Paris", "")
    assert store.find_row("2") == 1
    store.close()
    assert not bring(corpora, "plain", source).has_pages


def test_an_imported_corpus_reads_as_what_it_was_imported_from(
    corpora: Path, source: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "pages.json"
    pages.write_text('{"1": "p1"}')
    bring(corpora, "moons", source, page_map=pages)
    assert corpus_form(corpora / "moons") == "imported"
    assert list(read_corpus(corpora / "moons")) == list(read_corpus(source, {"1": "p1"}))
    assert [p.page_id for p in read_corpus(corpora / "moons", {"3": "x"})] == ["", "", "x"]


def test_bad_rows_stop_the_import_or_are_left_out_by_choice(corpora: Path, source: Path) -> None:
    source.write_text(ROWS + "4\t \tempty\nbroken\n2\tagain\tT\n5\tfive\n", encoding="utf-8")
    with pytest.raises(BadFileError, match=r"moons\.tsv, line 5 has no text"):
        bring(corpora, "moons", source)
    assert everything(corpora) == {}
    corpus = bring(corpora, "moons", source, skip_bad=True)
    assert (corpus.passages, corpus.skipped, [p.line for p in corpus.problems]) == (4, 3, [5, 6, 7])


def test_progress_is_told_and_a_stopped_import_leaves_nothing(corpora: Path, source: Path) -> None:
    source.write_text(
        "".join(f"{n}\t{'text ' * 10}\tT\n" for n in range(250_000)), encoding="utf-8"
    )
    importing = import_corpus(corpora, "moons", source)
    seen = [next(importing), next(importing), next(importing)]
    assert 0 == seen[0].done < seen[1].done <= seen[2].done < (seen[2].total or 0)
    assert seen[2].rate > 0 and seen[2].seconds_left and "per second" in seen[2].message
    assert list(corpora.iterdir())
    importing.close()
    assert list(corpora.iterdir()) == []


def test_the_same_files_again_are_no_work(corpora: Path, source: Path) -> None:
    first = bring(corpora, "moons", source)
    before = everything(corpora)
    assert list(import_corpus(corpora, "moons", source)) == []
    assert read_card(corpora / "moons") == first
    os.utime(source, (1, 1))
    assert bring(corpora, "moons", source) == first
    assert everything(corpora) == before


def test_other_passages_of_a_name_are_refused(corpora: Path, source: Path) -> None:
    bring(corpora, "moons", source)
    before = everything(corpora)
    source.write_text("1\tother\n", encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"A corpus 'moons' exists already with other passages \(3 passages"
    ):
        bring(corpora, "moons", source)
    (corpora / "mine").mkdir()
    with pytest.raises(UsageError, match="is not an imported corpus"):
        bring(corpora, "mine", source)
    assert everything(corpora) == before


def test_of_two_imports_the_second_is_refused(corpora: Path, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tsv"
    other.write_text("9\tother\n", encoding="utf-8")
    slow, quick = import_corpus(corpora, "moons", source), import_corpus(corpora, "moons", other)
    next(slow)
    first = complete(quick)
    with pytest.raises(UsageError, match="exists already with other passages"):
        list(slow)
    assert [p.name for p in corpora.iterdir()] == ["moons"]
    assert read_card(corpora / "moons") == first


@pytest.mark.parametrize("name", ["", ".x", "a/b", "..", "x" * 300, "a:b", "a\nb"])
def test_a_name_that_no_folder_can_have_is_refused(name: str, corpora: Path, source: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a folder name"):
        bring(corpora, name, source)
    assert not corpora.exists()


def test_an_absent_source_or_format_is_refused(corpora: Path, source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"none\.tsv does not exist"):
        bring(corpora, "x", tmp_path / "none.tsv")
    with pytest.raises(NotFoundError, match="no corpus format 'xml'"):
        bring(corpora, "x", source, form="xml")
    assert not corpora.exists()


@pytest.mark.parametrize("size", [50, 3000, 12_000])
def test_a_full_disk_leaves_what_was_there(size: int, corpora: Path, source: Path) -> None:
    bring(corpora, "old", source)
    before = everything(corpora)
    source.write_text("".join(f"{n}\t{'text ' * 3}\tT\n" for n in range(500)), encoding="utf-8")
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)\n"
        "from pathlib import Path; from rallebench.corpora.imported import import_corpus\n"
        "from rallebench.core.errors import BackendError\n"
        "try: list(import_corpus(Path(sys.argv[1]), 'new', Path(sys.argv[2])))\n"
        "except BackendError as error: print(error, error.hint)"
    )
    command = [sys.executable, "-c", script, str(corpora), str(source), str(size)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert ran.stderr == ""
    assert "raise that limit" in ran.stdout
    assert everything(corpora) == before
    assert [p.name for p in corpora.iterdir()] == ["old"]


def test_what_a_killed_import_left_is_removed_by_the_next(corpora: Path, source: Path) -> None:
    left = corpora / ".moons.0f4b66d01c2e.part"
    left.mkdir(parents=True)
    (left / "passages.jsonl").write_text("half")
    bring(corpora, "moons", source)
    assert [p.name for p in corpora.iterdir()] == ["moons"]


@pytest.mark.parametrize("content", ["{}", "[]", "", '{"format": "rallebench-corpus/2"}'])
def test_a_damaged_card_is_refused_and_unlisted(content: str, corpora: Path, source: Path) -> None:
    bring(corpora, "moons", source)
    (corpora / "moons" / "corpus.json").write_text(content)
    with pytest.raises(BadFileError, match=r"corpus\.json"):
        read_card(corpora / "moons")
    assert imported_corpora(corpora) == {}


def test_an_index_outlives_a_deleted_corpus(corpora: Path, source: Path, tmp_path: Path) -> None:
    bring(corpora, "moons", source)
    index = tmp_path / "index"
    index.mkdir()
    complete(store_corpus(index, corpora / "moons"))
    delete_corpus(corpora, "moons")
    assert list(corpora.iterdir()) == []
    store = PassageStore(index)
    assert store[0].title == "Titan"
    store.close()
    with pytest.raises(NotFoundError, match="no imported corpus 'moons'"):
        delete_corpus(corpora, "moons")


def test_an_index_shares_the_files_of_a_corpus(corpora: Path, source: Path, tmp_path: Path) -> None:
    corpus = bring(corpora, "moons", source)
    for name, chunking, pages, shared in (
        ("plain", None, None, True),
        ("cut", Chunking(2), None, False),
        ("paged", None, {"1": "x"}, False),
    ):
        folder = tmp_path / name
        folder.mkdir()
        count, sha = complete(store_corpus(folder, corpora / "moons", pages, chunking))
        assert (folder / "passages.jsonl").samefile(corpora / "moons" / "passages.jsonl") == shared
        assert ((count, sha) == (3, corpus.sha256)) == shared
    assert (
        json.loads((tmp_path / "cut" / "passages.jsonl").read_text().splitlines()[0])["id"] == "1#0"
    )


def test_a_file_and_its_import_have_one_hash(corpora: Path, source: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert complete(store_corpus(tmp_path / "a", source)) == (
        3,
        bring(corpora, "moons", source).sha256,
    )


def test_a_file_where_the_corpora_should_be_is_one_sentence(corpora: Path, source: Path) -> None:
    corpora.parent.mkdir(parents=True)
    corpora.write_text("a file in the way")
    with pytest.raises(BackendError, match="Could not write"):
        bring(corpora, "moons", source)
