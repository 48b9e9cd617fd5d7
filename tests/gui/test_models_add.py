"""Adding a language model in the Models tab: its handlers called as plain functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from loopback import Loopback, fail, models, send_text, serving

from rallebench.chains.saved import save_chain
from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain
from rallebench.gui import views_add
from rallebench.gui.tabs import _models_add, _models_form, _models_own
from rallebench.llms.presets import GROUPS, preset, presets
from rallebench.services.workbench import Workbench

LLMS = {
    "echo": {"backend": "scripted", "settings": {"echo": True}},
    "paris": {
        "backend": "scripted",
        "about": "knows one thing",
        "settings": {"replies": {"France": "<b>Paris</b>"}},
    },
}
SKIP = gr.skip()
OPENAI = {"model": "m", "base_url": "http://127.0.0.1:8000/v1", "api_key_env": "MY_KEY"}
FORM = ("backend", "name", "model", "base_url", "key", "quantization", "dtype", "other")
MODE = ("editing", "add", "ask", "anew")
FILLED = (*FORM, "facts", "found", "said", "answer", *MODE)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    (tmp_path / "llms.json").write_text(json.dumps(LLMS))
    bench = Workbench(tmp_path)
    yield bench
    bench.close()


def form(**fields: str) -> list[Any]:
    """The fields after backend and name, filled like this."""
    empty = {
        "model": "",
        "base_url": "",
        "key": "",
        "quantization": "none",
        "dtype": "auto",
        "other": "",
    }
    assert fields.keys() <= empty.keys()
    return list({**empty, **fields}.values())


def added(
    bench: Workbench, backend: str, name: str, editing: str = "", **fields: str
) -> dict[str, Any]:
    """Press Add with the form filled like this."""
    outputs = _models_add.on_add(bench, ["echo"], editing, backend, name, *form(**fields))
    return dict(zip(("said", "offered", *MODE), outputs, strict=True))


def asked(
    bench: Workbench, question: str, backend: str, name: str, editing: str = "", **fields: str
) -> list[str]:
    """Press "Add, load and ask"; what is said, in order."""
    screens = _models_add.on_ask(bench, question, ["echo"], editing, backend, name, *form(**fields))
    return [screen[0] for screen in screens]


def chosen(bench: Workbench, name: str, typed: str = "") -> dict[str, Any]:
    """Choose a preset with this name in the form."""
    return dict(zip(FILLED, _models_form.on_preset(bench, name, typed), strict=True))


def saved(bench: Workbench) -> dict[str, Any]:
    return json.loads((bench.workspace.path / "llms.json").read_text())  # type: ignore[no-any-return]


# presets


def test_every_preset_is_offered_in_its_group() -> None:
    offered = [name for group in GROUPS.values() for _, name in views_add.choices(group)]
    assert sorted(offered) == sorted(presets())
    update, hint = _models_form.on_group("Servers")
    assert ("Ollama · http://127.0.0.1:11434/v1", "ollama") in update["choices"] and update[
        "visible"
    ]
    assert "Choose a preset" in hint


def test_no_preset_hides_the_list_and_says_what_to_do() -> None:
    update, hint = _models_form.on_group(views_add.NO_PRESET)
    assert update["choices"] == [] and not update["visible"] and "fill the form yourself" in hint


@pytest.mark.parametrize("name", presets())
def test_a_preset_fills_a_form_that_gives_its_own_settings_back(
    bench: Workbench, name: str
) -> None:
    filled = chosen(bench, name)
    model = filled["model"]["value"]
    values = {part: filled[part] for part in ("base_url", "key", "quantization", "dtype", "other")}
    entry = _models_add.new_entry(filled["backend"], model, *values.values())
    assert entry == LLMEntry(backend=preset(name).backend, settings=preset(name).settings)
    assert filled["name"] == name and filled["editing"] == ""


def test_a_preset_never_takes_a_name_that_is_taken_nor_one_that_was_typed(bench: Workbench) -> None:
    bench.models.add("ollama", LLMEntry(backend="scripted", settings={"echo": True}))
    assert chosen(bench, "ollama")["name"] == "ollama-2"
    assert chosen(bench, "ollama", "my model")["name"] == "my model"
    assert chosen(bench, "smollm2-135m", "ollama-2")["name"] == "smollm2-135m", (
        "the name came from another preset"
    )


def test_what_is_known_of_a_preset_stands_beside_it(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = chosen(bench, "qwen2.5-0.5b")["facts"]
    assert (
        "494 million weights" in facts and "window 32,768 tokens" in facts and "Apache 2.0" in facts
    )
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert "HF_TOKEN is not set now" in chosen(bench, "llama-3.2-1b")["facts"]
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijkl")
    gated = chosen(bench, "llama-3.2-1b")["facts"]
    assert "HF_TOKEN is set now" in gated and "hf_abc" not in gated
    assert "lms server start" in chosen(bench, "lm-studio")["facts"]


def test_a_preset_that_is_not_there_is_a_sentence(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="There is no preset 'olama'"):
        _models_form.on_preset(bench, "olama", "")
    assert _models_form.on_preset(bench, None, "") == [SKIP] * len(FILLED)


# what it needs


def needs(bench: Workbench, backend: str, **fields: str) -> str:
    return _models_add.on_needs(bench, backend, *form(**fields)[:5])


def test_the_memory_that_a_preset_takes_follows_its_quantization(bench: Workbench) -> None:
    model = "Qwen/Qwen2.5-0.5B-Instruct"
    assert "takes about 988 MB of RAM for its weights" in needs(bench, "transformers", model=model)
    assert "takes about 630 MB of RAM for its weights" in needs(
        bench, "transformers", model=model, quantization="8bit"
    )
    assert "That does not fit" in needs(
        bench,
        "transformers",
        model="meta-llama/Llama-2-70b-chat-hf",
        dtype="float32",
        quantization="none",
    )


def test_a_model_that_nobody_knows_says_so_and_a_folder_that_is_none_too(bench: Workbench) -> None:
    assert "known once it has been downloaded" in needs(bench, "transformers", model="owner/model")
    assert "takes about 308 MB of RAM" in needs(bench, "transformers", model="google/flan-t5-small")
    assert "Choose a preset or name a model" in needs(bench, "transformers")
    assert "does not exist" in needs(bench, "transformers", model="/nowhere/at/all")
    assert needs(bench, "scripted") == ""


def test_the_readers_border_is_set_beside_what_it_costs(bench: Workbench) -> None:
    told = needs(bench, "extractive-reader")
    assert "0.15 where the prompt says what to do" in told and "five-passage prompts" in told
    kept = [
        float(row.split("%")[0].rsplit(">", 1)[1]) for row in told.split('<tr><td class="num">')[1:]
    ]
    assert len(kept) > 5 and kept == sorted(kept, reverse=True), "who declines more keeps less"
    assert _models_add.on_backend("extractive-reader")[0]["visible"] is False
    added(bench, "extractive-reader", "careful", other='{"decline_below": 0.5}')
    assert saved(bench)["careful"]["settings"] == {"decline_below": 0.5}
    assert (
        "it must be a number from 0 to 1"
        in added(bench, "extractive-reader", "too-careful", other='{"decline_below": 5}')["said"]
    )


def test_the_page_says_which_key_a_server_gets_and_whether_it_is_set(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_KEY", "secret-abc")
    assert "OPENAI_API_KEY is not set now, so no key is sent. If" in needs(
        bench, "openai_compatible"
    )
    assert "on this machine seldom" in needs(
        bench, "openai_compatible", base_url="http://localhost:1/v1"
    )
    assert "No key is sent" in needs(bench, "openai_compatible", base_url="http://10.0.0.1/v1")
    untouched = _models_add.on_needs(bench, "openai_compatible", None, None, None, "none", "auto")
    assert untouched == needs(bench, "openai_compatible"), (
        "a box in which nobody has typed yet is None"
    )
    told = needs(bench, "openai_compatible", base_url="http://10.0.0.1/v1", key="MY_KEY")
    assert "MY_KEY is set now" in told and "secret-abc" not in told
    typed = needs(bench, "openai_compatible", key="sk-a1b2c3d4e5")
    assert "belongs into that variable" in typed and "sk-a1b2c3d4e5" not in typed


# find models


def found(bench: Workbench, url: str, key: str = "", model: str = "") -> tuple[str, Any]:
    first, last = _models_add.on_find(bench, url, key, model)
    assert "Asking the server" in first[0] and first[1] == SKIP
    return last[0], last[1]


def test_the_servers_models_are_offered_and_a_single_one_is_chosen(bench: Workbench) -> None:
    with Loopback(models("b", "a")) as server:
        said, update = found(bench, server.url, model="typed")
        assert "2 models" in said and update["choices"] == ["a", "b"] and update["value"] == "typed"
        assert server.paths == ["/v1/models"]
    with Loopback(models("only")) as server:
        said, update = found(bench, server.url)
        assert "one model, only" in said and update["value"] == "only"
    with Loopback(models()) as server:
        assert "has no model yet" in found(bench, server.url)[0]


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        (fail(401, "who are you"), "refused the key (401: who are you)"),
        (send_text("<html><title>Login</title></html>", kind="text/html"), "a web page titled"),
        (send_text("not found", 404), "has no list of models"),
        (send_text("[1]", kind="application/json"), "is no list of models"),
    ],
)
def test_a_server_without_a_list_of_models_is_a_sentence(
    bench: Workbench, behaviour: Any, sentence: str
) -> None:
    with Loopback(behaviour) as server:
        said, update = found(bench, server.url)
    assert "rb-error" in said and sentence in said.replace("&#x27;", "'") and update == SKIP


def test_a_server_that_is_down_and_an_address_that_is_none_are_sentences(bench: Workbench) -> None:
    with Loopback() as server:
        url = server.url
    assert "cannot be reached" in found(bench, url)[0]
    assert "base_url is not an address" in found(bench, "localhost")[0]


# saving


def test_an_added_model_is_saved_offered_ticked_and_then_changed(bench: Workbench) -> None:
    first = added(bench, "scripted", " yes ", other='{"default": "yes"}')
    assert "Saved yes in" in first["said"] and first["offered"]["value"] == ["echo", "yes"]
    assert "yes" in first["offered"]["choices"] and first["add"] == "Save the changes to yes"
    assert saved(bench)["yes"] == {"backend": "scripted", "settings": {"default": "yes"}}
    again = added(bench, "scripted", "yes", editing=first["editing"], other='{"default": "no"}')
    assert "Changed yes in" in again["said"] and saved(bench)["yes"]["settings"] == {
        "default": "no"
    }


def test_a_new_entry_never_replaces_one_that_is_there(bench: Workbench) -> None:
    said = added(bench, "scripted", "echo", other='{"default": "new"}')["said"]
    assert "rb-error" in said and "There is a language model &#x27;echo&#x27; already" in said
    assert saved(bench) == LLMS


def test_an_endpoint_is_saved_with_the_name_of_its_key(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    fields = {"model": "m", "base_url": OPENAI["base_url"], "key": "MY_KEY"}
    said = added(
        bench,
        "openai_compatible",
        "api",
        **fields,
        other='{"temperature": 0.2}',
        quantization="4bit",
    )["said"]
    assert saved(bench)["api"]["settings"] == {**OPENAI, "temperature": 0.2}
    assert "MY_KEY is not set" in said
    monkeypatch.setenv("MY_KEY", "abc")
    assert (
        "is not set"
        not in added(bench, "openai_compatible", "api", editing="api", **fields)["said"]
    )


def test_openai_itself_is_saved_without_a_key_at_hand(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = added(bench, "openai_compatible", "gpt", model="gpt-x")["said"]
    assert (
        saved(bench)["gpt"]["settings"] == {"model": "gpt-x"}
        and "OPENAI_API_KEY is not set" in said
    )


def test_a_local_model_is_saved_with_its_quantization_and_nothing_is_loaded(
    bench: Workbench,
) -> None:
    fields = {"model": "/models/tiny", "quantization": "4bit", "base_url": "http://left.over/v1"}
    added(bench, "transformers", "tiny", **fields)
    assert saved(bench)["tiny"]["settings"] == {"model": "/models/tiny", "quantization": "4bit"}
    assert bench.models.status() == []


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
        (
            "openai_compatible",
            "n",
            {"model": "m", "base_url": "localhost"},
            "base_url is not an address",
        ),
        ("openai_compatible", "n", {"model": "m", "other": '{"model": "o"}'}, "leave one out"),
        ("openai_compatible", "n", {"model": "m", "other": '{"temperature": 9}'}, "from 0 to 5"),
        (
            "openai_compatible",
            "n",
            {"model": "m", "base_url": "${NOT_SET_ANYWHERE}/v1"},
            "NOT_SET_ANYWHERE",
        ),
        ("transformers", "n", {}, "needs the setting &#x27;model&#x27;"),
        ("transformers", "n", {"model": "m", "other": '{"batch_size": 0}'}, "batch_size is 0"),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence_before_it_is_saved(
    bench: Workbench, backend: str, name: str, fields: dict[str, str], sentence: str
) -> None:
    refused = added(bench, backend, name, **fields)
    assert (
        "rb-error" in refused["said"] and sentence in refused["said"] and refused["offered"] == SKIP
    )
    assert saved(bench) == LLMS


@pytest.mark.parametrize(
    "fields", [{"key": "sk-a1b2c3d4e5"}, {"other": '{"api_key": "sk-a1b2c3d4e5"}'}]
)
def test_a_key_is_neither_saved_nor_repeated(bench: Workbench, fields: dict[str, str]) -> None:
    said = added(bench, "openai_compatible", "api", model="m", **fields)["said"]
    assert "rb-error" in said and "sk-a1b2c3d4e5" not in said
    assert "sk-a1b2c3d4e5" not in (bench.workspace.path / "llms.json").read_text()


def test_only_the_fields_of_the_backend_are_shown() -> None:
    shown = {name: _models_add.on_backend(name) for name in _models_form.BACKENDS}
    visible = {
        name: [update.get("visible") for update in updates[:3]] for name, updates in shown.items()
    }
    assert visible == {
        "openai_compatible": [True, True, False],
        "transformers": [True, False, True],
        "extractive-reader": [False, False, False],
        "scripted": [False, False, False],
    }


# asking at once


def test_a_new_entry_is_saved_loaded_and_asked_at_once(bench: Workbench) -> None:
    said = asked(
        bench, "The capital of France?", "scripted", "new", other='{"default": "<u>Paris</u>"}'
    )
    assert (
        "Saved new" in said[0]
        and "Asking new" in said[-2]
        and "&lt;u&gt;Paris&lt;/u&gt;" in said[-1]
    )
    assert "new" in saved(bench) and bench.models.is_loaded("new")


def test_a_server_is_asked_by_the_model_it_named(bench: Workbench) -> None:
    with Loopback(serving("only", text="The Kura.")) as server:
        model = found(bench, server.url)[1]["value"]
        said = asked(
            bench, "Which river?", "openai_compatible", "mine", model=model, base_url=server.url
        )
    assert "The Kura." in said[-1] and server.bodies[-1]["model"] == "only"


def test_a_change_is_what_answers_and_an_unchanged_model_is_not_loaded_again(
    bench: Workbench,
) -> None:
    asked(bench, "?", "scripted", "new", other='{"default": "one"}')
    same = asked(bench, "?", "scripted", "new", editing="new", other='{"default": "one"}')
    assert len(same) == 2 and "one" in same[-1]
    said = asked(bench, "?", "scripted", "new", editing="new", other='{"default": "two"}')
    assert "Changed new" in said[0] and "Unloaded new" in said[1] and "two" in said[-1]


def test_a_change_that_was_saved_before_is_loaded_when_it_is_asked(bench: Workbench) -> None:
    asked(bench, "?", "scripted", "new", other='{"default": "one"}')
    said = added(bench, "scripted", "new", editing="new", other='{"default": "two"}')["said"]
    assert "loaded with its earlier settings" in said
    assert (
        "two" in asked(bench, "?", "scripted", "new", editing="new", other='{"default": "two"}')[-1]
    )


def test_what_fails_while_it_is_asked_is_a_sentence_and_the_entry_stays(bench: Workbench) -> None:
    with Loopback() as server:
        url = server.url
    said = asked(
        bench, "?", "openai_compatible", "gone", model="m", base_url=url, other='{"max_retries": 0}'
    )
    assert "rb-error" in said[-1] and "cannot be reached" in said[-1] and "gone" in saved(bench)
    assert "needs the setting" in asked(bench, "?", "openai_compatible", "none")[
        -1
    ] and "none" not in saved(bench)
    with pytest.raises(UsageError, match="The question is empty"):
        asked(bench, " ", "scripted", "new")


# change and delete


def test_an_entry_comes_back_into_the_form_and_keeps_what_the_form_does_not_show(
    bench: Workbench,
) -> None:
    _, _, *filled = _models_own.on_edit(bench, "paris")
    values = dict(zip((*FILLED, "preset"), filled, strict=True))
    assert (values["backend"], values["name"], values["editing"]) == ("scripted", "paris", "paris")
    assert json.loads(values["other"]) == LLMS["paris"]["settings"]
    added(bench, "scripted", "paris", editing="paris", other='{"default": "Lyon"}')
    assert saved(bench)["paris"] == {
        "backend": "scripted",
        "about": "knows one thing",
        "settings": {"default": "Lyon"},
    }


def test_an_entry_of_a_backend_without_a_form_names_the_command_that_changes_it(
    bench: Workbench,
) -> None:
    bench.workspace.save_llm("reader-2", LLMEntry(backend="of-a-plugin"))
    with pytest.raises(UsageError, match="rallebench models change reader-2"):
        _models_own.on_edit(bench, "reader-2")


def test_an_emptied_form_makes_a_new_entry_again() -> None:
    values = dict(zip((*FILLED, "preset"), _models_form.on_anew(), strict=True))
    assert (values["name"], values["editing"], values["add"]) == ("", "", "Add to this workspace")


def test_deleting_says_who_uses_the_entry_and_asks_again(bench: Workbench) -> None:
    chain = Chain("mine", (Action("generate", "{question}", "fstring", "echo"),))
    save_chain(chain, bench.workspace.path / "chains" / "mine.json")
    asked_about, sure, keep, said = _models_own.on_delete(bench, "echo")
    assert asked_about == "echo" and sure["value"] == "Yes, delete echo" and keep["visible"]
    assert "echo is used by the chain mine." in said and "echo" in saved(bench)
    assert _models_own.on_keep()[0] == "" and "echo" in saved(bench)
    *_, said, update = _models_own.on_sure(bench, "echo")
    assert "Deleted echo" in said and "The chain mine can no longer run" in said
    assert list(saved(bench)) == update["choices"] == ["paris"]


def test_a_loaded_entry_is_not_deleted(bench: Workbench) -> None:
    list(bench.models.load("echo", "language model"))
    asked_about, sure, _, said = _models_own.on_delete(bench, "echo")
    assert (asked_about, sure["visible"]) == (
        "",
        False,
    ) and "echo is loaded; unload it above" in said
    assert "is loaded" in _models_own.on_sure(bench, "echo")[3] and "echo" in saved(bench)


def test_nothing_chosen_nothing_there_and_nothing_readable_are_sentences(bench: Workbench) -> None:
    with pytest.raises(UsageError, match="No language model is chosen"):
        _models_own.on_edit(bench, None)
    with pytest.raises(UsageError, match="No language model is chosen"):
        _models_own.on_delete(bench, "")
    with pytest.raises(UsageError, match="There is no language model 'typed'"):
        _models_own.on_delete(bench, "typed")
    (bench.workspace.path / "llms.json").unlink()
    assert "No language model has been added" in _models_own.on_own(bench, "echo")[1]
    (bench.workspace.path / "llms.json").write_text("{")
    assert _models_own.names(bench) == []
