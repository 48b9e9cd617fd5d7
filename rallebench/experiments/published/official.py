"""The papers' own questions, identified by digest. Printed figures are shown beside ours only for identical questions.

A benchmark's ``official.json`` names the source of its digests. A set is identified by its file (``sha256``, or ``blob``,
git's SHA-1 of the file), by the texts of its questions (``questions``), or by their ids (``ids``). Order and format matter
only for the file.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from rallebench.core.archives import unpacking
from rallebench.core.errors import BadFileError
from rallebench.core.types import Example
from rallebench.experiments.benchmarks import BENCHMARKS


def why_unverified(
    benchmark: str, name: str, examples: Sequence[Example] = (), file: Path | None = None
) -> str:
    """The reason why questions cannot be identified as the paper's set, as part of a sentence; '' if they can."""
    known = BENCHMARKS[benchmark].question_sets().get(name)
    if known is None:
        return f"no digest of the paper's {name} is known, so its questions cannot be recognised"
    texts = (example.question.text for example in examples)
    ours = {
        "questions": lambda: questions_digest(texts),
        "ids": lambda: ids_digest(example.question.qid for example in examples),
        "sha256": lambda: _content_digest(file, "sha256"),
        "blob": lambda: _content_digest(file, "blob"),
    }
    if any(ours[kind]() == digest for kind, digest in known.items()):
        return ""
    return f"ours are not the questions of the paper's {name}"


def questions_digest(texts: Iterable[str]) -> str:
    """SHA-256 of question texts, ignoring surrounding quotes, order and white space."""
    lines = sorted(" ".join(text.split()).strip('"').strip() for text in texts)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def ids_digest(ids: Iterable[str]) -> str:
    """SHA-256 of question ids, ignoring order."""
    return hashlib.sha256("\n".join(sorted(ids)).encode("utf-8", "surrogatepass")).hexdigest()


LARGEST = 2**30
"""The largest file to digest, in bytes; the papers' own files are far smaller."""


def _content_digest(file: Path | None, kind: str) -> str:
    """A digest of a file's content, decompressed if its name ends in ``.gz``; '' without a file."""
    if file is None or not file.is_file():
        return ""
    try:
        with (
            unpacking(file.name),
            gzip.open(file) if file.suffix == ".gz" else open(file, "rb") as handle,
        ):
            content = handle.read(LARGEST + 1)
    except (BadFileError, OSError):
        return ""
    if len(content) > LARGEST:
        return ""
    if kind == "sha256":
        return hashlib.sha256(content).hexdigest()
    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
