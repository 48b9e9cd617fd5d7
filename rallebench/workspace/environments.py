"""Making an environment from a name and settings: the files it needs are found, checked and opened here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rallebench.core.backends import Tool
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.files import disk_error, sha256_file
from rallebench.core.own_folders import list_files
from rallebench.core.parts import beside, check_name, move_in
from rallebench.core.registry import unknown
from rallebench.core.settings import Setting, check_values, fill
from rallebench.core.starter import STARTER, STARTER_CORPUS, STARTER_INDEXES, STARTER_PAGES
from rallebench.core.types import Json, digest
from rallebench.corpora.cards import PASSAGES, read_card
from rallebench.corpora.page_maps import read_page_map
from rallebench.corpora.reading import read_corpus
from rallebench.corpora.store import PassageStore, write_store
from rallebench.environments import MakeEnvironment, environment_entry
from rallebench.environments.mcp_servers.calls import CallSettings, McpTool, list_tools
from rallebench.environments.mcp_servers.listing import choose
from rallebench.environments.mcp_servers.ready import ReadyServer, fill_in
from rallebench.environments.pages import NoPages, PageStore, write_pages
from rallebench.environments.scholars.apis import ScholarTool
from rallebench.environments.scholars.building import ImportedScholars, build_table
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.scholar_tables import STARTER_TABLE, scholar_tables


@dataclass(frozen=True)
class Acting:
    """An environment, ready for use. ``make``: creates one for an episode; ``retrievers``: names to load; ``tools``: other tools
    of its flows, for ``Backends.tools``; ``settings``: all of them, checked; ``fingerprint``: changes with anything that affects
    an observation, except the retrievers, which have their own, and ``digests``: tool of a server → digest of its description."""

    name: str
    make: MakeEnvironment
    retrievers: tuple[str, ...] = ()
    tools: Mapping[str, Tool] = field(default_factory=dict)
    settings: Json = field(default_factory=dict)
    fingerprint: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)


def environment_settings(name: str, settings: Json) -> Json:
    """Return all settings of an environment; given ones are checked. Raises UsageError."""
    known: Mapping[str, Setting] = environment_entry(name).form
    return check_values(f"environment {name!r}", known, settings)


def make_environment(
    workspace: WorkspaceFolder, name: str, settings: Json, *, unbuilt: bool = False
) -> Acting:
    """Make the environment ``name`` with these settings. Raises UsageError before anything is written.

    When a corpus is first opened by pages, it is read once (about a minute for ten million passages) and the look-up tables
    are kept in ``cache/``. Retrievers are not loaded here. ``unbuilt``: the retriever is an index that a plan expects; it is
    not opened and has no pages.
    """
    entry = environment_entry(name)
    traits = entry.traits
    values = environment_settings(name, settings)
    retrievers: tuple[str, ...] = ()
    more: dict[str, Any] = {}
    tools: dict[str, Tool] = {}
    marks: list[str] = []
    if traits.get("retriever"):
        if not unbuilt:
            workspace.component_indexes(values["retriever"])
        retrievers = (values["retriever"],)
    if traits.get("pages"):
        where = values["retriever"], values["corpus"]
        more["pages"] = NoPages() if unbuilt else open_pages(workspace, *where)
        marks.append(more["pages"].fingerprint)
    if traits.get("table"):
        table = scholar_table(workspace, values["table"])
        more["tool"] = f"scholars:{values['table']}"
        tools[more["tool"]] = table
        marks.append(table.fingerprint)
    digests: dict[str, str] = {}
    if traits.get("server"):
        server = _ready_server(workspace, name)
        limits = fill(CallSettings, values)
        offered = choose(server.name, list_tools(server), limits.tools)
        more |= {"tool": name, "offered": offered}
        tools[name] = McpTool(server, offered, limits)
        digests = {tool.listed.name: tool.listed.digest for tool in offered}
    make = entry.value(**values, **more)
    fingerprint = digest([name, values, marks])[:12]
    return Acting(name, make, retrievers, tools, values, fingerprint, digests)


def _ready_server(workspace: WorkspaceFolder, name: str) -> ReadyServer:
    """Return the server in an environment's name. Raises NotFoundError, and UsageError for a variable that is not set."""
    server = name.partition(":")[2]
    return fill_in(server, workspace.mcp_servers.server(server))


def open_pages(workspace: WorkspaceFolder, retriever: str, corpus: str = "") -> PageStore:
    """Open the pages of an imported corpus, or of the first index behind a retriever. Raises UsageError."""
    folder, sha = _find_store(workspace, retriever, corpus)
    cache = workspace.cache / "pages"
    name = f"{sha[:16]}-1" if folder else f"starter-{sha256_file(STARTER_CORPUS)[:16]}-1"
    try:
        if not (cache / name).is_dir():
            with beside(cache, name) as half:
                if folder is None:
                    pages = read_page_map(STARTER_PAGES)
                    write_store(half, read_corpus(STARTER_CORPUS, pages))
                write_pages(PassageStore(folder or half), half)
                move_in(half, cache / name)  # if another process was faster, both are the same
    except OSError as error:
        raise disk_error(cache / name, error) from error
    store = folder or cache / name
    return PageStore(PassageStore(store), cache / name, sha or sha256_file(store / PASSAGES))


def _find_store(workspace: WorkspaceFolder, retriever: str, corpus: str) -> tuple[Path | None, str]:
    """Return the folder with the passages and their sha256; (None, '') for the starter's corpus until an index of it is built."""
    if corpus:
        folder = workspace.corpora / corpus
        if not (folder / PASSAGES).exists():
            known = [path.parent.name for path in list_files(workspace.corpora, f"*/{PASSAGES}")]
            raise NotFoundError(unknown("imported corpus", corpus, known))
        return folder, read_card(folder).sha256
    index = workspace.component_indexes(retriever)[0]
    index_folder = workspace.index_folder(index)
    if index_folder is not None and (index_folder / PASSAGES).exists():
        return index_folder, read_manifest(index_folder).corpus_sha256
    if index in STARTER_INDEXES:
        return None, ""
    raise NotFoundError(
        f"The retriever {retriever!r} keeps no passages, so its pages cannot be opened; name an imported corpus with corpus=NAME."
    )


# scholar tables


def scholar_table(workspace: WorkspaceFolder, name: str) -> ScholarTool:
    """Open a scholar table by name. Raises NotFoundError, BadFileError for a damaged one, BackendError if the disk is full."""
    tables = scholar_tables(workspace)
    if name not in tables:
        raise NotFoundError(unknown("scholar table", name, list(tables)))
    path = tables[name]
    if name == STARTER_TABLE and not path.exists():
        build_table(path, STARTER / "scholars")
    return ScholarTool(path)


def import_scholars(
    workspace: WorkspaceFolder, name: str, source: Path, *, skip_bad: bool = False
) -> ImportedScholars:
    """Build a scholar table from files; see ``environments.scholars.building``.

    A table of that name with equal rows is kept. Raises UsageError if a different one has the name.
    """
    if name == STARTER_TABLE:
        raise UsageError(
            f"{STARTER_TABLE!r} is the name of the starter's own table; choose another."
        )
    target = workspace.path / "scholars" / f"{check_name('scholar table', name)}.sqlite"
    return build_table(target, source, skip_bad=skip_bad)
