"""A real server, ``transformers serve``, answers this backend; ignored settings are noticed and reported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import ask, reply_of, streamed
from small_workspace import environment

from rallebench.core.types import Episode, Step, ToolSpec
from rallebench.engine.run_warnings import ReplyCounts
from rallebench.http.model_list import served_models
from rallebench.llms import LLMS
from rallebench.llms._openai.abilities import IGNORED
from rallebench.llms._openai.sampling import LONG, SAME
from rallebench.llms._transformers.templates import plain
from rallebench.llms.openai_compatible import NO_CALL

pytestmark = pytest.mark.slow

START = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
SECONDS = 300
CAPITAL, COUNT = (
    "Name the capital of France.",
    "Count from one to ten in words, with commas between.",
)

LENGTH = 12
"""Tokens of an answer: enough to stop in the middle of a list of numbers."""

Asked = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(smollm2_cache: Path) -> Path:
    """The model as a folder of transformers."""
    return next(path for path in (smollm2_cache / "gguf").iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def address(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server, which needs no network."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path_factory.mktemp("hub")
    (home / "hub").mkdir()
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(home), "PYTHONWARNINGS": "ignore"}
    where = ("--host", "127.0.0.1", "--port", str(port), "--device", "cpu")
    with open(home / "log", "wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-c", START, "serve", str(folder), *where],
            env={**environment(), **os.environ, **offline, "OMP_NUM_THREADS": "1"},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(server, f"http://127.0.0.1:{port}/health", home / "log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(30)


def wait_for(server: subprocess.Popen[bytes], health: str, log: Path) -> None:
    """Wait until the server answers; fail with its last output if it ends, or never answers."""
    until = time.monotonic() + SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"transformers serve did not start: {log.read_text()[-800:]}")


@pytest.fixture(scope="module")
def asked(address: str, folder: Path) -> Iterator[Asked]:
    """``asked(**settings)`` → the backend for the server."""
    models: list[Any] = []

    def backend(**settings: Any) -> Any:
        own = {"model": str(folder), "base_url": address, "max_tokens": LENGTH}
        models.append(LLMS["openai_compatible"]("gpt", **{**own, **settings}))
        return models[-1]

    yield backend
    for model in models:
        model.close()


@pytest.fixture(scope="module")
def counted(asked: Asked) -> Any:
    """The reply to the question used by several tests, written once."""
    return reply_of(asked(), ask(COUNT))


def test_it_answers_as_the_same_model_here_does(asked: Asked, folder: Path, counted: Any) -> None:
    own: Any = LLMS["transformers"]("tiny", model=str(folder), device_map="cpu", max_tokens=LENGTH)
    with closing(own) as here:
        for text, there in ((CAPITAL, reply_of(asked(), ask(CAPITAL))), (COUNT, counted)):
            whole = reply_of(here, ask(text))
            assert (there.text, there.prompt_tokens, there.finish_reason, there.note) == (
                whole.text, whole.prompt_tokens, whole.finish_reason, ""
            )  # fmt: skip


def test_a_stream_equals_the_whole_reply_and_counts_its_tokens(asked: Asked, counted: Any) -> None:
    parts, reply = streamed(asked(), ask(COUNT))
    assert len(parts) > 5 and "".join(parts) == reply.text == counted.text
    assert (reply.prompt_tokens, reply.completion_tokens) == (
        counted.prompt_tokens,
        counted.completion_tokens,
    )


def test_a_stop_string_that_it_leaves_in_the_text_is_cut(asked: Asked, counted: Any) -> None:
    free = counted.text
    stop = free[4:6]  # from its middle
    reply = reply_of(asked(), ask(COUNT, stop=(stop,)))
    assert (reply.text, reply.note) == (free.partition(stop)[0], "")


def test_an_ignored_temperature_is_noticed_by_a_second_seed(asked: Asked) -> None:
    """The server samples only if the model's own configuration does."""
    llm = asked(max_tokens=LONG)
    requests = [ask("Tell a story.", temperature=1.0, seed=seed) for seed in (3, 3, 4)]
    first, again, other = (reply_of(llm, request) for request in requests)
    assert first.text == again.text == other.text
    assert (first.note, again.note, other.note) == ("", "", SAME)
    assert "keeps to no seed" in llm.about


def test_an_ignored_response_format_goes_into_the_prompt_and_is_told(asked: Asked) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    llm = asked()
    reply = reply_of(llm, ask(CAPITAL, options={"response_format": form}))
    assert f"{IGNORED}; the schema was put into the prompt." in reply.note
    assert "ignores response_format" in llm.about


def test_ignored_log_probabilities_are_counted(asked: Asked) -> None:
    request = ask(CAPITAL, options={"logprobs": True})
    reply = reply_of(asked(), request)
    counts = ReplyCounts()
    counts.count(Episode("q1", "asks", (Step(request, reply),)))
    assert reply.text and not reply.logprobs
    assert counts.sentences()[0].startswith("1 of 1 replies of 'gpt' hold no log-probabilities")


def test_tools_that_its_template_drops_are_noticed(asked: Asked) -> None:
    llm = asked()
    assert llm.calls_tools is False and "drops tools" in llm.about


def test_an_ignored_tool_choice_is_told(asked: Asked) -> None:
    tool = ToolSpec("search", "search", {"type": "object", "properties": {}})
    request = ask(CAPITAL, tools=(tool,), options={"tool_choice": "required"}, max_tokens=8)
    reply = reply_of(asked(), request)
    assert not reply.tool_calls and NO_CALL in reply.note


def test_plain_completions_continue_a_text_whole_and_streamed(asked: Asked) -> None:
    llm = asked(api="completions", max_tokens=8)
    request = ask("The capital of France is")
    whole = reply_of(llm, request)
    parts, reply = streamed(llm, request)
    assert "Paris" in whole.text and "".join(parts) == reply.text == whole.text
    assert whole.prompt_tokens == reply.prompt_tokens == 5, "no chat template was added"
    assert whole.completion_tokens == reply.completion_tokens == 8


def test_plain_completions_get_what_a_plain_model_here_gets(asked: Asked, folder: Path) -> None:
    request = ask("The capital of France is", max_tokens=8)
    own: Any = LLMS["transformers"](
        "tiny", model=str(folder), device_map="cpu", chat_template="off"
    )
    with closing(own) as here:
        assert plain(request.messages) == "The capital of France is"
        assert reply_of(here, request).text == reply_of(asked(api="completions"), request).text


def test_its_list_of_models_is_read(address: str) -> None:
    assert served_models(address) == (), "it lists what the hub's cache holds"
