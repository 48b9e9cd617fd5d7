"""Compare variants of a chain on a few questions: missing answers, differences, and whether the questions suffice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from rallebench.analysis.paired import compare
from rallebench.analysis.waterfall import are_long
from rallebench.chains.saved import chain_to_json
from rallebench.core.comparison import PairedComparison
from rallebench.core.numbers import plural
from rallebench.core.report import Bounds, Clusters, Estimate
from rallebench.core.run_titles import difference_label
from rallebench.core.types import Chain, Episode, Example, digest
from rallebench.core.waterfall import verdict_kind
from rallebench.engine.clusters import find_clusters, list_articles
from rallebench.engine.headline import is_graded
from rallebench.engine.score import score_episode
from rallebench.engine.statistics import means

R_PRECISION, NDCG = "Rprec", "ndcg"
"""Retrieval metrics that compare variants; nDCG is computed at the chain's depth."""


@dataclass(frozen=True, slots=True)
class VariantAnswer:
    """A variant's answer to a question. ``kind``: right, wrong, failed, or none without gold answers. ``retrieval``:
    retrieval metric → score. ``episode``: the steps behind it.
    """

    kind: str
    answer: str
    em: float | None
    seconds: float
    episode: Episode
    retrieval: Mapping[str, float | None] = field(default_factory=dict)

    def score(self, metric: str) -> float | None:
        """Return the score by exact match or a retrieval metric; None if there is none."""
        return self.em if metric == "em" else self.retrieval.get(metric)


Cells = Mapping[tuple[str, str], VariantAnswer]
"""(``answer_key`` of a chain, question id) → its answer."""


def answer_key(chain: Chain) -> str:
    """Return a key that is equal for chains with equal actions, whatever their names."""
    return digest(chain_to_json(chain)["actions"])[:16]


def cell_key(chain: Chain, example: Example) -> tuple[str, str]:
    """Return the key of a chain's answer to a question."""
    return answer_key(chain), example.question.qid


def variant_answer(
    chain: Chain, example: Example, episode: Episode, dataset: Sequence[Example]
) -> VariantAnswer:
    """Convert an episode to a variant's answer. Where the dataset's answers are too long for exact match, none is wrong."""
    if episode.error:
        return VariantAnswer("failed", episode.error, None, 0.0, episode)
    names = ("em", "Rprec", f"ndcg@{chain.depth}") if chain.depth else ("em",)
    em, *retrieval = (score.value for score in score_episode(episode, example, names))
    seconds = sum(step.seconds for step in episode.steps)
    values = dict(zip((R_PRECISION, NDCG), retrieval)) if example.gold.pages else {}
    kind = verdict_kind("", em, "in_prompt" if are_long(dataset) else "")
    return VariantAnswer(kind, episode.answer, em, seconds, episode, values)


def deciding(chains: Sequence[Chain], examples: Sequence[Example]) -> str:
    """Return the metric that ranks the chains: exact match; or, if one of them only retrieves, nDCG for graded gold
    and R-precision otherwise.
    """
    if all(chain.produces_answer for chain in chains) or not all(c.depth for c in chains):
        return "em"
    return NDCG if is_graded(examples) else R_PRECISION


def missing(
    chains: Sequence[Chain], examples: Sequence[Example], cells: Cells
) -> list[tuple[Chain, Example]]:
    """Return the cells still to be asked, question by question."""
    grid = product(examples, chains)
    return [(chain, x) for x, chain in grid if cell_key(chain, x) not in cells]


def scores(
    chain: Chain, examples: Sequence[Example], cells: Cells, metric: str = "em"
) -> dict[str, float]:
    """Question id → a chain's score, for the scored questions."""
    answers = {x.question.qid: cells.get(cell_key(chain, x)) for x in examples}
    values = {qid: cell.score(metric) for qid, cell in answers.items() if cell}
    return {qid: value for qid, value in values.items() if value is not None}


def chain_mean(
    chain: Chain,
    examples: Sequence[Example],
    cells: Cells,
    metric: str = "em",
    largest: int | None = None,
) -> tuple[Estimate, Clusters]:
    """Return a chain's mean over the questions that it answered, with its interval over articles, and the articles."""
    scored = scores(chain, examples, cells, metric)
    return mean_with_interval(scored, examples, (0.0, 1.0), largest)


def mean_with_interval(
    scored: Mapping[str, float],
    examples: Sequence[Example],
    bounds: Bounds,
    largest: int | None = None,
) -> tuple[Estimate, Clusters]:
    """Return the mean of question id → score, with its interval over articles, and the articles. ``largest``: the questions of
    the dataset's largest article, if questions are asked until it is decided.
    """
    clusters = find_clusters([x for x in examples if x.question.qid in scored])
    qids = list(scored)
    column = {"score": [scored[qid] for qid in qids]}
    estimate = means(column, clusters.labels(qids), {"score": bounds}, largest)["score"]
    return estimate, clusters


def count_note(metric: str, scored: Sequence[float]) -> str:
    """Return the count shown beside a variant's mean; '' before the first score.

    >>> count_note("em", [1.0, 0.0]), count_note("Rprec", [0.5]), count_note("em", [])
    ('1 of 2 right', 'R-precision, 1 question', '')
    """
    if not scored:
        return ""
    if metric == "em":
        return f"{sum(scored):.0f} of {len(scored)} right"
    label = "nDCG" if metric == NDCG else "R-precision"
    return f"{label}, {plural(len(scored), 'question')}"


def sample(examples: Sequence[Example], count: int) -> list[Example]:
    """Return ``count`` questions, evenly spread over a dataset."""
    if count >= len(examples):
        return list(examples)
    step = len(examples) / count
    return [examples[int(i * step)] for i in range(count)]


def compare_chains(
    base: Chain,
    other: Chain,
    examples: Sequence[Example],
    cells: Cells,
    metric: str = "em",
    *,
    largest: int | None = None,
    comparisons: int = 1,
) -> PairedComparison:
    """Compare ``other`` with ``base`` on the questions that both have answered. ``largest``: as for ``mean_with_interval``;
    ``comparisons``: the number of variants that are decided.
    """
    a, b = (scores(chain, examples, cells, metric) for chain in (base, other))
    return compare(
        metric,
        a,
        b,
        clusters=find_clusters(examples).of,
        bounds={metric: (0.0, 1.0)},
        comparisons=comparisons,
        largest=largest,
    )


def largest_article(examples: Sequence[Example]) -> int:
    """Return the number of questions of the largest article."""
    return max(map(len, list_articles(examples)))


def first_articles(examples: Sequence[Example], count: int) -> list[Example]:
    """Return at least ``count`` questions, if there are as many: whole articles in a random order that is always the same."""
    articles = list_articles(examples)
    random.Random(0).shuffle(articles)
    chosen: list[Example] = []
    while articles and len(chosen) < count:
        chosen += articles.pop()
    return chosen


def base_label(base: Chain, others: Sequence[Chain]) -> str:
    """Return the name of the base, with its index if each of the other chains has another one.

    >>> from rallebench.core.types import Action
    >>> a, b = (Chain("docs", (Action("retrieve", "{question}", target=name),)) for name in ("bm25", "dense"))
    >>> base_label(a, [b]), base_label(a, [a.replace_action(0, k=9), b])
    ('docs · bm25', 'docs')
    """
    differ = [chain.retrievers != base.retrievers for chain in others]
    if len(base.retrievers) == 1 and differ and all(differ):
        return f"{base.name} · {base.retrievers[0]}"
    return base.name


def variant_label(base: Chain, other: Chain, saved: Chain | None) -> str:
    """Return the label of a variant compared with ``base``: their difference. A variant of another saved chain has
    that chain's name instead, followed by its difference from ``saved``.

    >>> from rallebench.core.types import Action
    >>> a, b = (Chain(name, (Action("retrieve", "{question}", target="x", k=5),)) for name in "ab")
    >>> [variant_label(a, chain, b) for chain in (a.replace_action(0, k=9), b, b.replace_action(0, k=9))]
    ['k 9', 'b', 'b · k 9']
    """
    if other.name == base.name:
        return difference_label(base, other)
    different = "edited" if saved is None else difference_label(saved, other)
    return other.name if different == "the same" else f"{other.name} · {different}"
