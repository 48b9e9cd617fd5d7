"""Build: a chain on one question, action by action, with the verdict always visible."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.types import Chain
from rallebench.gui import panels
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.patches import NO_CHANGE, Patch
from rallebench.gui.places import (
    _agent,
    _bench,
    _chat,
    _code,
    _few,
    _few_columns,
    _few_runs,
    _one,
    _versions,
)
from rallebench.gui.places._bench import Bench, bench_example, read_bench, window_bench
from rallebench.gui.places._chain import edit_actions, read_chain, summaries
from rallebench.gui.places._execution import (
    earlier,
    execute,
    run,
    run_action,
)
from rallebench.gui.places._one import chain_patch, header, stale, view
from rallebench.gui.places._questions import list_parts, question_rows
from rallebench.gui.places._template_states import states_patch
from rallebench.views.chain_versions import is_saved


@PLACES.register("build", label="Build", order=1)
def build(page: Page) -> None:
    """Develop a chain."""
    page.view("build/one", open_one, back="build/one")
    page.header = lambda event: header(page, window_bench(page, event))
    page.actions("build", show_prompt, edit, undo, restore_edits, discard_edits, reads=True)
    page.actions("build", load_chain, replace_chain, choose_dataset, filter_list, pick, reads=True)
    page.actions("build", run, run_action, benchmark)
    for verb in ("add", "move", "remove"):
        page.action(f"build.{verb}", restructure, reads=True)
    page.rows("build-questions", question_rows)
    for part in (_few, _few_columns, _few_runs, _chat, _agent, _versions, _code):
        part.register(page)


# opening


def open_one(page: Page, event: Event) -> Iterator[Patch]:
    """Open the view as the window left it, or as the address says; run the chain if it has not run yet."""
    bench = window_bench(page, event)
    asks = follow(page, bench, event)
    _one.left_behind(page, bench, event.text("draft"))
    return opened_view(page, bench, event, asks)


def opened_view(page: Page, bench: Bench, event: Event, asks: Patch) -> Iterator[Patch]:
    """Open the view, then run the chain; ``asks``: a dialog to show first."""
    yield (
        Patch({"v-build-one": view(page, bench)}, title="Build")
        | header(page, bench)
        | stale(bench)
    )
    if asks:
        yield asks
    elif bench.running is not None:  # started before the user left the view
        yield from _bench.follow_other(page, "one-status", bench)
        yield Patch({"v-build-one": view(page, bench)}) | stale(bench)
    elif bench.executed is None and bench.question:
        yield from execute(page, bench, event, heavy=False)


def follow(page: Page, bench: Bench, event: Event) -> Patch:
    """Apply the address: dataset, question by id (``q``) or text (``ask``), chain, or a question of a run.

    If an edited chain would be lost, return a question to the user, otherwise an empty patch. Raises RalleError.
    """
    query = event.read(QuestionAddress)
    dataset = query.set or bench.dataset
    ids = [x.question.qid for x in page.workspace.questions(dataset)]
    qid = query.q
    if qid and qid not in ids:
        raise UsageError(f"{dataset} has no question {qid!r}; choose one of its list.")
    stays = bench.question if dataset == bench.dataset else ids[0]
    question = qid or query.ask.strip() or stays
    if (dataset, question) != (bench.dataset, bench.question):
        bench.dataset, bench.question = dataset, question
        bench.forget_steps()
    source = QuestionAddress(run=query.run, chain=query.chain)
    if source in (QuestionAddress(), bench.source):
        return Patch()
    chain = chain_from(page, bench, source)
    if chain == bench.chain or is_saved(page.workspace, bench.chain):
        bench.edit(chain)
        bench.source = source
        return Patch()
    body = Markup(
        "<p>The address names the chain {}. This window has {} with other actions than the saved one; Undo brings it back.</p>"
    ).format(chain.name, bench.chain.name)
    title, do = "Replace the chain that you edited?", "build.replace_chain"
    return panels.ask(title, body, "Replace it", do, keep="Keep mine", **source.values())


def chain_from(page: Page, bench: Bench, source: QuestionAddress) -> Chain:
    """Return the chain of a run, or a saved chain."""
    if source.run:
        return page.workbench.runs.open_question(source.run, 1).chain
    return _bench.saved_chain(page, bench, source.chain)


def replace_chain(page: Page, event: Event) -> Iterator[Patch]:
    """Replace the edited chain by the chain in the address."""
    bench, source = (
        window_bench(page, event),
        QuestionAddress(run=event.text("run"), chain=event.text("chain")),
    )
    bench.source = source
    yield from opened_chain(page, event, chain_from(page, bench, source), Patch(dialog=""))


def restore_edits(page: Page, event: Event) -> Iterator[Patch]:
    """Restore the edits that the browser kept after a crash."""
    bench = window_bench(page, event)
    chain, bench.left_behind = bench.left_behind or bench.chain, None
    yield from opened_chain(page, event, chain)


def discard_edits(page: Page, event: Event) -> Patch:
    """Discard the edits that the browser kept."""
    bench = window_bench(page, event)
    bench.left_behind = None
    return Patch({"build-draft": ""}, store={"rb-draft": bench.draft})


# actions


def show_prompt(page: Page, event: Event) -> Patch:
    """Render the template of an action without calling a model."""
    bench, chain = window_bench(page, event), read_chain(event)
    index = event.position("index", len(chain.actions))
    question, steps = bench_example(page, bench).question, earlier(bench, index)
    text = page.workbench.asking.plan_action(chain, index, question, steps)
    out = Markup(
        '<h3 class="label">Prompt, not sent yet</h3><p class="pre" dir="auto">{}</p>'
    ).format(text)
    return Patch({f"out-{index}": out})


# editing


def edit(page: Page, event: Event) -> Patch:
    """Apply an edit. If the chain cannot be read, the edit waits until it can; an impossible value is reported at
    its field.
    """
    try:
        bench = read_bench(page, event)
    except RalleError as error:
        if error.setting:
            raise
        return Patch()
    return (
        header(page, bench) | summaries(bench.chain) | states_patch(page, bench) | Patch(sound=True)
    )


def restructure(page: Page, event: Event) -> Patch:
    """Add, move or remove an action."""
    bench, verb = window_bench(page, event), event.action.partition(".")[2]
    index, by = event.whole("index") or 0, event.whole("by") or 0
    bench.edit(edit_actions(read_chain(event), verb, index, by, event.text("add")))
    if verb != "add":
        bench.steps = {i: s for i, s in bench.steps.items() if i < min(index, index + by)}
        bench.ran = {i: bench.ran[i] for i in bench.steps}
    opened = len(bench.chain.actions) - 1 if verb == "add" else max(0, index + by)
    return chain_patch(page, bench, min(opened, len(bench.chain.actions) - 1))


def undo(page: Page, event: Event) -> Patch:
    """Return to the chain before its last change."""
    bench = window_bench(page, event)
    if not bench.past:
        return Patch(say="There is nothing to undo: the chain is as it was opened.")
    bench.chain = bench.past.pop()
    return chain_patch(page, bench)


def load_chain(page: Page, event: Event) -> Iterator[Patch]:
    """Load another saved chain. An edited chain stays available in Undo and in Versions."""
    bench = window_bench(page, event)
    lost = not is_saved(page.workspace, bench.chain)
    chain = _bench.saved_chain(page, bench, event.text("chain"))
    say = Patch(say="Undo returns to the chain that you edited.") if lost else NO_CHANGE
    yield from opened_chain(page, event, chain, say, heavy=False)


def opened_chain(
    page: Page, event: Event, chain: Chain, more: Patch = NO_CHANGE, *, heavy: bool = True
) -> Iterator[Patch]:
    """Replace the chain and execute it. Undo restores the previous one."""
    bench = window_bench(page, event)
    bench.edit(chain)
    yield chain_patch(page, bench) | more
    yield from execute(page, bench, event, heavy=heavy)


def benchmark(page: Page, event: Event) -> Patch:
    """Run the chain on a dataset: open the dialog for a new run."""
    read_bench(page, event)
    return page.call("runs.new", window=event.session.window)


# questions


def choose_dataset(page: Page, event: Event) -> Iterator[Patch]:
    """Choose another dataset and open its first question."""
    bench, name = window_bench(page, event), event.text("dataset")
    first = page.workspace.questions(name)[0].question.qid
    bench.dataset, bench.only, bench.words = name, "", ""
    yield from opened_question(page, bench, event, first)


def filter_list(page: Page, event: Event) -> Patch:
    """Filter the list by words or by verdict."""
    bench = window_bench(page, event)
    bench.only, bench.words = event.text("only", bench.only), event.text("words", bench.words)
    return Patch({"build-list": list_parts(page, bench)})


def pick(page: Page, event: Event) -> Iterator[Patch]:
    """Open another question, from the list or typed; the chain stays."""
    bench, qid = window_bench(page, event), event.text("id")
    yield from opened_question(page, bench, event, qid or event.text("words"), redraw=not qid)


def opened_question(
    page: Page, bench: Bench, event: Event, qid: str, *, redraw: bool = True
) -> Iterator[Patch]:
    """Open a question and execute the chain on it. Cached steps make this fast."""
    bench.question = qid
    bench.forget_steps()
    ids = {x.question.qid for x in page.workspace.questions(bench.dataset)}
    address = QuestionAddress(
        set=bench.dataset, **({"q": qid} if qid in ids else {"ask": qid})
    ).href
    if redraw:
        parts = Patch({"v-build-one": view(page, bench)})
    else:
        parts = _one.question_patch(page, bench)
    yield parts | Patch(address=address)
    yield from execute(page, bench, event, heavy=False)
