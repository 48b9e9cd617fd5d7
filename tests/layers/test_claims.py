"""Claims of ``docs/architecture.md`` about imports, threads and settings hold in the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from project import PROJECT, modules

from rallebench.core.settings import Setting
from rallebench.views import catalog
from rallebench.workspace.paths import WorkspaceFolder

FACADES = ["__init__", "gui"]
"""Packages that programs of users import: their ``__all__`` lists what is for them."""
THREADS = {
    "services.jobs": "a job, and work that a job or a page waits for",
    "engine.loop": "one worker for each resource, which ends with its run",
    "engine.measure": "a timer that ends a measuring program",
    "http.deadline": "a connection that may be given up",
    "llms.openai_compatible": "the requests of one batch side by side",
    "encoders.openai_embeddings": "the requests of one batch side by side",
    "llms.transformers": "the text of one streamed answer",
    "tracking.live": "traces that wait for MLflow",
    "tracking.trace_store": "traces sent to a server side by side",
    "tracking.server": "the end of a server whose parent ended",
    "sandbox.sessions": "a timer that ends a program",
    "corpora._guarded": "a timer that ends the reader of a document",
    "environments.mcp_servers._limits": "the error output of a server's program",
    "environments.mcp_servers._session": "the event loop of a session with a server",
    "server.answering": "a request that is answered",
    "remote.mcp_server": "the reader of stdin, whose next line may never come",
    "remote.mcp_tools": "a call that is answered",
    "remote.mcp_resources": "a resource that is read",
}
"""Module → the threads that it starts."""
STARTS = frozenset(
    [
        "Thread",
        "Timer",
        "ThreadPoolExecutor",
        "ProcessPoolExecutor",
        "run_sync",
        "start_blocking_portal",
    ]
)
FRONT_ENDS = ("cli", "server", "gui", "api", "remote")


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, including those below ``if``, ``try`` and ``with``."""
    for node in body:
        yield node
        for part in ("body", "orelse", "handlers", "finalbody"):
            inner = getattr(node, part, [])
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from top_level(inner)


def definitions(tree: ast.Module) -> set[str]:
    """The names that a module defines, without imported ones."""
    names: set[str] = set()
    for node in top_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        else:
            stored = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            names |= {part.id for part in stored if isinstance(part.ctx, ast.Store)}
    return names


@cache
def known() -> dict[str, set[str]]:
    """Module → the names that it defines."""
    return {name: definitions(tree) for name, tree in modules().items()}


def borrowed(tree: ast.Module) -> Iterator[str]:
    """The names that a source imports from a module of ours which only imports them itself."""
    aliases: dict[str, str] = {}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == (
            "rallebench"
        ):
            module = (node.module or "").removeprefix("rallebench").lstrip(".")
            for alias in node.names:
                whole = f"{module}.{alias.name}".lstrip(".")
                if whole in known() and alias.name not in stored:
                    aliases[alias.asname or alias.name] = whole
                elif module and whole not in known() and alias.name not in known()[module]:
                    yield whole
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        module, name = aliases.get(node.value.id, ""), node.attr
        is_own = name in known().get(module, {name}) or f"{module}.{name}" in known()
        if module and not is_own and not name.startswith("__"):
            yield f"{module}.{name}"


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Path → syntax tree of the package, its tests, benchmarks and tools."""
    yield from modules().items()
    for folder in ("tests", "benchmarks", "tools"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            if "golden" not in path.parts:
                yield str(path.relative_to(PROJECT)), ast.parse(path.read_text(encoding="utf-8"))


def test_a_name_is_imported_from_the_module_that_defines_it() -> None:
    assert {f"{who}: {name}" for who, tree in sources() for name in borrowed(tree)} == set()


def test_only_facades_list_names_for_others() -> None:
    assert [name for name in known() if "__all__" in known()[name]] == FACADES


def test_a_borrowed_name_is_seen() -> None:
    source = "from rallebench.services.workbench import JobManager\nfrom rallebench.views import steps\nsteps.find_answers"
    assert list(borrowed(ast.parse(source))) == [
        "services.workbench.JobManager",
        "views.steps.find_answers",
    ]
    assert list(borrowed(ast.parse("from rallebench.services.jobs import JobManager"))) == []


def starts_threads(tree: ast.Module) -> bool:
    """Return whether a module makes a thread, a timer or a pool of threads."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (getattr(call, "attr", getattr(call, "id", "")) for call in calls)
    return not STARTS.isdisjoint(names)


def test_threads_are_started_where_this_test_says_why() -> None:
    assert {name for name, tree in modules().items() if starts_threads(tree)} == set(THREADS)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_front_ends_import_services_views_render_and_core_alone(front_end: str) -> None:
    imported = {
        (node.module or "").split(".")[1]
        for name, tree in modules().items()
        if name.split(".")[0] == front_end
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rallebench.")
    }
    # The verbs that start them, and the calls for other programs.
    entered = {"cli": {"gui", "server", "remote"}, "gui": {"remote"}}.get(front_end, set())
    assert imported <= {"services", "views", "render", "core", front_end, *entered}


def test_a_settings_kind_is_declared_and_never_read_from_its_key(tmp_path: Path) -> None:
    workspace = WorkspaceFolder(tmp_path)
    keys = ("llm", "retriever", "dataset", "index", "metric", "data", "path", "encoder")
    assert catalog.choices(workspace, {key: Setting(str, "") for key in keys}) == {}
    declared = catalog.choices(workspace, {"anything": Setting(str, "", names="llm")})
    assert declared == {"anything": list(workspace.llms())}


def test_only_front_ends_hold_the_whole_workbench() -> None:
    holders = {
        name
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation
        if "Workbench" in ast.unparse(node.annotation)
    }
    assert {name.split(".")[0] for name in holders} <= {"cli", "gui", "api", "remote"}
