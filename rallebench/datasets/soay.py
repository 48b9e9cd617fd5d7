"""SoAyBench's questions about scholars (Wang et al. 2024, arXiv:2405.15165): JSON lines with ``Query_en`` and ``Answer``.

The folder has one file per template, ``1.jsonl`` to ``44.jsonl``; R-Eval calls the first seven easy and the others hard.
Several answers become one text, joined by semicolons, as in R-Eval; the few questions that AMiner could not answer are left
out. The scholars are AMiner's; a table of them must be imported, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from rallebench.core.errors import BadFileError
from rallebench.core.sources import Source
from rallebench.datasets import DATASETS, Record
from rallebench.datasets._published import PublishedSet, record

SOAY = PublishedSet("SoAyBench", ("Query_en", "Answer"), "a file of soayBench/soayBench_v1-2")
EASY, FIRST_HARD = 7, 8
SAMPLE = """{"Query": "?", "Query_en": "Interests of Ada at Linz", "Answer": ["Looms", "Numbers"]}
{"Query": "?", "Query_en": "Interests of Max at Ulm", "Answer": "Maps"}
"""


def _record(task: str, row: Record) -> Record | None:
    answer = row["Answer"]
    if answer in ([], ""):
        return None
    text = "; ".join(map(str, answer)) if isinstance(answer, list) else answer
    return record(row["Query_en"], [text], environment="aminer", dataset=task)


def _records(
    source: Source, task: str, belongs: Callable[[int], bool]
) -> Iterator[tuple[int, Record]]:
    """Yield the records of a file, or of the folder's files whose number ``belongs`` accepts; ids are file and line."""
    files = [source.path]
    if source.path.is_dir():
        numbered = {
            int(file.stem): file for file in source.path.glob("*.jsonl") if file.stem.isdigit()
        }
        files = [file for number, file in sorted(numbered.items()) if belongs(number)]
        if not files:
            raise BadFileError(
                f"{source.path} has no files such as {EASY}.jsonl and {FIRST_HARD}.jsonl; name the folder soayBench_v1-2."
            )
    for file in files:
        part = replace(source, path=file, total=0)
        for line, row in SOAY.records(part, partial(_record, task)):
            yield line, {**row, "id": f"{file.stem}-{line}"}


@DATASETS.register("soay-easy", sample={"soay/1.jsonl": SAMPLE})
def read_easy(source: Source) -> Iterator[tuple[int, Record]]:
    """SoAyBench's folder: the questions of templates 1 to 7, R-Eval's Soay-Easy; or one of its files."""
    return _records(source, "soay_easy", lambda number: number <= EASY)


@DATASETS.register("soay-hard", sample={"soay/8.jsonl": SAMPLE})
def read_hard(source: Source) -> Iterator[tuple[int, Record]]:
    """SoAyBench's folder: the questions of templates 8 to 44, R-Eval's Soay-Hard; or one of its files."""
    return _records(source, "soay_hard", lambda number: number > EASY)
