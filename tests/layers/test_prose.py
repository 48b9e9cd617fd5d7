"""Docstrings, comments and messages are plain English, and functions are named by verbs or nouns."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from project import PROJECT

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Documented = (ast.Module, ast.ClassDef, *Function)

OPENING = re.compile(
    r"[#\s(]*(What|Whether|How|Where|Whoever|Whose|Whom|Who|Those|That|Which|It)\b", re.IGNORECASE
)
"""A docstring is a noun phrase or an imperative sentence; a comment says why."""
PHRASES = re.compile(
    r"(?<!there )(?<!There )\b(is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|\w+er than\b)"
    r"|\b[Ww]hat is (?:\w+ ){1,5}is\b|\b[Tt]hose of a\b|\b[Ww]hat stands\b|(?<!')\b[Nn]obody\b(?! nothing|\|)|\b[Ww]hoever\b"
)
"""Phrases that a native speaker would not write: "is no Exception", "what is sent is", "what stands there"."""
IRREGULAR = frozenset(
    [
        "begun",
        "bought",
        "brought",
        "broken",
        "built",
        "chosen",
        "done",
        "drawn",
        "driven",
        "fed",
        "forgotten",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "spoken",
        "struck",
        "sung",
        "sworn",
        "taken",
        "taught",
        "thrown",
        "told",
        "torn",
        "won",
        "worn",
        "written",
    ]
)
NO_PARTICIPLES = frozenset(
    [
        "bed",
        "bleed",
        "breed",
        "embed",
        "exceed",
        "feed",
        "indeed",
        "need",
        "proceed",
        "seed",
        "shed",
        "speed",
        "succeed",
        "testbed",
    ]
)
"""Words in -ed that are verbs or nouns."""

DONE = frozenset(
    f"rallebench/{name}"
    for name in (
        "analysis",
        "api",
        "chains",
        "checkpoints",
        "cli",
        "core",
        "corpora",
        "datasets",
        "encoders",
        "engine",
        "environments",
        "experiments",
        "gui",
        "http",
        "hub",
        "llms",
        "metrics",
        "papers",
        "reader",
        "render",
        "retrievers",
        "sandbox",
        "server",
        "services",
        "tracking",
        "vector_indexes",
        "views",
        "workflows",
        "workspace",
    )
) | {
    f"tests/{name}"
    for name in ("analysis", "api", "cli", "experiments", "server", "services", "views")
}
"""Packages and their tests (``rallebench/llms``, ``tests/llms``) without any finding."""
CEILINGS = {
    "rallebench": {"opening": 0, "participle": 0, "name in _of": 0, "phrase": 0},
    "programs": {"opening": 0, "participle": 156, "name in _of": 57, "phrase": 11},
    "documents": {"phrase": 0},
}
"""Findings in the packages that are not done, in tests and tools, and in the documents. These numbers may only fall."""


def prose(source: str, tree: ast.Module) -> Iterator[str]:
    """Docstrings of modules, classes, functions and constants, and comments."""
    for node in ast.walk(tree):
        text = (
            node.value.value
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            else None
        )
        if isinstance(text, str):
            yield text
    if re.search(rf"#{OPENING.pattern}", source, re.IGNORECASE):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.string


def sentences(tree: ast.Module) -> Iterator[str]:
    """All texts with spaces: docstrings, messages and the pieces of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def is_participle(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is named by a participle alone. A predicate may be: ``if failed(episode)``."""
    word = node.name.strip("_")
    returned = ast.unparse(node.returns) if node.returns else ""
    if returned in ("bool", "TypeGuard", "TypeIs") or word in NO_PARTICIPLES:
        return False
    return "_" not in word and (word.endswith("ed") or word in IRREGULAR)


def findings(source: str) -> list[tuple[str, str]]:
    """(kind, text) of all that a source is refused for."""
    tree = ast.parse(source)
    refused = [("opening", text) for text in prose(source, tree) if OPENING.match(text)]
    refused += [("phrase", text) for text in sentences(tree) if PHRASES.search(text)]
    for node in ast.walk(tree):
        if isinstance(node, Function):
            if is_participle(node):
                refused.append(("participle", node.name))
            elif node.name.endswith("_of") and not node.name.startswith(("is_", "_is_", "test_")):
                refused.append(("name in _of", node.name))
    return [(kind, " ".join(text.split())[:90]) for kind, text in refused]


@cache
def group_findings(group: str) -> list[tuple[str, str, str]]:
    """(path, kind, text) of a group of ``CEILINGS``."""
    texts = []
    if group == "documents":
        for path in [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]:
            for line in path.read_text(encoding="utf-8").splitlines():
                if PHRASES.search(line):
                    texts.append((path.name, "phrase", line[:90]))
        return texts
    folders = ("rallebench",) if group == "rallebench" else ("tests", "tools", "benchmarks")
    for folder in folders:
        for path in sorted((PROJECT / folder).rglob("*.py")):
            if path != Path(__file__):
                name = path.relative_to(PROJECT).as_posix()
                source = path.read_text(encoding="utf-8")
                texts += [(name, kind, text) for kind, text in findings(source)]
    return texts


def is_done(path: str) -> bool:
    """Return whether a file belongs to a package that is done."""
    return "/".join(path.split("/")[:2]).removesuffix(".py") in DONE


def test_finished_packages_have_no_findings() -> None:
    entries = [*group_findings("rallebench"), *group_findings("programs")]
    assert [entry for entry in entries if is_done(entry[0])] == []


@pytest.mark.parametrize("group", CEILINGS)
def test_findings_elsewhere_only_fall(group: str) -> None:
    counts = Counter(kind for path, kind, _ in group_findings(group) if not is_done(path))
    assert {
        kind: (counts[kind], most) for kind, most in CEILINGS[group].items() if counts[kind] > most
    } == {}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ('"""What a model needs."""', "opening"),
        ('def f():\n    """Those of a file."""', "opening"),
        ('MOST = 3\n"""How many there are."""', "opening"),
        ("x = 1  # whether it holds", "opening"),
        ("# It is closed later.", "opening"),
        ("def fed(): ...", "participle"),
        ("def _parted(text) -> str: ...", "participle"),
        ("class A:\n    async def drawn(self): ...", "participle"),
        ("def text_of(part): ...", "name in _of"),
        ('raise ValueError(f"{name} is no file.")', "phrase"),
        ('def f():\n    """Return what is read is kept."""', "phrase"),
    ],
)  # fmt: skip
def test_each_kind_is_seen(code: str, kind: str) -> None:
    assert kind in [seen for seen, _ in findings(code)]


@pytest.mark.parametrize(
    "code",
    [
        '"""Estimated memory of a model; \'\' if unknown."""',
        "x = 1  # the server closes idle connections",
        "def need(): ...",
        "def failed(episode) -> bool: ...",
        "def is_baseline_of(run): ...",
        'raise ValueError(f"There is no file {name}; there is no folder either.")',
        'print("The run is no longer there, and the other is no larger than ours.")',
    ],
)
def test_plain_english_passes(code: str) -> None:
    assert findings(code) == []
