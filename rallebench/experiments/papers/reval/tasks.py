"""The tasks of a grid: R-Eval's by name or number as far as their questions are there, and question sets of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.analysis import agents as acting
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.registry import unknown
from rallebench.core.types import Example
from rallebench.datasets.reading import read_questions
from rallebench.datasets.tasks import DOMAINS, LEVELS, TASKS, available, sampled, task_of
from rallebench.workspace.paths import Workspace

BELOW = ("", "data/KoLA2", "KoLA2")
"""Where R-Eval's files may lie below a folder that is given."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A task with its questions. ``environments``: those that fit, its own first; () for a set that says none."""

    task: acting.AgentTask
    dataset: str
    file: Path
    examples: tuple[Example, ...]
    environments: tuple[str, ...]


def tasks_of(
    workspace: Workspace,
    named: str,
    data: str,
    *,
    domain: str = "",
    limit: int | None = None,
    instances: int = 0,
    first_only: bool = False,
) -> list[Asking]:
    """The tasks that are named, or all (of a ``domain``) whose questions are there, each read and checked. Raises UsageError, NotFoundError,
    BadFileError. ``instances``: so many are drawn, as R-Eval draws them; ``first_only``: of the gold the first answer counts."""
    files = _files(
        workspace, [name.strip() for name in named.split(",") if name.strip()], data, domain
    )
    asked = [_asking(name, path, limit, instances, first_only) for name, path in files.items()]
    twice = [
        one.task.name
        for i, one in enumerate(asked)
        if one.task in [other.task for other in asked[:i]]
    ]
    if twice:
        raise UsageError(f"--set tasks={named}: {twice[0]} is named twice; name each task once.")
    return asked


def _files(workspace: Workspace, named: Sequence[str], data: str, domain: str) -> dict[str, Path]:
    """Question set → file, in R-Eval's order or as named."""
    folder = (
        workspace.data(data, f"the folder of R-Eval's files, as in {TASKS[0].file}")
        if data
        else None
    )
    if folder is not None and folder.is_file():
        raise UsageError(
            f"--set data={data} is a file; give the folder that holds it, or name the file as a task: --set tasks={data}."
        )
    theirs = _in_folder(folder) if folder is not None else {}
    known = workspace.dataset_paths()
    here = available(known)
    own = {task.name: task for task in TASKS} | {task.number: task for task in TASKS}
    files: dict[str, Path] = {}
    tasks = [task for task in TASKS if domain in ("", task.domain)]
    for name in named or [
        task.name for task in tasks if task.name in theirs or (folder is None and task.name in here)
    ]:
        task = own.get(name)
        if task is None:
            if name in known or Path(name).suffix or "/" in name:
                dataset, path = workspace.dataset(name)
                files[dataset] = path
                continue
            raise NotFoundError(
                unknown("task or question set", name, [*(t.name for t in TASKS), *known])
            )
        if task.name in theirs:
            files[task.name] = theirs[task.name]
        elif task.name in here:
            files[here[task.name]] = known[here[task.name]]
        else:
            raise NotFoundError(f"The questions of {task.name} are not here. {task.how}")
    if not files and folder is None:
        raise NotFoundError(
            f"The questions of none of these tasks are here: {', '.join(task.name for task in tasks)}. See 'rallebench list tasks'."
        )
    if not files:
        raise NotFoundError(
            f"{data} holds none of R-Eval's files ({tasks[0].file} … {tasks[-1].file})."
        )
    return files


def _in_folder(folder: Path) -> dict[str, Path]:
    places = {task.name: [folder / below / task.file for below in BELOW] for task in TASKS}
    return {
        name: next(p for p in paths if p.is_file())
        for name, paths in places.items()
        if any(p.is_file() for p in paths)
    }


def _asking(name: str, path: Path, limit: int | None, instances: int, first_only: bool) -> Asking:
    examples = read_questions(path)
    if instances:
        examples = tuple(sampled(examples, instances))
    examples = examples if limit is None else examples[:limit]
    if first_only:
        examples = tuple(map(_first, examples))
    known = task_of(name)
    if known is not None:
        return Asking(
            acting.AgentTask(known.name, known.domain, known.level, known.number),
            name,
            path,
            examples,
            _fitting(known.domain),
        )
    env = _said(examples, "environment")
    domain = (
        env if env in DOMAINS else next((word for word, own in DOMAINS.items() if own == env), "")
    )
    level = _said(examples, "level").upper()
    task = acting.AgentTask(name, domain or env or "wiki", level if level in LEVELS else "")
    return Asking(
        task, name, path, examples, _fitting(domain) if domain else ((env,) if env else ())
    )


def _fitting(domain: str) -> tuple[str, ...]:
    return (DOMAINS[domain], "corpus-tools") if domain == "wiki" else (DOMAINS[domain],)


def _said(examples: Sequence[Example], field: str) -> str:
    values = {str(example.record.get(field, "")) for example in examples}
    return values.pop() if len(values) == 1 else ""


def _first(example: Example) -> Example:
    """With the first accepted answer alone, in the gold and in the record that is kept of it."""
    output: list[Mapping[str, object]] = list(example.record.get("output") or ())
    answered = [one for one in output if one.get("answer")]
    return replace(
        example,
        gold=replace(example.gold, answers=example.gold.answers[:1]),
        record={**example.record, "output": answered[:1]},
    )
