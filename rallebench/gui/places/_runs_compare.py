"""Compare two runs: one sentence of verdict, the flipped questions, what is different; three and more: the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote

from rallebench.core.errors import UsageError
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import (
    VERDICTS,
    crumb,
    e,
    fold,
    gap,
    gap_words,
    interval_bar,
    mark,
    quantity,
    rows,
    table,
    warning,
    waterfall_bar,
)
from rallebench.gui.places._runs_list import unread, when
from rallebench.gui.places._runs_more import agents
from rallebench.gui.places._steps import marked, seconds
from rallebench.gui.places._versions import difference, words_changed
from rallebench.render import numbers, svg
from rallebench.services import run_list, run_views
from rallebench.services.run_list import RunRow
from rallebench.services.run_questions import (
    examples,
    lost_parts,
    questions,
    read_stages,
)

MOST_FLIPS = 200


def register(page: Page) -> None:
    """Add the view."""
    page.view("runs/compare", open_compare)
    page.action("runs.decide", decide)


def open_compare(page: Page, event: Event) -> Patch:
    """Two runs ``a`` and ``b`` of the address, or several ``r0``, ``r1`` …"""
    several = [
        value
        for key, value in sorted(event.query.items(), key=lambda item: (len(item[0]), item[0]))
        if key[0] == "r" and key[1:].isdigit()
    ]
    metric = event.query.get("metric", "")
    body = (
        ranking(page, several, metric)
        if several
        else pair(page, event.query.get("a", ""), event.query.get("b", ""), metric)
    )
    return {
        "#v-runs-compare": f'<div class="wrap-page" data-problems>{crumb("Runs", "#/runs/list", "Compare")}{body}</div>',
        "title": "Compare",
    }


def pair(page: Page, a: str, b: str, metric: str) -> str:
    """Two runs."""
    if not (a and b):
        raise UsageError(
            "The address names no two runs; tick them in the list of runs and choose Compare."
        )
    compared = run_views.compare_two(page.workbench, a, b, metric)
    first, second = (run_list.row_of(page.workbench, name) for name in (a, b))
    for run in unread(page, (first, second)):
        read_stages(page.workbench, run)
    notes = "".join(map(warning, compared.runs.warnings))
    return (
        f'<div class="judge"><h2>{sentence(compared, first, second)}</h2><p>{reason(compared, first, second)}</p>{duel(page, compared, (first, second))}</div>{notes}'
        f'<div class="row">{metric_choice([*compared.runs.measures], compared.metric)}</div>'
        f"{flips(page, compared, first, second)}{different(page, compared, first, second)}{folds(page, compared, first, second)}"
    )


def sentence(compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """The verdict in one sentence."""
    a, b = title(first, second), title(second, first)
    word = compared.verdict
    size = gap_words(abs(compared.pair.difference or 0.0), compared.unit).removeprefix("+")
    if word in ("better", "worse"):
        best = b if word == "better" else a
        return f"Keep <b>{e(best)}</b>: it is better by {size}."
    if word:
        return f"<b>{e(b)}</b> is {word} by {size}."
    if (
        first.seconds
        and second.seconds
        and max(first.seconds, second.seconds) > 1.25 * min(first.seconds, second.seconds)
    ):
        fast = a if first.seconds < second.seconds else b
        ratio = max(first.seconds, second.seconds) / min(first.seconds, second.seconds)
        return f"No difference shown. <b>{e(fast)}</b> is {ratio:.1f} times as fast."
    return "No difference shown."


def title(row: RunRow, other: RunRow) -> str:
    """A title that differs from the other's."""
    return row.title if row.title != other.title else f"{row.title}, {when(row.created)}"


def reason(compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """Counts, difference, interval, p, and how many questions would settle it."""
    pair = compared.pair
    name = compared.metric.upper() if compared.metric in ("em", "f1") else compared.metric
    counted = f"<b>{e(title(second, first))}</b> answers {pair.wins:,} of {pair.n:,} questions better and {pair.losses:,} worse than <b>{e(title(first, second))}</b>"
    if pair.low is None or pair.high is None or pair.p is None:
        return f"{counted}: {e(name)} {gap_words(pair.difference or 0.0, compared.unit)}. {e(pair.note.capitalize() or 'There is no interval')}."
    low, high = (
        gap_words(end, compared.unit).removesuffix(" points") for end in (pair.low, pair.high)
    )
    ends = f"{low} to {high}"
    needed = (
        ""
        if pair.significant or not pair.needed
        else f" To settle a difference of this size takes about {pair.needed:,} questions."
    )
    return f"{counted}: {e(name)} {gap_words(pair.difference or 0.0, compared.unit)}, 95 % interval {ends}, p = {numbers.text(pair.p, 'p')}.{needed}"


def duel(page: Page, compared: run_views.Comparison, both: Sequence[RunRow]) -> str:
    """The two means."""
    lines = ""
    for row in both:
        report = page.workbench.runs.open(row.name).report() or {}
        mean = {**report.get("metrics", {}), **report.get("suite", {})}.get(compared.metric)
        other = both[1] if row is both[0] else both[0]
        lines += f'<a class="nm" href="#/runs/run?id={e(row.name)}">{e(title(row, other))}</a><span>{quantity(mean, compared.unit)}</span><span>{interval_bar(mean) if compared.unit == "fraction" else ""}</span><span class="n">{seconds(row.seconds)}</span>'
    return f'<div class="duel">{lines}</div>'


def flips(page: Page, compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """The questions whose score changed."""
    pair = compared.pair
    same = pair.n - pair.wins - pair.losses
    head = f'<h3 class="sub">Questions that flipped <small>{pair.wins:,} better · {pair.losses:,} worse · {same:,} the same</small></h3>'
    flipped = list(pair.flipped)[:MOST_FLIPS]
    if not flipped:
        return f'{head}<p class="note">Every question has the same score in both runs.</p>'
    runs = [page.workbench.runs.open(row.name) for row in (first, second)]
    answers = [{row.qid: row for row in questions(page.workbench, run)} for run in runs]
    golds = {x.question.qid: x for x in examples(runs[0])}
    lines, addresses = [], []
    for qid in flipped:
        example = golds[qid]
        cells = [
            f'{mark(a[qid].kind)} <span dir="auto">{marked(a[qid].answer[:300], example.gold.answers)}</span>'
            if qid in a
            else "–"
            for a in answers
        ]
        gold = f"<mark>{e(example.gold.answers[0])}</mark>" if example.gold.answers else "–"
        lines.append([f'<span dir="auto">{e(example.question.text)}</span>', gold, *cells])
        addresses.append(f"#/runs/run?id={second.name}&q={qid}")
    return head + rows(
        ["Question", "Gold", title(first, second), title(second, first)],
        lines,
        kind="flips",
        addresses=addresses,
    )


def different(page: Page, compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """The chain's differences word by word, then every other setting."""
    if not compared.changes:
        return '<h3 class="sub">What is different</h3><p class="note">The settings are the same: the runs differ by chance, or by a model that is not deterministic.</p>'
    shown = (
        difference(first.chain, second.chain)
        if first.chain and second.chain and first.chain.actions != second.chain.actions
        else ""
    )
    others = [c for c in compared.changes if not (shown and c.where.startswith("action "))]
    named = {change.where for change in others if "–" in (change.a, change.b)}
    if shown:  # the fingerprint of an index that only one of the two has says no more than its name
        others = [c for c in others if not (c.where in named and c.where.startswith("backends"))]
    lines = "".join(
        f"<div><small>{e(c.where)}</small><p>{words_changed(c.a[:2000], c.b[:2000])}</p></div>"
        for c in others
    )
    return f'<h3 class="sub">What is different</h3>{shown}{f"<div class=diff>{lines}</div>" if lines else ""}'


def folds(page: Page, compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """Every metric, where questions were lost, and time: folded, with their gist."""
    every, _ = run_views.tables_of(compared.runs)
    runs = [page.workbench.runs.open(row.name) for row in (first, second)]
    parts = [lost_parts(questions(page.workbench, run)) for run in runs]
    bars = "".join(
        f"<p>{e(title(row, other))}</p>{waterfall_bar(lost, tall=True)}"
        for (row, other), lost in zip(((first, second), (second, first)), parts)
    )
    before, after = ({kind: count for kind, _, count in lost} for lost in parts)
    moved = " · ".join(
        f"{'not in the answer' if kind == 'wrong' else VERDICTS[kind]} {before.get(kind, 0):,} → {after.get(kind, 0):,}"
        for kind in ("lost", "wrong", "format", "failed")
        if kind in before or kind in after
    )
    took = f"{seconds(first.seconds)} → {seconds(second.seconds)} a question"
    return "<div>" + (
        fold(
            "Every metric",
            table(every),
            gist=f"{len(compared.runs.cells)} metrics, paired",
            id="compare-metrics",
        )
        + fold("Where questions were lost", bars, gist=moved, id="compare-lost")
        + fold("Time and price", f"<p>{took}</p>", gist=took, id="compare-cost")
        + plots(page, [first.name, second.name], compared.metric)
        + agents(page, [first.name, second.name])
        + "</div>"
    )


def plots(page: Page, names: Sequence[str], metric: str) -> str:
    """Means by kind of question, and quality against time, tokens or price, as folds."""
    drawn = ""
    for axes, figure, value in run_views.kinds_of(page.workbench, names, metric):
        shown = svg.figure(figure) if figure.series else ""
        field = axes.removeprefix("meta.").replace("_", " ")
        gist = numbers.plural(len(value.rows), "kind")
        drawn += fold(f"By {field}", shown + table(value), gist=gist, id=f"compare-by-{axes}")
    for label, key in run_views.COSTS.items():
        points_of, notes = run_views.quality_and_cost(page.workbench, names, metric, key)
        if points_of is not None:
            remarks = "".join(warning(text) for text in notes)
            drawn += fold(
                f"Quality against {label}", svg.figure(points_of) + remarks, id=f"compare-{key}"
            )
    return drawn


def metric_choice(metrics: Sequence[str], chosen: str) -> str:
    """The metric that decides, kept in the address."""
    options = [(name, name.upper() if name in ("em", "f1") else name) for name in metrics]
    more = ' class="short" data-do="runs.decide" data-on="change"'
    return labelled("Decided by", select("metric", options, chosen, more=more))


def decide(page: Page, event: Event) -> Patch:
    """Compare by another metric."""
    query = {**event.query, "metric": event.text("metric")}
    return {
        "go": "#/runs/compare?" + "&".join(f"{key}={quote(value)}" for key, value in query.items())
    }


def ranking(page: Page, names: Sequence[str], metric: str) -> str:
    """Several runs against the first."""
    if run_views.share_nothing(page.workbench, names):
        return f'<div class="judge"><h2>{len(names)} runs of different datasets</h2><p>They share no question, so only their means stand side by side.</p></div>{plots(page, names, metric or "em")}'
    compared = run_views.compare_several(page.workbench, names, metric)
    titles: Mapping[str, str] = {
        name: run_list.row_of(page.workbench, name).title for name in names
    }
    every, _ = run_views.tables_of(compared)
    notes = "".join(warning(sentence) for sentence in compared.warnings)
    labels = tuple(
        titles.get(head, head) if isinstance(head, str) else head for head in every.columns
    )
    metrics = fold(
        "Every metric",
        table(replace(every, columns=labels)),
        gist=f"{len(compared.cells)} metrics",
        id="rank-metrics",
    )
    return (
        f'<div class="judge"><h2>{winner(compared, titles)}</h2><p>{len(names)} runs on {len(compared.common):,} shared questions, against {e(titles[names[0]])}; p is corrected for {len(names) - 1} comparisons (Holm).</p></div>'
        f'<div class="row">{metric_choice([*compared.cells], compared.metric)}</div>{notes}{ranked(compared, titles)}<div>{metrics}{plots(page, names, compared.metric)}{agents(page, names)}</div>'
    )


def winner(compared: run_views.MultiRunComparison, titles: Mapping[str, str]) -> str:
    """The verdict on several runs in one sentence."""
    first = e(titles[compared.sides[0].name])
    up = compared.measure.higher_is_better
    gains = {
        run: abs(pair.difference or 0.0)
        for run, pair in compared.against.items()
        if run_views.verdict(pair, up) == "better"
    }
    if not gains:
        return f"No run is shown to be better than <b>{first}</b>."
    best = max(gains, key=lambda run: gains[run])
    size = gap_words(gains[best], compared.measure.unit).removeprefix("+")
    return f"Keep <b>{e(titles[best])}</b>: it is better than {first} by {size}."


def ranked(compared: run_views.MultiRunComparison, titles: Mapping[str, str]) -> str:
    """A line a run, the best mean first: its mean, and what it differs from the first run by."""
    unit, up = compared.measure.unit, compared.measure.higher_is_better
    cells = list(zip((side.name for side in compared.sides), compared.cells[compared.metric]))
    cells.sort(key=lambda cell: cell[1].value or 0.0, reverse=up is not False)
    lines = []
    for name, mean in cells:
        linked = f'<a class="nm" href="#/runs/run?id={quote(name)}">{e(titles[name])}</a>'
        bar = interval_bar(mean) if unit == "fraction" else ""
        line = [linked, quantity(mean, unit), bar]
        if (pair := compared.against.get(name)) is None:
            lines.append([*line, "the base", "", "", "", ""])
            continue
        delta = {"value": pair.difference, "low": pair.low, "high": pair.high, "n": pair.n}
        counted = f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}"
        p = numbers.text(pair.corrected, "p")
        beside = f'<a class="link" href="#/runs/compare?a={quote(compared.sides[0].name)}&b={quote(name)}">compare</a>'
        words = f"<small>{e(run_views.verdict(pair, up))}</small>"
        lines.append(
            [
                *line,
                gap(delta, unit) + words,
                p,
                counted,
                f"{pair.needed:,}" if pair.needed else "–",
                beside,
            ]
        )
    label = compared.metric.upper() if compared.metric in ("em", "f1") else compared.metric
    heads = (
        "Run",
        f">{label}",
        "",
        ">To the base",
        ">p, corrected",
        ">Better / equal / worse",
        ">Questions needed",
        "",
    )
    return f'<div class="wide">{rows(heads, lines)}</div><p class="note">{e(run_views.TEST[:1].upper() + run_views.TEST[1:])} Questions needed: to see this difference with 80 % power at the 5 % level.</p>'
