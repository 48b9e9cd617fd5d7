"""The ``.env`` of the current folder sets what models and libraries read, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rallebench.cli.main import main
from rallebench.core.env_file import load_env_file, named_variables, read_env_file
from rallebench.core.errors import BadFileError


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the variables of a test after it."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "MY_KEY", "HTTPS_PROXY"):
        os.environ.pop(name, None)


def env_file(folder: Path, text: str) -> Path:
    path = folder / ".env"
    path.write_text(text, encoding="utf-8")
    return path


def test_known_variables_and_those_of_model_entries_are_set(tmp_path: Path) -> None:
    path = env_file(
        tmp_path,
        "# keys\nexport OPENAI_API_KEY='sk-1'\nMY_KEY=two\nOTHER=3\nHTTPS_PROXY=http://x\n",
    )
    entry = {"m": {"backend": "openai_compatible", "settings": {"api_key_env": "MY_KEY"}}}
    (tmp_path / "llms.json").write_text(json.dumps(entry))
    assert set(load_env_file(path, named_variables([], tmp_path))) == {"OPENAI_API_KEY", "MY_KEY"}
    assert os.environ["OPENAI_API_KEY"] == "sk-1" and os.environ["MY_KEY"] == "two"
    assert "OTHER" not in os.environ and "HTTPS_PROXY" not in os.environ


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PYTHONPATH", "PATH", "NODE_OPTIONS", "HTTPS_PROXY"]
)
def test_a_folder_of_someone_else_sets_only_keys(tmp_path: Path, name: str) -> None:
    entry = {"m": {"backend": "openai_compatible", "settings": {"api_key_env": name}}}
    (tmp_path / "llms.json").write_text(json.dumps(entry))
    path = env_file(tmp_path, f"{name}=/received/evil.so\n")
    before = os.environ.pop(name, None)
    try:
        assert load_env_file(path, named_variables([], tmp_path)) == ()
        assert name not in os.environ
    finally:
        os.environ.update({name: before} if before is not None else {})


def test_the_real_environment_wins_even_if_it_is_empty(tmp_path: Path) -> None:
    os.environ["HF_TOKEN"], os.environ["OPENAI_API_KEY"] = "real", ""
    assert load_env_file(env_file(tmp_path, "HF_TOKEN=file\nOPENAI_API_KEY=file\n")) == ()
    assert os.environ["HF_TOKEN"] == "real" and os.environ["OPENAI_API_KEY"] == ""


def test_other_variables_are_not_inserted_into_values(tmp_path: Path) -> None:
    os.environ["HF_TOKEN"] = "secret"
    path = env_file(tmp_path, 'OPENAI_API_KEY="${HF_TOKEN}"\n')
    assert read_env_file(path) == {"OPENAI_API_KEY": "${HF_TOKEN}"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("HF_TOKEN=a\nOPENAI_API_KEY='sk-half", 2),
        ("OPENAI_API_KEY\n", 1),
        ("HF_TOKEN=a\n\n= 3\n", 3),
    ],
)
def test_a_half_written_file_is_one_sentence_without_its_values(
    tmp_path: Path, text: str, line: int
) -> None:
    path = env_file(tmp_path, text)
    with pytest.raises(BadFileError) as refused:
        load_env_file(path)
    assert str(refused.value) == (
        f"{path}, line {line} is not NAME=value, or its quote does not end; correct the line, or move the file away."
    )
    assert "HF_TOKEN" not in os.environ


def test_a_file_that_is_not_text_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"HF_TOKEN=a\nMY_KEY=\xff\xfe\n")
    with pytest.raises(BadFileError, match="line 2 is not UTF-8 text"):
        read_env_file(tmp_path / ".env")


def test_the_file_is_that_of_the_current_folder_and_not_the_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    env_file(workspace, "HF_TOKEN=of-the-workspace\n")
    monkeypatch.chdir(tmp_path)
    assert main(["list", "chains", "--workspace", str(workspace), "--json"]) == 0
    assert "HF_TOKEN" not in os.environ
    env_file(tmp_path, "HF_TOKEN=of-the-folder\n")
    assert main(["list", "chains", "--workspace", str(workspace), "--json"]) == 0
    assert os.environ["HF_TOKEN"] == "of-the-folder"


def test_a_half_written_file_ends_a_command_with_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    env_file(tmp_path, "OPENAI_API_KEY='sk-secret")
    assert main(["list", "chains"]) == 2
    said = capsys.readouterr().err
    assert "line 1" in said and "sk-secret" not in said and len(said.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_value_of_the_file_is_in_no_file_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    env_file(tmp_path, "OPENAI_API_KEY=sk-never-written-anywhere\n")
    words = ["--chain", "starter", "--dataset", "starter-qa", "--limit", "2", "--name", "try"]
    assert main(["run", *words, "--workspace", "w", "--metrics", "em"]) == 0
    files = [path for path in Path("w").rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert b"sk-never-written-anywhere" not in path.read_bytes(), path
