"""Models in the lines of a page, their tests, prices, and typed keys."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from loopback import Loopback, answer, fail
from small_workspace import make_workspace

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import BackendError, UsageError
from rallebench.core.stopping import Stop, obey
from rallebench.http import endpoint
from rallebench.http.endpoint import Endpoint, key_from_environment
from rallebench.services import model_entries, model_lines
from rallebench.services.workbench import Workbench

KEY = "sk-typed-0123456789abcdef"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    workbench = Workbench(make_workspace(tmp_path / "workspace"))
    yield workbench
    workbench.close()
    endpoint._TYPED.clear()


def parts(bench: Workbench) -> dict[str, model_lines.PartLine]:
    """Name → line of every encoder and retriever."""
    retrievers = bench.model_lines.retrievers(bench.data.states())
    return {line.name: line for line in (*bench.model_lines.encoders(), *retrievers)}


def line(bench: Workbench, name: str) -> model_lines.ModelLine:
    return next(line for line in bench.model_lines.models() if line.name == name)


def server(model: str = "m", **settings: object) -> LLMEntry:
    base = {"model": model, "base_url": "http://10.0.0.7:8000/v1"}
    return LLMEntry(backend="openai_compatible", settings={**base, **settings})


def test_a_test_loads_the_model_and_keeps_what_it_answered(bench: Workbench) -> None:
    job = bench.model_lines.start_test("titan")
    assert job.wait(20) and job.result.answer == "Titan" and job.result.seconds >= 0
    assert bench.models.is_loaded("titan") and line(bench, "titan").state == "loaded"
    assert line(bench, "titan").test is job


def test_a_test_that_fails_says_why_on_its_line(bench: Workbench) -> None:
    job = bench.model_lines.start_test("mute")
    assert job.wait(20) and isinstance(job.error, BackendError)
    assert line(bench, "mute").state == "failed" and line(bench, "mute").news is job.error


def test_a_test_needs_a_prompt(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="prompt is empty"):
        bench.model_lines.start_test("titan", " ")


def test_a_load_that_waits_or_is_cancelled_says_so(bench: Workbench) -> None:
    bench.models.add("slowly", LLMEntry(backend="scripted", settings={"default": "x"}))
    assert line(bench, "slowly").state == "ready"
    bench.models.begin("slowly", "language model")
    deadline = time.monotonic() + 10
    while line(bench, "slowly").state != "loaded":
        assert line(bench, "slowly").state in ("waiting", "loading", "ready", "loaded")
        assert time.monotonic() < deadline
    bench.models.unload("slowly")
    assert line(bench, "slowly").state == "ready"


def test_only_models_of_a_server_have_prices(bench: Workbench) -> None:
    priced = model_entries.with_prices(server(), 0.15, 0.6)
    bench.models.add("paid", priced)
    assert line(bench, "paid").prices == {"prompt": 0.15, "completion": 0.6}
    assert not line(bench, "paid").local and line(bench, "titan").local
    assert "prices" not in model_entries.with_prices(priced, None, None).settings
    with pytest.raises(UsageError, match="two parts"):
        model_entries.with_prices(server(), 1.0, None)


def test_a_typed_key_is_sent_and_stands_in_no_file_and_no_environment(bench: Workbench) -> None:
    bench.models.add("far", server())
    assert "no key" in line(bench, "far").about
    sentence = bench.models.set_key("far", f" {KEY} ")
    entry = bench.models.entry("far")
    assert entry.settings["api_key_env"] == "SERVER_10_0_0_7_KEY" and KEY not in sentence
    own: Endpoint = model_endpoint(entry)
    assert key_from_environment("far", own) == KEY and "key typed" in line(bench, "far").about
    assert KEY not in os.environ.values()
    written = [
        p for p in bench.workspace.path.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()
    ]
    assert not written
    assert "forgotten" in bench.models.set_key("far", "")
    assert key_from_environment("far", own) == ""


def model_endpoint(entry: LLMEntry) -> Endpoint:
    return Endpoint(
        base_url=str(entry.settings["base_url"]), api_key_env=str(entry.settings["api_key_env"])
    )


def test_a_typed_key_comes_before_the_environments_and_has_no_odd_characters(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    settings = model_entries.with_key({"base_url": "https://api.openai.com/v1"}, KEY)
    assert settings == {"base_url": "https://api.openai.com/v1"}, "OpenAI has OPENAI_API_KEY"
    assert endpoint.key_in("OPENAI_API_KEY") == KEY
    here = model_entries.with_key({"base_url": "http://127.0.0.1:1/v1"}, "sk-of-a-server-here")
    assert here["api_key_env"] == "SERVER_127_0_0_1_1_KEY", "and no other server sees this one"
    assert endpoint.key_in("OPENAI_API_KEY") == KEY
    with pytest.raises(UsageError, match="characters that no key has") as refusal:
        model_entries.with_key(settings, "sk-with a space")
    assert "space" in str(refusal.value) and "sk-with" not in str(refusal.value)


def test_a_model_of_this_process_takes_no_key(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="needs no key"):
        bench.models.set_key("titan", KEY)


def test_encoders_are_listed_with_the_indexes_that_use_them(bench: Workbench) -> None:
    place = bench.workspace.path / "corpus.tsv"
    list(bench.data.build_index("near", place, "flat", encoder="hashing"))
    lines = parts(bench)
    assert lines["hashing"].kind == "encoder" and "Used by near" in lines["hashing"].about
    assert lines["near"].state == "ready" and lines["hashing"].state == "ready"
    # The first use of a library takes memory once per process, so the estimate depends on earlier tests.
    size, _, fit = lines["minilm"].memory.partition(" MB, ")
    assert 90 <= int(size) <= 120 and fit == "fits"
    assert lines["hashing"].memory == ""
    list(bench.models.load("near", "retriever"))
    lines = parts(bench)
    assert lines["near"].state == lines["hashing"].state == "loaded" and lines["near"].memory
    assert bench.model_lines.first_model() == next(iter(bench.workspace.llms()))
    assert "e5-small-v2" in bench.model_lines.other_encoders()
    assert "hashing" not in bench.model_lines.other_encoders()


@pytest.mark.parametrize(
    ("gpu", "used", "words"),
    [
        (False, 0, "no GPU"),
        (True, 0, "GPU free"),
        (True, 2_000_000_000, "2.0 GB of GPU memory"),
    ],
)
def test_the_memory_line_names_what_is_used_and_whether_there_is_a_gpu(
    gpu: bool, used: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_lines, "has_gpu", lambda: gpu)
    monkeypatch.setattr("rallebench.core.memory.vram_bytes", lambda: used)
    assert model_lines.memory_line().endswith(f" memory in use · {words}")


def test_a_request_that_is_asked_again_says_so_to_its_own_work_alone(bench: Workbench) -> None:
    work = Stop()

    def ask() -> None:
        obey(Stop(part_of=work))
        bench.asking.ask_model("troubled", "Which?")

    with Loopback(fail(500, "out of memory"), answer()) as loopback:
        bench.models.add("troubled", server(base_url=loopback.url))
        list(bench.models.load("troubled", "language model"))
        asking = threading.Thread(target=ask)
        asking.start()
        deadline = time.monotonic() + 20
        while not (why := bench.models.trouble(["titan", "troubled"], work)):
            assert not bench.models.trouble(["troubled"], Stop()), (
                "another request to the same model"
            )
            assert time.monotonic() < deadline
            time.sleep(0.005)
        asking.join(20)
        assert "500: out of memory" in why and bench.models.trouble(["troubled"], work) == ""
