"""Seconds for RGB's noise test over 210 records at five shares of noise, with a scripted model: what the project itself costs.

The records are made of the words of the starter's corpus, as long as RGB's. A second run changes one of the five shares
and must ask for that one alone. With ``--data FOLDER`` a testbed is made of a set in KILT's form and an index over its
corpus (``NAME_kilt.jsonl``, ``NAME_corpus.tsv``, ``--set NAME``): of its first 2,000 questions those with five positives and more, so that the
shares of noise differ. The first 300 are answered by the embedded reader at the five shares.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

RECORDS, QUICK, READ, FEW = 210, 12, 300, 2
LOOKED_AT = 2000
SHARES, CHANGED = (0.0, 0.2, 0.4, 0.6, 0.8), (0.0, 0.2, 0.4, 0.6, 1.0)
OURS, READING = 120.0, 900.0
"""Targets in seconds."""
MODEL = "echo"


def made_up(count: int, seed: int = _report.SEED) -> list[dict[str, Any]]:
    """RGB's records: eight positives that hold the answer and eight negatives, 60 words each."""
    drawn = random.Random(seed)
    words = sorted({word for word in _report.starter_words() if word.isalpha()})

    def text() -> str:
        return " ".join(drawn.choices(words, k=60))

    return [
        {
            "id": number,
            "query": f"{text()[:60]} {number}?",
            "answer": f"answer{number}",
            "positive": [f"{text()} answer{number} {text()[:40]}." for _ in range(8)],
            "negative": [f"{text()}." for _ in range(8)],
        }
        for number in range(count)
    ]


def directly(path: Path) -> dict[tuple[float, str], bool]:
    """(share, record) → right: documents, prompt, model and label in plain Python."""
    from rallebench.core.types import Generate, Passage, Question, Reply
    from rallebench.llms.scripted import Scripted, echo
    from rallebench.papers.rgb import scoring, testbed
    from rallebench.papers.rgb.records import base_documents, read_records

    model, prompt = Scripted(echo, MODEL), testbed.read_prompt("en")
    right: dict[tuple[float, str], bool] = {}
    for share in SHARES:
        for record in read_records(path).records:
            texts = base_documents(record, 5, share).texts
            question = Question(
                record.id,
                record.query,
                tuple(Passage(str(n), text) for n, text in enumerate(texts)),
            )
            (reply,) = model.generate(
                [Generate(MODEL, testbed.messages(prompt, question), max_tokens=256)]
            )
            assert isinstance(reply, Reply)
            right[share, record.id] = scoring.is_right(
                scoring.label_prediction(reply.text, record.required)
            )
    return right


def by_the_suite(
    workbench: Any, data: Path, name: str, shares: tuple[float, ...], **more: Any
) -> Any:
    """The result of the suite."""
    from rallebench.core.events import complete
    from rallebench.core.experiments import ExperimentRequest
    from rallebench.core.runs import RunOptions
    from rallebench.experiments import SUITES

    settings = SUITES.settings(
        "rgb-noise", {"data": str(data), "noise": ",".join(map(str, shares))}
    )
    request = ExperimentRequest(
        workbench.workspace,
        more.get("llm", MODEL),
        settings,
        more.get("limit"),
        kind="rgb-noise",
        name=name,
    )
    return complete(workbench.experiments.run(request, RunOptions(track=False)))


def measure(
    folder: Path, count: int, rounds: int, most: float | None
) -> tuple[list[Measure], list[Fact]]:
    """The five shares by the suite and in plain Python, then with one share changed."""
    from rallebench.core.entries import LLMEntry
    from rallebench.services.workbench import Workbench

    data = folder / "en.jsonl"
    data.write_text(
        "".join(json.dumps(record) + "\n" for record in made_up(count)), encoding="utf-8"
    )
    ours, plain, again = [], [], []
    wrong = asked_twice = 0
    for number in range(rounds):
        workbench = Workbench(folder / f"workspace-{number}")
        workbench.workspace.save_llm(MODEL, LLMEntry(backend="scripted", settings={"echo": True}))
        took, finished = _report.timed(partial(by_the_suite, workbench, data, "r", SHARES))
        alone, expected = _report.timed(lambda: directly(data))
        model = workbench.models.backends.llms[MODEL]
        calls = getattr(model, "calls")  # noqa: B009
        second, _ = _report.timed(partial(by_the_suite, workbench, data, "r", CHANGED))
        asked_twice += getattr(model, "calls") - calls - count  # noqa: B009
        right = {
            (share, qid): bool(value)
            for share, run in zip(SHARES, finished.runs)
            for qid, value in run.values["all_rate"].items()
        }
        wrong += sum(right[key] != value for key, value in expected.items()) + abs(
            len(right) - len(expected)
        )
        ours.append(took.processor)
        plain.append(alone.processor)
        again.append(second.processor)
        workbench.close()
    each = [seconds / (count * len(SHARES)) * 1000 for seconds in ours]
    return [
        Measure(
            "RGB at five shares of noise, processor", "s", ours, plain, "plain Python", most=most
        ),
        Measure("an answer of it", "ms", each),
        Measure(
            "a second run that changes one share, processor", "s", again, ours, "the first run"
        ),
    ], [
        Fact("labels that differ from plain Python's", wrong, 0),
        Fact("prompts asked again by the second run", asked_twice, 0),
    ]


def read_by_the_reader(
    folder: Path, data: Path, name: str, count: int, most: float | None
) -> tuple[list[Measure], list[str]]:
    """Index, testbed and five shares, by the clock."""
    import time

    from rallebench.core.events import complete
    from rallebench.core.experiments import ExperimentRequest
    from rallebench.core.runs import RunOptions
    from rallebench.experiments import SUITES
    from rallebench.services.workbench import Workbench

    workbench = Workbench(folder / "reading")
    started, used = time.perf_counter(), time.process_time()
    for _ in workbench.data.build_index("bed", data / f"{name}_corpus.tsv", "bm25"):
        pass
    settings = SUITES.settings(
        "rgb-testbed", {"data": str(data / f"{name}_kilt.jsonl"), "index": "bed", "positives": "5"}
    )
    request = ExperimentRequest(
        workbench.workspace, "", settings, LOOKED_AT, kind="rgb-testbed", name="bed"
    )
    built = complete(workbench.experiments.run(request, RunOptions(track=False)))
    building = time.perf_counter() - started
    noise = by_the_suite(
        workbench, built.folder, "read", SHARES, llm="extractive-reader", limit=count
    )
    whole, processor = time.perf_counter() - started, time.process_time() - used
    rates = ", ".join(
        f"{part.request.label} {part.mean('all_rate'):.3f} (n = {len(part.episodes)})"
        for part in noise.runs
    )
    workbench.close()
    return [
        Measure(
            f"{name}: testbed of {count} questions at five shares, the embedded reader",
            "s",
            [whole],
            most=most,
        ),
        Measure(f"{name}: its processor time", "s", [processor]),
        Measure(f"{name}: index and testbed of it", "s", [building]),
    ], [f"right: {rates}"]


def main(arguments: list[str] | None = None) -> int:
    """See the module's docstring."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="also make a testbed of FOLDER's set and have it read",
    )
    flags.add_argument(
        "--set", default="newwiki", metavar="NAME", help="of FOLDER, default newwiki"
    )
    args: argparse.Namespace = flags.parse_args(arguments)
    count, rounds = (QUICK, 1) if args.quick else (RECORDS, args.rounds)
    with tempfile.TemporaryDirectory() as folder:
        figures, facts = measure(Path(folder), count, rounds, None if args.quick else OURS)
        notes: list[str] = []
        if args.data:
            size, most = (FEW, None) if args.quick else (READ, READING)
            more, notes = read_by_the_reader(Path(folder), args.data, args.set, size, most)
            figures += more
    return Report("suites", {"records": count, "shares": len(SHARES)}, figures, facts, notes).tell(
        args
    )


if __name__ == "__main__":
    sys.exit(main())
