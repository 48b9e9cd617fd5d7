"""A workspace that is built in a tenth of a second, and the command line, in this process or a separate one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from building import built
from project import PROJECT

from rallebench.cli.main import main

PASSAGES = (
    ("1", "Titan is the largest moon of Saturn and has a thick atmosphere.", "Titan (moon)", "p1"),
    ("2", "Triton is the largest moon of Neptune and goes round it backwards.", "Triton", "p2"),
    ("3", "Paris is a city in Lamar County in the state of Texas.", "Paris, Texas", "p3"),
    ("4", "The Danube flows through ten countries into the Black Sea.", "Danube", "p4"),
    (
        "5",
        "Christiaan Huygens discovered Titan in 1655 with a telescope of his own.",
        "Christiaan Huygens",
        "p5",
    ),
    ("6", "Charon is the largest moon of Pluto.", "Charon", "p6"),
)
"""Passage id, text, title, page id."""

QUESTIONS = (
    ("q1", "Which moon of Saturn has a thick atmosphere?", "Titan", "p1"),
    ("q2", "Which moon goes round Neptune backwards?", "Triton", "p2"),
    ("q3", "In which state is Lamar County?", "Texas", "p3"),
    ("q4", "Which river flows through ten countries?", "Danube", "p4"),
    ("q5", "Who discovered Titan in 1655?", "Christiaan Huygens", "p5"),
    ("q6", "What is the largest moon of Pluto?", "Charon", "p6"),
    ("q7", "Which sea does the Danube reach?", "Black Sea", "p4"),
    ("q8", "Whose largest moon is Triton?", "Neptune", "p2"),
)
"""Question id, text, answer, page id."""

MODELS: Mapping[str, Mapping[str, Any]] = {
    "echo": {"echo": True},
    "titan": {"default": "Titan"},
    "slow": {"default": "Titan", "delay": 0.15},
    "mute": {"replies": []},
    "picky": {"replies": {"Danube": "Danube"}},
    "misspelt": {"dealy": 1},
}
"""Name → settings of a scripted model. ``mute`` always fails, ``picky`` on prompts without the Danube."""

READ = "Passages: {response[0]}\nQuestion: {question}\nAnswer:"


def retrieve(
    template: str = "{question}", target: str = "tiny", k: int = 2, **more: Any
) -> dict[str, Any]:
    """A retrieve action in the form of a chain file."""
    return {"kind": "retrieve", "template": template, "target": target, "k": k, **more}


def generate(template: str = READ, target: str = "titan", **more: Any) -> dict[str, Any]:
    """A generate action in the form of a chain file."""
    return {"kind": "generate", "template": template, "target": target, **more}


def chain(name: str, *actions: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a chain file."""
    return {"format": "rallebench-chain/1", "name": name, "actions": [*actions]}


def experiment(
    *actions: Mapping[str, Any], dataset: str = "tiny-qa", **more: Any
) -> dict[str, Any]:
    """The content of one of RaLLe's experiment files."""
    settings = {"dataset_name": dataset, "num_evaluate": -1, "batch_size": 3, **more}
    return {"chain_config": {"dataset": settings, "len_chain": len(actions), "chain": [*actions]}}


RALLE_RETRIEVE = {
    "prompt_template": "{question}",
    "function": "Retriever",
    "retriever_name": "tiny",
    "npassage": 2,
    "f-strings_or_eval": "f-strings",
}
RALLE_READ = {
    "prompt_template": READ,
    "function": "LLM",
    "llm_name": "titan",
    "f-strings_or_eval": "f-strings",
}


def record(qid: Any, text: str, answer: str, page: str) -> dict[str, Any]:
    """A question in KILT's form."""
    return {
        "id": qid,
        "input": text,
        "output": [{"answer": answer, "provenance": [{"wikipedia_id": page}]}],
    }


RECORDS = tuple(record(*row) for row in QUESTIONS)


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scripted(models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries of scripted models: name → settings."""
    return {name: {"backend": "scripted", "settings": dict(s)} for name, s in models.items()}


def add_llm(folder: Path, name: str, backend: str = "scripted", **settings: Any) -> None:
    """Add a model to a workspace, or replace it."""
    path = folder / "llms.json"
    entry = {name: {"backend": backend, "settings": settings}}
    path.write_text(json.dumps(json.loads(path.read_text()) | entry))


def numbers(part: Mapping[str, Any]) -> dict[str, Any]:
    """Metric → mean, in a part of a suite's report."""
    return {name: mean["value"] for name, mean in part["metrics"].items()}


def make_workspace(folder: Path) -> Path:
    """Models, three chains, a dataset, the corpus as a file, and the index ``tiny`` (BM25) over it."""
    for name in ("chains", "datasets"):
        (folder / name).mkdir(parents=True)
    entries = scripted(MODELS)
    (folder / "llms.json").write_text(json.dumps(entries))
    chains = (
        chain("read", retrieve(), generate()),
        chain("title", retrieve(k=1), {"kind": "identity", "template": "{documents[0][0][title]}"}),
        chain("closed", generate("{question}")),
    )
    for content in chains:
        (folder / "chains" / f"{content['name']}.json").write_text(json.dumps(content))
    write_lines(folder / "datasets" / "tiny-qa.jsonl", RECORDS)
    lines = (f"{doc_id}\t{text}\t{title}\n" for doc_id, text, title, _ in PASSAGES)
    (folder / "corpus.tsv").write_text("id\ttext\ttitle\n" + "".join(lines))
    (folder / "pages.json").write_text(
        json.dumps({doc_id: page for doc_id, _, _, page in PASSAGES})
    )
    built(folder / "indexes", "tiny", folder / "corpus.tsv", "bm25", page_map=folder / "pages.json")
    return folder


def copy_workspace(made: Path, target: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(made, target, dirs_exist_ok=True)
    return target


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """Path → (size, time of the last change; 0, 0 for a folder), to compare a workspace before and after a request."""
    inside = sorted(folder.rglob("*")) if folder.exists() else []
    stats = {path: path.stat() for path in inside}
    found = {
        path: (s.st_size, s.st_mtime_ns) if path.is_file() else (0, 0) for path, s in stats.items()
    }
    return {str(path.relative_to(folder)): value for path, value in found.items()}


def command(words: str = "", *arguments: str | Path) -> list[str]:
    """The command line in a separate process. ``words``: as for ``CommandLine``."""
    return [sys.executable, "-m", "rallebench", *words.split(), *map(str, arguments)]


PREPARE = """
import os, resource, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
if largest := int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
os.execv(sys.argv[2], sys.argv[2:])
"""


def interruptible(words: list[str], *, largest_file: int = 0) -> list[str]:
    """A command that Ctrl C ends, and whose files stay below ``largest_file`` bytes (0: any size).

    A shell that runs tests in the background may ignore SIGINT, and children inherit that. It is
    set in a process between, because ``preexec_fn`` forks a process with threads (gRPC aborts it).
    """
    return [sys.executable, "-c", PREPARE, str(largest_file), *words]


def environment() -> dict[str, str]:
    """This checkout on the path, and no thread pool for half a dozen passages."""
    return {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "default",
    }


def in_a_process(
    *arguments: str | Path, seconds: float = 60, largest_file: int = 0, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does. ``largest_file``: as for ``interruptible``."""
    return subprocess.run(
        interruptible(command(*arguments), largest_file=largest_file),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
        **more,
    )


class Ran(NamedTuple):
    """Result of one call of the command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be exactly one JSON document."""
        return json.loads(self.out)

    @property
    def last(self) -> str:
        """The last line on standard error."""
        return self.err.rstrip("\n").rpartition("\n")[2]


class CommandLine:
    """``main`` in this process; all output to the file descriptors 1 and 2 is captured."""

    def __init__(self, capture: pytest.CaptureFixture[str], workspace: Path) -> None:
        self.capture, self.workspace = capture, workspace

    def __call__(self, command: str, *arguments: str | Path | int) -> Ran:
        """``command``: the verb, and flags without blanks; ``arguments`` follow as they are."""
        verb, *flags = command.split(" ")
        self.capture.readouterr()
        try:
            code = main([verb, "--workspace", str(self.workspace), *flags, *map(str, arguments)])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Ran(code, *self.capture.readouterr())

    def json(self, command: str, *arguments: str | Path | int) -> Any:
        """The JSON document of a call that must succeed."""
        ran = self(command, *arguments, "--json")
        assert ran.code == 0, ran.err
        return ran.json

    def run(
        self, name: str, llm: str = "titan", *more: str | Path | int, chain: str = "read"
    ) -> Ran:
        """A run of a chain over the small dataset."""
        words = ("--chain", chain, "--name", name, "--llm", llm, "--dataset", "tiny-qa")
        return self("run --no-mlflow", *words, *more)

    def predictions(self, file: Path, name: str, *more: str | Path) -> Ran:
        """A file of predictions on the small dataset, imported as a run."""
        words = ("--kind", "predictions", "--dataset", "tiny-qa", "--name", name)
        return self("import", file, *words, *more)

    def suite(
        self, suite: str, *pairs: str, llm: str = "", run: str = "", flags: Iterable[Any] = ()
    ) -> Ran:
        """A suite with the settings ``pairs``, as in data=FILE."""
        words = [word for pair in pairs for word in ("--set", pair)]
        words += ["--llm", llm] * bool(llm) + ["--name", run] * bool(run)
        return self("suite", suite, "--no-mlflow", *words, *flags)

    @staticmethod
    def tests_in(report: Any) -> dict[tuple[str, str], Any]:
        """(runs, metric) → the row of a report's paired tests; {} without such tests."""
        tables = (
            of for of in report["tables"] if of["title"] == "Differences, question by question"
        )
        return {(row[0], row[1]): row for table in tables for row in table["rows"]}

    def report(self, suite: str, *pairs: str, **more: Any) -> Any:
        """The report of a suite that must succeed."""
        ran = self.suite(suite, *pairs, **{**more, "flags": (*more.get("flags", ()), "--json")})
        assert ran.code == 0, ran.err
        return ran.json

    def refused(self, suite: str, *pairs: str, **more: Any) -> str:
        """The last line of a suite that must be refused and write nothing."""
        before = everything(self.workspace)
        ran = self.suite(suite, *pairs, **more)
        assert ran.code == 2 and everything(self.workspace) == before, ran.err
        return ran.last

    def episodes(self, run: str) -> list[Any]:
        """The lines of a run's episodes."""
        return read_lines(self.workspace / "runs" / run / "episodes.jsonl")

    def judgements(self, run: str) -> list[Any]:
        """The lines of the pass of a run's only judge, by question."""
        (folder,) = (self.workspace / "runs" / run / "judges").iterdir()
        lines = read_lines(folder / "episodes.jsonl")
        return sorted(lines, key=lambda line: str(line["qid"]))

    def build(
        self, maker: str, *pairs: str, name: str, articles: Any = "", llm: str = "", flags: Any = ()
    ) -> Ran:
        """A dataset builder with the settings ``pairs``, as in questions=2."""
        words = [word for pair in pairs for word in ("--set", pair)]
        words += ["--llm", llm] * bool(llm) + ["--articles", str(articles)] * bool(articles)
        return self("build-dataset", maker, "--name", name, *words, *flags)

    def built(self, maker: str, *pairs: str, **more: Any) -> Any:
        """The document of a dataset builder that must succeed."""
        ran = self.build(maker, *pairs, **{**more, "flags": (*more.get("flags", ()), "--json")})
        assert ran.code == 0, ran.err
        return ran.json
