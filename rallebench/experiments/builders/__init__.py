"""Datasets of one's own, built in stages: every stage is a file of rows that a person may edit and continue from.

A builder is an experiment (:mod:`rallebench.core.experiments`) that yields a ``RowsRequest`` for each stage, is sent its rows
(``engine.rowfile.RowFile``), and returns a ``Report`` with the dataset's questions::

    @MAKERS.register("titles", form={"k": Setting(int, 1)})
    def titles(request):
        rows = yield RowsRequest("1-articles", "articles", lambda: read(request), make=lambda article: [article])
        return Report(questions=tuple(question_of(row) for row in rows if row["keep"]))

``settings["articles"]`` is a path or a corpus's name, '' if none was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.registry import Registry
from rallebench.core.settings import Setting, checked

Maker = Callable[[ExperimentRequest], Experiment]

MAKERS: Registry[Maker] = Registry(
    "maker of question sets",
    "rallebench.experiments.builders",
    traits={"articles": "whether it reads articles; default true"},
)


def settings_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a maker, those given as they were written. Raises UsageError."""
    known: Mapping[str, Setting] = MAKERS.entry(name).form
    return checked(f"maker {name!r}", known, values)
