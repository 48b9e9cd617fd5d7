"""``score``: score a file of predictions, or add metrics and judges to a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.cli.arguments import read_budget, split_list
from rallebench.cli.flags import MAX_USD, flag
from rallebench.cli.printing import follow
from rallebench.cli.run import blocks
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.report import RunReport
from rallebench.core.tables import Column, Table
from rallebench.render.numbers import text
from rallebench.services.exchange import score_predictions
from rallebench.views.run_views import finished_run

KILT, RANK_KEYS, KS = "kilt", "wikipedia_id", "1,5,10,20"


@VERBS.register(
    "score",
    about="score a file of predictions, or a run by further metrics and judges",
    example="rallebench score --suite kilt --gold gold.jsonl --guess output_reduced.jsonl",
    order=7,
    flags=(
        flag(
            "--gold",
            "FILE",
            "the questions with their answers; rgb's rows have them, too",
            type=Path,
        ),
        flag("--guess", "FILE", "predictions to score", type=Path),
        flag("--run", "RUN", "a run of this workspace, to be scored again"),
        flag("--metrics", "M,…", "of a run: further metrics and judges, as in truthfulness:MODEL"),
        MAX_USD,
        flag(
            "--suite",
            "NAME",
            f"whose form the predictions have: {KILT} (default), rgb …",
            default=KILT,
        ),
        flag("--rank-keys", "KEY,…", f"of {KILT}", default=RANK_KEYS),
        flag("--ks", "K,…", f"of {KILT}", default=KS),
    ),
)
def score(args: argparse.Namespace) -> Result:
    """Score predictions in the suite's own format, or return the report of the run."""
    budget = read_budget(args)
    if args.run:
        if args.guess or args.gold:
            raise UsageError("--run scores a run's own answers; leave --guess and --gold out.")
        workbench = open_workbench(args)
        metrics = split_list(args.metrics) or ()
        result = follow(workbench.runs.rescore(args.run, metrics, budget))
        value = (result.report or RunReport()).to_json()
        return Result(value, blocks(finished_run(workbench.workspace, result)), result.failure)
    if budget is not None:
        raise UsageError("--max-usd goes with --run: only judges of a run cost something.")
    if args.metrics or args.guess is None:
        raise UsageError("Name the predictions with --guess FILE, or a run with --run RUN.")
    if args.suite != KILT:
        for name, value, default in (
            ("--rank-keys", args.rank_keys, RANK_KEYS),
            ("--ks", args.ks, KS),
        ):
            if value != default:
                raise UsageError(f"{name} goes with --suite {KILT}; {args.suite} does not rank.")
        return _scores(score_predictions(args.suite, args.guess, args.gold))
    try:
        ks = [int(k) for k in args.ks.split(",")]
    except ValueError:
        raise UsageError(f"--ks {args.ks!r} should be whole numbers, as in 1,5,10,20.") from None
    rank_keys = args.rank_keys.split(",")
    return _scores(
        score_predictions(KILT, args.guess, args.gold, {"ks": ks, "rank_keys": rank_keys})
    )


def _scores(value: Mapping[str, Any]) -> Result:
    """Return the suite's own JSON; the printed form has one row per number, labelled by its path in the JSON."""
    rows = tuple(_numbers("", value))
    return Result(value, (Table("", (Column("metric"), Column("value")), rows),))


def _numbers(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(f"{path}.{key}".lstrip("."), inner)
    elif isinstance(value, list):
        yield path, f"{len(value):,} entries (see --json)"
    else:
        yield path, value if isinstance(value, str) else text(value, absent="not scored")
