"""One question: the bar, the list of questions, the chain and the result, as HTML."""

from __future__ import annotations

import json
from contextlib import suppress

from rallebench.core.errors import RalleError
from rallebench.core.types import Chain, Step
from rallebench.gui.frame import Page, Patch
from rallebench.gui.html import button, e, empty, segments
from rallebench.gui.places._bench import Bench, example_of
from rallebench.gui.places._chain import draw
from rallebench.gui.places._questions import left
from rallebench.gui.places._steps import gist, output, result
from rallebench.services.chain_forms import chain_from_json, chain_to_json
from rallebench.services.chain_versions import is_saved

MODES = (
    ("#/build/one", "One question"),
    ("#/build/few", "A few questions"),
    ("#/build/chat", "Chat"),
    ("#/build/agent", "Agent"),
)
OWN = "Your own question"


def view(page: Page, bench: Bench) -> str:
    """The bar and the three columns."""
    return (
        f'{bar(page, bench)}<div class="cols three build" data-problems-off><div class="start" data-form>{left(page, bench)}</div>'
        f'<div class="mid"><div id="build-draft">{left_behind(page, bench)}</div><div id="build-question">{question(page, bench)}</div><div id="chain-form" data-form>{chain_html(page, bench)}</div></div>'
        f'<div class="side" id="build-result" data-problems>{result_html(page, bench)}</div></div>'
    )


def bar(page: Page, bench: Bench) -> str:
    """Modes at the left; the chain and what is done with it at the right."""
    names = list(page.workbench.workspace.chain_paths())
    options = "".join(
        f'<option value="{e(name)}"{" selected" if name == bench.chain.name else ""}>{e(name)}</option>'
        for name in names
    )
    unsaved = (
        "" if bench.chain.name in names else f"<option selected>{e(bench.chain.name)}</option>"
    )
    chains = f'<select name="chain" aria-label="Chain" class="chains" data-do="build.chain" data-on="change" data-with="#chain-form">{unsaved}{options}</select>'
    form = {"with": "#chain-form"}
    return (
        f'<div class="bar">{segments(MODES, "#/build/one")}<span id="build-status" class="note status" role="status">{e(page.workbench.asking.memo_warning)}</span>'
        f"{chains}{button('Undo', 'build.undo', kind='quiet', title='Undo the last change of the chain')}"
        f"{button('Versions', 'build.versions', kind='quiet', **form)}{button('Code', 'build.code', kind='quiet', **form)}"
        f"{button('Save', 'build.save', save='', **form)}{button('Run on a dataset', 'build.benchmark', **form)}"
        f"{button('Run', 'build.run', kind='primary', **form)}</div>"
    )


def question(page: Page, bench: Bench) -> str:
    """The question, its gold, and where it is in the dataset."""
    try:
        example = example_of(page, bench)
    except RalleError as error:
        return f'<div class="asked-question"><p class="problem">{e(error)}</p></div>'
    gold, examples = example.gold, page.workbench.asking.questions(bench.dataset)
    answers = " · ".join(
        f"<mark>{e(a)}</mark>" if not i else e(a) for i, a in enumerate(gold.answers[:4])
    )
    pages = " ".join(
        f'<em class="tag gold" dir="auto">{e(gold.titles.get(page, page))}</em>'
        for page in list(gold.titles or gold.pages)[:3]
    )
    parts = [
        f"<span><small>gold</small> {answers}</span>" if answers else "",
        f"<span><small>page</small> {pages}</span>" if pages else "",
    ]
    known = any(x.question.qid == example.question.qid for x in examples)
    parts.append(
        f"<small>{e(example.question.qid)} of {len(examples):,}</small>"
        if known
        else f"<small>{OWN}: nothing to compare with</small>"
    )
    return f'<div class="asked-question"><h1 dir="auto">{e(example.question.text)}</h1><p>{"".join(parts)}</p></div>'


def chain_html(page: Page, bench: Bench, opened: int | None = None) -> str:
    """All actions with what they gave."""
    try:
        gold = example_of(page, bench).gold
    except RalleError:
        return draw(page.workbench, bench.chain, {}, {})
    outputs = {i: output_html(page, bench, i, step) for i, step in bench.steps.items()}
    gists = {i: gist(step, gold) for i, step in bench.steps.items()}
    last = len(bench.chain.actions) - 1 if opened is None else opened
    return draw(page.workbench, bench.chain, outputs, gists, last)


def output_html(page: Page, bench: Bench, index: int, step: Step) -> str:
    """The output of an action, the one before beside it where it differs."""
    before = bench.before.get(index)
    if before is not None and (before.request, before.reply.text) == (
        step.request,
        step.reply.text,
    ):
        before = None
    last = index == len(bench.chain.actions) - 1
    marks = (
        (bench.verdict.kind if bench.verdict else "", bench.verdict_before) if last else ("", "")
    )
    return output(step, example_of(page, bench).gold, before, page.workbench.models.prices(), marks)


def result_html(page: Page, bench: Bench) -> str:
    """The right column."""
    if bench.episode is None or bench.verdict is None:
        return empty("Run the chain to see its answer, and where it was lost.")
    episode = bench.episode
    return result(
        example_of(page, bench),
        episode.steps,
        episode.answer,
        episode.error,
        bench.verdict,
        page.workbench.models.prices(),
    )


def is_edited(page: Page, chain: Chain) -> bool:
    """Whether a chain would be lost if it were replaced."""
    return not is_saved(page.workbench, chain)


def header(page: Page, bench: Bench) -> Patch:
    """The chain in the header, with a dot while it has unsaved changes; an edited one is also kept by the browser."""
    edited_now = is_edited(page, bench.chain)
    dot = '<i class="dot" title="Unsaved changes" data-unsaved></i>' if edited_now else ""
    patch: Patch = {
        "chain": f'<a href="#/build/one"><span>Chain</span> <b>{e(bench.chain.name)}</b>{dot}</a>'
    }
    kept = {"window": bench.window, "chain": chain_to_json(bench.chain)} if edited_now else None
    draft = json.dumps(kept, ensure_ascii=False) if kept else None
    if draft != bench.draft:  # a window without edits leaves the draft of another alone
        bench.draft = draft
        patch["store"] = {"rb-draft": draft}
    return patch


def left_behind(page: Page, bench: Bench, draft: str = "") -> str:
    """The offer to restore the edited chain that the browser kept through a crash; "" where there is none."""
    with suppress(ValueError, LookupError, TypeError, RalleError):  # "" or damaged: there is none
        chain = chain_from_json(json.loads(draft)["chain"])
        if chain != bench.chain and is_edited(page, chain) and not is_edited(page, bench.chain):
            bench.left_behind = chain
    if bench.left_behind is None:
        return ""
    return (
        f'<p class="say">Your unsaved edits of {e(bench.left_behind.name)} are still here. '
        f"{button('Restore', 'build.restore-edits')}{button('Discard', 'build.discard-edits', kind='quiet')}</p>"
    )


def chain_patch(page: Page, bench: Bench, opened: int | None = None) -> Patch:
    """The bar and the chain drawn again."""
    return {
        "#v-build-one": view(page, bench) if opened is None else None,
        "#chain-form": chain_html(page, bench, opened),
        **header(page, bench),
    }
