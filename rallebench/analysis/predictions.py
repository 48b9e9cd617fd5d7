"""Import another program's predictions as a run, which is then scored and compared like any other run.

Formats: KILT's, JSON lines or CSV with ``id`` and ``answer`` (or ``prediction``), and TREC runs, which hold pages and
no answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.analysis import trec
from rallebench.core.errors import BadFileError, Hint, UsageError
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
from rallebench.engine.execute import write_run
from rallebench.engine.experiment_store import check_free
from rallebench.engine.metric_choice import choose_metrics
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.metrics import metric
from rallebench.metrics.recorded import IMPORTED, RunEvidence, missing_evidence
from rallebench.workspace.paths import WorkspaceFolder

ANSWERS = ("answer", "prediction", "predicted", "output", "response")
MAX_EXAMPLES, MAX_ID = 5, 60
"""Maximum number of identifiers in an error message, and of characters in each."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One line of the file. ``answer``: None if it has none. ``pages``: (page id, score), best first; () for an
    empty list, None if the line has no list.
    """

    line: int
    qid: str
    answer: str | None
    pages: tuple[tuple[str, float], ...] | None = None


def import_run(
    workspace: WorkspaceFolder,
    file: Path,
    dataset: str,
    name: str,
    *,
    form: str = "",
    skip_bad: bool = False,
) -> tuple[RunFolder, int]:
    """Import ``file`` as the run ``name`` and score it. Return the run, and the number of questions missing from a
    TREC run.

    ``skip_bad``: skip lines with an unknown or repeated id. A question without a prediction counts as failed; in a
    TREC run it counts as answered with no hits and scores 0. Raises UsageError and BadFileError before anything is
    written.
    """
    name = checked_run_name(name)
    check_free(workspace.path, "run", name)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path)
    form = form or detect_form(file)
    if form not in READERS:
        raise UsageError(f"There is no form {form!r} of predictions; known: {', '.join(READERS)}.")
    lines = list(READERS[form](file))
    if form == TREC:
        lines = _decode_ids(lines, examples)
    qids = {example.question.qid for example in examples}
    predictions = _check_predictions(lines, qids, file, dataset_name, skip_bad)
    silent = [qid for qid in qids if qid not in predictions] if form == TREC else []
    predictions |= {qid: Prediction(0, qid, None, ()) for qid in silent}
    # If all lists are empty, nothing was retrieved.
    any_pages = any(prediction.pages for prediction in predictions.values())
    episodes = [
        _episode(example, predictions.get(example.question.qid), file.name, any_pages)
        for example in examples
    ]
    settings = {"file": file.name, "sha256": sha256_file(file)}
    request = RunRequest(
        imported_flow(IMPORTED, settings),
        workspace.dataset_ref(dataset),
        examples,
        _metrics(episodes, examples, dataset_name),
        name=name,
    )
    return write_run(workspace.runs, request, episodes), len(silent)


def detect_form(file: Path) -> str:
    """Detect the format of a file from its suffix and first line. Raises UsageError if it is unknown."""
    if not file.is_file():
        raise UsageError(f"There is no file {file}; give a file of predictions.")
    ending = Path(file.name.lower().removesuffix(".gz")).suffix
    if ending in (".csv", ".tsv"):
        return "csv"
    first = next((text for _, text in Source(file).lines() if text.strip()), "")
    if ending in (".jsonl", ".json") or first.lstrip().startswith("{"):
        return "jsonl"
    if trec.is_run_line(first):
        return "trec"
    raise UsageError(
        f"{file} is in no known form of predictions ({', '.join(READERS)}).",
        hint=Hint("choose", "format"),
    )


def _json_lines(file: Path) -> Iterator[Prediction]:
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
            elements = _list(output[0].get("provenance"), "provenance", where)
            page_ids = [
                page.get("wikipedia_id") if isinstance(page, dict) else page
                for page in elements or ()
            ]
            # An entry with only a title has no page id and is not scored.
            known_ids = [page for page in page_ids if page is not None and page != ""]
            pages = None if elements is None or (elements and not known_ids) else known_ids
            answer = output[0].get("answer")
        else:
            pages = _list(row.get("pages"), "pages", where)
            answer = next((row[key] for key in ANSWERS if row.get(key) is not None), None)
        if not all(isinstance(page, (str, int)) for page in pages or ()):
            raise BadFileError(f"{where}: a page is not an id; pages are a list of texts.")
        if not isinstance(answer, (str, int, float, type(None))) or answer != answer:
            raise BadFileError(f"{where}: the answer is not a text.")
        yield Prediction(
            line,
            str(row["id"]).strip(),
            None if answer is None else str(answer),
            _rank_pages(pages),
        )


def _refuse_array(file: Path) -> None:
    """Raise BadFileError if the file is one JSON array, a common mistake."""
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


def _comma_separated(file: Path) -> Iterator[Prediction]:
    rows = Source(file).table()
    _, columns = next(rows, (0, []))
    columns = [head.strip() for head in columns]
    answer = next((head for head in ANSWERS if head in columns), "")
    if "id" not in columns or not answer:
        raise BadFileError(
            f"{file} needs a header row with the columns id and answer; it has {', '.join(columns)[:200] or 'none'}."
        )
    key, column = columns.index("id"), columns.index(answer)
    for line, fields in rows:
        if len(fields) != len(columns):
            raise BadFileError(
                f"{file}, line {line} has {len(fields)} columns where its header has {len(columns)}; quote fields with commas."
            )
        yield Prediction(line, fields[key].strip(), fields[column])


def _trec(file: Path) -> Iterator[Prediction]:
    for line, qid, pages in trec.read_run(file):
        yield Prediction(line, qid, None, pages)


def _decode_ids(lines: Sequence[Prediction], examples: Sequence[Example]) -> list[Prediction]:
    """Return the lines of a TREC run with their ids as the dataset writes them."""
    qids = {example.question.qid for example in examples}
    golds = [example.gold for example in examples]
    known = frozenset[str]().union(*(ids for gold in golds for ids in (gold.pages, *gold.passages)))
    return [
        replace(
            line,
            qid=trec.decode_id(line.qid, qids),
            pages=tuple((trec.decode_id(page, known), score) for page, score in line.pages or ()),
        )
        for line in lines
    ]


TREC = "trec"
READERS = {"jsonl": _json_lines, "kilt": _json_lines, "csv": _comma_separated, TREC: _trec}


def _rank_pages(pages: list[Any] | None) -> tuple[tuple[str, float], ...] | None:
    return (
        None
        if pages is None
        else tuple((str(page), 1.0 / rank) for rank, page in enumerate(pages, 1))
    )


def _check_predictions(
    predictions: list[Prediction], qids: set[str], file: Path, dataset: str, skip_bad: bool
) -> dict[str, Prediction]:
    """Question → its first prediction."""
    accepted: dict[str, Prediction] = {}
    bad: dict[str, list[Prediction]] = {"unknown": [], "repeated": []}
    for prediction in predictions:
        if prediction.qid not in qids:
            bad["unknown"].append(prediction)
        elif accepted.setdefault(prediction.qid, prediction) is not prediction:
            bad["repeated"].append(prediction)
    if not predictions:
        raise UsageError(f"{file} holds no prediction; give a file with one prediction a line.")
    if not accepted:
        raise UsageError(
            f"No id of {file} is a question of {dataset}; give the dataset that it answers."
        )
    words = {"unknown": f"ids that {dataset} does not have", "repeated": "repeated ids"}
    for kind, refused in bad.items():
        if refused and not skip_bad:
            names = [f"{p.qid[:MAX_ID]!r} in line {p.line}" for p in refused[:MAX_EXAMPLES]]
            more = len(refused) - len(names)
            examples = ", ".join(names) + (f" and {more} more" if more else "")
            raise BadFileError(
                f"{file} has {words[kind]}: {examples}; mend them.", hint=Hint("skip-bad")
            )
    return accepted


def _metrics(
    episodes: Sequence[Episode], examples: tuple[Example, ...], dataset: str
) -> tuple[str, ...]:
    """Return the metrics that the predictions can be scored by."""
    answered = [episode for episode in episodes if not episode.error]
    run = RunEvidence.of(answered)
    names = tuple(
        name
        for name in choose_metrics(None, examples, dataset)
        if any(not missing_evidence(episode, metric(name), run) for episode in answered)
    )
    if not names:
        raise UsageError(f"The file holds neither answers nor pages that {dataset} has a gold for.")
    return names


def _episode(
    example: Example, prediction: Prediction | None, file: str, any_pages: bool
) -> Episode:
    qid = example.question.qid
    pages = prediction.pages if prediction is not None and any_pages else None
    if prediction is None or (prediction.answer is None and pages is None):
        return Episode(qid, IMPORTED, (), None, f"{file} holds no prediction for this question.")
    steps = []
    if pages is not None:
        hits = tuple(Hit(Passage(page, "", "", page), score) for page, score in pages)
        request = Retrieve(file, example.question.text, len(hits))
        steps.append(Step(request, Reply("; ".join(page for page, _ in pages), hits)))
    if prediction.answer is not None:
        steps.append(Step(Note(prediction.answer), Reply(prediction.answer)))
    return Episode(qid, IMPORTED, tuple(steps), Outcome(prediction.answer or ""))
