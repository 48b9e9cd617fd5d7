"""A prompt comes from the user's folder, else from the shipped ones; a fault in it is one sentence."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from project import PROJECT

from rallebench.core import prompts as prompt_files
from rallebench.core.errors import BadFileError
from rallebench.core.prompts import fill_template, find_wording, prompt_text, prompts_folder

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
        BadFileError,
        match=r"is not a folder of prompts; choose one with qa\.txt and other prompts\.$",
    ):
        prompt_text("suites/crud", "qa.txt", str(own))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("é {question}".encode("latin-1"), "it is not UTF-8 text, byte 0"),
        ("é {question}".encode("utf-16"), "it is not UTF-8 text, byte 0"),
        ("e {question}".encode("utf-16-le"), "it holds binary data, or text that is not UTF-8"),
        (None, "Is a directory"),
        ("nowhere", "No such file or directory"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_no_reason_to_send_the_shipped_text(
    content: bytes | str | None, why: str, tmp_path: Path
) -> None:
    own = tmp_path / "qa.txt"
    if content is None:
        own.mkdir()
    elif isinstance(content, str):
        own.symlink_to(content)
    else:
        own.write_bytes(content)
    sentence = re.escape(f"The prompt {own} cannot be read ({why}).")
    for read in (
        lambda: prompt_text("suites/crud", "qa.txt", str(tmp_path)),
        lambda: find_wording(str(tmp_path), [("suites/crud", "qa.txt")]),
    ):
        with pytest.raises(BadFileError, match=f"^{sentence}$"):
            read()


def test_a_mark_of_byte_order_is_no_part_of_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "qa.txt").write_bytes(b"\xef\xbb\xbfMine: {question}")
    assert prompt_text("suites/crud", "qa.txt", str(tmp_path)) == "Mine: {question}"


def test_a_folder_with_some_prompts_names_those_that_are_ours(tmp_path: Path) -> None:
    (tmp_path / "qa.txt").write_text("Mine: {question}")
    both = [("suites/crud", "qa.txt"), ("suites/crud", "summary.txt")]
    note = find_wording(str(tmp_path), both).note()
    assert note.endswith("not the paper's; reworded, as the folder has none: summary.txt.")
    assert find_wording(str(tmp_path), both[:1]).note().endswith("not the paper's.")


def test_values_are_never_read_as_fields() -> None:
    assert (
        fill_template('{a}{b} {"c": {d}}', {"a": "{b}", "b": r"\1", "e": "unused"})
        == '{b}\\1 {"c": {d}}'
    )


def test_installed_prompts_lie_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
