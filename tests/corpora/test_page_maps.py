"""Passage id → page id: RaLLe's JSON, and tables and JSON lines for maps too large for a dict."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError
from rallebench.corpora.page_maps import CompactPages, read_page_map

FORMS = {
    "json": '{"1": "p1", " 2 ": 7}',
    "tsv": '1\tp1\n"2"\t 7 \n',
    "with a header.tsv": "id\twikipedia_id\n1\tp1\n2\t7\n",
    "jsonl": '{"id": 1, "page_id": "p1"}\n\n{"doc_id": "2", "wikipedia_id": 7}\n',
}


@pytest.mark.parametrize("form", FORMS)
def test_a_map_gives_the_page_of_an_id_as_text_whatever_its_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"map.{form}"
    path.write_text(FORMS[form], encoding="utf-8")
    pages = read_page_map(path)
    values = [pages.get(doc_id, "none") for doc_id in ("1", "2", "3", "id")]
    assert values == ["p1", "7", "none", "none"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.tsv", "1\tp\n2\n", "line 2 has 1 columns; a page map has two"),
        ("m.tsv", "1\tp\tq\n", "line 1 has 3 columns"),
        ("m.tsv", "", "is empty; it should hold"),
        ("m.tsv", "1\tp\n2\tp\n1\tq\n", "maps one passage id to two pages, 'p' and 'q'"),
        ("m.jsonl", '{"id": 1}\n', "line 1 needs 'id' and 'page_id'"),
        ("m.jsonl", '{"id": 1, "page_id": [1]}\n', "line 1 needs 'id' and 'page_id'"),
        ("m.json", '{"1": null}', "maps '1' to NoneType"),
        ("m.json", '{"1": [2]}', "maps '1' to list"),
        ("m.json", "[1]", r"m\.json should hold a JSON object"),
        ("m.json", "{", r"m\.json is not valid JSON"),
        ("m.json", "", r"m\.json is empty"),
    ],
)
def test_a_bad_map_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadFileError, match=message):
        read_page_map(path)


class Attack:
    """An object that creates a file when Python's own loader unpickles it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def test_ralles_pickle_is_read_without_lost_pages_and_nothing_is_executed(tmp_path: Path) -> None:
    path = tmp_path / "map.p"
    path.write_bytes(pickle.dumps({1: 10, 2: -1, "3": "30"}))
    assert read_page_map(path) == {"1": "10", "3": "30"}
    path.write_bytes(pickle.dumps({1: Attack(str(tmp_path / "created"))}))
    with pytest.raises(BadFileError, match=r"map\.p is not a pickled map .*it asks for .*open"):
        read_page_map(path)
    assert [file.name for file in tmp_path.iterdir()] == ["map.p"]
    for content in (b"", b"no pickle", pickle.dumps([1, 2]), pickle.dumps({1: [2]})):
        path.write_bytes(content)
        with pytest.raises(
            BadFileError, match=r"map\.p (is not a pickled map|should hold|maps 1 to)"
        ):
            read_page_map(path)
    with pytest.raises(BadFileError, match="cannot be read"):
        read_page_map(tmp_path / "none.p")


@pytest.mark.slow
def test_a_long_table_gives_what_a_dict_would_in_a_fraction_of_its_memory(tmp_path: Path) -> None:
    expected = {f"passage-{n}": f"page-{n // 4}" for n in range(30_000)}
    path = tmp_path / "map.tsv"
    path.write_text(
        "".join(f"{key}\t{value}\n" for key, value in expected.items()), encoding="utf-8"
    )
    as_json = tmp_path / "map.json"
    as_json.write_text(json.dumps(expected), encoding="utf-8")
    held = {}
    for file in (path, as_json):
        tracemalloc.start()
        pages = read_page_map(file)
        held[file.suffix] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert all(pages.get(key, "") == value for key, value in list(expected.items())[::997])
    assert held[".tsv"] < held[".json"] / 5
    assert len(CompactPages(path, iter(expected.items()))) == 30_000
