"""Suites for KILT's eleven sets (Petroni et al. 2021, arXiv:2009.02252), with RaLLe's chains and tables (arXiv:2308.10633).

``kilt-nq`` and its siblings have one set each; ``kilt`` combines several, with their macro-average. Each combination of set
and way is an ordinary chain run. ``compat=original`` answers and counts like RaLLe: a linked title ends at its first comma,
and has_answer covers only non-empty answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rallebench.core.errors import UsageError
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import DatasetRef, RunRequest, RunResult
from rallebench.core.settings import Setting, dataclass_form
from rallebench.core.types import Chain
from rallebench.engine.metric_choice import DEFAULT_METRICS, has_gold
from rallebench.experiments.common import failed_note, scored_run, values_in
from rallebench.experiments.published.official import why_unverified
from rallebench.experiments.published.rows import unlike
from rallebench.experiments.significance import tests_between
from rallebench.metrics import metric
from rallebench.papers.common import (
    differs_by,
    metric_definitions,
    register_each,
    score_by,
)
from rallebench.papers.ralle.benchmark import KILT
from rallebench.papers.ralle.chains import prepare_chain, wording_in
from rallebench.papers.ralle.sets import (
    MODES,
    PLAIN,
    SETS,
    TASKS,
    KiltSet,
    Questions,
    find_sets,
    question_files,
    read,
)
from rallebench.papers.ralle.settings import KiltAskingSettings, KiltSettings, SetSettings
from rallebench.papers.ralle.tables import (
    CLOSED_NQ,
    SetResult,
    averages,
    own_rows,
    result_figures,
    result_tables,
)
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.paths import WorkspaceFolder

NAMED_BY = ("datasets", "file", "mode", "retriever", "k")
"""Settings used in the default names of runs."""


@KILT.suite("kilt", form=dataclass_form(KiltSettings), named_by=NAMED_BY)
def kilt(request: ExperimentRequest[WorkspaceFolder]) -> Experiment:
    """KILT, several sets with their macro-average, as in RaLLe's tables."""
    settings = request.read(KiltSettings)
    return (yield from _answer_sets(request, settings, find_sets(settings.datasets)))


def _answer_one(
    request: ExperimentRequest[WorkspaceFolder], sets: tuple[KiltSet, ...]
) -> Experiment:
    return (yield from _answer_sets(request, request.read(SetSettings), sets))


def _answer_sets(
    request: ExperimentRequest[WorkspaceFolder],
    settings: SetSettings | KiltSettings,
    sets: Sequence[KiltSet],
) -> Experiment:
    """Answer all sets in all ways, one after another. Everything is read and checked before the first run."""
    s, folder = settings.asking, settings.folder
    bracket = "has_answer" if s.original else "has_answer_all"
    modes = values_in("mode", s.mode, Setting(str, "", choices=MODES, required=True))
    files = question_files(request, sets, folder.data, settings.file, s.split)
    chains, notes = _chains(request, s, files, modes)
    wording = wording_in(s.prompts, chains)
    questions = {
        name: read(SETS[name], *file, s.split, request.limit) for name, file in files.items()
    }
    runs = [
        (questions[name], mode, _run(questions[name], mode, chain, bracket))
        for (name, mode), chain in chains.items()
    ]
    differences = [each.differs for each in questions.values() if each.differs]
    searched = {run.dataset.file: run for *_, run in runs if run.flow.retrievers}
    pageless = [
        f"{run.dataset.name}: its gold names no pages, so retrieval and KILT's variants are not scored."
        for run in searched.values()
        if not any(example.gold.pages for example in run.examples)
    ]
    notes = [*differences, *notes, *pageless]
    over = f"Ours search {s.retriever}, RaLLe's all of Wikipedia in 22.2 million passages."
    differs = differs_by(request, wording, over * bool(searched))
    results = []
    for each, mode, run in runs:
        if run.columns:
            result = yield run
            results.append(SetResult(each.kilt, mode, result, _why(s.split, each, result.n)))
            notes += failed_note(run.label, result, "counted here and in no mean")
    if not results:
        raise UsageError(f"mode={s.mode}: nothing could be scored. {' '.join(notes)}")
    data = {
        "headline": {name: SETS[name].headline for name in questions},
        "averages": averages(results, bracket),
        "compat": s.compat,
        "wording": wording.to_json(),
        PUBLISHED: tuple(own_rows(results, request.llm, s.retriever, differs)),
        "data": {
            name: {"file": str(each.path), "rows": each.rows, "official": not each.differs}
            for name, each in questions.items()
        },
    }
    whys = {answered.kilt.label: answered.why for answered in results if answered.why}
    left_out = (f"RaLLe's figures of {label} are left out: {why}." for label, why in whys.items())
    note = " ".join([*differs, *left_out])
    tables = result_tables(results, request.llm, s.retriever, bracket, note)
    by_set: dict[str, dict[str, RunResult]] = {}  # ways to answer the same questions
    for answered in results:
        by_set.setdefault(answered.kilt.label, {})[answered.mode] = answered.result
    headlines = dict.fromkeys(answered.kilt.headline for answered in results)
    tables += tests_between(by_set, [*headlines, "Rprec"], names=HEADS)
    return Report(data, tuple(notes), tables=tables, figures=result_figures(results))


HEADS = {"em": "EM", "f1": "F1", "rougel": "ROUGE-L", "Rprec": "R-precision"}


def _why(split: str, questions: Questions, n: int) -> str:
    """The reason why RaLLe's figures are not comparable, or ''."""
    kilt_set = questions.kilt
    if questions.differs:
        return f"{questions.path.name} is not KILT's file of {kilt_set.label}"
    if split != "dev" and split in kilt_set.rows:
        return f"ours are of the split {split}, the paper's of dev"
    different = unlike(kilt_set.label, kilt_set.label, n, kilt_set.rows["dev"])
    return different or why_unverified("kilt", kilt_set.stem, file=questions.path)


register_each(
    KILT.suite,
    _answer_one,
    {
        f"kilt-{each.name}": (
            f"KILT, {each.label}: {TASKS[each.task]}, by {each.headline} and {each.variant}.",
            (each,),
        )
        for each in SETS.values()
    },
    form=dataclass_form(SetSettings),
    named_by=NAMED_BY,
)


def _chains(
    request: ExperimentRequest[WorkspaceFolder],
    s: KiltAskingSettings,
    names: Iterable[str],
    modes: Sequence[str],
) -> tuple[dict[tuple[str, str], Chain], list[str]]:
    """((set, way) → chain, one sentence per set without a chain). Raises UsageError if no set has a chain."""
    pairs = [(name, mode) for name in names for mode in modes]
    chains = {pair: prepare_chain(request, s, SETS[pair[0]], pair[1]) for pair in pairs}
    without = [
        f"{SETS[name].label} has no chain for {mode} and was left out there."
        for (name, mode), chain in chains.items()
        if chain is None and mode != PLAIN
    ]
    if not any(chains.values()) and not without:
        raise UsageError(
            f"mode={PLAIN} is of entity linking; name one of its sets, or mode=retrieve."
        )
    if len(without) == len(pairs):
        raise UsageError(f"mode={s.mode}: {' '.join(without)} Choose another way, or another set.")
    return {pair: chain for pair, chain in chains.items() if chain is not None}, without


def _run(questions: Questions, mode: str, chain: Chain, bracket: str) -> RunRequest:
    kilt_set, have = questions.kilt, has_gold(questions.examples)
    flow = chain_flow(chain)
    answers = [kilt_set.headline, kilt_set.variant, *([bracket] if kilt_set.short else [])]
    if mode == "closed-book" and kilt_set.name == "nq":
        answers += CLOSED_NQ.values()  # RaLLe's Table 7 counts like its code
    pages = ["Rprec", "recall@5"] if flow.retrievers else []
    retrieves = mode in ("retrieve", PLAIN)
    names = _possible([*dict.fromkeys(answers if not retrieves else []), *pages], have)
    others = _possible(DEFAULT_METRICS, have, retrieves)
    return scored_run(
        f"{kilt_set.name} {mode}",
        flow,
        DatasetRef(questions.name, str(questions.path), questions.sha256),
        questions.examples,
        score_by(names),
        metric_definitions(names),
        metrics=tuple(dict.fromkeys([*names, *others])),
    )


def _possible(names: Sequence[str], have: Mapping[str, int], retrieved: bool = False) -> list[str]:
    """The metrics with gold in the questions; ``retrieved``: without answer metrics."""
    possible = []
    for name in names:
        needs = str(metric(name).traits.get("needs", "")).split("+")
        of_answers = "answers" in needs and not name.startswith("answer_in")
        if all(have[need] for need in needs if need) and not (retrieved and of_answers):
            possible.append(name)
    return possible
