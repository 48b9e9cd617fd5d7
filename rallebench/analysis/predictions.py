"""A file of predictions that another program made becomes a run: it can be scored, read and compared like ours.

KILT's form, JSON lines or CSV with ``id`` and ``answer`` (or ``prediction``), and TREC's run form, which holds
pages and no answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import sha256_file
from rallebench.core.runs import RunRequest, imported_flow
from rallebench.core.sources import Source
from rallebench.core.types import (
    Episode,
    Example,
    Hit,
    Note,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.datasets.reading import read_questions
from rallebench.engine.experiment_store import check_free
from rallebench.engine.run_file import write_run
from rallebench.engine.score import choose_metrics
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.metrics import metric
from rallebench.metrics.recorded import IMPORTED
from rallebench.workspace.paths import Workspace

WORKFLOW = IMPORTED
ANSWERS = ("answer", "prediction", "predicted", "output", "response")
COSTS = frozenset({"seconds", "tokens"})
"""Units of metrics that a file of predictions says nothing about."""
NAMED = 5
"""Identifiers that a sentence names at most."""
LONGEST = 60
"""Letters of an identifier that a sentence shows."""


@dataclass(frozen=True, slots=True)
class Predicted:
    """One line of the file. ``answer``: None where it has none; ``pages``: best first, with their scores, () where it says
    that none were found, None where it says nothing of them."""

    line: int
    qid: str
    answer: str | None
    pages: tuple[tuple[str, float], ...] | None = None


def import_run(
    workspace: Workspace,
    file: Path,
    dataset: str,
    name: str,
    *,
    form: str = "",
    skip_bad: bool = False,
) -> RunFolder:
    """Make the run ``name`` of ``file``, scored. ``skip_bad``: lines with an unknown or repeated id are left out.

    A question that the file lacks fails, and is counted as failed. Raises UsageError and BadFileError; then
    nothing is written.
    """
    name = checked_run_name(name)
    check_free(workspace.path, "run", name)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path)
    form = form or recognised(file)
    if form not in READERS:
        raise UsageError(f"There is no form {form!r} of predictions; known: {', '.join(READERS)}.")
    found = _checked(
        list(READERS[form](file)), {e.question.qid for e in examples}, file, dataset_name, skip_bad
    )
    metrics = _metrics(found, examples, dataset_name)
    # Where all lists are empty, no pages were looked for.
    any_pages = any(prediction.pages for prediction in found.values())
    settings = {"file": file.name, "sha256": sha256_file(file)}
    request = RunRequest(
        imported_flow(WORKFLOW, settings),
        workspace.dataset_ref(dataset),
        examples,
        metrics,
        name=name,
    )
    episodes = [
        _episode(example, found.get(example.question.qid), file, any_pages) for example in examples
    ]
    return write_run(workspace.runs, request, episodes)


def recognised(file: Path) -> str:
    """The form that a file's ending and first line show. Raises UsageError where they show none."""
    if not file.is_file():
        raise UsageError(f"There is no file {file}; give a file of predictions.")
    ending = (
        file.with_suffix("").suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    )
    if ending in (".csv", ".tsv"):
        return "csv"
    if ending in (".jsonl", ".json"):
        return "jsonl"
    _, first = next(Source(file).lines(), (0, ""))
    if len(first.split()) == 6 and first.split()[1] == "Q0":
        return "trec"
    if first.lstrip().startswith("{"):
        return "jsonl"
    raise UsageError(
        f"{file} is in no known form of predictions; say which with --format ({', '.join(READERS)})."
    )


def _json_lines(file: Path) -> Iterator[Predicted]:
    """``{"id", "answer"}``, or KILT's ``{"id", "output": [{"answer", "provenance"}]}``; plain or gzipped."""
    _refuse_array(file)
    for line, row in Source(file).objects():
        where = f"{file}, line {line}"
        if "id" not in row:
            raise BadFileError(
                f"{where} has no 'id'; every line is an object with 'id' and 'answer'."
            )
        if isinstance(row["id"], bool) or not isinstance(row["id"], (str, int)):
            raise BadFileError(
                f"{where}: the id is {type(row['id']).__name__}; it must be text or a whole number."
            )
        output = row.get("output")
        if isinstance(output, list) and output and isinstance(output[0], dict):
            listed = _list(output[0].get("provenance"), "provenance", where)
            named = [
                page.get("wikipedia_id") if isinstance(page, dict) else page
                for page in listed or ()
            ]
            # An element may name a page by its title only; that is no prediction of ours to score.
            known = [page for page in named if page is not None and page != ""]
            pages = None if listed is None or (listed and not known) else known
            answer = output[0].get("answer")
        else:
            pages = _list(row.get("pages"), "pages", where)
            answer = next((row[key] for key in ANSWERS if row.get(key) is not None), None)
        if not all(isinstance(page, (str, int)) for page in pages or ()):
            raise BadFileError(f"{where}: a page is no id; pages are a list of texts.")
        if not isinstance(answer, (str, int, float, type(None))) or answer != answer:
            raise BadFileError(f"{where}: the answer is no text.")
        yield Predicted(
            line, str(row["id"]).strip(), None if answer is None else str(answer), _ranked(pages)
        )


def _refuse_array(file: Path) -> None:
    """One JSON array over all lines is a common form of such files, and no JSON lines."""
    _, first = next(
        ((number, text) for number, text in Source(file).lines() if text.strip()), (0, "")
    )
    if first.lstrip().startswith("["):
        raise BadFileError(
            f"{file} is one JSON array; write one object a line instead (jq -c '.[]' {file.name})."
        )


def _list(value: Any, name: str, where: str) -> list[Any] | None:
    if value is not None and not isinstance(value, list):
        raise BadFileError(f"{where}: {name!r} must be a list, not {type(value).__name__}.")
    return value


def _comma_separated(file: Path) -> Iterator[Predicted]:
    rows = Source(file).table()
    _, heads = next(rows, (0, []))
    heads = [head.strip() for head in heads]
    answer = next((head for head in ANSWERS if head in heads), "")
    if "id" not in heads or not answer:
        raise BadFileError(
            f"{file} needs a header row with the columns id and answer; it has {', '.join(heads) or 'none'}."
        )
    key, said = heads.index("id"), heads.index(answer)
    for line, fields in rows:
        if len(fields) != len(heads):
            raise BadFileError(
                f"{file}, line {line} has {len(fields)} columns where its header has {len(heads)}; quote what holds commas."
            )
        yield Predicted(line, fields[key].strip(), fields[said])


def _trec(file: Path) -> Iterator[Predicted]:
    """``qid Q0 page rank score tag``; ordered by score, as trec_eval does, ties by rank."""
    lists: dict[str, list[tuple[float, int, str]]] = {}
    first: dict[str, int] = {}
    for line, text in Source(file).lines():
        if not text.strip():
            continue
        try:
            qid, _, page, rank, score = text.split()[:5]
            value, place = float(score), int(rank)
        except ValueError:
            raise BadFileError(
                f"{file}, line {line} is not 'qid Q0 page rank score tag'."
            ) from None
        if not math.isfinite(value):
            raise BadFileError(
                f"{file}, line {line} has the score {score}, which orders nothing; give numbers."
            )
        lists.setdefault(qid, []).append((-value, place, page))
        first.setdefault(qid, line)
    for qid, found in lists.items():
        yield Predicted(
            first[qid], qid, None, tuple((page, -score) for score, _, page in sorted(found))
        )


READERS = {"jsonl": _json_lines, "kilt": _json_lines, "csv": _comma_separated, "trec": _trec}


def _ranked(pages: list[Any] | None) -> tuple[tuple[str, float], ...] | None:
    return (
        None
        if pages is None
        else tuple((str(page), 1.0 / rank) for rank, page in enumerate(pages, 1))
    )


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
    if not found:
        raise UsageError(f"{file} holds no prediction; give a file with one a line.")
    if not kept:
        raise UsageError(
            f"No id of {file} is a question of {dataset}; give the question set that it answers."
        )
    for bad, what in (
        (unknown, f"ids that {dataset} does not have"),
        (twice, "ids that stand there twice"),
    ):
        if bad and not skip_bad:
            named = ", ".join(f"{one.qid[:LONGEST]!r} in line {one.line}" for one in bad[:NAMED])
            more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
            raise BadFileError(
                f"{file} has {what}: {named}{more}; mend them, or leave them out with --skip-bad."
            )
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
        if (
            fits
            and needs
            and traits.get("unit") not in COSTS
            and name.split("@")[0] != "answer_in_context"
        ):
            names.append(name)
    if not names:
        raise UsageError(f"The file holds neither answers nor pages that {dataset} has a gold for.")
    return tuple(names)


def _episode(example: Example, found: Predicted | None, file: Path, any_pages: bool) -> Episode:
    qid = example.question.qid
    pages = found.pages if found is not None and any_pages else None
    if found is None or (found.answer is None and pages is None):
        return Episode(
            qid, WORKFLOW, (), None, f"{file.name} holds no prediction for this question."
        )
    steps = []
    if pages is not None:
        hits = tuple(Hit(Passage(page, "", "", page), score) for page, score in pages)
        steps.append(
            Step(
                Retrieve(file.name, example.question.text, len(hits)),
                Reply("; ".join(hit.passage.page_id for hit in hits), hits),
            )
        )
    if found.answer is not None:
        steps.append(Step(Note(found.answer), Reply(found.answer)))
    return Episode(qid, WORKFLOW, tuple(steps), Outcome(found.answer or ""))
