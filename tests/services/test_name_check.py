"""A run, a sweep and a suite have no name in common; where an earlier version gave two of them one, both can be reached."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import CommandLine, everything, make_workspace

pytestmark = pytest.mark.usefixtures("small_suites")

BEGUN = {
    "run": (
        "run",
        "--chain",
        "closed",
        "--dataset",
        "tiny-qa",
        "--limit",
        "1",
        "--no-mlflow",
        "--name",
    ),
    "sweep": (
        "sweep",
        "--chain",
        "closed",
        "--vary",
        "llm=titan",
        "--dataset",
        "tiny-qa",
        "--limit",
        "1",
        "--no-mlflow",
        "--name",
    ),
    "suite": ("suite", "small-alone", "--llm", "titan", "--limit", "1", "--no-mlflow", "--name"),
}
"""Kind → the words that begin one of that kind, its name last."""


@pytest.fixture
def rallebench(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, make_workspace(tmp_path / "workspace"))


@pytest.mark.parametrize(("there", "new"), [*itertools.permutations(BEGUN, 2)])
def test_what_is_new_takes_no_name_of_another_kind_and_what_is_there_goes_on(
    rallebench: CommandLine, there: str, new: str
) -> None:
    assert rallebench(*BEGUN[there], "n").code == 0
    before = everything(rallebench.workspace)
    refused = rallebench(*BEGUN[new], "n")
    assert refused.code == 2
    assert (
        refused.last
        == f"The name 'n' is that of a {there} already; choose another --name for the {new}."
    )
    assert everything(rallebench.workspace) == before
    again = rallebench(*BEGUN[there], "n", *(["--resume"] if there == "run" else []))
    assert again.code == 0, again.err


def test_predictions_take_no_name_of_a_sweep(rallebench: CommandLine, tmp_path: Path) -> None:
    assert rallebench(*BEGUN["sweep"], "n").code == 0
    (tmp_path / "guess.jsonl").write_text(
        json.dumps({"id": "q1", "output": [{"answer": "Titan"}]}) + "\n"
    )
    ran = rallebench(
        "import",
        tmp_path / "guess.jsonl",
        "--kind",
        "predictions",
        "--name",
        "n",
        "--dataset",
        "tiny-qa",
    )
    assert ran.code == 2 and "'n' is that of a sweep already" in ran.last


@pytest.fixture
def pair(rallebench: CommandLine) -> CommandLine:
    """A sweep and a suite of the name ``n``, both of which were begun and have not ended."""
    for file, value in (
        (
            "sweeps/n.json",
            {"format": "rallebench-sweep/1", "variants": [{"k": "1"}], "runs": ["n k=1"]},
        ),
        ("suites/n/asked.json", {"suite": "small-alone", "asked": {"llm": "titan"}}),
    ):
        path = rallebench.workspace / file
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    return rallebench


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "No variant of the sweep 'n' has ended yet"),
        (("--kind", "suite"), "The suite run 'n' has not ended yet"),
        (("--kind", "run"), "There is no run 'n'"),
    ],
)
def test_of_several_of_one_name_track_sends_the_one_that_is_asked_for(
    pair: CommandLine, flags: tuple[str, ...], sentence: str
) -> None:
    ran = pair("track", "n", *flags)
    assert ran.code == 2 and sentence in ran.last
    told = (
        "'n' is the name of a sweep and a suite: the sweep is sent; --kind suite sends the other."
        in ran.err
    )
    assert told == (not flags), "it is said only where it was not"


def test_a_suite_that_has_its_name_together_with_a_sweep_goes_on(pair: CommandLine) -> None:
    assert pair(*BEGUN["suite"], "n").code == 0
