"""``analyse``: where a run lost its questions; runs of agents by R-Eval's aspects."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.analysis.agents.reading import read
from rallebench.analysis.agents.report import ASPECTS, Analysis, AnalysisOptions
from rallebench.analysis.agents.report import analyse as analysed
from rallebench.analysis.runs import waterfall_of
from rallebench.analysis.waterfall import STAGES, UNTRACED
from rallebench.cli.verbs import VERBS, workbench_of
from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error, write_text
from rallebench.core.tables import Table
from rallebench.render import report, text
from rallebench.services.workbench import Workbench

WATERFALL = "waterfall"


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="runs, or a suite run: all of its runs"
    )
    parser.add_argument(
        "--aspect",
        choices=(WATERFALL, *ASPECTS),
        default=WATERFALL,
        help=f"of runs of agents: {', '.join(ASPECTS)}; default: {WATERFALL}",
    )
    parser.add_argument(
        "--compat",
        choices=("corrected", "original"),
        default="corrected",
        help="original: count as R-Eval's code does",
    )
    parser.add_argument(
        "--reference",
        default="",
        metavar="SYSTEM",
        help="of normalization: 'workflow · model', or a run; default: the first",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="MODEL=B",
        help="of deployment: billions of parameters of a model",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write JSON, CSV, HTML (and LaTeX) there"
    )


def _plain(value: Mapping[str, Any]) -> str:
    if "aspect" not in value:
        return "\n\n".join(_waterfall_lines(one) for one in value["runs"])
    lines = [
        line for table in value["tables"] for line in (*text.table(Table.from_json(table)), "")
    ]
    lines += [f"Note: {note}" for note in value["notes"]]
    return "\n".join([*lines, *(f"wrote {file}" for file in value["files"])])


def _waterfall_lines(one: Mapping[str, Any]) -> str:
    if not one["tells"]:
        return f"{one['run']}: {one['n']} questions\n  {UNTRACED}"
    rows = [f"  {count:>6}  {STAGES[stage]}" for stage, count in one["waterfall"].items() if count]
    notes = ["  the corpus could not be looked at: its index is not in this workspace"] * one[
        "misses_corpus"
    ]
    if one["given"]:
        notes.append(
            f"  {one['given']} question{'s' * (one['given'] != 1)} came with passages: one that holds an answer counts as support"
        )
    if one["without_pages"]:
        notes.append(
            f"  {one['without_pages']} questions name no gold pages: a passage that holds an answer counts as support"
        )
    return "\n".join([f"{one['run']}: {one['n']} questions", *rows, *notes])


@VERBS.register(
    "analyse",
    about="say where a run lost its questions; R-Eval's analyses of agents",
    example="rallebench analyse my-run my-other-run --aspect errors --out errors",
    order=6.7,
    flags=_flags,
    plain=_plain,
)
def analyse(args: argparse.Namespace) -> dict[str, Any]:
    """The failure waterfall of runs, from the corpus to the answer, without a judge; or an aspect of runs of agents."""
    workbench = workbench_of(args)
    if args.aspect != WATERFALL:
        return _aspect(workbench, args)
    for flag, given in (
        ("--compat", args.compat == "original"),
        ("--reference", args.reference),
        ("--size", args.size),
        ("--out", args.out),
    ):
        if given:
            raise UsageError(f"{flag} goes with --aspect {', '.join(ASPECTS)}.")
    found = []
    for name in runs_of(workbench, args.runs):
        result = waterfall_of(workbench.open_run(name), workbench.workspace)
        found.append(
            {
                "run": name,
                "n": len(result.placed),
                "waterfall": result.counts(),
                "questions": {
                    stage: result.questions(stage) for stage in STAGES if result.questions(stage)
                },
                "corpus_known": result.corpus_known,
                "imported": result.imported,
                "without_pages": result.without_pages,
                "given": result.given,
                "misses_corpus": result.misses_corpus,
                "tells": result.tells,
            }
        )
    return {"runs": found}


def _aspect(workbench: Workbench, args: argparse.Namespace) -> dict[str, Any]:
    if args.reference and args.aspect != "normalization":
        raise UsageError("--reference goes with --aspect normalization.")
    if args.size and args.aspect != "deployment":
        raise UsageError("--size goes with --aspect deployment.")
    if args.out is not None and args.out.exists() and not args.out.is_dir():
        raise UsageError(f"--out {args.out} is a file; name a folder.")
    original = args.compat == "original"
    names = runs_of(workbench, args.runs)
    cells = read([workbench.open_run(name) for name in names], original=original)
    found = analysed(
        cells, args.aspect, AnalysisOptions(original, args.reference, read_sizes(args.size))
    )
    files = _write(found, args.out) if args.out is not None else ()
    return {
        "aspect": found.aspect,
        "compat": args.compat,
        "runs": names,
        **found.value,
        "tables": [table.as_json() for table in found.tables],
        "notes": list(found.notes),
        "files": list(files),
    }


def _write(result: Analysis, folder: Path) -> list[str]:
    """Write JSON, CSV, LaTeX and one HTML page into ``folder``, which is created if needed; return their paths."""
    files = report.files(
        result.aspect, result.document, result.tables, result.figures, result.notes, result.tex
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    for name, content in files.items():
        write_text(folder / name, content)
    return [str(folder / name) for name in files]


def runs_of(workbench: Workbench, names: list[str]) -> list[str]:
    """The runs that are named, those of a suite run in its place. Raises UsageError for a suite run that has not ended."""
    found: list[str] = []
    suites = workbench.experiments.suites()
    for name in names:
        if name not in suites or (workbench.workspace.runs / name).exists():
            found.append(name)
            continue
        report = workbench.experiments.open_suite(name).report
        if report is None:
            raise UsageError(
                f"The suite run {name!r} has not ended yet; run it again under its name, or name its runs."
            )
        found += [part["run"] for part in report["parts"]]
    return list(dict.fromkeys(found))


def read_sizes(pairs: list[str]) -> dict[str, float]:
    """Model → billions of parameters, of ``MODEL=B`` each. Raises UsageError."""
    sizes: dict[str, float] = {}
    for pair in pairs:
        model, equals, number = pair.rpartition("=")
        try:
            sizes[model] = float(number)
        except ValueError:
            equals = ""
        if not equals or not model or not 0 < sizes[model] < float("inf"):
            raise UsageError(f"--size {pair!r} is not MODEL=BILLIONS, as in my-llm=7.")
    return sizes
