"""Every example of docs/python.md runs, in order, and prints the text below it; the notebook comes from these examples."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from documented import examples, mismatch, run_cell
from project import PROJECT

from tools import notebook

PAGE = (PROJECT / "docs" / "python.md").read_text(encoding="utf-8")
STUDY = PROJECT / "docs" / "study.ipynb"


def test_every_example_of_the_manual_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.ERROR)
    names: dict[str, object] = {}
    blocks = examples(PAGE)
    assert len(blocks) > 20
    for code, expected in blocks:
        output = run_cell(code, names)
        assert not expected or not mismatch(expected, output), (
            f"{code}\n{mismatch(expected, output)}"
        )


def test_an_example_in_readme_is_one_of_the_api() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    ((code, _),) = examples(readme)
    assert "from rallebench import" in code and len(code.splitlines()) <= 12


@pytest.mark.slow
def test_the_example_in_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ((code, _),) = examples((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert "n = 50, 47 articles" in run_cell(code, {})


def test_the_notebook_is_made_of_the_study_in_the_manual() -> None:
    assert STUDY.read_text(encoding="utf-8") == notebook.from_manual(PAGE), notebook.COMMAND


@pytest.mark.slow
def test_the_notebook_runs_from_documents_to_two_compared_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    cells = json.loads(STUDY.read_text(encoding="utf-8"))["cells"]
    outputs = [run_cell("".join(c["source"]), names) for c in cells if c["cell_type"] == "code"]
    assert any("better" in output for output in outputs)
