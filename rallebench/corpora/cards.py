"""Cards of imported corpora: ``corpus.json`` in the folder of each."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.own_folders import list_files
from rallebench.core.sources import Problem
from rallebench.core.strict_numbers import Count

CARD, PASSAGES = "corpus.json", "passages.jsonl"


class Corpus(BaseModel):
    """``corpus.json``, the card of an imported corpus.

    ``sha256``: of ``passages.jsonl``, which holds ids, texts, titles and page ids in order. ``stamp``
    changes with the source's files. ``skipped``: number of bad rows; ``problems``: the first 20. ``warnings``: sentences
    about anything else in the source that was skipped or guessed. ``origin``: the source's name on a hub, with the commit, or
    ''; ``columns``: role → column, as given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["rallebench-corpus/1"] = "rallebench-corpus/1"
    name: str
    form: str
    source: str
    origin: str = ""
    columns: dict[str, str] = Field(default_factory=dict)
    stamp: str
    passages: Count
    skipped: Count = 0
    problems: list[Problem] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    has_pages: bool = False
    passages_without_page: Count = 0
    sha256: str
    files: dict[str, Count] = Field(default_factory=dict)
    bytes: Count = 0
    seconds: float = 0.0


def is_imported(path: Path) -> bool:
    """Return whether ``path`` is the folder of an imported corpus."""
    return (Path(path) / CARD).is_file() and (Path(path) / PASSAGES).is_file()


def read_card(folder: Path) -> Corpus:
    """Read the card of an imported corpus. Raises BadFileError if it was changed."""
    path = Path(folder) / CARD
    try:
        return Corpus.model_validate(read_json(path))
    except ValidationError:
        raise BadFileError(f"{path} was changed; import the corpus again.") from None


def imported_corpora(corpora: Path) -> dict[str, Corpus]:
    """Name → card of every corpus of a workspace, sorted, without damaged cards."""
    return corpus_cards(corpora)[0]


def corpus_cards(corpora: Path) -> tuple[dict[str, Corpus], dict[str, str]]:
    """Return name → card, and name → error of an unreadable card, of all corpora in a workspace, sorted."""
    good: dict[str, Corpus] = {}
    wrong: dict[str, str] = {}
    for path in list_files(Path(corpora), f"*/{CARD}"):
        try:
            good[path.parent.name] = read_card(path.parent)
        except BadFileError as error:
            wrong[path.parent.name] = str(error)
    return good, wrong
