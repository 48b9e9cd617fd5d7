"""An agent on the page that uses the tools of an MCP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_servers import raw, write_servers
from page_views import ended, refused, texts, view_of
from small_workspace import add_llm, make_workspace

pytest.importorskip("mcp")

from rallebench.core.errors import BackendError, NotFoundError
from rallebench.gui.frame import Page
from rallebench.services.workbench import Workbench

AGENT = {"workflow": "react", "env": "mcp:moons", "llm": "acts", "question": "q1"}
ACTS = {
    r"Thought \d:$": "I think.",
    r"Action 1:$": 'e__2J_cho(text="<script>\x1b[2J</script>")',
    r"Action 2:$": "Finish(Titan)",
}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """The page with a server whose tool has control characters and HTML in its name and description."""
    workspace = make_workspace(tmp_path / "workspace")
    add_llm(workspace, "acts", replies=ACTS)
    servers = write_servers(tmp_path, moons=raw("control"), gone=raw("leaves"))
    workbench = Workbench(workspace, mcp_servers=servers)
    yield Page(workbench)
    workbench.close()


def test_configured_servers_are_offered_and_their_texts_are_escaped(page: Page) -> None:
    form = view_of(page, "build/agent")
    assert "mcp:moons" in form and "mcp:gone" in form
    patch = page.call("agent.run", AGENT)
    assert "answer Titan" in texts(patch.html["agent-side"])
    episode = patch.html["agent-episode"]
    assert "Observation 1" in texts(episode)
    assert "<script>" not in episode and "&lt;script&gt;" in episode
    assert r"e\x1b[2J\u202echo({" in texts(episode)
    assert "env.timeout" in page.call("agent.choose", AGENT).html["agent-form"]


def test_a_server_that_cannot_be_used_is_named_on_the_page(page: Page) -> None:
    gone, other, moons = ({**AGENT, "env": env} for env in ("mcp:gone", "mcp:other", "moons"))
    refused(page, "agent.run", gone, "The MCP server 'gone' failed: it ended", BackendError)
    refused(page, "agent.run", other, "There is no MCP server 'other'", NotFoundError)
    refused(page, "agent.run", moons, "There is no environment 'moons'", NotFoundError)


def test_an_agent_with_a_server_runs_on_a_dataset(page: Page) -> None:
    page.call("agent.choose", AGENT)
    fields = {"agent": "on", "dataset": "tiny-qa", "limit": "2", "name": "servers"}
    assert page.call("runs.start", fields).go == "#/runs/run?id=servers"
    assert ended(page, "run", "servers").error is None
    html = view_of(page, "runs/run?id=servers&part=metrics")
    assert "2 questions" in texts(html) and "\x1b" not in html
