"""Runs, sweeps and suites never share a name."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import CommandLine, everything

pytestmark = pytest.mark.usefixtures("small_suites")

BEGUN = {
    kind: tuple(words.split())
    for kind, words in (
        ("run", "run --chain closed --dataset tiny-qa --limit 1 --no-mlflow --name"),
        (
            "sweep",
            "sweep --chain closed --vary llm=titan --dataset tiny-qa --limit 1 --no-mlflow --name",
        ),
        ("suite", "suite small-alone --llm titan --limit 1 --no-mlflow --name"),
    )
}
"""Kind → the command that begins one of that kind, with its name last."""


@pytest.mark.parametrize(("there", "new"), [*itertools.permutations(BEGUN, 2)])
def test_new_things_take_no_name_of_another_kind(cli: CommandLine, there: str, new: str) -> None:
    assert cli(*BEGUN[there], "n").code == 0
    before = everything(cli.workspace)
    refused = cli(*BEGUN[new], "n")
    assert refused.code == 2
    assert (
        refused.last
        == f"The name 'n' is that of a {there} already, so the {new} cannot have it; choose another --name."
    )
    assert everything(cli.workspace) == before
    again = cli(*BEGUN[there], "n", *(["--resume"] if there == "run" else []))
    assert again.code == 0, again.err


def test_predictions_take_no_name_of_a_sweep(cli: CommandLine, tmp_path: Path) -> None:
    assert cli(*BEGUN["sweep"], "n").code == 0
    (tmp_path / "guess.jsonl").write_text(
        json.dumps({"id": "q1", "output": [{"answer": "Titan"}]}) + "\n"
    )
    ran = cli(f"import {tmp_path / 'guess.jsonl'} --kind predictions --name n --dataset tiny-qa")
    assert ran.code == 2 and "'n' is that of a sweep already" in ran.last


@pytest.mark.parametrize(
    ("kind", "sentence"), [("suite", "There is no suite 'n'"), ("run", "There is no run 'n'")]
)
def test_track_says_that_a_name_is_of_no_kind(cli: CommandLine, kind: str, sentence: str) -> None:
    assert cli(*BEGUN["sweep"], "n").code == 0
    ran = cli("track n --kind", kind)
    assert ran.code == 2 and sentence in ran.last


def test_of_several_of_one_name_track_sends_the_first_or_the_kinds(cli: CommandLine) -> None:
    """No verb makes two things with one name, but a folder copied by hand does."""
    assert cli(*BEGUN["sweep"], "n").code == cli(*BEGUN["run"], "m").code == 0
    runs = cli.workspace / "runs"
    (runs / "m").rename(runs / "n")
    nowhere = "--tracking-uri nowhere://x"
    told = "'n' is the name of a run and a sweep: the run is sent; --kind sweep sends the other."
    assert told in cli(f"track n {nowhere}").err
    assert told not in cli(f"track n --kind sweep {nowhere}").err


def test_a_sweep_without_a_finished_run_is_not_sent(cli: CommandLine) -> None:
    assert cli(*BEGUN["sweep"], "n").code == 0
    shutil.rmtree(cli.workspace / "runs")
    (cli.workspace / "experiments" / "n" / "report.json").unlink()
    ran = cli("track n")
    assert ran.code == 2 and "No run of the sweep 'n' has ended yet" in ran.last


def test_a_sweep_whose_every_variant_is_refused_leaves_nothing_to_send(cli: CommandLine) -> None:
    words = ("sweep --chain closed --vary llm=misspelt --dataset tiny-qa", "--no-mlflow")
    assert cli(*words, "--name", "n").code == 1
    ran = cli("track n")
    assert ran.code == 2 and "There is no run 'n'" in ran.last
