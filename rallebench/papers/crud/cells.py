"""One cell of a study: a task answered by one retriever at one k and one model, scored, and judged if asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from statistics import fmean
from typing import Any

from rallebench.core.experiments import ExperimentRequest
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
from rallebench.papers.common import REUSED, behind_api, flow_of, is_original, replay
from rallebench.papers.crud import predictions
from rallebench.papers.crud.questing import (
    PROMPTS,
    Judging,
    judged_of,
    judging_of,
    store_questions,
)
from rallebench.papers.crud.records import CrudTask, Record, RecordSet
from rallebench.papers.crud.retrieval import joined
from rallebench.papers.crud.scoring import (
    DEFINITIONS,
    RETRIEVAL,
    reciprocal_ranks,
    text_values,
)

FOLDER = "suites/crud"


@dataclass(frozen=True, slots=True)
class CellPlan:
    """The plan of a cell. ``earlier``: record id → an existing answer, which is not requested again. Without a language model in
    ``request`` only what is retrieved is scored."""

    request: ExperimentRequest
    task: CrudTask
    records: RecordSet
    chosen: tuple[Record, ...]
    index: str
    k: int
    separator: str
    original: bool
    prompt: str = ""
    wording: Wording = SHIPPED
    decoding: Mapping[str, Any] = field(default_factory=dict)
    similarity: str = ""
    judging: Judging | None = None
    earlier: Mapping[str, str] = field(default_factory=dict)

    def query(self, record: Record) -> str:
        return self.task.query(record.values, self.original)

    @property
    def metrics(self) -> Mapping[str, str]:
        """The metrics of an answer → their definitions."""
        if not self.request.llm:
            return RETRIEVAL
        names = ["bleu-avg", *(f"bleu-{n}" for n in range(1, ORDERS + 1)), "rouge-L"]
        names += ["similarity"] * bool(self.similarity) + ["length"]
        names += ["mrr"] * bool(self.k and any(record.gold for record in self.chosen))
        return {name: DEFINITIONS[name] for name in names}


@dataclass(frozen=True)
class Cell:
    """A cell's run. ``counts``: the answers that are in no mean, and why; ``quests``: record id → the JSON of RAGQuestEval."""

    plan: CellPlan
    answered: RunResult
    counts: Mapping[str, int]
    quests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.answered.request.label

    @cached_property
    def clusters(self) -> Mapping[str, int]:
        """Record id → cluster."""
        return find_clusters(self.answered.request.examples).of


def wording_in(request: ExperimentRequest, tasks: Iterable[CrudTask]) -> Wording:
    """The wording of the prompts of these tasks and of RAGQuestEval. Raises BadFileError for a folder that holds none of
    them."""
    quest = PROMPTS if request.settings["quest"] else ()
    names = [*(task.prompt for task in tasks), *quest]
    return find_wording(request.settings["prompts"], [(FOLDER, name) for name in names])


def plan_cell(
    request: ExperimentRequest, task: CrudTask, records: RecordSet, searched: tuple[str, int, str]
) -> CellPlan:
    """The checked plan of a cell. ``searched``: the retriever, k, the separator of documents.
    Raises UsageError.

    Of ``request.settings``: temperature, top_p, top_k, max_tokens, prompts, compat, similarity, reuse, quest,
    quest_precision, gold.
    """
    s = request.settings
    chosen = records.records[: request.limit]
    plan = CellPlan(request, task, records, chosen, *searched, is_original(request))
    if not request.llm:
        return plan
    if s["similarity"]:
        check_encoder(s["similarity"])
    # behind an API a top_k of 0 leaves it to the model's entry
    drawing = {"top_p": s["top_p"], "top_k": s["top_k"] or (0 if behind_api(request) else 5)}
    decoding = {
        "temperature": s["temperature"],
        "max_tokens": s["max_tokens"],
        "seed": request.seed,
        "options": {name: value for name, value in drawing.items() if value and s["temperature"]},
    }
    plan = replace(
        plan,
        decoding=decoding,
        prompt=prompt_text(FOLDER, task.prompt, s["prompts"], (*task.fields, "documents")),
        wording=wording_in(request, (task,)),
        similarity=s["similarity"],
        judging=judging_of(request, task, chosen),
    )
    if not s.get("reuse"):
        return plan
    rows = predictions.read_earlier(
        s["reuse"], predictions.results_path(request, task, plan.index, plan.k)
    )
    fitting = {
        r.id: rows[r.id][0]
        for r in chosen
        if r.id in rows and (plan.original or rows[r.id][1] == r.reference)
    }
    return replace(plan, earlier=fitting)


def perform_cell(plan: CellPlan, label: str) -> Generator[RunRequest, RunResult, Cell]:
    """The cell's run; RAGQuestEval judges the answers that are not empty."""
    answered = yield _run(plan, label)
    counts = {"asked": answered.n, "failed": answered.n_errors}
    if not plan.request.llm:
        return Cell(plan, answered, counts)
    episodes = answered.episodes.values()
    empty = sum(not episode.answer for episode in episodes)
    bare = sum(not episode.hits and not _is_reused(episode) for episode in episodes)
    counts |= {
        "empty": empty,
        "reused": len(plan.earlier),
        "without_documents": bare if plan.k else 0,
    }
    if plan.judging is None or len(episodes) == empty:
        return Cell(plan, answered, counts)
    of_quests, quests = judged_of(plan.judging, plan.chosen, answered)
    return Cell(plan, answered, counts | of_quests, quests)


def _run(plan: CellPlan, label: str) -> RunRequest:
    records = {record.id: record for record in plan.chosen}
    llm, judging = plan.request.llm, plan.judging

    def flow(question: Question) -> Flow:
        if question.qid in plan.earlier:
            return replay(plan.earlier[question.qid])
        return (answering if llm else retrieving)(plan, records[question.qid])

    settings: dict[str, Any] = {"task": plan.task.key, "index": plan.index, "k": plan.k}
    if llm:
        settings |= {"join": plan.separator, "prompt": plan.prompt, "decoding": plan.decoding}
    settings["compat"] = "original" if plan.original else "corrected"
    if llm:
        settings["reuse"] = digest(dict(plan.earlier)) if plan.earlier else ""
        settings |= plan.wording.run_settings
    workflow = "crud" if llm else "crud-retrieval"
    return scored_run(
        label,
        flow_of(workflow, flow, settings, (llm,) * bool(llm), (plan.index,) * bool(plan.k)),
        DatasetRef(plan.records.name),
        tuple(example_of(plan, record) for record in plan.chosen),
        lambda example, episode: values_of(plan, records[example.question.qid], episode),
        plan.metrics,
        judges=(judging.judge,) if judging else (),
        on_result=partial(store_questions, judging, plan.chosen) if judging else None,
    )


def retrieving(plan: CellPlan, record: Record) -> Flow:
    yield Retrieve(plan.index, plan.query(record), plan.k)
    return Outcome("", "retrieved")


def answering(plan: CellPlan, record: Record) -> Flow:
    """Retrieve, ask, and take the content of the reply's last ``<response>``."""
    hits = (yield Retrieve(plan.index, plan.query(record), plan.k)).hits if plan.k else ()
    documents = joined(hits, plan.separator, plan.original)
    prompt = fill_template(plan.prompt, {**record.values, "documents": documents})
    passages = tuple(hit.passage for hit in hits if hit.passage.text in prompt)
    evidence = Evidence(next(iter(record.values.values())), passages)
    reply = yield Generate(
        plan.request.llm, (Message("user", prompt),), evidence=evidence, **plan.decoding
    )
    answer = response_in(reply.text)
    return Outcome(answer, "answered" if answer else "empty")


def response_in(reply: str) -> str:
    """The text after the last ``<response>`` and before the next ``</response>``, stripped.

    >>> response_in("So: <response> 北京 </response> done"), response_in("北京")
    ('北京', '北京')
    """
    return reply.split("<response>")[-1].split("</response>")[0].strip()


def example_of(plan: CellPlan, record: Record) -> Example:
    """A record as the loop takes it."""
    ids = [name for document in record.gold for name in sorted(document.ids)]
    output: dict[str, Any] = {"answer": record.reference}
    if ids:
        output["provenance"] = [{"wikipedia_id": name} for name in ids]
    query = plan.query(record)
    row = {
        "id": record.id,
        "input": query,
        "output": [output],
        "crud": {"task": plan.task.key, **record.values},
    }
    pages = (frozenset(ids),) if ids else ()
    gold = Gold((record.reference,), provenance=pages, reference=record.reference)
    return Example(Question(record.id, query), gold, row)


def values_of(plan: CellPlan, record: Record, episode: Episode) -> Values:
    """Every number of one answer; none of an empty one. Without a model: of what was retrieved."""
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
    if plan.k and not _is_reused(episode):  # the passages of an earlier answer are not known
        values["mrr"] = mrr
    return values


def _is_reused(episode: Episode) -> bool:
    return episode.outcome is not None and episode.outcome.stop_reason == REUSED
