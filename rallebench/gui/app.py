"""Draw the page and serve it. Addresses other than loopback require a login."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
import httpx
from fastapi import HTTPException
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware

from rallebench import __version__
from rallebench.core.errors import UsageError
from rallebench.core.hosts import Access, HostGuard, is_loopback, server_access
from rallebench.gui.assets import head, login_head, script
from rallebench.gui.content_policy import ContentPolicy
from rallebench.gui.endpoints import AT_ONCE, add_endpoints
from rallebench.gui.envelope import EnvelopeGuard
from rallebench.gui.events import Rows
from rallebench.gui.frame import Page
from rallebench.gui.hosting import Hosting, read_hosting
from rallebench.gui.jobs import job_news
from rallebench.gui.login_guard import Credentials, LoginGuard
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import prepare
from rallebench.gui.sharing import open_tunnel
from rallebench.gui.themes import plain_theme, read_theme, tokens
from rallebench.gui.vendored import PREFIX, vendored_route
from rallebench.remote.calls import Calls
from rallebench.services.workbench import Workbench

AUTH_VARIABLE = "RALLEBENCH_AUTH"
LIMIT_VARIABLE = "GRADIO_DEFAULT_CONCURRENCY_LIMIT"
KEYS = (
    (Markup("<kbd>Ctrl</kbd> <kbd>Enter</kbd>"), "run, also while you type"),
    (Markup("<kbd>Ctrl</kbd> <kbd>S</kbd>"), "save the chain"),
    (Markup("<kbd>J</kbd> <kbd>K</kbd>"), "next, previous question"),
    (
        Markup("<kbd>G</kbd> then <kbd>1</kbd> … <kbd>5</kbd>"),
        "Build, Runs, Experiments, Data, Models",
    ),
    (Markup("<kbd>R</kbd> <kbd>W</kbd>"), "mark the answer in Chat right, wrong"),
    (Markup("<kbd>L</kbd>"), "begin, end label mode in a run"),
    (Markup("<kbd>1</kbd> … <kbd>4</kbd> <kbd>0</kbd>"), "label an answer in a run"),
    (Markup("<kbd>/</kbd>"), "filter"),
    (Markup("<kbd>Esc</kbd>"), "close a panel"),
    (Markup("<kbd>?</kbd>"), "these keys"),
)

READ_ONLY = "Read-only: this page shows results and searches indexes. It asks no model, starts nothing and changes nothing."
AWAY = "The program does not answer. Start rallebench again; this page continues by itself."
HEADER_BUTTONS = Markup().join(
    (
        Markup(
            '<button id="job" type="button" hidden data-pop="#jobs" aria-label="Jobs"></button>\n'
        ),
        Markup(
            '<button class="link-button" type="button" data-copy="link" title="Copy a link to this view" '
        ),
        Markup('aria-label="Copy a link to this view">Link</button>\n'),
        Markup(
            '<button class="icon keys-button" type="button" data-pop="#keys" title="Keys and endpoints" '
        ),
        Markup(
            'aria-label="Keys and endpoints">?</button>\n<button class="icon" type="button" data-dark '
        ),
        Markup('title="Light or dark" aria-label="Light or dark">◐</button>'),
    )
)
ENDPOINTS_BUTTON = Markup(
    '<button type="button" data-endpoints title="How other programs ask, search, run and compare">'
    "Endpoints for programs</button>"
)
PANELS = Markup().join(
    (
        Markup(
            '<aside class="drawer" id="drawer" aria-label="Drawer" hidden data-problems></aside>\n'
        ),
        Markup('<dialog id="dialog" data-problems></dialog>\n<dialog id="confirm"><p></p>'),
        Markup('<div class="buttons"><button class="keep" type="button">Cancel</button>'),
        Markup('<button class="yes primary" type="button">Continue</button></div></dialog>'),
    )
)


def build_app(page: Page, *, style: str | None = None, queue_size: int | None = None) -> gr.Blocks:
    """Return the whole page as one Gradio component; its script calls the server functions of ``gui.frame``. Loads
    no model.

    ``style``: the head of a page that is embedded in the application of another program, which launches it without
    ours. ``queue_size``: calls of other programs that may wait; None for any number.
    """
    with gr.Blocks(title="rallebench", analytics_enabled=False, fill_width=True) as blocks:
        gr.HTML(
            skeleton(page),
            js_on_load=script(page),
            head=style,
            server_functions=server_functions(page, refuse=style is None),
            apply_default_css=False,
            elem_id="page",
        )
        is_set = bool(os.environ.get(LIMIT_VARIABLE))
        add_endpoints(Calls(page.workbench), "default" if is_set else AT_ONCE)
    if queue_size is None:
        return blocks  # its queue has no other setting, and a new one would build all of Gradio's routes again
    return blocks.queue(max_size=queue_size)


def server_functions(page: Page, *, refuse: bool = True) -> list[Callable[[object], Any]]:
    """Return the functions that the script may call, by name. They are functions because Gradio marks each of them,
    which it cannot do with methods.

    ``refuse``: answer a refused action with an HTTP error, which ``refusals.js`` must be there to read.
    """
    answer = refuse_problem if refuse else to_json

    def jobs(message: object) -> dict[str, Any]:
        return job_news(page.workbench, page.program).to_json()

    async def more(message: object) -> dict[str, Any]:
        await page.wait_for_more(message)
        return (await run_in_threadpool(page.more, message)).to_json()

    def function(method: Callable[[object], Patch | Rows]) -> Callable[[object], Any]:
        return wraps(method)(lambda message: answer(method(message)))

    return [*map(function, (page.act, page.stop, page.list_rows)), more, jobs]


def to_json(answer: Patch | Rows) -> dict[str, Any]:
    """Return an answer as JSON, a problem included."""
    return answer.to_json()


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
    if args.share and not text:
        raise UsageError(
            f"A shared link lets everyone in: give --auth user:password (or set {AUTH_VARIABLE}), or leave out --share."
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
    theme = read_theme(args.theme) if args.theme else None
    colours = Markup() if theme is None else tokens(theme)
    os.environ.setdefault("FORWARDED_ALLOW_IPS", "")  # visitors cannot claim a different address
    port = check_address(hosting.host, hosting.port)
    if args.share:
        shared = open_tunnel(hosting.host, port)
        access = server_access(hosting.host, (*hosting.allowed, urlsplit(shared).netloc))
    reach_without_proxy(hosting.host)
    workbench = Workbench(
        hosting.workspace,
        base_settings=args.base_settings,
        mcp_servers=getattr(args, "mcp_servers", None),
        allow_python=getattr(args, "allow_python", False),
        allowed_hosts=hosting.allowed,
        read_only=args.read_only,
    )
    host = hosting.host if hosting.host not in ("", "0.0.0.0", "::") else socket.gethostname()
    workbench.tracking.page = hosting.public_address or f"http://{host}:{port}"
    page = Page(workbench)
    blocks = build_app(page, queue_size=args.queue_size)
    folder = f"{hosting.root_path}{PREFIX}"
    try:
        blocks.launch(
            server_name=hosting.host,
            server_port=port,
            root_path=hosting.root_path,
            auth=Credentials(*auth) if auth else None,
            inbrowser=not args.no_browser,
            share=False,
            run_history=False,
            quiet=True,
            prevent_thread_lock=True,
            ssr_mode=False,
            footer_links=["api"],
            theme=theme or plain_theme(),
            head=head(folder, colours),
            show_error=True,
            app_kwargs={
                "routes": [vendored_route()],
                "middleware": guards(page, hosting, access, bool(auth), colours),
            },
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        workbench.close()
        raise UsageError(
            f"The page could not be opened on {hosting.host}:{port} ({_first_sentence(error)}); choose another --port or --host."
        ) from None
    print(f"* Running on local URL:  {blocks.local_url}", flush=True)
    if args.share:
        print(f"* Running on public URL: {shared}", flush=True)
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


def guards(
    page: Page, hosting: Hosting, access: Access, has_login: bool, colours: Markup
) -> list[Middleware]:
    """Return what every request of the page passes through, the outermost first."""
    login = login_head(f"{hosting.root_path}{PREFIX}", colours)
    return [
        Middleware(ContentPolicy, frames=hosting.frames, login=login),
        Middleware(HostGuard, access=access),
        *([Middleware(LoginGuard)] if has_login else []),
        Middleware(EnvelopeGuard, takes_files=not page.read_only),
    ]


def reach_without_proxy(host: str) -> None:
    """Exempt this machine from the environment's proxy, because Gradio requests its own page once at start-up."""
    for variable in ("NO_PROXY", "no_proxy"):
        names = [os.environ.get(variable, ""), "127.0.0.1", "localhost", "::1", host.strip("[]")]
        os.environ[variable] = ",".join(filter(None, names))


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of an error; Gradio's longer errors add advice about proxies and shared links."""
    return str(error).split(". ")[0].removesuffix(".") or type(error).__name__


def skeleton(page: Page) -> Markup:
    """Return the page before any view is open. Gradio wraps it in the one element ``main``."""
    views = Markup().join(
        Markup('<section class="view" id="v-{}" tabindex="-1" hidden></section>').format(
            view.replace("/", "-")
        )
        for view in page.views
    )
    return Markup(
        '<div id="frame">\n<a class="skip" href="#views">Skip to the content</a>\n'
        '{}\n{}\n{}<p class="away-note" role="status">{}</p>\n'
        '<div id="views">{}<p class="first-wait">Opening…</p></div>\n{}\n'
        '<div id="toasts" aria-live="polite"></div><div id="plot-tip" aria-hidden="true" hidden></div></div>'
    ).format(header(page), popups(), read_only_note(page), AWAY, views, PANELS)


def read_only_note(page: Page) -> Markup:
    """Return the line that marks a read-only page; "" on any other."""
    note = Markup('<p class="read-only-note" role="note">{}</p>\n')
    return note.format(READ_ONLY) if page.read_only else Markup()


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
        '<div class="pop" id="keys" hidden><b>Keys</b><dl>{}</dl>{}</div>'
    ).format(keys, ENDPOINTS_BUTTON)
