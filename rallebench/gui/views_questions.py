"""The questions of a run as a table, and which of them a filter lists. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rallebench.analysis.waterfall import SHORT, Waterfall
from rallebench.core.memory import uncollected
from rallebench.core.types import Episode, Example
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.gui import views_cost
from rallebench.metrics.columns import columns

QUESTION_COLUMNS = (
    "#",
    "question",
    "answer",
    "gold answer",
    "EM",
    "F1",
    "R-prec",
    "gold rank",
    "s",
    "tokens",
    "from memory",
    "error",
)
FILTERS = (
    "all",
    "wrong",
    "right",
    "gold page not retrieved",
    "gold page retrieved, answer wrong",
    "refused or empty",
    "failed",
)
STAGE_FILTERS = {f"stage: {name}": stage for stage, name in SHORT.items()}
"""Filter → the stage of the waterfall whose questions it lists; offered below FILTERS."""

REFUSAL = "can not answer"

SHOWN = ("em", "f1", "Rprec")
"""The metrics of the table."""


@uncollected()
def question_rows(folder: RunFolder, chosen: str, fall: Waterfall | None = None) -> list[list[Any]]:
    """One row per answered question that fits the filter; ``fall`` is needed for those of STAGE_FILTERS."""
    episodes = folder.episodes()
    fallen = (
        set(fall.questions(STAGE_FILTERS[chosen])) if fall and chosen in STAGE_FILTERS else None
    )
    asked = [
        (n, e, episodes[e.question.qid])
        for n, e in enumerate(examples_of(folder), 1)
        if e.question.qid in episodes
    ]
    if fallen is not None:
        asked = [one for one in asked if one[2].qid in fallen]
    scored = columns(SHOWN, [(episode, example.gold) for _, example, episode in asked])
    searched = "Rprec" in (folder.spec().get("metrics") or ()) or any(
        episode.hits for episode in episodes.values()
    )
    rows = []
    for place, (position, example, episode) in enumerate(asked):
        scores = {name: column.values[place] for name, column in scored.items()}
        if fallen is not None or fits(chosen, episode, example, scores):
            rows.append(_question_row(position, example, episode, scores, searched))
    return rows


def fits(
    chosen: str, episode: Episode, example: Example, scores: Mapping[str, float | None]
) -> bool:
    """Whether a question belongs to a filter of FILTERS."""
    failed = bool(episode.error)
    right = scores["em"] == 1.0
    found = bool(example.gold.pages & {hit.passage.page_id for hit in episode.hits})
    return {
        "all": True,
        "failed": failed,
        "right": right,
        "wrong": not failed and bool(example.gold.answers) and not right,
        "gold page not retrieved": not failed and bool(example.gold.pages) and not found,
        "gold page retrieved, answer wrong": not failed and found and not right,
        "refused or empty": not failed
        and (not episode.answer.strip() or REFUSAL in episode.answer),
    }[chosen]


def _question_row(
    position: int,
    example: Example,
    episode: Episode,
    scores: Mapping[str, float | None],
    searched: bool,
) -> list[Any]:
    """``searched``: whether the run retrieved at all, or is scored by it; else nothing is said of what was retrieved."""
    pages = [hit.passage.page_id for hit in episode.hits]
    rank = next((i for i, page in enumerate(pages, 1) if page in example.gold.pages), None)

    def shown(name: str) -> str:
        value = scores[name]
        return "" if value is None else f"{value:.2f}"

    return [
        position,
        example.question.text,
        episode.answer,
        " / ".join(example.gold.answers[:3]),
        shown("em"),
        shown("f1"),
        shown("Rprec") if searched else "",
        rank or ("none" if example.gold.pages and searched else ""),
        *views_cost.question_cells(episode),
        f"{sum(s.cached for s in episode.steps)} of {len(episode.steps)}",
        episode.error,
    ]
