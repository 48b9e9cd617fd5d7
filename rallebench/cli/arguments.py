"""Arguments of the command line as the values that verbs take: a part of a dataset, an agent, a plan, settings, a file to write."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import follow
from rallebench.cli.verbs import Result
from rallebench.core.errors import UsageError
from rallebench.core.experiments import PILOT_QUESTIONS, ExperimentRequest
from rallebench.core.spending_limit import SpendingLimit
from rallebench.core.text import split_names
from rallebench.render.experiments import plan_blocks
from rallebench.services import experiment_jobs
from rallebench.services.experiments import Experiments

PLAN = (
    switch("--plan", "say what it would run and cost; runs nothing but the probe"),
    flag(
        "--probe",
        "N",
        f"with --plan: questions a part that are really answered, to see what it costs (default {PILOT_QUESTIONS}; 0: none)",
        type=int,
    ),
)
"""The plan of an experiment in place of the experiment; see :func:`show_plan`."""


def names_agent(args: argparse.Namespace) -> bool:
    """Return whether the flags name an agent, not a chain. Raises UsageError for both, or neither."""
    if args.workflow:
        if args.chain:
            raise UsageError("--chain and --workflow exclude each other; give one of them.")
        return True
    if not args.chain:
        raise UsageError("Name a chain with --chain, or an agent with --workflow and --env.")
    if args.env or args.allow_python:
        raise UsageError(
            "--env and --allow-python belong to a --workflow; leave them out for a chain."
        )
    return False


def agent_parts(args: argparse.Namespace) -> tuple[str, str, str, dict[str, str]]:
    """The workflow, the environment, the model and the settings of an agent. Raises UsageError."""
    return args.workflow, args.env, args.llm or "", read_settings(args.set)


def read_part(args: argparse.Namespace) -> tuple[int | None, bool]:
    """(the number of questions, None for all; whether they are drawn at random). Raises UsageError."""
    if args.sample is None:
        return args.limit, False
    if args.limit is not None:
        raise UsageError("--limit and --sample exclude each other; give one of them.")
    if args.sample < 1:
        raise UsageError(f"--sample is {args.sample}; it must be at least 1.")
    return args.sample, True


def read_budget(args: argparse.Namespace) -> SpendingLimit | None:
    """The spending limit of ``--max-usd``, None without one. Raises UsageError."""
    return None if args.max_usd is None else SpendingLimit(args.max_usd)


def show_plan(
    experiments: Experiments, request: ExperimentRequest, args: argparse.Namespace
) -> Result | None:
    """The plan of an experiment, with its expected costs for a verb that takes ``--probe``; None where ``--plan`` was not
    given. Raises UsageError."""
    probe = getattr(args, "probe", None)
    if not args.plan:
        if probe is not None:
            raise UsageError("--probe goes with --plan; without it everything is run.")
        return None
    if not hasattr(args, "probe"):
        plan = experiments.plan(request)
        return Result(experiment_jobs.plan_json(plan), plan_blocks(plan))
    questions = PILOT_QUESTIONS if probe is None else probe
    if questions < 0:
        raise UsageError(
            f"--probe is {questions}; it must be 0 for none, or a number of questions."
        )
    plan = follow(
        experiment_jobs.plan_with_costs(
            experiments, request, questions=questions, batch_size=args.batch_size
        )
    )
    return Result(experiment_jobs.plan_json(plan, probe=True), plan_blocks(plan))


def read_settings(pairs: Iterable[str]) -> dict[str, str]:
    """The values of ``--set`` as text: the setting knows whether it is a number or a list. Raises UsageError."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r} is not key=value.")
        values[key.strip()] = value
    return values


def split_list(text: str | None) -> tuple[str, ...] | None:
    """The names between commas that stand in no bracket; None where the flag was not given."""
    return tuple(split_names(text)) if text else None


def check_out(
    file: Path, own_folders: Iterable[Path], *, name: str = "--out", source: Path | None = None
) -> Path:
    """A file to write. Raises UsageError for one that cannot be, before any work is done.

    ``source``: the file that is read. A file in one of the workspace's ``own_folders`` is not replaced either.
    """
    if file.is_dir():
        raise UsageError(f"{name} {file} is a folder; name a file in it.")
    if file.exists():
        if not file.is_file():  # a device would be replaced by a file
            raise UsageError(f"{name} {file} is not a plain file; name a file to write.")
        if source is not None and os.path.samefile(file, source):
            raise UsageError(f"{name} {file} is the file that is read; name another.")
        if any(folder in file.resolve().parents for folder in own_folders):
            raise UsageError(
                f"{name} {file} belongs to the workspace and would be lost; name another file."
            )
    return file
