"""A prompt is found in one's own folder, else among the shipped ones; what is wrong with it is one sentence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.core import prompts as prompt_files
from rallebench.core.errors import BadFileError
from rallebench.core.prompts import filled, prompt_text, prompts_folder

SHIPPED = prompt_text("suites/crud", "qa.txt")


def test_a_folder_of_ones_own_comes_first_and_may_hold_some(tmp_path: Path) -> None:
    (tmp_path / "qa.txt").write_text("Mine: {question}\n\n")
    assert (
        prompt_text("suites/crud", "qa.txt", str(tmp_path), ("question",)) == "Mine: {question}\n"
    )
    (tmp_path / "qa.txt").unlink()
    assert prompt_text("suites/crud", "qa.txt", str(tmp_path)) == SHIPPED


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    own = tmp_path / "qa.txt"
    own.write_text("{question} {{documents}")
    with pytest.raises(BadFileError, match=rf"^The prompt {re.escape(str(own))} lacks {{text}}\.$"):
        prompt_text("suites/crud", "qa.txt", str(tmp_path), ("question", "text"))
    own.write_bytes(b"\xff")
    with pytest.raises(
        BadFileError, match=rf"^The prompt {re.escape(str(own))} cannot be read \(.*\)\.$"
    ):
        prompt_text("suites/crud", "qa.txt", str(tmp_path))
    with pytest.raises(
        BadFileError, match=r"is no folder of prompts; it may hold qa\.txt and other prompts\.$"
    ):
        prompt_text("suites/crud", "qa.txt", str(own))


def test_values_are_never_read_as_fields() -> None:
    assert (
        filled('{a}{b} {"c": {d}}', {"a": "{b}", "b": r"\1", "e": "unused"}) == '{b}\\1 {"c": {d}}'
    )


def test_installed_prompts_lie_under_the_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "share" / "rallebench" / "prompts" / "suites" / "crud"
    installed.mkdir(parents=True)
    (installed / "qa.txt").write_text("Installed.\n")
    monkeypatch.setattr(
        prompt_files, "__file__", str(tmp_path / "site-packages" / "rallebench" / "prompt_files.py")
    )
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert prompt_text("suites/crud", "qa.txt") == "Installed."


def test_every_folder_of_prompts_is_installed() -> None:
    listed = re.findall(
        r'^"share/rallebench/(prompts/\S+)" = \["(\S+)"\]$',
        (PROJECT / "pyproject.toml").read_text(),
        re.MULTILINE,
    )
    installed = {
        path
        for folder, pattern in listed
        for path in PROJECT.glob(pattern)
        if pattern.startswith(folder)
    }
    shipped = {
        path
        for path in prompts_folder().rglob("*")
        if path.is_file() and path.parent != prompts_folder()
    }
    assert shipped - {path for path in shipped if path.name == "README.md"} <= installed
