"""A reply's Markdown becomes HTML with few tags, in which nothing loads by itself."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rallebench.gui.formulas import ATTRIBUTES as FORMULA_ATTRIBUTES
from rallebench.gui.formulas import ELEMENTS
from rallebench.gui.formulas import LONGEST as LONGEST_FORMULA
from rallebench.gui.markdown import LONGEST_CODE, is_formatted, safe_markdown

TAGS = re.compile(
    "div|span|p|br|hr|em|strong|s|code|pre|a|ul|ol|li|blockquote|h[1-6]|table|thead|tbody|tr|th|td"
)
ATTRIBUTES = {"href", "target", "rel", "title", "class", "start", "style"}
STYLE = re.compile(r"text-align:(left|center|right)")
IMAGE = '<img src="http://evil.example/x.png" onerror=alert(1)>'


class Tags(HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_decl = unknown_decl = handle_pi = handle_comment


def check(shown: str) -> Tags:
    """Parse the HTML for the page. Fails at a tag, attribute or address that could load or run something."""
    tags = Tags(shown)
    for tag, attributes in tags.seen:
        if tag in ELEMENTS:
            assert attributes.keys() <= FORMULA_ATTRIBUTES | {"display"}, (tag, attributes)
            continue
        assert TAGS.fullmatch(tag) and attributes.keys() <= ATTRIBUTES, (tag, attributes)
        assert STYLE.fullmatch(attributes.get("style") or "text-align:left")
        assert re.match(r"https?://|mailto:", attributes.get("href") or "http://", re.IGNORECASE)
        assert re.match("language-|hl-|title$", attributes.get("class") or "hl-")
    return tags


@pytest.mark.parametrize(
    "text",
    [
        f"\\`{IMAGE}\\`",
        f"\\``{IMAGE}\\``",
        f"`a\\` {IMAGE} `",
        f"`` ` {IMAGE}",
        f"\\```\n{IMAGE}\n\\```",
        f"    ```\n{IMAGE}\n    ```",
        f"> ```\n{IMAGE}\n```",
        f"```\n```{IMAGE}```",
        IMAGE,
        f"text\n\n{IMAGE}\n\ntext",
        "![x](http://evil.example/x.png)",
        "!\\[x](http://evil.example/x.png)",
        "\\\\![x](http://evil.example/x.png)",
        "![x][ref]\n\n[ref]: http://evil.example/x.png",
        "[![x](http://evil.example/x.png)](http://evil.example)",
        "&lt;img src=http://evil.example/x.png&gt; &#60;img src=x&#62;",
        "<svg onload=alert(1)></svg>",
        "<style>@import 'http://evil.example/x.css';</style>",
        '<link rel="prefetch" href="http://evil.example/">',
        "<meta http-equiv=refresh content='0;url=http://evil.example'>",
        "<iframe src=http://evil.example></iframe> <!-- x --> <?php ?> <![CDATA[x]]>",
        '```" style="background:url(http://evil.example)\nx\n```',
        "```mermaid\nflowchart TD\n A@{ img: 'http://evil.example/x.png' }\n```",
        "[x](javascript:alert(1)) [y](data:text/html,x) [z](file:///etc/passwd) [w](/gradio_api/x)",
        "[x](http://a/$$) style=background:url(http://evil.example) [y](http://b/$$)",
        "$$ <img src=http://evil.example/x.png> $$ and &lt;img src=x&gt; $$",
        '[x](http://a "onmouseover=alert(1) <img src=x>")',
        "a\r\n\r\n<img src=x>\r\rb\u2028<img src=x>\0<img src=x>",
    ],
)
def test_no_text_makes_the_page_fetch_anything(text: str) -> None:
    check(safe_markdown(text))


# fmt: off
PIECES = st.sampled_from((
    "`", "``", "```", "\\", "\n", "\n\n", "    ", "<img src=x>", "<", ">", "![", "](http://x/)", "[", "]", "&lt;", "&#60;",
    "$$", "$", "%%%", "* ", "> ", "1. ", "|", "---", "<!--", "-->", "<a href=", '"', "'", "~~~", "=", "#", "http://x",
    "<http://x>", "\t", "\r", "\0", "word", "\\(", "\\)", "\\[", "\\]", "\\text{", "}", "\\href{", "```js\n",
))
# fmt: on


@given(st.lists(PIECES, max_size=25).map("".join))
def test_no_mixture_of_markup_makes_the_page_fetch_anything(text: str) -> None:
    check(safe_markdown(text))


def test_markdown_stays_markdown_and_code_shows_what_was_written() -> None:
    text = '**bold** and `a < b`\n\n```c\nif (a < b && c) x = "&lt;";\n```\n\n* one\n* two & three > two\n\n|a|b|\n|-|-|\n|1|2|'
    tags = check(safe_markdown(text))
    assert [tag for tag, _ in tags.seen][:4] == ["p", "strong", "code", "pre"]
    for words in ("a < b", 'if (a < b && c) x = "&lt;";\n', "two & three > two"):
        assert words in tags.text
    assert {"ul", "li", "table", "td"} <= {tag for tag, _ in tags.seen}


def test_a_link_opens_only_on_a_click_and_elsewhere() -> None:
    _, (tag, attributes) = check(safe_markdown("[x](https://example.org/?a=1&b=2)")).seen
    assert tag == "a" and attributes.pop("href") == "https://example.org/?a=1&b=2"
    assert attributes == {"target": "_blank", "rel": "noopener noreferrer"}


@pytest.mark.parametrize(
    "text", ["$x^2$", "$$x^2$$", "\\(x^2\\)", "so \\[x^2\\] holds", "\\[\nx^2\n\\]", "$$\nx^2\n$$"]
)
def test_a_formula_is_drawn_between_any_of_the_marks_that_models_write(text: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in safe_markdown(text)
    assert is_formatted(text)


@pytest.mark.parametrize("text", ["$5 and $6", "a $ 8 $ note", "**$5** and $$ 6"])
def test_prices_are_not_formulas(text: str) -> None:
    assert "<math" not in safe_markdown(text)


@pytest.mark.parametrize(
    "latex",
    [
        "\\text{<script>alert(1)</script>}",
        "\\text{<img src=x onerror=alert(1)>}",
        "\\text{&lt;img src=x onerror=alert(1)&gt;}",
        "\\href{javascript:alert(1)}{x}",
        "\\style{background:url(http://evil.example)}{x}",
        "\\class{cite}{x}",
    ],
)
def test_a_formula_brings_no_markup_of_its_own(latex: str) -> None:
    tags = check(safe_markdown(f"${latex}$"))
    assert tags.seen and {tag for tag, _ in tags.seen} <= ELEMENTS | {"p"}


@pytest.mark.parametrize(
    "latex", ["\\frac{", "{" * 1000 + "}" * 999, "x" * (LONGEST_FORMULA + 1), "\\left(", "a^b^c"]
)
def test_a_formula_that_cannot_be_read_is_shown_as_written(latex: str) -> None:
    tags = check(safe_markdown(f"$${latex}$$"))
    assert latex in tags.text and "math" not in {tag for tag, _ in tags.seen}


def test_code_of_a_known_language_is_coloured_unless_it_is_long() -> None:
    assert '<span class="hl-k">if</span>' in safe_markdown("```python\nif a < b: pass\n```")
    for code, language in (("a < b", "unknown"), ("x = 1\n" * LONGEST_CODE, "python")):
        assert "hl-" not in safe_markdown(f"```{language}\n{code}\n```")


@pytest.mark.parametrize(
    "text", ["Paris", "Paris, 1889", "two\nlines", "[1] and 2 * 3", "a_b_c", ""]
)
def test_plain_text_is_not_formatted(text: str) -> None:
    assert not is_formatted(text)
