"""Draw LaTeX formulas as MathML, which browsers display without a script or a font."""

from __future__ import annotations

import html
import logging
from xml.etree.ElementTree import Element

from markupsafe import Markup
from markupsafe import escape as escape_text

log = logging.getLogger(__name__)

LONGEST = 2_000
"""Characters of a formula that is drawn; a longer one is shown as written."""

ELEMENTS = frozenset(
    [
        "math",
        "maction",
        "menclose",
        "mfrac",
        "mi",
        "mlongdiv",
        "mmultiscripts",
        "mn",
        "mo",
        "mover",
        "mpadded",
        "mphantom",
        "mprescripts",
        "mroot",
        "mrow",
        "ms",
        "mspace",
        "msqrt",
        "mstyle",
        "msub",
        "msubsup",
        "msup",
        "mtable",
        "mtd",
        "mtext",
        "mtr",
        "munder",
        "munderover",
        "none",
    ]
)
ATTRIBUTES = frozenset(
    [
        "accent",
        "accentunder",
        "columnalign",
        "columnlines",
        "columnspacing",
        "depth",
        "display",
        "displaystyle",
        "fence",
        "form",
        "height",
        "linethickness",
        "lspace",
        "mathvariant",
        "maxsize",
        "minsize",
        "movablelimits",
        "notation",
        "rowlines",
        "rowspacing",
        "rspace",
        "scriptlevel",
        "separator",
        "stretchy",
        "symmetric",
        "voffset",
        "width",
    ]
)
"""Elements and attributes that are kept; ``href``, ``style`` and ``class`` of a formula are not."""


def draw_formula(latex: str, *, is_block: bool = False) -> Markup:
    """Return a formula as MathML; one that cannot be read is shown as written.

    >>> print(draw_formula("x^2"))
    <math display="inline"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>
    >>> print(draw_formula("\\\\frac{<}{"))
    <code>\\frac{&lt;}{</code>
    """
    written = Markup("<code>{}</code>").format(latex)
    if len(latex) > LONGEST:
        return written
    from latex2mathml.converter import convert_to_element

    try:
        return _draw(convert_to_element(latex, display="block" if is_block else "inline"))
    except Exception:  # of many unrelated kinds, for formulas that LaTeX would refuse, too
        log.debug("a formula could not be read", exc_info=True)
        return written


def _draw(element: Element) -> Markup:
    """Write an element with its children. Text is escaped here, because the library's own writer does not escape it."""
    inside = escape_text(html.unescape(element.text or ""))
    for child in element:
        inside += _draw(child) + escape_text(html.unescape(child.tail or ""))
    if element.tag not in ELEMENTS:
        return inside
    attributes = Markup().join(
        Markup(' {}="{}"').format(name, value)
        for name, value in element.items()
        if name in ATTRIBUTES
    )
    return Markup("<{}{}>{}</{}>").format(
        Markup(element.tag), attributes, inside, Markup(element.tag)
    )
