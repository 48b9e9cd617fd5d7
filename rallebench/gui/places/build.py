"""Build: a chain on one question, action by action, with the verdict always visible."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.live import Delta, StepDone, StepStarted
from rallebench.core.types import Chain, Episode, Example, Step
from rallebench.gui import panels
from rallebench.gui.addresses import QuestionAddress
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.html import escape
from rallebench.gui.patches import NO_CHANGE, PageEvent, Patch
from rallebench.gui.places import _agent, _bench, _chat, _code, _few, _one, _versions
from rallebench.gui.places._bench import Bench, bench_example, meanwhile, read_bench, window_bench
from rallebench.gui.places._chain import edit_actions, read_chain, summaries
from rallebench.gui.places._one import chain_html, chain_patch, header, result_html, stale, view
from rallebench.gui.places._questions import chips, list_parts, question_rows
from rallebench.views.chain_versions import is_saved
from rallebench.views.verdicts import DEPTH, verdict


@PLACES.register("build", label="Build", order=1)
def build(page: Page) -> None:
    """Develop a chain."""
    page.view("build/one", open_one, back="build/one")
    page.header = lambda event: header(page, window_bench(page, event))
    page.actions("build", run, run_action, show_prompt, edit, undo, restore_edits, discard_edits)
    page.actions("build", load_chain, replace_chain, benchmark)
    page.actions("build", choose_dataset, filter_list, pick)
    for verb in ("add", "move", "remove"):
        page.action(f"build.{verb}", restructure)
    page.rows("build-questions", question_rows)
    for part in (_few, _chat, _agent, _versions, _code):
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


# executing


def execute(page: Page, bench: Bench, event: Event, *, heavy: bool = True) -> Iterator[Patch]:
    """Run the whole chain on the question and show every step as it arrives."""
    example, chain = bench_example(page, bench), bench.chain
    check_targets(chain)
    if bench.answered is not None and not bench.is_answered_by(chain):
        bench.before, bench.verdict_before = bench.steps, bench.verdict_kind
    bench.steps, bench.ran, bench.executed, bench.is_stopped = {}, {}, chain, False
    with bench.executing(event.action) as going:

        def stop_patch() -> Patch:
            if bench.end(going):
                bench.stop(is_opening=going.action == "open")
            parts = Patch(
                {"chain-form": chain_html(page, bench), "build-result": result_html(page, bench)}
            )
            fresh = stale(bench) or Patch(event=PageEvent("rb-fresh"))
            return Patch({"one-status": "Stopped"}) | parts | fresh

        status = "one-status", going, chain.llms
        yield Patch(
            {"one-status": going.words(page, ()), "build-result": result_html(page, bench)},
            meanwhile=meanwhile(page, *status, stop_patch, lambda: f"out-{len(bench.steps)}"),
        )
        try:
            for patch in stream_execution(page, bench, example, going, heavy):
                if bench.running is not going:  # stopped or replaced by a newer execution
                    return
                yield patch
        except RalleError:
            if bench.running is not going:
                return
            bench.executed = None
            yield Patch({"one-status": ""})
            raise


def stream_execution(
    page: Page, bench: Bench, example: Example, going: _bench.Execution, heavy: bool
) -> Iterator[Patch]:
    """Stream an execution; if a newer one starts, its results are discarded."""
    workbench, chain, written = page.workbench, bench.chain, ""
    with workbench.models.lease(f"the chain {chain.name!r}, which is being executed") as lease:
        going.needs = going.missing(page, (*chain.llms, *chain.retrievers))
        for news in lease.load_for(chain.llms, chain.retrievers, heavy=heavy):
            going.doing = news.message
            yield Patch({"one-status": going.words(page, ())})
        for piece in workbench.asking.execute_chain(chain, example.question, stream=True):
            if bench.running is not going:
                return
            if isinstance(piece, StepStarted):
                written, target = "", chain.actions[piece.index].target
                going.doing, going.began = f"Waiting for {target}", time.time()
                yield Patch({f"gist-{piece.index}": "running …"})
            elif isinstance(piece, Delta):
                written += piece.text
                now = Markup('<h5>Now</h5><p class="ans" dir="auto">{}</p>').format(written)
                yield Patch({f"out-{piece.index}": now})
            elif isinstance(piece, StepDone):
                bench.steps[piece.index] = piece.step
                bench.ran[piece.index] = chain.actions[piece.index]
                yield action_patch(page, bench, piece.index)
            else:
                patch, qid = verdict_patch(page, bench, example, piece), example.question.qid
                bench.history.append((time.time(), chain, piece.answer, bench.verdict_kind, qid))
                yield patch
                workbench.tracking.trace(piece, example.question.text, "develop")


def action_patch(page: Page, bench: Bench, index: int) -> Patch:
    """Return the patch of an action's output, in its line and next to its fields."""
    line, out = _one.action_parts(page, bench, index)
    return Patch({f"gist-{index}": line, f"out-{index}": out})


def check_targets(chain: Chain) -> None:
    """Raise UsageError if an action has no index or model."""
    for number, action in enumerate(chain.actions, 1):
        if action.kind != "identity" and action.template and not action.target:
            noun = "index" if action.kind == "retrieve" else "model"
            raise UsageError(f"Action {number} names no {noun}; choose one.")


def verdict_patch(page: Page, bench: Bench, example: Example, episode: Episode) -> Patch:
    """Return the patch of the verdict and the question's row."""
    bench.put(
        example,
        episode,
        verdict(
            page.workspace,
            example,
            episode,
            page.workbench.asking.deeper_hits(episode, DEPTH),
        ),
    )
    patch = Patch(
        {
            "build-result": result_html(page, bench),
            "one-status": escape(page.workbench.asking.reply_cache_warning),
            "build-chips": chips(page, bench),
        },
        event=PageEvent("rb-fresh"),
    )
    for index in range(max(0, len(episode.steps) - 1), len(bench.chain.actions)):
        patch |= action_patch(page, bench, index)
    return patch


def run(page: Page, event: Event) -> Iterator[Patch]:
    """Run the chain in the form."""
    bench = read_bench(page, event)
    yield header(page, bench) | summaries(bench.chain)
    yield from execute(page, bench, event)


def run_action(page: Page, event: Event) -> Iterator[Patch]:
    """Run one action with the outputs of the earlier ones."""
    bench = read_bench(page, event)
    index = event.position("index", len(bench.chain.actions))
    example, workbench = bench_example(page, bench), page.workbench
    action = bench.chain.actions[index]
    yield Patch({f"gist-{index}": "running …"}) | header(page, bench) | summaries(bench.chain)
    alone = replace(bench.chain, actions=(action,))
    with workbench.models.lease(f"action {index + 1} of the chain {bench.chain.name!r}") as lease:
        for news in lease.load_for(alone.llms, alone.retrievers):
            yield Patch({"one-status": Markup("{} …").format(news.message)})
        step = workbench.asking.execute_action(
            bench.chain, index, example.question, earlier(bench, index)
        )
    if index in bench.steps:
        bench.before[index] = bench.steps[index]
    bench.steps = {**{i: s for i, s in bench.steps.items() if i < index}, index: step}
    bench.ran = {i: bench.ran.get(i, action) for i in bench.steps} | {index: action}
    fresh = Patch({"one-status": ""}, event=PageEvent("rb-fresh", index=index))
    yield action_patch(page, bench, index) | fresh


def earlier(bench: Bench, index: int) -> list[Step]:
    """Return the steps of the actions before ``index``. Raises UsageError if one was not executed."""
    missing = next((i for i in range(index) if i not in bench.steps), None)
    if missing is not None:
        number = missing + 1
        raise UsageError(f"Action {number} has no output yet; run the chain, or that action first.")
    return [bench.steps[i] for i in range(index)]


def show_prompt(page: Page, event: Event) -> Patch:
    """Render the template of an action without calling a model."""
    bench, chain = window_bench(page, event), read_chain(event)
    index = event.position("index", len(chain.actions))
    question, steps = bench_example(page, bench).question, earlier(bench, index)
    text = page.workbench.asking.plan_action(chain, index, question, steps)
    out = Markup('<h5>Prompt, not sent yet</h5><p class="pre" dir="auto">{}</p>').format(text)
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
    return header(page, bench) | summaries(bench.chain) | Patch(sound=True)


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
    parts = Patch({"v-build-one": view(page, bench)})
    if not redraw:
        parts = Patch(
            {
                "build-question": _one.question(page, bench),
                "chain-form": chain_html(page, bench),
                "build-result": result_html(page, bench),
            },
            event=PageEvent("rb-fresh"),
        )
    yield parts | Patch(address=address)
    yield from execute(page, bench, event, heavy=False)
