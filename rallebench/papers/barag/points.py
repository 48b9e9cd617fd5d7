"""Quality against tokens at every threshold, from one run with both branches of each question.

A case holds the worth and cost of its draft and of its answer with passages, and the signals an agent could use to choose
between them. The point for a threshold is a sum over the cases and needs no further requests. The published runs include a
scored answer to each question without retrieval, with retrieval, and by the agent. Its decisions are compared with random
reading at the same rate, and with choosing the better answer each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rallebench.core.numbers import plural
from rallebench.core.report import Estimate
from rallebench.core.tables import Cell, Table
from rallebench.core.types import Json
from rallebench.engine.statistics import means
from rallebench.papers.barag.runs import AnswerRow, BaragRun, by_question
from rallebench.papers.barag.workflow_uncertain import reads

Tokens = tuple[int, int]
STEPS = 10
"""Number of steps in an automatic curve; each adds a tenth of the questions."""
FEWEST = 20
"""Fewest questions to split into two halves, one to choose a threshold and one to test it."""
ENOUGH = 0.99
"""Share of the quality of always reading that counts as equally good."""


@dataclass(frozen=True, slots=True)
class BranchedCase:
    """One question. ``*_worth``: higher is better. ``*_tokens``: (sent, written) for the draft, its further samples, the
    yes-or-no question, and the answer with passages. ``signals``: name → value, None if unknown. ``wants``: the model's own
    decision; None if it was not asked or the reply was unclear."""

    qid: str
    draft_worth: float
    read_worth: float
    draft_tokens: Tokens
    read_tokens: Tokens
    sample_tokens: Tokens = (0, 0)
    decision_tokens: Tokens = (0, 0)
    signals: Mapping[str, float | None] | None = None
    wants: bool | None = None

    def value(self, signal: str) -> float | None:
        return (self.signals or {}).get(signal)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A choice of answers over all cases. ``threshold``: None without a threshold; ``share``: the share of questions that read
    passages; ``coin``: the quality of random reading at the same rate; ``worth``: question → the quality of its answer."""

    name: str
    threshold: float | None
    share: float
    n_in: int
    n_out: int
    quality: Estimate
    coin: float
    worth: Mapping[str, float]

    @property
    def tokens(self) -> int:
        """The tokens sent and written, summed over all questions."""
        return self.n_in + self.n_out

    def to_json(self) -> Json:
        return {
            "threshold": self.threshold,
            "retrieved": self.share,
            "n_in": self.n_in,
            "n_out": self.n_out,
            "quality": self.quality.value,
            "low": self.quality.low,
            "high": self.quality.high,
            "coin": self.coin,
        }


def never(cases: Sequence[BranchedCase], seen: int = 0) -> CurvePoint:
    """Drafts only. ``seen``: the number of passages read for a draft. The name includes it, since such drafts use
    retrieval."""
    name = f"draft with {plural(seen, 'passage')}" if seen else "never"
    return _point(name, cases, [False] * len(cases))


def always(cases: Sequence[BranchedCase]) -> CurvePoint:
    """Answers with passages for every question, without a draft."""
    return _point("always", cases, [True] * len(cases))


def oracle(cases: Sequence[BranchedCase]) -> CurvePoint:
    """The better branch of each question, or the cheaper one if both are equal: an upper bound for agents."""
    better = [
        (case.read_worth, -sum(case.read_tokens)) > (case.draft_worth, -sum(case.draft_tokens))
        for case in cases
    ]
    return _point("oracle", cases, better)


def model_asked(cases: Sequence[BranchedCase]) -> CurvePoint:
    """BARAG's advanced agent: the draft, the yes-or-no question, and passages unless the model answered no."""

    def cost(case: BranchedCase, read: bool) -> Tokens:
        return _add(case.draft_tokens, case.decision_tokens, *[case.read_tokens] * read)

    return _point("model asked", cases, [case.wants is not False for case in cases], cost)


def curve(
    cases: Sequence[BranchedCase], signal: str, thresholds: Sequence[float] = ()
) -> tuple[CurvePoint, ...]:
    """One point per threshold, fewest reading questions first. Among thresholds that read for the same questions, the first is
    used.

    A signal from the draft costs the draft (and its samples) even if passages are read afterwards. A retrieval score costs no
    tokens.
    """

    def cost(case: BranchedCase, read: bool) -> Tokens:
        samples = [case.sample_tokens] if signal == "agreement" else []
        return _add(case.draft_tokens, *samples, *[case.read_tokens] * read)

    points: dict[tuple[bool, ...], CurvePoint] = {}
    for threshold in thresholds or cuts(cases, signal):
        read = tuple(reads(signal, case.value(signal), threshold) for case in cases)
        if read not in points:
            of_signal = _either if signal == "retrieval" else cost
            points[read] = _point(signal, cases, read, of_signal, threshold)
    return tuple(sorted(points.values(), key=lambda point: point.share))


def cuts(cases: Sequence[BranchedCase], signal: str) -> tuple[float, ...]:
    """Thresholds at which 0 %, 10 %, … 100 % of the questions read passages.

    >>> cuts([BranchedCase(str(n), 0, 0, (0, 0), (0, 0), signals={"confidence": n / 4}) for n in range(3)], "confidence")
    (0.0, 0.25, 0.5, 0.5001)
    """
    values = sorted(value for case in cases if (value := case.value(signal)) is not None)
    if not values:
        return (0.0,)
    above = values[-1] + max(abs(values[-1]) * 1e-4, 1e-4)
    inside = (
        values[min(len(values) - 1, len(values) * step // STEPS)] for step in range(STEPS + 1)
    )
    return tuple(dict.fromkeys([*inside, round(above, 6)]))


def signal_auroc(cases: Sequence[BranchedCase], signal: str) -> float | None:
    """The area under the ROC curve of a signal for questions improved by passages; 0.5 is chance.

    None if passages improve all questions or none, or if the signal is unknown for some.
    """
    from scipy.stats import mannwhitneyu

    sign = 1 if signal == "retrieval" else -1
    values = [case.value(signal) for case in cases]
    known = [sign * value for value in values if value is not None]
    better = [case.read_worth > case.draft_worth for case in cases]
    if len(known) < len(cases) or all(better) or not any(better):
        return None
    helped, rest = ([v for v, yes in zip(known, better) if yes is side] for side in (True, False))
    return float(mannwhitneyu(helped, rest).statistic) / (len(helped) * len(rest))


def as_good(points: Sequence[CurvePoint], best: CurvePoint) -> CurvePoint | None:
    """The cheapest point with 99 % of the quality of ``best``; None unless it is cheaper than ``best``."""
    goal = (best.quality.value or 0) * ENOUGH
    good = [p for p in points if (p.quality.value or 0) >= goal and p.tokens < best.tokens]
    return min(good, key=lambda point: point.tokens, default=None)


def held_out(cases: Sequence[BranchedCase], signal: str) -> tuple[CurvePoint, CurvePoint] | None:
    """(the point, always reading) over every second question. The threshold is the one that is ``as_good`` on the other
    questions.

    None for fewer than 20 questions, or if no threshold is good enough.
    """
    mine, others = cases[::2], cases[1::2]
    if len(cases) < FEWEST:
        return None
    best = as_good(curve(mine, signal), always(mine))
    if best is None or best.threshold is None:
        return None
    (point,) = curve(others, signal, (best.threshold,))
    return point, always(others)


def choice_point(cases: Sequence[BranchedCase]) -> CurvePoint:
    """The point of choosing between the two answers by ``wants``, excluding the cost of the decision."""
    return _point("choice", cases, [bool(case.wants) for case in cases])


def _either(case: BranchedCase, read: bool) -> Tokens:
    """The cost of one branch alone."""
    return case.read_tokens if read else case.draft_tokens


def _add(*tokens: Tokens) -> Tokens:
    return sum(sent for sent, _ in tokens), sum(written for _, written in tokens)


def _point(
    name: str,
    cases: Sequence[BranchedCase],
    read: Sequence[bool],
    cost: Callable[[BranchedCase, bool], Tokens] = _either,
    threshold: float | None = None,
) -> CurvePoint:
    n, share = len(cases), sum(read) / len(read)
    worth = [case.read_worth if yes else case.draft_worth for case, yes in zip(cases, read)]
    coin = (1 - share) * (sum(case.draft_worth for case in cases) / n)
    coin += share * (sum(case.read_worth for case in cases) / n)
    n_in, n_out = _add(*(cost(case, yes) for case, yes in zip(cases, read)))
    quality = means({"quality": worth})["quality"]
    values = {case.qid: value for case, value in zip(cases, worth)}
    return CurvePoint(name, threshold, share, n_in, n_out, quality, coin, values)


HEAD = ("Way", "Retrieved", "Input tokens", "Output tokens", "Quality", "Coin")
CHOICE_NOTE = (
    "Quality: mean of truthfulness and relevance. Coin: reading as many questions, chosen at random. Its choice: these two answers, "
    "chosen as the agent did, without the price of choosing."
)


def choice_table(
    title: str, never_run: BaragRun, always_run: BaragRun, agent: BaragRun
) -> Table | None:
    """A comparison of never reading, always reading, the agent, its choice alone, and the better answer each time. None if the
    runs share no question."""
    scored = [
        {
            key: row
            for key, row in by_question(run.rows).items()
            if None not in (row.total, row.n_in, row.n_out)
        }
        for run in (never_run, always_run, agent)
    ]
    keys = [key for key in scored[2] if key in scored[0] and key in scored[1]]
    alone = len({key for of_run in scored for key in of_run}) - len(keys)
    triples = [tuple(of_run[key] for of_run in scored) for key in keys]
    if not triples:
        return None
    cases = [
        BranchedCase(
            own.id, _worth(bare), _worth(read), _tokens(bare), _tokens(read), wants=own.read
        )
        for bare, read, own in triples
    ]
    answers = [own for *_, own in triples]
    worth = means({"agent": list(map(_worth, answers))})["agent"]
    choice = choice_point(cases)
    spent = [sum(counts) for counts in zip(*map(_tokens, answers))]
    lines = (
        _point_row("never", never(cases)),
        _point_row("always", always(cases)),
        ("agent", f"{choice.share:.0%}", *spent, worth, choice.coin),
        _point_row("its choice", choice),
        _point_row("oracle", oracle(cases)),
    )
    helped = [case for case in cases if case.read_worth > case.draft_worth]
    rest = [case for case in cases if case.read_worth <= case.draft_worth]
    shares = f" Passages help {len(helped)} of {len(cases)} questions; the agent reads for {_share(helped)} of these and {_share(rest)} of the others."
    lost = f" Questions left out because not all three runs have an answer with scores and tokens: {alone}."
    note = CHOICE_NOTE + shares + lost * bool(alone)
    return Table(f"{title}: {len(cases)} questions", HEAD, lines, note=note)


def _worth(row: AnswerRow) -> float:
    return (row.total or 0) / 2


def _share(cases: list[BranchedCase]) -> str:
    return f"{sum(bool(case.wants) for case in cases) / len(cases):.0%}" if cases else "none"


def _tokens(row: AnswerRow) -> tuple[int, int]:
    return row.n_in or 0, row.n_out or 0


def _point_row(name: str, point: CurvePoint) -> tuple[Cell, ...]:
    return (name, f"{point.share:.0%}", point.n_in, point.n_out, point.quality, point.coin)
