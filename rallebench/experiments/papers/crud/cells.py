"""One cell of a study: a task answered by one retriever at one k and one model, scored, and judged if asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import check_own, filled, prompt_text
from rallebench.core.runs import RunRequest, RunResult, Values
from rallebench.core.structured import without_reasoning
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
from rallebench.experiments.papers.crud import files
from rallebench.experiments.papers.crud.definitions import named
from rallebench.experiments.papers.crud.questing import (
    PROMPTS,
    Judged,
    Judging,
    judged_of,
    judging_of,
    store_questions,
)
from rallebench.experiments.papers.crud.records import Record, RecordSet
from rallebench.experiments.papers.crud.retrieval import joined, reciprocal_rank, separator_of
from rallebench.experiments.papers.crud.tasks import CrudTask
from rallebench.experiments.runs import REUSED, replay, scored_run
from rallebench.metrics.crud_bleu import ORDERS, precisions, unpenalised
from rallebench.metrics.rouge import rouge_lcs_score
from rallebench.metrics.similarity import similarity
from rallebench.metrics.words import jieba_words

WORKFLOW = "crud"
SEPARATORS = {"line": "\n", "blank": "\n\n"}


def decoding_of(request: ExperimentRequest) -> dict[str, Any]:
    """How an answer is drawn, as keywords of Generate. ``top_k`` 0 behind an API leaves it to the model's entry."""
    s = request.settings
    behind_api = request.workspace.llm(request.llm).backend == "openai_compatible"
    drawing = {"top_p": s["top_p"], "top_k": s["top_k"] or (0 if behind_api else 5)}
    return {
        "temperature": s["temperature"],
        "max_tokens": s["max_tokens"],
        "seed": request.seed,
        "options": {name: value for name, value in drawing.items() if value and s["temperature"]},
    }


@dataclass(frozen=True, slots=True)
class CellPlan:
    """All that a cell is made of; ``earlier``: record id → an answer that is not asked for again."""

    request: ExperimentRequest
    task: CrudTask
    records: RecordSet
    chosen: tuple[Record, ...]
    index: str
    k: int
    separator: str
    prompt: str
    decoding: Mapping[str, Any]
    original: bool
    similarity: str = ""
    judging: Judging | None = None
    earlier: Mapping[str, str] = field(default_factory=dict)

    def query(self, record: Record) -> str:
        """What is sent to the retriever: CRUD-RAG's paper has more of it than its code."""
        return record.query((self.original and self.task.original_query) or self.task.query)

    @property
    def metrics(self) -> dict[str, str]:
        """What an answer is scored by → its definition."""
        names = ["bleu-avg", *(f"bleu-{n}" for n in range(1, ORDERS + 1)), "rouge-L"]
        names += ["similarity"] * bool(self.similarity) + ["length"]
        return named(*names, *["mrr"] * bool(self.k and any(record.gold for record in self.chosen)))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's run. ``counts``: the answers that are in no mean, and why."""

    plan: CellPlan
    answered: RunResult
    judged: Judged | None
    counts: Mapping[str, int]


def check_prompts(request: ExperimentRequest, tasks: Iterable[CrudTask]) -> None:
    """Raise BadFileError for a folder of prompts that holds none which these tasks, or RAGQuestEval, read."""
    check_own(
        request.settings["prompts"],
        [*(task.prompt for task in tasks), *(PROMPTS if request.settings["quest"] else ())],
    )


def plan_cell(request: ExperimentRequest, task: CrudTask, records: RecordSet) -> CellPlan:
    """Check all that can be wrong before anything is asked. Raises UsageError.

    Of ``request.settings``: index, k, join, temperature, top_p, top_k, max_tokens, prompts, compat, similarity, reuse,
    quest, quest_precision, gold. A grid gives other ones for every cell.
    """
    s = request.settings
    original = s["compat"] == "original"
    separator = SEPARATORS.get(s["join"], "\n\n")
    if s["k"]:
        if not s["index"]:
            raise UsageError(
                "CRUD-RAG retrieves: name a retriever with --set index=NAME, or ask without one with --set k=0."
            )
        by_kind = separator_of(request.workspace, s["index"])
        separator = by_kind if s["join"] == "auto" else separator
    if s["similarity"]:
        check_encoder(s["similarity"])
    decoding = decoding_of(request)
    prompt = prompt_text("suites/crud", task.prompt, s["prompts"], (*task.fields, "documents"))
    chosen = records.records[: request.limit]
    plan = CellPlan(
        request,
        task,
        records,
        chosen,
        s["index"] if s["k"] else "",
        s["k"],
        separator,
        prompt,
        decoding,
        original,
        s["similarity"],
        judging_of(request, task, chosen),
    )
    return _with_earlier(plan) if s["reuse"] else plan


def _with_earlier(plan: CellPlan) -> CellPlan:
    path = files.results_path(plan.request, plan.task, plan.index, plan.k)
    rows = files.read_earlier(plan.request.settings["reuse"], path)
    fitting = {
        r.id: rows[r.id][0]
        for r in plan.chosen
        if r.id in rows and (plan.original or rows[r.id][1] == r.reference)
    }
    return replace(plan, earlier=fitting)


def perform_cell(plan: CellPlan, label: str) -> Generator[RunRequest, RunResult, Cell]:
    """The cell's run; RAGQuestEval judges the answers that are not empty."""
    answered = yield _part(plan, label)
    empty = sum(not episode.answer for episode in answered.episodes.values())
    bare = sum(not e.hits and not _is_reused(e) for e in answered.episodes.values())
    counts = {
        "asked": answered.n,
        "failed": answered.n_errors,
        "empty": empty,
        "reused": len(plan.earlier),
        "without_documents": bare if plan.k else 0,
    }
    judged = None
    if plan.judging is not None and len(answered.episodes) > empty:
        judged = judged_of(plan.judging, plan.chosen, answered)
        counts |= judged.counts if judged else {}
    return Cell(plan, answered, judged, counts)


def _part(plan: CellPlan, label: str) -> RunRequest:
    records = {record.id: record for record in plan.chosen}

    def flow(question: Question) -> Flow:
        if question.qid in plan.earlier:
            return replay(plan.earlier[question.qid])
        return answering(plan, records[question.qid])

    settings = {
        "task": plan.task.key,
        "index": plan.index,
        "k": plan.k,
        "join": plan.separator,
        "prompt": plan.prompt,
        "decoding": plan.decoding,
        "compat": "original" if plan.original else "corrected",
        "reuse": digest(dict(plan.earlier)) if plan.earlier else "",
    }
    return scored_run(
        label,
        WORKFLOW,
        plan.records.name,
        tuple(example_of(plan, record) for record in plan.chosen),
        flow,
        settings,
        lambda example, episode: values_of(plan, records[example.question.qid], episode),
        plan.metrics,
        (plan.request.llm,),
        (plan.index,) if plan.k else (),
        judges=(plan.judging.judge,) if plan.judging else (),
        on_result=(
            (lambda answered: store_questions(judging, plan.chosen, answered))
            if (judging := plan.judging) is not None
            else None
        ),
    )


def answering(plan: CellPlan, record: Record) -> Flow:
    """Retrieve, ask, and take the content of the reply's last ``<response>``."""
    hits = (yield Retrieve(plan.index, plan.query(record), plan.k)).hits if plan.k else ()
    documents = joined(hits, plan.separator, plan.original)
    prompt = filled(plan.prompt, {**record.values, "documents": documents})
    passages = tuple(hit.passage for hit in hits if hit.passage.text in prompt)
    evidence = Evidence(next(iter(record.values.values())), passages)
    reply = yield Generate(
        plan.request.llm, (Message("user", prompt),), evidence=evidence, **plan.decoding
    )
    answer = response_in(reply.text if plan.original else without_reasoning(reply.text))
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
    """Every number of one answer; none of an empty one."""
    if not episode.answer:
        return {}
    values = text_values(episode.answer, record.reference)
    if plan.similarity:
        pair = (episode, Gold((record.reference,)))
        values["similarity"] = similarity([pair], plan.similarity)[0]
    if plan.k and not _is_reused(episode):  # what was retrieved for an earlier answer is not known
        values["mrr"] = reciprocal_rank(record.gold, episode.hits)
    return values


def _is_reused(episode: Episode) -> bool:
    return episode.outcome is not None and episode.outcome.stop_reason == REUSED


def text_values(answer: str, reference: str) -> dict[str, float | None]:
    """BLEU, its four precisions, ROUGE-L and the length of one answer."""
    orders = precisions(answer, reference)
    rouge = rouge_lcs_score(jieba_words(answer), jieba_words(reference))
    return {
        "bleu-avg": unpenalised(orders),
        **{f"bleu-{n}": value for n, value in enumerate(orders, 1)},
        "rouge-L": rouge,
        "length": float(len(answer)),
    }
