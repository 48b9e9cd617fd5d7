"""Sweeps as HTML and a plot. Pure: everything is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from rallebench.core.errors import StoppedError
from rallebench.core.events import Failed, Finished, Progress, Warned
from rallebench.engine.driver import ExperimentResult
from rallebench.experiments.sweeps import Variant, remarks
from rallebench.experiments.sweeps.results import SweepReport
from rallebench.gui.views import badge, error, note, progress_bar
from rallebench.gui.views_runs import interval_of, number
from rallebench.gui.views_tradeoff import COLOURS, GRID, INK
from rallebench.render.html import csv_link
from rallebench.render.numbers import text
from rallebench.workspace.indexes.ensure import Costs


def plan(found: Sequence[Variant], costs: Any) -> str:
    """What a sweep would run; ``costs``: what its indexes take, None where none is varied."""
    names = ", ".join(cell.label for cell in found)
    said = f" {costs.sentence}" if isinstance(costs, Costs) else ""
    return note(
        f"{len(found)} variant{'s' * (len(found) != 1)}, in this order: {names}.{said}", "good"
    ) + remarked(found)


def remarked(found: Sequence[Variant]) -> str:
    """What the fields that are varied do not mean; '' where nothing is likely to be mistaken."""
    return "".join(map(note, remarks(found)))


def going_on(name: str, said: Sequence[Any], stopping: bool) -> str:
    """How far a sweep is: what ended, and the variant that runs now."""
    now = next((event for event in reversed(said) if isinstance(event, Progress)), None)
    lines = "".join(note(event.message) for event in said if isinstance(event, Warned))
    lines += "".join(_ended(event) for event in said if isinstance(event, (Finished, Failed)))
    if now is None:
        return (
            f'<div class="rb-label"><b>{escape(name)}</b> {badge("starting", "page")}</div>{lines}'
        )
    where = f"{now.done} of {now.total} questions" if now.done else escape(now.message)
    state = badge("stopping", "bad") if stopping else badge("running", "page")
    head = f"<b>{escape(name)}</b> {state} <span>variant {escape(now.task)}, {where}</span>"
    bar = progress_bar(now.done, now.total) if now.total else ""
    return f'<div class="rb-label">{head}</div>{bar}{lines}'


def _ended(event: Finished | Failed) -> str:
    if isinstance(event, Failed):
        return error(f"{event.task}: {event.error}")
    how = "had ended before" if event.reused else "done"
    return f'<div class="rb-label"><span>{escape(event.task)}</span> {badge(how, "good")}</div>'


def ended(name: str, end: Any) -> str:
    """How a sweep ended, in a line."""
    if isinstance(end, ExperimentResult):
        return note(f"{name}: {end.document['verdict']}", "good") + note(end.warning) * bool(
            end.warning
        )
    return note(str(end)) if isinstance(end, StoppedError) else error(f"{name}: {end}")


def whole(found: SweepReport) -> str:
    """The verdict, and every variant with its metric, the best first."""
    failed = "".join(error(f"{label}: {sentence}") for label, sentence in found.failed.items())
    compared = found.compared
    if compared is None:
        return note(found.verdict) + failed
    about = compared.measure.about
    unit = about.get("unit", "")
    names = list(found.runs)
    heads = (
        "Variant",
        about["label"],
        "95 % interval",
        "to the best",
        "95 % interval of all",
        "p, corrected",
        "n",
        "Run",
    )
    head = "".join(
        f'<th class="{"" if i in (0, 7) else "num"}">{escape(text)}</th>'
        for i, text in enumerate(heads)
    )
    rows: list[list[Any]] = [
        [
            "variant",
            compared.metric,
            "low",
            "high",
            "difference",
            "difference_low",
            "difference_high",
            "p_corrected",
            "n",
            "run",
        ]
    ]
    body = ""
    for i, run in enumerate(names):
        mean = compared.cells[compared.metric][i]
        against = compared.against[i - 1] if i else None
        pair = against.paired if against else None
        gap = pair.difference if pair else None
        rows.append(
            [
                found.runs[run],
                mean.value,
                mean.low,
                mean.high,
                gap,
                *((pair.low, pair.high, pair.corrected) if pair else (None,) * 3),
                mean.n,
                run,
            ]
        )
        cells = (
            "not scored" if mean.value is None else number(mean.value, unit),
            "" if mean.value is None else interval_of(mean, unit, compared.clusters.as_json()),
            ("equal" if len(found.equal) > 1 else "best")
            if run in found.equal
            else ""
            if gap is None
            else f"{gap:+.4f}",
            ""
            if pair is None
            else pair.note
            if pair.low is None or pair.high is None
            else f"{pair.low:+.4f} – {pair.high:+.4f}",
            "" if pair is None else escape(text(pair.corrected, "p")),
            str(mean.n),
        )
        body += f'<tr><td class="name"><b>{escape(found.runs[run])}</b></td>'
        body += (
            "".join(f'<td class="num">{cell}</td>' for cell in cells)
            + f'<td class="name">{escape(run)}</td></tr>'
        )
    warnings = "".join(map(note, [*compared.warnings]))
    return (
        f'{note(found.verdict, "good")}{warnings}{failed}<div class="rb-wide"><table class="rb-table rb-tight"><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>{csv_link(f'{found.name}.csv', rows)}"
    )


def figure(found: SweepReport) -> Any:
    """A plotly figure: a point per variant with its interval, numbers in order, the best marked."""
    import plotly.graph_objects as go

    compared = found.compared
    assert compared is not None
    shown = [
        (found.runs[run], mean, run in found.equal)
        for run, mean in zip(found.runs, compared.cells[compared.metric])
    ]
    shown = sorted(
        (one for one in shown if one[1].value is not None), key=lambda one: _order(one[0])
    )
    drawn = go.Figure(
        go.Scatter(
            # Plotly reads markup in its labels.
            x=[escape(label, quote=False) for label, _, _ in shown],
            y=[mean.value for _, mean, _ in shown],
            mode="markers",
            marker={
                "size": 11,
                "color": [COLOURS[0] if is_best else COLOURS[2] for _, _, is_best in shown],
            },
            error_y={
                "type": "data",
                "symmetric": False,
                "color": INK,
                "thickness": 1.2,
                "array": [
                    0 if mean.high is None else mean.high - (mean.value or 0)
                    for _, mean, _ in shown
                ],
                "arrayminus": [
                    0 if mean.low is None else (mean.value or 0) - mean.low for _, mean, _ in shown
                ],
            },
            hovertemplate="%{x}<br>%{y:.4f}<extra></extra>",
        )
    )
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    drawn.update_layout(
        xaxis={**axis, "type": "category"},
        yaxis={**axis, "title": compared.measure.about["label"]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        height=380,
        margin={"l": 60, "r": 20, "t": 20, "b": 55},
        showlegend=False,
    )
    return drawn


def _order(label: str) -> tuple[tuple[str, float, str], ...]:
    """Variants by field, then by number.

    >>> sorted(["k=10", "k=2", "base"], key=_order)
    ['base', 'k=2', 'k=10']
    """
    found = []
    for part in label.split(", "):
        field, _, value = part.partition("=")
        try:
            found.append((field, float(value), ""))
        except ValueError:
            found.append((field, float("inf"), value))
    return tuple(found)
