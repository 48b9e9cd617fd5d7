"""One run in figures: its tiles, every metric, what it cost, what it was made with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rallebench.core.numbers import independence
from rallebench.gui import figures, html
from rallebench.gui.frame import Page
from rallebench.gui.html import e
from rallebench.gui.places._runs_list import metric_label
from rallebench.gui.places._runs_more import agents
from rallebench.render import costs, numbers
from rallebench.services import run_views
from rallebench.services.run_views import RunFolder


def tiles(page: Page, run: RunFolder, report: Mapping[str, Any]) -> str:
    """Six figures."""
    boxes = ""
    for tile in run_views.tiles(report):
        n, below = tile.mean.get("n", 0), tile.about[:60]
        if tile.label == "EM":
            below = f"{round((tile.mean.get('value') or 0) * n):,} of {n:,} right"
        boxes += _tile(tile.label, figures.percent(tile.mean, share=tile.share), below, tile.about)
    if mean := run_views.seconds_of(report):
        whole = f"{numbers.text(report.get('seconds') or 0, 'duration')} in all"
        boxes += _tile("Time a question", figures.quantity(mean, "seconds"), whole)
    boxes += _tile("Price", *price_of(page, report))
    return f'<div class="tiles">{boxes}</div>'


def price_of(page: Page, report: Mapping[str, Any]) -> tuple[str, str]:
    """The price of a run, and what is to be said of it."""
    cost = report.get("cost") or {}
    total = cost.get("total") or {}
    if not costs.is_recorded(cost):
        return "unknown", "imported predictions do not say it"
    if usd := total.get("usd"):
        each = f"{numbers.text(usd / max(1, total['questions']), 'usd')} a question"
        return numbers.text(usd, "usd"), each
    if run_views.is_unpriced(page.workbench, list(cost.get("prices", {}))):
        return "unknown", "set the prices of the model in Models"
    return "none", "the model runs on this machine"


def _tile(title: str, figure: str, below: str, about: str = "") -> str:
    """A figure, HTML, between its name and what it says."""
    return f'<div title="{e(about)}"><span>{e(title)}</span><b>{figure}</b><small>{e(below)}</small></div>'


def metrics(page: Page, run: RunFolder) -> str:
    """Every metric."""
    report = run.report()
    if report is None:
        return html.empty("The run is not scored yet.")
    lines = []
    for name, mean in {**report.get("suite", {}), **report["metrics"]}.items():
        is_share, interval = run_views.is_share(report, name), "–"
        if is_share and mean.get("low") is not None:
            interval = f"{100 * mean['low']:.1f} to {100 * mean['high']:.1f}"
        about = f"<small>{e(run_views.definition(report, name))}</small>"
        title = f'<b class="nm" title="{e(name)}">{e(metric_label(name))}</b>{about}'
        figure = figures.percent(mean, share=is_share)
        lines.append([title, figure, interval, f"{mean.get('n', 0):,}"])
    about = run_views.cards(report).items()
    cards = "".join(f"<h4>{e(name)}</h4>{html.defs(facts.items())}" for name, facts in about)
    scorer = html.button("Score by more metrics", "runs.ask_metrics", run=run.name)
    clusters = independence(report.get("clusters"), report.get("n", 0))
    table = html.rows(["Metric", ">Mean", ">95 % interval", ">Questions"], lines)
    cards = html.fold("Metric cards", cards, gist="definition, range, caveats", id="metric-cards")
    return f'<div class="row">{scorer}</div>{agents(page, [run.name])}{table}{html.note(clusters)}{cards}'


def cost(page: Page, run: RunFolder) -> str:
    """Time, tokens and price, in all and of each action."""
    report = run.report()
    if report is None or not report.get("cost"):
        return html.empty("The cost is known once the run is scored.")
    if not costs.is_recorded(report["cost"]):
        return html.empty(costs.NOT_RECORDED)
    lines = [_action_cost(part) for part in report["cost"].get("per_action", [])]
    total = report["cost"]["total"]
    facts = [
        ["Questions", f"{total['questions']:,}"],
        ["Time of all steps", numbers.text(total["seconds"], "duration")],
        ["Calls to models", f"{total['model_calls']:,}"],
        ["Retrievals", f"{total['retrievals']:,}"],
        ["Tokens", costs.tokens(total)],
        ["Price", price_of(page, report)[0]],
    ]
    heads = ["Action", ">Mean", ">Median", ">95th percentile", ">Tokens in + out"]
    heads.append(">From the cache")
    return (
        f"{html.heading('In all', first=True)}{html.rows(['', '>'], facts, kind='narrow')}"
        f"{html.heading('Each action, time a question')}{html.rows(heads, lines)}"
    )


def _action_cost(part: Mapping[str, Any]) -> list[str]:
    spread, tokens = part.get("seconds") or {}, "–"
    if part.get("prompt_tokens"):
        both = ((part.get(f"{key}_tokens") or {}).get("mean") for key in ("prompt", "completion"))
        tokens = " + ".join(numbers.text(mean, "count") for mean in both)
    name = f"{part['action']} {e(part['kind'])} {e(part['target'])}"
    times = [figures.duration(spread.get(key)) for key in ("mean", "median", "p95")]
    return [name, *times, tokens, f"{part.get('cached', 0):,}"]


def config(page: Page, run: RunFolder) -> str:
    """Everything that the run was made with."""
    return html.pre(json.dumps(run.spec(), ensure_ascii=False, indent=2), "pre code")
