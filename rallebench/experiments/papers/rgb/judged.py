"""A test's answers judged: a part of its own, so that it is resumed, remembered and read as any run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import prompt_text
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.types import Episode, Example, Flow, Question, digest
from rallebench.experiments.papers.rgb import scoring
from rallebench.experiments.papers.rgb.definitions import named
from rallebench.experiments.papers.rgb.testing import WORKFLOW, Request, Test, labels_in
from rallebench.experiments.runs import scored_run
from rallebench.metrics.judges import JUDGES, YES, Case

JUDGED = {
    "rejection": named("rejection_rate_judge"),
    "errors": named("fact_check_rate_judge", "correct_rate_judge"),
}


@dataclass(frozen=True, slots=True)
class Judge:
    """``kind``: ``rejection`` or ``errors``; ``prompt``: the text of its file, see ``judges.rgb``."""

    kind: str
    llm: str
    prompt: str


def judge_of(kind: str, asked: ExperimentRequest) -> Judge | None:
    """The judge that was asked for, if any. Raises UsageError."""
    settings = asked.settings
    if not settings["judge"]:
        return None
    asked.workspace.llm(settings["judge"])
    return Judge(kind, settings["judge"], judge_prompt(kind, settings["prompts"]))


def judge_prompt(kind: str, own: str = "") -> str:
    """The prompt of a kind of judge. Raises BadFileError."""
    traits = JUDGES.entry(f"rgb-{kind}").traits
    ((name, fields),) = traits["prompts"].items()
    return prompt_text(traits["folder"], name, own, fields)


def judging(question: Question, judge: Judge, predictions: Mapping[str, str]) -> Flow:
    """Have one prediction judged."""
    return JUDGES[f"rgb-{judge.kind}"](
        Case(question.text, predictions[question.qid]), llm=judge.llm, prompt=judge.prompt
    )


def judged_part(test: Test, answered: RunResult, judge: Judge) -> RunRequest:
    """The judgements of a test's answers, a run of its own. Other answers, other judgements: the label tells."""
    examples = {example.question.qid: example for example in answered.request.examples}
    said = {
        qid: labels_in(test, examples[qid], episode)[0]
        for qid, episode in answered.episodes.items()
    }

    def score(example: Example, episode: Episode) -> Values:
        verdict = (
            None
            if episode.answer == "" and not test.request.original
            else float(episode.answer == YES)
        )
        if judge.kind == "rejection":
            return {"rejection_rate_judge": verdict}
        labels = scoring.labels_of(
            said[example.question.qid], examples[example.question.qid].gold.required
        )
        return {
            "fact_check_rate_judge": verdict,
            "correct_rate_judge": float(scoring.is_right(labels)) if verdict else None,
        }

    def bare(qid: str) -> Example:
        example = examples[qid]
        row = {
            "id": qid,
            "input": example.question.text,
            "output": [],
            "rgb": {"prediction": said[qid]},
        }
        return Example(Question(qid, example.question.text), example.gold, row)

    return scored_run(
        f"{answered.request.label} judged {digest([judge.prompt, judge.llm, said])[:6]}",
        f"{WORKFLOW}-judge",
        answered.request.dataset.name,
        tuple(bare(qid) for qid in said),
        lambda question: judging(question, judge, said),
        {"judge": judge.kind, "prompt": judge.prompt},
        score,
        JUDGED[judge.kind],
        (judge.llm,),
    )


def unread(answered: RunResult) -> int:
    """How many verdicts could not be read."""
    return sum(episode.answer == "" for episode in answered.episodes.values())


def unparsed(judged: RunResult) -> dict[str, Any]:
    """How many answers were judged, and how many of the verdicts are none."""
    return {"judged": judged.n, "unparsed": unread(judged), "judge_failed": judged.n_errors}


def said_of(judged: RunResult, request: Request) -> tuple[str, ...]:
    """The same as sentences, where there is something to say."""
    count = unread(judged)
    how = "taken for a no, as the original does" if request.original else "not scored"
    said = [f"{count} of {judged.n} verdicts could not be read and are {how}."] * bool(count)
    return tuple(
        said
        + [f"{judged.n_errors} of {judged.n} judgements failed; they are in no rate."]
        * bool(judged.n_errors)
    )
