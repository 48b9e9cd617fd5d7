"""One run in figures: its tiles, every metric, its costs; and the analysis of agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.numbers import independence, smallness
from rallebench.gui import figures, html
from rallebench.gui.frame import Page
from rallebench.render import costs, numbers
from rallebench.views import run_views
from rallebench.views.comparing import analyse_agents
from rallebench.views.run_views import RunFolder

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


def tiles(page: Page, run: RunFolder, report: Mapping[str, Any]) -> Markup:
    boxes = Markup()
    for tile in run_views.tiles(report, run_views.chain_of(run)):
        n, below = tile.mean.get("n", 0), tile.about[:60]
        if tile.label == "EM":
            below = f"{round((tile.mean.get('value') or 0) * n):,} of {n:,} right"
        boxes += _tile(tile.label, figures.quantity(tile.mean, tile.unit), below, tile.about)
    if mean := run_views.seconds_of(report):
        whole = f"{numbers.text(report.get('seconds') or 0, 'duration')} on the clock"
        boxes += _tile("Time a question", figures.quantity(mean, "seconds"), whole, CLOCK)
    boxes += _tile("Price", *price_figure(page, report))
    few = smallness(report.get("clusters"), report.get("n_done") or 0)
    return Markup('<div class="tiles">{}</div>{}').format(boxes, html.note(few) if few else "")


def _tile(title: str, figure: str, below: str, about: str = "") -> Markup:
    return Markup('<div title="{}"><span>{}</span><b>{}</b><small>{}</small></div>').format(
        about, title, figure, below
    )


def price_figure(page: Page, report: Mapping[str, Any]) -> tuple[str, str]:
    """The price of a run, with a caveat."""
    cost = report.get("cost") or {}
    total = cost.get("total") or {}
    if not costs.is_recorded(cost):
        return "unknown", "imported predictions do not say it"
    llms = [*total.get("usd_unknown_for", {}), *cost.get("prices", {})]
    words, why = run_views.price_of(page.workbench.workspace, total.get("usd"), llms)
    each = total["usd"] / max(1, total["questions"]) if not why else 0.0
    return words, why or f"{numbers.text(each, 'usd')} a question"


def metrics(page: Page, run: RunFolder) -> Markup:
    report = run.report()
    if report is None:
        return html.empty("The run is not scored yet.")
    lines = []
    for name, mean in {
        **report.get("suite", {}),
        **run_views.printed(report, run_views.chain_of(run)),
    }.items():
        unit, interval = run_views.unit_of(report, name), "–"
        if unit == "fraction" and mean.get("low") is not None:
            interval = f"{100 * mean['low']:.1f} to {100 * mean['high']:.1f}"
        about = Markup("<small>{}</small>").format(run_views.definition(report, name))
        title = Markup('<b class="nm" title="{}">{}</b>{}').format(
            name, run_views.label(name), about
        )
        figure = figures.quantity(mean, unit)
        lines.append([title, figure, interval, f"{mean.get('n', 0):,}"])
    known = run_views.cards(report).items()
    cards = Markup().join(
        Markup("<h4>{}</h4>{}").format(name, html.defs(facts.items())) for name, facts in known
    )
    scorer = html.button("Score by more metrics", "runs.ask_metrics", run=run.name)
    clusters = independence(report.get("clusters"), report.get("n", 0))
    table = html.rows(["Metric", ">Mean", ">95 % interval", ">Questions"], lines)
    cards = html.fold("Metric cards", cards, gist="definition, range, caveats", id="metric-cards")
    left_out = Markup().join(map(html.note, run_views.not_printed(report, run_views.chain_of(run))))
    return Markup('<div class="row">{}</div>{}{}{}{}{}').format(
        scorer, agents(page, [run.name]), table, html.note(clusters), left_out, cards
    )


def cost(page: Page, run: RunFolder) -> Markup:
    """Time, tokens and price, in total and per action."""
    report = run.report()
    if report is None or not report.get("cost"):
        return html.empty("The cost is known once the run is scored.")
    if not costs.is_recorded(report["cost"]):
        return html.empty(costs.NOT_RECORDED)
    total = report["cost"]["total"]
    facts = [
        ["Questions", f"{total['questions']:,}"],
        ["Time of the steps", numbers.text(total["seconds"], "duration")],
        ["Calls to models", f"{total['model_calls']:,}"],
        ["Retrievals", f"{total['retrievals']:,}"],
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
    lines = map(_action_cost, report["cost"].get("per_action", []))
    return Markup("{}{}{}{}").format(
        html.heading("In all", first=True),
        html.rows(["", ">"], facts, kind="narrow"),
        html.heading("Each action, time a question"),
        html.rows(heads, lines),
    )


def _action_cost(part: Mapping[str, Any]) -> list[str]:
    spread, tokens = part.get("seconds") or {}, "–"
    if part.get("prompt_tokens"):
        both = ((part.get(f"{key}_tokens") or {}).get("mean") for key in ("prompt", "completion"))
        tokens = " + ".join(numbers.text(mean, "count") for mean in both)
    name = Markup("{} {} {}").format(part["action"], part["kind"], part["target"])
    times = [figures.duration(spread.get(key)) for key in ("mean", "median", "p95")]
    return [name, *times, tokens, f"{part.get('cached', 0):,}"]


def agents(page: Page, names: Sequence[str]) -> Markup:
    """The analysis of agents' runs as folds, "" for other runs."""
    if not all(run_views.is_agents(page.workbench.runs.open(name)) for name in names):
        return Markup()
    parts = Markup()
    for aspect, label in ASPECTS.items():
        try:
            result = analyse_agents(page.workbench.workspace, names, aspect)
            inside = Markup().join(map(figures.table, result.tables))
            inside += figures.plots(result.figures.values())
            inside += Markup().join(map(html.warning, result.notes))
        except RalleError as error:
            inside = html.note(error)
        parts += html.fold(label, inside, id=f"agents-{aspect}")
    return html.heading("The agent") + parts
