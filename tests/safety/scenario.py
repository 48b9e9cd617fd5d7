"""One call of the command line for every workflow, suite, builder, sweep, judge and trade-off, over small inputs.

All calls go through ``main``, so the modules behind it may move. Paths are relative to the workspace, the current folder.
``INPUTS`` are the data for the calls, ``WORKSPACE`` an earlier version's results (tools/golden_workspace.py).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from project import GOLDEN

from rallebench.cli.main import main

GOLDEN = GOLDEN / "workspace"
INPUTS, WORKSPACE, REPORTS = GOLDEN / "inputs", GOLDEN / "space", GOLDEN / "reports"

words = shlex.split

PREPARE = (
    words("index --corpus corpus.tsv --page-map pages.json --name tiny --kind bm25"),
    words("index --corpus news.tsv --name news --kind bm25"),
)


def sets(pairs: str) -> str:
    """``--set`` before every pair."""
    return " ".join(f"--set {shlex.quote(pair)}" for pair in words(pairs))


def suite(name: str, llm: str, pairs: str, more: str = "") -> list[str]:
    model = f"--llm {llm}" if llm else ""
    return words(f"suite {name} {model} --name {name} --no-mlflow {sets(pairs)} {more}")


def agent(
    workflow: str, environment: str = "wikipedia", llm: str = "oracle-7b", more: str = ""
) -> list[str]:
    data = "starter-scholar-easy" if environment == "scholar" else "hotpotqa"
    place = f"--env {environment}" if environment else ""
    where = "--retriever tiny" if environment in ("wikipedia", "corpus-tools") else ""
    name = shlex.quote(f"{workflow} {environment}".strip())
    return words(
        f"run --workflow {workflow} {place} {where} --llm {llm} --dataset {data} --limit 3"
        f" --name {name} --no-mlflow {more}"
    )


def builder(name: str, llm: str, more: str) -> list[str]:
    model = f"--llm {llm}" if llm else ""
    return words(f"build-dataset {name} --name own-{name} {model} {more}")


CRUD = "data=crud index=news k=2"
GRID = (
    "data=grid corpus=grid.tsv tasks=qa1 embedding=hashing kind=numpy-flat chunk=32 k=2 reranker="
)

STEPS: dict[str, list[str]] = {
    "chain": words("run --chain read --dataset tiny-qa --name chain --no-mlflow"),
    "chain metrics": words(
        "run --chain title --dataset tiny-qa --name title --no-mlflow"
        " --metrics em,f1,accuracy,recall@5,Rprec,KILT-em"
    ),
    "closed": words(
        "run --chain closed --dataset tiny-qa --name closed --no-mlflow --set max_tokens=5"
    ),
    "folder": words("run --chain chains --dataset tiny-qa --limit 2 --name batch --no-mlflow"),
    "ask": words("ask --chain read --question 'Which moon of Saturn has a thick atmosphere?'"),
    "sweep": words("sweep --chain read --dataset tiny-qa --vary k=1,2 --name ks --no-mlflow"),
    "sweep llms": words(
        "sweep --chain read --dataset tiny-qa --vary llm=titan,echo,picky --vary k=1,2"
        " --strategy grid --name models --no-mlflow"
    ),
    "rgb-noise": suite("rgb-noise", "rgb-reads", "data=rgb set=en_fact noise=0,0.4 passages=5"),
    "rgb-rejection": suite("rgb-rejection", "rgb-reads", "data=rgb set=en_fact judge=rgb-judge"),
    "rgb-integration": suite("rgb-integration", "rgb-reads", "data=rgb noise=0,0.2"),
    "rgb-counterfactual": suite("rgb-counterfactual", "rgb-knows", "data=rgb judge=rgb-nose"),
    "rgb-testbed": suite("rgb-testbed", "", "data=tiny-qa index=tiny k=6"),
    "crud-qa1": suite("crud-qa1", "crud-reads", f"{CRUD} quest=crud-judge"),
    "crud": suite("crud", "crud-reads", f"{CRUD} tasks=summary,continuation,hallucination"),
    "crud-grid": suite(
        "crud-grid", "grid-knows", f"{GRID} factors=topk,retriever retrievers=dense,bm25 ks=1,2"
    ),
    "barag-modes": suite(
        "barag-modes",
        "barag-agent",
        "data=barag/articles_A_d.jsonl index=tiny k=2 judge=barag-judge judge_repeats=2 judge_swap=true",
    ),
    "barag-curve": suite(
        "barag-curve",
        "barag-agent",
        "data=barag/gold.jsonl index=tiny ask=true samples=2 quality=f1",
    ),
    "barag-agreement": suite("barag-agreement", "barag-judge", "runs=scored articles=barag"),
    "barag-tables": suite("barag-tables", "", "runs=scored"),
    "kilt": suite("kilt", "checker", "data=kilt retriever=tiny datasets=nq,fev,ay2,trex"),
    "reval": suite(
        "reval",
        "",
        "retriever=tiny tasks=hotpotqa workflows=react,chain-of-thought models=oracle-7b,guess-13b",
        "--limit 2",
    ),
    "reval-scholar": suite(
        "reval-scholar", "", "tasks=soay_easy workflows=react models=oracle-7b", "--limit 2"
    ),
    "build barag": builder("barag", "writer", "--articles articles.jsonl"),
    "build crud": builder("crud", "crud-writer", f"--articles articles {sets('shortest=20')}"),
    "build rgb": builder("rgb", "", sets("data=tiny-qa index=tiny k=6")),
    "build templates": builder(
        "templates",
        "",
        sets("tables=books=tables/books.csv,authors=tables/authors.json templates=templates.json"),
    ),
    "build templates proposed": builder(
        "templates", "proposer", sets("tables=books=tables/books.csv propose=3")
    ),
    **{
        f"agent {name}": agent(name)
        for name in words(
            "react dfsdt function-calling plan-then-act planner-react zero-shot zero-shot-think"
        )
    },
    "agent pal": agent("pal", "wikipedia", "guess-13b", "--allow-python"),
    "agent chain-of-thought": agent("chain-of-thought", ""),
    "agent react scholar": agent("react", "scholar"),
    "agent react corpus-tools": agent("react", "corpus-tools"),
    "tradeoff": words("tradeoff --index tiny,news --dataset tiny-qa -k 2 --name both"),
}
"""Label → arguments. Each label is run in a workspace that holds INPUTS and the indexes of PREPARE."""

BASELINES = words("baselines chain --no-mlflow")
"""Needs the run ``chain``."""


def call(*arguments: str) -> tuple[int, Any, str]:
    """Exit code, printed JSON (None if there is none), and standard error of a call in the current folder."""
    printed, messages = _captured(list(arguments))
    code = messages[0]
    return code, json.loads(printed) if printed.strip() else None, messages[1]


def _captured(arguments: list[str]) -> tuple[str, tuple[int, str]]:
    """Exchange file descriptors 1 and 2, because libraries in C++ write there, too."""
    out, err = Path("captured-out.txt"), Path("captured-err.txt")
    saved = os.dup(1), os.dup(2)
    try:
        with open(out, "w") as one, open(err, "w") as two:
            os.dup2(one.fileno(), 1)
            os.dup2(two.fileno(), 2)
            stdout = io.TextIOWrapper(os.fdopen(os.dup(1), "wb"), "utf-8")
            stderr = io.TextIOWrapper(os.fdopen(os.dup(2), "wb"), "utf-8")
            with (
                stdout,
                stderr,
                contextlib.redirect_stdout(stdout),
                contextlib.redirect_stderr(stderr),
            ):
                try:
                    code = main([*arguments, "--json"])
                except SystemExit as end:
                    code = int(end.code or 0)
    finally:
        for number, copy in enumerate(saved, 1):
            os.dup2(copy, number)
            os.close(copy)
    texts = out.read_text("utf-8"), err.read_text("utf-8")
    out.unlink()
    err.unlink()
    return texts[0], (code, texts[1])


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[Path]:
    """The folder as the current one."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)


def fresh(folder: Path) -> Path:
    """A workspace with only the inputs, and the indexes of PREPARE."""
    shutil.copytree(INPUTS, folder)
    with inside(folder):
        for arguments in PREPARE:
            code, _, err = call(*arguments)
            assert code == 0, err
    return folder


MEASURED = re.compile(
    r"(?i)seconds|_ms$|^ms|latency|time$|^date$|created|ended|bytes|memory|^v?ram|throughput|per_second|versions|platform"
    r"|\bpid\b|disk|\bGB\b|\bMB\b|, s a question"
)
"""Keys with values that differ from run to run."""


def normal(value: Any, key: str = "") -> Any:
    """JSON without values that differ from run to run: measured values, rows of a measured metric, absolute paths. Floats
    have 6 digits."""
    if MEASURED.search(key) and not isinstance(value, (dict, list)):
        return "…"
    if isinstance(value, dict):
        if isinstance(value.get("rows"), list) and isinstance(value.get("columns"), list):
            heads = [str(head) for head in value["columns"]]
            value = {
                **value,
                "rows": [
                    [normal(cell, head) for head, cell in zip(heads, row)]
                    for row in value["rows"]
                    if not MEASURED.search(dict(zip(heads, map(str, row))).get("metric", ""))
                ],
            }
        return {name: normal(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [normal(item, key) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, str):
        return value.replace(os.getcwd() + "/", "").replace(os.getcwd(), ".")
    return value


def key_tree(value: Any, place: str = "") -> set[str]:
    """Paths of all keys and their types: ``parts[].metrics.em.value: float``."""
    if isinstance(value, dict):
        return {place + ": object"} | {
            line for name, item in value.items() for line in key_tree(item, f"{place}.{name}")
        }
    if isinstance(value, (list, tuple)):
        return {place + ": list"} | {
            line for item in value for line in key_tree(item, f"{place}[]")
        }
    kinds = {str: "text", bool: "bool", int: "number", float: "number", type(None): "null"}
    return {f"{place}: {kinds[type(value)]}"}


def golden(folder: Path) -> Path:
    """A copy of the earlier version's inputs and workspace."""
    shutil.copytree(INPUTS, folder)
    shutil.copytree(WORKSPACE, folder, dirs_exist_ok=True)
    return folder


def episodes(folder: Path) -> list[dict[str, Any]]:
    """All episodes below a workspace's runs/, in the order of their files."""
    files = sorted(folder.glob("runs/**/episodes.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
