"""KoLA's format (Yu et al. 2023, arXiv:2306.09296), the source of R-Eval's tasks 1-1, 1-2 and 2-1 to 2-3: a JSON object whose
``request_states`` each contain a question and its references. A question's number is its id, because KoLA's ids are not unique.
"""

from __future__ import annotations

from rallebench.datasets import Record
from rallebench.datasets._published import PublishedSet, record

KOLA = PublishedSet(
    "KoLA", ("instance",), "a file of KoLA's Sample_Data with answers", inside="request_states"
)
SAMPLE = """{"adapter_spec": {"instructions": ""}, "request_states": [
 {"instance": {"input": {"text": "Which moon?"}, "references": [{"output": {"text": "Titan"}, "tags": ["correct"]}], "id": "id1"}},
 {"instance": {"input": {"text": "Which sea?"}, "references": [{"output": {"text": "Black Sea"}, "tags": ["correct"]}], "id": "id1"}}]}
"""


def _record(row: Record) -> Record:
    instance = row["instance"]
    answers = [reference["output"]["text"] for reference in instance.get("references", ())]
    return record(instance["input"]["text"], answers, environment="wiki")


KOLA.register(
    "kola",
    "KoLA's JSON object with request_states, as in R-Eval's tasks from KoLA.",
    _record,
    {"1-1_sample.json": SAMPLE},
)
