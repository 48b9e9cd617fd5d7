"""One experiment: who wins and how sure that is, plots, tables beside the paper's, files, and what may be done next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.tables import Figure, Table
from rallebench.gui import figures, form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import attributes, e, warning
from rallebench.gui.jobs import stop_button
from rallebench.gui.places import _experiment_files, _published, _runs_list
from rallebench.render import experiments
from rallebench.render.numbers import text
from rallebench.services import experiment_groups, experiment_jobs, experiment_results
from rallebench.services.experiment_groups import plain_label
from rallebench.services.experiment_results import AXES, Ranking
from rallebench.services.experiments import StoredExperiment

EXPORTS = (("CSV", "csv"), ("LaTeX", "tex"), ("HTML report", "html"), ("JSON", "json"))


def register(page: Page) -> None:
    """Add this view."""
    page.view("experiments/one", open_one)


def address(name: str) -> str:
    """The address of an experiment."""
    return html.address("experiments/one", id=name)


def use_in_build(run: str, label: str, kind: str = "link") -> str:
    """A link that opens a run's chain in Build."""
    return html.link(label, html.address("build/one", run=run), kind)


def compare(label: str, a: str, b: str) -> str:
    """A link that compares two runs."""
    return html.link(label, html.address("runs/compare", a=a, b=b))


def open_one(page: Page, event: Event) -> Patch:
    """Everything about it. ``by``: the metric that ranks; ``beside``: another experiment; ``x``, ``y``: axes of a trade-off."""
    name, store = event.query.get("id", ""), page.workbench.experiments.store
    if not store.exists(name):
        say = f"There is no experiment {name}; these are the experiments."
        return {"go": "#/experiments/list", "say": say}
    stored, group = store.open(name), experiment_groups.group(page.workbench, name)
    title, about = group.name, html.dotted(group.title, group.about)
    if group.automatic:
        title, about = group.title, html.dotted(group.about, name)
    follow = ""
    if stored.report is None:
        body = unfinished(page, stored)
        follow = attributes(follow="*", do="open", view="experiments/one")
    else:
        body = _BODIES.get(stored.kind, _suite)(page, event, stored)
    buttons = _buttons(page, stored)
    crumb = html.crumb("Experiments", "#/experiments/list", title, about, buttons=buttons)
    parts, more = (crumb, body, _experiment_files.draw(page, stored)), f' data-on="none"{follow}'
    return html.view("experiments/one", title, *parts, kind="wide x-one", more=more)


def _buttons(page: Page, stored: StoredExperiment) -> str:
    name = stored.name
    if stored.report is None:
        job = experiment_jobs.newest(page.workbench, name)
        if job is not None and not job.done:
            return html.state("running") + stop_button(job, kind="")
        return html.button("Continue", "experiments.resume", kind="primary", id=name)
    use = ""
    if variants := stored.report.get("variants"):
        use = use_in_build(variants[0]["run"], "Use the winner in Build", "button primary")
    export = "experiments.export"
    saves = [html.button(f"Save as {x}", export, id=name, suffix=y) for x, y in EXPORTS]
    saves.append(html.button("Send to MLflow", "experiments.to_mlflow", id=name))
    again = html.button("Run again with changes", "experiments.again", id=name)
    return again + use + html.menu(*saves, label="Export")


def unfinished(page: Page, stored: StoredExperiment) -> str:
    """What was begun, and why it has not ended."""
    job, drawn = experiment_jobs.newest(page.workbench, stored.name), ""
    if job is None or job.done:
        drawn = html.problem(job and job.error)
        drawn += say(
            "It has not ended. Continue: what was answered is kept and is not asked again."
        )
    lines = [
        [e(plain_label(p.label)), e(p.state), f"{p.done:,}", f"{p.total:,}" if p.total else "–"]
        for p in (experiment_jobs.parts(job) if job else ())
    ]
    return drawn + (html.rows(("Run", "State", ">Done", ">Of"), lines) if lines else "")


def say(sentence: str) -> str:
    """The verdict on an experiment."""
    return f'<p class="say">{e(sentence)}</p>'


def warnings_of(failed: Mapping[str, Any]) -> str:
    """What failed, and why."""
    return "".join(warning(f"{plain_label(label)}: {why}") for label, why in failed.items())


def go_select(title: str, key: str, options: Sequence[Any], chosen: str, blank: str = "") -> str:
    """A choice that is part of the address."""
    return form.chooser(title, key, options, chosen, blank=blank, more=f" data-go={key}")


# rankings


def _ranked(page: Page, event: Event, stored: StoredExperiment) -> str:
    value = experiment_results.ranking(page.workbench, stored, event.query.get("by", ""))
    document, chooser = value.document, ""
    warned = "".join(map(warning, document["warnings"]))
    if stored.kind == "sweep" and len(value.metrics) > 1:
        options = [(name, experiment_groups.label_of(name)) for name in value.metrics]
        field = go_select("Decided by", "by", options, document["metric"] or "")
        chooser = f'<div class="row x-by">{field}</div>'
    return (
        f"{say(experiment_results.verdict(value))}{warned}{warnings_of(document['failed'])}{chooser}{ranking(value)}"
        f"{_published.plots(experiment_results.figures(value))}{_all_metrics(value)}"
    )


def ranking(value: Ranking) -> str:
    """The variants, best first, each with its paired difference to the best and Holm's p."""
    variants = value.document["variants"]
    name = value.document["metric"] or next(iter(value.metrics), "")
    share = experiment_groups.is_share(name)
    lines = []
    for i, row in enumerate(variants):
        run, mean = row["run"], row["metrics"].get(name)
        seconds = (value.reports[run].get("metrics", {}).get("seconds") or {}).get("value")
        line = [
            f"<small>{i + 1}</small>",
            html.link(plain_label(row["variant"]), _runs_list.address(run), "nm"),
            figures.percent(mean, share=share) if mean else "–",
            figures.interval_bar(mean) if mean and share else "",
        ]
        if i:
            delta = {"value": row["difference"], "low": row["low"], "high": row["high"], "n": 0}
            gap = figures.gap(delta) if share else text(row["difference"], "delta")
            line += [gap, text(row["p_corrected"], "p")]
        else:
            line += ["best", ""]
        line += [
            "–" if seconds is None else f"{seconds:.2f}",
            f"{mean['n']:,}" if mean else "–",
            compare("compare", variants[0]["run"], run) if i else use_in_build(run, "use in Build"),
        ]
        lines.append(line)
    label = experiment_groups.label_of(name)
    deltas = (">To the best", ">p, corrected", ">s a question", ">Questions", "")
    table = html.rows(("", "Variant", f">{label}", "", *deltas), lines)
    note = "Differences are paired, question by question; p is corrected by Holm, the intervals hold together at 95 % (Bonferroni)."
    return f'<div class="wide">{table}</div>{html.note(note if len(lines) > 2 else "")}'


def _all_metrics(value: Ranking) -> str:
    whole = experiment_results.ranking_table(value)
    rows = tuple((plain_label(str(row[0])), *row[1:-3]) for row in whole.rows)
    short = Table("", (whole.columns[0], *whole.columns[1:-3]), rows)
    gist = f"{len(value.metrics)} metrics"
    return html.fold("Every metric", figures.table(short), gist=gist, id="x-metrics")


# other kinds


def _tradeoff(page: Page, event: Event, stored: StoredExperiment) -> str:
    value = page.workbench.experiments.open_tradeoff(stored.name)
    across, up = event.query.get("x", ""), event.query.get("y", "")
    across = across if across in AXES else "single_ms"
    if up not in AXES:
        up = "recall" if any(p.recall is not None for p in value.points) else "Rprec"
    axes = list(AXES.items())
    choosers = go_select("Across", "x", axes, across) + go_select("Up", "y", axes, up)
    failed = {p.label: p.error for p in value.points if p.error}
    gold = max((p.n_gold for p in value.points), default=0)
    note = f"{value.n:,} questions of {value.dataset}, {gold:,} with gold pages, k {value.k}."
    if any(p.recall is None and not p.error for p in value.points):
        note += " Recall is told of vector indexes that have an exact index over the same passages beside them."
    table = figures.table(experiment_results.tradeoff_table(value.points))
    figure = experiment_results.tradeoff_figure(value.points, across, up)
    return (
        f'{say(_best_point(page, stored))}{warnings_of(failed)}<div class="wide">{table}</div>{html.note(note)}'
        f'<div class="row x-by">{choosers}</div>{_published.plots([figure])}'
    )


def _best_point(page: Page, stored: StoredExperiment) -> str:
    group = experiment_groups.group(page.workbench, stored.name)
    if not group.winner:
        return "No index could be ranked."
    assert group.mean is not None
    more = f"; it is {group.beside}" if group.beside else ""
    return f"{group.winner} has {experiment_groups.label_of(group.metric)} {100 * group.mean['value']:.1f} %{more}."


def _baselines(page: Page, event: Event, stored: StoredExperiment) -> str:
    document = stored.report or {}
    run = html.link(document["run"], _runs_list.address(document["run"]))
    table = figures.table(experiment_results.baseline_table(document))
    return f'<p class="say">The run {run} between its baselines.</p>{warnings_of(document["failed"])}{table}{_runs(stored)}'


def _suite(page: Page, event: Event, stored: StoredExperiment) -> str:
    document = stored.report or {}
    parts, notes = document.get("parts", ()), document.get("notes", ())
    drawn = paper_tables(document)
    if printed := _published.FIRST_TABLES.get(stored.kind.partition("-")[0]):
        own = html.link("The paper's own tables", _published.address(printed))
        drawn += f'<p class="note">{own}</p>'
    drawn += _published.plots([Figure(**value) for value in document.get("plots", ())])
    if notes:
        inside = "".join(map(warning, notes))
        gist = f"{len(notes)} sentences"
        drawn += html.fold("Notes", inside, gist=gist, id="x-notes", opened=len(notes) < 3)
    drawn += _beside(page, event, stored)
    if parts:
        inside = "".join(map(figures.table, experiments.parts(document)))
        drawn += html.fold("Parts", inside, gist=f"{len(parts)} runs", id="x-parts")
    return drawn + _runs(stored)


def paper_tables(document: Mapping[str, Any]) -> str:
    """The tables of a report, each drawn by ``paper_table``."""
    return "".join(map(paper_table, _experiment_files.tables_of(document)))


def paper_table(value: Table) -> str:
    """A table in which the paper's rows are told from ours."""
    drawn = figures.table(value)
    for row in value.rows:
        if isinstance(row[0], str) and experiment_groups.is_printed(row[0]):
            drawn = drawn.replace(
                f'<tr><td class="">{e(row[0])}</td>',
                f'<tr class="x-printed"><td class="">{e(row[0])}</td>',
            )
    return drawn


def _beside(page: Page, event: Event, stored: StoredExperiment) -> str:
    others = experiment_results.comparable(page.workbench, stored)
    if not others or "parts" not in (stored.report or {}):
        return ""
    other = event.query.get("beside", "")
    field = go_select("Beside another run of this benchmark", "beside", others, other, "none")
    chooser = f'<div class="row x-by">{field}</div>'
    if other not in others:
        return chooser
    differences, pairs = experiment_results.beside(page.workbench, stored.name, other)
    links = html.dotted(*(compare(label, a, b) for label, (a, b) in pairs.items()))
    theirs = paper_tables(page.workbench.experiments.store.open(other).report or {})
    theirs = html.fold(f"The tables of {other}", theirs, id="x-theirs")
    return f'{chooser}{figures.table(differences)}<p class="note">Question by question: {links}</p>{theirs}'


def _runs(stored: StoredExperiment) -> str:
    lines = [
        [html.link(plain_label(label), _runs_list.address(run), "nm"), f"<small>{e(run)}</small>"]
        for label, run in experiment_results.runs_of(stored)
    ]
    if not lines:
        return ""
    table, gist = html.rows(("Run", "Name"), lines), f"{len(lines)} runs"
    return html.fold("Every answer", table, gist=gist, id="x-runs-of")


_BODIES = {"sweep": _ranked, "batch": _ranked, "tradeoff": _tradeoff, "baselines": _baselines}
