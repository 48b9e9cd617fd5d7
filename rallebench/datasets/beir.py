"""BEIR's questions (Thakur et al. 2021, arXiv:2104.08663): ``queries.jsonl`` and ``qrels/<split>.tsv``.

A record gets one output element per relevant passage, with its id as ``wikipedia_id``, so that recall at k is the share of
relevant passages found, as in BEIR. A score other than 1 becomes its ``relevance``, the grade for nDCG. As in trec_eval,
which BEIR uses, a question whose passages are all judged 0 keeps them and scores 0, and questions that the split does not
judge are left out. A judged query that is missing in ``queries.jsonl`` is named in a warning. A folder's split is its test split, or
else dev or train; another one is read by its file, ``qrels/train.tsv``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.numbers import plural
from rallebench.core.sources import Source, innermost
from rallebench.core.streams import with_packed
from rallebench.datasets import DATASETS, Record

NAMED = 10
"""Maximum number of queries that a warning names."""
QUERIES = with_packed("queries.jsonl")
SPLITS = ("test", "dev", "train")
SAMPLE = {
    "scifact/queries.jsonl": '{"_id": "q1", "text": "Which moon?"}\n{"_id": "q2", "text": "Which sea?"}\n',
    "scifact/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td4\t1\n",
}


def recognises(path: Path) -> bool:
    """Return whether a folder, or the single folder in it, holds BEIR's questions; or a file is one of its splits."""
    return _queries(path) is not None


def _queries(folder: Path) -> Path | None:
    """Return the file of questions if there is a ``qrels`` folder beside it. ``folder``: also a file in that folder."""
    if folder.is_file() and (folder.suffix != ".tsv" or folder.parent.name != "qrels"):
        return None
    inner = folder.parent.parent if folder.is_file() else innermost(folder)
    files = [inner / name for name in QUERIES if (inner / name).is_file()]
    return files[0] if files and (inner / "qrels").is_dir() else None


@DATASETS.register("beir", recognises=recognises, sample=SAMPLE)
def read_beir(source: Source) -> Iterator[tuple[int, Record]]:
    """A BEIR folder: queries.jsonl with qrels/test.tsv (or dev, or train); or the file of one split in it."""
    file = _queries(source.path)
    if file is None:
        raise BadFileError(
            f"{source.path} is not a folder with queries.jsonl and qrels/; BEIR's questions need both."
        )
    folder = file.parent
    splits = (folder / "qrels" / f"{name}.tsv" for name in SPLITS)
    named = source.path if source.path.is_file() else None
    split = named or next((path for path in splits if path.exists()), None)
    if split is None:
        raise BadFileError(f"{folder / 'qrels'} contains no test.tsv, dev.tsv or train.tsv.")
    yield from judged_records(source, _questions(replace(source, path=file, total=0)), split)


def _questions(queries: Source) -> Iterator[tuple[int, str, str]]:
    """Yield (line, id, text) of BEIR's questions."""
    for line, row in queries.objects():
        qid, text = str(row.get("_id", row.get("id", ""))).strip(), row.get("text")
        if not qid or not isinstance(text, str) or not text.strip():
            queries.bad(line, " needs '_id' and 'text'.")
        else:
            yield line, qid, text


def judged_records(
    source: Source, questions: Iterable[tuple[int, str, str]], split: Path, name: str = QUERIES[0]
) -> Iterator[tuple[int, Record]]:
    """Yield the records of the (line, id, text) that a file of judgements judges. ``name``: of the file of questions."""
    judgements = judgements_in(replace(source, path=split, total=0))
    judged_ids: list[str] = []
    for line, qid, text in questions:
        if qid in judgements:
            judged_ids.append(qid)
            pages = relevant(judgements[qid]) or judgements[qid]
            output = [{"provenance": [judged_passage(*pair)]} for pair in pages.items()]
            yield line, {"id": qid, "input": text, "output": output}
    source.problems.warnings += _warnings(judgements, judged_ids, split.name, name)


def _warnings(
    judgements: Mapping[str, Mapping[str, float]], questions: Sequence[str], split: str, name: str
) -> list[str]:
    """Return sentences about judged queries that are missing, and about queries without a relevant passage."""
    missing = sorted(judgements.keys() - set(questions))
    irrelevant = [qid for qid in questions if not relevant(judgements[qid])]
    warnings = []
    if missing:
        warnings.append(
            f"Not in {name} though judged in {split}, so not scored: {plural(len(missing), 'id')} "
            f"({_name_some(missing)})."
        )
    if irrelevant:
        warnings.append(
            f"Only judged 0 in {split}, so scored 0 as by trec_eval: {plural(len(irrelevant), 'question')} "
            f"({_name_some(irrelevant)})."
        )
    return warnings


def _name_some(ids: Sequence[str]) -> str:
    return ", ".join([*ids[:NAMED], "…"] if len(ids) > NAMED else ids)


def judged_passage(page: str, score: float) -> dict[str, Any]:
    """Return a judged passage as a provenance item.

    >>> judged_passage("d7", 1.0), judged_passage("d7", 2.0)
    ({'wikipedia_id': 'd7'}, {'wikipedia_id': 'd7', 'relevance': 2})
    """
    grade = {"relevance": int(score) if score == int(score) else score}
    return {"wikipedia_id": page, **(grade if score != 1 else {})}


def relevant(judgements: Mapping[str, float]) -> dict[str, float]:
    """Return the passages with a score above 0."""
    return {passage: score for passage, score in judgements.items() if score > 0}


def judgements_in(source: Source) -> dict[str, dict[str, float]]:
    """Return query id → passage id → score, read from a file of judgements in BEIR's or TREC's format."""
    judgements: dict[str, dict[str, float]] = {}
    for line, text in source.lines():
        fields = text.split("\t")
        if len(fields) == 1 and len(text.split()) == 4:  # TREC's format may be separated by spaces
            fields = text.split()
        if line == 1 and fields[0].strip().lower() in ("query-id", "query_id", "qid"):
            continue
        if len(fields) == 4:  # TREC's own format has a column that is always 0
            del fields[1]
        try:
            query, passage, score = fields[0].strip(), fields[1].strip(), float(fields[2])
            if not (query and passage and math.isfinite(score)):
                raise ValueError
        except (IndexError, ValueError):
            if text.strip():
                source.bad(line, " is not query-id<TAB>corpus-id<TAB>score.")
            continue
        judged_so = judgements.setdefault(query, {})
        if judged_so.setdefault(passage, score) != score:
            source.bad(
                line, f" gives {passage[:60]!r} a different score for {query[:60]!r} than before."
            )
    return judgements
