"""``labels/DATASET.jsonl``: the labels of a dataset's answers and passages and the samples to be labelled, one a line, appended
only. Of several labels by a person for the same answer or passage the last counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from rallebench.core.errors import RalleError
from rallebench.core.files import Appender, whole_lines
from rallebench.core.json_values import object_json
from rallebench.core.labels import (
    AnswerKey,
    AnswerLabel,
    Label,
    LabelBook,
    LabelSample,
    PassageLabel,
)
from rallebench.core.locks import alone
from rallebench.core.own_files import damage_error, load_line, parse

FOLDER, MEND = "labels", "remove that line"
PATIENCE_SECONDS = 5.0
KINDS: dict[str, type[Label]] = {
    "answer": AnswerLabel,
    "passage": PassageLabel,
    "sample": LabelSample,
}
"""The field ``kind`` of a line → its value."""


def label_file(workspace: Path, dataset: str) -> Path:
    """Return the file with the labels of a dataset; characters that no file name may have are percent-encoded.

    >>> label_file(Path("w"), "my-qa").as_posix(), label_file(Path("w"), "a/b").name
    ('w/labels/my-qa.jsonl', 'a%2Fb.jsonl')
    """
    return workspace / FOLDER / f"{quote(dataset, safe=' ()[],+@=!&$;')}.jsonl"


def append_labels(path: Path, labels: Iterable[Label]) -> None:
    """Append labels. Raises UsageError if another process writes them, BackendError if the disk is full."""
    kinds = {shape: kind for kind, shape in KINDS.items()}
    refused = f"The labels in {path} are being written by another process; try again."
    lock = path.with_name(f".{path.name}.lock")
    with alone(lock, refused, patience=PATIENCE_SECONDS), Appender(path) as file:
        for label in labels:
            file.write({"kind": kinds[type(label)], **object_json(label)})


def read_labels(path: Path) -> LabelBook:
    """Read the labels; none if the file does not exist. A damaged line is left out and reported in the book."""
    answers = defaultdict[AnswerKey, dict[str, AnswerLabel]](dict)
    passages = defaultdict[tuple[str, str, str], dict[str, PassageLabel]](dict)
    samples, problem = dict[str, LabelSample](), ""
    for number, line in whole_lines(path):
        try:
            label = _read_line(line, path.with_name(f"{path.name}, line {number}"))
        except RalleError as error:
            problem = problem or str(error)
            continue
        if isinstance(label, AnswerLabel):
            answers[label.key][label.who] = label
        elif isinstance(label, PassageLabel):
            passages[label.question, label.page_id, label.doc_id][label.who] = label
        else:
            samples[label.run] = label
    return LabelBook(answers, passages, samples, problem)


def _read_line(line: bytes, place: Path) -> Label:
    value = load_line(line, place, MEND)
    shape = KINDS.get(str(value.get("kind"))) if isinstance(value, dict) else None
    if shape is None:
        raise damage_error(place, MEND, "not a label")
    return parse(value, shape, place, MEND)
