"""``delete`` and ``prune`` free disk space, report how much, and touch nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_workspace import CommandLine, everything

from rallebench.engine.run_files import RunState
from rallebench.engine.store import RunFolder
from rallebench.services.disk import PARTS


def test_a_deleted_run_waits_in_the_bin_until_it_is_pruned(
    cli: CommandLine, workspace: Path
) -> None:
    assert cli.run("old", "titan", "--metrics", "em").code == 0
    made = cli.json("delete run old")
    assert made["freed"] == 0 and "in the bin" in made["said"][0]
    assert (workspace / "bin" / "runs" / "old" / "run.json").is_file()
    freed = cli.json("prune bin")
    assert freed["total"] == freed["freed"]["bin"] > 0
    assert not (workspace / "bin" / "runs" / "old").exists()


def test_a_run_is_deleted_for_good_also_from_the_bin(cli: CommandLine, workspace: Path) -> None:
    for name in ("one", "two"):
        assert cli.run(name, "titan", "--metrics", "em").code == 0
    assert cli.json("delete run one --for-good")["freed"] > 0
    cli.json("delete run two")
    assert cli.json("delete run two --for-good")["freed"] > 0
    assert not list((workspace / "bin" / "runs").iterdir())


def test_an_experiment_is_deleted_and_its_runs_stay(cli: CommandLine, workspace: Path) -> None:
    words = ("--chain", "read", "--llm", "titan", "--dataset", "tiny-qa", "--metrics", "em")
    cli.json("sweep --no-mlflow --name s --vary k=1,2", *words)
    runs = sorted(path.name for path in (workspace / "runs").iterdir())
    made = cli.json("delete experiment s")
    assert made["freed"] > 0 and not (workspace / "experiments" / "s").exists()
    assert runs == sorted(path.name for path in (workspace / "runs").iterdir())
    assert cli("sweep --name s").code == 2


def test_an_index_a_dataset_and_their_disk_are_freed(cli: CommandLine, workspace: Path) -> None:
    cli.json("index --name again --kind bm25 --corpus", workspace / "corpus.tsv")
    size = sum(size for size, _ in everything(workspace / "indexes" / "again").values())
    assert cli.json("delete index again")["freed"] == size > 0
    assert cli.json("delete dataset tiny-qa")["freed"] > 0
    assert not (workspace / "indexes" / "again").exists()


def test_the_parts_are_listed_with_their_size_and_nothing_is_removed(
    cli: CommandLine, workspace: Path
) -> None:
    assert cli.run("one", "titan", "--metrics", "em").code == 0
    before = everything(workspace)
    listed = {part["name"]: part for part in cli.json("prune")["parts"]}
    assert list(listed) == list(PARTS) and listed["replies"]["bytes"] > 0
    assert everything(workspace).keys() == before.keys()


def test_all_parts_are_pruned_and_a_run_can_be_repeated(cli: CommandLine, workspace: Path) -> None:
    assert cli.run("one", "titan", "--metrics", "em").code == 0
    freed = cli.json("prune all")
    assert freed["freed"].keys() == PARTS.keys() and freed["freed"]["replies"] > 0
    assert not (workspace / "cache" / "memo.sqlite").exists()
    assert cli.run("two", "titan", "--metrics", "em").code == 0


def test_replies_stay_while_a_run_goes_on(cli: CommandLine, workspace: Path) -> None:
    assert cli.run("one", "titan", "--metrics", "em").code == 0
    run = RunFolder.open(workspace / "runs", "one")
    with run.lock():
        run.set_state(RunState("running"))
        ran = cli("prune replies")
    assert "is running" in ran.last and (workspace / "cache" / "memo.sqlite").exists()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("delete run nowhere", "nowhere"),
        ("delete experiment nowhere", "There is no experiment 'nowhere'"),
        ("delete index ../..", "cannot be a folder name"),
        ("delete run ../runs", "cannot be a folder name"),
        ("delete index tiny --for-good", "--for-good belongs to a run"),
        ("prune everything", "There is no part 'everything'"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_deletes_nothing(
    cli: CommandLine, workspace: Path, command: str, sentence: str
) -> None:
    before = everything(workspace)
    ran = cli(command)
    assert ran.code == 2 and sentence in ran.last
    assert everything(workspace) == before
