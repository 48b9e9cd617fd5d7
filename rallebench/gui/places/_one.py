"""One question: the bar, the list of questions, the chain and the result, as HTML."""

from __future__ import annotations

import json
from contextlib import suppress

from rallebench.core.errors import RalleError
from rallebench.core.types import Step
from rallebench.gui import form, html
from rallebench.gui.frame import Page, Patch
from rallebench.gui.html import e
from rallebench.gui.places._bench import Bench, example_of
from rallebench.gui.places._chain import draw
from rallebench.gui.places._questions import left
from rallebench.gui.places._steps import gist, output, question_html, result
from rallebench.services.chain_forms import chain_from_json, chain_to_json
from rallebench.services.chain_versions import is_saved

MODES = (
    ("#/build/one", "One question"),
    ("#/build/few", "A few questions"),
    ("#/build/chat", "Chat"),
    ("#/build/agent", "Agent"),
)
OWN = "Your own question"


def columns(bar: str, left: str, middle: str, right: str) -> str:
    """A bar over three columns: what may be chosen, what is worked on, what came of it."""
    return f'<div class="bar">{bar}</div><div class="cols three build">{left}{middle}{right}</div>'


def status(mode: str, words: str = "") -> str:
    """The modes at the left of the bar, and what goes on in this one."""
    switch = html.segments(MODES, f"#/build/{mode}")
    return f'{switch}<span id="{mode}-status" class="note status" role="status">{e(words)}</span>'


def view(page: Page, bench: Bench) -> str:
    """The bar and the three columns; what goes wrong is said over the result."""
    return columns(
        bar(page, bench),
        f'<div class="start" data-form>{left(page, bench)}</div>',
        f'<div class="mid"><div id="build-draft">{left_behind(page, bench)}</div><div id="build-question">{question(page, bench)}</div><div id="chain-form" data-form>{chain_html(page, bench)}</div></div>',
        f'<div class="side"><div data-problems></div><div id="build-result">{result_html(page, bench)}</div></div>',
    )


def bar(page: Page, bench: Bench) -> str:
    """Modes at the left; the chain and what is done with it at the right."""
    names = list(page.workbench.workspace.chain_paths())
    if bench.chain.name not in names:
        names.insert(0, bench.chain.name)
    fields = "#chain-form"
    more = f' aria-label="Chain" class="chains"{form.on_change("build.load_chain", with_=fields)}'
    return "".join(
        (
            status("one", page.workbench.asking.reply_cache_warning),
            form.select("chain", names, bench.chain.name, more=more),
            html.button(
                "Undo", "build.undo", kind="quiet", title="Undo the last change of the chain"
            ),
            html.button("Versions", "versions.show", kind="quiet", with_=fields),
            html.button("Code", "code.show", kind="quiet", with_=fields),
            html.button("Save", "versions.save", save="", with_=fields),
            html.button("Run on a dataset", "build.benchmark", with_=fields),
            html.button("Run", "build.run", kind="primary", with_=fields),
        )
    )


def question(page: Page, bench: Bench) -> str:
    """The question, its gold, and where it is in the dataset."""
    try:
        example = example_of(page, bench)
    except RalleError as error:
        return f'<div class="asked-question">{html.problem(error)}</div>'
    gold, examples = example.gold, page.workbench.asking.questions(bench.dataset)
    parts = ""
    if gold.answers:
        others = [f" · {e(answer)}" for answer in gold.answers[1:4]]
        answers = f"<mark>{e(gold.answers[0])}</mark>{''.join(others)}"
        parts += f"<span><small>gold</small> {answers}</span>"
    if pages := list(gold.titles or gold.pages)[:3]:
        tags = [f'<em class="tag gold" dir="auto">{e(gold.titles.get(x, x))}</em>' for x in pages]
        parts += f"<span><small>page</small> {' '.join(tags)}</span>"
    known = any(x.question.qid == example.question.qid for x in examples)
    where = (
        f"{example.question.qid} of {len(examples):,}"
        if known
        else f"{OWN}: nothing to compare with"
    )
    pick = '<a class="link" href="#/build/few" data-do="few.pick">Pick for a few questions</a>'
    below = f"{parts}<small>{e(where)}</small>{pick if known else ''}"
    return question_html(example.question.text, below)


def chain_html(page: Page, bench: Bench, opened: int | None = None) -> str:
    """All actions with what they gave."""
    count = len(bench.chain.actions)
    parts = {i: action_parts(page, bench, i) for i in range(count)}
    gists, outputs = ({i: part[side] for i, part in parts.items()} for side in (0, 1))
    last = count - 1 if opened is None else opened
    return draw(page.workbench, bench.chain, outputs, gists, last)


def action_parts(page: Page, bench: Bench, index: int) -> tuple[str, str]:
    """What an action gave, in its line and beside its fields: nothing before it was executed, the error where it failed."""
    if (step := bench.steps.get(index)) is not None:
        return gist(step, example_of(page, bench).gold), output_html(page, bench, index, step)
    if bench.episode is None or not bench.episode.error or not bench.is_answered_by(bench.chain):
        return "", ""
    if index > len(bench.steps):
        return "not reached", ""
    return '<span class="bad">failed</span>', html.problem(bench.episode.error)


def output_html(page: Page, bench: Bench, index: int, step: Step) -> str:
    """The output of an action, the one before beside it where it differs."""
    before = bench.before.get(index)
    if before and (before.request, before.reply.text) == (step.request, step.reply.text):
        before = None
    marks = ("", "")
    if index == len(bench.chain.actions) - 1:
        marks = (bench.verdict_kind, bench.verdict_before)
    return output(step, example_of(page, bench).gold, before, marks)


def result_html(page: Page, bench: Bench) -> str:
    """The right column."""
    if bench.running is not None and bench.episode is None:
        return html.empty("The chain is running …")
    if bench.episode is None or bench.verdict is None:
        return html.empty("Run the chain to see its answer, and where it was lost.")
    prices, episode = page.workbench.models.prices(), bench.episode
    example = example_of(page, bench)
    return result(example, episode.steps, episode.answer, episode.error, bench.verdict, prices)


def header(page: Page, bench: Bench) -> Patch:
    """The chain in the header, with a dot while it has unsaved changes; an edited one is also kept by the browser."""
    edited_now = not is_saved(page.workbench, bench.chain)
    dot = '<i class="dot" title="Unsaved changes" data-unsaved></i>' if edited_now else ""
    patch: Patch = {
        "chain": f'<a href="#/build/one"><span>Chain</span> <b>{e(bench.chain.name)}</b>{dot}</a>'
    }
    edits = {"window": bench.window, "chain": chain_to_json(bench.chain)} if edited_now else None
    draft = json.dumps(edits, ensure_ascii=False) if edits else None
    if draft != bench.draft:  # a window without edits leaves the draft of another alone
        bench.draft = draft
        patch["store"] = {"rb-draft": draft}
    return patch


def left_behind(page: Page, bench: Bench, draft: str = "") -> str:
    """The offer to restore the edited chain that the browser kept through a crash; "" where there is none."""
    with suppress(ValueError, LookupError, TypeError, RalleError):  # "" or damaged: there is none
        chain = chain_from_json(json.loads(draft)["chain"])
        if not is_saved(page.workbench, chain) and is_saved(page.workbench, bench.chain):
            bench.left_behind = chain
    if bench.left_behind is None:
        return ""
    return (
        f'<p class="say">Your unsaved edits of {e(bench.left_behind.name)} are still here. '
        f"{html.button('Restore', 'build.restore_edits')}{html.button('Discard', 'build.discard_edits', kind='quiet')}</p>"
    )


def chain_patch(page: Page, bench: Bench, opened: int | None = None) -> Patch:
    """The bar and the chain drawn again."""
    return {
        "#v-build-one": view(page, bench) if opened is None else None,
        "#chain-form": chain_html(page, bench, opened),
        **header(page, bench),
        **stale(bench),
    }


def stale(bench: Bench) -> Patch:
    """Marks what the chain as it is now did not give."""
    index = bench.stale_from
    return {} if index is None else {"event": {"name": "rb-stale", "index": index}}
