"""Published questions are answered end to end over a local corpus by an oracle that searches before it finishes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.events import complete
from rallebench.core.runs import Backends
from rallebench.datasets.reading import read_examples, read_questions
from rallebench.engine import loop
from rallebench.metrics import METRICS
from rallebench.services.workbench import Workbench

pytestmark = pytest.mark.shared_data
QUESTIONS = 6


@pytest.mark.parametrize("name", ["hotpotqa_dev", "fever_paper_dev"])
def test_an_oracle_finds_the_page_of_each_question_and_is_scored_right(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    asked = []
    for example in read_examples(shared_data / "r-eval-ish" / f"{name}.jsonl"):
        asked.append(example)
        if len(asked) == QUESTIONS:
            break
    lines = [
        f"{n}\t{e.question.text} It is known: {e.gold.answers[0]}.\tPage {n}"
        for n, e in enumerate(asked)
    ]
    (tmp_path / "corpus.tsv").write_text(
        "id\ttext\ttitle\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )
    (tmp_path / "own.jsonl").write_text(
        "".join(json.dumps(record_of(e)) + "\n" for e in asked), encoding="utf-8"
    )
    (tmp_path / "llms.json").write_text(
        json.dumps(
            {
                "oracle": {
                    "backend": "scripted",
                    "settings": {"replies": oracle(asked), "default": "Thinking."},
                }
            }
        )
    )
    bench = Workbench(tmp_path)
    try:
        *_, manifest = bench.data.build_index("own", tmp_path / "corpus.tsv", "bm25")
        made = bench.data.import_dataset("own", tmp_path / "own.jsonl")
        agent = bench.asking.agent(
            "react", "wikipedia", "oracle", {"shots": 0, "env.retriever": "own"}
        )
        with bench.models.lease("the test") as lease:
            backends = complete(lease.load_for([agent.llm], agent.retrievers))
            assert isinstance(backends, Backends) and manifest and made.form == "r-eval"
            ready, _ = agent.flow.open(backends)
            questions = read_questions(made.path)
            texts = (example.question for example in questions)
            run = loop.run(agent.flows(ready), texts, ready, workflow="react")
            episodes = {episode.qid: episode for episode in run}
    finally:
        bench.close()
    assert len(episodes) == QUESTIONS
    for one in questions:
        episode = episodes[one.question.qid]
        assert (
            not episode.error
            and METRICS["em"](episode, one.gold) == METRICS["f1"](episode, one.gold) == 1.0
        )
        seen = [step.reply.text for step in episode.steps if "It is known: " in step.reply.text]
        assert seen and one.gold.answers[0] in seen[0]


def record_of(example: Any) -> dict[str, Any]:
    return {
        **{key: value for key, value in example.record.items() if key not in ("id", "output")},
        "outputs": list(example.gold.answers),
    }


def oracle(asked: list[Any]) -> dict[str, str]:
    """Replies: the first action searches the question, the second finishes with its gold."""
    found = {}
    for example in asked:
        text = re.escape(example.question.text)
        found[rf"Question: {text}[\s\S]*\nAction 2:$"] = f"Finish[{example.gold.answers[0]}]"
        found[rf"Question: {text}[\s\S]*\nAction 1:$"] = f"Search[{example.question.text}]"
    return found
