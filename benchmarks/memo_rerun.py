"""Speed-up of running a chain again after only its last prompt was edited.

1,000 questions are asked of a chain of three actions (retrieve with the starter's BM25, a first
model, a last model) with an empty memory on disk; then the last prompt is edited and all are asked
again. The first model is what makes a full run slow:

* ``--first scripted`` (default): a scripted model that takes ``--delay`` seconds for a batch of 20;
  0.5 s is 25 ms a question, which few language models reach on a graphics card and none on a processor;
* ``--first reader``: the built-in extractive reader, which reads the five passages for real.

The last model is scripted and takes no time, so that the re-run shows what the memory itself costs;
it is really asked in both runs. A re-run is as slow as its last model, whatever is remembered.
"""

from __future__ import annotations

import tempfile
from operator import truediv
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took
from loop_overhead import (
    ANSWER,
    BATCH,
    RETRIEVER,
    REWRITE,
    answers_of,
    by_the_runner,
    directly,
    few_words,
    open_bm25,
    three_actions,
)

from rallebench.core.backends import Backends
from rallebench.engine.reply_cache import ReplyCache
from rallebench.llms import LLMS
from rallebench.llms.scripted import Scripted, request_text

READER = "extractive-reader"
EDITED = ANSWER.replace("in 5 words or less", "in a few words")
READ = ANSWER.replace("{response[1]}", "{question}?")

TARGET = 10.0


class Watched:
    """A backend that counts what it is asked; everything else is the backend's own."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.requests = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def search(self, queries: Any, k: int) -> Any:
        """Count and search."""
        self.requests += len(queries)
        return self._backend.search(queries, k)

    def generate(self, batch: Any) -> Any:
        """Count and generate."""
        self.requests += len(batch)
        return self._backend.generate(batch)


def first_model(kind: str, delay: float) -> tuple[str, str, Any]:
    """(the first model in words, its prompt, the model)."""
    if kind == "reader":
        return "the extractive reader", READ, LLMS[READER]("first")
    return (
        f"scripted, {delay:g} s per batch of {BATCH}",
        REWRITE,
        Scripted(few_words, "first", delay=delay),
    )


def measure(folder: Path, questions: int, rounds: int, kind: str, delay: float) -> Report:
    """A full run and, after an edit of the last prompt, another; a new memory in every round."""
    records = _report.starter_records(questions)
    about, prompt, model = first_model(kind, delay)
    first, last, retriever = Watched(model), Scripted(few_words, "last"), Watched(open_bm25(folder))
    backends = Backends({RETRIEVER: retriever}, {"first": first, "last": last})
    full: list[float] = []
    again: list[Took] = []
    reasked = missing = wrong = 0
    texts = [record["input"] for record in records]
    direct, expected = _report.timed(
        lambda: directly(texts, retriever, first, last, prompt, EDITED)
    )
    edited = {request_text(request) for request in last.requests}
    for number in range(rounds):
        reply_cache = ReplyCache(folder / f"memo-{number}.sqlite")
        took, _ = by_the_runner(
            folder, f"full-{number}", three_actions(prompt), records, backends, reply_cache
        )
        full.append(took.wall)
        requests, calls = first.requests + retriever.requests, last.calls
        chain = three_actions(prompt, EDITED)
        took, run = by_the_runner(folder, f"again-{number}", chain, records, backends, reply_cache)
        again.append(took)
        reasked += first.requests + retriever.requests - requests
        missing += len(edited - {request_text(request) for request in last.requests[calls:]})
        wrong += sum(a != b for a, b in zip(answers_of(run, records), expected, strict=True))
        reply_cache.close()
    seconds, each = [took.wall for took in again], 1000 / questions
    return Report(
        "memo_rerun",
        {
            "questions": questions,
            "retriever": RETRIEVER,
            "first model": about,
            "last model": "scripted, no delay",
        },
        [
            Measure(
                "speed-up by the memory", "times", list(map(truediv, full, seconds)), least=TARGET
            ),
            Measure("full run", "s", full, [direct.wall], "direct calls"),
            Measure("re-run", "s", seconds, [direct.wall], "direct calls"),
            Measure("re-run, per question", "ms", [took.wall * each for took in again]),
            Measure("its processor time", "ms", [took.processor * each for took in again]),
        ],
        [
            Fact("earlier steps asked again", reasked, 0),
            Fact("edited prompts that were not asked", missing, 0),
            Fact("answers that differ from the direct calls'", wrong, 0),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument(
        "--first",
        choices=("scripted", "reader"),
        default="scripted",
        help="the slow first model; default: scripted",
    )
    flags.add_argument(
        "--delay",
        type=float,
        default=0.5,
        metavar="S",
        help="of the scripted model, per batch; default: 0.5",
    )
    arguments = flags.parse_args()
    questions, rounds, delay = 1000, arguments.rounds, arguments.delay
    if arguments.quick:
        questions, rounds, delay, arguments.first = 60, 1, 0.05, "scripted"
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), questions, rounds, arguments.first, delay).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
