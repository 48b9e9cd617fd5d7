"""The common parts of the papers' experiments: runs with rates of their own, settings, lists that a user writes, figures, the
sentences and files of a report, and the scorers of prediction files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, NotFoundError, SettingError
from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.runs import DatasetRef, FlowSpec, Judge, Rates, RunRequest, RunResult, Values
from rallebench.core.settings import Setting
from rallebench.core.tables import Figure, FigureKind
from rallebench.core.text import split_names
from rallebench.core.types import Episode, Example, Flow, Note, Outcome, Question
from rallebench.engine.score import score_episode
from rallebench.engine.statistics import means
from rallebench.metrics import METRICS, metric, read_card


def string(about: str = "", *choices: str, **more: Any) -> Setting:
    """A setting of text: the first of its ``choices`` is the default, '' where there are none."""
    return Setting(str, choices[0] if choices else "", choices=choices, about=about, **more)


def several(about: str, *values: str, default: str = "", names: str = "") -> Setting:
    """A setting that is a list with commas, of these ``values`` where it may have no other."""
    return Setting(str, default, about=about, sweep=values, names=names, many=True)


def compat(about: str = "") -> Setting:
    """Return whether an experiment follows the paper's own code where that differs from the paper or from good sense."""
    return string(about, "corrected", "original")


def own_prompts(folder: str, originals: str = "") -> Setting:
    """A folder with the user's prompts, named as those in ``folder``, or a copy of the repository ``originals``."""
    about = f"folder with prompts of your own, named as in prompts/{folder}"
    return string(about + (f"; or your copy of {originals}" if originals else ""), names="folder")


def register_each(
    suite: Callable[..., Any],
    factory: Callable[[ExperimentRequest, Any], Experiment],
    members: Mapping[str, tuple[str, Any]],
    **traits: Any,
) -> None:
    """A suite for each member: name → (what it is, the second argument of ``factory``)."""

    def of_member(member: Any) -> Callable[[ExperimentRequest], Experiment]:
        return lambda request: factory(request, member)

    for name, (about, member) in members.items():
        suite(name, about=about, **traits)(of_member(member))


def names_in(text: str) -> list[str]:
    """The names of a list with commas, each once.

    >>> names_in("react, pal,,react")
    ['react', 'pal']
    """
    return list(dict.fromkeys(split_names(text)))


def values_in(name: str, text: str, setting: Setting) -> list[Any]:
    """The values of a list with commas, each once, as ``setting`` reads each. Raises SettingError, for a required list also
    where it is empty.

    >>> values_in("noise", "0, 0.2,0.20", Setting(float, 0, 0, 1))
    [0.0, 0.2]
    """
    parts = names_in(text)
    try:
        if setting.required and not parts:
            raise ValueError(setting.must_be)
        return list(dict.fromkeys(map(setting.reads, parts)))
    except ValueError as must_be:
        raise SettingError(name, text, str(must_be)) from None


def bars(
    title: str,
    x: str,
    y: str,
    series: Mapping[str, Iterable[tuple[Any, Any]]],
    kind: FigureKind = "bar",
) -> Figure:
    """A figure of the points that have a value; a series without any is left out."""
    known = {
        name: tuple(
            (at, value) for at, value in points if getattr(value, "value", value) is not None
        )
        for name, points in series.items()
    }
    return Figure(title, x, y, {name: points for name, points in known.items() if points}, kind)


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def note_on(ids: Sequence[str], what: str) -> tuple[str, ...]:
    """A sentence on these records, if there are any.

    >>> note_on(["a", "b"], "records have no answer")
    ('2 records have no answer: a, b.',)
    """
    return sentences((len(ids), f"{len(ids)} {what}: {listed(ids)}."))


def sentences(*pairs: tuple[Any, str]) -> tuple[str, ...]:
    """The sentences whose count, or condition, holds.

    >>> sentences((2, "2 rows failed."), (0, "0 rows differ."))
    ('2 rows failed.',)
    """
    return tuple(sentence for count, sentence in pairs if count)


def counted(counts: Mapping[str, int], endings: Mapping[str, str], of: str) -> tuple[str, ...]:
    """A sentence for every count that is not 0: the number, ``of`` and the ending of its key.

    >>> counted({"empty": 2}, {"empty": "are empty", "long": "are too long"}, "of 9 answers")
    ('2 of 9 answers are empty.',)
    """
    return tuple(f"{n} {of} {end}." for key, end in endings.items() if (n := counts.get(key)))


def is_original(request: ExperimentRequest) -> bool:
    """Return whether the request follows the paper's own code."""
    return bool(request.settings["compat"] == "original")


def behind_api(request: ExperimentRequest, llm: str = "") -> bool:
    """Return whether the model, that of the request by default, answers behind an API and so has sampling settings of its own."""
    return bool(request.workspace.llm(llm or request.llm).backend == "openai_compatible")


def plain_name(name: str) -> str:
    """A name as part of a file's name in a paper's own layout.

    >>> plain_name("my/model: 7B"), plain_name("/")
    ('my-model-7B', 'unnamed')
    """
    return re.sub(r"[^\w.\-=+@]+", "-", name).strip("-")[:80] or "unnamed"


def in_folder(folder: Path, names: Iterable[str]) -> Path | None:
    """The first file of these names that the folder holds."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def failed_note(label: str, result: RunResult, where: str) -> tuple[str, ...]:
    """A sentence on the questions of a run that failed, if there are any. ``where``: what they are left out of."""
    text = f"{result.n_errors} of {result.n} questions failed; they are {where}."
    return sentences((result.n_errors, f"{label}: {text}" if label else text))


def check_file(path: Path, what: str) -> None:
    """Raise NotFoundError unless ``path`` is a file; ``what`` it should hold."""
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir() if file.is_file())
        held = f" It holds {', '.join(names[:3])}{' …' * (len(names) > 3)}." if names else ""
        raise NotFoundError(
            f"{path} is a folder; name the file that holds {what}: {path / 'FILE'}.{held}"
        )
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; it should hold {what}.")


def means_of(columns: Mapping[str, Sequence[float | None]]) -> dict[str, dict[str, Any]]:
    """Metric → its mean with interval as JSON, of the values of all rows."""
    return {name: asdict(mean) for name, mean in means(columns, ranges=bounds_of(columns)).items()}


def not_in_gold(guess: Path, gold: Path, question: str) -> BadFileError:
    """The error of predictions for a question that the gold lacks."""
    return BadFileError(
        f"{guess} answers {question!r}, which {gold} does not hold; give the file that was asked."
    )


def gold_notes(changed: int, gold: Path, missing: int, n: int, where: str) -> tuple[str, ...]:
    """Sentences on rows whose answer was ``changed`` by the gold, and on ``missing`` of its ``n`` records, which are in no
    ``where``."""
    return sentences(
        (changed, f"{changed} rows have another answer than {gold.name}; the latter's counts."),
        (missing, f"{missing} of {n} records have no row; they are in no {where}."),
    )


COSTS = ("seconds", "prompt_tokens", "completion_tokens")
"""Every run of an experiment is scored by these, too."""
REUSED = "reused"
"""The stop reason of an answer that exists already."""
SCORES = ("truthfulness", "relevance")
"""A judge gives 1 to 5."""
SHARES = {"all_rate", "rejection_rate", "lucky_rate", "fact_check_rate", "correct_rate"}
SHARES |= {"perfect", "QA_avg_F1", "QA_recall", "mrr", "gold_found", "bleu-avg", "rouge-L"}
SHARES |= {"usable", "correct", "reward", "evidence recall", "gold recall"}
SHARES |= {"bleu-1", "bleu-2", "bleu-3", "bleu-4", "retrieved", "undecided", "declined", "grounded"}


def flow_of(
    workflow: str,
    make_flow: Callable[[Question], Flow],
    settings: Mapping[str, Any],
    llms: tuple[str, ...] = (),
    retrievers: tuple[str, ...] = (),
) -> FlowSpec:
    """An experiment's own flow. ``settings``: all that changes an answer beside the questions, the models and the indexes."""
    return FlowSpec(workflow, settings, lambda _: make_flow, llms, retrievers)


def scored_run(
    label: str,
    flow: FlowSpec,
    dataset: DatasetRef,
    examples: tuple[Example, ...],
    score: Callable[[Example, Episode], Values],
    columns: Mapping[str, str],
    *,
    metrics: tuple[str, ...] = (),
    judges: tuple[Judge, ...] = (),
    on_result: Callable[[RunResult], None] | None = None,
) -> RunRequest:
    """``examples`` answered by ``flow`` and scored by ``score``, which gives the ``columns`` (metric → definition).

    ``metrics``, ``judges``: registered metrics and judges, by which the run is scored besides.
    """
    return RunRequest(
        flow,
        dataset,
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
    """Metric → (lowest, highest) value; None = no bound. What is not known here is a count or a quantity, never below 0."""
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name in names:
        own = (0.0, 1.0) if name in SHARES else (1.0, 5.0) if name in SCORES else (0.0, None)
        bounds[name] = METRICS.entry(name).traits["range"] if name in METRICS else own
    return bounds
