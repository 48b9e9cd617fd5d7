"""Agent: let a workflow act on an environment, watch it think, act and see; stop it, edit an action and go on from there."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from rallebench import sandbox
from rallebench.core.errors import RalleError, UsageError
from rallebench.engine.score import examples_of
from rallebench.environments import ENVIRONMENTS
from rallebench.experiments.benchmark import prepare
from rallebench.gui import views, views_agent
from rallebench.gui.session import Session, guard
from rallebench.gui.tabs import TABS
from rallebench.gui.tabs import _agent_draw as draw
from rallebench.gui.tabs import _agent_form as form_of
from rallebench.gui.tabs._agent_analysis import draw_analysis
from rallebench.gui.tabs._agent_draw import Widgets
from rallebench.gui.tabs._agent_form import AgentForm
from rallebench.gui.tabs._agent_read import beside, draw_read, on_run_chosen, on_unfold, open_it
from rallebench.gui.tabs.develop import QUESTION, choices, on_find
from rallebench.gui.tabs.sweep import number_of
from rallebench.services.episodes import (
    TYPED,
    EpisodeRequest,
    Episodes,
    EpisodeState,
    example_of,
    is_agents,
    save_episode,
)
from rallebench.services.transcript import actions, before, edit_text
from rallebench.services.workbench import Workbench
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.paths import READER

NO_AGENT = (
    "copies answers out of passages and cannot act as an agent: it would take all its steps without an answer. "
    "Add a model that writes in the Models tab."
)


@TABS.register("agent", order=7, label="Agent")
def build(workbench: Workbench, session: Session, tab: gr.Tab, page: gr.Blocks) -> None:
    """Choose, run, watch, stop, edit, compare."""
    lives = Episodes()
    who = draw.draw_agent(workbench)
    reads = gr.HTML(visible=False, elem_id="agent-llm-note", elem_classes="rb-flush")
    about = gr.HTML(
        about_of(form_of.FIRST, form_of.FIRST_ENV), elem_id="agent-about", elem_classes="rb-flush"
    )
    form = form_of.draw_settings(workbench)
    programs = gr.HTML(visible=False, elem_id="agent-programs", elem_classes="rb-flush")
    asked = draw.draw_question(workbench)
    tools = draw.draw_tools()
    panel = draw.draw_panel()
    edit = draw.draw_edit()
    after = draw.draw_after()
    reading = draw_read()
    followed = session.episode
    seen, sent, timer = gr.State(""), gr.State({}), gr.Timer(0.4, active=False)

    chosen = [who["workflow"], who["env"]]
    gr.on(
        [who["workflow"].change, who["env"].change],
        partial(guard, on_agent, workbench, form),
        chosen,
        [who["env"], about, programs, *form.inputs],
        show_progress="hidden",
    )
    who["llm"].change(partial(on_llm, workbench), [who["llm"]], [reads], show_progress="hidden")
    wire_question(workbench, who, asked)
    screen = [seen, panel, edit["at"], edit["text"], edit["group"], timer, tools["episodes"]]
    request = [*chosen, who["llm"], asked["dataset"], asked["question"], *form.inputs]
    tools["run"].click(
        partial(guard, on_run, workbench, lives, form),
        [followed, tools["mark"], *request],
        [followed, *screen],
        show_progress="hidden",
    )
    another = [
        tools["run"].click,
        edit["go"].click,
        tools["episodes"].input,
        reading["go"].click,
        reading["back"].click,
        reading["on"].click,
        session.open_question.change,
    ]
    gr.on(another, on_begin, None, [after["said"]], show_progress="hidden")
    tools["stop"].click(
        partial(guard, on_stop, workbench, lives),
        [followed, tools["mark"]],
        screen,
        show_progress="hidden",
    )
    timer.tick(
        partial(guard, on_tick, workbench, lives),
        [followed, seen, tools["mark"]],
        screen,
        show_progress="hidden",
    )
    filled = [*chosen, who["llm"], asked["dataset"], asked["question"], asked["gold"], *form.inputs]
    page.load(
        partial(guard, on_return, workbench, lives, form),
        [followed, tools["mark"]],
        [followed, *screen, *filled],
        show_progress="hidden",
    )
    tools["mark"].input(
        partial(guard, on_mark, workbench, lives),
        [followed, tools["mark"]],
        [panel],
        show_progress="hidden",
    )
    tools["episodes"].input(
        partial(guard, on_episode, workbench, lives, form),
        [tools["episodes"], tools["mark"]],
        [followed, *screen, *filled],
        show_progress="hidden",
    )
    wire_reading(
        workbench, lives, form, session, reading, tools["mark"], [followed, *screen, *filled]
    )
    edit["at"].input(
        partial(guard, on_action, lives),
        [followed, edit["at"]],
        [edit["text"]],
        show_progress="hidden",
    )
    edit["go"].click(
        partial(guard, on_continue, workbench, lives),
        [followed, tools["mark"], edit["at"], edit["text"]],
        [followed, *screen],
        show_progress="hidden",
    )
    after["send"].click(
        partial(guard, on_send, workbench, lives),
        [followed, sent],
        [sent, after["said"], session.tabs, session.compare_runs],
        show_progress_on=[after["said"]],
    )
    after["benchmark"].click(
        partial(guard, on_benchmark, workbench, form),
        [after["limit"], after["track"], *request],
        [after["said"], session.tabs, session.followed],
        show_progress_on=[after["said"]],
    )
    tab.select(
        partial(guard, on_names, workbench, form),
        [who["llm"]],
        [who["llm"], asked["dataset"], *form.inputs],
        show_progress="hidden",
    )
    draw_analysis(workbench, tab)


def wire_question(workbench: Workbench, who: Widgets, asked: Widgets) -> None:
    """Choosing and finding questions."""
    dataset, find, question, gold = (
        asked["dataset"],
        asked["find"],
        asked["question"],
        asked["gold"],
    )
    dataset.input(
        partial(guard, on_dataset, workbench),
        [dataset, who["env"]],
        [find, question, gold, who["env"]],
        show_progress="hidden",
    )
    find.change(
        partial(guard, on_find, workbench),
        [dataset, find],
        [question],
        show_progress="hidden",
        trigger_mode="always_last",
    )
    question.input(
        partial(guard, on_question, workbench), [dataset, question], [gold], show_progress="hidden"
    )


def wire_reading(
    workbench: Workbench,
    lives: Episodes,
    form: AgentForm,
    session: Session,
    reading: Widgets,
    mark: gr.Checkbox,
    shown: list[Any],
) -> None:
    """Reading a run's episodes, here or by a click in another tab; ``shown``: the episode, its screen and the form."""
    panel = shown[2]
    at = [reading["run"], reading["question"]]
    reading["box"].expand(partial(guard, on_unfold, workbench), at, at, show_progress="hidden")
    reading["run"].input(
        partial(guard, on_run_chosen, workbench),
        [reading["run"]],
        [reading["question"]],
        show_progress="hidden",
    )
    reading["go"].click(
        partial(guard, on_read, workbench, lives, form),
        [session.episode, *at, mark],
        shown,
        show_progress_on=[panel],
    )
    for button, step in ((reading["back"], -1), (reading["on"], 1)):
        button.click(
            partial(guard, on_beside, workbench, lives, form, step),
            [session.episode, *at, mark],
            [reading["question"], *shown],
            show_progress_on=[panel],
        )
    session.open_question.change(
        partial(guard, on_clicked, workbench, lives, form),
        [session.open_question, session.episode, mark],
        [session.tabs, reading["box"], *at, *shown],
        show_progress="hidden",
    )


# what is asked


def about_of(workflow: str | None, env: str | None) -> str:
    """What the chosen workflow and environment are; '' for names that there are not."""
    if not workflow or workflow not in form_of.workflows():
        return ""
    entry = WORKFLOWS.entry(workflow)
    acts = form_of.needs_env(workflow)
    acting = (
        ENVIRONMENTS.entry(env).about
        if acts and env and env in ENVIRONMENTS
        else "nothing yet; choose an environment."
        if acts
        else ""
    )
    return views_agent.about(entry.about, acting, str(entry.traits.get("paper", "")))


def on_llm(workbench: Workbench, llm: str | None) -> Any:
    """Say beforehand that the built-in reader is no agent: it would take all its steps without an answer."""
    entry = workbench.workspace.llms().get(llm or "")
    is_reader = entry is not None and entry.backend == READER
    return gr.update(value=views.note(f"{llm} {NO_AGENT}") if is_reader else "", visible=is_reader)


def on_agent(
    workbench: Workbench, form: AgentForm, workflow: str | None, env: str | None
) -> list[Any]:
    """Show what was chosen, its settings, and for programs what holds them."""
    runs = form_of.needs_python(workflow)
    held = (
        views_agent.programs(sandbox.protection().sentences(), workbench.allow_python)
        if runs
        else ""
    )
    acts = gr.update(interactive=form_of.needs_env(workflow))
    return [
        acts,
        about_of(workflow, env),
        gr.update(value=held, visible=runs),
        *form_of.shown(form, workflow, env),
    ]


def on_names(workbench: Workbench, form: AgentForm, llm: str | None) -> list[Any]:
    """Offer the models, question sets and data that there are now; where no model is chosen, the first that is loaded."""
    space = workbench.workspace
    loaded = [row.name for row in workbench.models.status() if row.kind == "language model"]
    chosen = llm or next(iter(loaded), None)
    return [
        gr.update(choices=list(space.llms()), value=chosen),
        gr.update(choices=list(space.dataset_paths())),
        *form_of.offers(workbench, form),
    ]


def on_dataset(workbench: Workbench, dataset: str, chosen: str | None) -> list[Any]:
    """Another question set: its questions, and the environment that they are made for.

    Questions that name none but have gold pages are not for the one that has no pages.
    """
    examples = workbench.asking.questions(dataset)
    first = examples[0]
    made_for = first.record.get("environment")
    env: Any = gr.skip()
    if isinstance(made_for, str) and made_for in ENVIRONMENTS:
        env = made_for
    elif (
        first.gold.pages
        and chosen in ENVIRONMENTS
        and not ENVIRONMENTS.entry(str(chosen)).traits.get("pages")
    ):
        env = form_of.FIRST_ENV
    return [
        "",
        gr.update(choices=choices(examples, ""), value=first.question.qid, label=QUESTION),
        views.gold_line(first),
        env,
    ]


def on_question(workbench: Workbench, dataset: str, chosen: str) -> str:
    """The gold of another question, for the reader's eye only."""
    _, example = example_of(workbench, dataset, chosen)
    return views.gold_line(example)


# an episode


def on_run(
    workbench: Workbench,
    lives: Episodes,
    form: AgentForm,
    followed: str,
    mark: bool,
    workflow: str,
    env: str,
    llm: str,
    dataset: str,
    chosen: str,
    *values: Any,
) -> list[Any]:
    """Begin an episode in the background; the panel follows it."""
    refuse_second(lives, followed)
    name, example = example_of(workbench, dataset, chosen)
    settings = form_of.given(form, workflow, env, values)
    wanted = EpisodeRequest(
        (workflow or "").strip(),
        (env or "").strip() if form_of.needs_env(workflow) else "",
        (llm or "").strip(),
        settings,
        name,
        example,
    )
    watched = lives.start(workbench, wanted)
    return [watched.name, *screen_of(workbench, lives, watched, mark)]


def refuse_second(lives: Episodes, followed: str) -> None:
    """Raise UsageError while the episode that the page follows goes on."""
    watched = lives.get(followed or "")
    if watched is not None and watched.going:
        raise UsageError("An episode goes on; stop it, or wait for its end.")


def screen_of(
    workbench: Workbench, lives: Episodes, watched: EpisodeState, mark: bool
) -> list[Any]:
    """What is seen, panel, what can be edited, whether to look again soon, and the episodes so far."""
    panel = views_agent.shown(watched, workbench.models.prices(), mark)
    episodes = gr.update(choices=episodes_of(lives), value=watched.name if began(watched) else None)
    if watched.going:
        return [
            watched.mark,
            panel,
            gr.skip(),
            gr.skip(),
            gr.update(visible=False),
            gr.Timer(active=True),
            episodes,
        ]
    return [watched.mark, panel, *edit_of(watched), gr.Timer(active=False), episodes]


def episodes_of(lives: Episodes) -> list[tuple[str, str]]:
    """(what it was, name) of the episodes that are known."""
    return [(views_agent.title(one), one.name) for one in lives.known() if began(one)]


def began(watched: EpisodeState) -> bool:
    """Whether it came further than to be refused."""
    return watched.state != "failed" or bool(watched.steps)


def edit_of(watched: EpisodeState) -> list[Any]:
    """The actions that can be edited, the last one's text, and whether there are any."""
    found = actions(watched.steps, watched.episode_request.workflow)
    if not found:
        return [gr.update(choices=[], value=None), "", gr.update(visible=False)]
    offers = [(f"{n}: {text[:120]}", at) for n, (at, text) in enumerate(found.items(), 1)]
    last = offers[-1][1]
    text = edit_text(watched.steps[last].reply, watched.episode_request.workflow)
    return [gr.update(choices=offers, value=last), text, gr.update(visible=True)]


def on_tick(
    workbench: Workbench, lives: Episodes, followed: str, seen: str, mark: bool
) -> list[Any]:
    """Draw the episode if anything has happened. Its end is drawn once: what is then typed in the edit box stays."""
    watched = lives.get(followed or "")
    if watched is None:
        return [
            "",
            views.note(views_agent.LOST),
            *[gr.skip()] * 2,
            gr.update(visible=False),
            gr.Timer(active=False),
            gr.skip(),
        ]
    if watched.mark == seen:
        return [*[gr.skip()] * 5, gr.skip() if watched.going else gr.Timer(active=False), gr.skip()]
    return screen_of(workbench, lives, watched, mark)


def on_return(
    workbench: Workbench, lives: Episodes, form: AgentForm, followed: str, mark: bool
) -> list[Any]:
    """A page that was loaded again finds its episode, or hears that it is gone; a fresh one follows what goes on."""
    going = next((one for one in lives.known() if one.going), None)
    watched = lives.get(followed or "") or (going if not followed else None)
    if watched is not None:
        return [
            watched.name,
            *screen_of(workbench, lives, watched, mark),
            *filled_with(workbench, form, watched),
        ]
    episodes = gr.update(choices=episodes_of(lives), value=None)
    panel = views.note(views_agent.LOST) if followed else views.empty(views_agent.NOTHING)
    return [
        "",
        "",
        panel,
        gr.skip(),
        gr.skip(),
        gr.update(visible=False),
        gr.Timer(active=False),
        episodes,
        *[gr.skip()] * (6 + len(form.inputs)),
    ]


def filled_with(workbench: Workbench, form: AgentForm, watched: EpisodeState) -> list[Any]:
    """The form as it was when the episode was asked for."""
    wanted = watched.episode_request
    question, gold = wanted.example.question, views.gold_line(wanted.example)
    which = [gr.skip(), gr.update(value=question.text), gold]
    if wanted.dataset != TYPED:
        offers = choices(workbench.asking.questions(wanted.dataset), "")
        which = [wanted.dataset, gr.update(choices=offers, value=question.qid), gold]
    settings = form_of.filled(form, wanted.workflow, wanted.env, wanted.settings)
    return [wanted.workflow, wanted.env or gr.skip(), wanted.llm, *which, *settings]


def on_episode(
    workbench: Workbench, lives: Episodes, form: AgentForm, name: str, mark: bool
) -> list[Any]:
    """Show another episode, with the form as it was then."""
    watched = lives.get(name or "")
    if watched is None:
        raise UsageError("That episode is not known any more.")
    return [
        watched.name,
        *screen_of(workbench, lives, watched, mark),
        *filled_with(workbench, form, watched),
    ]


def on_read(
    workbench: Workbench,
    lives: Episodes,
    form: AgentForm,
    followed: str,
    run: str | None,
    qid: str | None,
    mark: bool,
) -> list[Any]:
    """Show an episode of a run, as if it had just ended here."""
    refuse_second(lives, followed)
    return on_episode(workbench, lives, form, open_it(workbench, lives, run, qid), mark)


def on_beside(
    workbench: Workbench,
    lives: Episodes,
    form: AgentForm,
    step: int,
    followed: str,
    run: str | None,
    qid: str | None,
    mark: bool,
) -> list[Any]:
    """Show the run's episode before (``step`` −1) or behind (1) the chosen one."""
    other = beside(workbench, run, qid, step)
    return [other, *on_read(workbench, lives, form, followed, run, other, mark)]


def on_clicked(
    workbench: Workbench,
    lives: Episodes,
    form: AgentForm,
    wanted: dict[str, Any] | None,
    followed: str,
    mark: bool,
) -> list[Any]:
    """Show the episode of a question that was clicked in another tab, if an agent's run holds it."""
    if not wanted or not is_agents(folder := workbench.runs.open(wanted["run"])):
        return [gr.skip()] * (18 + len(form.inputs))
    qid = examples_of(folder)[wanted["position"] - 1].question.qid
    reading = [gr.Accordion(open=True), *on_unfold(workbench, wanted["run"], qid)]
    return [
        gr.Tabs(selected="agent"),
        *reading,
        *on_read(workbench, lives, form, followed, wanted["run"], qid, mark),
    ]


def on_mark(workbench: Workbench, lives: Episodes, followed: str, mark: bool) -> Any:
    """The same episode with or without marks."""
    watched = lives.get(followed or "")
    return (
        gr.skip()
        if watched is None
        else views_agent.shown(watched, workbench.models.prices(), mark)
    )


def on_stop(workbench: Workbench, lives: Episodes, followed: str, mark: bool) -> list[Any]:
    """Stop the episode at once; what it has done stays, and can be gone on from.

    The next tick draws its end. Drawn here as well, a tick that is on its way would draw it a second time, over what
    is being typed in the edit box by then.
    """
    lives.stop(followed or "")
    watched = lives.get(followed)
    assert watched is not None
    panel = views_agent.shown(watched, workbench.models.prices(), mark)
    return [gr.skip(), panel, *[gr.skip()] * 3, gr.Timer(active=True), gr.skip()]


def on_action(lives: Episodes, followed: str, at: int | str | None) -> Any:
    """The text of another action."""
    watched = lives.get(followed or "")
    if watched is None or not isinstance(at, int) or at >= len(watched.steps):
        return gr.skip()
    return edit_text(watched.steps[at].reply, watched.episode_request.workflow)


def on_continue(
    workbench: Workbench,
    lives: Episodes,
    followed: str,
    mark: bool,
    at: int | str | None,
    text: str,
) -> list[Any]:
    """Go on from an action as it now reads; nothing before it is asked again."""
    refuse_second(lives, followed)
    watched = lives.get(followed or "")
    if watched is None or not isinstance(at, int):
        raise UsageError(
            "There is no action to go on from; run an episode, then choose one of its actions."
        )
    steps = before(watched.steps, at, text or "", watched.episode_request.workflow)
    now = lives.start(workbench, replace(watched.episode_request, before=steps))
    return [now.name, *screen_of(workbench, lives, now, mark)]


# what comes next


def on_begin() -> str:
    """What was said of an earlier episode is over."""
    return ""


def on_send(
    workbench: Workbench, lives: Episodes, followed: str, sent: dict[str, Any]
) -> list[Any]:
    """Keep the episode as a run of one question; with another one of the same question the two are compared."""
    watched = lives.get(followed or "")
    if watched is not None and watched.run:
        return [sent, "", gr.Tabs(selected="compare"), {"runs": [watched.run], "at": time.time()}]
    if watched is None or watched.name not in sent:
        run = save_episode(workbench, watched).name
        assert watched is not None
        sent = {**sent, watched.name: (watched.episode_request.example.question.qid, run)}
    qid, run = sent[watched.name]
    same = [name for other, name in sent.values() if other == qid][-8:]
    if len(same) == 1:
        return [sent, views_agent.kept(run), gr.skip(), gr.skip()]
    return [
        sent,
        views_agent.kept(run, len(same)),
        gr.Tabs(selected="compare"),
        {"runs": same, "at": time.time()},
    ]


def on_benchmark(
    workbench: Workbench,
    form: AgentForm,
    limit: str,
    track: bool,
    workflow: str,
    env: str,
    llm: str,
    dataset: str,
    chosen: str,
    *values: Any,
) -> list[Any]:
    """Run the agent over a question set in the background, where Benchmark follows it."""
    try:
        agent = workbench.asking.agent(
            (workflow or "").strip(),
            env or "",
            llm or "",
            form_of.given(form, workflow, env, values),
            seed=0,
        )
        plan = prepare(
            workbench.workspace,
            agent.flow,
            dataset,
            limit=number_of(limit),
            track=bool(track),
        )
    except RalleError as error:
        return [views.error(views_agent.sentence(str(error))), gr.skip(), gr.skip()]
    job = workbench.runs.start(plan)
    return [
        views.note(
            f"The benchmark {job.name} runs in the background; Benchmark follows it.", "good"
        ),
        gr.Tabs(selected="benchmark"),
        job.name,
    ]
