"""One cell of a study: a task answered by one retriever at one k and one model, scored, and judged if asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import check_own, filled, prompt_text
from rallebench.core.runs import RunRequest, RunResult, Values
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
from rallebench.engine.statistics import Mean
from rallebench.experiments.papers.crud import files
from rallebench.experiments.papers.crud.definitions import named
from rallebench.experiments.papers.crud.questing import (
    PROMPTS,
    Judged,
    Judging,
    judged_of,
    judging_of,
    keep_questions,
)
from rallebench.experiments.papers.crud.records import Record, RecordSet
from rallebench.experiments.papers.crud.retrieval import joined, reciprocal_rank, separator_of
from rallebench.experiments.papers.crud.tasks import Task
from rallebench.experiments.runs import REUSED, replay, scored_run
from rallebench.metrics.crud_bleu import ORDERS, precisions, unpenalised
from rallebench.metrics.judges.ragquesteval import spoken
from rallebench.metrics.rouge import rouge_lcs_score
from rallebench.metrics.similarity import similarity
from rallebench.metrics.words import jieba_words

WORKFLOW = "crud"
SEPARATORS = {"line": "\n", "blank": "\n\n"}


@dataclass(frozen=True, slots=True)
class Decoding:
    """How an answer is drawn; ``top_k`` 0 leaves it to the model's entry."""

    temperature: float = 0.1
    top_p: float = 0.9
    top_k: int = 5
    max_tokens: int = 1280
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """As keywords of Generate."""
        options = {
            name: value
            for name, value in (("top_p", self.top_p), ("top_k", self.top_k))
            if value and self.temperature
        }
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "options": options,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a cell is made of; ``earlier``: record id → an answer that is not asked for again."""

    asked: ExperimentRequest
    task: Task
    records: RecordSet
    chosen: tuple[Record, ...]
    index: str
    k: int
    separator: str
    prompt: str
    decoding: Decoding
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
    """A cell's outcome. ``means``: metric → mean, those of RAGQuestEval among them; ``counts``: what is in no mean, and why."""

    plan: Plan
    answered: RunResult
    judged: Judged | None
    means: Mapping[str, Mean]
    counts: Mapping[str, int]


def check_prompts(asked: ExperimentRequest, tasks: Iterable[Task]) -> None:
    """Raise BadFileError for a folder of prompts that holds none which these tasks, or RAGQuestEval, read."""
    check_own(
        asked.settings["prompts"],
        [*(task.prompt for task in tasks), *(PROMPTS if asked.settings["quest"] else ())],
    )


def plan_cell(asked: ExperimentRequest, task: Task, records: RecordSet) -> Plan:
    """Check all that can be wrong before anything is asked. Raises UsageError.

    Of ``asked.settings``: index, k, join, temperature, top_p, top_k, max_tokens, prompts, compat, similarity, reuse,
    quest, quest_precision, gold. A grid gives other ones for every cell.
    """
    s = asked.settings
    original = s["compat"] == "original"
    separator = SEPARATORS.get(s["join"], "\n\n")
    if s["k"]:
        if not s["index"]:
            raise UsageError(
                "CRUD-RAG retrieves: name a retriever with --set index=NAME, or ask without one with --set k=0."
            )
        by_kind = separator_of(asked.workspace, s["index"])
        separator = by_kind if s["join"] == "auto" else separator
    if s["similarity"]:
        check_encoder(s["similarity"])
    behind_api = asked.workspace.llm(asked.llm).backend == "openai_compatible"
    top_k = s["top_k"] or (0 if behind_api else 5)
    decoding = Decoding(s["temperature"], s["top_p"], top_k, s["max_tokens"], asked.seed)
    prompt = prompt_text("suites/crud", task.prompt, s["prompts"], (*task.fields, "documents"))
    chosen = records.records[: asked.limit]
    plan = Plan(
        asked,
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
        judging_of(asked, task, chosen),
    )
    return _with_earlier(plan) if s["reuse"] else plan


def _with_earlier(plan: Plan) -> Plan:
    path = files.results_path(plan.asked, plan.task, plan.index, plan.k)
    rows = files.read_earlier(plan.asked.settings["reuse"], path)
    fitting = {
        r.id: rows[r.id][0]
        for r in plan.chosen
        if r.id in rows and (plan.original or rows[r.id][1] == r.reference)
    }
    return replace(plan, earlier=fitting)


def perform_cell(plan: Plan, label: str) -> Generator[RunRequest, RunResult, Cell]:
    """The cell's run; RAGQuestEval judges the answers that are not empty."""
    answered = yield _part(plan, label)
    empty = sum(not episode.answer for episode in answered.episodes.values())
    bare = (
        sum(not episode.hits and not _is_reused(episode) for episode in answered.episodes.values())
        if plan.k
        else 0
    )
    counts = {
        "asked": answered.n,
        "failed": answered.n_errors,
        "empty": empty,
        "reused": len(plan.earlier),
        "without_documents": bare,
    }
    judged = None
    if plan.judging is not None and len(answered.episodes) > empty:
        judged = judged_of(plan.judging, plan.chosen, answered)
        counts |= judged.counts if judged else {}
    return Cell(plan, answered, judged, answered.means, counts)


def _part(plan: Plan, label: str) -> RunRequest:
    cases = {record.id: (plan.query(record), record.values) for record in plan.chosen}
    gold = {record.id: record for record in plan.chosen}

    def flow(question: Question) -> Flow:
        if question.qid in plan.earlier:
            return replay(plan.earlier[question.qid])
        return answering(plan, *cases[question.qid])

    settings = {
        "task": plan.task.key,
        "index": plan.index,
        "k": plan.k,
        "join": plan.separator,
        "prompt": plan.prompt,
        "decoding": plan.decoding.settings(),
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
        lambda example, episode: values_of(plan, gold[example.question.qid], episode),
        plan.metrics,
        (plan.asked.llm,),
        (plan.index,) if plan.k else (),
        judges=(plan.judging.judge,) if plan.judging else (),
        on_result=(
            (lambda answered: keep_questions(judging, plan.chosen, answered))
            if (judging := plan.judging) is not None
            else None
        ),
    )


def answering(plan: Plan, query: str, values: Mapping[str, str]) -> Flow:
    """Retrieve, ask, and take what stands in the reply's last ``<response>``."""
    hits = (yield Retrieve(plan.index, query, plan.k)).hits if plan.k else ()
    prompt = filled(
        plan.prompt, {**values, "documents": joined(hits, plan.separator, plan.original)}
    )
    shown = tuple(hit.passage for hit in hits if hit.passage.text in prompt)
    evidence = Evidence(next(iter(values.values())), shown)
    reply = yield Generate(
        plan.asked.llm, (Message("user", prompt),), evidence=evidence, **plan.decoding.settings()
    )
    answer = response_in(reply.text if plan.original else spoken(reply.text))
    return Outcome(answer, "answered" if answer else "empty")


def response_in(reply: str) -> str:
    """What stands after the last ``<response>`` and before the next ``</response>``, stripped.

    >>> response_in("So: <response> 北京 </response> done"), response_in("北京")
    ('北京', '北京')
    """
    return reply.split("<response>")[-1].split("</response>")[0].strip()


def example_of(plan: Plan, record: Record) -> Example:
    """A record as the loop takes it."""
    ids = [sorted(document.ids) for document in record.gold if document.ids]
    output: dict[str, Any] = {"answer": record.reference}
    if ids:
        output["provenance"] = [{"wikipedia_id": one} for group in ids for one in group]
    query = plan.query(record)
    row = {
        "id": record.id,
        "input": query,
        "output": [output],
        "crud": {"task": plan.task.key, **record.values},
    }
    pages = (frozenset(one for group in ids for one in group),) if ids else ()
    return Example(
        Question(record.id, query),
        Gold((record.reference,), provenance=pages, reference=record.reference),
        row,
    )


def values_of(plan: Plan, record: Record, episode: Episode) -> Values:
    """Every number of one answer; none of an empty one."""
    if not episode.answer:
        return {}
    found = text_values(episode.answer, record.reference)
    if plan.similarity:
        found["similarity"] = similarity([(episode, Gold((record.reference,)))], plan.similarity)[0]
    if plan.k and not _is_reused(
        episode
    ):  # an answer of an earlier time does not say what was found for it
        found["mrr"] = reciprocal_rank(record.gold, episode.hits)
    return found


def _is_reused(episode: Episode) -> bool:
    return episode.outcome is not None and episode.outcome.stop_reason == REUSED


def text_values(said: str, wanted: str) -> dict[str, float | None]:
    """BLEU, its four precisions, ROUGE-L and the length of one answer."""
    orders = precisions(said, wanted)
    rouge = rouge_lcs_score(jieba_words(said), jieba_words(wanted))
    each: dict[str, float | None] = {f"bleu-{n}": value for n, value in enumerate(orders, 1)}
    return {"bleu-avg": unpenalised(orders), **each, "rouge-L": rouge, "length": float(len(said))}
