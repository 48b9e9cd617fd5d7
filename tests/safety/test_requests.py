"""The requests of every workflow, suite, judge, builder and sweep, and the numbers in their reports, stay the same.

The models of the inputs answer behind an HTTP server, which records every request; retriever queries are read from the
runs. The golden file holds counts and digests; ``DUMP_REQUESTS=FOLDER`` writes the full texts there, ``UPDATE_GOLDEN=1``
writes the golden file anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from project import GOLDEN, PROJECT
from scenario import BASELINES, INPUTS, MEASURED, STEPS, call, episodes, fresh, inside, normal

GOLDEN = GOLDEN / "requests.json"
DEFAULT = (
    "chain",
    "sweep",
    "rgb-noise",
    "barag-agreement",
    "kilt",
    "build barag",
    "agent react",
    "agent react scholar",
)
"""Run by default; the others are slow."""


class Handler(BaseHTTPRequestHandler):
    """Answers as the scripted model of the request's name does, and records the request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Like llama.cpp, the server reports that its models take tools; this does not count as a request to a model."""
        content = json.dumps({"chat_template_caps": {"supports_tools": True}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        text = reply(self.server.scripts[body["model"]], body)  # type: ignore[attr-defined]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        content = json.dumps(
            {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep the test output clean."""


def reply(script: dict[str, Any], body: dict[str, Any]) -> str:
    """The first pattern that matches the prompt, else the default, cut at a stop sequence."""
    prompt = "\n".join(message.get("content") or "" for message in body["messages"])
    text: str = prompt if script.get("echo") else script.get("default", "no reply")
    for pattern, line in script.get("replies", {}).items():
        if re.search(pattern, prompt):
            text = line
            break
    stops = body.get("stop") or ()
    ends = [
        at
        for stop in ([stops] if isinstance(stops, str) else stops)
        if (at := text.find(stop)) >= 0
    ]
    return text[: min(ends)] if ends else text


@pytest.fixture(scope="module")
def server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    entries = json.loads((INPUTS / "llms.json").read_text("utf-8"))
    server.scripts = {name: entry["settings"] for name, entry in entries.items()}  # type: ignore[attr-defined]
    server.bodies = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join(5)
    server.server_close()


@pytest.fixture
def workspace(server: ThreadingHTTPServer, tmp_path: Path) -> Iterator[Path]:
    """The inputs, whose models are behind the server; no reply cache yet."""
    folder = fresh(tmp_path / "w")
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    entries = {
        name: {
            "backend": "openai_compatible",
            "settings": {"model": name, "base_url": url, "concurrency": 1, "max_retries": 0},
        }
        for name in server.scripts  # type: ignore[attr-defined]
    }
    (folder / "llms.json").write_text(json.dumps(entries), encoding="utf-8")
    server.bodies.clear()  # type: ignore[attr-defined]
    with inside(folder):
        yield folder


def sha(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def retrievals(folder: Path) -> list[Any]:
    """Question id, retriever, query and k of every retrieval of every run, sorted."""
    rows = [
        [
            episode.get("id", episode.get("qid")),
            *(step.get(key) for key in ("retriever", "target", "query", "k")),
        ]
        for episode in episodes(folder)
        for step in episode["steps"]
        if step.get("ask") == "retrieve"
    ]
    return sorted(rows, key=json.dumps)


UNSTABLE = re.compile(r"fingerprint|backends|plan|base_url|file|folder")


def numbers(value: Any, place: str = "") -> dict[str, Any]:
    """Place → number, of all numbers in a report, without measured ones and those that depend on the server's address."""
    if isinstance(value, dict):
        return {
            k: v
            for key in value
            if not UNSTABLE.search(key)
            for k, v in numbers(value[key], f"{place}.{key}").items()
        }
    if isinstance(value, list):
        return {
            k: v
            for number, item in enumerate(value)
            for k, v in numbers(item, f"{place}[{number}]").items()
        }
    return {place: value} if isinstance(value, (int, float)) or value is None else {}


COMPARISON = ("difference", "low", "high", "p", "p_corrected")


def without_the_order_of_equals(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A sweep's variants by name. Among variants with equal scores the fastest is the best, and is compared with none."""
    by_name = sorted(report["variants"], key=lambda variant: variant["variant"])
    metric = report["metric"]
    if not metric:
        return by_name
    best = max(variant["metrics"][metric]["value"] for variant in by_name)
    return [
        variant
        if variant["metrics"][metric]["value"] != best
        else {**variant, **dict.fromkeys(COMPARISON)}
        for variant in by_name
    ]


def digest_of(label: str, bodies: list[Any], queries: list[Any], report: Any) -> dict[str, Any]:
    """Counts and digests. The texts are dumped if DUMP_REQUESTS names a folder."""
    if "variants" in report:
        report = {**report, "variants": without_the_order_of_equals(report)}
    if "plots" in report:  # times differ from run to run
        plots = [plot for plot in report["plots"] if "seconds" not in plot["x"]]
        report = {**report, "plots": plots}
    figures = {
        place: number
        for place, number in numbers(normal(report)).items()
        if not any(MEASURED.search(key) for key in place.split("."))
    }
    if os.environ.get("DUMP_REQUESTS"):
        folder = Path(os.environ["DUMP_REQUESTS"])
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"requests": bodies, "retrievals": queries, "numbers": figures}
        (folder / f"{label.replace(' ', '-')}.json").write_text(
            json.dumps(texts, ensure_ascii=False, indent=1)
        )
    return {
        "requests": len(bodies),
        "in order": sha(bodies),
        "as a set": sha(sorted(bodies, key=lambda body: json.dumps(body, sort_keys=True))),
        "retrievals": len(queries),
        "queries": sha(queries),
        "numbers": len(figures),
        "values": sha(figures),
    }


def check(label: str, digests: dict[str, Any]) -> None:
    golden = json.loads(GOLDEN.read_text("utf-8")) if GOLDEN.exists() else {}
    if os.environ.get("UPDATE_GOLDEN"):
        golden[label] = digests
        GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert digests == golden[label]


LABELS = [
    pytest.param(label, marks=() if label in DEFAULT else pytest.mark.slow)
    for label in STEPS
    if label != "tradeoff"
]


@pytest.mark.parametrize("label", LABELS)
def test_the_same_requests_give_the_same_numbers(label: str, workspace: Path, server: Any) -> None:
    code, report, err = call(*STEPS[label])
    assert code == 0, err
    check(label, digest_of(label, server.bodies, retrievals(workspace), report))


@pytest.mark.slow
def test_baselines_send_the_same_requests(workspace: Path, server: Any) -> None:
    assert call(*STEPS["chain"])[0] == 0
    code, report, err = call(*BASELINES)
    assert code == 0, err
    check("baselines", digest_of("baselines", server.bodies, retrievals(workspace), report))


@pytest.mark.slow
def test_a_served_chain_sends_the_same_requests(workspace: Path, server: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "rallebench", "serve", "--chain", "read", "--port", str(port)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            answers = []
            for text in (
                "Which moon goes round Neptune backwards?",
                "In which state is Lamar County?",
            ):
                body = json.dumps(
                    {"model": "read", "messages": [{"role": "user", "content": text}]}
                ).encode()
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/v1/chat/completions",
                    body,
                    {"Content-Type": "application/json"},
                )
                with urllib.request.urlopen(request, timeout=30) as response:
                    answers.append(json.load(response)["usage"])
        finally:
            process.terminate()
    check("serve", digest_of("serve", server.bodies, [], answers))
