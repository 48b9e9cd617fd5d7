"""Output for people and for programs: JSON with ``--json`` alone, standard input, steps of a build."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from pathlib import Path

import pytest
from small_workspace import CommandLine

from rallebench.gui import app
from rallebench.workspace.indexes.build import build_index
from rallebench.workspace.indexes.recipes import index_recipe


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


PLAIN = [
    "list retrievers",
    "index --corpus corpus.tsv --name plain --kind bm25",
    "search --index tiny Titan",
    "score --run scored",
    "track scored",
    "pick --dataset tiny-qa --index tiny --number 2 --output picked.jsonl",
    "models ask echo hello",
]


@pytest.mark.parametrize("words", PLAIN)
def test_without_json_a_verb_prints_words(
    words: str, cli: CommandLine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    if "scored" in words:
        cli.json("run --chain read --dataset tiny-qa --limit 2 --name scored --no-mlflow")
    ran = cli(words)
    assert ran.code == 0 and ran.out.strip()
    assert not is_json(ran.out)


def test_predictions_are_scored_in_words(cli: CommandLine, workspace: Path) -> None:
    gold = workspace / "datasets" / "tiny-qa.jsonl"
    ran = cli(f"score --gold {gold} --guess {gold}")
    assert ran.code == 0 and not is_json(ran.out)
    assert "downstream.em" in ran.out


def test_search_reads_queries_from_standard_input(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = io.TextIOWrapper(io.BytesIO("Titan\r\nzwölf Flüsse\n".encode()))
    monkeypatch.setattr(sys, "stdin", lines)
    answers = cli.json("search --index tiny --queries - -k 1")
    assert [answer["query"] for answer in answers] == ["Titan", "zwölf Flüsse"]


def test_standard_input_that_is_no_text_is_refused(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Titan \xff\xfe")))
    ran = cli("search --index tiny --queries -")
    assert ran.code == 2 and ran.last.startswith("Standard input is not UTF-8 (byte 6)")


@pytest.mark.parametrize("kind", ["bm25", "flat"])
def test_indexing_is_announced_before_anything_is_loaded_for_it(
    kind: str, workspace: Path, tmp_path: Path
) -> None:
    recipe = index_recipe(workspace / "corpus.tsv", kind, encoder="hashing")
    steps = [
        (event.message, event.done) for event in build_index(tmp_path / "indexes", "new", recipe)
    ]
    noun = "passages" if kind == "bm25" else "vectors"
    announced = steps.index((f"indexing {noun}", 0))
    assert steps[announced + 1] == (f"indexing {noun}", 0)  # the index's own first step


def test_a_free_port_is_taken_for_zero() -> None:
    port = app.check_address("127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", port)):
        pass
    assert port > 0


def test_the_page_is_opened_past_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_PROXY", "intranet")
    monkeypatch.setenv("no_proxy", "")
    app.reach_without_proxy("192.168.0.7")
    own = [set(os.environ[name].split(",")) for name in ("NO_PROXY", "no_proxy")]
    assert own[0] == {"intranet", "127.0.0.1", "localhost", "::1", "192.168.0.7"}
    assert own[1] == own[0] - {"intranet"}
