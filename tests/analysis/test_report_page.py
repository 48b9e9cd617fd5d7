"""A run or a comparison as one HTML file: complete, small, and without network access."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from small_workspace import CommandLine

from rallebench.render.svg import ALLOWED, AS_PNG


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], workspace: Path) -> CommandLine:
    command = CommandLine(capfd, workspace)
    assert command.run("first", "titan").code == command.run("second", "echo").code == 0
    return command


def write_report(cli: CommandLine, tmp_path: Path, *runs: str) -> str:
    ran = cli("report", *runs, "--out", tmp_path / "report.html", "--json")
    assert ran.code == 0, ran.err
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ran.json["bytes"] == len(text.encode())
    return text


def test_a_run_is_shown_with_metrics_chain_and_questions(cli: CommandLine, tmp_path: Path) -> None:
    text = write_report(cli, tmp_path, "first")
    assert text.count("<details>") >= 8 and "Which moon of Saturn has a thick atmosphere?" in text
    for part in (
        "Where questions were lost",
        "95 % interval",
        "Passages: {response[0]}",
        "Question: Which moon of Saturn",
    ):
        assert part in text


def test_a_comparison_shows_what_was_changed_and_flipped(cli: CommandLine, tmp_path: Path) -> None:
    text = write_report(cli, tmp_path, "first", "second")
    assert (
        "action 2: target" in text
        and "one test that counts articles" in text
        and "too few articles" in text
    )
    assert "1 question changed its score" in text
    assert "Quality against seconds a question" in text and text.count("<svg") >= 1


def test_where_nothing_is_scored_in_both_nothing_is_equal(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "pages.run"
    file.write_text("q1 Q0 p1 1 2.0 tag\n", encoding="utf-8")
    assert cli.predictions(file, "pages").code == 0
    text = write_report(cli, tmp_path, "first", "pages", "--metric", "has_answer")
    assert "No question is scored by has_answer in both." in text
    assert "No question changed its score." not in text


def test_the_file_asks_no_network_and_runs_nothing(cli: CommandLine, tmp_path: Path) -> None:
    for runs in (("first",), ("first", "second")):
        text = write_report(cli, tmp_path, *runs)
        assert not re.search(r"(?:src|href)=\"(?!data:text/csv|data:image/svg|#\")", text)
        assert "url(" not in text and "@import" not in text
        assert "<script" not in text and "default-src 'none'" in unescape(text)
        handlers = {unescape(found) for found in re.findall(r"\son\w+=\"([^\"]*)\"", text)}
        assert handlers == {AS_PNG} and ALLOWED in unescape(text), (
            "nothing runs but what saves a drawing, and the file itself says so"
        )


def test_an_absent_run_is_one_sentence_and_no_file(cli: CommandLine, tmp_path: Path) -> None:
    ran = cli("report", "nobody", "--out", tmp_path / "no.html")
    assert ran.code == 2 and "There is no run 'nobody'" in ran.last
    assert not (tmp_path / "no.html").exists()
