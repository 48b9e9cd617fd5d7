"""Shells complete verbs, flags and choices, with scripts made from the registrations."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from small_workspace import CommandLine

from rallebench.cli.completion import list_words
from rallebench.cli.verbs import VERBS


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, tmp_path)


def offers(script: str, *words: str) -> set[str]:
    """Words that bash suggests for the last of ``words``."""
    quoted = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _rallebench; "
    show = 'printf "%s\\n" "${COMPREPLY[@]}"'
    ran = subprocess.run(
        ["bash", "-c", f"{script}\n{call}{show}"], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def test_bash_completes_verbs_flags_and_values(cli: CommandLine) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = cli("completion bash").out
    assert offers(script, "rallebench", "do") == {"doctor"}
    assert set(VERBS.names()) <= offers(script, "rallebench", "")
    assert {"--chain", "--max-usd"} <= offers(script, "rallebench", "run", "--")
    assert offers(script, "rallebench", "delete", "ex") == {"experiment"}
    assert offers(script, "rallebench", "render", "--dialect", "") == {"fstring", "eval"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_verb_and_flag_is_in_the_script(cli: CommandLine, shell: str) -> None:
    script = cli.json(f"completion {shell}")["script"]
    for verb in list_words():
        assert verb.name in script
        for flag in verb.flags:
            assert flag.removeprefix("--") in script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_accepts_the_script(cli: CommandLine, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(cli(f"completion {shell}").out, encoding="utf-8")
    subprocess.run([shell, "-n", str(file)], check=True)


def test_another_shell_is_refused_with_the_known_ones(cli: CommandLine) -> None:
    ran = cli("completion powershell")
    assert ran.code == 2 and "bash, zsh, fish" in ran.last
