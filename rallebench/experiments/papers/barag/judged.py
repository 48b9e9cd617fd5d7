"""Answers judged: a part of its own, so that it is resumed, remembered and read as any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.settings import Setting
from rallebench.core.types import Episode, Example, Gold, Question, digest
from rallebench.experiments.papers.barag.articles import Article
from rallebench.experiments.papers.barag.prompts import judge_prompt
from rallebench.experiments.papers.barag.study import tokens_of
from rallebench.experiments.runs import scored_run
from rallebench.metrics.judges import Case, Judgement, judgement_of
from rallebench.metrics.judges.truthfulness import (
    COLUMNS,
    JudgePrompt,
    article_of,
    scores_of,
    truthfulness,
)

WORKFLOW = "barag-judge"
FORMS = ("schema", "tool", "text")
JUDGE = {"judge": Setting(str, "", about="a language model that judges truthfulness and relevance")}
JUDGING = {
    "judge_form": Setting(
        str,
        "auto",
        choices=("auto", *FORMS),
        about="how scores are asked for; auto: schema, with compat=original behind an API tool",
    ),
    "judge_repeats": Setting(
        int, 1, 1, 50, about="times that every answer is judged, with seeds of their own"
    ),
    "judge_swap": Setting(
        bool, False, about="every second time with the scores and blocks in the other order"
    ),
    "judge_temperature": Setting(float, 0.0, 0, 2),
}
SPREAD = {
    "truthfulness_spread": "Largest minus smallest score for truthfulness that one answer was given, over those judged more than once.",
    "relevance_spread": "Largest minus smallest score for relevance that one answer was given, over those judged more than once.",
}


@dataclass(frozen=True, slots=True)
class JudgeOf:
    """A judge as it was asked for."""

    llm: str
    prompt: JudgePrompt
    settings: Mapping[str, Any]

    @property
    def several(self) -> bool:
        """Whether an answer is judged more than once."""
        return bool(self.settings["repeats"] > 1 or self.settings["swap"])


def judge_of(asked: ExperimentRequest, llm: str) -> JudgeOf:
    """Raises UsageError."""
    s = asked.settings
    backend = asked.workspace.llm(llm).backend
    form = s["judge_form"]
    if form == "auto":
        form = "tool" if s["compat"] == "original" and backend == "openai_compatible" else "schema"
    settings = {
        "form": form,
        "compat": s["compat"],
        "temperature": s["judge_temperature"],
        "seed": asked.seed,
        "repeats": s["judge_repeats"],
        "swap": s["judge_swap"],
    }
    return JudgeOf(llm, judge_prompt(s["prompts"]), settings)


def judged_part(
    label: str,
    dataset: str,
    judge: JudgeOf,
    asked: Mapping[str, tuple[Example, str]],
    articles: Mapping[str, Article],
) -> RunRequest:
    """``asked``: question id → (its example, the answer); those without an article must not be there. A ``label`` that ends with
    a blank gets a mark of all that is judged, for answers that are other ones in another run of the same name."""
    if not asked:
        raise UsageError("There is no answer to judge.")
    cases = {
        qid: Case(
            example.question.text, answer, article_of(articles[qid].title, articles[qid].content)
        )
        for qid, (example, answer) in asked.items()
    }
    prompt = asdict(judge.prompt)
    mark = digest(
        [
            judge.llm,
            prompt,
            dict(judge.settings),
            {qid: asdict(case) for qid, case in cases.items()},
        ]
    )[:6]
    return scored_run(
        f"{label}{mark}" if label.endswith(" ") else label,
        WORKFLOW,
        dataset,
        tuple(_bare(qid, example, answer) for qid, (example, answer) in asked.items()),
        lambda question: truthfulness(
            cases[question.qid], llm=judge.llm, prompt=judge.prompt, **judge.settings
        ),
        {
            **judge.settings,
            "prompt": prompt,
            "articles": digest([case.article for case in cases.values()]),
        },
        values_of,
        {**COLUMNS, **(SPREAD if judge.several else {})},
        (judge.llm,),
    )


def _bare(qid: str, example: Example, answer: str) -> Example:
    record = {
        "id": qid,
        "input": example.question.text,
        "output": [],
        "answer": answer,
        "title": example.record.get("title", ""),
    }
    return Example(Question(qid, example.question.text), Gold(), record)


def values_of(example: Example, episode: Episode) -> Values:
    """The scores of one judgement, with their spread where an answer was judged more than once."""
    values: dict[str, float | None] = dict(scores_of(episode))
    judgement = judgement_of(episode)
    read = [one.values for one in judgement.each if not one.failure]
    if values and len(read) > 1:
        for name in judgement.values:
            scores = [one[name] for one in read]
            values[f"{name}_spread"] = max(scores) - min(scores)
    return values


def scores_in(answered: RunResult) -> dict[str, Mapping[str, float]]:
    """Question id → its scores, {} of a judgement that could not be read."""
    return {qid: judgement_of(episode).values for qid, episode in answered.episodes.items()}


def judgements_in(answered: RunResult) -> dict[str, Judgement]:
    """Question id → what was read of the judge's replies."""
    return {qid: judgement_of(episode) for qid, episode in answered.episodes.items()}


def report_of(answered: RunResult) -> dict[str, Any]:
    """How many answers were judged, how many judgements are none, and what the judge cost."""
    sent, written = tokens_of(
        step for episode in answered.episodes.values() for step in episode.steps
    )
    each = [one for found in judgements_in(answered).values() for one in (found.each or (found,))]
    return {
        "judged": answered.n,
        "replies": len(each),
        "unparsed_replies": sum(bool(one.failure) for one in each),
        "unparsed": sum(bool(found.failure) for found in judgements_in(answered).values()),
        "failed": answered.n_errors,
        "judge_input_tokens": sent,
        "judge_output_tokens": written,
    }


def notes_of(label: str, answered: RunResult, judge: JudgeOf) -> tuple[str, ...]:
    """What a reader of the scores must know."""
    found = report_of(answered)
    notes = []
    if found["unparsed"]:
        notes.append(
            f"{label}: {found['unparsed']} of {found['judged']} judgements could not be read and are not scored."
        )
    if found["unparsed_replies"] > found["unparsed"]:
        notes.append(
            f"{label}: {found['unparsed_replies']} of {found['replies']} single replies of the judge could not be read."
        )
    if found["failed"]:
        notes.append(
            f"{label}: {found['failed']} of {found['judged']} judgements failed; they are in no mean."
        )
    if (
        judge.settings["repeats"] > 1
        and not judge.settings["temperature"]
        and not judge.settings["swap"]
    ):
        notes.append(
            "At judge_temperature 0 most models repeat themselves, so the spread says little; raise it, or set judge_swap=true."
        )
    return tuple(notes)
