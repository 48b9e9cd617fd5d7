"""Published questions are answered end to end over a local corpus by an oracle that searches before it finishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from acted import act

from rallebench.acting import make_environment
from rallebench.cli import main
from rallebench.datasets.r_eval import read_r_eval
from rallebench.workspace import Workspace

pytestmark = pytest.mark.shared_data
QUESTIONS = 6


@pytest.mark.parametrize("name", ["hotpotqa_dev", "fever_paper_dev"])
def test_an_oracle_finds_the_page_of_each_question_and_is_scored_right(shared_data: Path, tmp_path: Path, name: str) -> None:
    asked = []
    for example in read_r_eval(shared_data / "r-eval-ish" / f"{name}.jsonl"):
        asked.append(example)
        if len(asked) == QUESTIONS:
            break
    lines = [f"{n}\t{e.question.text} It is known: {e.gold.answers[0]}.\tPage {n}" for n, e in enumerate(asked)]
    (tmp_path / "corpus.tsv").write_text("id\ttext\ttitle\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(record_of(e)) + "\n" for e in asked), encoding="utf-8")
    (tmp_path / "llms.json").write_text(json.dumps({"oracle": {"backend": "scripted", "settings": {"replies": oracle(asked), "default": "Thinking."}}}))
    place = ["--workspace", str(tmp_path)]
    assert main(["index", "--corpus", str(tmp_path / "corpus.tsv"), "--name", "own", "--kind", "bm25", *place]) == 0
    assert main(["import", str(tmp_path / "own.jsonl"), "--kind", "dataset", "--name", "own", *place]) == 0
    run = ["run", "--workflow", "react", "--env", "wikipedia", "--retriever", "own", "--llm", "oracle", "--dataset", "own", "--name", "r"]
    assert main([*run, "--set", "shots=0", "--metrics", "em,f1", *place]) == 0
    report = json.loads((tmp_path / "runs" / "r" / "report.json").read_text(encoding="utf-8"))
    assert report["n"] == QUESTIONS and report["n_errors"] == 0
    assert report["metrics"]["em"]["mean"] == report["metrics"]["f1"]["mean"] == 1.0
    made = make_environment(Workspace(tmp_path), "wikipedia", {"retriever": "own"})
    assert act(made.make(), "Search[Page 3]").startswith(asked[3].question.text.strip()[:40])


def record_of(example: Any) -> dict[str, Any]:
    return {**{key: value for key, value in example.record.items() if key not in ("id", "output")}, "outputs": list(example.gold.answers)}


def oracle(asked: list[Any]) -> dict[str, str]:
    """Replies: the first action searches the question, the second finishes with its gold."""
    import re

    found = {}
    for example in asked:
        text = re.escape(example.question.text)
        found[rf"Question: {text}[\s\S]*\nAction 2:$"] = f"Finish[{example.gold.answers[0]}]"
        found[rf"Question: {text}[\s\S]*\nAction 1:$"] = f"Search[{example.question.text}]"
    return found
