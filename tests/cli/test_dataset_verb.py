"""``rallebench dataset``: edits, their history, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import RECORDS, CommandLine, read_lines


def test_questions_are_added_changed_deleted_and_brought_back(
    cli: CommandLine, workspace: Path
) -> None:
    words = ("--answer", "Titan", "--answer", "Saturn VI", "--page", "p1", "--group", "moons")
    added = cli.json("dataset mine", "--add", "Which moon?", *words)
    assert (added["questions"], added["said"]) == (1, ["Added the question own-1."])
    file = workspace / "datasets" / "mine.jsonl"
    (record,) = read_lines(file)
    assert record["group"] == "moons" and record["output"][0]["provenance"]
    cli.json("dataset mine --add Who? --answer Huygens --id who")
    changed = cli("dataset mine --change who --unanswerable")
    assert "Changed the question who." in changed.out
    assert read_lines(file)[1]["unanswerable"] is True
    cli.json("dataset mine --delete own-1")
    history = cli("dataset mine")
    assert "mine: 4 edits" in history.out and "deleted" in history.out
    cli.json("dataset mine --undo 4")
    assert [row["id"] for row in read_lines(file)] == ["own-1", "who"]
    value = cli.json("dataset mine --return-to 2")
    assert value["edits"][-1]["kind"] == "return" and "unanswerable" not in read_lines(file)[1]


def test_the_wrong_questions_of_a_run_become_a_dataset(cli: CommandLine, workspace: Path) -> None:
    cli.run("x")
    value = cli.json("dataset hard --from-run x --only wrong")
    assert value["questions"] == 7 and value["edits"][0]["about"] == "the run x"
    assert read_lines(workspace / "datasets" / "hard.jsonl") == [*RECORDS[1:]]
    all_of_them = cli("dataset hard --from-run x --only all")
    assert "Added 1 question of x; 7 were there already." in all_of_them.out


def test_a_copy_is_edited(cli: CommandLine) -> None:
    assert cli.json("dataset mine --copy-of starter-qa")["questions"] == 222
    assert cli.json("dataset mine --delete qa-001")["questions"] == 221


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("starter-qa --delete qa-001", "does not lie in this workspace"),
        ("tiny-qa --add Who? --id q1 --answer x", "already has a question with the id 'q1'"),
        ("tiny-qa --add Who?", "There is no answer to save"),
        ("tiny-qa --delete q99", "has no question 'q99'"),
        ("tiny-qa --delete q1 --undo 1", "--delete and --undo are several edits"),
        ("tiny-qa --answer x", "--answer belongs to --add or --change"),
        ("tiny-qa --change q1", "--change needs what to change"),
        ("tiny-qa --undo 1", "has no edit 1; it has 0"),
        ("tiny-qa --only wrong", "--only belongs to --from-run"),
        ("tiny-qa --id x", "--id belongs to --add"),
        ("tiny-qa --from-run none", "There is no run 'none'"),
        ("none", "none"),
    ],
)
def test_a_wrong_request_is_one_sentence(cli: CommandLine, words: str, sentence: str) -> None:
    ran = cli(f"dataset {words}")
    assert ran.code in (1, 2) and sentence in ran.err and "Traceback" not in ran.err
