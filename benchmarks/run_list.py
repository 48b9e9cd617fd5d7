"""The list of runs in a workspace of 10,000: opened by a new process and again, filtered, sorted, grouped and scrolled.

The runs are invented: a description, a report with twelve metrics, a state, and twenty chains. The bare figure is one scan of
their folders.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import _report
from _report import Fact, Measure, Report
from mlflow_logging import CHAIN

from rallebench.chains.saved import chain_to_json
from rallebench.core.report import NO_BOUNDS, ColumnResult, Estimate, RunReport
from rallebench.core.runs import RunSpec
from rallebench.core.scoring import ScoreColumn
from rallebench.engine.run_files import RunDescription, RunState
from rallebench.engine.store import REPORT, RUN, STATE
from rallebench.gui.frame import Page
from rallebench.gui.patches import Patch
from rallebench.services.workbench import Workbench

METRICS = ("em", "f1", "Rprec", "recall@1", "recall@5", "recall@10", "rougel", "accuracy")
DATASETS, CHAINS = 7, 20
FILTER = "em<50 chain:chain-3 -tag:night"


def add_run(runs: Path, number: int, rng: random.Random) -> None:
    """Write the files that the list reads of an invented run."""
    name = f"run-{number:05d}"
    chain = replace(CHAIN, name=f"chain-{number % CHAINS}")
    spec = RunSpec(f"set-{number % DATASETS}", "chain", {"chain": chain_to_json(chain)})
    created = f"2026-{1 + number % 11:02d}-{1 + number % 28:02d}T12:00:00"
    described = RunDescription(name, spec, "0" * 12, METRICS, 20, created)
    columns = tuple(
        ColumnResult(ScoreColumn(metric, "", NO_BOUNDS), Estimate(rng.random(), 0.1, 0.9, 222))
        for metric in METRICS
    )
    report = RunReport(run=name, n=222, n_done=222, complete=True, seconds=9.0, columns=columns)
    folder = runs / name
    folder.mkdir(parents=True)
    state = RunState("done", 222, 222, updated=1.0, pid=1)
    for file, value in ((RUN, described), (REPORT, report), (STATE, state)):
        (folder / file).write_text(json.dumps(value.to_json()))


def rows(page: Page, patch: Patch) -> int:
    """Ask for the first rows of the list in a patch; return their number."""
    html = next(str(part) for part in patch.html.values() if 'data-list="runs"' in part)
    key = json.loads(unescape(html.partition('data-key="')[2].partition('"')[0]))
    sent = {"list": "runs", "key": key, "start": 0, "count": 60, "window": "w"}
    return len(page.list_rows(sent).rows)  # type: ignore[union-attr]


def measure_seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def open_list(page: Page) -> Patch:
    patch = page.open("runs/list")
    rows(page, patch)
    return patch


FIRST = """
import sys, time
from pathlib import Path
from run_list import Page, Workbench, open_list, measure_seconds
page = Page(Workbench(Path(sys.argv[1])))
print(measure_seconds(lambda: open_list(page)))
"""


def first_answer(workspace: Path) -> float:
    """Seconds until a new process has opened the list."""
    command = [sys.executable, "-c", FIRST, str(workspace)]
    run = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    return float(run.stdout)


def scan(runs: Path) -> None:
    with os.scandir(runs) as entries:
        for entry in entries:
            entry.stat()


def measure(rounds: int, count: int) -> Report:
    """Invent the runs, and open their list."""
    rng = random.Random(_report.SEED)
    with tempfile.TemporaryDirectory(prefix="rallebench-bench-") as folder:
        workspace = Path(folder)
        for number in range(count):
            add_run(workspace / "runs", number, rng)
        read = first_answer(workspace)
        first = [first_answer(workspace) for _ in range(rounds)]
        workbench = Workbench(workspace)
        page = Page(workbench)
        drawn_rows = rows(page, open_list(page))
        figures: dict[str, list[float]] = {}
        actions: dict[str, Callable[[], object]] = {
            "opened again": lambda: open_list(page),
            "filtered": lambda: page.call("runs-list.filter", {"where": FILTER}),
            "sorted": lambda: page.call("runs-list.sort", {"column": "em"}),
            "grouped": lambda: page.call("runs-list.group", {"group": "chain"}),
            "a scan": lambda: scan(workspace / "runs"),
        }
        for name, action in actions.items():
            figures[name] = [measure_seconds(action) for _ in range(rounds)]
        workbench.close()
    bare, about = figures.pop("a scan"), "one scan of the folders"
    measures = [
        Measure("read for the first time ever", "s", [read]),
        Measure("opened by a new process", "s", first, bare, about),
    ]
    measures += [Measure(f"{k}", "s", v, bare, about, most=0.3) for k, v in figures.items()]
    return Report("run_list", {"runs": count}, measures, [Fact("rows", drawn_rows, min(60, count))])


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument("--runs", type=int, default=10_000, metavar="N", help="default: 10000")
    arguments = flags.parse_args()
    rounds, count = (1, 80) if arguments.quick else (arguments.rounds, arguments.runs)
    return measure(rounds, count).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
