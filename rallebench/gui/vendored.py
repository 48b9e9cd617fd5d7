"""Serve the font and scripts of other projects that the page brings along. Browsers keep them for a year."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "vendor"
PREFIX = "/vendor"
CACHING = "public, max-age=31536000, immutable"
"""Each file has its version in its name, so a browser never needs to ask for it again."""
NAMES = frozenset(path.name for path in FOLDER.iterdir())


def vendored_route() -> Route:
    """Return the route of the vendored files, for Gradio's FastAPI app.

    Starlette's own static files do not work behind a proxy that removes a path.
    """
    return Route(f"{PREFIX}/{{name}}", _send, methods=["GET"], name="vendored")


async def _send(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in NAMES:
        return PlainTextResponse("The page has no such file.", 404)
    if name.endswith(".js"):
        headers = {"cache-control": CACHING, "content-encoding": "gzip"}
        return Response(_gzip_file(name), media_type="text/javascript", headers=headers)
    return FileResponse(FOLDER / name, headers={"cache-control": CACHING})


@cache
def _gzip_file(name: str) -> bytes:
    return gzip.compress((FOLDER / name).read_bytes())
