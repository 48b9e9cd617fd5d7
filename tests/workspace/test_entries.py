"""The entries of models and combinations: a change preserves simultaneous changes of others."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rallebench.core.entries import LLMEntry
from rallebench.core.errors import UsageError
from rallebench.workspace import entries
from rallebench.workspace.entries import changing, read_llm_entries
from rallebench.workspace.paths import WorkspaceFolder

ECHO = LLMEntry(backend="scripted", settings={"echo": True})


def test_two_changes_at_the_same_time_are_both_kept(tmp_path: Path) -> None:
    workspace = WorkspaceFolder(tmp_path)
    other = threading.Thread(target=workspace.save_llm, args=("second", ECHO))
    with changing(tmp_path / "llms.json", read_llm_entries) as models:
        other.start()
        models["first"] = ECHO
        other.join(0.2)  # the other change waits for this one
    other.join(10)
    assert read_llm_entries(tmp_path / "llms.json") == {"first": ECHO, "second": ECHO}


def test_a_change_that_would_wait_too_long_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "CHANGE_LOCK_SECONDS", 0.0)
    with changing(tmp_path / "llms.json", read_llm_entries) as models:
        models["first"] = ECHO
        with pytest.raises(UsageError, match=r"llms\.json is being changed by another process"):
            WorkspaceFolder(tmp_path).save_llm("second", ECHO)
    assert read_llm_entries(tmp_path / "llms.json") == {"first": ECHO}


def test_a_change_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    workspace = WorkspaceFolder(tmp_path)
    workspace.save_llm("first", ECHO)
    with (
        pytest.raises(KeyError),
        changing(tmp_path / "llms.json", read_llm_entries) as models,
    ):
        models["second"] = ECHO
        del models["third"]
    assert read_llm_entries(tmp_path / "llms.json") == {"first": ECHO}
    assert list(tmp_path.iterdir()) == [tmp_path / "llms.json"], "no lock is left behind"
