"""ALCE's three sets (Gao et al. 2023, arXiv:2305.14627), one JSON list each. Their retrieved ``docs`` are not gold.

ASQA (Stelmakh et al. 2022, arXiv:2204.06092) has ``qa_pairs``, whose short answers a right answer contains one of each, long answers
(``annotations`` or ``answer``), and pages; the copy on Hugging Face names the question ``ambiguous_question``. QAMPARI (Amouyal et al.
2022, arXiv:2205.12665) has ``answers``, a list of the names of each answer; a right answer lists them all. ELI5 (Fan et al. 2019,
arXiv:1907.09190) has an ``answer`` and ``claims``, which are kept for a judge.
"""

from __future__ import annotations

from collections.abc import Iterator

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, page, record


def _fits(row: Record) -> bool:
    answers = row.get("answers")
    lists = isinstance(answers, list) and bool(answers) and isinstance(answers[0], list)
    return lists or isinstance(row.get("qa_pairs"), list) or isinstance(row.get("claims"), list)


ALCE = PublishedSet(
    "ALCE",
    ("question",),
    "a file of ALCE such as asqa_eval_gtr_top100.json",
    copy=("ambiguous_question", "qa_pairs"),
    like=_fits,
)
SAMPLE = """[{"sample_id": "-1", "question": "When was the moon discovered?", "answer": "Titan was discovered in 1655, Triton in 1846.",
 "qa_pairs": [{"context": "", "question": "When was Titan discovered?", "short_answers": ["1655", "25 March 1655"], "wikipage": "Titan (moon)"},
  {"context": "", "question": "When was Triton discovered?", "short_answers": ["1846"], "wikipage": null}],
 "wikipages": [{"title": "Titan (moon)", "url": "http://example.org/titan"}],
 "docs": [{"id": "7", "title": "Titan (moon)", "text": "Huygens discovered it.", "score": "0.9"}]},
 {"id": "q2", "question": "Which moons did Herschel discover?", "answer": "Titania, Oberon", "answers": [["Titania", "Uranus III"], ["Oberon"]], "docs": []},
 {"question": "Why has Titan air?", "question_ctx": "", "answer": "It is cold.", "claims": ["Titan is cold.", "Cold gas is slow."], "docs": []}]
"""


def _answer_groups(row: Record) -> list[list[str]]:
    """Return the groups of which a right answer contains a member each. Raises TypeError for any other value than texts."""
    pairs = row.get("qa_pairs") or ()
    groups = [pair["short_answers"] for pair in pairs] or list(row.get("answers") or ())
    for group in groups:
        if not isinstance(group, list) or not all(isinstance(text, str) for text in group):
            raise TypeError(group)
    return [texts for group in groups if (texts := [text for text in group if text.strip()])]


def _titles(row: Record) -> Iterator[str]:
    for pair in row.get("qa_pairs") or ():
        yield pair.get("wikipage") or ""
    for annotation in row.get("annotations") or ():
        yield from (each.get("wikipage") or "" for each in annotation.get("knowledge") or ())


def _record(row: Record) -> Record:
    annotations = row.get("annotations") or ()
    long = [annotation.get("long_answer") for annotation in annotations]
    required = _answer_groups(row)
    answers = [text for text in long if text is not None] or [row.get("answer")]
    if required and all(answer is None for answer in answers):
        answers = [", ".join(group[0] for group in required)]
    return record(
        row.get("question", row.get("ambiguous_question")),
        answers,
        sets=[[page(title)] for title in _titles(row) if title],
        id=row.get("sample_id", row.get("id")),
        required=required or None,
        claims=row.get("claims"),
    )


ALCE.register(
    "alce",
    "ALCE's JSON lists of ASQA, QAMPARI and ELI5; the short answers are required, the long ones accepted.",
    _record,
    {"asqa_eval_gtr_top100.json": SAMPLE},
)
