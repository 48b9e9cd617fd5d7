"""Common parts of the readers of published question sets: the fields of a record, its answer, its language.

A reader declares in a ``PublishedSet`` the fields of every record and the file to use. Rows of an incomplete file,
another version, another language or a split without answers are bad rows, and their message names that file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
    ``copy``: fields of every record in a differently structured copy, as on Hugging Face.
    """

    name: str
    fields: tuple[str, ...]
    take: str
    others: tuple[str, ...] = ()
    inside: str = ""
    copy: tuple[str, ...] = ()

    def recognises(self, path: Path) -> bool:
        """Return whether the first rows of a file have the fields of this set."""
        rows = first_rows(path, self.inside) if path.is_file() else []
        return bool(rows) and all(
            not self._missing(row) and row.keys().isdisjoint(self.others) for row in rows
        )

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

    def records(self, source: Source, record_of: RecordOf) -> Iterator[tuple[int, Record]]:
        """Yield (line, record); a record without an id gets its number."""
        for number, (line, row) in enumerate(source.objects(self.inside), 1):
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
            if not any(str(element.get("answer") or "").strip() for element in record["output"]):
                source.bad(line, f" has no answer, like a test set; take {self.take}.")
            elif main_script([str(record["input"])]) not in ("", LATIN):
                source.bad(
                    line,
                    f" is not in English, but {self.name} is; take {self.take}, or write your questions as JSON lines "
                    "with question and answer.",
                )
            else:
                yield line, {**record, "id": record.get("id") or str(number)}


def record(
    question: Any, answers: Sequence[Any], pages: Mapping[str, str] | None = None, **more: Any
) -> Record:
    """Return a record in KILT's format. ``pages``: title → text of the gold pages (all needed together); a page's id is its title."""
    provenance = [
        {"wikipedia_id": title, "title": title, **({"text": text} if text else {})}
        for title, text in (pages or {}).items()
    ]
    output: list[Record] = [
        {"answer": str(answer).strip()} for answer in answers if answer is not None
    ]
    if provenance:
        output[:1] = [{**(output[0] if output else {}), "provenance": provenance}]
    return {"input": question, "output": output, **{k: v for k, v in more.items() if v is not None}}
