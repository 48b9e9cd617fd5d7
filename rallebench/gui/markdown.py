"""Render Markdown from models and users as HTML that loads nothing by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup


@lru_cache(maxsize=64)
def safe_markdown(text: str) -> Markup:
    """Render Markdown as HTML without the text's own HTML or images. Links open only when clicked.

    >>> print(safe_markdown("a < b, `x<y` and ![i](http://x/)"))
    <p>a &lt; b, <code>x&lt;y</code> and !<a href="http://x/" target="_blank" rel="noopener noreferrer">i</a></p>
    """
    return Markup(_PARSER.render(text)).strip()


def _parser() -> MarkdownIt:
    parser = (
        MarkdownIt("commonmark", {"html": False, "breaks": True})
        .enable(["table", "strikethrough"])
        .disable("image")
    )
    parser.validateLink = _is_web_address  # type: ignore[method-assign]
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.add_render_rule("link_open", _link)
    return parser


def _is_web_address(url: str) -> bool:
    return bool(re.match(r"(https?://|mailto:)", url, re.IGNORECASE))


def _formula(state: StateInline, silent: bool) -> bool:
    """Keep ``$$…$$`` as written, without interpreting Markdown inside."""
    start = state.pos + 2
    end = state.src.find("$$", start) if state.src.startswith("$$", state.pos) else -1
    if end <= start or end > state.posMax:
        return False
    if not silent:
        state.push("text", "", 0).content = state.src[state.pos : end + 2]
    state.pos = end + 2
    return True


def _link(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(parser.renderToken(tokens, index, options, env))


_PARSER = _parser()
