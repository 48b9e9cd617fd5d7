"""The lines of ``support.jsonl``: read as written, those of other models stay, a damaged file has a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from rallebench.core.errors import BadFileError
from rallebench.core.support import AnswerSupport, Quotation, SentenceSupport
from rallebench.engine.store import RunFolder
from rallebench.engine.support_file import SUPPORT, read_support, write_support

SENTENCE = SentenceSupport("It is so.", (1, 2), (9,), (0.25, 1.0), True)
FIRST = AnswerSupport("q1", "", (SENTENCE,), (Quotation("It is so", 2),))
SECOND = AnswerSupport("q2", "", (SentenceSupport("So."),), note="the answer declines")


def test_lines_are_read_as_they_were_written_and_other_models_stay(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert [*read_support(folder)] == []
    write_support(folder, [FIRST, SECOND])
    assert [*read_support(folder)] == [FIRST, SECOND]
    assert [*read_support(folder, "q2")] == [SECOND]
    other = AnswerSupport("q1", "llm", (SENTENCE,))
    write_support(folder, [other])
    assert [*read_support(folder, "q1")] == [other, FIRST]
    write_support(folder, [])
    assert len([*read_support(folder)]) == 3


@pytest.mark.parametrize(
    "line", ["rubbish", "[]", '{"qid": "q1"}', '{"qid": 1, "checker": "", "sentences": 3}']
)
def test_a_damaged_line_has_a_sentence_and_is_replaced(tmp_path: Path, line: str) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / SUPPORT).write_text(line + "\n")
    with pytest.raises(BadFileError, match="score the run again by its support metrics"):
        [*read_support(folder)]
    write_support(folder, [FIRST])
    assert [*read_support(folder)] == [FIRST]
