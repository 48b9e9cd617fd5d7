"""``score`` and ``track``: score a file of predictions, send a finished run to MLflow."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rallebench.errors import UsageError
from rallebench.verbs import VERBS, workbench_of


def _score_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gold", type=Path, required=True, metavar="FILE")
    parser.add_argument("--guess", type=Path, required=True, metavar="FILE")
    parser.add_argument("--suite", choices=("kilt",), default="kilt")
    parser.add_argument("--rank-keys", default="wikipedia_id", metavar="KEY,…")
    parser.add_argument("--ks", default="1,5,10,20", metavar="K,…")


@VERBS.register(
    "score",
    about="score a file of predictions",
    example="rallebench score --suite kilt --gold gold.jsonl --guess output_reduced.jsonl",
    order=7,
    flags=_score_flags,
)
def score(args: argparse.Namespace) -> dict[str, Any]:
    """Score a file of predictions."""
    from rallebench.kilt_score import score_files

    try:
        ks = tuple(int(k) for k in args.ks.split(","))
    except ValueError:
        raise UsageError(f"--ks {args.ks!r} should be whole numbers, as in 1,5,10,20.") from None
    return score_files(args.gold, args.guess, ks=ks, rank_keys=tuple(args.rank_keys.split(",")))


def _track_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--tracking-uri", metavar="URI")


@VERBS.register(
    "track",
    about="send a finished run to MLflow",
    example="rallebench track my-run",
    order=9,
    flags=_track_flags,
)
def track(args: argparse.Namespace) -> dict[str, Any]:
    """Send a finished run to MLflow."""
    from rallebench.tracking.mlflow import log_run

    workbench = workbench_of(args)
    folder = workbench.open_run(args.run)
    return {
        "run": args.run,
        "mlflow_run_id": log_run(
            folder.path, workspace=workbench.workspace.path, tracking_uri=args.tracking_uri
        ),
    }
