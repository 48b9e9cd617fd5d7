"""Every question of a set asked in several wordings: how often does a model stay with its answer?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rallebench.core.backends import Backends
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import DatasetRef, FlowFactory, FlowSpec
from rallebench.core.settings import dataclass_form, declare
from rallebench.core.tables import Table
from rallebench.core.types import Episode, Example, Flow, Generate, Message, Outcome, Question
from rallebench.datasets.reading import read_questions
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.common import scored_run

WORDINGS = ("{}", "Answer in a few words: {}", "{} Name it.")
COLUMN = {"right": "1 if the answer is an accepted one, else 0."}


@dataclass(frozen=True, slots=True)
class Settings:
    data: str = declare(str, "", required=True, names="dataset file", about="the questions")
    wordings: int = declare(int, 3, 1, len(WORDINGS), about="the wordings that are tried")


@EXPERIMENTS.register("paraphrases", place="suites", form=dataclass_form(Settings))
def paraphrases(request: ExperimentRequest) -> Experiment:
    """Every question of a set in several wordings."""
    settings = request.read(Settings)
    path = request.workspace.data(settings.data, "the questions")
    examples = tuple(read_questions(path, request.limit))
    means = []
    for number, wording in enumerate(WORDINGS[: settings.wordings], 1):
        flow = FlowSpec(
            "paraphrases",
            {"wording": wording},
            ask_in(wording, request.llm),
            llms=(request.llm,),
        )
        run = scored_run(f"wording-{number}", flow, DatasetRef(str(path)), examples, score, COLUMN)
        result = yield run
        means.append((wording, result.mean("right")))
    right = [mean for _, mean in means]
    table = Table("Right answers", ("wording", "right"), tuple(means), percent=True)
    return Report({"headline": "right", "right": right}, tables=(table,))


def ask_in(wording: str, llm: str) -> Callable[[Backends], FlowFactory]:
    """The flow of a question; it is made once the model is loaded."""

    def flow(question: Question) -> Flow:
        reply = yield Generate(llm, (Message("user", wording.format(question.text)),))
        return Outcome(reply.text)

    return lambda backends: flow


def score(example: Example, episode: Episode) -> dict[str, float]:
    return {"right": float(episode.answer in example.gold.answers)}
