"""Control characters in texts of models and files: shown as escapes, so that no terminal obeys them."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from small_workspace import CommandLine, add_llm

from rallebench.cli.printing import say
from rallebench.core.tables import Table
from rallebench.core.terminal import VisibleFormatter, visible, visible_json, visible_line
from rallebench.render import text as rendered

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \x9b31m \u202egnp.exe \u2066x\u2069 \r over \x7f"


def is_harmless(text: str) -> bool:
    """Return whether a text moves no cursor, begins no sequence, rings no bell and keeps the direction of writing."""
    codes = {ord(character) for character in text} - {9, 10}
    turning = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return codes.isdisjoint({*range(32), *range(0x7F, 0xA0), *turning})


@given(st.text())
def test_a_shown_text_is_harmless_and_otherwise_as_it_was(text: str) -> None:
    assert is_harmless(visible(text))
    assert visible(text) == text or not is_harmless(text) or any(c in text for c in "\u2028\u2029")
    assert "\n" not in visible_line(text)


@given(st.text())
def test_shown_json_is_the_same_value(text: str) -> None:
    shown = visible_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert is_harmless(shown) and json.loads(shown) == {text: [text]}


def test_the_letters_of_all_scripts_stay() -> None:
    for text in ("Köln", "عربي", "हिन्दी", "日本語", "👩\u200d🚀", "a\u0301"):
        assert visible(text) == text


def test_a_reply_a_name_and_a_question_reach_the_terminal_as_escapes(cli: CommandLine) -> None:
    add_llm(cli.workspace, f"loud {HOSTILE}", default=f"Titan {HOSTILE}")
    for words in (("models", "ask", f"loud {HOSTILE}", HOSTILE), ("list", "llms")):
        ran = cli(*words)
        assert ran.code == 0 and "\\x1b[2J" in ran.out + ran.err
        assert is_harmless(ran.out) and is_harmless(ran.err)
    ran = cli("ask", "--chain", "closed", "--llm", f"loud {HOSTILE}", "--question", HOSTILE)
    assert ran.code == 0 and is_harmless(ran.out) and is_harmless(ran.err)
    ran = cli("models", "ask", f"loud {HOSTILE}", "x", "--json")
    assert is_harmless(ran.out) and HOSTILE in "".join(map(str, ran.json.values()))


def test_progress_errors_and_unknown_names_are_harmless(cli: CommandLine) -> None:
    say(f"run {HOSTILE}: 3/8")
    shown = cli.capture.readouterr().err
    assert is_harmless(shown) and "\\u202e" in shown
    for words in (("compare", HOSTILE, "b"), ("list", HOSTILE), (f"li{HOSTILE}", "x")):
        ran = cli(*words)
        assert ran.code == 2 and is_harmless(ran.err)


def test_a_file_with_a_hostile_name_is_named_harmlessly(cli: CommandLine) -> None:
    path = Path(cli.workspace) / "datasets" / "x\x1b[2J\u202e.jsonl"
    path.write_text("{}\n")
    ran = cli("list", "datasets")
    assert ran.code == 0 and is_harmless(ran.out) and "x\\x1b[2J\\u202e" in ran.out


def test_a_table_keeps_its_rows_whatever_its_cells_hold() -> None:
    lines = rendered.table(Table("", ("run", "EM"), (("a\nb", 0.5), (HOSTILE, 0.5))))
    assert len(lines) == 3 and all(is_harmless(line) and "\n" not in line for line in lines)


def test_lines_of_the_log_are_harmless() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "reply %s", (HOSTILE,), None)
    assert is_harmless(VisibleFormatter().format(record))
