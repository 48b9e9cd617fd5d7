"""Lists of the names in a workspace: ``{kind: [{name, about}]}``.

Names and descriptions come from the registries' listings, and each list imports only the modules it needs, so listing
names stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rallebench.core.cards import Card
from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.own_folders import list_files
from rallebench.core.registered import Listed
from rallebench.core.registry import Registry, unknown

if TYPE_CHECKING:
    from rallebench.workspace.paths import WorkspaceFolder

Abouts = Mapping[str, str]
"""Name → one-line description."""


def _lines(registry: Registry[Any]) -> Abouts:
    return {name: item.about for name, item in registry.listings().items()}


def _chains(workspace: WorkspaceFolder) -> Abouts:
    abouts: dict[str, str] = {}
    for name in workspace.chain_paths():
        try:
            abouts[name] = workspace.chain(name).about
        except RalleError as error:
            abouts |= _unreadable({name: str(error)})
    return abouts


def _corpora(workspace: WorkspaceFolder) -> Abouts:
    corpora = workspace.corpus_cards()
    abouts = {
        name: f"{plural(card.passages, 'passage')} of {card.source}"
        for name, card in corpora.items()
    }
    return {**abouts, **_unreadable(workspace.damaged_corpora())}


def _retrievers(workspace: WorkspaceFolder) -> Abouts:
    damaged = workspace.all_manifests()[1] | workspace.damaged_combinations()
    return {**workspace.retrievers(), **_unreadable(damaged)}


def _unreadable(damaged: Abouts) -> dict[str, str]:
    return {name: f"cannot be read: {sentence}" for name, sentence in damaged.items()}


def _llms(workspace: WorkspaceFolder) -> Abouts:
    entries = workspace.llms().items()
    abouts = {name: e.about or f"{e.backend} {e.settings.get('model', '')}" for name, e in entries}
    return {**abouts, **_unreadable(workspace.damaged_llms())}


def _encoders(_: WorkspaceFolder) -> Abouts:
    from rallebench.encoders.references import encoders

    return encoders()


def _presets(_: WorkspaceFolder) -> Abouts:
    from rallebench.llms.presets import presets

    return {name: f"{preset.title}: {preset.about}" for name, preset in presets().items()}


def _metrics(judges: bool) -> Abouts:
    from rallebench.metrics import METRICS

    names = METRICS.judge_names() if judges else METRICS.plain_names()
    return {name: METRICS.listing(name).about for name in names}


def _index_kinds(_: WorkspaceFolder) -> Abouts:
    from rallebench.retrievers import INDEX_KINDS, kinds

    return {kind: INDEX_KINDS.listing(kind).about for kind in kinds()}


def _combinations(_: WorkspaceFolder) -> Abouts:
    from rallebench.retrievers import COMBINATIONS

    return _lines(COMBINATIONS)


def _backends(_: WorkspaceFolder) -> Abouts:
    from rallebench.llms import LLMS

    return _lines(LLMS)


def _datasets(workspace: WorkspaceFolder) -> Abouts:
    return {name: str(path) for name, path in workspace.dataset_paths().items()}


def _workflows(_: WorkspaceFolder) -> Abouts:
    from rallebench.workflows import WORKFLOWS

    return {"chain": "A saved chain: its actions in order.", **_lines(WORKFLOWS)}


def _environments(workspace: WorkspaceFolder) -> Abouts:
    from rallebench.environments import ENVIRONMENTS, environment_names

    abouts, servers = _lines(ENVIRONMENTS), workspace.mcp_servers.abouts()
    names = environment_names(servers)
    return {name: abouts.get(name) or servers[name.partition(":")[2]] for name in names}


def _tasks(workspace: WorkspaceFolder) -> Abouts:
    from rallebench.datasets import tasks

    return tasks.describe_tasks(workspace.dataset_paths())


def _scholars(workspace: WorkspaceFolder) -> Abouts:
    from rallebench.workspace.scholar_tables import scholar_tables

    return {name: str(path) for name, path in scholar_tables(workspace).items()}


def _published_abouts(_: WorkspaceFolder) -> Abouts:
    from rallebench.views import published

    return published.abouts()


def _runs(workspace: WorkspaceFolder) -> Abouts:
    abouts: dict[str, str] = {}
    if not list_files(workspace.runs, "*/run.json"):
        return abouts  # without the engine, which takes a while to import
    from rallebench.engine.store import list_runs

    for run in list_runs(workspace.runs):
        try:
            stored, now = run.description(), run.state()
            flow = stored.chain.name if stored.chain else stored.spec.workflow
        except RalleError as error:
            abouts |= _unreadable({run.name: str(error)})
        else:
            abouts[run.name] = f"{flow} on {stored.dataset}, {now.state}"
    return abouts


def _suites(_: WorkspaceFolder) -> Abouts:
    from rallebench.experiments import SUITES

    return {name: line(item) for name, item in SUITES.listings().items()}


_LISTINGS: dict[str, Callable[[WorkspaceFolder], Abouts]] = {
    "corpora": _corpora,
    "retrievers": _retrievers,
    "encoders": _encoders,
    "combinations": _combinations,
    "indexes": _index_kinds,
    "llms": _llms,
    "presets": _presets,
    "backends": _backends,
    "datasets": _datasets,
    "metrics": lambda _: _metrics(judges=False),
    "chains": _chains,
    "workflows": _workflows,
    "environments": _environments,
    "judges": lambda _: _metrics(judges=True),
    "tasks": _tasks,
    "scholars": _scholars,
    "published": _published_abouts,
    "suites": _suites,
    "runs": _runs,
}


def open_workspace(
    path: Path, base_settings: Path | None = None, mcp_servers: Path | None = None
) -> WorkspaceFolder:
    """Open a folder as a workspace, without loading models or starting jobs. Raises UsageError for a file."""
    from rallebench.workspace.paths import WorkspaceFolder

    return WorkspaceFolder(path, base_settings, mcp_servers)


def abouts(workspace: WorkspaceFolder, kind: str) -> Abouts:
    """Return the names of a kind with their descriptions. Raises NotFoundError."""
    if kind not in _LISTINGS:
        raise NotFoundError(unknown("kind", kind, [*_LISTINGS]))
    return _LISTINGS[kind](workspace)


def names(workspace: WorkspaceFolder, kind: str) -> Collection[str]:
    """Return the names of a kind, without reading every chain for its description. Raises NotFoundError."""
    return workspace.chain_paths() if kind == "chains" else abouts(workspace, kind)


def listing(
    workspace: WorkspaceFolder, kind: str | None = None, where: str = "", sort: str = ""
) -> Mapping[str, list[dict[str, str]]]:
    """Return {kind: [{name, about}]} of one kind or all, filtered and sorted; runs by all their columns, anything else by
    ``name`` and ``about``. Raises UsageError.
    """
    if not (where or sort):
        return {
            kind: [
                {"name": name, "about": about} for name, about in abouts(workspace, kind).items()
            ]
            for kind in (_LISTINGS if kind is None else (kind,))
        }
    if kind is None:
        raise UsageError("A filter or an order needs one kind of names, such as runs.")
    lines = abouts(workspace, kind)
    if kind == "runs":
        from rallebench.views import run_columns

        names = [row.name for row in run_columns.arrange_runs(workspace, where, sort)]
    else:
        names = _arrange_names(lines, where, sort)
    return {kind: [{"name": name, "about": lines.get(name, "")} for name in names]}


def _arrange_names(lines: Abouts, where: str, sort: str) -> list[str]:
    from rallebench.core.list_columns import Arrangement, ListColumn

    columns: tuple[ListColumn[tuple[str, str]], ...] = (
        ListColumn("name", "Name", "text", lambda line: line[0], searched=True),
        ListColumn("about", "About", "text", lambda line: line[1], searched=True),
    )
    return [name for name, _ in Arrangement(where, sort).apply(list(lines.items()), columns)]


def whole_card(metric: str) -> Card:
    """Return the card of a metric. Raises NotFoundError."""
    from rallebench.metrics import read_card

    return read_card(metric)


def line(item: Listed) -> str:
    """Return the description of an entry; for a suite, include the part that needs no download."""
    return " ".join(filter(None, (item.about, str(item.traits.get("ready", "")))))
