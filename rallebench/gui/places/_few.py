"""A few questions: variants of the chain × questions; cells fill as answers come, and only what is new is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rallebench.core.errors import UsageError
from rallebench.core.types import Chain, Example
from rallebench.gui.form import select
from rallebench.gui.frame import Event, Page, Patch
from rallebench.gui.html import button, e, mark, menu, number, points, segments
from rallebench.gui.places._bench import Bench, bench_of
from rallebench.gui.places._chain import editor, read_chain
from rallebench.gui.places._one import MODES
from rallebench.gui.places._questions import WRONG, known_of
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
    for name, handler in (
        ("few-run", run),
        ("few-sample", choose),
        ("few-variant", ask_variant),
        ("few-add", add),
        ("few-drop", drop),
        ("few-use", use),
        ("few-pick", pick),
    ):
        page.action(f"build.{name}", handler)


def grid_of(event: Event) -> Grid:
    """The grid of this window."""
    grid = event.session.get("few")
    if not isinstance(grid, Grid):
        grid = event.session["few"] = Grid()
    return grid


def chosen(page: Page, bench: Bench, grid: Grid) -> list[Example]:
    """The questions of the grid."""
    examples = page.workbench.asking.questions(bench.dataset)
    if grid.sample == "wrong":
        known = known_of(page, bench)
        return [x for x in examples if known.get(x.question.qid, ("", ""))[0] in WRONG][
            :MOST_QUESTIONS
        ]
    if grid.sample == "picked":
        return [x for x in examples if x.question.qid in set(grid.picked)]
    return sample(examples, int(grid.sample))


def open_few(page: Page, event: Event) -> Patch:
    """The grid; ``q=a,b`` in the address picks questions by hand."""
    bench, grid = bench_of(page, event), grid_of(event)
    if event.query.get("q"):
        grid.sample, grid.picked = "picked", event.query["q"].split(",")
    return {
        "#v-build-few": view(page, bench, grid),
        "title": "A few questions",
    }


def view(page: Page, bench: Bench, grid: Grid) -> str:
    """Bar, sentence, table."""
    examples = chosen(page, bench, grid)
    chains = [bench.chain, *grid.variants]
    new = sum(1 for _ in missing(chains, examples, grid.cells))
    picker = select(
        "sample",
        SAMPLES,
        grid.sample,
        more=' aria-label="Questions" class="chains" data-do="build.few-sample" data-on="change"',
    )
    run_button = button(
        f"Run {new} new" if new else "All answered",
        "build.few-run",
        kind="primary",
        disabled=not new,
    )
    return (
        f'<div class="bar">{segments(MODES, "#/build/few")}<span id="few-status" class="note status" role="status"></span><small>{e(bench.dataset)}</small>{picker}'
        f"{button('Add a variant', 'build.few-variant')}{run_button}</div>"
        f'<div class="grid-page" data-problems><p class="say" id="few-say">{sentence(page, bench, grid, examples)}</p><div class="gridbox" id="few-grid">{table(chains, examples, grid)}</div></div>'
    )


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
        body += f'<tr><th scope="row"><a href="#/build/one?q={e(x.question.qid)}" dir="auto">{e(x.question.text)}</a><small>gold {gold}</small></th>{cells}</tr>'
    nothing = (
        '<p class="note">No question is chosen: choose a sample above, or pick questions in One question.</p>'
        if not examples
        else ""
    )
    return f'<table class="grid"><thead><tr><th class="corner" scope="col"><small>{len(examples)} questions</small></th>{heads}</tr></thead><tbody>{body}</tbody></table>{nothing}'


def head(base: Chain, chain: Chain, index: int, examples: Sequence[Example], grid: Grid) -> str:
    """The name of a variant, its mean, and its difference from the base."""
    cells = [
        grid.cells[key] for x in examples if (key := (key_of(chain), x.question.qid)) in grid.cells
    ]
    scored = [c.em for c in cells if c.em is not None]
    mean = number(100 * sum(scored) / len(scored), unit="%") if scored else number(None)
    if index == 0:
        name, more, beside = chain.name, "", "base, the chain in Build"
    else:
        name = difference_label(base, chain)
        more = menu(
            button("Use in Build", "build.few-use", index=index - 1),
            button("Edit a copy", "build.few-variant", index=index - 1),
            button("Remove", "build.few-drop", index=index - 1, kind="danger"),
            label=f"More for {name}",
        )
        beside = against(paired(base, chain, examples, grid.cells))
    return f'<span class="vn">{e(name)}<span class="gap"></span>{more}</span><div class="vs">{mean}</div><small>{beside}</small>'


def against(pair: PairedComparison) -> str:
    """A paired difference with its interval."""
    if not pair.n or pair.difference is None:
        return "not asked yet"
    ends = (
        f" [{100 * pair.low:+.1f}, {100 * pair.high:+.1f}]".replace("-", "−")
        if pair.low is not None and pair.high is not None
        else ""
    )
    return f"{points(pair.difference)}{ends} · {pair.wins} better, {pair.losses} worse of {pair.n}"


def cell(base: Chain, chain: Chain, x: Example, grid: Grid, index: int) -> str:
    """One answer."""
    key = (key_of(chain), x.question.qid)
    value, first = grid.cells.get(key), grid.cells.get((key_of(base), x.question.qid))
    tint = ""
    if (
        value
        and first
        and index
        and value.em is not None
        and first.em is not None
        and value.em != first.em
    ):
        tint = "up" if value.em > first.em else "down"
    return f'<td class="{tint}" id="few-{index}-{e(x.question.qid)}">{inside(value)}</td>'


def inside(value: VariantAnswer | None) -> str:
    """The inside of a cell."""
    return (
        f'{mark(value.kind)}<span dir="auto">{e(value.answer[:300]) or "<em>empty</em>"}</span>'
        if value
        else "<small>–</small>"
    )


def sentence(page: Page, bench: Bench, grid: Grid, examples: Sequence[Example]) -> str:
    """Whether the questions suffice, and where the whole dataset is run."""
    if not grid.variants:
        return "Add a variant of the chain, with another prompt, k, index or model, and compare it question by question."
    whole = len(page.workbench.asking.questions(bench.dataset))
    took = [c.seconds for c in grid.cells.values() if c.seconds]
    minutes = (
        f" · about {max(1, round(sum(took) / len(took) * whole * (1 + len(grid.variants)) / 60))} min"
        if took
        else ""
    )
    more = button(f"Run on all {whole:,}{minutes}", "build.benchmark", kind="quiet", few="1")
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
            stop = '<button type="button" class="quiet" data-stop="build.few-run">Stop</button>'
            yield {
                "#few-status": f"{done} of {len(jobs)} · {left:.0f} s left {stop}",
                "#few-grid": table(chains, examples, grid),
            }
    yield {"#v-build-few": view(page, bench, grid)}


def choose(page: Page, event: Event) -> Patch:
    """Another sample."""
    grid = grid_of(event)
    grid.sample = event.text("sample")
    return {"#v-build-few": view(page, bench_of(page, event), grid)}


def pick(page: Page, event: Event) -> Patch:
    """Add the question of Build to those picked by hand."""
    grid, bench = grid_of(event), bench_of(page, event)
    grid.sample, grid.picked = "picked", list(dict.fromkeys([*grid.picked, bench.question]))
    return {"say": f"{len(grid.picked)} questions are picked.", "go": "#/build/few"}


def ask_variant(page: Page, event: Event) -> Patch:
    """A dialog with the fields of the base, or of a variant, to be changed."""
    bench, grid = bench_of(page, event), grid_of(event)
    chain = grid.variants[int(event.text("index"))] if event.text("index") else bench.chain
    hidden = f'<input type="hidden" name="count" value="{len(chain.actions)}"><input type="hidden" name="name" value="{e(chain.name)}">'
    parts = "".join(
        f'<h3 class="sub">{i + 1} {e(action.kind.capitalize())}</h3><div class="edit">{editor(page.workbench, action, i).replace("id=", "data-id=")}</div>'
        for i, action in enumerate(chain.actions)
    )
    return {
        "dialog": f'<h2>Add a variant</h2><p class="note">Change what the variant does differently.</p><div data-form id="variant-form">{hidden}{parts}<div class="buttons">{button("Cancel", "", close="1")}{button("Add the variant", "build.few-add", kind="primary")}</div></div>'
    }


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
    yield {"dialog": "", "#v-build-few": view(page, bench, grid)}
    yield from run(page, event)


def drop(page: Page, event: Event) -> Patch:
    """Remove a variant; its answers stay in the cache."""
    grid = grid_of(event)
    del grid.variants[int(event.text("index"))]
    return {"#v-build-few": view(page, bench_of(page, event), grid)}


def use(page: Page, event: Event) -> Patch:
    """Make a variant the chain of Build, and the base a variant."""
    bench, grid, index = bench_of(page, event), grid_of(event), int(event.text("index"))
    chain, grid.variants[index] = grid.variants[index], bench.chain
    bench.edit(Chain(bench.chain.name, chain.actions, bench.chain.about))
    return {
        "#v-build-few": view(page, bench, grid),
        "say": "This variant is the chain in Build now; Undo returns.",
    }
