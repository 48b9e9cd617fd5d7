"""The page in a real browser: how soon it answers, how heavy it is, and how fast places, questions and long runs open.

A headless Chromium opens the page over a workspace with a run of many questions. The bare figure is a Gradio page of one
line, opened by the same browser in the same rounds.
"""

from __future__ import annotations

import compileall
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _keystrokes
import _report
import psutil
from _report import Fact, Measure, Report
from comparing import make_run
from playwright.sync_api import TimeoutError as NeverTrue
from playwright.sync_api import sync_playwright
from start_up import BARE_PAGE, FirstAnswer, free_port, serving

PLACES = ("runs/list", "experiments/list", "data/list", "models/list", "build/one")
LONG_RUN = "#/runs/run?id=long"
ROWS = "document.querySelector('#list-run-questions .r em')"
LISTED = f"{ROWS} && rb.idle()"
IDLE_SECONDS = 20.0
ACTIONS = 500
NO_AUTOFILL = "--disable-features=AutofillServerCommunication"
"""Chromium asks a server of its own about every form, without a network again and again: no work of the page."""
READY, BARE_READY = ".verdict", ".prose p"

CHAIN = {
    "format": "rallebench-chain/1",
    "name": "starter",
    "actions": [
        {"kind": "retrieve", "template": "{question}", "target": "starter-bm25", "k": 5},
        {"kind": "generate", "template": "{response[0]}", "target": "echo"},
    ],
}
"""The chain that the page opens with, so that no model's time is measured."""


def workspace_with(folder: Path, questions: int) -> Path:
    """A workspace with the chain, a scripted model, and a run of so many questions."""
    (folder / "chains").mkdir(parents=True)
    (folder / "chains" / "starter.json").write_text(json.dumps(CHAIN))
    entry = {"echo": {"backend": "scripted", "settings": {"echo": True}}}
    (folder / "llms.json").write_text(json.dumps(entry))
    make_run(folder / "runs", "long", questions, 0.5, 1)
    return folder


def opened(browser: Any, url: str, ready: str) -> tuple[Any, float]:
    """A page in a context of its own, and the milliseconds until ``ready`` is there."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    started = time.perf_counter()
    page.goto(url)
    page.wait_for_selector(ready, timeout=60_000)
    return page, 1000 * (time.perf_counter() - started)


def until(page: Any, action: Callable[[], Any], condition: str) -> float:
    """Milliseconds from an action until a condition of the page holds."""
    started = time.perf_counter()
    action()
    try:
        page.wait_for_function(condition, timeout=60_000, polling=5)
    except NeverTrue as error:
        text = page.evaluate("document.body.innerText")
        raise SystemExit(f"never on {page.url}: {condition}\n{text}") from error
    return 1000 * (time.perf_counter() - started)


def go(page: Any, address: str, condition: str) -> float:
    """Milliseconds until an address is open."""
    return until(page, lambda: page.evaluate("a => { location.hash = a }", address), condition)


def places(page: Any) -> list[float]:
    """Milliseconds of opening each place."""
    took = []
    for view in PLACES:
        condition = (
            f"document.querySelector('#v-{view.replace('/', '-')}:not([hidden]) *') && rb.idle()"
        )
        took.append(go(page, f"#/{view}", condition))
    return took


def clicks(page: Any, count: int) -> list[float]:
    """Milliseconds from a question's row to its heading."""
    page.wait_for_selector("#list-build-questions .r em")
    took = []
    for index in range(2, 2 + count):
        row = page.locator(f"#list-build-questions-{index % 6}")
        words = row.locator("em").inner_text()[:40]
        heading = f"document.querySelector('.asked-question h1').textContent.startsWith({json.dumps(words)})"
        took.append(until(page, row.click, heading))
    return took


def click_on_row(page: Any, number: int) -> float:
    """Milliseconds from a row of the long run to its question, while the run's steps are read for the first time."""
    row = page.locator(f"#list-run-questions-{number}")
    words = row.locator("em").inner_text()[:40]
    heading = f"document.querySelector('#run-question h2.question').textContent.startsWith({json.dumps(words)})"
    return until(page, row.click, heading)


def heap(page: Any) -> float:
    """Bytes of JavaScript that are in use."""
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    return float(client.send("Runtime.getHeapUsage")["usedSize"])


def idle_cpu(seconds: float) -> float:
    """The share of a core that all processes of this program's browser take, measured after as many seconds of rest."""
    time.sleep(seconds)  # garbage of the last actions is collected
    children = psutil.Process().children(recursive=True)
    processes = [p for p in children if "chrom" in p.name()]
    before = sum(sum(p.cpu_times()[:2]) for p in processes)
    time.sleep(seconds)
    after = sum(sum(p.cpu_times()[:2]) for p in processes if p.is_running())
    return (after - before) / seconds


def open_by_turns(browser: Any, url: str, bare_url: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds until the page and the bare page are open, each time in a fresh context."""
    figures: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(rounds):
        for name, address, ready in (("ours", url, READY), ("bare", bare_url, BARE_READY)):
            page, took = opened(browser, address, ready)
            figures[name].append(took)
            page.context.close()
    return figures


def walk(page: Any, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of clicks on questions, of the places, and of a long run that is opened and filtered."""
    figures: dict[str, list[float]] = {"click": [], "place": [], "run": [], "filter": []}
    filtered = "location.hash.includes('only=right') && rb.idle()"
    build = "document.querySelector('#v-build-one:not([hidden])') && rb.idle()"
    for _ in range(rounds):
        go(page, "#/build/one", build)
        figures["click"] += clicks(page, 5)
        figures["place"] += places(page)
        figures["run"].append(go(page, LONG_RUN, LISTED))
        chip = page.locator("#run-list .chips button", has_text="Right")
        figures["filter"].append(until(page, chip.click, filtered))
    return figures


def act_at_random(page: Any, actions: int) -> None:
    """Keys and places in a random order that is the same in every run; ends in Build."""
    drawn = random.Random(_report.SEED)
    choices = (
        lambda: page.keyboard.press("j"),
        lambda: page.keyboard.press("k"),
        lambda: go(page, f"#/{drawn.choice(PLACES)}", "rb.idle()"),
    )
    for _ in range(actions):
        drawn.choice(choices)()
    go(page, "#/build/one", "rb.idle()")


def measure_browser(
    browser: Any, url: str, bare_url: str, rounds: int, actions: int, rest: float
) -> dict[str, list[float]]:
    """Open both pages by turns, then measure one page."""
    figures = open_by_turns(browser, url, bare_url, rounds)
    page, _ = opened(browser, bare_url, BARE_READY)
    figures["idle bare"] = [idle_cpu(rest)]
    page.context.close()
    page, _ = opened(browser, url, READY)
    fresh = heap(page)
    figures["first run"] = [go(page, LONG_RUN, ROWS)]
    figures["click meanwhile"] = [click_on_row(page, number) for number in (3, 4, 5)]
    page.wait_for_function(LISTED, timeout=60_000)
    figures |= walk(page, rounds)
    act_at_random(page, actions)
    figures["memory"] = [heap(page) / fresh]
    figures["idle"] = [idle_cpu(rest)]
    return figures


def measures_of(
    figures: Mapping[str, list[float]], first: FirstAnswer, bare_first: FirstAnswer
) -> list[Measure]:
    """The first answers and the figures of the browser, with their targets."""
    bare = "a Gradio page of one line"
    return [
        Measure("opened, a question executed", "ms", figures["ours"], figures["bare"], bare),
        Measure("its first answer", "s", [first.seconds], [bare_first.seconds], bare),
        Measure("size of the page", "MB", [first.size / 1e6], most=0.4),
        Measure("another place", "ms", figures["place"], most=300),
        Measure("a click on a question", "ms", figures["click"], most=200),
        Measure("a long run opens for the first time", "ms", figures["first run"], most=1000),
        Measure(
            "a click meanwhile, while its steps are read",
            "ms",
            figures["click meanwhile"],
            most=200,
        ),
        Measure("a long run opens", "ms", figures["run"], most=1000),
        Measure("a long run is filtered", "ms", figures["filter"], most=200),
        Measure(
            "idle browser, of a core", "", figures["idle"], figures["idle bare"], bare, most=0.01
        ),
        Measure("memory after the actions, of a fresh page", "", figures["memory"], most=1.2),
    ]


def measure(rounds: int, questions: int, quick: bool) -> Report:
    """Serve the page and the bare page, and open both in one browser."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        raise SystemExit("No Chromium is installed: apt-get install chromium")
    compileall.compile_dir(_report.PROJECT / "rallebench", quiet=1)  # as pip compiled Gradio
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", NO_AUTOFILL]
    actions, rest = (20, 2.0) if quick else (ACTIONS, IDLE_SECONDS)
    with (
        tempfile.TemporaryDirectory(prefix="rallebench-bench-") as folder,
        sync_playwright() as play,
    ):
        root = Path(folder)
        space = workspace_with(root / "w", questions)
        port, bare_port = free_port(), free_port()
        app = str(_report.PROJECT / "app.py")
        ours = [sys.executable, app, "--no-browser", "--port", str(port), "--workspace", str(space)]
        bare = [sys.executable, "-c", BARE_PAGE, str(bare_port)]
        with (
            serving(ours, root, root / "ours.log", port) as first,
            serving(bare, root, root / "bare.log", bare_port) as bare_first,
        ):
            browser = play.chromium.launch(executable_path=executable, args=flags)
            urls = [f"http://127.0.0.1:{number}/" for number in (port, bare_port)]
            figures = measure_browser(browser, urls[0], urls[1], rounds, actions, rest)
            browser.close()
            browser = play.chromium.launch(
                executable_path=executable, args=[*flags, *_keystrokes.FAST_FRAMES]
            )
            typed = _keystrokes.type_by_turns(browser, urls[0], rounds, 20 if quick else 60)
            browser.close()
    return Report(
        "page",
        {"questions of the long run": questions, "actions": actions},
        [*measures_of(figures, first, bare_first), *_keystrokes.keystroke_measures(typed)],
        [
            Fact("places opened", len(figures["place"]), rounds * len(PLACES)),
            Fact("keys typed", len(typed["typing"]), rounds * (20 if quick else 60)),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--questions", type=int, default=20_000, metavar="N", help="default: 20000")
    arguments = flags.parse_args()
    rounds, questions = (1, 200) if arguments.quick else (arguments.rounds, arguments.questions)
    return measure(rounds, questions, arguments.quick).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
