"""One question as HTML: the bar, the list of questions, the chain and the result."""

from __future__ import annotations

import json
from contextlib import suppress

from markupsafe import Markup

from rallebench.core.errors import RalleError
from rallebench.core.types import Step
from rallebench.gui import form, html
from rallebench.gui.frame import Page
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places._bench import Bench, bench_example
from rallebench.gui.places._chain import draw
from rallebench.gui.places._questions import question_column
from rallebench.gui.places._steps import gist, gold_box, output, question_html, result
from rallebench.gui.places._template_states import states
from rallebench.views import chain_forms
from rallebench.views.chain_versions import is_saved

MODES = (
    ("#/build/one", "One question"),
    ("#/build/few", "A few questions"),
    ("#/build/chat", "Chat"),
    ("#/build/agent", "Agent"),
)
OWN = "Your own question"


def columns(bar: str, left: str, middle: str, right: str, title: str = "") -> Markup:
    """Draw the bar above three columns: question list, chain editor, results. ``title``: of a view that shows none."""
    hidden = html.hidden_title(title) if title else Markup()
    return Markup('{}<div class="bar">{}</div><div class="cols three build">{}{}{}</div>').format(
        hidden, bar, left, middle, right
    )


RUNNING = "The chain is running …"


def status(mode: str, words: str = "") -> Markup:
    """Draw the mode switch on the left of the bar, with the status of this mode."""
    switch = html.segments(MODES, f"#/build/{mode}")
    return Markup('{}<span id="{}-status" class="note status" role="status">{}</span>').format(
        switch, mode, words
    )


def view(page: Page, bench: Bench) -> Markup:
    """Draw the bar and the three columns; errors appear above the result."""
    return columns(
        bar(page, bench),
        Markup('<div class="start" role="region" aria-label="Questions" data-form>{}</div>').format(
            question_column(page, bench)
        ),
        Markup(
            '<div class="mid" role="region" aria-label="Chain"><div id="build-draft">{}</div><div id="build-question">{}</div><div id="chain-form" data-form data-run>{}</div></div>'
        ).format(left_behind(page, bench), question(page, bench), chain_html(page, bench)),
        Markup(
            '<div class="side" role="region" aria-label="Result"><div data-problems></div><div id="build-result">{}</div></div>'
        ).format(result_html(page, bench)),
    )


def saved_names(page: Page, bench: Bench) -> list[str]:
    """Return the names of the saved chains, and that of the chain in Build."""
    names = list(page.workspace.chain_paths())
    return names if bench.chain.name in names else [bench.chain.name, *names]


def chain_choice(page: Page, bench: Bench) -> Markup:
    """Draw the choice of the chain that answers in Chat."""
    edited = "" if is_saved(page.workspace, bench.chain) else " (edited)"
    names = [
        (name, f"{name}{edited}" if name == bench.chain.name else name)
        for name in saved_names(page, bench)
    ]
    follow = form.on_change("chat.choose_chain")
    return form.chooser("Chain", "chain", names, bench.chain.name, more=follow)


def bar(page: Page, bench: Bench) -> Markup:
    """Draw the mode switch on the left, and the chain with its actions on the right."""
    fields, stopped = "#chain-form", bench.is_stopped and bench.episode is None
    more = Markup(' aria-label="Chain" class="chains"{}').format(
        form.on_change("build.load_chain", with_=fields)
    )
    return Markup().join(
        (
            status("one", "Stopped" if stopped else page.workbench.asking.reply_cache_warning),
            form.select("chain", saved_names(page, bench), bench.chain.name, more=more),
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


def question(page: Page, bench: Bench) -> Markup:
    """Draw the question, its gold pages, and its position in the dataset. Its gold answers stand below the verdict."""
    try:
        example = bench_example(page, bench)
    except RalleError as error:
        return html.hidden_title("One question") + html.problem(error)
    gold, examples = example.gold, page.workspace.questions(bench.dataset)
    parts = Markup()
    if pages := list(gold.titles or gold.pages)[:3]:
        tags = [
            Markup('<em class="tag gold" dir="auto">{}</em>').format(gold.titles.get(x) or x)
            for x in pages
        ]
        parts += Markup("<span><small>page</small> {}</span>").format(Markup(" ").join(tags))
    known = any(x.question.qid == example.question.qid for x in examples)
    where = (
        f"{example.question.qid} of {len(examples):,}"
        if known
        else f"{OWN}: nothing to compare with"
    )
    pick = Markup(
        '<a class="link" href="#/build/few" data-do="few.pick">Pick for a few questions</a>'
    )
    below = Markup("{}<small>{}</small>{}").format(parts, where, pick if known else Markup())
    return question_html(example.question.text, below)


def question_patch(page: Page, bench: Bench) -> Patch:
    """Return a patch of the parts that another question changes. The fields of the chain stay, with what is typed there."""
    parts: dict[str, str] = {
        "build-question": question(page, bench),
        "build-result": result_html(page, bench),
    }
    for index, state in enumerate(states(page, bench)):
        line, out = action_parts(page, bench, index)
        parts |= {f"gist-{index}": line, f"out-{index}": out, f"a{index}_state": state}
    return Patch(parts, event=PageEvent("rb-fresh"))


def chain_html(page: Page, bench: Bench, opened: int | None = None) -> Markup:
    """Draw all actions with their outputs."""
    count = len(bench.chain.actions)
    parts = {i: action_parts(page, bench, i) for i in range(count)}
    gists, outputs = ({i: part[side] for i, part in parts.items()} for side in (0, 1))
    last = count - 1 if opened is None else opened
    return draw(page.workbench, bench.chain, outputs, gists, states(page, bench), last)


def action_parts(page: Page, bench: Bench, index: int) -> tuple[str, str]:
    """Return an action's summary and output; the output is empty before its execution, or a note if it failed: its error
    stands in the verdict.
    """
    if (step := bench.steps.get(index)) is not None:
        return gist(step, bench_example(page, bench).gold), output_html(page, bench, index, step)
    if bench.episode is None or not bench.episode.error or not bench.is_answered_by(bench.chain):
        return "", ""
    if index > len(bench.steps):
        return "not reached", ""
    return Markup('<span class="bad">failed</span>'), html.note("No reply: see the error.")


def output_html(page: Page, bench: Bench, index: int, step: Step) -> Markup:
    """Draw the output of an action, next to its previous output if they differ."""
    before = bench.before.get(index)
    if before and (before.request, before.reply.text) == (step.request, step.reply.text):
        before = None
    marks = ("", "")
    if index == len(bench.chain.actions) - 1:
        marks = (bench.verdict_kind, bench.verdict_before)
    return output(step, bench_example(page, bench).gold, before, marks)


def result_html(page: Page, bench: Bench) -> Markup:
    """Draw the right column."""
    if page.read_only and bench.episode is None:
        return html.empty(
            "Read-only: no chain is run here. Runs shows the answers of earlier runs."
        )
    if bench.episode is None or bench.verdict is None:
        return expected_answer(page, bench) + html.empty(why_no_result(bench))
    prices, episode = page.workbench.models.prices_of_use(), bench.episode
    example = bench_example(page, bench)
    return result(example, episode.steps, episode.answer, episode.error, bench.verdict, prices)


def why_no_result(bench: Bench) -> str:
    """Say why there is no result yet."""
    if bench.running is not None and bench.episode is None:
        return Markup('<span id="one-doing">{}</span>').format(RUNNING)
    if bench.is_stopped and bench.episode is None:
        return "Stopped before there was an answer. Run asks again."
    return "Run the chain to see its answer, and where it was lost."


def expected_answer(page: Page, bench: Bench) -> Markup:
    """Draw the gold answers of the question before there is an answer."""
    with suppress(RalleError):  # the question's own column says so
        return gold_box(bench_example(page, bench).gold)
    return Markup()


def header(page: Page, bench: Bench) -> Patch:
    """Draw the chain in the header, with a dot for unsaved changes; the browser also stores an edited chain."""
    edited_now = not is_saved(page.workspace, bench.chain)
    dot = (
        Markup('<i class="dot" title="Unsaved changes" data-unsaved></i>')
        if edited_now
        else Markup()
    )
    patch = Patch(
        chain=Markup('<a href="#/build/one"><span>Chain</span> <b>{}</b>{}</a>').format(
            bench.chain.name, dot
        )
    )
    edits = (
        {"window": bench.window, "chain": chain_forms.draft(bench.chain)} if edited_now else None
    )
    draft = json.dumps(edits, ensure_ascii=False) if edits else None
    if draft != bench.draft:  # a window without edits must not discard another window's draft
        bench.draft = draft
        patch |= Patch(store={"rb-draft": draft})
    return patch


def left_behind(page: Page, bench: Bench, draft: str = "") -> Markup:
    """Offer to restore an edited chain that the browser kept after a crash; "" if there is none."""
    with suppress(ValueError, LookupError, TypeError, RalleError):  # "" or damaged: not a draft
        chain = chain_forms.read_draft(json.loads(draft)["chain"])
        if not is_saved(page.workspace, chain) and is_saved(page.workspace, bench.chain):
            bench.left_behind = chain
    if bench.left_behind is None:
        return Markup()
    return Markup('<p class="say">Your unsaved edits of {} are still here. {}{}</p>').format(
        bench.left_behind.name,
        html.button("Restore", "build.restore_edits"),
        html.button("Discard", "build.discard_edits", kind="quiet"),
    )


def chain_patch(page: Page, bench: Bench, opened: int | None = None) -> Patch:
    """Return a patch that redraws the bar and the chain."""
    part = "v-build-one", view(page, bench)
    if opened is not None:
        part = "chain-form", chain_html(page, bench, opened)
    chat = Patch({"chat-chain": chain_choice(page, bench)})
    return Patch(dict([part])) | chat | header(page, bench) | stale(bench)


def stale(bench: Bench) -> Patch:
    """Mark outputs that are out of date."""
    index = bench.stale_from
    return Patch() if index is None else Patch(event=PageEvent("rb-stale", index=index))
