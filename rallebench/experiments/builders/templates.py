"""Questions made by filling templates with table rows, as R-Eval makes its scholar and entity questions (Tu et al. 2024).

There are three stages: templates from a file, templates proposed by a model, and questions. A question that fits several rows
either gets all their answers or is omitted; both cases are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiments import (
    Experiment,
    ExperimentRequest,
    Report,
    Row,
    RowId,
    RowsRequest,
)
from rallebench.core.files import json_lines
from rallebench.core.settings import dataclass_form, declare, declare_text
from rallebench.core.starter import STARTER
from rallebench.core.types import Episode, Flow
from rallebench.datasets.r_eval import as_record
from rallebench.datasets.tasks import DOMAINS
from rallebench.engine.rowfile import RowFile, short
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.builders._templates import proposing
from rallebench.experiments.builders._templates.filling import (
    Filled,
    draw,
    fill,
    in_turn,
    missing_strata,
)
from rallebench.experiments.builders._templates.tables import (
    STARTER_TRIPLES,
    SourceTable,
    fingerprint_files,
    places,
    read_labels,
    read_table,
)
from rallebench.experiments.builders._templates.template import (
    SEVERAL,
    Template,
    check,
    parse_template,
    read_templates,
)
from rallebench.experiments.builders.replies import keep_state, kept_rows, read_prompts
from rallebench.experiments.common import sentences
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class TemplateSettings:
    """The settings of the dataset builder ``templates``."""

    tables: str = declare_text(
        "FILE, FOLDER, NAME=FILE,NAME=FILE, starter-triples or a scholar table: CSV, JSON, JSON lines, triples as TSV",
        names="table file folder",
        many=True,
    )
    templates: str = declare_text(
        'a JSON file, {"templates": [{"question": "… {column} …?", "answer": "column"}]}',
        names="file",
    )
    labels: str = declare_text(
        "of triples: id, tab, names; they stand in head_name and tail_name, tail_names are all accepted; head_band is frequent or rare",
        names="file",
    )
    number: int = declare(int, 100, 1, 1_000_000, about="questions, one of each template in turn")
    several: str = declare_text(
        "of a question that fits several: leave it out, all answers as one, any of them", *SEVERAL
    )
    seed: int = declare(int, 42, about="draws the rows")
    propose: int = declare(int, 0, 0, 100, about="templates that the model proposes for each table")
    temperature: float = declare(float, 0.7, 0, 2, about="of the proposing model")
    environment: str = declare_text(
        "stands in the records; default: scholar for a table of scholars"
    )
    dataset: str = declare_text(
        "stands in the records and begins their ids; default: the set's name"
    )
    level: str = declare_text("stands in the records of templates that have none: KS, KU or KA")
    skip_bad: bool = declare(bool, False, about="leave bad rows of the tables out and count them")
    prompts: str = declare_text("folder of prompts of your own", names="folder")


@dataclass(frozen=True)
class TemplatePlan:
    """The checked inputs of the stages. ``number``: the most questions; ``environment``: its name in the records."""

    request: ExperimentRequest[WorkspaceFolder]
    settings: TemplateSettings
    tables: Mapping[str, SourceTable]
    templates: tuple[Template, ...]
    stamp: str
    prompt: str
    number: int
    environment: str


@EXPERIMENTS.register(
    "build-templates",
    place="builders",
    needs_llm=False,
    form=dataclass_form(TemplateSettings),
    articles=False,
)
def templates(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """Questions from templates with the columns of a table or the relations of triples, with one or several hops."""
    plan = make_plan(request)
    rows = [*kept_rows((yield _templates_given(plan)))]
    if plan.settings.propose:
        rows += kept_rows((yield _proposed_rows(plan, rows)))
    usable = [_usable(plan, row) for row in rows]
    if not usable:
        raise BadFileError(f"No template can be used; see {request.folder}.")
    drawn_rows: RowFile = yield _questions(plan, usable)
    return _report(plan, usable, list(drawn_rows))


def make_plan(request: ExperimentRequest[WorkspaceFolder]) -> TemplatePlan:
    """The plan with its tables. Raises UsageError for an invalid request."""
    s = request.read(TemplateSettings)
    if request.settings["articles"]:
        raise UsageError(
            "Templates are filled from tables, not from articles.", hint=Hint("set", "tables=FILE")
        )
    if not s.templates and not s.propose:
        raise UsageError(
            "No file of templates is named. A language model can propose some, too: propose=10.",
            hint=Hint("set", "templates=FILE"),
        )
    if s.propose:
        if not request.llm:
            raise UsageError(
                "propose asks a language model for templates.", hint=Hint("choose", "llm")
            )
        request.workspace.llm(request.llm)
    fields = {"propose": ("NUMBER", "TABLE", "COLUMNS")} if s.propose else {}
    prompt = read_prompts("templates", s.prompts, fields).get("propose", "")
    files = places(s.tables, request.workspace)
    read = read_templates(Path(s.templates).expanduser(), files) if s.templates else ()
    own_labels = STARTER / "triples" / "labels.tsv" if s.tables == STARTER_TRIPLES else ""
    names = s.labels or own_labels
    labels = read_labels(Path(names).expanduser()) if names else {}
    named = {template.table for template in read}
    named |= {join.table for template in read for join in template.join}
    tables = {
        name: read_table(name, file, skip_bad=s.skip_bad, labels=labels)
        for name, file in files.items()
        if name in named or s.propose
    }
    for template in read:
        check(template, tables)
    stamp = short([fingerprint_files(files), short(labels) if labels else ""])
    number = s.number if request.limit is None else request.limit
    environment = s.environment or ("scholar" if "scholars" in tables else "")
    return TemplatePlan(request, s, tables, read, stamp, prompt, number, environment)


def _templates_given(plan: TemplatePlan) -> RowsRequest[Template]:
    skipped = {name: table.skipped for name, table in plan.tables.items() if table.skipped}
    notes = [f"{n} bad rows of {name} were left out." for name, n in skipped.items()]
    return RowsRequest(
        "1-templates",
        "templates given",
        lambda: plan.templates,
        make=lambda template: [{**template.to_json(), **keep_state("")}],
        depends_on=Template.to_json,
        summary=lambda: {"notes": notes},
    )


def _proposed_rows(plan: TemplatePlan, known_rows: Sequence[Row]) -> RowsRequest[RowId]:
    s, request = plan.settings, plan.request
    number, seed, temperature = s.propose, s.seed, s.temperature
    known = [row["question"] for row in known_rows]

    def flow(table: RowId) -> Flow:
        return proposing.propose(
            plan.prompt, plan.tables, table.id, number, request.llm, seed, temperature
        )

    def read(entry: RowId, episode: Episode) -> list[Row]:
        table = entry.id
        if episode.error:
            return [{"id": table, **keep_state("the model failed"), "error": episode.error}]
        proposals = proposing.read_proposals(episode.answer, plan.tables, table, number, known)
        rows: list[Row] = [
            {"id": f"{table}-{n}", "table": table, **template, **keep_state(why)}
            for n, (template, why) in enumerate(proposals, 1)
        ]
        none = keep_state("the reply holds no template")
        return rows or [{"id": table, **none, "reply": episode.answer[:500]}]

    more = [plan.stamp, plan.prompt, number, seed, temperature, request.llm]
    return RowsRequest(
        "2-proposed",
        "templates proposed",
        lambda: map(RowId, plan.tables),
        flow=flow,
        read=read,
        depends_on=lambda table: [table.id, *more],
        llms=(request.llm,),
    )


def _usable(plan: TemplatePlan, row: Row) -> Template:
    """The template of a row; a template edited by a person is checked like those of the file."""
    parts = {name: row[name] for name in Template.model_fields if row.get(name)}
    where = f"The template {row['id']!r} in {plan.request.folder}"
    template = parse_template(parts, list(plan.tables), str(row["id"]), where)
    check(template, plan.tables)
    return template


def _questions(plan: TemplatePlan, usable: Sequence[Template]) -> RowsRequest[Template]:
    """The questions of each template, in selection order, at most the total number requested."""
    s = plan.settings
    left_out: Counter[str] = Counter()
    notes: list[str] = []

    def make(template: Template) -> list[Row]:
        filled, why = fill(template, plan.tables, s.several)
        left_out.update(why)
        if short_of := missing_strata(template, filled):
            values = ", ".join(f"{value} ({count} short)" for value, count in short_of.items())
            notes.append(f"{template.id}: too few for {values}.")
        rows: list[Row] = [
            {
                "id": f"{template.id}-{n}",
                "question": question.question,
                "answers": list(question.answers),
                "template": template.id,
                "rows": question.rows,
            }
            for n, question in enumerate(draw(filled, template, plan.number, s.seed), 1)
        ]
        none = keep_state("no row gives a question")
        return rows or [{"id": f"{template.id}-0", "question": "", **none}]

    more = [plan.stamp, s.several, s.seed, plan.number]
    return RowsRequest(
        "3-questions",
        "questions",
        lambda: usable,
        make=make,
        depends_on=lambda template: [template.to_json(), *more],
        summary=lambda: {"left_out": dict(left_out), "notes": notes},
    )


def _report(plan: TemplatePlan, usable: Sequence[Template], rows: Sequence[Row]) -> Report:
    known = {template.id: template for template in usable}
    drawn: dict[str, list[Filled]] = {name: [] for name in known}
    for row in rows:
        if row["keep"] and row.get("template") in drawn:
            question = Filled(row["question"], tuple(row["answers"]), row["template"])
            drawn[row["template"]].append(question)
    chosen = in_turn(drawn.values(), plan.number)
    if not chosen:
        raise BadFileError(
            f"No template gives a question; {plan.request.folder / '3-questions.jsonl'} says why."
        )
    records = [record(question, plan, known, n) for n, question in enumerate(chosen, 1)]
    n, limit = len(chosen), plan.number
    few = f"{n} questions: the tables give no more than that of the {limit} asked for."
    return Report(
        {
            "templates": len(usable),
            "by_template": dict(Counter(question.template for question in chosen)),
        },
        sentences((n < limit, few)),
        {f"{plan.request.name}.r-eval.jsonl": json_lines(own for _, own in records)},
        questions=tuple(kilt for kilt, _ in records),
    )


def record(
    question: Filled, plan: TemplatePlan, known: Mapping[str, Template], number: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(KILT's form, R-Eval's form) of a question."""
    template, env = known[question.template], plan.environment
    level = template.level or plan.settings.level
    domain = next((theirs for theirs, ours in DOMAINS.items() if ours == env), env)
    dataset = plan.settings.dataset or plan.request.name
    own = as_record(question.question, list(question.answers), environment=domain, dataset=dataset)
    kilt = {
        "id": f"{dataset}-{number:03d}",
        "input": question.question,
        "output": [{"answer": answer} for answer in question.answers],
        "environment": env,
        "dataset": dataset,
        **({"level": level} if level else {}),
        "template": question.template,
        "hops": template.hops,
        "_id": own["_id"],
    }
    return kilt, own
