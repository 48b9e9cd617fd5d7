"""After any damage to a file of the workspace, a verb that reads it ends in its result or in one sentence."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_workspace import CommandLine, copy_workspace, make_workspace

from rallebench.cli.main import main

Damage = Callable[[bytes], bytes | None]


def random_bytes(data: bytes) -> bytes:
    """Change a twentieth of the bytes."""
    source, changed = random.Random(len(data)), bytearray(data)
    for _ in range(max(1, len(data) // 20)) if data else ():
        changed[source.randrange(len(data))] = source.randrange(256)
    return bytes(changed)


def other_types(data: bytes) -> bytes | None:
    """JSON with the same keys and, two levels down, values of other types; None if it is not JSON."""

    def change(value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {key: change(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list):
            return {"0": 1} if depth > 1 else [change(inner, depth) for inner in value]
        return ["x"] if depth > 1 else value

    try:
        return json.dumps(change(json.loads(data), 0)).encode()
    except ValueError:
        pass
    try:
        return b"".join(
            json.dumps(change(json.loads(row), 0)).encode() + b"\n" for row in data.splitlines()
        )
    except ValueError:
        return None


DAMAGES: dict[str, Damage] = {
    "emptied": lambda data: b"",
    "cut in half": lambda data: data[: len(data) // 2],
    "random bytes": random_bytes,
    "a list": lambda data: b"[]\n",
    "an object": lambda data: b"{}\n",
    "null": lambda data: b"null\n",
    "a number": lambda data: b"5\n",
    "other types": other_types,
    "removed": lambda data: None,
}

OF_A_RUN = (
    "list",
    "run --chain read --dataset tiny-qa --name r1 --resume --no-mlflow",
    "compare r1 r2",
    "analyse r1",
    "report r1 r2 --out OUT.html",
    "export r1 --format trec --out OUT.trec",
)
OF_AN_INDEX = (
    "list",
    "search --index tiny moon",
    "search --index both moon",
    "ask --chain read --question moon?",
)
OF_A_SWEEP = ("sweep --name s", "list")
OF_A_CORPUS = ("list", "index --corpus corp --name again --kind bm25")
RUN = "run.json state.json questions.jsonl episodes.jsonl scores.jsonl report.json costs.jsonl"
INDEX = "manifest.json ids.npy offsets.npy passages.jsonl bm25/indptr.csc.index.npy"
WORDS = "bm25/vocab.index.json bm25/params.index.json bm25/data.csc.index.npy"
CORPUS = "corpus.json passages.jsonl offsets.npy ids.npy"

READ_BY: dict[str, tuple[str, ...]] = {
    **{f"runs/r1/{name}": OF_A_RUN for name in RUN.split()},
    **{f"indexes/tiny/{name}": OF_AN_INDEX for name in f"{INDEX} {WORDS}".split()},
    "llms.json": OF_AN_INDEX,
    "retrievers.json": OF_AN_INDEX,
    "chains/read.json": OF_AN_INDEX,
    "cache/memo.sqlite": OF_AN_INDEX,
    "experiments/s/experiment.json": OF_A_SWEEP,
    "runs/s k=1/report.json": OF_A_SWEEP,
    **{f"corpora/corp/{name}": OF_A_CORPUS for name in CORPUS.split()},
    "datasets/tiny-qa.jsonl": ("list", "run --chain read --dataset tiny-qa --name new --no-mlflow"),
}

QUICK = {
    "runs/r1/report.json",
    "runs/r1/episodes.jsonl",
    "runs/r1/scores.jsonl",
    "indexes/tiny/offsets.npy",
    "corpora/corp/passages.jsonl",
}
QUICK_DAMAGES = {"random bytes", "other types", "null"}


@pytest.fixture(scope="module")
def finished_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two runs, a sweep, an imported corpus and a combination of retrievers."""
    folder = make_workspace(tmp_path_factory.mktemp("finished") / "workspace")
    run = "run --dataset tiny-qa --no-mlflow --name"
    for words in (
        f"{run} r1 --chain read",
        f"{run} r2 --chain title",
        "sweep --chain read --dataset tiny-qa --no-mlflow --name s --vary k=1,2",
        f"import {folder / 'corpus.tsv'} --kind corpus --name corp",
    ):
        assert main([*words.split(), "--workspace", str(folder)]) == 0
    (folder / "retrievers.json").write_text(
        json.dumps({"both": {"kind": "rrf", "of": ["tiny", "tiny"]}})
    )
    return folder


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        pytest.param(
            file,
            damage,
            marks=() if file in QUICK and damage in QUICK_DAMAGES else pytest.mark.slow,
        )
        for file in READ_BY
        for damage in DAMAGES
    ],
)
def test_a_damaged_file_is_one_sentence_and_no_traceback(
    file: str,
    damage: str,
    finished_workspace: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    original = (finished_workspace / file).read_bytes()
    damaged = DAMAGES[damage](original)
    if damage == "other types" and damaged is None:
        pytest.skip("no JSON")
    for number, verb in enumerate(READ_BY[file]):
        folder = copy_workspace(finished_workspace, tmp_path / str(number))
        if damaged is None:
            (folder / file).unlink()
        else:
            (folder / file).write_bytes(damaged)
        ran = CommandLine(capfd, folder)(verb.replace("OUT", str(tmp_path / "out")))
        assert ran.code in (0, 1, 2), (verb, ran.err)
        assert "Traceback" not in ran.err, verb
        if ran.code and damage not in ("removed",):
            name = Path(file).name
            assert name in ran.last or str(Path(file).parent) in ran.last, (verb, ran.last)
            assert ran.last.endswith("."), (verb, ran.last)
        shutil.rmtree(folder)
