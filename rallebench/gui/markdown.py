"""Render Markdown from models and users as HTML that loads nothing by itself, with formulas and coloured code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin

from rallebench.gui.formulas import draw_formula

LONGEST_CODE = 20_000
"""Characters of a code block that is coloured; a longer one is drawn plain."""

LANGUAGES = frozenset(
    [
        "bash",
        "c",
        "c++",
        "cpp",
        "css",
        "diff",
        "go",
        "html",
        "java",
        "javascript",
        "js",
        "json",
        "jsonl",
        "latex",
        "markdown",
        "md",
        "python",
        "py",
        "r",
        "rust",
        "sh",
        "shell",
        "sql",
        "tex",
        "toml",
        "ts",
        "typescript",
        "xml",
        "yaml",
        "yml",
    ]
)
"""Languages whose code is coloured. Some other lexers of Pygments are slow on text made for that."""

_MARKS, _PRIVATE = re.compile("\ue000\\d+\ue001"), re.compile("[\ue000-\uf8ff]")
"""Citation marks, which stand behind a formula; other private-use characters are left out of it."""

_PLAIN = frozenset({"paragraph_open", "paragraph_close", "inline", "text", "softbreak"})
"""Tokens of text that looks the same as written."""


@lru_cache(maxsize=256)
def safe_markdown(text: str) -> Markup:
    """Render Markdown as HTML without the text's own HTML or images. Links open only when clicked.

    >>> print(safe_markdown("a < b, `x<y` and ![i](http://x/)"))
    <p>a &lt; b, <code>x&lt;y</code> and !<a href="http://x/" target="_blank" rel="noopener noreferrer">i</a></p>
    """
    return Markup(_PARSER.render(text)).strip()


@lru_cache(maxsize=256)
def is_formatted(text: str) -> bool:
    """Return whether Markdown changes the look of a text.

    >>> is_formatted("Paris, $5 a night."), is_formatted("- Paris")
    (False, True)
    """
    for token in _PARSER.parse(text):
        children = token.children or ()
        if token.type not in _PLAIN or any(child.type not in _PLAIN for child in children):
            return True
    return False


def _parser() -> MarkdownIt:
    parser = (
        MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _color_code})
        .enable(["table", "strikethrough"])
        .disable("image")
    )
    dollarmath_plugin(
        parser, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True
    )
    texmath_plugin(parser, delimiters="brackets")
    parser.inline.ruler.before("escape", "math_brackets", _display_in_text)
    for kind in ("math_inline", "math_inline_double", "math_block", "math_single"):
        parser.add_render_rule(kind, _formula)
    parser.validateLink = _is_web_address  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link)
    for kind in ("heading_open", "heading_close"):
        parser.add_render_rule(kind, _title)
    return parser


def _display_in_text(state: StateInline, silent: bool) -> bool:
    r"""Read ``\[…\]`` in the middle of a paragraph, which the plug-in reads only as a paragraph of its own."""
    start = state.pos + 2
    end = state.src.find(r"\]", start) if state.src.startswith(r"\[", state.pos) else -1
    if end <= start or end > state.posMax:
        return False
    if not silent:
        state.push("math_inline_double", "math", 0).content = state.src[start:end]
    state.pos = end + 2
    return True


def _is_web_address(url: str) -> bool:
    return bool(re.match(r"(https?://|mailto:)", url, re.IGNORECASE))


def _link(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(parser.renderToken(tokens, index, options, env))


def _title(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Draw a heading as a paragraph, because the headings of the page describe its structure."""
    tokens[index].tag = "p"
    if tokens[index].nesting == 1:
        tokens[index].attrSet("class", "title")
    return str(parser.renderToken(tokens, index, options, env))


def _formula(parser: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    marks = "".join(_MARKS.findall(token.content))
    latex = _PRIVATE.sub("", _MARKS.sub("", token.content))
    return draw_formula(latex, is_block=token.type not in ("math_inline", "math_single")) + marks


def _color_code(code: str, language: str, _attributes: str) -> str:
    """Return code with a class on each part; '' leaves it plain."""
    if language.lower() not in LANGUAGES or len(code) > LONGEST_CODE:
        return ""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="hl-")))


_PARSER = _parser()
