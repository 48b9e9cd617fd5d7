"""A few questions: variants of the chain × questions; cells fill as answers come, and only what is new is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rallebench.core.errors import UsageError
from rallebench.core.types import Chain, Example
from rallebench.gui import figures, form, html
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._bench import Bench, bench_of
from rallebench.gui.places._chain import editor, hidden_fields, read_chain
from rallebench.gui.places._one import status
from rallebench.gui.places._questions import all_rows
from rallebench.services.run_questions import filtered
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
SAMPLES = (
    ("10", "10 questions, evenly spread"),
    ("20", "20 questions, evenly spread"),
    ("50", "50 questions, evenly spread"),
    ("wrong", "The wrong ones"),
    ("picked", "Picked by hand"),
)


@dataclass
class Grid:
    """``variants``: beside the base, which is the chain of Build. ``picked``: ids chosen by hand."""

    variants: list[Chain] = field(default_factory=list)
    sample: str = "10"
    picked: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], VariantAnswer] = field(default_factory=dict)


def register(page: Page) -> None:
    """Add this mode."""
    page.view("build/few", open_few)
    page.actions("few", run, choose, ask_variant, add, drop, use, pick)


def grid_of(event: Event) -> Grid:
    """The grid of this window."""
    grid = event.session.get("few")
    if not isinstance(grid, Grid):
        grid = event.session["few"] = Grid()
    return grid


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


def open_few(page: Page, event: Event) -> Patch:
    """The grid; ``q=a,b`` in the address picks questions by hand."""
    grid = grid_of(event)
    if event.query.get("q"):
        grid.sample, grid.picked = "picked", event.query["q"].split(",")
    return {"title": "A few questions", **drawn(page, bench_of(page, event), grid)}


def drawn(page: Page, bench: Bench, grid: Grid) -> Patch:
    """Bar, sentence, table."""
    examples, chains = chosen(page, bench, grid), [bench.chain, *grid.variants]
    new = sum(1 for _ in missing(chains, examples, grid.cells))
    more = f' aria-label="Questions" class="chains"{form.on_change("few.choose")}'
    label = f"Run {new} new" if new else "All answered"
    bar = (
        f"{status('few')}<small>{e(bench.dataset)}</small>{form.select('sample', SAMPLES, grid.sample, more=more)}"
        f"{html.button('Add a variant', 'few.ask_variant')}{html.button(label, 'few.run', kind='primary', disabled=not new)}"
    )
    say = f'<p class="say" id="few-say">{sentence(page, bench, grid, examples)}</p>'
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
        gold = e(x.gold.answers[0]) if x.gold.answers else "no gold answer"
        address = html.address("build/one", q=x.question.qid)
        body += f'<tr><th scope="row"><a href="{address}" dir="auto">{e(x.question.text)}</a><small>gold {gold}</small></th>{cells}</tr>'
    corner = f'<th class="corner" scope="col"><small>{len(examples)} questions</small></th>'
    hint = "No question is chosen: choose a sample above, or pick questions in One question."
    nothing = "" if examples else html.note(hint)
    return f'<table class="grid"><thead><tr>{corner}{heads}</tr></thead><tbody>{body}</tbody></table>{nothing}'


def head(base: Chain, chain: Chain, index: int, examples: Sequence[Example], grid: Grid) -> str:
    """The name of a variant, its mean, and its difference from the base."""
    cells = (grid.cells.get((key_of(chain), x.question.qid)) for x in examples)
    scored = [cell.em for cell in cells if cell and cell.em is not None]
    mean = 100 * sum(scored) / len(scored) if scored else None
    name, more, beside = chain.name, "", "base, the chain in Build"
    if index:
        name = difference_label(base, chain)
        more = html.menu(
            html.button("Use in Build", "few.use", index=index - 1),
            html.button("Edit a copy", "few.ask_variant", index=index - 1),
            html.button("Remove", "few.drop", index=index - 1, kind="danger"),
            label=f"More for {name}",
        )
        beside = against(paired(base, chain, examples, grid.cells))
    return f'<span class="vn">{e(name)}<span class="gap"></span>{more}</span><div class="vs">{figures.number(mean, unit="%")}</div><small>{beside}</small>'


def against(pair: PairedComparison) -> str:
    """A paired difference with its interval."""
    if not pair.n or pair.difference is None:
        return "not asked yet"
    ends = ""
    if pair.low is not None and pair.high is not None:
        ends = f" [{100 * pair.low:+.1f}, {100 * pair.high:+.1f}]".replace("-", "−")
    return f"{figures.points(pair.difference)}{ends} · {pair.wins} better, {pair.losses} worse of {pair.n}"


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


def sentence(page: Page, bench: Bench, grid: Grid, examples: Sequence[Example]) -> str:
    """Whether the questions suffice, and where the whole dataset is run."""
    if not grid.variants:
        return "Add a variant of the chain, with another prompt, k, index or model, and compare it question by question."
    whole = len(page.workbench.asking.questions(bench.dataset))
    label = f"Run on all {whole:,}"
    if took := [c.seconds for c in grid.cells.values() if c.seconds]:
        minutes = sum(took) / len(took) * whole * (1 + len(grid.variants)) / 60
        label += f" · about {max(1, round(minutes))} min"
    more = html.button(label, "build.benchmark", kind="quiet")
    pairs = [(chain, paired(bench.chain, chain, examples, grid.cells)) for chain in grid.variants]
    shown = [(chain, pair) for chain, pair in pairs if pair.significant and pair.difference]
    if shown:
        chain, pair = max(shown, key=lambda item: abs(item[1].difference or 0))
        better = "better" if (pair.difference or 0) > 0 else "worse"
        return f"<b>{e(difference_label(bench.chain, chain))}</b> is {better} than the base on these {pair.n} questions: {against(pair)}. {more}"
    if len(examples) < FEW:
        return f"{len(examples)} questions are too few to show a difference; they show where the answers change. {more}"
    return f"No difference is shown on these {len(examples)} questions. {more}"


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Ask what is missing; each cell appears as it is answered."""
    bench, grid = bench_of(page, event), grid_of(event)
    examples, chains = chosen(page, bench, grid), [bench.chain, *grid.variants]
    jobs = list(missing(chains, examples, grid.cells))
    started = time.monotonic()
    with page.workbench.models.lease("a grid of a few questions") as lease:
        for chain in chains:
            for news in lease.load_for(chain.llms, chain.retrievers):
                yield {"#few-status": f"{e(news.message)} …"}
        for done, (chain, x) in enumerate(jobs, 1):
            grid.cells[key_of(chain), x.question.qid] = ask(page.workbench, chain, x)
            left = (time.monotonic() - started) / done * (len(jobs) - done)
            words = f"{done} of {len(jobs)} · {left:.0f} s left"
            yield {
                "#few-status": f"{words} {html.stop_stream('few.run')}",
                "#few-grid": table(chains, examples, grid),
            }
    yield drawn(page, bench, grid)


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
    chain = grid.variants[int(event.text("index"))] if event.text("index") else bench.chain
    parts = hidden_fields(chain)
    for index, action in enumerate(chain.actions):
        fields = editor(page.workbench, action, index).replace("id=", "data-id=")
        parts += html.heading(f"{index + 1} {action.kind.capitalize()}")
        parts += f'<div class="edit">{fields}</div>'
    body = f'{html.note("Change what the variant does differently.")}<div id="variant-form">{parts}</div>'
    yes = html.button("Add the variant", "few.add", kind="primary")
    return {"dialog": html.dialog("Add a variant", body, yes)}


def add(page: Page, event: Event) -> Iterator[Patch]:
    """Add a variant, and ask it."""
    bench, grid = bench_of(page, event), grid_of(event)
    chain = read_chain(event)
    if len(grid.variants) + 1 >= MOST_VARIANTS:
        raise UsageError(f"A grid has at most {MOST_VARIANTS} columns; remove one first.")
    if key_of(chain) in {key_of(c) for c in (bench.chain, *grid.variants)}:
        raise UsageError(
            "Nothing is different from a chain that is in the grid already; change a field."
        )
    grid.variants.append(chain)
    yield {"dialog": "", **drawn(page, bench, grid)}
    yield from run(page, event)


def drop(page: Page, event: Event) -> Patch:
    """Remove a variant; its answers stay in the cache."""
    grid = grid_of(event)
    del grid.variants[int(event.text("index"))]
    return drawn(page, bench_of(page, event), grid)


def use(page: Page, event: Event) -> Patch:
    """Make a variant the chain of Build, and the base a variant."""
    bench, grid, index = bench_of(page, event), grid_of(event), int(event.text("index"))
    chain, grid.variants[index] = grid.variants[index], bench.chain
    bench.edit(Chain(bench.chain.name, chain.actions, bench.chain.about))
    say = "This variant is the chain in Build now; Undo returns."
    return {"say": say, **drawn(page, bench, grid)}
