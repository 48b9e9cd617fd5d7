"""The parts of a workflow's prompt (actions, functions, demonstrations), and the file of demonstrations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.types import Json, ToolSpec
from rallebench.environments import Environment
from rallebench.workflows import Shot, ShotStep

FINISH = "Finish"
FORMAT = "rallebench-shots/1"


def actions(env: Environment) -> str:
    """List the actions of an environment, one numbered line each; Finish is the last."""
    left, right = tuple(env.brackets)
    rows = [(tool.name, ", ".join(tool.arguments), _about(env, tool)) for tool in env.tools]
    rows.append((FINISH, "answer", "Returns the answer and finishes the task."))
    return "\n".join(
        f"({number}) {name}{left}{names}{right}: {about}"
        for number, (name, names, about) in enumerate(rows, 1)
    )


def functions(env: Environment) -> str:
    """List the tools of an environment as Python functions, one line each."""
    return "\n".join(
        f"{tool.name}({', '.join(tool.arguments)})  # {_about(env, tool)}" for tool in env.tools
    )


def _about(env: Environment, tool: ToolSpec) -> str:
    arguments = getattr(env, "explanations", {}).get(tool.name)
    return f"{tool.description.removesuffix('.')}. {arguments}" if arguments else tool.description


def episode(shot: Shot, brackets: str, *, thought: bool, plan: bool) -> str:
    """Format a demonstration as a scratchpad."""
    left, right = tuple(brackets)
    lines = [f"Question: {shot.question}"] + ([f"Plan: {shot.plan}"] if plan else [])
    for number, step in enumerate(shot.steps, 1):
        if thought:
            lines.append(f"Thought {number}: {step.thought}")
        lines.append(f"Action {number}: {step.name}{left}{step.argument}{right}")
        if step.observation:
            lines.append(f"Observation {number}: {step.observation}")
    return "\n".join(lines)


def read_shots(path: Path) -> tuple[Shot, ...]:
    """Read demonstrations from a file. Raises BadFileError with the number of the bad demonstration."""
    value = read_json(path)
    rows = value.get("shots") if isinstance(value, dict) and value.get("format") == FORMAT else None
    if not isinstance(rows, list):
        raise BadFileError(
            f'{path} is not a file of demonstrations; it holds {{"format": "{FORMAT}", "shots": [{{"question": …}}]}}.'
        )
    shots = []
    for number, row in enumerate(rows, 1):
        try:
            shots.append(_shot(row))
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise BadFileError(
                f"{path}, demonstration {number}: {type(error).__name__}: {error}; it needs question, answer and steps."
            ) from None
    return tuple(shots)


def _shot(row: Mapping[str, Any]) -> Shot:
    answer = str(row["answer"])
    steps = [_step(step, answer) for step in row.get("steps", ())]
    if steps and steps[-1].name != FINISH:
        raise ValueError(f"its last step is {steps[-1].name}, not {FINISH}")
    program = row.get("program", "")
    program = "\n".join(program) if isinstance(program, list) else str(program)
    plan, reasoning = (str(row.get(name, "")) for name in ("plan", "reasoning"))
    return Shot(str(row["question"]), answer, tuple(steps), plan, reasoning, program)


def _step(row: Mapping[str, Any], answer: str) -> ShotStep:
    name = str(row["name"])
    if name == FINISH:
        arguments, written = {"return_type": "give_answer", "final_answer": answer}, answer
    else:
        arguments = dict(row["arguments"])
        written = _format_arguments(arguments)
    thought, observation = (str(row.get(key, "")) for key in ("thought", "observation"))
    return ShotStep(thought, name, str(row.get("argument", written)), arguments, observation)


def _format_arguments(arguments: Json) -> str:
    """Format arguments for a text protocol: a single value alone, several as ``name="value"``."""
    if len(arguments) == 1:
        (value,) = arguments.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    values = {name: json.dumps(value, ensure_ascii=False) for name, value in arguments.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())
