"""RGB's testbeds are made by their suite; the maker passes its files on under the same verb."""

from __future__ import annotations

from pathlib import Path

from small_workspace import CommandLine, read_lines

BED = ("data=tiny-qa", "index=tiny", "k=6")


def test_records_are_made_of_a_dataset_and_an_index(cli: CommandLine) -> None:
    made = cli.built("rgb", *BED, name="bed")
    (file,) = [Path(file) for file in made["files"] if file.endswith("/en.jsonl")]
    assert {"query", "answer", "positive", "negative"} <= read_lines(file)[0].keys()
    assert made["counts"]["records"]["en"] == len(read_lines(file)) > 0
    assert cli.built("rgb", *BED, name="bed")["files"] == made["files"]
    told = cli.build("rgb", *BED, name="bed")
    assert told.code == 0 and "records: {" in told.out and "questions: 0" not in told.out


def test_what_is_missing_or_too_much_is_one_sentence(cli: CommandLine) -> None:
    ran = cli.build("rgb", name="bed")
    assert ran.code == 2 and "A testbed needs a dataset" in ran.last
    ran = cli.build("rgb", "articles=y.jsonl", name="bed", articles="x.jsonl")
    assert ran.code == 2 and "twice" in ran.last
    assert not (cli.workspace / "experiments").exists()
