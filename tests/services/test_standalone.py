"""A tuned chain answers without page and command line, and can be exported as a program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.core.errors import BackendError
from rallebench.core.types import Action, Chain
from rallebench.services.standalone import LoadedChain
from rallebench.views.program import script

SEARCH = Action("retrieve", "{question}", "fstring", "tiny", 2)
TRICKY = "Quote \"\"\" and \\ and {question}\n''' {response[0]}"
CHAIN = Chain(
    'it\'s "mine"',
    (SEARCH, Action("generate", TRICKY, "fstring", "titan", generation={"stop": ["\n"]})),
)


def test_a_chain_answers_with_all_its_steps(workspace: Path) -> None:
    with LoadedChain(CHAIN, workspace) as chain:
        found = chain.answer("Which moon of Saturn has a thick atmosphere?")
    assert (found.answer, found.hits[0].passage.page_id, len(found.steps)) == ("Titan", "p1", 2)


def test_earlier_turns_are_told(workspace: Path) -> None:
    told = Chain("told", (Action("generate", "{history}|{question}", "fstring", "echo"),))
    with LoadedChain(told, workspace) as chain:
        assert (
            chain.answer("now", [("user", "before"), ("assistant", "yes")]).answer
            == "User: before\nAssistant: yes|now"
        )


def test_a_failure_is_one_sentence(workspace: Path) -> None:
    mute = Chain("c", (Action("generate", "{question}", "fstring", "mute"),))
    with LoadedChain(mute, workspace) as chain, pytest.raises(BackendError):
        chain.answer("x")


@pytest.mark.slow
def test_the_program_answers_as_the_chain_does(workspace: Path, tmp_path: Path) -> None:
    file = tmp_path / "chain.py"
    file.write_text(script(CHAIN, workspace, file.name), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        [sys.executable, str(file), "Which", "moon?"],
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "Titan\n"), done.stderr
    assert "page p1" in done.stderr
    file.write_text(
        script(CHAIN, workspace, file.name).replace("'tiny'", "'nowhere'"), encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, str(file), "x"],
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
        cwd=tmp_path,
    )
    assert (
        (done.returncode, done.stdout) == (2, "")
        and "Traceback" not in done.stderr
        and "nowhere" in done.stderr
    )
