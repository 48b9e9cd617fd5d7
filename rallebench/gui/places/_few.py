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
from rallebench.core.run_titles import difference_label
from rallebench.core.table_files import csv_lines
from rallebench.core.types import Chain, Episode, Example
from rallebench.gui import form, html
from rallebench.gui.addresses import Door, GridAddress, QuestionAddress
from rallebench.gui.events import Event, TraceList
from rallebench.gui.frame import Page
from rallebench.gui.patches import Download, Patch
from rallebench.gui.places._bench import Bench, Execution, follow_other, meanwhile, window_bench
from rallebench.gui.places._chain import KINDS, editor, hidden_fields, read_chain
from rallebench.gui.places._few_export import export_rows
from rallebench.gui.places._few_table import (
    DECIDED,
    LOOK,
    NOTHING,
    VARIANT,
    Sheet,
    VariantGrid,
    score_key,
    sentence,
    table,
)
from rallebench.gui.places._one import header, status
from rallebench.gui.places._questions import all_rows
from rallebench.gui.places._versions import all_versions, clock
from rallebench.views import variants
from rallebench.views.chain_forms import from_address, to_address
from rallebench.views.chain_versions import is_saved
from rallebench.views.grid_columns import MOST_COLUMNS, GridColumn
from rallebench.views.run_questions import filter_questions
from rallebench.views.variants import VariantAnswer, answer_key, cell_key

MOST_VARIANTS, MOST_QUESTIONS = 8, 200
SAMPLES = (
    ("10", "10 questions, evenly spread"),
    ("20", "20 questions, evenly spread"),
    ("50", "50 questions, evenly spread"),
    (DECIDED, "Until it is decided"),
    ("wrong", "The wrong ones"),
    ("picked", "Picked by hand"),
)


def register(page: Page) -> None:
    """Register this mode's views and actions."""
    page.view("build/few", open_few)
    page.trace_list("build/few", list_traces)
    page.actions("few", choose, drop, use, open_, pick, export, reads=True)
    page.actions("few", run, ask_variant, add)


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
    own = {
        answer_key(chain): chain for chain in reversed(chains)
    }  # each column once: the first stays
    chains = [chain for chain in chains if own[answer_key(chain)] is chain]
    return Sheet(page, bench.dataset, grid, chains, grid_questions(page, bench, grid))


def grid_questions(page: Page, bench: Bench, grid: VariantGrid) -> list[Example]:
    """Return the questions of the grid."""
    examples = page.workspace.questions(bench.dataset)
    if grid.sample == DECIDED:
        return variants.first_articles(examples, grid.watched)
    if grid.sample not in NOTHING:
        return variants.sample(examples, int(grid.sample))
    ids = set(grid.picked)
    if grid.sample == "wrong":
        wrong = filter_questions(all_rows(page, bench), "wrong", "")
        ids = {row.qid for row in wrong[:MOST_QUESTIONS]}
    return [x for x in examples if x.question.qid in ids]


def open_few(page: Page, event: Event) -> Iterator[Patch]:
    """Open the grid as the window left it, or as the address says, and follow a running one."""
    grid = window_grid(event)
    grid.foreseen = None  # runs may have ended since
    follow(page, event)
    yield Patch(title="A few questions") | redraw(page, event)
    if grid.running is not None:
        for patch in follow_other(page, "few-status", grid):
            yield patch | Patch({"few-grid": table(window_sheet(page, event))})
        yield draw_parts(page, event)


def follow(page: Page, event: Event) -> None:
    """Apply the address: dataset, questions, variants, further columns. Raises RalleError."""
    bench, grid, query = window_bench(page, event), window_grid(event), event.read(GridAddress)
    if query.set and query.set != bench.dataset:
        first = page.workspace.questions(query.set)[0].question.qid
        bench.dataset, bench.question = query.set, first
        bench.forget_steps()
    if query.q:
        grid.sample, grid.picked = "picked", query.q.split(",")
    elif query.sample in [name for name, _ in SAMPLES]:
        grid.sample = query.sample
    for text in query.v[:MOST_VARIANTS]:
        chain = from_address(page.workspace, text)
        present = window_sheet(page, event).chains
        if answer_key(chain) not in map(answer_key, present) and len(present) < MOST_VARIANTS:
            grid.variants.append(chain)
    if query.c:
        grid.columns = [GridColumn.read(text) for text in query.c[:MOST_COLUMNS]]


def redraw(page: Page, event: Event) -> Patch:
    """Draw the grid, and write it into the address as far as an address can name it."""
    sheet = window_sheet(page, event)
    grid = sheet.grid
    address = GridAddress(
        sheet.dataset,
        "" if grid.sample == "picked" else grid.sample,
        ",".join(grid.picked) if grid.sample == "picked" else "",
        tuple(filter(None, (to_address(page.workspace, x) for x in grid.variants))),
        tuple(column.text for column in grid.columns),
    )
    return draw_parts(page, event) | Patch(address=address.href)


def list_traces(page: Page, event: Event, door: Door) -> TraceList:
    """Return the questions of the grid, and its variants."""
    sheet = window_sheet(page, event)
    qids = [x.question.qid for x in sheet.examples]
    sources = [(f"{VARIANT}{answer_key(chain)}", sheet.label(chain)) for chain in sheet.chains]
    return TraceList(qids, sources)


def variant_of_door(sheet: Sheet, door: Door) -> tuple[Chain, Example, VariantAnswer | None]:
    """Return the chain and the question behind the door of a cell, with the answer, if any. Raises UsageError."""
    key = door.source.removeprefix(VARIANT)
    chain = next((chain for chain in sheet.chains if answer_key(chain) == key), None)
    if chain is None:
        raise UsageError(
            "This variant is not in the grid of this window; add it to A few questions and ask again."
        )
    example = sheet.page.workbench.asking.example(sheet.dataset, door.qid)
    return chain, example, sheet.grid.cells.get(cell_key(chain, example))


def draw_parts(page: Page, event: Event) -> Patch:
    """Draw the bar, the advice and the table."""
    sheet = window_sheet(page, event)
    grid, new = sheet.grid, len(variants.missing(sheet.chains, sheet.examples, sheet.grid.cells))
    more = Markup(' aria-label="Questions" class="chains"{}').format(form.on_change("few.choose"))
    label, unjudged = (
        ask_label(new, len(sheet.missing_judgements())),
        bool(sheet.missing_judgements()),
    )
    if grid.sample == DECIDED and sheet.is_open and len(sheet.chains) > 1:
        new, label = new or LOOK, "Ask until it is decided"
    idle = bool(new or unjudged) and grid.running is None
    begin = Markup("<span data-lazy{}></span>").format(html.attributes(do="few.run"))
    bar = Markup("{}<small>{}</small>{}{}{}{}{}{}").format(
        status("few"),
        sheet.dataset,
        form.select("sample", SAMPLES, grid.sample, more=more),
        html.button("Add a variant", "few.ask_variant"),
        html.button("Add a column", "few.ask_column"),
        html.button("Export", "few.export", title="Save the grid as CSV, with whole answers"),
        html.button(label, "few.run", kind="primary", disabled=not idle),
        begin if grid.begins and idle else Markup(),
    )
    say = Markup('<p class="say" id="few-say">{}</p>').format(sentence(sheet))
    cells = Markup('<div class="gridbox" id="few-grid">{}</div>').format(table(sheet))
    body = Markup(
        '{}<div class="bar">{}</div><div class="grid-page" data-problems>{}{}</div>'
    ).format(html.hidden_title("A few questions"), bar, say, cells)
    return Patch({"v-build-few": body})


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Ask the missing cells, filling each as its answer arrives; a sample that grows is asked until it is decided."""
    sheet = window_sheet(page, event)
    grid, chains = sheet.grid, sheet.chains
    grid.begins = False
    judging = [c.value.partition(":")[2] for c in grid.columns if c.kind == "judge"]
    llms = tuple(dict.fromkeys([*(x for c in chains for x in c.llms), *judging]))
    lease_of = page.workbench.models.lease
    with grid.executing(event.action) as going, lease_of("a grid of a few questions") as lease:

        def stop_patch() -> Patch:
            grid.end(going)
            return draw_parts(page, event)

        silent = meanwhile(page, "few-status", going, llms, stop_patch)
        yield draw_parts(page, event) | Patch(meanwhile=silent)
        for chain in chains if variants.missing(chains, sheet.examples, grid.cells) else ():
            for news in lease.load_for(chain.llms, chain.retrievers):
                going.doing = news.message
                yield Patch({"few-status": going.words(page, ())})
        while True:
            yield from ask_missing(page, sheet, going)
            if grid.running is not going:
                return
            if grid.sample != DECIDED or not sheet.is_open:
                break
            grid.watched = len(sheet.examples) + LOOK
            sheet = window_sheet(page, event)
            yield draw_parts(page, event)
    yield draw_parts(page, event)


def ask_missing(page: Page, sheet: Sheet, going: Execution) -> Iterator[Patch]:
    """Ask and judge the missing cells of a grid, until the execution is no longer the one of the window."""
    grid, dataset = sheet.grid, page.workspace.questions(sheet.dataset)
    jobs = variants.missing(sheet.chains, sheet.examples, grid.cells)
    unjudged = sheet.missing_judgements()
    for done, (chain, x) in enumerate(jobs):
        going.doing, going.began = f"{done} of {len(jobs)}", time.time()
        yield Patch({"few-status": going.words(page, ()), "few-grid": table(sheet)})
        *_, episode = page.workbench.asking.execute_chain(chain, x.question)
        assert isinstance(episode, Episode)
        answer = variants.variant_answer(chain, x, episode, dataset)
        if grid.running is not going:
            return
        grid.cells[cell_key(chain, x)] = answer
    for done, (chain, x, column) in enumerate(unjudged):
        going.doing, going.began = f"Judging, {done} of {len(unjudged)}", time.time()
        yield Patch({"few-status": going.words(page, ()), "few-grid": table(sheet)})
        judgement = judge(sheet, chain, x, column)
        if grid.running is not going:
            return
        grid.judgements[score_key(chain, x, column)] = judgement


def judge(sheet: Sheet, chain: Chain, x: Example, column: GridColumn) -> Episode | None:
    """Return a judge's judgement of an answer; None for a failed answer."""
    answer = sheet.grid.cells[cell_key(chain, x)]
    if answer.episode.error:
        return None
    scorer = column.scorer(sheet.page.workspace.llm_mark)
    return sheet.page.workbench.asking.judge(scorer, x, answer.episode)


def ask_label(answers: int, judgements: int) -> str:
    """Return the label of the button that asks what is missing.

    >>> ask_label(20, 0), ask_label(1, 2), ask_label(0, 0)
    ('Ask for 20 answers', 'Ask for 1 answer, judge 2', 'All answered')
    """
    ask = f"Ask for {plural(answers, 'answer')}" if answers else ""
    judged = f"judge {judgements:,}" if judgements else ""
    words = ", ".join(filter(None, (ask, judged))) or "All answered"
    return f"{words[0].upper()}{words[1:]}"


def choose(page: Page, event: Event) -> Patch:
    """Draw another sample."""
    window_grid(event).sample = event.choice("sample", [name for name, _ in SAMPLES])
    return redraw(page, event)


def pick(page: Page, event: Event) -> Patch:
    """Add the question in Build to the picked ones."""
    grid, question = window_grid(event), window_bench(page, event).question
    grid.sample, grid.picked = "picked", list(dict.fromkeys([*grid.picked, question]))
    return Patch(say=f"Picked {plural(len(grid.picked), 'question')}.", go="#/build/few")


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
        fields = editor(page.workbench, action, at, "").replace("id=", "data-id=")
        parts += html.heading(f"{at + 1} {KINDS[action.kind]}")
        parts += Markup('<div class="edit">{}</div>').format(fields)
    body = Markup('{}<div id="variant-form">{}</div>{}').format(
        html.note("Change what the variant does differently."),
        parts,
        html.note(variant_plan(page, event, chain)),
    )
    only = html.button("Add it", "few.add", later="on")
    ask = html.button("Add and ask", "few.add", kind="primary")
    return Patch(dialog=html.dialog("Add a variant", body, only, ask))


def variant_plan(page: Page, event: Event, chain: Chain) -> str:
    """Say how many calls a variant costs."""
    sheet = window_sheet(page, event)
    questions, steps = len(sheet.examples), sum(x.kind == "generate" for x in chain.actions)
    calls = plural(questions * steps, "call") + " of models"
    judges = sum(column.kind == "judge" for column in sheet.grid.columns)
    judged = f" and {plural(questions * judges, 'judgement')}" if judges else ""
    return f"Asking it {plural(questions, 'question')} takes {calls}{judged}, fewer where the reply cache has the answer."


def starting_points(page: Page, bench: Bench) -> list[tuple[str, Chain]]:
    """Return the chain in Build, its versions, and the other saved chains, each with its difference."""
    points = [("the chain in Build", bench.chain)]
    for source, version, _, _ in all_versions(page, bench):
        if version.chain.actions != bench.chain.actions:
            different = difference_label(bench.chain, version.chain)
            points.append((f"{clock(version)}, {source}: {different}", version.chain))
    for name in page.workspace.chain_paths():
        with suppress(RalleError):  # unreadable chains are not offered
            points.append((f"the chain {name}", page.workspace.chain(name)))
    return points


def add(page: Page, event: Event) -> Iterator[Patch]:
    """Add a variant and ask its questions, or leave that for ``later``."""
    chain, present = read_chain(event), window_sheet(page, event).chains
    if len(present) >= MOST_VARIANTS:
        raise UsageError(f"A grid has at most {MOST_VARIANTS} columns; remove one first.")
    if answer_key(chain) in map(answer_key, present):
        raise UsageError(
            "Nothing is different from a chain that is in the grid already; change a field."
        )
    window_grid(event).variants.append(chain)
    yield Patch(dialog="") | redraw(page, event)
    if not event.flag("later"):
        yield from run(page, event)


def drop(page: Page, event: Event) -> Patch:
    """Remove a variant; its answers stay in the cache."""
    others = window_grid(event).variants
    del others[event.position("index", len(others))]
    return redraw(page, event)


def use(page: Page, event: Event) -> Patch:
    """Open a variant in Build; the previous chain stays in the grid."""
    chains = window_grid(event).variants
    put_in_build(page, event, chains[event.position("index", len(chains))])
    say = "This variant is the chain in Build now; Undo returns."
    return Patch(say=say) | draw_parts(page, event) | header(page, window_bench(page, event))


def open_(page: Page, event: Event) -> Patch:
    """Open the chain and the question of a cell in Build; the previous chain stays in the grid."""
    sheet, key = window_sheet(page, event), event.text("key")
    chain, example, _ = variant_of_door(sheet, Door.to(f"{VARIANT}{key}", event.text("q")))
    put_in_build(page, event, chain)
    return Patch(go=QuestionAddress(set=sheet.dataset, q=example.question.qid).href)


def export(page: Page, event: Event) -> Patch:
    """Download the grid as CSV."""
    sheet = window_sheet(page, event)
    return Patch(download=Download(f"{sheet.dataset}-grid.csv", csv_lines(export_rows(sheet))))


def put_in_build(page: Page, event: Event, chain: Chain) -> None:
    """Make a chain of the grid the chain in Build. The previous one becomes a variant, unless it is in the grid."""
    bench, others = window_bench(page, event), window_grid(event).variants
    before, key = bench.chain, answer_key(chain)
    if answer_key(before) == key:
        return
    index = next((i for i, other in enumerate(others) if answer_key(other) == key), len(others))
    del others[index : index + 1]
    is_same = chain.name == before.name
    bench.edit(Chain(before.name, chain.actions, before.about) if is_same else chain)
    if answer_key(before) not in map(answer_key, window_sheet(page, event).chains):
        others.insert(index, before)
