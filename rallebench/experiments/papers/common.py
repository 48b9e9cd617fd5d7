"""What the papers' experiments share: two settings, lists that a user writes, and sentences for the reader of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.core.runs import RunResult
from rallebench.core.settings import Setting
from rallebench.experiments import EXPERIMENTS


def compat(about: str = "") -> Setting:
    """Whether an experiment does what the paper's own code does where that differs from the paper or from good sense."""
    return Setting(str, "corrected", choices=("corrected", "original"), about=about)


def own_prompts(folder: str) -> Setting:
    """A folder with the user's prompts, named as those in ``folder``."""
    return Setting(str, "", about=f"folder with prompts of your own, named as in prompts/{folder}")


def register_each(
    play: Callable[[ExperimentRequest, Any], Experiment],
    members: Mapping[str, tuple[str, Any]],
    **traits: Any,
) -> None:
    """A suite for each member: name → (what it is, the second argument of ``play``)."""
    for name, (about, member) in members.items():
        alone = partial(_of_member, play=play, member=member)
        EXPERIMENTS.register(name, place="suites", about=about, **traits)(alone)


def _of_member(
    request: ExperimentRequest, play: Callable[[ExperimentRequest, Any], Experiment], member: Any
) -> Experiment:
    return (yield from play(request, member))


def names_in(text: str) -> list[str]:
    """The names of a list with commas, each once.

    >>> names_in("react, pal,,react")
    ['react', 'pal']
    """
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def sentences(*pairs: tuple[Any, str]) -> tuple[str, ...]:
    """The sentences whose count, or condition, holds.

    >>> sentences((2, "2 rows failed."), (0, "0 rows differ."))
    ('2 rows failed.',)
    """
    return tuple(sentence for count, sentence in pairs if count)


def failed_note(label: str, result: RunResult, where: str) -> tuple[str, ...]:
    """A sentence on the questions of a run that failed, if there are any. ``where``: what they are left out of."""
    text = f"{result.n_errors} of {result.n} questions failed; they are {where}."
    return sentences((result.n_errors, f"{label}: {text}" if label else text))
