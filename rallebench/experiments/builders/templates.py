"""Questions made by putting the rows of a table into templates, as R-Eval makes its scholar and entity questions (Tu et al. 2024).

Three stages: the templates of a file, those that a model proposes, and the questions. A question that fits several rows has
all their answers or is left out; either way they are counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report, Row, RowsRequest
from rallebench.core.settings import Setting
from rallebench.core.types import Episode
from rallebench.datasets.r_eval import as_record
from rallebench.datasets.tasks import DOMAINS
from rallebench.engine.rowfile import RowFile, short
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders._prompts import read_prompts
from rallebench.experiments.builders._templates import proposing
from rallebench.experiments.builders._templates.filling import (
    Filled,
    draw,
    fill,
    in_turn,
    missing_strata,
)
from rallebench.experiments.builders._templates.tables import (
    SourceTable,
    places,
    read_labels,
    read_table,
    stamp_of,
)
from rallebench.experiments.builders._templates.template import (
    SEVERAL,
    Template,
    check,
    read_templates,
    template_of,
)
from rallebench.experiments.papers.common import string

SETTINGS = {
    "tables": string(
        "FILE, FOLDER, NAME=FILE,NAME=FILE or a scholar table: CSV, JSON, JSON lines, triples as TSV"
    ),
    "templates": string(
        'a JSON file, {"templates": [{"question": "… {column} …?", "answer": "column"}]}'
    ),
    "labels": string(
        "of triples: id, tab, names; they stand in head_name and tail_name, tail_names are all accepted"
    ),
    "number": Setting(int, 100, 1, 1_000_000, about="questions, one of each template in turn"),
    "several": string(
        "of a question that fits several: leave it out, all answers as one, any of them", *SEVERAL
    ),
    "seed": Setting(int, 42, about="draws the rows"),
    "propose": Setting(int, 0, 0, 100, about="templates that the model proposes for each table"),
    "temperature": Setting(float, 0.7, 0, 2, about="of the proposing model"),
    "environment": string("stands in the records; default: scholar for a table of scholars"),
    "dataset": string("stands in the records and begins their ids; default: the set's name"),
    "level": string("stands in the records of templates that have none: KS, KU or KA"),
    "skip_bad": Setting(bool, False, about="leave bad rows of the tables out and count them"),
    "prompts": string("folder of prompts of your own"),
}


@dataclass(frozen=True)
class TemplatePlan:
    """What is made of what; all of it checked."""

    request: ExperimentRequest
    tables: Mapping[str, SourceTable]
    templates: tuple[Template, ...]
    stamp: str
    prompt: str

    @property
    def number(self) -> int:
        """How many questions at most."""
        return (
            int(self.request.settings["number"])
            if self.request.limit is None
            else self.request.limit
        )

    @property
    def environment(self) -> str:
        """As the records name it."""
        return str(self.request.settings["environment"]) or (
            "scholar" if {"scholars"} & set(self.tables) else ""
        )


@EXPERIMENTS.register(
    "build-templates", place="builders", needs_llm=False, form=SETTINGS, articles=False
)
def templates(request: ExperimentRequest) -> Experiment:
    """Questions from templates with the columns of a table or the relations of triples, with one or several hops."""
    plan = planned(request)
    rows_given: RowFile = yield _templates_given(plan)
    rows = [row for row in rows_given if row["keep"]]
    if request.settings["propose"]:
        proposed: RowFile = yield _proposed(plan, rows)
        rows += [row for row in proposed if row["keep"]]
    usable = [_usable(plan, row) for row in rows]
    if not usable:
        raise BadFileError(f"No template can be used; see {request.folder}.")
    drawn_rows: RowFile = yield _questions(plan, usable)
    return _report(plan, usable, list(drawn_rows))


def planned(request: ExperimentRequest) -> TemplatePlan:
    """Reads the tables; everything that can be wrong is found here. Raises UsageError."""
    s = request.settings
    if request.settings["articles"]:
        raise UsageError(
            "Templates are filled from tables: --set tables=FILE in place of --articles."
        )
    if not s["templates"] and not s["propose"]:
        raise UsageError(
            "Name a file of templates with --set templates=FILE, or let a model propose some: --set propose=10 --llm L."
        )
    if s["propose"] and not request.llm:
        raise UsageError("propose asks a language model for templates; name it with --llm.")
    if s["propose"]:
        request.workspace.llm(request.llm)
    fields = {"propose": ("NUMBER", "TABLE", "COLUMNS")} if s["propose"] else {}
    prompt = read_prompts("templates", s["prompts"], fields).get("propose", "")
    files = places(s["tables"], request.workspace)
    path = Path(s["templates"]).expanduser()
    read = read_templates(path, files) if s["templates"] else ()
    labels = read_labels(Path(s["labels"]).expanduser()) if s["labels"] else {}
    named = {
        name
        for template in read
        for name in (template.table, *(join.table for join in template.joins))
    }
    tables = {
        name: read_table(name, file, skip_bad=s["skip_bad"], labels=labels)
        for name, file in files.items()
        if name in named or s["propose"]
    }
    for template in read:
        check(template, tables)
    return TemplatePlan(
        request, tables, read, short([stamp_of(files), short(labels) if labels else ""]), prompt
    )


def _templates_given(plan: TemplatePlan) -> RowsRequest:
    rows = [template.as_json() for template in plan.templates]
    summary = {
        "notes": [
            f"{table.skipped} bad rows of {name} were left out."
            for name, table in plan.tables.items()
            if table.skipped
        ]
    }
    return RowsRequest(
        "1-templates",
        "templates given",
        lambda: rows,
        make=lambda row: [{**row, "keep": True, "why": ""}],
        depends_on=lambda row: row,
        summary=lambda: summary,
    )


def _proposed(plan: TemplatePlan, known_rows: Sequence[Row]) -> RowsRequest:
    s, request = plan.request.settings, plan.request
    number = s["propose"]
    taken = {row["question"]: row["id"] for row in known_rows}

    def flow(row: Row) -> Any:
        return proposing.propose(
            plan.prompt, plan.tables, row["id"], number, request.llm, s["seed"], s["temperature"]
        )

    def read(row: Row, episode: Episode) -> list[Row]:
        table = row["id"]
        if episode.error:
            return [{"id": table, "keep": False, "why": "the model failed", "error": episode.error}]
        proposals = proposing.read_proposals(episode.answer, plan.tables, table, number, taken)
        rows = [
            {"id": f"{table}-{n}", "table": table, **template, "keep": not why, "why": why}
            for n, (template, why) in enumerate(proposals, 1)
        ]
        return rows or [
            {
                "id": table,
                "keep": False,
                "why": "the reply holds no template",
                "reply": episode.answer[:500],
            }
        ]

    return RowsRequest(
        "2-proposed",
        "templates proposed",
        lambda: [{"id": name} for name in plan.tables],
        flow=flow,
        read=read,
        depends_on=lambda row: [
            row["id"],
            plan.stamp,
            plan.prompt,
            number,
            s["seed"],
            s["temperature"],
            request.llm,
        ],
        llms=(request.llm,),
    )


def _usable(plan: TemplatePlan, row: Row) -> Template:
    """The template of a row; one that a person wrote is checked as those of the file were."""
    parts = (
        "id",
        "question",
        "answer",
        "table",
        "join",
        "where",
        "several",
        "best",
        "count",
        "number",
        "level",
        "strata",
    )
    try:
        template = template_of(
            {key: row[key] for key in parts if row.get(key)}, list(plan.tables), str(row["id"])
        )
    except ValueError as wrong:
        raise BadFileError(
            f"The template {row['id']!r} in {plan.request.folder}: {wrong}"
        ) from None
    check(template, plan.tables)
    return template


def _questions(plan: TemplatePlan, usable: Sequence[Template]) -> RowsRequest:
    """Each template's questions, at most as many as are asked for in all, in the order in which they are taken."""
    s = plan.request.settings
    known = {template.id: template for template in usable}
    left_out: Counter[str] = Counter()
    notes: list[str] = []

    def make(row: Row) -> list[Row]:
        template = known[row["id"]]
        filled, why = fill(template, plan.tables, s["several"])
        left_out.update(why)
        short_of = missing_strata(template, filled)
        if short_of:
            notes.append(
                f"{template.id}: too few for {', '.join(f'{value} ({count} short)' for value, count in short_of.items())}."
            )
        return [
            {
                "id": f"{template.id}-{n}",
                "question": question.question,
                "answers": list(question.answers),
                "template": template.id,
                "rows": question.rows,
            }
            for n, question in enumerate(draw(filled, template, plan.number, s["seed"]), 1)
        ] or [
            {
                "id": f"{template.id}-0",
                "question": "",
                "keep": False,
                "why": "no row gives a question",
            }
        ]

    return RowsRequest(
        "3-questions",
        "questions",
        lambda: [{"id": template.id} for template in usable],
        make=make,
        depends_on=lambda row: [
            known[row["id"]].as_json(),
            plan.stamp,
            s["several"],
            s["seed"],
            plan.number,
        ],
        summary=lambda: {"left_out": dict(left_out), "notes": notes},
    )


def _report(plan: TemplatePlan, usable: Sequence[Template], rows: Sequence[Row]) -> Report:
    drawn = [
        [
            Filled(r["question"], tuple(r["answers"]), template.id)
            for r in rows
            if r["keep"] and r.get("template") == template.id
        ]
        for template in usable
    ]
    chosen = in_turn(drawn, plan.number)
    records = [
        record(question, plan, {t.id: t for t in usable}, number)
        for number, question in enumerate(chosen, 1)
    ]
    questions = tuple(kilt for kilt, _ in records)
    if not questions:
        raise BadFileError(
            f"No template gives a question; {plan.request.folder / '3-questions.jsonl'} says why."
        )
    name = f"{plan.request.name}.r-eval.jsonl"
    lines = [json.dumps(own, ensure_ascii=False) + "\n" for _, own in records]
    short_of = plan.number - len(chosen)
    notes = (
        (
            f"{len(chosen)} questions: the tables give no more than that of the {plan.number} asked for.",
        )
        if short_of
        else ()
    )
    counts = {
        "templates": len(usable),
        "by_template": dict(Counter(question.template for question in chosen)),
    }
    return Report(counts, notes, {name: lines}, questions=questions)


def record(
    question: Filled, plan: TemplatePlan, known: Mapping[str, Template], number: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(in KILT's form, in R-Eval's form) of a question."""
    template = known[question.template]
    level = template.level or str(plan.request.settings["level"])
    more = {"level": level} if level else {}
    domain = next(
        (theirs for theirs, ours in DOMAINS.items() if ours == plan.environment), plan.environment
    )
    dataset = str(plan.request.settings["dataset"]) or plan.request.name
    own = as_record(question.question, list(question.answers), environment=domain, dataset=dataset)
    kilt = {
        "id": f"{dataset}-{number:03d}",
        "input": question.question,
        "output": [{"answer": answer} for answer in question.answers],
        "environment": plan.environment,
        "dataset": dataset,
        **more,
        "template": question.template,
        "hops": template.hops,
        "_id": own["_id"],
    }
    return kilt, own
