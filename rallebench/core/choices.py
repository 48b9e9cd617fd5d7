"""Typed decisions: the choice of a model among named options, with the probability of each if the model gives them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rallebench.core.errors import BackendError, UsageError
from rallebench.core.strict_numbers import Count, Number

IN_PROCESS = "log-probabilities in process"
SERVER = "log-probabilities of the server"
TEXT = "text"
"""Sources of a choice. A choice from text has no probabilities."""

_YES, _NO = {"yes", "true", "是"}, {"no", "false", "否"}
_DECORATION = " \t\r\n\"'`*_()[]{}<>“”‘’「」.,:;!。，：；！"


class OptionsError(UsageError, ValueError):
    """Options among which nothing can be chosen."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among ``options``.

    ``chosen``: an option, '' if a text names none or several. ``source``: IN_PROCESS, SERVER or TEXT. ``probabilities``: of
    each option, 0..1, with the sum 1; () from text. ``covered``: the share of the model's probability on the options before
    it was normalised, 0..1; None from text. ``why``: the reason for reading the text, as one sentence, or ''.
    """

    options: tuple[str, ...]
    chosen: str = ""
    source: str = TEXT
    probabilities: tuple[float, ...] = ()
    covered: float | None = None
    why: str = ""

    def __str__(self) -> str:
        """The options with their probabilities, the most probable first; from text the chosen option.

        >>> str(Choice(("yes", "no"), "no", SERVER, (0.25, 0.75), 0.9)), str(Choice(("yes", "no"), "no"))
        ('no 75.0 %, yes 25.0 %', 'no')
        """
        return ", ".join(f"{name} {_percent(share)}" for name, share in self.ranking) or self.chosen

    @property
    def ranking(self) -> tuple[tuple[str, float], ...]:
        """The options with their probabilities, the most probable first; () from text."""
        pairs = zip(self.options, self.probabilities)
        return tuple(sorted(pairs, key=lambda pair: -pair[1]))

    @property
    def basis(self) -> str:
        """The source in one sentence."""
        if self.covered is None:
            return self.why or "The option was read from the text."
        return f"By {self.source}; before it was normalised, {_percent(self.covered)} of the probability was on the options."

    def probability(self, option: str) -> float | None:
        """Return the probability of an option, None from text.

        >>> Choice(("yes", "no"), "yes", SERVER, (0.75, 0.25)).probability("no")
        0.25
        """
        if not self.probabilities:
            return None
        return self.probabilities[self.options.index(option)]

    def mean_value(self, values: Sequence[float]) -> float | None:
        """Return the mean of ``values``, one for each option, weighted by the probabilities. From text it is the value of
        the chosen option, None without one.

        >>> Choice(("yes", "no"), "yes", SERVER, (0.75, 0.25)).mean_value((1, 0)), Choice(("yes", "no")).mean_value((1, 0))
        (0.75, None)
        """
        if self.probabilities:
            return math.fsum(p * value for p, value in zip(self.probabilities, values, strict=True))
        return float(values[self.options.index(self.chosen)]) if self.chosen else None


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Number of choices by their source, and the mean ``covered`` of those with probabilities, 0..1, None without any."""

    in_process: Count = 0
    server: Count = 0
    text: Count = 0
    covered: Number | None = None

    @property
    def n(self) -> int:
        """Number of all choices."""
        return self.in_process + self.server + self.text


def count_choices(choices: Iterable[Choice]) -> ChoiceCounts | None:
    """Return the counts of choices, None without any.

    >>> count_choices([Choice(("a", "b"), "a", SERVER, (0.8, 0.2), 0.5), Choice(("a", "b"), "a")])
    ChoiceCounts(in_process=0, server=1, text=1, covered=0.5)
    """
    sources, covered = Counter[str](), []
    for choice in choices:
        sources[choice.source] += 1
        covered += [choice.covered] if choice.covered is not None else []
    mean = math.fsum(covered) / len(covered) if covered else None
    counts = ChoiceCounts(sources[IN_PROCESS], sources[SERVER], sources[TEXT], mean)
    return counts if counts.n else None


def check_options(options: Sequence[str]) -> None:
    """Raise OptionsError unless there are at least two different options, none of them empty."""
    if any(not option.strip() for option in options):
        raise OptionsError("An option of a choice is empty; give every option a text.")
    if len({option.strip() for option in options}) < len(options):
        raise OptionsError(
            f"The options of a choice are not all different ({', '.join(options)}); remove the repeated ones."
        )
    if len(options) < 2:
        raise OptionsError("A choice needs at least two options; add another one.")


def weigh_options(options: Sequence[str], logprobs: Sequence[float], source: str) -> Choice:
    """Return the choice for the log-probabilities of the options, which are normalised; of equal ones, the first is chosen.

    Raises BackendError for one that is not a number, and if no option has any probability.

    >>> weigh_options(("yes", "no"), (math.log(0.6), math.log(0.2)), SERVER).covered
    0.8
    """
    if any(math.isnan(value) or value == math.inf for value in logprobs):
        raise BackendError(
            "The model computed probabilities that are not numbers, so it chose nothing; load it as float32 or bfloat16."
        )
    highest = max(logprobs)
    if highest == -math.inf:
        raise BackendError(
            f"The model gives none of the options ({', '.join(options)}) any probability; change the prompt or the options."
        )
    weights = [math.exp(value - highest) for value in logprobs]
    total = math.fsum(weights)
    shares = tuple(weight / total for weight in weights)
    covered = math.exp(highest) * total
    chosen = options[shares.index(max(shares))]
    return Choice(tuple(options), chosen, source, shares, min(1.0, round(covered, 12)))


def read_option(text: str, options: Sequence[str]) -> str:
    """Return the option that a text names, '' if it names none or several.

    A whole text counts first, then its beginning, then the only option in it. Between yes and no, sentences count, too.

    >>> [read_option(text, ("supported", "not supported")) for text in ("Not supported.", "It is supported", "Hm")]
    ['not supported', 'supported', '']
    >>> read_option("No, it doesn't.", ("yes", "no")), read_option("yes or no", ("yes", "no"))
    ('no', '')
    """
    plain, plains = _plain(text), {option: _plain(option) for option in options}
    for option, own in plains.items():
        if plain == own:
            return option
    yes = [option for option, own in plains.items() if own in _YES]
    no = [option for option, own in plains.items() if own in _NO]
    if len(options) == 2 and yes and no:
        from rallebench.core.verdicts import read_verdict  # many patterns, which few programs need

        verdict = read_verdict(text)
        return "" if verdict is None else yes[0] if verdict else no[0]
    longest_first = sorted(options, key=lambda option: -len(plains[option]))
    for option in longest_first:
        if re.match(_words(plains[option]), plain):
            return option
    named, rest = [], plain
    for option in longest_first:
        rest, count = re.subn(_words(plains[option]), " ", rest)
        named += [option] if count else []
    return named[0] if len(named) == 1 else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _plain(text: str) -> str:
    """Small letters without quotes, brackets and marks around them."""
    return unicodedata.normalize("NFKC", text).casefold().strip(_DECORATION)


def _words(option: str) -> str:
    return rf"(?<![^\W_]){re.escape(option)}(?![^\W_])" if option.isascii() else re.escape(option)
