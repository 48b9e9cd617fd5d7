"""Search-R1's sets (Jin et al. 2025, arXiv:2503.09516), and others of verl: records with ``data_source``, ``prompt`` (messages) and
``reward_model``, whose ``ground_truth`` has the accepted answers as ``target``.

The question is the field ``question``; without it, the text after "Question:" in the last message, without the passages of a prompt with retrieval, or that message. The ids of several
sources repeat each other, so the source's name stands before them. The sets are FlashRAG's; their metadata may name gold pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError, is_empty
from rallebench.datasets.fields import RowOfFields, read_row
from rallebench.datasets.kilt import first_rows, numbered_rows

FIELDS = ("data_source", "prompt", "reward_model")
_QUESTION = re.compile(
    r".*?\bQuestion:\s*(?P<question>.+?)\s*(?:\bContext:\s*Doc 1\(.*)?", re.DOTALL
)
SAMPLE = """{"data_source": "nq", "prompt": [{"role": "user", "content": "Answer the given question. You can search. Question: which moon did huygens discover?\\n"}], "ability": "fact-reasoning", "reward_model": {"style": "rule", "ground_truth": {"target": ["Titan", "Saturn VI"]}}, "extra_info": {"split": "train", "index": 0}}
{"id": "train_0", "question": "which sea does the danube reach?", "golden_answers": ["Black Sea"], "data_source": "hotpotqa", "prompt": [{"role": "user", "content": "Question: which sea does the danube reach?\\n"}], "ability": "fact-reasoning", "reward_model": {"style": "rule", "ground_truth": {"target": ["Black Sea"]}}, "extra_info": {"split": "train", "index": 0}, "metadata": {"supporting_facts": {"title": ["Danube"], "sent_id": [1]}}}
"""


def recognises(path: Path) -> bool:
    """Return whether the first rows are prompts with a reward."""
    rows = first_rows(path) if path.is_file() else []
    return bool(rows) and all(
        row.keys() >= {*FIELDS} and isinstance(row["reward_model"], Mapping) for row in rows
    )


def _question(row: Record) -> object:
    if not is_empty(row.get("question")):
        return row["question"]
    messages = row.get("prompt")
    last = messages[-1] if isinstance(messages, list) and messages else None
    text = last.get("content") if isinstance(last, Mapping) else None
    if not isinstance(text, str):
        raise NoValueError(" has no 'question' and no 'prompt' with the text of a message.")
    match = _QUESTION.fullmatch(text.strip())
    return match["question"] if match else text.strip()


def _answers(row: Record) -> object:
    reward = row.get("reward_model")
    truth = reward.get("ground_truth") if isinstance(reward, Mapping) else None
    return truth.get("target") if isinstance(truth, Mapping) else truth


def read_fields(row: Record, number: int) -> RowOfFields:
    """Read a row by its fields. Raises NoValueError."""
    further = row.get("extra_info")
    index = further.get("index") if isinstance(further, Mapping) else None
    name = next((value for value in (row.get("id"), index) if not is_empty(value)), number)
    fields = {"question": _question(row), "answers": _answers(row)}
    source = row.get("data_source")
    own = f"{source}-{name}" if isinstance(source, str) and source else name
    return read_row({"id": own, **fields, "metadata": row.get("metadata")}, number)


@DATASETS.register(
    "search-r1",
    recognises=recognises,
    rows=numbered_rows,
    fields=read_fields,
    sample={"train.jsonl": SAMPLE},
)
def read_search_r1(source: Source) -> Iterator[tuple[int, Record]]:
    """Search-R1's records: prompt and reward_model, whose target lists the accepted answers."""
    for line, number, row in numbered_rows(source):
        try:
            yield line, read_fields(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
