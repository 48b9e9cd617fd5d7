"""The list of questions at the left of Build: filters, counts, verdicts and last answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rallebench.core.errors import RalleError
from rallebench.core.types import Example
from rallebench.gui.form import select
from rallebench.gui.frame import Page
from rallebench.gui.html import attributes, chips, e, mark, window
from rallebench.gui.places._bench import Bench
from rallebench.services.run_questions import last_verdicts

FILTERS = (("", "All"), ("wrong", "Wrong"), ("lost", "Not retrieved"), ("format", "Format"))
WRONG = frozenset({"wrong", "lost", "format", "failed"})

Known = Mapping[str, tuple[str, str]]
"""Question id → (verdict, last answer)."""


def known_of(page: Page, bench: Bench) -> dict[str, tuple[str, str]]:
    """Verdicts of the newest run of this chain on the dataset, and over them those of this window."""
    try:
        known = dict(last_verdicts(page.workbench, bench.dataset, bench.chain.name))
    except RalleError:
        known = {}
    known |= {qid: v for (dataset, qid), v in bench.verdicts.items() if dataset == bench.dataset}
    return known


def filtered(examples: Sequence[Example], known: Known, only: str, words: str) -> list[Example]:
    """The questions of one verdict that hold all words, in the question, the gold or the last answer."""
    wanted = words.lower().split()

    def fits(example: Example) -> bool:
        verdict, answer = known.get(example.question.qid, ("none", ""))
        if only and verdict != only and not (only == "wrong" and verdict in WRONG):
            return False
        text = f"{example.question.qid} {example.question.text} {answer} {' '.join(example.gold.answers[:3])}".lower()
        return all(word in text for word in wanted)

    return [example for example in examples if fits(example)] if only or wanted else list(examples)


def counts(examples: Sequence[Example], known: Known) -> dict[str, int]:
    """Filter → number of questions."""
    verdicts = [known.get(example.question.qid, ("none", ""))[0] for example in examples]
    numbers = {name: verdicts.count(name) for name, _ in FILTERS[2:]}
    return {"": len(examples), "wrong": sum(v in WRONG for v in verdicts), **numbers}


def left(page: Page, bench: Bench) -> str:
    """The whole column."""
    datasets = [(name, name) for name in page.workbench.workspace.dataset_paths()]
    choose = select(
        "dataset",
        datasets,
        bench.dataset,
        more=' aria-label="Dataset" data-do="build.dataset" data-on="change"',
    )
    field = (
        f'<input name="words" value="{e(bench.words)}" placeholder="Filter, or type a question of your own" aria-label="Filter, or a question of your own" '
        'data-filter data-do="build.filter" data-on="input" id="build-words">'
    )
    keys = '<div class="foot"><span><kbd>J</kbd> <kbd>K</kbd> move</span><span><kbd>Ctrl</kbd> <kbd>Enter</kbd> run</span><span><kbd>?</kbd> keys</span></div>'
    return (
        f'{choose}{field}<div id="build-list" class="stack-list">{listed(page, bench)}</div>{keys}'
    )


def chips_html(page: Page, bench: Bench) -> str:
    """The filters with their counts."""
    numbers = counts(page.workbench.asking.questions(bench.dataset), known_of(page, bench))
    offered = [(key, label, numbers[key]) for key, label in FILTERS if not key or numbers[key]]
    return chips(offered, bench.only, "build.only")


def listed(page: Page, bench: Bench) -> str:
    """Chips with counts, and the list below them."""
    examples, known = page.workbench.asking.questions(bench.dataset), known_of(page, bench)
    shown = filtered(examples, known, bench.only, bench.words)
    at = next((i for i, x in enumerate(shown) if x.question.qid == bench.question), -1)
    own = ""
    if words := bench.words.strip():
        own = f'<button type="button" class="own"{attributes(do="build.own", words=words)}>Ask “{e(words[:60])}”</button>'
    key = {"dataset": bench.dataset, "only": bench.only, "words": bench.words}
    rows = window("build-questions", key, len(shown), "build.pick", at=at, row=74)
    nothing = "" if shown else '<p class="note">No question of this dataset fits the filter.</p>'
    return f'<div id="build-chips">{chips_html(page, bench)}</div>{own}{nothing}{rows}'


def question_rows(page: Page, key: dict[str, Any], start: int, count: int) -> list[tuple[str, str]]:
    """Rows of the list."""
    bench = page.session(key["window"]).get("build")
    if not isinstance(bench, Bench):
        return []
    known = known_of(page, bench)
    examples = filtered(
        page.workbench.asking.questions(key["dataset"]), known, key["only"], key["words"]
    )
    return [(x.question.qid, row(x, known)) for x in examples[start : start + count]]


def row(example: Example, known: Known) -> str:
    """A question with its verdict and last answer."""
    verdict, answer = known.get(example.question.qid, ("none", ""))
    text = " ".join(example.question.text.split())
    return f'{mark(verdict)}<span><em dir="auto">{e(text[:200])}</em><small dir="auto">{e(answer[:120]) or ("not asked yet" if verdict == "none" else "")}</small></span>'
