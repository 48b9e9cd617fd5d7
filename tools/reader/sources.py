"""The datasets that the reader learns from, and which of their articles it never sees.

Only sets whose licence lets weights be shipped: Wikipedia text and questions that may be shared.
Reviews and forum posts are left out, whatever they would gain.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rallebench.core.errors import BadFileError, NotFoundError

Part = Literal["train", "development", "test"]


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset: its file ``<name>.jsonl.gz`` (or ``.jsonl``), what it is, where from, its licence.

    ``hashed``: its articles are many, so their names' hashes say which are kept for testing.
    """

    name: str
    about: str
    licence: str
    url: str
    hashed: bool = False


SOURCES = (
    Source(
        "squad_dev",
        "SQuAD 1.1 development questions and the unanswerable ones of SQuAD 2.0 (Rajpurkar et al. 2016, 2018)",
        "CC BY-SA 4.0",
        "https://rajpurkar.github.io/SQuAD-explorer/",
    ),
    Source(
        "squadshifts_new_wiki",
        "SQuADShifts, new Wikipedia articles (Miller et al. 2020)",
        "CC BY 4.0 (by its public card; the repository has no licence file); Wikipedia text CC BY-SA 3.0",
        "https://github.com/modestyachts/squadshifts-website",
    ),
    Source(
        "qamr",
        "Question-Answer Meaning Representations of Wikipedia and Wikinews sentences (Michael et al. 2018)",
        "MIT",
        "https://github.com/uwnlp/qamr",
    ),
    Source(
        "qed_nq",
        "QED: search questions of Natural Questions with their Wikipedia paragraph (Lamm et al. 2021)",
        "CC BY-SA 3.0",
        "https://github.com/google-research-datasets/QED",
        hashed=True,
    ),
)

_HASHED = frozenset(s.name for s in SOURCES if s.hashed)

TEST_ARTICLES = frozenset(
    {
        "1973 oil crisis",
        "Black Death",
        "Construction",
        "Doctor Who",
        "Fresno, California",
        "Genghis Khan",
        "Geology",
        "Harvard University",
        "Intergovernmental Panel on Climate Change",
        "Normans",
        "Prime number",
        "Private school",
        "Sky (United Kingdom)",
        "Yuan dynasty",
    }
)
"""Articles of SQuAD that are only for the figures in the model card."""

DEVELOPMENT_ARTICLES = frozenset({"Civil disobedience", "Teacher", "Chloroplast", "Istanbul"})
"""Articles that the confidence is fitted on and choices are made with."""

TEST_SHARE, DEVELOPMENT_SHARE = 0.38, 0.12
"""Of the articles of a hashed set."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its accepted answers as (text, start character); none: the context has no answer."""

    id: str
    text: str
    answers: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Context:
    """A paragraph of an article with its questions."""

    source: str
    title: str
    text: str
    questions: tuple[Question, ...]


def part_of(title: str, hashed: bool = False) -> Part:
    """Return the split that an article belongs to, by its title alone.

    >>> part_of("Yuan_dynasty"), part_of("Gallbladder"), part_of("Gallbladder", hashed=True)
    ('test', 'train', 'development')
    """
    plain = title.replace("_", " ")
    if plain in TEST_ARTICLES:
        return "test"
    if plain in DEVELOPMENT_ARTICLES:
        return "development"
    place = int(hashlib.sha256(plain.encode()).hexdigest()[:8], 16) / 2**32 if hashed else 1.0
    if place < TEST_SHARE:
        return "test"
    return "development" if place < TEST_SHARE + DEVELOPMENT_SHARE else "train"


def read_source(folder: Path, source: Source) -> list[Context]:
    """All contexts of a set, every span checked. Raises if the file is missing or not as described."""
    contexts = []
    path = _file_of(folder, source.name)
    for number, row in enumerate(_rows(path), 1):
        try:
            questions = tuple(
                Question(
                    qa["id"],
                    qa["question"].strip(),
                    ()
                    if qa["is_impossible"]
                    else tuple((a["text"], int(a["answer_start"])) for a in qa["answers"]),
                )
                for qa in row["qas"]
            )
            context = Context(source.name, row["title"], row["context"], questions)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadFileError(
                f"{path}, line {number}: {error!r} while reading a context."
            ) from None
        for question in questions:
            for text, start in question.answers:
                if context.text[start : start + len(text)] != text:
                    raise BadFileError(
                        f"{path}, line {number}: the answer of {question.id} does not stand at {start}."
                    )
        contexts.append(context)
    return contexts


def split(contexts: Sequence[Context]) -> Mapping[Part, list[Context]]:
    """The contexts by part, in order. An article that one set keeps back is kept back in every set."""
    parts: dict[Part, list[Context]] = {"train": [], "development": [], "test": []}
    for context in contexts:
        parts[part_of(context.title, context.source in _HASHED)].append(context)
    kept_back = {plain_title(c) for part in ("development", "test") for c in parts[part]}
    parts["train"] = [c for c in parts["train"] if plain_title(c) not in kept_back]
    return parts


def plain_title(context: Context) -> str:
    """The name of a context's article, with spaces for underscores."""
    return context.title.replace("_", " ")


def _file_of(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.is_file():
            return path
    raise NotFoundError(
        f"The training data {name}.jsonl.gz is not in {folder}; give the folder that holds it with --data."
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    read = gzip.open if path.suffix == ".gz" else open
    with read(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise BadFileError(f"{path}, line {number}: not JSON ({error}).") from None
