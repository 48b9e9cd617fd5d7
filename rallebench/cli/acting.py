"""What ``run`` and ``ask`` share where a workflow takes a chain's place: its flags, and the agent that they name."""

from __future__ import annotations

import argparse

from rallebench.cli.verbs import written
from rallebench.core.errors import UsageError
from rallebench.environments import ENVIRONMENTS
from rallebench.services.workbench import Workbench
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.flows import Agent


def agent_flags(parser: argparse.ArgumentParser) -> None:
    """Flags that name an agent in place of a chain."""
    parser.add_argument(
        "--workflow",
        metavar="W",
        help="in place of --chain: react, pal, dfsdt …, see 'rallebench list workflows'",
    )
    parser.add_argument(
        "--env",
        default="",
        metavar="E",
        help="what the workflow acts on, see 'rallebench list environments'",
    )
    parser.add_argument(
        "--allow-python",
        action="store_true",
        help="let a workflow run programs that the model writes (docs/agents.md says what holds them)",
    )


def agent_of(workbench: Workbench, args: argparse.Namespace) -> Agent | None:
    """The agent that the flags name, None if they name a chain. Raises UsageError for both, or neither."""
    if not args.workflow:
        if not args.chain:
            raise UsageError("Name a chain with --chain, or an agent with --workflow and --env.")
        if args.env or args.allow_python:
            raise UsageError(
                "--env and --allow-python belong to a --workflow; leave them out for a chain."
            )
        return None
    if args.chain:
        raise UsageError("--chain and --workflow exclude each other; give one of them.")
    if args.env and not WORKFLOWS.entry(args.workflow).traits.get("needs_env", True):
        raise UsageError(f"The workflow {args.workflow!r} acts in no environment; leave --env out.")
    settings = written(args.set)
    if args.retriever:
        known = ENVIRONMENTS.entry(args.env).form if args.env else {}
        if "retriever" not in known:
            raise UsageError(
                f"--retriever: the workflow {args.workflow!r} on {args.env or 'nothing'!r} asks no retriever."
            )
        settings["env.retriever"] = args.retriever
    return workbench.agent(
        args.workflow, args.env, args.llm or "", settings, seed=getattr(args, "seed", 0)
    )
