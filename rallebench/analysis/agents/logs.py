"""Export a run as an R-Eval log (Tu et al. 2024), and import such a log as a run.

Each line is an object with ``question, answer, prediction, correct, reward, halted, error, prompt, scratchpad`` and,
for programs, ``exe_time`` (seconds). The path names the system and the dataset:
``{agent}_{model}_{maxlen}/{dataset}_log.jsonl``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rallebench.analysis.agents import System
from rallebench.analysis.agents.reading import summarize
from rallebench.analysis.ranking import ended_pairs
from rallebench.core.errors import BadFileError, UsageError
from rallebench.core.files import sha256_file
from rallebench.core.runs import DatasetRef, RunRequest, imported_flow
from rallebench.core.sources import Source
from rallebench.core.types import Episode, Example, Note, Outcome, Question, Reply, Step, digest
from rallebench.datasets.kilt import read_gold
from rallebench.engine.execute import write_run
from rallebench.engine.experiment_store import check_free
from rallebench.engine.store import RunFolder
from rallebench.metrics.recorded import IMPORTED
from rallebench.workspace.paths import WorkspaceFolder

FORM = "r-eval"
NEEDED = ("question", "answer", "prediction", "reward")
METRICS = ("f1_yes_no", "em", "position_match", "f1")
_ENDING = "_log"
_FOLDER = re.compile(r"(?P<agent>[^_]+)(?:_(?:wiki|aminer)_run_Agent)?_(?P<model>.+?)(?:_\d+)?")
_STEP = re.compile(r"(?:^|\n)Action \d+:")
_STEPS = 10
"""R-Eval's step limit."""
NOT_FOUND = "Could not find that p"
"""Start of failed observations in R-Eval's environments (page, person, publication)."""


# writing


def lines(run: RunFolder) -> Iterator[str]:
    """Yield a run as the JSON lines of R-Eval's log, in the run's order. A failed question has ``error`` and reward
    0; only the first gold answer is written and scored.
    """
    for example, episode in ended_pairs(run):
        row = summarize(example, episode, original=True)
        value: dict[str, Any] = {
            "question": row.question,
            "answer": row.golds[0] if row.golds else "",
            "prediction": row.answer,
            "correct": bool(row.correct),
            "reward": row.reward or 0.0,
            "halted": row.halted,
            "error": row.failed,
            "prompt": row.prompt,
            "scratchpad": row.scratchpad,
        }
        if row.seconds is not None:
            value["exe_time"] = round(row.seconds, 6)
        yield json.dumps(value, ensure_ascii=False) + "\n"


# reading


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Read and check the rows of a log. Rows with the same question and answer count once; the last one wins.

    ``repeated``: the number of earlier rows with the same question and answer. Raises BadFileError with the line.
    """
    if not file.is_file():
        raise UsageError(f"There is no file {file}; give a log of R-Eval in JSON lines.")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for line, row in Source(file).objects():
        value = _check_row(row, f"{file}, line {line}")
        key = (value["question"], value["answer"])
        value["repeated"] = rows[key]["repeated"] + 1 if key in rows else 0
        rows[key] = value
    if not rows:
        raise BadFileError(f"{file} holds no row of R-Eval's logs ({', '.join(NEEDED)} …).")
    return list(rows.values())


def _check_row(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    missing = [name for name in NEEDED if name not in row]
    if missing:
        raise BadFileError(
            f"{where} has no {missing[0]!r}; a row of R-Eval's logs has {', '.join(NEEDED)}."
        )
    value: dict[str, Any] = {"exe_time": None}
    for name in ("question", "answer", "prediction", "prompt", "scratchpad"):
        text = row.get(name, "")
        text = ";".join(map(str, text)) if name == "answer" and isinstance(text, list) else text
        if not isinstance(text, (str, int, float, type(None))):
            raise BadFileError(f"{where}: {name} must be text.")
        value[name] = "" if text is None else str(text)
    for name in ("reward", "exe_time"):
        number = row.get(name)
        if name == "exe_time" and number is None:
            continue
        if not isinstance(number, (int, float)) or not math.isfinite(number) or number < 0:
            raise BadFileError(f"{where}: {name} is {number!r}; it must be a number of at least 0.")
        value[name] = float(number)
    for name in ("correct", "halted", "error"):
        flag = row.get(name, False)
        if not isinstance(flag, (bool, int, float, type(None))):
            raise BadFileError(f"{where}: {name} is {flag!r}; it must be true or false.")
        value[name] = bool(flag)
    return value


def recognises(file: Path) -> bool:
    """Return whether the first row of a JSON-lines file is a row of R-Eval's log."""
    try:
        _, row = next(iter(Source(file).objects()), (0, {}))
    except (BadFileError, OSError):
        return False
    return {*NEEDED, "scratchpad"} <= row.keys()


def named_by(file: Path) -> tuple[System, str]:
    """Return the (system, dataset) that a log's folder and file name state.

    >>> named_by(Path("result/ReAct_gpt-4-1106_16000/hotpotqa_log.jsonl"))
    (System(workflow='react', llm='gpt-4-1106'), 'hotpotqa')
    """
    stem = file.name.split(".json")[0]
    folder = file.resolve().parent if file.is_absolute() else file.parent
    match = _FOLDER.fullmatch(folder.name) if stem.endswith(_ENDING) else None
    workflow, llm = (match["agent"].lower(), match["model"]) if match else ("", "")
    system = System("function-calling" if workflow == "fc" else workflow, llm)
    return system, stem.removesuffix(_ENDING)


def import_log(
    workspace: WorkspaceFolder,
    file: Path,
    name: str,
    *,
    workflow: str = "",
    llm: str = "",
    dataset: str = "",
) -> RunFolder:
    """Import a log as the run ``name`` and score it again; the log's own scores are stored for ``compat=original``.

    ``workflow``, ``llm``, ``dataset`` override the names in the path. Raises UsageError and BadFileError before
    anything is written.
    """
    check_free(workspace.path, "run", name)
    rows = read_rows(file)
    system, named = named_by(file.resolve())
    system = System(workflow or system.workflow or name, llm or system.llm)
    settings = {
        "file": file.name,
        "sha256": sha256_file(file),
        "system": {"workflow": system.workflow, "llm": system.llm},
    }
    examples = tuple(log_example(row) for row in rows)
    request = RunRequest(
        imported_flow(IMPORTED, settings),
        DatasetRef(dataset or named),
        examples,
        METRICS,
        name=name,
    )
    return write_run(workspace.runs, request, [log_episode(row, system.workflow) for row in rows])


def log_example(row: Mapping[str, Any]) -> Example:
    """Return the question of a row of ``read_rows``, with the row's own answer as gold."""
    keys = ("reward", "correct", "halted", "error", "prompt", "exe_time")
    record = {
        "id": _qid(row),
        "input": row["question"],
        "output": [{"answer": row["answer"]}],
        "logged": {key: row[key] for key in keys},
    }
    return Example(Question(record["id"], record["input"]), read_gold(record, "the log"), record)


def _qid(row: Mapping[str, Any]) -> str:
    return digest([row["question"], row["answer"]])[:16]


def log_episode(row: Mapping[str, Any], workflow: str = "") -> Episode:
    """Return the episode of a row of ``read_rows``: the scratchpad is its only step, the prediction its answer."""
    pad = row["scratchpad"]
    return Episode(
        _qid(row),
        IMPORTED,
        (Step(Note(pad), Reply(pad)),),
        Outcome(row["prediction"], stop_reason(row, workflow)),
    )


def stop_reason(row: Mapping[str, Any], workflow: str = "") -> str:
    """Return the stop reason of a logged episode. An episode halted after ten steps reached the step limit; one
    halted earlier, the context limit. Without marked steps the reason is ``halted``.
    """
    if row["error"]:
        return "model_error"
    if row["halted"]:
        steps = len(_STEP.findall(row["scratchpad"]))
        return "halted" if not steps else "step_limit" if steps >= _STEPS else "context_limit"
    if row["prediction"].strip():
        return "answered"
    return "gave_up" if workflow == "dfsdt" else "no_answer"
