"""Typed decisions by a server's log-probabilities: tokens to options, the covered mass, refusals and texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from loopback import Behaviour, Handler, Loopback, answer, completion, fail, send_json

from rallebench.core.choices import SERVER, TEXT
from rallebench.core.choosing import choose
from rallebench.core.errors import BackendError
from rallebench.core.types import Message
from rallebench.llms._openai.choosing import TokenPlace, choice_from_places

Serve = Callable[..., tuple[Loopback, Any]]
YES_NO = ("yes", "no")
Shares = Mapping[str, float]


def ask(options: Sequence[str] = YES_NO) -> Any:
    return choose("gpt", (Message("user", "Is Rome a city?"),), options)


def entry(token: str, shares: Shares) -> dict[str, Any]:
    """A place of an answer as OpenAI's chat API reports it. ``shares``: token → probability."""
    top = [{"token": other, "logprob": math.log(share)} for other, share in shares.items()]
    return {"token": token, "logprob": math.log(shares[token]), "top_logprobs": top}


def with_places(text: str, *places: tuple[str, Shares], **message: Any) -> dict[str, Any]:
    document = completion(text, **message)
    document["choices"][0]["logprobs"] = {"content": [entry(*place) for place in places]}
    return document


def choose_by(*places: tuple[str, Shares], options: Sequence[str] = YES_NO, text: str = "") -> Any:
    read = [
        TokenPlace(t, math.log(shares[t]), {o: math.log(p) for o, p in shares.items()})
        for t, shares in places
    ]
    return choice_from_places(read, text, False, tuple(options))


def only_reply(llm: Any, request: Any) -> Any:
    (reply,) = llm.choose([request])
    return reply


# ── tokens to options ────────────────────────────────────────────────────────


def test_spellings_of_an_option_count_together_and_other_words_are_not_covered() -> None:
    choice = choose_by(("Yes", {"Yes": 0.4, " yes": 0.2, "YES": 0.1, "No": 0.1, "Maybe": 0.1}))
    assert choice.covered == pytest.approx(0.8)
    assert choice.probabilities == pytest.approx((0.7 / 0.8, 0.1 / 0.8))


def test_a_token_counts_only_for_an_option_it_can_begin() -> None:
    choice = choose_by(("No", {"No": 0.5, "Not": 0.2, "Yesterday": 0.1, "y": 0.05}))
    assert choice.probability("no") == pytest.approx(0.5 / 0.55)
    assert choice.covered == pytest.approx(0.55)


def test_white_space_and_quotes_before_the_answer_are_passed_over() -> None:
    choice = choose_by(
        ("\n", {"\n": 0.9, "no": 0.1}),
        (' "', {' "': 0.5, "yes": 0.5}),
        ("yes", {"yes": 0.8, "no": 0.2}),
    )
    yes, no = 0.9 * (0.5 + 0.5 * 0.8), 0.1 + 0.9 * 0.5 * 0.2
    assert choice.probabilities == pytest.approx((yes / (yes + no), no / (yes + no)))


def test_options_that_begin_alike_are_told_apart_by_a_later_token() -> None:
    options = ("not supported", "not mentioned", "supported")
    choice = choose_by(
        ("not", {"not": 0.7, "supported": 0.2}),
        (" mentioned", {" mentioned": 0.6, " supported": 0.3, " at": 0.1}),
        options=options,
    )
    assert choice.covered == pytest.approx(0.7 * 0.9 + 0.2)
    assert choice.chosen == "not mentioned"
    assert choice.probability("not supported") == pytest.approx(0.21 / 0.83)


def test_a_token_beside_the_answer_that_fits_several_options_counts_for_none() -> None:
    choice = choose_by(
        ("supported", {"supported": 0.6, "not": 0.4}),
        options=("supported", "not supported", "not mentioned"),
    )
    assert choice.covered == pytest.approx(0.6)
    assert choice.probabilities == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rest", "chosen"),
    [((), "no"), ((("<|im_end|>", 0.9),), "no"), (((" evidence", 0.9),), "no evidence")],
)
def test_an_option_that_begins_another_one_is_chosen_where_the_text_ends(
    rest: Sequence[tuple[str, float]], chosen: str
) -> None:
    places = [("no", {"no": 0.9}), *((token, {token: share}) for token, share in rest)]
    assert choose_by(*places, options=("no", "no evidence", "yes")).chosen == chosen


def test_more_options_than_reported_tokens_lower_the_covered_mass() -> None:
    letters = [chr(ord("A") + n) for n in range(26)]
    shares = dict.fromkeys(letters[:20], 0.04)
    choice = choose_by(("A", shares), options=letters)
    assert choice.covered == pytest.approx(0.8)
    assert choice.probability("Z") == 0.0 and choice.probability("T") == pytest.approx(0.05)


def test_an_answer_in_other_words_has_no_probabilities() -> None:
    assert choose_by(("I", {"I": 0.95, "yes": 0.05})) is None
    assert choose_by() is None


def test_thoughts_before_the_answer_are_passed_over() -> None:
    places = [
        ("<think>", {"<think>": 1.0}),
        ("no", {"no": 1.0}),
        ("</think>", {"</think>": 1.0}),
        ("Yes", {"Yes": 0.75, "No": 0.25}),
    ]
    choice = choose_by(*places, text="<think>no</think>Yes")
    assert choice.probabilities == pytest.approx((0.75, 0.25))


# ── the server ───────────────────────────────────────────────────────────────


def test_the_server_is_asked_for_the_most_probable_tokens(serve: Serve) -> None:
    server, llm = serve(
        send_json(with_places("No.", ("No", {"No": 0.6, "Yes": 0.2}), (".", {".": 1.0})))
    )
    reply = only_reply(llm, ask())
    assert (server.bodies[0]["logprobs"], server.bodies[0]["top_logprobs"]) == (True, 20)
    assert server.bodies[0]["temperature"] == 0.0
    assert (reply.text, reply.choice.source) == ("no", SERVER)
    assert reply.choice.probabilities == pytest.approx((0.25, 0.75))
    assert reply.choice.covered == pytest.approx(0.8)
    assert reply.confidence == pytest.approx(0.75)
    assert (reply.prompt_tokens, reply.completion_tokens, reply.note) == (7, 3, "")


def test_thoughts_that_a_server_sends_apart_are_passed_over(serve: Serve) -> None:
    places = [("Hm", {"Hm": 1.0}), ("no", {"no": 1.0}), ("yes", {"yes": 0.9, "no": 0.1})]
    _, llm = serve(send_json(with_places("yes", *places, reasoning_content="Hmno")))
    reply = only_reply(llm, ask())
    assert reply.choice.probabilities == pytest.approx((0.9, 0.1))
    assert reply.thinking == "Hmno"


def test_plain_completions_report_their_tokens_in_lists(serve: Serve) -> None:
    document = {
        "choices": [
            {
                "text": " yes",
                "finish_reason": "stop",
                "logprobs": {
                    "tokens": [" yes"],
                    "token_logprobs": [math.log(0.8)],
                    "top_logprobs": [{" yes": math.log(0.8), " no": math.log(0.2)}],
                },
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1},
    }
    server, llm = serve(send_json(document), api="completions")
    assert only_reply(llm, ask()).choice.probabilities == pytest.approx((0.8, 0.2))
    assert server.bodies[0]["logprobs"] == 5 and "top_logprobs" not in server.bodies[0]


def refuse(field: str, message: str, bound: int = 0) -> Behaviour:
    """Refuse a request whose ``field`` is more than ``bound``; answer any other in text."""

    def behave(handler: Handler) -> None:
        refused = handler.body.get(field, 0) > bound
        (fail(400, message, param=field) if refused else answer("Yes."))(handler)

    return behave


def test_a_server_that_refuses_logprobs_is_asked_once_without_them_and_it_is_remembered(
    serve: Serve,
) -> None:
    server, llm = serve(refuse("logprobs", "logprobs is not supported with this model."))
    replies = [only_reply(llm, ask()) for _ in range(2)]
    assert ["logprobs" in body for body in server.bodies] == [True, False, False]
    assert all("top_logprobs" not in body for body in server.bodies[1:])
    for reply in replies:
        assert (reply.choice.chosen, reply.choice.source) == ("yes", TEXT)
        assert reply.choice.why == "'gpt' gave no log-probabilities, so its text was read."
        assert "The server refuses logprobs" in reply.note
    assert llm.refuses == ("logprobs",)


def test_a_server_with_a_lower_limit_is_asked_for_fewer_tokens_from_then_on(serve: Serve) -> None:
    def behave(handler: Handler) -> None:
        if handler.body.get("top_logprobs", 0) > 5:
            fail(400, "top_logprobs must be less than or equal to 5", param="top_logprobs")(handler)
        else:
            send_json(with_places("yes", ("yes", {"yes": 0.6, "no": 0.4})))(handler)

    server, llm = serve(behave)
    for _ in range(2):
        assert only_reply(llm, ask()).choice.probabilities == pytest.approx((0.6, 0.4))
    assert [body["top_logprobs"] for body in server.bodies] == [20, 5, 5]


def test_a_server_that_ignores_logprobs_has_its_text_read(serve: Serve) -> None:
    _, llm = serve(answer("It is: no"))
    choice = only_reply(llm, ask()).choice
    assert (choice.chosen, choice.source, choice.probabilities) == ("no", TEXT, ())


def test_an_answer_in_other_words_has_its_text_read_and_says_so(serve: Serve) -> None:
    _, llm = serve(send_json(with_places("I say yes", ("I", {"I": 1.0}), (" say", {" say": 1.0}))))
    choice = only_reply(llm, ask()).choice
    assert (choice.chosen, choice.source) == ("yes", TEXT)
    assert choice.why == "'gpt' gave too little probability for the options, so its text was read."


@pytest.mark.parametrize("value", ["NaN", "Infinity"])
def test_log_probabilities_that_are_not_numbers_are_an_error(serve: Serve, value: str) -> None:
    text = json.dumps(with_places("yes", ("yes", {"yes": 0.5}))).replace(str(math.log(0.5)), value)
    _, llm = serve(lambda handler: handler.send(200, text.encode()), max_retries=0)
    error = only_reply(llm, ask())
    assert isinstance(error, BackendError) and "not numbers" in str(error)


def test_alternatives_that_are_not_numbers_are_left_out(serve: Serve) -> None:
    document = with_places("yes", ("yes", {"yes": 0.5, "no": 0.25}))
    top = document["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    top += [
        {"token": "No", "logprob": None},
        {"token": "NO"},
        "?",
        {"token": " no", "logprob": -9999.0},
    ]
    _, llm = serve(send_json(document))
    assert only_reply(llm, ask()).choice.covered == pytest.approx(0.75)


def test_the_failure_of_one_request_costs_only_that_one(serve: Serve) -> None:
    good = send_json(with_places("yes", ("yes", {"yes": 0.9, "no": 0.1})))
    _, llm = serve(fail(404, "no such model"), good, concurrency=1)
    failed, chosen = llm.choose([ask(), ask()])
    assert isinstance(failed, BackendError) and chosen.choice.chosen == "yes"
