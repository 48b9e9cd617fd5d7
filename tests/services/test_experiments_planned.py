"""Fields that an experiment can vary, its forecast, and its line in the list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rallebench.chains.overrides import with_overrides
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.core.events import complete
from rallebench.core.experiment_reports import PartResult, RankingReport, SuiteReport, VariantResult
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json, write_json
from rallebench.core.forecast import Forecast, Range
from rallebench.core.report import Estimate
from rallebench.core.run_results import Ranking
from rallebench.core.runs import RunOptions
from rallebench.core.types import Chain
from rallebench.engine import dry_run
from rallebench.gui.places._plan import facts
from rallebench.services import experiment_jobs, forecasts
from rallebench.services.workbench import Workbench
from rallebench.views import (
    catalog,
    designs,
    experiment_groups,
    experiment_requests,
    experiment_results,
    published,
    run_requests,
)
from rallebench.views.experiment_design import Design, build_request, command
from rallebench.views.run_requests import BenchmarkOptions
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.indexes.cache import chunk_corpus
from rallebench.workspace.indexes.rates import LEAST_PASSAGES, save_rate
from rallebench.workspace.indexes.recipes import index_recipe


def sweep(
    bench: Workbench, chosen: dict[str, list[str]], typed: dict[str, str] | None = None, **more: Any
) -> ExperimentRequest:
    chain = bench.workspace.chain("read")
    texts = designs.factors(bench.workspace, chain, chosen, typed or {})
    return experiment_requests.sweep_request(
        bench.workspace, more.pop("name", "s"), chain, texts, "tiny-qa", **more
    )[0]


def run(bench: Workbench, request: ExperimentRequest) -> experiment_groups.ExperimentRow:
    complete(bench.experiments.run(request, RunOptions(track=False)))
    return experiment_groups.group(bench.workspace, request.name)


# choosing


def test_every_field_of_a_chain_is_offered_with_the_chains_own_value(bench: Workbench) -> None:
    known = designs.variables(bench.workspace, bench.workspace.chain("read"))
    assert (known["k"].current, known["retriever"].current, known["llm"].current) == (
        "2",
        "tiny",
        "titan",
    )
    assert ("2", "2") in known["k"].choices and ("echo", "echo") in known["llm"].choices
    assert {"index.chunk_size", "index.encoder", "temperature", "2.template"} <= known.keys()
    assert known["k"].own and not known["llm"].own


def test_a_chain_without_retrieval_has_no_k_and_no_index(bench: Workbench) -> None:
    known = designs.variables(bench.workspace, bench.workspace.chain("closed"))
    assert "k" not in known and not any(name.startswith("index.") for name in known)


def test_prompts_of_other_chains_are_offered_once_each(bench: Workbench) -> None:
    offered = designs.prompts(bench.workspace, bench.workspace.chain("read"), 2)
    assert next(iter(offered)) == "as it is" and len(set(offered.values())) == len(offered)


def test_values_with_commas_and_typed_prompts_survive(bench: Workbench) -> None:
    request = sweep(
        bench,
        {"retriever": ["tiny", "rrf:tiny,tiny"], "2.template": ["mine"]},
        {"mine": "a, (b),\n{question}"},
    )
    assert request.settings["vary"][0] == "retriever=tiny,(rrf:tiny,tiny)"
    variation = designs.stored_variation(request.settings)
    assert variation.values == {"retriever": ("tiny", "rrf:tiny,tiny"), "2.template": ("mine",)}
    assert variation.prompts == {"mine": "a, (b),\n{question}"}


def test_another_prompt_of_one_name_does_not_overwrite_the_first(bench: Workbench) -> None:
    first = sweep(bench, {"2.template": ["mine"]}, {"mine": "{question}"})
    second = sweep(bench, {"2.template": ["mine"]}, {"mine": "other {question}"})
    assert designs.stored_variation(first.settings).prompts == {"mine": "{question}"}
    assert [*designs.stored_variation(second.settings).prompts.values()] == ["other {question}"]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"k": []}, "k: choose at least one value, or remove it."),
        ({"9.k": ["1"]}, "has no field 9.k"),
        ({"2.template": ["gone"]}, "no prompt 'gone' any more"),
    ],
)
def test_what_cannot_be_varied_is_a_sentence(
    bench: Workbench, chosen: dict[str, list[str]], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        sweep(bench, chosen)


def test_every_benchmark_has_its_settings_and_lists_their_values(bench: Workbench) -> None:
    for names in designs.suites().values():
        for name in names:
            _, _, form = designs.suite_about(name)
            offered = catalog.choices(bench.workspace, form)
            assert (
                set(designs.advanced_settings(form)) <= form.keys()
                and offered.keys() <= form.keys()
            )
            for setting in (setting for setting in form if form[setting].many):
                default = str(form[setting].default or "")
                known = {*offered.get(setting, ())}
                assert {v for v in default.split(",") if v} <= known, (name, setting)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (
            Design(vary={"k": ["1", "2"]}, limit="3"),
            "sweep --chain read --strategy grid --vary k=1,2 --limit 3",
        ),
        (
            Design(kind="tradeoff", indexes=["tiny"], knobs={}),
            "tradeoff --index tiny -k 10 --limit 200",
        ),
        (
            Design(
                kind="suite",
                suite="kilt-nq",
                llm="titan",
                settings={
                    "kilt-nq": {"file": "tiny-qa", "retriever": "tiny", "rewrite": "on", "k": "3"}
                },
            ),
            "suite kilt-nq --llm titan --set file=tiny-qa --set retriever=tiny --set k=3",
        ),
    ],
)
def test_what_was_chosen_is_a_command_line(bench: Workbench, design: Design, words: str) -> None:
    design.dataset = "tiny-qa"
    line = command(build_request(bench.workspace, design, bench.workspace.chain("read"))).split()
    assert line[:3] == ["python", "-m", "rallebench"]
    rest = iter(line[3:])
    assert all(word in rest for word in words.split()), line


@pytest.mark.parametrize(
    ("models", "llm", "compared"), [([], "titan", ""), (["titan", "echo"], "titan", "titan,echo")]
)
def test_models_that_are_ticked_are_compared_and_else_the_one_that_is_chosen_is_asked(
    bench: Workbench, models: list[str], llm: str, compared: str
) -> None:
    settings = {"reval-scholar": {"models": models, "workflows": ["react"]}}
    design = Design(kind="suite", suite="reval-scholar", llm=llm, settings=settings)
    request = build_request(bench.workspace, design, bench.workspace.chain("read"))
    assert request.settings["models"] == compared
    assert request.llm == ("" if compared else llm)


def test_the_settings_of_a_search_are_offered_with_the_values_to_try(bench: Workbench) -> None:
    corpus = bench.workspace.path / "corpus.tsv"
    list(bench.data.build_index("near", corpus, "hnsw", encoder="hashing"))
    offered = designs.search_knobs(bench.workspace, ["tiny", "near", "nobody"])
    assert {name: values for name, (_, values) in offered.items()} == {
        "ef_search": ["16", "32", "64", "128", "256"]
    }


def test_an_experiment_is_continued_with_the_seed_it_was_begun_with(bench: Workbench) -> None:
    begun = sweep(bench, {"k": ["1", "2"]}, seed=3)
    bench.experiments.store.save_request("s", "sweep", begun.content, {}, "sweep")
    assert designs.stored_request(bench.workspace, "s").to_json() == begun.to_json()


def test_an_experiment_that_is_stopped_before_its_first_run_is_listed(bench: Workbench) -> None:
    work = bench.experiments.run(sweep(bench, {"k": ["1", "2"]}), RunOptions(track=False))
    next(work)
    assert not bench.experiments.store.exists("s")
    work.close()
    (row,) = experiment_groups.groups(bench.workspace)
    assert row.name == "s" and not row.ended
    assert run(bench, designs.stored_request(bench.workspace, "s")).ended, "it can be continued"


# forecasts


def test_a_plan_names_missing_gold_pages_once(bench: Workbench) -> None:
    request = sweep(bench, {"retriever": ["tiny", "starter-bm25"]})
    said = [note for note in bench.forecasts.plan(request).notes if "gold pages" in note]
    assert len(said) == 1 and said[0].startswith(
        "0 of 6 gold pages are in this index (starter-bm25)"
    )


def test_a_forecast_counts_without_asking_and_knows_what_is_left(bench: Workbench) -> None:
    request = sweep(bench, {"k": ["1", "2"]}, limit=4)
    value = bench.forecasts.forecast(request)
    assert (value.count, value.questions, value.open, value.generations) == (2, 8, 8, Range(8, 8))
    assert value.seconds is None and value.usd == 0.0 and not value.notes
    run(bench, request)
    again = bench.forecasts.forecast(request)
    assert (again.questions, again.open) == (8, 0)
    other = bench.forecasts.forecast(sweep(bench, {"k": ["1", "2"]}, name="other"))
    assert other.cached == 8, "four questions of each variant are in the cache"
    assert other.basis == "as earlier runs" and other.seconds and other.seconds[0] > 0
    same = bench.forecasts.forecast(sweep(bench, {"k": ["1", "2"]}, name="same", limit=4))
    assert same.cached == 8 and same.seconds is not None and same.seconds[0] == 0


def store_run(bench: Workbench, chain: Chain, name: str, seconds: float) -> None:
    """A stored run of four questions that took ``seconds`` in all."""
    options = BenchmarkOptions(dataset="tiny-qa", limit=4, run=RunOptions(track=False))
    prepared = run_requests.of_chain(bench.workspace, chain, options, run=name)
    complete(bench.runs.run(prepared))
    folder = bench.runs.open(name)
    report = folder.report()
    assert report is not None and report.cost is not None
    uncached = replace(report.cost.uncached, questions=4, seconds=seconds)
    cost = replace(report.cost, uncached=uncached)
    folder.write_report(replace(report, seconds=seconds, steps_from_memory=0, cost=cost))


def test_the_time_of_a_plan_is_a_range_from_runs_of_the_same_chain(bench: Workbench) -> None:
    chain = bench.workspace.chain("read")
    store_run(bench, chain, "first", 8.0)
    store_run(bench, replace(chain, name="by another name"), "second", 16.0)
    low, high = forecasts.FASTER * 2.0, forecasts.SLOWER * 4.0
    known = bench.forecasts.speed(chain_flow(chain))
    assert known is not None and known.seconds == pytest.approx((3.0, low, high))


@pytest.mark.parametrize("other", ["closed", "another k", "another model"])
def test_a_run_of_another_chain_tells_no_time(bench: Workbench, other: str) -> None:
    chain = bench.workspace.chain("read")
    store_run(bench, bench.workspace.chain("closed"), "closed", 0.1)
    variants = {
        "closed": chain,
        "another k": with_overrides(chain, {"k": 1}),
        "another model": with_overrides(chain, {"llm": "echo"}),
    }
    if other != "closed":
        store_run(bench, chain, "read", 0.1)
        assert bench.forecasts.speed(chain_flow(chain)) is not None
    assert bench.forecasts.speed(chain_flow(variants[other])) is None


def test_a_run_of_a_model_that_is_another_now_tells_no_time(bench: Workbench) -> None:
    chain = bench.workspace.chain("read")
    store_run(bench, chain, "read", 8.0)
    assert bench.forecasts.speed(chain_flow(chain)) is not None
    path = bench.workspace.runs / "read" / "run.json"
    stored = read_json(path)
    stored["spec"]["settings"]["backends"]["llm titan"] = "the model before"
    write_json(path, stored)
    assert bench.runs.open("read").description().spec.to_json() == stored["spec"]
    assert bench.forecasts.speed(chain_flow(chain)) is None


def index_plan(bench: Workbench, recipe: Any) -> Forecast:
    return Forecast("sweep", "s", (), indexes=1, builds=(recipe,))


def test_indexes_to_build_are_timed_by_their_passages_and_the_measured_encoder(
    bench: Workbench,
) -> None:
    space = bench.workspace
    recipe = index_recipe(space.path / "corpus.tsv", "numpy-flat", encoder="hashing")
    plan = index_plan(bench, recipe)
    assert bench.forecasts.building(plan) is None, "its passages were never counted"
    passages = complete(chunk_corpus(space.cache, recipe)).passages
    assert bench.forecasts.building(plan) is None, "its encoder was never measured"
    save_rate(space.vectors, "hashing", LEAST_PASSAGES - 1, 1.0)
    assert bench.forecasts.building(plan) is None, "too few passages tell no speed"
    save_rate(space.vectors, "hashing", 100, 50.0)
    took = bench.forecasts.building(plan)
    assert took is not None and took[0] == pytest.approx(passages / 2)
    assert took[1] < took[0] < took[2]


def test_a_plan_that_must_build_an_index_of_unknown_size_names_no_time(bench: Workbench) -> None:
    request = sweep(bench, {"index.chunk_size": ["50", "100"]})
    value = bench.forecasts.forecast(request)
    assert value.builds and value.seconds is None and value.building is None


def test_an_estimate_measures_the_indexes_that_must_be_built(bench: Workbench) -> None:
    request = sweep(bench, {"index.chunk_size": ["50", "100"]})
    job = experiment_jobs.estimate(
        bench.experiments, bench.jobs, request, bench.forecasts.plan(request)
    )
    assert job.wait(60) and job.error is None
    value = bench.forecasts.forecast(request)
    assert value.seconds is None and value.building is not None and value.building[0] > 0
    assert not list(bench.workspace.cache.glob("passages/*")), "nothing was built for it"
    assert "Building 2 indexes takes a few seconds." in facts(value)


def test_the_first_questions_of_a_large_run_stand_for_the_others_in_its_plan(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[str] = []

    def answer(flow: Any, question: Any, *more: Any) -> Any:
        played.append(question.qid)
        return dry_run_answer(flow, question, *more)

    dry_run_answer = dry_run._answer
    monkeypatch.setattr(dry_run, "_answer", answer)
    monkeypatch.setattr(dry_run, "MOST_PLAYED", 3)
    plan = bench.experiments.plan(sweep(bench, {"k": ["1"]}))
    assert set(played) == {"q1", "q2", "q3"}
    assert (plan.runs[0].questions, plan.runs[0].open) == (8, 8)
    assert (plan.runs[0].generations.low, plan.runs[0].retrievals.high) == (8, 8)


def test_the_cache_is_not_told_before_the_models_are_loaded(bench: Workbench) -> None:
    assert bench.forecasts.forecast(sweep(bench, {"k": ["1"]})).cached is None
    chain = bench.workspace.chain("read")
    examples = bench.workspace.questions("tiny-qa")[:2]
    assert bench.forecasts.in_cache([chain], examples) is None
    list(bench.models.load("titan", "language model"))
    list(bench.models.load("tiny", "retriever"))
    assert bench.forecasts.in_cache([chain], examples) == (0, 0)
    complete(bench.asking.answer(examples[0].question.text, chain))
    assert bench.forecasts.in_cache([chain], examples) == (1, 1)


def test_a_servers_model_without_a_price_has_no_price(bench: Workbench) -> None:
    settings = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    bench.workspace.save_llm("far", LLMEntry(backend="openai_compatible", settings=settings))
    assert bench.forecasts.forecast(sweep(bench, {"llm": ["far"]})).usd is None


# groups


def test_the_winner_stands_beside_the_chain_as_it_is(bench: Workbench) -> None:
    row = run(bench, sweep(bench, {"llm": ["titan", "echo"]}))
    assert (row.title, row.about) == ("Sweep of model", "2 variants · tiny-qa")
    assert row.winner == "model titan" and row.metric == "EM" and row.share
    assert row.ended and not row.automatic


def suite_report(kind: str, *values: float) -> experiment_groups.ExperimentRow:
    """The line of a suite with these shares of right answers in its parts."""
    parts = (
        PartResult(f"noise={i}", metrics={"all_rate": Estimate(v, n=9)})
        for i, v in enumerate(values)
    )
    line = experiment_groups.ExperimentRow("s", kind, "", "", True, 0.0)
    return experiment_groups._with_parts(line, SuiteReport(parts=tuple(parts)), kind)


def test_a_robustness_test_has_no_winner_but_the_range_of_its_conditions() -> None:
    row = suite_report("rgb-noise", 0.8, 0.9)
    assert not row.winner and row.mean is None
    assert row.beside == "noise 0: all_rate 80.0 % · noise 1: all_rate 90.0 %"
    (mean,) = [suite_report("rgb-noise", 0.8).mean]
    assert mean is not None and mean.value == 0.8
    assert suite_report("barag-modes", 0.8, 0.9).winner == "noise=1", "modes compete"


def test_a_time_does_not_stand_for_the_score_of_what_goes_on() -> None:
    part = experiment_jobs.PartState("noise=0", "running", means={"seconds": (1.56, 3)})
    assert experiment_jobs.headline(part) is None
    part.means["all_rate"] = (0.9, 3)
    assert experiment_jobs.headline(part) == ("all_rate", 0.9, 3)


def test_a_ranking_can_be_decided_by_another_metric(bench: Workbench) -> None:
    run(bench, sweep(bench, {"k": ["1", "2"]}))
    stored = bench.experiments.store.open("s")
    value = experiment_results.ranking(bench.workspace, stored, "f1")
    assert value.result.metric == "f1" and "em" in value.metrics
    table = experiment_results.ranking_table(value)
    assert table.title == "s" and table.note == value.result.verdict
    assert [row[0] for row in table.rows] == [row.variant for row in value.result.variants]
    assert [len(row) for row in table.rows] == [len(table.columns)] * 2
    head, reason = experiment_results.verdict(value)
    assert head == "No winner: 2 are equal." and reason.startswith("F1 ")
    assert "The cheapest is k 1." in reason and reason.endswith("too few to show a difference.")
    kinds = [figure.kind for figure in experiment_results.figures(value)]
    assert kinds[0] == "line" and set(kinds[1:]) <= {"bubble"}


@pytest.mark.parametrize(
    ("n", "others", "head", "reason"),
    [
        (222, [(0.4, 0.01), (0.3, 0.001)], "k 0 wins.", "Better than each of the 2 others (p <"),
        (222, [(0.4, 0.01)], "k 0 wins.", "Better than the other variant (p < .05)."),
        (222, [(0.4, 0.2), (0.3, 0.01)], "No winner: k 0 leads.", "No difference is shown to k 1."),
        (222, [(0.5, 1.0), (0.3, 0.01)], "No winner: 2 are equal.", "The cheapest is k 0. Better"),
        (222, [(0.5, 1.0)], "No winner: 2 are equal.", "questions. The cheapest is k 0."),
        (40, [(0.4, None)], "No winner: k 0 leads.", "40 questions are too few"),
        (10, [(0.4, 0.2)], "No winner: k 0 leads.", "10 questions are too few"),
        (20, [(0.1, 0.01)], "k 0 wins.", "EM 50.0 % on 20 questions. Better than the other"),
    ],
)
def test_a_variant_wins_only_where_it_is_shown_to_be_better_than_every_other(
    n: int, others: list[Any], head: str, reason: str
) -> None:
    rows = tuple(
        VariantResult(f"r{i}", f"k={i}", {"em": Estimate(v, n=n)}, p_corrected=p)
        for i, (v, p) in enumerate([(0.5, None), *others])
    )
    value = Ranking(RankingReport("s", "em", rows))
    told = experiment_results.verdict(value)
    assert told[0] == head and reason in told[1]
    assert experiment_groups.standing(rows, "em").open == head[11:-1] * head.startswith("No")


def test_progress_is_one_over_all_runs_and_says_little_of_much(bench: Workbench) -> None:
    request = sweep(bench, {"k": ["1", "2"]})
    job = bench.experiments.start(request, RunOptions(track=False), bench.forecasts.plan(request))
    assert job.wait(60) and job.error is None
    whole = [event for event in job.events() if getattr(event, "task", None) == ""]
    assert whole[-1].done == whole[-1].total == 16 and len(whole) <= 102
    best = experiment_jobs.headline(experiment_jobs.parts(job)[0])
    assert best is not None and best[0] == "em" and best[2] == 8


# published


def test_published_tables_have_short_names_and_print_as_the_paper_does() -> None:
    names = [name for tables in published.list_tables().values() for name, _ in tables]
    assert len(set(names)) == len(names) and {"ralle:2", "rgb:1", "rgb:text"} <= {*names}
    table = published.as_table(published.open_table("rgb:1"))
    assert table.labels[:3] == ("System", "model", "en_0") and table.rows[0][2] == "96.33"
