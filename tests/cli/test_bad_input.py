"""Bad input of any kind gives one clear sentence; nothing is half-written or silently lost."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import loopback
import pytest
from small_workspace import (
    RECORDS,
    CommandLine,
    Ran,
    chain,
    command,
    copy_workspace,
    environment,
    everything,
    generate,
    in_a_process,
    make_workspace,
    read_lines,
    retrieve,
    write_lines,
)

from rallebench.cli.main import main


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def assert_refused(ran: Ran, *said: str) -> None:
    """The last line is one sentence with all texts of ``said``; exit code 2; nothing on stdout."""
    assert ran.code == 2, ran
    assert ran.out == "" and "Traceback" not in ran.err
    for words in said:
        assert words in ran.last
    assert ran.last[-1] in ".?"


# ── corpora ──────────────────────────────────────────────────────────────────

CORPORA: dict[str, tuple[str, bytes, str]] = {  # more in tests/corpora
    "short row": (
        "c.tsv",
        b"title\tid\ttext\nt\t1\n",
        "line 2 has 2 columns, fewer than its header names",
    ),
    "id is a list": (
        "c.jsonl",
        b'{"id": [1], "text": "a"}',
        "line 1: an id must be text or a number",
    ),
    "a number without end": ("c.jsonl", b'{"id": ' + b"1" * 5000 + b"}", "too many digits"),
    "nested without end": ("c.jsonl", b"[" * 100_000, "too deeply nested"),
}


@pytest.mark.parametrize(
    "kind", [("bm25",), ("flat", "--encoder", "hashing")], ids=["bm25", "flat"]
)
@pytest.mark.parametrize("case", CORPORA)
def test_a_bad_corpus_is_refused_with_its_line_and_no_index_appears(
    case: str, kind: tuple[str, ...], cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    name, content, message = CORPORA[case]
    corpus = write(tmp_path / name, content)
    before = everything(workspace)
    ran = cli(f"index --corpus {corpus} --name bad --kind", *kind)
    assert_refused(ran, str(corpus), message)
    assert everything(workspace) == before


def test_a_bad_page_map_is_refused(cli: CommandLine, workspace: Path) -> None:
    pages = write(workspace / "bad.json", b"\xff\xfe{")
    before = everything(workspace)
    corpus = f"--corpus {workspace / 'corpus.tsv'} --page-map {pages}"
    said = f"{pages} is not UTF-8 text (byte 0); save it as UTF-8"
    assert_refused(cli(f"index {corpus} --name x --kind bm25"), said)
    assert everything(workspace) == before


def test_a_page_id_that_is_null_is_no_page(cli: CommandLine, tmp_path: Path) -> None:
    rows = [
        {"id": 1, "text": "Titan", "page_id": None},
        {"id": 2, "text": "Triton", "wikipedia_id": 7},
    ]
    corpus = write_lines(tmp_path / "c.jsonl", rows)
    cli.json(f"index --corpus {corpus} --name x --kind bm25")
    found = cli.json("search --index x -k 1 Titan Triton")
    assert [entry["hits"][0]["page_id"] for entry in found] == ["1", "7"], (
        "without one the passage's id is it"
    )


# ── datasets ─────────────────────────────────────────────────────────────────

GOOD = json.dumps(RECORDS[0]).encode() + b"\n"
QUESTION_SETS: dict[str, tuple[bytes, str]] = {  # more in tests/datasets
    "damaged gzip": (gzip.compress(GOOD * 100)[:40], "is a damaged gzip file"),
    "bad row beyond the limit": (
        GOOD + b'{"id": "q2", "input": "x"}\n{"id": "q3"}',
        "line 3 has no 'input'",
    ),
}


@pytest.mark.parametrize("case", QUESTION_SETS)
def test_a_bad_dataset_is_refused_with_its_line_before_anything_is_asked(
    case: str, cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    content, message = QUESTION_SETS[case]
    questions = write(tmp_path / "q.jsonl", content)
    before = everything(workspace)
    ran = cli(f"run --chain read --dataset {questions} --limit 1 --no-mlflow")
    assert_refused(ran, str(questions), message)
    assert everything(workspace) == before


def test_half_a_character_costs_nothing(cli: CommandLine, workspace: Path, tmp_path: Path) -> None:
    write(
        tmp_path / "q.jsonl",
        b'{"id": "q", "input": "moon \\ud83d of Pluto", "output": [{"answer": "x"}]}\n',
    )
    run = f"run --chain read --llm echo --dataset {tmp_path / 'q.jsonl'} --no-mlflow"
    assert cli.json(f"{run} --name x")["n_errors"] == 0
    assert cli.json(f"{run} --name x --resume")["n_errors"] == 0
    again = cli.json(f"{run} --name y")
    assert (again["n"], again["n_errors"]) == (1, 0)
    line = json.loads((workspace / "runs" / "y" / "episodes.jsonl").read_bytes())
    assert [step["cached"] for step in line["steps"]] == [True, True]


# ── chains ───────────────────────────────────────────────────────────────────

CHAINS: dict[str, tuple[Any, str]] = {
    "empty": (b"", "is empty"),
    "half-written": (b'{"format": "rallebench-chain/1", "na', "is not valid JSON (line 1"),
    "Latin-1": (b'{"name": "caf\xe9"}', "is not UTF-8 text (byte 13)"),
    "nested without end": (b'{"a":' * 50_000, "too deeply nested"),
    "no actions": (chain("x"), "'actions' is wrong"),
    "an unknown kind": (chain("x", {"kind": "rank", "template": "x"}), "'actions.0.kind' is wrong"),
    "an unknown key": (chain("x", retrieve(top_k=3)), "'actions.0.top_k' is wrong"),
    "a setting out of range": (
        chain("x", generate("{question}", generation={"temperature": "hot"})),
        "action 1: temperature is 'hot'; it must be a number from 0 to 5.",
    ),
}


@pytest.mark.parametrize(
    "verb", [("ask", "--question", "q"), ("run", "--dataset", "tiny-qa", "--no-mlflow")]
)
@pytest.mark.parametrize("case", CHAINS)
def test_a_bad_chain_file_is_refused(
    case: str, verb: tuple[str, ...], cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    content, message = CHAINS[case]
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    path = write(tmp_path / "bad.json", content)
    before = everything(workspace)
    assert_refused(cli(*verb, "--chain", path), str(path), message)
    assert everything(workspace) == before


TEMPLATES: dict[str, tuple[dict[str, Any], str]] = {  # more in tests/chains
    "empty": (
        retrieve(""),
        "Action 1 of 'x': its template is empty, so the chain would ask nothin",
    ),
    "empty expression": (generate("", dialect="eval"), "its template is empty"),
    "a later action": (
        generate("{response[0]}"),
        "reads response[0], the response of action 1, but",
    ),
    "dunder": (generate("().__class__.__bases__", dialect="eval"), "such as .__bases__, are not"),
}


@pytest.mark.parametrize("case", TEMPLATES)
def test_a_template_that_cannot_work_is_refused_before_the_run(
    case: str, cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    action, message = TEMPLATES[case]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(chain("x", action)))
    before = everything(workspace)
    assert_refused(cli(f"run --chain {path} --dataset tiny-qa --no-mlflow"), message)
    assert_refused(cli(f"ask --chain {path} --question q"), message)
    assert everything(workspace) == before


def test_an_exploding_template_costs_its_question_alone(cli: CommandLine, tmp_path: Path) -> None:
    bomb = "'x' * (10 ** 9 if 'Danube' in question else 3)"
    (tmp_path / "x.json").write_text(
        json.dumps(chain("x", generate(bomb, target="echo", dialect="eval")))
    )
    ran = cli(f"run --chain {tmp_path / 'x.json'} --dataset tiny-qa --no-mlflow --json")
    assert ran.code == 0
    assert (ran.json["n"], ran.json["n_errors"]) == (8, 1)
    assert "1 failed: Action 1: Template" in ran.last and "1,000,000,000 characters" in ran.last


def test_an_empty_template_ends_the_chain_where_it_stands(cli: CommandLine, tmp_path: Path) -> None:
    actions = (generate("{question}"), retrieve(""), generate())
    (tmp_path / "x.json").write_text(json.dumps(chain("x", *actions)))
    printed = cli.json(f"ask --chain {tmp_path / 'x.json'} --question q")
    assert (printed["answer"], len(printed["steps"])) == ("Titan", 1)


@pytest.mark.parametrize("dialect", ["fstring", "eval"])
def test_what_stands_in_a_question_or_a_passage_is_never_interpreted(
    dialect: str, cli: CommandLine, tmp_path: Path
) -> None:
    question = "{response[0]} {{question}} {question.__class__} '+__import__('os')+' %s Titan"
    rows = [{"id": "{question}", "text": f"Titan {question}", "title": "{title}"}]
    corpus = write_lines(tmp_path / "c.jsonl", rows)
    cli.json(f"index --corpus {corpus} --name braces --kind bm25")
    read = "{response[0]}|{question}" if dialect == "fstring" else "response[0] + '|' + question"
    again = "{prompt[1]}|{response[1]}" if dialect == "fstring" else "prompt[1] + '|' + response[1]"
    actions = (
        retrieve("{question}", "braces"),
        generate(read, "echo", dialect=dialect),
        {"kind": "identity", "template": again, "dialect": dialect},
    )
    (tmp_path / "x.json").write_text(json.dumps(chain("x", *actions)))
    printed = cli.json(f"ask --chain {tmp_path / 'x.json'} --question", question)
    sent = f"{{title}}, Titan {question}|{question}"
    assert printed["steps"][0]["prompt"] == question
    assert printed["steps"][1]["prompt"] == sent
    assert printed["answer"] == f"{sent}|{sent}"


# ── retrieval ────────────────────────────────────────────────────────────────


def test_an_empty_query_in_a_chain_retrieves_nothing(cli: CommandLine, workspace: Path) -> None:
    path = workspace / "chains" / "read.json"
    chain = json.loads(path.read_text())
    chain["actions"][0]["template"] = " "
    path.write_text(json.dumps(chain))
    printed = cli.json("ask --chain read --question", "Which moon?")
    assert printed["steps"][0]["hits"] == []
    assert printed["answer"] == "Titan"


# ── models and endpoints ─────────────────────────────────────────────────────

MODEL_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "half-written": (b'{"m": {"backend": "scri', "is not valid JSON"),
    "a list": (b"[]", "should hold a JSON object"),
    "an entry without a backend": (b'{"m": {}}', "model 'm': 'backend' is wrong"),
    "an unknown key": (
        b'{"m": {"backend": "scripted", "echo": true}}',
        "model 'm': 'echo' is wrong",
    ),
}


@pytest.mark.parametrize("case", MODEL_FILES)
def test_a_bad_file_of_models_is_refused_and_marked_in_the_list(
    case: str, cli: CommandLine, workspace: Path
) -> None:
    content, message = MODEL_FILES[case]
    path = write(workspace / "llms.json", content)
    before = everything(workspace)
    assert_refused(cli("ask --chain read --llm m --question q"), str(path), message)
    listed = {row["name"]: row["about"] for row in cli.json("list llms")["llms"]}
    name = "m" if "model 'm'" in message else "llms.json"
    assert listed[name].startswith(f"cannot be read: {path}") and message in listed[name]
    assert "extractive-reader" in listed
    assert everything(workspace) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"backend": "vlm", "settings": {}}, "There is no language model backend 'vlm'."),
        ({"backend": "openai_compatible", "settings": {}}, "'m' needs the setting 'model'."),
        (
            {"backend": "openai_compatible", "settings": {"model": "x", "base_url": "ftp://x"}},
            "base_url",
        ),
        (
            {"backend": "scripted", "settings": {"replies": {"(": "x"}}},
            "'(' is not a regular expression",
        ),
        ({"backend": "transformers", "settings": {"model": "/none/such"}}, "/none/such"),
    ],
)
def test_a_model_that_cannot_be_made_is_refused_before_anything_is_written(
    entry: dict[str, Any], message: str, cli: CommandLine, workspace: Path
) -> None:
    (workspace / "llms.json").write_text(json.dumps({"m": entry}))
    before = everything(workspace)
    run = "run --chain read --retriever starter-bm25 --llm m --dataset tiny-qa"
    assert_refused(cli(f"{run} --no-mlflow"), message)
    assert everything(workspace) == before


def nobody() -> str:
    """An address without a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def use_endpoint(workspace: Path, url: str) -> None:
    """The model ``far``: one request at a time, no second attempt, a patience of one second."""
    own = {"model": "m", "base_url": url, "timeout": 1.0, "max_retries": 0, "concurrency": 1}
    entry = {"backend": "openai_compatible", "settings": own}
    (workspace / "llms.json").write_text(json.dumps({"far": entry}))


ON_FAR = "run --chain closed --llm far --dataset tiny-qa --no-mlflow --name x"

MISBEHAVIOUR: dict[str, loopback.Behaviour] = {  # more in tests/llms
    "drops at once": loopback.drop_at_once,
    "rubbish": loopback.send_text("<html>Bad gateway</html>"),
    "an error": loopback.fail(500),
}


@pytest.mark.parametrize("case", MISBEHAVIOUR)
def test_a_failed_endpoint_costs_questions(case: str, cli: CommandLine, workspace: Path) -> None:
    with loopback.Loopback(loopback.answer("Titan"), MISBEHAVIOUR[case]) as server:
        use_endpoint(workspace, server.url)
        ran = cli(f"{ON_FAR} --limit 3 --metrics em --json")
    assert ran.code == 0, ran.err
    assert (ran.json["n"], ran.json["n_errors"]) == (3, 2)
    assert ran.json["metrics"]["em"] == {"value": 1.0, "low": None, "high": None, "n": 1}
    assert " failed: " in ran.last and "far" in ran.last
    assert "Traceback" not in ran.err
    lines = read_lines(workspace / "runs" / "x" / "episodes.jsonl")
    assert [bool(line.get("error")) for line in lines] == [False, True, True]


def test_an_endpoint_that_always_refuses_stops_the_run(cli: CommandLine, workspace: Path) -> None:
    url = nobody()
    use_endpoint(workspace, url)
    ran = cli(ON_FAR)
    assert ran.code == 1
    assert ran.last.startswith("The first 5 questions all failed, so the run was stopped: ")
    assert url.removeprefix("http://").removesuffix("/v1") in ran.last
    report = json.loads((workspace / "runs" / "x" / "report.json").read_text())
    assert report["n_errors"] == report["n_done"] >= 5
    assert all(
        metric["n"] == 0 and metric["value"] is None for metric in report["metrics"].values()
    )
    state = json.loads((workspace / "runs" / "x" / "state.json").read_text())
    assert (state["state"], state["message"]) == ("failed", ran.last)


# ── the disk ─────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [("bm25",), ("flat", "--encoder", "hashing")], ids=["bm25", "flat"]
)
@pytest.mark.parametrize("size", [100, 5_000])
def test_a_build_on_a_full_disk_is_gone(kind: tuple[str, ...], size: int, workspace: Path) -> None:
    before = everything(workspace)
    build: list[str | Path] = ["index", "--corpus", workspace / "corpus.tsv", "--name", "x"]
    ran = in_a_process(*build, "--kind", *kind, "--workspace", workspace, largest_file=size)
    if ran.returncode == 0:
        pytest.skip("all of this index fits")
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr
    assert str(workspace) in ran.stderr.splitlines()[-1]
    # Encoded vectors are kept, so the next build continues.
    after = {
        path: stat for path, stat in everything(workspace).items() if not path.startswith("cache")
    }
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("size", [200, 1_500, 6_000])
def test_a_run_on_a_full_disk_can_be_resumed(size: int, cli: CommandLine, workspace: Path) -> None:
    run = "run --chain closed --dataset tiny-qa --no-mlflow --name x --metrics em"
    ran = in_a_process(f"{run} --workspace", workspace, largest_file=size)
    assert ran.returncode in (0, 1), ran.stderr
    assert "Traceback" not in ran.stderr
    if ran.returncode == 1:
        assert re.search(
            "Could not write |memo.sqlite cannot be opened ", ran.stderr.splitlines()[-1]
        )
    started = (workspace / "runs" / "x").exists()
    assert (
        started
        or list((workspace / "runs").glob("*")) == list((workspace / "runs").glob(".*")) == []
    )
    result = cli.json(run, *(["--resume"] if started else []))
    assert (result["n"], result["n_errors"]) == (8, 0)
    assert result["metrics"]["em"]["value"] == 1 / 8


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("runs", "run --chain closed --dataset tiny-qa --no-mlflow", 1),
        ("cache", "run --chain closed --dataset tiny-qa --no-mlflow", 0),
        ("indexes", "index --corpus CORPUS --name x --kind bm25", 1),
        ("indexes", "search --index starter-bm25 x", 1),
    ],
)
def test_a_file_in_the_place_of_a_folder_is_one_sentence_and_stays(
    name: str, words: str, code: int, cli: CommandLine, workspace: Path
) -> None:
    if name == "indexes":
        shutil.rmtree(workspace / name)
    (workspace / name).write_text("in the way")
    ran = cli(words.replace("CORPUS", str(workspace / "corpus.tsv")))
    assert ran.code == code and "Traceback" not in ran.err
    if code:
        assert "Could not write " in ran.last or str(workspace / name) in ran.last
    else:
        assert str(workspace / name) in ran.err and "neither taken from it nor kept" in ran.err
    assert (workspace / name).read_text() == "in the way"


PICK = "pick --dataset tiny-qa --index tiny --output"


def test_what_is_written_replaces_no_pipe_folder_or_input(cli: CommandLine, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link.jsonl"
    os.mkfifo(pipe)
    questions = cli.workspace / "datasets" / "tiny-qa.jsonl"
    link.symlink_to(questions)
    before = questions.read_bytes()
    assert_refused(
        cli(f"{PICK} {pipe}"), f"--output {pipe} is not a plain file; name a file to write."
    )
    assert_refused(
        cli(f"{PICK} {tmp_path}"), f"--output {tmp_path} is a folder; name a file in it."
    )
    for same in (questions, link):
        assert_refused(cli(PICK, same), f"--output {same} is the file that is read; name another.")
    assert pipe.is_fifo() and link.is_symlink() and questions.read_bytes() == before


def test_an_export_never_replaces_a_file_of_the_workspace(cli: CommandLine, tmp_path: Path) -> None:
    assert cli("run --chain read --dataset tiny-qa --name kept --no-mlflow").code == 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for verb in (("export", "kept", "--format", "csv"), ("report", "kept")):
        spec = cli.workspace / "runs" / "kept" / "run.json"
        before = spec.read_bytes()
        assert_refused(
            cli(*verb, "--out", spec),
            f"--out {spec} belongs to the workspace and would be lost; name another file.",
        )
        assert_refused(
            cli(*verb, "--out", pipe), f"--out {pipe} is not a plain file; name a file to write."
        )
        assert_refused(cli(*verb, "--out", tmp_path), "is a folder; name a file in it")
        assert spec.read_bytes() == before and pipe.is_fifo()


def test_half_a_surrogate_pair_in_a_question_is_exported(cli: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "odd.jsonl"
    file.write_text('{"id": "1", "input": "who \\ud800 is", "output": [{"answer": "Titan"}]}\n')
    assert cli(f"run --chain read --dataset {file} --name odd --no-mlflow").code == 0
    for form in ("csv", "jsonl", "kilt"):
        out = tmp_path / f"out.{form}"
        assert cli("export odd --format", form, "--out", out).code == 0
        assert "ud800" in out.read_text("utf-8") or form == "kilt"


def test_a_dataset_named_like_a_file_is_no_other_one(cli: CommandLine, tmp_path: Path) -> None:
    for name, answer in (("t.jsonl", "Titan"), ("t", "Triton")):
        file = tmp_path / f"{answer}.jsonl"
        file.write_text(
            json.dumps({"id": answer, "input": "Which moon?", "output": [{"answer": answer}]})
            + "\n"
        )
        assert cli(f"import {file} --kind dataset --name", name).code == 0
        assert (
            cli("run --chain read --dataset", name, "--name", f"of {name}", "--no-mlflow").code == 0
        )
        asked = (cli.workspace / "runs" / f"of {name}" / "episodes.jsonl").read_text()
        assert json.loads(asked)["qid"] == answer


# ── two at once ──────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_of_two_benchmarks_of_one_name_exactly_one_runs(workspace: Path) -> None:
    run = "run --chain closed --llm slow --dataset tiny-qa --no-mlflow --name x"
    words = command(f"{run} --workspace", workspace, "--json")
    both = [
        subprocess.Popen(
            words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], said
    assert "The run 'x' exists already" in said[codes.index(2)][1].splitlines()[-1]
    assert json.loads(said[codes.index(0)][0])["n"] == 8
    assert [path.name for path in (workspace / "runs").iterdir()] == ["x"]
    assert len(read_lines(workspace / "runs" / "x" / "episodes.jsonl")) == 8


@pytest.mark.slow
def test_a_run_that_is_worked_on_cannot_be_resumed(cli: CommandLine, workspace: Path) -> None:
    run = "run --chain closed --llm slow --dataset tiny-qa --no-mlflow --name x"
    words = command(f"{run} --workspace", workspace, "--batch-size", "1")
    working = subprocess.Popen(
        words, env=environment(), stderr=subprocess.PIPE, text=True, stdout=subprocess.DEVNULL
    )
    assert working.stderr is not None
    while "1/8" not in working.stderr.readline():
        assert working.poll() is None
    ran = cli(f"{run} --resume")
    assert_refused(ran, "The run 'x' is locked by another process; wait for it or stop it.")
    working.communicate(timeout=60)
    assert working.returncode == 0
    assert len(read_lines(workspace / "runs" / "x" / "episodes.jsonl")) == 8


# ── damaged workspaces ───────────────────────────────────────────────────────

RUN_X = "run --chain closed --dataset tiny-qa --no-mlflow --name x --metrics em"


@pytest.fixture(scope="module")
def with_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the finished run ``x``."""
    folder = make_workspace(tmp_path_factory.mktemp("run") / "workspace")
    assert main([*RUN_X.split(), "--workspace", str(folder)]) == 0
    return folder


@pytest.fixture
def damage_run(
    with_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[CommandLine, Path]]:
    """Replace a file of the run ``x``; return the command line in that workspace, and the run's folder."""

    def damage(name: str, content: Any) -> tuple[CommandLine, Path]:
        workspace = copy_workspace(with_run, tmp_path / "workspace")
        path = workspace / "runs" / "x" / name
        old = path.read_bytes()
        path.unlink()
        if content is not None:
            path.write_bytes(content(old) if callable(content) else content)
        return CommandLine(capfd, workspace), workspace / "runs" / "x"

    return damage


def without_steps(old: bytes) -> bytes:
    """The first episode without its steps."""
    first, _, rest = old.partition(b"\n")
    return json.dumps({**json.loads(first), "steps": [{}]}).encode() + b"\n" + rest


RUN_FILES: dict[str, tuple[str, Any, str]] = {
    "run.json cut": ("run.json", lambda old: old[:50], "run.json is not valid JSON"),
    "run.json of something else": ("run.json", b"{}", "run.json was damaged by another program"),
    "no questions": ("questions.jsonl", None, "questions.jsonl is missing or damaged"),
    "questions overwritten": (
        "questions.jsonl",
        b"rubbish\n",
        "questions.jsonl, line 1 was damaged",
    ),
    "an episode overwritten": (
        "episodes.jsonl",
        lambda old: old.replace(b"\n", b"\nrubbish\n", 1),
        "episodes.jsonl, line 2 was damaged by another program. Remove that line",
    ),
    "an episode that is none": (
        "episodes.jsonl",
        lambda old: b"7\n" + old,
        "line 1 is not an episode. Remove that",
    ),
    "an episode without steps": (
        "episodes.jsonl",
        without_steps,
        "the last line of the question 'q1' was damaged",
    ),
}


@pytest.mark.parametrize("case", RUN_FILES)
def test_a_damaged_run_is_refused_with_the_file_and_the_mend(
    case: str, damage_run: Callable[..., tuple[CommandLine, Path]]
) -> None:
    name, content, message = RUN_FILES[case]
    cli, folder = damage_run(name, content)
    kept = (folder / "episodes.jsonl").read_bytes()
    assert_refused(cli(f"{RUN_X} --resume"), message)
    assert (folder / "episodes.jsonl").read_bytes() == kept


def test_a_run_of_an_edited_dataset_continues_by_its_name_alone(
    cli: CommandLine, workspace: Path
) -> None:
    before = cli.json(RUN_X)
    file = workspace / "datasets" / "tiny-qa.jsonl"
    file.write_text(file.read_text().replace("thick atmosphere", "thick air"))
    refused = "changed since the run 'x' began. Resume the run by its name alone"
    assert_refused(cli(f"{RUN_X} --resume"), refused)
    again = cli("run --name x --resume --no-mlflow")
    assert "the run asks and scores the questions that it began with" in again.err
    folder = workspace / "runs" / "x"
    assert json.loads((folder / "report.json").read_text())["metrics"] == before["metrics"]
    assert "thick atmosphere" in (folder / "questions.jsonl").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b"rubbish"),
        ("state.json", b'{"state": "running", "pid": "me"}'),
        ("state.json", None),
        ("report.json", None),
        ("scores.jsonl", b"rubbish"),
        ("output.jsonl", None),
        ("episodes.jsonl", lambda old: old[:-20]),
        ("episodes.jsonl", None),
    ],
)
def test_what_a_run_can_make_again_is_made_again(
    name: str, content: Any, damage_run: Callable[..., tuple[CommandLine, Path]]
) -> None:
    cli, folder = damage_run(name, content)
    result = cli.json(f"{RUN_X} --resume")
    assert (result["n"], result["n_errors"], result["metrics"]["em"]["value"]) == (8, 0, 1 / 8)
    assert json.loads((folder / "report.json").read_text())["complete"]
    assert json.loads((folder / "state.json").read_text())["state"] == "done"
    assert (
        len(read_lines(folder / "output.jsonl")) == len(read_lines(folder / "episodes.jsonl")) == 8
    )


def test_a_memory_that_is_no_database_is_named_so(cli: CommandLine, workspace: Path) -> None:
    (workspace / "cache").mkdir()
    memory = write(workspace / "cache" / "memo.sqlite", b"no database at all " * 100)
    ran = cli("ask --chain closed --question q")
    assert ran.code == 1
    assert f"The memory {memory} cannot be opened" in ran.last and "delete it" in ran.last
    assert memory.read_bytes().startswith(b"no database")


@pytest.mark.parametrize("damage", ["pages", "row"])
def test_a_damaged_memory_costs_no_answer(damage: str, cli: CommandLine, workspace: Path) -> None:
    import sqlite3

    first = cli.json("run --chain read --dataset tiny-qa --no-mlflow")
    memory = workspace / "cache" / "memo.sqlite"
    if damage == "row":
        with sqlite3.connect(memory) as database:
            database.execute("UPDATE memo SET reply = '{\"half'")
        database.close()
    else:
        content = memory.read_bytes()
        assert len(content) > 3 * 4096
        memory.write_bytes(content[:4096] + b"\x5a" * (len(content) - 4096))
    ran = cli("run --chain read --dataset tiny-qa --no-mlflow --json")
    assert ran.code == 0, ran.err
    assert ran.json["n_errors"] == 0
    assert ran.json["metrics"]["em"] == first["metrics"]["em"]
    assert "Internal error" not in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "manifest.json is empty"),
        (b'{"name": "tiny"', "manifest.json is not valid JSON"),
        (b"{}", "'name' is wrong"),
        (b'{"format": "rallebench-index/9"}', "'format' is wrong"),
    ],
)
def test_a_damaged_manifest_is_named_with_the_mend(
    content: bytes, message: str, cli: CommandLine, workspace: Path
) -> None:
    folder = workspace / "indexes" / "tiny"
    write(folder / "manifest.json", content)
    before = everything(workspace)
    assert_refused(
        cli("search --index tiny x"), message, f"Remove the folder {folder}; build it again."
    )
    ran = cli("run --chain read --dataset tiny-qa --no-mlflow")
    assert_refused(ran, "Action 1 of 'read': ", message)
    listed = {row["name"]: row["about"] for row in cli.json("list retrievers")["retrievers"]}
    assert "cannot be read" in listed["tiny"] and message in listed["tiny"]
    assert "starter-bm25" in listed
    assert everything(workspace) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value"),
    [("passages", 5), ("metric", "l2"), ("corpus_sha256", "0"), ("name", "other")],
)
def test_a_manifest_that_was_edited_is_not_believed(
    field: str, value: Any, cli: CommandLine, workspace: Path
) -> None:
    path = workspace / "indexes" / "tiny" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    said = f"{path} was edited after the index was built; undo that, or "
    search = cli("search --index tiny x")
    assert_refused(search, said, f"remove the folder {path.parent}; build it again.")
    assert search.last.count("again") == 1
    build = cli("index --corpus", str(workspace / "corpus.tsv"), "--name", "tiny", "--kind", "bm25")
    assert_refused(build, said, f"Remove the folder {path.parent} before.")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["passages.jsonl", "offsets.npy"])
@pytest.mark.parametrize("content", [None, b"short"])
def test_an_index_whose_files_changed_is_not_searched(
    name: str, content: bytes | None, cli: CommandLine, workspace: Path
) -> None:
    folder = workspace / "indexes" / "tiny"
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    ran = cli("search --index tiny x")
    assert ran.code == 1
    assert f"{folder / name} is missing or was changed after the index was built" in ran.last
    assert (
        f"; remove the folder {folder}; build it again." in ran.last
        and ran.last.count("again") == 1
    )


def test_a_damaged_starter_index_says_it_is_built_anew(cli: CommandLine, workspace: Path) -> None:
    cli.json("search --index starter-bm25 Titan")
    folder = workspace / "indexes" / "starter-bm25"
    (folder / "manifest.json").write_text("{")
    ran = cli("search --index starter-bm25 Titan")
    assert_refused(ran, f"Remove the folder {folder}; it is built anew when next asked for.")
    assert (folder / "manifest.json").read_text() == "{", (
        "what somebody may want to mend is not touched"
    )


def test_an_index_whose_build_was_killed_is_not_there_and_is_built_again(
    cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    pipe = tmp_path / "corpus.tsv"
    os.mkfifo(pipe)
    build = ("index", "--corpus", pipe, "--name", "x", "--kind", "bm25", "--workspace", workspace)
    building = subprocess.Popen(command(*build), env=environment(), stderr=subprocess.DEVNULL)
    with open(pipe, "wb", buffering=0) as corpus:
        corpus.write(b"1\ta passage that was\tread\n")
        deadline = time.monotonic() + 30
        while not list((workspace / "indexes").glob(".x.*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        building.kill()
        building.wait()
    assert list((workspace / "indexes").glob(".x.*.part")), "a killed process cannot clean up"
    assert "x" not in [row["name"] for row in cli.json("list retrievers")["retrievers"]]
    assert_refused(cli("search --index x passage"), "There is no index 'x'.")
    cli.json(f"index --corpus {workspace / 'corpus.tsv'} --name x --kind bm25")
    assert sorted(path.name for path in (workspace / "indexes").iterdir()) == ["tiny", "x"]


def test_a_folder_that_is_no_index_is_never_replaced(cli: CommandLine, workspace: Path) -> None:
    (workspace / "indexes" / "x").mkdir()
    (workspace / "indexes" / "x" / "thesis.txt").write_text("precious")
    ran = cli(f"index --corpus {workspace / 'corpus.tsv'} --name x --kind bm25")
    assert_refused(
        ran,
        f"{workspace / 'indexes' / 'x'} exists and is not an index; choose another name or move it away.",
    )
    assert (workspace / "indexes" / "x" / "thesis.txt").read_text() == "precious"
