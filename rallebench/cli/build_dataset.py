"""``build-dataset``: build a dataset from articles or an index, stage by stage."""

from __future__ import annotations

import argparse
from dataclasses import replace

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag
from rallebench.cli.printing import follow, stage_text
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import BuilderReport
from rallebench.render import experiments
from rallebench.services import builders
from rallebench.views import catalog

KEYS = ("name", "maker", "folder", "files", "counts", "notes")


@VERBS.register(
    "build-dataset",
    about="make questions of your own articles, stage by stage",
    example="rallebench build-dataset barag --articles news.jsonl --name news-qa --llm my-llm --set after=2023-01-01",
    order=6.6,
    flags=(
        flag("maker", "MAKER", "without it: all makers with their settings", nargs="?"),
        flag(
            "--articles",
            "PATH",
            "a folder of documents (.txt, .md, .html, .pdf, .docx …), a JSON-lines list, a corpus by name or file, or a MediaWiki dump (.xml, .xml.bz2)",
            default="",
        ),
        flag("--name", "N", "the dataset's; the same name again continues", default=""),
        flag("--llm", "L", "who writes and judges", default=""),
        flag("--limit", "N", "at most N articles", type=int),
        *arguments.PLAN,
        flag("--batch-size", "B", type=int, default=20),
        flag("--max-errors", "N", "stop after so many requests that failed", type=int),
        flags.MAX_USD,
        flags.settings("a setting of the maker, as in after=2023-01-01 or questions=3"),
    ),
)
def build_dataset(args: argparse.Namespace) -> Result:
    """Build the files, the dataset first; return the counts of every stage and the reasons for dropped rows."""
    if not args.maker:
        makers = catalog.registry_entries("builders")
        return Result({"makers": [item.to_json() for item in makers]}, (experiments.forms(makers),))
    settings = arguments.read_settings(args.set)
    if not args.name:
        raise UsageError("The dataset needs a name: --name N; its stages are kept under it.")
    workbench = open_workbench(args)
    request = builders.builder_request(
        workbench.workspace, args.maker, args.name, settings, args.articles, args.llm, args.limit
    )
    if plan := arguments.show_plan(workbench.experiments, request, args):
        return plan
    options = replace(arguments.read_run_options(args), track=False)
    report = follow(workbench.experiments.run(request, options)).stored
    assert isinstance(report, BuilderReport)
    document = report.to_json()
    return Result({key: document[key] for key in KEYS}, ("\n".join(_lines(report)),))


def _lines(report: BuilderReport) -> list[str]:
    wide = max(map(len, report.stages), default=0)
    lines = [f"{report.name} ({report.maker}), stages in {report.folder}"]
    lines += [f"{label:<{wide}}  {stage_text(counts)}" for label, counts in report.stages.items()]
    # Some builders, such as RGB's, write only records and no dataset.
    has_dataset = report.questions or "records" not in report.counts
    counts = {**({"questions": report.questions} if has_dataset else {}), **report.counts}
    lines += [f"{key.replace('_', ' ')}: {count}" for key, count in counts.items()]
    return [*lines, *(f"Note: {note}" for note in report.notes), *report.files]
