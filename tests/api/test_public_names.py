"""``import rallebench`` costs nothing; its names are imported on first use, typed and with a docstring."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import pytest
from project import PROJECT
from small_workspace import environment

import rallebench


def in_python(code: str) -> str:
    """The output of a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment()
    ).stdout


def test_the_import_reads_no_module_of_ours_and_none_that_is_heavy() -> None:
    code = "import sys, json, rallebench; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(in_python(code))
    assert [name for name in modules if name.startswith("rallebench")] == ["rallebench"]
    assert not {"numpy", "pydantic", "pandas", "tqdm", "torch", "gradio"} & {*modules}
    assert len(modules) < 100


def test_a_workspace_is_imported_without_what_only_some_work_needs() -> None:
    code = "import sys; from rallebench import Workspace, chain; print(*sorted(sys.modules))"
    heavy = {"torch", "gradio", "mlflow", "pandas", "transformers", "faiss", "tqdm", "matplotlib"}
    assert not heavy & {*in_python(code).split()}


@pytest.mark.parametrize("name", rallebench.__all__)
def test_every_public_name_has_a_docstring_and_hints(name: str) -> None:
    value = getattr(rallebench, name)
    assert name in dir(rallebench) and inspect.getdoc(value)
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        hints = [p.annotation for p in signature.parameters.values()]
        assert inspect.Parameter.empty not in [*hints, signature.return_annotation]


def test_every_method_of_a_workspace_is_explained() -> None:
    methods = {
        name: method
        for name, method in inspect.getmembers(rallebench.Workspace, inspect.isfunction)
        if not name.startswith("_")
    }
    assert {"run", "ask", "search", "close"} <= methods.keys()
    assert [name for name, method in methods.items() if not inspect.getdoc(method)] == []


def test_a_name_that_is_not_public_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Workspaces'"):
        rallebench.Workspaces  # noqa: B018


def test_the_package_says_that_it_is_typed() -> None:
    assert (PROJECT / "rallebench" / "py.typed").is_file()
    assert '"py.typed"' in (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
