"""``rallebench models``: add, change, delete and ask a language model, list the models of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, models, serving
from small_workspace import CommandLine
from tiny_gguf import save_gguf, write_converted

from rallebench.chains.saved import save_chain
from rallebench.core.entries import Combination
from rallebench.core.types import Action, Chain
from rallebench.workspace.paths import WorkspaceFolder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    return CommandLine(capfd, tmp_path)


def saved_models(cli: CommandLine) -> dict[str, Any]:
    return json.loads((cli.workspace / "llms.json").read_text())  # type: ignore[no-any-return]


def test_a_preset_is_listed_added_changed_and_deleted(cli: CommandLine) -> None:
    listed = {row["name"]: row["about"] for row in cli.json("list presets")["presets"]}
    assert "SmolLM2 135M Instruct" in listed["smollm2-135m"]
    made = cli.json("models add tiny --preset smollm2-135m --set quantization=8bit")
    assert (
        made.keys() == {"name", "backend", "settings", "said"} and made["backend"] == "transformers"
    )
    assert made["settings"] == saved_models(cli)["tiny"]["settings"]
    assert (
        made["settings"]["model"] == "HuggingFaceTB/SmolLM2-135M-Instruct"
        and made["settings"]["quantization"] == "8bit"
    )
    cli.json("models change tiny --set max_tokens=9")
    assert saved_models(cli)["tiny"]["settings"] == {**made["settings"], "max_tokens": 9}
    assert "tiny" in [row["name"] for row in cli.json("list llms")["llms"]]
    assert cli.json("models delete tiny")["users"] == [] and saved_models(cli) == {}


def test_only_the_converted_copy_of_a_model_is_deleted(cli: CommandLine, tmp_path: Path) -> None:
    file = save_gguf(tmp_path / "river.gguf")
    cli.json("models add river --backend transformers --set", f"model={file}")
    copy = write_converted(cli.workspace / "cache", file)
    assert cli.json("models delete river --converted")["name"] == "river"
    assert "river" in saved_models(cli) and not copy.exists()
    assert cli("models delete river --converted").code == 2


def test_an_added_model_answers_at_once(cli: CommandLine) -> None:
    cli.json("models add oracle --backend scripted --set default=Titan")
    answered = cli.json("models ask oracle What?")
    assert (answered["name"], answered["response"], answered["prompt"]) == (
        "oracle",
        "Titan",
        "What?",
    )
    assert cli("models ask oracle What?").out == "Titan\n"


def test_a_servers_models_are_found_by_address_preset_or_entry(cli: CommandLine) -> None:
    with Loopback(serving("b", "a", text="The Kura.")) as server:
        base_url = f"base_url={server.url}"
        assert cli.json("models find --base-url", server.url)["models"] == ["a", "b"]
        assert cli("models find --preset ollama --set", base_url).out == "a\nb\n"
        cli.json("models add mine --preset ollama --set", base_url, "--set", "model=a")
        assert cli.json("models find mine") == {"base_url": server.url, "models": ["a", "b"]}
        assert cli("models ask mine", "Which river?").out == "The Kura.\n"
        written = f"ollama?model=a&base_url={server.url}"
        assert cli.json("models ask", written, "Which river?")["response"] == "The Kura."
    with Loopback(models()) as server:
        assert "has no models yet" in cli("models find --base-url", server.url).out


def test_deleting_tells_what_named_the_model(cli: CommandLine) -> None:
    workspace = WorkspaceFolder(cli.workspace)
    cli.json("models add oracle --backend scripted --set default=Titan")
    save_chain(
        Chain("mine", (Action("generate", "{question}", "fstring", "oracle"),)),
        workspace.path / "chains" / "mine.json",
    )
    workspace.save_retriever(
        "judged", Combination(kind="llm-rerank", of=["starter-bm25"], settings={"llm": "oracle"})
    )
    gone = cli.json("models delete oracle")
    assert gone["users"] == ["the chain mine", "the retriever judged"]
    assert gone["said"][0].endswith(
        "The chain mine, the retriever judged can no longer run with it."
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add",), "models add needs the name of a model"),
        (("add", "x"), "Give --preset (rallebench list presets) or --backend"),
        (("add", "x", "--preset", "olama"), "Did you mean 'ollama'"),
        (("add", "x", "--preset", "ollama", "--backend", "scripted"), "give --preset or --backend"),
        (("add", "x", "--preset", "ollama"), "rallebench models find lists them"),
        (
            ("add", "x", "--preset", "qwen3-0.6b", "--set", "quantisation=4bit"),
            "Did you mean 'quantization'",
        ),
        (("add", "x", "--backend", "nix"), "There is no language model backend 'nix'"),
        (("add", "echo", "--backend", "scripted"), "There is a language model 'echo' already"),
        (("add", "extractive-reader", "--backend", "scripted"), "comes with rallebench"),
        (("change", "y", "--set", "echo=false"), "There is no language model 'y'"),
        (("change", "echo", "--set", "ecko=1"), "Did you mean 'echo'"),
        (("delete", "y"), "There is no language model 'y'"),
        (("delete", "echo", "y"), "'y' is one too many"),
        (("ask", "echo"), "The prompt is empty"),
        (("ask", "y", "Who?"), "There is no language model 'y'"),
        (("find",), "Give the server's address"),
        (("find", "--base-url", "nowhere"), "does not name a server"),
        (
            ("find", "--base-url", "http://127.0.0.1:1/v1", "--api-key-env", "sk-1"),
            "name of an environment variable",
        ),
        (("drop", "echo"), "'drop' is not one of"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_changes_nothing(
    cli: CommandLine, arguments: tuple[str, ...], words: str
) -> None:
    cli.json("models add echo --backend scripted --set echo=true")
    before = saved_models(cli)
    ran = cli("models", *arguments)
    assert ran.code == 2 and words in ran.err.splitlines()[-1] and ran.out == ""
    assert saved_models(cli) == before


def test_a_server_that_is_down_is_a_failure_not_a_wrong_request(cli: CommandLine) -> None:
    with Loopback() as server:
        url = server.url
    ran = cli("models find --base-url", url)
    assert ran.code == 1 and "cannot be reached" in ran.err and len(ran.err.splitlines()) == 1
