"""``labels``: label the answers of a run, draw a sample of them, and use the labels."""

from __future__ import annotations

import argparse
from pathlib import Path

from rallebench.cli.arguments import check_out
from rallebench.cli.flags import flag, many, switch
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.corrections import Corrections, correction_table
from rallebench.core.errors import UsageError
from rallebench.core.files import writing
from rallebench.core.json_values import object_json
from rallebench.core.labels import GRADES
from rallebench.core.numbers import plural
from rallebench.core.tables import Column, Table
from rallebench.services.labels import CorrectedCopy
from rallebench.services.workbench import Workbench
from rallebench.views import labels as views
from rallebench.views.corrections import correct_runs

TASKS = {
    "label": ("grade", "note", "right", "blind", "page", "relevant"),
    "sample": ("graders", "seed"),
    "export": ("out",),
    "corrected_copy": (),
    "correct": ("others",),
}
"""Flag of a task → the flags that belong to it."""


@VERBS.register(
    "labels",
    about="label the answers of a run by hand, draw a sample to label, export labels, correct a dataset's gold",
    example="rallebench labels my-run --label q7 --grade right --who ann",
    order=8.2,
    flags=(
        flag("run", "RUN"),
        flag("others", "RUN", "of --correct: more runs, each against the first", nargs="*"),
        flag("--only", help="list these answers", choices=tuple(views.TITLES)),
        flag("--label", "ID", "label the answer to this question, or a passage of it"),
        flag("--grade", help="of --label: the grade", choices=tuple(GRADES)),
        flag("--note", "TEXT", "of --label: a remark"),
        many("--right", "A", "of --grade gold-wrong: a right answer; repeat it for several"),
        switch("--blind", "of --label: given without sight of gold and scores"),
        flag("--page", "ID", "of --label: label this retrieved page instead of the answer"),
        flag("--relevant", help="of --page", choices=("yes", "no")),
        flag("--who", "NAME", "the person (default: the user of this machine)", default=""),
        flag("--sample", "N", "draw so many answers to label", type=int),
        flag("--graders", "M,M", "of --sample: draw more answers on which these columns disagree"),
        flag("--seed", "N", "of --sample (default: 0)", type=int),
        flag("--export", help="write the labels as a file", choices=("csv", "qrels")),
        flag("--out", "FILE", "of --export (default: stdout)", type=Path),
        flag("--corrected-copy", "NAME", "copy the dataset, with the right answers of wrong gold"),
        flag(
            "--correct", "M", "correct the mean of this metric, or column of a judge, by the labels"
        ),
    ),
)
def labels(args: argparse.Namespace) -> Result:
    """Perform one task, or list the labels of a run."""
    tasks = [task for task in TASKS if getattr(args, task) is not None]
    if len(tasks) > 1:
        names = " and ".join(f"--{task.replace('_', '-')}" for task in tasks)
        raise UsageError(f"{names} are several tasks; give one at a time.")
    task = tasks[0] if tasks else ""
    for owner, parts in TASKS.items():
        lone = next((part for part in parts if getattr(args, part) not in (None, [], False)), "")
        if lone and owner != task:
            subject = "more than one run" if lone == "others" else f"--{lone}"
            raise UsageError(f"{subject} belongs to --{owner.replace('_', '-')}; leave it out.")
    workbench = open_workbench(args)
    if task == "export":
        return _export(workbench, args)
    if task == "corrected_copy":
        return _corrected_copy(workbench, args)
    if task == "correct":
        return _correct(workbench, args)
    sentence = ""
    if task == "label":
        sentence = _label_passage(workbench, args) if args.page else _label(workbench, args)
    elif task == "sample":
        sentence = _sample(workbench, args)
    return _listing(workbench, args, sentence)


def _listing(workbench: Workbench, args: argparse.Namespace, sentence: str) -> Result:
    """Return the labels of the run after a task; ``sentence``: its sentence."""
    value = views.run_labels(workbench.workspace, workbench.runs.open(args.run))
    only = args.only or views.LABELLED
    listed = value.filter_answers(only)
    table = () if sentence and not args.only else (views.label_table(value, only),)
    document = {
        **value.to_json(),
        "said": [sentence] if sentence else [],
        "listed": [
            {
                "id": x.answer.qid,
                "answer": x.answer.answer,
                "probability": x.probability,
                "labels": [object_json(label) for label in x.labels],
            }
            for x in listed
        ],
    }
    return Result(document, (*filter(None, [sentence]), *table, "\n".join(value.sentences)))


def _label(workbench: Workbench, args: argparse.Namespace) -> str:
    if not args.grade:
        raise UsageError("--label needs what to say: --grade, or --page with --relevant.")
    label = workbench.labels.give(
        views.find_answer(workbench.workspace, workbench.runs.open(args.run), args.label),
        args.grade,
        who=args.who,
        note=args.note or "",
        blind=args.blind,
        right=args.right,
    )
    return f"{args.label}: {GRADES[label.grade].lower()}, says {label.who}."


def _label_passage(workbench: Workbench, args: argparse.Namespace) -> str:
    if not args.relevant or args.grade:
        raise UsageError("--page needs --relevant yes or no, and no --grade.")
    run = workbench.runs.open(args.run)
    passage = views.find_passage(workbench.workspace, run, args.label, args.page)
    answer = views.find_answer(workbench.workspace, run, args.label)
    relevant = args.relevant == "yes"
    label = workbench.labels.give_passage(answer, passage, relevant, who=args.who)
    word = "relevant" if relevant else "not relevant"
    return f"{passage.title or args.page} is {word} for {args.label}, says {label.who}."


def _sample(workbench: Workbench, args: argparse.Namespace) -> str:
    run = workbench.runs.open(args.run)
    graders = tuple(filter(None, (args.graders or "").split(",")))
    sample = workbench.labels.plan(
        views.run_answers(workbench.workspace, run),
        args.sample,
        seed=args.seed or 0,
        graders=graders,
        apart=views.disagreements(run, graders) if args.graders is not None else (),
        who=args.who,
    )
    apart = sum(x.apart for x in sample.answers)
    disputed = f", {apart:,} of them where {' and '.join(graders)} disagree" if graders else ""
    return f"Drew {len(sample.answers):,} of {plural(sample.total, 'distinct answer')}{disputed}."


def _correct(workbench: Workbench, args: argparse.Namespace) -> Result:
    runs = [workbench.runs.open(name) for name in (args.run, *args.others)]
    value = Corrections(correct_runs(runs, args.correct))
    return Result(
        value.to_json(), (correction_table(value.corrections), "\n".join(value.sentences))
    )


def _export(workbench: Workbench, args: argparse.Namespace) -> Result:
    run = workbench.runs.open(args.run)
    if args.export == "qrels":
        lines = list(views.qrels_of_labels(run))
    else:
        lines = list(views.csv_of_labels(views.run_labels(workbench.workspace, run)))
    value = {"run": run.name, "format": args.export, "lines": len(lines)}
    if args.out is None:
        text = "".join(lines)
        return Result({**value, "text": text}, (text.rstrip("\n") or "\n",))
    with writing(check_out(args.out, workbench.workspace.own_folders)) as handle:
        for line in lines:
            handle.write(line.encode("utf-8", "backslashreplace"))
    return Result({**value, "file": str(args.out)}, (f"{args.out}: {len(lines)} lines",))


def _corrected_copy(workbench: Workbench, args: argparse.Namespace) -> Result:
    dataset = workbench.runs.open(args.run).description().dataset
    for piece in workbench.labels.corrected_copy(dataset, args.corrected_copy):
        if isinstance(piece, CorrectedCopy):
            copy = piece
    rows = tuple(
        (x.qid, x.text[:60], " or ".join(x.before), " or ".join(x.after)) for x in copy.questions
    )
    heads = tuple(Column(name, "text") for name in ("question", "text", "before", "after"))
    left = (
        f"No right answer was given for {', '.join(copy.uncorrected)}." if copy.uncorrected else ""
    )
    title = f"{copy.dataset}: {plural(len(rows), 'question')} of {dataset} corrected"
    return Result(object_json(copy), (Table(title, heads, rows), *filter(None, [left])))
