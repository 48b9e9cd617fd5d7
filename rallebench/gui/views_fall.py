"""Waterfalls: where runs lost their questions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rallebench.analysis.waterfall import SHORT, STAGES, UNTRACED, Waterfall
from rallebench.gui.drawings import falls, ink_on, save_links
from rallebench.gui.views import note
from rallebench.gui.views_csv import csv_link

STAGE_COLOURS: Mapping[str, str] = {
    "failed": "#334155",
    "not_in_corpus": "#7f1d1d",
    "not_retrieved": "#dc4c3e",
    "not_found": "#f08a80",
    "not_given": "#be185d",
    "not_in_prompt": "#ea8a3c",
    "not_in_answer": "#e3b23c",
    "lost_by_format": "#a3a847",
    "right_without_support": "#5b9bd5",
    "right": "#0d9488",
    "in_prompt": "#8b5cf6",
    "without_answers": "#6366f1",
    "unanswerable": "#94a3b8",
    "retrieved": "#c4b5fd",
    "not_recorded": "#cbd5e1",
}


def waterfalls(named: Sequence[tuple[str, Waterfall]]) -> str:
    """One bar per run, a part per stage; then the stages that occur, with what they mean. A run that retrieved nothing for
    questions without gold pages has none."""
    silent = [name for name, fall in named if not fall.tells]
    said = note(f"{', '.join(silent)}: {UNTRACED}") if silent else ""
    named = [(name, fall) for name, fall in named if fall.tells]
    if not named:
        return said
    bars = "".join(_bar(name, fall) for name, fall in named)
    there = [stage for stage in STAGES if any(fall.counts()[stage] for _, fall in named)]
    keys = "".join(
        f'<li data-stage="{stage}"><span class="rb-key" style="background:{STAGE_COLOURS[stage]}"></span><b>{SHORT[stage]}</b>: {escape(STAGES[stage])}</li>'
        for stage in there
    )
    notes = []
    unknown = [name for name, fall in named if fall.misses_corpus]
    for name in (name for name, fall in named if fall.imported):
        notes.append(
            f"{name}: imported predictions; no prompt is recorded, and where no page is, no retrieval either."
        )
    if unknown:
        notes.append(
            f"{', '.join(unknown)}: the corpus could not be looked at (its index is not in this workspace), so whether it "
            "holds the pages that were not retrieved is not known."
        )
    for name, fall in named:
        if fall.given:
            notes.append(
                f"{name}: {fall.given} question{'s' * (fall.given != 1)} came with passages; one that holds an answer counts as support."
            )
        if fall.without_pages:
            notes.append(
                f"{name}: {fall.without_pages} questions name no gold pages; there a passage that holds an answer counts as support."
            )
    rows: list[list[Any]] = [
        ["run", *STAGES],
        *[[name, *fall.counts().values()] for name, fall in named],
    ]
    drawn = save_links(
        falls([(name, fall.counts()) for name, fall in named], SHORT, STAGE_COLOURS), "waterfall"
    )
    return (
        bars
        + f'<ul class="rb-list rb-keys">{keys}</ul>'
        + "".join(map(note, notes))
        + said
        + drawn
        + csv_link("waterfall.csv", rows)
    )


def lost(name: str, fall: Waterfall, hint: str) -> str:
    """One run's waterfall under a heading, with what else can be done; nothing for a run without questions."""
    if not fall.placed or not fall.tells:
        return ""
    told = f'<div class="rb-label"><span>{escape(hint)}</span></div>'
    return f'<div class="rb-section"><h3>Where questions were lost</h3></div>{told}{waterfalls([(name, fall)])}'


def _bar(name: str, fall: Waterfall) -> str:
    total = len(fall.placed)
    parts = "".join(
        f'<div data-stage="{stage}" style="width:{100 * count / total:.3f}%;background:{STAGE_COLOURS[stage]}" title="{SHORT[stage]}: {count} of {total}">'
        f'<span style="color:{ink_on(STAGE_COLOURS[stage])}">{count if count / total > 0.04 else ""}</span></div>'
        for stage, count in fall.counts().items()
        if count
    )
    return f'<div class="rb-fall"><b>{escape(name)}</b><div class="rb-parts">{parts}</div><span>n = {total}</span></div>'
