"""Dataset builders: create a request, and read, check and edit the rows built so far."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import Hint, NotFoundError, SettingError, UsageError
from rallebench.core.experiment_reports import BuilderReport, StageCounts
from rallebench.core.experiments import ExperimentRequest, ExperimentResult, Row
from rallebench.core.files import write_text
from rallebench.core.runs import RunOptions
from rallebench.core.types import Json
from rallebench.engine.driver import dataset_file
from rallebench.engine.experiment_store import ExperimentStore
from rallebench.engine.rowfile import RowFile, count_rows
from rallebench.engine.rows import read_summaries
from rallebench.experiments import BUILDERS
from rallebench.llms import copies
from rallebench.workspace.paths import WorkspaceFolder

NOUN = BUILDERS.noun

UNTRACKED = RunOptions(track=False)
"""Options for builders started on the page: their requests are not logged to MLflow."""


@dataclass(frozen=True, slots=True)
class StoredBuilder:
    """The rows built so far. ``stages``: label → counts of the rows in the current files. ``report``: None until the
    builder has finished.
    """

    request: ExperimentRequest[WorkspaceFolder]
    stages: Mapping[str, StageCounts]
    report: BuilderReport | None

    @property
    def maker(self) -> str:
        """Name of the builder."""
        return BUILDERS.strip_prefix(self.request.kind)


@dataclass(frozen=True, slots=True)
class StageRow:
    """A row of a stage. ``why``: the reason if it was dropped; ``is_unread``: its verdict could not be parsed;
    ``texts``: the fields to show; ``whole``: the row as stored in the file.
    """

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
        """Convert a row from its file."""
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
"""Row fields shown in lists."""


def as_line(value: object) -> str:
    """Return a field's value as one text."""
    return " · ".join(map(str, value)) if isinstance(value, list) else str(value)


def builder_request(
    workspace: WorkspaceFolder,
    maker: str,
    name: str,
    settings: Json,
    articles: str = "",
    llm: str = "",
    limit: int | None = None,
) -> ExperimentRequest[WorkspaceFolder]:
    """Return the request for a builder; its dataset takes the builder's name. ``settings``: unparsed values.
    ``limit``: the maximum number of articles or questions. Raises UsageError.
    """
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
    """Return the counts of every stage, followed by the builder's own counts."""
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
    """Names of the models that can write questions."""
    entries = workspace.llms().items()
    return [name for name, entry in entries if not copies(entry.backend)]


def builders_begun(workspace: WorkspaceFolder) -> list[str]:
    """Names of all builders that were started, newest first."""
    kinds = tuple(map(BUILDERS.kind, BUILDERS.names()))
    return ExperimentStore(workspace.path).names(kinds)


def open_builder(workspace: WorkspaceFolder, name: str) -> StoredBuilder:
    """Return the state of a builder with the request that continues it. Raises UsageError, BadFileError."""
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
    """Files of the stages, in order."""
    return sorted(folder.glob("[0-9]*-*.jsonl"))


def first_rows(
    workspace: WorkspaceFolder, name: str, stage: str, which: str, most: int = 8
) -> Iterator[StageRow]:
    """Yield the first rows of a stage; ``which``: ``all``, ``kept``, ``left out`` or ``unknown``. Raises RalleError."""
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
    """Return the file of a stage. Raises NotFoundError."""
    folder = ExperimentStore(workspace.path).folder(name)
    path = folder / f"{stage}.jsonl"
    if path not in stage_files(folder):
        raise NotFoundError(f"{name!r} has no stage {stage!r}.")
    return path


def stage_row(workspace: WorkspaceFolder, name: str, stage: str, row_id: str) -> Row:
    """Return a row as stored in the file; if an id occurs several times, the last one. Raises NotFoundError."""
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
    """Replace the last row of that id by a row that a person edited; its mark tells later builds to keep it.

    Raises UsageError if the text is not a row with that id.
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
"""Field that marks a row as accepted, corrected or rejected by a person."""
SOURCES = re.compile(r"text|content|beginning|news\d+|newsBeginning|newsRemainder")
"""Fields of a row that hold articles; they cannot be corrected."""
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
"""Fields of a row that record its origin: how it was made, and from which article."""


def check_progress(
    workspace: WorkspaceFolder, name: str, stage: str
) -> tuple[int, int, StageRow | None]:
    """Return (number of checked rows, number of rows to check, first unchecked row) of a stage whose rows can be
    corrected. Rows to check are the kept rows and those that a person dropped.
    """
    done, count = 0, 0
    first: StageRow | None = None
    for row in map(StageRow.read, current_rows(stage_file(workspace, name, stage))):
        if row.is_checked or (row.is_kept and fields_to_check(row.whole)[0]):
            done, count = done + row.is_checked, count + 1
            first = row if first is None and not row.is_checked else first
    return done, count, first


def fields_to_check(row: Row) -> tuple[dict[str, str], dict[str, str]]:
    """Return (fields that a person may correct, with lists one item per line; texts of the articles) of a row."""
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
    """Store a person's verdict on a row with the corrected fields. Raises UsageError if the row has no such field,
    or if a field of a kept row is empty.
    """
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
    """Return the current rows of a file."""
    rows = RowFile(path)
    rows.settle_all()
    return rows
