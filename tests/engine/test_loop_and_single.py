"""The loop over many questions and the single runner give the same outcomes, batched, cached or failing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from in_memory import InMemory

from rallebench.chains.chain import as_flow
from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError, BackendMemoryError
from rallebench.core.live import Delta, StepDone
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Flow,
    Generate,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Retrieve,
)
from rallebench.engine import loop
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.single import run_one

PASSAGES = [
    Passage("1", "Titan is the largest moon of Saturn.", "Titan", "p1"),
    Passage("2", "Triton is the largest moon of Neptune.", "Triton", "p2"),
    Passage("3", "Paris, Texas is a city in Lamar County.", "Paris, Texas", "p3"),
]
QUESTIONS = [
    Question(f"q{i}", text)
    for i, text in enumerate(
        ["Titan?", "Triton?", "Where is Paris, Texas?", "", "nothing at all"] * 8
    )
]


class Upper:
    """A model that answers with its prompt in capitals, and counts its calls."""

    fingerprint = "upper"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.batches: list[int] = []

    def generate(self, batch: Sequence[Generate]) -> list[Reply]:
        self.batches.append(len(batch))
        time.sleep(self.seconds)
        return [
            Reply(r.messages[-1].content.upper(), prompt_tokens=3, completion_tokens=2)
            for r in batch
        ]

    def stream(self, request: Generate) -> Any:
        text = request.messages[-1].content.upper()
        yield from (text[:3], text[3:])
        yield Reply(text, prompt_tokens=3, completion_tokens=2)


class Failing(Upper):
    """Fails for prompts with 'Triton'; runs out of memory above four at once."""

    def generate(self, batch: Sequence[Generate]) -> list[Reply]:
        if len(batch) > 4:
            raise BackendMemoryError("too many at once")
        if any("Triton" in r.messages[-1].content for r in batch):
            raise BackendError("Triton is refused.")
        return super().generate(batch)


def chain_flow(question: Question) -> Flow:
    chain = Chain(
        "c",
        (
            Action("retrieve", "{question}", target="mem", k=2),
            Action("generate", "{response[0]} | {question}", target="upper"),
            Action("identity", "{response[1]} from {wiki_id_title[0]}"),
        ),
    )
    return as_flow(chain, question)


def asking_again(question: Question) -> Flow:
    """An agent that searches until it is satisfied; the number of steps depends on the replies."""
    found = yield Retrieve("mem", question.text, 1)
    tries = 0
    while not found.hits and tries < 3:
        tries += 1
        yield Note(f"nothing, try {tries}")
        found = yield Retrieve("mem", question.text + " moon" * tries, 1)
    said = yield Generate("upper", (Message("user", found.text or "no luck"),))
    return Outcome(said.text, "answered" if found.hits else "gave_up")


def early_end(question: Question) -> Flow:
    return Outcome("at once")
    yield Note("never")


FLOWS = [chain_flow, asking_again, early_end]


def backends(llm: Any = None) -> Backends:
    return Backends({"mem": InMemory(PASSAGES, "mem")}, {"upper": llm or Upper()})


def single(make: Any, question: Question, using: Backends, **options: Any) -> Episode:
    events = list(run_one(make(question), using, qid=question.qid, **options))
    assert isinstance(events[-1], Episode)
    return events[-1]


def told(episode: Episode) -> Any:
    """An episode without the values that may differ between runs: time and memory."""
    return (
        episode.qid,
        episode.outcome,
        episode.error,
        [(s.request, s.reply) for s in episode.steps],
    )


@pytest.mark.parametrize("make", FLOWS)
@pytest.mark.parametrize("batch_size", [1, 7, 64])
@pytest.mark.parametrize("window", [1, 5, 256])
def test_the_loop_gives_the_outcomes_of_one_by_one(make: Any, batch_size: int, window: int) -> None:
    many = {
        e.qid: told(e)
        for e in loop.run(make, QUESTIONS, backends(), batch_size=batch_size, window=window)
    }
    assert many == {q.qid: told(single(make, q, backends())) for q in QUESTIONS}


@pytest.mark.parametrize("make", FLOWS)
def test_streaming_gives_the_outcome_of_not_streaming(make: Any) -> None:
    for question in QUESTIONS[:5]:
        assert told(single(make, question, backends(), stream=True)) == told(
            single(make, question, backends())
        )


def test_streamed_pieces_join_to_the_reply() -> None:
    events = list(run_one(chain_flow(QUESTIONS[0]), backends(), stream=True))
    said = "".join(e.text for e in events if isinstance(e, Delta))
    done = [e.step for e in events if isinstance(e, StepDone)]
    assert said == done[1].reply.text


def test_closing_the_stream_closes_the_flow() -> None:
    closed = []

    def watched(question: Question) -> Flow:
        try:
            yield Generate("upper", (Message("user", "long text"),))
            return Outcome("never")
        finally:
            closed.append(True)

    events = run_one(watched(QUESTIONS[0]), backends(), stream=True)
    next(events)
    next(events)
    events.close()
    assert closed == [True]


def test_requests_are_asked_in_full_batches() -> None:
    model = Upper(seconds=0.002)
    list(loop.run(chain_flow, QUESTIONS, backends(model), batch_size=8))
    assert sum(model.batches) == len(QUESTIONS)
    assert max(model.batches) == 8
    assert len(model.batches) <= len(QUESTIONS) / 8 + 4


def test_retrieval_and_generation_overlap() -> None:
    together = threading.Event()
    busy = {"search": False, "generate": False}

    class SlowSearch(InMemory):
        def search(self, queries: Sequence[str], k: int) -> Any:
            return pause("search", lambda: super(SlowSearch, self).search(queries, k))

    class SlowModel(Upper):
        def generate(self, batch: Sequence[Generate]) -> list[Reply]:
            return pause("generate", lambda: super(SlowModel, self).generate(batch))

    def pause(kind: str, work: Any) -> Any:
        busy[kind] = True
        if all(busy.values()):
            together.set()
        together.wait(0.05)
        busy[kind] = False
        return work()

    using = Backends({"mem": SlowSearch(PASSAGES, "mem")}, {"upper": SlowModel()})
    list(loop.run(chain_flow, QUESTIONS, using, batch_size=4))
    assert together.is_set()


def test_one_bad_question_never_costs_its_neighbours_and_memory_errors_halve_the_batch() -> None:
    episodes = {
        e.qid: e for e in loop.run(chain_flow, QUESTIONS, backends(Failing()), batch_size=16)
    }
    assert len(episodes) == len(QUESTIONS)
    for question in QUESTIONS:
        expected = single(chain_flow, question, backends(Failing()))
        assert told(episodes[question.qid]) == told(expected)
    assert {e.error for e in episodes.values()} == {"", "Triton is refused."}


def test_a_name_that_is_not_loaded_fails_each_question_with_the_mend() -> None:
    using = Backends({"mem": InMemory(PASSAGES, "mem")}, {})
    episodes = list(loop.run(chain_flow, QUESTIONS[:3], using))
    assert {e.error for e in episodes} == {
        "The language model 'upper' is not loaded (loaded: none)."
    }


def test_a_model_that_takes_several_requests_at_once_is_asked_in_a_sliding_window() -> None:
    class Wide(Upper):
        concurrency = 4

        def __init__(self) -> None:
            super().__init__()
            self.now = self.most = 0
            self.lock = threading.Lock()

        def generate(self, batch: Sequence[Generate]) -> list[Reply]:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            time.sleep(0.01)
            with self.lock:
                self.now -= 1
            return super().generate(batch)

    model = Wide()
    episodes = list(loop.run(chain_flow, QUESTIONS, backends(model), batch_size=20))
    assert len(episodes) == len(QUESTIONS)
    assert set(model.batches) == {1}
    assert 2 <= model.most <= 4


def test_a_stopped_loop_ends_soon_and_keeps_what_is_answered() -> None:
    seen: list[Episode] = []
    running = loop.run(
        chain_flow,
        QUESTIONS,
        backends(Upper(seconds=0.01)),
        batch_size=2,
        window=4,
        stop=lambda: len(seen) >= 6,
    )
    seen.extend(running_into(running, seen))
    assert 6 <= len(seen) < len(QUESTIONS)
    assert all(e.outcome for e in seen)


def test_a_loop_that_is_left_waits_for_the_batch_so_that_its_backend_can_be_closed() -> None:
    model = Upper(seconds=0.3)
    ended: list[int] = []
    model.generate = lambda batch: [Upper.generate(model, batch), ended.append(1)][0]  # type: ignore[method-assign]
    running = loop.run(asking_again, QUESTIONS, backends(model), batch_size=1)
    next(running)
    while len(model.batches) == len(ended):
        time.sleep(0.001)
    running.close()
    assert len(ended) == len(model.batches) < len(QUESTIONS)


def running_into(running: Any, seen: list[Episode]) -> list[Episode]:
    for episode in running:
        seen.append(episode)
    return []


def test_a_bug_in_a_flow_costs_one_question_only() -> None:
    def buggy(question: Question) -> Flow:
        yield Note("start")
        if question.qid == "q1":
            raise ZeroDivisionError("oops")
        return Outcome("fine")

    episodes = {e.qid: e for e in loop.run(buggy, QUESTIONS[:3], backends())}
    assert "ZeroDivisionError" in episodes["q1"].error
    assert episodes["q0"].answer == episodes["q2"].answer == "fine"
    assert told(episodes["q1"]) == told(single(buggy, QUESTIONS[1], backends()))


# ── the cache ────────────────────────────────────────────────────────────────


def test_what_was_answered_is_not_asked_again() -> None:
    cache, model, retriever = ReplyCache(None), Upper(), InMemory(PASSAGES, "mem")
    using = Backends({"mem": retriever}, {"upper": model})
    first = {e.qid: e for e in loop.run(chain_flow, QUESTIONS, using, reply_cache=cache)}
    asked, searched = sum(model.batches), retriever.queries
    second = {e.qid: e for e in loop.run(chain_flow, QUESTIONS, using, reply_cache=cache)}
    assert (sum(model.batches), retriever.queries) == (asked, searched)
    assert {q: told(e) for q, e in first.items()} == {q: told(e) for q, e in second.items()}
    assert all(
        s.cached for e in second.values() for s in e.steps if not isinstance(s.request, Note)
    )


def test_the_memory_of_the_loop_serves_the_single_runner() -> None:
    cache, model = ReplyCache(None), Upper()
    list(loop.run(chain_flow, QUESTIONS, backends(model), reply_cache=cache))
    before = len(model.batches)
    single(chain_flow, QUESTIONS[0], backends(model), reply_cache=cache)
    assert len(model.batches) == before


@pytest.mark.parametrize(
    "changed",
    [
        Generate("upper", (Message("user", "other"),)),
        Generate("upper", (Message("system", "x"), Message("user", "hi"))),
        Generate("upper", (Message("user", "hi"),), max_tokens=5),
        Generate("upper", (Message("user", "hi"),), temperature=0.0),
        Generate("upper", (Message("user", "hi"),), stop=("x",)),
        Generate("upper", (Message("user", "hi"),), seed=3),
        Generate("upper", (Message("user", "hi"),), options={"top_p": 0.5}),
    ],
)
def test_whatever_changes_an_answer_is_part_of_the_key(changed: Generate) -> None:
    cache, asked = ReplyCache(None), Generate("upper", (Message("user", "hi"),))
    cache.put([(asked, Reply("remembered"), 1.0)], backends())
    found = cache.get(asked, backends())
    assert found is not None and found[0].text == "remembered"
    assert cache.get(changed, backends()) is None


def test_another_model_under_the_same_name_is_asked_anew() -> None:
    class Other(Upper):
        fingerprint = "other"

    cache, asked = ReplyCache(None), Generate("upper", (Message("user", "hi"),))
    cache.put([(asked, Reply("remembered"), 1.0)], backends())
    assert cache.get(asked, backends(Other())) is None


def test_sampled_generations_are_remembered_only_with_a_seed() -> None:
    cache = ReplyCache(None)
    for seed, expected in ((None, False), (1, True)):
        asked = Generate("upper", (Message("user", "hi"),), temperature=0.7, seed=seed)
        cache.put([(asked, Reply("sampled"), 1.0)], backends())
        assert (cache.get(asked, backends()) is not None) is expected


def test_a_smaller_k_is_the_prefix_of_a_deeper_search() -> None:
    cache, using = ReplyCache(None), backends()
    query = "largest moon of Saturn city"
    deep = single_retrieval(using, query, 3)
    cache.put([(Retrieve("mem", query, 3), deep, 0.1)], using)
    for k in (1, 2, 3):
        found = cache.get(Retrieve("mem", query, k), using)
        assert found is not None and found[0] == single_retrieval(using, query, k)
    exhausted = cache.get(Retrieve("mem", query, 4), using)
    assert exhausted is None, "three of three were found, so a fourth may exist"


def test_a_search_that_found_fewer_than_asked_answers_any_depth() -> None:
    cache, using = ReplyCache(None), backends()
    found = single_retrieval(using, "Titan", 3)
    assert len(found.hits) == 1
    cache.put([(Retrieve("mem", "Titan", 3), found, 0.1)], using)
    deeper = cache.get(Retrieve("mem", "Titan", 50), using)
    assert deeper is not None and deeper[0] == found


def single_retrieval(using: Backends, query: str, k: int) -> Reply:
    def flow() -> Flow:
        reply = yield Retrieve("mem", query, k)
        return Outcome(reply.text)

    *_, episode = run_one(flow(), using)
    assert isinstance(episode, Episode)
    return episode.steps[0].reply


@pytest.mark.slow
def test_processes_that_open_a_new_memory_at_the_same_moment_all_get_it(tmp_path: Any) -> None:
    code = (
        "import sys, time; from rallebench.engine.reply_cache import ReplyCache\n"
        "print(flush=True); at = float(sys.stdin.readline())\n"
        "for n in range(40):\n"
        "    while time.time() < at + n / 50: pass\n"
        "    ReplyCache(f'{sys.argv[1]}/{n}.db')\n"
    )
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in opening:  # both have finished their imports
        assert process.stdout is not None and process.stdout.readline()
    at = time.time() + 0.1
    for process in opening:
        assert process.stdin is not None
        process.stdin.write(f"{at}\n")
        process.stdin.flush()
    assert [process.communicate(timeout=60)[1] for process in opening] == ["", ""]


def test_the_memory_survives_on_disk_and_refuses_a_file_that_is_none(tmp_path: Any) -> None:
    asked = Generate("upper", (Message("user", "hi"),))
    first = ReplyCache(tmp_path / "memo.sqlite")
    first.put([(asked, Reply("remembered", confidence=0.5, logprobs=(-0.1,)), 1.5)], backends())
    first.close()
    again = ReplyCache(tmp_path / "memo.sqlite").get(asked, backends())
    assert again == (Reply("remembered", confidence=0.5, logprobs=(-0.1,)), 1.5, 1)
    (tmp_path / "bad.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BackendError, match=r"bad\.sqlite cannot be opened"):
        ReplyCache(tmp_path / "bad.sqlite")
