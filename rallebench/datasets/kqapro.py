"""KQA Pro (Cao et al. 2022, arXiv:2007.03875): one JSON list of records with ``question``, ``choices`` (ten), ``answer``,
``program`` and ``sparql``. A question's number is its id; its answer comes from a knowledge base, so it has no gold pages.
"""

from __future__ import annotations

from rallebench.datasets._published import PublishedSet, record

KQAPRO = PublishedSet("KQA Pro", ("question", "choices"), "val.json of KQA Pro")
SAMPLE = """[{"question": "Which is longer, the Danube or the Rhine?", "choices": ["Danube", "Rhine"], "program": [], "sparql": "",
 "answer": "Danube"},
 {"question": "How many moons has Mars?", "choices": ["1", "2"], "program": [], "sparql": "", "answer": "2"}]
"""


KQAPRO.register(
    "kqapro",
    "KQA Pro's own JSON list; the choices are not shown.",
    lambda row: record(row["question"], [row.get("answer")], environment="wiki", dataset="kqapro"),
    {"val.json": SAMPLE},
)
