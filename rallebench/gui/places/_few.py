"""A few questions: a table of the chain's variants × questions. Cells fill as answers arrive, and only new ones are
asked.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.types import Chain, Episode, Example
from rallebench.gui import form, html, panels
from rallebench.gui.addresses import GridAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.gui.places._bench import Bench, follow_other, meanwhile, window_bench
from rallebench.gui.places._chain import KINDS, editor, hidden_fields, read_chain
from rallebench.gui.places._few_table import (
    NOTHING,
    Sheet,
    VariantGrid,
    duration_of_all,
    sentence,
    table,
)
from rallebench.gui.places._one import header, status
from rallebench.gui.places._questions import all_rows
from rallebench.gui.places._versions import all_versions, clock
from rallebench.views import variants
from rallebench.views.chain_versions import is_saved
from rallebench.views.run_questions import filter_questions
from rallebench.views.run_requests import BenchmarkOptions, of_chain
from rallebench.views.variants import answer_key, cell_key

MOST_VARIANTS, MOST_QUESTIONS = 8, 200
SAMPLES = (
    ("10", "10 questions, evenly spread"),
    ("20", "20 questions, evenly spread"),
    ("50", "50 questions, evenly spread"),
    ("wrong", "The wrong ones"),
    ("picked", "Picked by hand"),
)


def register(page: Page) -> None:
    """Register this mode's views and actions."""
    page.view("build/few", open_few)
    page.actions("few", run, ask_all, run_all, choose, ask_variant, add, drop, use, pick)


def window_grid(event: Event) -> VariantGrid:
    """Return the grid of this window."""
    return event.session.state(VariantGrid)


def window_sheet(page: Page, event: Event) -> Sheet:
    """Return the grid of this window with its chains: the saved chain if the chain in Build is edited, then the
    chain in Build, then the variants.
    """
    bench, grid, space = window_bench(page, event), window_grid(event), page.workspace
    chains = [bench.chain, *grid.variants]
    if bench.chain.name in space.chain_paths() and not is_saved(page.workspace, bench.chain):
        with suppress(RalleError):  # an unreadable chain cannot be the base
            chains.insert(0, space.chain(bench.chain.name))
    return Sheet(page, bench.dataset, grid, chains, grid_questions(page, bench, grid))


def grid_questions(page: Page, bench: Bench, grid: VariantGrid) -> list[Example]:
    """Return the questions of the grid."""
    examples = page.workspace.questions(bench.dataset)
    if grid.sample not in NOTHING:
        return variants.sample(examples, int(grid.sample))
    ids = set(grid.picked)
    if grid.sample == "wrong":
        wrong = filter_questions(all_rows(page, bench), "wrong", "")
        ids = {row.qid for row in wrong[:MOST_QUESTIONS]}
    return [x for x in examples if x.question.qid in ids]


def open_few(page: Page, event: Event) -> Iterator[Patch]:
    """Open the grid and follow a running one. ``q=a,b`` in the address picks questions by hand."""
    grid = window_grid(event)
    if picked := event.read(GridAddress).q:
        grid.sample, grid.picked = "picked", picked.split(",")
    yield Patch(title="A few questions") | draw_parts(page, event)
    if grid.running is not None:
        for patch in follow_other(page, "few-status", grid):
            yield patch | Patch({"few-grid": table(window_sheet(page, event))})
        yield draw_parts(page, event)


def draw_parts(page: Page, event: Event) -> Patch:
    """Draw the bar, the advice and the table."""
    sheet = window_sheet(page, event)
    grid, new = sheet.grid, len(variants.missing(sheet.chains, sheet.examples, sheet.grid.cells))
    more = Markup(' aria-label="Questions" class="chains"{}').format(form.on_change("few.choose"))
    label = f"Ask {plural(new, 'question')}" if new or not sheet.examples else "All answered"
    idle = bool(new) and grid.running is None
    bar = Markup("{}<small>{}</small>{}{}{}").format(
        status("few"),
        sheet.dataset,
        form.select("sample", SAMPLES, grid.sample, more=more),
        html.button("Add a variant", "few.ask_variant"),
        html.button(label, "few.run", kind="primary", disabled=not idle),
    )
    say = Markup('<p class="say" id="few-say">{}</p>').format(sentence(sheet))
    cells = Markup('<div class="gridbox" id="few-grid">{}</div>').format(table(sheet))
    body = Markup(
        '<div class="bar">{}</div><div class="grid-page" data-problems>{}{}</div>'
    ).format(bar, say, cells)
    return Patch({"v-build-few": body})


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Ask the missing cells, filling each as its answer arrives."""
    sheet = window_sheet(page, event)
    grid, chains = sheet.grid, sheet.chains
    jobs = variants.missing(chains, sheet.examples, grid.cells)
    llms, lease_of = tuple({x: None for c in chains for x in c.llms}), page.workbench.models.lease
    with grid.executing(event.action) as going, lease_of("a grid of a few questions") as lease:

        def stop_patch() -> Patch:
            grid.end(going)
            return draw_parts(page, event)

        silent = meanwhile(page, "few-status", going, llms, stop_patch)
        yield draw_parts(page, event) | Patch(meanwhile=silent)
        for chain in chains:
            for news in lease.load_for(chain.llms, chain.retrievers):
                going.doing = news.message
                yield Patch({"few-status": going.words(page, ())})
        for done, (chain, x) in enumerate(jobs):
            going.doing, going.began = f"{done} of {len(jobs)}", time.time()
            yield Patch({"few-status": going.words(page, ()), "few-grid": table(sheet)})
            *_, episode = page.workbench.asking.execute_chain(chain, x.question)
            assert isinstance(episode, Episode)
            answer = variants.variant_answer(chain, x, episode)
            if grid.running is not going:
                return
            grid.cells[cell_key(chain, x)] = answer
    yield draw_parts(page, event)


def ask_all(page: Page, event: Event) -> Patch:
    """Ask for confirmation of runs on the whole dataset."""
    sheet = window_sheet(page, event)
    whole, count = len(page.workspace.questions(sheet.dataset)), len(sheet.chains)
    names = map(sheet.label, sheet.chains)
    lines = Markup().join(Markup("<li>{}</li>").format(name) for name in names)
    size = html.join_facts(
        f"{plural(count, 'run')} of {whole:,} questions", duration_of_all(sheet, whole)
    )
    body = Markup("<ul>{}</ul>{}").format(lines, html.note(size))
    return panels.ask(
        f"Run on all of {sheet.dataset}?", body, f"Start {plural(count, 'run')}", "few.run_all"
    )


def run_all(page: Page, event: Event) -> Patch:
    """Start a run of every column on the whole dataset; compare them in the list of runs."""
    sheet, stamp = window_sheet(page, event), time.strftime("%Y%m%d-%H%M%S")
    options = BenchmarkOptions(dataset=sheet.dataset)
    planned = [
        of_chain(
            page.workspace,
            chain,
            options,
            run=f"{chain.name}-{sheet.dataset}-{stamp}-{i}",
        )
        for i, chain in enumerate(sheet.chains, 1)
    ]
    for prepared in planned:
        page.workbench.runs.start(prepared)
    started = "1 run has" if len(planned) == 1 else f"{len(planned)} runs have"
    return Patch(dialog="", go="#/runs/list", say=f"{started} started.")


def choose(page: Page, event: Event) -> Patch:
    """Draw another sample."""
    window_grid(event).sample = event.choice("sample", [name for name, _ in SAMPLES])
    return draw_parts(page, event)


def pick(page: Page, event: Event) -> Patch:
    """Add the question in Build to the picked ones."""
    grid, question = window_grid(event), window_bench(page, event).question
    grid.sample, grid.picked = "picked", list(dict.fromkeys([*grid.picked, question]))
    return Patch(say=f"{len(grid.picked)} questions are picked.", go="#/build/few")


def ask_variant(page: Page, event: Event) -> Patch:
    """Open a dialog for editing the fields of the base or of a variant."""
    bench, index, start = window_bench(page, event), event.whole("index"), event.whole("start")
    starts = starting_points(page, bench)
    others = window_grid(event).variants
    chain = bench.chain if index is None else others[event.position("index", len(others))]
    if start is not None:
        chain = starts[event.position("start", len(starts))][1]
    names = [(str(i), label) for i, (label, _) in enumerate(starts)]
    more = form.on_change("few.ask_variant")
    parts = form.chooser("Start from", "start", names, start or 0, more=more)
    parts += hidden_fields(chain)
    for at, action in enumerate(chain.actions):
        fields = editor(page.workbench, action, at).replace("id=", "data-id=")
        parts += html.heading(f"{at + 1} {KINDS[action.kind]}")
        parts += Markup('<div class="edit">{}</div>').format(fields)
    body = Markup('{}<div id="variant-form">{}</div>').format(
        html.note("Change what the variant does differently."), parts
    )
    return panels.ask("Add a variant", body, "Add the variant", "few.add")


def starting_points(page: Page, bench: Bench) -> list[tuple[str, Chain]]:
    """Return the chain in Build, its versions, and the other saved chains, each with its difference."""
    points = [("the chain in Build", bench.chain)]
    for source, version, _, _ in all_versions(page, bench):
        if version.chain.actions != bench.chain.actions:
            different = variants.difference_label(bench.chain, version.chain)
            points.append((f"{clock(version)}, {source}: {different}", version.chain))
    for name in page.workspace.chain_paths():
        with suppress(RalleError):  # unreadable chains are not offered
            points.append((f"the chain {name}", page.workspace.chain(name)))
    return points


def add(page: Page, event: Event) -> Iterator[Patch]:
    """Add a variant and ask its questions."""
    chain, present = read_chain(event), window_sheet(page, event).chains
    if len(present) >= MOST_VARIANTS:
        raise UsageError(f"A grid has at most {MOST_VARIANTS} columns; remove one first.")
    if answer_key(chain) in map(answer_key, present):
        raise UsageError(
            "Nothing is different from a chain that is in the grid already; change a field."
        )
    window_grid(event).variants.append(chain)
    yield Patch(dialog="")
    yield from run(page, event)


def drop(page: Page, event: Event) -> Patch:
    """Remove a variant; its answers stay in the cache."""
    others = window_grid(event).variants
    del others[event.position("index", len(others))]
    return draw_parts(page, event)


def use(page: Page, event: Event) -> Patch:
    """Open a variant in Build; the previous chain stays in the grid."""
    bench, others = window_bench(page, event), window_grid(event).variants
    index = event.position("index", len(others))
    before, chain = bench.chain, others.pop(index)
    is_same = chain.name == before.name
    bench.edit(Chain(before.name, chain.actions, before.about) if is_same else chain)
    if answer_key(before) not in map(answer_key, window_sheet(page, event).chains):
        others.insert(index, before)
    say = "This variant is the chain in Build now; Undo returns."
    return Patch(say=say) | draw_parts(page, event) | header(page, bench)
