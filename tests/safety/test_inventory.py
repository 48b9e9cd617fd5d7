"""The surface that users and their scripts rely on: verbs, flags, keys of printed JSON, keys of files, MLflow's names.

The golden files are text, one line per flag or key. A missing or changed line fails. A new line, or a new word in a line
(a further choice), does not. ``python -m tools.docs`` records additions; ``UPDATE_GOLDEN=1`` records everything.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from project import GOLDEN
from scenario import BASELINES, STEPS, WORKSPACE, call, fresh, golden, inside, key_tree, words

from rallebench.cli.main import main

GOLDEN = GOLDEN / "inventory"
CALLS = {
    "list": ["list"],
    "search": words("search --index tiny -k 2 'moon of Pluto'"),
    "render": words("render --template {question}? --dialect fstring --question Who"),
    "ask": STEPS["ask"],
    "run": [*STEPS["chain"], "--resume"],
    "run-agent": [*STEPS["agent react"], "--resume"],
    "index": words("index --corpus corpus.tsv --name again --kind bm25"),
    "import-corpus": words("import corpus.tsv --kind corpus --name mine"),
    "import-dataset": words("import kilt/nq-dev-kilt.jsonl --kind dataset --name nq"),
    "import-predictions": words(
        "import predictions.jsonl --kind predictions --name p --dataset tiny-qa"
    ),
    "score": words("score --gold datasets/tiny-qa.jsonl --guess predictions.jsonl"),
    "compare": words("compare chain imported"),
    "compare-three": words("compare chain imported whole"),
    "analyse": words("analyse chain"),
    **{
        f"analyse-{aspect}": words(f"analyse 'react wikipedia' --aspect {aspect}")
        for aspect in ("performance", "matching", "errors")
    },
    "export": words("export chain --format trec"),
    "report": words("report chain --out report.html"),
    "baselines": BASELINES,
    "sweep": STEPS["sweep"],
    "suite-plan": [*STEPS["rgb-noise"], "--plan", "--probe", "0"],
    "suite": STEPS["rgb-noise"],
    "build-dataset": STEPS["build barag"],
}
RECORD = "UPDATE_GOLDEN=1 python -m pytest -n 0 tests/safety/test_inventory.py"
WORD = re.compile(r"[^\s,;]+")
TRACKED = re.compile(r"[0-9a-f]{32}")


def check(name: str, text: str) -> None:
    """Fail if a line of the golden file of that name is gone; record additions on request."""
    file = GOLDEN / name
    update = os.environ.get("UPDATE_GOLDEN", "")
    before = file.read_text("utf-8").splitlines() if file.exists() else []
    gone = gone_lines(before, text.splitlines())
    if update and (update != "additions" or not gone):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return
    assert file.exists(), f"{file} is missing; record it: {RECORD}"
    assert not gone, "\n".join([f"{name}: gone or changed; if this is intended: {RECORD}", *gone])


def gone_lines(before: list[str], now: list[str]) -> list[str]:
    """The lines of ``before`` missing in ``now``. A line with additional words counts as the same.

    >>> gone_lines(["--form  one of csv, tsv"], ["--form  one of csv, jsonl, tsv", "--name"])
    []
    >>> gone_lines(["--form  one of csv, tsv", "--name"], ["--form  one of csv"])
    ['--form  one of csv, tsv', '--name']
    """
    gone = []
    matcher = difflib.SequenceMatcher(None, before, now, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            words = [WORD.findall(line) for line in now[start:end]]
            gone += [x for x in before[first:last] if not any(is_within(x, new) for new in words)]
    return gone


def is_within(line: str, words: list[str]) -> bool:
    """Return whether the words of a line occur among ``words`` in the same order."""
    rest = iter(words)
    return all(word in rest for word in WORD.findall(line))


def lines(keys: set[str]) -> str:
    """Sorted lines; below ``memory`` a value may be absent if a small model takes no whole page of it."""
    shortened = {re.sub(r"(\.memory\b).*", r"\1: …", key) for key in keys}
    return "\n".join(sorted(shortened - {"figures: memory_bytes"})) + "\n"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the golden workspace, as the current folder; tests add to it."""
    with inside(golden(tmp_path_factory.mktemp("inventory") / "w")) as folder:
        yield folder


@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="argparse prints options otherwise from Python 3.13 on"
)
def test_every_verb_has_its_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")  # one line per flag

    def help_of(*verb: str) -> str:
        with pytest.raises(SystemExit):
            main([*verb, "--help"])
        # The usage repeats the flags, and every new flag changes its line breaks.
        return re.sub(r"(?s)^usage: .*?\n\n", "", capsys.readouterr().out)

    top = help_of()
    verbs = re.findall(r"^    ([a-z-]+) ", top, re.MULTILINE)
    check("help.txt", top + "".join(f"\n── {verb}\n{help_of(verb)}" for verb in verbs))


def test_suites_and_builders_have_their_settings(
    workspace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for verb in ("suite", "build-dataset"):
        assert main([verb]) == 0
        texts.append(capfd.readouterr().out)
    check("settings.txt", "\n".join(texts))


def test_lists_name_the_same_things(workspace: Path) -> None:
    _, listed, _ = call("list")
    names = {f"{kind}: {item['name']}" for kind, items in listed.items() for item in items}
    check(
        "names.txt",
        lines({name for name in names if not name.startswith(("runs:", "indexes: again"))}),
    )


@pytest.mark.parametrize("name", CALLS)
def test_printed_json_has_the_same_keys(name: str, workspace: Path) -> None:
    code, value, err = call(*CALLS[name])
    assert code == 0, err
    check(f"json/{name}.txt", lines(key_tree(value)))


@pytest.mark.parametrize("label", ["chain", "agent react"])
def test_files_of_a_run_have_the_same_keys(label: str, tmp_path: Path) -> None:
    with inside(fresh(tmp_path / "w")) as folder:
        assert call(*STEPS[label])[0] == 0
        (run,) = (folder / "runs").iterdir()
        keys = set()
        for file in run.glob("*.json*"):
            text = file.read_text("utf-8")
            values = (
                [json.loads(line) for line in text.splitlines()]
                if file.suffix == ".jsonl"
                else [json.loads(text)]
            )
            keys |= {line for value in values for line in key_tree(value, file.name)}
        check(
            f"files/{label.replace(' ', '-')}.txt",
            lines(keys | {path.name for path in run.iterdir() if path.suffix != ".lock"}),
        )


@pytest.mark.slow
def test_mlflow_has_the_same_names(tmp_path: Path) -> None:
    with inside(fresh(tmp_path / "w")) as folder:
        for label in ("chain", "sweep", "rgb-noise"):
            assert call(*(word for word in STEPS[label] if word != "--no-mlflow"))[0] == 0
        keys = set()
        with sqlite3.connect(folder / "mlflow.db") as base:
            for table in words(
                "metrics params tags experiment_tags trace_tags trace_request_metadata"
            ):
                keys |= {
                    f"{table}: {TRACKED.sub('…', row[0])}"
                    for row in base.execute(f"select distinct key from {table}")
                }
            keys |= {f"runs: {row[0]}" for row in base.execute("select name from runs")}
            assessments = "select distinct assessment_type, name from assessments"
            keys |= {f"{kind}: {name}" for kind, name in base.execute(assessments)}
            keys |= {
                f"experiments: {row[0]}" for row in base.execute("select name from experiments")
            }
        base.close()
        for file in folder.glob("mlartifacts/**/metrics.json"):
            keys |= {f"figures: {row[0]}" for row in json.loads(file.read_text("utf-8"))["data"]}
        check("mlflow.txt", lines(keys))


def test_the_golden_workspace_is_small() -> None:
    assert sum(path.stat().st_size for path in WORKSPACE.rglob("*") if path.is_file()) < 5_000_000
