"""The verbs behind page and command line: one table of loaded models, and runs that outlive their viewer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from performing import prepared
from small_workspace import (
    READ,
    RECORDS,
    copy_workspace,
    everything,
    generate,
    make_workspace,
    retrieve,
    write_lines,
)
from small_workspace import chain as chain_file

from rallebench.chains.saved import chain_from_json
from rallebench.core.entries import LLMEntry, Manifest
from rallebench.core.errors import (
    BackendError,
    BadFileError,
    NotFoundError,
    TemplateError,
    UsageError,
)
from rallebench.core.events import Progress
from rallebench.core.live import Delta, StepDone, StepStarted
from rallebench.core.registry import Entry
from rallebench.core.runs import PreparedRun
from rallebench.core.types import Action, Chain, Episode, Message, Question
from rallebench.engine.store import RunFolder
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted
from rallebench.services.jobs import Job
from rallebench.services.workbench import Workbench
from rallebench.views.verdicts import DEPTH, verdict

TITAN = Question("q1", "Which moon of Saturn has a thick atmosphere?")
READ_CHAIN: Chain = chain_from_json(chain_file("read", retrieve(), generate()))
SLOW_CHAIN: Chain = chain_from_json(chain_file("slow", generate("{question}", "slow")))


class Counting(Scripted):
    """A scripted model that counts its loads and closings, and takes a moment to load."""

    made = 0
    closed = 0

    def __init__(self, name: str, **settings: Any) -> None:
        time.sleep(0.05)
        type(self).made += 1
        super().__init__((), name, default="counted", **settings)

    def close(self) -> None:
        type(self).closed += 1


def counting(name: str, **settings: Any) -> Counting:
    """A model that counts its loads, for the tests of the workbench."""
    if "broken" in settings:
        raise RuntimeError("the weights are broken")
    return Counting(name, **settings)


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("made"))


@pytest.fixture
def workbench(
    template_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workbench]:
    assert "counting" not in LLMS, (
        "asking loads the registry, so that the entry below is not its first"
    )
    monkeypatch.setitem(LLMS._entries, "counting", Entry("counting", counting))
    workbench = Workbench(copy_workspace(template_workspace, tmp_path / "workspace"))
    for name, settings in (("counted", {}), ("broken", {"broken": True})):
        workbench.workspace.save_llm(name, LLMEntry(backend="counting", settings=settings))
    Counting.made = Counting.closed = 0
    yield workbench
    workbench.close()


def names(workbench: Workbench) -> list[tuple[str, str]]:
    return [(line.name, line.kind) for line in workbench.models.status()]


def without_tracking(benchmark: PreparedRun) -> PreparedRun:
    return replace(benchmark, options=replace(benchmark.options, track=False))


def plan(workbench: Workbench, chain: Chain = READ_CHAIN, **more: Any) -> PreparedRun:
    settings: dict[str, Any] = {"name": "x", "track": False, "metrics": ("em",), **more}
    return prepared(workbench.workspace, chain, "tiny-qa", **settings)


def wait_for_end(job: Job, seconds: float = 30.0) -> Job:
    assert job.wait(seconds)
    return job


# ── load, status, unload ─────────────────────────────────────────────────────


def test_models_load_tells_its_stages_and_status_lists_what_is_loaded(workbench: Workbench) -> None:
    assert workbench.models.status() == []
    said = [
        *workbench.models.load("tiny", "retriever"),
        *workbench.models.load("titan", "language model"),
    ]
    assert said[0] == "opening tiny"
    assert any(line.startswith("loaded titan: ") for line in said)
    assert names(workbench) == [("tiny", "retriever"), ("titan", "language model")]
    assert [line.about for line in workbench.models.status()] == [
        "bm25, 6 passages of corpus.tsv",
        "says what its script says",
    ]
    assert workbench.models.is_loaded("tiny") and not workbench.models.is_loaded("echo")


def test_sessions_that_ask_for_one_model_load_it_once(workbench: Workbench) -> None:
    said: list[list[str]] = []
    threads = [
        threading.Thread(
            target=lambda: said.append(list(workbench.models.load("counted", "language model")))
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counting.made == 1
    assert names(workbench) == [("counted", "language model")]
    assert sum(any(line.startswith("loaded counted") for line in lines) for lines in said) >= 1


def test_a_page_that_goes_away_does_not_stop_a_load_and_a_second_load_changes_nothing(
    workbench: Workbench,
) -> None:
    progress = workbench.models.load("counted", "language model")
    assert next(progress) == "loading counted"
    del progress
    for name in ("counted", "echo", "counted"):
        list(workbench.models.load(name, "language model"))
    assert names(workbench) == [("counted", "language model"), ("echo", "language model")]
    assert Counting.made == 1 and sorted(workbench.models.backends.llms) == ["counted", "echo"]


@pytest.mark.parametrize(
    ("name", "kind", "error", "message"),
    [
        ("none", "language model", NotFoundError, "There is no language model 'none'"),
        ("none", "retriever", NotFoundError, "There is no index 'none'"),
        ("misspelt", "language model", UsageError, "There is no setting 'dealy'"),
        ("broken", "language model", BackendError, "RuntimeError: the weights are broken"),
    ],
)
def test_a_load_that_fails_leaves_nothing_and_can_be_tried_again(
    name: str, kind: str, error: type[Exception], message: str, workbench: Workbench
) -> None:
    for _ in range(2):
        with pytest.raises(error, match=message):
            list(workbench.models.load(name, kind))
        assert workbench.models.status() == []


def test_models_unload_gives_the_memory_back_and_the_rest_stays(workbench: Workbench) -> None:
    for name in ("counted", "echo"):
        list(workbench.models.load(name, "language model"))
    said = workbench.models.unload("counted")
    assert said.startswith("Unloaded counted: ") and said.endswith(" given back.")
    assert Counting.closed == 1
    assert names(workbench) == [("echo", "language model")]
    assert list(workbench.models.backends.llms) == ["echo"]
    with pytest.raises(NotFoundError, match="'counted' is not loaded"):
        workbench.models.unload("counted")


def test_close_lets_go_of_everything(workbench: Workbench) -> None:
    list(workbench.models.load("counted", "language model"))
    workbench.close()
    assert workbench.models.status() == [] and Counting.closed == 1


def test_a_model_of_gigabytes_is_loaded_only_when_asked_to(workbench: Workbench) -> None:
    workbench.workspace.save_llm(
        "huge", LLMEntry(backend="transformers", settings={"model": "/none"})
    )
    chain = READ_CHAIN.replace_action(1, target="huge")
    message = "The language model 'huge' is not loaded."
    with pytest.raises(NotFoundError, match=message):
        list(workbench.asking.execute_chain(chain, TITAN))
    step = workbench.asking.execute_action(chain, 0, TITAN, ())
    assert step.reply.hits, "an action needs only what it names itself"
    with pytest.raises(NotFoundError, match=message):
        workbench.asking.execute_action(chain, 1, TITAN, (step,))
    job = wait_for_end(workbench.runs.start(plan(workbench, chain)))
    assert (job.status, str(job.error)) == ("failed", message)
    assert not (workbench.workspace.runs / "x").exists()


# ── develop ──────────────────────────────────────────────────────────────────


def test_asking_questions_reads_again_when_the_file_changes(workbench: Workbench) -> None:
    assert len(workbench.workspace.questions("tiny-qa")) == len(RECORDS)
    assert workbench.workspace.questions("tiny-qa") is workbench.workspace.questions("tiny-qa")
    write_lines(workbench.workspace.path / "datasets" / "tiny-qa.jsonl", RECORDS[:3])
    assert [example.question.qid for example in workbench.workspace.questions("tiny-qa")] == [
        "q1",
        "q2",
        "q3",
    ]


def test_asking_example_is_found_by_its_id_and_other_text_is_ones_own(workbench: Workbench) -> None:
    assert workbench.asking.example("tiny-qa", "q5").gold.answers == ("Christiaan Huygens",)
    own = workbench.asking.example("tiny-qa", "How far is Titan?")
    assert (own.question, own.gold.answers) == (Question("custom", "How far is Titan?"), ())
    with pytest.raises(UsageError, match="No question is chosen"):
        workbench.asking.example("tiny-qa", " ")


def test_asking_plan_action_interprets_the_template_and_runs_nothing(workbench: Workbench) -> None:
    step = workbench.asking.execute_action(READ_CHAIN, 0, TITAN, ())
    prompt = workbench.asking.plan_action(READ_CHAIN, 1, TITAN, (step,))
    assert prompt == READ.format(response=[step.reply.text], question=TITAN.text)
    assert not workbench.models.is_loaded("titan")
    with pytest.raises(TemplateError, match=r"response\[0\]|list has 0|index"):
        workbench.asking.plan_action(READ_CHAIN, 1, TITAN, ())


def test_asking_execute_action_runs_one_action_on_the_earlier_answers_and_remembers_it(
    workbench: Workbench,
) -> None:
    first = workbench.asking.execute_action(READ_CHAIN, 0, TITAN, ())
    assert first.reply.hits[0].passage.page_id == "p1"
    second = workbench.asking.execute_action(READ_CHAIN, 1, TITAN, (first,))
    assert (second.reply.text, second.cached) == ("Titan", False)
    assert workbench.asking.execute_action(READ_CHAIN, 1, TITAN, (first,)).cached
    changed = READ_CHAIN.replace_action(1, template="Only {question}")
    assert not workbench.asking.execute_action(changed, 1, TITAN, (first,)).cached


def test_asking_execute_chain_runs_every_action_to_the_last_or_error(workbench: Workbench) -> None:
    long = Chain("long", tuple(Action("identity", f"{n}: {{question}}") for n in range(8)))
    *events, last = workbench.asking.execute_chain(long, Question("q", "?"))
    assert sum(isinstance(event, StepDone) for event in events) == 8
    assert isinstance(last, Episode)
    assert (last.qid, last.answer, last.error) == ("q", "7: ?", "")
    failing = READ_CHAIN.replace_action(1, target="mute")
    *_, episode = workbench.asking.execute_chain(failing, TITAN)
    assert isinstance(episode, Episode)
    assert (len(episode.steps), episode.outcome) == (1, None)
    assert episode.error.startswith("The script of 'mute' has used all")


def test_a_verdict_knows_the_rank_of_a_gold_page_beyond_k(workbench: Workbench) -> None:
    gold = workbench.asking.example("tiny-qa", "q1")  # its page is p1
    for text, is_first in (("largest moon Pluto", False), (TITAN.text, True)):
        example = replace(gold, question=Question("q1", text))
        *_, episode = workbench.asking.execute_chain(
            READ_CHAIN.replace_action(0, k=1), example.question
        )
        assert isinstance(episode, Episode)
        rank = verdict(
            workbench.workspace, example, episode, workbench.asking.deeper_hits(episode, DEPTH)
        ).rank
        assert rank is not None and (rank == 1) == is_first


def test_asking_chat_streams_the_last_answer_and_knows_earlier_ones(workbench: Workbench) -> None:
    chain = Chain("c", (Action("generate", "{history}|{question}", target="echo"),))
    history = (Message("user", "Hello"), Message("assistant", "Hi there"))
    events = list(workbench.asking.chat(chain, history, "Who are you?"))
    pieces = [event.text for event in events if isinstance(event, Delta)]
    episode = events[-1]
    assert isinstance(events[0], StepStarted) and isinstance(episode, Episode)
    assert episode.answer == "".join(pieces) == "User: Hello\nAssistant: Hi there|Who are you?"
    assert len(pieces) > 3


def test_asking_ask_model_never_remembers(workbench: Workbench) -> None:
    list(workbench.models.load("echo", "language model"))
    for _ in range(2):
        step = workbench.asking.ask_model("echo", "Say this")
        assert (step.reply.text, step.cached) == ("Say this", False)
    with pytest.raises(NotFoundError, match="'titan' is not loaded"):
        workbench.asking.ask_model("titan", "x")


# ── chains ───────────────────────────────────────────────────────────────────


def test_asking_save_chain_lists_the_chain_and_loads_it_as_it_was(workbench: Workbench) -> None:
    changed = READ_CHAIN.replace_action(
        1, generation={"max_tokens": 3, "stop": ["\n"], "top_p": 0.5}
    )
    path = workbench.asking.save_chain(replace(changed, about="mine"), " my chain ")
    assert path == workbench.workspace.path / "chains" / "my chain.json"
    assert workbench.workspace.chain("my chain") == replace(changed, name="my chain", about="mine")
    assert "my chain" in workbench.workspace.chain_paths()


@pytest.mark.parametrize("name", ["", " ", "../x", "a/b", ".x", "a\\b", "a:b", "a\0b"])
def test_a_chain_name_that_is_no_file_name_is_refused(name: str, workbench: Workbench) -> None:
    before = everything(workbench.workspace.path)
    with pytest.raises(UsageError, match="cannot be a file name"):
        workbench.asking.save_chain(READ_CHAIN, name)
    assert everything(workbench.workspace.path) == before


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (READ_CHAIN.replace_action(0, k=20_000), r"'actions\.0\.k' is wrong"),
        (
            READ_CHAIN.replace_action(1, generation={"temperature": 9}),
            "action 2: temperature is 9; it must be",
        ),
        (Chain("x", READ_CHAIN.actions * 5), "'actions' is wrong"),
        (Chain("x", ()), "'actions' is wrong"),
    ],
)
def test_an_unreadable_chain_is_not_saved(chain: Chain, message: str, workbench: Workbench) -> None:
    with pytest.raises(UsageError, match=message):
        workbench.asking.save_chain(chain, "bad")
    assert not (workbench.workspace.path / "chains" / "bad.json").exists()


# ── runs ─────────────────────────────────────────────────────────────────────


def test_a_run_of_a_name_that_runs_is_refused(workbench: Workbench) -> None:
    made = plan(workbench, SLOW_CHAIN, batch_size=1)
    job = workbench.runs.start(made)
    with pytest.raises(UsageError, match="The run 'x' is running already"):
        workbench.runs.start(made)
    workbench.runs.stop("x")
    wait_for_end(job)


def test_runs_stop_ends_soon_and_resume_continues_where_it_stopped(workbench: Workbench) -> None:
    job = workbench.runs.start(plan(workbench, SLOW_CHAIN, batch_size=1))
    while (folder := workbench.runs.job_folder(job)) is None or not folder.heads():
        time.sleep(0.01)
    workbench.runs.stop("x")
    assert wait_for_end(job, 5).status == "stopped"
    folder.ask_to_stop()  # a late request to stop does not affect the next session
    assert 1 <= len(folder.heads()) < len(RECORDS)
    resumed = workbench.runs.resume("x")
    request = resumed.request
    assert (resumed.options.resume, request.flow.chain) == (True, SLOW_CHAIN)
    assert request.metrics == ("em",)
    assert wait_for_end(workbench.runs.start(without_tracking(resumed))).status == "finished"
    report = folder.report()
    assert report is not None and (report.n_done, report.n_errors) == (len(RECORDS), 0)


def test_a_stop_that_is_asked_while_the_models_load_is_not_lost(workbench: Workbench) -> None:
    chain = Chain("c", (Action("generate", "{question}", target="counted"),))
    job = workbench.runs.start(plan(workbench, chain))
    workbench.runs.stop("x")
    assert wait_for_end(job).status == "stopped"
    assert workbench.runs.open("x").heads() == {}


def test_runs_resume_works_from_another_folder(
    workbench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    write_lines(tmp_path / "own.jsonl", RECORDS[:2])
    monkeypatch.chdir(tmp_path)
    made = prepared(workbench.workspace, READ_CHAIN, "own.jsonl", name="x", track=False)
    wait_for_end(workbench.runs.start(made))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert workbench.runs.resume("x").request.examples == made.request.examples


def test_a_run_of_another_process_is_seen_and_stopped_by_its_folder(workbench: Workbench) -> None:
    made = plan(workbench, SLOW_CHAIN, batch_size=1)
    other = Workbench(workbench.workspace.path)
    job = other.runs.start(made)
    while (folder := other.runs.job_folder(job)) is None or not folder.heads():
        time.sleep(0.01)
    workbench.runs.stop("x")
    assert wait_for_end(job, 5).status == "stopped"
    other.close()


def test_a_damaged_run_stands_in_the_list_and_harms_no_other(workbench: Workbench) -> None:
    wait_for_end(workbench.runs.start(plan(workbench)))
    (workbench.workspace.runs / "broken").mkdir()
    (workbench.workspace.runs / "broken" / "run.json").write_text("{")
    assert {run.name for run in workbench.runs.list()} == {"x", "broken"}
    assert RunFolder(workbench.workspace.runs / "broken").state().state == "interrupted"
    with pytest.raises(BadFileError, match=r"broken/run\.json is not valid JSON"):
        workbench.runs.resume("broken")


# ── indexes ──────────────────────────────────────────────────────────────────


def test_data_build_index_yields_progress_and_the_manifest_last(workbench: Workbench) -> None:
    corpus = workbench.workspace.path / "corpus.tsv"
    *progress, manifest = workbench.data.build_index("dense", corpus, "flat", encoder="hashing")
    assert all(isinstance(piece, Progress) for piece in progress)
    assert isinstance(manifest, Manifest)
    assert workbench.workspace.manifests()["dense"] == manifest
    assert manifest.passages == 6
    list(workbench.models.load("dense", "retriever"))
    ((hit,),) = workbench.models.backends.retrievers["dense"].search(["Pluto"], 1)
    assert hit.passage.doc_id == "6"


def test_a_model_and_an_index_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "llms.json").write_text(
        '{"starter-bm25": {"backend": "scripted", "settings": {"echo": true}}}'
    )
    bench = Workbench(tmp_path)
    list(bench.models.load("starter-bm25", "language model"))
    with pytest.raises(
        UsageError, match="is loaded as a language model, so no retriever of that name can be"
    ):
        list(bench.models.load("starter-bm25", "retriever"))
