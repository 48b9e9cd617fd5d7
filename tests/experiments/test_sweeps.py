"""A sweep varies fields of a chain, runs every variant once, and names a winner only as far as the numbers go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from performing import sweep
from small_workspace import CommandLine, make_workspace

from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain
from rallebench.engine.driver import ExperimentResult
from rallebench.engine.experiment_store import run_name
from rallebench.experiments.sweeps import expand, factor
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import parse_settings

CHAIN = Chain(
    "c",
    (
        Action("retrieve", "{question}", "fstring", "tiny", 5),
        Action("generate", "{question}", "fstring", "titan"),
    ),
)


def varied(*texts: str, way: str = "one-factor") -> list[str]:
    return [
        cell.label for cell in expand(CHAIN, [factor(text, parse_settings) for text in texts], way)
    ]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return make_workspace(tmp_path / "workspace")


SWEEP = ("sweep", "--chain", "read", "--dataset", "tiny-qa", "--no-mlflow", "--name", "s")


def test_one_factor_changes_one_field_at_a_time_and_a_grid_all_combinations() -> None:
    assert set(varied("k=2,4", "llm=titan,echo")) == {"k=2", "k=4", "llm=titan", "llm=echo"}
    expected = {"k=2, llm=titan", "k=2, llm=echo", "k=4, llm=titan", "k=4, llm=echo"}
    assert set(varied("k=2,4", "llm=titan,echo", way="grid")) == expected


def test_the_largest_k_comes_first_because_smaller_ones_are_then_remembered() -> None:
    assert varied("k=1,10,4") == ["k=10", "k=4", "k=1"]


def test_variants_that_are_the_same_chain_are_run_once() -> None:
    assert varied("k=5,3", "retriever=tiny") == ["k=5", "k=3"]


def test_a_field_of_one_action_and_a_template_in_a_file_can_be_varied(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Q: {question}")
    (cell,) = expand(CHAIN, [factor(f"2.template={tmp_path / 'short.txt'}", parse_settings)])
    assert (cell.label, cell.chain.actions[1].template) == ("2.template=short", "Q: {question}")


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("k",), "names no field with values"),
        (("k=2,2",), "takes a value twice"),
        (("k=1", "k=2"), "varied twice"),
        (("3.k=1",), "^3.k: the chain has 2 actions"),
        (("k=zero",), "^k=zero: k must be a whole number"),
        (("2.template=no-such.txt,{question}",), "There is no template file 'no-such.txt'"),
        ((), "Nothing is varied"),
        ((f"k={','.join(map(str, range(1, 80)))}",), "more than 64 variants"),
    ],
)
def test_what_cannot_be_varied_is_one_sentence(texts: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        varied(*texts)


def test_runs_are_named_after_their_variant_and_never_share_a_name() -> None:
    one, two = (
        run_name("s", expand(CHAIN, [factor(f"retriever={name}", parse_settings)])[0].label)
        for name in ("rrf:a", "rrf|a")
    )
    assert one.startswith("s retriever=rrf-a ") and one != two


def test_a_sweep_names_the_best_and_says_when_no_difference_is_shown(
    rallebench: CommandLine, workspace: Path
) -> None:
    ran = rallebench(*SWEEP, "--vary", "llm=echo,titan", "--json")
    assert ran.code == 0, ran.err
    expected = ("em", ["llm=titan", "llm=echo"])
    assert (ran.json["metric"], [row["variant"] for row in ran.json["variants"]]) == expected
    assert "Best: llm=titan" in ran.json["verdict"]
    assert "too few articles to show a difference" in ran.json["verdict"]
    assert {path.name for path in (workspace / "runs").iterdir()} == {"s llm=titan", "s llm=echo"}
    shown = rallebench("sweep", "--name", "s")
    assert shown.out.startswith("Best: llm=titan")


def test_a_comma_in_brackets_belongs_to_its_value() -> None:
    assert factor("retriever=a,(rrf:a,b)", parse_settings).values == ("a", "rrf:a,b")
    assert factor('stop=["a","b"],["c"]', parse_settings).values == (["a", "b"], ["c"])
    assert factor("system=(,x", parse_settings).values == ("(", "x"), (
        "what does not close holds nothing together"
    )


def test_templates_of_the_same_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "p.txt").write_text(f"{folder}: {{question}}")
    found = factor(f"2.template={tmp_path}/a/p.txt,{tmp_path}/b/p.txt", parse_settings)
    assert found.labels == (f"{tmp_path}/a/p.txt", f"{tmp_path}/b/p.txt")


def test_a_metric_that_the_runs_did_not_keep_decides_by_their_answers(
    rallebench: CommandLine,
) -> None:
    assert rallebench(*SWEEP, "--vary", "llm=echo,titan").code == 0
    found = rallebench("sweep", "--name", "s", "--metric", "rouge-1", "--json").json
    means = [row["metrics"]["rouge-1"]["value"] for row in found["variants"]]
    assert means == sorted(means, reverse=True) and means[0] > means[1]


@pytest.mark.parametrize(
    ("metric", "sentence"), [("nonsense", "no metric"), ("length", "cannot decide")]
)
def test_a_metric_that_decides_nothing_is_refused_before_anything_runs(
    rallebench: CommandLine, workspace: Path, metric: str, sentence: str
) -> None:
    ran = rallebench(*SWEEP, "--vary", "k=1,2", "--metric", metric)
    assert ran.code == 2 and sentence in ran.last and not (workspace / "runs").exists()


def test_the_best_is_the_best_on_the_questions_that_all_variants_have_scored(
    rallebench: CommandLine,
) -> None:
    assert rallebench(*SWEEP, "--vary", "llm=picky,titan,echo").code == 0
    found = rallebench("sweep", "--name", "s", "--json").json
    means = [row["metrics"]["em"]["value"] for row in found["variants"]]
    assert means == sorted(means, reverse=True)
    assert [row["difference"] for row in found["variants"][1:]] == [
        mean - means[0] for mean in means[1:]
    ]


def test_a_variant_that_did_not_end_is_still_told_when_the_sweep_is_opened_again(
    rallebench: CommandLine,
) -> None:
    assert rallebench(*SWEEP, "--vary", "llm=misspelt,titan").code == 1
    actual = "It has no run"
    assert actual in rallebench("sweep", "--name", "s", "--json").json["failed"]["llm=misspelt"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [((), "Give --chain"), (("--name", "s", "--vary", "k=1"), "--chain starter")],
)
def test_a_sweep_without_a_chain_says_what_is_missing(
    rallebench: CommandLine, asked: tuple[str, ...], sentence: str
) -> None:
    ran = rallebench("sweep", *asked)
    assert ran.code == 2 and sentence in ran.last


def test_what_variants_share_is_asked_once(rallebench: CommandLine, workspace: Path) -> None:
    assert rallebench(*SWEEP, "--vary", "k=1,2,3").code == 0
    cached = {}
    for run in (workspace / "runs").iterdir():
        steps = [
            s
            for line in (run / "episodes.jsonl").read_text().splitlines()
            for s in json.loads(line)["steps"]
        ]
        cached[run.name] = sum(step["cached"] for step in steps if step["ask"] == "retrieve")
    assert cached == {"s k=3": 0, "s k=2": 8, "s k=1": 8}


def test_the_same_sweep_again_runs_only_what_is_missing(
    rallebench: CommandLine, workspace: Path
) -> None:
    assert rallebench(*SWEEP, "--vary", "k=1,2").code == 0
    before = (workspace / "runs" / "s k=1" / "episodes.jsonl").read_bytes()
    ran = rallebench(*SWEEP, "--vary", "k=1,2")
    assert ran.code == 0 and "k=1: had ended before" in ran.err
    assert (workspace / "runs" / "s k=1" / "episodes.jsonl").read_bytes() == before


def test_another_sweep_under_a_taken_name_is_refused(rallebench: CommandLine) -> None:
    assert rallebench(*SWEEP, "--vary", "k=1").code == 0
    ran = rallebench(*SWEEP, "--vary", "k=2")
    assert ran.code == 2 and "exists already with another content" in ran.last


def test_a_variant_that_fails_is_told_and_the_others_go_on(rallebench: CommandLine) -> None:
    ran = rallebench(*SWEEP, "--vary", "llm=misspelt,titan", "--json")
    assert ran.code == 1 and ran.last.startswith(
        "1 of 2 variants failed: llm=misspelt. Start the sweep again with --name s"
    ), ran.err
    assert [row["variant"] for row in ran.json["variants"]] == ["llm=titan"]
    assert "dealy" in ran.json["failed"]["llm=misspelt"]
    assert ran.json["variants"][0]["metrics"]["em"]["n"] == 8
    expected = "Only llm=titan ended, so there is nothing to compare it with: EM 0.1250, n = 8."
    assert ran.json["verdict"] == expected


def test_the_row_of_the_only_variant_that_ended_has_its_score_and_of_how_many(
    rallebench: CommandLine,
) -> None:
    ran = rallebench(*SWEEP, "--vary", "llm=misspelt,titan")
    (row,) = [line for line in ran.out.splitlines() if line.startswith("  llm=titan")]
    assert row.split()[1] == "0.1250" and "n=8" in row


def test_questions_that_failed_are_no_failed_variant(rallebench: CommandLine) -> None:
    ran = rallebench(*SWEEP, "--vary", "llm=picky,titan", "--json")
    assert ran.code == 0 and ran.json["failed"] == {}


def test_a_sweep_that_is_being_run_is_refused_a_second_time_and_goes_on(
    rallebench: CommandLine, workspace: Path
) -> None:
    bench = Workbench(workspace)
    chain = bench.workspace.chain("read")
    first = sweep(bench, "s", chain, ["k=1,2"], "tiny-qa", track=False)
    next(first)
    second = rallebench(*SWEEP, "--vary", "k=1,2")
    assert second.code == 2
    expected = "The sweep 's' is being run by another process or page; wait for it or stop it."
    assert second.last == expected
    found = list(first)[-1]
    bench.close()
    assert isinstance(found, ExperimentResult)
    assert found.report.failed == {}
    assert len(found.runs) == 2
    assert [path.name for path in (workspace / "experiments").iterdir()] == ["s"]


def test_a_variant_that_cannot_work_is_refused_before_the_first_runs(
    rallebench: CommandLine, workspace: Path
) -> None:
    ran = rallebench(*SWEEP, "--vary", "llm=titan,nobody")
    assert ran.code == 2 and "nobody" in ran.last
    assert not (workspace / "runs").exists() or not list((workspace / "runs").iterdir())
    assert not (workspace / "experiments").exists()
