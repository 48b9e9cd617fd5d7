"""Markdown of models and users → HTML in which nothing loads by itself. Pure.

The page's own Markdown reader lets HTML, images and diagrams of a text through, all of which can fetch an address
that the text chose. So the text is read here, and the page gets HTML of few tags, on one line that its reader leaves
as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

PLAIN = re.compile(r"(?![-+=\s]|\d+[.)]\s)[^\x00-\x1f<>&`*_\[\]#~|$\\%]*")
"""A line without markup, which is sent as it is: so the page's copy button copies the text and not HTML."""

_DELIMITER = "\0\0"
"""Stands for ``$$`` around a formula until every other dollar sign is an entity; the parser lets no NUL through."""


@lru_cache(maxsize=64)
def safe_markdown(text: str) -> str:
    """Markdown as one line of HTML: no HTML of the text's own, no image; a link opens only when it is clicked.

    >>> safe_markdown("No markup.")
    'No markup.'
    >>> safe_markdown("a < b, `x<y` and ![i](http://x/)")
    '<div><p>a &lt; b, <code>x&lt;y</code> and !<a href="http://x/" target="_blank" rel="noopener noreferrer">i</a></p></div>'
    """
    if PLAIN.fullmatch(text):
        return text
    return f"<div>{one_line(_PARSER.render(text).strip()).replace(_DELIMITER, '$$')}</div>"


def one_line(html: str) -> str:
    """HTML as one line, so that no blank line in it ends it and lets Markdown in.

    Dollar and percent signs become entities: the page cuts ``$$…$$`` out, and puts it back at ``%%%``, before it
    looks at tags.
    """
    html = html.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "&#10;")
    return html.replace("$", "&#36;").replace("%", "&#37;")


def _parser() -> MarkdownIt:
    parser = (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable(["table", "strikethrough"])
        .disable("image")
    )
    parser.validateLink = _is_web_address  # type: ignore[method-assign]
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.add_render_rule("formula", _formula_text)
    parser.add_render_rule("link_open", _link)
    return parser


def _is_web_address(url: str) -> bool:
    return bool(re.match(r"(https?://|mailto:)", url, re.IGNORECASE))


def _formula(state: StateInline, silent: bool) -> bool:
    """``$$…$$``, in which nothing is Markdown."""
    start = state.pos + 2
    end = state.src.find("$$", start) if state.src.startswith("$$", state.pos) else -1
    if end <= start or end > state.posMax:
        return False
    if not silent:
        state.push("formula", "", 0).content = state.src[start:end]
    state.pos = end + 2
    return True


def _formula_text(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """The formula for the page, which escapes it itself; so its brackets become TeX's own words."""
    tex = tokens[index].content.replace("<", r"\lt ").replace(">", r"\gt ")
    return f"{_DELIMITER}{tex}{_DELIMITER}"


def _link(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(parser.renderToken(tokens, index, options, env))


_PARSER = _parser()
