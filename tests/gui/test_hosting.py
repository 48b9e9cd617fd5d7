"""The page behind a proxy with a path prefix, and in a Hugging Face Space."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from rallebench.core.errors import UsageError
from rallebench.core.hosts import server_access
from rallebench.gui.app import login
from rallebench.gui.content_policy import ContentPolicy
from rallebench.gui.hosting import SPACE_FRAMES, check_root_path, read_hosting, read_space
from rallebench.gui.sharing import open_tunnel

SPACE = {"SPACE_ID": "me/bench", "SPACE_HOST": "me-bench.hf.space"}


def flags(**more: Any) -> argparse.Namespace:
    """The flags of ``ui``."""
    usual = {"host": "127.0.0.1", "port": 7860, "workspace": Path("."), "allowed_host": []}
    usual |= {"root_path": "", "spaces": False, "auth": None, "share": False}
    return argparse.Namespace(**{**usual, **more})


@pytest.mark.parametrize(
    "text",
    ["bench", "/a b", "/../x", "ftp://a/b", "https://", "https://me:pw@a/b", "/x?y", "//evil"],
)
def test_a_prefix_that_cannot_be_is_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is neither a path such as /bench nor an address"):
        check_root_path(text)


def test_the_host_of_a_public_address_is_allowed() -> None:
    hosting = read_hosting(flags(root_path="https://lab.example.org:8443/bench/"))
    assert hosting.public_address == hosting.root_path == "https://lab.example.org:8443/bench"
    access = server_access(hosting.host, hosting.allowed)
    headers = [(b"host", b"lab.example.org:8443"), (b"origin", b"https://lab.example.org:8443")]
    assert access.refusal(headers) is None
    assert access.refusal([(b"host", b"other.example.org")]) is not None


def test_a_space_is_open_to_its_own_name_and_keeps_its_workspace_on_its_disk(
    tmp_path: Path,
) -> None:
    hosting = read_space(SPACE, flags(spaces=True), "", (), tmp_path)
    assert (hosting.host, hosting.port, hosting.workspace) == ("0.0.0.0", 7860, tmp_path)
    assert hosting.root_path == "https://me-bench.hf.space" and hosting.frames == SPACE_FRAMES
    access = server_access(hosting.host, hosting.allowed)
    page = [(b"host", b"me-bench.hf.space"), (b"origin", b"https://me-bench.hf.space")]
    assert access.refusal(page) is None
    assert access.refusal([page[0], (b"origin", b"https://evil.example")]) is not None


def test_a_space_asks_for_a_login_of_its_own_only_if_one_is_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RALLEBENCH_AUTH", raising=False)
    hosting = read_space(SPACE, flags(spaces=True), "", (), tmp_path)
    assert login(flags(), hosting) is None
    monkeypatch.setenv("RALLEBENCH_AUTH", "me:secret")
    assert login(flags(), hosting) == ("me", "secret")


def test_a_workspace_that_is_named_is_kept_in_a_space(tmp_path: Path) -> None:
    named = flags(spaces=True, workspace=Path("/somewhere"))
    assert read_space(SPACE, named, "", (), tmp_path).workspace == Path("/somewhere")
    assert read_space(SPACE, flags(), "", (), tmp_path / "no-disk").workspace == Path(".")


def test_the_profile_is_refused_outside_of_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACE_ID", raising=False)
    with pytest.raises(UsageError, match="is for a Hugging Face Space"):
        read_hosting(flags(spaces=True))


@pytest.mark.parametrize(("flag", "value"), [("root_path", "/bench"), ("spaces", True)])
def test_a_shared_link_and_another_public_address_exclude_each_other(
    flag: str, value: object
) -> None:
    with pytest.raises(UsageError, match=r"leave out --share or --(root-path|spaces)\."):
        read_hosting(flags(share=True, **{flag: value}))


def test_a_shared_link_needs_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALLEBENCH_AUTH", raising=False)
    args = flags(share=True)
    with pytest.raises(UsageError, match=r"give --auth user:password .*, or leave out --share\."):
        login(args, read_hosting(args))
    monkeypatch.setenv("RALLEBENCH_AUTH", "me:secret")
    assert login(args, read_hosting(args)) == ("me", "secret")


def test_the_address_of_a_tunnel_is_public_and_its_host_is_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[object, ...]] = []

    def tunnel(*call: object) -> str:
        opened.append(call)
        return "http://abc123.gradio.live/"

    monkeypatch.setattr("gradio.networking.setup_tunnel", tunnel)
    assert open_tunnel("0.0.0.0", 7860) == "https://abc123.gradio.live"
    assert opened[0][:2] == ("127.0.0.1", 7860)
    access = server_access("127.0.0.1", ("abc123.gradio.live",))
    page = [(b"host", b"abc123.gradio.live"), (b"origin", b"https://abc123.gradio.live")]
    assert access.refusal(page) is None


@pytest.mark.parametrize(
    "failure",
    [OSError("No space left on device"), RuntimeError("Could not get share link."), ValueError("")],
)
def test_a_tunnel_that_cannot_be_opened_is_one_sentence(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tunnel(*call: object) -> str:
        raise failure

    monkeypatch.setattr("gradio.networking.setup_tunnel", tunnel)
    with pytest.raises(UsageError, match=r"^The page could not be shared \(.+\); .* --share\.$"):
        open_tunnel("127.0.0.1", 7860)


@pytest.mark.parametrize(
    ("frames", "rule"),
    [((), "frame-ancestors 'none'"), (SPACE_FRAMES, "frame-ancestors https://huggingface.co;")],
)
def test_only_the_page_of_a_space_may_be_shown_in_a_frame(
    frames: tuple[str, ...], rule: str
) -> None:
    application = Starlette(
        routes=[Route("/", lambda request: HTMLResponse("<p>page</p>"))],
        middleware=[Middleware(ContentPolicy, frames=frames)],
    )
    policy = TestClient(application).get("/").headers["content-security-policy"]
    assert rule in policy
