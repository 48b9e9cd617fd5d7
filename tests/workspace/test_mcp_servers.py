"""The file of MCP servers: the format of the protocol's clients, and one sentence for anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.environments.mcp_servers.ready import fill_in
from rallebench.workspace.mcp_servers import McpServers, read_mcp_servers
from rallebench.workspace.paths import WorkspaceFolder


def read(folder: Path, content: Any) -> McpServers:
    file = folder / "mcp.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_mcp_servers(file)


def test_the_format_of_other_clients_is_read_and_their_own_fields_are_ignored(
    tmp_path: Path,
) -> None:
    files = {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "$KEY"}, "alwaysAllow": []}
    search = {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Key": "1"}}
    servers = read(tmp_path, {"mcpServers": {"files": files, "search": search}, "inputs": []})
    assert servers.server("files").args == ["-y", "files"]
    assert servers.server("search").headers == {"X-Key": "1"}
    assert servers.abouts() == {
        "files": "Tools of the MCP server files, a program.",
        "search": "Tools of the MCP server search, over HTTP.",
    }
    assert "example.org" not in repr(servers) and "npx" not in repr(servers)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty; it should hold one JSON document"),
        ("[]", 'is not a file of MCP servers; it holds {"mcpServers": {"NAME": {"command": …}}}.'),
        ({"servers": {}}, "is not a file of MCP servers"),
        ({"mcpServers": []}, "is not a file of MCP servers"),
        ('{"mcpServers": ' + '{"a": ' * 80 + "1" + "}" * 81, "is not a file of MCP servers"),
        ({"mcpServers": {"a": "npx"}}, "MCP server 'a': 'the file' is wrong"),
        ({"mcpServers": {"a": {}}}, "a server has either a command or a url"),
        ({"mcpServers": {"a": {"command": "x", "url": "http://x"}}}, "either a command or a url"),
        ({"mcpServers": {"a": {"url": "ftp://x"}}}, "a url begins with http:// or https://"),
        ({"mcpServers": {"a": {"url": "http://x", "type": "sse"}}}, "the transport sse is out of"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "'args' is wrong"),
        ({"mcpServers": {"a": {"command": "x", "args": [1]}}}, "'args.0' is wrong"),
        ({"mcpServers": {"a": {"command": "x", "env": {"K": 5}}}}, "'env.K' is wrong"),
        ({"mcpServers": {"a": {"command": "x\0y"}}}, "a text holds the character NUL"),
        ({"mcpServers": {"": {"command": "x"}}}, "a name has 1 to 64 characters"),
        ({"mcpServers": {"a\nb": {"command": "x"}}}, "a name has 1 to 64 characters"),
        ({"mcpServers": {"a" * 65: {"command": "x"}}}, "a name has 1 to 64 characters"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(
    tmp_path: Path, content: Any, sentence: str
) -> None:
    with pytest.raises(BadFileError) as error:
        read(tmp_path, content)
    assert sentence in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="does not exist"):
        WorkspaceFolder(tmp_path, mcp_servers=tmp_path / "mcp.json")


def test_an_unknown_server_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    servers = read(tmp_path, {"mcpServers": {"files": {"command": "x"}}})
    with pytest.raises(NotFoundError, match=r"no MCP server 'file'\. Did you mean 'files'\?"):
        servers.server("file")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("$NOT_SET", "takes the variable 'KEY' from NOT_SET; set that environment variable."),
        ("${NOT_SET}", "takes the variable 'KEY' from NOT_SET"),
        ("5 $", "the variable 'KEY' has a $ without the name of a variable; write $$ for the sign"),
        ("${env:KEY}", "has a $ without the name of a variable"),
    ],
)
def test_a_variable_that_is_not_set_is_named(tmp_path: Path, value: str, sentence: str) -> None:
    servers = read(tmp_path, {"mcpServers": {"files": {"command": "x", "env": {"KEY": value}}}})
    with pytest.raises(UsageError) as error:
        fill_in("files", servers.server("files"))
    assert sentence in str(error.value)
