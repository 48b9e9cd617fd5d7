"""A run, or several beside each other, as one HTML file that opens anywhere and asks nothing of a network."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from rallebench import __version__
from rallebench.analysis.changes import changes
from rallebench.analysis.exporting import answered
from rallebench.analysis.radar import axes_of, over, over_datasets, share_nothing
from rallebench.analysis.ranking import MultiRunComparison, compare_many, with_mean
from rallebench.analysis.runs import waterfall_of
from rallebench.chains.chain import prompt_of
from rallebench.core.types import Episode, Example
from rallebench.engine.answers import heads
from rallebench.engine.ralle_files import prompts_text
from rallebench.engine.score import score_episode
from rallebench.engine.store import RunFolder
from rallebench.gui import views_compare, views_fall, views_plots
from rallebench.gui.drawings import ALLOWED
from rallebench.gui.views import empty, note
from rallebench.gui.views_runs import whole_report
from rallebench.workspace.entries import chain_from_json
from rallebench.workspace.paths import Workspace

STYLE = Path(__file__).with_name("style.css")
LONGEST = 1500
"""Characters of a prompt or response that a report shows; the run folder has the whole."""
FLIPPED_AT_MOST, RADARS_AT_MOST = 200, 3

COLOURS = """
:root { --border-color-primary: #dbe1e8; --background-fill-primary: #fff; --background-fill-secondary: #f7f9fb;
  --color-accent: #0d9488; --font: system-ui, sans-serif; color-scheme: light; }
body { font-family: var(--font); max-width: 72rem; margin: 1.5rem auto; padding: 0 1rem; line-height: 1.45; color: #1f2937; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
details { border-bottom: 1px solid var(--border-color-primary); padding: .3rem 0; }
summary { cursor: pointer; } summary .rb-badge { margin-left: .4rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .84rem; background: var(--background-fill-secondary);
  padding: .5rem; border-radius: 6px; }
"""


def run_page(run: RunFolder, workspace: Workspace) -> Iterator[str]:
    """The report of one run: every metric, where questions were lost, the chain, and every question."""
    made = run.spec()
    yield _head(f"Run {run.name}")
    yield whole_report(run)
    yield f"<h2>Where questions were lost</h2>{views_fall.waterfalls([(run.name, waterfall_of(run, workspace))])}"
    yield f"<h2>What was run</h2><pre>{escape(_made(made['spec']))}</pre>"
    yield "<h2>Every question</h2>"
    for example, episode in answered(run):
        yield _question(example, episode)
    yield _foot()


def comparison_page(
    runs: Sequence[RunFolder], workspace: Workspace, metric: str = ""
) -> Iterator[str]:
    """Several runs: every metric, the differences, where each lost its questions, what was changed, what flipped; of
    runs that share no question their means over question sets."""
    if share_nothing(runs):
        yield from _over_sets(runs, metric)
        return
    found = compare_many(runs, metric)
    qids = {example.question.qid for example in found.common}
    yield _head(f"Comparison of {', '.join(run.name for run in runs)}")
    yield f"<h2>Every metric</h2>{views_compare.table(found)}<h2>Differences</h2>{views_compare.differences(found)}"
    falls = [(run.name, waterfall_of(run, workspace).within(qids)) for run in runs]
    yield f"<h2>Where questions were lost</h2>{views_fall.waterfalls(falls)}"
    named = [(run.name, with_mean(run, found.metric)) for run in runs]
    for across, label in views_plots.COST_AXES.items():
        if drawn := views_plots.deployment_drawing(named, found.measure, across):
            yield f"<h2>Quality against {escape(label)}</h2>{drawn}"
    for by in axes_of(runs, found.common)[:RADARS_AT_MOST]:
        yield f"<h2>By {escape(by)}</h2>{views_plots.radar_drawing(over(runs, found.common, found.metric, by))}"
    for other, against in zip(runs[1:], found.against):
        yield f"<h2>{escape(runs[0].name)} and {escape(other.name)}</h2>"
        yield views_compare.changed(
            changes(runs[0].spec()["spec"], other.spec()["spec"]), runs[0].name, other.name
        )
        if against.paired.n:
            yield from _flipped(found, runs[0], other, against.paired.flipped)
        else:
            yield empty(f"No question is scored by {found.measure.about['label']} in both.")
    yield _foot()


def _over_sets(runs: Sequence[RunFolder], metric: str) -> Iterator[str]:
    found = over_datasets(runs, metric)
    yield _head(f"Comparison of {', '.join(run.name for run in runs)}")
    yield note(
        "The runs share no question, so no difference between two of them can be tested; these are their means."
    )
    yield views_plots.radar_drawing(found) + _foot()


def _flipped(
    found: MultiRunComparison, first: RunFolder, other: RunFolder, qids: Sequence[str]
) -> Iterator[str]:
    if not qids:
        yield empty("No question changed its score.")
        return
    by_id = {example.question.qid: example for example in found.common}
    sides = [heads(run) for run in (first, other)]
    told = f", the first {FLIPPED_AT_MOST} of them" if len(qids) > FLIPPED_AT_MOST else ""
    one = len(qids) == 1
    yield f"<p>{len(qids)} question{'s' * (not one)} changed {'its' if one else 'their'} score{told}:</p>"
    for qid in qids[:FLIPPED_AT_MOST]:
        a, b = (str(answers.get(qid, {}).get("answer", "")) for answers in sides)
        gold = " / ".join(by_id[qid].gold.answers[:3])
        yield (
            f"<details><summary>{escape(by_id[qid].question.text)}</summary><p>gold: {escape(gold)}</p>"
            f"<p>{escape(first.name)}: {escape(a)}</p><p>{escape(other.name)}: {escape(b)}</p></details>"
        )


def _made(spec: dict[str, object]) -> str:
    settings = spec["settings"]
    assert isinstance(settings, dict)
    if settings.get("chain"):
        return prompts_text(chain_from_json(settings["chain"]))
    return json.dumps(settings, ensure_ascii=False, indent=2)


def _question(example: Example, episode: Episode) -> str:
    (score,) = score_episode(episode, example, ("em",))
    kind, said = {1.0: ("good", "right"), 0.0: ("bad", "wrong")}.get(
        score.value if score.value is not None else -1.0, ("", "not scored")
    )
    if episode.error:
        kind, said = "bad", "failed"
    steps = "".join(
        f"<p>{number}. asked</p><pre>{escape(_short(prompt_of(step.request)))}</pre><p>answered</p>"
        f"<pre>{escape(_short(step.reply.text))}</pre>"
        for number, step in enumerate(episode.steps, 1)
    )
    gold = " / ".join(example.gold.answers[:5]) or "–"
    return (
        f'<details><summary>{escape(example.question.text)} <span class="rb-badge {kind}">{said}</span></summary>'
        f"<p>answer: <b>{escape(episode.error or episode.answer or '(empty)')}</b>; gold: {escape(gold)}</p>{steps}</details>"
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters)"


def _head(title: str) -> str:
    style = STYLE.read_text(encoding="utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        f'img-src data:; script-src {ALLOWED}">'
        f"<style>{COLOURS}{style}</style></head><body><h1>{escape(title)}</h1>"
    )


def _foot() -> str:
    return f'<p class="rb-label">Written by rallebench {__version__} on {time.strftime("%Y-%m-%d %H:%M")}.</p></body></html>\n'
