"""The example of docs/plugins.md is built, installed beside rallebench and used from end to end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from project import PROJECT
from small_workspace import make_workspace
from wheels import pip

EXAMPLE = PROJECT / "docs" / "example-plugin"
BROKEN = "import a_package_that_is_not_installed\n"
pytestmark = pytest.mark.slow
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example installed."""
    folder = tmp_path_factory.mktemp("plugin")
    source, wheels, site = folder / "source", folder / "wheels", folder / "site"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(wheels), str(source))
    (wheel,) = wheels.glob("*.whl")
    pip("install", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    return site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("workspace") / "w")


@pytest.fixture
def call(site: Path, folder: Path) -> Call:
    """``call(*words)`` → (the JSON of the command line, its standard error)."""

    def run(*words: str) -> Any:
        paths = os.pathsep.join([str(PROJECT), str(site)])
        ran = subprocess.run(
            [sys.executable, "-m", "rallebench", words[0], "--json", *words[1:]],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout), ran.stderr

    return run


def names(lists: Any, kind: str) -> set[str]:
    return {row["name"] for row in lists[kind]}


def test_its_metric_retriever_and_suite_are_listed(call: Call) -> None:
    lists, err = call("list")
    assert "first-word" in names(lists, "metrics") and "titles" in names(lists, "indexes")
    assert "paraphrases" in names(lists, "suites") and err == ""


def test_its_index_is_built_and_searched_and_its_metric_scores_a_run(
    call: Call, folder: Path
) -> None:
    call("index", "--corpus", "corpus.tsv", "--kind", "titles", "--name", "by-title")
    found, _ = call("search", "--index", "by-title", "-k", "1", "Who was Christiaan Huygens?")
    assert [hit["score"] for hit in found[0]["hits"]] == [2.0]
    run, _ = call(
        *("run", "--chain", "closed", "--dataset", "tiny-qa", "--no-mlflow", "--name", "r"),
        *("--metrics", "em,first-word"),
    )
    assert run["metrics"]["first-word"]["n"] == 8


def test_its_suite_is_planned_and_run_and_demands_its_setting(call: Call, folder: Path) -> None:
    suite = ("suite", "paraphrases", "--llm", "titan", "--no-mlflow", "--set", "data=tiny-qa")
    plan, _ = call(*suite, "--plan", "--probe", "0")
    assert [run["label"] for run in plan["plan"]] == ["wording-1", "wording-2", "wording-3"]
    report, _ = call(*suite, "--set", "wordings=2", "--name", "s")
    assert len(report["right"]) == 2 and report["tables"][0]["title"] == "Right answers"
    with pytest.raises(AssertionError, match="needs the setting 'data': the questions"):
        call("suite", "paraphrases", "--llm", "titan", "--no-mlflow")


def test_a_module_of_it_that_is_broken_is_one_warning_and_the_others_work(
    call: Call, site: Path
) -> None:
    module = site / "rallebench_example" / "metric.py"
    sound = module.read_text("utf-8")
    module.write_text(sound + BROKEN, "utf-8")
    try:
        lists, err = call("list")
    finally:
        module.write_text(sound, "utf-8")
    assert "first-word" not in names(lists, "metrics") and "em" in names(lists, "metrics")
    assert "titles" in names(lists, "indexes") and "paraphrases" in names(lists, "suites")
    (warning,) = err.splitlines()
    assert "The plug-in 'rallebench-example' is left out" in warning
    assert (
        "its module rallebench_example.metric, which adds a metric, cannot be imported" in warning
    )
    assert "a_package_that_is_not_installed" in warning
