"""Run folders → cells: which system answered which task, and every question as it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.analysis.agents import Cell, System, Task, Told
from rallebench.analysis.agents.traces import observed_by, observed_in, prompt_of, scratchpad_of
from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Example, Gold, Note, Outcome
from rallebench.datasets.tasks import DOMAINS, LEVELS, task_of
from rallebench.engine.score import examples_of
from rallebench.engine.store import RunFolder
from rallebench.metrics.exact_match import exact_match_score
from rallebench.metrics.position_match import position_match
from rallebench.metrics.recorded import IMPORTED
from rallebench.metrics.token_f1 import yes_no_score

NEVER_HALT = frozenset({"dfsdt", "function-calling", "DFSDT", "FC"})
"""Workflows whose logs at R-Eval say of every episode that it neither halted nor failed."""
HALTING = frozenset(
    {"step_limit", "context_limit", "token_limit", "time_limit", "model_error", "tool_error"}
)
_ENVIRONMENTS = (
    {own: word for word, own in DOMAINS.items()}
    | {word: word for word in DOMAINS}
    | {"corpus-tools": "wiki"}
)


def read(
    runs: Sequence[RunFolder], *, original: bool = False, tokenizer: str = ""
) -> tuple[Cell, ...]:
    """A cell per run. ``original``: the first answer of the gold alone counts, and what an imported log says of its own
    scores. ``tokenizer``: a folder with the one whose tokens ``position`` compares.

    Raises UsageError for two runs of one system on one task, which no table can hold.
    """
    cells = tuple(read_run(run, original=original, tokenizer=tokenizer) for run in runs)
    taken: dict[tuple[System, Task], str] = {}
    for cell in cells:
        before = taken.setdefault((cell.system, cell.task), cell.run)
        if before != cell.run:
            raise UsageError(
                f"{before!r} and {cell.run!r} are both of {cell.system.label} on {cell.task.name}; leave one of them out."
            )
    return cells


def read_run(run: RunFolder, *, original: bool = False, tokenizer: str = "") -> Cell:
    """One run of an agent, a chain or an imported log. Raises BadFileError for a damaged one."""
    made, episodes, examples = run.spec(), run.episodes(), examples_of(run)
    spec = made["spec"]
    rows: list[Told] = []
    failed = 0
    for example in examples:
        episode = episodes.get(example.question.qid)
        if episode is None:
            continue
        failed += bool(episode.error)
        if original or not episode.error:
            rows.append(told(example, episode, original=original, tokenizer=tokenizer))
    missing = sum(example.question.qid not in episodes for example in examples)
    return Cell(
        run.name,
        system_of(spec, run.name),
        _task(spec, examples),
        tuple(rows),
        failed,
        missing,
        _memory(made.get("memory")),
    )


def _memory(recorded: Any) -> int | None:
    """Bytes of all that a run records to have been loaded; None if it records nothing, or of one thing not."""
    held = list(recorded.values()) if isinstance(recorded, Mapping) else []
    if not held or not all(isinstance(one, Mapping) for one in held):
        return None
    return sum(int(one.get("ram") or 0) + int(one.get("vram") or 0) for one in held)


def system_of(spec: Mapping[str, Any], name: str) -> System:
    """Workflow and model of a run; the name of a chain is its workflow."""
    settings = spec["settings"]
    if isinstance(agent := settings.get("agent") or settings.get("system"), Mapping):
        return System(str(agent["workflow"]), str(agent["llm"]))
    if isinstance(chain := settings.get("chain"), Mapping):
        models = dict.fromkeys(
            a.get("target", "") for a in chain.get("actions", ()) if a.get("kind") == "generate"
        )
        return System(str(chain["name"]), " + ".join(filter(None, models)))
    return System(name, "")


def _task(spec: Mapping[str, Any], examples: Sequence[Example]) -> Task:
    """The task that a run's questions are of: by the set's name, else by what the records say of themselves."""
    dataset = str(spec["dataset"])
    known = task_of(dataset)
    if known is not None:
        return Task(known.name, known.domain, known.level, known.number)
    agent = spec["settings"].get("agent") or {}
    env = _said(examples, "environment") or str((agent.get("environment") or {}).get("name", ""))
    level = _said(examples, "level").upper()
    return Task(dataset, _ENVIRONMENTS.get(env, env) or "wiki", level if level in LEVELS else "")


def _said(examples: Sequence[Example], field: str) -> str:
    """What all records say in a field; '' where they differ or say nothing."""
    found = {str(example.record.get(field, "")) for example in examples}
    return found.pop() if len(found) == 1 else ""


def told(
    example: Example, episode: Episode, *, original: bool = False, tokenizer: str = ""
) -> Told:
    """One question as it ended."""
    logged = example.record.get("logged") if episode.workflow == IMPORTED else None
    golds = example.gold.answers[:1] if original else example.gold.answers
    outcome = episode.outcome or Outcome("", "error")
    answer = outcome.answer.strip()
    reward, correct = (_best(score, answer, golds) for score in (yes_no_score, exact_match_score))
    position = position_match(
        Episode(episode.qid, "", (), Outcome(answer)), Gold(answers=golds), tokenizer
    )
    if isinstance(logged, Mapping):
        scratchpad = "".join(
            step.reply.text for step in episode.steps if isinstance(step.request, Note)
        )
        if original:
            reward, correct = float(logged["reward"]), float(logged["correct"])
        return Told(
            example.question.qid,
            example.question.text,
            golds,
            answer,
            reward,
            correct,
            position,
            "" if outcome.stop_reason == "halted" else outcome.stop_reason,
            scratchpad,
            observed_in(scratchpad),
            bool(logged["halted"]),
            bool(logged["error"]),
            episode.error,
            str(logged.get("prompt", "")),
            logged.get("exe_time"),
        )
    ends = episode.workflow not in NEVER_HALT
    return Told(
        example.question.qid,
        example.question.text,
        golds,
        answer,
        reward,
        correct,
        position,
        outcome.stop_reason,
        scratchpad_of(episode),
        observed_by(episode),
        ends and (outcome.stop_reason in HALTING or bool(episode.error)),
        ends and (outcome.stop_reason == "model_error" or bool(episode.error)),
        episode.error,
        prompt_of(episode),
        sum(step.seconds for step in episode.steps),
        sum(step.reply.prompt_tokens + step.reply.completion_tokens for step in episode.steps)
        or None,
    )


def _best(score: Any, answer: str, golds: Sequence[str]) -> float | None:
    """The best over the accepted answers; 0 for an empty answer, as the metrics have it."""
    if not golds:
        return None
    return max(float(score(answer, gold)) for gold in golds) if answer else 0.0
