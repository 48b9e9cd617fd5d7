"""The Agent tab: its handlers called as plain functions; episodes go on in the background, are edited, stopped and compared."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from small_workspace import make_workspace

from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Generate
from rallebench.gui import views_agent
from rallebench.gui.tabs import _agent_form as form_of
from rallebench.gui.tabs import agent as tab
from rallebench.gui.tabs import compare, develop
from rallebench.gui.tabs._agent_read import on_run_chosen, on_unfold
from rallebench.services.episodes import Episodes, EpisodeState, example_of
from rallebench.services.workbench import Workbench

LINES = (
    ("I look for <b>Titan</b>.", "Search[Titan (moon)]"),
    ("Not there.", "Lookup[telescope]"),
    ("I know it.", "Finish[Galileo Galilei]"),
)
REACT = {
    rf"{what} {n}:\Z": line
    for n, pair in enumerate(LINES, 1)
    for what, line in zip(("Thought", "Action"), pair)
}
"""A model that follows its lines, wherever its observations lead it."""


def call(name: str, **arguments: str) -> str:
    return f"Thought: Now {name}.\nAction: {name}\nAction Input: {json.dumps(arguments)}"


GIVE_UP = call("Finish", return_type="give_up_and_restart")
SEARCHES = [
    call("Search", entity="Titan (moon)"),
    GIVE_UP,
    call("Search", entity="Christiaan Huygens"),
    call("Finish", return_type="give_answer", final_answer="Christiaan Huygens"),
]
MODELS: dict[str, dict[str, Any]] = {
    "lines": {"replies": REACT},
    "lines-slow": {"replies": REACT, "delay": 30},
    "searches": {"replies": SEARCHES},
    "program": {"default": "```python\nprint(Search('Christiaan Huygens')[:18])\n```"},
    "fails": {"default": "```python\nraise ValueError('no')\n```"},
}


class Listening(Workbench):
    """A workbench that remembers what it was asked to trace; nothing goes to MLflow."""

    def __init__(self, *places: Path, **settings: Any) -> None:
        super().__init__(*places, **settings)
        self.tracking.trace = self.trace  # type: ignore[method-assign]

    def trace(self, episode: Episode, question: str, source: str = "") -> None:
        self.traced = [*getattr(self, "traced", []), (episode.outcome, question, source)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_workspace(tmp_path_factory.mktemp("workspace"))
    entries = json.loads((made / "llms.json").read_text())
    entries |= {
        name: {"backend": "scripted", "settings": settings} for name, settings in MODELS.items()
    }
    entries["heavy"] = {"backend": "transformers", "settings": {"model_name_or_path": "/nowhere"}}
    (made / "llms.json").write_text(json.dumps(entries))
    return made


@pytest.fixture
def bench(folder: Path) -> Listening:
    return Listening(folder, allow_python=True)


@pytest.fixture
def lives() -> Episodes:
    return Episodes()


@pytest.fixture(scope="module")
def form() -> form_of.AgentForm:
    return form_of.AgentForm(form_of.in_order())


Run = Callable[..., EpisodeState]


@pytest.fixture
def run(bench: Listening, lives: Episodes, form: form_of.AgentForm) -> Run:
    def ran(
        llm: str = "lines",
        workflow: str = "react",
        chosen: str = "q5",
        wait: bool = True,
        followed: str = "",
        **given: Any,
    ) -> EpisodeState:
        given = {"retriever": "tiny", **given}
        values = [given.get(name, setting.default) for _, name, setting in form.settings]
        name, *_ = tab.on_run(
            bench,
            lives,
            form,
            followed,
            True,
            workflow,
            "wikipedia",
            llm,
            "tiny-qa",
            chosen,
            *values,
        )
        return ended(lives, name) if wait else watched(lives, name)

    return ran


def watched(lives: Episodes, name: str) -> EpisodeState:
    found = lives.get(name)
    assert found is not None
    return found


def ended(lives: Episodes, name: str, patience: float = 20.0) -> EpisodeState:
    deadline = time.monotonic() + patience
    while watched(lives, name).going and time.monotonic() < deadline:
        time.sleep(0.01)
    return watched(lives, name)


def panel(found: EpisodeState, mark: bool = True) -> str:
    return views_agent.shown(found, {}, mark)


# the form


def test_that_the_built_in_reader_is_no_agent_is_said_before_it_is_run(bench: Workbench) -> None:
    shown = tab.on_llm(bench, "extractive-reader")
    assert shown["visible"] and "cannot act as an agent" in shown["value"]
    assert [tab.on_llm(bench, name)["visible"] for name in ("follows", "nobody", None)] == [
        False,
        False,
        False,
    ]


def test_settings_are_those_of_the_workflow_and_of_the_environment_that_it_needs(
    form: form_of.AgentForm,
) -> None:
    shown = [form.settings[i][1] for i in form.of("dfsdt", "scholar")]
    assert {"shots", "steps", "width", "depth", "table"} <= set(shown) and "retriever" not in shown
    assert {form.settings[i][0] for i in form.of("chain-of-thought", "scholar")} == {"workflow"}
    assert not any(name.startswith("barag") for name in form_of.workflows()), (
        "those are run by suites"
    )


def test_only_what_is_not_the_default_is_asked_for(form: form_of.AgentForm) -> None:
    values = [
        {"steps": 3, "retriever": "tiny", "shots": None}.get(name, setting.default)
        for _, name, setting in form.settings
    ]
    assert form_of.given(form, "react", "wikipedia", values) == {
        "steps": 3,
        "env.retriever": "tiny",
    }


def test_a_question_set_that_names_its_environment_chooses_it(bench: Listening) -> None:
    *_, env = tab.on_dataset(bench, "starter-scholar-easy", "wikipedia")
    assert env == "scholar"
    assert tab.on_dataset(bench, "tiny-qa", "corpus-tools")[-1] == gr.skip()
    assert tab.on_dataset(bench, "tiny-qa", "scholar")[-1] == "wikipedia", (
        "its gold is on pages, which that environment has not"
    )


def test_a_workflow_that_runs_programs_says_what_holds_them_and_how_to_allow_it(
    bench: Listening, folder: Path, form: form_of.AgentForm
) -> None:
    _, about, allowed, *_ = tab.on_agent(bench, form, "pal", "wikipedia")
    assert "program" in about and allowed["visible"] and "no security boundary" in allowed["value"]
    _, _, refused, *_ = tab.on_agent(Workbench(folder), form, "pal", "wikipedia")
    assert "--allow-python" in refused["value"]
    assert not tab.on_agent(bench, form, "react", "wikipedia")[2]["visible"]


# an episode


def test_an_episode_is_shown_step_by_step_with_why_it_ended_and_whether_it_is_right(
    bench: Listening, run: Run
) -> None:
    found = run()
    text = panel(found)
    assert found.state == "ended" and text.index("Thought 1") < text.index(
        "Search[Titan (moon)]"
    ) < text.index("thick atmosphere")
    assert "&lt;b&gt;Titan&lt;/b&gt;" in text and "<b>Titan</b>" not in text
    assert (
        "finished with an answer" in text
        and "is no gold answer" in text
        and "What the model was asked" in text
    )
    assert bench.traced == [
        (found.episode and found.episode.outcome, "Who discovered Titan in 1655?", "agent")
    ]


def test_the_gold_is_never_asked_with(run: Run) -> None:
    prompts = [
        m.content
        for s in run().steps
        if isinstance(s.request, Generate)
        for m in s.request.messages
    ]
    assert prompts and not any("Huygens" in prompt for prompt in prompts)


def test_a_typed_question_is_answered_and_has_no_gold(run: Run) -> None:
    found = run(chosen="Which moon is the largest?")
    assert (
        found.episode_request.dataset == "typed"
        and "gold answer" not in panel(found)
        and found.state == "ended"
    )


def test_a_search_is_drawn_as_a_tree_in_which_the_way_to_the_answer_stands_open(run: Run) -> None:
    text = panel(run("searches", "dfsdt"))
    tree = text[text.index('class="rb-tree"') : text.index("Step by step")]
    assert (
        tree.count('role="treeitem"') == 4
        and tree.count("gave up") == 1
        and tree.count('class="way"') == 2
    )
    assert tree.count(" open>") == 2 and "is a gold answer" in text


def test_a_program_is_shown_with_its_calls_and_what_it_printed(run: Run) -> None:
    text = panel(run("program", "pal"))
    assert text.index("Program") < text.index("Search({") < text.index("It printed")
    assert "How it ended" in panel(run("fails", "pal"))


def test_a_program_is_edited_and_run_again(bench: Listening, lives: Episodes, run: Run) -> None:
    offers, text, _ = tab.edit_of(run("fails", "pal"))
    assert text == "raise ValueError('no')" and offers["value"] == 0
    name, *_ = tab.on_continue(
        bench, lives, lives.known()[0].name, True, 0, "print('Christiaan Huygens')"
    )
    assert "is a gold answer" in panel(ended(lives, name))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"llm": "heavy"}, "&#x27;heavy&#x27; is not loaded"),
        ({"llm": ""}, "needs a language model; choose one."),
        ({"llm": "mute"}, "has said all its 0 replies"),
        ({"retriever": "gone"}, "There is no index &#x27;gone&#x27;"),
        ({"steps": 0}, "steps=0: steps must be a whole number from 1 to 1000."),
        ({"workflow": "reakt"}, "reakt"),
    ],
)
def test_what_cannot_be_done_stands_in_the_episodes_place(
    run: Run, wrong: dict[str, Any], sentence: str
) -> None:
    found = run(**wrong)
    assert found.state == "failed" and "rb-error" in panel(found) and sentence in panel(found)


def test_a_program_that_is_not_allowed_is_refused_with_the_mend(
    folder: Path, lives: Episodes, form: form_of.AgentForm
) -> None:
    values = [setting.default for *_, setting in form.settings]
    name, *_ = tab.on_run(
        Listening(folder),
        lives,
        form,
        "",
        True,
        "pal",
        "wikipedia",
        "program",
        "tiny-qa",
        "q5",
        *values,
    )
    assert (
        panel(ended(lives, name)).count("allow it by opening this page with app.py --allow-python.")
        == 1
    )


def test_a_stopped_episode_ends_at_once_and_is_found_again_by_a_page_that_is_loaded_anew(
    bench: Listening, lives: Episodes, form: form_of.AgentForm, run: Run
) -> None:
    name = run("lines-slow", wait=False).name
    with pytest.raises(UsageError, match="An episode goes on"):
        run(followed=name, wait=False)
    again, _, text, *_ = tab.on_return(bench, lives, form, name, True)
    assert again == name and ("Running" in text or "Getting ready" in text)
    assert tab.on_return(bench, lives, form, "", True)[0] == name, (
        "a fresh page follows what goes on"
    )
    tab.on_stop(bench, lives, name, True)
    assert watched(lives, name).state == "stopped" and "Stopped by you" in panel(
        watched(lives, name)
    )
    with pytest.raises(UsageError, match="nothing to stop"):
        tab.on_stop(bench, lives, name, True)


def test_the_end_of_an_episode_is_drawn_once_so_that_what_is_typed_then_stays(
    bench: Listening, lives: Episodes, run: Run
) -> None:
    name = run("lines-slow", wait=False).name
    *_, timer, _ = stopped = tab.on_stop(bench, lives, name, True)
    assert "Stopped by you" in stopped[1] and stopped[2:5] == [gr.skip()] * 3 and timer.active
    seen, *_, timer, _ = tab.on_tick(bench, lives, name, "", True)
    assert seen == watched(lives, name).mark and not timer.active
    again = tab.on_tick(bench, lives, name, seen, True)
    assert again[:5] == [gr.skip()] * 5 and not again[5].active


def test_an_episode_that_the_program_forgot_is_said_to_have_ended(
    bench: Listening, lives: Episodes, form: form_of.AgentForm
) -> None:
    name, _, text, *_ = tab.on_return(bench, lives, form, "long gone", True)
    assert name == "" and "started anew" in text
    assert "No episode yet" in tab.on_return(bench, lives, form, "", True)[2]


def test_a_page_that_comes_back_has_the_form_as_it_was(
    bench: Listening, lives: Episodes, form: form_of.AgentForm, run: Run
) -> None:
    name = run("searches", "dfsdt", steps=7).name
    filled = tab.on_return(bench, lives, form, name, True)[8:]
    assert (
        filled[:4] == ["dfsdt", "wikipedia", "searches", "tiny-qa"] and filled[4]["value"] == "q5"
    )
    steps = [
        one["value"]
        for one, known in zip(filled[6:], form.settings)
        if known[1] == "steps" and one["visible"]
    ]
    assert steps == [7]


# edit and go on


def test_an_edited_action_is_gone_on_from_and_nothing_before_it_is_asked_again(
    bench: Listening, lives: Episodes, run: Run
) -> None:
    first = run()
    offers, text, group = tab.edit_of(first)
    assert group["visible"] and text == "Finish[Galileo Galilei]" and len(offers["choices"]) == 3
    at = offers["choices"][1][1]
    assert tab.on_action(lives, first.name, at) == "Lookup[telescope]"
    name, *_ = tab.on_continue(bench, lives, first.name, True, at, "Search[Christiaan Huygens]")
    second = ended(lives, name)
    assert second.steps[:at] == first.steps[:at] and "with a telescope of his own" in panel(second)
    assert (
        "edited by you" in panel(second)
        and "not the agent" in panel(second)
        and second.state == "ended"
    )


@pytest.mark.parametrize(
    ("at", "text", "sentence"),
    [(None, "Search[x]", "There is no action"), (1, " ", "The action is empty")],
)
def test_nothing_is_gone_on_from_without_an_action(
    bench: Listening, lives: Episodes, run: Run, at: Any, text: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        tab.on_continue(bench, lives, run().name, True, at, text)


# what comes next


def test_two_episodes_of_a_question_are_sent_and_compared(
    bench: Listening, lives: Episodes, run: Run
) -> None:
    first, second = run(), run("searches", "dfsdt")
    sent, said, *stays = tab.on_send(bench, lives, first.name, {})
    assert "Kept as the run" in said and stays == [gr.skip()] * 2
    sent, _, tabs, asked = tab.on_send(bench, lives, second.name, sent)
    assert tabs.selected == "compare" and len(asked["runs"]) == 2
    report = bench.runs.open(asked["runs"][1]).report()
    assert report is not None and report["metrics"]["em"]["value"] == 1.0 and report["n"] == 1
    shown = compare.on_compare(bench, asked["runs"], "em", "seconds_per_question")
    assert shown[0] == "" and shown[2]["runs"] == asked["runs"]
    assert tab.on_send(bench, lives, first.name, sent)[0] == sent, "an episode is kept once"


def test_a_run_of_one_episode_is_no_benchmark_to_resume(
    bench: Listening, lives: Episodes, run: Run
) -> None:
    sent, *_ = tab.on_send(bench, lives, run().name, {})
    ((_, name),) = sent.values()
    assert bench.runs.open(name).spec()["spec"]["settings"]["question"] == "q5"
    with pytest.raises(UsageError, match="was made with"):
        list(bench.runs.run(bench.runs.resume(name)))


def test_what_has_not_ended_is_not_sent(bench: Listening, lives: Episodes, run: Run) -> None:
    with pytest.raises(UsageError, match="run one first"):
        tab.on_send(bench, lives, "", {})
    name = run("lines-slow", wait=False).name
    tab.on_stop(bench, lives, name, True)
    with pytest.raises(UsageError, match=r"stopped before it ended|run one first"):
        tab.on_send(bench, lives, name, {})


def test_the_agent_is_benchmarked_in_the_background_and_its_episodes_can_be_read(
    bench: Listening, lives: Episodes, form: form_of.AgentForm
) -> None:
    values = [
        {"retriever": "tiny"}.get(name, setting.default) for _, name, setting in form.settings
    ]
    said, tabs, name = tab.on_benchmark(
        bench, form, "2", False, "react", "wikipedia", "lines", "tiny-qa", "q5", *values
    )
    deadline = time.monotonic() + 20
    while not bench.jobs.get("run", name).done and time.monotonic() < deadline:
        time.sleep(0.02)
    report = bench.runs.open(name).report()
    assert name in said and tabs.selected == "benchmark" and report is not None and report["n"] == 2
    read = tab.on_read(bench, lives, form, "", name, on_run_chosen(bench, name)["value"], True)
    assert (
        f"Read from the run {name}." in read[2]
        and "Thought 3" in read[2]
        and read[8:11] == ["react", "wikipedia", "lines"]
    )
    assert (
        on_unfold(bench, None, None)[0]["choices"][0] == name
        and on_unfold(bench, None, None)[1]["value"] == "q1"
    )
    moved = tab.on_beside(bench, lives, form, 1, "", name, "q1", True)
    assert (
        moved[0] == "q2" and f"Read from the run {name}." in moved[3] and moved[13]["value"] == "q2"
    )
    assert tab.on_beside(bench, lives, form, -1, "", name, "q2", True)[0] == "q1"
    for step, qid, said in (
        (1, "q2", "the last of the 2 episodes"),
        (-1, "q1", "the first of the 2"),
        (1, "", "Choose a run"),
        (1, "q9", "no episode"),
    ):
        with pytest.raises(UsageError, match=said):
            tab.on_beside(bench, lives, form, step, "", name, qid, True)
    wanted = {"run": name, "position": 1, "at": 0}
    clicked = tab.on_clicked(bench, lives, form, wanted, "", True)
    assert clicked[0].selected == "agent" and f"Read from the run {name}." in clicked[6]
    assert clicked[1].open and [one["value"] for one in clicked[2:4]] == [name, "q1"]
    assert develop.on_open(bench, wanted, True) == develop.on_open(bench, None, True), (
        "Develop leaves an agent's run to Agent"
    )
    *_, tabs, asked = tab.on_send(bench, lives, read[0], {})
    assert tabs.selected == "compare" and asked["runs"] == [name], (
        "an episode of a run is in that run already"
    )
    refused, *_ = tab.on_benchmark(
        bench, form, "2", False, "react", "wikipedia", "", "tiny-qa", "q5", *values
    )
    assert "choose one" in refused


def test_an_example_of_a_question_set_is_told_from_a_typed_question(bench: Listening) -> None:
    assert example_of(bench, "tiny-qa", "q1")[0] == "tiny-qa"
    typed = example_of(bench, "tiny-qa", "Why?")[1]
    assert (
        typed.question.text == "Why?" and typed.record["input"] == "Why?" and not typed.gold.answers
    )
    with pytest.raises(UsageError, match="No question is chosen"):
        example_of(bench, "tiny-qa", " ")
