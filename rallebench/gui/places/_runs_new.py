"""The dialog of a new run: what is asked, by which metrics, what it will take."""

from __future__ import annotations

from rallebench.core.errors import RalleError
from rallebench.gui import form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._bench import bench_of
from rallebench.gui.places._runs_more import chosen_metrics, metric_fields
from rallebench.render import numbers
from rallebench.services import run_list
from rallebench.services.chain_versions import is_saved
from rallebench.services.runs import BenchmarkOptions, PreparedRun, of_chain

SAMPLES = (
    ("", "all questions"),
    ("50", "the first 50"),
    ("100", "the first 100"),
    ("200", "the first 200"),
)


def register(page: Page) -> None:
    """Add the dialog."""
    page.actions("runs", new, check, start)


def new(page: Page, event: Event) -> Patch:
    """The dialog."""
    bench, space = bench_of(page, event), page.workbench.workspace
    change = form.on_change("runs.check")
    name, chains = bench.chain.name, [(name, name) for name in space.chain_paths()]
    if not is_saved(page.workbench, bench.chain):
        chains.insert(0, ("", f"{name}, as edited in Build"))
        name = ""
    fields = form.fields(
        form.chooser("Chain", "chain", chains, name, more=change),
        form.chooser("Dataset", "dataset", list(space.dataset_paths()), bench.dataset, more=change),
        form.chooser("Questions", "limit", SAMPLES, "", more=change),
    )
    kept = "as in the chain"
    more = form.fields(
        form.chooser("Model", "llm", list(space.llms()), "", blank=kept, more=change),
        form.chooser("Index", "retriever", list(space.retrievers()), "", blank=kept, more=change),
        form.text("name", "Name", hint="made from chain, dataset and time"),
        form.number("batch_size", "Questions at once", 20, 1),
        form.number("max_errors", "Stop after failures", low=0, hint="never"),
        form.number("seed", "Seed", 0),
        form.check("track", "Log to MLflow", True),
    )
    more += metric_fields(page, "the usual ones of the dataset")
    more, gist = f'<div class="stack">{more}</div>', "model, metrics, name"
    settings = html.fold("More settings", more, gist=gist, id="new-more")
    box = f'<div class="box" id="new-plan" data-problems>{plan(page, event)}</div>'
    run = html.button("Run", "runs.start", kind="primary")
    return {"dialog": html.dialog("New run", fields + settings + box, run)}


def benchmark(page: Page, event: Event) -> PreparedRun:
    """The benchmark that the fields describe; nothing is loaded. Raises UsageError."""
    bench = bench_of(page, event)
    name = event.text("chain")
    chain = page.workbench.workspace.chain(name) if name else bench.chain
    options = BenchmarkOptions(
        dataset=event.text("dataset") or bench.dataset,
        limit=event.whole("limit", "Questions"),
        batch_size=event.whole("batch_size", "Questions at once"),
        metrics=tuple(chosen_metrics(event)) or None,
        max_errors=event.whole("max_errors", "Stop after failures"),
        seed=event.whole("seed", "Seed") or 0,
        track=event.flag("track") if "dataset" in event.data else True,
        llm=event.text("llm"),
        retriever=event.text("retriever"),
    )
    return of_chain(page.workbench, chain, options, run=event.text("name"))


def plan(page: Page, event: Event) -> str:
    """Questions, models, minutes, and what is wrong, before anything starts."""
    try:
        value = benchmark(page, event)
    except RalleError as error:
        return html.problem(error)
    request, count = value.request, len(value.request.examples)
    names = " → ".join([*request.flow.retrievers, *request.flow.llms])
    minutes, rows = "time unknown: no run of this model yet", run_list.rows(page.workbench)
    of_model = (row for row in rows if row.chain and row.chain.llms == request.flow.llms)
    if seconds := next((row.seconds for row in of_model if row.seconds), None):
        took = numbers.text(seconds * count, "duration")
        minutes = f"about {took}, as the last run of this model"
    notes = "".join(map(html.warning, value.warnings))
    notes = notes or html.note("All gold pages are in the index.")
    return f"<b>{count:,} questions</b> of {e(html.dotted(request.dataset.name, names, minutes))}{notes}"


def check(page: Page, event: Event) -> Patch:
    """What the run will take, by the fields as they are."""
    return {"#new-plan": plan(page, event)}


def start(page: Page, event: Event) -> Patch:
    """Start the run as a job and show it."""
    value = benchmark(page, event)
    page.workbench.runs.start(value)
    say = "The run has started; it continues when you close the page."
    return {"dialog": "", "go": html.address("runs/run", id=value.name), "say": say}
