"""Improve a chain: its variants compete in rounds, and the best is proved on articles that none of them has seen."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rallebench.chains.overrides import override
from rallebench.chains.saved import chain_from_json
from rallebench.core.errors import BackendError, RalleError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Notice, Report
from rallebench.core.improvements import IMPROVEMENT, Improvement
from rallebench.core.numbers import plural
from rallebench.core.run_titles import plain_label
from rallebench.core.runs import RunRequest, RunResult, records_sha256
from rallebench.core.settings import dataclass_form, declare, declare_text
from rallebench.core.starter import DEFAULT_DATASET, READER
from rallebench.core.types import Chain, Json
from rallebench.engine.headline import OF_ANSWERS, deciding_metric
from rallebench.engine.metric_choice import choose_metrics
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.common import sentences, values_in
from rallebench.experiments.improving import candidates
from rallebench.experiments.improving.contest import Contest, scores_of_run
from rallebench.experiments.improving.guard import CopyGuard, list_texts, read_gold_passages
from rallebench.experiments.improving.parts import Article, Parts, list_questions, split_articles
from rallebench.experiments.improving.rounds import Round, plan_rounds
from rallebench.experiments.improving.writing import ask_writer, proposed_variants
from rallebench.experiments.prepared_run import prepare_run
from rallebench.experiments.sweeps import Variant
from rallebench.experiments.sweeps.results import deciding
from rallebench.metrics import METRICS
from rallebench.workspace.checking import check_chain
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder

CHAIN = "the chain"
"""The label of the unchanged chain."""


@dataclass(frozen=True, slots=True)
class ImproveSettings:
    """The settings of ``improve``. ``chain``: the chain in our format; ``vary``: ``FIELD=V,V`` texts in place of the own
    values of these fields."""

    chain: Json = field(default_factory=dict)
    vary: Sequence[str] = ()
    dataset: str = declare(str, DEFAULT_DATASET, about="the questions", names="dataset file")
    metric: str = declare_text("what decides; by default EM, or the first other one of answers")
    variants: int = declare(int, 12, 2, 64, about="the most variants that compete")
    budget: int = declare(
        int,
        0,
        0,
        about="the most questions to ask, the proof included; 0: no limit",
        title="budget (questions, 0: no limit)",
    )
    rewordings: bool = declare(bool, True, about="try instructions of our own before the prompt")
    examples: str = declare(
        str, "2,4", about="numbers of worked examples in the prompt to try; empty: none"
    )
    writer: str = declare_text(
        "a model that writes further prompts, from wrong answers to the questions to learn from",
        names="llm",
    )
    prompts: int = declare(int, 4, 1, 20, about="prompts that the writer writes", advanced=True)
    train: float = declare(
        float, 0.2, 0.01, 0.8, about="share of the articles to learn from", advanced=True
    )
    confirm: float = declare(
        float, 0.4, 0.1, 0.8, about="share of the articles for the proof", advanced=True
    )


@dataclass(frozen=True, slots=True)
class ImproveSetup:
    """A checked improvement. ``base``: the run of the chain over all questions, as a pattern for every run; ``examples``:
    numbers of worked examples."""

    request: ExperimentRequest[WorkspaceFolder]
    settings: ImproveSettings
    chain: Chain
    base: RunRequest
    metric: str
    parts: Parts
    guard: CopyGuard
    examples: Sequence[int]

    def run(self, label: str, chain: Chain, articles: Sequence[Article]) -> RunRequest:
        """Return the run of a chain over the questions of some articles."""
        examples = tuple(list_questions(articles))
        dataset = replace(self.base.dataset, sha256=records_sha256(examples))
        flow = chain_flow(chain)
        return replace(
            self.base,
            flow=flow,
            dataset=dataset,
            examples=examples,
            label=label,
            name="",
            limit=None,
        )


@EXPERIMENTS.register(
    "improve", place="improvements", competes=True, form=dataclass_form(ImproveSettings)
)
def improve(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Find a better variant of a chain, and prove it on articles that none has seen.

    A variant that fails or whose prompt is refused is reported, and the others compete.
    """
    setup, warnings = _prepare(request)
    proposed = candidates.list_variants(
        setup.chain, _fields(setup), setup.settings.variants, request.seed
    )
    extra = setup.settings.prompts if setup.settings.writer else 0
    if not proposed and not extra:
        raise UsageError(
            "There is no variant to try; name fields to vary, or a model that writes prompts."
        )
    variants, refused = _apply_guard(setup, proposed)
    if not variants and not extra:
        raise _unusable(refused)
    contenders = len(variants) + extra
    rounds = plan_rounds(contenders, setup.parts.choose, _round_budget(setup, extra))
    if warnings:
        yield Notice(warnings)
    cost = 0
    if extra:
        written, reasons, cost = yield from _write_prompts(setup)
        variants, refused = [*variants, *written], {**refused, **reasons}
    if not variants:
        raise _unusable(refused)
    contest, count = yield from _compete(setup, variants, rounds)
    cost += count
    best = contest.best
    outcome = Improvement(
        setup.metric,
        contest.metric_label,
        contest.is_share,
        contest.higher_is_better,
        chain=setup.chain.name,
        seen=contest.articles,
        refused=refused,
    )
    if best is None:
        return _report(setup, contest, replace(outcome, cost=cost), None)
    sides = []
    for label, chain in ((CHAIN, setup.chain), ("the variant", best.chain)):
        sides.append((yield setup.run(f"proof, {label}", chain, setup.parts.confirm)))
        cost += sides[-1].n
    outcome = _prove(setup, contest, replace(outcome, cost=cost), best, sides)
    return _report(setup, contest, outcome, best)


def _unusable(refused: Mapping[str, str]) -> UsageError:
    label, reason = next(iter(refused.items()))
    more = f"; {plural(len(refused) - 1, 'other')} neither" if len(refused) > 1 else ""
    return UsageError(f"No variant can be used: {label}: {reason}{more}.")


def _prepare(request: ExperimentRequest[WorkspaceFolder]) -> tuple[ImproveSetup, tuple[str, ...]]:
    """Check everything; return the setup and warnings. Raises UsageError."""
    workspace, settings = request.workspace, request.read(ImproveSettings)
    chain = override(chain_from_json(settings.chain), llm=request.llm)
    candidates.answering_action(chain)
    numbers = values_in("examples", settings.examples, candidates.EXAMPLE_NUMBER)
    if settings.writer:
        workspace.llm(settings.writer)
    prepared = prepare_run(
        workspace, chain_flow(chain), settings.dataset, limit=request.limit, seed=request.seed
    )
    base = prepared.request
    if settings.metric and METRICS.is_judge(settings.metric):
        raise UsageError(
            "A judge cannot choose among variants; name a metric without a model.", "metric"
        )
    metric = deciding(settings.metric) if settings.metric else deciding_metric(base.metrics)
    if not settings.metric and metric not in OF_ANSWERS:
        raise UsageError(
            f"The questions of {base.dataset.name!r} have no accepted answers to choose by; add them, or name a metric that "
            "needs none."
        )
    if metric not in base.metrics:
        own = choose_metrics((metric,), base.examples, base.dataset.name, chain)
        base = replace(base, metrics=(*base.metrics, *own))
    parts = split_articles(base.examples, request.seed, settings.train, settings.confirm)
    passages = read_gold_passages(workspace, chain.retrievers, parts)
    guard = CopyGuard(parts, chain, passages)
    return ImproveSetup(
        request, settings, chain, base, metric, parts, guard, numbers
    ), prepared.warnings


def _fields(setup: ImproveSetup) -> list[list[candidates.FieldValue]]:
    """Return the values of every field to vary: those that the user names, and our own of the others."""
    settings, chain = setup.settings, setup.chain
    fields = candidates.varied_fields(chain, settings.vary)
    names = {change.field for field in fields for change in field}
    prompt = f"{candidates.answering_action(chain) + 1}.template"
    if not any(name == "k" or name.endswith(".k") for name in names):
        fields.append(candidates.passage_numbers(chain))
    workspace = setup.request.workspace
    copies = all(workspace.llm(name).backend == READER for name in chain.llms)
    if copies:  # the built-in reader follows no instruction
        return fields
    if settings.rewordings and prompt not in names:
        fields.append(candidates.rewordings(chain, candidates.shipped_texts()))
    fields.append(candidates.worked_examples(chain, setup.parts.train, setup.examples, setup.guard))
    return fields


def _apply_guard(
    setup: ImproveSetup, variants: Sequence[Variant]
) -> tuple[list[Variant], dict[str, str]]:
    """Return the variants that may compete, and label → reason of the others."""
    usable, refused = [], {}
    own = set(list_texts(setup.chain))
    for variant in variants:
        texts = [text for text in list_texts(variant.chain) if text not in own]
        reason = setup.guard.refuse(texts)
        try:
            check_chain(setup.request.workspace, variant.chain)
        except RalleError as error:
            reason = str(error)
        if reason:
            refused[plain_label(variant.label)] = reason.removesuffix(".")
        else:
            usable.append(variant)
    return usable, refused


def _round_budget(setup: ImproveSetup, written: int) -> int | None:
    """Return the questions that the budget leaves for the rounds; None without one. ``written``: prompts of the writer."""
    budget = setup.settings.budget
    if not budget:
        return None
    proof = 2 * len(list_questions(setup.parts.confirm))
    learning = len(list_questions(setup.parts.train)) + written if written else 0
    left = budget - proof - learning
    if left <= 0:
        raise UsageError(
            f"The budget of {plural(budget, 'question')} is too small: the proof takes {proof:,}"
            + (f", and writing prompts {learning:,}" if learning else "")
            + "; raise it, or lower the share of the articles for the proof."
        )
    return left


Written = tuple[list[Variant], Mapping[str, str], int]


def _write_prompts(setup: ImproveSetup) -> Generator[RunRequest, RunResult, Written]:
    """Ask the writer for prompts; return the variants, label → reason of refused ones, and the number of questions."""
    learning = yield setup.run(f"learning, {CHAIN}", setup.chain, setup.parts.train)
    scores = scores_of_run(setup.request.workspace, learning, setup.metric)
    result = yield ask_writer(
        setup.settings.writer, setup.chain, setup.settings.prompts, learning, scores
    )
    proposed, refused = proposed_variants(setup.chain, result)
    usable, more = _apply_guard(setup, proposed)
    return usable, {**refused, **more}, learning.n + result.n


def _compete(
    setup: ImproveSetup, variants: Sequence[Variant], rounds: Sequence[Round]
) -> Generator[RunRequest, RunResult, tuple[Contest, int]]:
    """Ask the variants in rounds; return the contest and the number of questions."""
    workspace, cost = setup.request.workspace, 0
    contest = Contest(setup.metric, variants)
    for number, each in enumerate(rounds, 1):
        own = yield setup.run(f"round {number}, {CHAIN}", setup.chain, each.articles)
        scores = scores_of_run(workspace, own, setup.metric)
        contest.add_chain(own.request.examples, scores, simulated=own.simulated)
        if not contest.is_scored:
            raise BackendError(
                f"The chain {setup.chain.name!r} has no score for any of {plural(own.n, 'question')}; mend what failed, and start "
                "again under the same name."
            )
        cost += own.n
        for place, variant in enumerate(contest.best_first(each.contenders), 1):
            label = variant.label if number == 1 else f"place {place}"
            try:
                result = yield setup.run(f"round {number}, {label}", variant.chain, each.articles)
            except RalleError as error:
                contest.drop(variant, str(error))
                continue
            contest.add(variant, scores_of_run(workspace, result, setup.metric), number)
            cost += result.n
    return contest, cost


def _prove(
    setup: ImproveSetup,
    contest: Contest,
    outcome: Improvement,
    best: Variant,
    sides: Sequence[RunResult],
) -> Improvement:
    """Compare the variant with the chain on the unseen articles."""
    own, new = (scores_of_run(setup.request.workspace, side, setup.metric) for side in sides)
    pair = contest.compare(own, new, list_questions(setup.parts.confirm))
    return replace(
        outcome,
        variant=contest.label(best),
        difference=pair.difference,
        low=pair.low,
        high=pair.high,
        articles=pair.clusters,
        questions=pair.n,
        note=pair.note,
        runs=tuple(side.run for side in sides),
    )


def _report(
    setup: ImproveSetup, contest: Contest, outcome: Improvement, best: Variant | None
) -> Report:
    """Return the report; with a best variant also its chain, under the name of the experiment."""
    chain = None
    if best is not None:
        about = f"{setup.chain.name} improved. {outcome}"
        chain = replace(best.chain, name=setup.request.name, about=about)
    refused = (f"{label} was refused: {why}." for label, why in outcome.refused.items())
    failed = (f"{label} left the contest: {why}" for label, why in contest.failed.items())
    unseen = len(list_questions(setup.parts.confirm))
    lost = unseen - outcome.questions if outcome.difference is not None else 0
    notes = sentences(
        (
            lost,
            f"{lost} of {unseen} unseen questions have no score in one of the two and are left out.",
        )
    )
    return Report(
        {IMPROVEMENT: outcome.to_json()},
        (str(outcome), *notes, *refused, *failed),
        tables=(contest.table,),
        failed=contest.failed,
        chain=chain,
    )
