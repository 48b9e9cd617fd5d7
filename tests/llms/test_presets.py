"""Presets are data: each one is a backend with valid settings, and facts that fit together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.llms import LLMS
from rallebench.llms.presets import (
    known_model,
    preset,
    preset_entry,
    presets,
    read_presets,
    weight_bytes,
)
from rallebench.workspace.paths import WorkspaceFolder


@pytest.mark.parametrize("name", presets())
def test_the_backend_of_every_preset_takes_its_settings_and_facts_fit(name: str) -> None:
    entry = preset(name)
    local = entry.backend == "transformers"
    check = LLMS.entry(entry.backend).traits["settings"]
    check(name, **({} if local else {"model": "any"}), **entry.settings)
    assert not entry.settings.get("trust_remote_code"), "no preset runs Python code of the model's"
    assert (entry.model.count("/") == 1 and entry.parameters > 0) == local
    assert (entry.group == "servers" and not entry.model) != local, "a server names its models"
    assert entry.embeddings < max(entry.parameters, 1)
    assert (entry.group == "small") == (0 < entry.parameters < 2_000_000_000)
    assert not entry.about.endswith(".") and not set(" ?:/,") & set(name)
    assert (weight_bytes(entry, entry.settings) > 0) == local


def test_presets_of_a_group_stand_together_in_the_order_of_the_page() -> None:
    groups = [given.group for given in presets().values()]
    assert groups == sorted(groups, key=["small", "larger", "servers"].index)
    assert len({given.model for given in presets().values() if given.model}) == sum(
        g != "servers" for g in groups
    )


def test_weights_take_what_dtype_and_quantization_say() -> None:
    qwen = preset("qwen2.5-0.5b")
    whole, rest = qwen.embeddings, qwen.parameters - qwen.embeddings
    assert weight_bytes(qwen, {"dtype": "float32"}) == 4 * qwen.parameters
    assert weight_bytes(qwen, {"dtype": "auto"}) == 2 * qwen.parameters
    assert weight_bytes(qwen, {"quantization": "8bit"}) == 2 * whole + rest
    assert weight_bytes(qwen, {"quantization": "4bit"}) == int(2 * whole + rest * 4.13 / 8)
    assert weight_bytes(preset("ollama"), {}) == 0


def test_the_users_settings_stand_over_the_presets_and_null_takes_one_away() -> None:
    settings = {"quantization": "4bit", "chat_template_kwargs": None}
    expected = {"model": "Qwen/Qwen3-0.6B", "chat_template": "on", "quantization": "4bit"}
    assert preset_entry("qwen3-0.6b", settings).settings == expected


def test_a_preset_stands_wherever_a_model_is_named_after_the_entries(tmp_path: Path) -> None:
    entry = WorkspaceFolder(tmp_path).llm("ollama?model=llama3.2&temperature=0.5")
    url = {"base_url": "http://127.0.0.1:11434/v1"}
    assert entry.backend == "openai_compatible"
    assert entry.settings == {**url, "model": "llama3.2", "temperature": 0.5}
    own = {"ollama": {"backend": "scripted", "settings": {"echo": True}}}
    (tmp_path / "llms.json").write_text(json.dumps(own))
    assert WorkspaceFolder(tmp_path).llm("ollama").backend == "scripted"


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'ollama'"):
        preset("olama")
    assert (
        known_model("google/flan-t5-small") is preset("flan-t5-small") and known_model("") is None
    )


FACTS = {"title": "X", "group": "small", "backend": "scripted", "settings": {}, "about": "a"}


def test_a_file_of_presets_is_read_by_their_ids_in_its_order(tmp_path: Path) -> None:
    file = tmp_path / "presets.json"
    file.write_text(json.dumps({"y": FACTS, "x": {**FACTS, "about": "b"}}))
    read = read_presets(file)
    assert [(name, given.about) for name, given in read.items()] == [("y", "a"), ("x", "b")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "a JSON object of presets"),
        ("{", "not valid JSON"),
        (json.dumps({"x": {**FACTS, "group": "huge"}}), "'group' is wrong"),
        (json.dumps({"x": {**FACTS, "size": 3}}), "'size' is"),
    ],
)
def test_a_damaged_file_of_presets_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "presets.json"
    file.write_text(text)
    with pytest.raises(BadFileError, match=words):
        read_presets(file)
