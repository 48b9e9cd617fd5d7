"""The figures of one run: tiles, every metric, costs, and the analysis of agents."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

from markupsafe import Markup

from rallebench.core.costs import ActionCost, CostTotal
from rallebench.core.errors import RalleError
from rallebench.core.numbers import independence, smallness
from rallebench.core.report import RunReport
from rallebench.core.tables import Table
from rallebench.gui import figures, html
from rallebench.gui.frame import Page
from rallebench.gui.places._runs_graders import graders_fold
from rallebench.render import costs, numbers
from rallebench.views import repeats, run_views
from rallebench.views.comparing import analyse_agents
from rallebench.views.run_views import OpenRun

ASPECTS = {
    "performance": "Scores by task",
    "matching": "Matching",
    "errors": "Errors",
    "deployment": "Deployment",
}


CLOCK = (
    "The steps of a question, as they took when they were really asked; on the clock, the cache answers at once and \
several questions are asked side by side."
)


def tiles(page: Page, run: OpenRun, report: RunReport) -> Markup:
    boxes, own = Markup(), run_views.tiles(report, run.chain)
    mean_time = run_views.mean_seconds(report)
    ends = any(figures.needs_ends([tile.mean], tile.unit) for tile in own)
    ends = ends or figures.needs_ends([mean_time], "seconds")
    for tile in own:
        n, below = tile.mean.n, shorten(tile.about, 60, placeholder=" …")
        if tile.label == "EM":
            below = f"{round((tile.mean.value or 0) * n):,} of {n:,} right"
        boxes += _tile(
            tile.label, figures.quantity(tile.mean, tile.unit, ends=ends), below, tile.about
        )
    if mean_time:
        whole = f"{numbers.text(report.seconds or 0, 'duration')} on the clock"
        took = figures.quantity(mean_time, "seconds", ends=ends)
        boxes += _tile("Time a question", took, whole, CLOCK)
    boxes += _tile("Price", *price_figure(page, report))
    few = smallness(report.clusters, report.n_done)
    return Markup('<div class="tiles">{}</div>{}').format(boxes, html.note(few) if few else "")


def _tile(title: str, figure: str, below: str, about: str = "") -> Markup:
    return Markup('<div title="{}"><span>{}</span><b>{}</b><small>{}</small></div>').format(
        about, title, figure, below
    )


def price_figure(page: Page, report: RunReport) -> tuple[str, str]:
    """Return the price of a run, with a caveat."""
    cost = report.cost
    if cost is not None and not cost.recorded:
        return "unknown", "imported predictions do not say it"
    total = cost.total if cost else CostTotal()
    llms = [*total.usd_unknown_for, *(cost.prices if cost else ())]
    words, why = run_views.price_text(page.workspace, total.usd, llms)
    each = 0.0 if why else (total.usd or 0.0) / max(1, total.questions or 0)
    return words, why or f"{numbers.text(each, 'usd')} a question"


def metrics(page: Page, run: OpenRun) -> Markup:
    report = run.report
    if report is None:
        return html.empty("The run is not scored yet.")
    printed, lines = run_views.printed_metrics(report, run.chain), []
    means = {
        **{name: result.estimate for name, result in report.own.items()},
        **printed.means,
    }
    units = {name: run_views.metric_unit(report, name) for name in means}
    ends = any(figures.needs_ends([mean], units[name]) for name, mean in means.items())
    for name, mean in means.items():
        about = Markup("<small>{}</small>").format(run_views.definition(report, name))
        title = Markup('<b class="nm" title="{}">{}</b>{}').format(
            name, run_views.label(name), about
        )
        figure = figures.quantity(mean, units[name], ends=ends)
        lines.append([title, figure, f"{mean.n:,}"])
    known = run_views.cards(report).items()
    cards = Markup().join(
        Markup("<h3>{}</h3>{}").format(name, html.defs(facts.items())) for name, facts in known
    )
    scorer = html.button("Score by more metrics", "runs.ask_metrics", run=run.name)
    clusters = independence(report.clusters, report.n)
    table = html.rows(["Metric", ">Mean, 95 % interval", ">Questions"], lines)
    cards = html.fold("Metric cards", cards, gist="definition, range, caveats", id="metric-cards")
    left_out = Markup().join(map(html.note, printed.left_out))
    repeated = Markup().join(
        figures.table(part) if isinstance(part, Table) else html.note(part)
        for part in repeats.blocks(report.repeats)
    )
    buttons = Markup('<div class="row">{}</div>{}').format(scorer, agents(page, [run.name]))
    notes = (html.note(clusters), repeated, left_out)
    return Markup().join([buttons, table, *notes, graders_fold(run), cards])


def cost(page: Page, run: OpenRun) -> Markup:
    """Draw time, tokens and price, in total and per action."""
    report = run.report
    if report is None or report.cost is None:
        return html.empty("The cost is known once the run is scored.")
    if not report.cost.recorded:
        return html.empty(costs.NOT_RECORDED)
    total = report.cost.total
    facts = [
        ["Questions", f"{total.questions:,}"],
        ["Time of the steps", numbers.text(total.seconds, "duration")],
        ["Calls to models", f"{total.model_calls:,}"],
        ["Retrievals", f"{total.retrievals:,}"],
        ["Tokens", costs.tokens(total)],
        ["Price", price_figure(page, report)[0]],
    ]
    heads = (
        "Action",
        ">Mean",
        ">Median",
        ">95th percentile",
        ">Tokens in + out",
        ">From the cache",
    )
    lines = map(_action_cost, report.cost.per_action)
    return Markup("{}{}{}{}").format(
        html.heading("In all", first=True),
        html.rows(["", ">"], facts, kind="narrow"),
        html.heading("Each action, time a question"),
        html.rows(heads, lines),
    )


def _action_cost(part: ActionCost) -> list[str]:
    spread, tokens = part.seconds, "–"
    if part.prompt_tokens and part.completion_tokens:
        both = (part.prompt_tokens.mean, part.completion_tokens.mean)
        tokens = " + ".join(numbers.text(mean, "count") for mean in both)
    name = Markup("{} {} {}").format(part.action, part.kind, part.target)
    times = [figures.duration(value) for value in (spread.mean, spread.median, spread.p95)]
    return [name, *times, tokens, f"{part.cached:,}"]


def agents(page: Page, names: Sequence[str]) -> Markup:
    """Draw the analysis of agents' runs in collapsed sections; "" for other runs."""
    if not all(OpenRun(page.workbench.runs.open(name)).has_agent for name in names):
        return Markup()
    parts = Markup()
    for aspect, label in ASPECTS.items():
        try:
            result = analyse_agents(page.workspace, names, aspect)
            inside = Markup().join(map(figures.table, result.tables))
            inside += figures.plots(result.figures.values())
            inside += Markup().join(map(html.warning, result.notes))
        except RalleError as error:
            inside = html.note(error)
        parts += html.fold(label, inside, id=f"agents-{aspect}")
    return html.heading("The agent") + parts
