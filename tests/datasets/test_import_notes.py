"""The notes that an import keeps beside its dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from importing import imported_dataset

from rallebench.core.errors import BadFileError
from rallebench.datasets.import_notes import notes_file, read_notes


def test_what_an_import_leaves_out_is_kept_and_an_import_without_loss_keeps_nothing(
    tmp_path: Path,
) -> None:
    source = tmp_path / "own.jsonl"
    source.write_text('{"question": "Which moon?", "gold_text": "Titan"}\nno row\n')
    brought = imported_dataset(tmp_path / "datasets", "own", source, skip_bad=True)
    kept = read_notes(brought.path)
    assert kept.skipped == 1 and kept.warnings == tuple(brought.warnings) != ()
    source.write_text(
        '{"id": "1", "input": "Which moon?", "output": [{"answer": "Titan", "provenance": [{"wikipedia_id": "1"}]}]}\n'
    )
    whole = imported_dataset(tmp_path / "datasets", "whole", source)
    assert not notes_file(whole.path).exists() and read_notes(whole.path).warnings == ()


def test_damaged_notes_are_one_sentence_with_the_mend(tmp_path: Path) -> None:
    notes_file(tmp_path / "own.jsonl").write_text('{"skipped": "x"}')
    with pytest.raises(BadFileError, match="import the dataset again"):
        read_notes(tmp_path / "own.jsonl")
