"""The Models tab: its handlers called as plain functions on a workbench with scripted models."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from rallebench import memory
from rallebench.catalog import LLMEntry
from rallebench.errors import UsageError
from rallebench.gui import views_models
from rallebench.gui.tabs import _models_add, models
from rallebench.loads import Loaded
from rallebench.workbench import Job, Workbench

LLMS = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
    "paris": {"backend": "scripted", "settings": {"replies": {"France": "<b>Paris</b>"}}},
    "broken": {"backend": "scripted", "settings": {"ecko": True}},
}
SKIP = gr.skip()


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    (tmp_path / "llms.json").write_text(json.dumps(LLMS))
    return Workbench(tmp_path)


def refreshed(bench: Workbench, seen: Any = None, *chosen: Any) -> dict[str, Any]:
    """What a refresh sends to each component, by name."""
    values = models.on_refresh(bench, seen, *(chosen or ([], [], None, None)))
    return dict(zip(("seen", *models.REFRESHED), values, strict=True))


# load and unload


def test_what_the_starter_chain_needs_is_ticked_for_a_new_user(bench: Workbench) -> None:
    assert models.recommended(bench) == ["starter-minilm", "extractive-reader"]
    now = models.snapshot(bench)
    assert set(models.recommended(bench)) <= {*now["retrievers"], *now["llms"]}


def test_loading_shows_progress_and_ends_with_memory_and_seconds(bench: Workbench) -> None:
    screens = list(models.on_load(bench, ["starter-bm25"], ["echo"]))
    assert any("Building starter-bm25" in screen for screen in screens)
    assert "Loaded starter-bm25: " in screens[-1] and "RAM" in screens[-1]
    assert "Loaded echo: " in screens[-1] and 'aria-valuenow="100"' in screens[-1]
    assert [loaded.name for loaded in bench.status()] == ["starter-bm25", "echo"]


def test_loading_more_keeps_what_is_loaded(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["echo"]))
    list(models.on_load(bench, [], ["paris"]))
    assert bench.ask_model("echo", "still here").reply.text == "still here"
    assert "Paris" in bench.ask_model("paris", "capital of France?").reply.text


def test_loading_again_says_that_it_is_loaded_already(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["echo"]))
    assert "Already loaded: echo." in list(models.on_load(bench, [], ["echo"]))[-1]


def test_one_that_fails_says_why_and_the_others_load(bench: Workbench) -> None:
    last = list(models.on_load(bench, [], ["broken", "echo"]))[-1]
    assert "rb-error" in last and "Did you mean &#x27;echo&#x27;?" in last
    assert "Loaded echo" in last
    assert bench.is_loaded("echo") and not bench.is_loaded("broken")


def test_a_name_that_is_gone_is_a_sentence(bench: Workbench) -> None:
    assert "There is no language model" in list(models.on_load(bench, [], ["nobody"]))[-1]


def test_nothing_ticked_is_a_sentence(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="Nothing is ticked"):
        list(models.on_load(bench, [], []))


def test_a_page_that_goes_away_stops_no_load(bench: Workbench) -> None:
    with bench.loads._one_load:
        page = models.on_load(bench, [], ["echo"])
        next(page)
        waiting = threading.Thread(target=next, args=(page,))
        waiting.start()
        wait_for(lambda: "echo" in models.loading_now(bench))
    waiting.join()
    page.close()
    wait_for(lambda: bench.is_loaded("echo"))


def test_two_sessions_that_ask_for_one_name_load_it_once(bench: Workbench) -> None:
    ends: list[str] = []
    with bench.loads._one_load:
        pages = [
            threading.Thread(target=lambda: ends.append(list(models.on_load(bench, [], ["echo"]))[-1]))
            for _ in range(2)
        ]
        for page in pages:
            page.start()
        wait_for(lambda: "echo" in models.loading_now(bench))
    for page in pages:
        page.join()
    assert len(ends) == 2 and all("Loaded echo" in end or "Already loaded: echo" in end for end in ends)
    assert [loaded.name for loaded in bench.status()] == ["echo"]


def test_unloading_says_how_much_memory_came_back(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["echo"]))
    assert "Unloaded echo: " in models.on_unload(bench, "echo")
    assert bench.status() == []


def test_unloading_waits_for_a_running_benchmark(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["echo"]))
    bench.jobs["night"] = Job("night")
    assert "A benchmark is running" in models.on_unload(bench, "echo")
    assert bench.is_loaded("echo")


def test_unloading_what_somebody_else_unloaded_is_a_sentence(bench: Workbench) -> None:
    assert "is not loaded" in models.on_unload(bench, "echo")
    with pytest.raises(UsageError, match="Nothing is chosen"):
        models.on_unload(bench, None)


# what the screen shows


def test_a_second_window_sees_what_the_first_one_loads_and_unloads(bench: Workbench) -> None:
    seen = refreshed(bench)["seen"]
    list(models.on_load(bench, [], ["echo"]))
    second = refreshed(bench, seen)
    assert second["loaded"] == gr.update(choices=["echo"], value="echo")
    assert second["askable"]["choices"] == ["echo"]
    assert '<span class="rb-badge good">loaded</span>' in second["table"]
    models.on_unload(bench, "echo")
    third = refreshed(bench, second["seen"], [], [], "echo", "echo")
    assert third["loaded"] == gr.update(choices=[], value=None)
    assert "rb-badge good" not in third["table"]


def test_what_has_not_changed_is_left_alone_under_the_users_hand(bench: Workbench) -> None:
    again = refreshed(bench, refreshed(bench)["seen"], ["starter-bm25"], [], None, None)
    assert all(again[part] == SKIP for part in ("retrievers", "llms", "loaded", "askable", "table"))


def test_ticks_survive_when_the_list_grows(bench: Workbench) -> None:
    seen = refreshed(bench)["seen"]
    bench.workspace.save_llm("new", LLMEntry(backend="scripted", settings={"echo": True}))
    now = refreshed(bench, seen, [], ["echo", "gone"], None, None)["llms"]
    assert "new" in now["choices"] and now["value"] == ["echo"]


def test_what_is_being_loaded_reads_loading(bench: Workbench) -> None:
    with bench.loads._one_load:
        page = threading.Thread(target=list, args=(models.on_load(bench, [], ["echo"]),))
        page.start()
        wait_for(lambda: "echo" in models.loading_now(bench))
        assert '<span class="rb-badge page">loading</span>' in models.snapshot(bench)["table"]
    page.join()


def test_the_embedded_reader_is_called_extractive(bench: Workbench) -> None:
    line = next(row for row in models.snapshot(bench)["table"].split("<tr>") if "extractive-reader" in row)
    assert views_models.EXTRACTIVE in line.lower() and "copies" in line
    mute = views_models.Row("r", "language model", "not loaded", "a reader", extractive=True)
    assert "extractive" in views_models.table([mute])


def test_what_is_loaded_stands_first(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["paris"]))
    rows = views_models.rows(bench.workspace.retrievers(), bench.workspace.llms(), bench.status(), ())
    assert [row.name for row in rows][:2] == ["paris", "starter-bm25"]


def test_a_damaged_list_of_models_is_a_sentence_above_what_is_left(bench: Workbench) -> None:
    (bench.workspace.path / "llms.json").write_text('{"echo": ')
    table = models.snapshot(bench)["table"]
    assert "rb-error" in table and "is not valid JSON" in table and "starter-bm25" in table


def test_names_and_descriptions_are_escaped(bench: Workbench) -> None:
    bench.workspace.save_llm("<i>x</i>", LLMEntry(backend="scripted", about="<script>alert(1)</script>"))
    table = models.snapshot(bench)["table"]
    assert "<script>" not in table and "<i>" not in table and "&lt;i&gt;x&lt;/i&gt;" in table


def test_what_is_loaded_without_being_listed_can_be_seen() -> None:
    stray = Loaded("scripted:x", "language model", "", 5_000_000, 2_000_000_000, 1.25)
    (row,) = views_models.rows({}, {}, [stray], ())
    assert row.state == "loaded"
    assert "2.0 GB VRAM, 5.0 MB RAM" in views_models.table([row]) and ">1.2<" in views_models.table([row])


def test_nothing_to_load_says_what_to_do() -> None:
    assert "add a model below, or build an index in Data" in views_models.table([])


def test_the_memory_line_names_vram_only_where_there_is_some() -> None:
    assert "VRAM" not in views_models.memory_line(memory.Memory(412_000_000), 21_000_000_000)
    line = views_models.memory_line(memory.Memory(412_000_000, 3_000_000_000), 21_000_000_000)
    assert "412 MB RAM" in line and "21.0 GB RAM free" in line and "3.0 GB VRAM" in line


def test_the_bar_moves_within_a_load_that_counts() -> None:
    assert views_models.part("building starter-minilm: encoding passages 64/256") == 0.25
    assert views_models.part("opening starter-minilm") == 0.0
    assert 'aria-valuenow="62"' in views_models.loading([], "encoding 64/256", 1, 2)


# add a language model

OPENAI = {"model": "m", "base_url": "http://127.0.0.1:8000/v1", "api_key_env": "MY_KEY"}


def added(bench: Workbench, backend: str, name: str, **fields: str) -> list[Any]:
    """Press Add with the form filled like this."""
    form = {"model": "", "base_url": "", "key": "", "quantization": "none", "dtype": "auto", "other": ""}
    return _models_add.on_add(bench, ["echo"], backend, name, *{**form, **fields}.values())


def saved(bench: Workbench) -> dict[str, Any]:
    return json.loads((bench.workspace.path / "llms.json").read_text())  # type: ignore[no-any-return]


def test_an_added_model_is_saved_offered_ticked_and_works(bench: Workbench) -> None:
    said, offered = added(bench, "scripted", " yes ", other='{"default": "yes"}')
    assert "Saved yes in" in said and offered["value"] == ["echo", "yes"] and "yes" in offered["choices"]
    assert saved(bench)["yes"] == {"backend": "scripted", "settings": {"default": "yes"}}
    list(models.on_load(bench, [], ["yes"]))
    assert "yes" in list(models.on_ask(bench, "yes", "well?"))[-1]


def test_an_endpoint_is_saved_with_the_name_of_its_key(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    said, _ = added(
        bench, "openai_compatible", "api", model="m", base_url=OPENAI["base_url"], key="MY_KEY",
        other='{"temperature": 0.2}', quantization="4bit",
    )  # fmt: skip
    assert saved(bench)["api"]["settings"] == {**OPENAI, "temperature": 0.2}
    assert "MY_KEY is not set" in said
    monkeypatch.setenv("MY_KEY", "abc")
    said, _ = added(bench, "openai_compatible", "api", model="m", base_url=OPENAI["base_url"], key="MY_KEY")
    assert "is not set" not in said


def test_openai_itself_is_saved_without_a_key_at_hand(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said, _ = added(bench, "openai_compatible", "gpt", model="gpt-x")
    assert saved(bench)["gpt"]["settings"] == {"model": "gpt-x"} and "OPENAI_API_KEY is not set" in said


def test_a_local_model_is_saved_with_its_quantization_and_nothing_is_loaded(bench: Workbench) -> None:
    added(
        bench,
        "transformers",
        "tiny",
        model="/models/tiny",
        quantization="4bit",
        base_url="http://left.over/v1",
    )
    assert saved(bench)["tiny"]["settings"] == {"model": "/models/tiny", "quantization": "4bit"}
    assert bench.status() == []


@pytest.mark.parametrize(
    ("backend", "name", "fields", "sentence"),
    [
        ("scripted", "", {}, "Give the model a name"),
        ("scripted", "x" * 101, {}, "1 to 100 characters"),
        ("scripted", "extractive-reader", {}, "comes with rallebench"),
        ("scripted", "starter-bm25", {}, "is a retriever of this workspace"),
        ("scripted", "n", {"other": "{"}, "not valid JSON"),
        ("scripted", "n", {"other": "[1]"}, "must be a JSON object"),
        ("scripted", "n", {"other": '{"ecko": true}'}, "Did you mean &#x27;echo&#x27;"),
        ("openai_compatible", "n", {}, "needs the setting &#x27;model&#x27;"),
        ("openai_compatible", "n", {"model": "m", "base_url": "localhost"}, "base_url is not an address"),
        ("openai_compatible", "n", {"model": "m", "other": '{"model": "o"}'}, "leave one out"),
        ("openai_compatible", "n", {"model": "m", "other": '{"temperature": 9}'}, "from 0 to 5"),
        ("openai_compatible", "n", {"model": "m", "base_url": "${NOT_SET_ANYWHERE}/v1"}, "NOT_SET_ANYWHERE"),
        ("transformers", "n", {}, "needs the setting &#x27;model&#x27;"),
        ("transformers", "n", {"model": "m", "other": '{"batch_size": 0}'}, "batch_size is 0"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence_before_it_is_saved(
    bench: Workbench, backend: str, name: str, fields: dict[str, str], sentence: str
) -> None:
    said, offered = added(bench, backend, name, **fields)
    assert "rb-error" in said and sentence in said and offered == SKIP
    assert saved(bench) == LLMS


@pytest.mark.parametrize("fields", [{"key": "sk-a1b2c3d4e5"}, {"other": '{"api_key": "sk-a1b2c3d4e5"}'}])
def test_a_key_is_neither_saved_nor_repeated(bench: Workbench, fields: dict[str, str]) -> None:
    said, _ = added(bench, "openai_compatible", "api", model="m", **fields)
    assert "rb-error" in said and "sk-a1b2c3d4e5" not in said
    assert "sk-a1b2c3d4e5" not in (bench.workspace.path / "llms.json").read_text()


def test_replacing_a_loaded_model_says_that_the_old_one_is_still_loaded(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["echo"]))
    said, offered = added(bench, "scripted", "echo", other='{"default": "new"}')
    assert "loaded with its earlier settings" in said and offered["value"] == ["echo"]


def test_only_the_fields_of_the_backend_are_shown() -> None:
    shown = {name: _models_add.on_backend(name) for name in _models_add.BACKENDS}
    visible = {name: [update.get("visible") for update in updates[:3]] for name, updates in shown.items()}
    assert visible == {
        "openai_compatible": [True, True, False],
        "transformers": [True, False, True],
        "scripted": [False, False, False],
    }


# ask one question


def test_asking_shows_the_answer_escaped_with_its_tokens(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["paris"]))
    first, last = models.on_ask(bench, "paris", "The capital of France?")
    assert "Asking paris" in first
    assert "&lt;b&gt;Paris&lt;/b&gt;" in last and "tokens" in last


def test_a_model_that_fails_says_why_on_the_page(bench: Workbench) -> None:
    list(models.on_load(bench, [], ["paris"]))
    assert "rb-error" in list(models.on_ask(bench, "paris", "Peru?"))[-1]
    models.on_unload(bench, "paris")
    assert "is not loaded" in list(models.on_ask(bench, "paris", "France?"))[-1]


def test_asking_needs_a_model_and_a_prompt(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="No language model is loaded"):
        list(models.on_ask(bench, None, "x"))
    with pytest.raises(UsageError, match="The prompt is empty"):
        list(models.on_ask(bench, "echo", "  "))


def wait_for(condition: Any, seconds: float = 10.0) -> None:
    """Wait until something holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
