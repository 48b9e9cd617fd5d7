"""KILT's eleven sets as suites (Petroni et al. 2021, arXiv:2009.02252), with RaLLe's chains and tables (arXiv:2308.10633).

``kilt-nq`` and its kin are one set; ``kilt`` is several, with the macro-average. Every set, answered in every way that is
asked for, is a run of a chain as any other. ``compat=original`` answers and counts as RaLLe does: a linked title ends at its
first comma, and has_answer is over the answers that are not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rallebench.chains.chain import as_flow
from rallebench.core.errors import UsageError
from rallebench.core.experiments import Experiment, ExperimentRequest, Report
from rallebench.core.runs import RunRequest, Values
from rallebench.core.settings import Setting
from rallebench.core.types import Chain, Episode, Example, Flow, Question
from rallebench.engine.score import DEFAULT_METRICS, has_gold, score_episode
from rallebench.experiments.papers import SUITES, Suite
from rallebench.experiments.papers.kilt.chains import Way, chain_of, modes_of
from rallebench.experiments.papers.kilt.data import Questions, files_of, read
from rallebench.experiments.papers.kilt.sets import SETS, TASKS, KiltSet, sets_of
from rallebench.experiments.papers.kilt.tables import Done, averages, plots_of, tables_of
from rallebench.experiments.runs import scored_run
from rallebench.metrics import metric, read_card
from rallebench.workspace.flows import chain_flow

OWN = {
    "data": Setting(
        str,
        "",
        about="folder with KILT's files, named as KILT names them: nq-dev-kilt.jsonl …; of one set also a file or a question set",
    ),
    "file": Setting(str, "", about="a file in KILT's form, or a question set, instead"),
    "split": Setting(str, "dev", choices=("dev", "train")),
    "mode": Setting(
        str, "read", about="read, closed-book, retrieve, three-action; several with commas"
    ),
    "retriever": Setting(str, "", about="the index that is asked"),
    "k": Setting(
        int, 5, 1, 1000, about="passages per question (RaLLe's file of three-action AY2 has 1)"
    ),
    "rewrite": Setting(
        bool,
        True,
        about="REWRITE-EL: entity linking asks 'What is \"mention\" ?'; false: the whole text",
    ),
    "compat": Setting(str, "corrected", choices=("corrected", "original")),
}
SEVERAL = {
    "datasets": Setting(
        str, "", about=f"of {', '.join(SETS)}; default: those whose files are there"
    ),
    **OWN,
    "file": Setting(str, "", about="files in KILT's form instead: nq=FILE,hopo=FILE"),
}
NAMED_BY = ("datasets", "file", "mode", "retriever", "k")
"""Settings that tell the runs of a suite apart by name."""


@SUITES.register("kilt", needs_llm=False, form=SEVERAL, named_by=NAMED_BY)
def kilt(asked: ExperimentRequest) -> Experiment:
    """KILT, several sets with their macro-average, as in RaLLe's tables."""
    return (yield from _answered(asked, sets_of(asked.settings["datasets"])))


def _one(kilt_set: KiltSet) -> Suite:
    def suite(asked: ExperimentRequest) -> Experiment:
        return (yield from _answered(asked, (kilt_set,)))

    return suite


for _set in SETS.values():
    SUITES.register(
        f"kilt-{_set.name}",
        about=f"KILT, {_set.label}: {TASKS[_set.task]}, by {_set.headline} and {_set.variant}.",
        needs_llm=False,
        form=OWN,
        named_by=NAMED_BY,
    )(_one(_set))


def _answered(asked: ExperimentRequest, sets: Sequence[KiltSet]) -> Experiment:
    """Every set in every way, one after another; all is read and checked before the first is asked."""
    s = asked.settings
    modes = modes_of(s["mode"])
    files = files_of(asked.workspace, sets, s["data"], s["file"], s["split"])
    chains: dict[tuple[str, str], Chain] = {}
    without: list[str] = []
    for name in files:
        for mode in modes:
            way = Way(
                mode, asked.llm, s["retriever"], s["k"], s["rewrite"], s["compat"] == "original"
            )
            chain = chain_of(asked.workspace, SETS[name], way)
            if chain is None:
                without.append(
                    f"{SETS[name].label} has no chain for {mode} and was left out there."
                )
            else:
                chains[name, mode] = chain
    if not chains:
        raise UsageError(
            f"--set mode={s['mode']}: {' '.join(without)} Choose another way, or another set."
        )
    bracket = "has_answer" if s["compat"] == "original" else "has_answer_all"
    found = {name: read(SETS[name], *file, s["split"], asked.limit) for name, file in files.items()}
    parts = {
        place: _part(found[place[0]], place[1], chain, asked.llm, bracket)
        for place, chain in chains.items()
    }
    notes = [
        *(questions.differs for questions in found.values()),
        *without,
        *_without_pages(list(parts.values())),
    ]
    parts = {place: part for place, part in parts.items() if part.rates.columns}
    if not parts:
        raise UsageError(
            f"--set mode={s['mode']}: nothing could be scored. {' '.join(filter(None, notes))}"
        )
    done = []
    for (name, mode), part in parts.items():
        answered = yield part
        done.append(Done(SETS[name], mode, answered))
        if answered.n_errors:
            notes.append(
                f"{part.label}: {answered.n_errors} of {answered.n} questions failed; they are counted here and in no mean."
            )
    report = {
        "headline": {name: SETS[name].headline for name in found},
        "averages": averages(done, bracket),
        "compat": s["compat"],
        "data": {name: _about(questions) for name, questions in found.items()},
    }
    return Report(
        report,
        tuple(filter(None, notes)),
        tables=tables_of(done, asked.llm, s["retriever"], bracket),
        figures=plots_of(done),
    )


def _part(questions: Questions, mode: str, chain: Chain, llm: str, bracket: str) -> RunRequest:
    one = questions.kilt
    kinds = {action.kind for action in chain.actions}
    asked_of = [action.target for action in chain.actions if action.kind == "retrieve"]
    wanted = _metrics(one, mode, "retrieve" in kinds, bracket)
    have = has_gold(questions.examples)
    names = [name for name in wanted if _possible(name, have)]
    scored_by = [
        name
        for name in DEFAULT_METRICS
        if _possible(name, have) and (mode != "retrieve" or not _of_answers(name))
    ]
    return scored_run(
        f"{one.name} {mode}",
        "chain",
        questions.name,
        questions.examples,
        _flow(chain),
        chain_flow(chain).settings,
        _score(names),
        {name: f"{metric(name).traits['label']}: {read_card(name).definition}" for name in names},
        (llm,) if "generate" in kinds else (),
        tuple(dict.fromkeys(asked_of)),
        chain=chain,
        metrics=tuple(dict.fromkeys([*names, *scored_by])),
        file=str(questions.path),
        sha256=questions.sha256,
    )


def _flow(chain: Chain) -> Callable[[Question], Flow]:
    return lambda question: as_flow(chain, question)


def _score(names: Sequence[str]) -> Callable[[Example, Episode], Values]:
    return lambda example, episode: {
        score.metric: score.value for score in score_episode(episode, example, names)
    }


def _metrics(one: KiltSet, mode: str, retrieves: bool, bracket: str) -> list[str]:
    """What RaLLe reports of a set."""
    answers = (
        [] if mode == "retrieve" else [one.headline, one.variant, *([bracket] if one.short else [])]
    )
    return [*answers, *(["Rprec", "recall@5"] if retrieves else [])]


def _possible(name: str, have: Mapping[str, int]) -> bool:
    return all(have[need] for need in metric(name).traits.get("needs", "").split("+") if need)


def _of_answers(name: str) -> bool:
    return "answers" in metric(name).traits.get("needs", "") and not name.startswith("answer_in")


def _without_pages(parts: Sequence[RunRequest]) -> list[str]:
    """One sentence per set whose gold names no pages."""
    return [
        f"{part.dataset.name}: its gold names no pages, so retrieval and KILT's variants are not scored."
        for part in {part.dataset.file: part for part in parts if part.flow.retrievers}.values()
        if not any(example.gold.pages for example in part.examples)
    ]


def _about(questions: Questions) -> dict[str, Any]:
    return {"file": str(questions.path), "rows": questions.rows, "official": not questions.differs}
