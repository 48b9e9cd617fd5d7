"""A run of an experiment: its own rates, beside what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.runs import DatasetRef, FlowSpec, Judge, Rates, RunRequest, RunResult, Values
from rallebench.core.types import Chain, Episode, Example, Flow, Note, Outcome, Question
from rallebench.engine.score import score_episode
from rallebench.metrics import METRICS, metric, read_card

COSTS = ("seconds", "prompt_tokens", "completion_tokens")
"""Every run of an experiment is scored by these, too."""
REUSED = "reused"
"""The stop reason of an answer that exists already."""
SCORES = ("truthfulness", "relevance")
"""A judge gives 1 to 5."""
SHARES = {"all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate"}
SHARES |= {"perfect", "QA_avg_F1", "QA_recall", "mrr", "gold_found", "bleu-avg", "rouge-L"}
SHARES |= {"bleu-1", "bleu-2", "bleu-3", "bleu-4", "retrieved", "undecided", "declined", "grounded"}


def scored_run(
    label: str,
    workflow: str,
    dataset: str,
    examples: tuple[Example, ...],
    make_flow: Callable[[Question], Flow],
    settings: Mapping[str, Any],
    score: Callable[[Example, Episode], Values],
    columns: Mapping[str, str],
    llms: tuple[str, ...] = (),
    retrievers: tuple[str, ...] = (),
    *,
    agent: Any = None,
    chain: Chain | None = None,
    metrics: tuple[str, ...] = (),
    file: str = "",
    sha256: str = "",
    judges: tuple[Judge, ...] = (),
    on_result: Callable[[RunResult], None] | None = None,
) -> RunRequest:
    """``examples`` answered by ``make_flow`` and scored by ``score``, which gives the ``columns`` (metric → definition).

    ``settings``: all that changes an answer beside the questions, the models and the indexes. ``agent`` answers in place of
    ``make_flow``. ``metrics``, ``judges``: registered metrics and judges, by which the run is scored besides. ``file``,
    ``sha256``: the dataset's, where the questions are those of a file.
    """
    if agent is None:
        flow = FlowSpec(workflow, settings, lambda _: make_flow, llms, retrievers, chain=chain)
    else:
        flow = replace(
            agent.flow,
            workflow=workflow,
            settings=settings,
            llms=llms,
            retrievers=retrievers,
            name="",
        )
    return RunRequest(
        flow,
        DatasetRef(dataset, file, sha256),
        examples,
        tuple(dict.fromkeys((*metrics, *COSTS))),
        Rates(columns, score, bounds_of(columns)),
        judges,
        label=label,
        on_result=on_result,
    )


def replay(answer: str) -> Flow:
    """The flow of an answer that exists already; it asks no model."""
    reply = yield Note(answer)
    return Outcome(reply.text, REUSED)


def scored_by(names: Sequence[str]) -> Callable[[Example, Episode], Values]:
    """The scores of these registered metrics as an experiment's own."""
    return lambda example, episode: {
        score.metric: score.value for score in score_episode(episode, example, names)
    }


def definitions_of(names: Iterable[str]) -> dict[str, str]:
    """Registered metric → its label and definition."""
    return {name: f"{metric(name).traits['label']}: {read_card(name).definition}" for name in names}


def bounds_of(names: Iterable[str]) -> dict[str, tuple[float | None, float | None]]:
    """Metric → (lowest, highest) value; None = no bound, as for a metric that is not known here."""
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name in names:
        own = (0.0, 1.0) if name in SHARES else (1.0, 5.0) if name in SCORES else (None, None)
        bounds[name] = METRICS.entry(name).traits["range"] if name in METRICS else own
    return bounds
