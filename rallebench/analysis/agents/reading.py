"""Run folders → TaskRuns: the system, its task, and the result of every question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.analysis.agents import AgentTask, EpisodeSummary, System, TaskRun
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
"""Workflows whose episodes neither halt nor fail in R-Eval's logs."""
HALTING = frozenset(
    {"step_limit", "context_limit", "token_limit", "time_limit", "model_error", "tool_error"}
)
_ENVIRONMENTS = (
    {own: word for word, own in DOMAINS.items()}
    | {word: word for word in DOMAINS}
    | {"corpus-tools": "wiki"}
)


def read(
    folders: Sequence[RunFolder], *, original: bool = False, tokenizer: str = ""
) -> tuple[TaskRun, ...]:
    """The run folders as TaskRuns.

    ``original``: only the first gold answer counts, and an imported log keeps its own scores.
    ``tokenizer``: the folder of the tokenizer whose tokens ``position`` compares. Raises UsageError for
    two runs of one system on one task, which have one cell in a table.
    """
    runs = tuple(read_run(run, original=original, tokenizer=tokenizer) for run in folders)
    names: dict[tuple[System, AgentTask], str] = {}
    for run in runs:
        first = names.setdefault((run.system, run.task), run.name)
        if first != run.name:
            raise UsageError(
                f"{first!r} and {run.name!r} are both runs of {run.system.label} on {run.task.name}; "
                "leave one of them out."
            )
    return runs


def read_run(run: RunFolder, *, original: bool = False, tokenizer: str = "") -> TaskRun:
    """A run of an agent, a chain or an imported log. Raises BadFileError for a damaged one."""
    document, episodes, examples = run.spec(), run.episodes(), examples_of(run)
    answered = [
        (example, episodes[example.question.qid])
        for example in examples
        if example.question.qid in episodes
    ]
    return TaskRun(
        run.name,
        system_of(document["spec"], run.name),
        _task(document["spec"], examples),
        tuple(
            summarize(example, episode, original=original, tokenizer=tokenizer)
            for example, episode in answered
            if original or not episode.error
        ),
        sum(bool(episode.error) for _, episode in answered),
        len(examples) - len(answered),
        _memory(document.get("memory")),
    )


def _memory(recorded: Any) -> int | None:
    """Bytes of the models and indexes of a run; None if any is unknown."""
    sizes = list(recorded.values()) if isinstance(recorded, Mapping) else []
    if not sizes or not all(isinstance(size, Mapping) for size in sizes):
        return None
    return sum(int(size.get("ram") or 0) + int(size.get("vram") or 0) for size in sizes)


def system_of(spec: Mapping[str, Any], name: str) -> System:
    """Workflow and model of a run; a chain's workflow is its name."""
    settings = spec["settings"]
    if isinstance(agent := settings.get("agent") or settings.get("system"), Mapping):
        return System(str(agent["workflow"]), str(agent["llm"]))
    if isinstance(chain := settings.get("chain"), Mapping):
        models = dict.fromkeys(
            a.get("target", "") for a in chain.get("actions", ()) if a.get("kind") == "generate"
        )
        return System(str(chain["name"]), " + ".join(filter(None, models)))
    return System(name, "")


def _task(spec: Mapping[str, Any], examples: Sequence[Example]) -> AgentTask:
    """The task of a run, by the name of its dataset, else by the fields of its records."""
    dataset = str(spec["dataset"])
    task = task_of(dataset)
    if task is not None:
        return AgentTask(task.name, task.domain, task.level, task.number)
    agent = spec["settings"].get("agent") or {}
    env = _common_field(examples, "environment") or str(
        (agent.get("environment") or {}).get("name", "")
    )
    level = _common_field(examples, "level").upper()
    return AgentTask(
        dataset, _ENVIRONMENTS.get(env, env) or "wiki", level if level in LEVELS else ""
    )


def _common_field(examples: Sequence[Example], field: str) -> str:
    """The value of a field if all records agree, else ''."""
    values = {str(example.record.get(field, "")) for example in examples}
    return values.pop() if len(values) == 1 else ""


def summarize(
    example: Example, episode: Episode, *, original: bool = False, tokenizer: str = ""
) -> EpisodeSummary:
    """The result of one question."""
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
        return EpisodeSummary(
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
    return EpisodeSummary(
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
    """The best score over the gold answers, 0 for an empty answer; None without gold answers."""
    if not golds:
        return None
    return max(float(score(answer, gold)) for gold in golds) if answer else 0.0
