"""The list of runs: chosen columns, typed filter, groups, running work, and the lost questions of the newest runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.list_columns import find_column
from rallebench.core.numbers import plural
from rallebench.core.run_results import RunSummary
from rallebench.gui import figures, html, jobs, lists, panels
from rallebench.gui.addresses import ComparisonAddress, RunAddress
from rallebench.gui.events import Event, Rows, RowWindow
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes
from rallebench.gui.jobs import progress_words, stop_button
from rallebench.gui.lists import ListState, ListView
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places import _runs_cells as cells
from rallebench.services.jobs import Job
from rallebench.views import run_columns, run_list, run_questions
from rallebench.views.run_columns import RunColumn

NEWEST = 30
"""Number of runs whose steps are read for the bar of lost questions."""
LEGEND = (
    ("lost", "not retrieved"),
    ("wrong", "not in the answer"),
    ("format", "wrong format"),
    ("right", "right"),
)


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The heading of a group in the list, with its rows; ``is_folded``: they are left out."""

    name: str
    rows: Sequence[RunSummary]
    is_folded: bool


def register(page: Page) -> None:
    page.rows("runs", run_rows)
    page.actions("runs", refresh, losses, compare, reads=True)
    page.actions("runs", stop)
    LIST.register(page)


def reading(do: str, **data: str) -> Markup:
    """Draw the status next to the legend during the analysis of lost questions, which starts once it is visible."""
    return Markup(
        '<span class="note" data-lazy{}>reading where questions were lost …</span>'
    ).format(attributes(do=do, **data))


@run_list.reading_once()
def view(page: Page, event: Event) -> Patch:
    """Draw the heading, running work and table. Without a filter in the address, the window's last one applies."""
    state, address = LIST.state(event), ""
    last = event.session.state(ListState)
    if state == ListState() and last != ListState():
        state, address = last, LIST.address(event, last)
    event.session.put(state)
    count = len(run_list.in_bin(page.workspace))
    bar = (
        html.button(f"Bin ({count})", "runs.open_bin", kind="quiet") if count else Markup(),
        html.button("Import predictions", "runs.ask_predictions", kind="quiet"),
        html.button("MLflow", "runs.mlflow", kind="quiet", title="Open all runs in MLflow"),
        html.button("Compare", "runs.compare", title="Tick two or more runs"),
        html.button("New run", "runs.new", kind="primary"),
    )
    parts = (
        Markup('<div class="row"><h1>Runs</h1><span class="gap"></span>{}</div>').format(
            Markup().join(bar)
        ),
        Markup('<div id="runs-toolbar">{}</div>').format(lists.toolbar(LIST, page, state)),
        Markup('<div id="runs-now" data-follow="*" data-do="runs.refresh">{}</div>').format(
            now(page)
        ),
        Markup('<div id="runs-rows">{}</div>').format(table(page, state)),
    )
    more = Markup(" data-form data-problems")
    opened = panels.view("runs/list", "Runs", *parts, kind="wide", more=more)
    return opened | Patch(address=address) if address else opened


def now(page: Page) -> Markup:
    active = page.workbench.jobs.list("run", active=True)
    return Markup().join(
        running(page, job, html.link("Open", RunAddress(job.name).href)) for job in active
    )


def running(page: Page, job: Job, more: str = "") -> Markup:
    """Draw a run in progress: its share done, its score so far, its stop button."""
    row = next((r for r in run_list.rows(page.workspace) if r.name == job.name), None)
    title = run_list.titles(page.workspace, [(job.name, job.identity)]).get(job.name, job.name)
    trouble = page.workbench.models.trouble(row.chain.llms, job.work) if row and row.chain else ""
    words = html.join_facts(progress_words(job) or job.message, so_far(page, job), trouble)
    stop = stop_button(job, "runs.stop", job.name)
    return jobs.running(job, Markup("<b>{}</b>").format(title), words, more, name=title, stop=stop)


def so_far(page: Page, job: Job) -> str:
    """Return the share of right answers of a run in progress; "" before the first answer."""
    with suppress(RalleError):
        if folder := page.workbench.runs.job_folder(job):
            count = run_questions.counts(run_questions.questions(page.workspace, folder))
            right, wrong = count.get("right", 0), count["wrong"]
            return f"{100 * right / (right + wrong):.1f} % right so far" if right + wrong else ""
    return ""


@run_list.reading_once()
def table(page: Page, state: ListState) -> Markup:
    """Draw the windowed list with its heads and the row of means."""
    if not run_list.rows(page.workspace):
        if page.workbench.jobs.list("run", active=True):
            return Markup()
        return html.empty(
            "No run yet. A run asks a chain every question of a dataset and scores the answers.",
            html.button("New run", "runs.new"),
        )
    try:
        rows = LIST.arrange(page, state)
    except UsageError as error:
        return html.problem(error)
    if not rows:
        return html.note("No run fits the filter.")
    marks = tuple((r.name, r.state, r.done, r.title, r.tags, r.note, r.is_reference) for r in rows)
    key = replace(state, mark=str(hash(marks)))
    entries = list_entries(rows, state)
    window = html.window("runs", key, len(entries), "", row=58, label="Runs")
    visible = shown_columns(page, state)
    widths = [cells.width(name, column) for name, column in visible]
    style = (
        f"--rows:{len(entries)};--columns:{' '.join(widths)};--least:{cells.least_width(widths)}px"
    )
    return Markup(
        '<div class="runlist{}" style="{}"><div class="inside">{}{}{}</div></div>{}'
    ).format(
        " chosen" if state.show else "",
        style,
        heads(page, state),
        window,
        means(rows, visible),
        legend(page, rows),
    )


def shown_columns(page: Page, state: ListState) -> list[tuple[str, RunColumn | None]]:
    """Return the names of the visible columns, the title first; None for a column that is only drawn."""
    columns = run_columns.columns(page.workspace)
    visible = [
        (name, find_column(columns, name)) for name in ("name", *LIST.visible_columns(state))
    ]
    return [(name, column) for name, column in visible if column or name in cells.DRAWN]


def heads(page: Page, state: ListState) -> Markup:
    """Draw the heads; a press sorts."""
    drawn = Markup()
    for name, column in shown_columns(page, state):
        label = cells.DRAWN.get(name, "")
        inside = lists.head(LIST, column, state) if column else label
        side = "n" if column and column.is_number else ""
        order = html.NOTHING
        if column:
            order = Markup(' aria-sort="{}"').format(lists.sort_order(state, name))
        drawn += Markup('<span role="columnheader" class="{}" data-column="{}"{}>{}</span>').format(
            side, name, order, inside
        )
    return Markup(
        '<div class="heads" role="table" aria-label="Columns of the runs">'
        '<div class="runrow head" role="row"><span></span>{}<span></span></div></div>'
    ).format(drawn)


def means(rows: Sequence[RunSummary], visible: Sequence[tuple[str, RunColumn | None]]) -> Markup:
    """Draw the row of means over the runs that fit the filter."""
    drawn = Markup()
    for name, column in visible:
        if name == "name":
            readable = sum(not row.problem for row in rows)
            drawn += Markup('<span class="nm">Mean of {}</span>').format(plural(readable, "run"))
            continue
        mean = run_columns.mean_over(rows, column) if column else None
        text = cells.number_text(column, mean) if column and mean is not None else ""
        drawn += Markup('<span class="n" data-column="{}">{}</span>').format(name, text)
    return Markup('<div class="runrow means"><span></span>{}<span></span></div>').format(drawn)


def legend(page: Page, rows: Sequence[RunSummary]) -> Markup:
    drawn = Markup().join(
        Markup('<span><i class="s-{}"></i>{}</span>').format(kind, words) for kind, words in LEGEND
    )
    if unread(page, rows):
        drawn += reading("runs.losses")
    return Markup('<div class="legend">{}</div>').format(drawn)


def list_entries(rows: Sequence[RunSummary], state: ListState) -> Sequence[RunSummary | RunGroup]:
    """Return the rows, below the headings of their groups if there are groups; without groups, the runs of an improvement
    below a heading of their own, folded until it is pressed.
    """
    if state.group not in GROUPS:
        return _fold_contenders(rows, state.folded_groups)
    groups: dict[str, list[RunSummary]] = {}
    for row in rows:
        groups.setdefault(GROUPS[state.group](row), []).append(row)
    entries: list[RunSummary | RunGroup] = []
    folded = state.folded_groups
    for name, members in groups.items():
        entries.append(RunGroup(name, members, name in folded))
        entries += () if name in folded else members
    return entries


def _fold_contenders(
    rows: Sequence[RunSummary], pressed: Set[str]
) -> Sequence[RunSummary | RunGroup]:
    parts: dict[str, list[RunSummary]] = {}
    for row in rows:
        if row.is_contender:
            parts.setdefault(row.experiment, []).append(row)
    entries: list[RunSummary | RunGroup] = []
    for row in rows:
        if not row.is_contender:
            entries.append(row)
        elif members := parts.pop(row.experiment, []):
            is_open = row.experiment in pressed
            entries.append(RunGroup(row.experiment, members, not is_open))
            entries += members if is_open else ()
    return entries


def unread(page: Page, rows: Sequence[RunSummary]) -> list[str]:
    """Return the newest finished runs whose lost questions have not been analysed yet."""
    large = run_questions.LARGE
    ended = [row for row in rows[:NEWEST] if row.state == "done" and 0 < row.total <= large]
    runs = {row.name: page.workbench.runs.open(row.name) for row in ended if not row.problem}
    known = partial(run_questions.stages_known, page.workspace)
    return [name for name, run in runs.items() if not known(run)]


def losses(page: Page, event: Event) -> Iterator[Patch]:
    """Analyse the lost questions of the newest runs, one run after another."""
    for name in unread(page, _shown_rows(page, event)):
        run_questions.read_stages(page.workspace, page.workbench.runs.open(name))
        yield Patch(event=PageEvent("rb-rows", list="runs"))
    yield Patch({"runs-rows": table(page, LIST.state(event))})


def _shown_rows(page: Page, event: Event) -> Sequence[RunSummary]:
    with suppress(UsageError):
        return LIST.arrange(page, LIST.state(event))
    return ()


@run_list.reading_once()
def run_rows(page: Page, request: RowWindow) -> Rows:
    state = request.read(ListState)
    visible = shown_columns(page, state)
    arranged = LIST.arrange(page, state)
    ends = figures.needs_ends(row.mean for row in arranged)
    entries = list_entries(arranged, state)[request.part]
    return Rows(
        [
            (f"group {entry.name}", group_row(page, entry, visible))
            if isinstance(entry, RunGroup)
            else (entry.name, run_row(page, entry, visible, ends))
            for entry in entries
        ]
    )


def group_row(
    page: Page, group: RunGroup, visible: Sequence[tuple[str, RunColumn | None]]
) -> Markup:
    """Draw the heading of a group with its means; a press folds it."""
    drawn = Markup()
    for name, column in visible[1:]:
        mean = run_columns.mean_over(group.rows, column) if column else None
        text = cells.number_text(column, mean) if column and mean is not None else ""
        drawn += Markup('<span class="n" data-column="{}">{}</span>').format(name, text)
    return Markup(
        '<div class="runrow group"><span></span><span><button type="button" class="fold-group" aria-expanded="{}"{}>'
        '<i aria-hidden="true">{}</i> {}</button><small>{}</small></span>{}<span></span></div>'
    ).format(
        str(not group.is_folded).lower(),
        attributes(do=LIST.do("fold"), fold=group.name),
        "▸" if group.is_folded else "▾",
        group.name or "none",
        plural(len(group.rows), "run"),
        drawn,
    )


def run_row(
    page: Page,
    row: RunSummary,
    visible: Sequence[tuple[str, RunColumn | None]],
    ends: bool,
) -> Markup:
    place = RunAddress(row.name).href
    if row.problem:
        gone = html.menu(delete_button(row), label=f"More for {row.title}")
        return Markup(
            '<div class="runrow broken"><span></span><span><b class="nm">{}</b>'
            '<small class="bad" title="{}">{}</small></span><span>{}</span></div>'
        ).format(row.name, row.problem, row.problem, gone)
    tick = Markup('<input type="checkbox" value="{}" aria-label="Choose {} to compare">').format(
        row.name, row.title
    )
    drawn = Markup().join(cells.cell(page, row, name, column, ends) for name, column in visible)
    menu = run_menu(row, html.link("Open", place, ""))
    return Markup('<div class="runrow" data-href="{}">{}{}<span>{}</span></div>').format(
        place, tick, drawn, menu
    )


def run_menu(row: RunSummary, first: str = "") -> Markup:
    """Draw the actions on a run; ``first``: entries to put before them."""
    return html.menu(
        first,
        html.button("Rename", "runs.ask_title", id=row.name),
        html.button("Tags and note", "runs.ask_marks", id=row.name),
        html.button("Export", "runs.ask_form", run=row.name),
        html.button("Open in MLflow", "runs.mlflow", run=row.name)
        if row.state == "done"
        else Markup(),
        delete_button(row),
        label=f"More for {row.title}",
    )


def delete_button(row: RunSummary) -> Markup:
    ask = f"Move the run {row.title} into the bin? It can be brought back."
    return html.button(
        "Delete", "runs.delete", kind="danger", id=row.name, confirm=ask, confirm_verb="Delete"
    )


# actions


@run_list.reading_once()
def draw(page: Page, event: Event, state: ListState) -> Mapping[str, str]:
    """Draw the rows for a state, which the window keeps."""
    event.session.put(state)
    return {"runs-rows": table(page, state)}


@run_list.reading_once()
def refresh(page: Page, event: Event) -> Patch:
    """Redraw the list after a change of the runs."""
    return Patch({"runs-now": now(page), "runs-rows": table(page, LIST.state(event))})


def stop(page: Page, event: Event) -> Patch:
    """Stop a run; the answers so far are scored."""
    page.workbench.runs.stop(event.text("id"))
    return Patch(
        {"runs-now": now(page)}, say="Stopping after this batch; its answers so far are scored."
    )


def compare(page: Page, event: Event) -> Patch:
    ticked = set(filter(None, event.text("pick").split("/")))
    names = [row.name for row in run_list.rows(page.workspace) if row.name in ticked]
    if len(names) < 2:
        raise UsageError("Tick two or more runs of the list, then press Compare.")
    names.reverse()  # the oldest is the baseline, unless one of them is starred
    starred = {row.name for row in run_list.rows(page.workspace) if row.is_reference}
    names.sort(key=lambda name: name not in starred)
    compared = (
        ComparisonAddress(names[0], names[1])
        if len(names) == 2
        else ComparisonAddress(r=tuple(names))
    )
    return Patch(go=compared.href)


GROUPS: Mapping[str, Callable[[RunSummary], str]] = {
    "experiment": lambda row: row.experiment,
    "dataset": lambda row: row.dataset,
    "chain": lambda row: row.chain.name if row.chain else row.workflow,
}
"""Column to group by → the group of a run."""
LIST: ListView[RunSummary] = ListView(
    "runs",
    "runs/list",
    lambda page: run_list.rows(page.workspace),
    lambda page: run_columns.columns(page.workspace),
    draw,
    initial=cells.INITIAL,
    more=cells.DRAWN,
    groups=tuple(GROUPS),
    hint="Filter, as in em<50 chain:starter -tag:night",
)
