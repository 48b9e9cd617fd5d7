"""Parse command-line arguments into values: parts of a dataset, agents, plans, settings, output files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import follow
from rallebench.cli.verbs import Result
from rallebench.core.deciding import StoppingRule
from rallebench.core.errors import UsageError
from rallebench.core.experiments import PILOT_QUESTIONS
from rallebench.core.gating import check_limits
from rallebench.core.hub_names import is_hub_name
from rallebench.core.repeats import ONCE, RepeatOptions, repeat_options
from rallebench.core.runs import DEFAULT_OPTIONS, RunOptions
from rallebench.core.spending_limit import SpendingLimit, spending_limit
from rallebench.core.text import split_names
from rallebench.render.experiments import plan_blocks
from rallebench.services import experiment_jobs
from rallebench.services.experiments import Experiments, WorkspaceRequest

PLAN = (
    switch("--plan", "say what it would run and cost; runs nothing but the probe"),
    flag(
        "--probe",
        "N",
        f"with --plan: questions a part that are really answered, to see what it costs (default {PILOT_QUESTIONS}; 0: none)",
        type=int,
    ),
)
"""Flag that prints the plan of an experiment instead of running it; see :func:`show_plan`."""


def read_source(text: str) -> Path | str:
    """Return a path, or a name of the hub as it is.

    >>> read_source("hf:squad"), read_source("a/b.csv").as_posix()
    ('hf:squad', 'a/b.csv')
    """
    return text if is_hub_name(text) else Path(text)


def names_agent(args: argparse.Namespace) -> bool:
    """Return whether the flags name an agent rather than a chain. Raises UsageError for both or neither."""
    if args.workflow:
        if args.chain:
            raise UsageError("--chain and --workflow exclude each other; give one of them.")
        return True
    if not args.chain:
        raise UsageError("Name a chain with --chain, or an agent with --workflow and --env.")
    if args.env or args.allow_python or args.mcp_servers:
        raise UsageError(
            "--env, --allow-python and --mcp-servers belong to a --workflow; leave them out for a chain."
        )
    return False


def agent_parts(args: argparse.Namespace) -> tuple[str, str, str, dict[str, str]]:
    """Return the workflow, environment, model and settings of an agent. Raises UsageError."""
    return args.workflow, args.env, args.llm or "", read_settings(args.set)


def read_part(args: argparse.Namespace) -> tuple[int | None, bool]:
    """Return the number of questions (None for all) and whether to draw them at random. Raises UsageError."""
    if args.sample is None:
        return args.limit, False
    if args.limit is not None:
        raise UsageError("--limit and --sample exclude each other; give one of them.")
    if args.sample < 1:
        raise UsageError(f"--sample is {args.sample}; it must be at least 1.")
    return args.sample, True


def read_stopping_rule(args: argparse.Namespace) -> StoppingRule | None:
    """Return the rule of ``--until-decided``, or None. Raises UsageError."""
    if not args.until_decided:
        if args.against:
            raise UsageError("--against belongs to --until-decided; add it, or compare afterwards.")
        return None
    if not args.against:
        raise UsageError(
            "--until-decided needs --against BASE, an earlier run on the same dataset."
        )
    check_limits(args.margin, args.confidence)
    return StoppingRule(args.against, args.metric, args.margin, args.confidence)


def read_budget(args: argparse.Namespace) -> SpendingLimit | None:
    """Return the spending limit of ``--max-usd``, or None. Raises UsageError."""
    return spending_limit(args.max_usd)


def read_repeats(args: argparse.Namespace) -> RepeatOptions:
    """Return the options of ``--repeats`` and ``--threshold``. Raises UsageError."""
    options = repeat_options(args.repeats, args.threshold)
    if options.thresholds and options.number == 1:
        raise UsageError("--threshold goes with --repeats: give a number of repeats above 1.")
    return options


def read_run_options(args: argparse.Namespace) -> RunOptions:
    """Return the options of a run, or of each run of an experiment, as far as the verb has flags for them. Raises
    UsageError.
    """
    values = vars(args)
    size = values.get("batch_size")
    return RunOptions(
        DEFAULT_OPTIONS.batch_size if size is None else size,
        values.get("max_errors"),
        track=not values.get("no_mlflow", False),
        budget=read_budget(args),
        repeats=read_repeats(args) if "repeats" in values else ONCE,
        until=read_stopping_rule(args) if "until_decided" in values else None,
    )


def show_plan(
    experiments: Experiments, request: WorkspaceRequest, args: argparse.Namespace
) -> Result | None:
    """Return the plan of an experiment, or None without ``--plan``. Verbs that take ``--probe`` add the expected
    costs. Raises UsageError.
    """
    probe = getattr(args, "probe", None)
    if not args.plan:
        if probe is not None:
            raise UsageError("--probe goes with --plan; without it everything is run.")
        return None
    repeats = read_repeats(args).number if hasattr(args, "repeats") else 1
    if not hasattr(args, "probe"):
        plan = experiments.plan(request, repeats)
        return Result(experiment_jobs.plan_json(plan), plan_blocks(plan))
    questions = PILOT_QUESTIONS if probe is None else probe
    if questions < 0:
        raise UsageError(
            f"--probe is {questions}; it must be 0 for none, or a number of questions."
        )
    plan = follow(
        experiment_jobs.plan_with_costs(
            experiments,
            request,
            questions=questions,
            batch_size=args.batch_size,
            repeats=repeats,
        )
    )
    return Result(experiment_jobs.plan_json(plan, probe=True), plan_blocks(plan))


def read_settings(pairs: Iterable[str]) -> dict[str, str]:
    """Return the values of ``--set`` as text; each setting converts its own value. Raises UsageError."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair!r} is not key=value.")
        values[key.strip()] = value
    return values


def split_list(text: str | None) -> tuple[str, ...] | None:
    """Split a list at its commas, except inside brackets; None stays None."""
    return tuple(split_names(text)) if text else None


def check_out(
    file: Path, own_folders: Iterable[Path], *, name: str = "--out", source: Path | None = None
) -> Path:
    """Check an output file before any work is done. Raises UsageError if it cannot be written.

    ``source``: the input file, which is never overwritten. Files in the workspace's ``own_folders`` are not
    overwritten either.
    """
    if file.is_dir():
        raise UsageError(f"{name} {file} is a folder; name a file in it.")
    if file.exists():
        if not file.is_file():  # writing would replace a device by a file
            raise UsageError(f"{name} {file} is not a plain file; name a file to write.")
        if source is not None and os.path.samefile(file, source):
            raise UsageError(f"{name} {file} is the file that is read; name another.")
        if any(folder in file.resolve().parents for folder in own_folders):
            raise UsageError(
                f"{name} {file} belongs to the workspace and would be lost; name another file."
            )
    return file
