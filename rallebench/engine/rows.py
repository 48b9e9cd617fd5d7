"""Fill a file of rows: a function, or models through the one loop, gives the rows of inputs that have none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from rallebench.core.errors import BadFileError
from rallebench.core.events import Finished, Operation, Progress, under
from rallebench.core.experiments import FilledRows, In, RowsRequest
from rallebench.core.files import write_json
from rallebench.core.json_values import JsonValue, as_json, object_json
from rallebench.core.own_files import parse, read_sealed
from rallebench.core.runs import RunOptions
from rallebench.core.strict_numbers import Count
from rallebench.core.types import Episode, Flow, Json, Question
from rallebench.engine import loop
from rallebench.engine.answer import FIRST_FAILURES, all_failed, check_errors
from rallebench.engine.ports import WorkContext
from rallebench.engine.rowfile import RowFile, count_rows, short, with_costs
from rallebench.engine.spending import charge, charged_batch, charged_prices

SUMMARIES = "summaries.json"
"""Summaries of the inputs of files of rows: label → summary."""
PROGRESS_EVERY = 0.3
"""Seconds between two progress events."""


MEND = "remove it and build again, which makes it anew from the rows"


KEYS = {"source": "of", "content": "told"}
"""Field of a summary → its key."""


def _key(name: str) -> str:
    """The JSON key of a field."""
    return KEYS.get(name, name)


@dataclass(frozen=True, slots=True)
class StoredSummary:
    """The entry of a file of rows in ``summaries.json``. ``source``: a digest of the inputs' source; ``content``: the
    summary in its request."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"alias_generator": _key}

    source: str
    content: Json

    def to_json(self) -> dict[str, JsonValue]:
        """The entry as JSON."""
        return {"of": self.source, "told": self.content}

    @classmethod
    def from_json(cls, value: object, *, path: Path) -> StoredSummary:
        """The summary in ``value``, read from the file ``path``. Raises BadFileError."""
        parse(value, _Summary, path, MEND)
        return parse(value, cls, path, MEND)


@dataclass(frozen=True, slots=True)
class _LeftOut:
    left_out: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Summary:
    """The checked part of a summary. Further entries belong to the experiment."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"alias_generator": _key}

    content: _LeftOut


class RowsFiller:
    """Fills the files of rows of one experiment, in ``folder``. ``on_open`` is called before the first row is written."""

    def __init__(
        self, folder: Path, context: WorkContext, options: RunOptions, on_open: Callable[[], None]
    ) -> None:
        self._folder, self._context, self._options = folder, context, options
        self._on_open = on_open
        self._files: list[RowFile] = []
        self._errors, self._message = 0, ""
        self._progress_at = 0.0
        self.filled: list[FilledRows] = []

    def fill(self, request: RowsRequest[In]) -> Operation[RowFile]:
        """Fill the rows of one request. Raises RalleError; finished rows stay in the file."""
        rows = RowFile(self._folder / f"{request.label}.jsonl")
        self._files.append(rows)
        try:
            summaries = read_summaries(self._folder)
        except BadFileError:  # made again below, from the inputs
            summaries = {}
        before = summaries.get(request.label)
        new, mark = 0, short(request.source)
        if request.source and before and before.source == mark and rows.path.exists():
            rows.settle_all()
            rows.summary = before.content
        else:
            new = yield from (self._make if request.flow is None else self._ask)(request, rows)
            rows.summary = request.summary()
        rows.close()
        if request.source:
            summaries[request.label] = StoredSummary(mark, rows.summary)
            write_json(self._folder / SUMMARIES, as_json(summaries))
        filled = FilledRows(request.label, request.about, rows.path, count_rows(rows, new))
        self.filled.append(filled)
        yield Finished(request.label, reused=not new, result=filled)
        return rows

    def close(self) -> None:
        for rows in self._files:
            rows.close()

    def _make(self, request: RowsRequest[In], rows: RowFile) -> Operation[int]:
        """Make the rows of a request without a model."""
        assert request.make is not None
        settled, new = [], 0
        for entry in request.inputs():
            stamp = short(request.depends_on(entry))
            self._on_open()
            if not rows.has(entry.id, stamp):
                added = request.make(entry)
                rows.add(entry.id, stamp, map(object_json, added))
                new += len(added)
            settled.append((entry.id, stamp))
            if time.monotonic() - self._progress_at >= PROGRESS_EVERY:
                self._progress_at = time.monotonic()
                yield Progress(request.label, len(settled))
        self._on_open()
        rows.settle(settled)
        return new

    def _ask(self, request: RowsRequest[In], rows: RowFile) -> Operation[int]:
        """Make the rows of a request with models; each row is written as it arrives."""
        assert request.read is not None
        inputs = {entry.id: (entry, short(request.depends_on(entry))) for entry in request.inputs()}
        todo = [name for name, (_, stamp) in inputs.items() if not rows.has(name, stamp)]
        self._on_open()
        new, before = 0, len(inputs) - len(todo)
        yield Progress(request.label, before, len(inputs))
        if todo:
            backends = yield from under(request.label, self._context.load_models(request.llms))
            failures, budget = 0, self._options.budget
            prices = charged_prices(backends) if budget else {}
            if budget:
                budget.check()
            episodes = loop.run(
                flows(request, {name: entry for name, (entry, _) in inputs.items()}),
                (Question(name, "") for name in todo),
                backends,
                workflow=f"make {request.label}",
                reply_cache=self._context.reply_cache(),
                batch_size=charged_batch(backends, prices, self._options.batch_size),
            )
            for number, episode in enumerate(episodes, 1):
                entry, stamp = inputs[episode.qid]
                added = request.read(entry, episode)
                rows.add(episode.qid, stamp, with_costs(map(object_json, added), episode))
                new += len(added)
                failures += bool(episode.error)
                self._check(episode, failures == number and not before, number, len(todo))
                if budget:
                    charge(budget, episode, prices)
                yield Progress(request.label, before + number, len(inputs))
        rows.settle((name, stamp) for name, (_, stamp) in inputs.items())
        return new

    def _check(self, episode: Episode, nothing_else: bool, number: int, total: int) -> None:
        if not episode.error:
            return
        self._errors += 1
        self._message = self._message or episode.error
        if nothing_else and number >= min(FIRST_FAILURES, total):
            raise all_failed("requests", number, self._message)
        check_errors("requests", self._errors, self._options.max_errors, self._message)


def flows(request: RowsRequest[In], inputs: Mapping[str, In]) -> Callable[[Question], Flow]:
    """The flow for an input. Its id is the question's."""
    ask = request.flow
    assert ask is not None
    return lambda question: ask(inputs[question.qid])


def read_summaries(folder: Path) -> dict[str, StoredSummary]:
    """Label → the summary of that file's inputs; {} before the first. Raises BadFileError."""
    path = folder / SUMMARIES
    stored = read_sealed(path, MEND) if path.exists() else {}
    return {label: StoredSummary.from_json(value, path=path) for label, value in stored.items()}
