"""Common parts of the papers' experiments: settings, flows, notes, and the scoring of prediction files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError
from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.prompts import Wording
from rallebench.core.runs import FlowSpec
from rallebench.core.scoring import Values
from rallebench.core.settings import declare_text
from rallebench.core.types import Episode, Example, Flow, Note, Outcome, Question
from rallebench.engine.score import score_episode
from rallebench.engine.statistics import means
from rallebench.experiments.common import score_bounds, sentences
from rallebench.metrics import metric, read_card
from rallebench.workspace.paths import WorkspaceFolder


def declare_compat(about: str = "") -> str:
    """A field of settings: correct, or as the paper's own code where that differs from the paper or from good sense."""
    return declare_text(about, "corrected", "original", advanced=True)


def declare_prompts(folder: str, originals: str = "") -> str:
    """A field of settings: a folder with the user's prompts, named as those in ``folder``, or a copy of the repository
    ``originals``."""
    about = f"folder with prompts of your own, named as in prompts/{folder}"
    return declare_text(
        about + (f"; or your copy of {originals}" if originals else ""),
        names="folder",
        advanced=True,
    )


def register_each(
    suite: Callable[..., Any],
    factory: Callable[[ExperimentRequest[WorkspaceFolder], Any], Experiment],
    members: Mapping[str, tuple[str, Any]],
    **traits: Any,
) -> None:
    """Register a suite for each member: name → (its line, the second argument of ``factory``)."""

    def of_member(member: Any) -> Callable[[ExperimentRequest[WorkspaceFolder]], Experiment]:
        return lambda request: factory(request, member)

    for name, (about, member) in members.items():
        suite(name, about=about, **traits)(of_member(member))


def list_names(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are.

    >>> list_names(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def note_on(ids: Sequence[str], what: str) -> tuple[str, ...]:
    """A sentence on these records, if there are any.

    >>> note_on(["a", "b"], "records have no answer")
    ('2 records have no answer: a, b.',)
    """
    return sentences((len(ids), f"{len(ids)} {what}: {list_names(ids)}."))


def count_sentences(
    counts: Mapping[str, int], endings: Mapping[str, str], of: str
) -> tuple[str, ...]:
    """A sentence for every count that is not 0: the number, ``of`` and the ending of its key.

    >>> count_sentences({"empty": 2}, {"empty": "are empty", "long": "are too long"}, "of 9 answers")
    ('2 of 9 answers are empty.',)
    """
    return tuple(f"{n} {of} {end}." for key, end in endings.items() if (n := counts.get(key)))


def is_original(request: ExperimentRequest[WorkspaceFolder]) -> bool:
    """Return whether the request follows the paper's own code."""
    return bool(request.settings["compat"] == "original")


def behind_api(request: ExperimentRequest[WorkspaceFolder], llm: str = "") -> bool:
    """Return whether the model, by default the request's, is behind an API and so has sampling settings of its own."""
    return bool(request.workspace.llm(llm or request.llm).backend == "openai_compatible")


def plain_name(name: str) -> str:
    """The name as a part of a file name in a paper's own layout.

    >>> plain_name("my/model: 7B"), plain_name("/")
    ('my-model-7B', 'unnamed')
    """
    return re.sub(r"[^\w.\-=+@]+", "-", name).strip("-")[:80] or "unnamed"


def check_file(path: Path, what: str) -> None:
    """Raise NotFoundError unless ``path`` is a file. ``what``: its expected content, for the message."""
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.is_file())
        held = f" It holds {', '.join(names[:3])}{' …' * (len(names) > 3)}." if names else ""
        raise NotFoundError(
            f"{path} is a folder; name the file that holds {what}: {path / 'FILE'}.{held}"
        )
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; it should hold {what}.")


def metric_means(columns: Mapping[str, Sequence[float | None]]) -> dict[str, dict[str, Any]]:
    """Metric → the mean of all rows with its interval, as JSON."""
    return {
        name: asdict(mean) for name, mean in means(columns, ranges=score_bounds(columns)).items()
    }


def not_in_gold(guess: Path, gold: Path, question: str) -> BadFileError:
    """The error of predictions for a question that the gold lacks."""
    return BadFileError(
        f"{guess} answers {question!r}, which {gold} does not hold; give the file that was asked."
    )


def gold_notes(changed: int, gold: Path, missing: int, n: int, where: str) -> tuple[str, ...]:
    """Sentences on the rows whose answer differs from the gold's (``changed``), and on the records without a row (``missing``
    of ``n``), which are in no ``where``."""
    return sentences(
        (changed, f"{changed} rows have another answer than {gold.name}; the latter's counts."),
        (missing, f"{missing} of {n} records have no row; they are in no {where}."),
    )


REUSED = "reused"
"""The stop reason of an answer that already exists."""


def flow_spec(
    workflow: str,
    make_flow: Callable[[Question], Flow],
    settings: Mapping[str, Any],
    llms: tuple[str, ...] = (),
    retrievers: tuple[str, ...] = (),
) -> FlowSpec:
    """The specification of an experiment's own flow. ``settings``: all that changes an answer except for the questions, the
    models and the indexes."""
    return FlowSpec(workflow, settings, lambda _: make_flow, llms, retrievers)


def replay(answer: str) -> Flow:
    """The flow of an answer that already exists; no model is asked."""
    reply = yield Note(answer)
    return Outcome(reply.text, REUSED)


def score_by(names: Sequence[str]) -> Callable[[Example, Episode], Values]:
    """A function that scores an answer by these registered metrics."""
    return lambda example, episode: {
        score.metric: score.value for score in score_episode(episode, example, names)
    }


def metric_definitions(names: Iterable[str]) -> dict[str, str]:
    """Registered metric → its label and definition."""
    return {name: f"{metric(name).traits['label']}: {read_card(name).definition}" for name in names}


def differs_by(
    request: ExperimentRequest[WorkspaceFolder], wording: Wording, *more: str
) -> tuple[str, ...]:
    """The differences from the paper that hold for a whole request: the wording of the prompts, the way to count, and
    ``more``."""
    original = "Counted as the paper's own code does." if is_original(request) else ""
    return tuple(filter(None, (wording.note(), original, *more)))
