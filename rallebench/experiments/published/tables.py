"""Tables printed in papers, as values.

Percentages are stored as printed; ``null`` is a cell without a figure. ``source`` names the paper and its table; ``doubts``
lists contradictions with other figures in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rallebench.core.files import read_object

FREE = "free"
"""``columns`` of a file with facts from a paper's running text; each row has its own columns."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A row. ``values``: column → printed figure, or None; ``brackets``: column → second figure in the cell. ``own``: true for
    our row in the form of a printed one; its values are means."""

    system: str
    settings: Mapping[str, Any]
    values: Mapping[str, Any]
    brackets: Mapping[str, float] = field(default_factory=dict)
    own: bool = False


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A printed table. ``columns``: () if every row has its own. ``units``, ``digits``: one value for all columns, or a
    mapping from column, pattern or ``default``; ``digits`` counts decimal places, with -3 for thousands. ``n``: number of
    questions, or a mapping from a set or language; None if not printed."""

    name: str
    about: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    units: Any
    digits: Any
    doubts: tuple[str, ...]
    split: str = ""
    n: Any = None

    def row(self, system: str = "", **settings: Any) -> PublishedRow:
        """The row of a system ('' for any) with these settings. Raises LookupError unless exactly one row matches."""
        rows = [
            row
            for row in self.rows
            if system in ("", row.system)
            and all(row.settings.get(key) == value for key, value in settings.items())
        ]
        if len(rows) != 1:
            raise LookupError(
                f"{self.name} has {len(rows)} rows of {system or 'any system'} with {settings}."
            )
        return rows[0]

    def shares(self, row: PublishedRow, *, brackets: bool = False) -> dict[str, float]:
        """Column → a printed percentage as a share from 0 to 1, without empty cells."""
        cells = row.brackets if brackets else row.values
        return {
            column: round(value / 100, 6) for column, value in cells.items() if value is not None
        }

    def unit(self, column: str) -> str:
        """The unit of a column's values, or ''."""
        return str(_find_entry(self.units, column, ""))

    def cell_text(self, row: PublishedRow, column: str) -> str:
        """A cell as printed; '' for an empty cell.

        >>> row = PublishedRow("Baseline", {}, {"tokens": 14_000, "relevance": 4.8})
        >>> digits = {"tokens": -3, "default": 2}
        >>> table = PublishedTable("t", "", "", ("tokens", "relevance"), (row,), "", digits, ())
        >>> table.cell_text(row, "tokens"), table.cell_text(row, "relevance")
        ('14k', '4.80')
        """
        value = row.values[column]
        if value is None or isinstance(value, str):
            return value or ""
        return self.number(column, value)

    def number(self, column: str, value: float) -> str:
        """A number with the precision printed in a column."""
        digits = _find_entry(self.digits, column, 0)
        return f"{value / 1000:.0f}k" if digits < 0 else f"{value:.{digits}f}"


def read_table(path: Path) -> PublishedTable:
    """Read the table in a file; the file's stem is the table's name."""
    value = read_object(path)
    rows = (
        PublishedRow(row["system"], row["settings"], row["values"], row.get("brackets", {}))
        for row in value["rows"]
    )
    return PublishedTable(
        path.stem,
        value["about"],
        value["source"],
        () if value["columns"] == FREE else tuple(value["columns"]),
        tuple(rows),
        value["units"],
        value.get("decimals", 0),
        tuple(value["doubts"]),
        value.get("split") or "",
        value.get("n"),
    )


def _find_entry(by_column: Any, column: str, absent: Any) -> Any:
    """The entry for a column: its own, a matching pattern's, or the default."""
    if not isinstance(by_column, Mapping):
        return by_column
    pattern = next((key for key in by_column if "*" in key and fnmatch(column, key)), "default")
    return by_column.get(column, by_column.get(pattern, absent))
