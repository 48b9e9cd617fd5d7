"""Every call of a part of the workbench is tested in this folder; most of them here."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from loopback import Loopback, serving
from performing import prepared
from run_folders import make_run, spec
from small_suites import small_suites  # noqa: F401 - a fixture
from small_workspace import QUESTIONS, RECORDS, write_lines
from tiny_gguf import save_gguf, write_converted

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import Hint, NotFoundError, UsageError
from rallebench.core.events import complete
from rallebench.core.experiment_reports import SuiteReport
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json
from rallebench.core.prices import FREE
from rallebench.core.runs import PreparedRun, RunOptions
from rallebench.core.types import Chain, Episode, Question
from rallebench.engine.store import TITLE
from rallebench.experiments.sweeps.running import sweep_settings
from rallebench.metrics.judges import judge_named
from rallebench.services import model_entries
from rallebench.services.episodes import EpisodeRequest
from rallebench.services.jobs import Job
from rallebench.services.load_queue import LoadJob
from rallebench.services.models import ModelManager
from rallebench.services.tracking import experiment_group
from rallebench.services.workbench import Workbench
from rallebench.tracking import runs as logged_runs
from rallebench.views import catalog, chain_versions, comparing, library, lists, run_list
from rallebench.views.experiment_requests import baselines_request, suite_request

TITAN = Question("q1", QUESTIONS[0][1])
LLM, RETRIEVER = "language model", "retriever"
UNTRACKED = RunOptions(track=False)


def verbs(bench: Workbench) -> Iterator[tuple[str, str]]:
    """(part, verb) of every public call of the workbench's parts."""
    assert bench.forecasts and bench.model_lines, "made when first used"
    for part, value in vars(bench).items():
        if type(value).__module__.startswith("rallebench.services"):
            yield from ((part, name) for name in vars(type(value)) if not name.startswith("_"))


def test_every_verb_is_called_by_a_test(bench: Workbench) -> None:
    called = {
        (getattr(node.value, "attr", getattr(node.value, "id", "")), node.attr)
        for package in ("services", "views")
        for path in (Path(__file__).parents[1] / package).glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert len(set(verbs(bench))) > 65
    assert set(verbs(bench)) - called == set(), "call it in a test"


@pytest.fixture
def read(bench: Workbench) -> Chain:
    return bench.workspace.chain("read")


def load_all(bench: Workbench, *names: str) -> Workbench:
    for name in names:
        list(bench.models.load(name, RETRIEVER if name == "tiny" else LLM))
    return bench


def benchmark(bench: Workbench, name: str = "x", chain: str = "read") -> PreparedRun:
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


# models


def test_what_is_loaded_has_a_row_each_and_is_handed_out_as_a_snapshot(bench: Workbench) -> None:
    models = load_all(bench, "titan", "tiny").models
    assert [(row.name, row.kind) for row in models.status()] == [
        ("titan", LLM),
        ("tiny", RETRIEVER),
    ]
    assert models.is_loaded("titan") and models.is_loaded_as("titan", LLM)
    with pytest.raises(UsageError, match="is loaded as a language model"):
        models.is_loaded_as("titan", RETRIEVER)
    assert list(models.memory(["tiny", "echo"])) == ["tiny"]
    assert models.prices_of_use()["titan"] == FREE
    assert str(models.load_outcomes()["titan"]).startswith("loaded titan: ")
    backends = models.backends
    models.unload("titan")
    assert list(backends.llms) == ["titan"] and list(models.backends.llms) == []
    assert bench.models.encoders("hashing") is bench.models.encoders("hashing")
    models.close()
    assert models.status() == []


def test_a_heavy_model_is_refused_unless_it_is_loaded(bench: Workbench) -> None:
    bench.workspace.save_llm("huge", LLMEntry(backend="transformers", settings={"model": "/no"}))
    bench.models.refuse_heavy("titan", LLM)
    with pytest.raises(NotFoundError) as refusal:
        bench.models.refuse_heavy("huge", LLM)
    assert refusal.value.hint == Hint("load", "huge")


def test_a_scripted_model_takes_no_memory_that_could_be_told(bench: Workbench) -> None:
    models = bench.models
    assert models.room("titan") is None and models.room_in_every_form("titan") == {}
    assert models.loaded_quantization("titan") == "none"
    assert model_entries.needs({}).bytes == 0 and model_entries.needs({}).fits


@contextmanager
def another_load(models: ModelManager) -> Iterator[None]:
    """A load that excludes all others, so that these wait."""
    load = LoadJob("other", LLM, None, [])
    load.job = Job("load", "other")
    with models.queue.wait_turn(load):
        yield


def test_a_load_that_waits_is_joined_listed_and_cancelled(bench: Workbench) -> None:
    models = bench.models
    with another_load(models):
        load = models.begin("titan", LLM)
        assert load is not None and models.begin("titan", LLM) is load
        assert models.loading()["titan"].waiting
    assert load.job.wait(10) and models.begin("titan", LLM) is None
    models.unload("titan")
    with another_load(models):
        load = models.begin("titan", LLM)
        assert models.cancel("titan") == "Cancelling titan …"
        assert load is not None and load.job.wait(10)
    assert not models.is_loaded("titan")
    with pytest.raises(NotFoundError, match="Nothing is being loaded"):
        models.cancel()


def test_entries_are_read_added_once_and_deleted_with_what_breaks(bench: Workbench) -> None:
    models, echo = bench.models, LLMEntry(backend="scripted", settings={"echo": True})
    assert "titan" in models.own() and models.entry("titan").backend == "scripted"
    with pytest.raises(NotFoundError, match="There is no language model 'none'"):
        models.entry("none")
    assert models.add(" mine ", echo)[0].startswith("Saved mine in ")
    with pytest.raises(UsageError, match="already"):
        models.add("mine", echo)
    with pytest.raises(UsageError, match="'tiny' is a retriever"):
        models.add("tiny", echo)
    _, note = load_all(bench, "mine").models.add("mine", echo, replace=True)
    assert "is loaded with its earlier settings" in note
    with pytest.raises(UsageError) as refusal:
        models.delete("mine")
    assert refusal.value.hint == Hint("unload", "mine")
    assert "The chain closed, the chain read can no longer run" in models.delete("titan")
    assert "titan" not in models.own()


def test_the_converted_copy_of_a_gguf_file_is_deleted_unless_a_model_of_it_is_loaded(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, models = save_gguf(tmp_path / "river.gguf"), bench.models
    river = LLMEntry(backend="transformers", settings={"model": str(file)})
    for name in ("river", "small"):
        models.add(name, river)
    assert models.converted_bytes("river") == 0
    with pytest.raises(NotFoundError, match="'river' has no converted copy"):
        models.delete_converted("river")
    copy = write_converted(bench.workspace.cache, file)
    assert models.converted_bytes("river") == models.converted_bytes("small") > 2_000_000
    monkeypatch.setattr(models, "is_loaded", lambda name: name == "small")
    with pytest.raises(UsageError) as refusal:
        models.delete_converted("river")
    assert refusal.value.hint == Hint("unload", "small") and copy.is_dir()
    monkeypatch.undo()
    assert models.delete_converted("river").startswith(
        "Deleted the converted copy of river, 2.0 MB"
    )
    assert not copy.exists() and file.exists()


# asking


def test_the_cache_of_replies_is_opened_when_it_is_needed(bench: Workbench) -> None:
    before = bench.asking.reply_cache
    assert (
        bench.asking.reply_cache is before
        and bench.asking.reply_cache_warning == before.warning == ""
    )
    bench.asking.close()
    assert bench.asking.reply_cache is not before


def test_an_agent_is_checked_without_loading_and_runs_an_episode(bench: Workbench) -> None:
    settings = {"env.retriever": "tiny", "steps": 1}
    agent = bench.asking.agent("react", "wikipedia", "titan", settings)
    assert agent.workflow == "react" and bench.models.status() == []
    with pytest.raises(UsageError, match="needs a language model"):
        bench.asking.agent("react", "wikipedia", "", settings)
    *_, episode = bench.asking.run_agent(agent, TITAN)
    assert isinstance(episode, Episode) and episode.workflow == "react"


def test_an_episode_goes_on_as_a_job_and_is_read_by_its_name(bench: Workbench) -> None:
    load_all(bench, "titan", "tiny")
    settings = {"env.retriever": "tiny", "steps": 1}
    example = bench.asking.example("tiny-qa", "q1")
    begun = bench.asking.start_episode(
        EpisodeRequest("react", "wikipedia", "titan", settings, "tiny-qa", example)
    )
    job = bench.jobs.get("episode", begun.name)
    assert job is not None and job.wait(60) and job.error is None
    state = bench.asking.episode(begun.name)
    assert state is not None and state.state == "ended" and state.episode is not None
    assert state.episode.qid == "q1" and state.steps == state.episode.steps
    with pytest.raises(UsageError, match="No episode is running"):
        bench.asking.stop_episode(begun.name)


# runs


def test_a_run_is_scored_rescored_opened_and_compared(bench: Workbench, read: Chain) -> None:
    result = complete(bench.runs.run(benchmark(bench)))
    assert (result.n, result.report["em"].estimate.value) == (8, 1 / 8)
    bench.models.unload("titan")
    assert "f1" in complete(bench.runs.rescore("x", ["f1"])).report.metrics
    assert not bench.models.is_loaded("titan"), "no model is asked"
    with pytest.raises(UsageError, match="'y'"):
        bench.runs.open("y")
    assert bench.runs.exists("x") and not bench.runs.exists("y") and not bench.runs.exists("")
    question = bench.runs.open_question("x", 2)
    assert (question.chain, question.dataset, question.episode.qid) == (read, "tiny-qa", "q2")
    runs = [*run(bench, "a", "b").runs.list()]
    assert {folder.name for folder in runs} == {"a", "b", "x"}
    two = comparing.compare(runs[:2], "em")
    assert two.pair and (two.pair.difference, two.to_json()["flipped"]) == (0.0, [])
    assert (two.comparison.warnings, two.tables) == ([], ())
    three = comparing.compare(runs, "em")
    assert three.to_json()["runs"] == [folder.name for folder in runs] and len(three.tables) == 2


def test_a_run_in_the_background_is_a_job_with_a_folder(bench: Workbench) -> None:
    job = bench.runs.start(benchmark(bench))
    assert bench.jobs.list("run") == (job,) and bench.jobs.list("sweep") == ()
    assert job.wait(20)
    folder = bench.runs.job_folder(job)
    assert folder is not None and folder.name == "x"


# experiments


@pytest.fixture
def suite(bench: Workbench, small_suites: None) -> ExperimentRequest:  # noqa: F811
    settings = {"words": "short", "times": 2, "search": False, "note": ""}
    return ExperimentRequest(bench.workspace, "titan", settings, 2, kind="small-alone", name="s")


def test_a_plan_and_a_pilot_write_nothing(bench: Workbench, suite: ExperimentRequest) -> None:
    plan = bench.experiments.plan(suite)
    assert [part.questions for part in plan.runs] == [2, 2]
    assert complete(bench.experiments.pilot(plan, suite, questions=1)).pilot
    assert not bench.experiments.store.exists("s")


def test_the_request_for_a_suite_is_checked_and_named_by_its_settings(
    bench: Workbench,
    small_suites: None,  # noqa: F811
) -> None:
    request = suite_request(bench.workspace, "small-alone", ["titan"], {"times": "2"}, limit=3)
    assert (request.llm, request.settings["times"], request.limit) == ("titan", 2, 3)
    assert request.name == "small-alone titan first 3"
    with pytest.raises(UsageError, match="takes one language model, but 2 are named"):
        suite_request(bench.workspace, "small-alone", ["titan", "echo"], {})
    several = suite_request(bench.workspace, "reval", ["titan", "echo"], {})
    assert (several.llm, several.settings["models"]) == ("", "titan,echo")
    with pytest.raises(UsageError, match="named twice") as twice:
        suite_request(bench.workspace, "reval", ["titan", "echo"], {"models": "titan"})
    assert twice.value.hint == Hint("leave-out", "llm")


def test_an_experiment_that_was_run_is_known_by_name_and_kind(
    bench: Workbench, suite: ExperimentRequest
) -> None:
    experiments = bench.experiments
    assert len(complete(experiments.run(suite, UNTRACKED)).runs) == 2
    assert experiments.store.open("s").kind == "small-alone"
    with pytest.raises(UsageError, match="There is no sweep 'y'"):
        experiments.store.open("y", "sweep")
    with pytest.raises(UsageError, match="is not a finished trade-off"):
        experiments.open_tradeoff("s")
    assert experiments.list() == experiments.list("suite") == ["s"]
    assert experiments.list("sweep") == []
    *_, newest = experiments.store.open("s").runs.values()
    experiments.stop("s")
    assert (bench.workspace.runs / newest / "stop").exists()
    run(bench, "x")
    kinds = [experiments.kinds_named(name) for name in ("x", "s", "y")]
    assert kinds == [["run"], ["suite"], []]
    request = baselines_request(bench.workspace, "x")
    assert (request.kind, request.settings) == ("baselines", {"run": "x"})


def test_an_experiment_is_a_job_others_can_join(bench: Workbench, suite: ExperimentRequest) -> None:
    planned = bench.experiments.plan(suite)
    with another_load(bench.models):  # its models wait
        job = bench.experiments.start(suite, UNTRACKED, planned)
        assert bench.experiments.start(suite, UNTRACKED, planned) is job
        with pytest.raises(UsageError, match="Another suite is making 's' now"):
            bench.experiments.start(replace(suite, seed=1), UNTRACKED)
    assert job.wait(60) and job.error is None and job.kind == "suite"
    assert bench.experiments.list() == ["s"]


def test_a_request_is_of_this_workspace(bench: Workbench, read: Chain) -> None:
    settings = sweep_settings(read, ["k=1,2"], "tiny-qa")
    request = ExperimentRequest(bench.workspace, "", settings, 2, kind="sweep", name="ks")
    assert len(bench.experiments.plan(request).runs) == 2


# data


def test_a_corpus_is_imported_listed_and_deleted(bench: Workbench) -> None:
    *_, corpus = bench.data.import_corpus("moons", bench.workspace.path / "corpus.tsv")
    assert (corpus.name, corpus.passages) == ("moons", 6) and [*bench.workspace.corpus_cards()] == [
        "moons"
    ]
    assert bench.data.delete_corpus("moons").startswith("Deleted the corpus moons.")
    assert bench.workspace.corpus_cards() == {}


def test_a_dataset_is_sampled_and_deleted_with_its_loss(bench: Workbench, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "q.jsonl", RECORDS)
    *_, dataset = bench.data.import_dataset("mine", source, sample=3)
    assert dataset.questions == 3
    assert len(bench.workspace.questions("mine")) == 3
    assert set(bench.workspace.own_datasets()) == {"mine", "tiny-qa"}
    assert (
        bench.data.import_notes("mine").warnings == bench.data.import_notes("other").warnings == ()
    )
    assert library.lost_with(bench.workspace, "dataset", "tiny-qa") == ""
    lost = library.lost_with(run(bench, "x").workspace, "dataset", "tiny-qa")
    assert lost.startswith("1 run that asked it keeps its questions, answers and scores.")
    assert bench.data.delete_dataset("mine") == "Deleted the dataset mine."
    with pytest.raises(NotFoundError, match="There is no dataset 'starter-qa'"):
        bench.data.delete_dataset("starter-qa")


def test_an_index_is_estimated_verified_and_deleted_unless_it_is_loaded(bench: Workbench) -> None:
    *_, estimate = bench.data.estimate_build(str(bench.workspace.path / "corpus.tsv"), "bm25")
    assert (estimate.kind, estimate.passages) == ("bm25", 6)
    *_, verified = bench.data.verify_index("tiny")
    manifest = bench.workspace.manifests()["tiny"]
    assert verified.name == "tiny" and verified.files == len(manifest.files)
    assert dict(bench.data.search_settings("tiny")) == {}, (
        "an index of words has no settings of its search"
    )
    with pytest.raises(UsageError) as refusal:
        load_all(bench, "tiny").data.delete_index("tiny")
    assert refusal.value.hint == Hint("unload", "tiny")
    bench.models.unload("tiny")
    assert bench.data.delete_index("tiny").startswith("Deleted the index tiny")
    assert not (bench.workspace.indexes / "tiny").exists()


def test_vectors_that_are_kept_are_deleted_without_the_index(bench: Workbench) -> None:
    assert bench.data.vectors() == []
    corpus = bench.workspace.path / "corpus.tsv"
    list(bench.data.build_index("dense", corpus, "flat", encoder="hashing"))
    (vectors,) = bench.data.vectors()
    assert bench.data.delete_vectors(vectors.key).startswith("Deleted cached vectors, ")
    assert bench.data.vectors() == [] and "dense" in bench.workspace.manifests()


def test_texts_and_passages_that_are_kept_are_deleted_one_by_one(bench: Workbench) -> None:
    kept_texts = bench.workspace.cache / "texts"
    kept_texts.mkdir(parents=True)
    (kept_texts / "0.npy").write_bytes(bytes(152))
    kept = bench.data.kept_files()
    assert kept and all(file.bytes for file in kept)
    for file in kept:
        assert bench.data.delete_kept_file(file.key).startswith(f"Deleted {file.key}")
    assert bench.data.kept_files() == []


def test_a_combination_is_named_once_and_deleted_without_its_members(bench: Workbench) -> None:
    assert bench.workspace.own_combinations() == []
    bench.data.combine("both", "rrf", ["tiny", "starter-bm25"], {})
    assert bench.workspace.own_combinations() == ["both"]
    with pytest.raises(UsageError, match="'both' exists already"):
        bench.data.combine("both", "rrf", ["tiny", "starter-bm25"], {})
    bench.data.delete_combination("both")
    assert bench.workspace.own_combinations() == [] and "tiny" in bench.workspace.manifests()
    with pytest.raises(NotFoundError, match="There is no combination 'both'"):
        bench.data.delete_combination("both")


def test_a_retriever_asks_a_model_if_one_of_its_parts_does(bench: Workbench) -> None:
    bench.data.combine("ranked", "llm-rerank", ["tiny"], {"llm": "titan"})
    bench.data.combine("fused", "rrf", ["tiny", "ranked"], {})
    asking = {name: bench.models.asks_model(name) for name in ("tiny", "ranked", "fused")}
    assert asking == {"tiny": False, "ranked": True, "fused": True}


def test_a_search_ends_with_the_hits_and_the_rank_of_the_gold_page(bench: Workbench) -> None:
    *_, search = bench.data.search("tiny", "largest moon", 1, gold_pages=frozenset({"p6"}))
    assert len(search.hits) == 1 and search.gold_rank is not None
    with pytest.raises(UsageError, match="k is 0"):
        list(bench.data.search("tiny", "moon", 0))


# catalog


def test_the_catalog_lists_names_forms_and_cards(bench: Workbench) -> None:
    rows = lists.listing(bench.workspace, "retrievers")["retrievers"]
    assert "tiny" in [row["name"] for row in rows]
    assert catalog.entry("workflows", "react").about
    with pytest.raises(NotFoundError, match="Did you mean 'react'"):
        catalog.entry("workflows", "reakt")
    assert "k1" in catalog.entry("index_kinds", "bm25").form
    card = lists.whole_card("em")
    value, text = card.to_json(), card.text()
    assert json.dumps(value) and "em" in text.lower()


# tracking


@pytest.mark.slow
def test_runs_are_logged_and_put_below_a_parent(bench: Workbench, suite: ExperimentRequest) -> None:
    result = complete(bench.experiments.run(suite, UNTRACKED))
    ids = [bench.tracking.log_run(bench.runs.open(part.run)) for part in result.runs]
    assert len(set(ids)) == 2
    group = experiment_group(bench.workspace, result.stored, "suite")
    assert group is not None and bench.tracking.log_group(group)
    assert bench.tracking.track_run(bench.runs.open(result.runs[0].run)) == ""
    assert bench.tracking.track_experiment(result.stored, "suite") == ""
    assert bench.tracking.track_experiment(SuiteReport(), "suite") == "", (
        "nothing to do without runs"
    )


def test_what_cannot_be_logged_is_a_sentence_and_a_trace_never_fails(
    bench: Workbench, suite: ExperimentRequest, read: Chain
) -> None:
    unreachable = Workbench(bench.workspace.path, tracking_uri="nowhere://x")
    result = complete(bench.experiments.run(suite, UNTRACKED))
    for sentence in (
        unreachable.tracking.track_run(bench.runs.open(result.runs[0].run)),
        unreachable.tracking.track_experiment(result.stored, "suite"),
    ):
        assert "is complete but was not" in sentence and "can be logged later" in sentence
    *_, episode = bench.asking.execute_chain(read, TITAN)
    assert isinstance(episode, Episode)
    unreachable.tracking.trace(episode, TITAN.text)
    unreachable.close()


def test_mlflows_page_is_that_of_a_server_that_runs(bench: Workbench) -> None:
    with Loopback(serving("a")) as server:
        uri = server.url.removesuffix("/v1")
        *_, url = Workbench(bench.workspace.path, tracking_uri=uri).tracking.start_mlflow()
    assert url.startswith(uri)


def test_a_corpus_with_a_damaged_card_is_named_with_its_sentence(bench: Workbench) -> None:
    list(bench.data.import_corpus("docs", bench.workspace.path / "corpus.tsv"))
    card = bench.workspace.corpora / "docs" / "corpus.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "passages": "many"}))
    assert "docs" not in bench.workspace.corpus_cards()
    assert "import the corpus again" in bench.workspace.damaged_corpora()["docs"]
    bench.data.delete_corpus("docs")
    assert bench.workspace.damaged_corpora() == {}


def test_a_question_is_answered_by_a_chain_and_an_empty_one_refused(
    bench: Workbench, read: Chain
) -> None:
    assert complete(bench.asking.answer(QUESTIONS[0][1], read)).steps
    with pytest.raises(UsageError, match="The question is empty"):
        complete(bench.asking.answer(" ", read))


def test_a_run_is_renamed_deleted_and_brought_back(bench: Workbench) -> None:
    runs = run(bench, "x").runs
    runs.rename("x", " my  run ")
    assert read_json(runs.open("x").path / TITLE) == {"title": "my run"}
    with pytest.raises(UsageError, match="more than 200 characters"):
        runs.rename("x", "a" * 201)
    runs.delete("x")
    with pytest.raises(UsageError, match="no run"):
        runs.open("x")
    runs.restore("x")
    assert runs.open("x").description()
    runs.delete("x")
    assert runs.empty_bin() == 1 and runs.empty_bin() == 0
    with pytest.raises(UsageError, match="no run 'x' in the bin"):
        runs.restore("x")


def test_a_run_has_tags_a_note_and_the_star_of_its_dataset(bench: Workbench) -> None:
    runs = run(bench, "x").runs
    runs.mark("x", [" night ", "k"], "The reader was changed.")
    runs.star("x")
    row = run_list.run_row(bench.workspace, "x")
    assert (row.tags, row.note, row.is_reference) == (
        ("night", "k"),
        "The reader was changed.",
        True,
    )
    runs.star("x", starred=False)
    assert not run_list.run_row(bench.workspace, "x").is_reference
    with pytest.raises(UsageError, match="at most 20 tags; leave 1 out"):
        runs.mark("x", map(str, range(21)), "")


def test_a_version_of_a_saved_chain_has_a_name(bench: Workbench, read: Chain) -> None:
    with pytest.raises(UsageError, match="not saved yet"):
        bench.asking.name_version(replace(read, name="new"), "best")
    chain = bench.workspace.chain("read")
    bench.asking.name_version(chain, "best")
    assert chain_versions.version_name(bench.workspace, "read", chain) == "best"
    bench.asking.name_version(chain, "")
    assert chain_versions.version_name(bench.workspace, "read", chain) == ""


def test_a_judge_is_asked_about_one_answer(bench: Workbench, read: Chain) -> None:
    example = bench.workspace.questions("tiny-qa")[0]
    *_, episode = bench.asking.execute_chain(read, example.question)
    assert isinstance(episode, Episode)
    judge = judge_named("rgb-rejection:titan", bench.workspace.llm_mark)
    judgement = bench.asking.judge(judge, example, episode)
    assert judgement is not None and judgement.steps


def test_a_run_has_the_same_name_in_mlflow_as_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logged_runs, "log_run", lambda path, **fields: fields["title"])
    action = {"kind": "retrieve", "template": "{question}", "target": "tiny-bm25"}
    names = ("read-tiny-qa-20260101-120000", "read-tiny-qa-20260102-120000", "night")
    for day, (name, k) in enumerate(zip(names, (2, 9, 9)), 1):
        changed = spec()["spec"]
        changed["settings"]["chain"] = {
            "format": "rallebench-chain/1",
            "name": "read",
            "actions": [{**action, "k": k}],
        }
        make_run(tmp_path / "runs", name, 1, (), spec=changed, created=f"2026-01-0{day}")
    with closing(Workbench(tmp_path)) as opened:
        for titles in (["read", "read · k 9", "night"], ["read", "my favourite", "night"]):
            shown = {row.name: row.title for row in run_list.rows(opened.workspace)}
            logged = [opened.tracking.log_run(opened.runs.open(name)) for name in names]
            assert logged == [shown[name] for name in names] == titles
            opened.runs.rename(names[1], "my favourite")
