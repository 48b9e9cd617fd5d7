"""The cost of an answer: tokens, time and money, of a step, a question and a run. Unknown values are never 0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from run_folders import described

from rallebench.core.backends import Backends
from rallebench.core.errors import BackendError
from rallebench.core.json_values import as_json
from rallebench.core.numbers import price
from rallebench.core.prices import read_prices
from rallebench.core.runs import DatasetRef, RunRequest
from rallebench.core.types import (
    Action,
    Chain,
    Episode,
    Flow,
    Generate,
    Gold,
    Message,
    Note,
    Outcome,
    Question,
    Reply,
    Retrieve,
    Step,
    ToolCall,
)
from rallebench.engine import loop
from rallebench.engine.cost import llm_prices, run_cost, step_cost, step_usd, total
from rallebench.engine.execute import describe_run
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.score import score_run, stored_cost
from rallebench.engine.single import run_one
from rallebench.engine.store import RunFolder
from rallebench.llms.scripted import Scripted
from rallebench.metrics import card, metric
from rallebench.metrics.cost import (
    speed,
    step_completion_tokens,
    step_prompt_tokens,
    writing_seconds,
)
from rallebench.render import costs
from rallebench.render import text as words
from rallebench.workspace.flows import chain_flow

PRICES = {"gpt": {"prompt": 0.5, "completion": 2.0}}
ASKED = Generate("gpt", (Message("user", "Who?"),))


def said(
    read: int = 1000,
    written: int = 10,
    seconds: float = 2.0,
    first: float | None = None,
    *,
    llm: str = "gpt",
    text: str = "Ada",
    **more: Any,
) -> Step:
    """A language model's step."""
    reply = Reply(text, prompt_tokens=read, completion_tokens=written, first_token_seconds=first)
    return Step(Generate(llm, ASKED.messages), reply, seconds, **more)


def found(seconds: float = 0.5, **more: Any) -> Step:
    """A retriever's step."""
    return Step(Retrieve("tiny", "Who?", 2), Reply(""), seconds, **more)


def answered(qid: str, *steps: Step) -> Episode:
    return Episode(qid, "chain", steps, Outcome("Ada"))


# ── tokens per second ────────────────────────────────────────────────────────


BATCH = [said(written=10, seconds=2.0, first=4.0, batch=4)] * 4
"""4 questions in 8 s, the first tokens after 4 s: 4 x 10 tokens in the other 4 s."""


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (
            [said(written=10, seconds=3.0, first=1.0)],
            5.0,
        ),  # the wait for the first token is left out
        ([said(written=10, seconds=2.0)], 5.0),  # its time is unknown
        (BATCH, 10.0),  # the wait of a batch is shared like its seconds
        ([said(written=10, seconds=2.0, first=2.0)], 5.0),  # an answer in one piece
        ([said(written=10, seconds=2.0, first=1.9999999)], 5.0),
        ([said(written=10, seconds=2.0, first=3.0)], 5.0),  # clocks may differ
        ([said(written=30, seconds=1.0), found(), said(written=10, seconds=3.0)], 10.0),
        ([found()], None),
        ([said(written=0)], None),
        ([said(seconds=0.0)], None),
    ],
)
def test_tokens_per_second_are_over_writing(steps: list[Step], expected: float | None) -> None:
    assert speed(steps) == (expected and pytest.approx(expected))
    assert [writing_seconds(step) for step in BATCH] == [1.0] * 4


def test_the_definition_that_the_page_shows_is_the_metrics_own() -> None:
    shown = card("tokens_per_second")
    assert shown["definition"].startswith("Completion tokens / (seconds − seconds to first token)")
    episode = answered("q", found(), said(written=10, seconds=3.0, first=1.0))
    assert metric("tokens_per_second").value(episode, Gold()) == pytest.approx(5.0)


# ── uncounted tokens ─────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("step", "tokens"),
    [
        (said(7, 3), (7, 3)),
        (said(0, 0), (None, None)),
        (said(0, 3), (None, 3)),
        (said(7, 0), (7, None)),
        (said(7, 0, text=""), (7, 0)),
        (said(0, 0, text=""), (None, None)),
        (
            Step(ASKED, Reply("", tool_calls=(ToolCall("1", "t", "{}"),), prompt_tokens=7)),
            (7, None),
        ),
        (Step(Generate("gpt", (Message("user", ""),)), Reply("", completion_tokens=2)), (0, 2)),
        (found(), (0, 0)),
        (Step(Note("x"), Reply("x")), (0, 0)),
    ],
)
def test_0_tokens_of_a_prompt_or_an_answer_that_is_not_empty_are_not_counted(
    step: Step, tokens: tuple[int | None, int | None]
) -> None:
    assert (step_prompt_tokens(step), step_completion_tokens(step)) == tokens


def test_a_backend_that_counts_none_is_not_scored_0() -> None:
    quiet = answered("q", found(), said(0, 0))
    names = ("prompt_tokens", "completion_tokens", "tokens_per_second", "first_token_seconds")
    assert [metric(name).value(quiet, Gold()) for name in names] == [None] * 4
    assert metric("prompt_tokens").value(answered("q", found()), Gold()) == 0.0, (
        "no model was asked"
    )
    spent = total(quiet.steps, PRICES)
    assert (spent.prompt_tokens, spent.completion_tokens, spent.usd) == (None, None, None)
    assert spent.calls_not_counted == {"gpt": 1}
    assert costs.tokens(spent) == "tokens not counted"


def test_tokens_that_were_counted_in_part_say_how_many_calls_are_missing() -> None:
    spent = total([said(7, 3), said(0, 0, llm="old"), said(0, 0, llm="old")], PRICES)
    assert (spent.prompt_tokens, spent.completion_tokens) == (7, 3)
    assert costs.tokens(spent) == "7 + 3 tokens (2 calls not counted)"
    assert spent.calls_not_counted == {"old": 2}


# ── money ────────────────────────────────────────────────────────────────────


def test_dollars_are_tokens_times_prices_per_million() -> None:
    assert step_usd(said(1_000_000, 500_000), PRICES) == (0.5, 1.0)
    assert total([said(1_000_000, 500_000), found()], PRICES).usd == 1.5
    assert total([found()], {}).usd == 0.0, "no model was asked"


def test_an_unknown_price_is_unknown_and_says_for_which_model() -> None:
    spent = total([said(1_000_000, 0, text=""), said(llm="mine"), said(0, 0, llm="gpt")], PRICES)
    assert spent.usd is None and spent.usd_known == 0.5
    assert spent.usd_unknown_for == {"mine": "no prices", "gpt": "tokens not counted"}
    assert price(spent) == "$0.50 + unknown for mine (no prices), gpt (tokens not counted)"
    assert price(total([said()], {})) == "unknown for gpt (no prices)"
    free = {"gpt": {"prompt": 0.0, "completion": 0.0}}
    assert total([said()], free).usd == 0.0, "a price of 0 is known"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"prompt": 1, "completion": 2.5}, {"prompt": 1.0, "completion": 2.5}),
        ({"prompt": 1}, {"prompt": 1.0}),
        (None, None),
        ({}, None),
        ({"prompt": "1", "completion": True}, None),
        ({"prompt": -1.0, "completion": float("nan")}, None),
        (0.5, None),
    ],
)
def test_only_numbers_from_0_up_are_prices(given: Any, taken: Any) -> None:
    class Model:
        prices = given

    assert llm_prices({"m": Model(), "plain": object()}) == {"m": taken, "plain": None}
    assert read_prices(given) == taken


def test_half_a_price_is_enough_for_nothing_but_an_empty_answer() -> None:
    half = {"gpt": {"prompt": 0.5}}
    assert step_usd(said(), half) is None
    assert step_usd(said(1_000_000, 0, text=""), half) == (0.5, 0.0)


def test_prices_stand_in_the_runs_record_and_change_no_fingerprint() -> None:
    chain = Chain("c", (Action("generate", "{question}", target="gpt"),))
    request = RunRequest(chain_flow(chain), DatasetRef("tiny", "", "aa"), (), ("em",))
    plain, priced = Scripted(["x"], name="gpt"), Scripted(["x"], name="gpt")
    priced.prices = PRICES["gpt"]  # type: ignore[attr-defined]
    before, after = (
        describe_run(request, Backends({}, {"gpt": model, "other": plain}))
        for model in (plain, priced)
    )
    assert (before.prices, after.prices) == ({"gpt": None}, PRICES)
    assert before.fingerprint == after.fingerprint and before.spec == after.spec


# ── the first token and failures in a run ────────────────────────────────────


class Late:
    """A model that reports the time of its first token, and fails on ``bad``."""

    name, fingerprint, temperature = "gpt", "late", 0.0

    def generate(self, batch: Sequence[Generate]) -> list[Reply | BackendError]:
        return [self._one(request) for request in batch]

    def _one(self, request: Generate) -> Reply | BackendError:
        if request.messages[-1].content == "bad":
            return BackendError("It broke.")
        return Reply("Ada", prompt_tokens=5, completion_tokens=2, first_token_seconds=0.25)


def ask(question: Question) -> Flow:
    reply = yield Generate("gpt", (Message("user", question.text),))
    return Outcome(reply.text)


QUESTIONS = [Question(f"q{n}", text) for n, text in enumerate(("one", "two", "bad"))]


def test_a_remembered_reply_keeps_the_cost_of_when_it_was_asked(tmp_path: Path) -> None:
    using, cache = Backends({}, {"gpt": Late()}), ReplyCache(tmp_path / "memo.sqlite")
    first = {e.qid: e for e in loop.run(ask, QUESTIONS[:2], using, reply_cache=cache, batch_size=5)}
    again = {e.qid: e for e in loop.run(ask, QUESTIONS[:2], using, reply_cache=cache, batch_size=5)}
    *_, alone = run_one(ask(QUESTIONS[0]), using, reply_cache=cache)
    cache.close()
    for then, now in [(first["q0"], again["q0"]), (first["q1"], again["q1"]), (first["q0"], alone)]:
        assert isinstance(now, Episode)
        (old,), (new,) = then.steps, now.steps
        assert new.cached and not old.cached and (old.batch, new.batch) == (2, 2)
        assert (new.seconds, new.reply) == (old.seconds, old.reply)
        assert new.reply.first_token_seconds == 0.25
    cost = run_cost(list(again.values()), [], PRICES)
    assert cost.total.prompt_tokens == 10 and cost.total.usd == pytest.approx(13e-6)
    nothing = {"questions": 0, "model_calls": 0, "seconds": 0.0, "usd": 0.0}
    assert {key: getattr(cost.uncached, key) for key in nothing} == nothing


def test_the_request_that_failed_is_counted_with_its_time() -> None:
    using = Backends({}, {"gpt": Slow()})
    (many,) = loop.run(ask, QUESTIONS[2:], using)
    *_, one = run_one(ask(QUESTIONS[2]), using)
    for episode in (many, one):
        assert isinstance(episode, Episode) and episode.error == "It broke."
        assert episode.failed_seconds >= 0.02 and not episode.steps
        assert metric("seconds").value(episode, Gold()) == episode.failed_seconds


class Slow(Late):
    def generate(self, batch: Sequence[Generate]) -> list[Reply | BackendError]:
        import time

        time.sleep(0.02)
        return super().generate(batch)


# ── a run's report ───────────────────────────────────────────────────────────

SPEC: dict[str, Any] = {
    "fingerprint": "0123456789ab",
    "spec": {"dataset": "tiny", "workflow": "chain", "settings": {}, "limit": None, "seed": 0},
    "metrics": ["seconds"],
    "batch_size": 2,
    "prices": PRICES,
}
GOOD = answered("q0", found(0.5), said(1000, 10, 2.0, 0.5))
CACHED = answered("q1", found(1.5, cached=True), said(3000, 30, 4.0, 1.5, cached=True))
BROKEN = Episode("q2", "chain", (found(0.25),), None, "It broke.", 8.0)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    """Three questions: one asked, one from the cache, one that failed twice."""
    records = [{"id": f"q{n}", "input": "Who?", "output": []} for n in range(3)]
    made = RunFolder.create(tmp_path, described("x", SPEC), records)
    with made.log() as log:
        for number, episode in enumerate((BROKEN, GOOD, CACHED, BROKEN), 1):
            made.append(log, episode, "s", number * 1.0)
    yield made


def test_a_run_tells_its_cost_then_what_it_asked_now_and_for_failures(folder: RunFolder) -> None:
    cost = as_json(score_run(folder, ["seconds"]).cost)
    whole, failed, asked = cost["total"], cost["failed"], cost["asked"]
    assert whole["seconds"] == 0.5 + 2 + 1.5 + 4 + 0.25 + 8
    assert (whole["retrieval_seconds"], whole["generation_seconds"]) == (2.25, 6.0)
    assert (whole["prompt_tokens"], whole["completion_tokens"]) == (4000, 40)
    assert whole["tokens_per_second"] == pytest.approx(40 / (1.5 + 2.5))
    assert whole["usd"] == pytest.approx(0.5 * 0.004 + 2 * 0.00004)
    assert (failed["questions"], failed["seconds"], failed["failed_seconds"]) == (1, 8.25, 8.0)
    assert asked["seconds"] == 0.5 + 2 + 2 * 8.25, (
        "the remembered question is left out, both failures count"
    )
    assert (asked["questions"], asked["prompt_tokens"]) == (2, 1000)
    assert cost["answered"]["questions"] == 2


def test_questions_and_actions_have_means_medians_and_95th_percentiles(folder: RunFolder) -> None:
    cost = as_json(score_run(folder, ["seconds"]).cost)
    each = cost["per_question"]
    assert each["seconds"] == {"mean": 4.0, "median": 4.0, "p95": pytest.approx(5.35), "n": 2}
    first = {"mean": 1.0, "median": 1.0, "p95": pytest.approx(1.45), "n": 2}
    assert each["first_token_seconds"] == first
    assert (each["model_calls"]["mean"], each["retrievals"]["mean"]) == (1, 1)
    assert each["usd"]["n"] == 2
    search, call = cost["per_action"]
    begin = {"action": 1, "kind": "retrieve", "target": "tiny", "cached": 1}
    assert search == {**begin, "seconds": search["seconds"]}
    assert search["seconds"]["mean"] == 1.0
    assert (call["target"], call["prompt_tokens"]["mean"]) == ("gpt", 2000)
    assert call["tokens_per_second"]["n"] == 2


def test_every_question_has_a_line_of_costs_with_its_steps(folder: RunFolder) -> None:
    score_run(folder, ["seconds"])
    lines = [json.loads(line) for line in (folder.path / "costs.jsonl").read_text().splitlines()]
    by_question = {line["qid"]: line for line in lines}
    assert list(by_question) == ["q2", "q0", "q1"] and by_question["q2"]["failed"]
    cached = by_question["q1"]
    assert (cached["total"]["seconds"], cached["asked"]["seconds"]) == (5.5, 0.0)
    assert by_question["q0"]["steps"][1] == {
        "kind": "generate",
        "target": "gpt",
        "seconds": 2.0,
        "cached": False,
        "prompt_tokens": 1000,
        "completion_tokens": 10,
        "first_token_seconds": 0.5,
        "tokens_per_second": pytest.approx(10 / 1.5),
        "usd": pytest.approx(0.00052),
    }
    assert "batch" not in step_cost(GOOD.steps[0], {}).to_json()
    assert step_cost(found(batch=3), {}).to_json()["batch"] == 3


def test_a_run_that_is_not_scored_yet_has_a_cost_too(folder: RunFolder) -> None:
    assert stored_cost(folder) == score_run(folder, ["seconds"]).cost
    path = folder.path / "run.json"
    path.write_text(json.dumps({**folder.description().to_json(), "prices": {"gpt": None}}))
    (folder.path / "report.json").unlink()
    cost = stored_cost(folder).total
    assert (cost.prompt_tokens, cost.usd) == (4000, None)
    assert cost.usd_unknown_for == {"gpt": "no prices"}


def test_a_retriever_that_asks_models_itself_is_named_as_not_included() -> None:
    cost = run_cost([GOOD], [], PRICES, ["rerank-llm"])
    assert "what rerank-llm asks of language models" in words.blocks(costs.blocks(cost))


def test_the_command_line_prints_totals_and_distributions(folder: RunFolder) -> None:
    score_run(folder, ["seconds"])
    text = words.blocks(costs.blocks(stored_cost(folder)))
    assert "of which failed" in text and "Asked by this run" in text and "n = 3" in text
    assert "4,000 + 40 tokens" in text and "$0.0021" in text
    beside = words.blocks([costs.beside(["a", "b"], [stored_cost(folder)] * 2)])
    assert "tokens/s, mean" in beside and "(n = 2)" in beside
