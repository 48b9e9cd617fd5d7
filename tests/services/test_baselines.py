"""Baselines: a run's chain with no passages, random ones and the gold's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from performing import prepared
from small_workspace import (
    QUESTIONS,
    CommandLine,
    chain,
    everything,
    generate,
    make_workspace,
    record,
    retrieve,
    scripted,
    write_lines,
)

from rallebench.analysis.baselines import compare_baselines
from rallebench.chains.overrides import with_overrides
from rallebench.core.errors import StoppedError, UsageError
from rallebench.core.events import Operation, complete
from rallebench.core.experiments import ExperimentResult
from rallebench.core.report import Estimate
from rallebench.core.runs import RunOptions
from rallebench.core.types import Action, Chain, Example
from rallebench.experiments import baselines
from rallebench.experiments.baselines import baseline_name, quote_value
from rallebench.services.jobs import job_pieces
from rallebench.services.workbench import Workbench
from rallebench.views import experiment_groups
from rallebench.views.experiment_requests import baselines_request

TWO = chain(
    "two",
    generate("Rewrite {question}"),
    retrieve("{response[0]}", "tiny", 3),
    generate("{response[1]} {question}"),
)


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("lines") / "made")
    (folder / "chains" / "two.json").write_text(json.dumps(TWO))
    write_lines(
        folder / "datasets" / "bare.jsonl",
        [{"id": "x", "input": "Titan?", "output": [{"answer": "Titan"}]}],
    )
    bench = Workbench(folder)
    for name, dataset in (("read", "tiny-qa"), ("title", "tiny-qa"), ("two", "bare")):
        plan = prepared(
            bench.workspace, bench.workspace.chain(name), dataset, name=name, track=False
        )
        list(bench.runs.run(plan))
    bench.close()
    return folder


def lines(bench: Workbench, name: str, dataset: str = "tiny-qa") -> dict[str, Chain]:
    examples: tuple[Example, ...] = bench.workspace.questions(dataset)
    return baselines.baseline_chains(
        bench.workspace, bench.workspace.chain(name), dataset, examples
    )


def perform(bench: Workbench, name: str) -> Operation[ExperimentResult]:
    return bench.experiments.run(baselines_request(bench.workspace, name), RunOptions(track=False))


def test_a_line_exchanges_every_retriever_and_asks_it_the_bare_question(bench: Workbench) -> None:
    own, found = bench.workspace.chain("two"), lines(bench, "two")
    assert {line: made.actions[1].target for line, made in found.items()} == {
        "closed-book": "nothing:tiny",
        "random": "random:tiny",
        "oracle": "gold:tiny?questions=tiny-qa",
    }
    for made in found.values():
        assert (made.actions[1].template, made.actions[1].k) == ("{question}", 3)
        assert (made.actions[0], made.actions[2]) == (own.actions[0], own.actions[2])


@pytest.mark.slow
def test_the_long_context_hands_out_whole_pages_found(bench: Workbench, cli: CommandLine) -> None:
    examples = bench.workspace.questions("tiny-qa")
    own = bench.workspace.chain("two")
    asked = baselines.baseline_chains(bench.workspace, own, "tiny-qa", examples, True)
    assert list(asked) == ["closed-book", "random", "oracle", "long-context"]
    made = asked["long-context"].actions[1]
    assert (made.target, made.template) == ("pages:(tiny)", own.actions[1].template)
    assert baselines.is_baseline(asked["long-context"])

    without = cli.json("baselines", "read", "--no-mlflow")
    assert "long-context" not in without["lines"]
    value = cli.json("baselines", "read", "--long-context", "--no-mlflow")
    assert value["lines"]["long-context"] == "read long-context"
    assert value["columns"] == ["closed-book", "random", "oracle", "long-context", "ceiling"]
    out = cli("baselines", "read", "--long-context", "--no-mlflow").out
    assert "whole pages" in out


def test_a_combination_is_exchanged_for_the_indexes_that_it_is_made_of(bench: Workbench) -> None:
    target = "llm-rerank:(rrf:tiny,starter-hybrid?depth=7)?llm=titan"
    made = Chain("c", (Action("retrieve", "{question}", target=target),))
    found = baselines.baseline_chains(
        bench.workspace, made, "tiny-qa", bench.workspace.questions("tiny-qa")
    )
    assert found["random"].actions[0].target == "random:tiny,starter-bm25,starter-minilm"


def test_without_provenance_there_is_no_oracle(bench: Workbench) -> None:
    assert list(lines(bench, "read", "bare")) == ["closed-book", "random"]


def test_what_retrieves_nothing_and_what_is_a_line_has_no_lines(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="retrieves nothing, so it has no baselines"):
        lines(bench, "closed")
    for line in lines(bench, "read").values():
        with pytest.raises(UsageError, match="is a baseline itself"):
            baselines.baseline_chains(
                bench.workspace, line, "tiny-qa", bench.workspace.questions("tiny-qa")
            )


@pytest.mark.parametrize("name", ["2024", "true", "a&b?c", "(x),y", "日本 語", '"quoted"'])
def test_a_dataset_of_any_name_can_be_written_into_a_line(bench: Workbench, name: str) -> None:
    write_lines(
        bench.workspace.path / "datasets" / f"{name}.jsonl", [record("q", "Titan?", "Titan", "p1")]
    )
    entry = bench.workspace.retriever(f"gold:tiny?questions={quote_value(name)}")
    assert entry is not None and entry.settings == {"questions": name}


def test_a_long_run_name_leaves_room_for_its_lines() -> None:
    names = {baseline_name("x" * 99 + end, "closed-book") for end in "ab"}
    names.add(baseline_name("界" * 66, "oracle"))
    assert len(names) == 3
    assert all(len(name) <= 100 and len(name.encode()) <= 200 for name in names)
    assert baseline_name("x" * 93, "oracle") == f"{'x' * 93} oracle", "100 characters fit"
    assert baseline_name("x" * 94, "oracle") != f"{'x' * 94} oracle"


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("gold:tiny", "'gold:tiny' (gold) needs the setting 'questions'"),
        ("gold:tiny?questions=nobody", "There is no dataset 'nobody'."),
        ("random:tiny?seed=-1", "seed must be a whole number from 0"),
        ("nothing:nobody", "There is no index 'nobody'."),
    ],
)
def test_a_wrong_line_is_one_sentence(bench: Workbench, reference: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        bench.workspace.retriever(reference)
    assert sentence in str(refused.value)


def test_reference_runs_the_lines_once_beside_the_run(bench: Workbench, cli: CommandLine) -> None:
    told = cli.json("baselines", "title", "--no-mlflow")
    assert told["lines"] == {"random": "title random", "oracle": "title oracle"}
    assert told["columns"] == ["random", "oracle", "ceiling"]
    assert "that action retrieved nothing" in told["failed"]["closed-book"], (
        "this chain takes the first title"
    )
    rows = told["metrics"]
    assert rows["Rprec"]["oracle"]["value"] == 1.0 and "ceiling" not in rows["Rprec"]
    assert {cell["n"] for cell in rows["em"].values()} == {8}
    oracle = bench.runs.open("title oracle")
    pages = [episode.hits[0].passage.page_id for episode in oracle.episodes().values()]
    assert pages == [page for _, _, _, page in QUESTIONS]
    before = (oracle.path / "report.json").stat().st_mtime_ns
    again = cli("baselines", "title", "--no-mlflow")
    assert again.code == 0 and "oracle passage" in again.out and "retrieval ceiling" in again.out
    assert "title random" not in again.err
    assert (oracle.path / "report.json").stat().st_mtime_ns == before


def test_where_all_lines_fail_the_run_is_shown_and_the_exit_code_is_1_until_it_is_mended(
    bench: Workbench, cli: CommandLine
) -> None:
    models = bench.workspace.path / "llms.json"
    entries = {**json.loads(models.read_text()), **scripted({"titan": {"replies": []}})}
    models.write_text(json.dumps(entries))
    ran = cli("baselines", "read", "--no-mlflow", "--json")
    assert ran.code == 1 and set(ran.json["failed"]) == {"closed-book", "random", "oracle"}
    assert "run" in ran.json["metrics"]["em"]
    assert ran.last.startswith(
        "3 of 3 baselines failed: closed book, random passage, oracle passage. Run the baselines of 'read' again"
    )


def test_a_run_of_another_chain_by_that_name_is_let_be(bench: Workbench, cli: CommandLine) -> None:
    plan = prepared(
        bench.workspace, bench.workspace.chain("closed"), "tiny-qa", name="read oracle", track=False
    )
    list(bench.runs.run(plan))
    refused = cli("baselines", "read", "--no-mlflow")
    assert refused.code == 2
    assert "'read oracle' exists already and is not a baseline of 'read'" in refused.last
    assert list(baselines.stored_baselines(bench.workspace, bench.runs.open("read"))) == []


def test_a_dataset_that_was_changed_is_told(bench: Workbench, cli: CommandLine) -> None:
    write_lines(
        bench.workspace.path / "datasets" / "bare.jsonl", [record("x", "Triton?", "Triton", "p2")]
    )
    refused = cli("baselines", "two", "--no-mlflow")
    assert refused.code == 2
    assert "The dataset 'bare' was changed after 'two' was run" in refused.last


def test_the_lines_of_a_run_are_let_go_again_and_asked_once(bench: Workbench) -> None:
    with bench.models.lease("the test") as lease:
        chain = bench.workspace.chain("read")
        complete(lease.load_for(chain.llms, chain.retrievers))
    result = complete(perform(bench, "read"))
    assert [run.run for run in result.runs] == ["read closed-book", "read random", "read oracle"]
    assert {line.name for line in bench.models.status()} == {"titan", "tiny"} and not any(
        "gold" in name for name in bench.models.load_outcomes()
    )
    again = complete(perform(bench, "read"))
    assert all(run.reused for run in again.runs) and again.stored == result.stored
    shutil.rmtree(bench.workspace.path / "experiments")
    complete(perform(bench, "read"))
    assert bench.experiments.store.names(("baselines",)) == ["read baselines"], "reports are found"
    read = bench.runs.open("read")
    comparison = compare_baselines(read, baselines.stored_baselines(bench.workspace, read))
    assert comparison.columns == ("closed-book", "random", "oracle", "ceiling")
    em = {column: mean.value for column, mean in comparison.metrics["em"].items()}
    own = {em[column] for column in ("run", "closed-book", "oracle")}
    assert own == {1 / 8}, "this model says Titan whatever it reads"
    assert em["ceiling"] == 1.0 and "ceiling" not in comparison.metrics["seconds"]
    tests = {(row[0], row[1]): row for row in comparison.tests.rows}
    row = tests["the run less oracle passage", "em"]
    assert row[2] == Estimate(0.0, n=8)
    assert len({label for label, _ in tests}) == 3, "the ceiling is not a run"


def test_the_baselines_of_a_run_with_a_seed_have_its_seed(bench: Workbench) -> None:
    chain = bench.workspace.chain("read")
    seeded = prepared(bench.workspace, chain, "tiny-qa", name="it", seed=3, limit=1, track=False)
    list(bench.runs.run(seeded))
    report = complete(perform(bench, "it")).stored
    assert list(report.lines) == ["closed-book", "random", "oracle"]


def test_a_stop_ends_the_lines_and_they_can_be_continued_afterwards(bench: Workbench) -> None:
    slow = with_overrides(bench.workspace.chain("read"), {"2.target": "slow"})
    late = prepared(bench.workspace, slow, "tiny-qa", name="late", limit=1, track=False)
    list(bench.runs.run(late))

    def follow() -> Iterator[Any]:
        work = perform(bench, "late")
        return job_pieces(
            bench.jobs.submit("baselines", "late", 0, lambda job: work), ExperimentResult
        )

    lines = follow()
    next(lines)
    bench.jobs.stop("baselines late")
    with pytest.raises(StoppedError):
        list(lines)
    assert not (bench.workspace.runs / "late random").exists()
    *_, result = follow()
    assert [run.n for run in result.runs] == [1, 1, 1]
    assert (bench.workspace.runs / "late oracle" / "report.json").is_file()


def test_the_plan_names_the_lines_and_runs_none(bench: Workbench, cli: CommandLine) -> None:
    before = everything(bench.workspace.path)
    plan = cli.json("baselines", "read", "--plan")
    names = [part["run"] for part in plan["plan"]]
    assert names == ["read closed-book", "read random", "read oracle"]
    assert "read oracle" not in cli("baselines", "read", "--plan").err
    assert everything(bench.workspace.path) == before


def test_the_list_of_experiments_shows_a_run_beside_its_baselines(bench: Workbench) -> None:
    complete(perform(bench, "read"))
    row = experiment_groups.group(bench.workspace, "read baselines")
    assert row.mean is not None and (row.winner, row.metric) == ("", "em")
    assert (row.mean.value, row.mean.n) == (1 / 8, 8)
    assert row.beside.startswith("closed book 12.5 %, ") and row.beside.endswith("ceiling 100.0 %")


@pytest.mark.slow
def test_mlflow_shows_the_lines_of_a_run_below_parents(bench: Workbench, cli: CommandLine) -> None:
    from rallebench.tracking.connection import connect, default_uri

    uri = default_uri(bench.workspace.path)
    told = cli.json("baselines", "title", "--tracking-uri", uri)
    client = connect(uri)
    experiment = client.get_experiment_by_name("rallebench").experiment_id
    (parent,) = client.search_runs([experiment], "tags.`rallebench.kind` = 'baselines'")
    below = client.search_runs([experiment], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    tags = {child.data.tags["rallebench.run"]: child.info.run_name for child in below}
    assert set(tags) == set(told["lines"].values())
    assert tags["title oracle"] == "oracle passage · title baselines"
    sent = cli.json("track", "title baselines", "--tracking-uri", uri)
    assert sent["mlflow_run_id"] == parent.info.run_id
