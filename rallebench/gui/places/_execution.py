"""A chain run on one question, whole or action by action, with every step shown as it arrives."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.live import Delta, StepDone, StepStarted
from rallebench.core.types import Chain, Episode, Example, Step
from rallebench.gui.events import Event
from rallebench.gui.frame import Page
from rallebench.gui.html import escape
from rallebench.gui.patches import PageEvent, Patch
from rallebench.gui.places import _bench, _one
from rallebench.gui.places._bench import Bench, bench_example, meanwhile, read_bench
from rallebench.gui.places._chain import summaries
from rallebench.gui.places._one import chain_html, header, result_html, stale
from rallebench.gui.places._questions import chips
from rallebench.views.verdicts import DEPTH, verdict


def execute(page: Page, bench: Bench, event: Event, *, heavy: bool = True) -> Iterator[Patch]:
    """Run the whole chain on the question and show every step as it arrives; a read-only page runs none."""
    if page.read_only:
        return
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
            now = escape(going.sentence(page))
            yield Patch({"one-status": going.words(page, ()), "one-doing": now})
        yield Patch({"one-doing": _one.RUNNING})
        for piece in workbench.asking.execute_chain(chain, example.question, stream=True):
            if bench.running is not going:
                return
            if isinstance(piece, StepStarted):
                written, target = "", chain.actions[piece.index].target
                going.doing, going.began = f"Waiting for {target}", time.time()
                yield Patch({f"gist-{piece.index}": "running …"})
            elif isinstance(piece, Delta):
                written += piece.text
                output = Markup(
                    '<h3 class="label">Now</h3><p class="ans" dir="auto">{}</p>'
                ).format(written)
                yield Patch({f"out-{piece.index}": output})
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
            page.workspace.questions(bench.dataset),
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
