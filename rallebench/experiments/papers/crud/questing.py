"""RAGQuestEval as a judge of a cell's answers; a reference's questions are made once ever and stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.runs import Judge, RunResult
from rallebench.core.types import Episode, Example, Flow, digest
from rallebench.experiments.papers.crud import gold
from rallebench.experiments.papers.crud.gold import Entry
from rallebench.experiments.papers.crud.records import Record
from rallebench.experiments.papers.crud.tasks import CrudTask
from rallebench.metrics import METRICS
from rallebench.metrics.judges.named import judge_named
from rallebench.metrics.judges.ragquesteval import COLUMNS, quest_scores

PROMPTS = tuple(METRICS.entry("ragquesteval").traits["judge"].prompts)


@dataclass(frozen=True, slots=True)
class Judging:
    """``file``: where questions are stored; ``known``: the stored and the published ones, by key; ``entries``: record id → those on
    its reference, None if there are none that can be used."""

    judge: Judge
    file: Path
    known: Mapping[str, Entry]
    entries: Mapping[str, Entry | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """``scored``: record id → the JSON of a judgement with values; ``counts``: see ``cells.Cell``."""

    counts: Mapping[str, int]
    scored: Mapping[str, Mapping[str, Any]]


def judging_of(
    request: ExperimentRequest, task: CrudTask, records: Sequence[Record]
) -> Judging | None:
    """RAGQuestEval of these records by the model ``quest``; None without one. Raises UsageError, BadFileError."""
    s = request.settings
    if not s["quest"]:
        return None
    published, file = gold.read_published(s["gold"], task), gold.cache_file(request.workspace, task)
    known = {**published, **gold.read_cache(file)}
    original = s["compat"] == "original"
    entries = {r.id: gold.find(known, r.id, r.reference, original) for r in records}
    judge = judge_named(
        f"ragquesteval:{s['quest']}",
        request.workspace.llm_mark,
        s["prompts"],
        compat=s["compat"],
        precision=s["quest_precision"],
        seed=request.seed,
    )

    def ask(example: Example, answer: str) -> Flow | None:
        return judge.ask(example, answer, known=entries[example.question.qid])

    judge_of_task = replace(
        judge,
        columns={column.name: column.definition for column in COLUMNS},
        settings={**judge.settings, "gold": digest(published)[:12] if published else ""},
        ask=ask,
        scores=lambda example, answer, judgement: _content(judgement).get("values", {}),
        ranges={column.name: column.range for column in COLUMNS},
        text=lambda episode: episode.answer or None,
    )
    return Judging(judge_of_task, file, known, entries)


def judged_of(judging: Judging, records: Sequence[Record], answered: RunResult) -> Judged | None:
    """The judgements of a cell's answers; None where nothing was judged."""
    episodes = answered.judgements.get(judging.judge.name)
    if episodes is None:
        return None
    judged = [
        record
        for record in records
        if record.id in answered.episodes and answered.episodes[record.id].answer
    ]
    contents = {qid: _content(episode) for qid, episode in episodes.items()}
    readable = sum(bool(content.get("question")) for content in contents.values())
    scored = {qid: content for qid, content in contents.items() if content.get("values")}
    quests = [quest_scores(c["answers"], c["text_answers"]) for c in scored.values()]
    counts = {
        "quest_asked": len(judged),
        "quest_new_references": sum(judging.entries[record.id] is None for record in judged),
        "quest_no_questions": len(episodes) - readable,
    }
    if readable:
        counts |= {
            "quest_unparsed": readable - len(scored),
            "quest_failed": len(judged) - len(episodes),
            "quest_scored": len(scored),
            "quest_unanswerable": sum(not quest.answerable for quest in quests),
            "quest_nothing_answered": sum(
                bool(quest.answerable) and not quest.answered for quest in quests
            ),
        }
    return Judged(counts, scored)


def store_questions(judging: Judging, records: Sequence[Record], answered: RunResult) -> None:
    """Store the questions that are new, for all later cells."""
    entries = dict(judging.known)
    episodes = answered.judgements.get(judging.judge.name, {})
    for record in records:
        content = _content(episodes[record.id]) if record.id in episodes else {}
        if content.get("question") and judging.entries[record.id] is None:
            key = gold.key_for(entries, record.id, record.reference)
            entry = {name: content[name] for name in ("key_info", "question", "answers")}
            entries[key] = gold.entry_of(entry, record.reference, judging.judge.llm)
    gold.store(judging.file, entries)


def _content(episode: Episode) -> dict[str, Any]:
    """A judgement's JSON, {} of an episode without one."""
    content: dict[str, Any] = json.loads(episode.answer) if episode.answer else {}
    return content
