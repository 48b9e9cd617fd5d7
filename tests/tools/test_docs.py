"""The generated parts of the manual are up to date with the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import docs


def test_the_generated_parts_of_the_manual_are_up_to_date() -> None:
    names = [path.name for path, _ in docs.outdated()]
    assert not names, f"{', '.join(names)} out of date; write them anew: {docs.COMMAND}"


def test_every_generated_part_has_its_place_in_the_manual() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in docs.DOCS.glob("*.md"))
    for name in docs.PARTS:
        assert text.count(f"<!-- begin: {name} -->") == text.count(f"<!-- end: {name} -->") == 1


def test_text_that_was_written_by_hand_stays() -> None:
    text = "before\n<!-- begin: metrics -->\nout of date\n<!-- end: metrics -->\nafter\n"
    new = docs.generated(text)
    assert new.startswith("before\n<!-- begin: metrics -->\n\n| name |")
    assert new.endswith("|\n\n<!-- end: metrics -->\nafter\n") and "out of date" not in new
    assert docs.generated(new) == new


def test_a_file_that_is_out_of_date_is_named_with_its_new_text(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("<!-- begin: metrics -->\n<!-- end: metrics -->\n")
    (tmp_path / "b.md").write_text("nothing generated\n")
    ((path, text),) = docs.outdated(tmp_path)
    assert path.name == "a.md" and "| `em` |" in text


def test_check_writes_nothing_and_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.md"
    path.write_text("<!-- begin: metrics -->\n<!-- end: metrics -->\n")
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    monkeypatch.setattr(docs.registered, "FILE", tmp_path / "registered.json")
    assert docs.main(["--check"]) == 1
    said = capsys.readouterr()
    assert "a.md is out of date" in said.out and docs.COMMAND in said.err
    monkeypatch.setattr(docs, "record_additions", lambda: 0)
    assert docs.main([]) == 0 and docs.main(["--check"]) == 0


def test_new_names_are_recorded_and_one_that_is_gone_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs, "INVENTORY", tmp_path / "test_names.py")
    docs.INVENTORY.write_text(RECORDS)
    assert docs.record_additions() == 0
    assert (tmp_path / "update.txt").read_text() == "additions"
    docs.INVENTORY.write_text("def test_names(): assert not 'em', 'gone'\n")
    assert docs.record_additions() == 1


RECORDS = """
import os
import pathlib

def test_names():
    pathlib.Path(__file__).with_name("update.txt").write_text(os.environ["UPDATE_GOLDEN"])
"""


def test_every_name_a_user_can_write_is_in_the_manual() -> None:
    registries = docs._registries()
    assert {"LLMS", "ENCODERS", "WORKFLOWS", "EXPERIMENTS", "METRICS"} <= registries.keys()
    text = docs.registries()
    for variable, registry in registries.items():
        if variable not in docs.ELSEWHERE:
            assert all(f"| `{name}` |" in text for name in registry.names())
