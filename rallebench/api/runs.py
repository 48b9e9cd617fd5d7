"""Runs as values: metrics, questions, differences from other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from rallebench.api.episodes import AskedEpisode, as_asked
from rallebench.api.labels import LabelEditor
from rallebench.api.listing import TableRepr
from rallebench.api.progress import follow
from rallebench.api.wording import in_python
from rallebench.core.audits import GraderAudit, GraderComparison, JudgeProbes
from rallebench.core.corrections import LabelCorrection
from rallebench.core.deciding import CONFIDENCE, MARGIN
from rallebench.core.errors import UsageError
from rallebench.core.failures import MEANING, FailureReport
from rallebench.core.gating import Gate
from rallebench.core.repeats import RepeatReport
from rallebench.core.run_results import (
    ComparedRuns,
    MetricDifference,
    MetricEstimate,
    QuestionResult,
    RunFacts,
    RunSummary,
)
from rallebench.core.spending_limit import spending_limit
from rallebench.core.tables import Column, Table
from rallebench.core.types import Chain
from rallebench.render import html, text
from rallebench.services.question_groups import group_questions
from rallebench.services.workbench import Workbench
from rallebench.views import run_questions
from rallebench.views.audits import PRECISION, audit_grader, compare_graders, wrong_answers
from rallebench.views.corrections import correct_runs
from rallebench.views.failures import explain_failures
from rallebench.views.gating import gate_runs
from rallebench.views.run_results import (
    compare_runs,
    metric_estimates,
    missing_metric,
    question_results,
    run_facts,
)

if TYPE_CHECKING:
    import pandas as pd


class Run(TableRepr):
    """A run of a workspace: ``run["em"]`` is a metric with its interval, ``list(run)`` the names of all.

    Its parts are read from its folder at their first use, and then stay the same.

    >>> run["em"]  # doctest: +SKIP
    em 0.518 [0.452, 0.583], n = 222, 180 articles
    >>> run.to_pandas()["lost_at"].value_counts()  # doctest: +SKIP
    """

    def __init__(
        self, bench: Callable[[], Workbench], name: str, warnings: tuple[str, ...] = ()
    ) -> None:
        """``bench``: returns the open workbench; ``warnings``: warnings while the run was made."""
        self._bench, self.name, self.warnings = bench, name, warnings
        self._folder = bench().runs.open(name)
        self.path: Path = self._folder.path

    @cached_property
    def metrics(self) -> Mapping[str, MetricEstimate]:
        """Metric or column of a judge → its estimate."""
        return metric_estimates(self._folder)

    @in_python
    def __getitem__(self, metric: str) -> MetricEstimate:
        if metric not in self.metrics:
            raise missing_metric(self.name, metric, list(self.metrics))
        return self.metrics[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.metrics)

    @cached_property
    def _facts(self) -> RunFacts:
        return run_facts(self._folder)

    @property
    def dataset(self) -> str:
        """The name of its dataset."""
        return self._facts.dataset

    @property
    def chain(self) -> Chain | None:
        """Its chain; None for an agent or imported predictions."""
        return self._facts.chain

    @property
    def is_complete(self) -> bool:
        """Return whether every question was asked; otherwise run it again under its name."""
        return self._facts.complete

    @property
    @in_python
    def repeats(self) -> RepeatReport:
        """The spread of its metrics over repeats. Raises RalleError for a run without repeats."""
        report = self._folder.report()
        if report is None or report.repeats is None:
            raise UsageError(
                f"The run {self.name!r} was made without repeats; run it again under its name with a number of repeats."
            )
        return report.repeats

    @cached_property
    def questions(self) -> tuple[QuestionResult, ...]:
        """The questions in order, each with its answer, verdict, scores and cost."""
        return question_results(self._bench().workspace, self._folder)

    @property
    def labels(self) -> LabelEditor:
        """The labels that people gave its answers, and the methods that give them."""
        return LabelEditor(self._bench, self.name)

    @in_python
    def correct(self, grader: str, against: Run | None = None) -> LabelCorrection:
        """Return the mean of a metric or of a judge's column, raw and corrected by people's labels; with ``against``, the
        difference of this run from that one. Raises RalleError without labels or a range of the metric.

        >>> run.correct("my-judge.score").corrected  # doctest: +SKIP
        corrected 0.471 [0.402, 0.541], n = 80, 62 articles
        """
        runs = [self._folder] if against is None else [against._folder, self._folder]
        return correct_runs(runs, grader)[-1]

    @in_python
    def audit(
        self, grader: str = "", truth: str = "", *, precision: float = PRECISION, seed: int = 0
    ) -> GraderAudit:
        """Audit a grader: calibration, risk against coverage, and a threshold with a proved precision.

        ``grader``: "confidence" (the model's own), a judge's column or a metric; by default the first of the run. ``truth``:
        "labels", or a metric; by default the one that decides. Raises RalleError for a grader without a range.

        >>> run.audit("confidence").parts[0].calibration.error  # doctest: +SKIP
        ece 0.133 [0.058, 0.192], n = 222, 222 articles
        """
        workspace = self._bench().workspace
        return audit_grader(workspace, self._folder, grader, truth, precision=precision, seed=seed)

    @in_python
    def compare_graders(self, first: str, second: str) -> GraderComparison:
        """Return which of two graders agrees better with people's labels, paired by article. Raises RalleError for fewer than two
        labels.

        >>> run.compare_graders("my-judge.score", "f1").better  # doctest: +SKIP
        'f1'
        """
        return compare_graders(self._folder, first, second)

    @in_python
    def probe_judge(
        self,
        grader: str,
        probes: Sequence[str] = (),
        *,
        truth: str = "",
        sample: int | None = None,
        seed: int = 0,
        max_usd: float | None = None,
    ) -> JudgeProbes:
        """Have a judge judge the answers again, changed as should not matter, and return the shares of verdicts that flip.

        ``probes``: "order", "padded", "praised", "seed"; by default all that the judge allows. ``truth``: "labels" or a metric that
        tells the wrong answers, which are praised. ``sample``: the number of answers, drawn by ``seed``. Raises RalleError.

        >>> run.probe_judge("truthfulness:my-llm", ["padded"]).probes[0].flips  # doctest: +SKIP
        flips 0.050 [0.020, 0.113], n = 100, 88 articles
        """
        bench = self._bench()
        wrong = wrong_answers(self._folder, grader, truth)
        work = bench.runs.probe(
            self.name,
            grader,
            wrong,
            probes,
            sample=sample,
            seed=seed,
            budget=spending_limit(max_usd),
        )
        return follow(work, "probe", False)

    @in_python
    def why(self, metric: str = "") -> FailureReport:
        """Return groups of the questions, by meaning and by question word, with the share that each gets wrong against the rest.

        ``metric``: answers below the middle of its range are wrong; by default the metric that decides. Raises RalleError for a
        run without scores.

        >>> [group.key for group in run.why().groups if group.is_harder]  # doctest: +SKIP
        ['meaning-3']
        """
        self._make_groups(MEANING)
        return explain_failures(self._bench().workspace, self._folder, metric)

    def _make_groups(self, part: str) -> None:
        """Group the questions by meaning if ``part`` names such a group."""
        if part.startswith(MEANING):
            bench = self._bench()
            follow(
                group_questions(bench.workspace, bench.models.encoders, self._folder), "why", False
            )

    @in_python
    def episode(self, qid: str) -> AskedEpisode:
        """Return the episode of a question: its prompts, passages and replies. Raises RalleError for an unknown id."""
        run_questions.example(self._folder, qid)
        episode = self._folder.find_episode(qid)
        if episode is None:
            raise UsageError(f"The question {qid!r} of {self.name!r} was not asked yet.")
        return as_asked(episode)

    @in_python
    def compare(self, other: Run, metric: str = "") -> RunComparison:
        """Compare with another run. A positive difference is a gain of this run over ``other``.

        >>> second.compare(first)["em"]  # doctest: +SKIP
        em +0.061 [-0.010, +0.132], p = 0.093, n = 222; 20 wins, 195 ties, 7 losses; no difference shown
        """
        return compare(other, self, metric=metric)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per question, indexed by id.

        Columns: question, gold (tuple of accepted answers), answer, verdict, lost_at, one column per score, seconds,
        prompt_tokens, completion_tokens, tokens, error.
        """
        import pandas as pd

        scored = dict.fromkeys(name for q in self.questions for name in q.scores)
        before = ("question", "gold", "answer", "verdict", "lost_at")
        after = ("seconds", "prompt_tokens", "completion_tokens", "tokens", "error")
        columns = {name: [getattr(q, name) for q in self.questions] for name in before}
        columns |= {name: [q.scores.get(name) for q in self.questions] for name in scored}
        columns |= {name: [getattr(q, name) for q in self.questions] for name in after}
        return pd.DataFrame(columns, index=pd.Index([q.qid for q in self.questions], name="qid"))

    @property
    def table(self) -> Table:
        """One row per metric."""
        rows = tuple((name, str(estimate)) for name, estimate in self.metrics.items())
        heads = (Column("metric", "text"), Column("mean [95 % interval]", "text"))
        facts = self._facts
        failed = f", {facts.n_errors:,} failed" if facts.n_errors else ""
        missing = "" if facts.complete else f" of {facts.n:,}, not complete"
        title = f"{self.name}: {facts.n_done:,}{missing} questions{failed}"
        return Table(title, heads, rows, note=" ".join(self.warnings))


class RunComparison(TableRepr, Mapping[str, MetricDifference]):
    """Runs compared with the first. For two runs the keys are their common metrics; for more, the other runs, by
    ``metric``."""

    def __init__(self, compared: ComparedRuns) -> None:
        self._compared = compared
        self.runs, self.metric, self.warnings = compared.runs, compared.metric, compared.warnings
        by_metric = {name: dict(pairs) for name, pairs in compared.differences.items()}
        last = compared.runs[-1]
        self._differences: Mapping[str, MetricDifference] = (
            {name: pairs[last] for name, pairs in by_metric.items()}
            if len(compared.runs) == 2
            else by_metric[compared.metric]
        )

    @in_python
    def __getitem__(self, key: str) -> MetricDifference:
        if key not in self._differences:
            known = ", ".join(self._differences)
            raise UsageError(f"The comparison has no {key!r}; it has {known}.")
        return self._differences[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._differences)

    def __len__(self) -> int:
        return len(self._differences)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def table(self) -> Table:
        """Every metric of every run; of two runs with their difference."""
        return self._compared.tables[0]

    @property
    def tables(self) -> tuple[Table, ...]:
        """All metrics, then each run against the first by ``metric``."""
        return self._compared.tables

    def __repr__(self) -> str:
        return "\n\n".join("\n".join(text.table(table)) for table in self.tables)

    def _repr_html_(self) -> str:
        return "".join(str(html.table(table)) for table in self.tables)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per key: a, b, difference, low, high, p, n, units, wins, ties, losses, verdict."""
        import pandas as pd

        names = ["a", "b", "difference", "low", "high", "p", "n", "units"]
        names += ["wins", "ties", "losses", "verdict"]
        rows = [[getattr(difference, name) for name in names] for difference in self.values()]
        return pd.DataFrame(rows, columns=names, index=pd.Index(list(self)))


@in_python
def compare(first: Run, *others: Run, metric: str = "") -> RunComparison:
    """Compare runs with the first, question by question, over their common questions.

    ``metric``: for the differences of three or more runs; by default the first common one of em, accuracy, f1 …. Raises
    RalleError for runs without a common question or metric.

    >>> compare(first, second)["em"].flipped_ids  # doctest: +SKIP
    """
    return RunComparison(compare_runs([run._folder for run in (first, *others)], metric))


@in_python
def gate(
    new: Run,
    base: Run,
    metric: str = "",
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
    common: bool = False,
    part: str = "",
) -> Gate:
    """Decide whether a run is worse than a base by more than ``margin``, in the units of ``metric``.

    The paired interval at ``confidence`` decides: ``gate(new, base).passed`` if it lies above −margin. ``metric``: by
    default the first common one of em, accuracy, f1 …. ``common``: compare only the questions that are the same in both.
    ``part``: only a group of the base's questions, "meaning-2" or "word-who", as ``Run.why`` lists them. Raises RalleError for runs that cannot be compared.

    >>> gate(new, base, metric="em").outcome  # doctest: +SKIP
    'undecided'
    """
    base._make_groups(part)
    return gate_runs(
        new._folder,
        base._folder,
        metric,
        margin=margin,
        confidence=confidence,
        common=common,
        part=part,
        workspace=base._bench().workspace,
    )


class RunList(TableRepr, tuple[RunSummary, ...]):
    """The runs of a workspace, the newest first."""

    @property
    def table(self) -> Table:
        labels = ("run", "dataset", "state", "questions", "metric")
        heads = (*(Column(label, "text") for label in labels), Column("mean"))
        rows = tuple(
            (row.name, row.dataset, row.state or row.problem, f"{row.done:,}", row.metric, row.mean)
            for row in self
        )
        return Table("", heads, rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per run, indexed by name: title, dataset, state, done, total, errors, metric, mean, created,
        tags, note, experiment.
        """
        import pandas as pd

        names: tuple[str, ...] = ("title", "dataset", "state", "done", "total", "errors", "metric")
        names += ("created", "tags", "note", "experiment")
        rows = [[getattr(row, name) for name in names] for row in self]
        frame = pd.DataFrame(
            rows, columns=list(names), index=pd.Index([row.name for row in self], name="run")
        )
        frame.insert(7, "mean", [row.mean.value if row.mean else None for row in self])
        return frame
