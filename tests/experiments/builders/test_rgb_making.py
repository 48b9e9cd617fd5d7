"""RGB's testbeds are made by their suite; the maker hands its files on under the same verb."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import CommandLine, make_workspace, read_lines


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, make_workspace(tmp_path / "workspace"))


def test_records_are_made_of_a_dataset_and_an_index(rallebench: CommandLine) -> None:
    made = rallebench.json(
        "build-dataset",
        "rgb",
        "--name",
        "bed",
        "--set",
        "data=tiny-qa",
        "--set",
        "index=tiny",
        "--set",
        "k=6",
    )
    (file,) = [Path(file) for file in made["files"] if file.endswith("/en.jsonl")]
    assert {"query", "answer", "positive", "negative"} <= read_lines(file)[0].keys()
    assert made["counts"]["records"]["en"] == len(read_lines(file)) > 0
    again = rallebench.json(
        "build-dataset",
        "rgb",
        "--name",
        "bed",
        "--set",
        "data=tiny-qa",
        "--set",
        "index=tiny",
        "--set",
        "k=6",
    )
    assert again["files"] == made["files"]


def test_records_alone_are_no_zero_questions(rallebench: CommandLine) -> None:
    pairs = ("--set", "data=tiny-qa", "--set", "index=tiny", "--set", "k=6")
    ran = rallebench("build-dataset", "rgb", "--name", "bed", *pairs)
    assert ran.code == 0 and "records: {" in ran.out and "questions: 0" not in ran.out


def test_what_is_missing_or_too_much_is_one_sentence(rallebench: CommandLine) -> None:
    ran = rallebench("build-dataset", "rgb", "--name", "bed")
    assert ran.code == 2 and "A testbed needs a dataset" in ran.last
    ran = rallebench(
        "build-dataset",
        "rgb",
        "--name",
        "bed",
        "--articles",
        "x.jsonl",
        "--set",
        "articles=y.jsonl",
    )
    assert ran.code == 2 and "twice" in ran.last
    assert not (rallebench.workspace / "experiments").exists()
