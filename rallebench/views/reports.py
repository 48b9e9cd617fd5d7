"""One run, or several compared, as the sections of a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from rallebench.analysis import deployment, radar, tables, waterfall
from rallebench.analysis.changes import changes
from rallebench.analysis.ranking import compare_many, ended_pairs, with_mean
from rallebench.chains.chain import request_prompt
from rallebench.core.comparison import Comparison
from rallebench.core.declining import accepted_answers
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.numbers import plural
from rallebench.core.report import RunReport
from rallebench.core.tables import Code, Fold, Section
from rallebench.core.types import Episode, Example, Step
from rallebench.core.waterfall import SHORT, STAGES, Waterfall
from rallebench.engine.ralle_files import prompts_text
from rallebench.engine.run_files import RunDescription
from rallebench.engine.run_marks import RunMarks, read_marks
from rallebench.engine.score import score_episode, stored_cost
from rallebench.engine.store import RunFolder
from rallebench.views import repeats
from rallebench.workspace.paths import WorkspaceFolder

MOST_FLIPPED, MOST_RADARS = 200, 3
LOST = "Where questions were lost"


def build_report(
    runs: Sequence[RunFolder], workspace: WorkspaceFolder, metric: str = ""
) -> tuple[str, Iterator[Section]]:
    """Return the title and sections: one run with all its questions, or a comparison.

    Raises UsageError for a run without a report.
    """
    for run in runs:
        if not run.report():
            raise UsageError(
                f"The run {run.name!r} has no report.json, so there is nothing to show; let it end, or resume it."
            )
    if len(runs) == 1:
        return f"Run {runs[0].name}", _run(runs[0], workspace)
    title = f"Comparison of {', '.join(run.name for run in runs)}"
    if radar.share_nothing(runs):
        return title, _over_datasets(runs, metric)
    return title, _comparison(runs, workspace, metric)


def _run(run: RunFolder, workspace: WorkspaceFolder) -> Iterator[Section]:
    report = run.report() or RunReport()
    failures = [f"{count} failed: {message}" for message, count in report.errors.items()]
    yield Section(
        "",
        (
            _summary(report),
            *_marks(run),
            tables.metrics(report, run.description().chain),
            *repeats.blocks(report.repeats),
            stored_cost(run),
            *failures,
        ),
    )
    yield Section(LOST, _waterfall([(run.name, waterfall.run_waterfall(run, workspace))]))
    yield Section("What was run", (Code(_settings(run.description())),))
    yield Section("Every question", (_question(*pair) for pair in ended_pairs(run)))


def _marks(run: RunFolder) -> list[str]:
    """Return the user's tags and note of a run, as sentences."""
    marks = RunMarks()
    with suppress(BadFileError):
        marks = read_marks(run)
    tags = [f"Tags: {', '.join(marks.tags)}."] if marks.tags else []
    return [*tags, *([f"Note: {marks.note}"] if marks.note else [])]


def _summary(report: RunReport) -> str:
    seconds = report.seconds_per_question
    facts = [
        *([str(report.decided)] if report.decided else []),
        f"{report.n_done - report.n_errors} of {plural(report.n, 'question')} answered",
        f"{report.n_errors} failed",
        *([] if seconds is None else [f"{seconds:.3f} s a question in its steps"]),
        f"{report.steps_from_memory} of {plural(report.steps, 'step')} from the reply cache",
    ]
    return f"{report.run} on {report.dataset}: {', '.join(facts)}."


def _waterfall(named: Sequence[tuple[str, Waterfall]]) -> list[Any]:
    stages = [
        f"{SHORT[stage]}: {meaning}"
        for stage, meaning in STAGES.items()
        if any(fall.tells and fall.counts().get(stage) for _, fall in named)
    ]
    return [waterfall.figure(named), *stages, *waterfall.notes(named)]


def _settings(stored: RunDescription) -> str:
    if chain := stored.chain:
        return prompts_text(chain)
    return json.dumps(stored.spec.settings, ensure_ascii=False, indent=2)


def _question(example: Example, episode: Episode) -> Fold:
    (score,) = score_episode(episode, example, ("em",))
    marks = {1.0: ("right", "good"), 0.0: ("wrong", "bad"), None: ("not scored", "")}
    mark, tone = ("failed", "bad") if episode.error else marks.get(score.value, ("not scored", ""))
    gold = " / ".join(accepted_answers(example.gold)[:5]) or "–"
    blocks: list[Any] = [f"answer: {episode.error or episode.answer or '(empty)'}; gold: {gold}"]
    blocks += step_blocks(episode.steps)
    return Fold(example.question.text, tuple(blocks), mark, tone)


def step_blocks(steps: Sequence[Step]) -> Iterator[str | Code]:
    """Yield the prompt, thoughts and response of every step."""
    for number, step in enumerate(steps, 1):
        yield from (f"{number}. prompt", Code(request_prompt(step.request)))
        yield from ("thinking", Code(step.reply.thinking)) if step.reply.thinking else ()
        yield from ("response", Code(step.reply.text))


def _comparison(
    runs: Sequence[RunFolder], workspace: WorkspaceFolder, metric: str
) -> Iterator[Section]:
    compared = compare_many(runs, metric)
    qids = {example.question.qid for example in compared.common}
    yield Section("Every metric", (*compared.warnings, tables.comparison(compared)))
    yield Section("Differences", (tables.differences(compared),))
    falls = [(run.name, waterfall.run_waterfall(run, workspace).within(qids)) for run in runs]
    yield Section(LOST, _waterfall(falls))
    reports = [(run.name, with_mean(run, compared.metric)) for run in runs]
    for across, label in deployment.COST_AXES.items():
        figure = deployment.figure(reports, compared.measure, across)
        if figure.series:
            notes = deployment.notes(reports, compared.metric, across)
            yield Section(f"Quality against {label}", (figure, *notes))
    for by in radar.possible_axes(runs, compared.common)[:MOST_RADARS]:
        axes = radar.over(runs, compared.common, compared.metric, by)
        yield Section(f"By {by}", (radar.figure(axes), radar.table(axes)))
    for other in runs[1:]:
        blocks, pair = [_changes(runs[0], other)], compared.against[other.name]
        if pair.n:
            blocks += _flipped_rows(compared, runs[0], other, pair.flipped_ids)
        else:
            label = compared.measure.card.label
            blocks.append(f"No question is scored by {label} in both.")
        yield Section(f"{runs[0].name} and {other.name}", blocks)


def _changes(first: RunFolder, other: RunFolder) -> Any:
    differences = changes(first.description().spec, other.description().spec)
    if not differences:
        return f"{first.name} and {other.name} have one chain, one dataset and equal settings."
    return tables.changes(differences, first.name, other.name)


def _flipped_rows(
    compared: Comparison, first: RunFolder, other: RunFolder, qids: Sequence[str]
) -> Iterator[Any]:
    if not qids:
        yield "No question changed its score."
        return
    examples = {example.question.qid: example for example in compared.common}
    answers = [run.heads() for run in (first, other)]
    cut = f", the first {MOST_FLIPPED} of them" if len(qids) > MOST_FLIPPED else ""
    count = "1 question changed its" if len(qids) == 1 else f"{len(qids)} questions changed their"
    yield f"{count} score{cut}:"
    for qid in qids[:MOST_FLIPPED]:
        blocks = [f"gold: {' / '.join(accepted_answers(examples[qid].gold)[:3])}"]
        for run, heads in zip((first, other), answers):
            head = heads.get(qid)
            blocks.append(f"{run.name}: {head.answer if head else ''}")
        yield Fold(examples[qid].question.text, tuple(blocks))


def _over_datasets(runs: Sequence[RunFolder], metric: str) -> Iterator[Section]:
    means = radar.over_datasets(runs, metric)
    note = "The runs share no question, so no difference between two of them can be tested; these are their means."
    yield Section("", (note, radar.figure(means), radar.table(means)))
