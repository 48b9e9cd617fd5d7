"""A count stands before its noun by ``core.numbers.plural``, so that no page says "1 passages"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.core.numbers import plural_noun

PACKAGE = PROJECT / "rallebench"
DRAWN = ("gui", "views", "render")
NOUNS = [
    "question",
    "answer",
    "passage",
    "chunk",
    "document",
    "page",
    "article",
    "run",
    "variant",
    "index",
    "record",
    "file",
    "metric",
    "source",
    "proposal",
    "comparison",
    "character",
    "word",
    "retrieval",
    "step",
    "edit",
    "label",
    "judgement",
    "measurement",
    "baseline",
    "setting",
    "prediction",
    "column",
]
COUNTED = re.compile(rf"^ (?:[a-z]+ )?({'|'.join(map(plural_noun, NOUNS))})\b")
BY_HAND = re.compile(r"'e?s' \* \(|'e?s' if ")
OWN_WORDS = {
    "core/numbers.py",
    "chains/safe_values.py",  # errors of the eval dialect, which golden files hold
    "chains/safe_format.py",
    "workspace/checking.py",
    "http/limiter.py",
    "environments/wikipedia.py",  # an observation as in the paper
    "papers/crud/records.py",  # names of files
}
"""Modules without the function, or with sentences of their own."""
ONE_BESIDE = re.compile(r"[=!]= 1\b|> 2\b|pair\.needed")
"""A line that has its own words for one thing, or a count that is never one."""


def find_counts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, words) of counts with a plural that stays for one thing; constants in capitals are never one."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:]):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            words, counted = ast.unparse(value.value), COUNTED.match(str(text.value))
            fixed = words.isupper() or "'" in words or ONE_BESIDE.search(lines[node.lineno - 1])
            if counted and not fixed:
                yield node.lineno, f"{{{words}}} {counted[1]}"


@pytest.mark.parametrize("package", DRAWN)
def test_counts_of_the_page_agree_with_their_nouns(package: str) -> None:
    counts = {
        f"{path.relative_to(PACKAGE)}:{line}": words
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for line, words in find_counts(path)
    }
    assert counts == {}


def test_no_plural_is_made_by_hand() -> None:
    paths = [
        path for path in PACKAGE.rglob("*.py") if str(path.relative_to(PACKAGE)) not in OWN_WORDS
    ]
    by_hand = {str(p.relative_to(PACKAGE)) for p in paths if BY_HAND.search(p.read_text("utf-8"))}
    assert by_hand == set()


def test_the_check_finds_a_count(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('a = f"{len(x)} passages"\nb = f"{MOST} files"\nc = f"{plural(n, \'page\')}"\n')
    assert list(find_counts(path)) == [(1, "{len(x)} passages")]
