"""Episodes in a notebook: step by step, with prompts and replies."""

from __future__ import annotations

from dataclasses import fields
from textwrap import shorten

from rallebench.core.live import heading
from rallebench.core.terminal import visible
from rallebench.core.types import Episode
from rallebench.render import report
from rallebench.views.reports import step_blocks

EXCERPT = 90
"""Characters of a reply in a printed episode."""


class AskedEpisode(Episode):
    """An episode: its ``answer``, and its ``steps`` with request, reply, ``hits`` and seconds. ``error``: the reason of a
    failure, or ''."""

    def __repr__(self) -> str:
        lines = [
            f"{number}. {heading(step.request)} ({'cached' if step.cached else f'{step.seconds:.2f} s'}): "
            f"{shorten(step.reply.text, EXCERPT)}"
            for number, step in enumerate(self.steps, 1)
        ]
        ending = f"failed: {self.error}" if self.error else f"answer: {self.answer}"
        return visible("\n".join([*lines, ending]))

    def _repr_html_(self) -> str:
        ending = f"failed: {self.error}" if self.error else f"answer: {self.answer}"
        return "".join(map(str, map(report.block, [ending, *step_blocks(self.steps)])))


def as_asked(episode: Episode) -> AskedEpisode:
    """The same episode in the form for a notebook."""
    return AskedEpisode(**{field.name: getattr(episode, field.name) for field in fields(episode)})
