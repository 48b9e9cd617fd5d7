"""The boolean-agent study over articles with questions: several ways of answering, what each costs, and what a judge says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Figure, Report, Table
from rallebench.core.runs import RunRequest, RunResult
from rallebench.core.settings import Setting
from rallebench.core.types import Flow, Question
from rallebench.experiments.papers import SUITES
from rallebench.experiments.papers.barag import judged
from rallebench.experiments.papers.barag.judged import JUDGE, JUDGING
from rallebench.experiments.papers.barag.runs import Row, lines
from rallebench.experiments.papers.barag.study import (
    ASKING,
    DATA,
    DEFINITIONS,
    Study,
    costs_of,
    row_of,
    shown_articles,
    study_of,
    worth_of,
)
from rallebench.experiments.papers.barag.summary import (
    Summary,
    histogram_plot,
    runs_table,
    summary_of,
)
from rallebench.experiments.runs import scored_run
from rallebench.workflows.barag import MODES, BaragAgent
from rallebench.workflows.barag_uncertain import RULE_SETTINGS, Rule, uncertain

ALL = (*MODES, "uncertain")
LABELS = {"f1": "F1", "em": "EM", "grounded": "Grounded", "declined": "Declined"}
BESIDE = {"embedding_tokens": "Embedding tokens", "judge_tokens": "Judge tokens"}
ALONE = frozenset(("baseline", "gt"))
"""The modes that search for nothing."""
DECIDING = frozenset(("basic", "advanced"))
"""The modes that ask the model whether to search."""


@SUITES.register(
    "barag-modes",
    named_by=("modes",),
    form={
        **DATA,
        "modes": Setting(str, "baseline,naive,basic,advanced", about=f"of {', '.join(ALL)}"),
        **ASKING,
        **RULE_SETTINGS,
        **JUDGE,
        **JUDGING,
    },
)
def modes(asked: ExperimentRequest) -> Experiment:
    """BARAG: never, always, or on the model's own decision reading passages; tokens of all calls, and a judge's scores."""
    chosen = _modes(asked.settings["modes"])
    study = study_of(
        asked, retrieves=not ALONE.issuperset(chosen), logprobs=_wants_logprobs(asked, chosen)
    )
    judge = judged.judge_of(asked, asked.settings["judge"]) if asked.settings["judge"] else None
    if (judge or "gt" in chosen) and not study.set.articles:
        raise UsageError(
            f"The judge, and the mode gt, need the article of every question, and {study.set.path} has none; leave them out."
        )
    rows: dict[str, list[Row]] = {}
    worth: dict[str, tuple[Any, ...]] = {}
    beside: dict[str, dict[str, int | None]] = {}
    report: dict[str, Any] = {
        "dataset": study.name,
        "llm": asked.llm,
        "compat": asked.settings["compat"],
        "calls": study.agent.calls,
    }
    notes = [*study.set.notes]
    for mode in chosen:
        answered = yield _part(study, mode)
        notes += _notes(mode, answered)
        worth[mode] = tuple(answered.means.get(name) for name in (*study.quality, "declined"))
        beside[mode] = {"embedding_tokens": _embedded(answered)}
        scores: Mapping[str, Mapping[str, float]] = {}
        if judge and answered.episodes:
            examples = {example.question.qid: example for example in study.set.examples}
            said = {
                qid: (examples[qid], episode.answer) for qid, episode in answered.episodes.items()
            }
            verdicts = yield judged.judged_part(
                f"{mode} judged ", study.name, judge, said, study.set.articles
            )
            scores = judged.scores_in(verdicts)
            told = report[f"judge of {mode}"] = judged.report_of(verdicts)
            beside[mode]["judge_tokens"] = _both(
                told["judge_input_tokens"], told["judge_output_tokens"]
            )
            notes += judged.notes_of(mode, verdicts, judge)
        rows[mode] = [
            row_of(
                study,
                example,
                answered.episodes[example.question.qid],
                scores.get(example.question.qid, {}),
            )
            for example in answered.request.examples
            if example.question.qid in answered.episodes
        ]
    summaries = {mode: summary_of(found) for mode, found in rows.items()}
    notes += _saving(summaries)
    about = f"{study.name}: {len(study.set.examples)} questions, {asked.llm}"
    return Report(
        {
            **report,
            "modes": {mode: one.as_json() for mode, one in summaries.items()},
            "other_tokens": beside,
        },
        tuple(notes),
        {f"runs/{study.name}_{mode}.jsonl": lines(found) for mode, found in rows.items()},
        tables=(
            _table(f"Ways of answering, {about}", summaries, (*study.quality, "declined"), worth),
            *_beside(f"Tokens that the paper does not count, {about}", beside),
        ),
        figures=_plots(summaries),
    )


def _table(
    title: str,
    summaries: Mapping[str, Summary],
    names: tuple[str, ...],
    worth: Mapping[str, tuple[Any, ...]],
) -> Table:
    """Tables II and III, and what an answer is worth without a judge."""
    bare = runs_table(title, summaries)
    rows = tuple((*row, *worth[row[0]]) for row in bare.rows)
    return replace(bare, columns=(*bare.columns, *(LABELS[name] for name in names)), rows=rows)


def _beside(title: str, counts: Mapping[str, Mapping[str, int | None]]) -> tuple[Table, ...]:
    """What encoders and the judge read and wrote, where any did."""
    names = [name for name in BESIDE if any(each.get(name, 0) != 0 for each in counts.values())]
    rows = tuple((mode, *(each.get(name, 0) for name in names)) for mode, each in counts.items())
    note = "Of the queries that were searched with; of the judge, sent and written. A dash: not counted by who worked."
    return (
        (Table(title, ("Run", *(BESIDE[name] for name in names)), rows, note=note),)
        if names
        else ()
    )


def _embedded(answered: RunResult) -> int | None:
    counts = answered.values.get("n_embedding_tokens", {}).values()
    return None if None in counts else int(sum(count or 0 for count in counts))


def _both(sent: int | None, written: int | None) -> int | None:
    return None if sent is None or written is None else sent + written


def _modes(text: str) -> list[str]:
    chosen = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [mode for mode in chosen if mode not in ALL]
    if wrong or not chosen:
        raise UsageError(f"--set modes={text}: choose of {', '.join(ALL)}.")
    return chosen


def _wants_logprobs(asked: ExperimentRequest, chosen: list[str]) -> bool:
    return "uncertain" in chosen and asked.settings["signal"] == "logprob"


def _part(study: Study, mode: str) -> RunRequest:
    s = study.asked.settings
    settings = {**study.settings, "mode": mode}
    make: Any = MODES.get(mode)
    if mode == "uncertain":
        rule = Rule(s["signal"], s["threshold"], _samples(s), s["draft_passages"])
        make = partial(uncertain, rule=rule)
        settings |= {
            "signal": rule.signal,
            "threshold": rule.threshold,
            "samples": rule.samples,
            "draft_passages": rule.draft_passages,
        }

    def flow(question: Question, agent: BaragAgent) -> Flow:
        made: Flow = make(question, agent=agent)
        return made

    names = (
        *(
            "n_input_tokens",
            "n_output_tokens",
            "n_embedding_tokens",
            "retrieved",
            "undecided",
            "declined",
        ),
        *study.quality,
    )
    run = scored_run(
        mode,
        f"barag-{mode}",
        study.name,
        shown_articles(study) if mode == "gt" else study.set.examples,
        lambda question: flow(question, study.agent),
        settings,
        lambda example, episode: {**costs_of(episode), **worth_of(study, example, episode.answer)},
        {name: DEFINITIONS[name] for name in names},
        (study.asked.llm,),
        () if mode in ALONE else (study.agent.retriever,),
    )
    return study.deciding(run, flow) if mode in DECIDING else run


def _samples(settings: Mapping[str, Any]) -> int:
    """Samples are drawn only where agreement is looked at, and then at least three."""
    return max(3, settings["samples"]) if settings["signal"] == "agreement" else 0


def _notes(mode: str, answered: RunResult) -> list[str]:
    notes = []
    if answered.n_errors:
        notes.append(
            f"{mode}: {answered.n_errors} of {answered.n} questions failed; they are in no sum and no mean."
        )
    undecided = sum(bool(value) for value in answered.values.get("undecided", {}).values())
    if undecided:
        notes.append(
            f"{mode}: {undecided} of {answered.n} decisions could not be read, so passages were fetched."
        )
    for metric, what in (("n_input_tokens", "sent"), ("n_output_tokens", "written")):
        uncounted = sum(value is None for value in answered.values.get(metric, {}).values())
        if uncounted:
            notes.append(
                f"{mode}: of {uncounted} questions the backend did not count the tokens {what}, so their sum is not known."
            )
    return notes


def _saving(summaries: Mapping[str, Summary]) -> list[str]:
    """What every agent needs compared with reading always."""
    always = summaries.get("naive")
    if always is None or not always.n_in or not always.n_out:
        return []
    return [
        f"{mode} needs {one.n_in / always.n_in - 1:+.1%} input and {one.n_out / always.n_out - 1:+.1%} output tokens compared with naive."
        for mode, one in summaries.items()
        if mode not in ("naive", *ALONE) and one.n_in is not None and one.n_out is not None
    ]


def _plots(summaries: Mapping[str, Summary]) -> tuple[Figure, ...]:
    plot = histogram_plot("Truthfulness + relevance", summaries)
    return (plot,) if plot.series else ()
