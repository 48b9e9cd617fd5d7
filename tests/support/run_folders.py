"""Run folders made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.files import write_json, write_text
from rallebench.core.types import (
    Episode,
    Generate,
    Hit,
    Message,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.run_files import RunDescription
from rallebench.engine.store import REPORT, SCORES, RunFolder

FAILURE = "my-llm failed: the endpoint closed the connection"
LONG_TEMPLATE = (
    "Answer from the passages.\n" + "Be exact. " * 900 + "\n{response[0]}\n\nQuestion: {question}"
)
TEMPLATES = ("{question}", LONG_TEMPLATE)
STARTED = 1_760_000_000.0

CHAIN = {
    "format": "rallebench-chain/1",
    "name": "read two",
    "actions": [
        {
            "kind": "retrieve",
            "template": TEMPLATES[0],
            "dialect": "fstring",
            "target": "tiny-bm25",
            "k": 2,
        },
        {
            "kind": "generate",
            "template": TEMPLATES[1],
            "dialect": "fstring",
            "target": "my-llm",
            "generation": {"max_tokens": 20, "stop": ["\n"]},
        },
    ],
}


def episode(qid: str, answer: str = "Ada Lovelace", error: str = "") -> Episode:
    """A question with 0.25 s of retrieval and 1.5 s of answering; a failed one only retrieved."""
    hits = tuple(
        Hit(
            Passage(f"d{rank}", f"Passage {rank} about {qid}.", f"Title {rank}", f"p{rank}"),
            2.0 - rank,
        )
        for rank in (1, 2)
    )
    found = Step(
        Retrieve("tiny-bm25", f"question {qid}?", 2),
        Reply("; ".join(h.passage.text for h in hits), hits),
        0.25,
    )
    if error:
        return Episode(qid, "chain", (found,), None, error)
    asked = Generate("my-llm", (Message("user", f"prompt of {qid}"),), max_tokens=20, stop=("\n",))
    said = Step(asked, Reply(answer, prompt_tokens=40, completion_tokens=3), 1.5, cached=True)
    return Episode(qid, "chain", (found, said), Outcome(answer))


def described(name: str, content: Mapping[str, Any]) -> RunDescription:
    """The description of a new run with this content of ``run.json``."""
    return RunDescription.from_json({**content, "name": name}, path=Path("run.json"))


def spec(**changes: Any) -> dict[str, Any]:
    """``run.json`` without its name and format."""
    value: dict[str, Any] = {
        "fingerprint": "0123456789ab",
        "spec": {
            "dataset": "tiny-qa",
            "workflow": "chain",
            "settings": {
                "chain": CHAIN,
                "backends": {"retriever tiny-bm25": "bm25:aa", "llm my-llm": "scripted:bb"},
                "dataset_sha256": "cc" * 32,
            },
            "limit": None,
            "seed": 7,
        },
        "metrics": ["em", "recall@5"],
        "batch_size": 20,
        "versions": {"python": "3.11", "bm25s": "0.3.16"},
    }
    return {**value, **changes}


def mean(value: float | None, n: int) -> dict[str, Any]:
    """A metric of a report."""
    return {"value": value, "low": value and value - 0.1, "high": value and value + 0.1, "n": n}


def report(n: int, errors: int, **metrics: Any) -> dict[str, Any]:
    """``report.json``."""
    return {
        "n": n,
        "n_done": n,
        "n_errors": errors,
        "complete": True,
        "seconds": 12.5,
        "seconds_per_question": 12.5 / n,
        "steps": 2 * n,
        "steps_from_memory": 1,
        "prompt_tokens": 40 * n,
        "completion_tokens": 3 * n,
        "metrics": metrics,
    }


def append(folder: RunFolder, episodes: Sequence[Episode], after: float = 0.0) -> None:
    """Append episodes as a session of the run would."""
    with folder.log() as log:
        for number, one in enumerate(episodes, 1):
            folder.append(log, one, f"{STARTED:.3f}", after + number * 2.0)


def make_run(
    runs: Path, name: str, n: int = 6, failed: Sequence[int] = (2,), **changes: Any
) -> RunFolder:
    """A finished run of ``n`` questions; those with numbers in ``failed`` failed."""
    records = [
        {
            "id": f"q{i}",
            "input": f"Who is number {i}?",
            "output": [{"answer": "Ada Lovelace"}, {"answer": "Ada"}],
        }
        for i in range(n)
    ]
    folder = RunFolder.create(runs, described(name, spec(**changes)), records)
    append(folder, [episode(f"q{i}", error=FAILURE if i in failed else "") for i in range(n)])
    scores = [
        {"qid": f"q{i}", "metric": m, "value": None if i in failed else 1.0}
        for i in range(n)
        for m in ("em", "recall@5")
    ]
    write_text(folder.path / SCORES, "".join(json.dumps(score) + "\n" for score in scores))
    good = n - len(failed)
    value = 1.0 if good else None
    write_json(
        folder.path / REPORT,
        report(n, len(failed), em=mean(value, good), **{"recall@5": mean(value, good)}),
    )
    for file in ("output.jsonl", "output_reduced.jsonl", "prompt.txt"):
        write_text(folder.path / file, f"content of {file}\n")
    write_json(folder.path / "results.json", {"downstream": {"em": value}})
    write_json(folder.path / "config.json", {"chain_config": {}, "num_evaluate": n})
    return folder
