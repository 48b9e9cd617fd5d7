"""Every corpus format keeps the same promises; a new file in ``corpora/`` is tested as soon as it exists."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import write_sample

from rallebench.core.columnar import columnar_sample
from rallebench.core.errors import BadFileError
from rallebench.core.events import complete
from rallebench.core.sources import Problems, Source
from rallebench.core.types import Passage
from rallebench.corpora import CORPORA
from rallebench.corpora.cards import Corpus
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.reading import corpus_form, read_corpus
from rallebench.corpora.store import write_store

TEXTS = ("Titan is a moon.", "泰坦是一颗卫星。", "تيتان 🌕", '"quoted", with; marks')


def _file(name: str, content: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
        return folder / name

    return write


def _folder(**files: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for name, text in files.items():
            _file(f"docs/{name}", text)(folder)
        return folder / "docs"

    return write


def _imported(folder: Path) -> Path:
    (folder / "kept").mkdir()
    write_store(
        folder / "kept", (Passage(f"d{n}", text, "", f"d{n}") for n, text in enumerate(TEXTS))
    )
    (folder / "kept" / "corpus.json").write_text("{}")
    return folder / "kept"


def _lines(key: str) -> str:
    return "".join(json.dumps({key: f"d{n}", "text": text}) + "\n" for n, text in enumerate(TEXTS))


def _csv() -> str:
    quoted = [text.replace('"', '""') for text in TEXTS]
    return "id,text\n" + "".join(f'd{n},"{text}"\n' for n, text in enumerate(quoted))


def _columnar(kind: str) -> Callable[[Path], Path]:
    rows = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS)]
    sample = {f"c.{kind}": columnar_sample(kind, rows)}
    return lambda folder: write_sample(folder, sample)


WRITERS: dict[str, Callable[[Path], Path]] = {
    "parquet": _columnar("parquet"),
    "arrow": _columnar("arrow"),
    "tsv": _file("c.tsv", "".join(f"d{n}\t{text}\n" for n, text in enumerate(TEXTS))),
    "jsonl": _file("c.jsonl", _lines("id")),
    "csv": _file("c.csv", _csv()),
    "beir": lambda folder: _file("set/corpus.jsonl", _lines("_id"))(folder).parent,
    "folder": _folder(**{f"d{n}.txt": text for n, text in enumerate(TEXTS)}),
    "parts": _folder(**{f"d{n}": text for n, text in enumerate(TEXTS)}),
    "lines": _file("c.txt", "\n".join(TEXTS)),
    "imported": _imported,
}
"""Format → a corpus with TEXTS in this format, written into a folder."""

forms = pytest.mark.parametrize("form", CORPORA.names())
own_forms = pytest.mark.parametrize("form", WRITERS)


@forms
def test_a_sample_is_read_as_passages_recognised_and_imported(form: str, tmp_path: Path) -> None:
    if form == "imported":
        pytest.skip("it is what an import makes")
    traits = CORPORA.entry(form).traits
    sample = write_sample(tmp_path, traits["sample"])
    passages = list(read_corpus(sample, form=form))
    assert len(passages) >= 2 and all(passage.text.strip() for passage in passages)
    assert len({passage.doc_id for passage in passages}) == len(passages)
    assert "recognises" not in traits or corpus_form(sample) == form
    corpus = complete(import_corpus(tmp_path / "corpora", "mine", sample, form=form))
    assert isinstance(corpus, Corpus) and corpus.passages == len(passages)
    kept = read_corpus(tmp_path / "corpora" / "mine")
    assert [passage.text for passage in kept] == [passage.text for passage in passages]


@own_forms
def test_a_format_gives_every_text_once_in_order_under_an_id(form: str, tmp_path: Path) -> None:
    passages = list(read_corpus(WRITERS[form](tmp_path), form=form))
    assert tuple(passage.text for passage in passages) == TEXTS
    assert len({passage.doc_id for passage in passages}) == len(TEXTS)
    assert all(passage.page_id == passage.doc_id for passage in passages)
    paged = read_corpus(
        WRITERS[form](tmp_path / "again") if form != "imported" else tmp_path / "kept",
        {},
        form=form,
    )
    assert {passage.page_id for passage in paged} == {""}


@own_forms
def test_a_format_is_recognised_or_must_be_named(form: str, tmp_path: Path) -> None:
    path = WRITERS[form](tmp_path)
    if "recognises" in CORPORA.entry(form).traits:
        assert corpus_form(path) == form
    elif path.is_dir():
        with pytest.raises(BadFileError, match="name a file, another folder, or its format"):
            corpus_form(path)
    else:
        assert (
            corpus_form(path) != form
        )  # a text file is a document; one whose lines are articles is named


@forms
def test_a_source_that_is_not_there_is_one_sentence_always(form: str, tmp_path: Path) -> None:
    for skip in (False, True):
        with pytest.raises(BadFileError, match="none"):
            list(read_corpus(tmp_path / "none", form=form, problems=Problems(skip=skip)))


@own_forms
def test_a_format_tells_how_many_bytes_it_has_read(form: str, tmp_path: Path) -> None:
    if form == "imported":
        pytest.skip("it is mapped, not read through")
    source = Source(WRITERS[form](tmp_path))
    list(read_corpus(source.path, form=form, source=source))
    assert source.done == source.total > 0
