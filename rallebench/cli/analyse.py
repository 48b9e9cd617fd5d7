"""``analyse``: find out where a chain loses questions, or analyse runs of agents as R-Eval does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from rallebench.cli.flags import flag, many
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.core.files import disk_error, write_text
from rallebench.core.numbers import plural
from rallebench.core.waterfall import STAGES, UNTRACED, Waterfall
from rallebench.render import report
from rallebench.services.workbench import Workbench
from rallebench.views import catalog, comparing

WATERFALL, ASPECTS = "waterfall", catalog.names("aspects")


@VERBS.register(
    "analyse",
    about="say where a run lost its questions; R-Eval's analyses of agents",
    example="rallebench analyse my-run my-other-run --aspect errors --out errors",
    order=6.7,
    flags=(
        flag("runs", "RUN", "runs, or a suite run: all of its runs", nargs="+"),
        flag(
            "--aspect",
            help=f"of runs of agents: {', '.join(ASPECTS)}; default: {WATERFALL}",
            choices=(WATERFALL, *ASPECTS),
            default=WATERFALL,
        ),
        flag(
            "--compat",
            help="original: count as R-Eval's code does",
            choices=("corrected", "original"),
            default="corrected",
        ),
        flag(
            "--reference",
            "SYSTEM",
            "of normalization: 'workflow · model', or a run; default: the first",
            default="",
        ),
        many("--size", "MODEL=B", "of deployment: billions of parameters of a model"),
        flag("--out", "DIR", "write JSON, CSV, HTML (and LaTeX) there", type=Path),
    ),
)
def analyse(args: argparse.Namespace) -> Result:
    """Compute the failure waterfall of runs, without a judge, or one aspect of runs of agents."""
    _check(args)
    workbench = open_workbench(args)
    names = comparing.resolve_runs(workbench.workspace, args.runs)
    if args.aspect != WATERFALL:
        return _aspect(workbench, names, args)
    runs = {name: comparing.waterfall(workbench.workspace, name) for name in names}
    lines = ("\n".join(_waterfall(name, fall)) for name, fall in runs.items())
    values = [fall.to_json(name) for name, fall in runs.items()]
    return Result({"runs": values}, ("\n\n".join(lines),))


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that belong to another aspect. Raises UsageError."""
    if args.aspect == WATERFALL:
        flags = {
            "--compat": args.compat == "original",
            "--reference": args.reference,
            "--size": args.size,
            "--out": args.out,
        }
        for name, value in flags.items():
            if value:
                raise UsageError(f"{name} goes with --aspect {', '.join(ASPECTS)}.")
    elif args.reference and args.aspect != "normalization":
        raise UsageError("--reference goes with --aspect normalization.")
    elif args.size and args.aspect != "deployment":
        raise UsageError("--size goes with --aspect deployment.")
    elif args.out is not None and args.out.exists() and not args.out.is_dir():
        raise UsageError(f"--out {args.out} is a file; name a folder.")


def _waterfall(run: str, fall: Waterfall) -> Iterator[str]:
    yield f"{run}: {len(fall.placed)} questions"
    if not fall.tells:
        yield f"  {UNTRACED}"
        return
    for stage, count in fall.counts().items():
        if count:
            yield f"  {count:>6}  {STAGES[stage]}"
    if fall.misses_corpus:
        yield "  the corpus could not be looked at: its index is not in this workspace"
    if fall.given_passages:
        yield f"  {plural(fall.given_passages, 'question')} came with passages: one that holds an answer counts as support"
    if fall.without_pages:
        yield f"  {fall.without_pages} questions name no gold pages: a passage that holds an answer counts as support"


def _aspect(workbench: Workbench, names: list[str], args: argparse.Namespace) -> Result:
    analysis = comparing.analyse_agents(
        workbench.workspace,
        names,
        args.aspect,
        original=args.compat == "original",
        reference=args.reference,
        sizes=comparing.read_sizes(args.size, "--size "),
    )
    files: list[str] = []
    if args.out is not None:
        content = report.files(
            analysis.aspect,
            analysis.document,
            analysis.tables,
            analysis.figures,
            analysis.notes,
            analysis.tex,
        )
        files = _write(args.out, content)
    value = {
        "aspect": analysis.aspect,
        "compat": args.compat,
        "runs": names,
        **analysis.value,
        "tables": [table.to_json() for table in analysis.tables],
        "notes": list(analysis.notes),
        "files": files,
    }
    notes = (f"Note: {note}" for note in analysis.notes)
    return Result(value, (*analysis.tables, *notes, *(f"wrote {file}" for file in files)))


def _write(folder: Path, content: Mapping[str, str]) -> list[str]:
    """Write files into a folder, creating it if needed; return their paths."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(folder, error) from error
    for name, text in content.items():
        write_text(folder / name, text)
    return [str(folder / name) for name in content]
