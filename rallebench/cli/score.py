"""``score`` and ``track``: score a file of predictions, send a finished run to MLflow."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.cli.following import follow
from rallebench.cli.verbs import VERBS, say, workbench_of
from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.registry import unknown
from rallebench.experiments.sweeps.results import as_json, opened
from rallebench.services.grouping import group_of
from rallebench.services.mlflow_model import log_chain
from rallebench.services.workbench import KINDS, Workbench

KILT, RANK_KEYS, KS = "kilt", "wikipedia_id", "1,5,10,20"


def _score_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gold",
        type=Path,
        metavar="FILE",
        help="the questions with their answers; rgb's rows have them, too",
    )
    parser.add_argument("--guess", type=Path, metavar="FILE", help="predictions to score")
    parser.add_argument("--run", metavar="RUN", help="a run of this workspace, to be scored again")
    parser.add_argument(
        "--metrics",
        metavar="M,…",
        help="of a run: further metrics and judges, as in truthfulness:MODEL",
    )
    parser.add_argument(
        "--suite",
        default=KILT,
        metavar="NAME",
        help=f"whose form the predictions have: {KILT} (default), rgb …",
    )
    parser.add_argument("--rank-keys", default=RANK_KEYS, metavar="KEY,…", help=f"of {KILT}")
    parser.add_argument("--ks", default=KS, metavar="K,…", help=f"of {KILT}")


@VERBS.register(
    "score",
    about="score a file of predictions, or a run by further metrics and judges",
    example="rallebench score --suite kilt --gold gold.jsonl --guess output_reduced.jsonl",
    order=7,
    flags=_score_flags,
)
def score(args: argparse.Namespace) -> dict[str, Any]:
    """Score a file of predictions, or a stored run by further metrics and judges."""
    if args.run:
        return _score_run(args)
    if args.metrics or args.guess is None:
        raise UsageError("Name the predictions with --guess FILE, or a run with --run RUN.")
    if args.suite != KILT:
        return _score_form(args)
    from rallebench.metrics.kilt_file import score_files

    if args.gold is None:
        raise UsageError(
            "The questions with their answers are missing; name their file with --gold."
        )
    try:
        ks = tuple(int(k) for k in args.ks.split(","))
    except ValueError:
        raise UsageError(f"--ks {args.ks!r} should be whole numbers, as in 1,5,10,20.") from None
    return score_files(args.gold, args.guess, ks=ks, rank_keys=tuple(args.rank_keys.split(",")))


def _score_run(args: argparse.Namespace) -> dict[str, Any]:
    """The run's report, scored by what it was scored by and by ``--metrics``."""
    if args.guess or args.gold:
        raise UsageError("--run scores a run's own answers; leave --guess and --gold out.")
    workbench = workbench_of(args)
    names = [name.strip() for name in (args.metrics or "").split(",") if name.strip()]
    result = follow(workbench, workbench.benches.rescore(args.run, names), lambda task: "")
    return dict(result.report)


def _score_form(args: argparse.Namespace) -> dict[str, Any]:
    """Predictions in the form of another benchmark."""
    from rallebench.experiments.papers import SCORERS

    if args.suite not in SCORERS:
        raise NotFoundError(unknown(SCORERS.kind, args.suite, (KILT, *SCORERS.names())))
    for flag, value, default in (("--rank-keys", args.rank_keys, RANK_KEYS), ("--ks", args.ks, KS)):
        if value != default:
            raise UsageError(f"{flag} goes with --suite {KILT}; {args.suite} does not rank.")
    return SCORERS[args.suite](args.guess, args.gold)


def _track_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", help="a run, or a sweep or a suite: its runs and the run above them"
    )
    parser.add_argument("--kind", choices=KINDS, help="which one, where several have this name")
    parser.add_argument("--model", action="store_true", help="log the run's chain as a model, too")
    parser.add_argument("--tracking-uri", metavar="URI")


@VERBS.register(
    "track",
    about="send a finished run, a sweep or a suite to MLflow",
    example="rallebench track my-run",
    order=9,
    flags=_track_flags,
)
def track(args: argparse.Namespace) -> dict[str, Any]:
    """Send a finished run, or the runs of a sweep, to MLflow; with ``--model`` its chain as a model, too."""
    workbench = workbench_of(args)
    kind = _kind_of(workbench, args)
    if kind == "sweep":
        return _track_sweep(workbench, args)
    if kind == "suite":
        return _track_suite(workbench, args)
    folder = workbench.open_run(args.run)
    value = {"run": args.run, "mlflow_run_id": workbench.log_run(folder)}
    if args.model:
        value["mlflow_model"] = log_chain(workbench, folder, value["mlflow_run_id"])
    return value


def _kind_of(workbench: Workbench, args: argparse.Namespace) -> str:
    """What the name is one of; ``run`` where there is none. Of several, the one that was asked for, or the first and a word on it."""
    have = workbench.kinds_of(args.run)
    if args.kind:
        if args.kind not in have:
            raise NotFoundError(
                f"There is no {args.kind} {args.run!r}; leave --kind out to send what has this name."
            )
        return str(args.kind)
    if len(have) > 1:
        said = " and ".join(f"a {one}" for one in have)
        say(
            f"{args.run!r} is the name of {said}: the {have[0]} is sent; --kind {' or '.join(have[1:])} sends the other."
        )
    return next(iter(have), "run")


def _track_suite(workbench: Workbench, args: argparse.Namespace) -> dict[str, Any]:
    if args.model:
        raise UsageError(f"{args.run!r} is a suite; give --model with one of its runs.")
    report = workbench.experiments.open_suite(args.run).report
    if not report or not report["parts"]:
        raise UsageError(
            f"The suite run {args.run!r} has not ended yet; run it again under its name, then send it."
        )
    runs = {
        part["run"]: workbench.log_run(workbench.open_run(part["run"])) for part in report["parts"]
    }
    return {
        "suite": args.run,
        "mlflow_run_id": workbench.log_group(_group(workbench, report, "suite")),
        "runs": runs,
    }


def _track_sweep(workbench: Workbench, args: argparse.Namespace) -> dict[str, Any]:
    if args.model:
        raise UsageError(f"{args.run!r} is a sweep; give --model with one of its runs.")
    found = opened(workbench.workspace, args.run)
    if not found.runs:
        raise UsageError(
            f"No variant of the sweep {args.run!r} has ended yet, so there is nothing to send."
        )
    runs = {name: workbench.log_run(workbench.open_run(name)) for name in found.runs}
    parent = workbench.log_group(_group(workbench, as_json(found), "sweep"))
    return {"sweep": args.run, "mlflow_run_id": parent, "runs": runs}


def _group(workbench: Workbench, report: Mapping[str, Any], kind: str) -> Any:
    group = group_of(workbench.workspace, report, kind)
    assert group is not None  # it has runs
    return group
