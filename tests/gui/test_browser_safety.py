"""Other sites and the texts of models cannot run anything in the page. In a real browser and over real HTTP."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browsing import PATIENCE, go, press, says, serving, visiting, watch

from rallebench.chains.saved import save_chain
from rallebench.core.entries import LLMEntry
from rallebench.core.types import Action, Chain
from rallebench.workspace.paths import WorkspaceFolder

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """(address, requested paths) of a foreign server."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", paths
    server.shutdown()
    server.server_close()


def hostile(url: str) -> str:
    """A reply with every Markdown and HTML construct that makes a browser fetch an address."""
    image = f'<img src="{url}/img" srcset="{url}/set">'
    return "\n\n".join(
        (
            f"\\`{image}\\`",
            f"\\``{image}\\``",
            f"\\```\n{image}\n\\```",
            f"`a\\` {image} `",
            image,
            f"![x]({url}/markdown)",
            f"!\\[x]({url}/escaped)",
            f"![x][ref]\n\n[ref]: {url}/reference",
            f"<{url}/autolink>",
            f"{url}/bare.png",
            f"[x]({url}/link)",
            f"&lt;img src={url}/entity&gt;",
            f"&#60;img src={url}/number&#62;",
            f'<svg onload="fetch(\'{url}/svg\')"><image href="{url}/svg-image"></svg>',
            f"<style>@import '{url}/import'; body {{ background: url({url}/background) }}</style>",
            f'<link rel="prefetch" href="{url}/prefetch"><link rel="stylesheet" href="{url}/sheet">',
            f'<video src="{url}/video" poster="{url}/poster"></video><iframe src="{url}/frame"></iframe>',
            f'```mermaid\nflowchart TD\n A@{{ img: "{url}/mermaid", label: "x" }}\n```',
            f"$$\\includegraphics{{{url}/tex}}$$ [a](http://a/$$) style=background:url({url}/style) [b](http://b/$$)",
            "THE END",
        )
    )


def test_a_reply_in_chat_makes_the_browser_ask_no_other_server(
    tab: Any, page_server: tuple[str, Path], elsewhere: Any
) -> None:
    url, paths = elsewhere
    workspace = WorkspaceFolder(page_server[1])
    workspace.save_llm("hostile", LLMEntry(backend="scripted", settings={"default": hostile(url)}))
    actions = (Action("generate", "{question}", "fstring", "hostile"),)
    save_chain(Chain("chat-hostile", actions), page_server[1] / "chains" / "chat-hostile.json")
    go(tab, "#/build/one?chain=chat-hostile")
    go(tab, "#/build/chat")
    tab.fill("#chat-text", hostile(url))
    tab.keyboard.press("Control+Enter")
    tab.wait_for_function(
        "document.querySelector('#turns').innerText.split('THE END').length >= 3", timeout=60_000
    )
    unsafe = "#turns :is(img, svg, image, style, link, iframe, video)"
    assert tab.locator(unsafe).count() == 0
    link = tab.locator("#turns .said a", has_text="autolink").last
    link.hover()
    tab.wait_for_timeout(1000)
    assert paths == [], "hovering over a link fetches it"
    assert link.get_attribute("rel") == "noopener noreferrer"


def test_what_slips_into_the_page_all_the_same_is_stopped_by_the_browser(
    browser: Any, page_server: tuple[str, Path], elsewhere: Any
) -> None:
    url, paths = elsewhere
    context = browser.new_context()
    visitor = context.new_page()
    complaints = watch(visitor, page_server[0])
    visitor.goto(page_server[0])
    visitor.wait_for_selector("body.ready")
    assert complaints == []
    slips = [
        f'<img src="{url}/img">',
        f'<link rel="stylesheet" href="{url}/sheet">',
        f'<iframe src="{url}/frame"></iframe>',
        f'<style>@import "{url}/import";</style>',
        f'<video src="{url}/video"></video>',
        f'<base href="{url}/">',
    ]
    for html in slips:
        visitor.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", html)
    visitor.evaluate("url => fetch(url + '/fetch').catch(() => 0)", url)
    visitor.wait_for_timeout(1000)
    assert paths == []
    assert len([text for text in complaints if "Content Security Policy" in text]) >= len(slips)
    context.close()


def test_script_that_slips_into_the_page_all_the_same_does_not_run(
    browser: Any, page_server: tuple[str, Path]
) -> None:
    context = browser.new_context()
    visitor = context.new_page()
    visitor.goto(page_server[0])
    visitor.wait_for_selector("body.ready")
    slips = """
        <img src="data:," onerror="window.__pwned = 1"><svg onload="window.__pwned = 1"></svg>
        <a id="slipped" href="javascript:window.__pwned = 1">x</a>
        <iframe srcdoc="<script>parent.__pwned = 1</script>"></iframe>"""
    script = """html => {
        document.body.insertAdjacentHTML('beforeend', html);
        const script = document.createElement('script');
        script.textContent = 'window.__pwned = 1';
        document.body.append(script);
    }"""
    visitor.evaluate(script, slips)
    visitor.evaluate("document.querySelector('#slipped').click()")
    visitor.wait_for_timeout(500)
    assert visitor.evaluate("window.__pwned") is None
    context.close()


def test_the_page_turns_dark_without_a_handler_in_its_html(tab: Any) -> None:
    is_dark = "document.body.classList.contains('dark')"
    before = tab.evaluate(is_dark)
    tab.click("[data-dark]")
    assert tab.evaluate(is_dark) is not before


def test_an_error_message_shows_markup_as_text(tab: Any, elsewhere: Any) -> None:
    url, paths = elsewhere
    tab.wait_for_selector(".verdict", timeout=PATIENCE)
    press(tab, "Save")
    tab.fill("#dialog [name=as]", f'a/<img src="{url}/toast">')
    tab.click("#dialog button.primary")
    says(tab, "#dialog .problem", "<img src=")
    assert tab.locator("#dialog img").count() == 0 and paths == []


# ── over HTTP ────────────────────────────────────────────────────────────────


def ask(
    url: str, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, str, str]:
    """(status, content policy, body) of one request."""
    address = url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request(method, path, body, {"Host": address, **headers})
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, answer.headers.get("Content-Security-Policy", ""), text


UPLOAD = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n'
FORM = {"Content-Type": "multipart/form-data; boundary=x"}
CALLS = ("queue/join", "upload", "component_server", "cancel")
POSTS = ["/login", *(f"/gradio_api/{name}" for name in CALLS)]


def test_every_answer_carries_the_content_policy_and_the_page_no_base(page_server: Any) -> None:
    for path in ("/", "/config", "/theme.css", "/nowhere", "/gradio_api/file=nothing"):
        _, policy, text = ask(page_server[0], "GET", path)
        assert policy.startswith("default-src 'self';") and "http" not in policy, path
        for part in ("frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"):
            assert part in policy
        assert path != "/" or "<base" not in text.split("<script", 1)[0]


def test_a_host_that_is_not_the_pages_own_is_refused(page_server: tuple[str, Path]) -> None:
    calls = ("heartbeat/x", "queue/data?session_hash=x")
    for path in ("/", "/config", *(f"/gradio_api/{name}" for name in calls)):
        assert ask(page_server[0], "GET", path, Host="evil.example")[0] == 421, path
    for path in POSTS:
        assert ask(page_server[0], "POST", path, b"{}", Host="evil.example")[0] == 421, path


def test_a_post_of_another_sites_page_is_refused_uploads_included(
    page_server: tuple[str, Path],
) -> None:
    for origin in ("http://evil.example", "null", "http://localhost:1"):
        for path in POSTS:
            assert ask(page_server[0], "POST", path, b"{}", Origin=origin)[0] == 403, (path, origin)
        assert (
            ask(page_server[0], "POST", "/gradio_api/upload", UPLOAD, Origin=origin, **FORM)[0]
            == 403
        )
    assert (
        ask(page_server[0], "POST", "/gradio_api/upload", UPLOAD, Origin=page_server[0], **FORM)[0]
        == 200
    )


def test_a_broken_message_is_refused_by_the_served_page_and_named_in_the_browser(
    page_server: tuple[str, Path], tab: Any
) -> None:
    def longer(route: Any) -> None:
        route.continue_(post_data=(route.request.post_data or "") + " " * 2**22)

    broken = {"Content-Type": "application/json"}
    assert ask(page_server[0], "POST", "/gradio_api/component_server", b"{", **broken)[0] == 400
    assert ask(page_server[0], "POST", "/gradio_api/queue/join", b"{}", **broken)[0] == 422
    tab.locator("#v-build-one:not([hidden]) *").first.wait_for(timeout=PATIENCE)
    tab.route("**/component_server/", longer)
    tab.evaluate("rb.act('runs.refresh')")
    says(tab, ".problem[role=alert] >> nth=0", "A message has at most 4 MiB.")


def test_with_a_login_and_an_allowed_host_the_page_works(tmp_path: Path, browser: Any) -> None:
    with serving(tmp_path, "--auth", "me:secret", "--allowed-host", "bench.example") as url:
        assert ask(url, "GET", "/", Host="bench.example")[0] == 200
        assert ask(url, "GET", "/config")[0] == 401
        assert ask(url, "POST", "/gradio_api/component_server", b"{}")[0] == 401
        with visiting(browser, url) as visitor:
            visitor.get_by_label("username").fill("me")
            visitor.get_by_label("password").fill("secret")
            visitor.get_by_role("button", name="Login").click()
            visitor.wait_for_selector("body.ready", timeout=PATIENCE)


def test_a_locked_login_says_so_at_its_form(tmp_path: Path, browser: Any) -> None:
    wrong, form = b"username=me&password=x", "application/x-www-form-urlencoded"
    with serving(tmp_path, "--auth", "me:secret") as url, visiting(browser, url) as visitor:
        for _ in range(4):
            ask(url, "POST", "/login", wrong, **{"Content-Type": form})
        visitor.get_by_label("username").fill("you")
        visitor.get_by_label("password").fill("secret")
        visitor.get_by_role("button", name="Login").click()
        says(visitor, "#login-note", "Checking. Each try takes longer after a wrong one.")
        says(visitor, "body", "Incorrect Credentials")
        visitor.get_by_label("username").fill("me")
        visitor.get_by_label("password").fill("secret")
        visitor.get_by_role("button", name="Login").click()
        says(visitor, "#login-note", "Too many wrong passwords from this address; try again in")


def test_an_address_is_locked_whatever_its_headers_claim(tmp_path: Path) -> None:
    wrong, form = b"username=me&password=x", "application/x-www-form-urlencoded"
    with serving(tmp_path, "--auth", "me:secret") as url:
        for number in range(6):
            headers = {"X-Forwarded-For": f"198.51.100.{number}", "Content-Type": form}
            status, _, _ = ask(url, "POST", "/login", wrong, **headers)
            assert status == (400 if number < 5 else 429)


def test_the_command_line_refuses_an_allowed_host_that_is_none(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from rallebench.cli.main import main

    for words in (["ui"], ["serve", "--chain", "starter"]):
        assert main([*words, "--workspace", str(tmp_path / "w"), "--allowed-host", "*"]) == 2
        assert "The allowed host '*' is not a host" in capfd.readouterr().err
