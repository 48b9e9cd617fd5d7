"""The table of a few questions: variants of the chain × questions, with means and differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product

from markupsafe import Markup

from rallebench.core.comparison import PairedComparison
from rallebench.core.deciding import Decided, Decision, StoppingRule, Watched
from rallebench.core.declining import accepted_answers
from rallebench.core.errors import RalleError
from rallebench.core.numbers import FEW, plural
from rallebench.core.report import Clusters, Estimate
from rallebench.core.scoring import ScoreRow
from rallebench.core.types import Chain, Episode, Example
from rallebench.gui import figures, html
from rallebench.gui.addresses import Door, QuestionAddress
from rallebench.gui.answers import draw_answer
from rallebench.gui.forecasts import run_time
from rallebench.gui.frame import Page
from rallebench.gui.places._bench import Busy
from rallebench.render.numbers import text
from rallebench.services.run_forecasts import RunForecast, forecast_run, join_forecasts
from rallebench.views import variants
from rallebench.views.grid_columns import GridColumn, Series, score_answer
from rallebench.views.variants import VariantAnswer, answer_key, cell_key

DECIDED, LOOK = "decided", 10
"""The sample that grows until every variant is decided, and the questions between two looks at it."""

PATIENCE = 0.5
"""Seconds to search the reply cache for the answers of a chain."""

NOTHING = {
    "wrong": Markup(
        "No question of {dataset} is known to be wrong. Run the chain on the dataset first, or choose a sample above."
    ),
    "picked": Markup(
        "No question is picked. Choose a sample above, or press Pick for a few questions at a question."
    ),
}
"""Sample → advice if it contains no questions."""


VARIANT = "~"
"""Before the key of a variant in the address of a trace."""


Scored = tuple[str, str, str]
"""(``answer_key`` of a chain, question id, text of a column)."""


def score_key(chain: Chain, example: Example, column: GridColumn) -> Scored:
    """Return the key of an answer's scores in a column."""
    return (*cell_key(chain, example), column.text)


@dataclass
class VariantGrid(Busy):
    """``variants``: chains to compare with the base; ``names``: key of a chain → the name that the user gave it.
    ``picked``: ids chosen by hand. ``columns``: scores of every answer; ``judgements``: those of its judges; ``rows``: the
    scores so far. ``begins``: True if the questions are asked when the grid is opened; ``watched``: questions of
    the sample that grows until it is decided; ``foreseen``: the last forecast of the whole dataset, with what it depends on.
    """

    variants: list[Chain] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    sample: str = "10"
    picked: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], VariantAnswer] = field(default_factory=dict)
    begins: bool = False
    watched: int = LOOK
    columns: list[GridColumn] = field(default_factory=list)
    judgements: dict[Scored, Episode | None] = field(default_factory=dict)
    rows: dict[Scored, ScoreRow] = field(default_factory=dict)
    foreseen: tuple[object, RunForecast] | None = None

    def seconds(self, chain: Chain) -> list[float]:
        """Return the seconds of each answer of a chain so far."""
        key = answer_key(chain)
        return [
            cell.seconds for (own, _), cell in self.cells.items() if own == key and cell.seconds
        ]


@dataclass(frozen=True)
class Sheet:
    """The grid of a window at one moment. ``chains``: the base comes first."""

    page: Page
    dataset: str
    grid: VariantGrid
    chains: Sequence[Chain]
    examples: Sequence[Example]

    @property
    def largest(self) -> int | None:
        """The questions of the dataset's largest article, if the sample grows until it is decided."""
        if self.grid.sample != DECIDED:
            return None
        return variants.largest_article(self.page.workspace.questions(self.dataset))

    @property
    def is_open(self) -> bool:
        """True if some variant is not decided, and questions are left."""
        whole = len(self.page.workspace.questions(self.dataset))
        return len(self.examples) < whole and any(
            as_decided(self, chain).outcome is Decision.OPEN for chain in self.chains[1:]
        )

    @property
    def metric(self) -> str:
        """The metric that ranks all columns."""
        return variants.deciding(self.chains, self.examples)

    def label(self, chain: Chain) -> str:
        """Return the name of a column."""
        base = self.chains[0]
        saved: Chain | None = None
        if own := self.grid.names.get(answer_key(chain)):
            return own
        if chain is base:
            return variants.base_label(base, self.chains[1:])
        with suppress(RalleError):  # the variant was deleted
            saved = self.page.workspace.chain(chain.name)
        return variants.variant_label(base, chain, saved)

    def scores(self, chain: Chain, example: Example, column: GridColumn) -> ScoreRow | None:
        """Return the scores of an answer in a column; None before the answer, or before its judgement."""
        answer = self.grid.cells.get(cell_key(chain, example))
        key = score_key(chain, example, column)
        if answer is None or (column.kind == "judge" and key not in self.grid.judgements):
            return None
        if key not in self.grid.rows:
            scorer = column.scorer(self.page.workspace.llm_mark)
            judgement = self.grid.judgements.get(key)
            self.grid.rows[key] = score_answer(scorer, example, answer.episode, judgement)
        return self.grid.rows[key]

    def missing_judgements(self) -> list[tuple[Chain, Example, GridColumn]]:
        """Return the answers, so far or still to come, that a judge has not judged."""
        judges = [column for column in self.grid.columns if column.kind == "judge"]
        return [
            (chain, x, column)
            for chain, x, column in product(self.chains, self.examples, judges)
            if score_key(chain, x, column) not in self.grid.judgements
        ]

    def column_mean(
        self, chain: Chain, column: GridColumn, series: Series
    ) -> tuple[Estimate, Clusters]:
        """Return the mean of a series over the answers of a chain, with its interval, and the articles."""
        rows = {x.question.qid: self.scores(chain, x, column) for x in self.examples}
        values = {qid: row.values.get(series.name) for qid, row in rows.items() if row}
        scored = {qid: value for qid, value in values.items() if value is not None}
        return variants.mean_with_interval(scored, self.examples, series.bounds, self.largest)

    def mean(self, chain: Chain) -> tuple[Estimate, Clusters]:
        """Return the mean of a chain by the deciding metric, with its interval, and the articles."""
        return variants.chain_mean(chain, self.examples, self.grid.cells, self.metric, self.largest)

    def against(self, chain: Chain) -> PairedComparison:
        """Compare a variant with the base."""
        return variants.compare_chains(
            self.chains[0],
            chain,
            self.examples,
            self.grid.cells,
            self.metric,
            largest=self.largest,
            comparisons=1 if self.largest is None else len(self.chains) - 1,
        )


@dataclass(frozen=True, slots=True)
class Styles:
    """Forms of the intervals in a row of means; see ``figures.needs_ends``. ``columns``: those of further columns, by
    (text of the column, name of the series).
    """

    ends: bool
    columns: Mapping[tuple[str, str], bool]


def table(sheet: Sheet) -> Markup:
    """Draw variants × questions; only cells that differ from the base are tinted."""
    chains, body = list(enumerate(sheet.chains)), Markup()
    means = [sheet.mean(chain) for chain in sheet.chains]
    styles = Styles(
        figures.needs_ends(mean for mean, _ in means),
        {
            (column.text, series.name): figures.needs_ends(
                [sheet.column_mean(chain, column, series)[0] for chain in sheet.chains], series.unit
            )
            for column in sheet.grid.columns
            for series in column.series
        },
    )
    heads = Markup().join(
        Markup('<th scope="col" id="few-head-{}">{}</th>').format(
            i, head(sheet, chain, i, means[i], styles)
        )
        for i, chain in chains
    )
    for x in sheet.examples:
        cells = Markup().join(cell(sheet, chain, x, i) for i, chain in chains)
        accepted = accepted_answers(x.gold)
        gold = f"gold {accepted[0]}" if accepted else "no gold answer"
        address = QuestionAddress(q=x.question.qid).href
        body += Markup(
            '<tr><th scope="row"><a href="{}" dir="auto">{}</a><small dir="auto">{}</small></th>{}</tr>'
        ).format(address, x.question.text, gold, cells)
    corner = Markup('<th class="corner" scope="col"><span class="vn">{}</span>{}</th>').format(
        plural(len(sheet.examples), "question"), listed_columns(sheet)
    )
    drawn = Markup(
        '<table class="grid"><thead><tr>{}{}</tr></thead><tbody>{}</tbody></table>'
    ).format(corner, heads, body)
    return html.copyable_table(drawn)


def listed_columns(sheet: Sheet) -> Markup:
    """Draw the further columns, each with a button that removes it."""
    buttons = Markup().join(
        Markup('<button type="button" title="Remove this column"{}>{} ✕</button>').format(
            html.attributes(do="few.drop_column", column=column.text), column.label
        )
        for column in sheet.grid.columns
    )
    return Markup('<div class="chips">{}</div>').format(buttons) if buttons else Markup()


def column_means(sheet: Sheet, chain: Chain, styles: Styles) -> Markup:
    """Draw the mean of every further column for a variant."""
    lines = Markup()
    for column in sheet.grid.columns:
        for series in column.series:
            mean, articles = sheet.column_mean(chain, column, series)
            ends = styles.columns[column.text, series.name]
            lines += Markup('<dt>{}</dt><dd title="{}">{}</dd>').format(
                series.label,
                figures.doubt(mean, articles.counts),
                figures.quantity(mean, series.unit, ends=ends),
            )
    return Markup('<dl class="means">{}</dl>').format(lines) if lines else Markup()


def answer_scores(sheet: Sheet, chain: Chain, x: Example) -> Markup:
    """Draw the scores of an answer in every further column: ✓ or ✕ for an assertion, else a number."""
    parts = Markup()
    for column in sheet.grid.columns:
        row = sheet.scores(chain, x, column)
        for series in column.series:
            value = row.values.get(series.name) if row else None
            note = row.notes.get(series.name, "") if row else "not judged yet"
            word: str = text(value, "quantity")
            if series.is_assertion and value is not None:
                word = html.mark("right" if value else "wrong")
            parts += Markup('<span title="{}">{} {}</span>').format(note, series.label, word)
    return Markup('<small class="scores">{}</small>').format(parts) if parts else Markup()


def head(
    sheet: Sheet, chain: Chain, index: int, mean_of: tuple[Estimate, Clusters], styles: Styles
) -> Markup:
    """Draw the name of a variant, its mean, and its difference from the base."""
    scored = variants.scores(chain, sheet.examples, sheet.grid.cells, sheet.metric).values()
    mean, articles = mean_of
    counted = variants.count_note(sheet.metric, list(scored))
    name, more, beside = sheet.label(chain), Markup(), "compared with this"
    if index:
        beside = difference(sheet.against(chain))
    if chain in sheet.grid.variants:
        at = sheet.grid.variants.index(chain)
        more = html.menu(
            html.button("Use in Build", "few.use", index=at),
            html.button("Rename", "few.ask_name", index=at),
            html.button("Edit a copy", "few.ask_variant", index=at),
            html.button("Remove", "few.drop", index=at, kind="danger"),
            label=f"More for {name}",
        )
    elif index:
        name = f"{name}, as edited in Build"
    why = figures.doubt(mean, articles.counts)
    figure = Markup('<span title="{}">{}</span> <small>{}</small>').format(
        why, figures.percent(mean, ends=styles.ends), counted
    )
    return Markup(
        '<span class="vn">{}<span class="gap"></span>{}</span><div class="vs">{}</div><small>{}</small>{}'
    ).format(name, more, figure, beside, column_means(sheet, chain, styles))


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
        inside = Markup('{}<div dir="auto">{}</div>').format(
            html.mark(value.kind), draw_answer(value.answer[:300], with_raw=False)
        )
    both = [answer.score(sheet.metric) for answer in (value, first) if answer]
    scored = [score for score in both if score is not None]
    if len(scored) == 2 and scored[0] != scored[1]:
        tint = "up" if scored[0] > scored[1] else "down"
    if value:
        inside = html.door(variant_door(chain, x), inside + answer_scores(sheet, chain, x))
    return Markup('<td class="{}" id="few-{}-{}">{}</td>').format(
        tint, index, x.question.qid, inside
    )


def variant_door(chain: Chain, example: Example) -> Door:
    """Return the door to the trace of a cell."""
    key, qid = cell_key(chain, example)
    return Door.to(f"{VARIANT}{key}", qid)


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
    if sheet.grid.sample == DECIDED:
        lines = [f"{sheet.label(chain)}: {as_decided(sheet, chain)}" for chain, _ in pairs]
        return Markup("{}.").format(html.join_facts(*lines))
    label = html.join_facts(f"Run on all {whole:,}", time_of_all(sheet))
    more = html.button(label, "few.ask_all", kind="quiet")
    if significant_pairs:
        chain, pair = max(significant_pairs, key=lambda item: abs(item[1].difference or 0))
        better = "better" if (pair.difference or 0) > 0 else "worse"
        return Markup("<b>{}</b> is {} than {} on {}: {}. {}").format(
            sheet.label(chain),
            better,
            base.name,
            plural(pair.n, "question"),
            difference(pair),
            more,
        )
    if count < FEW:
        are = "question is" if count == 1 else "questions are"
        return Markup(
            "<b>{} {} too few to show a difference</b>; they show where the answers change. {}"
        ).format(count, are, more)
    return Markup("<b>No difference is shown</b> on {}. {}").format(plural(count, "question"), more)


def as_decided(sheet: Sheet, chain: Chain) -> Decided:
    """Return what the answers so far say of a variant and the base."""
    pair = sheet.against(chain)
    whole = len(sheet.page.workspace.questions(sheet.dataset))
    rule = StoppingRule(sheet.label(sheet.chains[0]), sheet.metric, questions=whole)
    low = -1.0 if pair.low is None else pair.low
    high = 1.0 if pair.high is None else pair.high
    return Decided(rule, Watched(pair.difference, low, high, pair.clusters, pair.n))


def forecast_all(sheet: Sheet, chains: Iterable[Chain], patience: float) -> RunForecast:
    """Forecast the runs of chains on the whole dataset. ``patience``: seconds to search the reply cache for each."""
    page, whole = sheet.page, sheet.page.workspace.questions(sheet.dataset)
    return join_forecasts(
        forecast_run(
            page.workbench.forecasts,
            chain,
            whole,
            taken=sheet.grid.seconds(chain),
            patience=patience,
        )
        for chain in chains
    )


def time_of_all(sheet: Sheet) -> str:
    """Return the time that all chains take on the whole dataset; "" while the grid is being filled."""
    grid = sheet.grid
    if grid.running is not None:
        return ""
    now = (sheet.dataset, tuple(map(answer_key, sheet.chains)), len(grid.cells))
    if grid.foreseen is None or grid.foreseen[0] != now:
        grid.foreseen = now, forecast_all(sheet, sheet.chains, PATIENCE)
    return run_time(grid.foreseen[1])
