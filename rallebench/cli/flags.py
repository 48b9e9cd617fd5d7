"""Flags as values: those that several verbs share, and what is read from them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.cli.printing import follow
from rallebench.cli.verbs import Result
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.text import split_names
from rallebench.render import experiments
from rallebench.services import experiment_jobs
from rallebench.services.workbench import Workbench
from rallebench.views.experiment_requests import QUESTIONS


@dataclass(frozen=True, slots=True)
class Flag:
    """An argument of ``argparse``, by one name or several."""

    names: tuple[str, ...]
    options: Mapping[str, Any]

    def add(self, parser: argparse.ArgumentParser, **options: Any) -> None:
        """Add it to a parser; ``options`` replace its own."""
        parser.add_argument(*self.names, **{**self.options, **options})


def flag(name: str, metavar: str = "", help: str | None = None, **options: Any) -> Flag:
    """A flag, or a positional argument; without ``metavar`` its values are its choices or none."""
    if metavar:
        options["metavar"] = metavar
    return Flag((name,), {"help": help, **options})


def switch(name: str, help: str | None = None) -> Flag:
    """A flag without a value."""
    return Flag((name,), {"help": help, "action": "store_true"})


def many(name: str, metavar: str, help: str | None = None, alias: str = "") -> Flag:
    """A flag that may be given several times, also by the name ``alias``."""
    options: dict[str, Any] = {"help": help, "metavar": metavar, "action": "append", "default": []}
    return Flag(tuple(filter(None, (name, alias))), options)


def settings(help: str) -> Flag:
    """``--set KEY=VALUE``, as often as needed."""
    return many("--set", "KEY=VALUE", help)


COMMON = (
    flag(
        "--workspace", "DIR", "holds indexes/, runs/, … (default: .)", type=Path, default=Path(".")
    ),
    switch("--json", "print exactly one JSON document on stdout"),
    flag("--base-settings", "DIR", "folder with RaLLe's base settings (llms.json, …)", type=Path),
)
LOOP = (
    flag("--batch-size", "B", type=int, default=20),
    flag("--max-errors", "N", type=int),
    flag("--seed", type=int, default=0),
)
"""How questions are asked."""
LIMIT = (
    flag("--limit", "N", "the first N questions of the dataset", type=int),
    flag(
        "--sample", "N", "N questions drawn by --seed; those of 30 are among those of 100", type=int
    ),
)
"""Part of a dataset; see :func:`part_of`."""
PLAN = (
    switch("--plan", "say what it would run and cost; runs nothing but the probe"),
    flag(
        "--probe",
        "N",
        f"with --plan: questions a part that are really answered, to see what it costs (default {QUESTIONS}; 0: none)",
        type=int,
    ),
)
"""The plan of an experiment in place of the experiment; see :func:`plan_of`."""
MLFLOW = (switch("--no-mlflow"), flag("--tracking-uri", "URI"))
"""Whether runs are logged, and where."""
OVERRIDES = (
    flag("--llm", "L", "use this model in every generate action"),
    flag("--retriever", "R", "use this retriever in every retrieve action"),
    settings("k=10, temperature=0.2, 2.max_tokens=32 …"),
)
"""Changes of a chain before it runs."""
AGENT = (
    flag(
        "--workflow",
        "W",
        "in place of --chain: react, pal, dfsdt …, see 'rallebench list workflows'",
    ),
    flag("--env", "E", "what the workflow acts on, see 'rallebench list environments'", default=""),
    switch(
        "--allow-python",
        "let a workflow run programs that the model writes (docs/agents.md says what holds them)",
    ),
)
"""An agent in place of a chain."""
ALLOWED_HOST = many(
    "--allowed-host",
    "HOST[:PORT]",
    "another name of this server, such as that of a proxy before it; may be given several times",
)


def agent_of(workbench: Workbench, args: argparse.Namespace) -> Any:
    """The agent that the flags name, None if they name a chain. Raises UsageError for both, or neither."""
    if args.workflow:
        if args.chain:
            raise UsageError("--chain and --workflow exclude each other; give one of them.")
        return workbench.asking.agent(
            args.workflow,
            args.env,
            args.llm or "",
            written(args.set),
            retriever=args.retriever or "",
            seed=getattr(args, "seed", 0),
        )
    if not args.chain:
        raise UsageError("Name a chain with --chain, or an agent with --workflow and --env.")
    if args.env or args.allow_python:
        raise UsageError(
            "--env and --allow-python belong to a --workflow; leave them out for a chain."
        )
    return None


def part_of(args: argparse.Namespace) -> tuple[int | None, bool]:
    """(the number of questions, None for all; whether they are drawn at random). Raises UsageError."""
    if args.sample is None:
        return args.limit, False
    if args.limit is not None:
        raise UsageError("--limit and --sample exclude each other; give one of them.")
    if args.sample < 1:
        raise UsageError(f"--sample is {args.sample}; it must be at least 1.")
    return args.sample, True


def plan_of(
    workbench: Workbench, request: ExperimentRequest, args: argparse.Namespace
) -> Result | None:
    """The plan of an experiment, with its expected costs for a verb that takes ``--probe``; None where ``--plan`` was not
    given. Raises UsageError."""
    probe = getattr(args, "probe", None)
    if not args.plan:
        if probe is not None:
            raise UsageError("--probe goes with --plan; without it everything is run.")
        return None
    if not hasattr(args, "probe"):
        value = experiment_jobs.plan_json(workbench.experiments.plan(request))
        return Result(value, experiments.plan_blocks(value))
    questions = QUESTIONS if probe is None else probe
    if questions < 0:
        raise UsageError(
            f"--probe is {questions}; it must be 0 for none, or a number of questions."
        )
    value = follow(
        experiment_jobs.plan_with_costs(
            workbench.experiments, request, questions=questions, batch_size=args.batch_size
        )
    )
    return Result(value, experiments.plan_blocks(value))


def written(pairs: Iterable[str]) -> dict[str, str]:
    """The values of ``--set`` as text: the setting knows whether it is a number or a list. Raises UsageError."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r} is not key=value.")
        values[key.strip()] = value
    return values


def listed(text: str | None) -> tuple[str, ...] | None:
    """The names between commas that stand in no bracket; None where the flag was not given."""
    return tuple(split_names(text)) if text else None


def check_out(
    file: Path, workbench: Workbench, *, flag: str = "--out", source: Path | None = None
) -> Path:
    """A file to write. Raises UsageError for one that cannot be, before any work is done.

    ``source``: the file that is read. A file of the workspace's own is not replaced either.
    """
    if file.is_dir():
        raise UsageError(f"{flag} {file} is a folder; name a file in it.")
    if file.exists():
        if not file.is_file():  # a device would be replaced by a file
            raise UsageError(f"{flag} {file} is no plain file; name a file to write.")
        if source is not None and os.path.samefile(file, source):
            raise UsageError(f"{flag} {file} is the file that is read; name another.")
        if any(folder in file.resolve().parents for folder in workbench.workspace.own_folders):
            raise UsageError(
                f"{flag} {file} belongs to the workspace and would be lost; name another file."
            )
    return file
