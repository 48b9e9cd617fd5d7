"""Runs beside each other as HTML, tables and plots. Pure: everything is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.changes import Change, pieces
from rallebench.analysis.corpus_level import CorpusScore
from rallebench.analysis.paired import PairedComparison
from rallebench.analysis.ranking import MultiRunComparison, PairedResult
from rallebench.chains.chain import prompt_of
from rallebench.core.types import Episode, Example
from rallebench.engine.statistics import Mean
from rallebench.gui.views import badge, empty, note
from rallebench.gui.views_runs import interval_of, number
from rallebench.render.html import csv_link
from rallebench.render.numbers import independence, text

FLIPPED_COLUMNS = ("question id", "question", "gold answer", "first run", "other run", "change")


# the table of every metric


def table(found: MultiRunComparison) -> str:
    """Metric by run, mean and interval; the best of a row is bold."""
    heads = "".join(f'<th class="num">{escape(side.name)}</th>' for side in found.sides)
    body = "".join(
        _row(found.measures[name].about, found.cells[name], found.best[name])
        + _over_all_row(found.measures[name].about, found.corpus_level.get(name, ()))
        for name in found.metrics
    )
    counted = f"{len(found.common)} questions that all runs share. "
    told = "Mean, 95 % interval, n = questions that every run has scored; bold: the best mean of the row. "
    told += independence(found.clusters.as_json(), len(found.common))
    warnings = "".join(map(note, found.warnings))
    return (
        f'{warnings}<div class="rb-label">{counted}{told}</div><div class="rb-wide"><table class="rb-table rb-tight"><thead>'
        f'<tr><th>Metric</th>{heads}<th class="num">n</th></tr></thead><tbody>{body}</tbody></table></div>'
        f"{csv_link('runs.csv', table_rows(found))}"
    )


def _row(about: Mapping[str, Any], row: Sequence[Mean], best: frozenset[int]) -> str:
    told = escape(" ".join(filter(None, (about["definition"], about.get("traps", "")))), quote=True)
    cells = "".join(
        f'<td class="num">{mean_cell(mean, about.get("unit", ""), i in best)}</td>'
        for i, mean in enumerate(row)
    )
    less = " ↓" if about.get("higher_is_better", True) is False else ""
    label = f"{escape(about['label'])}{less}"
    return f'<tr><td title="{told}">{label}</td>{cells}<td class="num">{row[0].n}</td></tr>'


def _over_all_row(about: Mapping[str, Any], row: Sequence[CorpusScore]) -> str:
    """The figure over all answers at once below the mean, with its difference from the first run."""
    if not row:
        return ""
    cells = "".join(f'<td class="num">{_together(one, about.get("unit", ""))}</td>' for one in row)
    told = escape(
        f"{about['over_all']} The intervals resample articles, the same ones for every run.",
        quote=True,
    )
    return f'<tr><td title="{told}">{escape(about["label"])}, over all answers</td>{cells}<td class="num">{row[0].n}</td></tr>'


def _together(one: CorpusScore, unit: str) -> str:
    if one.value is None:
        return '<span class="rb-empty">not scored</span>'
    parts = [
        number(one.value, unit),
        "no interval"
        if one.low is None or one.high is None
        else f"{number(one.low, unit)} – {number(one.high, unit)}",
    ]
    if one.difference is not None:
        between = (
            "no interval"
            if one.difference_low is None
            else f"{one.difference_low:+.4f} – {one.difference_high:+.4f}"
        )
        parts.append(f"{one.difference:+.4f} to the first ({between})")
    return "<br>".join([parts[0], *(f'<span class="rb-basis">{part}</span>' for part in parts[1:])])


def mean_cell(mean: Mean, unit: str, best: bool) -> str:
    """A mean with its interval, bold if it is the best; nobody scored is said, not shown as 0."""
    if mean.value is None:
        return '<span class="rb-empty">not scored</span>'
    value = number(mean.value, unit)
    shown = f"<b>{value}</b>" if best else value
    return f'{shown}<br><span class="rb-basis">{interval_of(mean, unit)}</span>'


def table_rows(found: MultiRunComparison) -> list[list[Any]]:
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
        for one in found.corpus_level.get(name, ())[:1]:
            rows.append([f"{name} over all answers", one.n])
        for one in found.corpus_level.get(name, ()):
            rows[-1] += [one.value, one.low, one.high]
    return rows


# differences


def differences(found: MultiRunComparison) -> str:
    """Every run against the first: difference, interval, p, wins and losses, in words a reader can trust."""
    first, about, upward = found.sides[0].name, found.measure.about, found.measure.higher_is_better
    more, less = ("higher", "lower") if upward is None else ("better", "worse")
    heads = "<th>Run</th>" + "".join(
        f'<th class="num">{head}</th>'
        for head in (
            "difference",
            "95 % interval",
            "p",
            "p, corrected",
            more,
            "equal",
            less,
            "n",
            "questions needed",
        )
    )
    body = "".join(_difference(one, upward) for one in found.against)
    correction = (
        f" Of {len(found.against)} comparisons p is corrected by Holm, and the intervals hold together at 95 % (Bonferroni)."
        if len(found.against) > 1
        else ""
    )
    told = (
        f"{escape(about['label'])} against <b>{escape(first)}</b>, question by question. Interval and p come from one sign-flip test that counts articles, not "
        f"questions.{correction} <i>Questions needed</i>: to see this difference with 80 % power at the 5 % level."
    )
    traps = f" Beware: {about['traps']}" if about.get("traps") else ""
    defined = f"<i>{escape(about['label'])}</i>: {escape(about['definition'] + traps)}"
    rows = [
        ["run", "difference", "low", "high", "p", "p_corrected", more, "equal", less, "n", "needed"]
    ]
    for one in found.against:
        p = one.paired
        rows.append(
            [
                one.name,
                p.difference,
                p.low,
                p.high,
                p.p,
                one.corrected,
                p.wins,
                p.ties,
                p.losses,
                p.n,
                p.needed,
            ]
        )  # type: ignore[list-item]
    return (
        f'<div class="rb-label"><span>{told}</span></div><div class="rb-label"><span>{defined}</span></div>'
        f'<div class="rb-wide"><table class="rb-table rb-tight"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{csv_link('differences.csv', rows)}"
    )


def _difference(one: PairedResult, upward: bool | None) -> str:
    pair = one.paired
    if pair.difference is None:
        return f'<tr><td>{escape(one.name)}</td><td colspan="9" class="rb-empty">no question is scored in both</td></tr>'
    if pair.corrected is None:
        verdict = badge(pair.note)
    elif not pair.significant:
        verdict = badge("no difference shown")
    elif upward is None:
        verdict = badge("higher" if pair.difference > 0 else "lower", "page")
    else:
        # By the difference, whose p this is: most questions may have gained a little while the mean fell.
        gain = (pair.difference > 0) == upward
        verdict = badge("better" if gain else "worse", "good" if gain else "bad")
    cells = (
        f"{pair.difference:+.4f}",
        pair.note
        if pair.low is None or pair.high is None
        else f"{pair.low:+.4f} – {pair.high:+.4f}",
        escape(text(pair.p, "p")),
        escape(text(pair.corrected, "p")),
        str(pair.wins),
        str(pair.ties),
        str(pair.losses),
        str(pair.n),
        f"{pair.needed:,}" if pair.needed else "–",
    )
    return (
        f"<tr><td>{escape(one.name)} {verdict}</td>"
        + "".join(f'<td class="num">{cell}</td>' for cell in cells)
        + "</tr>"
    )


# what was changed


def changed(found: Sequence[Change], first: str, other: str) -> str:
    """The differences of two chains side by side; what the other side lacks is marked."""
    if not found:
        return empty(
            f"{first} and {other} were made alike: one chain, one question set, the same settings."
        )
    body = "".join(_change(one) for one in found)
    heads = f"<th>What</th><th>{escape(first)}</th><th>{escape(other)}</th>"
    rows = [["what", first, other], *([one.where, one.a, one.b] for one in found)]
    return f'<table class="rb-table rb-sides"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{csv_link("changes.csv", rows)}'


def _change(one: Change) -> str:
    mine, theirs = pieces(one.a, one.b)
    return f'<tr><td>{escape(one.where)}</td><td class="rb-diff">{_cut(mine)}</td><td class="rb-diff">{_cut(theirs)}</td></tr>'


def _cut(found: Sequence[tuple[str, bool]]) -> str:
    return "".join(
        f"<mark>{escape(text)}</mark>" if is_new else escape(text) for text, is_new in found
    )


def flipped_columns(first: str, other: str) -> list[str]:
    """FLIPPED_COLUMNS with the names of the runs."""
    return [*FLIPPED_COLUMNS[:3], first, other, FLIPPED_COLUMNS[5]]


def flipped_below(rows: Sequence[Sequence[Any]], found: PairedComparison, label: str) -> str:
    """What stands below the questions that flipped: how many of those that both runs have scored, and the table as a file."""
    flipped = found.wins + found.losses
    shown = f" The table has the first {len(rows):,} of them." if len(rows) < flipped else ""
    said = (
        f'<div class="rb-label"><span>{flipped:,} of the {found.n:,} questions that these two runs have both scored by {escape(label)} '
        f"changed their score.{shown}</span></div>"
    )
    return said + (csv_link("flipped.csv", [FLIPPED_COLUMNS, *rows]) if rows else "")


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
        rows += [
            (f"{number_ + 1}. prompt", mine[0], theirs[0]),
            (f"{number_ + 1}. response", mine[1], theirs[1]),
        ]
    body = "".join(_change(Change(where, x, y)) for where, x, y in rows)
    heads = f"<th>Step</th><th>{escape(first)}</th><th>{escape(other)}</th>"
    table = f'<div class="rb-long"><table class="rb-table rb-sides"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    return f"{head}{table}{csv_link('question.csv', [['step', first, other], *map(list, rows)])}"


def _answer(episode: Episode | None) -> str:
    if episode is None:
        return "(not answered)"
    return f"failed: {episode.error}" if episode.error else episode.answer or "(empty)"


def _steps(episode: Episode | None) -> list[tuple[str, str]]:
    return [(prompt_of(step.request), step.reply.text) for step in episode.steps] if episode else []
