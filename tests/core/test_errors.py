"""An error with another sentence keeps its kind and its mend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rallebench
from rallebench.core.errors import (
    BackendError,
    BadFileError,
    Hint,
    MissingPackageError,
    RalleError,
    SettingError,
    StoppedError,
)
from rallebench.core.files import DiskError

SOURCES = sorted(Path(rallebench.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    "error",
    [
        BadFileError("The file is empty.", hint=Hint("skip-bad")),
        SettingError("noise", 3, "a number from 0 to 1"),
        MissingPackageError("hnswlib", "for this index"),
        StoppedError("The run was stopped.", hint=Hint("start-again")),
        DiskError("The disk is full.", hint=Hint("free-space")),
        BackendError("The server is down."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_with_another_sentence_stays_what_it_is(error: RalleError) -> None:
    other = error.saying(f"a.json: {error}")
    assert type(other) is type(error)
    assert str(other) == f"a.json: {error}"
    assert (other.setting, other.hint) == (error.setting, error.hint)


def test_another_hint_replaces_the_first() -> None:
    error = BackendError("The run was not logged.", hint=Hint("rename"))
    assert error.saying("It is kept.", Hint("track", "a")).hint == Hint("track", "a")


def test_no_error_is_made_again_by_its_type_which_would_drop_its_hint() -> None:
    again = re.compile(r"type\(error\)\(")
    assert [str(file) for file in SOURCES if again.search(file.read_text())] == []
