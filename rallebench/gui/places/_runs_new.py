"""The dialog of a new run: what is asked, by which metrics, what it will take."""

from __future__ import annotations

from dataclasses import replace

from rallebench.core.errors import RalleError
from rallebench.gui.form import labelled, select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, fold, problem, warning
from rallebench.gui.places._bench import bench_of
from rallebench.gui.places._runs_more import chosen_metrics, metric_fields
from rallebench.render import numbers
from rallebench.services import run_list
from rallebench.services.benchmarks import Benchmark, BenchmarkOptions, of_flow
from rallebench.services.chain_versions import is_saved
from rallebench.services.run_views import chain_flow

SAMPLES = (
    ("", "all questions"),
    ("50", "the first 50"),
    ("100", "the first 100"),
    ("200", "the first 200"),
)


def register(page: Page) -> None:
    """Add the dialog."""
    for name, handler in (("new", open_dialog), ("check", check), ("start", start)):
        page.action(f"runs.{name}", handler)


def open_dialog(page: Page, event: Event) -> Patch:
    """The dialog."""
    return {"dialog": dialog(page, event)}


def dialog(page: Page, event: Event) -> str:
    """All fields, and what the run will take."""
    bench, space = bench_of(page, event), page.workbench.workspace
    edited = (
        []
        if is_saved(page.workbench, bench.chain)
        else [("", f"{bench.chain.name}, as edited in Build")]
    )
    chains = [*edited, *((name, name) for name in space.chain_paths())]
    change = ' data-do="runs.check" data-on="change"'
    name = "" if edited else bench.chain.name
    fields = [
        labelled("Chain", select("chain", chains, name, more=change)),
        labelled(
            "Dataset", select("dataset", list(space.dataset_paths()), bench.dataset, more=change)
        ),
        labelled("Questions", select("limit", SAMPLES, "", more=change)),
    ]
    llms, retrievers = (
        [("", "as in the chain"), *space.llms()],
        [("", "as in the chain"), *space.retrievers()],
    )
    more = [
        labelled("Model", select("llm", llms, "", more=change)),
        labelled("Index", select("retriever", retrievers, "", more=change)),
        labelled("Name", '<input name="name" placeholder="made from chain, dataset and time">'),
        labelled("Questions at once", '<input type="number" name="batch_size" value="20" min="1">'),
        labelled(
            "Stop after failures",
            '<input type="number" name="max_errors" min="0" placeholder="never">',
        ),
        labelled("Seed", '<input type="number" name="seed" value="0">'),
        '<label class="check"><input type="checkbox" name="track" checked> Log to MLflow</label>',
    ]
    inside = f'<div class="stack"><div class="fields">{"".join(more)}</div>{metric_fields(page, "the usual ones of the dataset")}</div>'
    return f'<h2>New run</h2><div data-form id="new-run" class="stack" data-problems><div class="fields">{"".join(fields)}</div>{fold("More settings", inside, gist="model, metrics, name", id="new-more")}<div class="box" id="new-plan">{plan(page, event)}</div><div class="buttons">{button("Cancel", "", close="1")}{button("Run", "runs.start", kind="primary")}</div></div>'


def benchmark(page: Page, event: Event) -> Benchmark:
    """The benchmark that the fields describe; nothing is loaded. Raises UsageError."""
    bench = bench_of(page, event)
    name = event.text("chain")
    chain = page.workbench.workspace.chain(name) if name else bench.chain
    llm, retriever = event.text("llm"), event.text("retriever")
    actions = tuple(
        replace(a, target=llm)
        if a.kind == "generate" and llm
        else replace(a, target=retriever)
        if a.kind == "retrieve" and retriever
        else a
        for a in chain.actions
    )
    options = BenchmarkOptions(
        dataset=event.text("dataset") or bench.dataset,
        limit=event.whole("limit", "Questions"),
        batch_size=event.whole("batch_size", "Questions at once"),
        metrics=tuple(chosen_metrics(event)) or None,
        max_errors=event.whole("max_errors", "Stop after failures"),
        seed=event.whole("seed", "Seed") or 0,
        track=event.flag("track") if "dataset" in event.data else True,
    )
    return of_flow(
        page.workbench, chain_flow(replace(chain, actions=actions)), options, run=event.text("name")
    )


def plan(page: Page, event: Event) -> str:
    """Questions, models, minutes, and what is wrong, before anything starts."""
    try:
        made = benchmark(page, event)
    except RalleError as error:
        return problem(error)
    request = made.request
    count = len(request.examples)
    names = " → ".join([*request.flow.retrievers, *request.flow.llms])
    took = [
        r.seconds
        for r in run_list.rows(page.workbench)
        if r.seconds and r.chain and r.chain.llms == request.flow.llms
    ]
    minutes = (
        f"about {numbers.text(took[0] * count, 'duration')}, as the last run of this model"
        if took
        else "time unknown: no run of this model yet"
    )
    full = (
        "".join(warning(sentence) for sentence in made.warnings)
        or '<p class="note">All gold pages are in the index.</p>'
    )
    return (
        f"<b>{count:,} questions</b> of {e(request.dataset.name)} · {e(names)} · {e(minutes)}{full}"
    )


def check(page: Page, event: Event) -> Patch:
    """What the run will take, by the fields as they are."""
    return {"#new-plan": plan(page, event)}


def start(page: Page, event: Event) -> Patch:
    """Start the run as a job and show it."""
    made = benchmark(page, event)
    page.workbench.runs.start(made)
    return {
        "dialog": "",
        "go": f"#/runs/run?id={made.name}",
        "say": f"The run {made.name} has started.",
    }
