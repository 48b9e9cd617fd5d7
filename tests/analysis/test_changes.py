"""Two runs' settings → the changes between them, in words."""

from __future__ import annotations

from typing import Any

from rallebench.analysis.changes import Change, changes
from rallebench.core.runs import RunSpec


def spec(*actions: dict[str, Any], **more: Any) -> RunSpec:
    return RunSpec("d", "chain", {"chain": {"actions": list(actions)}, **more})


SEARCH = {"kind": "retrieve", "template": "{question}", "target": "bm25", "k": 5}
READ = {"kind": "generate", "template": "Q: {question}", "target": "reader"}


def test_runs_that_were_made_alike_have_no_change() -> None:
    assert changes(spec(SEARCH, READ), spec(SEARCH, READ)) == []


def test_another_k_another_model_and_another_template_are_named_with_their_action() -> None:
    other = spec({**SEARCH, "k": 10}, {**READ, "template": "A: {question}", "target": "llm"})
    assert changes(spec(SEARCH, READ), other) == [
        Change("action 1: k", "5", "10"),
        Change("action 2: template", "Q: {question}", "A: {question}"),
        Change("action 2: target", "reader", "llm"),
    ]


def test_an_action_that_only_one_chain_has_is_one_change() -> None:
    assert changes(spec(SEARCH), spec(SEARCH, READ)) == [Change("action 2", "–", "generate reader")]


def test_another_index_behind_the_same_name_shows() -> None:
    a, b = spec(retrievers={"bm25": "print-1"}), spec(retrievers={"bm25": "print-2"})
    assert changes(a, b) == [Change("retrievers: bm25", "print-1", "print-2")]


def test_what_only_one_run_names_stands_part_by_part() -> None:
    found = changes(
        spec(backends={"llm a": "print-1"}),
        RunSpec("d", "imported", {}),
    )
    assert Change("backends: llm a", "print-1", "–") in found
