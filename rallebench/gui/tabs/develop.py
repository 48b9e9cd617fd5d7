"""Develop: build a chain action by action on one question, and see what every action was asked and answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gradio as gr

from rallebench.bench.single import Delta, Event, StepDone, StepStarted
from rallebench.catalog import MAX_ACTIONS
from rallebench.chain.chain import prompt_of
from rallebench.errors import RalleError
from rallebench.gui import form, views
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs._develop_action import draw_action
from rallebench.types import Episode, Example, Step
from rallebench.workbench import Workbench
from rallebench.workspace import DEFAULT_CHAIN, DEFAULT_DATASET

SHOWN_QUESTIONS = 200
Steps = dict[int, Step]


@TABS.register("develop", order=2, label="Develop")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Build a chain step by step on one question."""
    chain = workbench.workspace.chain(DEFAULT_CHAIN)
    examples = workbench.questions(DEFAULT_DATASET)
    steps = gr.State({})
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            elem_id="develop-dataset",
            scale=2,
        )
        find = gr.Textbox(
            label="Search in the set",
            placeholder="words of a question",
            elem_id="develop-find",
            scale=2,
            max_lines=1,
        )
        question = gr.Dropdown(
            choices(examples, ""),
            value=examples[0].question.qid,
            label="Question (choose one, or type your own)",
            allow_custom_value=True,
            elem_id="develop-question",
            scale=6,
        )
    gold = gr.HTML(views.gold_line(examples[0]), elem_id="develop-gold")
    with gr.Row(elem_classes="rb-tools"):
        saved = gr.Dropdown(
            list(workbench.workspace.chain_paths()),
            value=DEFAULT_CHAIN,
            label="Saved chain",
            elem_id="develop-chain",
            scale=3,
        )
        load = gr.Button("Load chain", elem_id="develop-load-chain", scale=0, min_width=130, size="md")
        name = gr.Textbox(chain.name, label="Name", elem_id="develop-chain-name", scale=2, max_lines=1)
        save = gr.Button("Save chain", elem_id="develop-save-chain", scale=0, min_width=130, size="md")
        mark = gr.Checkbox(
            True, label="Mark gold", elem_id="develop-mark", scale=0, min_width=130, container=False
        )
        execute = gr.Button(
            "Execute chain",
            variant="primary",
            elem_id="develop-execute-chain",
            scale=1,
            min_width=160,
            size="md",
        )
        stop = gr.Button("Stop", elem_id="develop-stop", scale=0, min_width=90, size="md")
    status = gr.HTML(elem_id="develop-status")
    count = gr.State(len(chain.actions))
    session.form += [name, count]
    session.dataset = dataset
    groups, outputs, rows = [], [], []
    for index in range(MAX_ACTIONS):
        row = draw_action(workbench, chain, index)
        groups.append(row["group"])
        outputs += [row["prompt"], row["response"]]
        session.form += [row[field] for field in form.FIELDS]
        rows.append(row)
    add = gr.Button("Add action", elem_id="develop-add-action", size="sm")
    with gr.Accordion("The question's record", open=False):
        record = gr.JSON(dict(examples[0].record), elem_id="develop-record", show_label=False)

    session.groups += groups
    whole_form = [*session.form, *groups]
    asked = [dataset, question]
    shown = [steps, status, *outputs]
    cleared = [gold, record, *shown]
    dataset.input(partial(guard, on_dataset, workbench), [dataset], [find, question, *cleared])
    find.input(
        partial(guard, on_find, workbench),
        [dataset, find],
        [question],
        show_progress="hidden",
        trigger_mode="always_last",
    )
    question.input(partial(guard, on_question, workbench), asked, cleared)
    load.click(partial(guard, on_load_chain, workbench), [saved], [*whole_form, *shown])
    save.click(partial(guard, on_save_chain, workbench), session.form, [saved, status])
    mark.input(partial(guard, on_mark, workbench), [*asked, mark, steps], outputs, show_progress="hidden")
    add.click(partial(guard, on_edit, "add", 0), [steps, *session.form], [*whole_form, *shown])
    running = execute.click(
        partial(guard_stream, on_execute_chain, workbench),
        [*asked, mark, *session.form],
        shown,
        show_progress="hidden",
    )
    stop.click(None, cancels=[running]).then(on_stop, None, [status], show_progress="hidden")
    for index, row in enumerate(rows):
        row["kind"].change(
            on_kind,
            [row["kind"]],
            [row["retriever"], row["k"], row["llm"], row["settings"]],
            show_progress="hidden",
        )
        row["dialect"].change(on_dialect, [row["dialect"]], [row["template"]], show_progress="hidden")
        one = [row["prompt"], row["response"]]
        row["interpret"].click(
            partial(guard, on_interpret, workbench, index),
            [*asked, mark, steps, *session.form],
            [row["prompt"], status],
        )
        row["execute"].click(
            partial(guard_stream, on_execute_action, workbench, index),
            [*asked, mark, steps, *session.form],
            [steps, status, *one],
            show_progress="hidden",
        )
        for verb in ("up", "down", "remove"):
            row[verb].click(
                partial(guard, on_edit, verb, index), [steps, *session.form], [*whole_form, *shown]
            )
    targets = [row[field] for row in rows for field in ("retriever", "llm")]
    names = [dataset, saved, *targets]
    tab.select(partial(guard, on_names, workbench), names, names, show_progress="hidden")
    page.load(partial(guard, on_names, workbench), names, names, show_progress="hidden")
    session.open_in_develop.change(
        partial(guard, on_open, workbench),
        [session.open_in_develop, mark],
        [session.tabs, dataset, question, gold, record, *whole_form, *shown],
        show_progress="hidden",
    )


def choices(examples: tuple[Example, ...], words: str) -> list[tuple[str, str]]:
    """(shown text, id) of the first questions that hold all of ``words``."""
    wanted = words.lower().split()
    found = (e.question for e in examples if all(word in e.question.text.lower() for word in wanted))
    return [(" ".join(q.text.split())[:160], q.qid) for _, q in zip(range(SHOWN_QUESTIONS), found)]


def blank() -> list[Any]:
    """Steps, status and all prompts and responses as they are before anything ran."""
    return [{}, "", *[views.empty(views.EMPTY_PROMPT), views.empty(views.EMPTY_RESPONSE)] * MAX_ACTIONS]


def on_dataset(workbench: Workbench, dataset: str) -> list[Any]:
    """Another question set: its questions, the first one chosen."""
    examples = workbench.questions(dataset)
    first = examples[0]
    update = gr.update(choices=choices(examples, ""), value=first.question.qid)
    return ["", update, views.gold_line(first), dict(first.record), *blank()]


def on_find(workbench: Workbench, dataset: str, words: str) -> Any:
    """Offer the questions of the set that hold the words."""
    found = choices(workbench.questions(dataset), words)
    return gr.update(choices=found, label=f"Question ({len(found)} shown; choose one, or type your own)")


def on_question(workbench: Workbench, dataset: str, chosen: str) -> list[Any]:
    """Another question: its record and gold; what was executed belongs to the old one."""
    example = workbench.example(dataset, chosen)
    return [views.gold_line(example), dict(example.record) or {"note": "Not in the question set."}, *blank()]


def on_load_chain(workbench: Workbench, reference: str) -> list[Any]:
    """Fill the form with a saved chain."""
    return [*form.write_chain(workbench.workspace.chain(reference)), *blank()]


def on_save_chain(workbench: Workbench, *values: Any) -> list[Any]:
    """Save the form as a chain of the workspace."""
    chain = form.read_chain(values)
    path = workbench.save_chain(chain, chain.name)
    return [
        gr.update(choices=list(workbench.workspace.chain_paths()), value=path.stem),
        views.note(f"Saved as {path}.", "good"),
    ]


def on_edit(verb: str, index: int, steps: Steps, *values: Any) -> list[Any]:
    """Add, remove or move an action; what was executed before the place stays in memory, the screen is cleared."""
    chain = form.read_chain(values)
    if verb == "add":
        return [*form.write_chain(form.added(chain)), *[gr.skip()] * (2 + 2 * MAX_ACTIONS)]
    changed = (
        form.removed(chain, index)
        if verb == "remove"
        else form.moved(chain, index, -1 if verb == "up" else 1)
    )
    return [*form.write_chain(changed), *blank()]


def on_kind(kind: str) -> list[Any]:
    """Show the widgets that the function needs."""
    retrieve, generate = gr.update(visible=kind == "retrieve"), gr.update(visible=kind == "generate")
    return [retrieve, retrieve, generate, generate]


def on_dialect(dialect: str) -> Any:
    """Show an example of the dialect."""
    return gr.update(info=form.EXAMPLES[dialect])


def on_interpret(
    workbench: Workbench, index: int, dataset: str, chosen: str, mark: bool, steps: Steps, *values: Any
) -> list[Any]:
    """Fill in the template of one action; nothing is run."""
    example = workbench.example(dataset, chosen)
    try:
        text = workbench.plan_action(form.read_chain(values), index, example.question, prefix(steps, index))
    except RalleError as error:
        return [views.error(str(error)), ""]
    return [views.prompt(text, example.gold, mark, waiting=True), ""]


def on_execute_action(
    workbench: Workbench, index: int, dataset: str, chosen: str, mark: bool, steps: Steps, *values: Any
) -> Iterator[list[Any]]:
    """Run one action on what the earlier ones answered; later steps are forgotten."""
    example = workbench.example(dataset, chosen)
    yield [gr.skip(), views.note(f"Running action {index + 1} …"), gr.skip(), views.empty("…")]
    try:
        step = workbench.execute_action(
            form.read_chain(values), index, example.question, prefix(steps, index)
        )
    except RalleError as error:
        yield [gr.skip(), "", gr.skip(), views.error(str(error))]
        return
    kept = {**{i: s for i, s in steps.items() if i < index}, index: step}
    yield [kept, "", *show_step(workbench, step, example, mark)]


def on_execute_chain(
    workbench: Workbench, dataset: str, chosen: str, mark: bool, *values: Any
) -> Iterator[list[Any]]:
    """Run every action up to the last, each shown as it starts, streams and ends."""
    example = workbench.example(dataset, chosen)
    chain = form.read_chain(values)
    screen = blank()
    screen[1] = views.note("Loading what the chain names …")
    yield screen
    watched = Watched(workbench, example, mark, len(chain.actions))
    for event in workbench.execute_chain(chain, example.question, stream=True):
        yield watched.screen(event)


@dataclass
class Watched:
    """A chain that is being executed, and what the page shows of each of its events."""

    workbench: Workbench
    example: Example
    mark: bool
    actions: int
    steps: Steps = field(default_factory=dict)
    written: str = ""

    def screen(self, event: Event) -> list[Any]:
        """Updates for steps, status and every prompt and response; what did not change is skipped."""
        screen: list[Any] = [gr.skip()] * (2 + 2 * MAX_ACTIONS)
        gold = self.example.gold
        if isinstance(event, StepStarted):
            self.written = ""
            screen[1] = views.note(f"Running action {event.index + 1} of {self.actions} …")
            screen[2 + 2 * event.index] = views.prompt(prompt_of(event.request), gold, self.mark)
            screen[3 + 2 * event.index] = views.empty("…")
        elif isinstance(event, Delta):
            self.written += event.text
            body = views.marked(self.written, gold.answers, self.mark)
            screen[3 + 2 * event.index] = views.text_box("Response", body)
        elif isinstance(event, StepDone):
            self.steps = screen[0] = {**self.steps, event.index: event.step}
            at = 2 + 2 * event.index
            screen[at : at + 2] = show_step(self.workbench, event.step, self.example, self.mark)
        else:
            self.workbench.trace(event, self.example.question.text, "develop")
            screen = end_of_chain(event, screen)
        return screen


def end_of_chain(episode: Episode, screen: list[Any]) -> list[Any]:
    """What the page shows when a chain ended: its time, or its error where it happened."""
    if episode.error:
        screen[1] = views.error(episode.error)
        at = 3 + 2 * len(episode.steps)
        if at < len(screen):
            screen[at] = views.error(episode.error)
        return screen
    seconds = sum(step.seconds for step in episode.steps if not step.cached)
    screen[1] = views.note(f"Done: {len(episode.steps)} actions, {seconds:.2f} s.", "good")
    if episode.outcome and episode.outcome.stop_reason == "empty_template":
        screen[1] = views.note(f"Stopped before action {len(episode.steps) + 1}: its template is empty.")
    return screen


def on_stop() -> str:
    """The running chain is cancelled; what it finished stays on the screen."""
    return views.note("Stopped.")


def on_mark(workbench: Workbench, dataset: str, chosen: str, mark: bool, steps: Steps) -> list[Any]:
    """Show the same steps with or without marks."""
    example = workbench.example(dataset, chosen)
    updates: list[Any] = [gr.skip()] * (2 * MAX_ACTIONS)
    for index, step in steps.items():
        updates[2 * index : 2 * index + 2] = show_step(workbench, step, example, mark)
    return updates


def on_names(workbench: Workbench, *values: Any) -> list[Any]:
    """Offer what can be named now; what is chosen stays chosen."""
    space = workbench.workspace
    targets = [list(space.retrievers()), list(space.llms())] * MAX_ACTIONS
    offers = [list(space.dataset_paths()), list(space.chain_paths()), *targets]
    return [gr.update(choices=offer) for offer in offers]


def on_open(workbench: Workbench, wanted: dict[str, Any] | None, mark: bool) -> list[Any]:
    """Open a question of a run, with the chain and the steps it had there."""
    if not wanted:
        return [gr.skip()] * (7 + len(form.HEAD) + MAX_ACTIONS * (len(form.FIELDS) + 3))
    opened = workbench.open_question(wanted["run"], wanted["position"])
    example, steps = opened.example, dict(enumerate(opened.episode.steps))
    screen = blank()
    screen[0] = steps
    error = opened.episode.error
    screen[1] = views.error(error) if error else views.note(f"Opened from the run {wanted['run']}.")
    for index, step in steps.items():
        screen[2 + 2 * index : 4 + 2 * index] = show_step(workbench, step, example, mark)
    question = gr.update(choices=choices((example,), ""), value=example.question.qid)
    shown = [
        gr.Tabs(selected="develop"),
        opened.dataset,
        question,
        views.gold_line(example),
        dict(example.record),
    ]
    return [*shown, *form.write_chain(opened.chain), *screen]


def prefix(steps: Steps, index: int) -> list[Step]:
    """The steps of the actions before ``index`` that ran without a gap."""
    found: list[Step] = []
    while len(found) < index and len(found) in steps:
        found.append(steps[len(found)])
    return found


def show_step(workbench: Workbench, step: Step, example: Example, mark: bool) -> list[str]:
    """Prompt and response of a step as HTML."""
    rank = None
    if mark:
        try:
            rank = workbench.gold_rank(step, example.gold.pages)
        except RalleError:
            rank = None
    return [views.step_prompt(step, example.gold, mark), views.response(step, example.gold, mark, rank)]
