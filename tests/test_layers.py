"""Arrows point one way: a module imports its own package and what lies below, nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "rallebench"

# Lowest first; names on one line are siblings and do not import each other.
LAYERS = [
    {"types", "errors", "tokens", "__init__"},
    {"registry", "files", "memory", "parameters", "prompt_files", "folders", "hosts"},
    {"catalog", "published", "sources", "endpoints", "checkpoints", "disk", "sandbox", "locks"},
    {"corpora", "encoders", "vector_index", "datasets"},
    {"metrics"},
    {"reader", "kilt_score", "embeddings", "foreign_indexes"},
    {"llms", "retrievers"},
    {"indexing", "chain", "environments", "judges"},
    {"workflows"},
    {"ralle_settings", "bench"},
    {"combining"},
    {"workspace"},
    {"acting", "taken", "coverage"},
    {"loading", "listing", "tracking", "background", "estimate", "budget"},
    {"turns", "agents", "leases"},
    {"benchmark", "loads"},
    {"tradeoff", "data_verbs", "model_verbs", "analysis", "prepared", "footprint"},
    {"ask_verbs", "run_verbs"},
    {"workbench"},
    {"serving", "standalone", "sweeps", "suites", "modelling", "live"},
    {"making"},
    {"verbs"},
    {"gui"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
# verbs.ui opens the page; it is the one name that the command line takes from above.
ALLOWED = {("verbs", "gui"), ("__main__", "cli")}
HEAVY = {
    "torch",
    "transformers",
    "faiss",
    "hnswlib",
    "diskannpy",
    "pymilvus",
    "milvus_lite",
    "mlflow",
    "gradio",
    "bm25s",
    "openai",
    "bitsandbytes",
    "sentence_transformers",
    "sacrebleu",
    "jieba",
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_only_its_own_package_and_lower_layers(path: Path) -> None:
    mine = layer_of(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "rallebench" or len(parts) < 2:
            continue
        theirs = parts[1] if parts[1] in LEVEL else "__init__"
        below = LEVEL[theirs] < LEVEL[mine] or theirs == mine or (mine, theirs) in ALLOWED
        assert below, f"{path.relative_to(ROOT)} ({mine}) imports {name} from above"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_packages_are_imported_only_inside_functions(path: Path) -> None:
    inner = any(
        part.startswith("_") and not part.startswith("__") for part in path.relative_to(ROOT).parts[:-1]
    )
    if layer_of(path) == "gui" or inner:
        pytest.skip("the page and a backend's own folder are imported when they are used")
    top = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    names = {
        (n.module or "") if isinstance(n, ast.ImportFrom) else a.name
        for n in top
        for a in getattr(n, "names", [])
    }
    assert not {name.split(".")[0] for name in names} & HEAVY


def test_gradio_stays_in_the_page_and_mlflow_in_tracking() -> None:
    for path in modules():
        names = {name.split(".")[0] for name in imported(path)}
        assert "gradio" not in names or layer_of(path) == "gui", path
        assert "mlflow" not in names or layer_of(path) == "tracking", path
