"""One file adds one thing: in a copy of the project a metric, a format, a suite and a place are one file each.

Only the test that names ``python -m tools.docs`` fails, and after that command none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from project import PROJECT

METRIC = '''
"""The first word of an answer."""

from __future__ import annotations

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import best, final_answer


@METRICS.register("first-word", label="First word")
def first_word(episode: Episode, gold: Gold) -> float | None:
    """1 if the answer begins with the first word of an accepted answer, else 0.

    Normalisation: none.
    Not scored: the gold has no answers.
    Source: rallebench.
    Traps: A word with a comma is another word.
    """
    return best(lambda answer, alias: float(answer.split()[:1] == alias.split()[:1]), final_answer(episode), gold)
'''

FORMAT = '''
"""A pub quiz: one JSON document of rounds, with questions and their right answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record

SAMPLE = """{"rounds": [{"about": "Titan", "asked": [
    {"id": "s1", "text": "What is Titan?", "right": "a moon"}, {"id": "s2", "text": "Which moon?", "right": "Titan"}]}]}"""


def recognises(path: Path) -> bool:
    return path.suffix == ".json" and path.read_text()[:11] == '{"rounds": '


@DATASETS.register("quiz", recognises=recognises, sample={"quiz.json": SAMPLE})
def read_quiz(source: Source) -> Iterator[tuple[int, Record]]:
    """The JSON document of a quiz."""
    rounds = json.loads(source.path.read_text())["rounds"]
    questions = (question for part in rounds for question in part["asked"])
    for number, question in enumerate(questions, 1):
        output = [{"answer": question["right"]}]
        yield number, {"id": question["id"], "input": question["text"], "output": output}
'''

SUITE = '''
"""Ebb and flow: questions of a file, asked as they are."""

from __future__ import annotations

from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import DatasetRef, FlowSpec
from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Generate, Message, Outcome, Question
from rallebench.datasets.reading import read_questions
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.common import scored_run

FORM = {"data": Setting(str, "", required=True, names="file", about="the questions")}


@EXPERIMENTS.register("ebb", place="suites", form=FORM)
def ebb(request: ExperimentRequest) -> Experiment:
    """Questions of a file, asked as they are."""
    path = request.workspace.data(request.settings["data"], "the questions")

    def flow(question: Question) -> Flow:
        reply = yield Generate(request.llm, (Message("user", question.text),))
        return Outcome(reply.text)

    result = yield scored_run(
        "all",
        FlowSpec("ebb", {}, lambda backends: flow, llms=(request.llm,)),
        DatasetRef(str(path)),
        tuple(read_questions(path, request.limit)),
        lambda example, episode: {"right": float(episode.answer in example.gold.answers)},
        {"right": "1 if the answer is an accepted one, else 0."},
    )
    return Report({"headline": "right", "right": result.means["right"]})
'''

PLACE = '''
"""Notes of the workspace, to read."""

from __future__ import annotations

from markupsafe import Markup

from rallebench.gui import html, panels
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.patches import Patch

FILE = "notes.md"


@PLACES.register("notes", label="Notes", order=9)
def notes(page: Page) -> None:
    page.view("notes/read", open_notes)
    page.actions("notes", again)


def open_notes(page: Page, event: Event) -> Patch:
    body = Markup('<p id="notes-text">{}</p>{}').format(read(page), html.button("Read again", "notes.again"))
    return panels.view("notes/read", "Notes", body)


def again(page: Page, event: Event) -> Patch:
    return Patch({"notes-text": html.escape(read(page))})


def read(page: Page) -> str:
    path = page.workspace.path / FILE
    return path.read_text("utf-8") if path.is_file() else "No notes yet."
'''
ADDED = {
    "metrics/first_word.py": METRIC,
    "datasets/quiz.py": FORMAT,
    "experiments/ebb.py": SUITE,
    "gui/places/notes.py": PLACE,
}
NAMES = ("first-word", "quiz", "ebb", "notes")
NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", ".venv", "*.png", ".*_cache", "shared")
SUITES = """
    tests/contracts/test_metrics.py tests/contracts/test_datasets.py tests/contracts/test_experiments.py
    tests/contracts/test_named_things.py tests/metrics/test_cards.py tests/safety/test_inventory.py
    tests/tools/test_docs.py tests/gui/test_page_frame.py tests/layers
""".split()  # noqa: SIM905
LISTS = ["tests/tools/test_docs.py", "tests/safety/test_inventory.py"]
"""Tests of every registered thing, or of lists of names."""


def environment() -> dict[str, str]:
    """Environment of this process, in which only the copy is imported."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    return {**others, "PYTHONPATH": ""}


def failures(project: Path, tests: list[str]) -> tuple[list[str], str]:
    """The failing tests of a project, and the output of pytest."""
    words = [sys.executable, "-m", "pytest", "-n", "0", "-q", "--tb=short", *tests]
    ran = subprocess.run(words, cwd=project, env=environment(), capture_output=True, text=True)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    failed = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
    return failed, ran.stdout


@pytest.mark.slow
def test_a_metric_a_format_a_suite_and_a_place_are_a_file_each_and_one_command(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project, ignore=NOT_COPIED)
    for path, text in ADDED.items():
        (project / "rallebench" / path).write_text(text.lstrip(), encoding="utf-8")
    format_ = [sys.executable, "-m", "ruff", "format", "-q", "rallebench"]
    subprocess.run(format_, cwd=project, check=True)
    failed, text = failures(project, SUITES)
    assert [name.rpartition("::")[2] for name in failed] == [
        "test_the_generated_parts_of_the_manual_are_up_to_date"
    ], text
    assert "write them anew: python -m tools.docs" in text
    command = [sys.executable, "-m", "tools.docs"]
    ran = subprocess.run(command, cwd=project, env=environment(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert failures(project, LISTS)[0] == []
    recorded = (project / "tests/golden/inventory/names.txt").read_text("utf-8")
    assert all(f": {name}\n" in recorded for name in ("first-word", "ebb"))
