"""The scripted model: the behaviour that tests and dry runs rely on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from rallebench.core.backends import StreamingLLM
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.types import Generate, Message, Reply, ToolCall
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted


def ask(text: str = "Who wrote it?", **fields: Any) -> Generate:
    return Generate("fake", (Message("user", text),), **fields)


def text(llm: Scripted, *requests: Generate) -> str:
    (reply,) = llm.generate(list(requests) or [ask()])
    assert isinstance(reply, Reply), reply
    return reply.text


def load(**settings: Any) -> Any:
    return LLMS["scripted"]("fake", **settings)


def test_a_list_is_said_in_order_across_batches() -> None:
    llm = Scripted(["a", "b", "c"])
    assert [reply.text for reply in llm.generate([ask(), ask()])] == ["a", "b"]  # type: ignore[union-attr]
    assert text(llm) == "c"


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ([], "has used all its 0 replies; add more, or a default."),
        ({"x": "y"}, "has no pattern that matches the prompt; add one, or a default."),
    ],
)
def test_a_script_without_an_answer_or_default_is_an_error(replies: Any, words: str) -> None:
    (result,) = Scripted(replies, "fake").generate([ask()])
    assert isinstance(result, BackendError) and str(result) == f"The script of 'fake' {words}"
    assert text(Scripted(replies, default="again")) == "again"


def test_the_first_pattern_that_matches_any_message_answers() -> None:
    llm = Scripted({"wr[io]te": "Ada", "Who": "nobody", "Sing": "la"}, default="?")
    prompts = ("Who wrote it?", "Who?", "When?")
    assert [text(llm, ask(prompt)) for prompt in prompts] == ["Ada", "nobody", "?"]
    request = Generate("fake", (Message("system", "Sing."), Message("user", "When?")))
    assert text(llm, request) == "la"


def test_a_function_answers_each_request_and_may_fail_one() -> None:
    def answer(request: Generate) -> str:
        if "bad" in request.messages[-1].content:
            raise BackendError("It broke.")
        return request.messages[-1].content.upper()

    good, bad = Scripted(answer).generate([ask("a"), ask("bad")])
    assert isinstance(good, Reply)
    assert (good.text, str(bad)) == ("A", "It broke.")


def test_a_script_may_hold_whole_replies_and_errors() -> None:
    calls = (ToolCall("1", "search", "{}"),)
    error = BackendError("It broke.")
    llm = Scripted([Reply("", tool_calls=calls, prompt_tokens=99), error])
    reply, failed = llm.generate([ask(), ask()])
    assert isinstance(reply, Reply)
    assert (reply.tool_calls, reply.prompt_tokens, failed) == (calls, 99, error)


def test_an_answer_ends_before_the_first_stop_sequence() -> None:
    llm = Scripted([Reply("a b\nObservation: c\nThought: d", finish_reason="length")])
    (reply,) = llm.generate([ask(stop=("\nZ", "\nThought", "\nObs"))])
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason, reply.completion_tokens) == ("a b", "stop", 2)


def test_tokens_are_words_and_an_answer_is_cut_at_max_tokens_of_them_and_says_so() -> None:
    llm = Scripted(["one two  three four\n", "one two  three four"])
    whole, cut = llm.generate([ask("Who wrote the notes?"), ask(max_tokens=3)])
    assert isinstance(whole, Reply) and isinstance(cut, Reply)
    assert (whole.prompt_tokens, whole.completion_tokens, whole.finish_reason) == (4, 4, "stop")
    assert (cut.text, cut.completion_tokens, cut.finish_reason) == ("one two  three", 3, "length")
    assert text(Scripted(["one two"]), ask(max_tokens=2)) == "one two"


def test_calls_batches_and_requests_are_remembered() -> None:
    llm = Scripted(lambda request: "a")
    llm.generate([ask("1"), ask("2")])
    llm.generate([])
    list(llm.stream(ask("3")))
    assert (llm.calls, llm.batches) == (3, [2, 0])
    assert [request.messages[0].content for request in llm.requests] == ["1", "2", "3"]


@pytest.mark.parametrize("said", ["Ada wrote it", "  two  spaces \n", "one", " ", ""])
def test_a_stream_gives_words_that_add_up_to_the_reply(said: str) -> None:
    llm = Scripted([said])
    assert isinstance(llm, StreamingLLM)
    *pieces, reply = llm.stream(ask())
    assert isinstance(reply, Reply)
    assert "".join(map(str, pieces)) == reply.text == said
    assert len(pieces) == max(len(said.split()), 1 if said else 0)


def test_a_stream_raises_the_error_of_its_script() -> None:
    with pytest.raises(BackendError, match="It broke"):
        list(Scripted([BackendError("It broke.")]).stream(ask()))


def test_the_delay_is_per_batch_and_spread_over_a_stream() -> None:
    llm = Scripted(lambda request: "a b c d", delay=0.2)
    start = time.monotonic()
    llm.generate([ask()] * 10)
    assert 0.2 <= time.monotonic() - start < 1
    start = time.monotonic()
    *_, reply = llm.stream(ask())
    assert isinstance(reply, Reply)
    assert reply.first_token_seconds is not None
    assert 0.04 <= reply.first_token_seconds < time.monotonic() - start - 0.1


def test_threads_share_a_list_without_saying_a_line_twice() -> None:
    llm = Scripted([str(n) for n in range(200)], concurrency=8)
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda: said.extend(text(llm) for _ in range(25))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(map(int, said)) == list(range(200))


def test_the_fingerprint_follows_the_script() -> None:
    def once(request: Generate) -> str:
        return "a"

    def twice(request: Generate) -> str:
        return "b"

    scripts: list[Any] = [["a"], ["b"], ["a", "b"], {"a": "b"}, {"b": "a"}, once, twice]
    scripts.append([Reply("a", note="n")])
    prints = [Scripted(script).fingerprint for script in scripts]
    assert len(set(prints)) == len(scripts)
    assert prints == [Scripted(script).fingerprint for script in scripts]
    assert Scripted(["a"], default="x").fingerprint != prints[0]
    assert Scripted(["a"], delay=1).fingerprint == prints[0]


INNER = """
from rallebench.llms.scripted import Scripted
def f(request):
    return ''.join(x for x in 'abc')
print(Scripted(f).fingerprint)
"""


def test_a_function_with_an_inner_function_has_the_same_fingerprint_in_another_process() -> None:
    first, second = (
        subprocess.run([sys.executable, "-c", INNER], capture_output=True, timeout=30, check=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout != b""


def test_a_catalogue_entry_answers_from_a_list_or_by_pattern_or_echoes() -> None:
    assert text(load(replies=["a"])) == "a"
    assert text(load(replies={"wrote": "Ada"}, default="?")) == "Ada"
    assert text(load(default="?")) == "?"
    request = Generate("fake", (Message("system", "s"), Message("user", "Say\nthis")))
    assert text(load(echo=True), request) == "Say\nthis"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reply": []}, "no setting 'reply'. Did you mean 'replies'"),
        ({"replies": "a"}, "replies must be a list of texts"),
        ({"replies": [1]}, "replies must be a list of texts"),
        ({"replies": {"a": 1}}, "replies must be a list of texts"),
        ({"replies": {"(": "a"}}, "'(' is not a regular expression"),
        ({"replies": ["a"], "echo": True}, "either replies or echo"),
        ({"echo": "yes"}, "it must be true or false"),
        ({"default": 3}, "default is 3; it must be text or null"),
        ({"delay": -1}, "delay is -1; it must be a number from 0 to 3600"),
        ({"concurrency": 0}, "concurrency is 0; it must be a whole number from 1 to 256"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_with_its_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(**settings)
    assert message in str(caught.value)
