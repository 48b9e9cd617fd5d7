"""Re-ranking by a language model, for any reply."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from listed import Listed, ids, passage, scores
from loopback import Handler, Loopback, answer, fail

from rallebench.core.backends import Backends
from rallebench.core.entries import Combination
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.formats import read_format
from rallebench.core.types import Generate
from rallebench.engine.run_warnings import refused_to, text_choices
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted, request_text
from rallebench.retrievers.composites import check_settings
from rallebench.retrievers.rerank_llm import VERDICTS, parse_order, parse_verdict
from rallebench.workspace.opening import open_combination

LETTERS = Listed(
    *((passage(letter, f"about {letter}"), 9.0 - n) for n, letter in enumerate("abcde")),
    name="letters",
)


def reranked(model: Any, over: Any = LETTERS, /, **settings: Any) -> Any:
    entry = Combination(kind="llm-rerank", of=["letters"], settings={"llm": "judge", **settings})
    entry = entry.model_copy(update={"settings": check_settings("ranked", entry)})
    return open_combination("ranked", entry, [over], model)


def by_letter(request: Generate) -> str:
    """Ranks the passages of its prompt in reverse alphabetical order."""
    numbered = re.findall(r"\[(\d+)\] title (\w+)", request_text(request))
    return " > ".join(f"[{n}]" for n, _ in sorted(numbered, key=lambda pair: pair[1], reverse=True))


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ("[3] > [1] > [2] > [4] > [5]", "cabde"),
        ("[5]", "eabcd"),
        ("5 > 4", "edabc"),
        ("The best is [2], then [2] again, then [9] and [0].", "bacde"),
        ("3, 2, 1", "cbade"),
        ("In 1999 passage [4] was best", "dabce"),
    ],
)
def test_a_list_is_put_in_the_order_that_the_answer_names(answer: str, order: str) -> None:
    ranked = reranked(Scripted(default=answer))
    assert ids(ranked.search(["q"], 5)[0]) == [*order]
    assert (ranked.requests, ranked.unread) == (1, 0)


@pytest.mark.parametrize("answer", ["", "I cannot rank these.", "[17]", "[999999999999999]"])
def test_an_answer_that_names_no_passage_keeps_the_order_and_is_counted(answer: str) -> None:
    ranked = reranked(Scripted(default=answer))
    assert ids(ranked.search(["q"], 5)[0]) == [*"abcde"]
    assert (ranked.requests, ranked.unread) == (1, 1)


def test_windows_move_from_the_end_so_that_the_last_can_become_the_first() -> None:
    llm = Scripted(by_letter)
    assert ids(reranked(llm, window=2, step=1).search(["q"], 5)[0])[0] == "e"
    shown = ["".join(re.findall(r"title (\w)", request_text(r))) for r in llm.requests]
    assert shown == ["de", "ce", "be", "ae"]


def test_all_queries_of_a_batch_move_their_windows_together_over_the_depth_alone() -> None:
    llm = Scripted(by_letter)
    ranked = reranked(llm, window=3, step=2, depth=5)
    assert ranked.search(["q", "", "r"], 2)[1] == ()
    assert llm.batches == [2, 2]
    assert ids(reranked(Scripted(by_letter), depth=4).search(["q"], 9)[0]) == [*"dcba"]


def test_pointwise_puts_yes_before_what_cannot_be_read_before_no() -> None:
    answers = {"about a": "No.", "about b": "Yes", "about c": "Hmm"}
    answers |= {"about d": "yes, it does", "about e": "Not at all"}
    ranked = reranked(Scripted(answers), way="pointwise")
    hits = ranked.search(["q"], 5)[0]
    assert ids(hits) == [*"bdcae"]
    assert scores(hits) == {"a": 0.0, "b": 1.0, "c": 0.5, "d": 1.0, "e": 0.0}
    assert (ranked.requests, ranked.unread) == (5, 1)


def test_choice_orders_by_the_probability_of_yes() -> None:
    shares = {"a": 0.1, "b": 0.4, "c": 0.0, "d": 0.3, "e": 0.2}
    replies = {f"title {letter}": {"Yes": p, "No": 0.5 - p} for letter, p in shares.items()}
    ranked = reranked(Scripted(replies), way="choice")
    (hits,) = ranked.search(["q"], 5)
    assert ids([*hits]) == [*"bdeac"]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0])
    assert (ranked.requests, ranked.unread, ranked.reads_texts) == (5, 0, False)


def test_choice_of_a_model_without_log_probabilities_ranks_by_its_words_and_says_so() -> None:
    answers = {"title a": "No", "title c": "Hm", "": "Yes"}
    ranked = reranked(Scripted(answers), way="choice")
    assert ids(ranked.search(["q"], 5)[0]) == [*"bdeca"]
    assert (ranked.requests, ranked.unread) == (5, 1)
    backends = Backends({"ranked": ranked, "over": reranked(Scripted(), ranked)}, {})
    for name in backends.retrievers:
        (sentence,) = text_choices([name], backends)
        assert sentence.startswith(f"Judgements of '{name}' give no probabilities of the options")


def test_choice_offers_the_chinese_words_to_a_prompt_that_names_them(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{question} {passage} 回答是或否。", encoding="utf-8")
    llm = Scripted({"": {"是": 0.9, "否": 0.1}})
    hits = reranked(llm, way="choice", prompt=str(prompt)).search(["q"], 5)[0]
    assert [hit.score for hit in hits] == pytest.approx([0.9] * 5)
    assert {request.choices for request in llm.requests} == {("是", "否")}


def test_pointwise_asks_all_passages_of_all_queries_in_one_batch() -> None:
    llm = Scripted(default="yes")
    reranked(llm, way="pointwise", depth=3).search(["q", "r", ""], 5)
    assert llm.batches == [6]


@pytest.mark.parametrize("way", ["listwise", "pointwise"])
def test_the_prompt_holds_question_and_passages_and_asks_greedily(way: str) -> None:
    llm = Scripted(default="yes")
    reranked(llm, way=way, passage_words=3).search(["which {passages} river?"], 1)
    prompt = request_text(llm.requests[0])
    assert (
        "which {passages} river?" in prompt
        and "title a, about" in prompt
        and "about a" not in prompt
    )
    assert all(request.temperature == 0.0 for request in llm.requests)


def test_a_text_without_spaces_is_cut_as_well() -> None:
    llm = Scripted(default="yes")
    over = Listed((passage("a", "多瑙河" * 5000), 1.0), (passage("b"), 0.5), name="letters")
    reranked(llm, over, passage_words=10, titles=False).search(["q"], 1)
    assert len(request_text(llm.requests[0])) < 600


class Held(Scripted):
    """A scripted model that enforces formats."""

    forces_formats = True


def forms_of(model: Scripted, way: str) -> list[Any]:
    reranked(model, way=way, window=3, step=2).search(["q"], 5)
    assert not any(request.forced for request in model.requests)
    return [request.options.get("response_format") for request in model.requests]


@pytest.mark.parametrize("way", ["listwise", "pointwise"])
def test_a_model_that_enforces_forms_is_held_to_them_and_any_other_is_not(way: str) -> None:
    held, free = Held(default="[1] yes"), Scripted(default="[1] yes")
    assert set(forms_of(free, way)) == {None}
    forms = [read_format("'m'", form) for form in forms_of(held, way)]
    assert [replace(request, options={}) for request in held.requests] == free.requests
    good = ("[3] > [1]", "[2]") if way == "listwise" else VERDICTS
    for form in forms:
        assert form is not None
        assert [form.fault(answer) for answer in good] == [""] * len(good)
        assert all(form.fault(answer) for answer in ("", "I cannot.", "[4]", "[0]", "[1] >", "17"))


def test_what_a_model_may_be_held_to_is_always_read() -> None:
    assert all(parse_verdict(verdict) is not None for verdict in VERDICTS)
    assert parse_order("[2] > [2] > [1]", 3) == [1, 0, 2]


def test_one_hit_or_none_needs_no_judgement_of_order() -> None:
    llm = Scripted(default="[1]")
    assert len(reranked(llm, Listed((passage("a"), 1.0))).search(["q"], 5)[0]) == 1
    assert reranked(llm, Listed()).search(["q"], 5) == [()]
    assert llm.batches == []


def test_what_the_model_fails_with_is_not_swallowed() -> None:
    with pytest.raises(BackendError, match="gone"):
        reranked(Scripted([BackendError("The endpoint is gone.")])).search(["q"], 5)


def test_the_fingerprint_changes_with_model_way_and_prompt(tmp_path: Any) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{question} {passages}")
    prints = {
        reranked(Scripted(default="x")).fingerprint,
        reranked(Scripted(default="y")).fingerprint,
        reranked(Scripted(default="x"), way="pointwise").fingerprint,
        reranked(Scripted(default="x"), prompt=str(own)).fingerprint,
        reranked(Scripted(default="x"), depth=3).fingerprint,
    }
    assert len(prints) == 5


def test_a_prompt_that_shows_no_passages_and_an_absent_one_are_sentences(tmp_path: Any) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{question}")
    with pytest.raises(
        UsageError, match=r"lacks \{passages\}, which a listwise prompt must contain"
    ):
        reranked(Scripted(), prompt=str(own))
    with pytest.raises(UsageError, match=r"The prompt /no/such\.txt cannot be read"):
        reranked(Scripted(), prompt="/no/such.txt")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"window": 10, "step": 10}, "step is 10; it must be less than window, 10"),
        ({"way": "setwise"}, "way must be one of listwise, pointwise, choice"),
        ({"llm": ""}, "needs the setting 'llm'"),
    ],
)
def test_a_wrong_setting_is_a_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        reranked(Scripted(), **settings)


def test_what_the_server_of_its_model_refuses_is_a_warning_of_the_run() -> None:
    def picky(handler: Handler) -> None:
        refused = "temperature" in handler.body
        (fail(400, "temperature: unknown field") if refused else answer("[2] > [1]"))(handler)

    with Loopback(picky) as server:
        llm = LLMS["openai_compatible"]("judge", model="m", base_url=server.url, max_retries=0)
        ranked = reranked(llm)
        backends = Backends({"ranked": reranked(Scripted(), ranked)}, {})
        assert refused_to(["ranked"], backends) == ()
        assert ids(ranked.search(["which?"], 3)[0])[0] == "b"
        (sentence,) = refused_to(["ranked"], backends)
        llm.close()
    assert sentence.startswith("The judgements of 'ranked' came without temperature")
