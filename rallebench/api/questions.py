"""Datasets as values: sequences of questions with their gold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, overload

from rallebench.api.listing import TableRepr
from rallebench.api.progress import follow
from rallebench.api.wording import in_python
from rallebench.core.hub_names import is_hub_name
from rallebench.core.numbers import plural
from rallebench.core.tables import Column, Table
from rallebench.core.types import Example
from rallebench.services.questions import read_dataset

if TYPE_CHECKING:
    import pandas as pd

FIRST_ROWS = 10
"""Questions in a dataset's table."""


@dataclass(frozen=True, repr=False)
class Dataset(TableRepr, Sequence[Example]):
    """Questions in order; slices are datasets, too. ``reference``: the name or path of a stored dataset, '' for a part or
    a list.

    >>> moons = load_dataset([{"question": "Which moon?", "answers": ["Titan"]}, "Which sea?"])
    >>> len(moons), moons[0].gold.answers, len(moons[:1])
    (2, ('Titan',), 1)
    """

    name: str
    examples: tuple[Example, ...]
    reference: str = ""

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Example | Dataset:
        if isinstance(index, slice):
            return Dataset(self.name, self.examples[index])
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def table(self) -> Table:
        """The first questions with their gold answers."""
        rows = tuple(
            (e.question.qid, e.question.text, " | ".join(e.gold.answers), len(e.gold.pages))
            for e in self.examples[:FIRST_ROWS]
        )
        columns = tuple(
            Column(label, "text") for label in ("id", "question", "answers", "gold pages")
        )
        title = f"{self.name}: {plural(len(self), 'question')}"
        note = f"The first {FIRST_ROWS} are shown." if len(self) > FIRST_ROWS else ""
        return Table(title, columns, rows, note=note)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per question, indexed by id: question, answers (tuple), pages (tuple)."""
        import pandas as pd

        columns = {
            "question": [e.question.text for e in self],
            "answers": [e.gold.answers for e in self],
            "pages": [tuple(sorted(e.gold.pages)) for e in self],
        }
        return pd.DataFrame(columns, index=pd.Index([e.question.qid for e in self], name="qid"))


def expand(source: str | Path) -> Path | str:
    """Return a path with ``~`` replaced, or a name of the hub as it is."""
    return str(source) if is_hub_name(source) else Path(source).expanduser()


@in_python
def load_dataset(
    source: str | Path | Iterable[str | Mapping[str, object] | Example],
    *,
    name: str = "",
    columns: Mapping[str, str] | None = None,
) -> Dataset:
    """Return the dataset in a file or folder of any known format, of a name, of a name of the Hugging Face hub
    (``"hf:rajpurkar/squad_v2?split=validation"``), or in a list of questions.

    A list holds texts, records with ``question``, ``answers`` and ``page_id`` (or in KILT's form), or examples. ``name``: its
    name in runs. ``columns``: for a table whose names do not tell, as in ``{"question": "q", "answer": "answers.text"}``. A name is looked up among the datasets that come with rallebench, and in the workspace of the present
    folder; ``Workspace.dataset`` knows those of another workspace. Raises RalleError for a bad row.

    >>> len(load_dataset("starter-qa"))
    222
    """
    own_name, examples, reference = follow(read_dataset(Path(), source, columns), "read", None)
    return Dataset(name or own_name, examples, "" if name else reference)
