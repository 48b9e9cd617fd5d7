"""Writes tests/golden/workspace/space and reports/: what this version makes of tests/golden/workspace/inputs.

    python tools/golden_workspace.py

Run it once, with the version whose files later versions must still read; not again after a change of the product.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests" / "safety")]

from scenario import BASELINES, INPUTS, PREPARE, REPORTS, STEPS, WORKSPACE, call, inside, normal  # noqa: E402

STORED = (
    "chain",
    "sweep",
    "rgb-noise",
    "rgb-rejection",
    "crud-qa1",
    "kilt",
    "barag-modes",
    "reval",
    "build barag",
    "agent react",
    "tradeoff",
)
"""Steps whose runs and reports are stored; ``barag-modes`` and ``rgb-rejection`` are judged."""
STOPPED = [
    "run",
    "--chain",
    "slow",
    "--dataset",
    "tiny-qa",
    "--name",
    "stopped",
    "--batch-size",
    "1",
    "--no-mlflow",
]
WHOLE = ["run", "--chain", "slow", "--dataset", "tiny-qa", "--name", "whole", "--no-mlflow"]
"""Fills the reply cache, so that the rest of ``stopped`` needs no model."""
IMPORTED = [
    "import",
    "predictions.jsonl",
    "--kind",
    "predictions",
    "--name",
    "imported",
    "--dataset",
    "tiny-qa",
]


def stop_halfway() -> None:
    """Leave the run ``stopped`` with some of its eight questions answered."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "rallebench", *STOPPED, "--json"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    answers = Path("runs/stopped/episodes.jsonl")
    while not (answers.exists() and answers.read_text("utf-8").count("\n") >= 2):
        time.sleep(0.01)
    (answers.parent / "stop").touch()
    process.wait(60)


def make() -> None:
    for folder in (WORKSPACE, REPORTS):
        shutil.rmtree(folder, ignore_errors=True)
    REPORTS.mkdir()
    shutil.copytree(INPUTS, WORKSPACE)
    with inside(WORKSPACE):
        for arguments in (*PREPARE, IMPORTED):
            code, _, err = call(*arguments)
            assert code == 0, err
        stop_halfway()
        for label, arguments in {
            "whole": WHOLE,
            **{label: STEPS[label] for label in STORED},
            "baselines": BASELINES,
        }.items():
            code, report, err = call(*arguments)
            assert code == 0, err
            text = json.dumps(normal(report), ensure_ascii=False, indent=1, sort_keys=True)
            (REPORTS / f"{label.replace(' ', '-')}.json").write_text(text + "\n", encoding="utf-8")
    trim()


def trim() -> None:
    """Leave out what is not a contract (folders of experiments, locks, caches made again) and what the inputs hold."""
    for name in ("suites", "making", "tradeoffs", "cache/passages", "crud"):
        shutil.rmtree(WORKSPACE / name, ignore_errors=True)
    for path in (
        *WORKSPACE.rglob("*.lock"),
        *WORKSPACE.glob("cache/starter-*"),
        *WORKSPACE.glob("mlflow.db*"),
        WORKSPACE / "datasets/own-barag.jsonl",
    ):
        path.unlink()
    for path in (*WORKSPACE.rglob("*.json"), *WORKSPACE.rglob("*.jsonl")):
        text = path.read_text("utf-8")
        if f"{WORKSPACE}/" in text:
            path.write_text(text.replace(f"{WORKSPACE}/", ""), encoding="utf-8")
    for path in INPUTS.rglob("*"):
        copy = WORKSPACE / path.relative_to(INPUTS)
        if path.is_file() and copy.exists() and copy.read_bytes() == path.read_bytes():
            copy.unlink()
    for folder in sorted((path for path in WORKSPACE.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


if __name__ == "__main__":
    make()
