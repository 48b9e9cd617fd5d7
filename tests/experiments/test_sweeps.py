"""A sweep varies fields of a chain, runs every variant once, and names a winner only as far as the numbers allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from performing import sweep
from small_workspace import CommandLine, read_lines, record, write_lines

from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import ExperimentResult
from rallebench.core.files import DiskError
from rallebench.core.settings import parse_settings
from rallebench.core.types import Action, Chain
from rallebench.engine.experiment_store import run_name
from rallebench.experiments.sweeps import expand, factor
from rallebench.services.workbench import Workbench

CHAIN = Chain(
    "c",
    (
        Action("retrieve", "{question}", "fstring", "tiny", 5),
        Action("generate", "{question}", "fstring", "titan"),
    ),
)


def vary(*texts: str, strategy: str = "one-factor") -> list[str]:
    factors = [factor(text, parse_settings) for text in texts]
    return [variant.label for variant in expand(CHAIN, factors, strategy)]


SWEEP = ("sweep", "--chain", "read", "--dataset", "tiny-qa", "--no-mlflow", "--name", "s")


def test_one_factor_changes_one_field_at_a_time_and_a_grid_all_combinations() -> None:
    assert set(vary("k=2,4", "llm=titan,echo")) == {"k=2", "k=4", "llm=titan", "llm=echo"}
    expected = {"k=2, llm=titan", "k=2, llm=echo", "k=4, llm=titan", "k=4, llm=echo"}
    assert set(vary("k=2,4", "llm=titan,echo", strategy="grid")) == expected


def test_the_largest_k_comes_first_and_variants_that_are_one_chain_are_run_once() -> None:
    assert vary("k=1,10,4") == ["k=10", "k=4", "k=1"], "smaller ones come from the cache"
    assert vary("k=5,3", "retriever=tiny") == ["k=5", "k=3"]


def test_a_template_in_a_file_can_be_varied_and_equal_names_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.txt").write_text(f"{folder}: {{question}}")
    (variant,) = expand(CHAIN, [factor(f"2.template={tmp_path}/a/p.txt", parse_settings)])
    assert (variant.label, variant.chain.actions[1].template) == ("2.template=p", "a: {question}")
    both = factor(f"2.template={tmp_path}/a/p.txt,{tmp_path}/b/p.txt", parse_settings)
    assert both.labels == (f"{tmp_path}/a/p.txt", f"{tmp_path}/b/p.txt")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("retriever=a,(rrf:a,b)", ("a", "rrf:a,b")),
        ('stop=["a","b"],["c"]', (["a", "b"], ["c"])),
        ("system=(,x", ("(", "x")),  # an open bracket groups nothing
    ],
)
def test_a_comma_in_brackets_belongs_to_its_value(text: str, values: tuple[Any, ...]) -> None:
    assert factor(text, parse_settings).values == values


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("k",), "names no field with values"),
        (("k=2,2",), "takes a value twice"),
        (("k=1", "k=2"), "varied twice"),
        (("3.k=1",), "^3.k: the chain has 2 actions"),
        (("k=zero",), "^k=zero: k must be a whole number"),
        (("2.template=no-such.txt,{question}",), "There is no template file 'no-such.txt'"),
        (("temprature=0,1",), "Did you mean 'temperature'"),
        (("2.temprature=0,1",), "Did you mean 'temperature'"),
        ((), "Nothing is varied"),
        ((f"k={','.join(map(str, range(1, 80)))}",), "more than 64 variants"),
    ],
)
def test_what_cannot_be_varied_is_one_sentence(texts: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        vary(*texts)


def test_runs_are_named_after_their_variant_and_never_share_a_name() -> None:
    first, other = (
        run_name("s", expand(CHAIN, [factor(f"retriever={name}", parse_settings)])[0].label)
        for name in ("rrf:a", "rrf|a")
    )
    assert first.startswith("s retriever=rrf-a ") and first != other


def test_a_sweep_names_the_best_and_if_that_is_shown(cli: CommandLine, workspace: Path) -> None:
    ran = cli(*SWEEP, "--vary", "llm=echo,titan", "--json")
    assert ran.code == 0, ran.err
    expected = ("em", ["llm=titan", "llm=echo"])
    assert (ran.json["metric"], [row["variant"] for row in ran.json["variants"]]) == expected
    assert "Best: llm=titan" in ran.json["verdict"]
    assert "too few articles to show a difference" in ran.json["verdict"]
    assert {path.name for path in (workspace / "runs").iterdir()} == {"s llm=titan", "s llm=echo"}
    assert cli("sweep", "--name", "s").out.startswith("Best: llm=titan")
    by_rouge = cli.json("sweep", "--name", "s", "--metric", "rouge-1")["variants"]
    means = [row["metrics"]["rouge-1"]["value"] for row in by_rouge]
    assert means == sorted(means, reverse=True) and means[0] > means[1], "scored from the answers"


@pytest.mark.parametrize(
    ("right", "ending"),
    [
        (1, "no difference is shown to: llm=echo (p ≥ .05, corrected for 1 comparisons)."),
        (12, "the difference to every other variant is more than chance (p < .05,"),
    ],
)
def test_a_sweep_over_enough_articles_says_whether_its_best_is_more_than_chance(
    cli: CommandLine, right: int, ending: str
) -> None:
    answers = ("Titan" if n < right else "Rome" for n in range(12))
    rows = [record(n, f"Question {n}?", answer, f"p{n}") for n, answer in enumerate(answers)]
    own = write_lines(cli.workspace / "own.jsonl", rows)
    words = "sweep --chain closed --no-mlflow --name s --vary llm=echo,titan --dataset"
    verdict = cli.json(words, own)["verdict"]
    assert verdict.startswith("Best: llm=titan (EM ") and ending in verdict


@pytest.mark.parametrize(
    ("vary", "more", "sentence"),
    [
        ("k=1,2", ("--metric", "nonsense"), "no metric"),
        ("k=1,2", ("--metric", "length"), "cannot decide"),
        ("llm=titan,nobody", (), "nobody"),
    ],
)
def test_a_sweep_that_cannot_work_is_refused_before_anything_runs(
    cli: CommandLine, workspace: Path, vary: str, more: tuple[str, ...], sentence: str
) -> None:
    ran = cli(*SWEEP, "--vary", vary, *more)
    assert ran.code == 2 and sentence in ran.last
    assert not (workspace / "runs").exists() and not (workspace / "experiments").exists()


def test_the_best_is_best_on_questions_that_all_variants_have_scored(cli: CommandLine) -> None:
    found = cli.json(*SWEEP, "--vary", "llm=picky,titan,echo")
    assert found["failed"] == {}, "failed questions do not make a failed variant"
    means = [row["metrics"]["em"]["value"] for row in found["variants"]]
    assert means == sorted(means, reverse=True)
    gaps = [row["difference"] for row in found["variants"][1:]]
    assert gaps == [mean - means[0] for mean in means[1:]]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [((), "Give --chain"), (("--name", "s", "--vary", "k=1"), "--chain starter")],
)
def test_a_sweep_without_a_chain_says_what_is_missing(
    cli: CommandLine, flags: tuple[str, ...], sentence: str
) -> None:
    ran = cli("sweep", *flags)
    assert ran.code == 2 and sentence in ran.last


def test_shared_steps_are_asked_once_and_the_same_sweep_again_runs_only_what_is_missing(
    cli: CommandLine, workspace: Path
) -> None:
    assert cli(*SWEEP, "--vary", "k=1,2,3").code == 0
    files = {run.name: run / "episodes.jsonl" for run in (workspace / "runs").iterdir()}
    before = {name: path.read_bytes() for name, path in files.items()}
    cached = {
        name: sum(
            step["cached"]
            for line in read_lines(path)
            for step in line["steps"]
            if step["ask"] == "retrieve"
        )
        for name, path in files.items()
    }
    assert cached == {"s k=3": 0, "s k=2": 8, "s k=1": 8}
    again = cli(*SWEEP, "--vary", "k=1,2,3")
    assert again.code == 0 and again.err.count("had ended before") == 3
    assert {name: path.read_bytes() for name, path in files.items()} == before
    other = cli(*SWEEP, "--vary", "k=2")
    assert other.code == 2 and "exists already with another content" in other.last


def test_a_variant_that_fails_is_told_and_the_others_go_on(cli: CommandLine) -> None:
    ran = cli(*SWEEP, "--vary", "llm=misspelt,titan", "--json")
    mend = "1 of 2 variants failed: llm=misspelt. Start the sweep again with --name s"
    assert ran.code == 1 and ran.last.startswith(mend), ran.err
    (row,) = ran.json["variants"]
    assert (row["variant"], row["metrics"]["em"]["n"]) == ("llm=titan", 8)
    assert "dealy" in ran.json["failed"]["llm=misspelt"]
    verdict = "Only llm=titan ended, so there is nothing to compare it with: EM 0.1250, n = 8."
    assert ran.json["verdict"] == verdict
    opened = cli.json("sweep", "--name", "s")
    assert "It has no run" in opened["failed"]["llm=misspelt"]
    printed = cli("sweep", "--name", "s").out.splitlines()
    (line,) = [line for line in printed if line.startswith("  llm=titan")]
    assert line.split()[1] == "0.1250" and "n=8" in line


def test_a_sweep_whose_every_variant_fails_ends_with_the_mend(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise DiskError("The disk is full.", hint=Hint("free-space"))
        yield

    monkeypatch.setattr("rallebench.engine.driver.execute", full)
    ran = cli(*SWEEP, "--vary", "k=1,2")
    mend = "free space or choose another --workspace."
    assert (ran.code, ran.last) == (1, f"Every variant failed. The disk is full; {mend}")


def test_a_sweep_that_is_run_is_refused_a_second_time(cli: CommandLine, workspace: Path) -> None:
    bench = Workbench(workspace)
    chain = bench.workspace.chain("read")
    first = sweep(bench, "s", chain, ["k=1,2"], "tiny-qa", track=False)
    next(first)
    second = cli(*SWEEP, "--vary", "k=1,2")
    assert second.code == 2
    expected = "The sweep 's' is being run by another process or page; wait for it or stop it."
    assert second.last == expected
    *_, result = first
    bench.close()
    assert isinstance(result, ExperimentResult)
    assert result.report.failed == {}
    assert len(result.runs) == 2
    assert [path.name for path in (workspace / "experiments").iterdir()] == ["s"]
