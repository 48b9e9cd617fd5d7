"""The table of a few questions: variants of the chain × questions, with means and differences."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from markupsafe import Markup

from rallebench.core.comparison import PairedComparison
from rallebench.core.errors import RalleError
from rallebench.core.numbers import FEW, plural
from rallebench.core.types import Chain, Example
from rallebench.gui import figures, html
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.frame import Page
from rallebench.gui.places._bench import Busy
from rallebench.gui.places._steps import answer_text
from rallebench.render.numbers import time_range
from rallebench.services import forecasts
from rallebench.views import variants
from rallebench.views.variants import VariantAnswer, cell_key

NOTHING = {
    "wrong": Markup(
        "No question of {dataset} is known to be wrong. Run the chain on the dataset first, or choose a sample above."
    ),
    "picked": Markup(
        "No question is picked. Choose a sample above, or press Pick for a few questions at a question."
    ),
}
"""Sample → advice if it contains no questions."""


@dataclass
class VariantGrid(Busy):
    """``variants``: chains to compare with the base. ``picked``: ids chosen by hand."""

    variants: list[Chain] = field(default_factory=list)
    sample: str = "10"
    picked: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], VariantAnswer] = field(default_factory=dict)


@dataclass(frozen=True)
class Sheet:
    """The grid of a window at one moment. ``chains``: the base comes first."""

    page: Page
    dataset: str
    grid: VariantGrid
    chains: Sequence[Chain]
    examples: Sequence[Example]

    @property
    def metric(self) -> str:
        """The metric that ranks all columns."""
        return variants.deciding(self.chains, self.examples)

    def label(self, chain: Chain) -> str:
        """Return the name of a column."""
        base = self.chains[0]
        saved: Chain | None = None
        if chain is base:
            return base.name
        with suppress(RalleError):  # the variant was deleted
            saved = self.page.workspace.chain(chain.name)
        return variants.variant_label(base, chain, saved)

    def against(self, chain: Chain) -> PairedComparison:
        """Compare a variant with the base."""
        return variants.compare_chains(
            self.chains[0], chain, self.examples, self.grid.cells, self.metric
        )


def table(sheet: Sheet) -> Markup:
    """Draw variants × questions; only cells that differ from the base are tinted."""
    chains, body = list(enumerate(sheet.chains)), Markup()
    heads = Markup().join(
        Markup('<th scope="col" id="few-head-{}">{}</th>').format(i, head(sheet, chain, i))
        for i, chain in chains
    )
    for x in sheet.examples:
        cells = Markup().join(cell(sheet, chain, x, i) for i, chain in chains)
        gold = f"gold {x.gold.answers[0]}" if x.gold.answers else "no gold answer"
        address = QuestionAddress(q=x.question.qid).href
        body += Markup(
            '<tr><th scope="row"><a href="{}" dir="auto">{}</a><small dir="auto">{}</small></th>{}</tr>'
        ).format(address, x.question.text, gold, cells)
    corner = Markup('<th class="corner" scope="col"><span class="vn">{}</span></th>').format(
        plural(len(sheet.examples), "question")
    )
    return Markup(
        '<table class="grid"><thead><tr>{}{}</tr></thead><tbody>{}</tbody></table>'
    ).format(corner, heads, body)


def head(sheet: Sheet, chain: Chain, index: int) -> Markup:
    """Draw the name of a variant, its mean, and its difference from the base."""
    scored = variants.scores(chain, sheet.examples, sheet.grid.cells, sheet.metric).values()
    mean, articles = variants.chain_mean(chain, sheet.examples, sheet.grid.cells, sheet.metric)
    counted = variants.count_note(sheet.metric, list(scored))
    name, more, beside = sheet.label(chain), Markup(), "compared with this"
    if index:
        beside = difference(sheet.against(chain))
    if chain in sheet.grid.variants:
        at = sheet.grid.variants.index(chain)
        more = html.menu(
            html.button("Use in Build", "few.use", index=at),
            html.button("Edit a copy", "few.ask_variant", index=at),
            html.button("Remove", "few.drop", index=at, kind="danger"),
            label=f"More for {name}",
        )
    elif index:
        name = f"{name}, as edited in Build"
    why = figures.doubt(mean, articles.counts)
    figure = Markup('<span title="{}">{}</span> <small>{}</small>').format(
        why, figures.percent(mean), counted
    )
    return Markup(
        '<span class="vn">{}<span class="gap"></span>{}</span><div class="vs">{}</div><small>{}</small>'
    ).format(name, more, figure, beside)


def difference(pair: PairedComparison) -> Markup:
    """Draw a paired difference with its interval and counts."""
    if not pair.n:
        return Markup("not asked yet")
    gap = figures.gap(pair.gap)
    return Markup("{} · {} better, {} worse").format(gap, pair.wins, pair.losses)


def cell(sheet: Sheet, chain: Chain, x: Example, index: int) -> Markup:
    """Draw the answer of a variant to a question."""
    cells = sheet.grid.cells
    value, first = cells.get(cell_key(chain, x)), cells.get(cell_key(sheet.chains[0], x))
    tint, inside = "", Markup("<small>–</small>")
    if value:
        inside = Markup('{}<span dir="auto">{}</span>').format(
            html.mark(value.kind), answer_text(value.answer[:300])
        )
    both = [answer.score(sheet.metric) for answer in (value, first) if answer]
    scored = [score for score in both if score is not None]
    if len(scored) == 2 and scored[0] != scored[1]:
        tint = "up" if scored[0] > scored[1] else "down"
    return Markup('<td class="{}" id="few-{}-{}">{}</td>').format(
        tint, index, x.question.qid, inside
    )


def sentence(sheet: Sheet) -> Markup:
    """Say whether there are enough questions, and offer a run on the whole dataset."""
    count, base = len(sheet.examples), sheet.chains[0]
    if not count:
        nothing = NOTHING.get(sheet.grid.sample, NOTHING["picked"])
        return nothing.format(dataset=sheet.dataset)
    if len(sheet.chains) == 1:
        return Markup(
            "Add a variant of the chain, with another prompt, k, index or model, and compare it question by question."
        )
    pairs = [(chain, sheet.against(chain)) for chain in sheet.chains[1:]]
    significant_pairs = [
        (chain, pair) for chain, pair in pairs if pair.significant and pair.difference
    ]
    whole = len(sheet.page.workspace.questions(sheet.dataset))
    label = html.join_facts(f"Run on all {whole:,}", duration_of_all(sheet, whole))
    more = html.button(label, "few.ask_all", kind="quiet")
    if significant_pairs:
        chain, pair = max(significant_pairs, key=lambda item: abs(item[1].difference or 0))
        better = "better" if (pair.difference or 0) > 0 else "worse"
        return Markup("<b>{}</b> is {} than {} on these {} questions: {}. {}").format(
            sheet.label(chain),
            better,
            base.name,
            pair.n,
            difference(pair),
            more,
        )
    if count < FEW:
        are = "question is" if count == 1 else "questions are"
        return Markup(
            "<b>{} {} too few to show a difference</b>; they show where the answers change. {}"
        ).format(count, are, more)
    return Markup("<b>No difference is shown</b> on these {} questions. {}").format(count, more)


def duration_of_all(sheet: Sheet, whole: int) -> str:
    """Estimate the duration of ``whole`` questions per column from the answers so far; "" while a column has none."""
    expected = 0.0
    for chain in sheet.chains:
        cells = (sheet.grid.cells.get(cell_key(chain, x)) for x in sheet.examples)
        took = [cell.seconds for cell in cells if cell and cell.seconds]
        if not took:
            return ""
        expected += whole * sum(took) / len(took)
    return time_range(*forecasts.widen(expected)[1:])
