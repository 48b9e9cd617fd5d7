"""``--limit``, ``--sample`` and growing a run: the right questions are asked, and the fingerprint stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import RECORDS, CommandLine, read_lines

RUN = "run --chain read --dataset tiny-qa --no-mlflow"


def asked_questions(workspace: Path, run: str) -> list[str]:
    return [row["id"] for row in read_lines(workspace / "runs" / run / "questions.jsonl")]


def fingerprint(workspace: Path, run: str) -> str:
    return str(json.loads((workspace / "runs" / run / "run.json").read_text())["fingerprint"])


def test_a_smaller_sample_begins_a_larger_one(cli: CommandLine, workspace: Path) -> None:
    for count in (2, 4):
        cli.json(f"{RUN} --sample {count} --name s{count}")
    assert len(asked_questions(workspace, "s4")) == 4
    assert asked_questions(workspace, "s4")[:2] == asked_questions(workspace, "s2")


def test_another_seed_draws_another_sample(cli: CommandLine, workspace: Path) -> None:
    samples = set()
    for seed in range(4):
        cli.json(f"{RUN} --sample 3 --seed {seed} --name s{seed}")
        samples.add(tuple(asked_questions(workspace, f"s{seed}")))
    assert len(samples) > 1


def test_a_sample_is_no_first_part(cli: CommandLine, workspace: Path) -> None:
    cli.json(f"{RUN} --limit 2 --name first")
    cli.json(f"{RUN} --sample 2 --name drawn")
    assert fingerprint(workspace, "first") != fingerprint(workspace, "drawn")
    ran = cli(f"{RUN} --sample 3 --name first --resume")
    assert ran.code == 2 and "was asked the first questions, not drawn ones" in ran.last


@pytest.mark.parametrize("part", ["--limit", "--sample"])
def test_a_run_grows_and_keeps_its_fingerprint(
    cli: CommandLine, workspace: Path, part: str
) -> None:
    small = cli.json(f"{RUN} {part} 2 --name x")
    before = fingerprint(workspace, "x"), asked_questions(workspace, "x")
    grown = cli.json(f"{RUN} {part} 4 --name x --resume")
    whole = cli.json(f"{RUN} {part} 4 --name y")
    assert (small["n"], grown["n"]) == (2, 4)
    assert fingerprint(workspace, "x") == before[0]
    assert asked_questions(workspace, "x")[:2] == before[1]
    assert asked_questions(workspace, "x") == asked_questions(workspace, "y")
    assert len(read_lines(workspace / "runs" / "x" / "episodes.jsonl")) == 4  # none was asked twice
    assert grown["metrics"]["em"] == whole["metrics"]["em"]


def test_a_grown_run_is_continued_with_what_it_has(cli: CommandLine, workspace: Path) -> None:
    cli.json(f"{RUN} --limit 2 --name x")
    cli.json(f"{RUN} --limit 4 --name x --resume")
    assert cli.json(f"{RUN} --name x --resume")["n"] == 4
    assert cli.json(f"{RUN} --limit -1 --name x --resume")["n"] == len(RECORDS)


def test_a_run_does_not_shrink(cli: CommandLine) -> None:
    cli.json(f"{RUN} --limit 3 --name x")
    ran = cli(f"{RUN} --limit 2 --name x --resume")
    assert ran.code == 2 and "has 3 questions already, so it cannot continue with 2" in ran.last


def test_a_changed_dataset_does_not_grow_a_run(cli: CommandLine, workspace: Path) -> None:
    cli.json(f"{RUN} --limit 2 --name x")
    dataset = workspace / "datasets" / "tiny-qa.jsonl"
    dataset.write_text(dataset.read_text() + '{"id": "new", "input": "Who?", "output": []}\n')
    ran = cli(f"{RUN} --limit 4 --name x --resume")
    assert ran.code == 2 and "The dataset tiny-qa changed since the run 'x' began." in ran.last


def test_a_sweep_draws_its_questions(cli: CommandLine, workspace: Path) -> None:
    cli.json("sweep --chain read --vary k=1,2 --name s --dataset tiny-qa --sample 3 --no-mlflow")
    cli.json(f"{RUN} --sample 3 --name drawn")
    variants = {tuple(asked_questions(workspace, f.name)) for f in (workspace / "runs").glob("s *")}
    assert variants == {tuple(asked_questions(workspace, "drawn"))}
