"""Questions of retrieval programs: ``queries.tsv`` (MS MARCO) or ``topics.….tsv`` (Pyserini), an id, a tab and a text on each
line, or such rows as JSON lines. A file of judgements beside them, ``qrels…``, has the gold; without one there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from rallebench.core.columns import first_value
from rallebench.core.errors import BadFileError
from rallebench.core.sources import Problems, Source, has_suffix
from rallebench.datasets import DATASETS, Record
from rallebench.datasets.beir import judged_records
from rallebench.datasets.fields import GOLD, normal
from rallebench.datasets.kilt import first_rows

NAME = re.compile(r"(?:.*[._-])?(quer(?:y|ies)|topics?)([._-].*)?", re.IGNORECASE)
TABLES, JSON_LINES = (".tsv", ".txt"), (".jsonl",)
IDS, TEXTS = ("qid", "_id", "id", "query_id"), ("title", "text", "query")
JUDGEMENTS = "qrels"
LOOKED_AT = 20
MAX_ID = 100
"""Characters of the longest id; longer first columns are texts."""
SAMPLE = {
    "passages/queries.dev.tsv": "q1\tWhich moon?\nq2\tWhich sea?\n",
    "passages/qrels.dev.tsv": "q1\t0\td1\t1\nq2\t0\td4\t1\n",
}


def _recognises(path: Path) -> bool:
    """Return whether this is a file of questions by its name and rows, or a folder with one and its judgements."""
    if path.is_dir():
        return _only_file(path) is not None
    return _names_questions(path) and _has_rows(path)


def _names_questions(path: Path) -> bool:
    if not NAME.fullmatch(path.name) or not has_suffix(*TABLES, *JSON_LINES)(path):
        return False
    return not any(normal(name) in GOLD for row in first_rows(path) for name in row)


def _has_rows(path: Path) -> bool:
    try:
        rows = list(islice(_rows(Source(path, peeking=True)), LOOKED_AT))
    except BadFileError:
        return False
    return bool(rows)


def _only_file(folder: Path) -> Path | None:
    """Return the file of questions in a folder with judgements; None if there is none, or are several."""
    inside = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    files = list(filter(_names_questions, inside))
    judged = any(JUDGEMENTS in path.name.lower() for path in inside)
    return files[0] if len(files) == 1 and judged and _has_rows(files[0]) else None


@DATASETS.register("topics", recognises=_recognises, sample=SAMPLE)
def read_topics(source: Source) -> Iterator[tuple[int, Record]]:
    """MS MARCO's queries.tsv or Pyserini's topics: an id, a tab and a text a line, or JSON lines; with the qrels beside it."""
    file = _only_file(source.path) if source.path.is_dir() else source.path
    if file is None:
        raise BadFileError(
            f"{source.path} holds no file of questions with one of judgements, or several; name the file of questions."
        )
    rows = _rows(replace(source, path=file, total=0))
    split = _judgements_beside(file, source.problems)
    if split is not None:
        yield from judged_records(source, rows, split, file.name)
        return
    for line, qid, text in rows:
        yield line, {"id": qid, "input": text, "output": []}


def _judgements_beside(file: Path, problems: Problems) -> Path | None:
    """Return the judgements beside a file of questions: those with the rest of its name, else the only ones."""
    beside = sorted(
        path
        for path in file.parent.iterdir()
        if JUDGEMENTS in path.name.lower() and path.is_file() and not path.name.startswith(".")
    )
    same = [path for path in beside if _kind(path) == _kind(file)]
    if len(same or beside) == 1:
        return (same or beside)[0]
    if beside:
        names = ", ".join(path.name for path in beside[:5])
        problems.warnings.append(
            f"Several files of judgements lie beside {file.name} ({names}), so none was read; keep the one of these questions."
        )
    return None


def _kind(path: Path) -> str:
    """Return the rest of a name, such as ``dev.small``.

    >>> _kind(Path("queries.dev.small.tsv")), _kind(Path("qrels.dev.small.tsv.gz")), _kind(Path("topics.txt"))
    ('dev.small', 'dev.small', '')
    """
    name = path.name.lower().removesuffix(".gz").rpartition(".")[0]
    return re.sub(r"(quer(y|ies)|topics?|qrels)", "", name).strip("._-")


def _rows(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yield (line, id, text) of each question."""
    if has_suffix(*JSON_LINES)(source.path):
        for line, row in source.objects():
            qid, text = first_value(row, IDS, None), first_value(row, TEXTS, None)
            named = isinstance(qid, (str, int)) and not isinstance(qid, bool) and str(qid).strip()
            if not named or not isinstance(text, str) or not text.strip():
                source.bad(line, " needs an id ('qid') and a text ('title').")
            else:
                yield line, str(qid).strip(), text.strip()
        return
    for line, text in source.lines():
        if not text.strip():
            continue
        qid, _, question = map(str.strip, text.partition("\t"))
        if not qid or not question or "\t" in question or len(qid) > MAX_ID:
            source.bad(line, " is not id<TAB>question.")
        else:
            yield line, qid, question
