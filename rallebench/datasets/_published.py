"""Common parts of the readers of published question sets: the fields of a record, its answer, its language.

A reader declares in a ``PublishedSet`` the fields of every record and the file to use. Rows of an incomplete file,
another version, another language or a split without answers are bad rows, and their message names that file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from rallebench.core.declining import UNANSWERABLE
from rallebench.core.letters import LATIN, main_script
from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets.kilt import first_rows

RecordOf = Callable[[Record], "Record | None"]
"""Row of a set → KILT record, None to leave the row out."""


@dataclass(frozen=True, slots=True)
class PublishedSet:
    """A published set. ``name``: as in its paper; ``fields``: present in every record; ``others``: fields of a similar set;
    ``take``: the file to use instead of a wrong one; ``inside``: the key of the list if the file is an object;
    ``copy``: fields of every record in a differently structured copy, as on Hugging Face, which has no object around its rows;
    ``like``: a further condition on a record, for fields with common names; ``english``: a question in another script is a bad
    row; ``answered``: a record without an answer is a bad row.
    """

    name: str
    fields: tuple[str, ...]
    take: str
    others: tuple[str, ...] = ()
    inside: str = ""
    copy: tuple[str, ...] = ()
    like: Callable[[Record], bool] = lambda row: True
    english: bool = True
    answered: bool = True

    def recognises(self, path: Path) -> bool:
        """Return whether the first rows of a file have the fields of this set."""
        rows = first_rows(path, self._list_key(path)) if path.is_file() else []
        return bool(rows) and all(
            not self._missing(row) and row.keys().isdisjoint(self.others) and self.like(row)
            for row in rows
        )

    def _list_key(self, path: Path) -> str:
        """Return the key of the list in a file; '' for a copy, which is a plain list or JSON lines."""
        plain = self.copy and path.is_file() and not first_rows(path, self.inside)
        return "" if plain else self.inside

    def _missing(self, row: Record) -> list[str]:
        """Return the fields that a record lacks; none for a record of the copy."""
        if self.copy and row.keys() >= set(self.copy):
            return []
        return [name for name in self.fields if name not in row]

    def register(
        self, form: str, about: str, record_of: RecordOf, sample: Mapping[str, str]
    ) -> None:
        """Register the set as a format under its name."""
        read = partial(self.records, record_of=record_of)
        DATASETS.register(form, about=about, recognises=self.recognises, sample=sample)(read)

    def rows(self, source: Source) -> Iterator[tuple[int, Record]]:
        """Yield (line, row) as stored."""
        return source.objects(self._list_key(source.path))

    def records(
        self,
        source: Source,
        record_of: RecordOf,
        rows: Iterable[tuple[int, Record]] | None = None,
    ) -> Iterator[tuple[int, Record]]:
        """Yield (line, record); a record without an id gets its number. ``rows``: by default those of ``rows``."""
        for number, (line, row) in enumerate(rows or self.rows(source), 1):
            if missing := self._missing(row):
                have = " and ".join(filter(None, [", ".join(self.fields[:-1]), self.fields[-1]]))
                source.bad(
                    line,
                    f" has no {', '.join(map(repr, missing))}; take {self.take}, whose records have {have}.",
                )
                continue
            try:
                record = record_of(row)
            except (LookupError, TypeError, ValueError, AttributeError):
                source.bad(line, f" has fields of another type than {self.name}; take {self.take}.")
                continue
            if record is None:
                continue
            answers = (str(element.get("answer") or "").strip() for element in record["output"])
            if self.answered and not any(answers) and not record.get(UNANSWERABLE):
                source.bad(line, f" has no answer, like a test set; take {self.take}.")
            elif self.english and main_script([str(record["input"])]) not in ("", LATIN):
                source.bad(
                    line,
                    f" is not in English, but {self.name} is; take {self.take}, or write your questions as JSON lines "
                    "with question and answer.",
                )
            else:
                name = record.get("id", "")
                yield line, {**record, "id": str(number) if name == "" else name}


def record(
    question: Any,
    answers: Sequence[Any],
    pages: Mapping[str, str] | None = None,
    sets: Iterable[Sequence[Record]] = (),
    **more: Any,
) -> Record:
    """Return a record in KILT's format. ``pages``: title → text of the gold pages (all needed together); a page's id is its title.
    ``sets``: further evidence sets, each an alternative; of several with the same pages and passages the first is kept.
    """
    provenance = [page(title, text) for title, text in (pages or {}).items()]
    output: list[Record] = [{"answer": _text(answer)} for answer in answers if answer is not None]
    if provenance:
        output[:1] = [{**(output[0] if output else {}), "provenance": provenance}]
    distinct: dict[frozenset[Any], list[Record]] = {}
    for together in sets:
        ids = frozenset((item["wikipedia_id"], item.get("doc_id")) for item in together)
        distinct.setdefault(ids, [*together])
    output += [{"provenance": group} for group in distinct.values() if group]
    return {"input": question, "output": output, **{k: v for k, v in more.items() if v is not None}}


def _text(answer: object) -> str:
    """Return an answer as stripped text. Raises TypeError for any value but a text or a finite number."""
    number = type(answer) in (int, float) and math.isfinite(cast(float, answer))
    if not number and not isinstance(answer, str):
        raise TypeError(answer)
    return str(answer).strip()


def page(title: Any, text: Any = "", **more: Any) -> Record:
    """Return a gold page whose id is its title."""
    return {"wikipedia_id": title, "title": title, **({"text": text} if text else {}), **more}


def yes_or_no(value: object) -> str | None:
    """Return the answer that a truth value stands for; None for a missing one. Raises TypeError for any other value.

    >>> yes_or_no(True), yes_or_no(False), yes_or_no(None)
    ('yes', 'no', None)
    """
    if value is not None and not isinstance(value, bool):
        raise TypeError(value)
    return None if value is None else "yes" if value else "no"
