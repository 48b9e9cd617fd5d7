"""A chain written in Python equals the chain saved by the page, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_workspace import READ
from small_workspace import chain as file_content
from small_workspace import generate as saved_generate
from small_workspace import retrieve as saved_retrieve

from rallebench import RalleError, Workspace, chain, generate, identity, retrieve
from rallebench.core.types import Action, Chain
from rallebench.services.workbench import Workbench


def test_actions_are_those_of_saved_chains() -> None:
    rag = chain(retrieve("tiny", k=2), generate("titan", READ), name="read")
    assert rag == Chain(
        "read",
        (
            Action("retrieve", "{question}", target="tiny", k=2),
            Action("generate", READ, target="titan"),
        ),
    )


def test_a_chain_is_saved_as_the_page_saves_it(workspace: Path, bench: Workbench) -> None:
    from_page = bench.asking.save_chain(bench.workspace.chain("read"), "page").read_bytes()
    rag = chain(retrieve("tiny", k=2), generate("titan", READ), name="page")
    with Workspace(workspace) as ws:
        file = ws.save_chain(rag)
        assert file.read_bytes() == from_page and ws.chain("page") == rag


def test_a_saved_chain_has_the_content_that_the_format_says(workspace: Path) -> None:
    rag = chain(
        retrieve("tiny", "{question} moon", k=3),
        generate("titan", READ, max_tokens=8, stop="\n", system="Be brief.", top_p=0.9),
        identity("{response[1]}"),
        about="with all there is",
    )
    settings = {"max_tokens": 8, "stop": ["\n"], "system": "Be brief.", "top_p": 0.9}
    with Workspace(workspace) as ws:
        content = json.loads(ws.save_chain(rag, "mine").read_text())
    assert content == {
        **file_content(
            "mine",
            saved_retrieve("{question} moon", k=3, dialect="fstring"),
            saved_generate(dialect="fstring", generation=settings),
            {"kind": "identity", "template": "{response[1]}", "dialect": "fstring"},
        ),
        "about": "with all there is",
    }


def test_a_chain_is_read_by_name_by_file_and_with_changes(workspace: Path) -> None:
    with Workspace(workspace) as ws:
        assert ws.chain("read") == ws.chain(workspace / "chains" / "read.json")
        changed = ws.chain("read", llm="echo", k=5, temperature=0.5)
        assert changed.llms == ("echo",) and changed.depth == 5
        assert changed.actions[1].generation == {"temperature": 0.5}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: chain(), "'actions' is wrong"),
        (lambda: chain(*[identity("x")] * 9), "'actions' is wrong"),
        (lambda: chain(retrieve("tiny", k=0)), "'actions.0.k' is wrong"),
        (lambda: chain(generate("titan", "x", max_tokens=-1)), "max_tokens is -1; it must be"),
        (lambda: chain(generate("titan", "x", temperature=9)), "temperature is 9; it must be"),
        (lambda: chain(identity("x"), name=""), "'name' is wrong"),
    ],
)
def test_a_setting_that_cannot_be_is_named_at_once(make: object, words: str) -> None:
    with pytest.raises(RalleError, match=words):
        make()  # type: ignore[operator]


def test_a_chain_that_could_not_run_is_refused_before_a_model_is_loaded(workspace: Path) -> None:
    with Workspace(workspace) as ws:
        with pytest.raises(RalleError, match="Action 1 of 'chain': there is no retriever 'tinny'"):
            ws.ask(chain(retrieve("tinny")), "Which moon?")
        with pytest.raises(RalleError, match=r"reads response\[1\]"):
            ws.ask(chain(generate("titan", "{response[1]}")), "Which moon?")
