"""Numbers, means with intervals, bars and result tables as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from rallebench.core.marks import Mark, marks_table
from rallebench.core.memory import size
from rallebench.core.numbers import (
    Limits,
    as_estimate,
    is_lopsided,
    no_interval,
    smallness,
    spread,
)
from rallebench.core.report import ClusterCounts
from rallebench.core.tables import Figure, Table
from rallebench.gui.addresses import RunAddress
from rallebench.gui.html import copyable_table, escape, fold, heading, join_facts, note, rows
from rallebench.render import svg
from rallebench.render.drawing import Medium
from rallebench.render.numbers import text


def figure(words: str, unit: str = "", more: str = "") -> Markup:
    """Render a number in tabular figures, with its unit and a smaller addition."""
    unit = Markup("<u>{}</u>").format(unit) if unit else Markup()
    more = Markup("<small>{}</small>").format(more) if more else Markup()
    return Markup('<span class="num">{}{}{}</span>').format(words, unit, more)


def number(value: float | None, digits: int = 1, unit: str = "") -> Markup:
    """Render a number in tabular figures with a true minus sign; "–" for None.

    >>> print(number(-2.34), number(None), number(51.84, unit="%"))
    <span class="num">−2.3</span> <span class="num">–</span> <span class="num">51.8<u>%</u></span>
    """
    if value is None:
        return figure("–")
    return figure(f"{value:,.{digits}f}".replace("-", "−"), unit)


def amount(count: int) -> str:
    """Format bytes: in KB below 0.1 MB, above that like ``core.memory.size``.

    >>> amount(0), amount(240), amount(8_300), amount(84_400_000)
    ('0 KB', '1 KB', '8 KB', '84 MB')
    """
    if count >= 100_000:
        return size(count)
    return f"{-(-count // 1000) if count < 1000 else count / 1000:.0f} KB"


def duration(seconds: float | None) -> str:
    """Format a time: ms below 0.1 s, two decimals below 10 s, then whole seconds and minutes; "–" for None.

    >>> duration(0.021), duration(0.456), duration(64.2), duration(None)
    ('21 ms', '0.46 s', '1 min 4 s', '–')
    """
    if seconds is None:
        return "–"
    if seconds < 0.1:
        return f"{max(1, round(1000 * seconds))} ms"
    return f"{seconds:.2f} s" if seconds < 10 else text(seconds, "duration")


LIMITS: Mapping[str, Limits] = {"fraction": (0.0, 1.0), "seconds": (0.0, None)}


def needs_ends(means: Iterable[Any], unit: str = "fraction") -> bool:
    """Return whether the intervals of a card or a column are written with both ends, because ± would mislead at one of
    them.
    """
    limits = LIMITS.get(unit, (None, None))
    return any(stats and is_lopsided(stats, limits) for stats in map(as_estimate, means))


def percent(mean: Any, *, share: bool = True, ends: bool = False) -> Markup:
    """Render a mean with its 95 % interval: "51.8 % ± 6.3", or "0.0 % (0.0–2.2)" if ± would mislead; "–" if nothing
    was scored.

    ``share``: the mean is a fraction from 0 to 1; otherwise it has its own unit. ``ends``: see ``needs_ends``.

    >>> print(percent({"value": 0.0, "low": 0.0, "high": 0.022, "n": 222}))
    <span class="num">0.0<u>%</u><small>(0.0–2.2)</small></span>
    """
    stats = as_estimate(mean)
    if stats is None:
        return number(None if mean is None else 100 * mean, unit="" if mean is None else "%")
    if stats.value is None:
        return number(None)
    if not share:
        return figure(text(stats.value))
    beside = spread(stats, lambda part: f"{100 * part:.1f}", LIMITS["fraction"], ends=ends)
    return figure(f"{100 * stats.value:.1f}", "%", beside)


def doubt(mean: Any, clusters: ClusterCounts | None = None) -> str:
    """Explain a mean without an interval or with a wide one, as its tooltip; '' if the interval is narrow."""
    stats = as_estimate(mean)
    if stats is None or stats.value is None:
        return ""
    if stats.low is None and not smallness(clusters, stats.n):
        return f"{no_interval(stats.n, clusters).capitalize()}."
    return smallness(clusters, stats.n)


def quantity(mean: Any, unit: str, *, ends: bool = False) -> Markup:
    """Render a mean with its interval in its ``unit``: shares in percent, others like "0.16 s ± 0.02". ``ends``: see
    ``needs_ends``.

    >>> print(quantity({"value": 0.1603, "low": 0.14, "high": 0.18, "n": 40}, "seconds"))
    <span class="num">0.16 s<small>± 0.02</small></span>
    >>> print(quantity({"value": 0.1605, "low": 0.16, "high": 0.161, "n": 222}, "seconds"))
    <span class="num">0.16 s<small>± less than 0.01</small></span>
    >>> print(quantity({"value": 0.16, "low": 0.1, "high": 0.9, "n": 12}, "seconds"))
    <span class="num">0.16 s<small>(0.10–0.90)</small></span>
    """
    stats = as_estimate(mean)
    if unit == "fraction" or stats is None or (value := stats.value) is None:
        return percent(mean, ends=ends)
    if unit != "seconds":
        more = spread(stats, lambda x: text(x, "quantity"), ends=ends)
        return figure(text(value, "quantity"), more=more)
    words, short = duration(value), value < 10

    def write(part: float) -> str:
        if words.endswith("ms"):
            return f"{1000 * part:.0f}"
        return f"{part:.2f}" if words.endswith(" s") and short else duration(part)

    beside = spread(stats, write, LIMITS["seconds"], ends=ends)
    beside = {"± 0.00": "± less than 0.01", "± 0": "± less than 1"}.get(beside, beside)
    return figure(words, more=beside)


def gap(difference: Any, unit: str = "fraction") -> Markup:
    """Render a difference with its interval: shares in percentage points, others in their unit."""
    stats = as_estimate(difference)
    if stats is None or stats.value is None:
        return Markup("–")
    ends = ""
    if unit == "fraction" and stats.low is not None and stats.high is not None:
        ends = " to ".join(points(end).removesuffix(" points") for end in (stats.low, stats.high))
    return figure(gap_words(stats.value, unit), more=ends)


def gap_words(difference: float, unit: str) -> str:
    """Format a difference in words: "+2.3 points", "−0.12 s"."""
    if unit == "fraction":
        return points(difference)
    words = duration(abs(difference)) if unit == "seconds" else text(abs(difference), "quantity")
    return f"{'−' if difference < 0 else '+'}{words}"


def plots(drawings: Iterable[Figure]) -> Markup:
    """Render drawings in rows of two, each with its values, files and, for many points, zoom; "" if none has points."""
    drawn = Markup().join(map(_plot, drawings))
    return Markup('<div class="plots">{}</div>').format(drawn) if drawn else Markup()


def _plot(value: Figure) -> Markup:
    """Render a drawing whose marks lead to their runs and questions; "" without points."""
    drawn = svg.figure(value, PAGE)
    if not drawn:
        return Markup()
    title = value.title or f"{value.y} against {value.x}"
    name = "-".join("".join(c if c.isalnum() else " " for c in title).split())[:60]
    saves = Markup().join(
        Markup(
            '<button type="button" data-plot-save="{}" data-name="{}">Save as {}</button>'
        ).format(shape, name, shape.upper())
        for shape in ("svg", "png")
    )
    label = f"Save the plot {title}"
    menu = Markup(
        '<details class="menu"><summary title="{}" aria-label="{}">Save</summary><div>{}{}</div></details>'
    ).format(label, label, saves, svg.data_link(value, name, "button quiet"))
    zoom = ZOOM if "data-zoom-x" in drawn else Markup()
    head = Markup("<figcaption><span>{}</span>{}{}</figcaption>").format(title, zoom, menu)
    points = marks_table(value)
    values = fold(
        "Values", table(replace(points, title="")), id=f"plot-{name}", about=f"of {title}"
    )
    sources = ". ".join(dict.fromkeys(value.printed.values()))
    source = Markup('<p class="source">Dashed: {}.</p>').format(sources) if sources else Markup()
    return Markup('<figure class="plot">{}<div class="wide">{}</div>{}{}</figure>').format(
        head, drawn, source, values
    )


def _door(point: Mark) -> str:
    return RunAddress(point.run, q=point.question).href if point.run else ""


PAGE = Medium(live=True, door=_door)
ZOOM = Markup().join(
    Markup('<button type="button" class="quiet" data-plot-zoom="{}" title="{}">{}</button>').format(
        *button
    )
    for button in (
        ("in", "Zoom in, or drag over a part of the plot (+)", "+"),
        ("out", "Zoom out (−)", "−"),
        ("reset", "Show all, or double-click the plot (0)", "Show all"),
    )
)


def points(delta: float) -> str:
    """Format a difference of shares in percentage points.

    >>> points(-0.023), points(-0.0001)
    ('−2.3 points', '0.0 points')
    """
    words = f"{100 * delta:+.1f}".replace("-", "−")
    return f"{'0.0' if words[1:] == '0.0' else words} points"


def interval_bar(mean: Any) -> Markup:
    """Draw a mean and its interval on a scale from 0 to 100 %."""
    stats = as_estimate(mean)
    if stats is None or (value := stats.value) is None:
        return Markup()
    has_ends = stats.low is not None and stats.high is not None
    ends = (stats.low or 0.0, stats.high or 0.0) if has_ends else (value, value)
    low, high, at = (min(100.0, max(0.0, 100 * x)) for x in (*ends, value))
    return Markup(
        '<span class="ci" aria-hidden="true"><b style="left:{:.1f}%;width:{:.1f}%"></b><i style="left:{:.1f}%"></i></span>'
    ).format(low, high - low, at)


def waterfall_bar(
    parts: Iterable[tuple[str, str, int]],
    *,
    tall: bool = False,
    address: str = "",
    run: str = "",
) -> Markup:
    """Draw a bar of the stages at which questions were lost.

    ``parts``: (verdict, words, count) from left to right; ``address``: the link of each part, with ``{verdict}``; ``run``: its
    name, where the bars of several runs stand together.
    """
    cells = Markup()
    for verdict, words, count in parts:
        if not count:
            continue
        only = {"unread": "wrong", "todo": "none"}.get(verdict, verdict)
        facts = Markup('class="s-{}" style="flex:{}" title="{}" aria-label="{}"').format(
            verdict, count, words, join_facts(words, run)
        )
        if not tall:
            facts += Markup(' tabindex="-1"')  # the row already has a link
        number = f"{count:,}" if tall else ""
        if address:
            href = address.replace("{verdict}", only)
            cells += Markup('<a {} href="{}">{}</a>').format(facts, href, number)
        else:
            cells += Markup("<span {}>{}</span>").format(facts, number)
    return Markup('<span class="fall{}">{}</span>').format(" tall" if tall else "", cells)


def metrics_door(address: str, content: str) -> Markup:
    """Draw a mean, as HTML, that opens the metrics of its run; the mean alone if the run is unknown."""
    if not address:
        return escape(content)
    return Markup('<a class="metric" href="{}&part=metrics">{}</a>').format(address, content)


def table(value: Table, addresses: dict[str, str] | None = None) -> Markup:
    """Render a table of results, with every mean's interval and every heading's definition. ``addresses``: first cell
    of a row → the view that the row opens.
    """
    columns, lines = value.heads, []
    targets = [(addresses or {}).get(str(row[0]), "") for row in value.rows]
    means = [[as_estimate(row[j]) for row in value.rows] for j in range(len(columns))]
    shares = [all(m is None or abs(m.value or 0) <= 1 for m in column) for column in means]
    styles = [
        any(
            needs_ends([row[j]], value.units.get(i) or ("fraction" if shares[j] else ""))
            for i, row in enumerate(value.rows)
        )
        for j in range(len(columns))
    ]
    for i, row in enumerate(value.rows):
        cells = []
        for j, (cell, column) in enumerate(zip(row, columns)):
            mean = means[j][i]
            unit = value.units.get(i) or ("fraction" if shares[j] else "")
            if mean is not None and column.format == "delta":
                content = gap(mean, unit)
            elif mean is not None and column.format in ("score", "percent"):
                content = quantity(mean, unit, ends=styles[j])
            elif column.format == "percent" and isinstance(cell, float):
                content = number(100 * cell, unit="%")
            else:
                content = escape(text(cell, column.format))
            content = Markup("<b>{}</b>").format(content) if (i, j) in value.best else content
            cells.append(metrics_door(targets[i], content) if mean is not None else content)
        lines.append(cells)
    heads = [f">{column.label}" if j else column.label for j, column in enumerate(columns)]
    drawn = rows(heads, lines, abouts=[column.help for column in columns], addresses=targets)
    title = heading(value.title) if value.title else Markup()
    scrolling = Markup('<div class="wide">{}</div>').format(drawn)
    return Markup("{}{}{}").format(title, copyable_table(scrolling), note(value.note))
