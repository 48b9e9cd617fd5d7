"""Develop: build a chain action by action on one question, and see what every action was asked and answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr

from rallebench.chains.saved import MAX_ACTIONS, chain_from_json, chain_to_json
from rallebench.core.errors import RalleError
from rallebench.core.types import Chain, Example
from rallebench.gui import develop_output as executed
from rallebench.gui import form, views, views_config
from rallebench.gui.develop_output import Steps, blank, prefix, show_step
from rallebench.gui.session import Session, guard, guard_stream
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs._develop_action import Widgets, draw_action
from rallebench.services.episodes import is_agents
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import DEFAULT_CHAIN, DEFAULT_DATASET

SHOWN_QUESTIONS = 200
QUESTION = "Question (choose one, or type your own)"


@TABS.register("develop", order=2, label="Develop")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Build a chain step by step on one question."""
    chain = workbench.workspace.chain(DEFAULT_CHAIN)
    first = workbench.asking.questions(DEFAULT_DATASET)[0]
    steps, count, about = gr.State({}), gr.State(len(chain.actions)), gr.State(chain.about)
    picked = draw_question(workbench)
    tools = draw_tools(workbench, chain)
    rows = [draw_action(workbench, chain, index) for index in range(MAX_ACTIONS)]
    add = gr.Button("Add action", elem_id="develop-add-action", size="sm")
    with gr.Accordion("The question's record", open=False):
        record = gr.JSON(dict(first.record), elem_id="develop-record", show_label=False)

    session.dataset = picked["dataset"]
    session.form += [
        tools["name"],
        count,
        about,
        *(row[field] for row in rows for field in form.FIELDS),
    ]
    session.groups += [row["group"] for row in rows]
    session.executed += [
        steps,
        tools["status"],
        *(row[part] for row in rows for part in ("prompt", "response")),
    ]
    whole_form = [*session.form, *session.groups]

    wire_question(workbench, session, picked, record)
    wire_chain(workbench, session, picked, tools)
    edited = [*whole_form, *session.executed]
    changed = [
        add.click(partial(guard, on_edit, "add", 0), session.form, edited, show_progress="hidden")
    ]
    for index, row in enumerate(rows):
        wire_action(
            workbench, session, index, row, [picked["dataset"], picked["question"], tools["mark"]]
        )
        for verb in ("up", "down", "remove"):
            click = row[verb].click(
                partial(guard, on_edit, verb, index), session.form, edited, show_progress="hidden"
            )
            changed.append(click)
    targets = [row[field] for row in rows for field in ("retriever", "llm")]
    names = [picked["dataset"], tools["saved"], *targets]
    tab.select(partial(guard, on_names, workbench), names, names, show_progress="hidden")
    drawn = page.load(partial(guard, on_names, workbench), names, names, show_progress="hidden")
    wire_keeping(
        session,
        [tools["name"], *(row[field] for row in rows for field in form.FIELDS)],
        changed,
        tools["load"],
    )
    drawn.then(
        partial(on_return, workbench), [session.edited_chain], edited, show_progress="hidden"
    )
    wire_opening(
        workbench,
        session,
        tools,
        [session.tabs, picked["dataset"], picked["question"], picked["gold"], record, *edited],
    )


# what is drawn


def draw_question(workbench: Workbench) -> Widgets:
    """Question set, search and question, and the gold of the chosen one."""
    examples = workbench.asking.questions(DEFAULT_DATASET)
    with gr.Row(equal_height=True):
        dataset = gr.Dropdown(
            list(workbench.workspace.dataset_paths()),
            value=DEFAULT_DATASET,
            label="Question set",
            allow_custom_value=True,
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
            label=QUESTION,
            allow_custom_value=True,
            elem_id="develop-question",
            scale=6,
        )
    gold = gr.HTML(views.gold_line(examples[0]), elem_id="develop-gold", elem_classes="rb-flush")
    return {"dataset": dataset, "find": find, "question": question, "gold": gold}


def draw_tools(workbench: Workbench, chain: Chain) -> Widgets:
    """Load, name, save and execute the chain, and a line that says what happens."""
    with gr.Row(elem_classes="rb-tools"):
        saved = gr.Dropdown(
            list(workbench.workspace.chain_paths()),
            value=DEFAULT_CHAIN,
            label="Saved chain",
            allow_custom_value=True,
            elem_id="develop-chain",
            scale=3,
        )
        load = gr.Button(
            "Load chain", elem_id="develop-load-chain", scale=0, min_width=130, size="md"
        )
        name = gr.Textbox(
            chain.name, label="Name", elem_id="develop-chain-name", scale=2, max_lines=1
        )
        save = gr.Button(
            "Save chain", elem_id="develop-save-chain", scale=0, min_width=130, size="md"
        )
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
    with gr.Row(elem_classes="rb-tools", visible=False) as replacing:
        replaced = gr.HTML(elem_id="develop-replaced", elem_classes="rb-flush")
        replace = gr.Button(
            "Open it and drop my edits",
            elem_id="develop-replace",
            scale=0,
            min_width=220,
            size="md",
        )
        keep = gr.Button(
            "Keep my chain",
            elem_id="develop-keep",
            variant="primary",
            scale=0,
            min_width=150,
            size="md",
        )
    status = gr.HTML(elem_id="develop-status", elem_classes="rb-flush")
    return {
        "saved": saved,
        "load": load,
        "name": name,
        "save": save,
        "mark": mark,
        "execute": execute,
        "stop": stop,
        "status": status,
        "replacing": replacing,
        "replaced": replaced,
        "replace": replace,
        "keep": keep,
    }


# what happens when


def wire_question(workbench: Workbench, session: Session, picked: Widgets, record: gr.JSON) -> None:
    """Choosing and finding questions."""
    dataset, find, question = picked["dataset"], picked["find"], picked["question"]
    cleared = [picked["gold"], record, *session.executed]
    dataset.input(
        partial(guard, on_dataset, workbench),
        [dataset],
        [find, question, *cleared],
        show_progress_on=[picked["gold"]],
    )
    find.change(  # at ``input`` the value is still the old one if all of it came at once
        partial(guard, on_find, workbench),
        [dataset, find],
        [question],
        show_progress="hidden",
        trigger_mode="always_last",
    )
    question.input(
        partial(guard, on_question, workbench),
        [dataset, question],
        cleared,
        show_progress_on=[picked["gold"]],
    )


def wire_chain(workbench: Workbench, session: Session, picked: Widgets, tools: Widgets) -> None:
    """Loading, saving, executing and stopping the whole chain; showing it with or without marks."""
    mark, status = tools["mark"], tools["status"]
    asked = [picked["dataset"], picked["question"], mark]
    steps, _, *outputs = session.executed
    tools["load"].click(
        partial(guard, on_load_chain, workbench),
        [tools["saved"]],
        [*session.form, *session.groups, *session.executed],
        show_progress="hidden",
    )
    tools["save"].click(
        partial(guard, on_save_chain, workbench),
        session.form,
        [tools["saved"], status],
        show_progress="hidden",
    )
    mark.input(partial(guard, on_mark, workbench), [*asked, steps], outputs, show_progress="hidden")
    running = tools["execute"].click(
        partial(guard_stream, on_execute_chain, workbench),
        [*asked, *session.form],
        session.executed,
        show_progress="hidden",
    )
    tools["stop"].click(None, cancels=[running]).then(
        on_stop, None, [status], show_progress="hidden"
    )


def wire_keeping(session: Session, fields: list[Any], changed: list[Any], load: gr.Button) -> None:
    """Have the browser keep the chain whenever its user has edited it, so that it is there after the page was loaded anew.

    Not what is filled in by the program: a saved chain and one of a run can be opened again. A text is kept when it is
    left, for each letter would be a request.
    """
    left = [field.blur if isinstance(field, gr.Textbox) else field.input for field in fields]
    kept = [session.edited_chain]
    gr.on(left, on_keep, session.form, kept, show_progress="hidden", trigger_mode="always_last")
    for done in changed:
        done.then(on_keep, session.form, kept, show_progress="hidden")
    load.click(on_let_go, None, kept, show_progress="hidden")


def wire_opening(workbench: Workbench, session: Session, tools: Widgets, screen: list[Any]) -> None:
    """A question that is chosen in another tab is shown here; an edited chain is replaced only when its user says so."""
    wanted, shown = (
        [session.open_question, tools["mark"]],
        [*screen, tools["replacing"], tools["replaced"]],
    )
    top = "() => window.scrollTo({ top: 0 })"  # the clicked row was far down in another tab
    session.open_question.change(
        partial(guard, on_asked_to_open, workbench),
        [*wanted, session.edited_chain, *session.form],
        shown,
        show_progress="hidden",
    ).then(None, None, None, js=top)
    tools["replace"].click(
        partial(guard, on_replace, workbench), wanted, shown, show_progress="hidden"
    )
    tools["keep"].click(on_keep_mine, None, shown[-2:], show_progress="hidden")


def wire_action(
    workbench: Workbench, session: Session, index: int, row: Widgets, asked: list[Any]
) -> None:
    """Interpreting and executing one action; its widgets follow its function and its dialect."""
    steps, status = session.executed[:2]
    given = [*asked, steps, *session.form]
    row["kind"].change(
        on_kind,
        [row["kind"]],
        [row["retriever"], row["k"], row["llm"], row["settings"]],
        show_progress="hidden",
    )
    row["dialect"].change(on_dialect, [row["dialect"]], [row["template"]], show_progress="hidden")
    row["interpret"].click(
        partial(guard, on_interpret, workbench, index),
        given,
        [row["prompt"], status],
        show_progress="hidden",
    )
    row["execute"].click(
        partial(guard_stream, on_execute_action, workbench, index),
        given,
        [steps, status, row["prompt"], row["response"]],
        show_progress="hidden",
    )


# the handlers


def choices(examples: tuple[Example, ...], words: str) -> list[tuple[str, str]]:
    """(shown text, id) of the first questions that hold all of ``words``."""
    wanted = words.lower().split()
    found = (
        e.question for e in examples if all(word in e.question.text.lower() for word in wanted)
    )
    return [(" ".join(q.text.split())[:160], q.qid) for _, q in zip(range(SHOWN_QUESTIONS), found)]


def on_dataset(workbench: Workbench, dataset: str) -> list[Any]:
    """Another question set: its questions, the first one chosen."""
    examples = workbench.asking.questions(dataset)
    first = examples[0]
    update = gr.update(choices=choices(examples, ""), value=first.question.qid, label=QUESTION)
    return ["", update, views.gold_line(first), dict(first.record), *blank()]


def on_find(workbench: Workbench, dataset: str, words: str) -> Any:
    """Offer the questions of the set that hold the words."""
    found = choices(workbench.asking.questions(dataset), words)
    first = "the first " if len(found) == SHOWN_QUESTIONS else ""
    label = f"Question ({first}{len(found)} found; choose one, or type your own)"
    return gr.update(choices=found, label=label if words.strip() else QUESTION)


def on_question(workbench: Workbench, dataset: str, chosen: str) -> list[Any]:
    """Another question: its record and gold; what was executed belongs to the old one."""
    example = workbench.asking.example(dataset, chosen)
    return [
        views.gold_line(example),
        dict(example.record) or {"note": "Not in the question set."},
        *blank(),
    ]


def on_load_chain(workbench: Workbench, reference: str) -> list[Any]:
    """Fill the form with a saved chain."""
    return [*form.write_chain(workbench.workspace.chain(reference)), *blank()]


def on_keep(*values: Any) -> Any:
    """The chain of the form as JSON text; one that cannot be read yet leaves the last that could."""
    try:
        return json.dumps(chain_to_json(form.read_chain(values)), ensure_ascii=False)
    except RalleError:
        return gr.skip()


def on_let_go() -> str:
    """A saved chain takes the place of the one that was edited."""
    return ""


def on_return(workbench: Workbench, kept: str | None) -> list[Any]:
    """The chain that was being edited when the page was loaded anew; nothing if it is the one that a new page shows."""
    nothing = [
        *[gr.skip()] * (len(form.HEAD) + MAX_ACTIONS * (len(form.FIELDS) + 1)),
        *executed.unchanged(),
    ]
    try:
        chain = chain_from_json(json.loads(kept or ""))
    except (RalleError, ValueError):
        return nothing
    if chain == workbench.workspace.chain(DEFAULT_CHAIN):
        return nothing
    screen = blank()
    screen[1] = views.note(
        "The chain that you edited before the page was loaded anew. Save keeps it; Load brings a saved one."
    )
    return [*form.write_chain(chain), *screen]


def on_save_chain(workbench: Workbench, *values: Any) -> list[Any]:
    """Save the form as a chain of the workspace."""
    chain = form.read_chain(values)
    before = set(workbench.workspace.chain_paths())
    path = workbench.asking.save_chain(chain, chain.name)
    return [
        gr.update(choices=list(workbench.workspace.chain_paths()), value=path.stem),
        views.note(views_config.saved(path, before), "good"),
    ]


def on_edit(verb: str, index: int, *values: Any) -> list[Any]:
    """Add, remove or move an action; an added one leaves what was executed on the screen."""
    chain = form.read_chain(values)
    if verb == "add":
        return [*form.write_chain(form.added(chain), since=chain), *executed.unchanged()]
    changed = (
        form.removed(chain, index)
        if verb == "remove"
        else form.moved(chain, index, -1 if verb == "up" else 1)
    )
    return [*form.write_chain(changed, since=chain), *blank()]


def on_kind(kind: str) -> list[Any]:
    """Show the widgets that the function needs."""
    retrieve, generate = (
        gr.update(visible=kind == "retrieve"),
        gr.update(visible=kind == "generate"),
    )
    return [retrieve, retrieve, generate, generate]


def on_dialect(dialect: str) -> Any:
    """Show an example of the dialect."""
    return gr.update(info=form.EXAMPLES[dialect])


def on_interpret(
    workbench: Workbench,
    index: int,
    dataset: str,
    chosen: str,
    mark: bool,
    steps: Steps,
    *values: Any,
) -> list[Any]:
    """Fill in the template of one action; nothing is run."""
    example, chain = workbench.asking.example(dataset, chosen), form.read_chain(values)
    if not chain.actions[index].template:
        return [views.note(executed.ENDS_HERE), ""]
    try:
        text = workbench.asking.plan_action(chain, index, example.question, prefix(steps, index))
    except RalleError as error:
        return [views.error(str(error)), ""]
    return [views.prompt(text, example.gold, mark, waiting=True), ""]


def on_execute_action(
    workbench: Workbench,
    index: int,
    dataset: str,
    chosen: str,
    mark: bool,
    steps: Steps,
    *values: Any,
) -> Iterator[list[Any]]:
    """Run one action on what the earlier ones answered."""
    example, chain = workbench.asking.example(dataset, chosen), form.read_chain(values)
    yield from executed.one_action(workbench, chain, index, example, mark, steps)


def on_execute_chain(
    workbench: Workbench, dataset: str, chosen: str, mark: bool, *values: Any
) -> Iterator[list[Any]]:
    """Run every action up to the last, each shown as it starts, streams and ends."""
    example, chain = workbench.asking.example(dataset, chosen), form.read_chain(values)
    yield from executed.whole_chain(workbench, chain, example, mark)


def on_stop() -> str:
    """The running chain is cancelled; what it finished stays on the screen."""
    return views.note("Stopped.")


def on_mark(workbench: Workbench, dataset: str, chosen: str, mark: bool, steps: Steps) -> list[Any]:
    """Show the same steps with or without marks."""
    example = workbench.asking.example(dataset, chosen)
    updates = executed.unchanged()
    for index, step in steps.items():
        updates[executed.place(index)] = show_step(workbench, step, example, mark)
    return updates[2:]


def on_names(workbench: Workbench, *values: Any) -> list[Any]:
    """Offer what can be named now; what is chosen stays chosen."""
    space = workbench.workspace
    targets = [list(space.retrievers()), list(space.llms())] * MAX_ACTIONS
    offers = [list(space.dataset_paths()), list(space.chain_paths()), *targets]
    return [gr.update(choices=offer) for offer in offers]


def is_edited(workbench: Workbench, kept: str | None, values: Any) -> bool:
    """Whether the form shows the chain that its user edited last, and no saved chain is the same."""
    if not kept or on_keep(*values) != kept:
        return False
    chain = form.read_chain(values)
    return (
        chain.name not in workbench.workspace.chain_paths()
        or workbench.workspace.chain(chain.name) != chain
    )


def on_asked_to_open(
    workbench: Workbench, wanted: dict[str, Any] | None, mark: bool, kept: str | None, *values: Any
) -> list[Any]:
    """Open a question of a run; over an edited chain that would be lost, ask first."""
    opened = on_open(workbench, wanted, mark)
    if not wanted or opened[0] == gr.skip() or not is_edited(workbench, kept, values):
        return [*opened, *on_keep_mine()]
    said = f"The question of the run {wanted['run']} comes with its own chain, which would replace the one that you edited. Save yours first to keep it."
    return [opened[0], *[gr.skip()] * (len(opened) - 1), gr.update(visible=True), views.note(said)]


def on_replace(workbench: Workbench, wanted: dict[str, Any] | None, mark: bool) -> list[Any]:
    """Open the question that was asked about."""
    return [*on_open(workbench, wanted, mark), *on_keep_mine()]


def on_keep_mine() -> list[Any]:
    """Hide the question whether an edited chain is replaced."""
    return [gr.update(visible=False), ""]


def on_open(workbench: Workbench, wanted: dict[str, Any] | None, mark: bool) -> list[Any]:
    """Open a question of a run, with the chain and the steps it had there."""
    if not wanted or is_agents(workbench.runs.open(wanted["run"])):
        return [gr.skip()] * (7 + len(form.HEAD) + MAX_ACTIONS * (len(form.FIELDS) + 3))
    opened = workbench.runs.open_question(wanted["run"], wanted["position"])
    example, steps = opened.example, dict(enumerate(opened.episode.steps))
    screen = blank()
    screen[0] = steps
    error = opened.episode.error
    screen[1] = views.error(error) if error else views.note(f"Opened from the run {wanted['run']}.")
    for index, step in steps.items():
        screen[executed.place(index)] = show_step(workbench, step, example, mark)
    question = gr.update(
        choices=choices((example,), ""), value=example.question.qid, label=QUESTION
    )
    shown = [
        gr.Tabs(selected="develop"),
        opened.dataset,
        question,
        views.gold_line(example),
        dict(example.record),
    ]
    return [*shown, *form.write_chain(opened.chain), *screen]
