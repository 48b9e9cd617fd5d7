"""``import``: import a corpus, a dataset, scholars or predictions into the workspace."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag, switch
from rallebench.cli.printing import Paced, drain, say
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.columns import parse_columns
from rallebench.core.errors import UsageError
from rallebench.core.hub_names import FORM, is_hub_name
from rallebench.services import counted_imports, exchange
from rallebench.services.counted_imports import ImportedCounts
from rallebench.services.workbench import Workbench
from rallebench.views import catalog, library

LOG, SEED = catalog.names("prediction formats")[-1], 42
FORMATS = (
    f"corpus: {', '.join(catalog.names('corpora'))}; dataset: {', '.join(catalog.names('datasets'))}; "
    f"predictions: {', '.join(catalog.names('prediction formats'))} (R-Eval's logs) (default: recognised)"
)


@VERBS.register(
    "import",
    about="bring a corpus, questions or predictions into the workspace",
    example="rallebench import wiki.tsv --kind corpus --name wiki --page-map pages.json",
    order=2,
    flags=(
        flag(
            "source",
            "FILE|hf:NAME",
            f"a file, a folder of documents or tables, or a dataset of the Hugging Face hub: {FORM}",
            type=arguments.read_source,
        ),
        flag("--kind", choices=("corpus", "dataset", "predictions", "scholars"), required=True),
        flag("--name", "N", required=True),
        flag("--format", "F", FORMATS, default=""),
        flags.COLUMNS,
        flag(
            "--page-map",
            "FILE",
            "passage id → page id: JSON, JSON lines, TSV or RaLLe's pickle",
            type=Path,
        ),
        flag(
            "--encoding",
            "E",
            "corpus, dataset: the encoding of the text, such as gb18030 or cp1252 (default: detected)",
            default="",
        ),
        switch("--skip-bad", "leave bad rows out and count them"),
        flag(
            "--sample", "N", "dataset: so many questions drawn at random (default: all)", type=int
        ),
        flag("--seed", help=f"of --sample (default: {SEED}, as R-Eval)", type=int, default=SEED),
        flag("--dataset", "D", "predictions: the dataset that they answer", default=""),
        flag(
            "--system",
            "WORKFLOW:MODEL",
            f"of {LOG}: whose log it is; default: as its folder is named",
            default="",
        ),
    ),
)
def import_(args: argparse.Namespace) -> Result:
    """Import a file; return the new name and the numbers of imported and skipped rows."""
    if args.sample is not None and (args.sample < 1 or args.kind != "dataset"):
        raise UsageError(
            "--sample takes a number of questions, at least 1, and belongs to --kind dataset."
        )
    if args.kind in ("corpus", "dataset") and (args.dataset or args.system):
        raise UsageError(
            f"--dataset and --system belong to --kind predictions; leave them out for a {args.kind}."
        )
    if is_hub_name(args.source) and args.kind not in ("corpus", "dataset"):
        raise UsageError(f"A name of the hub is a corpus or a dataset; give a file of {args.kind}.")
    for name in ("encoding", "columns"):
        if getattr(args, name) and args.kind not in ("corpus", "dataset"):
            raise UsageError(
                f"--{name} belongs to --kind corpus and dataset; leave it out for {args.kind}."
            )
    value = IMPORTS[args.kind](open_workbench(args), args)
    problems = tuple(f"  {problem.message}" for problem in value.problems)
    counts = f"{value.name}: {value.rows} rows, {value.skipped} skipped"
    if gold := value.gold:
        counts += f"; {gold.sentence}"
    warnings = (f"Warning: {sentence}" for sentence in value.warnings or ())
    return Result(value.to_json(), (counts, *problems, *warnings, *(value.notes or ())))


def _corpus(workbench: Workbench, args: argparse.Namespace) -> ImportedCounts:
    progress = counted_imports.import_corpus(
        workbench.data,
        args.name,
        args.source,
        form=args.format,
        columns=parse_columns(args.columns),
        page_map=args.page_map,
        skip_bad=args.skip_bad,
        encoding=args.encoding,
    )
    value: ImportedCounts = drain(progress, Paced(later=True))
    if sentence := library.about_lengths(workbench.workspace, args.name):
        say(sentence)
    return value


def _dataset(workbench: Workbench, args: argparse.Namespace) -> ImportedCounts:
    if args.page_map:
        raise UsageError("A dataset has no --page-map; its records name their pages.")
    progress = counted_imports.import_dataset(
        workbench.data,
        args.name,
        args.source,
        form=args.format,
        columns=parse_columns(args.columns),
        skip_bad=args.skip_bad,
        sample=args.sample or 0,
        seed=args.seed,
        encoding=args.encoding,
    )
    value: ImportedCounts = drain(progress, Paced(later=True))
    return value


def _scholars(workbench: Workbench, args: argparse.Namespace) -> ImportedCounts:
    if args.page_map or args.format or args.dataset or args.system:
        raise UsageError(
            "A scholar table has no --page-map, --format, --dataset or --system; its columns say what it holds."
        )
    return counted_imports.import_scholar_table(
        workbench.workspace, args.name, args.source, skip_bad=args.skip_bad
    )


def _predictions(workbench: Workbench, args: argparse.Namespace) -> ImportedCounts:
    if args.page_map:
        raise UsageError("Predictions have no --page-map; they name the pages themselves.")
    value, warning = exchange.import_predictions(
        workbench.workspace,
        args.name,
        args.source,
        args.dataset,
        form=args.format,
        system=args.system,
        skip_bad=args.skip_bad,
    )
    if warning:
        say(f"Warning: {warning}")
    return value


IMPORTS = {
    "corpus": _corpus,
    "dataset": _dataset,
    "predictions": _predictions,
    "scholars": _scholars,
}
