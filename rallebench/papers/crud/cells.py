"""One cell of a study: the answers of one retriever, depth and model to a task, with their scores and optional judgements."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import fmean

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.json_values import as_json
from rallebench.core.prompts import SHIPPED, Wording, fill_template, find_wording, prompt_text
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.scoring import Values
from rallebench.core.types import (
    Episode,
    Evidence,
    Example,
    Flow,
    Generate,
    Gold,
    Json,
    Message,
    Outcome,
    Question,
    Retrieve,
    digest,
)
from rallebench.encoders.references import check_encoder
from rallebench.engine.clusters import find_clusters
from rallebench.experiments.common import scored_run
from rallebench.metrics.similarity import similarity
from rallebench.metrics.unpenalised_bleu import ORDERS
from rallebench.papers.common import REUSED, behind_api, flow_spec, replay
from rallebench.papers.crud import predictions
from rallebench.papers.crud.judge import QuestEntry
from rallebench.papers.crud.questing import (
    PROMPTS,
    Judging,
    QuestCounts,
    count_judgements,
    plan_judging,
    store_questions,
)
from rallebench.papers.crud.records import CrudTask, Record, RecordSet
from rallebench.papers.crud.retrieval import join_documents
from rallebench.papers.crud.scoring import (
    DEFINITIONS,
    RETRIEVAL,
    reciprocal_ranks,
    text_values,
)
from rallebench.papers.crud.settings import AnsweringSettings
from rallebench.workspace.paths import WorkspaceFolder

FOLDER = "suites/crud"


@dataclass(frozen=True, slots=True)
class Decoding:
    """Generation parameters. ``options``: parameters specific to some backends."""

    temperature: float = 0.0
    max_tokens: int | None = None
    seed: int | None = None
    options: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellPlan:
    """The plan of a cell. ``earlier``: record id → an existing answer to reuse. Without a language model in ``request``, only
    retrieval is scored."""

    request: ExperimentRequest[WorkspaceFolder]
    settings: AnsweringSettings
    task: CrudTask
    records: RecordSet
    chosen: tuple[Record, ...]
    index: str
    k: int
    separator: str
    prompt: str = ""
    wording: Wording = SHIPPED
    decoding: Decoding = field(default_factory=Decoding)
    similarity: str = ""
    judging: Judging | None = None
    earlier: Mapping[str, str] = field(default_factory=dict)

    @property
    def original(self) -> bool:
        """True if the cell reproduces CRUD-RAG's own code."""
        return self.settings.original

    def query(self, record: Record) -> str:
        return self.task.query(record.values, self.original)

    @property
    def metrics(self) -> Mapping[str, str]:
        """Metric of an answer → its definition."""
        if not self.request.llm:
            return RETRIEVAL
        names = ["bleu-avg", *(f"bleu-{n}" for n in range(1, ORDERS + 1)), "rouge-L"]
        names += ["similarity"] * bool(self.similarity) + ["length"]
        names += ["mrr"] * bool(self.k and any(record.gold for record in self.chosen))
        return {name: DEFINITIONS[name] for name in names}


@dataclass(frozen=True, slots=True)
class CellCounts:
    """The answers left out of the means, by reason; None for a count that does not apply."""

    n: int
    failed: int
    empty: int | None = None
    reused: int | None = None
    without_documents: int | None = None
    quest: QuestCounts = field(default_factory=QuestCounts)

    def to_json(self) -> dict[str, int]:
        own = (
            ("asked", self.n),
            ("failed", self.failed),
            ("empty", self.empty),
            ("reused", self.reused),
            ("without_documents", self.without_documents),
        )
        return {**{name: n for name, n in own if n is not None}, **self.quest.to_json()}


@dataclass(frozen=True)
class Cell:
    """A cell's run. ``quests``: record id → the questions and answers of RAGQuestEval."""

    plan: CellPlan
    answered: RunResult
    counts: CellCounts
    quests: Mapping[str, QuestEntry] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.answered.request.label

    @cached_property
    def clusters(self) -> Mapping[str, int]:
        """Record id → cluster."""
        return find_clusters(self.answered.request.examples).of


def wording_in(settings: AnsweringSettings, tasks: Iterable[CrudTask]) -> Wording:
    """The wording of the prompts for these tasks and RAGQuestEval. Raises BadFileError for a folder without any of them."""
    quest = PROMPTS if settings.quest else ()
    names = [*(task.prompt for task in tasks), *quest]
    return find_wording(settings.prompts, [(FOLDER, name) for name in names])


def plan_cell(
    request: ExperimentRequest[WorkspaceFolder],
    settings: AnsweringSettings,
    task: CrudTask,
    records: RecordSet,
    searched: tuple[str, int, str],
    *,
    reuse: str = "",
) -> CellPlan:
    """The checked plan of a cell. ``searched``: (retriever, k, document separator); ``reuse``: path of an earlier result.
    Raises UsageError."""
    chosen = records.records[: request.limit]
    plan = CellPlan(request, settings, task, records, chosen, *searched)
    if not request.llm:
        return plan
    if settings.similarity:
        check_encoder(settings.similarity)
    prompt = prompt_text(FOLDER, task.prompt, settings.prompts, (*task.fields, "documents"))
    plan = replace(
        plan,
        decoding=_decoding(request, settings),
        prompt=prompt,
        wording=wording_in(settings, (task,)),
        similarity=settings.similarity,
        judging=plan_judging(request, settings, task, chosen),
    )
    if not reuse:
        return plan
    rows = predictions.read_earlier(
        reuse, predictions.results_path(request, task, plan.index, plan.k)
    )
    fitting = {
        r.id: rows[r.id].answer
        for r in chosen
        if r.id in rows and (plan.original or rows[r.id].reference == r.reference)
    }
    return replace(plan, earlier=fitting)


def _decoding(request: ExperimentRequest[WorkspaceFolder], settings: AnsweringSettings) -> Decoding:
    # a top_k of 0 lets the model's entry decide, behind an API
    top_k = settings.top_k or (0 if behind_api(request) else 5)
    drawing = {"top_p": settings.top_p, "top_k": top_k} if settings.temperature else {}
    options = {name: value for name, value in drawing.items() if value}
    return Decoding(settings.temperature, settings.max_tokens, request.seed, options)


def perform_cell(plan: CellPlan, label: str) -> Generator[RunRequest, RunResult, Cell]:
    """Run a cell; RAGQuestEval judges the non-empty answers."""
    answered = yield _run(plan, label)
    counts = CellCounts(answered.n, answered.n_errors)
    if not plan.request.llm:
        return Cell(plan, answered, counts)
    episodes = answered.episodes.values()
    empty = sum(not episode.answer for episode in episodes)
    bare = sum(not episode.hits and not _is_reused(episode) for episode in episodes)
    counts = replace(
        counts,
        empty=empty,
        reused=len(plan.earlier),
        without_documents=bare if plan.k else 0,
    )
    if plan.judging is None or len(episodes) == empty:
        return Cell(plan, answered, counts)
    judged, quests = count_judgements(plan.judging, plan.chosen, answered)
    return Cell(plan, answered, replace(counts, quest=judged), quests)


def _run(plan: CellPlan, label: str) -> RunRequest:
    records = {record.id: record for record in plan.chosen}
    llm, judging = plan.request.llm, plan.judging

    def flow(question: Question) -> Flow:
        if question.qid in plan.earlier:
            return replay(plan.earlier[question.qid])
        return (answer if llm else retrieve)(plan, records[question.qid])

    settings: Json = {"task": plan.task.key, "index": plan.index, "k": plan.k}
    compat = {"compat": plan.settings.compat}
    if llm:
        decoding = as_json(plan.decoding)
        texts = {"join": plan.separator, "prompt": plan.prompt, "decoding": decoding}
        reuse = {"reuse": digest(dict(plan.earlier)) if plan.earlier else ""}
        settings = {**settings, **texts, **compat, **reuse, **plan.wording.run_settings}
    else:
        settings = {**settings, **compat}
    workflow = "crud" if llm else "crud-retrieval"
    return scored_run(
        label,
        flow_spec(workflow, flow, settings, (llm,) * bool(llm), (plan.index,) * bool(plan.k)),
        DatasetRef(plan.records.name),
        tuple(record_example(plan, record) for record in plan.chosen),
        lambda example, episode: answer_values(plan, records[example.question.qid], episode),
        plan.metrics,
        judges=(judging.judge,) if judging else (),
        on_result=partial(store_questions, judging, plan.chosen) if judging else None,
    )


def retrieve(plan: CellPlan, record: Record) -> Flow:
    yield Retrieve(plan.index, plan.query(record), plan.k)
    return Outcome("", "retrieved")


def answer(plan: CellPlan, record: Record) -> Flow:
    """Retrieve passages, ask the model, and return the content of the last ``<response>`` in its reply."""
    hits = (yield Retrieve(plan.index, plan.query(record), plan.k)).hits if plan.k else ()
    documents = join_documents(hits, plan.separator, plan.original)
    prompt = fill_template(plan.prompt, {**record.values, "documents": documents})
    passages = tuple(hit.passage for hit in hits if hit.passage.text in prompt)
    evidence = Evidence(next(iter(record.values.values())), passages)
    reply = yield Generate(
        plan.request.llm,
        (Message("user", prompt),),
        temperature=plan.decoding.temperature,
        max_tokens=plan.decoding.max_tokens,
        seed=plan.decoding.seed,
        options=plan.decoding.options,
        evidence=evidence,
    )
    text = read_response(reply.text)
    return Outcome(text, "answered" if text else "empty")


def read_response(reply: str) -> str:
    """The text after the last ``<response>`` and before the next ``</response>``, stripped.

    >>> read_response("So: <response> 北京 </response> done"), read_response("北京")
    ('北京', '北京')
    """
    return reply.split("<response>")[-1].split("</response>")[0].strip()


def record_example(plan: CellPlan, record: Record) -> Example:
    """A record as a run's example."""
    ids = [name for document in record.gold for name in sorted(document.ids)]
    provenance = {"provenance": [{"wikipedia_id": name} for name in ids]} if ids else {}
    query = plan.query(record)
    row = {
        "id": record.id,
        "input": query,
        "output": [{"answer": record.reference, **provenance}],
        "crud": {"task": plan.task.key, **record.values},
    }
    pages = (frozenset(ids),) if ids else ()
    gold = Gold((record.reference,), provenance=pages, reference=record.reference)
    return Example(Question(record.id, query), gold, row)


def answer_values(plan: CellPlan, record: Record, episode: Episode) -> Values:
    """The metrics of one answer; none for an empty answer, and retrieval metrics only without a model."""
    ranks = reciprocal_ranks(record.gold, episode.hits)
    mrr = fmean(ranks) if ranks else None
    if not plan.request.llm:
        return {"mrr": mrr, "gold_found": fmean(rank > 0 for rank in ranks)} if ranks else {}
    if not episode.answer:
        return {}
    values = text_values(episode.answer, record.reference)
    if plan.similarity:
        pair = (episode, Gold((record.reference,)))
        values["similarity"] = similarity([pair], plan.similarity)[0]
    if plan.k and not _is_reused(episode):  # an earlier answer is stored without its passages
        values["mrr"] = mrr
    return values


def _is_reused(episode: Episode) -> bool:
    return episode.outcome is not None and episode.outcome.stop_reason == REUSED
