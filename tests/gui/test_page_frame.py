"""The frame: addresses, actions, streams, errors, and values that windows do not share."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from loops import run_apart
from project import PROJECT
from starlette.concurrency import run_in_threadpool

from rallebench.core.errors import Hint, UsageError
from rallebench.core.events import Operation, Warned
from rallebench.gui import frame
from rallebench.gui.app import server_functions, skeleton
from rallebench.gui.assets import script, style
from rallebench.gui.events import Event
from rallebench.gui.frame import PLACES, Page
from rallebench.gui.patches import Patch
from rallebench.gui.streams import PatchStream
from rallebench.gui.wording import on_page
from rallebench.services.jobs import Job


def test_the_places_are_tabs_in_the_order_of_work(page: Page) -> None:
    entries = sorted(map(PLACES.entry, PLACES.names()), key=lambda entry: entry.traits["order"])
    assert {"build", "runs", "experiments", "data", "models"} <= {entry.name for entry in entries}
    html = skeleton(page)
    tabs = re.findall(r'data-place="([^"]+)" href="#/([^"]+)">([^<]+)<', html)
    assert tabs == [(e.name, page.first_view(e.name), e.traits["label"]) for e in entries]
    assert all(f'id="v-{view.replace("/", "-")}"' in html for view in page.views)


def test_an_unknown_address_opens_build_and_says_so(page: Page) -> None:
    patch = page.open("nowhere/at-all")
    assert patch.go == "#/build/one" and "no such address" in patch.say


def test_every_view_opens_in_a_new_window(page: Page) -> None:
    for view in page.views:
        if not view.startswith("build/one"):  # opening it runs the starter
            try:
                assert page.open(view, window=view), view
            except UsageError as error:  # a view of one object needs its name
                assert "choose" in str(error), view


def test_an_error_is_one_sentence_and_a_bug_is_too(
    page: Page, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(page: Page, event: Event) -> Patch:
        raise UsageError("k is 0; it must be at least 1.")

    def bug(page: Page, event: Event) -> Patch:
        raise KeyError("x")

    page.action("test.wrong", wrong)
    page.action("test.bug", bug)
    assert page.act({"action": "test.wrong"}).to_json() == {
        "problem": "k is 0; it must be at least 1."
    }
    assert "unexpected error (KeyError" in page.act({"action": "test.bug"}).problem
    assert "KeyError" in caplog.text
    assert "older than the program" in page.act({"action": "gone"}).problem


def test_windows_share_nothing(page: Page) -> None:
    page.session("a").put(1)
    assert page.session("b").get(int) is None and page.session("a").get(int) == 1


def test_the_window_that_was_idle_longest_is_forgotten(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame, "WINDOWS", 2)
    for window in ("a", "b"):
        page.session(window).put(1)
    page.session("a")
    page.session("c")
    assert page.session("a").get(int) == 1 and page.session("b").get(int) is None


def read_stream(page: Page, stream: str) -> Patch:
    """All patches of a stream in one."""
    whole = Patch()
    while not whole.over:
        whole |= page.more({"stream": stream})
    return whole


def test_a_stream_comes_in_pieces_and_ends(page: Page) -> None:
    def count(page: Page, event: Event) -> Iterator[Patch]:
        for number in range(3):
            yield Patch({"n": str(number), f"row-{number}": "done"})

    page.action("test.count", count)
    stream = page.act({"action": "test.count", "window": "w"}).stream
    rows = {f"row-{number}": "done" for number in range(3)}
    assert read_stream(page, stream) == Patch({"n": "2", **rows}, over=True)
    assert page.more({"stream": stream}) == Patch(over=True)


def test_a_failing_stream_keeps_what_it_gave_and_says_why(page: Page) -> None:
    def fail(page: Page, event: Event) -> Iterator[Patch]:
        yield Patch({"a": "1"})
        raise UsageError("The model is not loaded; load it.")

    page.action("test.fail", fail)
    whole = read_stream(page, page.act({"action": "test.fail", "window": "w"}).stream)
    assert whole.html["a"] == "1" and whole.problem == "The model is not loaded; load it."


def test_a_stopped_stream_ends_at_once_and_closes_its_generator(page: Page) -> None:
    closed, go = threading.Event(), threading.Event()

    def endless(page: Page, event: Event) -> Iterator[Patch]:
        try:
            while True:
                yield Patch({"a": "1"})
                go.wait(5)
        finally:
            closed.set()

    page.action("test.endless", endless)
    stream = page.act({"action": "test.endless", "window": "w"}).stream
    page.stop({"action": "test.endless", "window": "w"})
    assert read_stream(page, stream).over is True
    go.set()
    assert closed.wait(5)


def test_a_silent_stream_shows_what_it_waits_for_and_once_stopped_what_its_end_is(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rallebench.gui.streams.PATIENCE", 0.02)
    go = threading.Event()

    def silent(page: Page, event: Event) -> Iterator[Patch]:
        yield Patch({"a": "1"}, meanwhile=lambda end: Patch({"a": "stopped" if end else "waiting"}))
        go.wait(5)

    page.action("test.silent", silent)
    stream = page.act({"action": "test.silent", "window": "w"}).stream
    assert page.more({"stream": stream}) == Patch({"a": "1"})
    assert page.more({"stream": stream}) == Patch({"a": "waiting"})
    page.stop({"action": "test.silent", "window": "w"})
    assert page.more({"stream": stream}) == Patch({"a": "stopped"}, over=True)
    go.set()


def test_every_view_shows_the_chain_in_the_header_also_one_that_streams(page: Page) -> None:
    page.header = lambda event: Patch(chain="starter")
    page.view("test/streams", lambda page, event: iter([Patch({"a": "1"})]))
    assert page.open("test/streams") == Patch({"a": "1"}, chain="starter")


def test_a_second_call_of_an_action_ends_the_first_in_that_window_alone(page: Page) -> None:
    go = threading.Event()

    def wait(page: Page, event: Event) -> Iterator[Patch]:
        yield Patch({"a": "1"})
        go.wait(5)
        yield Patch({"a": "2"})

    page.action("test.wait", wait)
    first, other = (page.act({"action": "test.wait", "window": w}).stream for w in "ab")
    page.act({"action": "test.wait", "window": "a"})
    assert read_stream(page, first).over
    go.set()
    assert read_stream(page, other).html["a"] == "2"


def test_an_older_message_that_arrives_late_ends_no_newer_stream(page: Page) -> None:
    page.action("test.count", lambda page, event: (Patch({"a": n}) for n in event.text("n")))
    message = {"action": "test.count", "window": "w"}
    newer, older = (page.act({**message, "number": n, "data": {"n": str(n)}}) for n in (8, 7))
    assert read_stream(page, newer.stream) == Patch({"a": "8"}, over=True)
    assert older == Patch()


def test_what_comes_later_is_applied_later() -> None:
    patches = (
        Patch({part: text}) for part, text in (("part", "old"), ("view", "new"), ("part", "newer"))
    )
    stream = PatchStream(patches)
    stream.start()
    deadline = time.monotonic() + 5
    while not stream._ended and time.monotonic() < deadline:
        time.sleep(0.005)
    assert list(stream.take().html) == ["view", "part"]


def test_the_fields_of_an_event_are_read_in_their_kind() -> None:
    event = Event("x", {"a": " 3 ", "b": ["1", "", "2"], "c": "on", "d": "−2.5", "e": "many"})
    assert (event.text("a"), event.many("b"), event.flag("c")) == ("3", ["1", "2"], True)
    assert (event.whole("a"), event.number("d"), event.number("missing")) == (3, -2.5, None)
    with pytest.raises(UsageError, match="Depth is 'many'; it must be a number, or empty"):
        event.number("e", "Depth")
    with pytest.raises(UsageError, match="must be a whole number"):
        event.whole("d")


def test_the_page_is_small_and_whole(page: Page) -> None:
    assert len(script(page)) + len(style()) + len(skeleton(page)) < 150_000
    names = {function.__name__ for function in server_functions(page)}
    assert names == {"act", "more", "stop", "list_rows", "jobs"}
    assert "http://" not in style().replace("http://www.w3.org/2000/svg", "")


def test_silent_streams_leave_the_pages_threads_free(page: Page) -> None:
    silence = threading.Event()

    def silent(page: Page, event: Event) -> Iterator[Patch]:
        silence.wait(30)
        yield Patch({"x": "said"})

    page.action("test.silent", silent)
    functions = {function.__name__: function for function in server_functions(page)}
    windows = [f"w{number}" for number in range(60)]
    streams = [page.act({"action": "test.silent", "window": name}).stream for name in windows]
    ended: list[str] = []

    async def call(name: str, message: dict[str, str]) -> dict[str, Any]:
        function = functions[name]  # as Gradio calls it
        whole = inspect.iscoroutinefunction(function)
        answer: dict[str, Any] = await (
            function(message) if whole else run_in_threadpool(function, message)
        )
        ended.append(name)
        return answer

    async def visit() -> list[dict[str, Any]]:
        waiting = [asyncio.ensure_future(call("more", {"stream": stream})) for stream in streams]
        await asyncio.sleep(0)
        await call("jobs", {})
        silence.set()
        return await asyncio.gather(*waiting)

    answers = run_apart(visit)
    assert ended[0] == "jobs", "a question about the jobs does not wait for sixty chats"
    assert [answer["#x"] for answer in answers] == ["said"] * 60


def test_an_installed_page_has_all_its_scripts_and_style_sheets() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    tools = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]
    package = PROJECT / "rallebench"
    patterns = tools["setuptools"]["package-data"]["rallebench"]
    packed = {path for pattern in patterns for path in package.glob(pattern)}
    assert {p for p in (package / "gui").rglob("*.*s") if p.suffix in (".js", ".css")} <= packed


SUFFIXES = {
    *("bib", "css", "csv", "db", "html", "ini", "js", "json", "jsonl", "log", "md", "pdf", "png"),
    *("py", "svg", "tex", "toml", "tsv", "txt", "xml", "yaml", "yml", "zip"),
}
"""Suffixes of files, which a place may write as a constant, too: ``notes.md``."""


def test_every_button_of_the_page_has_a_handler(page: Page) -> None:
    sources = "".join(p.read_text("utf-8") for p in (PROJECT / "rallebench" / "gui").rglob("*.py"))
    parts = "|".join({name.partition(".")[0] for name in page._actions})
    named = set(re.findall(rf"[\"']((?:{parts})\.[a-z_]+)[\"']", sources))
    files = {name for name in named if name.rpartition(".")[2] in SUFFIXES}
    assert len(named) > 100 and named - files <= set(page._actions)
    assert not files & set(page._actions), "an action has not the name of a file"


def test_jobs_are_listed_with_their_end(page: Page) -> None:
    jobs = server_functions(page)[-1]
    nothing = {"program": page.program, "any": False, "active": 0, "chip": "Jobs", "list": ""}
    assert jobs({}) == {**nothing, "versions": {"loaded": "", "interrupted": ""}}
    list(page.workbench.models.load("titan", "language model"))
    state = jobs({})
    assert state["any"] and "Load titan" in state["list"] and state["versions"]


def test_a_job_that_failed_is_marked_by_word_and_colour(page: Page) -> None:
    def failing(job: Job) -> Operation[None]:
        yield Warned("", "soon")
        raise UsageError("The file <x> is empty.")

    page.workbench.jobs.submit("import", "moons", "", failing).wait(5)
    chip = server_functions(page)[-1]({})
    assert chip["chip"] == '<span class="bad">Last job failed</span>'
    assert re.search(r'class="state bad"[^>]*>failed</span><small class="bad">', chip["list"])
    assert "The file &lt;x&gt; is empty." in chip["list"]


# wording


@pytest.mark.parametrize(
    ("hint", "mend"),
    [
        (Hint("set", "data=PATH"), "fill in the field Data"),
        (Hint("set", "answerable=false"), "untick Answerable"),
        (Hint("set", "kinds=flat data=FILE"), "set Kinds to flat and fill in the field Data"),
        (Hint("choose", "llm"), "choose one"),
        (Hint("choose", "llm", "questions=0"), "choose one, or do without: set Questions to 0"),
        (Hint("leave-out", "page-map"), "leave the field page map empty"),
    ],
)
def test_a_hint_is_worded_with_fields(hint: Hint, mend: str) -> None:
    error = UsageError("Something is missing.", hint=hint)
    assert on_page(error) == f"Something is missing; {mend}."


def test_a_sentence_without_a_hint_is_left_alone() -> None:
    assert on_page("An answer with -- and more.") == "An answer with -- and more."
