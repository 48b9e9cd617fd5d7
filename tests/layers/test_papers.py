"""Nothing outside ``papers`` names a paper: no identifier, no key, no condition. Every paper is a plug-in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import pytest
from project import syntax_trees

NAMES = re.compile(r"(?<![a-z])(rgb|crud|barag|r[-_]?eval|ralle|kilt)(?![a-z])", re.IGNORECASE)
CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")
FORMATS: Mapping[str, str] = {
    r"(as_)?ralle_?error": "the product's own name, in its errors",
    r"kilt|(.*\.)?datasets[./]kilt(\.py)?|(is|read)_kilt|kilt_record": "KILT's records: the form of every dataset and a form of predictions",
    r"kilt[-_](accuracy|em|f1|rouge-?l|has_answer(_all)?)?|_kilt|_ralle|metrics/kilt_combined\.py": "names of metrics as papers print them, and their cards",
    r"[.]?r-eval(-original|\.jsonl)?|(.*\.)?datasets[./]r_eval(\.py)?|read_r_eval(_original)?": "R-Eval's records and logs: forms of datasets and of runs",
    r"(.*\.)?chains[./]ralle(\.py)?|(.*\.)?workspace[./]ralle_settings(\.py)?|(.*\.)?engine[./]ralle_files(\.py)?|write_ralle_files|ralle|-ralle\.json|ralle-chain|not_in_ralle": "RaLLe's files of chains, settings and outputs",
}
"""Words that may name a paper → the reason."""
ALLOWED = re.compile("|".join(FORMATS), re.IGNORECASE)


def words(tree: ast.Module) -> Iterator[str]:
    """All identifiers, the paths of imports, and texts without spaces (keys and compared values); no docstrings."""
    docs = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and " " not in node.value and id(node) not in docs:
                yield node.value
        elif isinstance(node, ast.alias):
            yield node.name
            yield node.asname or ""
        else:
            for field in ("id", "attr", "arg", "name", "module"):
                if isinstance(value := getattr(node, field, None), str):
                    yield value


def paper_names(words: Iterator[str]) -> set[str]:
    """The words that name a paper, without the names of file formats and metrics."""
    return {
        word
        for word in words
        if (NAMES.search(word) or NAMES.search(CAPITALS.sub("_", word)))
        and not ALLOWED.fullmatch(word)
    }


def outside() -> dict[str, set[str]]:
    """Module outside ``papers`` → words in it, or in its path, with the name of a paper."""
    modules = {
        path: paper_names(iter([path, *words(tree)]))
        for path, tree in syntax_trees().items()
        if not path.startswith("papers/")
    }
    return {path: names for path, names in modules.items() if names}


def test_nothing_outside_papers_names_a_paper() -> None:
    assert outside() == {}


@pytest.mark.parametrize(
    "source",
    [
        'if kind == "rgb":\n    pass',
        'PAPERS = {"crud-qa1": 1}',
        "from rallebench.papers.barag import tables",
        "class RevalTask: ...",
        "def read(*, reval_task): ...",
        'name.startswith("kilt-nq")',
    ],
)
def test_a_condition_a_key_an_import_and_an_identifier_are_found(source: str) -> None:
    assert paper_names(words(ast.parse(source)))


def test_prose_and_file_formats_may_name_a_paper() -> None:
    source = '"""RGB\'s passages."""\nform, about = "kilt", "RGB stands here"\nraise RalleError("A log of R-Eval.")'
    assert not paper_names(words(ast.parse(source)))
