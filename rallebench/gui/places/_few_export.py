"""The grid of a few questions as rows of a table for other programs."""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.core.declining import accepted_answers
from rallebench.gui.places._few_table import Sheet
from rallebench.views.variants import cell_key


def export_rows(sheet: Sheet) -> Iterator[list[object]]:
    """Yield the heads of the grid, then a row for each question: its gold, and of every variant the whole answer, the
    verdict and the scores. Scores are empty before the answer.
    """
    labels = [sheet.label(chain) for chain in sheet.chains]
    series = [(column, own) for column in sheet.grid.columns for own in column.series]
    parts = ["answer", "verdict", sheet.metric, *(own.label for _, own in series)]
    heads = [f"{label}: {part}" for label in labels for part in parts]
    yield ["id", "question", "gold", "gold pages", *heads]
    for x in sheet.examples:
        row: list[object] = [x.question.qid, x.question.text]
        row += [list(accepted_answers(x.gold)), sorted(x.gold.pages)]
        for chain in sheet.chains:
            value = sheet.grid.cells.get(cell_key(chain, x))
            row += [value.answer, value.kind, value.score(sheet.metric)] if value else [None] * 3
            for column, own in series:
                scores = sheet.scores(chain, x, column)
                row.append(scores.values.get(own.name) if scores else None)
        yield row
