"""Pages of imported corpora are known by id, passage, address, title and file name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.events import complete
from rallebench.corpora.imported import import_corpus
from rallebench.corpora.page_names import MAX_PAGES_PER_NAME, find_pages

ROWS = [
    {"id": "d1", "page_id": "77", "title": "Titan (moon)", "text": "A moon."},
    {"id": "docs/setup.md", "title": "Set it up", "text": "First install it."},
    {"id": "https://www.example.org/ulm/", "title": "", "text": "A city."},
    {"id": "7.0", "title": "", "text": "A number."},
    {"id": "d4", "title": "Danube", "text": "A river."},
    {"id": "d5", "title": "Danube", "text": "It ends in a sea."},
]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    many = [{"id": f"m{n}", "title": "Many", "text": "x"} for n in range(MAX_PAGES_PER_NAME + 1)]
    file = tmp_path / "c.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, *many]))
    complete(import_corpus(tmp_path / "corpora", "mine", file))
    return tmp_path / "corpora"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("77", ["77"]),
        ("d1", ["77"]),
        ("titan (Moon)", ["77"]),
        ("7", ["7.0"]),
        ("7.0", ["7.0"]),
        ("https://en.wikipedia.org/wiki/Titan_(moon)", ["77"]),
        ("https://en.wikipedia.org/wiki/Titan_%28moon%29#Orbit", ["77"]),
        ("docs/setup.md", ["docs/setup.md"]),
        ("setup.md", ["docs/setup.md"]),
        ("C:\\files\\docs\\setup.md", ["docs/setup.md"]),
        ("setup", ["docs/setup.md"]),
        ("set it up", ["docs/setup.md"]),
        ("http://example.org/ulm", ["https://www.example.org/ulm/"]),
        ("Danube", ["d4", "d5"]),
        ("Many", None),
        ("Rhine", None),
    ],
)
def test_a_page_is_known_by_all_its_names(
    name: str, expected: list[str] | None, corpora: Path
) -> None:
    pages = find_pages(corpora, [name])
    assert pages == {"mine": {} if expected is None else {name: expected}}


def test_a_damaged_corpus_names_nothing(corpora: Path) -> None:
    (corpora / "mine" / "passages.jsonl").write_text("x")
    assert find_pages(corpora, ["77"]) == {}
