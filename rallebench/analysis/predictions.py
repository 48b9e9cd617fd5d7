"""A file of predictions that another program made becomes a run: it can be scored, read and compared like ours.

KILT's form, JSON lines or CSV with ``id`` and ``answer`` (or ``prediction``), and TREC's run form, which holds
pages and no answers.
"""

from __future__ import annotations

import csv
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rallebench import __version__
from rallebench.bench.score import choose_metrics, score_run
from rallebench.bench.store import RunFolder, checked_run_name
from rallebench.datasets.kilt import read_questions
from rallebench.errors import BadFileError, UsageError
from rallebench.files import read_own_jsonl, sha256_file
from rallebench.metrics import metric
from rallebench.types import Episode, Example, Hit, Note, Outcome, Passage, Reply, Retrieve, RunSpec, Step
from rallebench.workspace import Workspace

WORKFLOW = "imported"
ANSWERS = ("answer", "prediction", "predicted", "output", "response")
COSTS = frozenset({"seconds", "tokens"})
"""Units of metrics that a file of predictions says nothing about."""
NAMED = 5
"""Identifiers that a sentence names at most."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One line of the file. ``answer``: None where it has none; ``pages``: best first, with their scores."""

    line: int
    qid: str
    answer: str | None
    pages: tuple[tuple[str, float], ...] = ()


def import_run(
    workspace: Workspace, file: Path, dataset: str, name: str, *, form: str = "", skip_bad: bool = False
) -> RunFolder:
    """Make the run ``name`` of ``file``, scored. ``skip_bad``: lines with an unknown or repeated id are left out.

    A question that the file lacks fails, and is counted as failed. Raises UsageError and BadFileError; then
    nothing is written.
    """
    name = checked_run_name(name)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path)
    form = form or recognised(file)
    if form not in READERS:
        raise UsageError(f"There is no form {form!r} of predictions; known: {', '.join(READERS)}.")
    found = _checked(list(READERS[form](file)), {e.question.qid for e in examples}, file, dataset_name, skip_bad)
    metrics = _metrics(found, examples, dataset_name)
    spec = RunSpec(dataset_name, WORKFLOW, {"file": file.name, "sha256": sha256_file(file), "dataset_sha256": sha256_file(path)}, metrics)  # fmt: skip
    made = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": str(path) if dataset_name != dataset else "",
        "spec": {"dataset": dataset_name, "workflow": WORKFLOW, "settings": dict(spec.settings), "limit": None, "seed": 0},
        "metrics": list(metrics),
        "batch_size": 1,
        "versions": {"rallebench": __version__, "python": platform.python_version()},
        "platform": platform.platform(),
    }
    episodes = [_episode(example, found.get(example.question.qid), file) for example in examples]
    folder = RunFolder.create(workspace.runs, name, made, (dict(e.record) for e in examples))
    with folder.log() as log:
        for episode in episodes:
            folder.append(log, episode, "import", 0.0)
    report = score_run(folder, metrics)
    folder.set_state("done", done=report["n_done"], total=report["n"], errors=report["n_errors"], seconds=0.0, message="")
    return folder


def recognised(file: Path) -> str:
    """The form that a file's ending and first line show. Raises UsageError where they show none."""
    ending = file.suffix.lower()
    if ending in (".csv", ".tsv"):
        return "csv"
    if ending in (".jsonl", ".json"):
        return "jsonl"
    try:
        with file.open(encoding="utf-8") as handle:
            first = handle.readline()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read ({error}); give a file of predictions.") from None
    if len(first.split()) == 6 and first.split()[1] == "Q0":
        return "trec"
    if first.lstrip().startswith("{"):
        return "jsonl"
    raise UsageError(f"{file} is in no known form of predictions; say which with --format ({', '.join(READERS)}).")


def _json_lines(file: Path) -> Iterator[Predicted]:
    """``{"id", "answer"}``, or KILT's ``{"id", "output": [{"answer", "provenance"}]}``."""
    if not file.is_file():
        raise UsageError(f"There is no file {file}.")
    for line, row in enumerate(read_own_jsonl(file), 1):
        if not isinstance(row, dict) or "id" not in row:
            raise BadFileError(f"{file}, line {line} has no 'id'; every line is an object with 'id' and 'answer'.")
        output = row.get("output")
        if isinstance(output, list) and output and isinstance(output[0], dict):
            pages = [str(p["wikipedia_id"]) for p in output[0].get("provenance") or [] if p.get("wikipedia_id")]
            answer = output[0].get("answer")
        else:
            pages = [str(page) for page in row.get("pages") or []]
            answer = next((row[key] for key in ANSWERS if row.get(key) is not None), None)
        if answer is not None and not isinstance(answer, (str, int, float)):
            raise BadFileError(f"{file}, line {line}: the answer is no text.")
        yield Predicted(line, str(row["id"]).strip(), None if answer is None else str(answer), _ranked(pages))


def _comma_separated(file: Path) -> Iterator[Predicted]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:
            rows = csv.DictReader(handle, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
            heads = rows.fieldnames or []
            key = next((head for head in ANSWERS if head in heads), "")
            if "id" not in heads or not key:
                raise BadFileError(f"{file} needs a header row with the columns id and answer; it has {', '.join(heads) or 'none'}.")
            for row in rows:
                yield Predicted(rows.line_num, str(row["id"] or "").strip(), row[key] or None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadFileError(f"{file} cannot be read as a table ({error}).") from None


def _trec(file: Path) -> Iterator[Predicted]:
    """``qid Q0 page rank score tag``; ordered by score, as trec_eval does, ties by rank."""
    lists: dict[str, list[tuple[float, int, str]]] = {}
    first: dict[str, int] = {}
    try:
        with file.open(encoding="utf-8") as handle:
            for line, text in enumerate(handle, 1):
                if not text.strip():
                    continue
                fields = text.split()
                try:
                    qid, _, page, rank, score = fields[:5]
                    lists.setdefault(qid, []).append((-float(score), int(rank), page))
                except ValueError:
                    raise BadFileError(f"{file}, line {line} is not 'qid Q0 page rank score tag'.") from None
                first.setdefault(qid, line)
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"{file} cannot be read ({error}).") from None
    for qid, found in lists.items():
        yield Predicted(first[qid], qid, None, tuple((page, -score) for score, _, page in sorted(found)))


READERS = {"jsonl": _json_lines, "kilt": _json_lines, "csv": _comma_separated, "trec": _trec}


def _ranked(pages: list[str]) -> tuple[tuple[str, float], ...]:
    return tuple((page, 1.0 / rank) for rank, page in enumerate(pages, 1))


def _checked(
    found: list[Predicted], known: set[str], file: Path, dataset: str, skip_bad: bool
) -> Mapping[str, Predicted]:
    kept: dict[str, Predicted] = {}
    unknown = [one for one in found if one.qid not in known]
    twice = []
    for one in found:
        if one.qid in kept:
            twice.append(one)
        elif one.qid in known:
            kept[one.qid] = one
    if not kept:
        raise UsageError(f"No id of {file} is a question of {dataset}; give the question set that it answers.")
    for bad, what in ((unknown, f"ids that {dataset} does not have"), (twice, "ids that stand there twice")):
        if bad and not skip_bad:
            named = ", ".join(f"{one.qid!r} in line {one.line}" for one in bad[:NAMED])
            more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
            raise BadFileError(f"{file} has {what}: {named}{more}; mend them, or leave them out with --skip-bad.")
    return kept


def _metrics(
    found: Mapping[str, Predicted], examples: tuple[Example, ...], dataset: str
) -> tuple[str, ...]:
    """What the file can be scored by: answers, pages, both; never what it cost."""
    answers = any(one.answer is not None for one in found.values())
    pages = any(one.pages for one in found.values())
    names = []
    for name in choose_metrics(None, examples, dataset):
        traits = metric(name).traits
        needs = set(filter(None, traits.get("needs", "").split("+")))
        fits = (answers or "answers" not in needs) and (pages or "provenance" not in needs)
        if fits and needs and traits.get("unit") not in COSTS and name.split("@")[0] != "answer_in_context":
            names.append(name)
    if not names:
        raise UsageError(f"The file holds neither answers nor pages that {dataset} has a gold for.")
    return tuple(names)


def _episode(example: Example, found: Predicted | None, file: Path) -> Episode:
    qid = example.question.qid
    if found is None or (found.answer is None and not found.pages):
        return Episode(qid, WORKFLOW, (), None, f"{file.name} holds no prediction for this question.")
    steps = []
    if found.pages:
        hits = tuple(Hit(Passage(page, "", "", page), score) for page, score in found.pages)
        steps.append(Step(Retrieve(file.name, example.question.text, len(hits)), Reply("; ".join(hit.passage.page_id for hit in hits), hits)))
    if found.answer is not None:
        steps.append(Step(Note(found.answer), Reply(found.answer)))
    return Episode(qid, WORKFLOW, tuple(steps), Outcome(found.answer or ""))
