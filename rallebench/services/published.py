"""The tables that five papers print, by paper and number, as tables for the page and for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.core.errors import NotFoundError
from rallebench.core.tables import Column, Table
from rallebench.experiments.published import PublishedTable, published_names, published_table

PAPERS: Mapping[str, str] = {
    "ralle": "RaLLe (KILT)",
    "rgb": "RGB",
    "crud": "CRUD-RAG",
    "barag": "BARAG",
    "reval": "R-Eval",
    "beir": "BEIR",
    "mtrag": "MTRAG",
    "browsecomp": "BrowseComp-Plus",
}
TEXT = "text"
"""The number of the table with figures from a paper's running text."""


def listed() -> dict[str, list[tuple[str, str]]]:
    """Paper → (reference, what the table has) of each of its tables."""
    tables: dict[str, list[tuple[str, str]]] = {paper: [] for paper in PAPERS}
    for name in published_names():
        tables.setdefault(name.partition("_")[0], []).append(
            (reference(name), published_table(name).about)
        )
    return tables


def reference(name: str) -> str:
    """The short name of a table.

    >>> reference("ralle_table2"), reference("rgb_text_facts")
    ('ralle:2', 'rgb:text')
    """
    paper, _, rest = name.partition("_")
    return f"{paper}:{rest.removeprefix('table') if rest.startswith('table') else TEXT}"


def opened(table: str) -> PublishedTable:
    """A table by its short name, as ``ralle:2``. Raises NotFoundError."""
    known = {reference(name): name for name in published_names()}
    if table not in known:
        raise NotFoundError(
            f"There is no published table {table!r}; there are {', '.join(list(known)[:6])} …"
        )
    return published_table(known[table])


def as_table(value: PublishedTable) -> Table:
    """The table as it is printed: a text a cell, the second value of a cell in brackets."""
    columns = value.columns or tuple(dict.fromkeys(c for row in value.rows for c in row.values))
    settings = list(dict.fromkeys(name for row in value.rows for name in row.settings))
    heads = [Column("System", "text"), *(Column(name, "text") for name in settings)]
    heads += [Column(c, "text", value.unit(c)) for c in columns]
    rows = []
    for row in value.rows:
        cells: list[Any] = [row.system, *(_plain(row.settings.get(name)) for name in settings)]
        for column in columns:
            figure = value.printed(row, column) if column in row.values else ""
            extra = row.brackets.get(column)
            cells.append(f"{figure} ({extra:g})" if extra is not None else figure)
        rows.append(tuple(cells))
    return Table(value.about, tuple(heads), tuple(rows), note=value.source)


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
