"""Waterfalls: where runs lost their questions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rallebench.analysis.waterfall import SHORT, STAGES, Waterfall, figure, notes, table
from rallebench.gui.views import note
from rallebench.render import colours, csv, svg
from rallebench.render.html import csv_link


def waterfalls(named: Sequence[tuple[str, Waterfall]]) -> str:
    """One bar per run, a part per stage; then the stages that occur, with what they mean. A run that retrieved nothing for
    questions without gold pages has none."""
    said = "".join(map(note, notes(named)))
    traced = [(name, fall) for name, fall in named if fall.tells]
    if not traced:
        return said
    bars = "".join(_bar(name, fall) for name, fall in traced)
    stages = [stage for stage in STAGES if any(fall.counts()[stage] for _, fall in traced)]
    keys = "".join(
        f'<li data-stage="{stage}"><span class="rb-key" style="background:{colours.part(stage)}"></span><b>{SHORT[stage]}</b>: {escape(STAGES[stage])}</li>'
        for stage in stages
    )
    drawn = svg.save_links(svg.figure(figure(traced)), "waterfall")
    saved = csv_link("waterfall.csv", csv.table(table(traced)))
    return f'{bars}<ul class="rb-list rb-keys">{keys}</ul>{said}{drawn}{saved}'


def lost(name: str, fall: Waterfall, hint: str) -> str:
    """One run's waterfall under a heading, with what else can be done; nothing for a run without questions."""
    if not fall.placed or not fall.tells:
        return ""
    told = f'<div class="rb-label"><span>{escape(hint)}</span></div>'
    return f'<div class="rb-section"><h3>Where questions were lost</h3></div>{told}{waterfalls([(name, fall)])}'


def _bar(name: str, fall: Waterfall) -> str:
    total = len(fall.placed)
    parts = "".join(
        f'<div data-stage="{stage}" style="width:{100 * count / total:.3f}%;background:{colours.part(stage)}" title="{SHORT[stage]}: {count} of {total}">'
        f'<span style="color:{colours.ink_on(colours.part(stage))}">{count if count / total > 0.04 else ""}</span></div>'
        for stage, count in fall.counts().items()
        if count
    )
    return f'<div class="rb-fall"><b>{escape(name)}</b><div class="rb-parts">{parts}</div><span>n = {total}</span></div>'
