"""The page is thin: handlers are module-level functions of the gui package, short, and close over nothing."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from rallebench.gui import app, session
from rallebench.gui.tabs import benchmark, suites
from rallebench.services.workbench import Workbench

MOST_STATEMENTS = 15


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> gr.Blocks:
    return app.build_app(Workbench(tmp_path_factory.mktemp("workspace")))


def handlers(page: gr.Blocks) -> Iterator[Any]:
    for block in page.fns.values():
        if block.fn is not None and block.api_name != "lambda":
            yield block.fn


def unwrapped(fn: Any) -> Any:
    """The handler behind ``partial(guard, handler, …)``."""
    while isinstance(fn, functools.partial):
        fn = fn.args[0] if fn.func in (session.guard, session.guard_stream) else fn.func
    return fn


def test_every_handler_is_a_plain_function_of_the_page(drawn: gr.Blocks) -> None:
    found = {unwrapped(fn) for fn in handlers(drawn)}
    assert len(found) >= 15
    for fn in found:
        assert inspect.isfunction(fn), fn
        assert fn.__module__.startswith("rallebench.gui"), fn
        assert fn.__closure__ is None and "<locals>" not in fn.__qualname__, fn


def test_every_handler_is_short(drawn: gr.Blocks) -> None:
    for fn in {unwrapped(fn) for fn in handlers(drawn)}:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(fn))).body
        statements = (
            sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - 2
        )  # itself, its docstring
        assert statements <= MOST_STATEMENTS, f"{fn.__qualname__} has {statements} statements"


def test_every_control_has_a_name_that_scripts_can_rely_on(drawn: gr.Blocks) -> None:
    kinds = (
        gr.Button,
        gr.Textbox,
        gr.Dropdown,
        gr.Radio,
        gr.Number,
        gr.Checkbox,
        gr.Dataframe,
        gr.Chatbot,
    )
    nameless = [b for b in drawn.blocks.values() if isinstance(b, kinds) and not b.elem_id]
    assert not nameless, [
        (type(b).__name__, getattr(b, "label", "") or getattr(b, "value", "")) for b in nameless
    ]
    names = [b.elem_id for b in drawn.blocks.values() if getattr(b, "elem_id", None)]
    assert len(names) == len(set(names)), {n for n in names if names.count(n) > 1}


def test_the_tabs_stand_in_the_agreed_order(drawn: gr.Blocks) -> None:
    bar = next(b for b in drawn.blocks.values() if isinstance(b, gr.Tabs) and b.elem_id == "tabs")
    assert [tab.label for tab in bar.children] == [
        "Models",
        "Develop",
        "Benchmark",
        "Sweep",
        "Runs",
        "Compare",
        "Chat",
        "Agent",
        "Data",
        "Suites",
        "Config",
    ]


def test_no_field_is_checked_by_gradio_whose_message_names_none(drawn: gr.Blocks) -> None:
    """A wrong field in a hidden action would stop every button; ``form.read_chain`` says which field it is."""
    named = {b.elem_id: b for b in drawn.blocks.values() if getattr(b, "elem_id", None)}
    ours = {
        name: b
        for name, b in named.items()
        if name.startswith(("models-", "develop-", "benchmark-", "chat-", "compare-"))
    }
    numbers = {
        name: b for name, b in ours.items() if isinstance(b, gr.Number) and "-index-" not in name
    }
    assert {"develop-k-1", "develop-k-8", "benchmark-batch-size"} <= set(numbers)
    assert {(b.minimum, b.maximum, b.precision) for b in numbers.values()} == {(None, None, None)}
    strict = {
        name for name, b in ours.items() if isinstance(b, gr.Dropdown) and not b.allow_custom_value
    }
    assert strict == {"benchmark-filter", "compare-x"}, (
        "what others name may be gone at the next click"
    )


def test_benchmark_offers_the_question_set_that_develop_shows(drawn: gr.Blocks) -> None:
    (follows,) = (block for block in drawn.fns.values() if block.fn is benchmark.on_developed)
    assert [block.elem_id for block in follows.inputs] == ["develop-dataset"]
    assert [block.elem_id for block in follows.outputs] == ["benchmark-dataset"]


@pytest.mark.slow
def test_drawing_the_page_loads_nothing_heavy(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from pathlib import Path; from rallebench.gui.app import build_app; "
        "from rallebench.services.workbench import Workbench; build_app(Workbench(Path(sys.argv[1]))); "
        "print([m for m in ('torch', 'transformers', 'faiss', 'mlflow', 'bm25s') if m in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(app.__file__).parents[2],
    )
    assert said.stdout.strip().endswith("[]"), said.stdout


@pytest.mark.parametrize(
    ("host", "auth", "expected"),
    [("127.0.0.1", None, None), ("0.0.0.0", "me:secret", ("me", "secret"))],
)
def test_a_login_is_demanded_for_any_other_address(
    host: str, auth: str | None, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    from rallebench.core.errors import UsageError

    monkeypatch.delenv(app.AUTH_VARIABLE, raising=False)
    assert app.login(argparse.Namespace(host=host, auth=auth)) == expected
    with pytest.raises(UsageError, match="give --auth user:password"):
        app.login(argparse.Namespace(host="0.0.0.0", auth=None))
    monkeypatch.setenv(app.AUTH_VARIABLE, "you:hidden")
    assert app.login(argparse.Namespace(host="0.0.0.0", auth=None)) == ("you", "hidden")
    with pytest.raises(UsageError, match="user:password"):
        app.login(argparse.Namespace(host="127.0.0.1", auth="no-colon"))


def test_whoever_runs_a_suite_is_brought_to_its_progress_which_stands_right_below_the_buttons(
    drawn: gr.Blocks,
) -> None:
    named = [b.elem_id for b in drawn.blocks.values() if getattr(b, "elem_id", None)]
    places = [named.index(f"suites-{part}") for part in ("run", "status", "progress", "planned")]
    assert places == sorted(places)
    (brings,) = (event for event in drawn.fns.values() if event.js == suites.TO_PROGRESS)
    assert "suites-progress" in suites.TO_PROGRESS and brings.trigger_after is not None
    assert unwrapped(drawn.fns[brings.trigger_after].fn) is suites.on_start


def test_the_suites_tab_asks_anew_what_its_settings_may_name_when_it_is_opened(
    drawn: gr.Blocks,
) -> None:
    (asks,) = (event for event in drawn.fns.values() if unwrapped(event.fn) is suites.on_offers)
    filled = [block.elem_id for block in asks.outputs]
    assert (
        "suites-llm" in filled
        and any(name.endswith("-judge") for name in filled)
        and any(name.endswith("-index") for name in filled)
    )
