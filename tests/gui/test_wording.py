"""What lower layers say with flags of the command line is said on the page with its fields."""

from __future__ import annotations

from pathlib import Path

import gradio as gr
import pytest

from rallebench.experiments import BUILDERS, SUITES
from rallebench.gui import views_making, views_suites
from rallebench.gui.tabs import _making, _suites_form
from rallebench.gui.tabs import suites as suites_tab
from rallebench.gui.tabs._data_settings import draw_settings
from rallebench.gui.wording import on_page
from rallebench.gui.works import Works
from rallebench.services.jobs import JobManager
from rallebench.services.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path / "workspace")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Name a folder with --set data=PATH.", "Name a folder with data=PATH."),
        ("--set noise=x: noise must be numbers.", "noise=x: noise must be numbers."),
        (
            "Models are missing; name them with --set models=A,B or one with --llm.",
            "Models are missing; name them with models=A,B or choose one.",
        ),
        (
            "these tasks have no gold documents; name --llm.",
            "these tasks have no gold documents; choose one.",
        ),
        (
            "that is measured only with a language model (--llm).",
            "that is measured only with a language model.",
        ),
        (
            "let a model propose some: --set propose=10 --llm L.",
            "let a model propose some: propose=10 and choose a model.",
        ),
        (
            "start the suite again with the same --name to continue.",
            "start the suite again with the same name to continue.",
        ),
        (
            "whether --limit draws articles at random",
            "whether the number asked for draws articles at random",
        ),
        ("An answer with -- and more is left alone.", "An answer with -- and more is left alone."),
    ],
)
def test_a_flag_is_called_as_its_field_is(said: str, shown: str) -> None:
    assert on_page(said) == shown


def test_no_help_of_a_suite_or_a_maker_names_a_flag(bench: Workbench) -> None:
    with gr.Blocks():
        suites = _suites_form.draw_settings(bench, None).inputs
        makers = draw_settings(
            {name: BUILDERS.entry(name).form for name in BUILDERS.names()}, "m", "barag"
        ).inputs
    helps = [one.info for one in (*suites, *makers)]
    assert [help for help in helps if "--" in help or "rallebench" in help] == []
    assert "instead: a corpus, of whose articles the language model writes a question each" in helps
    assert not [name for name in SUITES.names() if "--" in _suites_form.about_of(name)]


def test_making_without_a_model_says_what_to_choose_or_to_untick(
    bench: Workbench, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("An article. " * 30)
    known = BUILDERS.entry("barag").form
    names, fields = (
        [("barag", key) for key in known],
        [setting.default for setting in known.values()],
    )
    said, _ = _making.on_make(
        bench,
        Works(JobManager(), "making"),
        names,
        "barag",
        "mine",
        str(tmp_path / "a.txt"),
        "",
        "",
        *fields,
    )
    assert (
        "choose one, or do without: questions=0, recency not ticked, answerable not ticked" in said
        and "--" not in said
    )


def test_a_suite_without_its_index_names_the_tab_that_makes_one(bench: Workbench) -> None:
    form = _suites_form.SuiteForm(_suites_form.in_order())
    data = {"data": str(bench.workspace.dataset("starter-qa")[1])}
    values = [data.get(name, setting.default) for name, setting in form.settings]
    said, _ = suites_tab.on_plan(bench, form, "barag-curve", "extractive-reader", "", "n", *values)
    assert (
        "index=NAME (Data → Build an index makes one, with the cutting barag)" in said
        and "--" not in said
    )


def test_notes_of_results_name_no_flags() -> None:
    note = "To tell errors apart by hand, fill in the column category of errors.csv and give it with --set labels=FILE."
    assert "give it with labels=FILE" in views_making.done(
        {"notes": [note], "questions": 0, "counts": {}, "files": []}
    )
    none = {"low": 0, "high": 0}
    total = {"questions": 0, "left": 0, "generations": none, "retrievals": none}
    shown = views_suites.plan(
        {"suite": "s", "name": "n", "plan": [], "notes": [note], "total": total}
    )
    assert "give it with labels=FILE" in shown
