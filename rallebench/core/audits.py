"""Audits of graders as values: calibration of probabilities, risk against coverage, and a threshold proved on other articles."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rallebench.core.corrections import cell
from rallebench.core.json_values import JsonObject, object_json
from rallebench.core.numbers import plural
from rallebench.core.report import Estimate
from rallebench.core.run_results import MetricEstimate

CONFIDENCE = "confidence"
"""Name of the grader that is a model's own confidence in its answer."""
ORDER, PADDED, PRAISED, SEED = "order", "padded", "praised", "seed"
PROBES = {
    ORDER: "the blocks of the prompt in the opposite order",
    PADDED: "the answer with a sentence that says nothing",
    PRAISED: "a wrong answer with a sentence that calls it right",
    SEED: "the same request with another seed",
}
"""Probe → its change."""


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Answers of similar confidence. ``low``..``high``: their confidences, with the mean ``confidence``; ``right``: the share
    of them that is right, with its interval by article."""

    low: float
    high: float
    confidence: float
    right: Estimate


@dataclass(frozen=True, slots=True)
class Calibration:
    """Confidences from 0 to 1 against the truth, 1 for a right answer, 0 for a wrong one.

    ``confidence``, ``right``: their means; ``gap``: the mean confidence less the share of right answers. ``error``: the
    expected calibration error over ``bins`` of equal size, plain as in papers; its interval allows for chance, which alone
    would make it ``by_chance``; both None for too few answers or bins. ``brier``: the mean squared distance of confidence and truth; ``brier_constant``: that of the
    best constant confidence.
    """

    confidence: float
    right: MetricEstimate
    gap: MetricEstimate
    error: MetricEstimate
    by_chance: float | None
    brier: MetricEstimate
    brier_constant: float
    bins: tuple[ConfidenceBin, ...]
    note: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict on the calibration, then the reason for missing parts."""
        if self.note:
            return (self.note,)
        low, high = self.gap.low, self.gap.high
        side = "No bias is shown"
        if low is not None and high is not None and (low > 0 or high < 0):
            side = "It is too sure" if low > 0 else "It is not sure enough"
        first = (
            f"{side}: mean confidence {self.confidence:.2f}, {self.right.value or 0:.2f} are right."
        )
        if self.error.value is None:
            note = self.error.note
            return first, f"{note[:1].upper()}{note[1:]}."
        if self.error.low is None or self.by_chance is None:
            return (first,)
        chance = f"chance alone would make {self.by_chance:.3f}"
        negation = "" if self.error.low > 0 else "not "
        return first, f"Miscalibration is {negation}shown: error {cell(self.error)}; {chance}."


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """The answers with the highest confidences. ``coverage``: their share; ``threshold``: the lowest confidence among them;
    ``risk``: the share of them that is wrong, with its interval by article."""

    coverage: float
    threshold: float
    risk: Estimate


@dataclass(frozen=True, slots=True)
class SelectiveRisk:
    """Risk against coverage if answers below a confidence are withheld. ``area``: the area under the curve (AURC);
    ``area_random``: without any information, ``area_best``: with every right answer before every wrong one."""

    area: MetricEstimate
    area_random: float
    area_best: float
    points: tuple[CoveragePoint, ...]
    note: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict on the order of the confidences."""
        if self.note:
            return (self.note,)
        better = self.area.high is not None and self.area.high < self.area_random
        verdict = "tells right answers from wrong ones" if better else "is not shown to tell right"
        return (
            f"It {verdict}: area under risk and coverage {cell(self.area)}; random {self.area_random:.3f}, best possible {self.area_best:.3f}.",
        )


@dataclass(frozen=True, slots=True)
class ProvenThreshold:
    """A threshold for a wished ``precision``, chosen on one half of the articles and proved on the other.

    ``chosen``, ``proved``: the share of right answers among those at or above the ``threshold``, in each half;
    ``coverage``: the share of answers there, in the other half. ``threshold``: None with the reason in ``note``.
    """

    precision: float
    threshold: float | None
    chosen: MetricEstimate
    proved: MetricEstimate
    coverage: float | None = None
    note: str = ""

    @property
    def is_proved(self) -> bool:
        """True if the lower end of the other half's interval reaches the wished precision."""
        return self.proved.low is not None and self.proved.low >= self.precision

    @property
    def sentences(self) -> tuple[str, ...]:
        """The threshold and its proof in words."""
        wished = f"{100 * self.precision:g} %"
        if self.threshold is None:
            return (f"No threshold for {wished} right answers: {self.note}.",)
        verdict = "is proved" if self.is_proved else "is not proved"
        why = f" ({self.proved.note})" if self.proved.note else ""
        return (
            f"From confidence {self.threshold:.3f} on, {wished} right answers were reached on one half of the articles; on the other half this "
            f"{verdict}{why}: {cell(self.proved)} of {plural(self.proved.n, 'answer')}, coverage {100 * (self.coverage or 0):.0f} %.",
        )


@dataclass(frozen=True, slots=True)
class PartAudit:
    """The audit of a grader over a ``part`` of the answers."""

    part: str
    calibration: Calibration
    selective: SelectiveRisk


@dataclass(frozen=True, slots=True)
class GraderAudit:
    """The audit of a grader of a run. ``truth``: the column or "labels" that says which answers are right; ``parts``: all
    answers first; ``notes``: what limits the audit, in sentences."""

    run: str
    grader: str
    truth: str
    parts: tuple[PartAudit, ...]
    threshold: ProvenThreshold | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdicts over all answers, the threshold, and the notes."""
        whole = self.parts[0]
        proof = self.threshold.sentences if self.threshold else ()
        every = (*whole.calibration.sentences, *whole.selective.sentences, *proof, *self.notes)
        return tuple(dict.fromkeys(every))

    def to_json(self) -> JsonObject:
        """The audit with its sentences."""
        return {**object_json(asdict(self)), "said": list(self.sentences)}


@dataclass(frozen=True, slots=True)
class GraderComparison:
    """Two graders against the same labels. ``distances``: grader → mean squared distance of its scores from the labels, both on
    0 to 1; ``difference``: that of the second less the first, paired by article, with its ``p``; ``kappas``: grader →
    Cohen's weighted kappa."""

    run: str
    graders: tuple[str, str]
    distances: tuple[MetricEstimate, MetricEstimate]
    difference: MetricEstimate
    kappas: tuple[MetricEstimate, MetricEstimate]
    labels: int
    articles: int
    p: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def better(self) -> str:
        """The grader that is shown to be nearer to the labels; '' if neither is."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return ""
        return self.graders[0] if low > 0 else self.graders[1]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, then the notes."""
        first, second = self.graders
        counted = f"{plural(self.labels, 'label')} in {plural(self.articles, 'article')}"
        p = "" if self.p is None else f", p {'< 0.001' if self.p < 0.001 else f'= {self.p:.3f}'}"
        gap = f"squared distance of {second} less {first} {cell(self.difference, signed=True)}{p}"
        verdict = "No difference is shown"
        if self.better:
            other = second if self.better == first else first
            verdict = f"{self.better} agrees better with the labels than {other}"
        return f"{verdict}: {gap}; {counted}.", *self.notes

    def to_json(self) -> JsonObject:
        """The comparison with its sentences."""
        return {**object_json(asdict(self)), "better": self.better, "said": list(self.sentences)}


@dataclass(frozen=True, slots=True)
class WrongAnswers:
    """The ids of questions whose answers are wrong by ``truth``, "labels" or a metric."""

    truth: str
    qids: frozenset[str]


@dataclass(frozen=True, slots=True)
class JudgeProbe:
    """The verdicts of a judge under a probe against its usual ones. ``flips``: the share of ``flips.n`` answers whose verdict
    changes sides; ``to_right``, ``to_wrong``: the number of each; ``moved``: mean change of the score on 0 to 1; ``missing``: answers
    without a verdict on either side."""

    probe: str
    about: str
    flips: MetricEstimate
    to_right: int
    to_wrong: int
    moved: float | None
    missing: int = 0


@dataclass(frozen=True, slots=True)
class JudgeProbes:
    """The probes of a judge's ``column`` over answers of a run. ``truth``: that says which answers are wrong, for praise."""

    run: str
    judge: str
    column: str
    truth: str
    probes: tuple[JudgeProbe, ...]
    notes: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each probe, then the notes."""
        return *(probe_sentence(x) for x in self.probes), *self.notes

    def to_json(self) -> JsonObject:
        """The probes with their sentences."""
        return {**object_json(asdict(self)), "said": list(self.sentences)}


def probe_sentence(probe: JudgeProbe) -> str:
    """Return the result of a probe in words."""
    if not probe.flips.n:
        return f"{probe.probe}: no answer could be probed."
    flipped = probe.to_right + probe.to_wrong
    unread = f"; {plural(probe.missing, 'answer')} without both verdicts" if probe.missing else ""
    return (
        f"{probe.probe} ({probe.about}): {flipped:,} of {plural(probe.flips.n, 'verdict')} flip, {cell(probe.flips)}, "
        f"{probe.to_right:,} to right and {probe.to_wrong:,} to wrong{unread}."
    )
