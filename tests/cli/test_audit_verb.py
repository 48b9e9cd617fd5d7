"""``rallebench audit`` and ``rallebench why``: results, wrong flags, and a group as a slice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from labelled_runs import QIDS, kinds_of_answers, label, make_quiz_run
from small_workspace import CommandLine, make_workspace

from rallebench import Workspace, gate

KINDS = kinds_of_answers(1, 0.5)


@pytest.fixture(scope="module")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("audits") / "workspace")
    make_quiz_run(folder, "first", KINDS)
    make_quiz_run(folder, "second", kinds_of_answers(2, 0.4))
    label(folder, "first", KINDS, QIDS[:100])
    return folder


def call_verb(
    capfd: pytest.CaptureFixture[str], quiz: Path, verb: str, *call: str, code: int = 0
) -> str:
    """Output of a call, or its error."""
    ran = CommandLine(capfd, quiz)(verb, *call)
    assert ran.code == code, ran.err
    return ran.out if code == 0 else ran.err


def document(capfd: pytest.CaptureFixture[str], quiz: Path, verb: str, *call: str) -> Any:
    """JSON of a call."""
    return CommandLine(capfd, quiz).json(verb, *call)


def test_a_grader_is_audited(quiz: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = document(capfd, quiz, "audit", "first", "--grader", "f1", "--truth", "labels")
    assert value["truth"] == "labels" and value["parts"][0]["calibration"]["right"]["n"] == 100
    assert len(value["said"]) >= 2
    text = call_verb(capfd, quiz, "audit", "first", "--grader", "f1", "--precision", "0.6")
    assert "first: f1 against em" in text and "Reliability" in text and "60 % right answers" in text


def test_two_graders_are_compared(quiz: Path, capfd: pytest.CaptureFixture[str]) -> None:
    value = document(capfd, quiz, "audit", "first", "--grader", "em", "--against", "f1")
    assert value["graders"] == ["em", "f1"] and value["labels"] == 100


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--precision", "1.5"), "it must lie between 0 and 1"),
        (("--against", "f1"), "name the first with --grader"),
        (
            ("--grader", "em", "--against", "f1", "--truth", "em"),
            "--truth does not go with --against",
        ),
        (("--sample", "3"), "belong to --probe"),
        (("--probe", "padded"), "name it with --grader"),
        (("--grader", "em", "--probe", "padded", "--truth", "f1"), "'em' is not a judge"),
        (("--grader", "em", "--probe", "padded", "--against", "f1"), "goes without --against"),
        (("--grader", "confidence"), "gives no confidence"),
    ],
)
def test_wrong_flags_are_one_sentence(
    quiz: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...], words: str
) -> None:
    assert words in call_verb(capfd, quiz, "audit", "first", *flags, code=2)


def test_why_lists_groups_and_a_group_is_a_slice(
    quiz: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = document(capfd, quiz, "why", "first")
    assert value["n"] == 160 and value["wrong"] == sum(kind != "exact" for kind in KINDS)
    # All questions begin alike, so there is one question word, and groups by meaning at most.
    assert all(group["key"].startswith("meaning-") for group in value["groups"])
    part = document(capfd, quiz, "compare", "first", "second", "--slice", "word-what")
    assert part["n"] == 160
    text = call_verb(capfd, quiz, "dataset", "hard", "--from-run", "first", "--slice", "word-what")
    assert "Added 160 questions of first." in text
    assert "no group 'word-who'" in call_verb(
        capfd, quiz, "gate", "second", "--against", "first", "--slice", "word-who", code=2
    )
    assert "in place of --only" in call_verb(
        capfd,
        quiz,
        "dataset",
        "x",
        "--from-run",
        "first",
        "--slice",
        "word-what",
        "--only",
        "wrong",
        code=2,
    )


def test_python_has_the_same(quiz: Path) -> None:
    with Workspace(quiz) as workspace:
        first, second = (workspace.run_result(name) for name in ("first", "second"))
        assert first.audit("f1", "labels").parts[0].calibration.right.n == 100
        assert first.compare_graders("em", "f1").labels == 100
        assert first.why().wrong == sum(kind != "exact" for kind in KINDS)
        assert gate(second, first, "em", part="word-what").part == "word-what"
