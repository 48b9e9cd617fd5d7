"""One of RGB's tests as a part of a suite: its documents, its flow, its values, its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import sha256_file
from rallebench.core.prompts import check_own
from rallebench.core.runs import Judge, RunRequest, RunResult, Values
from rallebench.core.types import Episode, Example, Flow, Gold, Note, Outcome, Passage, Question
from rallebench.experiments.papers.rgb import files, scoring
from rallebench.experiments.papers.rgb.definitions import named
from rallebench.experiments.papers.rgb.documents import Documents, share
from rallebench.experiments.papers.rgb.prompts import (
    Decoding,
    Prompt,
    answering,
    names_of,
    read_prompt,
)
from rallebench.experiments.papers.rgb.records import Record, RecordSet, find_file, read_records
from rallebench.experiments.runs import scored_run
from rallebench.metrics.judges import JUDGES

WORKFLOW = "rgb"
Build = Callable[[Record, int, float, float, bool], Documents]
"""Record, number, noise, share of correct ones, whether as the original does → its documents."""


@dataclass(frozen=True, slots=True)
class Request:
    """What all parts of a suite share."""

    asked: ExperimentRequest
    records: RecordSet
    build: Build
    prompt: Prompt
    decoding: Decoding
    original: bool
    facts: bool = False
    metrics: Mapping[str, str] = field(default_factory=lambda: named("all_rate", "rejection_rate"))

    @property
    def usable(self) -> list[Record]:
        """The records that can be scored."""
        return [record for record in self.records.records if record.required]


@dataclass(frozen=True, slots=True)
class Test:
    """One run. ``documents``: record id → its list; ``left_out``: records for which there was no document at all."""

    request: Request
    noise: float
    correct: float
    number: int
    records: tuple[Record, ...]
    documents: Mapping[str, Documents]
    left_out: tuple[str, ...]
    earlier: Mapping[str, files.Row] = field(default_factory=dict)
    earlier_sha256: str = ""

    @property
    def short(self) -> int:
        """How many lists hold fewer documents than were asked for."""
        return sum(documents.short for documents in self.documents.values())

    @property
    def other_noise(self) -> int:
        """How many lists hold more or fewer negatives than asked for, for lack of the one or the other; at noise 1 nothing
        stands in for a negative."""
        if self.noise == 1:
            return 0
        wanted = share(self.number, self.noise, self.request.original)
        return sum(documents.negatives != wanted for documents in self.documents.values())

    @property
    def noisy(self) -> float:
        """The share of negatives among the documents of all lists."""
        all_of_them = sum(len(documents.items) for documents in self.documents.values())
        return sum(documents.negatives for documents in self.documents.values()) / (
            all_of_them or 1
        )


def request_of(
    asked: ExperimentRequest, names: tuple[str, ...], build: Build, **more: Any
) -> Request:
    """Read data and prompts. ``names``: the sets that the test is made for, best first. Raises UsageError."""
    s = asked.settings
    language = "" if s["language"] == "auto" else s["language"]
    data = asked.workspace.data(s["data"], "the folder or file of RGB's records")
    path = find_file(
        data, s["set"], tuple(name.format(language=language or "en") for name in names)
    )
    records = read_records(path, language)
    original = s["compat"] == "original"
    top_p = s["top_p"] or (
        1.0 if asked.workspace.llm(asked.llm).backend == "openai_compatible" else 0.8
    )
    decoding = Decoding(
        s["temperature"], top_p if s["temperature"] else 0.0, s["max_tokens"], asked.seed
    )
    judging = (
        [
            name
            for kind in ("rgb-rejection", "rgb-errors")
            for name in JUDGES.entry(kind).traits["prompts"]
        ]
        if s.get("judge")
        else []
    )
    check_own(s["prompts"], [*names_of(records.language), *judging])
    prompt = read_prompt(records.language, s["prompts"], s["system"] == "merged")
    request = Request(asked, records, build, prompt, decoding, original, **more)
    if not request.usable:
        raise UsageError(f"No record of {path} has an answer, so nothing can be scored.")
    return request


def make_test(
    request: Request, noise: float, correct: float = 0.0, number: int | None = None
) -> Test:
    """Every record's documents, and which rows of an earlier time can be used again. Raises UsageError."""
    s = request.asked.settings
    number = s["passages"] if number is None else number
    built = {
        r.id: request.build(r, number, noise, correct, request.original) for r in request.usable
    }
    # The original asks such a question without documents, and so without the system's text: another test.
    empty = (
        () if request.original or not number else tuple(i for i, d in built.items() if not d.items)
    )
    kept = [record for record in request.usable if record.id not in empty][: request.asked.limit]
    if not kept:
        raise UsageError(
            f"No record of {request.records.path} has documents for noise {noise:g}; choose another set."
        )
    documents = {record.id: built[record.id] for record in kept}
    test = Test(request, noise, correct, number, tuple(kept), documents, empty)
    if not s["reuse"]:
        return test
    folder = Path(s["reuse"]).expanduser()
    if not folder.is_dir():
        raise UsageError(f"--set reuse={s['reuse']}: there is no such folder.")
    path = folder / predictions_file(test)
    rows = files.read_rows(path)
    fitting = {
        record.id: rows[record.id]
        for record in kept
        if files.fits(rows.get(record.id), record, documents[record.id], request.original)
    }
    return replace(test, earlier=fitting, earlier_sha256=sha256_file(path) if rows else "")


def predictions_file(test: Test, part: str = "") -> str:
    """Where RGB would write this test's predictions, or with ``_result`` its result."""
    records, asked = test.request.records, test.request.asked
    return files.file_name(
        records.name,
        records.language,
        asked.llm,
        test.request.decoding.temperature,
        test.noise,
        test.number,
        test.correct,
        part,
    )


def part_of(test: Test, label: str, judges: tuple[Judge, ...] = ()) -> RunRequest:
    """The test as a part of a suite."""
    request = test.request

    def flow(question: Question) -> Flow:
        earlier = test.earlier.get(question.qid)
        if earlier is not None:
            return reused(str(earlier["prediction"]))
        return answering(question, request.asked.llm, request.prompt, request.decoding)

    settings = {
        "noise": test.noise,
        "correct": test.correct,
        "passages": test.number,
        "language": request.records.language,
        "system": request.prompt.system if test.number else "",
        "user": request.prompt.user,
        "merged": request.prompt.merged,
        "decoding": request.decoding.as_json(),
        "compat": "original" if request.original else "corrected",
        "reuse": test.earlier_sha256,
    }
    examples = tuple(example_of(record, test.documents[record.id]) for record in test.records)
    return scored_run(
        label,
        WORKFLOW,
        request.records.name,
        examples,
        flow,
        settings,
        lambda example, episode: values_of(test, example, episode),
        request.metrics,
        (request.asked.llm,),
        judges=judges,
    )


def reused(prediction: str) -> Flow:
    """An answer of an earlier time; asks nobody."""
    reply = yield Note(prediction)
    return Outcome(reply.text, "reused")


def example_of(record: Record, documents: Documents) -> Example:
    """The question with its documents; the gold stays outside of it, also in the passages' ids."""
    passages = tuple(Passage(f"document {n}", text) for n, text in enumerate(documents.texts, 1))
    aliases = tuple(dict.fromkeys(alias.strip() for group in record.required for alias in group))
    row = {
        "id": record.id,
        "input": record.query,
        "output": [{"answer": alias} for alias in aliases],
        "rgb": {
            "answer": record.answer,
            "docs": [{"kind": kind, "text": text} for kind, text in documents.items],
        },
    }
    return Example(Question(record.id, record.query, passages), Gold(aliases, record.required), row)


def labels_in(test: Test, example: Example, episode: Episode) -> tuple[str, scoring.Labels]:
    """The prediction as it is scored, and its labels."""
    said = scoring.as_scored(episode.answer, test.request.records.language)
    return said, scoring.labels_of(said, example.gold.required)


def values_of(test: Test, example: Example, episode: Episode) -> Values:
    """Every number of one answer; ``correct_rate`` only where errors were found."""
    said, labels = labels_in(test, example, episode)
    found = scoring.finds_errors(said)
    return {
        "all_rate": float(scoring.counts(labels, test.noise)),
        "rejection_rate": float(scoring.is_rejection(labels)),
        "lucky_rate": float(scoring.is_right(labels)),
        "fact_check_rate": float(found),
        "correct_rate": float(scoring.corrects(labels, test.request.original)) if found else None,
    }


def files_of(test: Test, answered: RunResult) -> dict[str, str]:
    """RGB's own two files of this test; questions that failed have no row."""
    rows = []
    examples = {example.question.qid: example for example in answered.request.examples}
    for record in test.records:
        episode = answered.episodes.get(record.id)
        if episode is not None:
            said, labels = labels_in(test, examples[record.id], episode)
            errors = scoring.finds_errors(said)
            rows.append(
                files.row_of(record, test.documents[record.id], test.noise, said, labels, errors)
            )
    result = files.result_of(rows, test.noise, test.request.facts)
    return {
        predictions_file(test): files.lines(rows),
        predictions_file(test, "_result"): files.as_json(result),
    }
