"""Shared parts of the study's suites: questions, agent settings, and the worth and cost of an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from rallebench.core.answers import answer_tokens
from rallebench.core.backends import Backends
from rallebench.core.declining import declines
from rallebench.core.errors import Hint, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import SHIPPED, Wording, find_wording, prompt_text
from rallebench.core.runs import DatasetRef, FlowFactory, RunRequest, RunResult
from rallebench.core.scoring import Scorer, Values
from rallebench.core.settings import declare_group, declare_text
from rallebench.core.types import (
    Episode,
    Example,
    Flow,
    Generate,
    Hit,
    Note,
    Outcome,
    Passage,
    Question,
    Step,
)
from rallebench.experiments.common import SCORES, scored_run
from rallebench.experiments.languages import prompts_note
from rallebench.metrics import METRICS
from rallebench.metrics.cost import step_completion_tokens, step_prompt_tokens
from rallebench.metrics.exact_match import exact_match
from rallebench.metrics.judges.truthfulness import ARTICLE_CHARACTERS
from rallebench.metrics.token_f1 import token_f1
from rallebench.papers.barag.articles import ArticleSet, find_file, read_set
from rallebench.papers.barag.runs import PERFECT, AnswerRow, read_runs, sum_counts
from rallebench.papers.barag.workflow import (
    READ,
    UNDECIDED,
    BaragAgent,
    ModeSettings,
    Prompts,
    context_text,
)
from rallebench.papers.common import behind_api, declare_prompts, flow_spec
from rallebench.workspace.paths import WorkspaceFolder

PROMPTS = ("naive-system.txt", "basic-system.txt", "basic-decide.txt", "advanced-decide.txt")
JUDGE_PROMPTS = tuple(
    ("judges", name) for name in METRICS.entry("truthfulness").traits["judge"].prompts
)
DATA_IS = "a file of articles with questions, or a folder of such"


@dataclass(frozen=True, slots=True)
class DataSettings:
    """The questions of a suite, and the passages for them."""

    data: str = declare_text(
        "a dataset, a file of articles with a question each, a folder of such, or questions in KILT's form",
        names="dataset file folder",
    )
    set: str = declare_text("a set of the folder, as A_f")
    index: str = declare_text("the retriever whose passages are read", names="retriever")
    reference: str = declare_text(
        "run file whose answers that were scored 5 and 5 are gold answers", names="file"
    )


@dataclass(frozen=True, slots=True)
class AskingSettings:
    """The agent settings of a suite."""

    mode: ModeSettings = declare_group(ModeSettings)
    calls: str = declare_text(
        "how a decision is asked for; auto: tools behind an API; choice: by the probabilities of true and false",
        "auto",
        "tools",
        "text",
        "choice",
    )
    draft_llm: str = declare_text(
        "a cheaper model that drafts and decides; an answer without passages is then its draft",
        names="llm",
        advanced=True,
    )
    prompts: str = declare_prompts("suites/barag and prompts/judges", "TKenneweg/RAG_Dataset_Gen")


COSTS = ("n_input_tokens", "n_output_tokens", "n_embedding_tokens", "retrieved", "undecided")
DEFINITIONS = {
    "n_input_tokens": "Tokens sent in all of a question's calls: draft, decision and answer, as the backend counts them.",
    "n_output_tokens": "Tokens written in all of a question's calls, as the backend counts them.",
    "n_embedding_tokens": "Tokens of a question's queries that an encoder read to search with them; 0 without an encoder or a search. "
    "They are in no sum of the paper's.",
    "retrieved": "Share of questions that were answered with passages.",
    "undecided": "Share of questions whose decision could not be read, so that passages were fetched.",
    "declined": "Share of answers that say that there is none.",
    "em": "Exact match with a gold answer; over the questions that have one.",
    "f1": "Word F1 with the best-fitting gold answer, 0 for an answer that declines; over the questions that have one.",
    "grounded": "Share of the answer's words that stand in the question's own article, 0 for an answer that declines. It says where an "
    "answer comes from, not whether it is right.",
}


@dataclass(frozen=True, slots=True)
class Study:
    """A request with its questions read and its settings checked."""

    request: ExperimentRequest[WorkspaceFolder]
    asking: AskingSettings
    set: ArticleSet
    agent: BaragAgent
    wording: Wording = SHIPPED

    @property
    def name(self) -> str:
        return self.set.name

    @property
    def quality(self) -> tuple[str, ...]:
        """The answer measures that need no judge, best first."""
        return ("f1", "em") if self.set.answers else ("grounded",) if self.set.articles else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the questions for a reader of the numbers."""
        questions = (example.question.text for example in self.set.examples)
        own = bool(self.asking.prompts)
        other = "" if own else prompts_note("English", questions, "send your own (prompts=FOLDER)")
        return (*self.set.notes, *filter(None, [other]))

    @property
    def settings(self) -> dict[str, Any]:
        """The agent settings that affect answers, for the fingerprint of a run."""
        settings = asdict(self.agent)
        unset = () if self.agent.draft_llm else ("draft_llm",)
        return {key: settings[key] for key in settings if key not in ("llm", "retriever", *unset)}

    def run(
        self,
        label: str,
        workflow: str,
        flow: Callable[..., Flow],
        settings: Mapping[str, Any],
        score: Callable[[Example, Episode], Values],
        columns: Mapping[str, str],
        judges: tuple[Scorer, ...] = (),
        *,
        examples: tuple[Example, ...] | None = None,
        searches: bool = True,
        decides: bool = False,
        drafts: bool = False,
    ) -> RunRequest:
        """The run of the questions, or of ``examples``, with ``flow(question, agent=agent)``.

        ``settings``: the flow's own settings that affect answers; ``score``, ``columns``, ``judges``: see ``scored_run``.
        ``searches``: the flow uses the index; ``decides``: it asks the model for decisions; ``drafts``: it drafts or decides
        with the agent's ``drafter``. With ``calls=auto``, a model that ignores tools is asked for decisions in words.
        """
        settings = {**self.settings, **settings, **self.wording.run_settings}
        llms = dict.fromkeys((self.request.llm, *(self.agent.drafter,) * drafts))
        names = tuple(llms), (self.agent.retriever,) * searches
        asking = flow_spec(workflow, partial(flow, agent=self.agent), settings, *names)
        every = self.set.examples if examples is None else examples
        ref = DatasetRef(self.name)
        run = scored_run(label, asking, ref, every, score, columns, judges=judges)
        if not decides or self.agent.calls != "tools":
            return run
        always = self.asking.calls == "tools"

        def make(backends: Backends) -> FlowFactory:
            llm = backends.llms.get(self.agent.drafter)

            def make_flow(question: Question) -> Flow:
                takes = always or getattr(llm, "calls_tools", True)  # contact the server only now
                agent = self.agent if takes else replace(self.agent, calls="text")
                return flow(question, agent=agent)

            return make_flow

        offers = "always" if always else "auto"
        return replace(run, flow=replace(run.flow, make=make, offers_tools=offers))


def read_study(
    request: ExperimentRequest[WorkspaceFolder],
    data: DataSettings,
    asking: AskingSettings,
    *,
    judged: bool,
    retrieves: bool = True,
    logprobs: bool = False,
) -> Study:
    """Read the questions and check the settings. Raises UsageError.

    ``judged``: also read the judge's prompts; ``retrieves``: require an index.
    """
    mode, workspace = asking.mode, request.workspace
    questions = read_set(find_file(workspace.data(data.data, DATA_IS), data.set), request.limit)
    if data.reference:
        questions = with_references(questions, data.reference)
    if not questions.examples:
        raise UsageError(f"{questions.path} holds no question.")
    if retrieves and not data.index:
        raise UsageError(
            "Passages are read, so an index is needed (index=NAME).",
            hint=Hint("build-index", "barag"),
        )
    if data.index:
        workspace.retriever(data.index)  # raises UsageError for an unknown index
    read = [("suites/barag", name) for name in PROMPTS]
    wording = find_wording(asking.prompts, [*read, *(JUDGE_PROMPTS if judged else ())])
    if asking.draft_llm:
        workspace.llm(asking.draft_llm)  # raises UsageError for an unknown model
    by_default = "tools" if behind_api(request, asking.draft_llm or request.llm) else "text"
    agent = BaragAgent(
        request.llm,
        Prompts(*(prompt_text("suites/barag", name, asking.prompts) for name in PROMPTS)),
        data.index,
        mode.k,
        mode.temperature,
        mode.max_tokens,
        request.seed,
        asking.calls if asking.calls != "auto" else by_default,
        mode.layout,
        mode.compat,
        draft_llm=asking.draft_llm,
        logprobs=logprobs,
    )
    return Study(request, asking, questions, agent, wording)


def with_references(questions: ArticleSet, path: str) -> ArticleSet:
    """The set with a run's perfect answers as gold answers, matched by title and question. Raises UsageError."""
    perfect = {
        (row.title, row.question): row.answer
        for run in read_runs(path)
        for row in run.rows
        if row.total == 2 * PERFECT
    }

    def with_answer(example: Example) -> Example:
        key = str(example.record.get("title", "")), example.question.text
        answer = perfect.get(key, "")
        return (
            replace(example, gold=replace(example.gold, answers=(answer,))) if answer else example
        )

    examples = tuple(map(with_answer, questions.examples))
    if not any(example.gold.answers for example in examples):
        raise UsageError(
            f"No answer of {path} that was scored 5 and 5 is to one of these questions."
        )
    return replace(questions, examples=examples, answers=True)


def sum_tokens(steps: Iterable[Step]) -> tuple[int | None, int | None]:
    """(tokens sent, tokens written) over all language model calls; None if a backend does not count them."""
    calls = [step for step in steps if isinstance(step.request, Generate)]
    return sum_counts(map(step_prompt_tokens, calls)), sum_counts(
        map(step_completion_tokens, calls)
    )


def answer_costs(episode: Episode) -> Values:
    """The tokens of an episode, None if a backend does not count them; ``retrieved`` and ``undecided`` are 1 or 0."""
    sent, written = sum_tokens(episode.steps)
    return {
        "n_input_tokens": sent,
        "n_output_tokens": written,
        "n_embedding_tokens": sum_counts(step.reply.embedding_tokens for step in episode.steps),
        "retrieved": float(has_read(episode)),
        "undecided": float(any(step.request == Note(UNDECIDED) for step in episode.steps)),
    }


def with_articles(study: Study) -> tuple[Example, ...]:
    """The questions, each with its own article as the only passage, shortened as for the judge."""

    def with_article(example: Example) -> Example:
        text, title = example.gold.reference[:ARTICLE_CHARACTERS], str(example.record["title"])
        passage = Passage(example.question.qid, text, title)
        return replace(example, question=replace(example.question, passages=(passage,)))

    return tuple(map(with_article, study.set.examples))


def answer_worth(study: Study, example: Example, answer: str) -> Values:
    """The values of an answer that do not depend on a judge; see ``DEFINITIONS``."""
    declined = declines(answer)
    values: dict[str, float | None] = {"declined": float(declined)}
    if study.set.answers:
        episode = Episode(example.question.qid, "", (), Outcome(answer))
        f1 = token_f1(episode, example.gold)
        values |= {
            "em": exact_match(episode, example.gold),
            "f1": 0.0 if declined and f1 is not None else f1,
        }
    elif study.set.articles:
        article = f"{example.record['title']} {example.gold.reference}"
        values["grounded"] = 0.0 if declined else shared_words(answer, article)
    return values


def shared_words(answer: str, article: str) -> float:
    """The share of an answer's words that occur in the article.

    >>> shared_words("the red car", "A red house."), shared_words("", "x")
    (0.5, 0.0)
    """
    words, known = answer_tokens(answer), set(answer_tokens(article))
    return sum(word in known for word in words) / len(words) if words else 0.0


def has_read(episode: Episode) -> bool:
    """Return whether the answer was given with passages."""
    return episode.outcome is not None and episode.outcome.stop_reason == READ


def answer_rows(study: Study, result: RunResult) -> list[AnswerRow]:
    """The answers of a run as rows of a run file, with any judge's scores."""
    truthfulness, relevance = (result.values.get(name, {}) for name in SCORES)
    return [
        _row(study, example, result.episodes[qid], (truthfulness.get(qid), relevance.get(qid)))
        for example in result.request.examples
        if (qid := example.question.qid) in result.episodes
    ]


def _row(
    study: Study, example: Example, episode: Episode, scores: tuple[float | None, float | None]
) -> AnswerRow:
    """The row of an answer. In the original, the flag is false for modes without a retrieval decision."""
    sent, written = sum_tokens(episode.steps)
    read = has_read(episode)
    title = str(example.record.get("title") or "")
    hits = episode.hits or tuple(Hit(passage, 0.0) for passage in example.question.passages)
    by_definition = episode.workflow in ("barag-naive", "barag-gt")
    return AnswerRow(
        example.question.qid,
        title,
        example.question.text,
        episode.answer,
        sent,
        written,
        read and not (study.agent.original and by_definition),
        *scores,
        context_text(hits) if read else "",
    )
