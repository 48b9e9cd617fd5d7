"""A verb is one file: its flags, help, JSON, tables and exit code follow from the registration."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from distributions import write_distribution
from small_workspace import command, environment

VERB = '''
"""``count-words``: words of texts."""

from rallebench.cli.flags import flag, switch
from rallebench.cli.verbs import VERBS, Result
from rallebench.core.errors import UsageError
from rallebench.core.tables import Column, Table


@VERBS.register(
    "count-words",
    about="count the words of texts",
    example="rallebench count-words 'one two'",
    order=50,
    flags=(flag("texts", "TEXT", nargs="+"), switch("--strict", "fail for an empty text")),
)
def count_words(args):
    """Text and its number of words."""
    if "forbidden" in args.texts:
        raise UsageError("The text 'forbidden' cannot be counted; give another.")
    counts = {text: len(text.split()) for text in args.texts}
    failure = "1 text is empty. Leave it out." if args.strict and 0 in counts.values() else ""
    table = Table("Words", ("text", Column("words", "count")), tuple(counts.items()))
    return Result(counts, (table,), failure)
'''


@pytest.fixture
def installed_environment(tmp_path: Path) -> Mapping[str, str]:
    """The environment of a process with an installed distribution that has the verb."""
    folder = tmp_path / "site"
    write_distribution(folder, "verbs", "count_words_verb", VERB)
    return {**environment(), "PYTHONPATH": f"{folder}:{environment().get('PYTHONPATH', '')}"}


def ran(
    installed_environment: Mapping[str, str], workspace: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    call = command("count-words", *words, "--workspace", workspace)
    return subprocess.run(
        call, env=installed_environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.slow
def test_one_file_adds_a_verb_with_all_it_has(
    installed_environment: Mapping[str, str], tmp_path: Path
) -> None:
    help_text = ran(installed_environment, tmp_path, "--help").stdout
    assert "Count the words of texts." in help_text and "--strict" in help_text
    assert "example: rallebench count-words 'one two'" in help_text
    done = ran(installed_environment, tmp_path, "one two", "--json")
    assert (done.returncode, done.stdout) == (0, '{\n  "one two": 2\n}\n'), done.stderr
    assert (
        ran(installed_environment, tmp_path, "one two").stdout
        == "Words\ntext     words\none two      2\n"
    )
    partly = ran(installed_environment, tmp_path, "one two", "", "--strict")
    assert (partly.returncode, partly.stderr) == (1, "1 text is empty. Leave it out.\n")
    assert "one two" in partly.stdout, "the result is printed all the same"
    wrong = ran(installed_environment, tmp_path, "forbidden")
    assert (wrong.returncode, wrong.stdout) == (2, "")
