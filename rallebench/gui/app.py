"""Draw the page and serve it, on loopback unless a login is demanded."""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from rallebench import __version__
from rallebench.core.errors import UsageError
from rallebench.core.hosts import HostGuard, access_of, is_loopback
from rallebench.gui.content_policy import HEADERS, WithoutBase
from rallebench.gui.session import Session
from rallebench.gui.tabs import TABS
from rallebench.services.workbench import Workbench

STYLE = Path(__file__).with_name("style.css")
AUTH_VARIABLE = "RALLEBENCH_AUTH"
REMEMBERS = "the name of an episode and a chain, which are no secrets"
"""The browser keeps them, readable also after the program was started anew."""


SWITCH = """() => {
    const open = document.querySelector("#tabs button[role=tab][aria-selected=true][id^=tab-]")?.id ?? "CHOSEN";
    return OWNERS.map((owner) => ({active: owner === open, __type__: "update"}));
}"""
"""Which timers run from now on. It looks which tab is open now, because the events of two that were opened one soon after
the other, as the first one of a new page, may come in either order; and it asks no server."""


def build_app(workbench: Workbench) -> gr.Blocks:
    """The whole page over one workbench; nothing heavy is loaded yet."""
    with gr.Blocks(title="rallebench", analytics_enabled=False, fill_width=True) as page:
        gr.HTML(
            f'<header class="rb-header"><b>rallebench</b> <span>develop, prove, track and chat with '
            f'retrieval-augmented chains</span><span class="rb-version">{__version__}</span></header>'
        )
        # A State inside gr.Tabs would be counted as a tab.
        opened, followed, compared = gr.State(None), gr.State(""), gr.State(None)
        # Not in its tab, which is drawn only when it is opened: the page would ask for the value too early.
        episode = gr.BrowserState("", storage_key="rallebench-agent", secret=REMEMBERS)
        chain = gr.BrowserState("", storage_key="rallebench-chain", secret=REMEMBERS)
        with gr.Tabs(elem_id="tabs") as tabs:
            session = Session(
                tabs=tabs,
                open_question=opened,
                followed=followed,
                compare_runs=compared,
                episode=episode,
                edited_chain=chain,
            )
            entries = sorted(
                (TABS.entry(name) for name in TABS.names()), key=lambda e: e.traits["order"]
            )
            drawn = []
            for entry in entries:
                with gr.Tab(
                    entry.traits["label"], id=entry.name, elem_id=f"tab-{entry.name}"
                ) as tab:
                    entry.value(workbench, session, tab, page)
                drawn.append(tab)
        only_the_open_tab_ticks(drawn)
    # The page carries a description of every documented handler: 2.7 MB that no visitor reads.
    for handler in page.fns.values():
        handler.api_visibility = "undocumented"
    return page


def only_the_open_tab_ticks(tabs: Sequence[gr.Tab]) -> None:
    """Stop the timers of every tab but the open one: a browser takes many milliseconds for each tick of a page this
    large, and all tabs together would keep one of its cores busy while nothing happens.

    A timer that a tab switches itself, as one that follows a load, is left alone: it was drawn inactive.
    """
    timers = [
        (tab, block)
        for tab in tabs
        for block in blocks_in(tab)
        if isinstance(block, gr.Timer) and block.active
    ]
    owners = json.dumps([f"{tab.elem_id}-button" for tab, _ in timers])
    for tab, timer in timers:
        timer.active = tab is tabs[0]
    for tab in tabs:
        switch = SWITCH.replace("OWNERS", owners).replace("CHOSEN", f"{tab.elem_id}-button")
        tab.select(None, None, [timer for _, timer in timers], js=switch, show_progress="hidden")


def blocks_in(block: Any) -> Iterator[Any]:
    """Everything that is drawn within a block."""
    for child in getattr(block, "children", ()):
        yield child
        yield from blocks_in(child)


def theme() -> Any:
    """A plain theme whose fonts are the visitor's own: the page needs no network."""
    return gr.themes.Default(
        primary_hue="teal",
        neutral_hue="slate",
        radius_size="sm",
        font=["system-ui", "-apple-system", "Segoe UI", "sans-serif"],
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
    )


def login(args: argparse.Namespace) -> tuple[str, str] | None:
    """User and password from ``--auth`` or the environment; UsageError if a public address has none."""
    text = args.auth or os.environ.get(AUTH_VARIABLE, "")
    user, colon, password = text.partition(":")
    if text and not (user and colon and password):
        raise UsageError(f"The login must read user:password (--auth or {AUTH_VARIABLE}).")
    if not text and not is_loopback(args.host):
        raise UsageError(
            f"Binding {args.host} lets others in: give --auth user:password (or set {AUTH_VARIABLE}), or bind 127.0.0.1."
        )
    return (user, password) if text else None


def check_address(host: str, port: int) -> None:
    """Raise UsageError with the system's own reason if nobody can listen there."""
    try:
        if not 0 <= port <= 65535:  # looking up the host would cut it to 16 bits
            raise OverflowError("a port is a number from 0 to 65535")
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        kind, _, _, _, address = found[0]
        with socket.socket(kind, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # a server that has just ended leaves its port waiting
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"The page cannot be opened on {host}:{port} ({reason}); choose another --port or --host."
        ) from None


def serve(args: argparse.Namespace) -> None:
    """Open the page and serve until interrupted. Raises UsageError for a bad address or a busy port."""
    auth = login(args)
    access = access_of(args.host, args.allowed_host)
    check_address(args.host, args.port)
    workbench = Workbench(
        args.workspace,
        base_settings=args.base_settings,
        allow_python=getattr(args, "allow_python", False),
        allowed_hosts=args.allowed_host,
    )
    page = build_app(workbench)
    page.queue(default_concurrency_limit=16)
    try:
        page.launch(
            server_name=args.host,
            server_port=args.port,
            auth=auth,
            inbrowser=not args.no_browser,
            share=False,
            run_history=False,
            quiet=False,
            ssr_mode=False,
            footer_links=[],
            theme=theme(),
            css_paths=STYLE,
            show_error=True,
            app_kwargs={
                "middleware": [
                    Middleware(HostGuard, access=access, headers=HEADERS),
                    Middleware(WithoutBase),
                ]
            },
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"The page could not be opened on {args.host}:{args.port} ({error}); choose another --port or --host."
        ) from None
