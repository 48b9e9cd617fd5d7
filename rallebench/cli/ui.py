"""``ui``: open the page."""

from __future__ import annotations

import argparse

from rallebench.cli.verbs import VERBS, allowed_host_flag


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=7860)
    allowed_host_flag(parser)
    parser.add_argument("--auth", metavar="USER:PASSWORD")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument(
        "--allow-python", action="store_true", help="let agents run programs that a model writes"
    )


@VERBS.register(
    "ui", about="open the page", example="rallebench ui --port 7860", order=99, flags=_flags
)
def ui(args: argparse.Namespace) -> None:
    """Open the page."""
    from rallebench.gui.app import serve

    serve(args)
