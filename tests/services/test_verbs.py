"""Every call of a part of the workbench has a test of its name: ``test_PART_VERB`` and what it does."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import Loopback, serving
from performing import prepared
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import QUESTIONS, RECORDS, copy_workspace, make_workspace, write_lines

from rallebench.core.errors import Hint, NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunOptions
from rallebench.core.types import Chain, Episode, Question
from rallebench.experiments.benchmark import Benchmark
from rallebench.experiments.sweeps.running import sweep_settings
from rallebench.services.episodes import EpisodeRequest
from rallebench.services.tracking import group_of
from rallebench.services.workbench import Workbench
from rallebench.workspace.entries import LLMEntry

TITAN = Question("q1", QUESTIONS[0][1])
LLM, RETRIEVER = "language model", "retriever"
UNTRACKED = RunOptions(track=False)


def verbs(bench: Workbench) -> Iterator[tuple[str, str]]:
    """(part, verb) of every public call of the workbench's parts."""
    for part, value in vars(bench).items():
        if type(value).__module__.startswith("rallebench.services"):
            yield from ((part, name) for name in vars(type(value)) if not name.startswith("_"))


def test_every_verb_has_a_test_of_its_name(bench: Workbench) -> None:
    tests = [
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef)
    ]
    stems = sorted((f"test_{part}_{verb}" for part, verb in verbs(bench)), key=len, reverse=True)
    assert len(stems) > 80
    owners = {next((s for s in stems if f"{t}_".startswith(f"{s}_")), "") for t in tests}
    assert set(stems) - owners == set(), "write a test of this name"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("made"))


@pytest.fixture
def bench(made: Path, tmp_path: Path) -> Iterator[Workbench]:
    bench = Workbench(copy_workspace(made, tmp_path / "workspace"))
    yield bench
    bench.close()


@pytest.fixture
def read(bench: Workbench) -> Chain:
    return bench.workspace.chain("read")


def loaded(bench: Workbench, *names: str) -> Workbench:
    for name in names:
        list(bench.models.load(name, RETRIEVER if name == "tiny" else LLM))
    return bench


def benchmark(bench: Workbench, name: str = "x", chain: str = "read") -> Benchmark:
    return prepared(
        bench.workspace,
        bench.workspace.chain(chain),
        "tiny-qa",
        name=name,
        metrics=("em",),
        track=False,
    )


def run(bench: Workbench, *names: str) -> Workbench:
    for name in names:
        complete(bench.runs.run(benchmark(bench, name)))
    return bench


# models: what is loaded


def test_models_backends_is_a_snapshot(bench: Workbench) -> None:
    backends = loaded(bench, "titan", "tiny").models.backends
    bench.models.unload("titan")
    assert list(backends.llms) == ["titan"] and list(bench.models.backends.llms) == []


def test_models_encoders_opens_an_encoder_once(bench: Workbench) -> None:
    assert bench.models.encoders("hashing") is bench.models.encoders("hashing")


def test_models_status_has_a_row_for_each(bench: Workbench) -> None:
    assert [(row.name, row.kind) for row in loaded(bench, "titan", "tiny").models.status()] == [
        ("titan", LLM),
        ("tiny", RETRIEVER),
    ]


def test_models_is_loaded_knows_the_name(bench: Workbench) -> None:
    assert loaded(bench, "titan").models.is_loaded("titan") and not bench.models.is_loaded("echo")


def test_models_is_loaded_as_refuses_another_kind(bench: Workbench) -> None:
    assert loaded(bench, "titan").models.is_loaded_as("titan", LLM)
    with pytest.raises(UsageError, match="is loaded as a language model"):
        bench.models.is_loaded_as("titan", RETRIEVER)


def test_models_refuse_used_names_the_holder(bench: Workbench) -> None:
    lease = bench.models.lease("the test").hold(["titan"])
    with lease, pytest.raises(UsageError, match="in use by the test"):
        bench.models.refuse_used("titan")
    bench.models.refuse_used("titan")


def test_models_refuse_heavy_passes_a_light_model_and_hints_to_load_a_heavy_one(
    bench: Workbench,
) -> None:
    bench.workspace.save_llm("huge", LLMEntry(backend="transformers", settings={"model": "/no"}))
    bench.models.refuse_heavy("titan", LLM)
    with pytest.raises(NotFoundError) as refusal:
        bench.models.refuse_heavy("huge", LLM)
    assert refusal.value.hint == Hint("load", "huge")


def test_models_memory_is_of_what_is_loaded(bench: Workbench) -> None:
    assert list(loaded(bench, "tiny").models.memory(["tiny", "titan"])) == ["tiny"]


def test_models_prices_are_unknown_without_an_entry(bench: Workbench) -> None:
    assert loaded(bench, "titan").models.prices() == {"titan": None}


def test_models_room_is_none_for_a_scripted_model(bench: Workbench) -> None:
    assert bench.models.room("titan") is None


def test_models_room_in_every_form_is_empty_for_a_scripted_model(bench: Workbench) -> None:
    assert bench.models.room_in_every_form("titan") == {}


def test_models_quantization_of_is_none_where_there_is_no_choice(bench: Workbench) -> None:
    assert bench.models.quantization_of("titan") == "none"


# models: loading


def test_models_begin_returns_at_once_and_joins_a_running_load(bench: Workbench) -> None:
    with bench.models.queue.turn:
        load = bench.models.begin("titan", LLM)
        assert load is not None and bench.models.begin("titan", LLM) is load
    assert load.job.wait(10) and bench.models.begin("titan", LLM) is None


def test_models_loading_lists_a_load_that_waits(bench: Workbench) -> None:
    with bench.models.queue.turn:
        load = bench.models.begin("titan", LLM)
        assert load is not None and bench.models.loading()["titan"].waiting


def test_models_cancel_ends_a_waiting_load(bench: Workbench) -> None:
    with bench.models.queue.turn:
        load = bench.models.begin("titan", LLM)
        assert bench.models.cancel("titan") == "Cancelling titan …"
        assert load is not None and load.job.wait(10)
    assert not bench.models.is_loaded("titan")
    with pytest.raises(NotFoundError, match="Nothing is being loaded"):
        bench.models.cancel()


def test_models_ended_tells_how_a_load_ended(bench: Workbench) -> None:
    assert str(loaded(bench, "titan").models.ended()["titan"]).startswith("loaded titan: ")


def test_models_forget_forgets_how_loads_ended(bench: Workbench) -> None:
    loaded(bench, "titan").models.forget()
    assert bench.models.ended() == {} and bench.models.is_loaded("titan")


def test_models_close_unloads_everything(bench: Workbench) -> None:
    loaded(bench, "titan", "tiny").models.close()
    assert bench.models.status() == []


# models: entries


def test_models_own_reads_the_workspaces_file(bench: Workbench) -> None:
    assert "titan" in bench.models.own()


def test_models_entry_is_one_of_the_own(bench: Workbench) -> None:
    assert bench.models.entry("titan").backend == "scripted"
    with pytest.raises(NotFoundError, match="There is no language model 'none'"):
        bench.models.entry("none")


def test_models_check_name_refuses_a_retrievers(bench: Workbench) -> None:
    assert bench.models.check_name(" mine ") == "mine"
    with pytest.raises(UsageError, match="'tiny' is a retriever"):
        bench.models.check_name("tiny")


def test_models_users_are_the_chains_that_name_it(bench: Workbench) -> None:
    assert bench.models.users("titan") == ["the chain closed", "the chain read"]


ECHO = LLMEntry(backend="scripted", settings={"echo": True})


def test_models_add_saves_an_entry_once(bench: Workbench) -> None:
    assert bench.models.add("mine", ECHO)[0].startswith("Saved mine in ")
    with pytest.raises(UsageError, match="already"):
        bench.models.add("mine", ECHO)


def test_models_add_and_load_loads_it_with_its_new_settings(bench: Workbench) -> None:
    list(bench.models.add_and_load("mine", ECHO))
    list(bench.models.add_and_load("mine", LLMEntry(backend="scripted", settings={}), replace=True))
    assert bench.models.is_loaded("mine") and bench.models.entry("mine").settings == {}


def test_models_delete_names_the_chains_that_break(bench: Workbench) -> None:
    assert "The chain closed, the chain read can no longer run" in bench.models.delete("titan")
    assert "titan" not in bench.models.own()


def test_models_delete_refuses_a_loaded_model(bench: Workbench) -> None:
    with pytest.raises(UsageError) as refusal:
        loaded(bench, "titan").models.delete("titan")
    assert refusal.value.hint == Hint("unload", "titan")


def test_models_served_lists_a_servers_models(bench: Workbench) -> None:
    with Loopback(serving("b", "a")) as server:
        assert bench.models.served({"base_url": server.url}) == ("a", "b")


def test_models_needs_asks_for_a_model_first(bench: Workbench) -> None:
    assert bench.models.needs({}).bytes == 0 and bench.models.needs({}).fits


# asking


def test_asking_memo_is_the_workspaces_cache_of_replies(bench: Workbench, read: Chain) -> None:
    assert bench.asking.memo is bench.asking.memo


def test_asking_memo_warning_is_empty_where_the_cache_can_be_written(bench: Workbench) -> None:
    assert bench.asking.memo.warning == bench.asking.memo_warning == ""


def test_asking_close_closes_the_cache_and_it_opens_again(bench: Workbench) -> None:
    before = bench.asking.memo
    bench.asking.close()
    assert bench.asking.memo is not before


def test_asking_agent_is_checked_and_loads_nothing(bench: Workbench) -> None:
    agent = bench.asking.agent("react", "wikipedia", "titan", {"env.retriever": "tiny"})
    assert agent.workflow == "react" and bench.models.status() == []
    with pytest.raises(UsageError, match="needs a language model"):
        bench.asking.agent("react", "wikipedia", "", {"env.retriever": "tiny"})


def test_asking_run_agent_ends_with_its_episode(bench: Workbench) -> None:
    agent = bench.asking.agent("react", "wikipedia", "titan", {"env.retriever": "tiny", "steps": 1})
    *_, episode = bench.asking.run_agent(agent, TITAN)
    assert isinstance(episode, Episode) and episode.workflow == "react"


def test_asking_start_episode_goes_on_as_a_job_and_is_read_by_its_name(bench: Workbench) -> None:
    loaded(bench, "titan", "tiny")
    settings = {"env.retriever": "tiny", "steps": 1}
    example = bench.asking.example("tiny-qa", "q1")
    begun = bench.asking.start_episode(
        EpisodeRequest("react", "wikipedia", "titan", settings, "tiny-qa", example)
    )
    job = bench.jobs.get("episode", begun.name)
    assert job is not None and job.wait(60) and job.error is None
    state = bench.asking.episodes.get(begun.name)
    assert state is not None and state.state == "ended" and state.episode is not None
    assert state.episode.qid == "q1" and state.steps == state.episode.steps
    with pytest.raises(UsageError, match="No episode is running"):
        bench.asking.episodes.stop(begun.name)


# runs


def test_runs_run_answers_and_scores_in_the_calling_thread(bench: Workbench) -> None:
    result = complete(bench.runs.run(benchmark(bench)))
    assert (result.n, result.report["metrics"]["em"]["value"]) == (8, 1 / 8)


def test_runs_rescore_adds_a_metric_and_asks_no_model(bench: Workbench) -> None:
    run(bench, "x").models.unload("titan")
    assert "f1" in complete(bench.runs.rescore("x", ["f1"])).report["metrics"]
    assert not bench.models.is_loaded("titan")


def test_runs_folder_of_is_the_folder_of_a_job(bench: Workbench) -> None:
    job = bench.runs.start(benchmark(bench))
    assert job.wait(20)
    folder = bench.runs.folder_of(job)
    assert folder is not None and folder.name == "x"


def test_runs_running_names_the_run_that_runs(bench: Workbench) -> None:
    bench.workspace.chain("closed")
    assert run(bench, "x").runs.running() == ""


def test_runs_list_has_the_newest_first(bench: Workbench) -> None:
    assert {folder.name for folder in run(bench, "a", "b").runs.list()} == {"a", "b"}


def test_runs_open_refuses_an_unknown_name(bench: Workbench) -> None:
    assert run(bench, "x").runs.open("x").report()
    with pytest.raises(UsageError, match="'y'"):
        bench.runs.open("y")


def test_runs_compare_is_question_by_question(bench: Workbench) -> None:
    value, warnings, tables = run(bench, "a", "b", "c").runs.compare(["a", "b"], "em")
    assert (value["difference"], value["flipped"], warnings, tables) == (0.0, [], [], ())
    value, _, tables = bench.runs.compare(["a", "b", "c"], "em")
    assert value["runs"] == ["a", "b", "c"] and len(tables) == 2


def test_runs_open_question_has_the_chain_and_the_episode(bench: Workbench, read: Chain) -> None:
    question = run(bench, "x").runs.open_question("x", 2)
    assert (question.chain, question.dataset, question.episode.qid) == (read, "tiny-qa", "q2")


# experiments


@pytest.fixture
def suite(bench: Workbench, small_suites: None) -> ExperimentRequest:  # noqa: F811
    settings = {"words": "short", "times": 2, "search": False, "note": ""}
    return ExperimentRequest(bench.workspace, "titan", settings, 2, kind="small-alone", name="s")


def test_experiments_plan_counts_the_runs_and_writes_nothing(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    assert [part.questions for part in bench.experiments.plan(suite).runs] == [2, 2]
    assert not bench.experiments.store.exists("s")


def test_experiments_pilot_measures_what_a_plan_costs(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    estimate = complete(bench.experiments.pilot(bench.experiments.plan(suite), suite, questions=1))
    assert estimate.total and not bench.experiments.store.exists("s")


def test_experiments_run_performs_every_part(bench: Workbench, suite: ExperimentRequest) -> None:
    assert len(complete(bench.experiments.run(suite, UNTRACKED)).runs) == 2


def test_experiments_start_performs_it_in_a_job_that_others_join(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    planned = bench.experiments.plan(suite)
    with bench.models.queue.turn:  # its models wait
        job = bench.experiments.start(suite, UNTRACKED, planned)
        assert bench.experiments.start(suite, UNTRACKED, planned) is job
        with pytest.raises(UsageError, match="Another suite is making 's' now"):
            bench.experiments.start(replace(suite, seed=1), UNTRACKED)
    assert job.wait(60) and job.error is None and job.kind == "suite"
    assert bench.experiments.list() == ["s"]


def test_experiments_open_knows_what_was_run(bench: Workbench, suite: ExperimentRequest) -> None:
    complete(bench.experiments.run(suite, UNTRACKED))
    assert bench.experiments.open("s").kind == "small-alone"
    with pytest.raises(UsageError, match="There is no sweep 'y'"):
        bench.experiments.open("y", "sweep")


def test_experiments_list_is_of_one_noun_or_of_all(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    complete(bench.experiments.run(suite, UNTRACKED))
    assert bench.experiments.list() == bench.experiments.list("suite") == ["s"]
    assert bench.experiments.list("sweep") == []


def test_experiments_stop_reaches_the_newest_run(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    complete(bench.experiments.run(suite, UNTRACKED))
    *_, newest = bench.experiments.open("s").runs.values()
    bench.experiments.stop("s")
    assert (bench.workspace.runs / newest / "stop").exists()


def test_experiments_kinds_of_tells_a_run_from_an_experiment(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    complete(bench.experiments.run(suite, UNTRACKED))
    run(bench, "x")
    kinds = [bench.experiments.kinds_of(name) for name in ("x", "s", "y")]
    assert kinds == [["run"], ["suite"], []]


def test_experiments_request_is_of_this_workspace(bench: Workbench, read: Chain) -> None:
    settings = sweep_settings(read, ["k=1,2"], "tiny-qa")
    request = bench.experiments.request("sweep", "ks", settings, 2)
    assert len(bench.experiments.plan(request).runs) == 2


def test_experiments_baselines_is_the_request_for_a_runs_baselines(bench: Workbench) -> None:
    request = run(bench, "x").experiments.baselines("x")
    assert (request.kind, request.settings) == ("baselines", {"run": "x"})


def test_experiments_open_tradeoff_refuses_another_experiment(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    complete(bench.experiments.run(suite, UNTRACKED))
    with pytest.raises(UsageError, match="is no trade-off"):
        bench.experiments.open_tradeoff("s")


# data


def imported(bench: Workbench) -> Workbench:
    list(bench.data.import_corpus("moons", bench.workspace.path / "corpus.tsv"))
    return bench


def test_data_preview_corpus_shows_the_first_passages(bench: Workbench) -> None:
    preview = bench.data.preview_corpus(bench.workspace.path / "corpus.tsv", rows=2)
    assert (len(preview.rows), preview.read, preview.bad, preview.ended) == (2, 6, 0, True)


def test_data_preview_questions_shows_the_first_and_counts_bad_rows(
    bench: Workbench, tmp_path: Path
) -> None:
    preview = bench.data.preview_questions(write_lines(tmp_path / "q.jsonl", [*RECORDS, {"id": 1}]))
    assert (len(preview.rows), preview.bad) == (8, 1)


def test_data_import_corpus_ends_with_its_card(bench: Workbench) -> None:
    *_, corpus = bench.data.import_corpus("moons", bench.workspace.path / "corpus.tsv")
    assert (corpus.name, corpus.passages) == ("moons", 6)


def test_data_corpora_lists_the_imported(bench: Workbench) -> None:
    assert list(imported(bench).data.corpora()) == ["moons"]


def test_data_documents_are_read_in_order(bench: Workbench) -> None:
    assert [row.doc_id for row in imported(bench).data.documents("moons")] == [*"123456"]


def test_data_delete_corpus_removes_it(bench: Workbench) -> None:
    assert imported(bench).data.delete_corpus("moons").startswith("Deleted the corpus moons.")
    assert bench.data.corpora() == {}


def test_data_import_dataset_takes_a_sample(bench: Workbench, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "q.jsonl", RECORDS)
    assert bench.data.import_dataset("mine", source, sample=3).questions == 3
    assert len(bench.asking.questions("mine")) == 3


def test_data_own_question_sets_can_be_deleted(bench: Workbench) -> None:
    assert bench.data.own_question_sets() == ["tiny-qa"]


def test_data_lost_with_questions_names_the_runs(bench: Workbench) -> None:
    assert bench.data.lost_with_questions("tiny-qa") == ""
    lost = run(bench, "x").data.lost_with_questions("tiny-qa")
    assert lost.startswith("1 run that asked it keeps its questions, answers and scores.")


def test_data_delete_question_set_refuses_one_of_the_package(bench: Workbench) -> None:
    assert bench.data.delete_question_set("tiny-qa") == "Deleted the question set tiny-qa."
    with pytest.raises(NotFoundError, match="There is no question set 'starter-qa'"):
        bench.data.delete_question_set("starter-qa")


def test_data_estimate_build_ends_with_the_costs(bench: Workbench) -> None:
    *_, estimate = bench.data.estimate_build(str(bench.workspace.path / "corpus.tsv"), "bm25")
    assert (estimate.kind, estimate.passages) == ("bm25", 6)


def test_data_verify_index_counts_the_files(bench: Workbench) -> None:
    *_, verified = bench.data.verify_index("tiny")
    assert verified.name == "tiny" and verified.files == len(bench.data.manifest("tiny").files)


def test_data_delete_index_removes_it_unless_it_is_loaded(bench: Workbench) -> None:
    with pytest.raises(UsageError) as refusal:
        loaded(bench, "tiny").data.delete_index("tiny")
    assert refusal.value.hint == Hint("unload", "tiny")
    bench.models.unload("tiny")
    assert bench.data.delete_index("tiny").startswith("Deleted the index tiny")
    assert not (bench.workspace.indexes / "tiny").exists()


def test_data_manifests_tells_the_damaged_from_the_good(bench: Workbench) -> None:
    (bench.workspace.indexes / "odd").mkdir()
    (bench.workspace.indexes / "odd" / "manifest.json").write_text("{")
    good, damaged = bench.data.manifests()
    assert (list(good), list(damaged)) == (["tiny"], ["odd"])


def test_data_manifest_is_of_one_index(bench: Workbench) -> None:
    assert bench.data.manifest("tiny").passages == 6


def test_data_vectors_are_those_of_the_cache(bench: Workbench) -> None:
    assert bench.data.vectors() == []


def test_data_delete_vectors_leaves_the_index(bench: Workbench) -> None:
    corpus = bench.workspace.path / "corpus.tsv"
    list(bench.data.build_index("dense", corpus, "flat", encoder="hashing"))
    (vectors,) = bench.data.vectors()
    assert bench.data.delete_vectors(vectors.key).startswith("Deleted cached vectors, ")
    assert bench.data.vectors() == [] and bench.data.manifest("dense")


def combined(bench: Workbench) -> Workbench:
    bench.data.combine("both", "rrf", ["tiny", "starter-bm25"], {})
    return bench


def test_data_combine_names_a_combination_once(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="'both' exists already"):
        combined(combined(bench))


def test_data_own_combinations_lists_them(bench: Workbench) -> None:
    assert bench.data.own_combinations() == []
    assert combined(bench).data.own_combinations() == ["both"]


def test_data_delete_combination_leaves_its_members(bench: Workbench) -> None:
    combined(bench).data.delete_combination("both")
    assert bench.data.own_combinations() == [] and bench.data.manifest("tiny")
    with pytest.raises(NotFoundError, match="There is no combination 'both'"):
        bench.data.delete_combination("both")


def test_data_knobs_of_an_index_of_words_are_none(bench: Workbench) -> None:
    assert dict(bench.data.knobs_of("tiny")) == {}


def test_data_search_ends_with_the_hits_and_the_rank_of_the_gold_page(bench: Workbench) -> None:
    *_, search = bench.data.search("tiny", "largest moon", 1, gold_pages=frozenset({"p6"}))
    assert len(search.hits) == 1 and search.gold_rank is not None
    with pytest.raises(UsageError, match="k is 0"):
        list(bench.data.search("tiny", "moon", 0))


# catalog


def test_catalog_list_has_the_workspaces_names(bench: Workbench) -> None:
    assert "tiny" in [row["name"] for row in bench.catalog.list("retrievers")["retrievers"]]


def test_catalog_entry_refuses_an_unknown_name_with_the_nearest(bench: Workbench) -> None:
    assert bench.catalog.entry("workflows", "react").about
    with pytest.raises(NotFoundError, match="Did you mean 'react'"):
        bench.catalog.entry("workflows", "reakt")


def test_catalog_form_is_the_settings_of_a_thing(bench: Workbench) -> None:
    assert "k1" in bench.catalog.form("index_kinds", "bm25")


def test_catalog_card_is_json_and_text(bench: Workbench) -> None:
    value, text = bench.catalog.card("em")
    assert json.dumps(value) and "em" in text.lower()


# tracking


@pytest.mark.slow
def test_tracking_log_run_returns_the_id_that_tracking_log_group_puts_below_a_parent(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    result = complete(bench.experiments.run(suite, UNTRACKED))
    ids = [bench.tracking.log_run(bench.runs.open(part.run)) for part in result.runs]
    assert len(set(ids)) == 2
    group = group_of(bench.workspace, result.document, "suite")
    assert group is not None and bench.tracking.log_group(group)


@pytest.mark.slow
def test_tracking_log_group_is_what_tracking_track_experiment_does(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    result = complete(bench.experiments.run(suite, UNTRACKED))
    for part in result.runs:
        assert bench.tracking.track_run(bench.runs.open(part.run)) == ""
    assert bench.tracking.track_experiment(result.document, "suite") == ""


@pytest.mark.parametrize("verb", ["track_run", "track_experiment"])
def test_tracking_track_run_says_in_a_sentence_what_did_not_work(
    verb: str, bench: Workbench, suite: ExperimentRequest
) -> None:
    unreachable = Workbench(bench.workspace.path, tracking_uri="nowhere://x")
    result = complete(bench.experiments.run(suite, UNTRACKED))
    folder = bench.runs.open(result.runs[0].run)
    sentence = (
        unreachable.tracking.track_run(folder)
        if verb == "track_run"
        else unreachable.tracking.track_experiment(result.document, "suite")
    )
    assert "is complete but was not" in sentence and "can be logged later" in sentence
    unreachable.close()


def test_tracking_track_experiment_has_nothing_to_do_without_runs(bench: Workbench) -> None:
    assert bench.tracking.track_experiment({}, "suite") == ""


def test_tracking_trace_returns_at_once_and_never_fails(bench: Workbench, read: Chain) -> None:
    *_, episode = bench.asking.execute_chain(read, TITAN)
    assert isinstance(episode, Episode)
    unreachable = Workbench(bench.workspace.path, tracking_uri="nowhere://x")
    unreachable.tracking.trace(episode, TITAN.text)
    unreachable.close()


def test_tracking_start_mlflow_takes_the_page_of_a_server_that_runs(bench: Workbench) -> None:
    with Loopback(serving("a")) as server:
        uri = server.url.removesuffix("/v1")
        *_, url = Workbench(bench.workspace.path, tracking_uri=uri).tracking.start_mlflow()
    assert url.startswith(uri)


def test_jobs_list_is_of_a_kind(bench: Workbench) -> None:
    run_job = bench.runs.start(benchmark(bench))
    assert bench.jobs.list("run") == (run_job,) and bench.jobs.list("sweep") == ()
    assert run_job.wait(20)
