"""``dataset``: add, change and delete questions of a dataset, undo edits, and list its history."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rallebench.cli.flags import flag, many, switch
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.cli.why import make_groups
from rallebench.core.dataset_edits import GoldPage, QuestionDraft
from rallebench.core.errors import UsageError
from rallebench.core.numbers import plural
from rallebench.services.workbench import Workbench
from rallebench.views import run_questions
from rallebench.views.edit_histories import history_table

ONLY = ("wrong", "lost", "format", "failed", "right", "all")
FIELDS = ("question", "answer", "page", "group", "unanswerable")
"""Flags of the parts of a question, which belong to --add and --change."""


@VERBS.register(
    "dataset",
    about="edit a dataset: its questions, answers and gold pages; without an edit, list its history",
    example='rallebench dataset my-qa --add "Which moon?" --answer Titan --page 42',
    order=2.5,
    flags=(
        flag("name", "NAME", "a dataset of the workspace; --add and --from-run make a new one"),
        flag("--copy-of", "D", "copy this dataset, a name or a path, under the new name"),
        flag("--add", "QUESTION", "add a question"),
        flag("--id", "ID", "of --add: its id (default: given)"),
        flag("--change", "ID", "change the given parts of a question"),
        flag("--question", "TEXT", "of --change: the new text"),
        many("--answer", "A", "an accepted answer; repeat it for several"),
        many("--page", "ID", "a gold page; of several, all are needed together"),
        flag("--group", "G", "the article or group that the question belongs to"),
        switch("--unanswerable", "no answer is right; an answer should decline"),
        many("--delete", "ID", "delete a question; repeat it for several"),
        flag("--from-run", "RUN", "add questions of a run, with their gold"),
        flag("--only", help="of --from-run: which (default: wrong)", choices=ONLY),
        flag("--slice", "S", "of --from-run: a group that 'rallebench why' lists, as in meaning-2"),
        flag("--undo", "N", "undo the edit of this number", type=int),
        flag("--return-to", "N", "return to the version after this edit; 0: before all", type=int),
    ),
)
def dataset(args: argparse.Namespace) -> Result:
    """Perform one edit and report it, or list the history."""
    edits: dict[str, Callable[[Workbench, argparse.Namespace], str]] = {
        "copy_of": _copy,
        "add": _add,
        "change": _change,
        "delete": _delete,
        "from_run": _from_run,
        "undo": _undo,
        "return_to": _return,
    }
    chosen = [name for name in edits if getattr(args, name) not in (None, [])]
    if len(chosen) > 1:
        names = " and ".join(f"--{name.replace('_', '-')}" for name in chosen)
        raise UsageError(f"{names} are several edits; give one at a time.")
    _check_flags(args, chosen)
    workbench = open_workbench(args)
    sentence = edits[chosen[0]](workbench, args) if chosen else ""
    count = len(workbench.workspace.questions(args.name))
    history = workbench.edits.history(args.name)
    table = history_table(args.name, history)
    value = {
        "name": args.name,
        "questions": count,
        "said": [sentence] if sentence else [],
        "edits": [
            {
                "edit": number,
                "time": edit.time,
                "kind": edit.kind,
                "about": edit.about,
                "questions": list(dict.fromkeys(change.qid for change in edit.changes)),
            }
            for number, edit in enumerate(history.edits, 1)
        ],
        "problem": history.problem,
    }
    total = f"{args.name} has {plural(count, 'question')} and {plural(len(history.edits), 'edit')}."
    return Result(value, (sentence, total) if sentence else (table, total))


def _check_flags(args: argparse.Namespace, chosen: list[str]) -> None:
    parts = [name for name in FIELDS if getattr(args, name)]
    if parts and not {"add", "change"} & {*chosen}:
        raise UsageError(f"--{parts[0]} belongs to --add or --change; give one of them.")
    if args.question and "add" in chosen:
        raise UsageError("--question belongs to --change; --add takes the question itself.")
    if args.id and "add" not in chosen:
        raise UsageError("--id belongs to --add; leave it out.")
    if args.only and "from_run" not in chosen:
        raise UsageError("--only belongs to --from-run; leave it out.")
    if args.slice and ("from_run" not in chosen or args.only):
        raise UsageError("--slice belongs to --from-run, in place of --only; leave one out.")
    if "change" in chosen and not parts:
        raise UsageError(
            "--change needs what to change: --question, --answer, --page, --group or --unanswerable."
        )


def _copy(workbench: Workbench, args: argparse.Namespace) -> str:
    for _ in workbench.edits.copy(args.copy_of, args.name):
        pass
    return f"Copied {args.copy_of} as {args.name}."


def _add(workbench: Workbench, args: argparse.Namespace) -> str:
    pages = tuple(map(GoldPage, args.page))
    draft = QuestionDraft(
        args.add, tuple(args.answer), (pages,), args.unanswerable, args.group or ""
    )
    (qid,) = workbench.edits.add(args.name, draft, qid=args.id or "").added
    return f"Added the question {qid}."


def _change(workbench: Workbench, args: argparse.Namespace) -> str:
    changed = workbench.edits.edit(
        args.name,
        args.change,
        text=args.question,
        answers=args.answer or None,
        pages=args.page or None,
        unanswerable=args.unanswerable or None,
        group=args.group,
    )
    return f"Changed the question {args.change}." if changed else "The question is so already."


def _delete(workbench: Workbench, args: argparse.Namespace) -> str:
    workbench.edits.delete(args.name, args.delete)
    return f"Deleted {plural(len({*args.delete}), 'question')}."


def _from_run(workbench: Workbench, args: argparse.Namespace) -> str:
    only = args.slice or args.only or "wrong"
    if args.slice:
        make_groups(workbench, args.from_run, only)
    run = workbench.runs.open(args.from_run)
    ids = run_questions.question_ids(workbench.workspace, run, "" if only == "all" else only)
    if not ids:
        raise UsageError(f"No question of the run {run.name!r} is {only}, so nothing was added.")
    result = workbench.edits.add_from_run(args.name, run, ids)
    already = f"; {result.present} were there already" if result.present else ""
    return f"Added {plural(len(result.added), 'question')} of {run.name}{already}."


def _undo(workbench: Workbench, args: argparse.Namespace) -> str:
    return workbench.edits.undo(args.name, args.undo)


def _return(workbench: Workbench, args: argparse.Namespace) -> str:
    return workbench.edits.restore(args.name, args.return_to)
