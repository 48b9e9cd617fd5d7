"""Dataset builders: the request for one, what it has built so far, and its rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import Hint, NotFoundError, SettingError, UsageError
from rallebench.core.experiment_reports import BuilderReport, StageCounts
from rallebench.core.experiments import ExperimentRequest, ExperimentResult, Row
from rallebench.core.files import write_text
from rallebench.core.runs import RunOptions
from rallebench.engine.driver import dataset_file
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.rowfile import RowFile, count_rows
from rallebench.engine.rows import read_summaries
from rallebench.experiments import BUILDERS
from rallebench.llms import copies
from rallebench.workspace.paths import WorkspaceFolder

NOUN = BUILDERS.noun

UNTRACKED = RunOptions(track=False)
"""Options of a builder on the page; its requests are not logged to MLflow."""


@dataclass(frozen=True, slots=True)
class StoredBuilder:
    """The rows that a builder has built so far. ``stages``: label → counts of the rows in the files now; ``report`` None: not
    ended yet."""

    request: ExperimentRequest
    stages: Mapping[str, StageCounts]
    report: BuilderReport | None

    @property
    def maker(self) -> str:
        """Name of the builder."""
        return BUILDERS.strip_prefix(self.request.kind)


@dataclass(frozen=True, slots=True)
class StageRow:
    """A row of a stage. ``why``: the reason of a row that is left out; ``is_unread``: its verdict could not be read;
    ``texts``: the fields to show; ``whole``: the row as its file has it."""

    id: str
    title: str
    is_kept: bool
    why: str
    is_unread: bool
    is_checked: bool
    is_edited: bool
    texts: Mapping[str, str]
    whole: Row

    @classmethod
    def read(cls, row: Row) -> StageRow:
        """The row of a file."""
        texts = {name: as_line(row[name]) for name in SHOWN_FIELDS if row.get(name)}
        return cls(
            id=str(row["id"]),
            title=str(row.get("title") or ""),
            is_kept=bool(row["keep"]),
            why=str(row.get("why") or ""),
            is_unread=bool(row.get("unknown")),
            is_checked=bool(row.get(CHECKED)),
            is_edited=bool(row.get("edited")),
            texts=texts,
            whole=row,
        )


SHOWN_FIELDS = ("question", "answers", "content", "error")
"""Fields of a row that a list shows."""


def as_line(value: object) -> str:
    """The value of a field as one text."""
    return " · ".join(map(str, value)) if isinstance(value, list) else str(value)


def builder_request(
    workspace: WorkspaceFolder,
    maker: str,
    name: str,
    settings: Mapping[str, Any],
    articles: str = "",
    llm: str = "",
    limit: int | None = None,
) -> ExperimentRequest:
    """The request for a builder; its dataset has the builder's name. ``settings``: as written. ``limit``: the most articles or
    questions. Raises UsageError."""
    settings = BUILDERS.settings(maker, settings)
    if limit is not None and limit < 1:
        raise SettingError("limit", limit, "at least 1; leave it out for all")
    if articles and settings.get("articles"):
        raise UsageError(
            "The articles are given twice, also by the setting articles.",
            hint=Hint("leave-out", "articles"),
        )
    place = Path(articles).expanduser()
    where = str(place.resolve()) if articles and place.exists() else articles
    values = {**settings, "articles": where or settings.get("articles", "")}
    target = dataset_file(workspace.path, name)
    if workspace.dataset_paths().get(name, target) != target:
        raise UsageError(f"A dataset {name!r} exists already.", hint=Hint("rename"))
    return ExperimentRequest(workspace, llm, values, limit, kind=BUILDERS.kind(maker), name=name)


def report(result: ExperimentResult) -> BuilderReport:
    """The counts of every stage, then the builder's own."""
    request, own = result.request, result.report
    stages = {filled.label: filled.counts for filled in result.rows}
    for run in result.runs:
        stages[run.request.label] = StageCounts(
            run.n, run.n, run.n - run.n_errors, failed=run.n_errors
        )
    return BuilderReport(
        BUILDERS.strip_prefix(request.kind),
        request.name,
        request.settings["articles"],
        request.llm,
        {k: v for k, v in request.settings.items() if k != "articles"},
        len(own.questions),
        own.data,
        stages,
        own.notes,
        result.files,
        str(result.folder),
    )


def writers(workspace: WorkspaceFolder) -> list[str]:
    """The models that can write a question."""
    entries = workspace.llms().items()
    return [name for name, entry in entries if not copies(entry.backend)]


def builders_begun(workspace: WorkspaceFolder) -> list[str]:
    """The names of all builders that were begun, the newest first."""
    kinds = tuple(map(BUILDERS.kind, BUILDERS.names()))
    return ExperimentStore(workspace.path).names(kinds)


def open_builder(workspace: WorkspaceFolder, name: str) -> StoredBuilder:
    """The state of a builder, and the request to continue it. Raises UsageError, BadFileError."""
    stored = ExperimentStore(workspace.path).open(name, NOUN)
    if not BUILDERS.strip_prefix(stored.kind):
        raise UsageError(f"{name!r} is not a {NOUN}; choose one.")
    content = stored.request
    request = ExperimentRequest(
        workspace, content.llm, content.settings, content.limit, kind=stored.kind, name=name
    )
    summaries = read_summaries(request.folder)
    stages = {}
    for path in stage_files(request.folder):
        rows = current_rows(path)
        if summary := summaries.get(path.stem):
            rows.summary = summary.content
        stages[path.stem] = count_rows(rows)
    ended = stored.report if isinstance(stored.report, BuilderReport) else None
    return StoredBuilder(request, stages, ended)


def stage_files(folder: Path) -> list[Path]:
    """The stages' files, in order."""
    return sorted(folder.glob("[0-9]*-*.jsonl"))


def first_rows(
    workspace: WorkspaceFolder, name: str, stage: str, which: str, most: int = 8
) -> Iterator[StageRow]:
    """The first rows of a stage; ``which``: ``all``, ``kept``, ``left out`` or ``unknown``. Raises RalleError."""
    path = stage_file(workspace, name, stage)
    count = 0
    for row in map(StageRow.read, current_rows(path)):
        is_unknown = row.is_unread or "error" in row.texts
        if which == "all" or (
            is_unknown if which == "unknown" else row.is_kept == (which == "kept")
        ):
            yield row
            count += 1
            if count == most:
                return


def stage_file(workspace: WorkspaceFolder, name: str, stage: str) -> Path:
    """The file of a stage. Raises NotFoundError."""
    folder = ExperimentStore(workspace.path).folder(name)
    path = folder / f"{stage}.jsonl"
    if path not in stage_files(folder):
        raise NotFoundError(f"{name!r} has no stage {stage!r}.")
    return path


def stage_row(workspace: WorkspaceFolder, name: str, stage: str, row_id: str) -> Row:
    """A row as its file has it, the last of its id. Raises NotFoundError."""
    matching = [
        row
        for line in stage_file(workspace, name, stage).read_text("utf-8-sig").splitlines()
        if line.strip() and (row := json.loads(line))["id"] == row_id
    ]
    if not matching:
        raise NotFoundError(f"The stage {stage!r} of {name!r} has no row {row_id!r}.")
    last: Row = matching[-1]
    return last


def edit_row(workspace: WorkspaceFolder, name: str, stage: str, row_id: str, text: str) -> None:
    """Put a person's own row in the place of the last one of that id; its stamp tells later builds to keep it.

    Raises UsageError for a text that is not a row of that id.
    """
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The row is not valid JSON ({error}).") from None
    if not isinstance(row, dict) or row.get("id") != row_id:
        raise UsageError(f"The row must be a JSON object whose 'id' is {row_id!r}.")
    if not isinstance(row.get("keep", True), bool):
        raise UsageError("'keep' of a row must be true or false.")
    path = stage_file(workspace, name, stage)
    lines = path.read_text("utf-8-sig").splitlines()
    places = [
        i for i, line in enumerate(lines) if line.strip() and json.loads(line)["id"] == row_id
    ]
    if not places:
        raise NotFoundError(f"The stage {stage!r} of {name!r} has no row {row_id!r}.")
    lines[places[-1]] = json.dumps(row, ensure_ascii=False)
    write_text(path, "".join(f"{line}\n" for line in lines))


CHECKED = "checked"
"""The field of a row that a person has accepted, corrected or rejected."""
SOURCES = re.compile(r"text|content|beginning|news\d+|newsBeginning|newsRemainder")
"""Fields of a row that hold articles, which cannot be corrected."""
OWN_FIELDS = frozenset(
    [
        "id",
        "from",
        "keep",
        "why",
        "stamp",
        "edited",
        "asked",
        "said",
        "error",
        "title",
        "date",
        "url",
    ]
)
"""Fields of a row that say how it was made and of which article."""


def check_progress(
    workspace: WorkspaceFolder, name: str, stage: str
) -> tuple[int, int, StageRow | None]:
    """(checked rows, rows to be checked in all, the first that is not) of a stage whose rows have something to correct: those that
    are kept, and those that a person has left out."""
    done, count = 0, 0
    first: StageRow | None = None
    for row in map(StageRow.read, current_rows(stage_file(workspace, name, stage))):
        if row.is_checked or (row.is_kept and fields_to_check(row.whole)[0]):
            done, count = done + row.is_checked, count + 1
            first = row if first is None and not row.is_checked else first
    return done, count, first


def fields_to_check(row: Row) -> tuple[dict[str, str], dict[str, str]]:
    """(fields that a person may correct, lists line by line; the texts of articles) of a row."""
    values = {key: value for key, value in row.items() if key not in OWN_FIELDS}
    values.pop(CHECKED, None)
    sources = {k: v for k, v in values.items() if isinstance(v, str) and SOURCES.fullmatch(k)}
    editable = {}
    for key, value in values.items():
        if isinstance(value, str) and key not in sources:
            editable[key] = value
        elif key == "answers" and isinstance(value, list):
            editable[key] = "\n".join(map(str, value))
    return editable, sources


def check_row(
    workspace: WorkspaceFolder,
    name: str,
    stage: str,
    row_id: str,
    fields: Mapping[str, str],
    *,
    keep: bool,
) -> None:
    """Store a person's judgement of a row with the corrected fields. Raises UsageError for a field that the row lacks or that is
    empty in a row to keep."""
    row = stage_row(workspace, name, stage, row_id)
    editable, _ = fields_to_check(row)
    for key, value in fields.items():
        if key not in editable:
            raise UsageError(f"The row {row_id!r} has no field {key!r} to correct.")
        if keep and editable[key].strip() and not value.strip():
            raise UsageError(f"{key} is empty; fill it in, or leave the row out.", f"f:{key}")
        lines = [line.strip() for line in value.splitlines() if line.strip()]
        row[key] = lines if isinstance(row[key], list) else value.strip()
    row |= {"keep": keep, CHECKED: True}
    edit_row(workspace, name, stage, row_id, json.dumps(row, ensure_ascii=False))


def current_rows(path: Path) -> RowFile:
    """The rows that a file holds now."""
    rows = RowFile(path)
    rows.settle_all()
    return rows
