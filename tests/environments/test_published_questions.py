"""Published questions are answered over a local corpus by an oracle that searches before it finishes."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from building import built
from small_workspace import CommandLine, read_lines, scripted, write_lines

pytestmark = pytest.mark.shared_data
QUESTIONS = 6


def known(row: dict[str, Any]) -> str:
    return f"It is known: {row['outputs'][0]}."


def acts(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Replies of an oracle: it searches the question, then finishes with the gold answer."""
    replies = {}
    for row in rows:
        question = rf"Question: {re.escape(row['input'])}[\s\S]*"
        replies[rf"{question}\nAction 1:$"] = f"Search[{row['input']}]"
        replies[rf"{question}\nAction 2:$"] = f"Finish[{row['outputs'][0]}]"
    return replies


@pytest.mark.parametrize("name", ["hotpotqa_dev", "fever_paper_dev"])
def test_an_oracle_finds_pages_and_is_right(shared_data: Path, cli: CommandLine, name: str) -> None:
    rows = list(islice(read_lines(shared_data / "r-eval-ish" / f"{name}.jsonl"), QUESTIONS))
    space = cli.workspace
    pages = (f"{n}\t{row['input']} {known(row)}\tPage {n}\n" for n, row in enumerate(rows))
    (space / "own.tsv").write_text("id\ttext\ttitle\n" + "".join(pages), encoding="utf-8")
    built(space / "indexes", "own", space / "own.tsv", "bm25")
    oracle = {"oracle": {"replies": acts(rows), "default": "Thinking."}}
    (space / "llms.json").write_text(json.dumps(scripted(oracle)))
    dataset = write_lines(space / "own.jsonl", rows)
    words = "run --workflow react --env wikipedia --set env.retriever=own --set shots=0"
    report = cli.json(
        f"{words} --llm oracle --no-mlflow --name n --metrics em,f1 --dataset", dataset
    )
    assert (report["n"], report["n_errors"]) == (QUESTIONS, 0)
    assert report["metrics"]["em"]["value"] == report["metrics"]["f1"]["value"] == 1.0
    observed = {
        episode["qid"]: [step["reply"]["text"] for step in episode["steps"]]
        for episode in cli.episodes("n")
    }
    assert all(any(known(row) in text for text in observed[row["_id"]]) for row in rows)
