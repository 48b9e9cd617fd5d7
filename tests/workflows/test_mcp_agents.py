"""Agents that call the tools of an MCP server: by functions, in text and from programs, in ``ask``, ``run`` and a resumed run."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import raw, write_servers
from small_workspace import (
    CommandLine,
    add_llm,
    command,
    environment,
    make_workspace,
    read_lines,
)

pytest.importorskip("mcp")

from rallebench.core.types import ToolSpec
from rallebench.environments.mcp import McpServerTools
from rallebench.environments.mcp_servers.listing import ListedTool, choose
from rallebench.workflows import _forms
from rallebench.workflows.prompts import actions, functions

TEXT_CALLS = {
    r"there is no moon": 'Thought: So.\nAction: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "none"}',
    r"Observation: Titan": 'Thought: It is.\nAction: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "Titan"}',
    r"Question: ": 'Thought: I ask.\nAction: moon\nAction Input: {"name": "Titan"}',
}
REACT = {
    r"Thought \d:$": "I think.",
    r"Action 1:$": "moon(Titan)",
    r"Action 2:$": "names()",
    r"Action 3:$": "Finish(Titan)",
}
ECHO = {
    r"Thought \d:$": "I think.",
    r"Neptune[^\n]*\nThought 1: I think.\nAction 1:$": "echo(die)",
    r"Action 1:$": "echo(Titan)",
    r"Action 2:$": "Finish(Titan)",
}
"""Ends the server at the question q2, which names Neptune."""
PROGRAM = "print(moon('Titan').split()[0], add(a=1, b=2))"


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("made") / "w")
    add_llm(folder, "texts", replies=TEXT_CALLS)
    add_llm(folder, "react", replies=REACT)
    add_llm(folder, "echoes", replies=ECHO)
    add_llm(folder, "coder", default=PROGRAM)
    return folder


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """A file of servers outside of the workspace."""
    folder = tmp_path / "configuration"
    folder.mkdir()
    return write_servers(
        folder, moons=raw("moons"), dies=raw("dies"), changes=raw("changes", folder / "changed")
    )


@pytest.mark.parametrize(
    ("workflow", "llm", "answer", "observations"),
    [
        ("function-calling", "texts", "Titan", ["Titan is the largest moon of Saturn."]),
        ("react", "react", "Titan", ["Titan is the largest moon of Saturn.", "Titan\nTriton"]),
        ("pal", "coder", "Titan sum: 3", ["Titan is the largest moon of Saturn.", "sum: 3"]),
    ],
)
def test_a_workflow_calls_the_tools_of_a_server(
    cli: CommandLine,
    servers: Path,
    workflow: str,
    llm: str,
    answer: str,
    observations: Sequence[str],
) -> None:
    flags = (
        f"--workflow {workflow} --env mcp:moons --llm {llm} --mcp-servers {servers} --allow-python"
    )
    shown = cli.json(f"ask {flags} --question", "Which moon?")
    assert (shown["answer"], shown["stop_reason"]) == (answer, "answered")
    calls = [step["response"] for step in shown["steps"] if step["target"] == "mcp:moons"]
    assert calls == observations


def test_a_run_lists_the_tools_and_a_question_that_ends_the_server_is_one_failed_question(
    cli: CommandLine, servers: Path
) -> None:
    run = f"run --workflow react --env mcp:dies --llm echoes --mcp-servers {servers} --dataset tiny-qa --no-mlflow --name mine"
    found = cli.json(run)
    assert (found["n"], found["n_errors"]) == (8, 1)
    lines = {
        line["qid"]: line for line in read_lines(cli.workspace / "runs" / "mine" / "episodes.jsonl")
    }
    assert lines["q2"]["error"] == "The MCP server 'dies' failed: it ended."
    assert all(not line.get("error") for qid, line in lines.items() if qid != "q2")
    stored = json.loads((cli.workspace / "runs" / "mine" / "run.json").read_text())
    named = stored["spec"]["settings"]["agent"]["environment"]
    assert named["name"] == "mcp:dies" and list(named["tools"]) == ["echo"]
    assert len(named["tools"]["echo"]) == 12
    texts = [
        path.read_text(errors="replace")
        for path in (cli.workspace / "runs" / "mine").rglob("*")
        if path.is_file()
    ]
    assert not any("raw_mcp.py" in text for text in texts)
    again = cli.json(run, "--resume")
    assert (again["n"], again["n_errors"]) == (8, 1)


def test_a_run_is_not_resumed_once_the_server_has_changed_its_tools(
    cli: CommandLine, servers: Path
) -> None:
    run = f"run --workflow react --env mcp:changes --llm echoes --mcp-servers {servers} --dataset tiny-qa --no-mlflow --name mine"
    assert cli.json(run, "--limit", 2)["n"] == 2
    (servers.parent / "changed").touch()
    refused = cli(run, "--limit", 4, "--resume")
    assert refused.code == 2
    assert "was made with settings.agent.environment.tools.echo = " in refused.last


def test_an_unknown_server_is_named_with_the_flag_and_the_file(
    cli: CommandLine, servers: Path
) -> None:
    ask = "ask --workflow react --llm react --question ? --env"
    without = cli(f"{ask} mcp:moons")
    assert without.code == 2 and without.last == (
        "There is no MCP server 'moons'. None is known yet; describe it in a file named by --mcp-servers FILE."
    )
    other = cli(f"{ask} mcp:mons --mcp-servers {servers}")
    assert f"{servers}: There is no MCP server 'mons'. Did you mean 'moons'?" in other.last
    for name in ("mcp", "mcp:", "wikipedia:moons", "mcpp:moons"):
        assert (
            f"There is no environment {name!r}."
            in cli(f"{ask} {name} --mcp-servers {servers}").last
        )


def test_a_workspace_cannot_bring_servers_of_its_own(cli: CommandLine, servers: Path) -> None:
    for name in ("mcp.json", ".mcp.json"):
        shutil.copy(servers, cli.workspace / name)
    refused = cli("ask --workflow react --llm react --question ? --env mcp:moons")
    assert refused.code == 2 and "There is no MCP server 'moons'" in refused.last


def test_the_configured_servers_are_listed(cli: CommandLine, servers: Path) -> None:
    names = [
        row["name"]
        for row in cli.json(f"list environments --mcp-servers {servers}")["environments"]
    ]
    assert names == ["corpus-tools", "scholar", "wikipedia", "mcp:moons", "mcp:dies", "mcp:changes"]
    assert "mcp" not in str(cli.json("list environments"))


@pytest.mark.slow
def test_the_server_ends_with_a_run_that_is_stopped(
    template_workspace: Path, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    servers = write_servers(tmp_path, slow=raw("stubborn", file))
    add_llm(template_workspace, "slowly", replies=ECHO, delay=0.2)
    words = f"run --workspace {template_workspace} --workflow react --env mcp:slow --llm slowly --mcp-servers {servers}"
    words += " --dataset tiny-qa --no-mlflow --batch-size 1 --name stopped"
    with subprocess.Popen(command(words), env=environment(), stderr=subprocess.DEVNULL) as child:
        episodes = template_workspace / "runs" / "stopped" / "episodes.jsonl"
        deadline = time.monotonic() + 60
        while not (episodes.exists() and episodes.read_text()) and time.monotonic() < deadline:
            time.sleep(0.1)
        server = int(file.read_text())
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    assert all(not line.get("error") for line in read_lines(episodes))


# ── prompts and formats ──────────────────────────────────────────────────────


def environment_with(*tools: tuple[str, dict[str, Any]]) -> McpServerTools:
    listed = [ListedTool(name, f"Use {name}.", schema) for name, schema in tools]
    return McpServerTools("mcp:moons", choose("moons", listed, ""))


ORBIT = (
    "orbit",
    {
        "type": "object",
        "properties": {
            "moon": {"type": "string", "description": "its name,\nin English."},
            "turns": {"type": ["integer", "null"]},
        },
        "required": ["moon"],
    },
)
NOW = ("now", {"type": "object"})


def test_the_arguments_of_a_servers_tools_are_explained() -> None:
    acting = environment_with(ORBIT, NOW)
    assert actions(acting).splitlines() == [
        "(1) orbit(moon, turns): Use orbit. Arguments: moon (string): its name, in English; turns (optional).",
        "(2) now(): Use now.",
        "(3) Finish(answer): Returns the answer and finishes the task.",
    ]
    assert functions(acting).splitlines()[1] == "now()  # Use now."


def test_a_tool_without_arguments_is_written_without_an_argument() -> None:
    from llguidance import LLMatcher

    tools: tuple[ToolSpec, ...] = environment_with(ORBIT, NOW).tools
    verbs = [*(tool.name for tool in tools), "Finish"]
    bare = [tool.name for tool in tools if not tool.arguments]
    form = _forms.action(verbs, "()", 100, bare)["response_format"]["regex"]
    assert not LLMatcher.validate_grammar(LLMatcher.grammar_from_regex(form))
    for text, fits in (
        ("now()", 1),
        ("orbit(Titan)", 1),
        ("orbit()", 0),
        ("now(x)", 0),
        ("Finish(Titan)", 1),
    ):
        assert bool(re.fullmatch(form, text)) == bool(fits), text
