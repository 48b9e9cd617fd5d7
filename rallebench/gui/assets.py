"""The page's own scripts and style sheets, with the vendored font."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from rallebench.gui.frame import Page
from rallebench.gui.vendored import PREFIX

FOLDER = Path(__file__).parent
SCRIPTS = (
    "script/page",
    "script/actions",
    "script/patches",
    "script/focus",
    "script/lists",
    "script/trace",
    "script/copy",
    "script/plots",
    "script/endpoints",
    "script/editor",
    "script/keys",
)
STYLES = (
    "style/base",
    "style/gradio",
    "style/controls",
    "style/frame",
    "style/parts",
    "style/lists",
    "style/answers",
    "style/plots",
    "style/editor",
    "style/widths",
)
LOGIN_STYLES = ("style/base", "style/login")
NO_TOKENS = Markup()
FONTS = {
    "inter-latin-5.3.0.woff2": "U+0000-00FF,U+0131,U+0152-0153,U+02BB-02BC,U+02C6,U+02DA,U+02DC,U+0304,U+0308,U+0329,"
    "U+2000-206F,U+20AC,U+2122,U+2191,U+2193,U+2212,U+2215,U+FEFF,U+FFFD",
    "inter-latin-ext-5.3.0.woff2": "U+0100-0130,U+0132-0151,U+0154-017F,U+0218-021B,U+1E00-1EFF,U+20A0-20AB,U+20AD-20C0",
}
"""File of the vendored font → its characters; the second one is fetched only where it is needed."""
FONT_FACE = Markup(
    '@font-face{{font-family:Inter;font-weight:100 900;font-display:swap;src:url({folder}/{name}) format("woff2");'
    "unicode-range:{characters}}}"
)


def script(page: Page) -> str:
    """Return the scripts of the frame and of all places. They start once all of them are loaded.

    FIRST: place → its first view. PERMITTED: the actions of a read-only page, otherwise null.
    """
    first = {place.name: page.first_view(place.name) for place in page.places}
    permitted = page.action_names if page.read_only else None
    constants = (
        f"const FIRST = {json.dumps(first)};",
        f"const PERMITTED = {json.dumps(permitted)};",
    )
    return "\n".join([*constants, *files("js", SCRIPTS), *of_places("js"), "begin();"])


def style() -> Markup:
    """Return the style sheets of the frame and of all places."""
    return Markup("\n".join([*files("css", STYLES), *of_places("css")]))


def head(folder: str = PREFIX, tokens: Markup = NO_TOKENS) -> Markup:
    """Return the style sheets, after the vendored font, which the browser fetches first.

    ``folder``: the address of the vendored files; ``tokens``: rules of a theme.
    """
    preload = Markup('<link rel="preload" as="font" crossorigin href="{}/{}">').format(
        folder, next(iter(FONTS))
    )
    return Markup("{}<style>{}{}{}</style>").format(preload, font_faces(folder), style(), tokens)


def login_head(folder: str = PREFIX, tokens: Markup = NO_TOKENS) -> Markup:
    """Return the style sheets of the login page, which Gradio draws without the page's own."""
    sheets = Markup("\n".join(files("css", LOGIN_STYLES)))
    title = Markup("<title>rallebench</title>")
    return title + Markup("<style>{}{}{}</style>").format(font_faces(folder), sheets, tokens)


def font_faces(folder: str) -> Markup:
    """Return the rules that name the files of the font."""
    faces = (FONT_FACE.format(name=n, characters=c, folder=folder) for n, c in FONTS.items())
    return Markup().join(faces)


def files(suffix: str, names: Sequence[str]) -> list[str]:
    """Return the frame's files in the order of ``names``."""
    return [(FOLDER / f"{name}.{suffix}").read_text("utf-8") for name in names]


def of_places(suffix: str) -> list[str]:
    """Return the files of the places."""
    paths = sorted((FOLDER / "places").glob(f"*.{suffix}"))
    return [path.read_text("utf-8") for path in paths]
