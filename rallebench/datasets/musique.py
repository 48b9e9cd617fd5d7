"""MuSiQue (Trivedi et al. 2022, arXiv:2108.00573): JSON lines with ``id``, ``question``, ``answer``, ``answer_aliases``,
``answerable`` and ``paragraphs`` (title, paragraph_text, is_supporting).

Of each question, MuSiQue-Full has a second row that its own paragraphs do not answer: declining is right there. It has the same
id, so ``-unanswerable`` is added, and no gold pages. With a corpus of all paragraphs of the set, such a question has an answer
again. R-Eval leaves these rows out (``papers/reval``).
"""

from __future__ import annotations

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

MUSIQUE = PublishedSet("MuSiQue", ("id", "question", "paragraphs"), "musique_ans_v1.0_dev.jsonl")
SAMPLE = """{"id": "2hop__1_2", "question": "Who discovered the largest moon of Saturn?", "answer": "Huygens", "answer_aliases": ["Christiaan Huygens"], "answerable": true, "question_decomposition": [], "paragraphs": [{"idx": 0, "title": "Saturn", "paragraph_text": "Titan is its largest moon.", "is_supporting": true}, {"idx": 1, "title": "Titan", "paragraph_text": "Huygens discovered it.", "is_supporting": true}]}
{"id": "2hop__3_4", "question": "Which sea does the river of Ulm reach?", "answer": "Black Sea", "answer_aliases": [], "answerable": true, "question_decomposition": [], "paragraphs": [{"idx": 0, "title": "Danube", "paragraph_text": "It reaches the Black Sea.", "is_supporting": true}]}
"""


def _record(row: Record) -> Record:
    answerable = row.get("answerable", True)
    if not isinstance(answerable, bool):
        raise TypeError(answerable)
    if not answerable:
        name = f"{row['id']}-unanswerable"
        return record(
            row["question"], [], id=name, environment="wiki", dataset="musique", unanswerable=True
        )
    pages: dict[str, str] = {}
    for paragraph in row["paragraphs"]:
        if paragraph.get("is_supporting"):
            title = str(paragraph["title"])
            pages[title] = "\n".join(filter(None, [pages.get(title), paragraph["paragraph_text"]]))
    answers = [row.get("answer"), *row.get("answer_aliases", ())]
    return record(
        row["question"], answers, pages, id=row["id"], environment="wiki", dataset="musique"
    )


MUSIQUE.register(
    "musique",
    "MuSiQue's own JSON lines; aliases are accepted, and declining is right for unanswerable questions.",
    _record,
    {"musique_ans_v1.0_dev.jsonl": SAMPLE},
)
