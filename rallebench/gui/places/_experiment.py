"""One experiment: its winner with the evidence, plots, tables next to the paper's, files, and next steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rallebench.core.experiment_reports import BaselinesReport, RankingReport, SuiteReport
from rallebench.core.experiments import StoredExperiment
from rallebench.core.improvements import find_improvement
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate
from rallebench.core.run_results import Ranking
from rallebench.core.run_titles import plain_label
from rallebench.core.tables import Table
from rallebench.gui import figures, form, html, panels
from rallebench.gui.addresses import (
    ComparisonAddress,
    ExperimentAddress,
    PaperTableAddress,
    QuestionAddress,
    RunAddress,
)
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes, escape, warning
from rallebench.gui.jobs import stop_button
from rallebench.gui.patches import Patch
from rallebench.gui.places import _experiment_files
from rallebench.gui.places._experiment_files import files, result_parts
from rallebench.gui.places._runs_compare import judgement
from rallebench.gui.wording import on_page
from rallebench.render import experiments
from rallebench.render.numbers import text
from rallebench.services import experiment_jobs
from rallebench.services.jobs import Job
from rallebench.views import designs, experiment_groups, experiment_results
from rallebench.views.experiment_results import AXES

EXPORTS = (("CSV", "csv"), ("LaTeX", "tex"), ("HTML report", "html"), ("JSON", "json"))


def register(page: Page) -> None:
    page.view("experiments/one", open_one)
    _experiment_files.register(page)


def open_one(page: Page, event: Event) -> Patch:
    """Open a whole experiment. ``by``: the ranking metric; ``beside``: another experiment to compare; ``x``, ``y``:
    axes of a trade-off plot.
    """
    name, store = event.read(ExperimentAddress).id, page.workbench.experiments.store
    if not store.exists(name):
        say = f"There is no experiment {name}; these are the experiments."
        return Patch(go="#/experiments/list", say=say)
    with store.reading(name):
        return _opening(page, event, store.open(name))


def _opening(page: Page, event: Event, stored: StoredExperiment) -> Patch:
    name, group = stored.name, experiment_groups.group(page.workspace, stored.name)
    title, about = group.name, html.join_facts(group.title, group.about)
    if group.automatic:
        title, about = group.title, html.join_facts(group.about, name)
    draw, follow = _BODIES.get(stored.kind, _suite), Markup(' data-on="none"')
    if stored.report is None:
        draw = unfinished_note
        follow += attributes(follow="*", do="open", view="experiments/one")
    buttons = _buttons(page, stored)
    crumb = html.crumb("Experiments", "#/experiments/list", title, about, buttons=buttons)
    parts = crumb, draw(page, event, stored), files(page, stored)
    return panels.view("experiments/one", title, *parts, kind="wide", more=follow)


def _buttons(page: Page, stored: StoredExperiment) -> Markup:
    name = stored.name
    if stored.report is None:
        job = experiment_jobs.newest(page.workbench.jobs, name)
        if job is not None and not job.done:
            return html.state("running") + stop_button(job, kind="")
        return html.button("Continue", "experiments.resume", kind="primary", id=name)
    use = Markup()
    if isinstance(stored.report, RankingReport) and (variants := stored.report.variants):
        build, kind = QuestionAddress(run=variants[0].run).href, "button"
        label = f"Use {plain_label(variants[0].variant)} in Build"
        if len(variants) > 1 and not experiment_groups.group(page.workspace, name).open:
            label, kind = "Use the winner in Build", "button primary"
        use = html.link(label, build, kind)
    if (outcome := find_improvement(stored.report)) and outcome.runs:
        address = QuestionAddress(run=outcome.runs[-1]).href
        use = html.link("Use the variant in Build", address, "button")
    do = "experiments.export"
    saves = [html.button(f"Save as {x}", do, id=name, suffix=y) for x, y in EXPORTS]
    saves.append(html.button("Send to MLflow", "experiments.to_mlflow", id=name))
    again = html.button("Run again with changes", "experiments.again", id=name)
    return again + use + html.menu(*saves, label="Export")


def unfinished_note(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    job, drawn = experiment_jobs.newest(page.workbench.jobs, stored.name), Markup()
    if job is None or job.done:
        mend = "It has not ended. Continue: answered questions are kept and not asked again."
        drawn = html.problem(job and job.error) + say(mend)
    return drawn + (run_rows(job) if job else Markup())


def run_rows(job: Job) -> Markup:
    """Draw the runs of an unfinished experiment: their progress and means so far."""
    lines = Markup()
    for part in experiment_jobs.parts(job):
        kind = {"done": "good", "failed": "bad"}.get(part.state, "busy")
        where = f"{part.done:,} of {part.total:,}" if part.state == "running" and part.total else ""
        mean = ""
        if best := experiment_jobs.headline(part):
            share = experiment_groups.is_share(best[0])
            score = f"{100 * best[1]:.1f} %" if share else text(best[1])
            mean = f"{experiment_groups.metric_label(best[0])} {score}"
        message = on_page(part.message) if part.state != "done" else ""
        about = html.join_facts(where, mean, message)
        name = html.state(plain_label(part.label), kind=kind)
        lines += Markup('<li>{}<small class="num">{}</small></li>').format(name, about)
    return Markup('<ul class="x-parts">{}</ul>').format(lines)


def say(sentence: str) -> Markup:
    return Markup('<p class="say">{}</p>').format(sentence)


def warning_notes(failed: Mapping[str, str]) -> Markup:
    return Markup().join(warning(f"{plain_label(label)}: {why}") for label, why in failed.items())


def go_select(title: str, key: str, options: Sequence[Any], chosen: str, blank: str = "") -> Markup:
    """Draw a drop-down, within a row, whose value is part of the address."""
    field = form.chooser(
        title, key, options, chosen, blank=blank, more=Markup(' data-go="{}"').format(key)
    )
    return Markup('<div class="row x-by">{}</div>').format(field)


# rankings


def _rank_table(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    value = experiment_results.ranking(page.workspace, stored, event.read(ExperimentAddress).by)
    result, chooser = value.result, Markup()
    warned = Markup().join(map(warning, result.warnings))
    if stored.kind == "sweep" and len(value.metrics) > 1:
        options = [(name, experiment_groups.metric_label(name)) for name in value.metrics]
        chooser = go_select("Decided by", "by", options, result.metric or "")
    whole = experiment_results.ranking_table(value)
    rows = tuple((plain_label(str(row[0])), *row[1:-3]) for row in whole.rows)
    short, gist = Table("", (*whole.columns[:-3],), rows), plural(len(value.metrics), "metric")
    doors = {plain_label(x.variant): RunAddress(x.run).href for x in result.variants}
    return Markup("{}{}{}{}{}{}{}").format(
        judgement(*map(escape, experiment_results.verdict(value))),
        warned,
        warning_notes(result.failed),
        chooser,
        ranking(value),
        figures.plots(experiment_results.figures(value)),
        html.fold("Every metric", figures.table(short, doors), gist=gist, id="x-metrics"),
    )


def ranking(value: Ranking) -> Markup:
    """Draw the variants, best first, each with its paired difference from the best and Holm's p."""
    variants, lines = value.result.variants, []
    name = value.result.metric or next(iter(value.metrics), "")
    share, replayed = experiment_groups.is_share(name), experiment_results.replayed_runs(value)
    ends = share and figures.needs_ends(row.metrics.get(name) for row in variants)
    for i, row in enumerate(variants):
        run, mean = row.run, row.metrics.get(name)
        seconds = getattr(value.reports[run].metrics.get("seconds"), "value", None)
        took = escape(figures.duration(seconds)) + Markup("<small>from the cache</small>") * (
            run in replayed
        )
        delta = Estimate(row.difference, row.low, row.high)
        gap = figures.gap(delta) if share else text(row.difference, "delta")
        compare = html.link("compare", ComparisonAddress(variants[0].run, run).href)
        lines.append(
            [
                Markup("<small>{}</small>").format(i + 1),
                html.link(plain_label(row.variant), RunAddress(run).href, "nm"),
                figures.metrics_door(
                    RunAddress(run).href, figures.percent(mean, share=share, ends=ends)
                )
                if mean
                else "–",
                figures.interval_bar(mean) if mean and share else Markup(),
                gap if i else "–",
                text(row.p_corrected, "p") if i else "",
                took,
                f"{mean.n:,}" if mean else "–",
                compare if i else html.link("use in Build", QuestionAddress(run=run).href),
            ]
        )
    label = experiment_groups.metric_label(name)
    deltas = (">To the first", ">p, corrected", ">Time a question", ">Questions", "")
    places = [RunAddress(row.run).href for row in variants]
    table = html.rows(("", "Variant", f">{label}", "", *deltas), lines, addresses=places)
    note = "Differences are paired, question by question."
    if len(lines) > 2:
        note += " p is corrected by Holm."
    if len(lines) > 2 and any(row.low is not None for row in variants):
        note += " The intervals hold together at 95 % (Bonferroni)."
    if replayed:
        note += " Times from the cache were measured by another run, perhaps under another load, and are not compared."
    wide = html.copyable_table(Markup('<div class="wide">{}</div>').format(table))
    return wide + html.note(note)


# other kinds


def _tradeoff(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    value = page.workbench.experiments.open_tradeoff(stored.name)
    query = event.read(ExperimentAddress)
    across, up = query.x if query.x in AXES else "single_ms", query.y
    if up not in AXES:
        up = "recall" if any(p.recall is not None for p in value.points) else "Rprec"
    axes = list(AXES.items())
    choosers = go_select("Across", "x", axes, across) + go_select("Up", "y", axes, up)
    failed = {p.label: p.error for p in value.points if p.error}
    gold = max((p.n_gold for p in value.points), default=0)
    note = f"Dataset {value.dataset}: {plural(value.n, 'question')}, {gold:,} with gold pages, k {value.k}."
    if any(p.recall is None and not p.error for p in value.points):
        note += " Recall is known for vector indexes with an exact index over the same passages."
    table = figures.table(experiment_results.tradeoff_table(value.points))
    figure = experiment_results.tradeoff_figure(value.points, across, up)
    group, best = (
        experiment_groups.group(page.workspace, stored.name),
        "No index could be ranked.",
    )
    if group.winner and group.mean is not None and group.mean.value is not None:
        more = f"; it is {group.beside}" if group.beside else ""
        score = f"{experiment_groups.metric_label(group.metric)} {100 * group.mean.value:.1f} %"
        best = f"{group.winner} has {score}{more}."
    return Markup('{}{}<div class="wide">{}</div>{}<div class="row">{}</div>{}').format(
        say(best), warning_notes(failed), table, html.note(note), choosers, figures.plots([figure])
    )


def _baselines(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    result = stored.report
    assert isinstance(result, BaselinesReport)
    run = html.link(result.run, RunAddress(result.run).href)
    doors = run_places(stored)
    tables = Markup().join(figures.table(x, doors) for x in result_parts(page, stored)[0])
    return Markup('<p class="say">The run {} between its baselines.</p>{}{}{}').format(
        run, warning_notes(result.failed), tables, _runs(stored)
    )


def _improvement(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    result, outcome = stored.report, find_improvement(stored.report)
    assert isinstance(result, SuiteReport) and outcome is not None
    saved, link = "The chain stays as it is.", Markup()
    if outcome.runs:
        saved = f"{plain_label(outcome.variant)} is saved as the chain {stored.name}; {outcome.chain} stays as it is."
        address = ComparisonAddress(outcome.runs[0], outcome.runs[-1]).href
        link = html.link("Compare both on the unseen articles", address)
    sentence, notes = escape(str(outcome)), Markup().join(map(warning, result.notes[1:]))
    return Markup("{}{}{}{}").format(
        judgement(sentence, escape(saved), link),
        notes,
        paper_tables(result.tables),
        _runs(stored),
    )


def _suite(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    result = stored.report
    assert isinstance(result, SuiteReport)
    parts, notes = result.parts, result.notes
    drawn = paper_tables(result.tables, run_places(stored))
    if printed := designs.first_table(designs.benchmark_name(stored.kind)):
        own = html.link("The paper's own tables", PaperTableAddress(printed).href)
        drawn += Markup('<p class="note">{}</p>').format(own)
    drawn += figures.plots(result.plots)
    if notes:
        inside = Markup().join(map(warning, notes))
        gist = plural(len(notes), "sentence")
        drawn += html.fold("Notes", inside, gist=gist, id="x-notes", opened=len(notes) < 3)
    drawn += _beside(page, event, stored)
    if parts:
        doors = run_places(stored)
        inside = Markup().join(figures.table(x, doors) for x in experiments.parts(result))
        drawn += html.fold("Parts", inside, gist=plural(len(parts), "run"), id="x-parts")
    return drawn + _runs(stored)


def run_places(stored: StoredExperiment) -> dict[str, str]:
    """Label of a run → its address; a row of a table with this label opens it."""
    runs = experiment_results.experiment_runs(stored)
    return {
        name: RunAddress(run).href for label, run in runs for name in (label, plain_label(label))
    }


def paper_tables(tables: Sequence[Table], places: dict[str, str] | None = None) -> Markup:
    """Draw the tables of a report, with the paper's rows separated from ours. ``places``: as in ``run_places``."""
    drawn = Markup()
    for value in tables:
        drawn += figures.table(value, places)
        for name in (str(row[0]) for row in value.rows):
            if experiment_groups.is_printed(name):
                cell = Markup('<td class="">{}</td>').format(name)
                drawn = drawn.replace(
                    Markup("<tr>{}").format(cell), Markup('<tr class="x-printed">{}').format(cell)
                )
    return drawn


def _beside(page: Page, event: Event, stored: StoredExperiment) -> Markup:
    others = experiment_results.comparable(page.workspace, stored)
    if not others or not isinstance(stored.report, SuiteReport):
        return Markup()
    other = event.read(ExperimentAddress).beside
    chooser = go_select("Beside another run of this benchmark", "beside", others, other, "none")
    if other not in others:
        return chooser
    differences, pairs = experiment_results.beside(page.workspace, stored.name, other)
    links = html.join_facts_html(
        *(html.link(label, ComparisonAddress(*pair).href) for label, pair in pairs.items())
    )
    report = page.workbench.experiments.store.open(other).report
    theirs = paper_tables(report.tables if isinstance(report, SuiteReport) else ())
    theirs = html.fold(f"The tables of {other}", theirs, id="x-theirs")
    return Markup('{}{}<p class="note">Question by question: {}</p>{}').format(
        chooser, figures.table(differences), links, theirs
    )


def _runs(stored: StoredExperiment) -> Markup:
    lines = [
        [
            html.link(plain_label(label), RunAddress(run).href, "nm"),
            Markup("<small>{}</small>").format(run),
        ]
        for label, run in experiment_results.experiment_runs(stored)
    ]
    if not lines:
        return Markup()
    table = html.copyable_table(html.rows(("Run", "Name"), lines))
    gist = plural(len(lines), "run")
    return html.fold("Every answer", table, gist=gist, id="x-runs-of")


# exports


_BODIES = {
    "sweep": _rank_table,
    "batch": _rank_table,
    "improve": _improvement,
    "tradeoff": _tradeoff,
    "baselines": _baselines,
}
