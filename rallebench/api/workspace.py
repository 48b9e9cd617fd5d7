"""A workspace for scripts and notebooks: chains, questions asked, runs, experiments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rallebench.api.data import WorkspaceData
from rallebench.api.episodes import AskedEpisode, as_asked
from rallebench.api.experiments import ExperimentRun, ImprovementRun
from rallebench.api.progress import follow
from rallebench.api.questions import Dataset
from rallebench.api.runs import Run, RunList
from rallebench.api.wording import in_python
from rallebench.core.deciding import CONFIDENCE, MARGIN, StoppingRule
from rallebench.core.errors import StoppedError, UsageError
from rallebench.core.gating import check_limits
from rallebench.core.repeats import RepeatOptions, repeat_options
from rallebench.core.runs import RunOptions
from rallebench.core.spending_limit import spending_limit
from rallebench.core.types import Chain, Example
from rallebench.services import exchange
from rallebench.services.experiments import WorkspaceRequest
from rallebench.views import experiment_requests, run_columns
from rallebench.views.run_requests import BenchmarkOptions, changed_chain, of_chain


class Workspace(WorkspaceData):
    """A folder of corpora, indexes, chains and runs, with loaded models.

    Opens or creates the folder. The page and the command line use the same folders. Use a workspace in ``with``, or
    ``close`` it to unload its models. Several may be open at once. Errors that you can mend are a ``RalleError``.

    >>> with Workspace("my-study") as ws:  # doctest: +SKIP
    ...     ws.import_corpus("docs/", name="docs")
    ...     ws.build_index("docs", kind="bm25")
    ...     run = ws.run("starter", "questions.jsonl", retriever="docs-bm25", limit=100)
    """

    # chains

    @in_python
    def chain(
        self,
        name: str | Path,
        *,
        llm: str | None = None,
        retriever: str | None = None,
        **settings: object,
    ) -> Chain:
        """Return a saved chain by its name or file (RaLLe's files included), with the same changes as in ``run``."""
        return self._chain(str(name), llm, retriever, settings)

    @in_python
    def save_chain(self, chain: Chain, name: str = "") -> Path:
        """Save a chain under a name, by default its own, and return the file. The page and the command line find it from
        now on."""
        return self._bench.asking.save_chain(chain, name or chain.name)

    def _chain(
        self,
        chain: str | Chain,
        llm: str | None,
        retriever: str | None,
        settings: Mapping[str, object],
    ) -> Chain:
        pairs = [
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in settings.items()
        ]
        return changed_chain(self._bench.workspace, chain, llm, retriever, pairs)

    # questions

    @in_python
    def ask(
        self,
        chain: Chain | str,
        question: str,
        *,
        llm: str | None = None,
        retriever: str | None = None,
        **settings: object,
    ) -> AskedEpisode:
        """Ask a chain one question and return the episode: its ``answer``, its ``steps`` and their ``hits``.

        ``chain``: a chain, or the name of a saved one. ``llm``, ``retriever``: replace the chain's. ``settings``: for
        example ``k=10`` or ``temperature=0.2``. Raises RalleError if the question fails.

        >>> ws.ask("starter", "Who discovered Titan?").answer  # doctest: +SKIP
        'Christiaan Huygens'
        """
        answerer = self._chain(chain, llm, retriever, settings)
        work = self._bench.asking.answer(question, answerer)
        return as_asked(follow(work, "ask", self.progress))

    # runs

    @in_python
    def run(
        self,
        chain: Chain | str,
        dataset: str | Path | Dataset | Iterable[str | Mapping[str, object] | Example],
        *,
        name: str = "",
        metrics: Sequence[str] | None = None,
        limit: int | None = None,
        sample: int | None = None,
        seed: int = 0,
        batch_size: int | None = None,
        max_errors: int | None = None,
        max_usd: float | None = None,
        repeats: int = 1,
        thresholds: Mapping[str, float] | None = None,
        until_decided: Run | str | None = None,
        margin: float = MARGIN,
        confidence: float = CONFIDENCE,
        resume: bool = True,
        track: bool | None = None,
        llm: str | None = None,
        retriever: str | None = None,
        **settings: object,
    ) -> Run:
        """Ask a chain all questions of a dataset, score the answers and return the run.

        ``chain``: a chain, or the name or file of a saved one; ``llm``, ``retriever`` and ``settings`` change it, as in
        ``ask``. ``dataset``: a name, a path, a ``Dataset``, or a list of questions as for ``load_dataset``. ``metrics``:
        names such as "em" and "recall@5", and judges with their model, "truthfulness:my-llm"; by default those that fit
        the gold. ``limit``: number of questions from the first on; ``sample``: number of questions drawn by ``seed``.
        ``max_errors``: the run ends after more failed questions. ``max_usd``: it stops with a ``StoppedError`` once new
        calls of models have cost so many US dollars. ``repeats``: number of times that every question is asked if a model
        samples; scores are then means, and ``run.repeats`` has their spread; ``thresholds``: metric → the score from which
        an answer passes. ``until_decided``: an earlier run; whole articles are asked in a random order by ``seed``, and the run
        ends once the anytime-valid interval of the difference, at ``confidence``, lies above or below −``margin``. ``name``: by default a new one. A run of that name with
        the same settings is continued: only missing questions are asked, and none if it is complete. With ``resume``
        false, or other settings, an existing name is an error.

        Ctrl-C stops it after the current batch with a ``StoppedError``; the same call with its name continues.

        >>> ws.run(rag, "starter-qa", name="first", metrics=["em", "f1"], limit=100)["em"]  # doctest: +SKIP
        """
        if limit is not None and sample is not None:
            raise UsageError("limit and sample exclude each other; give one of them.")
        if sample is not None and sample < 1:
            raise UsageError(f"sample is {sample}; it must be at least 1.")
        questions = dataset if isinstance(dataset, Dataset) else self._dataset(dataset)
        options = BenchmarkOptions(
            dataset=questions.reference or questions.name,
            limit=sample or limit,
            batch_size=batch_size,
            metrics=None if metrics is None else _names(metrics),
            sampled=sample is not None,
            seed=seed,
            examples=() if questions.reference else questions.examples,
            run=RunOptions(
                max_errors=max_errors,
                track=self.track if track is None else track,
                budget=spending_limit(max_usd),
                repeats=_repeats(repeats, thresholds),
                until=_stopping_rule(until_decided, margin, confidence),
            ),
        )
        changed = self._chain(chain, llm, retriever, settings)
        bench = self._bench
        if not resume or not bench.runs.exists(name):
            prepared = of_chain(bench.workspace, changed, options, run=name)
        else:
            whole = options if options.limit else replace(options, limit=-1)
            prepared = of_chain(bench.workspace, changed, whole, run=name, resume=True)
        result = follow(
            bench.runs.run(prepared),
            prepared.name,
            self.progress,
            lambda: bench.runs.stop(prepared.name),
        )
        run = Run(lambda: self._bench, result.run, result.warnings)
        if result.stopped:
            raise StoppedError(
                f"Stopped after {len(run.questions)} of {result.n} questions; run it again with name={run.name!r} to continue."
            )
        return run

    @in_python
    def score(self, run: Run | str, metrics: Sequence[str], *, max_usd: float | None = None) -> Run:
        """Score a stored run by further metrics or judges and return it. Its answers are not requested again.

        ``max_usd``: stops with a ``StoppedError`` once the judges have cost so many US dollars; the same call continues.
        """
        name = run if isinstance(run, str) else run.name
        work = self._bench.runs.rescore(name, _names(metrics), spending_limit(max_usd))
        result = follow(work, f"score {name}", self.progress)
        return Run(lambda: self._bench, name, result.warnings)

    @in_python
    def run_result(self, name: str) -> Run:
        """Return a stored run by its name, including runs of the page and the command line."""
        return Run(lambda: self._bench, name)

    @in_python
    def runs(self, where: str = "", sort: str = "") -> RunList:
        """Return a line about every run of the workspace, the newest first.

        ``where``: a filter as on the page, such as ``"em<50 chain:starter -tag:night"``; ``sort``: a column, with "-"
        before it for the largest first. Raises RalleError for an unknown column or a wrong term.
        """
        return RunList(run_columns.arrange_runs(self._bench.workspace, where, sort))

    @in_python
    def log(self, name: Run | str) -> None:
        """Log a stored run, or the runs of an experiment, to MLflow, if it was made with ``track=False``."""
        key = name if isinstance(name, str) else name.name
        kinds = self._bench.experiments.kinds_named(key)
        if not kinds:
            raise UsageError(f"There is neither a run nor an experiment {key!r} in this workspace.")
        exchange.track(self._bench.workspace, self._bench.tracking, key, kinds[0])

    # experiments

    @in_python
    def experiment(
        self,
        suite: str,
        *,
        llm: str | Sequence[str] = (),
        name: str = "",
        limit: int | None = None,
        seed: int = 0,
        batch_size: int = 20,
        max_errors: int | None = None,
        max_usd: float | None = None,
        repeats: int = 1,
        track: bool | None = None,
        **settings: object,
    ) -> ExperimentRun:
        """Run a published benchmark and return its tables; see ``list("suites")``.

        ``llm``: the model, or several if the suite compares them. ``settings``: for the suite, such as ``data="rgb"`` or
        ``noise=[0, 0.4]``. ``name``: an existing name continues that experiment with its missing parts. ``max_usd``: as
        in ``run``, for all its runs and judges together. ``repeats``: as in ``run``, for each of its runs.

        >>> ws.experiment("rgb-noise", llm="my-llm", data="rgb", noise=[0, 0.4])  # doctest: +SKIP
        """
        models = (llm,) if isinstance(llm, str) else tuple(llm)
        written = {key: _setting_text(value) for key, value in settings.items()}
        request = experiment_requests.suite_request(
            self._bench.workspace,
            suite,
            models,
            written,
            limit=limit,
            name=name,
            seed=seed,
            allow_python=self._bench.allow_python,
        )
        options = RunOptions(
            batch_size, max_errors, budget=spending_limit(max_usd), repeats=_repeats(repeats)
        )
        return self._perform(request, options, track)

    @in_python
    def sweep(
        self,
        chain: Chain | str,
        dataset: str | Path | Dataset,
        vary: Mapping[str, Sequence[object]],
        *,
        name: str,
        metric: str = "",
        metrics: Sequence[str] | None = None,
        strategy: str = "one-factor",
        limit: int | None = None,
        seed: int = 0,
        batch_size: int = 20,
        max_errors: int | None = None,
        max_usd: float | None = None,
        repeats: int = 1,
        track: bool | None = None,
    ) -> ExperimentRun:
        """Run variants of a chain and compare them.

        ``vary``: field → values, such as ``{"k": [1, 3, 5], "llm": ["a", "b"]}``. ``strategy``: "one-factor" varies one
        field at a time, "grid" runs all combinations. ``metric``: decides which variant is best. ``name``: an existing
        name continues that sweep. ``max_usd``: as in ``run``, for all variants together; ``repeats``: for each of them.

        >>> ws.sweep("starter", "starter-qa", {"k": [1, 3, 5]}, name="ks")  # doctest: +SKIP
        """
        stored = _stored_name(dataset)
        factors = [f"{field}={_setting_text(list(values))}" for field, values in vary.items()]
        request, _ = experiment_requests.sweep_request(
            self._bench.workspace,
            name,
            self._chain(chain, None, None, {}),
            factors,
            stored,
            strategy=strategy,
            metrics=None if metrics is None else _names(metrics),
            metric=metric,
            limit=limit,
            seed=seed,
        )
        options = RunOptions(
            batch_size, max_errors, budget=spending_limit(max_usd), repeats=_repeats(repeats)
        )
        return self._perform(request, options, track)

    @in_python
    def improve(
        self,
        chain: Chain | str,
        dataset: str | Path | Dataset,
        *,
        name: str,
        llm: str = "",
        vary: Mapping[str, Sequence[object]] | None = None,
        limit: int | None = None,
        seed: int = 0,
        batch_size: int = 20,
        max_errors: int | None = None,
        max_usd: float | None = None,
        repeats: int = 1,
        track: bool | None = None,
        **settings: object,
    ) -> ImprovementRun:
        """Find a better variant of a chain, and prove it on articles that no variant has seen.

        ``llm``: replaces the chain's models. ``vary``: as in ``sweep``, in place of the own values of these fields.
        ``settings``: such as ``budget=500`` questions, ``metric="f1"``, ``variants=20`` or ``writer="my-llm"``, a model that
        writes prompts (docs/improve.md). ``name``: of the improvement and of its variant, which is saved as a chain; the given
        chain stays as it is. An existing name continues. ``max_usd``, ``repeats``: as in ``run``, for all its runs.

        >>> ws.improve("starter", "starter-qa", name="better", budget=500).outcome  # doctest: +SKIP
        Confirmed on 74 unseen articles: +3.1 points (0.4 to 5.8).
        """
        factors = [f"{field}={_setting_text(list(own))}" for field, own in (vary or {}).items()]
        written = {key: _setting_text(value) for key, value in settings.items()}
        request = experiment_requests.improve_request(
            self._bench.workspace,
            name,
            self._chain(chain, None, None, {}),
            {**written, "dataset": _stored_name(dataset)},
            vary=factors,
            llm=llm,
            limit=limit,
            seed=seed,
        )
        options = RunOptions(
            batch_size, max_errors, budget=spending_limit(max_usd), repeats=_repeats(repeats)
        )
        done = self._perform(request, options, track)
        return ImprovementRun(done.name, done.folder, done.report, done.runs)

    def _perform(
        self,
        request: WorkspaceRequest,
        options: RunOptions,
        track: bool | None,
    ) -> ExperimentRun:
        bench = self._bench
        options = replace(options, track=self.track if track is None else track)
        result = follow(
            bench.experiments.run(request, options),
            request.name,
            self.progress,
            lambda: bench.experiments.stop(request.name),
        )
        own = tuple(Run(lambda: self._bench, run.run, run.warnings) for run in result.runs)
        return ExperimentRun(request.name, result.folder, result.report, own)


def _stored_name(dataset: str | Path | Dataset) -> str:
    """The name or path of a stored dataset. Raises UsageError for questions that are not stored."""
    stored = dataset.reference if isinstance(dataset, Dataset) else str(dataset)
    if not stored:
        raise UsageError(
            "An experiment asks a stored dataset; import the questions with import_dataset, and give its name."
        )
    return stored


def _names(names: Sequence[str]) -> tuple[str, ...]:
    """The names in a list, or in a text with one name."""
    return (names,) if isinstance(names, str) else tuple(names)


def _repeats(number: int, thresholds: Mapping[str, float] | None = None) -> RepeatOptions:
    return repeat_options(number, [f"{name}={score}" for name, score in (thresholds or {}).items()])


def _stopping_rule(base: Run | str | None, margin: float, confidence: float) -> StoppingRule | None:
    if base is None:
        return None
    check_limits(margin, confidence)
    return StoppingRule(base if isinstance(base, str) else base.name, "", margin, confidence)


def _setting_text(value: object) -> str:
    """A setting as text, in the form for suites.

    >>> _setting_text([0, 0.4]), _setting_text(True), _setting_text("rgb")
    ('0,0.4', 'true', 'rgb')
    """
    if isinstance(value, (list, tuple)):
        return ",".join(map(_setting_text, value))
    return value if isinstance(value, str) else json.dumps(value, default=str)
