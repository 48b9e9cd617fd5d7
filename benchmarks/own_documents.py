"""A folder of one's own: from dropping 70 files to ten answered questions with each of three new indexes.

The files hold pages of the starter's corpus, as Markdown, text and HTML; the questions are the starter's on these pages, in a
CSV file with column names of its own. The workspace, the encoder and the reader are the embedded default. The page is
opened, and its heavy imports have ended, before the clock starts.
"""

from __future__ import annotations

import csv
import html
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report
from playwright.sync_api import sync_playwright
from start_up import free_port, serving

FILES, QUESTIONS, TRIED = 70, 15, 10
STARTER = _report.PROJECT / "rallebench" / "starter"
QUESTION, ANSWER = "what is asked", "expected"
PATIENCE = 300_000
READY = ".verdict"
SIGN = "document.querySelector('#data-import').innerText !== window.before"
CHUNKS = "/Counted in \\d+ documents/.test(document.querySelector('#data-import').innerText)"
COLUMNS = "document.querySelector('[name=asked_column_question]')"
FIRST_QUESTIONS = "document.querySelector('#import-asked-firsts .fact')"
ANSWERED = """document.querySelector('#v-build-few:not([hidden])')?.innerText.includes('All answered')
 && document.querySelectorAll('#few-grid td').length"""


def write_files(folder: Path, files: int) -> set[str]:
    """Write as many pages as files of three kinds, in two folders; return their titles."""
    pages: dict[str, list[str]] = {}
    with (STARTER / "corpus.tsv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            pages.setdefault(row["title"], []).append(row["text"])
    chosen = list(pages)[:files]
    for number, title in enumerate(chosen):
        paragraphs, name = pages[title], f"{number:02d}"
        path = folder / ("first" if number % 2 else "second")
        path.mkdir(parents=True, exist_ok=True)
        if number % 3 == 0:
            (path / f"{name}.md").write_text(f"# {title}\n\n" + "\n\n".join(paragraphs))
        elif number % 3 == 1:
            (path / f"{name}.txt").write_text(f"{title}\n\n" + "\n\n".join(paragraphs))
        else:
            body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
            page = f"<html><title>{html.escape(title)}</title><body>{body}</body></html>"
            (path / f"{name}.html").write_text(page)
    return set(chosen)


def write_questions(path: Path, titles: set[str], count: int) -> int:
    """Write questions on pages with these titles; return their number."""
    rows = []
    for line in (STARTER / "questions" / "starter-qa.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        gold = record["output"][0]
        if {page.get("title") for page in gold.get("provenance", ())} & titles:
            rows.append((record["input"], gold["answer"]))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((QUESTION, ANSWER))
        writer.writerows(rows[:count])
    return len(rows[:count])


def seconds_until(page: Any, since: float, condition: str) -> float:
    """Seconds from a moment until a condition of the page holds."""
    page.wait_for_function(condition, timeout=PATIENCE, polling=20)
    return time.perf_counter() - since


def measure_once(page: Any, folder: Path, table: Path, encoder: str) -> dict[str, float]:
    """Drop the folder and its questions, build and try; return the seconds of each part."""
    page.evaluate("location.hash = '#/data/list'")
    page.wait_for_selector("#data-import input[webkitdirectory]", state="attached")
    page.evaluate("window.before = document.querySelector('#data-import').innerText")
    started = time.perf_counter()
    page.set_input_files("#data-import input[webkitdirectory]", str(folder))
    took = {"sign": seconds_until(page, started, SIGN)}
    took["preview"] = seconds_until(page, started, CHUNKS)
    page.set_input_files("#import-asked input[type=file]", str(table))
    page.wait_for_function(COLUMNS, timeout=PATIENCE, polling=20)
    for role, column in (("question", QUESTION), ("answer", ANSWER)):
        page.select_option(f"[name=asked_column_{role}]", column)
        page.wait_for_function("rb.idle()", timeout=PATIENCE, polling=20)
    page.wait_for_function(FIRST_QUESTIONS, timeout=PATIENCE, polling=20)
    page.select_option("#data-import [name=encoder]", encoder)
    page.get_by_role("button", name="Build 3 indexes").click()
    took["tried"] = seconds_until(page, started, ANSWERED)
    took["cells"] = page.evaluate("document.querySelectorAll('#few-grid td').length")
    return took


def measure(files: int, encoder: str) -> Report:
    """Serve a fresh embedded workspace and import into it."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        raise SystemExit("No Chromium is installed: apt-get install chromium")
    with (
        tempfile.TemporaryDirectory(prefix="rallebench-bench-") as folder,
        sync_playwright() as play,
    ):
        root, port = Path(folder), free_port()
        titles = write_files(root / "mine", files)
        questions = write_questions(root / "questions.csv", titles, QUESTIONS)
        app = str(_report.PROJECT / "app.py")
        ours = [sys.executable, app, "--no-browser", "--port", str(port)]
        with serving([*ours, "--workspace", str(root / "w")], root, root / "ours.log", port):
            flags = ["--headless=new", "--no-sandbox", "--disable-gpu"]
            browser = play.chromium.launch(executable_path=executable, args=flags)
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_selector(READY, timeout=PATIENCE)
            took = measure_once(page, root / "mine", root / "questions.csv", encoder)
            browser.close()
    name = f"{files} files to the first try, encoder {encoder}"
    return Report(
        "own_documents",
        {"files": files, "questions": questions, "encoder": encoder},
        [
            Measure("sign of life", "s", [took["sign"]], most=0.5),
            Measure("chunks of all files counted", "s", [took["preview"]]),
            Measure(name, "s", [took["tried"]], most=25.0),
        ],
        [Fact("cells of the grid", int(took["cells"]), 3 * min(TRIED, questions))],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument("--encoder", default="minilm", help="default: minilm")
    arguments = flags.parse_args()
    files, encoder = (12, "hashing") if arguments.quick else (FILES, arguments.encoder)
    return measure(files, encoder).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
