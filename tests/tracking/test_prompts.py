"""Templates in the prompt registry: a version per text, linked from the run, never in the way of a run."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_folders import CHAIN, LONG_TEMPLATE, spec

from rallebench.core.types import Action, Chain
from rallebench.engine.store import RunFolder
from rallebench.tracking import prompts
from rallebench.tracking.connection import MlflowStore
from rallebench.tracking.prompts import register, templates
from rallebench.tracking.runs import log_run

NewRun = Callable[..., RunFolder]


def chain(name: str, *texts: str) -> Chain:
    """A chain of generate actions."""
    return Chain(name, tuple(Action("generate", text, target="m") for text in texts))


def versions(client: Any, experiment_id: str, made: Chain) -> list[tuple[str, str]]:
    """(prompt, version) of every template."""
    store = MlflowStore("here", client, experiment_id)
    linked = json.loads(register(store, made)["mlflow.linkedPrompts"])
    return [(prompt["name"], prompt["version"]) for prompt in linked]


def test_a_run_names_its_prompts_and_texts(workspace: Path, client: Any, new_run: NewRun) -> None:
    changed = spec()["spec"]
    changed["settings"]["chain"] = {**CHAIN, "name": "whole text"}
    run = client.get_run(log_run(new_run(spec=changed).path, workspace=workspace))
    linked = json.loads(run.data.tags["mlflow.linkedPrompts"])
    assert linked == [
        {"name": "whole-text.1", "version": "1"},
        {"name": "whole-text.2", "version": "1"},
    ]
    made = client.get_prompt_version("whole-text.2", 1)
    assert made.template == LONG_TEMPLATE
    assert (made.tags["rallebench.kind"], made.tags["rallebench.dialect"]) == (
        "generate",
        "fstring",
    )
    listed = client.search_prompts(f'experiment_id = "{run.info.experiment_id}"', max_results=100)
    assert "whole-text.2" in {prompt.name for prompt in listed}


def test_a_new_version_is_made_only_for_a_text_that_was_never_there(client: Any) -> None:
    assert versions(client, "0", chain("v", "A {question}", "B")) == [("v.1", "1"), ("v.2", "1")]
    assert versions(client, "0", chain("v", "A! {question}", "B")) == [("v.1", "2"), ("v.2", "1")]
    assert versions(client, "0", chain("v", "A {question}", "B")) == [("v.1", "1"), ("v.2", "1")]


def test_a_prompt_is_listed_in_every_experiment_that_uses_it(client: Any) -> None:
    for experiment in ("7", "17", "7"):
        versions(client, experiment, chain("shared", "A"))
    assert client.get_prompt("shared.1").tags["_mlflow_experiment_ids"] == ",7,17,"


def test_runs_that_begin_together_share_a_prompt(
    client: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    versions(client, "7", chain("together", "A"))
    known, looks = client.get_prompt, iter([True, False])
    monkeypatch.setattr(
        client, "get_prompt", lambda name: None if next(looks, False) else known(name)
    )
    assert versions(client, "17", chain("together", "A")) == [("together.1", "1")]
    assert client.get_prompt("together.1").tags["_mlflow_experiment_ids"] == ",7,17,"
    assert not caplog.records


def test_identities_empty_templates_and_those_beyond_mlflows_limit_are_left_out() -> None:
    made = chain("c", "", "x" * 100_001, "kept")
    made = replace(made, actions=(*made.actions, Action("identity", "{response[0]}")))
    assert [(name, text) for name, text, _ in templates(made)] == [("c.3", "kept")]


def test_a_server_without_prompts_is_told_once_and_let_be(caplog: pytest.LogCaptureFixture) -> None:
    class Old:
        asked = 0

        def get_prompt(self, name: str) -> None:
            self.asked += 1
            raise RuntimeError("no prompts here")

    server = Old()
    store = MlflowStore("http://me:pw@old.example", server, "1")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert register(store, chain("c", "text")) == {}
    prompts._without_prompts.discard(store.uri)
    assert server.asked == len(caplog.records) == 1
    assert caplog.messages[0].startswith(
        "The prompt registry of MLflow at http://old.example cannot be used"
    )
