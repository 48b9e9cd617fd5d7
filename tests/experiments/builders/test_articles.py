"""Articles come from a folder, a list, a corpus or a dump; unreadable ones are counted."""

from __future__ import annotations

import bz2
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from small_workspace import make_workspace, write_lines

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.corpora.imported import import_corpus
from rallebench.experiments.builders._mediawiki import plain
from rallebench.experiments.builders._source import SourceArticle
from rallebench.experiments.builders.articles import (
    articles_at,
    draw_articles,
    plain_text,
    read_articles,
    read_dates,
)
from rallebench.workspace.paths import WorkspaceFolder

DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><siteinfo><sitename>W</sitename></siteinfo>
<page><title>Titan</title><ns>0</ns><id>7</id>
<revision><id>1</id><timestamp>2022-01-02T00:00:00Z</timestamp><text>old</text></revision>
<revision><id>2</id><timestamp>2023-05-06T00:00:00Z</timestamp><text>'''Titan''' is a [[moon]].</text></revision></page>
<page><title>Talk:Titan</title><ns>1</ns><id>8</id><revision><timestamp>2022-01-02T00:00:00Z</timestamp><text>hm</text></revision></page>
<page><title>Ttan</title><ns>0</ns><id>9</id><redirect title="Titan" /><revision><timestamp>2022-01-02T00:00:00Z</timestamp><text>x</text></revision></page>
</mediawiki>"""


def read(kind: str, path: Path) -> list[SourceArticle]:
    return list(read_articles(kind, path)[1])


@pytest.fixture
def workspace(tmp_path: Path) -> WorkspaceFolder:
    return WorkspaceFolder(tmp_path / "workspace")


def test_a_folder_gives_its_files_and_dates_by_name(
    tmp_path: Path, workspace: WorkspaceFolder
) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "2023-04-05 storm.txt").write_text("A storm came.")
    (tmp_path / "news" / "b.md").write_text("# Calm\nNothing came.")
    (tmp_path / "news" / "c.html").write_text("<title>Rain</title><p>It rained.")
    (tmp_path / "news" / "d.pdf").write_bytes(b"no pdf")
    kind, path = articles_at(str(tmp_path / "news"), workspace)
    reading, found = read_articles(kind, path)
    expected = [("2023-04-05 storm", "2023-04-05"), ("Calm", ""), ("Rain", "")]
    assert [(a.title, a.date) for a in found] == expected
    assert kind == "folder" and reading.source.problems.count == 1
    assert "d.pdf is not a PDF" in reading.source.problems.first[0].message


def test_a_list_is_taken_by_its_fields_and_counts_what_has_no_text(tmp_path: Path) -> None:
    own = {"url": "u", "date": "2022", "question": "Who?", "answer": ["x", "y"]}
    rows = [
        {"title": "A", "content": "text a", **own},
        {"headline": "B", "text": "text b", "id": 5},
        {"title": "C"},
        {"title": "B2", "text": "text b2", "id": "5"},
    ]
    reading, found = read_articles("list", write_lines(tmp_path / "a.jsonl", rows))
    a, b, again = found
    assert (a.question, a.answers, a.url, len(a.id)) == ("Who?", ("x", "y"), "u", 12)
    assert (b.id, b.title, again.id) == ("5", "B", "5~2")
    assert "line 3 has no 'content'" in reading.source.problems.first[0].message


def test_a_corpus_of_the_workspace_gives_its_pages_whole(tmp_path: Path) -> None:
    folder = make_workspace(tmp_path / "w")
    pages = {"1": "p", "2": "p", "3": "q", "4": "r", "5": "s", "6": "t"}
    (folder / "pages.json").write_text(json.dumps(pages))
    corpus, page_map = folder / "corpus.tsv", folder / "pages.json"
    list(import_corpus(folder / "corpora", "mine", corpus, page_map=page_map))
    kind, path = articles_at("mine", WorkspaceFolder(folder))
    found = read(kind, path)
    assert kind == "corpus" and [a.id for a in found] == ["p", "q", "r", "s", "t"]
    assert "Titan is the largest" in found[0].text and "Triton is the largest" in found[0].text


@pytest.mark.parametrize(
    ("name", "pack"),
    [("wiki.xml", bytes), ("wiki.xml.bz2", bz2.compress), ("wiki.xml.gz", gzip.compress)],
)
def test_a_dump_gives_articles_with_their_first_date_and_last_text(
    tmp_path: Path, workspace: WorkspaceFolder, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(pack(DUMP.encode()))
    reading, found = read_articles(*articles_at(str(tmp_path / name), workspace))
    (titan,) = found
    expected = ("7", "Titan", "2022-01-02T00:00:00Z", "Titan is a moon.")
    assert (titan.id, titan.title, titan.date, plain_text(titan)) == expected
    assert reading.passed_over == {"of another namespace": 1, "a redirect": 1}
    assert reading.notes == []


def test_a_dump_of_current_pages_says_that_its_dates_are_of_the_last_edit(tmp_path: Path) -> None:
    first = (
        "<revision><id>1</id><timestamp>2022-01-02T00:00:00Z</timestamp><text>old</text></revision>"
    )
    (tmp_path / "w.xml").write_text(DUMP.replace(first, ""))
    reading, found = read_articles("dump", tmp_path / "w.xml")
    assert [a.date for a in found] == ["2023-05-06T00:00:00Z"]
    assert "those of the last edit" in reading.notes[0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (DUMP[:300], "cannot be read as a MediaWiki dump"),
        ("<html></html>", "holds no page"),
        ("plain", "cannot be read as a MediaWiki dump"),
    ],
)
def test_what_is_no_whole_dump_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "w.xml").write_text(text)
    with pytest.raises(BadFileError, match=sentence):
        read("dump", tmp_path / "w.xml")


def test_a_long_dump_takes_the_memory_of_a_page(tmp_path: Path) -> None:
    page = (
        "<page><title>T{0}</title><ns>0</ns><id>{0}</id><revision><timestamp>2022</timestamp><text>"
        + "word " * 4000
        + "</text></revision></page>"
    )
    with bz2.open(tmp_path / "w.xml.bz2", "wt") as handle:
        handle.write("<mediawiki>")
        for number in range(60):
            handle.write(page.format(number))
        handle.write("</mediawiki>")
    next(
        iter(read_articles("dump", tmp_path / "w.xml.bz2")[1])
    )  # imports of this call do not count
    tracemalloc.start()
    count = sum(1 for _ in read_articles("dump", tmp_path / "w.xml.bz2")[1])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60 and most < 6e5, "the whole is 1.2 MB"


def test_wikitext_loses_tables_pictures_references_and_keeps_words() -> None:
    text = "{{Infobox|x}}\n'''A''' is [[B|b]]<ref>R</ref>.\n{|\n|cell\n|}\n[[File:x.jpg|thumb|pic]] [[Category:C]]\n* one [http://x.org site]\n"
    assert plain(text) == "A is b.\n\none site"
    assert plain("{{" * 2000 + "[[" * 2000 + "text")


@pytest.mark.parametrize(
    ("reference", "error", "sentence"),
    [
        ("", UsageError, "No articles are given"),
        ("nowhere.jsonl", NotFoundError, "does not exist"),
        ("nowhere", NotFoundError, "neither as a file nor as an imported corpus"),
        ("FOLDER/a.odt", BadFileError, "none of the kinds"),
    ],
)
def test_articles_that_are_not_there_or_of_no_known_kind_are_refused(
    tmp_path: Path,
    workspace: WorkspaceFolder,
    reference: str,
    error: type[Exception],
    sentence: str,
) -> None:
    (tmp_path / "a.odt").write_bytes(b"x")
    with pytest.raises(error, match=sentence):
        articles_at(reference.replace("FOLDER", str(tmp_path)), workspace)


def test_a_random_draw_is_the_same_each_time_and_in_the_order_of_the_source() -> None:
    articles = [SourceArticle(str(n), f"T{n}", "text") for n in range(100)]

    def ids(at_random: bool, seed: int) -> list[str]:
        return [article.id for article in draw_articles(iter(articles), 10, at_random, seed)]

    first = ids(True, 0)
    assert first == ids(True, 0) == sorted(set(first), key=int) and len(first) == 10
    assert first != ids(True, 1) != ids(False, 1)


def test_dates_can_be_given_beside_the_articles(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"Titan": "2022-01-01"}')
    (tmp_path / "d.tsv").write_text("7\t2022-01-01\n")
    (tmp_path / "bad.tsv").write_text("7 2022-01-01\n")
    assert read_dates(str(tmp_path / "d.json")) == {"Titan": "2022-01-01"}
    assert read_dates(str(tmp_path / "d.tsv")) == {"7": "2022-01-01"}
    with pytest.raises(BadFileError, match="line 1 is not an article's id"):
        read_dates(str(tmp_path / "bad.tsv"))
