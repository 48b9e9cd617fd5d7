"""DPR's training and development sets (Karpukhin et al. 2020, arXiv:2004.04906): one JSON list, or JSON lines, of records with
``question``, ``answers``, ``positive_ctxs``, ``negative_ctxs`` and ``hard_negative_ctxs``.

Each positive passage is an evidence set of its own. Its page is its title, and its ``passage_id`` (TriviaQA: ``psg_id``) is the id
in DPR's corpus ``psgs_w100.tsv``. The tables of DPR's retriever, a question and its answers in each row, are the format ``csv``.
"""

from __future__ import annotations

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, page, record

DPR = PublishedSet(
    "DPR's format",
    ("question", "positive_ctxs"),
    "biencoder-nq-dev.json of DPR",
    english=False,
    answered=False,
)
SAMPLE = """[{"dataset": "nq_dev_psgs_w100", "question": "which moon did huygens discover", "answers": ["Titan", "Saturn VI"],
 "positive_ctxs": [{"title": "Titan (moon)", "text": "Huygens discovered it.", "score": 1000, "title_score": 1, "passage_id": "7"}, {"title": "Saturn", "text": "Titan is its moon.", "score": 9.5, "title_score": 0, "passage_id": "9"}],
 "negative_ctxs": [], "hard_negative_ctxs": [{"title": "Mars", "text": "It has two moons.", "score": 8.1, "title_score": 0, "passage_id": "3"}]},
 {"dataset": "nq_dev_psgs_w100", "question": "which sea does the danube reach", "answers": ["Black Sea"],
 "positive_ctxs": [{"title": "Danube", "text": "It reaches the Black Sea.", "psg_id": "5"}], "negative_ctxs": [], "hard_negative_ctxs": []}]
"""


def _gold(context: Record) -> Record:
    passage = context.get("passage_id", context.get("psg_id"))
    title = str(context.get("title") or passage or "").strip()
    more = {} if passage is None else {"doc_id": str(passage)}
    return page(title, context["text"], **more)


def _record(row: Record) -> Record:
    answers = row.get("answers") or ()
    if isinstance(answers, str):
        raise TypeError(answers)
    sets = [[_gold(context)] for context in row["positive_ctxs"]]
    name = row.get("id", row.get("question_id"))
    return record(row["question"], answers, sets=sets, id=name, dataset=row.get("dataset"))


DPR.register(
    "dpr",
    "DPR's biencoder files; each positive passage is a gold passage, its page the title.",
    _record,
    {"biencoder-nq-dev.json": SAMPLE},
)
