"""BoolQ (Clark et al. 2019, arXiv:1905.10044): JSON lines with ``question``, ``title``, ``passage`` and ``answer``, true or
false. The accepted answer is yes or no; the gold page is the title.

The copy on Hugging Face has no title, so no gold page; SuperGLUE's has ``label`` instead of ``answer``, and ``idx``.
"""

from __future__ import annotations

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, page, record, yes_or_no

LABELS = {0: False, 1: True, -1: None}
"""Labels of SuperGLUE on Hugging Face; -1 in its test split."""


def _fits(row: Record) -> bool:
    return isinstance(row.get("answer", row.get("label")), (bool, int))


BOOLQ = PublishedSet(
    "BoolQ",
    ("question", "passage", "answer"),
    "dev.jsonl of BoolQ",
    copy=("question", "passage", "idx", "label"),
    like=_fits,
)
SAMPLE = """{"question": "is titan a moon of saturn", "title": "Titan (moon)", "answer": true, "passage": "Titan is the largest moon of Saturn."}
{"question": "does the danube reach the north sea", "title": "Danube", "answer": false, "passage": "It reaches the Black Sea."}
"""


def _record(row: Record) -> Record:
    value = row["answer"] if "answer" in row else row["label"]
    truth = LABELS[value] if type(value) is int else value
    title, passage = row.get("title"), row["passage"]
    sets = [[page(title, passage)]] if title else []
    return record(row["question"], [yes_or_no(truth)], sets=sets, dataset="boolq")


BOOLQ.register(
    "boolq",
    "BoolQ's own JSON lines, answered by yes or no; the gold page is the title.",
    _record,
    {"dev.jsonl": SAMPLE},
)
