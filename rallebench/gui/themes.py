"""Gradio's themes on the page: the hue, fonts and radius of a theme become tokens of the style sheet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import gradio as gr
from markupsafe import Markup

from rallebench.core.errors import UsageError

OWN_FONTS = ("-apple-system", "BlinkMacSystemFont", "Segoe UI", "Roboto", "sans-serif")
OWN_MONO = ("SFMono-Regular", "Menlo", "Consolas", "monospace")

STEPS = ("50", "100", "200", "300", "400", "500", "600", "700", "800", "900", "950")
"""Steps of a hue of Gradio, from the lightest to the darkest."""
READABLE = 4.5
"""Contrast that text needs on its background (WCAG 2.2, AA)."""
LIGHT, DARK = "#f1f1ee", "#222428"
"""The surfaces of the page with the least contrast to its text: ``--hover`` of ``style/base.css``."""

_HUB = re.compile(r"[\w.-]+/[\w.-]+(@[\w.*<>=^~-]+)?", re.ASCII)
_COLOUR = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_LENGTH = re.compile(r"\d{1,3}(\.\d+)?(px|em|rem)")
_FONT = re.compile(r"[A-Za-z0-9 _-]{1,60}")


def built_in() -> dict[str, Any]:
    """Return the name and class of each theme of Gradio.

    >>> {"default", "monochrome", "soft"} <= set(built_in())
    True
    """
    classes = (value for value in vars(gr.themes).values() if isinstance(value, type))
    themes = [value for value in classes if issubclass(value, gr.themes.Base)]
    return {value.__name__.lower(): value for value in sorted(themes, key=lambda c: c.__name__)}


def read_theme(name: str) -> Any:
    """Return the theme of a name: Gradio's own, or ``owner/name`` of the Hugging Face hub, which is downloaded.

    Fonts of other servers are left out, because the page contacts none. Raises UsageError.
    """
    themes = built_in()
    if name.lower() in themes:
        theme = themes[name.lower()]()
    elif _HUB.fullmatch(name):
        theme = _from_hub(name)
    else:
        raise UsageError(
            f"Gradio has no theme {name!r}; choose one of {', '.join(themes)}, or owner/name for one of the Hugging Face hub."
        )
    theme._stylesheets, theme.custom_css = [], ""
    return theme


def _from_hub(name: str) -> Any:
    try:
        return gr.Theme.from_hub(name)
    except Exception as error:  # the library raises its own, the network's and ones of JSON
        reason = str(error).strip().partition("\n")[0][:200].rstrip(".") or type(error).__name__
        raise UsageError(
            f"The theme {name!r} could not be fetched from the Hugging Face hub ({reason}); choose one of {', '.join(built_in())}."
        ) from None


def plain_theme() -> Any:
    """Return a theme that uses the visitor's own fonts, so that the page needs no network."""
    return gr.themes.Base(font=list(OWN_FONTS), font_mono=list(OWN_MONO))


def tokens(theme: Any) -> Markup:
    """Return the rules that give our tokens the hue, fonts and radius of a theme. The colours of verdicts stay."""
    light, dark = accent(hue(theme))
    shared = {
        "--sans": fonts(theme._font),
        "--mono": fonts(theme._font_mono),
        "--r": radius(theme),
    }
    template = Markup(":root{{{}}}:root.dark,body.dark{{{}}}")
    return template.format(_rules({**shared, **light}), _rules(dark))


def hue(theme: Any) -> tuple[str, ...]:
    """Return the primary hue of a theme from light to dark; () if one is not a plain colour."""
    colours = [str(getattr(theme, f"primary_{step}", "")) for step in STEPS]
    return tuple(colours) if all(map(_COLOUR.fullmatch, colours)) else ()


def accent(colours: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the accent tokens in light and dark: of each hue, the step nearest to the middle that can be read."""
    if not colours:
        return {}, {}
    palest, darkest = colours[1], colours[-1]
    ink = _first_readable([*colours[6:], "#000000"], (LIGHT, palest))
    tint = _first_readable([*reversed(colours[:5]), "#ffffff"], (DARK, darkest))
    light = {"--acc": ink, "--acc-soft": palest, "--on-acc": "#ffffff"}
    return light, {"--acc": tint, "--acc-soft": darkest, "--on-acc": darkest}


def _first_readable(colours: Sequence[str], surfaces: Sequence[str]) -> str:
    """Return the first colour that can be read on all surfaces, or else the last."""
    readable = (c for c in colours if min(contrast(c, s) for s in surfaces) >= READABLE)
    return next(readable, colours[-1])


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2).

    >>> contrast("#000", "#ffffff"), round(contrast("#777777", "#fff"), 2)
    (21.0, 4.48)
    """
    dark, light = sorted((_luminance(first), _luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * s for weight, s in zip((0.2126, 0.7152, 0.0722), linear))


def fonts(families: Sequence[Any]) -> str:
    r"""Return the list of font families as CSS without quotes; families with unusual names are left out.

    >>> fonts(["Press Start 2P", "serif", "};x"])
    'Press Start \\32 P, serif'
    """
    names = [str(getattr(family, "name", family)) for family in families]
    plain = [name for name in names if _FONT.fullmatch(name)]
    return ", ".join(re.sub(r"\b(\d)", r"\\3\1 ", name) for name in plain)


def radius(theme: Any) -> str:
    """Return the radius of a theme; '' if it is not a plain length."""
    value = str(getattr(theme, "radius_md", ""))
    return value if _LENGTH.fullmatch(value) else ""


def _rules(values: dict[str, str]) -> Markup:
    rules = (Markup("{}:{};").format(name, value) for name, value in values.items() if value)
    return Markup().join(rules)
