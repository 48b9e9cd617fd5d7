"""The start of the command line: listing names imports none of the named modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from small_workspace import environment

COUNT = """
import sys
from rallebench.cli.main import main

try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""
MAX_MODULES = {"--help": 230, "run --help": 735, "list": 380}
"""The most modules that a call may import, including Python's and other packages'."""


def modules(call: str, folder: Path) -> set[str]:
    """The modules imported by a call of the command line."""
    ran = subprocess.run(
        [sys.executable, "-c", COUNT, *call.split()],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("call", MAX_MODULES)
def test_a_call_imports_no_more_modules_than_it_needs(call: str, tmp_path: Path) -> None:
    imported = modules(call, tmp_path)
    own = sorted(name for name in imported if name.startswith("rallebench."))
    assert len(imported) <= MAX_MODULES[call], f"{len(imported)} modules, of ours {own}"


def test_help_imports_no_verb_no_model_and_no_validator(tmp_path: Path) -> None:
    imported = modules("--help", tmp_path)
    heavy = {"numpy", "pydantic", "rallebench.services", "rallebench.views", "rallebench.cli.run"}
    assert "rallebench.cli.verbs" in imported and not heavy & imported


def test_a_list_imports_no_suite_no_metric_and_no_engine(tmp_path: Path) -> None:
    imported = modules("list", tmp_path)
    heavy = {"numpy", "rallebench.engine", "rallebench.services", "rallebench.metrics.exact_match"}
    assert not heavy & imported
    assert not [name for name in imported if name.endswith(".suites")]
