"""Names in a workspace with a line about each. A notebook shows this mapping as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rallebench.core.tables import Column, Table
from rallebench.core.terminal import visible
from rallebench.render import html, text


class Listing(Mapping[str, str]):
    """Name → one line about it.

    >>> Listing("chains", {"starter": "BM25 and the reader"})
    chains
      starter  BM25 and the reader
    """

    def __init__(self, kind: str, lines: Mapping[str, str]) -> None:
        self.kind, self._lines = kind, dict(lines)

    def __getitem__(self, name: str) -> str:
        return self._lines[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        width = max(map(len, self._lines), default=0)
        lines = [f"  {name:<{width}}  {about}".rstrip() for name, about in self._lines.items()]
        return visible("\n".join([self.kind, *(lines or ["  none"])]))

    def _repr_html_(self) -> str:
        return str(html.table(self.table))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._lines)

    @property
    def table(self) -> Table:
        columns = (Column(self.kind, "text"), Column("about", "text"))
        return Table("", columns, tuple(self._lines.items()))


class TableRepr:
    """A value shown as its ``table``, in a terminal and in a notebook."""

    @property
    def table(self) -> Table:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(text.table(self.table))

    def _repr_html_(self) -> str:
        return str(html.table(self.table))
