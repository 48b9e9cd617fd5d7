"""BEIR's questions (Thakur et al. 2021, arXiv:2104.08663): ``queries.jsonl`` and ``qrels/<split>.tsv``.

A record gets one output element for each relevant passage, its id as ``wikipedia_id``: recall at k is then
the share of relevant passages found, as in BEIR. A score other than 1 is its ``relevance``, by which nDCG is graded.
Questions without a relevant passage in the split are left out, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record

SPLITS = ("test", "dev", "train")
SAMPLE = {
    "scifact/queries.jsonl": '{"_id": "q1", "text": "Which moon?"}\n{"_id": "q2", "text": "Which sea?"}\n',
    "scifact/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td4\t1\n",
}


def recognises(path: Path) -> bool:
    return (path / "queries.jsonl").is_file() and (path / "qrels").is_dir()


@DATASETS.register("beir", recognises=recognises, sample=SAMPLE)
def read_beir(source: Source) -> Iterator[tuple[int, Record]]:
    """A BEIR folder: queries.jsonl with qrels/test.tsv (or dev, or train)."""
    folder = source.path
    if not recognises(folder):
        raise BadFileError(
            f"{folder} is no folder with queries.jsonl and qrels/; BEIR's questions need both."
        )
    splits = (folder / "qrels" / f"{name}.tsv" for name in SPLITS)
    split = next((path for path in splits if path.exists()), None)
    if split is None:
        raise BadFileError(f"{folder / 'qrels'} holds no test.tsv, dev.tsv or train.tsv.")
    relevant = relevant_in(replace(source, path=split, total=0))
    queries = replace(source, path=folder / "queries.jsonl", total=0)
    for line, row in queries.objects():
        qid, text = str(row.get("_id", row.get("id", ""))).strip(), row.get("text")
        if not qid or not isinstance(text, str):
            queries.bad(line, " needs '_id' and 'text'.")
        elif qid in relevant:
            output = [{"provenance": [judged(*pair)]} for pair in relevant[qid].items()]
            yield line, {"id": qid, "input": text, "output": output}


def judged(page: str, score: float) -> dict[str, Any]:
    """A relevant passage as an item of a provenance.

    >>> judged("d7", 1.0), judged("d7", 2.0)
    ({'wikipedia_id': 'd7'}, {'wikipedia_id': 'd7', 'relevance': 2})
    """
    grade = {"relevance": int(score) if score == int(score) else score}
    return {"wikipedia_id": page, **(grade if score != 1 else {})}


def relevant_in(source: Source) -> dict[str, dict[str, float]]:
    """Query id → ids of its relevant passages with their scores above 0, of a file of judgements in BEIR's or TREC's form."""
    relevant: dict[str, dict[str, float]] = {}
    for line, text in source.lines():
        fields = text.split("\t")
        if len(fields) == 1 and len(text.split()) == 4:  # TREC's form may have blanks
            fields = text.split()
        if line == 1 and fields[0].strip().lower() in ("query-id", "query_id", "qid"):
            continue
        if len(fields) == 4:  # TREC's own form has a column that is always 0
            del fields[1]
        try:
            query, passage, score = fields[0].strip(), fields[1].strip(), float(fields[2])
        except (IndexError, ValueError):
            if text.strip():
                source.bad(line, " is not query-id<TAB>corpus-id<TAB>score.")
            continue
        if score > 0:
            relevant.setdefault(query, {})[passage] = score
    return relevant
