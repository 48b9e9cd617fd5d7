"""The list of runs: what each scored, where it lost its questions, what is running now, and the bin."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from rallebench.core.errors import RalleError, UsageError
from rallebench.gui.form import select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import (
    attributes,
    button,
    e,
    empty,
    interval_bar,
    link,
    menu,
    percent,
    waterfall_bar,
    window,
)
from rallebench.gui.jobs import left, progress_of, share_of
from rallebench.gui.places._steps import seconds
from rallebench.render import numbers
from rallebench.services import run_list, run_views
from rallebench.services.jobs import Job
from rallebench.services.run_list import RunRow
from rallebench.services.run_questions import (
    LARGE,
    lost_parts,
    questions,
    read_stages,
    stages_known,
)
from rallebench.services.run_views import RunFolder

STATES = {
    "running": "running",
    "scoring": "being scored",
    "stopped": "stopped",
    "failed": "failed",
    "interrupted": "interrupted",
    "done": "",
}
DATASET = ' class="short" aria-label="Dataset" data-do="runs.filter" data-on="change"'
NEWEST = 30
"""Runs of the list whose steps are read to draw where questions were lost."""

LEGEND = (
    ("lost", "not retrieved"),
    ("wrong", "not in the answer"),
    ("format", "wrong format"),
    ("right", "right"),
)


def register(page: Page) -> None:
    """Add the list."""
    page.view("runs/list", open_list)
    page.rows("runs", run_rows)
    for name, handler in (
        ("filter", refresh),
        ("refresh", refresh),
        ("losses", losses),
        ("rename", ask_title),
        ("rename-to", rename),
        ("delete", delete),
        ("bin", open_bin),
        ("restore", restore),
        ("empty-bin", empty_bin),
        ("stop", stop),
        ("compare", compare),
    ):
        page.action(f"runs.{name}", handler)


def open_list(page: Page, event: Event) -> Patch:
    """The list; ``new=1`` in the address opens the dialog of a new run."""
    from rallebench.gui.places._runs_new import dialog

    patch: Patch = {"#v-runs-list": view(page, event), "title": "Runs"}
    if event.query.get("new"):
        patch |= {"dialog": dialog(page, event), "address": "#/runs/list"}
    return patch


def chosen(event: Event) -> dict[str, str]:
    """The filter of this window."""
    filters: dict[str, str] = event.session.setdefault("runs", {"words": "", "dataset": ""})
    return filters


def view(page: Page, event: Event) -> str:
    """Heading, what is running, the table."""
    listed = run_list.rows(page.workbench)
    filters = chosen(event)
    datasets = [("", "All datasets"), *sorted({row.dataset for row in listed if row.dataset})]
    bin_count = len(run_list.in_bin(page.workbench))
    bin_button = button(f"Bin ({bin_count})", "runs.bin", kind="quiet") if bin_count else ""
    bar = (
        f'<div class="row"><h1>Runs</h1><span class="gap"></span><input name="words" class="short" value="{e(filters["words"])}" placeholder="Filter" aria-label="Filter" data-filter data-do="runs.filter" data-on="input" id="runs-words">'
        f"{select('dataset', datasets, filters['dataset'], more=DATASET)}{bin_button}{button('Import predictions', 'runs.import', kind='quiet')}{button('MLflow', 'runs.mlflow', kind='quiet', title='Open all runs in MLflow')}"
        f"{button('Compare', 'runs.compare', title='Tick two or more runs')}{button('New run', 'runs.new', kind='primary')}</div>"
    )
    return f'<div class="wrap-page wide" data-form data-problems>{bar}<div id="runs-now" data-follow="*" data-do="runs.refresh">{now(page)}</div><div id="runs-rows">{table(page, event)}</div></div>'


def now(page: Page) -> str:
    """The runs that are running in this program."""
    return "".join(
        running(page, job, link("Open", f"#/runs/run?id={quote(job.name)}", "link"))
        for job in page.workbench.jobs.list("run", active=True)
    )


def running(page: Page, job: Job, more: str = "") -> str:
    """A run that goes on: how far it is, its score so far, and its stop."""
    share, progress = share_of(job), progress_of(job)
    value = "" if share is None else f' value="{100 * share:.0f}"'
    words = [job.message]
    if progress and progress.total and share is not None:
        words = [f"{progress.done:,} of {progress.total:,}", left(job, share)]
    title = next((r.title for r in run_list.rows(page.workbench) if r.name == job.name), job.name)
    stop = (
        "<small>stopping</small>"
        if job.stopping
        else button("Stop", "runs.stop", kind="quiet", id=job.name)
    )
    return f'<div class="running"><b>{e(title)}</b><progress max="100"{value} aria-label="Progress of {e(title)}"></progress><span class="num">{e(" · ".join(filter(None, words)))}</span><span class="gap"></span>{more}{stop}</div>'


def table(page: Page, event: Event) -> str:
    """The list itself, windowed."""
    filters, listed = chosen(event), run_list.rows(page.workbench)
    shown = run_list.filtered(listed, filters["words"], filters["dataset"])
    if not listed:
        return empty(
            "No run yet. A run asks a chain every question of a dataset and scores the answers.",
            button("New run", "runs.new"),
        )
    if not shown:
        return '<p class="note">No run fits the filter.</p>'
    legend = "".join(f'<span><i class="s-{kind}"></i>{words}</span>' for kind, words in LEGEND)
    heads = '<div class="runrow head"><span></span><span>Run</span><span>Dataset</span><span class="n">Score</span><span></span><span class="n">R-precision</span><span>Where questions were lost</span><span class="n">A question</span><span class="n">Price</span><span></span></div>'
    marks = "|".join(f"{row.name}{row.state}{row.done}{row.title}" for row in shown)
    key = {**filters, "mark": hash(marks)}
    lazy = (
        '<span class="note" data-lazy data-do="runs.losses">reading where questions were lost …</span>'
        if unread(page, shown)
        else ""
    )
    return f'{heads}<div class="runlist" style="--rows:{len(shown)}">{window("runs", key, len(shown), "", row=58, label="Runs")}</div><div class="legend">{legend}{lazy}</div>'


def unread(page: Page, shown: Sequence[RunRow]) -> list[RunFolder]:
    """The newest finished runs of which it is not known yet where they lost their questions."""
    ended = [row for row in shown[:NEWEST] if row.state == "done" and 0 < row.total <= LARGE]
    runs = (page.workbench.runs.open(row.name) for row in ended if not row.problem)
    return [run for run in runs if not stages_known(page.workbench, run)]


def losses(page: Page, event: Event) -> Iterator[Patch]:
    """Read where the questions of the newest runs were lost, a run after the other."""
    shown = run_list.filtered(run_list.rows(page.workbench), *chosen(event).values())
    for run in unread(page, shown):
        read_stages(page.workbench, run)
        yield {"event": {"name": "rb-rows", "list": "runs"}}
    yield {"#runs-rows": table(page, event)}


def run_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """Rows of the list."""
    shown = run_list.filtered(run_list.rows(page.workbench), key["words"], key["dataset"])
    return [(row.name, run_row(page, row)) for row in shown[start : start + count]]


def run_row(page: Page, row: RunRow) -> str:
    """One run."""
    address = f"#/runs/run?id={e(row.name)}"
    tick = f'<input type="checkbox" value="{e(row.name)}" aria-label="Choose {e(row.title)} to compare">'
    if row.problem:
        gone = menu(delete_button(row), label=f"More for {row.name}")
        return f'<div class="runrow broken"><span></span><span><b class="nm">{e(row.name)}</b><small class="bad" title="{e(row.problem)}">{e(row.problem)}</small></span><span>{gone}</span></div>'
    state = STATES.get(row.state, row.state)
    about = " · ".join(
        filter(
            None,
            [
                when(row.created),
                row.workflow if row.workflow != "chain" else "",
                state,
                f"{row.errors} failed" if row.errors else "",
            ],
        )
    )
    more = menu(
        f'<a href="{address}">Open</a>',
        button("Rename", "runs.rename", id=row.name),
        delete_button(row),
        label=f"More for {row.title}",
    )
    took = f'<span class="num">{seconds(row.seconds)}</span>' if row.seconds is not None else "–"
    counted = (
        f"{row.done:,} of {row.total:,}" if row.done != row.total else f"{row.total:,} questions"
    )
    unpriced = run_views.is_unpriced(page.workbench, row.chain.llms if row.chain else ())
    price = numbers.text(row.usd, "usd") if row.usd else "unknown" if unpriced else "none"
    return (
        f'<div class="runrow" data-href="{address}">{tick}<span><a class="nm" href="{address}" title="{e(row.name)}">{e(row.title)}</a><small>{e(about)}</small></span>'
        f'<span>{e(row.dataset)}<small>{counted}</small></span><span class="n">{percent(row.mean) if row.mean else "–"}<small>{e(row.metric.upper() if row.metric in ("em", "f1") else row.metric)}</small></span>'
        f'<span>{interval_bar(row.mean)}</span><span class="n">{percent(row.precision)}</span><span>{lost(page, row)}</span><span class="n">{took}</span><span class="n">{price}</span><span>{more}</span></div>'
    )


def delete_button(row: RunRow) -> str:
    """Into the bin, after a question."""
    return button(
        "Delete",
        "runs.delete",
        kind="danger",
        id=row.name,
        confirm=f"Move the run {row.title} into the bin? It can be brought back.",
        confirm_verb="Delete",
    )


def lost(page: Page, row: RunRow) -> str:
    """The bar of a run; "" where its answers cannot be read."""
    try:
        run = page.workbench.runs.open(row.name)
        return waterfall_bar(
            lost_parts(questions(page.workbench, run)),
            address=f"#/runs/run?id={row.name}&only={{verdict}}",
        )
    except RalleError:
        return ""


def when(created: str) -> str:
    """A time as people say it: "today 14:02", "23 Nov 14:02"."""
    try:
        moment = datetime.fromisoformat(created).astimezone()
    except ValueError:
        return created
    if moment.date() == datetime.fromtimestamp(time.time()).date():
        return f"today {moment:%H:%M}"
    return (
        f"{moment.day} {moment:%b %H:%M}"
        if moment.year == datetime.now().year
        else f"{moment:%d %b %Y}"
    )


# actions


def refresh(page: Page, event: Event) -> Patch:
    """The list by another filter, or after something changed."""
    filters = chosen(event)
    for name in ("words", "dataset"):
        filters[name] = event.text(name, filters[name])
    return {"#runs-now": now(page), "#runs-rows": table(page, event)}


def ask_title(page: Page, event: Event) -> Patch:
    """Which title a run shall have."""
    row = run_list.row_of(page.workbench, event.text("id"))
    field = f'<label class="field"><span>Name</span><input name="as" value="{e(row.title)}" data-on="enter" data-do="runs.rename-to"{attributes(id=row.name)} autofocus></label>'
    return {
        "dialog": f'<h2>Rename the run</h2><div data-form>{field}<p class="note">Its folder stays {e(row.name)}: experiments and MLflow know it by that name. Leave it empty to return to the name made from what differs.</p><div class="buttons">{button("Cancel", "", close="1")}{button("Rename", "runs.rename-to", kind="primary", id=row.name)}</div></div>'
    }


def rename(page: Page, event: Event) -> Patch:
    """Give a run a title."""
    run_list.rename(page.workbench, event.text("id"), event.text("as"))
    return {"dialog": "", "#runs-rows": table(page, event)}


def delete(page: Page, event: Event) -> Patch:
    """Move a run into the bin."""
    run_list.delete(page.workbench, event.text("id"))
    return {
        "#v-runs-list": view(page, event),
        "say": "The run is in the bin.",
        "go": "#/runs/list",
        "event": {"name": "rb-gone", "run": event.text("id")},
    }


def open_bin(page: Page, event: Event) -> Patch:
    """What is in the bin."""
    lines = "".join(
        f'<tr><td>{e(name)}</td><td class="n">{button("Bring back", "runs.restore", id=name)}</td></tr>'
        for name in run_list.in_bin(page.workbench)
    )
    gone = button(
        "Delete for good",
        "runs.empty-bin",
        kind="danger",
        confirm="Delete all runs in the bin for good? They cannot be brought back.",
        confirm_verb="Delete for good",
    )
    return {
        "drawer": f'<div class="dh"><h2>Bin</h2>{button("Close", "", kind="quiet", close="1")}</div><table class="t"><tbody>{lines}</tbody></table><div class="row">{gone if lines else ""}</div>{"" if lines else empty("The bin is empty.")}'
    }


def restore(page: Page, event: Event) -> Patch:
    """Bring a run back."""
    run_list.restore(page.workbench, event.text("id"))
    return {"#v-runs-list": view(page, event), **open_bin(page, event)}


def empty_bin(page: Page, event: Event) -> Patch:
    """Delete what is in the bin."""
    count = run_list.empty_bin(page.workbench)
    return {"#v-runs-list": view(page, event), "drawer": "", "say": f"{count} runs are deleted."}


def stop(page: Page, event: Event) -> Patch:
    """Stop a run; what it has answered is scored."""
    page.workbench.runs.stop(event.text("id"))
    return {"say": "Stopping after this batch; what is answered is scored.", "#runs-now": now(page)}


def compare(page: Page, event: Event) -> Patch:
    """Compare the ticked runs."""
    ticked = set(filter(None, event.text("pick").split("/")))
    names = [row.name for row in run_list.rows(page.workbench) if row.name in ticked]
    if len(names) < 2:
        raise UsageError("Tick two or more runs of the list, then press Compare.")
    if len(names) == 2:  # the older one is the base
        names.reverse()
        return {"go": f"#/runs/compare?a={names[0]}&b={names[1]}"}
    return {"go": "#/runs/compare?" + "&".join(f"r{i}={name}" for i, name in enumerate(names))}
