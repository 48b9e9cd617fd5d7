"""``track``: log a finished run or experiment to MLflow."""

from __future__ import annotations

import argparse

from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import NotFoundError
from rallebench.services import exchange
from rallebench.services.experiments import TRACKABLE


@VERBS.register(
    "track",
    about="send a finished run, a sweep or a suite to MLflow",
    example="rallebench track my-run",
    order=9,
    flags=(
        flag("run", "RUN", "a run, or a sweep or a suite: its runs and the run above them"),
        flag("--kind", help="which one, where several have this name", choices=TRACKABLE),
        switch("--model", "log the run's chain as a model, too"),
        flag("--tracking-uri", "URI"),
    ),
)
def track(args: argparse.Namespace) -> Result:
    """Log a run or experiment and return its MLflow ids. If several share a name, ``--kind`` selects one; by default
    the first is logged.
    """
    workbench = open_workbench(args)
    kinds = workbench.experiments.kinds_named(args.run)
    if args.kind and args.kind not in kinds:
        raise NotFoundError(
            f"There is no {args.kind} {args.run!r}; leave --kind out to send what has this name."
        )
    if len(kinds) > 1 and not args.kind:
        names = " and ".join(f"a {kind}" for kind in kinds)
        say(
            f"{args.run!r} is the name of {names}: the {kinds[0]} is sent; --kind {' or '.join(kinds[1:])} sends the other."
        )
    kind = args.kind or next(iter(kinds), "run")
    value = exchange.track(
        workbench.workspace, workbench.tracking, args.run, kind, model=args.model
    )
    document = value.to_json()
    lines = (f"{key.replace('_', ' ')}: {text}" for key, text in document.items())
    return Result(document, tuple(lines))
