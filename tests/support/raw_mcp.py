"""An MCP server in plain JSON lines, which starts at once and behaves as its first argument says.

``raw_mcp.py kind [file]``: its tool ``echo`` repeats its text; the behaviour ``moons`` has three other tools. Methods of later versions of the protocol are unknown to it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
DEEP: dict[str, Any] = {}
for _ in range(70):
    DEEP = {"type": "object", "properties": {"a": DEEP}}


def tool(name: str, schema: Any = TEXT, description: str = "Repeat a text.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema}


ECHO = tool("echo")
MOONS = {"Titan": "Titan is the largest moon of Saturn.", "Triton": "Triton is a moon of Neptune."}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
LISTS: dict[str, list[dict[str, Any]]] = {
    "moons": [
        tool("moon", NAME, "Tell about a moon."),
        tool("add", {**NUMBERS, "required": ["a", "b"]}, "Add two numbers."),
        tool("names", {"type": "object"}, "List all moons."),
    ],
    "many": [tool(f"tool-{n}") for n in range(500)],
    "none": [],
    "twins": [ECHO, ECHO],
    "alike": [tool("read-file"), tool("read.file"), tool("Finish"), tool("7"), tool("import")],
    "control": [
        tool("e\x1b[2J\u202echo", description="<script>\x1b[2J</script>\nsecond \u202e line")
    ],
    "deep": [tool("echo", DEEP)],
    "wrong": [tool("echo", {"type": "object", "properties": {"a": {"type": "texts"}}})],
    "long": [tool("echo", {**TEXT, "description": "x" * 100_000})],
    "an array": [tool("echo", {"type": "array"})],
    "argument": [tool("echo", {"type": "object", "properties": {"a\nb": {}}})],
    "not a schema": [tool("echo", "text")],
    "bare": [tool("echo", {"type": "object", "properties": {"text": True}})],
    "mixed": [ECHO, tool("bad", {**TEXT, "maxProperties": "many"})],
    "wordy": [tool("echo", description="word " * 5_000)],
}
"""Behaviour → its list of tools; others list ``echo``."""


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply_to_list(kind: str, cursor: str | None, file: Path) -> dict[str, Any]:
    if kind == "many" or kind == "endless":
        page = int(cursor or 0)
        further = {"nextCursor": str(page + 1)} if kind == "endless" or page < 19 else {}
        return {"tools": LISTS["many"], **further}
    if kind == "changes" and file.exists():
        return {"tools": [tool("echo", description="Repeat a text, loudly.")]}
    return {"tools": LISTS.get(kind, [ECHO])}


def reply_to_call(kind: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = str(arguments.get("text"))
    if name == "moon":
        text = MOONS.get(arguments["name"], "There is no such moon.")
    elif name == "add":
        text = f"sum: {arguments['a'] + arguments['b']}"
    elif name == "names":
        text = "\n".join(MOONS)
    if kind == "variable":
        text = os.environ.get(text, "none")
    if kind == "dies" and "die" in text:
        os._exit(1)
    if kind == "mute":
        time.sleep(60)
    if kind == "huge":
        text = "x" * 50_000_000
    if kind == "one line":
        while True:
            sys.stdout.write("x" * 100_000)
    if kind == "misshapen":
        return {"content": "text"}
    if kind == "asks back":
        send(id="q", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        text += f" {json.loads(sys.stdin.readline()).get('error', {}).get('code')}"
    return {"content": [{"type": "text", "text": text}]}


def answer(message: dict[str, Any], kind: str, file: Path) -> dict[str, Any]:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        about = {"name": "raw", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return reply_to_list(kind, params.get("cursor"), file)
    return reply_to_call(kind, params["name"], params["arguments"])


def main() -> None:
    kind, file = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else os.devnull + "/none")
    if kind == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        file.write_text(str(os.getpid()))
    if kind == "silent":
        time.sleep(60)
    if kind == "leaves":
        sys.exit("the moon is \x1b[2J not up")
    for line in sys.stdin:
        message = json.loads(line)
        if kind == "rubbish":
            sys.stdout.buffer.write(b"\xff\xfe \x1b[2J not JSON\n[]\n{}\n\n")
        if "id" not in message:
            continue
        if message["method"] == "server/discover" or (
            kind == "no tools" and "tools" in message["method"]
        ):
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
        elif kind == "refuses" and message["method"] == "tools/call":
            send(id=message["id"], error={"code": -32602, "message": "no such moon"})
        else:
            send(id=message["id"], result=answer(message, kind, file))
    if kind == "stubborn":
        time.sleep(60)


if __name__ == "__main__":
    main()
