"""Draw the page and serve it. Addresses other than loopback require a login."""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from fastapi import HTTPException
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

from rallebench import __version__
from rallebench.core.errors import UsageError
from rallebench.core.hosts import HostGuard, is_loopback, server_access
from rallebench.gui.content_policy import ContentPolicy
from rallebench.gui.endpoints import add_endpoints
from rallebench.gui.envelope import EnvelopeGuard
from rallebench.gui.events import Rows
from rallebench.gui.frame import Page
from rallebench.gui.hosting import Hosting, read_hosting
from rallebench.gui.jobs import job_news
from rallebench.gui.login_guard import Credentials, LoginGuard
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import prepare
from rallebench.remote.calls import Calls
from rallebench.services.workbench import Workbench

FOLDER = Path(__file__).parent
SCRIPTS = ("script/page", "script/actions", "script/patches", "script/lists", "script/keys")
STYLES = ("style/base", "style/controls", "style/frame", "style/parts", "style/widths")
AUTH_VARIABLE = "RALLEBENCH_AUTH"
KEYS = (
    (Markup("<kbd>Ctrl</kbd> <kbd>Enter</kbd>"), "run, also while you type"),
    (Markup("<kbd>Ctrl</kbd> <kbd>S</kbd>"), "save the chain"),
    (Markup("<kbd>J</kbd> <kbd>K</kbd>"), "next, previous question"),
    (
        Markup("<kbd>G</kbd> then <kbd>1</kbd> … <kbd>5</kbd>"),
        "Build, Runs, Experiments, Data, Models",
    ),
    (Markup("<kbd>/</kbd>"), "filter"),
    (Markup("<kbd>Esc</kbd>"), "close a panel"),
    (Markup("<kbd>?</kbd>"), "these keys"),
)

AWAY = "The program does not answer. Start rallebench again; this page continues by itself."
HEADER_BUTTONS = Markup().join(
    (
        Markup(
            '<button id="job" type="button" hidden data-pop="#jobs" aria-label="Jobs"></button>\n'
        ),
        Markup('<button class="icon keys-button" type="button" data-pop="#keys" title="Keys" '),
        Markup('aria-label="Keys">?</button>\n<button class="icon" type="button" data-dark '),
        Markup('title="Light or dark" aria-label="Light or dark">◐</button>'),
    )
)
PANELS = Markup().join(
    (
        Markup('<aside class="drawer" id="drawer" hidden data-problems></aside>\n'),
        Markup('<dialog id="dialog" data-problems></dialog>\n<dialog id="confirm"><p></p>'),
        Markup('<div class="buttons"><button class="keep" type="button">Cancel</button>'),
        Markup('<button class="yes primary" type="button">Continue</button></div></dialog>'),
    )
)


def build_app(page: Page) -> gr.Blocks:
    """Return the whole page as one Gradio component; its script calls the server functions of ``gui.frame``. Loads
    no model.
    """
    with gr.Blocks(title="rallebench", analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML(
            skeleton(page),
            js_on_load=script(page),
            server_functions=server_functions(page),
            apply_default_css=False,
            elem_id="page",
        )
        add_endpoints(Calls(page.workbench))
    return blocks


def server_functions(page: Page) -> list[Callable[[object], Any]]:
    """Return the functions that the script may call, by name. They are functions because Gradio marks each of them,
    which it cannot do with methods.
    """

    def jobs(message: object) -> dict[str, Any]:
        return job_news(page.workbench).to_json()

    async def more(message: object) -> dict[str, Any]:
        await page.wait_for_more(message)
        return (await run_in_threadpool(page.more, message)).to_json()

    def function(method: Callable[[object], Patch | Rows]) -> Callable[[object], Any]:
        return wraps(method)(lambda message: refuse_problem(method(message)))

    return [*map(function, (page.act, page.stop, page.list_rows)), more, jobs]


def refuse_problem(answer: Patch | Rows) -> dict[str, Any]:
    """Return an answer as JSON.

    If the action was refused, raises HTTPException with the patch: status 400, or 500 for a bug. ``refusals.js``
    shows the patch.
    """
    value = answer.to_json()
    if isinstance(answer, Rows) or not answer.problem:
        return value
    status = 500 if answer.is_bug else 400
    raise HTTPException(status, {"error": answer.problem, "patch": value})


def script(page: Page) -> str:
    """Return the scripts of the frame and of all places. They start once all of them are loaded."""
    first = {place.name: page.first_view(place.name) for place in page.places}
    return "\n".join([f"const FIRST = {json.dumps(first)};", *files("js", SCRIPTS), "begin();"])


def style() -> Markup:
    """Return the style sheets of the frame and of all places."""
    return Markup("\n".join(files("css", STYLES)))


def files(suffix: str, names: Sequence[str]) -> list[str]:
    """Return the frame's files in the order of ``names``, then the files of the places."""
    paths = [FOLDER / f"{name}.{suffix}" for name in names]
    paths += sorted((FOLDER / "places").glob(f"*.{suffix}"))
    return [path.read_text("utf-8") for path in paths]


def theme() -> Any:
    """Return a plain theme that uses the visitor's own fonts, so that the page needs no network."""
    return gr.themes.Base(
        font=["-apple-system", "BlinkMacSystemFont", "Segoe UI", "Roboto", "sans-serif"],
        font_mono=["SFMono-Regular", "Menlo", "Consolas", "monospace"],
    )


def login(args: argparse.Namespace, hosting: Hosting) -> tuple[str, str] | None:
    """Return the user and password from ``--auth`` or the environment. Raises UsageError if a public address has
    none.
    """
    text = args.auth or os.environ.get(AUTH_VARIABLE, "")
    user, colon, password = text.partition(":")
    if text and not (user and colon and password):
        raise UsageError(f"The login must read user:password (--auth or {AUTH_VARIABLE}).")
    if not text and hosting.needs_login and not is_loopback(hosting.host):
        raise UsageError(
            f"Binding {hosting.host} lets others in: give --auth user:password (or set {AUTH_VARIABLE}), or bind 127.0.0.1."
        )
    return (user, password) if text else None


def check_address(host: str, port: int) -> int:
    """Return the port to listen on: ``port``, or a free port for 0. Raises UsageError with the system's reason if it
    is taken.
    """
    try:
        if not 0 <= port <= 65535:  # resolving the host would truncate the port to 16 bits
            raise OverflowError("a port is a number from 0 to 65535")
        addresses = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        kind, _, _, _, address = addresses[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # after a server ends, its port stays in TIME_WAIT
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            return int(probe.getsockname()[1])
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"The page cannot be opened on {host}:{port} ({reason}); choose another --port or --host."
        ) from None


def serve(args: argparse.Namespace) -> None:
    """Open the page and serve it until Ctrl-C or SIGTERM, which end all work.

    Raises UsageError for a bad address or a busy port.
    """
    hosting = read_hosting(args)
    auth = login(args, hosting)
    access = server_access(hosting.host, hosting.allowed)
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")  # visitors cannot claim a different address
    port = check_address(hosting.host, hosting.port)
    reach_without_proxy(hosting.host)
    workbench = Workbench(
        hosting.workspace,
        base_settings=args.base_settings,
        allow_python=getattr(args, "allow_python", False),
        allowed_hosts=hosting.allowed,
    )
    host = hosting.host if hosting.host not in ("", "0.0.0.0", "::") else socket.gethostname()
    workbench.tracking.page = hosting.public_address or f"http://{host}:{port}"
    page = Page(workbench)
    blocks = build_app(page)
    try:
        blocks.launch(
            server_name=hosting.host,
            server_port=port,
            root_path=hosting.root_path,
            auth=Credentials(*auth) if auth else None,
            inbrowser=not args.no_browser,
            share=False,
            run_history=False,
            quiet=False,
            prevent_thread_lock=True,
            ssr_mode=False,
            footer_links=[],
            theme=theme(),
            head=Markup("<style>{}</style>").format(style()),
            show_error=True,
            app_kwargs={
                "middleware": [
                    Middleware(ContentPolicy, frames=hosting.frames),
                    Middleware(HostGuard, access=access),
                    *([Middleware(LoginGuard)] if auth else []),
                    Middleware(EnvelopeGuard),
                ]
            },
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        workbench.close()
        raise UsageError(
            f"The page could not be opened on {hosting.host}:{port} ({_first_sentence(error)}); choose another --port or --host."
        ) from None
    prepare(page)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while True:
            time.sleep(1.0)
    except KeyboardInterrupt:
        page.close()
        blocks.server.close()
        workbench.close()
        gc.freeze()  # otherwise shutdown spends seconds collecting the libraries' objects


def reach_without_proxy(host: str) -> None:
    """Exempt this machine from the environment's proxy, because Gradio requests its own page once at start-up."""
    for variable in ("NO_PROXY", "no_proxy"):
        names = [os.environ.get(variable, ""), "127.0.0.1", "localhost", "::1", host.strip("[]")]
        os.environ[variable] = ",".join(filter(None, names))


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of an error; Gradio's longer errors add advice about proxies and shared links."""
    return str(error).split(". ")[0].removesuffix(".") or type(error).__name__


def skeleton(page: Page) -> Markup:
    """Return the page before any view is open."""
    views = Markup().join(
        Markup('<section class="view" id="v-{}" hidden></section>').format(view.replace("/", "-"))
        for view in page.views
    )
    return Markup(
        '<div id="frame">\n{}\n{}\n<p class="away-note" role="status">{}</p>\n'
        '<main>{}<p class="first-wait">Opening…</p></main>\n{}\n'
        '<div id="toasts" aria-live="polite"></div></div>'
    ).format(header(page), popups(), AWAY, views, PANELS)


def header(page: Page) -> Markup:
    """Return the name of the program and workspace, the tabs, the chain and the jobs."""
    workspace = page.workspace.path.resolve()
    brand = Markup(
        '<a class="brand" href="#/{}" title="rallebench {}">rallebench</a>\n'
        '<span class="workspace" title="{}">{}</span>\n'
    ).format(next(iter(page.views)), __version__, str(workspace), workspace.name or str(workspace))
    tabs = Markup().join(
        Markup('<a role="tab" aria-selected="false" data-place="{}" href="#/{}">{}</a>').format(
            place.name, page.first_view(place.name), place.traits["label"]
        )
        for place in page.places
    )
    return Markup(
        '<header class="top">{}<nav role="tablist" aria-label="Places">{}</nav>'
        '<span class="gap"></span><span id="chain"></span>\n{}</header>'
    ).format(brand, tabs, HEADER_BUTTONS)


def popups() -> Markup:
    """Return the lists of jobs and shortcut keys, which open below their buttons."""
    keys = Markup().join(Markup("<dt>{}</dt><dd>{}</dd>").format(key, use) for key, use in KEYS)
    return Markup(
        '<div class="pop" id="jobs" hidden><b>Jobs</b><div id="jobs-list"></div></div>\n'
        '<div class="pop" id="keys" hidden><b>Keys</b><dl>{}</dl></div>'
    ).format(keys)
