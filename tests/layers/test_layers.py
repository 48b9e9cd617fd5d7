"""Layers: a package imports itself, ``core`` and the packages in its row; nothing else."""

from __future__ import annotations

import ast
from functools import cache
from graphlib import TopologicalSorter

import pytest
from project import PROJECT, modules

ROOT = PROJECT / "rallebench"
COMPONENTS = frozenset(
    {
        "corpora",
        "datasets",
        "vector_indexes",
        "reader",
        "chains",
        "sandbox",
        "encoders",
        "llms",
        "retrievers",
        "metrics",
        "environments",
        "workflows",
        "http",
        "checkpoints",
        "hub",
    }
)
ALLOWED: dict[str, frozenset[str]] = {
    "core": frozenset(),
    # 1: components. Files in, values out.
    "render": frozenset(),
    "http": frozenset(),
    "hub": frozenset(),
    "corpora": frozenset({"encoders"}),
    "datasets": frozenset(),
    "vector_indexes": frozenset(),
    "checkpoints": frozenset(),
    "reader": frozenset({"encoders", "checkpoints"}),
    "chains": frozenset(),
    "sandbox": frozenset(),
    "encoders": frozenset({"http", "checkpoints"}),
    "llms": frozenset({"http", "reader", "checkpoints"}),
    "retrievers": frozenset({"checkpoints", "corpora", "encoders", "vector_indexes"}),
    "metrics": frozenset({"encoders", "checkpoints", "reader"}),
    "environments": frozenset({"corpora"}),
    "workflows": frozenset({"environments", "sandbox"}),
    # 2: a workspace's names and files; the loop and the stores.
    "workspace": COMPONENTS,
    "engine": frozenset({"metrics", "datasets", "chains"}),
    # 3: read the engine's files.
    "analysis": frozenset({"metrics", "datasets", "workspace", "engine"}),
    "tracking": frozenset({"engine", "chains"}),
    # 4: declarations of runs.
    "experiments": (COMPONENTS - {"http", "checkpoints", "hub"})
    | {"workspace", "engine", "analysis"},
    # plug-ins: registries find them, so nothing imports them by name.
    "papers": (COMPONENTS - {"http", "checkpoints", "hub"})
    | {"workspace", "engine", "analysis", "experiments"},
    # 5: joins the others.
    "services": COMPONENTS | {"workspace", "engine", "analysis", "tracking", "experiments"},
    "views": COMPONENTS | {"workspace", "engine", "analysis", "experiments"},
    # 6: front ends.
    "cli": frozenset({"services", "views", "render"}),
    "server": frozenset({"services", "views", "render"}),
    "remote": frozenset({"services", "views"}),
    "gui": frozenset({"services", "views", "render", "remote"}),
    "api": frozenset({"services", "views", "render"}),
}
EXCEPTIONS = {
    ("__init__", "api"),
    ("__main__", "cli"),
    ("cli.ui", "gui"),
    ("cli.serve", "server"),
    ("cli.mcp", "remote"),
}
HEAVY = {
    "bitsandbytes",
    "bm25s",
    "diskannpy",
    "faiss",
    "gradio",
    "jieba",
    "milvus_lite",
    "mlflow",
    "openai",
    "pymilvus",
    "sacrebleu",
    "sentence_transformers",
    "torch",
    "transformers",
}


@cache
def imports(module: str) -> list[str]:
    """Every imported name, including imports inside functions."""
    names: list[str] = []
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def module_edges() -> dict[str, set[str]]:
    """Module → the modules of ours that it imports, also inside functions and for the type checker."""
    known, edges = modules(), {}
    for name, tree in known.items():
        targets = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rallebench."):
                module = (node.module or "").removeprefix("rallebench.")
                whole = {f"{module}.{alias.name}" for alias in node.names}
                targets |= (whole & known.keys()) or {module}
        edges[name] = (targets & known.keys()) - {name}
    return edges


def package_edges() -> dict[str, set[str]]:
    """Module → the packages of ours that it imports besides its own and ``core``."""
    edges: dict[str, set[str]] = {}
    for name in modules():
        package = name.split(".")[0]
        for target in imports(name):
            parts = target.split(".")
            if parts[0] != "rallebench" or len(parts) < 2 or not (ROOT / parts[1]).is_dir():
                continue
            if parts[1] not in (package, "core"):
                edges.setdefault(name, set()).add(parts[1])
    return edges


def test_every_package_has_a_row_in_the_table() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(ALLOWED)


def test_the_table_itself_has_no_cycle() -> None:
    assert list(TopologicalSorter(ALLOWED).static_order())


def test_packages_import_only_what_their_row_names() -> None:
    violations = {
        f"{name} -> {target}"
        for name, targets in package_edges().items()
        for target in targets
        if target not in ALLOWED.get(name.split(".")[0], frozenset())
        and (name, target) not in EXCEPTIONS
    }
    assert violations == set(), "imports that the table forbids"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert list(TopologicalSorter(module_edges()).static_order())


def test_no_package_imports_what_is_private_to_another() -> None:
    violations = {
        f"{name} -> {target}"
        for name in modules()
        for target in imports(name)
        if target.startswith("rallebench.") and target.split(".")[1] != name.split(".")[0]
        for part in target.split(".")
        if part.startswith("_") and not part.startswith("__")
    }
    assert violations == set()


@pytest.mark.parametrize("name", sorted(modules()))
def test_heavy_packages_are_imported_only_inside_functions(name: str) -> None:
    private = any(part.startswith("_") and part != "__main__" for part in name.split("."))
    if name.split(".")[0] == "gui" or private:
        pytest.skip("the page and a backend's own folder are imported when they are used")
    top = modules()[name].body
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in top
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    assert not {target.split(".")[0] for target in names} & HEAVY


def test_gradio_stays_in_the_page_and_mlflow_in_tracking() -> None:
    for name in modules():
        names = {target.split(".")[0] for target in imports(name)}
        assert "gradio" not in names or name.split(".")[0] == "gui", name
        assert "mlflow" not in names or name.split(".")[0] == "tracking", name
