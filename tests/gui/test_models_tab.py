"""The Models tab: its handlers called as plain functions on a workbench with scripted models."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from rallebench.core import memory
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.gui import views_models
from rallebench.gui.tabs import models
from rallebench.llms._memory import MemoryNeed
from rallebench.services.load_queue import Going
from rallebench.services.memory_fit import MemoryFit
from rallebench.services.models import Loaded
from rallebench.services.workbench import Workbench

LLMS = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
    "paris": {"backend": "scripted", "settings": {"replies": {"France": "<b>Paris</b>"}}},
    "broken": {"backend": "scripted", "settings": {"ecko": True}},
}
SKIP = gr.skip()
FOLLOWED = ("told", "progress", "busy", "going", "pace")


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    (tmp_path / "llms.json").write_text(json.dumps(LLMS))
    return Workbench(tmp_path)


def refreshed(bench: Workbench, seen: Any = None, *chosen: Any) -> dict[str, Any]:
    """What a refresh sends to each component, by name."""
    values = models.on_refresh(bench, "", None, seen, *(chosen or ([], [], None, None)))
    return dict(zip((*FOLLOWED, "seen", *models.REFRESHED), values, strict=True))


def load(bench: Workbench, retrievers: tuple[str, ...] = (), llms: tuple[str, ...] = ()) -> str:
    """Press Load and wait for the end; what this visitor is told, and the panel that all see."""
    said, *_ = models.on_load(bench, list(retrievers), list(llms))
    wait_for(lambda: not bench.models.loading())
    return said + models.loads_now(bench)


# load and unload


def test_what_the_starter_chain_needs_is_ticked_for_a_new_user(bench: Workbench) -> None:
    assert models.recommended(bench) == ["starter-minilm", "extractive-reader"]
    now = models.snapshot(bench)
    assert set(models.recommended(bench)) <= {*now["retrievers"], *now["llms"]}


def test_loading_shows_progress_and_ends_with_memory_and_seconds(bench: Workbench) -> None:
    models.on_load(bench, ["starter-bm25"], ["echo"])
    wait_for(
        lambda: (
            "Building starter-bm25" in models.loads_now(bench)
            or bench.models.is_loaded("starter-bm25")
        )
    )
    wait_for(lambda: not bench.models.loading())
    panel = models.loads_now(bench)
    assert "Loaded starter-bm25: " in panel and "RAM" in panel and "Loaded echo: " in panel
    assert [loaded.name for loaded in bench.models.status()] == ["starter-bm25", "echo"]


def test_loading_more_keeps_what_is_loaded(bench: Workbench) -> None:
    load(bench, (), ("echo",))
    load(bench, (), ("paris",))
    assert bench.asking.ask_model("echo", "still here").reply.text == "still here"
    assert "Paris" in bench.asking.ask_model("paris", "capital of France?").reply.text


def test_loading_again_says_that_it_is_loaded_already(bench: Workbench) -> None:
    load(bench, (), ("echo",))
    assert "Already loaded: echo." in load(bench, (), ("echo",))


def test_one_that_fails_says_why_and_the_others_load(bench: Workbench) -> None:
    last = load(bench, (), ("broken", "echo"))
    assert "rb-error" in last and "Did you mean &#x27;echo&#x27;?" in last
    assert "Loaded echo" in last
    assert bench.models.is_loaded("echo") and not bench.models.is_loaded("broken")


def test_a_name_that_is_gone_is_a_sentence(bench: Workbench) -> None:
    assert "There is no language model" in load(bench, (), ("nobody",))


def test_nothing_ticked_is_a_sentence(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="Nothing is ticked"):
        models.on_load(bench, [], [])


def test_a_page_that_goes_away_stops_no_load(bench: Workbench) -> None:
    with bench.models._turns.lock:
        models.on_load(bench, [], ["echo"])
        assert "echo" in models.loading_now(bench)
    wait_for(lambda: bench.models.is_loaded("echo"))


def test_a_load_is_seen_in_every_window_and_can_be_cancelled_in_any(bench: Workbench) -> None:
    with bench.models._turns.lock:
        models.on_load(bench, ["starter-bm25"], ["echo", "paris"])
        second = refreshed(bench)
        assert second["busy"] == gr.update(visible=True)
        assert second["going"] == gr.update(
            choices=["starter-bm25", "echo", "paris", models.ALL], value="starter-bm25"
        )
        assert "echo" in second["progress"] and "waiting" in second["progress"]
        said, panel, *_ = models.on_cancel(bench, "echo")
        assert said == "" and "cancelled" in panel
        wait_for(lambda: "echo" not in bench.models.loading())
        assert "Loading echo was cancelled before its turn came" in models.loads_now(bench)
        models.on_cancel(bench, models.ALL)
        wait_for(lambda: not bench.models.loading())
    assert bench.models.status() == []
    assert refreshed(bench, None)["busy"] == gr.update(visible=False)
    assert "Nothing is being loaded" in models.on_cancel(bench, None)[0]


def test_a_page_that_has_seen_all_is_sent_nothing_new(bench: Workbench) -> None:
    told, *_ = models.on_follow(bench, "")
    assert models.on_follow(bench, told) == [SKIP] * 5


def test_what_ended_is_told_until_the_next_load(bench: Workbench) -> None:
    assert "Loaded echo: " in load(bench, (), ("echo",))
    assert "Loaded echo: " in refreshed(bench)["progress"]
    assert "Loaded echo: " not in load(bench, (), ("paris",))


def test_unloading_says_how_much_memory_came_back(bench: Workbench) -> None:
    load(bench, (), ("echo",))
    assert "Unloaded echo: " in models.on_unload(bench, "echo")[1]
    assert bench.models.status() == []


def test_unloading_waits_for_what_uses_the_model_and_names_it(bench: Workbench) -> None:
    load(bench, (), ("echo",))
    with bench.models.lease("the run 'night'").hold(["echo"]):
        assert "in use by the run &#x27;night&#x27;" in models.on_unload(bench, "echo")[0]
        assert bench.models.is_loaded("echo")


def test_unloading_what_somebody_else_unloaded_is_a_sentence(bench: Workbench) -> None:
    assert "is not loaded" in models.on_unload(bench, "echo")[0]
    with pytest.raises(UsageError, match="Nothing is chosen"):
        models.on_unload(bench, None)


# what the screen shows


def test_a_second_window_sees_what_the_first_one_loads_and_unloads(bench: Workbench) -> None:
    seen = refreshed(bench)["seen"]
    load(bench, (), ("echo",))
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


def test_what_waits_reads_waiting_and_what_is_being_loaded_reads_loading(bench: Workbench) -> None:
    with bench.models._turns.lock:
        models.on_load(bench, [], ["echo"])
        assert '<span class="rb-badge page">waiting</span>' in models.snapshot(bench)["table"]
    going = {"echo": Going("language model", "loading weights 3/4", waiting=False, cancelled=False)}
    assert '<span class="rb-badge page">loading</span>' in views_models.panel(going, {})
    wait_for(lambda: bench.models.is_loaded("echo"))


def test_the_embedded_reader_is_called_extractive(bench: Workbench) -> None:
    line = next(
        row for row in models.snapshot(bench)["table"].split("<tr>") if "extractive-reader" in row
    )
    assert views_models.EXTRACTIVE in line.lower() and "copies" in line
    mute = views_models.Row("r", "language model", "not loaded", "a reader", extractive=True)
    assert "extractive" in views_models.table([mute])


def test_what_is_loaded_stands_first(bench: Workbench) -> None:
    load(bench, (), ("paris",))
    rows = views_models.rows(
        bench.workspace.retrievers(), bench.workspace.llms(), bench.models.status(), {}
    )
    assert [row.name for row in rows][:2] == ["paris", "starter-bm25"]


def test_a_damaged_list_of_models_is_a_sentence_above_what_is_left(bench: Workbench) -> None:
    (bench.workspace.path / "llms.json").write_text('{"echo": ')
    table = models.snapshot(bench)["table"]
    assert "rb-error" in table and "is not valid JSON" in table and "starter-bm25" in table


def test_names_and_descriptions_are_escaped(bench: Workbench) -> None:
    bench.workspace.save_llm(
        "<i>x</i>", LLMEntry(backend="scripted", about="<script>alert(1)</script>")
    )
    table = models.snapshot(bench)["table"]
    assert "<script>" not in table and "<i>" not in table and "&lt;i&gt;x&lt;/i&gt;" in table


def test_what_is_loaded_without_being_listed_can_be_seen() -> None:
    stray = Loaded("scripted:x", "language model", "", 5_000_000, 2_000_000_000, 1.25)
    (row,) = views_models.rows({}, {}, [stray], {})
    assert row.state == "loaded"
    assert "2.0 GB VRAM, 5.0 MB RAM" in views_models.table([row]) and ">1.2<" in views_models.table(
        [row]
    )


def test_nothing_to_load_says_what_to_do() -> None:
    assert "add a model below, or build an index in Data" in views_models.table([])


def test_the_memory_line_names_vram_only_where_there_is_some() -> None:
    assert "VRAM" not in views_models.memory_line(memory.Memory(412_000_000), 21_000_000_000)
    line = views_models.memory_line(memory.Memory(412_000_000, 3_000_000_000), 21_000_000_000)
    assert "412 MB RAM" in line and "21.0 GB RAM free" in line and "3.0 GB VRAM" in line


def test_the_bar_moves_within_a_load_that_counts() -> None:
    assert views_models.part("building starter-minilm: encoding passages 64/256") == 0.25
    assert views_models.part("opening starter-minilm") == 0.0
    going = {"x": Going("retriever", "encoding 64/256", waiting=False, cancelled=False)}
    assert 'aria-valuenow="25"' in views_models.panel(going, {})


def need(weights: int, form: str = "none") -> MemoryNeed:
    return MemoryNeed(weights, 0, 0, weights, form, "cpu", 128, 1)


def test_a_ticked_model_says_what_it_needs_what_is_free_and_what_to_do() -> None:
    small, big = need(3_000_000_000, "4bit"), need(12_000_000_000, "bfloat16")
    fits = MemoryFit("small", small, 11_000_000_000, {}, {})
    tight = replace(fits, free=3_100_000_000)
    refused = MemoryFit(
        "big", big, 11_000_000_000, {"4bit": small}, {"old": memory.Memory(2_000_000_000)}
    )
    assert views_models.rooms([fits]) == (
        '<div class="rb-good">small needs about 3.0 GB RAM (4bit), 11.0 GB are free.</div>'
    )
    assert "rb-note" in views_models.rooms([tight]) and "That is tight" in views_models.rooms(
        [tight]
    )
    assert "rb-error" in views_models.rooms([refused])
    assert (
        "choose quantization 4bit, which needs about 3.0 GB or unload old, which holds 2.0 GB"
        in refused.sentence
    )
    assert "close what else uses the memory" in replace(refused, others={}, held={}).sentence
    together = views_models.rooms(
        [replace(fits, free=5_000_000_000), replace(fits, name="b", free=5_000_000_000)]
    )
    assert "not all 2: together they need about 6.0 GB RAM and 5.0 GB are free" in together
    assert "known once it has been downloaded" in views_models.rooms(["far"])


def test_only_models_of_this_process_that_are_not_loaded_have_a_line(bench: Workbench) -> None:
    bench.workspace.save_llm(
        "lost", LLMEntry(backend="transformers", settings={"model": "/nowhere/at/all"})
    )
    assert models.on_tick(bench, ["echo"]) == ""
    assert "does not exist" in models.on_tick(bench, ["echo", "lost"])


# ask one question


def test_asking_shows_the_answer_escaped_with_its_tokens(bench: Workbench) -> None:
    load(bench, (), ("paris",))
    first, last = models.on_ask(bench, "paris", "The capital of France?")
    assert "Asking paris" in first
    assert "&lt;b&gt;Paris&lt;/b&gt;" in last and "tokens" in last


def test_a_model_that_fails_says_why_on_the_page(bench: Workbench) -> None:
    load(bench, (), ("paris",))
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
