"""Read run folders as TaskRuns: the system, its task, and the result of every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rallebench.analysis.agents import AgentTask, EpisodeSummary, System, TaskRun
from rallebench.analysis.agents.traces import (
    first_prompt,
    observed_by,
    observed_in,
    scratchpad_text,
)
from rallebench.analysis.ranking import ended_pairs
from rallebench.core.types import Episode, Example, Gold, Note, Outcome
from rallebench.datasets.tasks import DOMAINS, LEVELS, find_task
from rallebench.engine.run_files import RunDescription
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.metrics import METRICS
from rallebench.metrics.recorded import IMPORTED

SCORED: Mapping[str, str] = {
    "reward": "f1_yes_no",
    "correct": "em",
    "position_match": "position_match",
}
"""R-Eval's name of a metric → our metric."""

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


def read(folders: Sequence[RunFolder], *, original: bool = False) -> tuple[TaskRun, ...]:
    """Read run folders as TaskRuns.

    ``original``: only the first gold answer counts, and an imported log keeps its own scores. Several runs of one
    system on one task (for example a chain with two values of k) become separate systems, told apart by the names of
    the runs.
    """
    runs = tuple(read_run(run, original=original) for run in folders)
    counts = Counter((run.system, run.task) for run in runs)
    repeated = {system for (system, _), count in counts.items() if count > 1}
    return tuple(
        replace(run, system=System(f"{run.system.workflow} ({run.name})", run.system.llm))
        if run.system in repeated
        else run
        for run in runs
    )


def read_run(run: RunFolder, *, original: bool = False) -> TaskRun:
    """Read a run of an agent or a chain, or an imported log. Raises BadFileError if it is damaged."""
    stored, examples, pairs = run.description(), stored_examples(run), list(ended_pairs(run))
    return TaskRun(
        run.name,
        read_system(stored, run.name),
        _task(stored, examples),
        tuple(
            summarize(example, episode, original=original)
            for example, episode in pairs
            if original or not episode.error
        ),
        sum(bool(episode.error) for _, episode in pairs),
        len(examples) - len(pairs),
        stored.memory_use.bytes,
    )


def read_system(stored: RunDescription, name: str) -> System:
    """Return the workflow and model of a run; a chain's name serves as its workflow."""
    if agent := stored.agent or stored.imported_agent:
        return System(agent.workflow, agent.llm)
    if chain := stored.chain:
        models = dict.fromkeys(a.target for a in chain.actions if a.kind == "generate")
        return System(chain.name, " + ".join(filter(None, models)))
    return System(name, "")


def _task(stored: RunDescription, examples: Sequence[Example]) -> AgentTask:
    environment = stored.agent.environment_name if stored.agent else ""
    return task_named(stored.dataset, examples, environment)


def task_named(dataset: str, examples: Sequence[Example], environment: str = "") -> AgentTask:
    """Identify a task by the name of its dataset, or else by the fields of its records and its ``environment``."""
    task = find_task(dataset)
    if task is not None:
        return AgentTask(task.name, task.domain, task.level, task.number)
    env = common_field(examples, "environment") or environment
    level = common_field(examples, "level").upper()
    domain = _ENVIRONMENTS.get(env, env) or "wiki"
    return AgentTask(dataset, domain, level if level in LEVELS else "")


def common_field(examples: Sequence[Example], field: str) -> str:
    """Return the value of a field if all records agree, otherwise ''."""
    values = {str(example.record.get(field, "")) for example in examples}
    return values.pop() if len(values) == 1 else ""


def summarize(example: Example, episode: Episode, *, original: bool = False) -> EpisodeSummary:
    """Summarise one question for the analyses. ``original``: use only the first gold answer, and a log's own scores."""
    outcome = episode.outcome or Outcome("", "error")
    answer, reason = outcome.answer.strip(), outcome.stop_reason
    gold = Gold(answers=example.gold.answers[:1] if original else example.gold.answers)
    alone = Episode("", "", (), Outcome(answer))
    scores = [METRICS[name](alone, gold) for name in SCORED.values()]
    logged = example.record.get("logged") if episode.workflow == IMPORTED else None
    if isinstance(logged, Mapping):
        if original:
            scores[:2] = float(logged["reward"]), float(logged["correct"])
        notes = (step.reply.text for step in episode.steps if isinstance(step.request, Note))
        scratchpad, tokens = "".join(notes), None
        observed, prompt = observed_in(scratchpad), str(logged.get("prompt", ""))
        reason, seconds = "" if reason == "halted" else reason, logged.get("exe_time")
        halted, failed = bool(logged["halted"]), bool(logged["error"])
    else:
        scratchpad, observed, prompt = (
            scratchpad_text(episode),
            observed_by(episode),
            first_prompt(episode),
        )
        replies = [step.reply for step in episode.steps]
        tokens = sum(reply.prompt_tokens + reply.completion_tokens for reply in replies) or None
        seconds = sum(step.seconds for step in episode.steps)
        halts, error = episode.workflow not in NEVER_HALT, bool(episode.error)
        halted = halts and (reason in HALTING or error)
        failed = halts and (reason == "model_error" or error)
    reward, correct, position = scores
    known = (example.question.qid, example.question.text, gold.answers)
    trace = (reason, scratchpad, observed, halted, failed, episode.error, prompt, seconds, tokens)
    return EpisodeSummary(*(*known, answer, reward, correct, position, *trace))
