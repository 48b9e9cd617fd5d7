"""A run's folder: whole or absent, torn lines forgiven, failures tried again, runs never confused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from full_disk import no_file_grows_beyond
from hypothesis import given, settings
from hypothesis import strategies as st
from project import PROJECT
from run_folders import described

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, BadFileError, MismatchError, UsageError
from rallebench.core.events import Progress
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
    Step,
    ToolCall,
    ToolSpec,
    UseTool,
)
from rallebench.engine.answer import STATE_EVERY, answer
from rallebench.engine.record import (
    episode_from_json,
    episode_to_json,
    reply_from_json,
    reply_to_json,
    request_to_json,
)
from rallebench.engine.run_files import RunState
from rallebench.engine.spec_differences import first_difference
from rallebench.engine.store import RunFolder, checked_run_name, list_runs
from rallebench.llms.scripted import Scripted

RECORDS = [
    {"id": f"q{n}", "input": f"question {n}", "output": [{"answer": f"a{n}"}]} for n in range(12)
]
QUESTIONS = [Question(str(record["id"]), str(record["input"])) for record in RECORDS]
SPEC: dict[str, Any] = {
    "fingerprint": "0123456789ab",
    "spec": {
        "dataset": "tiny",
        "workflow": "chain",
        "settings": {"chain": {"name": "c", "actions": [{"k": 5}]}, "backends": {"llm far": "f1"}},
        "limit": None,
        "seed": 0,
    },
    "metrics": ["em"],
    "batch_size": 2,
}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def folder(runs: Path) -> RunFolder:
    return RunFolder.create(runs, described("x", SPEC), RECORDS)


def asking(question: Question) -> Flow:
    """One question, one request; the answer is the reply."""
    said = yield Generate("far", (Message("user", question.text),))
    return Outcome(said.text)


def answering(*failing: str) -> Scripted:
    """Answers ``a3`` to ``question 3``; fails on a question that ends with one of ``failing``."""
    wanted = {f"{number}$": BackendError(f"far is down for {number}") for number in failing}

    def reply(request: Generate) -> Any:
        text = request.messages[-1].content
        number = text.removeprefix("question ")
        return wanted.get(f"{number}$", f"a{number}")

    return Scripted(reply, "far")


def done(
    folder: RunFolder, model: Scripted, questions: Sequence[Question] = QUESTIONS, **more: Any
) -> list[Progress]:
    """All progress events of one session."""
    return list(answer(folder, asking, questions, Backends(llms={"far": model}), **more))


def lines(folder: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder.path / "episodes.jsonl").read_text().splitlines()]


def episode(qid: str, answer: str = "a", error: str = "") -> Episode:
    return Episode(
        qid, "chain", (Step(Note("n"), Reply("n")),), None if error else Outcome(answer), error
    )


# ── the folder ───────────────────────────────────────────────────────────────


def test_a_run_folder_holds_what_was_asked_and_with_what(folder: RunFolder) -> None:
    assert sorted(path.name for path in folder.path.iterdir()) == ["questions.jsonl", "run.json"]
    assert folder.records() == RECORDS
    assert folder.description() == described("x", SPEC)
    written = json.loads((folder.path / "run.json").read_text())
    assert written["format"] == "rallebench-run/1" and written["name"] == "x"
    assert {key: written[key] for key in SPEC} == SPEC
    assert (folder.name, folder.episodes(), folder.report()) == ("x", {}, None)
    assert folder.answers().seconds == 0


def test_a_run_of_that_name_is_never_made_twice(folder: RunFolder, runs: Path) -> None:
    (folder.path / "episodes.jsonl").write_text("precious\n")
    with pytest.raises(UsageError, match="The run 'x' exists already"):
        RunFolder.create(runs, described("x", SPEC), RECORDS)
    assert (folder.path / "episodes.jsonl").read_text() == "precious\n"
    assert [path.name for path in runs.iterdir()] == ["x"]


def test_of_many_threads_that_make_one_run_exactly_one_does(runs: Path) -> None:
    together = threading.Barrier(8)
    made: list[RunFolder | UsageError] = []

    def make() -> None:
        together.wait()
        try:
            made.append(RunFolder.create(runs, described("x", SPEC), RECORDS))
        except UsageError as error:
            made.append(error)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(result, RunFolder) for result in made) == 1
    assert len(made) == 8
    assert [path.name for path in runs.iterdir()] == ["x"], "nothing half-made is left"


def test_a_run_that_cannot_be_made_whole_is_not_there(runs: Path) -> None:
    def records() -> Iterator[dict[str, Any]]:
        yield RECORDS[0]
        raise BadFileError("the second row is bad.")

    with pytest.raises(BadFileError):
        RunFolder.create(runs, described("x", SPEC), records())
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".x", "a/b", "a\\b", "a\0b", "a\nb", "x ", "x.", "🏙️", "x" * 99 + "."]
)
def test_a_run_name_is_one_plain_folder_name(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a folder name"):
        checked_run_name(name)


@pytest.mark.parametrize("name", ["x" * 101, "é" * 101, "跑" * 70, "x" * 5_000])
def test_a_run_name_that_is_too_long_is_not_repeated_in_full(name: str) -> None:
    with pytest.raises(UsageError, match="is too long; use at most 100 characters") as refusal:
        checked_run_name(name)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("name", ["x", "nq-top5", "Lauf 2 (Wörter)", "跑", "a.b_c=1,2+3@4"])
def test_usual_run_names_are_taken(name: str, runs: Path) -> None:
    RunFolder.create(runs, described(name, SPEC), RECORDS)
    assert RunFolder.open(runs, name).description().name == name


def test_a_run_that_is_not_there_is_told_with_those_that_are(folder: RunFolder, runs: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no run 'y' in .*runs \(runs: x\)"):
        RunFolder.open(runs, "y")


def test_runs_are_listed_newest_first_and_half_made_ones_are_not(runs: Path) -> None:
    for age, name in enumerate(["old", "older", "oldest"]):
        made = RunFolder.create(runs, described(name, SPEC), RECORDS)
        os.utime(made.path / "run.json", (1000 - age, 1000 - age))
    (runs / ".half.1.part").mkdir()
    (runs / ".half.1.part" / "run.json").write_text("{}")
    (runs / "notes").mkdir()
    assert [run.name for run in list_runs(runs)] == ["old", "older", "oldest"]
    assert list_runs(runs / "nowhere") == []


# ── episodes.jsonl ───────────────────────────────────────────────────────────


def test_the_last_line_of_a_question_counts(folder: RunFolder) -> None:
    with folder.log() as log:
        for written in (
            episode("q1", error="down"),
            episode("q0", "first"),
            episode("q1", "second"),
        ):
            folder.append(log, written, "s1", 1.0)
    assert list(folder.episodes()) == ["q1", "q0"]
    assert folder.episodes()["q1"] == episode("q1", "second")


@pytest.mark.parametrize("kept", [0, 1, 10, -2, -1])
def test_a_torn_last_line_is_forgiven_and_cut_off_later(kept: int, folder: RunFolder) -> None:
    path = folder.path / "episodes.jsonl"
    with folder.log() as log:
        folder.append(log, episode("q0", "whole"), "s1", 1.0)
        first = path.read_bytes()
        folder.append(log, episode("q1", "torn: ünïcödé\u2028"), "s1", 2.0)
    second = path.read_bytes()[len(first) :]
    path.write_bytes(first + second[:kept])
    assert list(folder.episodes()) == ["q0"]
    assert folder.answers().seconds == 1.0
    with folder.log() as log:
        folder.append(log, episode("q2", "next"), "s2", 3.0)
    assert path.read_bytes().startswith(first)
    assert list(folder.episodes()) == ["q0", "q2"]
    assert path.read_bytes().count(b"\n") == 2


def test_a_line_separator_within_an_answer_is_part_of_the_answer(folder: RunFolder) -> None:
    with folder.log() as log:
        folder.append(log, episode("q0", "one\u2028two\nthree\x85\r\n"), "s1", 1.0)
    assert folder.episodes()["q0"].answer == "one\u2028two\nthree\x85\r\n"


def test_the_time_of_a_run_is_the_sum_of_its_sessions(folder: RunFolder) -> None:
    with folder.log() as log:
        for session, elapsed in (("s1", 1.0), ("s1", 4.0), ("s2", 2.0), ("s2", 1.5)):
            folder.append(log, episode("q0"), session, elapsed)
    assert folder.answers().seconds == 6.0


def test_a_full_disk_ends_the_session_in_a_sentence_and_costs_no_answer(folder: RunFolder) -> None:
    with (
        pytest.raises(BackendError, match=r"Could not write .*episodes\.jsonl"),
        no_file_grows_beyond(1_000),
    ):
        done(folder, answering(), batch_size=1)
    kept = folder.episodes()
    assert 1 <= len(kept) < 12
    assert folder.state().state == "failed"
    assert "Could not write " in folder.state().message
    again = answering()
    done(folder, again)
    assert again.calls == 12 - len(kept)
    assert len(folder.episodes()) == 12


# ── runs are never confused ──────────────────────────────────────────────────


def test_only_the_fingerprint_decides_whether_settings_are_the_same_run(folder: RunFolder) -> None:
    more = {"batch_size": 7, "metrics": ["f1"]}
    folder.check_same(described("x", {**SPEC, **more}))
    with pytest.raises(MismatchError, match="The run 'x' was made with"):
        folder.check_same(described("x", {**SPEC, **more, "fingerprint": "ba9876543210"}))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"limit": 5}, "was made with limit = nothing, you asked for 5"),
        ({"dataset": "big"}, "was made with dataset = 'tiny', you asked for 'big'"),
        (
            {
                "settings": {
                    "chain": {"name": "c", "actions": [{"k": 10}]},
                    "backends": {"llm far": "f1"},
                }
            },
            "was made with settings.chain.actions[1].k = 5, you asked for 10",
        ),
        (
            {
                "settings": {
                    "chain": SPEC["spec"]["settings"]["chain"],
                    "backends": {"llm far": "f2"},
                }
            },
            "was made with settings.backends.llm far = 'f1', you asked for 'f2'",
        ),
        (
            {"settings": {"chain": SPEC["spec"]["settings"]["chain"], "backends": {}}},
            "was made with settings.backends.llm far = 'f1', you asked for nothing",
        ),
    ],
)
def test_other_settings_are_refused(changed: dict[str, Any], said: str, folder: RunFolder) -> None:
    with pytest.raises(MismatchError) as refusal:
        other = {"fingerprint": "other", "spec": {**SPEC["spec"], **changed}}
        folder.check_same(described("x", {**SPEC, **other}))
    assert str(refusal.value) == f"The run 'x' {said}. Use another run name for the new settings."


def test_actions_that_were_added_are_named_and_long_values_are_cut() -> None:
    assert (
        first_difference({"a": [1]}, {"a": [1, 2]}) == "was made with a = [1], you asked for [1, 2]"
    )
    assert len(first_difference({"a": "x" * 500}, {"a": "y"})) < 150


# ── answering ────────────────────────────────────────────────────────────────


def test_every_question_is_answered_written_and_told(folder: RunFolder) -> None:
    told = done(folder, answering(), batch_size=5)
    assert [progress.done for progress in told] == list(range(1, 13))
    assert {progress.total for progress in told} == {12}
    assert told[-1].errors == 0
    assert {line["qid"]: line["answer"] for line in lines(folder)} == {
        f"q{n}": f"a{n}" for n in range(12)
    }
    state = folder.state()
    assert (state.state, state.done, state.total, state.errors) == ("answered", 12, 12, 0)
    assert state.rate is not None and state.rate > 0


def test_a_resumed_run_asks_only_what_is_missing(folder: RunFolder) -> None:
    first, second = answering(), answering()
    done(folder, first, QUESTIONS[:7])
    told = done(folder, second)
    assert (first.calls, second.calls) == (7, 5)
    assert [progress.done for progress in told] == [8, 9, 10, 11, 12]
    assert len(lines(folder)) == 12


def test_failed_questions_are_tried_again_and_their_new_line_counts(folder: RunFolder) -> None:
    told = done(folder, answering("3", "8"))
    assert told[-1].errors == 2
    assert {qid for qid, e in folder.episodes().items() if e.error} == {"q3", "q8"}
    again = answering("8")
    done(folder, again)
    assert again.calls == 2
    assert {qid: e.error for qid, e in folder.episodes().items() if e.error} == {
        "q8": "far is down for 8"
    }
    assert len(lines(folder)) == 14, "nothing is ever deleted"


def test_a_finished_run_asks_nothing(folder: RunFolder) -> None:
    done(folder, answering())
    model = answering()
    assert done(folder, model) == []
    assert model.calls == 0
    assert folder.state().state == "answered"


def test_five_failures_before_a_success_end_the_run_with_the_first(folder: RunFolder) -> None:
    model = answering(*map(str, range(12)))
    with pytest.raises(
        BackendError,
        match="The first 5 questions all failed, so the run was stopped: far is down for 0",
    ):
        done(folder, model, batch_size=1)
    assert len(lines(folder)) == 5
    assert folder.state().state == "failed"


def test_fewer_questions_than_five_that_all_fail_end_the_run_too(folder: RunFolder) -> None:
    with pytest.raises(BackendError, match="The first 3 questions all failed"):
        done(folder, answering("0", "1", "2"), QUESTIONS[:3])


@pytest.mark.parametrize("answered", ["0", "4"])
def test_one_success_among_five_lets_the_run_go_on(answered: str, folder: RunFolder) -> None:
    model = answering(*(str(n) for n in range(12) if str(n) != answered))
    assert done(folder, model, batch_size=1)[-1].errors == 11


def test_a_run_that_had_answers_before_is_not_stopped_by_five_failures(folder: RunFolder) -> None:
    done(folder, answering(), QUESTIONS[:2])
    assert done(folder, answering(*map(str, range(2, 12))))[-1].errors == 10


@pytest.mark.parametrize(("allowed", "stopped"), [(0, True), (2, True), (3, False), (None, False)])
def test_more_failures_than_allowed_end_the_run_and_keep_what_was_answered(
    allowed: int | None, stopped: bool, folder: RunFolder
) -> None:
    model = answering("2", "5", "9")
    if stopped:
        with pytest.raises(BackendError, match=f"at most {allowed} may, so the run was stopped"):
            done(folder, model, batch_size=1, max_errors=allowed)
        assert "The first message: far is down for 2" in folder.state().message
    else:
        assert done(folder, model, batch_size=1, max_errors=allowed)[-1].errors == 3
    failed = [line["qid"] for line in lines(folder) if "error" in line]
    assert len(failed) == (allowed or 0) + 1 if stopped else 3
    assert done(folder, answering())[-1].done == 12


def test_means_so_far_count_only_what_was_scored(folder: RunFolder) -> None:
    def observe(episode: Episode) -> dict[str, float | None]:
        return {
            "em": float(episode.answer == "a1"),
            "rare": 1.0 if episode.answer == "a2" else None,
        }

    done(folder, answering("0"), QUESTIONS[:5], observe=observe)
    assert folder.state().means == {"em": (0.25, 4), "rare": (1.0, 1)}


def test_the_state_tells_of_a_whole_batch_while_the_next_is_answered(folder: RunFolder) -> None:
    """The questions of a batch end within milliseconds; earlier only the first of them was reported at once."""
    go_on = threading.Event()

    def reply(request: Generate) -> str:
        if request.messages[-1].content == "question 4":
            go_on.wait(20)
        return "a"

    worker = threading.Thread(
        target=done, args=(folder, Scripted(reply, "far")), kwargs={"batch_size": 4}
    )
    with folder.lock():
        worker.start()
        deadline = time.monotonic() + 10
        while folder.state().done < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        told = folder.state()
        go_on.set()
        worker.join()
    assert (told.state, told.done) == ("running", 4)
    time.sleep(1.1 * STATE_EVERY)
    assert (folder.state().state, folder.state().done) == ("answered", 12), (
        "nothing is told after the end"
    )


# ── stopping ─────────────────────────────────────────────────────────────────


def test_a_file_stops_a_run_after_the_batch_and_is_taken_away(folder: RunFolder) -> None:
    model = Scripted(lambda request: "a", "far", delay=0.05)
    seen = 0
    for progress in answer(folder, asking, QUESTIONS, Backends(llms={"far": model}), batch_size=1):
        RunFolder(folder.path).ask_to_stop()
        seen = progress.done
    assert 1 <= seen < 12
    assert folder.state().state == "stopped"
    assert folder.state().done == seen == len(lines(folder))
    assert not folder.stop_asked()
    done(folder, answering())
    assert set(folder.episodes()) == {question.qid for question in QUESTIONS}


def test_a_stop_that_was_asked_before_the_work_began_is_not_lost(folder: RunFolder) -> None:
    folder.ask_to_stop()
    model = answering()
    assert done(folder, model) == []
    assert model.calls == 0
    assert folder.state().state == "stopped"


def test_an_interrupt_keeps_what_was_answered(folder: RunFolder) -> None:
    with pytest.raises(KeyboardInterrupt):
        for progress in answer(
            folder, asking, QUESTIONS, Backends(llms={"far": answering()}), batch_size=1
        ):
            if progress.done == 4:
                raise KeyboardInterrupt
    assert len(lines(folder)) == 4


# ── the state ────────────────────────────────────────────────────────────────


def test_a_run_is_running_while_its_lock_is_held_by_any_process(folder: RunFolder) -> None:
    folder.set_state(RunState("running", 3, 12))  # its process id is ours, so it is alive
    assert folder.state().state == "interrupted"
    assert folder.state().done == 3
    with folder.lock():
        assert folder.state().state == "running"
    assert folder.state().state == "interrupted"
    folder.set_state(RunState("done", 12, 12))
    assert folder.state().state == "done"


@pytest.mark.parametrize("content", [None, b"", b"rubbish", b"[]", b"{}", b'{"state": 7}', b"\xff"])
def test_without_a_state_the_files_are_counted(content: bytes | None, folder: RunFolder) -> None:
    done(folder, answering(), QUESTIONS[:4])
    (folder.path / "state.json").unlink()
    if content is not None:
        (folder.path / "state.json").write_bytes(content)
    state = folder.state()
    assert (state.state, state.done, state.total) == ("interrupted", 4, 12)


def test_the_state_of_a_damaged_run_can_still_be_shown(folder: RunFolder) -> None:
    (folder.path / "questions.jsonl").write_text("rubbish\n")
    assert folder.state() == RunState("interrupted")


# ── the lock ─────────────────────────────────────────────────────────────────


def test_a_run_is_worked_on_by_one_only_and_free_again_afterwards(folder: RunFolder) -> None:
    with (
        folder.lock(),
        pytest.raises(UsageError, match="The run 'x' is locked by another process"),
    ):
        RunFolder(folder.path).lock().__enter__()
    with RunFolder(folder.path).lock():
        pass


def test_the_lock_of_a_killed_process_is_free(folder: RunFolder) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom rallebench.engine.store import RunFolder\n"
        "with RunFolder(Path(sys.argv[1])).lock():\n    print('locked', flush=True)\n    time.sleep(60)"
    )
    root = str(PROJECT)
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder.path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"locked\n"
    with pytest.raises(UsageError):
        folder.lock().__enter__()
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with folder.lock():
        pass


# ── episodes as JSON ─────────────────────────────────────────────────────────

text = st.text(max_size=12)
counts = st.integers(0, 10**6)
seconds = st.floats(0, 1e4).map(lambda value: round(value, 6))
scores = st.floats(allow_nan=False, allow_infinity=False)
plain = st.none() | st.booleans() | st.integers() | scores | text
mappings = st.dictionaries(text, plain | st.lists(plain, max_size=2), max_size=2)
hits = st.builds(Hit, st.builds(Passage, text, text, text, text), scores)
tools = st.builds(ToolSpec, text, text, mappings)
generations = st.builds(
    Generate,
    text,
    st.lists(st.builds(Message, text, text), max_size=2).map(tuple),
    st.lists(tools, max_size=1).map(tuple),
    st.none() | counts,
    st.lists(text, max_size=2).map(tuple),
    st.none() | scores,
    st.none() | counts,
    mappings,
)
requests = (
    st.builds(Retrieve, text, text, counts)
    | st.builds(Note, text)
    | st.builds(UseTool, text, st.dictionaries(text, text, max_size=2))
    | generations
)
replies = st.builds(
    Reply,
    text,
    st.lists(hits, max_size=2).map(tuple),
    st.lists(st.builds(ToolCall, text, text, text), max_size=1).map(tuple),
    counts,
    counts,
    st.sampled_from(["stop", "length", ""]) | text,
    st.none() | st.floats(0, 1),
    st.none() | seconds,
    st.lists(scores, max_size=2).map(tuple),
    text | st.just("stop"),
)
steps = st.builds(Step, requests, replies, seconds, st.booleans())
episodes = st.builds(
    Episode,
    text,
    text,
    st.lists(steps, max_size=3).map(tuple),
    st.none() | st.builds(Outcome, text, text),
    text,
)


@settings(max_examples=60)
@given(episodes)
def test_an_episode_comes_back_from_json_as_it_was(made: Episode) -> None:
    assert episode_from_json(json.loads(json.dumps(episode_to_json(made)))) == made


@settings(max_examples=50)
@given(replies)
def test_a_reply_comes_back_from_json_as_it_was(made: Reply) -> None:
    assert reply_from_json(json.loads(json.dumps(reply_to_json(made), ensure_ascii=False))) == made


def test_what_was_left_to_the_model_is_left_out_and_what_was_asked_is_not() -> None:
    assert request_to_json(Generate("m", ())) == {"ask": "generate", "llm": "m", "messages": []}
    asked = request_to_json(Generate("m", (), max_tokens=0, temperature=0.0, seed=0))
    assert (asked["max_tokens"], asked["temperature"], asked["seed"]) == (0, 0.0, 0)


def test_a_confidence_of_zero_is_not_an_absent_one() -> None:
    for confidence in (0.0, None):
        assert (
            reply_from_json(reply_to_json(Reply("x", confidence=confidence))).confidence
            == confidence
        )


# ── speed ────────────────────────────────────────────────────────────────────


def test_a_search_whose_encoder_counts_no_tokens_can_be_read_again() -> None:
    reply = Reply("A passage.", embedding_tokens=None)
    assert reply_from_json(json.loads(json.dumps(reply_to_json(reply)))) == reply


def test_a_head_is_the_whole_line_without_its_steps(folder: RunFolder) -> None:
    with folder.log() as log:
        folder.append(log, episode("q0", 'a], "session": "x'), "s1", 1.5)
        folder.append(log, episode("q1", error="down"), "s2", 2.5)
    first, second = folder.heads().values()
    assert (first.answer, first.session, first.elapsed) == ('a], "session": "x', "s1", 1.5)
    assert (second.error, second.session, second.elapsed) == ("down", "s2", 2.5)
    assert folder.find_episode("q1", second.at) == episode("q1", error="down")
