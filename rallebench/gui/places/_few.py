"""A few questions: variants of the chain × questions; cells fill as answers come, and only what is new is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Chain, Example
from rallebench.gui import figures, form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._bench import Bench, Busy, bench_of, followed, meanwhile
from rallebench.gui.places._chain import editor, hidden_fields, read_chain
from rallebench.gui.places._one import header, is_edited, status
from rallebench.gui.places._questions import all_rows
from rallebench.gui.places._versions import all_versions, clock
from rallebench.render.numbers import plural
from rallebench.services.run_questions import filtered
from rallebench.services.runs import BenchmarkOptions, of_chain
from rallebench.services.variants import (
    FEW,
    PairedComparison,
    VariantAnswer,
    ask,
    difference_label,
    key_of,
    missing,
    paired,
    sample,
)

MOST_VARIANTS, MOST_QUESTIONS = 8, 200
NOTHING = {
    "wrong": "No question of {dataset} is known to be wrong. Run the chain on the dataset first, or choose a sample above.",
    "picked": "No question is picked. Choose a sample above, or press Pick for a few questions at a question.",
}
"""Sample → what to do where it has no question."""
SAMPLES = (
    ("10", "10 questions, evenly spread"),
    ("20", "20 questions, evenly spread"),
    ("50", "50 questions, evenly spread"),
    ("wrong", "The wrong ones"),
    ("picked", "Picked by hand"),
)


@dataclass
class Grid(Busy):
    """``variants``: beside the base. ``picked``: ids chosen by hand."""

    variants: list[Chain] = field(default_factory=list)
    sample: str = "10"
    picked: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], VariantAnswer] = field(default_factory=dict)


def register(page: Page) -> None:
    """Add this mode."""
    page.view("build/few", open_few)
    page.actions("few", run, run_all, choose, ask_variant, add, drop, use, pick)


def grid_of(event: Event) -> Grid:
    """The grid of this window."""
    grid: Grid = event.session.setdefault("few", Grid())
    return grid


def columns(page: Page, bench: Bench, grid: Grid) -> list[Chain]:
    """The base, which is the saved chain, the chain of Build where it is edited, and the variants."""
    chain = bench.chain
    if is_edited(page, chain) and chain.name in page.workbench.workspace.chain_paths():
        with suppress(RalleError):  # a saved chain that cannot be read is no base
            return [page.workbench.workspace.chain(chain.name), chain, *grid.variants]
    return [chain, *grid.variants]


def chosen(page: Page, bench: Bench, grid: Grid) -> list[Example]:
    """The questions of the grid."""
    examples = page.workbench.asking.questions(bench.dataset)
    if grid.sample not in ("wrong", "picked"):
        return sample(examples, int(grid.sample))
    ids = set(grid.picked)
    if grid.sample == "wrong":
        wrong = filtered(all_rows(page, bench), "wrong", "")
        ids = {row.qid for row in wrong[:MOST_QUESTIONS]}
    return [x for x in examples if x.question.qid in ids]


def open_few(page: Page, event: Event) -> Iterator[Patch]:
    """The grid; ``q=a,b`` in the address picks questions by hand. What runs already is followed."""
    grid, bench = grid_of(event), bench_of(page, event)
    if event.query.get("q"):
        grid.sample, grid.picked = "picked", event.query["q"].split(",")
    yield {"title": "A few questions", **drawn(page, bench, grid)}
    if grid.running is not None:
        for patch in followed(page, "#few-status", grid):
            yield {**patch, **cells_of(page, bench, grid)}
        yield drawn(page, bench, grid)


def cells_of(page: Page, bench: Bench, grid: Grid) -> Patch:
    """The table as far as it is answered."""
    return {"#few-grid": table(columns(page, bench, grid), chosen(page, bench, grid), grid)}


def drawn(page: Page, bench: Bench, grid: Grid) -> Patch:
    """Bar, sentence, table."""
    examples, chains = chosen(page, bench, grid), columns(page, bench, grid)
    new = sum(1 for _ in missing(chains, examples, grid.cells))
    more = f' aria-label="Questions" class="chains"{form.on_change("few.choose")}'
    label = f"Run {new} new" if new or not examples else "All answered"
    idle = bool(new) and grid.running is None
    bar = (
        f"{status('few')}<small>{e(bench.dataset)}</small>{form.select('sample', SAMPLES, grid.sample, more=more)}"
        f"{html.button('Add a variant', 'few.ask_variant')}{html.button(label, 'few.run', kind='primary', disabled=not idle)}"
    )
    say = f'<p class="say" id="few-say">{sentence(page, bench, chains, examples, grid)}</p>'
    cells = f'<div class="gridbox" id="few-grid">{table(chains, examples, grid)}</div>'
    body = f'<div class="bar">{bar}</div><div class="grid-page" data-problems>{say}{cells}</div>'
    return {"#v-build-few": body}


def table(chains: Sequence[Chain], examples: Sequence[Example], grid: Grid) -> str:
    """Variants × questions; only cells that differ from the base are tinted."""
    base = chains[0]
    heads = "".join(
        f'<th scope="col" id="few-head-{i}">{head(base, chain, i, examples, grid)}</th>'
        for i, chain in enumerate(chains)
    )
    body = ""
    for x in examples:
        cells = "".join(cell(base, chain, x, grid, i) for i, chain in enumerate(chains))
        gold = f"gold {e(x.gold.answers[0])}" if x.gold.answers else "no gold answer"
        address = html.address("build/one", q=x.question.qid)
        body += f'<tr><th scope="row"><a href="{address}" dir="auto">{e(x.question.text)}</a><small dir="auto">{gold}</small></th>{cells}</tr>'
    corner = f'<th class="corner" scope="col"><span class="vn">{plural(len(examples), "question")}</span></th>'
    return (
        f'<table class="grid"><thead><tr>{corner}{heads}</tr></thead><tbody>{body}</tbody></table>'
    )


def head(base: Chain, chain: Chain, index: int, examples: Sequence[Example], grid: Grid) -> str:
    """The name of a variant, its mean, and its difference from the base."""
    cells = (grid.cells.get((key_of(chain), x.question.qid)) for x in examples)
    scored = [cell.em for cell in cells if cell and cell.em is not None]
    mean = 100 * sum(scored) / len(scored) if scored else None
    counted = f"{sum(scored):.0f} of {len(scored)} right" if scored else ""
    name, more, beside = chain.name, "", "compared with this"
    if index:
        name = difference_label(base, chain)
        beside = against(paired(base, chain, examples, grid.cells))
    if chain in grid.variants:
        at = grid.variants.index(chain)
        more = html.menu(
            html.button("Use in Build", "few.use", index=at),
            html.button("Edit a copy", "few.ask_variant", index=at),
            html.button("Remove", "few.drop", index=at, kind="danger"),
            label=f"More for {name}",
        )
    elif index:
        name = f"{name}, as edited in Build"
    figure = f"{figures.number(mean, unit='%')} <small>{counted}</small>"
    return f'<span class="vn">{e(name)}<span class="gap"></span>{more}</span><div class="vs">{figure}</div><small>{beside}</small>'


def against(pair: PairedComparison) -> str:
    """A paired difference with its interval."""
    if not pair.n or pair.difference is None:
        return "not asked yet"
    ends = ""
    if pair.low is not None and pair.high is not None:
        ends = f" [{100 * pair.low:+.1f}, {100 * pair.high:+.1f}]".replace("-", "−")
    return f"{figures.points(pair.difference)}{ends} · {pair.wins} better, {pair.losses} worse"


def cell(base: Chain, chain: Chain, x: Example, grid: Grid, index: int) -> str:
    """One answer."""
    key = (key_of(chain), x.question.qid)
    value, first = grid.cells.get(key), grid.cells.get((key_of(base), x.question.qid))
    tint, inside = "", "<small>–</small>"
    if value:
        words = e(value.answer[:300]) or "<em>empty</em>"
        inside = f'{html.mark(value.kind)}<span dir="auto">{words}</span>'
    scores = [answer.em for answer in (value, first) if answer and answer.em is not None]
    if index and len(scores) == 2 and scores[0] != scores[1]:
        tint = "up" if scores[0] > scores[1] else "down"
    return f'<td class="{tint}" id="few-{index}-{e(x.question.qid)}">{inside}</td>'


def sentence(
    page: Page, bench: Bench, chains: Sequence[Chain], examples: Sequence[Example], grid: Grid
) -> str:
    """Whether the questions suffice, and where the whole dataset is run."""
    if not examples:
        return NOTHING.get(grid.sample, NOTHING["picked"]).format(dataset=e(bench.dataset))
    base, variants = chains[0], chains[1:]
    if not variants:
        return "Add a variant of the chain, with another prompt, k, index or model, and compare it question by question."
    whole = len(page.workbench.asking.questions(bench.dataset))
    label = f"Run them on all {whole:,}"
    if took := [c.seconds for c in grid.cells.values() if c.seconds]:
        minutes = sum(took) / len(took) * whole * len(chains) / 60
        label += f" · about {max(1, round(minutes))} min"
    more = html.button(label, "few.run_all", kind="quiet")
    pairs = [(chain, paired(base, chain, examples, grid.cells)) for chain in variants]
    shown = [(chain, pair) for chain, pair in pairs if pair.significant and pair.difference]
    if shown:
        chain, pair = max(shown, key=lambda item: abs(item[1].difference or 0))
        better = "better" if (pair.difference or 0) > 0 else "worse"
        return f"<b>{e(difference_label(base, chain))}</b> is {better} than {e(base.name)} on these {pair.n} questions: {against(pair)}. {more}"
    if len(examples) < FEW:
        are = "question is" if len(examples) == 1 else "questions are"
        return f"<b>{len(examples)} {are} too few to show a difference</b>; they show where the answers change. {more}"
    return f"<b>No difference is shown</b> on these {len(examples)} questions. {more}"


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Ask what is missing; each cell appears as it is answered."""
    bench, grid = bench_of(page, event), grid_of(event)
    chains = columns(page, bench, grid)
    jobs = list(missing(chains, chosen(page, bench, grid), grid.cells))
    llms, lease_of = tuple({x: None for c in chains for x in c.llms}), page.workbench.models.lease
    with grid.executing(event.action) as going, lease_of("a grid of a few questions") as lease:

        def stopped() -> Patch:
            grid.end(going)
            return drawn(page, bench, grid)

        silent = meanwhile(page, "#few-status", going, llms, stopped)
        yield {**drawn(page, bench, grid), "meanwhile": silent}
        for chain in chains:
            for news in lease.load_for(chain.llms, chain.retrievers):
                going.doing = news.message
                yield {"#few-status": going.words(page, ())}
        for done, (chain, x) in enumerate(jobs):
            going.doing, going.began = f"{done} of {len(jobs)}", time.time()
            yield {"#few-status": going.words(page, ()), **cells_of(page, bench, grid)}
            answer = ask(page.workbench, chain, x)
            if grid.running is not going:
                return
            grid.cells[key_of(chain), x.question.qid] = answer
    yield drawn(page, bench, grid)


def run_all(page: Page, event: Event) -> Patch:
    """A run of every column on the whole dataset, as jobs; the list of runs compares them."""
    bench, grid = bench_of(page, event), grid_of(event)
    chains, stamp = columns(page, bench, grid), time.strftime("%Y%m%d-%H%M%S")
    options = BenchmarkOptions(dataset=bench.dataset)
    planned = [
        of_chain(page.workbench, c, options, run=f"{c.name}-{bench.dataset}-{stamp}-{i}")
        for i, c in enumerate(chains, 1)
    ]
    for value in planned:
        page.workbench.runs.start(value)
    return {"go": "#/runs/list", "say": f"{plural(len(planned), 'run')} have started."}


def choose(page: Page, event: Event) -> Patch:
    """Another sample."""
    grid = grid_of(event)
    grid.sample = event.text("sample")
    return drawn(page, bench_of(page, event), grid)


def pick(page: Page, event: Event) -> Patch:
    """Add the question of Build to those picked by hand."""
    grid, bench = grid_of(event), bench_of(page, event)
    grid.sample, grid.picked = "picked", list(dict.fromkeys([*grid.picked, bench.question]))
    return {"say": f"{len(grid.picked)} questions are picked.", "go": "#/build/few"}


def ask_variant(page: Page, event: Event) -> Patch:
    """A dialog with the fields of the base, or of a variant, to be changed."""
    bench, grid = bench_of(page, event), grid_of(event)
    starts = starting_points(page, bench)
    chain = grid.variants[int(event.text("index"))] if event.text("index") else bench.chain
    if event.text("start"):
        chain = starts[int(event.text("start"))][1]
    names = [(str(i), label) for i, (label, _) in enumerate(starts)]
    more = form.on_change("few.ask_variant")
    parts = form.chooser("Start from", "start", names, event.text("start", "0"), more=more)
    parts += hidden_fields(chain)
    for index, action in enumerate(chain.actions):
        fields = editor(page.workbench, action, index).replace("id=", "data-id=")
        parts += html.heading(f"{index + 1} {action.kind.capitalize()}")
        parts += f'<div class="edit">{fields}</div>'
    body = f'{html.note("Change what the variant does differently.")}<div id="variant-form">{parts}</div>'
    yes = html.button("Add the variant", "few.add", kind="primary")
    return {"dialog": html.dialog("Add a variant", body, yes)}


def starting_points(page: Page, bench: Bench) -> list[tuple[str, Chain]]:
    """The chain of Build, its versions, and the other saved chains, each with what tells it apart."""
    points = [("the chain in Build", bench.chain)]
    for source, version, _, _ in all_versions(page, bench):
        if version.chain.actions != bench.chain.actions:
            different = difference_label(bench.chain, version.chain)
            points.append((f"version {clock(version)}, {source}: {different}", version.chain))
    for name in page.workbench.workspace.chain_paths():
        with suppress(RalleError):  # one that cannot be read is not offered
            points.append((f"the chain {name}", page.workbench.workspace.chain(name)))
    return points


def add(page: Page, event: Event) -> Iterator[Patch]:
    """Add a variant, and ask it."""
    bench, grid = bench_of(page, event), grid_of(event)
    chain = read_chain(event)
    present = columns(page, bench, grid)
    if len(present) >= MOST_VARIANTS:
        raise UsageError(f"A grid has at most {MOST_VARIANTS} columns; remove one first.")
    if key_of(chain) in map(key_of, present):
        raise UsageError(
            "Nothing is different from a chain that is in the grid already; change a field."
        )
    grid.variants.append(chain)
    yield {"dialog": ""}
    yield from run(page, event)


def drop(page: Page, event: Event) -> Patch:
    """Remove a variant; its answers stay in the cache."""
    grid = grid_of(event)
    del grid.variants[int(event.text("index"))]
    return drawn(page, bench_of(page, event), grid)


def use(page: Page, event: Event) -> Patch:
    """Make a variant the chain of Build; the chain before stays in the grid."""
    bench, grid, index = bench_of(page, event), grid_of(event), int(event.text("index"))
    before, chain = bench.chain, grid.variants.pop(index)
    bench.edit(Chain(before.name, chain.actions, before.about))
    if key_of(before) not in map(key_of, columns(page, bench, grid)):
        grid.variants.insert(index, before)
    say = "This variant is the chain in Build now; Undo returns."
    return {"say": say, **drawn(page, bench, grid), **header(page, bench)}
