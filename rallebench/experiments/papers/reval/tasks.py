"""The tasks of a grid: R-Eval's by name or number as far as their questions are at hand, and the user's question sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.analysis.agents import AgentTask
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.registry import unknown
from rallebench.core.types import Example
from rallebench.datasets.reading import read_questions
from rallebench.datasets.tasks import DOMAINS, LEVELS, TASKS, available, sampled, task_of
from rallebench.experiments.papers.common import is_original, names_in

BELOW = ("", "data/KoLA2", "KoLA2")
"""Where R-Eval's files may lie below a folder that is given."""


@dataclass(frozen=True, slots=True)
class TaskQuestions:
    """A task with its questions. ``environments``: those that fit, its own first; () for a set that says none."""

    task: AgentTask
    dataset: str
    file: Path
    examples: tuple[Example, ...]
    environments: tuple[str, ...]


def tasks_of(request: ExperimentRequest, domain: str = "") -> list[TaskQuestions]:
    """The tasks that are named, or all (of a ``domain``) whose questions are there, each read and checked.

    Raises UsageError, NotFoundError, BadFileError. The setting ``instances``: so many are drawn, as R-Eval draws them; with
    ``compat=original`` the first answer of the gold counts alone.
    """
    files = _files(request, domain)
    tasks = [_task(request, name, path) for name, path in files.items()]
    counts = Counter(questions.task for questions in tasks)
    twice = next((task.name for task, count in counts.items() if count > 1), "")
    if twice:
        named = request.settings["tasks"]
        raise UsageError(f"--set tasks={named}: {twice} is named twice; name each task once.")
    return tasks


def _files(request: ExperimentRequest, domain: str) -> dict[str, Path]:
    """Question set → file, in R-Eval's order or as named."""
    workspace, data = request.workspace, request.settings["data"]
    known, theirs = workspace.dataset_paths(), _in_folder(request)
    here = available(known)
    own = {task.name: task for task in TASKS} | {task.number: task for task in TASKS}
    tasks = [task for task in TASKS if domain in ("", task.domain)]
    every = [t.name for t in tasks if t.name in theirs or (not data and t.name in here)]
    files: dict[str, Path] = {}
    for name in names_in(request.settings["tasks"]) or every:
        task = own.get(name)
        if task is None:
            if name not in known and not Path(name).suffix and "/" not in name:
                raise NotFoundError(
                    unknown("task or question set", name, [*(t.name for t in TASKS), *known])
                )
            dataset, path = workspace.dataset(name)
            files[dataset] = path
        elif task.name in theirs:
            files[task.name] = theirs[task.name]
        elif task.name in here:
            files[here[task.name]] = known[here[task.name]]
        else:
            raise NotFoundError(f"The questions of {task.name} are not here. {task.how}")
    if not files:
        names = ", ".join(task.name for task in tasks)
        raise NotFoundError(
            f"{data} holds none of R-Eval's files ({tasks[0].file} … {tasks[-1].file})."
            if data
            else f"The questions of none of these tasks are here: {names}. See 'rallebench list tasks'."
        )
    return files


def _in_folder(request: ExperimentRequest) -> dict[str, Path]:
    """R-Eval's task → its file in the folder ``data``, if one is given."""
    data = request.settings["data"]
    if not data:
        return {}
    folder = request.workspace.data(data, f"the folder of R-Eval's files, as in {TASKS[0].file}")
    if folder.is_file():
        raise UsageError(
            f"--set data={data} is a file; give the folder that holds it, or name the file as a task: --set tasks={data}."
        )
    paths = [(task.name, folder / below / task.file) for below in BELOW[::-1] for task in TASKS]
    return {name: path for name, path in paths if path.is_file()}


def _task(request: ExperimentRequest, name: str, path: Path) -> TaskQuestions:
    examples, instances = read_questions(path), request.settings["instances"]
    if instances:
        examples = tuple(sampled(examples, instances))
    examples = examples[: request.limit]
    if is_original(request):
        examples = tuple(map(_with_first_answer, examples))
    known = task_of(name)
    if known is not None:
        task = AgentTask(known.name, known.domain, known.level, known.number)
        return TaskQuestions(task, name, path, examples, _fitting(known.domain))
    env = _common(examples, "environment")
    words = {own: word for word, own in DOMAINS.items()}
    domain = env if env in DOMAINS else words.get(env, "")
    level = _common(examples, "level").upper()
    task = AgentTask(name, domain or env or "wiki", level if level in LEVELS else "")
    fitting = _fitting(domain) if domain else tuple(filter(None, [env]))
    return TaskQuestions(task, name, path, examples, fitting)


def _fitting(domain: str) -> tuple[str, ...]:
    return (DOMAINS[domain], "corpus-tools") if domain == "wiki" else (DOMAINS[domain],)


def _common(examples: Sequence[Example], field: str) -> str:
    """The value of a field, if all records have the same."""
    values = {str(example.record.get(field, "")) for example in examples}
    return values.pop() if len(values) == 1 else ""


def _with_first_answer(example: Example) -> Example:
    """With the first accepted answer alone, in the gold and in the record that is kept of it."""
    output: list[Mapping[str, object]] = list(example.record.get("output") or ())
    answered = [accepted for accepted in output if accepted.get("answer")]
    gold = replace(example.gold, answers=example.gold.answers[:1])
    return replace(example, gold=gold, record={**example.record, "output": answered[:1]})
