"""``ui``: open the web page."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import ALLOWED_HOST, MCP_SERVERS, flag, switch
from rallebench.cli.verbs import VERBS


@VERBS.register(
    "ui",
    about="open the page",
    example="rallebench ui --port 7860",
    order=99,
    flags=(
        flag("--host", default="127.0.0.1"),
        flag("--port", type=int, default=7860),
        ALLOWED_HOST,
        flag("--auth", "USER:PASSWORD"),
        switch(
            "--share",
            "also show the page at a public address of gradio.live for up to a week; needs --auth",
        ),
        flag(
            "--theme",
            "NAME",
            "a theme of Gradio (soft, monochrome, …), or owner/name for one of the Hugging Face hub",
            default="",
        ),
        flag(
            "--queue-size",
            "N",
            "calls of other programs that may wait in Gradio's queue; without it, any number",
            type=int,
        ),
        flag(
            "--root-path",
            "PATH|URL",
            "the page's path behind a proxy that removes it (/bench), or its public address",
            default="",
        ),
        switch(
            "--spaces",
            "in a Hugging Face Space: its login, its disk, and a frame on huggingface.co",
        ),
        switch("--no-browser"),
        switch("--read-only", "show results and search indexes; start and change nothing"),
        switch("--allow-python", "let agents run programs that a model writes"),
        MCP_SERVERS,
    ),
)
def ui(args: argparse.Namespace) -> None:
    """Open the web page."""
    from rallebench.gui.app import serve

    serve(args)
