"""A real language model in this process, from GGUF, in three forms. Tests the machinery, not the answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asking import ask, reply_of, streamed
from project import PROJECT
from small_workspace import PASSAGES, environment

from rallebench.core.errors import BackendError
from rallebench.core.structured import check_schema
from rallebench.core.types import Evidence, Generate, Message, Passage
from rallebench.llms import LLMS

pytestmark = pytest.mark.slow

CAPITAL = "Name the capital of France."
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}, "large": {"type": "boolean"}},
    "required": ["city", "large"],
    "additionalProperties": False,
}
COUNT = "Count from one to ten in words, with commas between."


def opened(path: Path, cache: Path, **settings: Any) -> Any:
    own = {"model": str(path), "device_map": "cpu", "max_tokens": 10, **settings}
    *_, llm = LLMS.entry("transformers").traits["loading"]("smollm2", cache, **own)
    return llm


@pytest.fixture(scope="module", params=["none", "8bit", "4bit"])
def llm(request: pytest.FixtureRequest, smollm2_file: Path, smollm2_cache: Path) -> Iterator[Any]:
    """The model in bfloat16, and quantised to 8 and to 4 bits."""
    with closing(opened(smollm2_file, smollm2_cache, quantization=request.param)) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def answers(llm: Any) -> dict[str, Any]:
    """The replies to the two questions used by several tests, each written once."""
    return {text: reply_of(llm, ask(text)) for text in (CAPITAL, COUNT)}


def test_it_answers_and_counts_as_llama_cpp_does(answers: dict[str, Any]) -> None:
    reply = answers[CAPITAL]
    assert reply.text == "The capital of France is Paris."
    assert (reply.prompt_tokens, reply.completion_tokens, reply.finish_reason) == (36, 8, "stop")


def test_a_stream_equals_the_whole_reply(llm: Any, answers: dict[str, Any]) -> None:
    parts, reply = streamed(llm, ask(COUNT))
    whole = answers[COUNT]
    assert len(parts) > 5 and "".join(parts) == reply.text == whole.text
    assert reply.completion_tokens == whole.completion_tokens


def test_a_batch_gives_what_each_request_gives_alone(llm: Any, answers: dict[str, Any]) -> None:
    together = llm.generate([ask(text) for text in answers])
    assert [reply.completion_tokens for reply in together] == [
        alone.completion_tokens for alone in answers.values()
    ]


def test_stop_strings_end_the_text_and_the_work(llm: Any, answers: dict[str, Any]) -> None:
    free = answers[COUNT]
    stop = free.text[4:6]  # from its middle
    held = reply_of(llm, ask(COUNT, stop=(stop,)))
    assert held.text == free.text.partition(stop)[0] and held.finish_reason == "stop"
    assert held.completion_tokens < free.completion_tokens
    assert streamed(llm, ask(COUNT, stop=(stop,)))[1].text == held.text


def test_a_seed_repeats_a_sampled_text_and_another_gives_another(llm: Any) -> None:
    first, again, other = (
        reply_of(llm, ask("Tell a story.", temperature=1.0, seed=seed, max_tokens=8)).text
        for seed in (3, 3, 4)
    )
    assert first == again != other


def test_a_schema_is_enforced_while_it_writes(llm: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": PLACE}}
    request = ask(CAPITAL, max_tokens=40, options={"response_format": form})
    parts, reply = streamed(llm, request)
    assert check_schema(json.loads(reply.text), PLACE) == "" and reply.note == ""
    assert "".join(parts) == reply.text and llm.forces_formats


def test_a_prompt_longer_than_the_window_is_refused(llm: Any) -> None:
    reply = reply_of(llm, ask("moon " * 9000))
    assert isinstance(reply, BackendError)
    assert "its context window holds 8192 (nothing was cut)" in str(reply)


def test_a_prompt_too_long_loses_its_last_passages(smollm2_file: Path, smollm2_cache: Path) -> None:
    settings = {"context_rule": "cut", "context_window": 128, "max_tokens": 24}
    passages = tuple(Passage(doc, text * 2, title) for doc, text, title, _ in PASSAGES)
    text = "\n".join(passage.text for passage in passages) + "\nWhich moon has an atmosphere?"
    evidence = Evidence("Which moon has an atmosphere?", passages)
    with closing(opened(smollm2_file, smollm2_cache, **settings)) as llm:
        reply = reply_of(llm, Generate("gpt", (Message("user", text),), evidence=evidence))
    assert "passages were left out of the prompt" in reply.note and reply.prompt_tokens <= 104


FORM = """
import json, sys
from pathlib import Path
from rallebench.core.entries import LLMEntry
from rallebench.services.jobs import JobManager
from rallebench.services.models import ModelManager
from rallebench.workspace.paths import WorkspaceFolder

workspace = WorkspaceFolder(Path(sys.argv[1]))
forms = sys.argv[3:]
for form in forms:
    settings = {"model": sys.argv[2], "quantization": form, "device_map": "cpu"}
    workspace.save_llm(form, LLMEntry(backend="transformers", settings=settings))
loads, rows = ModelManager(workspace, JobManager()), []
for form in (*forms, forms[0]):
    estimate = loads.room(form).need.resident
    list(loads.load(form, "language model"))
    (row,) = loads.status()
    llm = loads.backends.llms[form]
    loads.unload(form)
    rows.append([form, estimate, row.expected, row.ram, llm.freed.ram])
print(json.dumps(rows))
"""


def test_each_form_takes_what_was_estimated_within_15_percent_and_gives_it_back(
    smollm2_file: Path, smollm2_cache: Path, tmp_path: Path
) -> None:
    """In one process, one after the other, and the first form once more."""
    forms, workspace = ("none", "8bit", "4bit"), tmp_path / "workspace"
    shutil.copytree(smollm2_cache, workspace / "cache", copy_function=hard_link)
    child = subprocess.run(
        [sys.executable, "-c", FORM, str(workspace), str(smollm2_file), *forms],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        cwd=PROJECT,
        env=environment(),
    )
    rows = json.loads(child.stdout.splitlines()[-1])
    assert [form for form, *_ in rows] == ["none", "8bit", "4bit", "none"]
    for form, estimate, expected, taken, freed in rows:
        assert estimate == expected == pytest.approx(taken, rel=0.15), form
        assert freed >= 0.85 * taken, form


def hard_link(source: str, target: str) -> None:
    """A link, because a copy would take 270 MB."""
    Path(target).hardlink_to(source)
