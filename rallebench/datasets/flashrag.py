"""FlashRAG's sets (Jin et al. 2024, arXiv:2405.13576): JSON lines with ``id``, ``question``, ``golden_answers`` and ``metadata``.

A multiple-choice question has ``choices``, also in its metadata, and golden answers that are their numbers; the text of the choice is
accepted. True and false are accepted as yes and no, too. The metadata may name gold pages, as those of HotpotQA do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._values import NoValueError
from rallebench.datasets.fields import RowOfFields, read_row
from rallebench.datasets.kilt import first_rows, numbered_rows

SAMPLE = """{"id": "test_0", "question": "which moon did huygens discover", "golden_answers": ["Titan", "Saturn VI"], "metadata": {}}
{"id": "test_1", "question": "Which river passes Ulm?", "golden_answers": [1], "choices": ["Rhine", "Danube"], "metadata": {"supporting_facts": {"title": ["Ulm"], "sent_id": [0]}}}
"""


def recognises(path: Path) -> bool:
    """Return whether the first rows have FlashRAG's fields, but are not prompts of Search-R1."""
    rows = first_rows(path) if path.is_file() else []
    return bool(rows) and all(
        {"id", "question", "golden_answers"} <= row.keys()
        and isinstance(row["golden_answers"], list)
        and "reward_model" not in row
        for row in rows
    )


def _answer_texts(answer: object, choices: object) -> list[object]:
    """Return the texts of a golden answer: of a number, the choice; of a truth value, also yes or no."""
    if isinstance(answer, bool):
        return ["yes", "true"] if answer else ["no", "false"]
    if isinstance(choices, list) and type(answer) is int:
        if not 0 <= answer < len(choices):
            raise NoValueError(
                f": the golden answer {answer} is not the number of one of the {len(choices)} choices."
            )
        return [choices[answer]]
    return [answer]


def read_fields(row: Record, number: int) -> RowOfFields:
    """Read a row by its fields. Raises NoValueError for golden answers in another form than a list."""
    golden = row.get("golden_answers")
    if not isinstance(golden, list):
        raise NoValueError(" has no list 'golden_answers', as FlashRAG's rows have.")
    metadata = row.get("metadata")
    inner = metadata.get("choices") if isinstance(metadata, dict) else None
    choices = row.get("choices") or inner
    answers = [text for answer in golden for text in _answer_texts(answer, choices)]
    fields = {name: value for name, value in row.items() if name != "choices"}
    return read_row({**fields, "golden_answers": answers}, number)


@DATASETS.register(
    "flashrag",
    recognises=recognises,
    rows=numbered_rows,
    fields=read_fields,
    sample={"test.jsonl": SAMPLE},
)
def read_flashrag(source: Source) -> Iterator[tuple[int, Record]]:
    """FlashRAG's JSON lines: id, question, golden_answers and metadata; of multiple choice, the choice is accepted."""
    for line, number, row in numbered_rows(source):
        try:
            yield line, read_fields(row, number).record
        except NoValueError as error:
            source.bad(line, str(error))
