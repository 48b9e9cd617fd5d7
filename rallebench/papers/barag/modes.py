"""The boolean-agent study on articles with questions: several ways to answer, their costs, and a judge's scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.json_values import as_json, object_json
from rallebench.core.report import Estimate
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.scoring import Scorer
from rallebench.core.settings import Setting, dataclass_form, declare_group, declare_list
from rallebench.core.tables import Table
from rallebench.core.types import Json
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.common import SCORES, failed_note, values_in
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.experiments.significance import tests_between
from rallebench.papers.barag.articles import sets_in
from rallebench.papers.barag.benchmark import BARAG
from rallebench.papers.barag.judged import (
    JudgementCounts,
    JudgeSettings,
    count_judgements,
    judge_notes,
    judge_study,
)
from rallebench.papers.barag.runs import (
    Summary,
    histogram_plot,
    lines,
    runs_table,
    sum_counts,
    summarize,
)
from rallebench.papers.barag.study import (
    COSTS,
    DEFINITIONS,
    AskingSettings,
    DataSettings,
    Study,
    answer_costs,
    answer_rows,
    answer_worth,
    read_study,
    with_articles,
)
from rallebench.papers.barag.workflow import MODES
from rallebench.papers.barag.workflow_uncertain import Rule, uncertain_agent
from rallebench.papers.common import differs_by
from rallebench.workspace.paths import WorkspaceFolder

ALL = (*MODES, "uncertain")
LABELS = {
    "truthfulness": "Truthfulness",
    "relevance": "Relevance",
    "n_input_tokens": "Input tokens",
    "n_output_tokens": "Output tokens",
    "f1": "F1",
    "em": "EM",
    "grounded": "Grounded",
    "declined": "Declined",
}
OTHER = {"embedding_tokens": "Embedding tokens", "judge_tokens": "Judge tokens"}
ALONE = frozenset(("baseline", "gt"))
"""The modes without a search."""
DECIDING = frozenset(("basic", "advanced"))
"""The modes in which the model decides to search."""


@dataclass(frozen=True, slots=True)
class ModesSettings:
    """The settings of ``barag-modes``."""

    data: DataSettings = declare_group(DataSettings)
    modes: str = declare_list(f"of {', '.join(ALL)}", *ALL, default="baseline,naive,basic,advanced")
    asking: AskingSettings = declare_group(AskingSettings)
    rule: Rule = declare_group(Rule)
    judge: JudgeSettings = declare_group(JudgeSettings)


@BARAG.suite(
    "barag-modes",
    competes=True,
    named_by=("modes",),
    sets=sets_in,
    form=dataclass_form(ModesSettings),
)
def modes(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """BARAG: passages read never, always, or by the model's own decision; tokens of all calls, and a judge's scores."""
    settings = request.read(ModesSettings)
    llm = settings.judge.judge
    names = values_in("modes", settings.modes, Setting(str, "", choices=ALL, required=True))
    study = read_study(
        request,
        settings.data,
        settings.asking,
        judged=bool(llm),
        retrieves=not ALONE.issuperset(names),
        logprobs="uncertain" in names and settings.rule.signal == "logprob",
    )
    if (llm or "gt" in names) and not study.set.articles:
        raise UsageError(
            f"The judge, and the mode gt, need the article of every question, and {study.set.path} has none; leave them out."
        )
    judge = judge_study(study, settings.judge) if llm else None
    results: dict[str, RunResult] = {}
    for run in [_run(study, mode, settings.rule, judge) for mode in names]:
        results[run.label] = yield run
    notes = [*study.notes]
    counts: dict[str, JudgementCounts] = {}
    tokens: dict[str, dict[str, int | None]] = {}
    for mode, result in results.items():
        notes += _notes(mode, result)
        queries = result.values.get("n_embedding_tokens", {}).values()
        total = sum_counts(None if count is None else int(count) for count in queries)
        tokens[mode] = {"embedding_tokens": total}
        if judge and (count := count_judgements(result, judge)):
            counts[mode] = count
            tokens[mode]["judge_tokens"] = count.tokens
            notes += judge_notes(mode, count, settings.judge.judging)
    rows = {mode: answer_rows(study, result) for mode, result in results.items()}
    summaries = {mode: summarize(answers) for mode, answers in rows.items()}
    about = f"{study.name}: {len(study.set.examples)} questions, {request.llm}"
    histogram = histogram_plot("Truthfulness + relevance", summaries)
    tested = (*(SCORES if llm else ()), *study.quality, "n_input_tokens", "n_output_tokens")
    return Report(
        {
            "dataset": study.name,
            "llm": request.llm,
            "compat": settings.asking.mode.compat,
            "calls": study.agent.calls,
            "wording": study.wording.to_json(),
            PUBLISHED: tuple(_own_rows(study, llm, results, summaries)),
            **{f"judge of {mode}": as_json(count) for mode, count in counts.items()},
            "modes": as_json(summaries),
            "other_tokens": tokens,
        },
        (*notes, *_saving(summaries)),
        {f"runs/{study.name}_{mode}.jsonl": lines(answers) for mode, answers in rows.items()},
        tables=(
            _table(f"Ways of answering, {about}", summaries, results, study),
            *_other_tokens(f"Tokens that the paper does not count, {about}", tokens),
            *tests_between({"": results}, tested, names=LABELS),
        ),
        figures=tuple(plot for plot in [histogram] if plot.series),
    )


PRINTED = {"baseline": "Baseline", "naive": "NRAG", "advanced": "BARAG"}
"""Way to answer → its name in the paper's Tables II and III."""
SETS = {"A_r_first300": "barag_table2", "A_r": "barag_table2", "A_f": "barag_table3"}
"""Set of articles → the paper's table of answers for it."""
OFFICIAL_SETS = {"A_r": "A_r_first300"}
"""Set → the subset measured in the paper."""
ALONE_COLUMNS = {"baseline": ("A_r", "A_d", "A_f"), "gt": ("A_f_GT",)}
"""Way to answer → its columns in Table I."""


def _own_rows(
    study: Study, judge: str, results: Mapping[str, RunResult], summaries: Mapping[str, Summary]
) -> Iterator[OwnRow]:
    """Our rows of Tables I to III with a judge's scores, for the paper's own article sets."""
    request, name = study.request, study.name.removesuffix("_first300")
    index = study.agent.retriever
    differs = differs_by(
        request,
        study.wording,
        f"Judged by {judge}, the paper's by GPT-4-0613." if judge else "Not judged.",
        f"Ours search {index}, the paper's 12,792 articles of A_r." if index else "",
    )
    for mode, result in results.items():
        system, summary = f"{request.llm}, {mode}", summaries[mode]
        strange = why_unverified("barag", OFFICIAL_SETS.get(name, name), result.request.examples)
        if mode in PRINTED:
            table = SETS.get(study.name, "barag_table2")
            own = published_table(table)
            why = unlike(name, own.split, result.n, own.n) or strange
            sums = (summary.n_in, summary.n_out, summary.retrieved)
            means = [result.means.get(score) for score in SCORES]
            means += [None if x is None else Estimate(float(x), None, None, result.n) for x in sums]
            cells = dict(zip(own.columns, means))
            yield own_row(table, system, cells, why, differs, model=request.llm)
        alone = published_table("barag_table1")
        for column in ALONE_COLUMNS.get(mode, ()):
            if column.removesuffix("_GT") == name:
                why = unlike(name, name, result.n, alone.n[column]) or strange
                for score in SCORES:
                    cells = {column: result.means.get(score)}
                    yield own_row(alone.name, system, cells, why, differs, metric=score)


def _table(
    title: str, summaries: Mapping[str, Summary], results: Mapping[str, RunResult], study: Study
) -> Table:
    """A table like Tables II and III, with added measures that need no judge."""
    names = (*study.quality, "declined")
    bare = runs_table(title, summaries)
    rows = tuple(
        (*row, *(results[str(row[0])].means.get(name) for name in names)) for row in bare.rows
    )
    return replace(bare, columns=(*bare.columns, *(LABELS[name] for name in names)), rows=rows)


def _other_tokens(title: str, counts: Mapping[str, Mapping[str, int | None]]) -> tuple[Table, ...]:
    """The tokens of encoders and of the judge, if counted."""
    names = [name for name in OTHER if any(each.get(name, 0) != 0 for each in counts.values())]
    if not names:
        return ()
    rows = tuple((mode, *(each.get(name, 0) for name in names)) for mode, each in counts.items())
    note = "Of the queries that were searched with; of the judge, sent and written. A dash: not counted by the backend."
    return (Table(title, ("Run", *(OTHER[name] for name in names)), rows, note=note),)


def _run(study: Study, mode: str, rule: Rule, judge: Scorer | None) -> RunRequest:
    settings: Json = {"mode": mode}
    flow = MODES.get(mode, uncertain_agent)
    if mode == "uncertain":
        # Samples are drawn only for agreement, which needs at least three.
        samples = max(3, rule.samples) if rule.signal == "agreement" else 0
        rule = replace(rule, samples=samples)
        settings = {"mode": mode, **object_json(rule)}
        flow = partial(uncertain_agent, rule=rule)
    return study.run(
        mode,
        f"barag-{mode}",
        flow,
        settings,
        lambda example, episode: {
            **answer_costs(episode),
            **answer_worth(study, example, episode.answer),
        },
        {name: DEFINITIONS[name] for name in (*COSTS, "declined", *study.quality)},
        (judge,) if judge else (),
        examples=with_articles(study) if mode == "gt" else None,
        searches=mode not in ALONE,
        decides=mode in DECIDING,
        drafts=mode in DECIDING or mode == "uncertain",
    )


def _notes(mode: str, answered: RunResult) -> Iterator[str]:
    yield from failed_note(mode, answered, "in no sum and no mean")
    undecided = sum(bool(value) for value in answered.values.get("undecided", {}).values())
    if undecided:
        yield f"{mode}: {undecided} of {answered.n} decisions could not be read, so passages were fetched."
    for metric, what in (("n_input_tokens", "sent"), ("n_output_tokens", "written")):
        uncounted = sum(value is None for value in answered.values.get(metric, {}).values())
        if uncounted:
            yield f"{mode}: of {uncounted} questions the backend did not count the tokens {what}, so their sum is not known."


def _saving(summaries: Mapping[str, Summary]) -> list[str]:
    """The tokens used by each agent, compared with always reading."""
    always = summaries.get("naive")
    if always is None or not always.n_in or not always.n_out:
        return []
    return [
        f"{mode} needs {summary.n_in / always.n_in - 1:+.1%} input and {summary.n_out / always.n_out - 1:+.1%} output tokens compared with naive."
        for mode, summary in summaries.items()
        if mode not in ("naive", *ALONE) and summary.n_in is not None and summary.n_out is not None
    ]
