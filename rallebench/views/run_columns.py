"""The columns of the list of runs: facts, every metric, and the difference to the reference run of the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from rallebench.core.list_columns import Arrangement, Kind, ListColumn, column_mean
from rallebench.core.report import Estimate
from rallebench.core.run_results import RunSummary
from rallebench.metrics import METRICS
from rallebench.views import run_list
from rallebench.views.run_views import label
from rallebench.workspace.paths import WorkspaceFolder

RunColumn = ListColumn[RunSummary]
REFERENCE = "reference"
"""The column of differences to the reference run, as filters and addresses name it."""


def _targets(row: RunSummary, kind: str) -> str:
    actions = row.chain.actions if row.chain else ()
    names = (action.target for action in actions if action.kind == kind)
    return ", ".join(dict.fromkeys(name for name in names if name))


def _depth(row: RunSummary) -> float | None:
    depths = [a.k for a in (row.chain.actions if row.chain else ()) if a.kind == "retrieve"]
    return depths[-1] if depths else None


def _value(mean: Estimate | None) -> float | None:
    return mean.value if mean else None


FACTS: tuple[RunColumn, ...] = (
    ListColumn(
        "name", "Run", "text", lambda row: row.title, "its title", ("run", "title"), searched=True
    ),
    ListColumn(
        "dataset", "Dataset", "text", lambda row: row.dataset, aliases=("set",), searched=True
    ),
    ListColumn(
        "score", "Score", "share", lambda row: _value(row.mean), "its main metric", averaged=True
    ),
    ListColumn(
        "chain",
        "Chain",
        "text",
        lambda row: row.chain.name if row.chain else row.workflow,
        searched=True,
    ),
    ListColumn(
        "model",
        "Model",
        "text",
        lambda row: _targets(row, "generate"),
        aliases=("llm",),
        searched=True,
    ),
    ListColumn(
        "index", "Index", "text", lambda row: _targets(row, "retrieve"), aliases=("retriever",)
    ),
    ListColumn("k", "k", "count", _depth, "passages of its last retrieval"),
    ListColumn("tag", "Tags", "tags", lambda row: row.tags, aliases=("tags",), searched=True),
    ListColumn("note", "Note", "text", lambda row: row.note),
    ListColumn(
        "star",
        "Reference run",
        "text",
        lambda row: "yes" if row.is_reference else "no",
        "yes or no",
        ("starred",),
    ),
    ListColumn("experiment", "Experiment", "text", lambda row: row.experiment),
    ListColumn("created", "Created", "date", lambda row: row.created or None, aliases=("date",)),
    ListColumn("state", "State", "text", lambda row: (row.problem and "damaged") or row.state),
    ListColumn("questions", "Questions", "count", lambda row: row.total, aliases=("n",)),
    ListColumn("errors", "Failed questions", "count", lambda row: row.errors, averaged=True),
    ListColumn(
        "time",
        "A question",
        "seconds",
        lambda row: row.seconds,
        "seconds a question",
        averaged=True,
    ),
    ListColumn(
        "total_time", "Time in all", "seconds", lambda row: row.total_seconds, averaged=True
    ),
    ListColumn("tokens", "Tokens", "count", lambda row: row.tokens, "in and out", averaged=True),
    ListColumn("tokens_in", "Tokens in", "count", lambda row: row.prompt_tokens, averaged=True),
    ListColumn(
        "tokens_out", "Tokens out", "count", lambda row: row.completion_tokens, averaged=True
    ),
    ListColumn(
        "price", "Price", "usd", lambda row: row.usd, "US dollars", ("usd", "cost"), averaged=True
    ),
)
ALIASES = {"Rprec": ("r-precision",), "seconds": ("step_seconds",)}


def columns(workspace: WorkspaceFolder) -> tuple[RunColumn, ...]:
    """Return the columns of a workspace's runs: facts, metrics, and the difference to the reference run."""
    rows = run_list.rows(workspace)
    return _columns(rows) if len(rows) < 2 else _known_columns(rows)


_LAST: list[tuple[Sequence[RunSummary], tuple[RunColumn, ...]]] = []


def _known_columns(rows: Sequence[RunSummary]) -> tuple[RunColumn, ...]:
    """Return the columns of these rows, computed again only for other rows."""
    for known, result in _LAST:
        if known is rows:
            return result
    result = _columns(rows)
    _LAST[:] = [*_LAST[-3:], (rows, result)]
    return result


def _columns(rows: Sequence[RunSummary]) -> tuple[RunColumn, ...]:
    names = dict.fromkeys(chain.from_iterable(row.metrics for row in rows))
    references = {row.dataset: row for row in rows if row.is_reference}
    facts = {column.name for column in FACTS}
    metrics = [_metric_column(name, rows) for name in names if name not in facts]
    return (*FACTS, _difference_column(references), *metrics)


def _metric_column(name: str, rows: Iterable[RunSummary]) -> RunColumn:
    kind = _metric_kind(name)
    if kind is None:
        values = [_value(row.metrics.get(name)) for row in rows]
        kind = (
            "share" if all(0 <= value <= 1 for value in values if value is not None) else "number"
        )
    return ListColumn(
        name,
        label(name),
        kind,
        lambda row: _value(row.metrics.get(name)),
        aliases=ALIASES.get(name, ()),
        averaged=True,
    )


@lru_cache(maxsize=1000)
def _metric_kind(name: str) -> Kind | None:
    """Return the kind of a registered metric; None for an experiment's own."""
    base = name.partition(":")[0]
    if base not in METRICS:
        return None
    traits = METRICS.entry(base).traits
    unit = traits.get("unit")
    if unit == "fraction" and traits.get("range") == (0, 1):
        return "share"
    return "seconds" if unit == "seconds" else "number"


def difference(row: RunSummary, reference: RunSummary | None) -> float | None:
    """Return the difference of a run's main metric to the reference run's; None without a common metric, and for the
    reference run itself.
    """
    if reference is None or row.name == reference.name:
        return None
    mine, other = _value(row.mean), _value(reference.metrics.get(row.metric))
    return None if mine is None or other is None else mine - other


def _difference_column(references: Mapping[str, RunSummary]) -> RunColumn:
    return ListColumn(
        REFERENCE,
        "± vs reference",
        "share",
        lambda row: difference(row, references.get(row.dataset)),
        "difference of its main metric to the starred run of its dataset, in points",
    )


def arrange_runs(workspace: WorkspaceFolder, where: str = "", sort: str = "") -> list[RunSummary]:
    """Return the runs that fit a filter, in order. Raises UsageError."""
    rows = run_list.rows(workspace)
    if not (where or sort):
        return list(rows)
    for known, arrangement, result in _ARRANGED:
        if known is rows and arrangement == (where, sort):
            return result
    result = Arrangement(where, sort).apply(rows, columns(workspace))
    _ARRANGED[:] = [*_ARRANGED[-7:], (rows, (where, sort), result)]
    return result


_ARRANGED: list[tuple[Sequence[RunSummary], tuple[str, str], list[RunSummary]]] = []
"""The last lists, because a window asks for a list once for each part of its rows."""


def mean_over(rows: Sequence[RunSummary], column: RunColumn) -> float | None:
    """Return the mean of a column over runs; None where it would mix metrics or datasets."""
    if not column.averaged:
        return None
    scored = [row for row in rows if not row.problem]
    if column.name == "score" and len({row.metric for row in scored if row.mean}) > 1:
        return None
    is_metric = column.name == "score" or column not in FACTS
    if is_metric and len({row.dataset for row in scored}) > 1:
        return None
    return column_mean(scored, column)
