"""A grid of workflows, models and tasks (R-Eval's tasks by name or number, or datasets): the possible combinations, and the
reasons against the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.analysis.agents import AgentTask, System, TaskRun
from rallebench.analysis.agents.reading import common_field, task_named
from rallebench.core.errors import BadFileError, Hint, NotFoundError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.prompts import Wording, find_wording
from rallebench.core.registry import unknown
from rallebench.core.starter import READER
from rallebench.core.types import Example
from rallebench.datasets.reading import answerable_questions
from rallebench.datasets.tasks import DOMAINS, TASKS, available, draw_sample, find_task
from rallebench.environments import ENVIRONMENTS, environment_entry
from rallebench.experiments.common import names_in
from rallebench.papers.reval.demonstrations import draw_demonstrations, with_shots
from rallebench.papers.reval.settings import RevalSettings
from rallebench.workflows import WORKFLOWS, agent_workflows
from rallebench.workspace.flows import FOLDER, Agent, original_prompts, prepare_agent
from rallebench.workspace.paths import WorkspaceFolder

BELOW = ("", "data/KoLA2", "KoLA2")
"""Subfolders that may hold R-Eval's files."""


@dataclass(frozen=True, slots=True)
class TaskQuestions:
    """A task with its questions. ``environments``: suitable environments, its own first; () if the set names none. ``pool``:
    number of questions in the file; ``demonstrations``: questions drawn from it as examples."""

    task: AgentTask
    dataset: str
    file: Path
    examples: tuple[Example, ...]
    environments: tuple[str, ...]
    pool: int
    demonstrations: tuple[Example, ...] = ()


def read_tasks(
    request: ExperimentRequest[WorkspaceFolder], settings: RevalSettings, domain: str = ""
) -> list[TaskQuestions]:
    """Read and check the named tasks, or all tasks (of a ``domain``) with available questions. Raises UsageError,
    NotFoundError, BadFileError.

    The setting ``instances`` is the number of questions, drawn like R-Eval's; ``demonstrations`` is the number of other
    questions drawn as examples. With ``compat=original``, only the first gold answer counts.
    """
    files = _files(request, settings, domain)
    tasks = [_task(request, settings, name, path, form) for name, (path, form) in files.items()]
    counts = Counter(questions.task for questions in tasks)
    twice = next((task.name for task, count in counts.items() if count > 1), "")
    if twice:
        raise UsageError(f"tasks={settings.tasks}: {twice} is named twice; name each task once.")
    return tasks


def _files(
    request: ExperimentRequest[WorkspaceFolder], settings: RevalSettings, domain: str
) -> dict[str, tuple[Path, str]]:
    """Dataset → (file, format, or '' to detect it), in R-Eval's order or as named."""
    workspace, data = request.workspace, settings.data
    known, theirs = workspace.dataset_paths(), _in_folder(request, data)
    here = available(known)
    own = {task.name: task for task in TASKS} | {task.number: task for task in TASKS}
    tasks = [task for task in TASKS if domain in ("", task.domain)]
    every = [t.name for t in tasks if t.name in theirs or (not data and t.name in here)]
    files: dict[str, tuple[Path, str]] = {}
    for name in names_in(settings.tasks) or every:
        task = own.get(name)
        if task is None:
            if name not in known and not Path(name).suffix and "/" not in name:
                raise NotFoundError(
                    unknown("task or dataset", name, [*(t.name for t in TASKS), *known])
                )
            dataset, path = workspace.dataset(name)
            files[dataset] = path, ""
        elif task.name in theirs:
            files[task.name] = theirs[task.name]
        elif task.name in here:
            files[here[task.name]] = known[here[task.name]], ""
        else:
            raise NotFoundError(f"The questions of {task.name} are not here. {task.how}")
    if not files:
        names = ", ".join(task.name for task in tasks)
        raise NotFoundError(
            f"{data} holds none of R-Eval's files ({tasks[0].file} … {tasks[-1].file}), and no public set of its tasks."
            if data
            else f"The questions of none of these tasks are here: {names}.",
            hint=None if data else Hint("list", "tasks"),
        )
    return files


def _in_folder(
    request: ExperimentRequest[WorkspaceFolder], data: str
) -> dict[str, tuple[Path, str]]:
    """R-Eval's task → (file, format) in the folder ``data``, if given: R-Eval's own file, otherwise the published set."""
    if not data:
        return {}
    folder = request.workspace.data(data, f"the folder of R-Eval's files, as in {TASKS[0].file}")
    if folder.is_file():
        raise UsageError(
            f"data={data} is a file, not the folder that holds it. A file can be named as a task.",
            hint=Hint("set", f"tasks={data}"),
        )
    published = ((task.name, task.path_in(folder), task.form) for task in TASKS)
    public = {name: (path, form) for name, path, form in published if path}
    paths = [(task.name, folder / below / task.file) for below in BELOW[::-1] for task in TASKS]
    return public | {name: (path, "") for name, path in paths if path.is_file()}


def _task(
    request: ExperimentRequest[WorkspaceFolder],
    settings: RevalSettings,
    name: str,
    path: Path,
    form: str,
) -> TaskQuestions:
    every, instances = answerable_questions(path, form), settings.instances
    examples = tuple(draw_sample(every, instances)) if instances else every
    examples = examples[: request.limit]
    if not any(example.gold.answers for example in examples):
        raise BadFileError(
            f"No question of {path} has an answer, so nothing of {name} can be scored; take a file with answers."
        )
    demonstrations = draw_demonstrations(
        every, examples, settings.demonstrations, request.seed, name
    )
    if settings.original:
        examples = tuple(map(_with_first_answer, examples))
    task, env = task_named(name, examples), common_field(examples, "environment")
    environments = _fitting(name, task.domain, env)
    return TaskQuestions(task, name, path, examples, environments, len(every), demonstrations)


def _fitting(name: str, domain: str, env: str) -> tuple[str, ...]:
    """The environments suitable for a task of this domain with records that name ``env``."""
    if find_task(name) is None and env not in (*DOMAINS, *DOMAINS.values()):
        return tuple(filter(None, [env]))
    return (DOMAINS[domain], "corpus-tools") if domain == "wiki" else (DOMAINS[domain],)


def _with_first_answer(example: Example) -> Example:
    """The example with only its first accepted answer, in the gold and in its stored record."""
    output: list[Mapping[str, object]] = list(example.record.get("output") or ())
    answered = [accepted for accepted in output if accepted.get("answer")]
    gold = replace(example.gold, answers=example.gold.answers[:1])
    return replace(example, gold=gold, record={**example.record, "output": answered[:1]})


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell of the grid. ``agent``: None for an impossible cell, with the reason in ``why`` (a clause)."""

    system: System
    questions: TaskQuestions
    env: str
    agent: Agent | None = None
    why: str = ""

    @property
    def task(self) -> str:
        return self.questions.task.name

    @property
    def task_run(self) -> TaskRun:
        """The cell as a run without result rows."""
        return TaskRun("", self.system, self.questions.task, ())

    @property
    def label(self) -> str:
        return f"{self.system.workflow} {self.system.llm} {self.task}"


def grid(
    request: ExperimentRequest[WorkspaceFolder],
    settings: RevalSettings,
    tasks: Sequence[TaskQuestions],
) -> list[GridCell]:
    """All cells, model by model. Raises UsageError if no cell is possible."""
    workflows = names_in(settings.workflows)
    models = names_in(settings.models) or names_in(request.llm)
    if not models:
        raise UsageError(
            "The systems need a language model, or several (models=A,B).",
            hint=Hint("choose", "llm"),
        )
    if not workflows:
        raise UsageError("The systems need workflows.", hint=Hint("set", "workflows=react,pal"))
    acting = list(agent_workflows())
    for name in workflows:
        if name not in WORKFLOWS:
            raise UsageError(unknown("workflow", name, acting))
        if name not in acting:
            raise UsageError(
                f"The workflow {name!r} is run by a suite of its own; choose of {', '.join(acting)}."
            )
    for model in models:
        request.workspace.llm(model)
    environments = names_in(settings.env)
    for name in environments:
        environment_entry(name)
    agent_settings = _agent_settings(settings, workflows)
    cells = [
        _cell(request, settings, System(workflow, model), questions, environments, agent_settings)
        for model in models
        for questions in tasks
        for workflow in workflows
    ]
    if not any(cell.agent for cell in cells):
        whys = dict.fromkeys(f"{cell.system.label} on {cell.task}: {cell.why}" for cell in cells)
        raise UsageError(f"No system can be run: {'; '.join(whys)}.")
    return cells


def _agent_settings(s: RevalSettings, workflows: Sequence[str]) -> dict[str, str]:
    """The settings that the workflows and environments accept."""
    values: dict[str, str] = {}
    for pair in filter(None, map(str.strip, s.more.split(";"))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise UsageError(
                f"more={s.more}: {pair!r} is not key=value; several are parted by semicolons."
            )
        values[key] = value
    named = {"retriever": s.retriever, "corpus": s.corpus, "table": s.table, "steps": s.steps}
    values |= {name: str(value) for name, value in named.items() if value}
    values |= {"shots": str(s.shots)} if s.shots >= 0 else {}
    values |= {"protocol": s.protocol} if s.protocol != "auto" else {}
    known = {name for workflow in workflows for name in WORKFLOWS.entry(workflow).form}
    known |= {name for env in ENVIRONMENTS.names() for name in ENVIRONMENTS.entry(env).form}
    for name in values:
        if name.removeprefix("env.") not in known:
            raise UsageError(f"more={s.more}: {unknown('setting', name, sorted(known))}")
    return values


def _cell(
    request: ExperimentRequest[WorkspaceFolder],
    settings: RevalSettings,
    system: System,
    questions: TaskQuestions,
    environments: Sequence[str],
    values: Mapping[str, str],
) -> GridCell:
    """The cell with its agent, which receives the ``values`` that it accepts as settings."""
    workflow = WORKFLOWS.entry(system.workflow)
    env = _env(questions, environments) if workflow.traits.get("needs_env") else ""
    cell = GridCell(system, questions, env)
    if why := _why_not(request, cell, environments, settings.protocol):
        return replace(cell, why=why)
    original = {"compat": "original"} if settings.original else {}
    theirs = environment_entry(env).form if env else {}
    own = {n: v for n, v in {**values, **original}.items() if n in workflow.form}
    for key, value in values.items():  # env.… and settings unknown to the workflow
        name = key.removeprefix("env.")
        if name in theirs and (name != key or name not in workflow.form):
            own[f"env.{name}"] = value
    own |= {f"env.{name}": value for name, value in original.items() if name in theirs}
    agent = prepare_agent(
        request.workspace,
        system.workflow,
        env,
        system.llm,
        own,
        seed=request.seed,
        allow_python=request.allow_python,
        prompts=settings.prompts,
    )
    return replace(cell, agent=with_shots(agent, questions.demonstrations))


def wording_in(prompts: str, cells: Iterable[GridCell]) -> Wording:
    """The wording of the prompts in all possible cells. Raises BadFileError for a folder without any of them."""
    names = {
        (FOLDER, name): None
        for cell in cells
        if cell.agent
        for name in original_prompts(cell.system.workflow, cell.env).values()
    }
    return find_wording(prompts, names)


def _env(questions: TaskQuestions, environments: Sequence[str]) -> str:
    """The environment of a task; '' if no requested one is suitable."""
    fitting = questions.environments
    if not environments:
        return fitting[0] if fitting else "wikipedia"
    return next((name for name in environments if not fitting or name in fitting), "")


def _why_not(
    request: ExperimentRequest[WorkspaceFolder],
    cell: GridCell,
    environments: Sequence[str],
    protocol: str,
) -> str:
    """The reason why a cell is impossible, or ''."""
    traits = WORKFLOWS.entry(cell.system.workflow).traits
    if traits.get("needs_env") and not cell.env:
        return f"it takes the environment {' or '.join(cell.questions.environments)}, not {', '.join(environments)}"
    if traits.get("needs_python") and not request.allow_python:
        return "it runs programs that the model writes, which is not allowed here"
    backend = request.workspace.llm(cell.system.llm).backend
    if traits.get("calls") and protocol == "native" and backend == READER:
        return "it needs a model with function calls of its own (protocol=native)"
    return ""
