"""``support.jsonl`` in a run's folder: the support of its answers, a line for each answer and support model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rallebench.core.errors import BadFileError
from rallebench.core.files import json_lines, write_text
from rallebench.core.own_files import load_line, parse
from rallebench.core.support import AnswerSupport
from rallebench.engine.store import RunFolder

SUPPORT, MEND = "support.jsonl", "score the run again by its support metrics"


def write_support(folder: RunFolder, support: Sequence[AnswerSupport]) -> None:
    """Write the support of answers. The lines of other support models stay."""
    path, models = folder.path / SUPPORT, {of_answer.checker for of_answer in support}
    if not support:
        return
    try:
        others = [line for line in read_support(folder) if line.checker not in models]
    except BadFileError:
        others = []  # a damaged file is replaced
    write_text(path, json_lines(line.to_json() for line in (*support, *others)))


def read_support(folder: RunFolder, qid: str = "") -> Iterator[AnswerSupport]:
    """Yield the support of one question's answer by each model, or of all answers. Raises BadFileError if the file is damaged."""
    path = folder.path / SUPPORT
    mark = json.dumps(qid, ensure_ascii=False).encode("utf-8", "surrogatepass") if qid else b""
    try:
        with open(path, "rb") as lines:
            for line in lines:
                if mark in line:
                    read = parse(load_line(line, path, MEND), AnswerSupport, path, MEND)
                    if not qid or read.qid == qid:
                        yield read
    except FileNotFoundError:
        return
