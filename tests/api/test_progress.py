"""The bar of a terminal: counts, steps, warnings beside it, no thread of its own, silence on request."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_workspace import environment

from rallebench import Workspace
from rallebench.api.progress import Bar, last
from rallebench.core.events import Failed, Finished, Progress, Warned


def test_a_bar_counts_questions_and_names_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("first", show=True) as bar:
        bar.hear(Progress("", message="loading titan"))
        bar.hear(Progress("", 0, 8, "running"))
        bar.hear(Progress("", 5, 8, errors=2))
        bar.hear(Progress("", 8, 8, errors=2))
    shown = capsys.readouterr().err
    assert "first loading titan" in shown and "8/8" in shown and "2 failed" in shown


def test_warnings_stand_beside_the_bar_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("first", show=True) as bar:
        bar.hear(Progress("", 1, 8))
        for _ in range(2):
            bar.hear(Warned("", "Few questions."))
        bar.hear(Failed("part", "no model"))
    shown = capsys.readouterr().err
    assert shown.count("Warning: Few questions.") == 1 and "part failed: no model" in shown


def test_work_without_a_count_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("ask", show=True):
        pass
    assert capsys.readouterr().err == ""
    with Bar("ask", show=True) as bar:
        bar.move(Progress("", message="loading titan"))
    assert "ask loading titan" in (shown := capsys.readouterr().err) and "\n" not in shown


def test_work_that_had_ended_before_fills_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("first", show=True) as bar:
        bar.hear(Progress("", 0, 8, "running"))
        bar.hear(Finished("", reused=True))
    assert "first (had ended before): 100%" in capsys.readouterr().err


def test_a_bar_is_drawn_in_a_terminal_that_tells_no_size() -> None:
    script = "from rallebench.api.progress import Bar, Progress\nwith Bar('first', None) as bar: bar.move(Progress('', 1, 2))"
    parent, child = pty.openpty()
    command = [sys.executable, "-c", script]
    subprocess.run(command, stderr=child, stdout=child, env=environment(), check=True, timeout=60)
    assert b"first" in os.read(parent, 4096)
    for end in (parent, child):
        os.close(end)


def test_a_bar_starts_no_thread() -> None:
    before = threading.active_count()
    with Bar("first", show=True) as bar:
        bar.hear(Progress("", 1, 2))
        assert threading.active_count() == before


@pytest.mark.parametrize("show", [None, False])
def test_no_bar_is_drawn_where_nobody_sees_it(
    workspace: Path, capfd: pytest.CaptureFixture[str], show: bool | None
) -> None:
    with Workspace(workspace, track=False, progress=show) as ws:
        ws.run("read", "tiny-qa")
    ran = capfd.readouterr()
    assert "it/s" not in ran.err and ran.out == ""


def test_an_interrupt_beside_the_bar_reaches_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def work() -> Iterator[Progress | int]:
        try:
            yield Progress("", 1, 2)
        except KeyboardInterrupt:
            ended.append("by Ctrl-C")
            raise
        yield 1

    def interrupt(self: Bar, event: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "move", interrupt)
    with pytest.raises(KeyboardInterrupt):
        last(work(), "build", False)
    assert ended == ["by Ctrl-C"]
