"""``import``: bring a corpus, a question set, scholars or another program's predictions into the workspace."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rallebench.analysis.agents import logs
from rallebench.analysis.predictions import READERS, import_run
from rallebench.cli.verbs import VERBS, Paced, say, workbench_of
from rallebench.core.errors import UsageError
from rallebench.corpora import CORPORA
from rallebench.corpora.imported import Corpus, ImportProgress
from rallebench.datasets import DATASETS
from rallebench.datasets.r_eval import ids_that_hold
from rallebench.datasets.tasks import SEED
from rallebench.services.workbench import Workbench
from rallebench.workspace.environments import import_scholars


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, metavar="FILE", help="a file, or a folder of documents or tables"
    )
    parser.add_argument(
        "--kind", choices=("corpus", "dataset", "predictions", "scholars"), required=True
    )
    parser.add_argument("--name", required=True, metavar="N")
    parser.add_argument(
        "--format",
        default="",
        metavar="F",
        help=f"corpus: {', '.join(CORPORA.names())}; dataset: {', '.join(DATASETS.names())}; "
        f"predictions: {', '.join(READERS)}, {logs.FORM} (R-Eval's logs) (default: recognised)",
    )
    parser.add_argument(
        "--page-map",
        type=Path,
        metavar="FILE",
        help="passage id → page id: JSON, JSON lines or TSV",
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave bad rows out and count them")
    parser.add_argument(
        "--sample",
        type=int,
        metavar="N",
        help="dataset: so many questions drawn at random (default: all)",
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help=f"of --sample (default: {SEED}, as R-Eval)"
    )
    parser.add_argument(
        "--dataset", default="", metavar="D", help="predictions: the question set that they answer"
    )
    parser.add_argument(
        "--system",
        default="",
        metavar="WORKFLOW:MODEL",
        help=f"of {logs.FORM}: whose log it is; default: as its folder is named",
    )


def _plain(value: dict[str, Any]) -> str:
    problems = [f"  {problem['message']}" for problem in value["problems"]]
    return "\n".join(
        [f"{value['name']}: {value['rows']} rows, {value['skipped']} skipped", *problems]
    )


@VERBS.register(
    "import",
    about="bring a corpus, questions or predictions into the workspace",
    example="rallebench import wiki.tsv --kind corpus --name wiki --page-map pages.json",
    order=2,
    flags=_flags,
    plain=_plain,
)
def import_(args: argparse.Namespace) -> dict[str, Any]:
    """Name, rows and skipped rows of what was imported."""
    workbench = workbench_of(args)
    if args.sample is not None and (args.sample < 1 or args.kind != "dataset"):
        raise UsageError(
            "--sample takes a number of questions, at least 1, and belongs to --kind dataset."
        )
    if args.kind == "scholars":
        return _scholars(args, workbench)
    if args.kind != "predictions" and (args.dataset or args.system):
        raise UsageError(
            f"--dataset and --system belong to --kind predictions; leave them out for a {args.kind}."
        )
    if args.kind == "dataset":
        if args.page_map:
            raise UsageError("A question set has no --page-map; its records name their pages.")
        made = workbench.import_dataset(
            args.name,
            args.source,
            form=args.format,
            skip_bad=args.skip_bad,
            sample=args.sample or 0,
            seed=args.seed,
        )
        problems = [problem._asdict() for problem in made.problems]
        if made.form.startswith("r-eval"):
            held, rows = ids_that_hold(args.source)
            say(f"The _id of {held} of {rows} records is the sha256 that R-Eval gives them.")
        return {
            "name": made.name,
            "rows": made.questions,
            "skipped": made.skipped,
            "problems": problems,
        }
    if args.kind == "predictions":
        return _predictions(args, workbench)
    progress = workbench.import_corpus(
        args.name, args.source, form=args.format, page_map=args.page_map, skip_bad=args.skip_bad
    )
    corpus = _told(progress)
    if corpus.passages_without_page:
        say(f"Warning: {corpus.passages_without_page} of {corpus.passages} passages have no page.")
    bad = [problem.model_dump() for problem in corpus.problems]
    return {
        "name": corpus.name,
        "rows": corpus.passages,
        "skipped": corpus.skipped,
        "problems": bad,
    }


def _scholars(args: argparse.Namespace, workbench: Workbench) -> dict[str, Any]:
    """A scholar table of that name; ``rows`` counts scholars, publications and coauthor relations."""
    if args.page_map or args.format or args.dataset or args.system:
        raise UsageError(
            "A scholar table has no --page-map, --format, --dataset or --system; its columns say what it holds."
        )
    made = import_scholars(workbench.workspace, args.name, args.source, skip_bad=args.skip_bad)
    counts = {
        "scholars": made.scholars,
        "publications": made.publications,
        "coauthors": made.coauthors,
    }
    problems = [problem._asdict() for problem in made.problems]
    return {
        "name": made.name,
        "rows": sum(counts.values()),
        **counts,
        "skipped": made.skipped,
        "problems": problems,
    }


def _predictions(args: argparse.Namespace, workbench: Workbench) -> dict[str, Any]:
    """A run of that name, scored."""
    if args.page_map:
        raise UsageError("Predictions have no --page-map; they name the pages themselves.")
    if args.format == logs.FORM or (not args.format and logs.recognises(args.source)):
        return _log(args, workbench)
    if args.system:
        raise UsageError(f"--system goes with R-Eval's logs (--format {logs.FORM}).")
    if not args.dataset:
        raise UsageError("Predictions answer a question set; name it with --dataset.")
    source = args.source
    run = import_run(
        workbench.workspace,
        source,
        args.dataset,
        args.name,
        form=args.format,
        skip_bad=args.skip_bad,
    )
    report = run.report() or {}
    without = report["n_errors"]
    if without:
        say(
            f"Warning: {without} of {report['n']} questions have no prediction; they count as failed."
        )
    return {"name": run.name, "rows": report["n"] - without, "skipped": without, "problems": []}


def _log(args: argparse.Namespace, workbench: Workbench) -> dict[str, Any]:
    """A log of R-Eval as a run of that name."""
    workflow, _, llm = args.system.partition(":")
    run = logs.import_log(
        workbench.workspace,
        args.source,
        args.name,
        workflow=workflow,
        llm=llm,
        dataset=args.dataset,
    )
    return {"name": run.name, "rows": len(run.records()), "skipped": 0, "problems": []}


def _told(progress: Iterator[ImportProgress | Corpus]) -> Corpus:
    told = Paced(later=True)
    for news in progress:
        if isinstance(news, Corpus):
            return news
        left = "" if news.seconds_left is None else f", about {news.seconds_left:.0f} s left"
        told.say(f"{news.passages} passages, {news.fraction:.0%} ({news.rate:.0f}/s{left})")
    raise AssertionError("an import ends with its corpus")
