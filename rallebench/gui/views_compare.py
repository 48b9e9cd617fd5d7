"""Runs beside each other as HTML, tables and plots. Pure: everything is escaped."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.changes import Change, pieces
from rallebench.analysis.many import Against, Many
from rallebench.analysis.waterfall import SHORT, STAGES, Waterfall
from rallebench.bench.statistics import Mean
from rallebench.chain.chain import prompt_of
from rallebench.gui.views import badge, empty, note
from rallebench.gui.views_runs import number
from rallebench.gui.views_tradeoff import COLOURS, GRID, INK
from rallebench.metrics import card
from rallebench.types import Episode, Example

STAGE_COLOURS: Mapping[str, str] = {
    "failed": "#334155",
    "not_in_corpus": "#7f1d1d",
    "not_retrieved": "#dc4c3e",
    "not_in_prompt": "#ea8a3c",
    "not_in_answer": "#e3b23c",
    "lost_by_format": "#a3a847",
    "right_without_support": "#5b9bd5",
    "right": "#0d9488",
    "in_prompt": "#8b5cf6",
    "unanswerable": "#94a3b8",
}
FLIPPED_COLUMNS = ("question id", "question", "gold answer", "first run", "other run", "change")
COST_AXES: Mapping[str, str] = {
    "seconds_per_question": "seconds a question",
    "tokens_per_question": "tokens a question",
    "completion_tokens_per_question": "written tokens a question",
}
"""Key → what the deployment plot shows across."""


# the table of every metric


def table(found: Many) -> str:
    """Metric by run, mean and interval; the best of a row is bold."""
    heads = "".join(f'<th class="num">{escape(side.name)}</th>' for side in found.sides)
    body = "".join(_row(name, found.cells[name], found.best[name]) for name in found.metrics)
    counted = f"{len(found.common)} questions that all runs share. "
    told = "Mean, 95 % bootstrap interval, n = questions that every run has scored; bold: the best mean of the row."
    warnings = "".join(map(note, found.warnings))
    return (
        f'{warnings}<div class="rb-label">{counted}{told}</div><div class="rb-wide"><table class="rb-table rb-tight"><thead>'
        f'<tr><th>Metric</th>{heads}<th class="num">n</th></tr></thead><tbody>{body}</tbody></table></div>'
        f"{csv_link('runs.csv', table_rows(found))}"
    )


def _row(name: str, row: Sequence[Mean], best: frozenset[int]) -> str:
    about = card(name)
    told = escape(" ".join(filter(None, (about["definition"], about.get("traps", "")))), quote=True)
    cells = "".join(f'<td class="num">{_mean(mean, about.get("unit", ""), i in best)}</td>' for i, mean in enumerate(row))
    less = " ↓" if about.get("higher_is_better", True) is False else ""
    label = f'{escape(about["label"])}{less}'
    return f'<tr><td title="{told}">{label}</td>{cells}<td class="num">{row[0].n}</td></tr>'


def _mean(mean: Mean, unit: str, best: bool) -> str:
    if mean.value is None or mean.low is None or mean.high is None:
        return '<span class="rb-empty">not scored</span>'
    value = number(mean.value, unit)
    shown = f"<b>{value}</b>" if best else value
    return f'{shown}<br><span class="rb-basis">{number(mean.low, unit)} – {number(mean.high, unit)}</span>'


def table_rows(found: Many) -> list[list[Any]]:
    """The same as rows for a CSV file, the heads first."""
    heads: list[Any] = ["metric", "n"]
    for side in found.sides:
        heads += [side.name, f"{side.name} low", f"{side.name} high"]
    rows = [heads]
    for name in found.metrics:
        row: list[Any] = [name, found.cells[name][0].n]
        for mean in found.cells[name]:
            row += [mean.value, mean.low, mean.high]
        rows.append(row)
    return rows


# differences


def differences(found: Many) -> str:
    """Every run against the first: difference, interval, p, wins and losses, in words a reader can trust."""
    first, label = found.sides[0].name, card(found.metric)["label"]
    heads = "<th>Run</th>" + "".join(
        f'<th class="num">{head}</th>'
        for head in ("difference", "95 % interval", "p", "p, corrected", "better", "equal", "worse", "n", "questions needed")
    )
    body = "".join(_difference(one) for one in found.against)
    correction = f" Corrected for {len(found.against)} comparisons (Holm)." if len(found.against) > 1 else ""
    told = (
        f"{escape(label)} against <b>{escape(first)}</b>, question by question: paired bootstrap interval, paired permutation "
        f"test.{correction} <i>Questions needed</i>: to see this difference with 80 % power at the 5 % level."
    )
    rows = [["run", "difference", "low", "high", "p", "p_corrected", "better", "equal", "worse", "n", "needed"]]
    for one in found.against:
        p = one.paired
        rows.append([one.name, p.difference, p.low, p.high, p.p, one.corrected, p.wins, p.ties, p.losses, p.n, p.needed])  # type: ignore[list-item]
    return (
        f'<div class="rb-label"><span>{told}</span></div><div class="rb-wide"><table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{csv_link('differences.csv', rows)}"
    )


def _difference(one: Against) -> str:
    pair = one.paired
    if pair.difference is None or pair.low is None or pair.high is None or pair.p is None:
        return f'<tr><td>{escape(one.name)}</td><td colspan="9" class="rb-empty">no question is scored in both</td></tr>'
    p = one.corrected if one.corrected is not None else pair.p
    verdict = badge("no difference shown") if p >= 0.05 else badge("better" if _gain(one) else "worse", "good" if _gain(one) else "bad")  # fmt: skip
    cells = (
        f"{pair.difference:+.4f}", f"{pair.low:+.4f} – {pair.high:+.4f}", _p(pair.p), _p(p),
        str(pair.wins), str(pair.ties), str(pair.losses), str(pair.n), f"{pair.needed:,}" if pair.needed else "–",
    )  # fmt: skip
    return f"<tr><td>{escape(one.name)} {verdict}</td>" + "".join(f'<td class="num">{cell}</td>' for cell in cells) + "</tr>"


def _gain(one: Against) -> bool:
    return one.paired.wins > one.paired.losses if one.paired.wins != one.paired.losses else (one.paired.difference or 0) > 0


def _p(value: float) -> str:
    return "&lt; 0.001" if value < 0.001 else f"{value:.3f}"


# waterfalls


def waterfalls(named: Sequence[tuple[str, Waterfall]]) -> str:
    """One bar per run, a part per stage; then the stages that occur, with what they mean."""
    bars = "".join(_bar(name, fall) for name, fall in named)
    there = [stage for stage in STAGES if any(fall.counts()[stage] for _, fall in named)]
    keys = "".join(
        f'<li data-stage="{stage}"><span class="rb-key" style="background:{STAGE_COLOURS[stage]}"></span><b>{SHORT[stage]}</b>: {escape(STAGES[stage])}</li>'
        for stage in there
    )
    notes = []
    unknown = [name for name, fall in named if not fall.corpus_known]
    if unknown:
        notes.append(
            f"{', '.join(unknown)}: the corpus could not be looked at (its index is not in this workspace), so “not retrieved” "
            "may hold questions whose page the corpus lacks."
        )
    for name, fall in named:
        if fall.without_pages:
            notes.append(
                f"{name}: {fall.without_pages} questions name no gold pages; there a passage that holds an answer counts as support."
            )
    rows: list[list[Any]] = [["run", *STAGES], *[[name, *fall.counts().values()] for name, fall in named]]
    return bars + f'<ul class="rb-list rb-keys">{keys}</ul>' + "".join(map(note, notes)) + csv_link("waterfall.csv", rows)


def lost(name: str, fall: Waterfall, hint: str) -> str:
    """One run's waterfall under a heading, with what else can be done; nothing for a run without questions."""
    if not fall.placed:
        return ""
    told = f'<div class="rb-label"><span>{escape(hint)}</span></div>'
    return f'<div class="rb-section"><h3>Where questions were lost</h3></div>{told}{waterfalls([(name, fall)])}'


def _bar(name: str, fall: Waterfall) -> str:
    total = len(fall.placed)
    parts = "".join(
        f'<div data-stage="{stage}" style="width:{100 * count / total:.3f}%;background:{STAGE_COLOURS[stage]}" title="{SHORT[stage]}: {count} of {total}">'
        f"<span>{count if count / total > 0.04 else ''}</span></div>"
        for stage, count in fall.counts().items()
        if count
    )
    return f'<div class="rb-fall"><b>{escape(name)}</b><div class="rb-parts">{parts}</div><span>n = {total}</span></div>'


# what was changed


def changed(found: Sequence[Change], first: str, other: str) -> str:
    """The differences of two chains side by side; what the other side lacks is marked."""
    if not found:
        return empty(f"{first} and {other} were made alike: one chain, one question set, the same settings.")
    body = "".join(_change(one) for one in found)
    heads = f"<th>What</th><th>{escape(first)}</th><th>{escape(other)}</th>"
    return f'<table class="rb-table rb-sides"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _change(one: Change) -> str:
    mine, theirs = pieces(one.a, one.b)
    return f'<tr><td>{escape(one.where)}</td><td class="rb-diff">{_cut(mine)}</td><td class="rb-diff">{_cut(theirs)}</td></tr>'


def _cut(found: Sequence[tuple[str, bool]]) -> str:
    return "".join(f"<mark>{escape(text)}</mark>" if is_new else escape(text) for text, is_new in found)


# one question


def question(example: Example, sides: Sequence[tuple[str, Episode | None]]) -> str:
    """What two runs were asked and answered for one question, step by step, differences marked."""
    (first, a), (other, b) = sides
    gold = " / ".join(example.gold.answers[:5]) or "–"
    head = f'<div class="rb-label"><b>{escape(example.question.text)}</b> <span>gold: {escape(gold)}</span></div>'
    rows = [("answer", _answer(a), _answer(b))]
    left, right = _steps(a), _steps(b)
    for number_ in range(max(len(left), len(right))):
        mine = left[number_] if number_ < len(left) else ("", "")
        theirs = right[number_] if number_ < len(right) else ("", "")
        rows += [(f"{number_ + 1}. prompt", mine[0], theirs[0]), (f"{number_ + 1}. response", mine[1], theirs[1])]
    body = "".join(_change(Change(where, x, y)) for where, x, y in rows)
    heads = f"<th>Step</th><th>{escape(first)}</th><th>{escape(other)}</th>"
    return f'{head}<table class="rb-table rb-sides"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _answer(episode: Episode | None) -> str:
    if episode is None:
        return "(not answered)"
    return f"failed: {episode.error}" if episode.error else episode.answer or "(empty)"


def _steps(episode: Episode | None) -> list[tuple[str, str]]:
    return [(prompt_of(step.request), step.reply.text) for step in episode.steps] if episode else []


# plots


def deployment(named: Sequence[tuple[str, Mapping[str, Any]]], metric: str, across: str) -> Any:
    """A plotly figure: quality up, cost across, one bubble per run, its area the tokens of a question."""
    import plotly.graph_objects as go

    known = []
    for name, report in named:
        value = report.get("metrics", {}).get(metric, {}).get("value")
        cost = costs(report)
        if value is not None and cost[across] is not None:
            known.append((name, value, cost))
    most = max((cost["tokens_per_question"] or 0 for _, _, cost in known), default=0)
    drawn = go.Figure()
    if not known:
        drawn.add_annotation(text="No run has both the metric and this cost.", showarrow=False, font={"size": 14})
    for i, (name, value, cost) in enumerate(known):
        size = 12 + 30 * ((cost["tokens_per_question"] or 0) / most) ** 0.5 if most else 16
        drawn.add_trace(
            go.Scatter(
                x=[cost[across]], y=[value], name=escape(name), mode="markers+text", text=[escape(name)], textposition="top center",
                marker={"size": size, "color": COLOURS[i % len(COLOURS)], "opacity": 0.8},
                hovertemplate=f"<b>{escape(name)}</b><br>{escape(card(metric)['label'])}: %{{y:.4f}}<br>{COST_AXES[across]}: %{{x:.4g}}<extra></extra>",
            )
        )  # fmt: skip
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": GRID, "automargin": True}
    drawn.update_layout(
        xaxis={**axis, "title": COST_AXES[across], "rangemode": "tozero"}, yaxis={**axis, "title": card(metric)["label"]},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font={"color": INK, "size": 13}, height=420,
        margin={"l": 60, "r": 20, "t": 30, "b": 55}, showlegend=False,
    )  # fmt: skip
    return drawn


def costs(report: Mapping[str, Any]) -> dict[str, float | None]:
    """What a question cost on average when it was really asked, not what memory saved; None where it is not known."""
    mean = {name: value["value"] for name, value in report.get("metrics", {}).items()}
    read, written = mean.get("prompt_tokens"), mean.get("completion_tokens")
    return {
        "seconds_per_question": mean.get("seconds"),
        "tokens_per_question": None if read is None or written is None else read + written,
        "completion_tokens_per_question": written,
    }


def csv_link(name: str, rows: Sequence[Sequence[Any]]) -> str:
    """A link that saves rows as a CSV file; the page needs no server for it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([["" if cell is None else cell for cell in row] for row in rows])
    data = base64.b64encode(text.getvalue().encode()).decode()
    return (
        f'<div class="rb-label"><a class="rb-link" download="{escape(name, quote=True)}" '
        f'href="data:text/csv;base64,{data}">Save as CSV</a></div>'
    )
