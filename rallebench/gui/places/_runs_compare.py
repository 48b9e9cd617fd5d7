"""Compare two runs: one sentence of verdict, the flipped questions, what is different; three and more: the ranking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rallebench.core.errors import UsageError
from rallebench.gui import figures, form, html
from rallebench.gui.figures import gap_words
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import VERDICTS, e
from rallebench.gui.places._runs_figures import agents
from rallebench.gui.places._runs_list import address, lost_of, metric_label, pair_address, unread
from rallebench.gui.places._steps import marked
from rallebench.gui.places._versions import difference, words_changed
from rallebench.render import numbers, svg
from rallebench.services import run_list, run_questions, run_views
from rallebench.services.run_list import RunRow

MOST_FLIPS = 200
HEADS = (">To the base", ">p, corrected", ">Better / equal / worse", ">Questions needed", "")
POWER = "Questions needed: to see this difference with 80 % power at the 5 % level."


def register(page: Page) -> None:
    page.view("runs/compare", open_compare)
    page.actions("runs", decide)


def open_compare(page: Page, event: Event) -> Patch:
    """Two runs ``a`` and ``b`` of the address, or several ``r0``, ``r1`` …"""
    query, several = event.query, []
    while f"r{len(several)}" in query:
        several.append(query[f"r{len(several)}"])
    metric = query.get("metric", "")
    two = query.get("a", ""), query.get("b", "")
    body = ranking(page, several, metric) if several else pair(page, *two, metric)
    crumb = html.crumb("Runs", "#/runs/list", "Compare")
    return html.view("runs/compare", "Compare", crumb, body, more=" data-problems")


def judgement(sentence: str, reason: str, more: str = "") -> str:
    return f'<div class="judge"><h2>{sentence}</h2><p>{reason}</p>{more}</div>'


def pair(page: Page, a: str, b: str, metric: str) -> str:
    if not (a and b):
        raise UsageError(
            "The address names no two runs; tick them in the list of runs and choose Compare."
        )
    compared = run_views.compare_two(page.workbench, a, b, metric)
    first, second = (run_list.row_of(page.workbench, name) for name in (a, b))
    for run in unread(page, (first, second)):
        run_questions.read_stages(page.workbench, run)
    if first.title == second.title:  # told apart by their times
        first, second = (
            replace(row, title=f"{row.title}, {numbers.moment(row.created)}")
            for row in (first, second)
        )
    both = (first, second)
    words = sentence(compared, *both), reason(compared, *both), duel(page, compared, both)
    decided = metric_choice(compared.runs.measures, compared.metric, compared.runs.warnings)
    below = flips(page, compared, both), different(compared, *both), folds(page, compared, both)
    return "".join((judgement(*words), decided, *below))


def sentence(compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """The verdict in one sentence."""
    word = compared.verdict
    size = gap_words(abs(compared.pair.difference or 0.0), compared.unit).removeprefix("+")
    if word in ("better", "worse"):
        best = second if word == "better" else first
        return f"Keep <b>{e(best.title)}</b>: it is better by {size}."
    if word:
        return f"<b>{e(second.title)}</b> is {word} by {size}."
    if first.seconds and second.seconds:
        fast, slow = sorted((first, second), key=lambda row: row.seconds or 0.0)
        ratio = (slow.seconds or 0.0) / (fast.seconds or 1.0)
        if ratio > 1.25:
            return f"No difference shown. <b>{e(fast.title)}</b> is {ratio:.1f} times as fast."
    return "No difference shown."


def reason(compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """Counts, difference, interval, p, and how many questions would settle it."""
    pair = compared.pair
    counted = (
        f"<b>{e(second.title)}</b> answers {pair.wins:,} of {pair.n:,} questions better and {pair.losses:,} worse "
        f"than <b>{e(first.title)}</b>: {e(metric_label(compared.metric))} {gap_words(pair.difference or 0.0, compared.unit)}"
    )
    if pair.low is None or pair.high is None or pair.p is None:
        return f"{counted}. {e(pair.note.capitalize() or 'There is no interval')}."
    ends = (gap_words(end, compared.unit).removesuffix(" points") for end in (pair.low, pair.high))
    needed = ""
    if pair.needed and not pair.significant:
        needed = f" To settle a difference of this size takes about {pair.needed:,} questions."
    return f"{counted}, 95 % interval {' to '.join(ends)}, p = {numbers.text(pair.p, 'p')}.{needed}"


def duel(page: Page, compared: run_views.Comparison, both: Sequence[RunRow]) -> str:
    lines = ""
    for row in both:
        report = page.workbench.runs.open(row.name).report() or {}
        mean = {**report.get("metrics", {}), **report.get("suite", {})}.get(compared.metric)
        bar = figures.interval_bar(mean) if compared.unit == "fraction" else ""
        lines += html.link(row.title, address(row.name), "nm")
        lines += f"<span>{figures.quantity(mean, compared.unit)}</span><span>{bar}</span>"
        lines += f'<span class="n">{figures.duration(row.seconds)}</span>'
    return f'<div class="duel">{lines}</div>'


def flips(page: Page, compared: run_views.Comparison, both: Sequence[RunRow]) -> str:
    """The questions whose score changed."""
    pair = compared.pair
    same = pair.n - pair.wins - pair.losses
    counts = html.dotted(f"{pair.wins:,} better", f"{pair.losses:,} worse", f"{same:,} the same")
    head = html.heading("Questions that flipped", counts)
    if not pair.flipped:
        return head + html.note("Every question has the same score in both runs.")
    runs = [page.workbench.runs.open(row.name) for row in both]
    answers = [{x.qid: x for x in run_questions.questions(page.workbench, run)} for run in runs]
    examples = {x.question.qid: x for x in run_questions.examples(runs[0])}
    lines, addresses = [], []
    for qid in list(pair.flipped)[:MOST_FLIPS]:
        example = examples[qid]
        accepted = example.gold.answers
        cells = [
            f'{html.mark(rows[qid].kind)} <span dir="auto">{marked(rows[qid].answer[:300], accepted)}</span>'
            if qid in rows
            else "–"
            for rows in answers
        ]
        gold = f"<mark>{e(accepted[0])}</mark>" if accepted else "–"
        lines.append([f'<span dir="auto">{e(example.question.text)}</span>', gold, *cells])
        addresses.append(address(both[1].name, q=qid))
    heads = ["Question", "Gold", *(row.title for row in both)]
    return head + html.rows(heads, lines, kind="flips", addresses=addresses)


def different(compared: run_views.Comparison, first: RunRow, second: RunRow) -> str:
    """The chain's differences word by word, then every other setting."""
    head = html.heading("What is different")
    if not compared.changes:
        return head + html.note(
            "The settings are the same: the runs differ by chance, or by a model that is not deterministic."
        )
    shown, others = "", list(compared.changes)
    if first.chain and second.chain and first.chain.actions != second.chain.actions:
        shown = difference(first.chain, second.chain)
        others = [c for c in others if not c.where.startswith("action ")]
        # the fingerprint of an index that only one of the two has says no more than its name
        named = {c.where for c in others if "–" in (c.a, c.b)}
        others = [c for c in others if c.where not in named or not c.where.startswith("backends")]
    lines = "".join(
        f"<div><small>{e(c.where)}</small><p>{words_changed(c.a[:2000], c.b[:2000])}</p></div>"
        for c in others
    )
    return f"{head}{shown}" + (f'<div class="diff">{lines}</div>' if lines else "")


def folds(page: Page, compared: run_views.Comparison, both: Sequence[RunRow]) -> str:
    """Every metric, where questions were lost, and time: folded, with their gist."""
    first, second = both
    every, _ = run_views.tables_of(compared.runs)
    parts = [lost_of(page, row.name) for row in both]
    bars = "".join(
        f"<p>{e(row.title)}</p>{figures.waterfall_bar(lost, tall=True)}"
        for row, lost in zip(both, parts)
    )
    before, after = ({kind: count for kind, _, count in lost} for lost in parts)
    words = {**VERDICTS, "wrong": "not in the answer"}
    moved = html.dotted(
        *(
            f"{words[kind]} {before.get(kind, 0):,} → {after.get(kind, 0):,}"
            for kind in ("lost", "wrong", "format", "failed")
            if kind in before or kind in after
        )
    )
    gist = f"{len(compared.runs.cells)} metrics, paired"
    took = f"{figures.duration(first.seconds)} → {figures.duration(second.seconds)} a question"
    drawn = (
        html.fold("Every metric", figures.table(every), gist=gist, id="compare-metrics"),
        html.fold("Where questions were lost", bars, gist=moved, id="compare-lost"),
        html.fold("Time and price", f"<p>{took}</p>", gist=took, id="compare-cost"),
    )
    return f"<div>{''.join(drawn)}{plots(page, [first.name, second.name], compared.metric)}</div>"


def plots(page: Page, names: Sequence[str], metric: str) -> str:
    """Means by kind of question, quality against time, tokens or price, and the analysis of agents, as folds."""
    return "".join(_plots(page, names, metric)) + agents(page, names)


def _plots(page: Page, names: Sequence[str], metric: str) -> Iterator[str]:
    for axes, figure, value in run_views.kinds_of(page.workbench, names, metric):
        shown = svg.figure(figure) if figure.series else ""
        title = f"By {axes.removeprefix('meta.').replace('_', ' ')}"
        gist = numbers.plural(len(value.rows), "kind")
        yield html.fold(title, shown + figures.table(value), gist=gist, id=f"compare-by-{axes}")
    for label, key in run_views.COSTS.items():
        points, notes = run_views.quality_and_cost(page.workbench, names, metric, key)
        if points is not None:
            drawn = svg.figure(points) + "".join(map(html.warning, notes))
            yield html.fold(f"Quality against {label}", drawn, id=f"compare-{key}")


def metric_choice(metrics: Iterable[str], chosen: str, warnings: Iterable[str]) -> str:
    """What is to be known of a comparison, and the metric that decides, kept in the address."""
    options = [(name, metric_label(name)) for name in metrics]
    more = f' class="short"{form.on_change("runs.decide")}'
    chooser = form.chooser("Decided by", "metric", options, chosen, more=more)
    return f'{"".join(map(html.warning, warnings))}<div class="row">{chooser}</div>'


def decide(page: Page, event: Event) -> Patch:
    query = {**event.query, "metric": event.text("metric")}
    return {"go": html.address("runs/compare", **query)}


def ranking(page: Page, names: Sequence[str], metric: str) -> str:
    if run_views.share_nothing(page.workbench, names):
        head = f"{len(names)} runs of different datasets"
        why = "They share no question, so only their means stand side by side."
        return judgement(head, why) + plots(page, names, metric or "em")
    compared = run_views.compare_several(page.workbench, names, metric)
    titles = {name: run_list.row_of(page.workbench, name).title for name in names}
    every, _ = run_views.tables_of(compared)
    labels = tuple(titles.get(x, x) if isinstance(x, str) else x for x in every.columns)
    table, gist = figures.table(replace(every, columns=labels)), f"{len(compared.cells)} metrics"
    why = f"{len(names)} runs on {len(compared.common):,} shared questions, against {e(titles[names[0]])}; p is corrected for {len(names) - 1} comparisons (Holm)."
    decided = metric_choice(compared.cells, compared.metric, compared.warnings)
    metrics = html.fold("Every metric", table, gist=gist, id="rank-metrics")
    head = f"{judgement(winner(compared, titles), why)}{decided}{ranked(compared, titles)}"
    return f"{head}<div>{metrics}{plots(page, names, compared.metric)}</div>"


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
    base = compared.sides[0].name
    cells = list(zip((side.name for side in compared.sides), compared.cells[compared.metric]))
    cells.sort(key=lambda cell: cell[1].value or 0.0, reverse=up is not False)
    lines = []
    for name, mean in cells:
        bar = figures.interval_bar(mean) if unit == "fraction" else ""
        line = [html.link(titles[name], address(name), "nm"), figures.quantity(mean, unit), bar]
        if (pair := compared.against.get(name)) is None:
            lines.append([*line, "the base", "", "", "", ""])
            continue
        delta = {"value": pair.difference, "low": pair.low, "high": pair.high, "n": pair.n}
        words = f'<small class="below">{e(run_views.verdict(pair, up))}</small>'
        line += [figures.gap(delta, unit) + words, numbers.text(pair.corrected, "p")]
        line.append(f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}")
        line.append(f"{pair.needed:,}" if pair.needed else "–")
        lines.append([*line, html.link("compare", pair_address(base, name))])
    heads = ("Run", f">{metric_label(compared.metric)}", "", *HEADS)
    test = run_views.TEST[:1].upper() + run_views.TEST[1:]
    return f'<div class="wide">{html.rows(heads, lines)}</div>{html.note(f"{test} {POWER}")}'
