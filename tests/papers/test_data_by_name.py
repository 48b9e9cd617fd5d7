"""Every suite accepts its questions as the name of a dataset, like every other verb, or as a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_workspace import RECORDS, CommandLine, add_llm, make_workspace, write_lines

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.experiments import SUITES
from rallebench.workspace.paths import WorkspaceFolder

GAME = {
    "id": 0,
    "query": "Where was it?",
    "answer": "Tampa",
    "positive": ["It was in Tampa."] * 6,
    "negative": ["Nothing."] * 6,
}
SUMMARY = {"ID": "a", "questions": "谁？", "answers": "甲", "news1": "甲。"}
ARTICLE = {"id": "t", "title": "Titan", "content": "Titan is a moon.", "question": "What is Titan?"}
REQUESTS: dict[str, tuple[str, ...]] = {
    "barag-modes": ("data=tiny-qa", "index=tiny", "modes=baseline,naive"),
    "barag-curve": ("data=tiny-qa", "index=tiny"),
    "rgb-noise": ("data=games", "noise=0"),
    "rgb-rejection": ("data=games",),
    "rgb-testbed": ("data=tiny-qa", "index=tiny"),
    "crud-qa1": ("data=news", "index=tiny"),
    "kilt-nq": ("data=tiny-qa", "retriever=tiny"),
    "kilt": ("datasets=nq", "file=tiny-qa", "retriever=tiny"),
}


@pytest.fixture
def workspace(workspace: Path) -> Path:
    for name, row in (("games", GAME), ("news", SUMMARY), ("articles", ARTICLE)):
        write_lines(workspace / "datasets" / f"{name}.jsonl", [row])
    return workspace


def parts(cli: CommandLine, name: str, pairs: tuple[str, ...], run: str) -> Any:
    llm = "titan" if name != "rgb-testbed" else ""
    report = cli.report(name, *pairs, llm=llm, run=run)
    return [(part["label"], part["n"], part["metrics"]) for part in report["parts"]]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_name_and_the_path_of_its_file_give_the_same_run(cli: CommandLine, name: str) -> None:
    paths = WorkspaceFolder(cli.workspace).dataset_paths()
    split = (pair.partition("=") for pair in REQUESTS[name])
    by_path = tuple(f"{key}={paths.get(value, value)}" for key, _, value in split)
    assert by_path != REQUESTS[name]
    first = parts(cli, name, REQUESTS[name], "named")
    assert first == parts(cli, name, by_path, "by path")
    assert first[0][1] == (len(RECORDS) if "tiny-qa" in str(REQUESTS[name]) else 1)


def test_articles_of_a_judge_are_taken_by_name(cli: CommandLine) -> None:
    texts = {"title": "Titan", "question": "What is Titan?", "answer": "A moon."}
    run = {**texts, "truthfulness": 5, "relevance": 5}
    runs = write_lines(cli.workspace / "mine.jsonl", [run])
    add_llm(cli.workspace, "judge", default="5 5")
    found = cli.report("barag-agreement", f"runs={runs}", "articles=articles", llm="judge")
    assert [part["n"] for part in found["parts"]] == [1]


@pytest.mark.parametrize(
    "name", [name for name in SUITES.names() if "data" in SUITES.entry(name).form]
)
def test_a_name_that_nothing_has_is_a_sentence_of_known_sets(cli: CommandLine, name: str) -> None:
    entry = SUITES.entry(name)
    llm = "titan" if entry.traits.get("needs_llm", True) else ""
    where = ("index", "corpus") if name == "crud-grid" else ("index", "retriever")
    pairs = [f"{key}=tiny" for key in where if key in entry.form]
    ran = cli.suite(name, "data=nowhere", *pairs, llm=llm)
    words = ("nowhere", "dataset", "tiny-qa")
    assert ran.code == 2 and all(word in ran.last for word in words), ran.last


def test_names_are_resolved_before_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = WorkspaceFolder(make_workspace(tmp_path / "workspace"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny-qa").mkdir()
    (tmp_path / "folder").mkdir()
    assert workspace.data("tiny-qa", "x") == workspace.dataset("tiny-qa")[1]
    assert workspace.data("folder", "x") == Path("folder")
    with pytest.raises(
        UsageError,
        match=r"The setting data is empty: it takes the articles, or the name of a dataset\.",
    ):
        workspace.data(" ", "the articles")
    with pytest.raises(
        NotFoundError, match="neither as a path nor as a dataset; it should be the articles"
    ):
        workspace.data("nowhere", "the articles")
