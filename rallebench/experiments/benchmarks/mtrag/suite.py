"""MTRAG (Katsis et al. 2025, arXiv:2501.03468): questions from conversations over four corpora, in three forms.

``lastturn`` is the last question unchanged, ``rewrite`` is a self-contained version of it, and ``questions`` contains all the
user's questions so far. The files come from MTRAG's repository. Each corpus is indexed and searched with every form of its
questions. With a model, the passages are also read. Its answers are compared with MTRAG's own if the generation tasks are in
the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError, Hint, NotFoundError
from rallebench.core.experiment_reports import PUBLISHED, OwnRow
from rallebench.core.experiments import Experiment, ExperimentRequest, Release, Report
from rallebench.core.report import Estimate, RunReport
from rallebench.core.runs import RunResult
from rallebench.core.settings import (
    Setting,
    dataclass_form,
    declare,
    declare_group,
    declare_list,
    declare_text,
)
from rallebench.core.sources import Source
from rallebench.core.tables import Column, Table
from rallebench.core.types import Example
from rallebench.datasets.beir import judged_passage, judgements_in, relevant
from rallebench.datasets.kilt import examples
from rallebench.experiments.benchmarks import published_table
from rallebench.experiments.benchmarks._ranked import (
    READ,
    RETRIEVE,
    IndexSettings,
    Systems,
    by_grade,
    choose_systems,
    mean_over_questions,
    prepared_chain,
    ranked_run,
    request_index,
    within,
)
from rallebench.experiments.benchmarks.mtrag.benchmark import MTRAG
from rallebench.experiments.common import bars, failed_note, in_folder, values_in
from rallebench.experiments.languages import prompts_note, searchable, unlike_english
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import own_row, unlike
from rallebench.experiments.significance import tests_between
from rallebench.workspace.paths import WorkspaceFolder

PRINTED = "mtrag_table1"
FETCH = "git clone https://github.com/IBM/mt-rag-benchmark && cd mt-rag-benchmark/corpora/passage_level && unzip '*.zip'"
DOMAINS = ("clapnq", "cloud", "fiqa", "govt")
FORMS: Mapping[str, str] = {
    "lastturn": "last turn",
    "rewrite": "rewritten query",
    "questions": "full conversation",
}
USER = "|user|:"
COLUMNS = ("R@1", "R@3", "R@5", "R@10", "nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10")
DEPTH, HEADLINE = 10, "nDCG@5"
ANSWERS = ("f1", "rougel")
TASKS = ("mtrag-human/retrieval_tasks", "human/retrieval_tasks", "retrieval_tasks", "")
CORPORA = ("corpora/passage_level", "corpora", "passage_level", "")
TARGETS = ("mtrag-human/generation_tasks", "human/generation_tasks", "generation_tasks", "")


@dataclass(frozen=True, slots=True)
class MtragSettings:
    """The settings of ``mtrag``."""

    data: str = declare_text(
        f"folder of MTRAG's repository with its corpora unpacked: `{FETCH}`", names="folder"
    )
    datasets: str = declare_list(
        "clapnq, cloud, fiqa, govt; default: those that are there", *DOMAINS
    )
    forms: str = declare_list(
        "lastturn, rewrite, questions (the full conversation); several with commas",
        *FORMS,
        default=",".join(FORMS),
    )
    indexes: IndexSettings = declare_group(IndexSettings)
    k: int = declare(int, 5, 1, DEPTH, about="passages that a model reads")


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain with its questions in every form, the recipes of its indexes, and notes on its language."""

    name: str
    questions: Mapping[str, tuple[Example, ...]]
    systems: Systems
    notes: tuple[str, ...] = ()


def read_domains(request: ExperimentRequest[WorkspaceFolder], s: MtragSettings) -> list[Domain]:
    """Read and check the chosen domains. Raises UsageError, NotFoundError, BadFileError."""
    folder = request.workspace.data(s.data, f"the folder of MTRAG's repository: `{FETCH}`")
    if not folder.is_dir():
        raise NotFoundError(
            f"{folder} is a file; name the folder of MTRAG's repository: `{FETCH}`."
        )
    forms = values_in("forms", s.forms, Setting(str, "", choices=tuple(FORMS), required=True))
    tasks = next(
        (folder / b for b in TASKS if any((folder / b / d).is_dir() for d in DOMAINS)), None
    )
    if tasks is None:
        raise NotFoundError(
            f"{folder} has no mtrag-human/retrieval_tasks; fetch MTRAG's repository: `{FETCH}`."
        )
    named = values_in("datasets", s.datasets, Setting(str, "", choices=DOMAINS))
    answers = {}
    if request.llm:
        request.workspace.llm(request.llm)
        answers = _targets(folder)
    domains = []
    for name in named or [domain for domain in DOMAINS if (tasks / domain).is_dir()]:
        corpus = in_folder(folder, (f"{place}/{name}.jsonl".lstrip("/") for place in CORPORA))
        if corpus is None:
            raise NotFoundError(
                f"{folder} has no corpora/passage_level/{name}.jsonl; unpack {name}.jsonl.zip.",
                hint=Hint("set", "datasets=NAME"),
            )
        systems = choose_systems(request, s.indexes, corpus, "jsonl")
        questions = {form: _questions(tasks / name, name, form, answers) for form in forms}
        questions = {form: each[: request.limit] for form, each in questions.items()}
        every = tuple(example for of_form in questions.values() for example in of_form)
        of_language = searchable(name, every, systems.values(), s.indexes.encoder)
        domains.append(Domain(name, questions, systems, of_language))
    return domains


def _questions(
    folder: Path, domain: str, form: str, answers: Mapping[str, str]
) -> tuple[Example, ...]:
    """The questions of a domain, in one form, that have a relevant passage. Raises BadFileError, NotFoundError."""
    file, qrels = folder / f"{domain}_{form}.jsonl", folder / "qrels" / "dev.tsv"
    for path in (file, qrels):
        if not path.is_file():
            raise NotFoundError(f"{path} is missing; fetch MTRAG's repository again: `{FETCH}`.")
    judgements = {qid: relevant(pages) for qid, pages in judgements_in(Source(qrels)).items()}
    source = Source(file)

    def records() -> Iterator[tuple[int, dict[str, Any]]]:
        for line, row in source.objects():
            qid, text = str(row.get("_id") or ""), row.get("text")
            if not qid or not isinstance(text, str):
                source.bad(line, f" needs '_id' and 'text'; fetch MTRAG's repository: `{FETCH}`.")
            elif judgements.get(qid):
                output: list[dict[str, Any]] = [
                    {"provenance": [judged_passage(*pair)]} for pair in judgements[qid].items()
                ]
                output += [{"answer": answers[qid]}] if qid in answers else []
                yield line, {"id": qid, "input": turns(text), "output": output}

    questions = tuple(examples(source, records()))
    if not questions:
        raise BadFileError(
            f"No question of {file} has a passage in {qrels}; fetch both again: `{FETCH}`."
        )
    return questions


def turns(text: str) -> str:
    """The user's turns without their speaker labels.

    >>> turns("|user|: Who?\\n|user|: And when?")
    'Who?\\nAnd when?'
    """
    lines = (line.strip().removeprefix(USER).strip() for line in text.splitlines())
    return "\n".join(filter(None, lines))


def _targets(folder: Path) -> dict[str, str]:
    """Task → MTRAG's own answer, from its generation tasks; {} if they are not in the folder."""
    path = in_folder(folder, (f"{place}/reference.jsonl".lstrip("/") for place in TARGETS))
    if path is None:
        return {}
    source = Source(path)
    answers = {}
    for line, row in source.objects():
        try:
            answers[str(row["task_id"])] = str(row["targets"][0]["text"])
        except (LookupError, TypeError):
            source.bad(line, f" has no task_id and targets; fetch MTRAG's repository: `{FETCH}`.")
    return answers


@MTRAG.suite(
    "mtrag",
    form=dataclass_form(MtragSettings),
    named_by=("datasets", "forms", "kinds"),
)
def mtrag(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """MTRAG: the last turn, the rewritten query and the full conversation, by what they retrieve and what a model answers."""
    s = request.read(MtragSettings)
    domains = read_domains(request, s)
    results: dict[tuple[str, str], list[RunResult]] = {}
    notes = [*_language_notes(request, domains)]
    for domain in domains:
        for kind, recipe in domain.systems.items():
            index = yield from request_index(f"{domain.name} {kind}", kind, recipe, transient=True)
            k = s.k if request.llm else DEPTH
            chain = prepared_chain(request, READ if request.llm else RETRIEVE, index, k)
            for form, questions in domain.questions.items():
                label = f"{domain.name} {form} {kind}"
                answered = any(example.gold.answers for example in questions)
                run = ranked_run(
                    *(label, f"mtrag-{domain.name}-{form}", questions, chain),
                    *(within(COLUMNS, k), {"": by_grade}),
                    metrics=ANSWERS if request.llm and answered else (),
                )
                result = yield run
                results.setdefault((kind, form), []).append(result)
                notes += failed_note(label, result, "counted here and in no mean")
            yield Release((index,))
    if any(result.simulated for each in results.values() for result in each):
        return Report()
    if request.llm and not any(
        e.gold.answers for d in domains for q in d.questions.values() for e in q
    ):
        notes.append(
            "generation_tasks/reference.jsonl is not in the folder, so no answer is scored."
        )
    return _report(request, results, s.k if request.llm else DEPTH, notes)


def _language_notes(
    request: ExperimentRequest[WorkspaceFolder], domains: Sequence[Domain]
) -> Iterator[str]:
    """Notes on the language of the questions, the documents and, with a model, the prompt."""
    mend = f"write a chain {READ} of your own into the workspace's chains"
    for domain in domains:
        yield from domain.notes
        texts = (e.question.text for of_form in domain.questions.values() for e in of_form)
        if request.llm and (note := prompts_note("English", texts, mend, domain.name)):
            yield note


def _report(
    request: ExperimentRequest[WorkspaceFolder],
    results: Mapping[tuple[str, str], Sequence[RunResult]],
    depth: int,
    notes: list[str],
) -> Report:
    columns = within(COLUMNS, depth)
    answers = (
        ANSWERS
        if any(_mean(r, "f1") is not None for each in results.values() for r in each)
        else ()
    )
    rows: list[tuple[Any, ...]] = []
    for (kind, form), each in results.items():
        questions = sum(len(result.request.examples) for result in each)
        means = (mean_over_questions(each, column) for column in columns)
        spoken = (_metric_mean(each, metric) for metric in answers)
        rows.append((f"{kind}, {FORMS[form]}", questions, *means, *spoken))
    printed = published_table(PRINTED)
    own = list(_own_rows(results, columns))
    for row in printed.rows if not all(row.why for row in own) else ():
        shares = printed.shares(row)
        label = f"{row.system}, {FORMS[row.settings['form']]}, printed"
        rows.append((label, printed.n, *(shares[c] for c in columns), *(None for _ in answers)))
    names = sorted(
        {result.request.dataset.name.split("-")[1] for r in results.values() for result in r}
    )
    note = f"Means over the questions of {', '.join(names)}."
    if why := next((row.why for row in own), ""):
        note += f" The printed figures are left out: {why}."
    if answers:
        note += " Answers are compared with MTRAG's own, not judged as in its paper."
    heads = (
        Column("system", "text"),
        Column("questions", "count"),
        *(Column(column, "percent") for column in (*columns, *answers)),
    )
    best = HEADLINE if HEADLINE in columns else columns[-1]
    series = {
        kind: [
            (FORMS[form], mean_over_questions(each, best))
            for (k, form), each in results.items()
            if k == kind
        ]
        for kind in dict.fromkeys(kind for kind, _ in results)
    }
    by_form = {
        f"{kind} {form}": mean_over_questions(each, best) for (kind, form), each in results.items()
    }
    return Report(
        {
            "headline": best,
            "means": by_form,
            "llm": request.llm,
            PUBLISHED: tuple(own),
        },
        tuple(notes),
        tables=(Table("MTRAG", heads, tuple(rows), True, note), *_tests(results, (best, *answers))),
        figures=(bars(f"{best} by form", "form", best, series),),
    )


def _tests(
    results: Mapping[tuple[str, str], Sequence[RunResult]], metrics: Sequence[str]
) -> tuple[Table, ...]:
    """Comparisons of the question forms under each kind of index, and of the kinds under each form."""
    groups: dict[str, dict[str, Sequence[RunResult]]] = {}
    for (kind, form), each in results.items():
        groups.setdefault(kind, {})[FORMS[form]] = each
        groups.setdefault(FORMS[form], {})[kind] = each
    return tests_between(groups, metrics, set_of=_domain)


def _own_rows(
    results: Mapping[tuple[str, str], Sequence[RunResult]], columns: Sequence[str]
) -> Iterator[OwnRow]:
    """A row of MTRAG's table for each kind of index and form, over the questions of all four domains."""
    printed = published_table(PRINTED)
    forms = {row.settings["form"] for row in printed.rows}
    for (kind, form), each in results.items():
        if form in forms:
            n = sum(len(result.request.examples) for result in each)
            theirs = f"all {len(DOMAINS)} domains"
            ours = theirs if len(each) == len(DOMAINS) else f"{len(each)} of them"
            every = (example for result in each for example in result.request.examples)
            why = unlike_english(every) or unlike(ours, theirs, n, printed.n) or _strange(each)
            cells = {c: Estimate(mean_over_questions(each, c), None, None, n) for c in columns}
            yield own_row(PRINTED, kind, cells, why, form=form)


def _strange(results: Sequence[RunResult]) -> str:
    """The reason why the questions of a domain differ from MTRAG's; '' if all match."""
    reasons = (
        why_unverified("mtrag", _domain(result), result.request.examples) for result in results
    )
    return next(filter(None, reasons), "")


def _domain(result: RunResult) -> str:
    return result.request.dataset.name.split("-")[1]


def _mean(result: RunResult, metric: str) -> float | None:
    mean = (result.report or RunReport()).metrics.get(metric)
    return mean.value if mean else None


def _metric_mean(results: Sequence[RunResult], metric: str) -> float | None:
    """Mean of a registered metric over the questions of all sets."""
    known = [(mean, len(r.episodes)) for r in results if (mean := _mean(r, metric)) is not None]
    total = sum(n for _, n in known)
    return sum(mean * n for mean, n in known) / total if total else None
