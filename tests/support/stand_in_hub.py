"""A stand-in of the Hugging Face hub on 127.0.0.1, with the addresses and headers that ``huggingface_hub`` uses.

``with StandInHub() as hub``: ``hub.add("owner/name", {"data/train.csv": b"…"}, card={…})`` makes a repository; a second ``add``
commits to it. Misbehaviour is set by attributes, and ``hub.requests`` keeps (method, path, authorization).
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "hf_stand_in"


@dataclass
class Repo:
    """``revisions``: branch, tag or commit → commit; ``commits``: commit → path → content. ``access``: "", "gated", "private" or
    "disabled"; with the token, gated and private repositories are read."""

    revisions: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    card: Mapping[str, Any] = field(default_factory=dict)
    access: str = ""


class StandInHub:
    """The server. ``status``: answers every request with it; ``silent``: accepts requests and says nothing; ``stall_after``: stops
    sending a file after so many bytes; ``foreign``: answers like any other web server; ``cdn``: files come from another host;
    ``pace``: seconds between pieces of 64 KB."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.status, self.silent, self.foreign, self.pace = 0, False, False, 0.0
        self.stall_after: int | None = None
        self.cdn = ""
        self.closing = threading.Event()
        self.sending = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.hub = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    def __enter__(self) -> StandInHub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()

    def add(
        self,
        repo: str,
        files: Mapping[str, bytes],
        *,
        card: Mapping[str, Any] | None = None,
        revision: str = "main",
        access: str = "",
    ) -> str:
        """Commit files to a branch of a repository, and return the commit."""
        entry = self.repos.setdefault(repo, Repo())
        entry.card, entry.access = card if card is not None else entry.card, access
        content = repr(sorted(files.items())) + revision
        commit = hashlib.sha1(content.encode()).hexdigest()
        entry.commits[commit] = dict(files)
        entry.revisions[revision] = entry.revisions[commit] = commit
        return commit

    def paths(self, method: str = "GET") -> list[str]:
        """The paths of all requests of a method, in order."""
        return [path for asked, path, _ in self.requests if asked == method]

    def environ(self, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
        """Let this process and its children ask this hub, with an empty cache."""
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "HF_HUB_CACHE"):
            monkeypatch.delenv(name, raising=False)
        values = {"HF_ENDPOINT": self.url, "HF_HOME": home, "NO_PROXY": "127.0.0.1"}
        values |= {"HF_HUB_ETAG_TIMEOUT": "2", "HF_HUB_DOWNLOAD_TIMEOUT": "2"}
        for name, value in values.items():
            monkeypatch.setenv(name, value)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10

    @property
    def hub(self) -> StandInHub:
        return self.server.hub  # type: ignore[attr-defined, no-any-return]

    def log_message(self, *_: Any) -> None:
        """Keep the test output clean."""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append((self.command, path, self.headers.get("authorization", "")))
        if hub.silent:
            hub.closing.wait(20)
            self.close_connection = True
        elif hub.status:
            self._send(hub.status, b"{}")
        elif hub.foreign:
            self._send(200, b"<html>Welcome</html>", {"Content-Type": "text/html"})
        elif info := re.fullmatch(r"/api/datasets/(.+?)(?:/revision/(.+))?", path):
            self._info(info[1], info[2] or "main")
        elif file := re.fullmatch(r"/datasets/(.+?)/resolve/(refs/[^/]+/[^/]+|[^/]+)/(.+)", path):
            self._file(file[1], file[2], file[3])
        elif path.startswith("/cdn/"):
            self._content(bytes.fromhex(path.removeprefix("/cdn/")))
        else:
            self._refuse(404, "")

    def _send(self, status: int, content: bytes, headers: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, status: int, code: str, message: str = "") -> None:
        self._send(status, b"{}", {"X-Error-Code": code, "X-Error-Message": message})

    def _repo(self, name: str, data: bool) -> Repo | None:
        """The repository, if it may be read; else the hub's refusal is sent."""
        repo = self.hub.repos.get(name)
        may = self.headers.get("authorization") == f"Bearer {TOKEN}"
        if repo is None or (repo.access == "private" and not may):
            self._refuse(401, "RepoNotFound", "Repository not found")
        elif repo.access == "disabled":
            self._refuse(403, "", "Access to this resource is disabled.")
        elif repo.access == "gated" and data and not may:
            self._refuse(401, "GatedRepo", "Access is restricted.")
        else:
            return repo
        return None

    def _info(self, name: str, revision: str) -> None:
        if (repo := self._repo(name, data=False)) is None:
            return
        if (commit := repo.revisions.get(revision)) is None:
            self._refuse(404, "RevisionNotFound")
            return
        siblings = [
            {"rfilename": path, "size": len(content)}
            for path, content in repo.commits[commit].items()
        ]
        value = {"id": name, "sha": commit, "siblings": siblings, "cardData": dict(repo.card)}
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _file(self, name: str, revision: str, path: str) -> None:
        if (repo := self._repo(name, data=True)) is None:
            return
        commit = repo.revisions.get(revision, "")
        content = repo.commits.get(commit, {}).get(path)
        if content is None:
            self._refuse(404, "EntryNotFound")
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}
        if self.hub.cdn:
            headers |= {"X-Linked-Size": str(len(content)), "X-Linked-Etag": headers["ETag"]}
            headers["Location"] = f"{self.hub.cdn}/cdn/{content.hex()}"
            self._send(302, b"", headers)
            return
        self._content(content, headers)

    def _content(self, content: bytes, headers: Mapping[str, str] = {}) -> None:
        begin = 0
        if given := re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", "")):
            begin = int(given[1])
            whole = len(content)
            headers = {**headers, "Content-Range": f"bytes {begin}-{whole - 1}/{whole}"}
        rest, hub = content[begin:], self.hub
        if self.command == "HEAD" or (hub.stall_after is None and not hub.pace):
            self._send(206 if begin else 200, rest, headers)
            return
        self.send_response(206 if begin else 200)
        for key, value in {"Content-Length": str(len(rest)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        sent = 0
        for piece in (rest[at : at + 2**16] for at in range(0, len(rest), 2**16)):
            if hub.stall_after is not None and begin + sent >= hub.stall_after:
                hub.sending.set()
                hub.closing.wait(20)
                break
            try:
                self.wfile.write(piece)
            except OSError:
                break
            sent += len(piece)
            hub.sending.set()
            hub.closing.wait(hub.pace)
        self.close_connection = True
