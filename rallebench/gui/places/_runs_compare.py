"""Compare runs: two runs with a verdict, changed questions and different settings; three or more as a ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.comparison import Comparison
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural, smallness
from rallebench.core.run_results import RunSummary
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import ComparisonAddress, Door, RunAddress
from rallebench.gui.events import Event, TraceList
from rallebench.gui.figures import gap_words
from rallebench.gui.frame import Page
from rallebench.gui.html import VERDICTS, escape
from rallebench.gui.patches import Patch
from rallebench.gui.places._runs_advice import sentence
from rallebench.gui.places._runs_cells import lost_address, lost_stages
from rallebench.gui.places._runs_corrections import draw_corrections
from rallebench.gui.places._runs_figures import agents
from rallebench.gui.places._runs_flips import differing, flips, question_table
from rallebench.gui.places._runs_list import unread
from rallebench.gui.places._versions import difference, words_changed
from rallebench.render import numbers
from rallebench.views import run_list, run_questions, run_views
from rallebench.views.gating import gate_sentence
from rallebench.views.recommending import RunCosts, recommend, run_costs

HEADS = (
    ">To the base, interval corrected",
    ">p, corrected",
    ">Better / equal / worse",
    ">Questions needed",
    "",
)
POWER = "Questions needed: to see this difference with 80 % power at the 5 % level, and for both ends of its interval."


def register(page: Page) -> None:
    page.view("runs/compare", open_compare)
    page.trace_list("runs/compare", list_traces)
    page.actions("runs", decide, reads=True)


def open_compare(page: Page, event: Event) -> Patch:
    """Compare the runs ``a`` and ``b`` in the address, or several as ``r0``, ``r1`` …"""
    query = event.read(ComparisonAddress)
    if query.r:
        body = ranking(page, query.r, query.metric)
    else:
        body = pair(page, query.a, query.b, query.metric)
    crumb = html.crumb("Runs", "#/runs/list", "Compare")
    return panels.view("runs/compare", "Compare", crumb, body, more=Markup(" data-problems"))


def list_traces(page: Page, event: Event, door: Door) -> TraceList:
    """Return the flipped questions of two runs, or the shared questions of several."""
    query = event.read(ComparisonAddress)
    names = query.r or (query.a, query.b)
    sources = [(row.name, row.title) for row in title_rows(page, names)]
    if query.r:
        compared_runs = run_views.compare_several(page.workspace, names, query.metric)
        return TraceList(differing(page, compared_runs), sources)
    compared = run_views.compare_two(page.workspace, query.a, query.b, query.metric)
    return TraceList(list(compared.pair.flipped_ids), sources)


def judgement(sentence: str, reason: str, more: str = "") -> Markup:
    return Markup('<div class="judge"><h2>{}</h2><p>{}</p>{}</div>').format(sentence, reason, more)


def pair(page: Page, a: str, b: str, metric: str) -> Markup:
    if not (a and b):
        raise UsageError(
            "The address names no two runs; tick them in the list of runs and choose Compare."
        )
    both = first, second = title_rows(page, (a, b))
    compared = run_views.compare_two(page.workspace, a, b, metric)
    for name in unread(page, both):
        run_questions.read_stages(page.workspace, page.workbench.runs.open(name))
    costs = run_costs(page.workspace, compared)
    advice = recommend(compared, costs)
    gate = gate_sentence(page.workspace, compared, (first.title, second.title))
    why = Markup("{} {}").format(reason(compared, first, second), gate)
    words = sentence(compared, advice, first, second), why
    titles = {row.name: row.title for row in both}
    decided = metric_choice(under_titles(compared.runs, titles))
    labelled = draw_corrections(page, titles, compared.metric)
    below = labelled, flips(page, compared, both), different(compared, first, second)
    folded = folds(page, compared.runs, both), *plots(page, titles, metric, compared.runs)
    cached = Markup() if compared.timed else Markup().join(map(html.note, compared.runs.timing))
    head = judgement(*words, duel(compared, both, costs) + cached), decided
    return Markup().join((*head, *below, Markup("<div>"), *folded, Markup("</div>")))


def title_rows(page: Page, names: Sequence[str]) -> list[RunSummary]:
    """Return the compared runs with distinct titles."""
    return tell_apart([run_list.run_row(page.workspace, name) for name in names])


def tell_apart(rows: list[RunSummary]) -> list[RunSummary]:
    """Make equal titles distinct by adding times, to the second if necessary."""
    own = [row.title for row in rows]
    for seconds in (False, True):
        titles = [row.title for row in rows]
        rows = [
            replace(row, title=f"{title}, {numbers.moment(row.created, seconds=seconds)}")
            if titles.count(row.title) > 1
            else row
            for row, title in zip(rows, own)
        ]
    return rows


def under_titles(compared: Comparison, titles: Mapping[str, str]) -> Comparison:
    """Replace the runs' names by their titles in the comparison's warnings and tables."""
    sides = (replace(side, name=titles[side.name]) for side in compared.sides)
    return replace(compared, sides=tuple(sides))


def reason(compared: run_views.RunPair, first: RunSummary, second: RunSummary) -> Markup:
    """State the counts, difference, interval, p, and the number of questions that would decide."""
    pair = compared.pair
    counted = Markup(
        "<b>{}</b> answers {:,} of {:,} questions better and {:,} worse than <b>{}</b>: {} {}"
    ).format(
        second.title,
        pair.wins,
        pair.n,
        pair.losses,
        first.title,
        run_views.label(compared.metric),
        gap_words(pair.difference or 0.0, compared.unit),
    )
    if pair.low is None or pair.high is None or not pair.has_verdict:
        return Markup("{}. {}.").format(counted, pair.note.capitalize() or "There is no interval")
    ends = (gap_words(end, compared.unit).removesuffix(" points") for end in (pair.low, pair.high))
    if pair.watched:
        return Markup("{}, interval {}, which holds whenever one stops.").format(
            counted, " to ".join(ends)
        )
    needed = ""
    if pair.needed and not pair.significant:
        needed = f" To settle a difference of this size takes {pair.needed} questions."
    return Markup("{}, 95 % interval {}, p = {}.{}").format(
        counted, " to ".join(ends), numbers.text(pair.p, "p"), needed
    )


def duel(
    compared: run_views.RunPair, both: Sequence[RunSummary], costs: Sequence[RunCosts]
) -> Markup:
    """Draw the mean of each run over the questions scored in both, with its time and tokens a question, its price and
    the memory of its models and indexes.
    """
    lines, cell = [], Markup('<span class="nowrap" title="{}">{}</span>')
    means = compared.runs.cells[compared.metric]
    ends = figures.needs_ends(means, compared.unit)
    for row, mean, cost in zip(both, means, costs):
        bar = figures.interval_bar(mean) if compared.unit == "fraction" else Markup()
        tokens = "–" if cost.tokens is None else f"{cost.tokens:,.0f}"
        memory = "–" if cost.memory is None else figures.amount(cost.memory)
        why = "" if compared.timed else "Times are not compared."
        lines.append(
            [
                html.link(row.title, RunAddress(row.name).href, "nm"),
                figures.quantity(mean, compared.unit, ends=ends),
                bar,
                cell.format(why, figures.duration(cost.seconds)),
                cell.format("Sent and written, a question", tokens),
                cell.format("Of the whole run", cost.price or "–"),
                cell.format("Of its models and indexes", memory),
            ]
        )
    label = run_views.label(compared.metric)
    heads = ("Run", f">{label}", "", ">Time a question", ">Tokens a question", ">Price", ">Memory")
    return Markup('<div class="wide"><div class="duel">{}</div></div>').format(
        html.rows(heads, lines)
    )


def different(compared: run_views.RunPair, first: RunSummary, second: RunSummary) -> Markup:
    """Show the differences between the chains word by word, then every other setting."""
    head = html.heading("What is different")
    if not compared.changes:
        why = ": the runs differ by chance, or by a model that is not deterministic"
        changed = compared.pair.wins or compared.pair.losses
        return head + html.note(f"The settings are the same{why if changed else ''}.")
    chain_changes, others = Markup(), list(compared.changes)
    if first.chain and second.chain and first.chain.actions != second.chain.actions:
        chain_changes = difference(first.chain, second.chain)
        others = [c for c in others if not c.where.startswith("action ")]
        # if only one run has an index, its fingerprint adds nothing to its name
        named = {c.where for c in others if "–" in (c.a, c.b)}
        others = [c for c in others if c.where not in named or not c.where.startswith("backends")]
    lines = Markup().join(
        Markup("<div><small>{}</small><p>{}</p></div>").format(
            c.where, words_changed(c.a[:2000], c.b[:2000])
        )
        for c in others
    )
    return Markup("{}{}").format(head, chain_changes) + (
        Markup('<div class="diff">{}</div>').format(lines) if lines else Markup()
    )


def folds(page: Page, compared: Comparison, both: Sequence[RunSummary]) -> Markup:
    """Draw collapsed sections: lost questions, time and price of both runs over their common questions."""
    qids = {example.question.qid for example in compared.common}
    parts = [lost_stages(page, row.name, qids) for row in both]
    bars = Markup().join(
        Markup("<p>{}</p>{}").format(
            row.title,
            figures.waterfall_bar(lost, tall=True, address=lost_address(row.name), run=row.name),
        )
        for row, lost in zip(both, parts)
    )
    before, after = ({kind: count for kind, _, count in lost} for lost in parts)
    words = {**VERDICTS, "wrong": "not in the answer"}
    moved = html.join_facts(
        *(
            f"{words[kind]} {before.get(kind, 0):,} → {after.get(kind, 0):,}"
            for kind in ("lost", "wrong", "format", "failed")
            if kind in before or kind in after
        )
    )
    lines, times = [], []
    spent = ("seconds", "prompt_tokens", "completion_tokens")
    for i, row in enumerate(both):
        means = [
            compared.cells[name][i].value if name in compared.cells else None for name in spent
        ]
        price, _ = run_views.price_text(
            page.workspace, row.usd, row.chain.llms if row.chain else ()
        )
        times.append(figures.duration(means[0]))
        tokens = " + ".join(numbers.text(mean, "count") for mean in means[1:])
        lines.append([escape(row.title), "–" if compared.timing else times[-1], tokens, price])
    heads = ("Run", ">Time a question", ">Tokens in + out, a question", ">Price of the run")
    took = "times are not compared" if compared.timing else f"{' → '.join(times)} a question"
    return html.fold("Where questions were lost", bars, gist=moved, id="compare-lost") + html.fold(
        "Time and price", html.rows(heads, lines), gist=took, id="compare-cost"
    )


def plots(
    page: Page,
    titles: Mapping[str, str],
    metric: str,
    compared: Comparison | None = None,
) -> Iterator[str]:
    """Yield collapsed sections: every metric; means by type of question; quality against time, tokens or price; and
    the analysis of agents.
    """
    if compared is not None:
        metric = compared.metric
        every = figures.table(run_views.comparison_table(under_titles(compared, titles)))
        gist = plural(sum(map(compared.is_printed, compared.cells)), "metric")
        yield html.fold("Every metric", every, gist=gist, id="compare-metrics")
    for axes, drawing, value in run_views.kind_tables(page.workspace, titles, metric):
        gist = plural(len(value.rows), drawing.x)
        inside = figures.plots([drawing]) + figures.table(value)
        yield html.fold(f"By {drawing.x}", inside, gist=gist, id=f"compare-by-{axes}")
    for label, key in run_views.COSTS.items():
        points, notes = run_views.quality_and_cost(page.workspace, titles, metric, key, compared)
        if points is not None:
            inside = figures.plots([points]) + Markup().join(map(html.warning, notes))
            yield html.fold(f"Quality against {label}", inside, id=f"compare-{key}")
    yield agents(page, list(titles))


def metric_choice(compared: Comparison) -> Markup:
    """Draw the caveats of a comparison, and the choice of the deciding metric, which is kept in the address."""
    few = smallness(compared.clusters.counts, len(compared.common))
    options = [
        (name, run_views.label(name))
        for name in compared.measures
        if name not in compared.cells or compared.is_printed(name)
    ]
    more = Markup(' class="short"{}').format(form.on_change("runs.decide"))
    chooser = form.chooser("Decided by", "metric", options, compared.metric, more=more)
    return Markup('{}{}<div class="row">{}</div>').format(
        Markup().join(map(html.warning, compared.warnings)),
        html.note(few) if few else "",
        chooser,
    )


def decide(page: Page, event: Event) -> Patch:
    return Patch(go=replace(event.read(ComparisonAddress), metric=event.text("metric")).href)


def ranking(page: Page, names: Sequence[str], metric: str) -> Markup:
    listed = title_rows(page, names)
    titles = {row.name: row.title for row in listed}
    if run_views.share_nothing(page.workspace, names):
        head = f"{plural(len(names), 'run')} of different datasets"
        why = "They share no question, so only their means stand side by side."
        return Markup().join((judgement(head, why), *plots(page, titles, metric or "em")))
    compared = run_views.compare_several(page.workspace, names, metric)
    why = Markup("{} on {}, against {}.").format(
        plural(len(names), "run"),
        plural(len(compared.common), "shared question"),
        titles[names[0]],
    )
    decided = metric_choice(under_titles(compared, titles))
    head = Markup("{}{}{}").format(
        judgement(winner(compared, titles), why), decided, ranking_rows(compared, titles)
    )
    qids = differing(page, compared)
    gist = plural(len(qids), "question")
    table = question_table(page, listed, qids)
    every = html.fold("Questions that differ", table, gist=gist, id="compare-questions")
    folded = (every if qids else Markup(), *plots(page, titles, metric, compared))
    head += draw_corrections(page, titles, compared.metric)
    return Markup().join((head, Markup("<div>"), *folded, Markup("</div>")))


def winner(compared: Comparison, titles: Mapping[str, str]) -> Markup:
    """State the verdict on several runs in one sentence."""
    first = escape(titles[compared.sides[0].name])
    up = compared.measure.higher_is_better
    gains = {
        run: abs(pair.difference or 0.0)
        for run, pair in compared.against.items()
        if pair.verdict(up) == "better"
    }
    if not gains:
        return Markup("No run is shown to be better than <b>{}</b>.").format(first)
    best = max(gains, key=lambda run: gains[run])
    size = gap_words(gains[best], compared.measure.unit).removeprefix("+")
    return Markup("Keep <b>{}</b>: it is better than {} by {}.").format(titles[best], first, size)


def ranking_rows(compared: Comparison, titles: Mapping[str, str]) -> Markup:
    """Draw one row per run, the best mean first, with the difference from the first run."""
    unit, up = compared.measure.unit, compared.measure.higher_is_better
    base = compared.sides[0].name
    cells = list(zip((side.name for side in compared.sides), compared.cells[compared.metric]))
    cells.sort(key=lambda cell: cell[1].value or 0.0, reverse=up is not False)
    lines, ends = [], figures.needs_ends([mean for _, mean in cells], unit)
    for name, mean in cells:
        bar = figures.interval_bar(mean) if unit == "fraction" else Markup()
        line: list[str] = [
            html.link(titles[name], RunAddress(name).href, "nm"),
            figures.quantity(mean, unit, ends=ends),
            bar,
        ]
        if (pair := compared.against.get(name)) is None:
            lines.append([*line, "the base", "", "", "", ""])
            continue
        delta = {"value": pair.difference, "low": pair.low, "high": pair.high, "n": pair.n}
        words = Markup('<small class="below">{}</small>').format(pair.verdict(up))
        line += [figures.gap(delta, unit) + words, numbers.text(pair.corrected, "p")]
        line.append(f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}")
        line.append(str(pair.needed or "–"))
        lines.append([*line, html.link("compare", ComparisonAddress(base, name).href)])
    heads = ("Run", f">{run_views.label(compared.metric)}", "", *HEADS)
    test = compared.test[:1].upper() + compared.test[1:]
    return Markup('<div class="wide">{}</div>{}').format(
        html.rows(heads, lines), html.note(f"{test} {POWER}")
    )
