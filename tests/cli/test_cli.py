"""The command line as other programs call it: output, exit codes and files of each verb."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from small_workspace import (
    PASSAGES,
    RALLE_READ,
    RALLE_RETRIEVE,
    READ,
    RECORDS,
    CommandLine,
    chain,
    command,
    environment,
    everything,
    experiment,
    generate,
    in_a_process,
    interruptible,
    read_lines,
    retrieve,
    write_lines,
)

from rallebench.cli.main import _parser, main
from rallebench.cli.verbs import VERBS

ON_TINY = "--dataset tiny-qa --no-mlflow"
HIT = {"rank", "doc_id", "page_id", "title", "text", "score"}


def run_json(folder: Path, run: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "runs" / run / "run.json").read_text())
    return value


# ── help ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verb", VERBS.names())
def test_every_verb_has_help_with_an_example_that_parses(verb: str, cli: CommandLine) -> None:
    ran = cli(verb, "--help")
    assert ran.code == 0
    _, found, example = ran.out.partition("example: ")
    assert found, ran.out
    program, *words = shlex.split(example)
    assert program == "rallebench"
    assert _parser().parse_args(words).verb == verb
    for flag in ("--workspace", "--json"):
        assert flag in ran.out


def test_help_lists_every_verb_in_a_process_of_its_own() -> None:
    ran = in_a_process("--help")
    assert ran.returncode == 0
    assert all(f"\n    {verb} " in ran.stdout for verb in VERBS.names())
    assert ran.stderr == ""


def test_a_verbs_flags_may_stand_first(cli: CommandLine, capfd: pytest.CaptureFixture[str]) -> None:
    behind = cli("list retrievers", "--json")
    here = ["--workspace", str(cli.workspace)]
    for words in (
        ["--json", *here, "list", "retrievers"],
        ["--json", "--workspace", "gone", "list", *here, "retrievers"],  # the nearer one wins
    ):
        assert main(words) == 0
        assert capfd.readouterr().out == behind.out and "tiny" in behind.out


# ── list ─────────────────────────────────────────────────────────────────────


def test_list_prints_name_and_about_of_every_kind(cli: CommandLine) -> None:
    kinds = cli.json("list")
    for rows in kinds.values():
        assert all(row.keys() == {"name", "about"} and row["name"] for row in rows)
    names = {kind: {row["name"] for row in rows} for kind, rows in kinds.items()}
    for kind, some in {
        "retrievers": {"starter-bm25", "starter-minilm", "tiny"},
        "llms": {"extractive-reader", "echo", "titan"},
        "datasets": {"starter-qa", "tiny-qa"},
        "chains": {"starter", "read", "title"},
        "indexes": {"bm25", "flat"},
        "metrics": {"em", "f1", "rougel", "Rprec", "recall@5"},
        "encoders": {"hashing"},
        "workflows": {"react"},
        "environments": {"wikipedia"},
    }.items():
        assert some <= names[kind], kind


def test_list_leaves_out_backups_and_half_written_files(cli: CommandLine, workspace: Path) -> None:
    chains = workspace / "chains"
    for name in ("tiny-qa.jsonl.bak", "tiny-qa.jsonl~", ".tiny-qa.jsonl.x1.part", ".hidden.jsonl"):
        (workspace / "datasets" / name).write_text("{}")
    (workspace / "datasets" / "zipped.jsonl.gz").write_bytes(b"")
    (chains / ".read.json").write_text("{}")
    found = {row["name"]: row["about"] for row in cli.json("list datasets")["datasets"]}
    assert found["tiny-qa"].endswith("tiny-qa.jsonl")
    assert "zipped" in found and not any(name.startswith(".") for name in found)
    assert ".read" not in [row["name"] for row in cli.json("list chains")["chains"]]


def test_list_of_one_kind_prints_that_kind(cli: CommandLine) -> None:
    assert cli.json("list encoders").keys() == {"encoders"}
    paths = {row["name"]: row["about"] for row in cli.json("list datasets")["datasets"]}
    assert len(Path(paths["starter-qa"]).read_text(encoding="utf-8").splitlines()) >= 100


# ── index ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "more"),
    [("bm25", ("--set", "k1=1.2", "--set", "b=0")), ("flat", ("--encoder", "hashing"))],
)
def test_index_prints_the_manifest_with_seconds_passages_and_bytes(
    kind: str, more: tuple[str, ...], cli: CommandLine, workspace: Path
) -> None:
    corpus = f"--corpus {workspace / 'corpus.tsv'} --page-map {workspace / 'pages.json'}"
    printed = cli.json(f"index {corpus} --name mine --kind", kind, *more)
    folder = workspace / "indexes" / "mine"
    assert printed == json.loads((folder / "manifest.json").read_text())
    assert (printed["name"], printed["kind"], printed["passages"]) == ("mine", kind, len(PASSAGES))
    assert printed["seconds"] > 0
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert printed["bytes"] == sum(path.stat().st_size for path in files)
    if kind == "bm25":
        assert (printed["parameters"]["k1"], printed["parameters"]["b"]) == (1.2, 0.0)
    else:
        assert (printed["encoder"], printed["dim"]) == ("hashing/256/1", 256)
    (found,) = cli.json("search --index mine -k 1", "largest moon of Pluto")
    assert [hit["page_id"] for hit in found["hits"]] == ["p6"]


def test_index_tells_its_progress_and_is_not_built_twice(cli: CommandLine, workspace: Path) -> None:
    (workspace / "pages.json").write_text('{"1": "p1", "2": "p2"}')
    corpus = f"--corpus {workspace / 'corpus.tsv'} --page-map {workspace / 'pages.json'}"
    ran = cli(f"index {corpus} --name mine --kind bm25")
    assert ran.code == 0
    assert f"reading the corpus {len(PASSAGES)}/{len(PASSAGES)}" in ran.err
    assert f"Warning: 4 of 6 passages are not in {workspace / 'pages.json'}." in ran.err
    before = everything(workspace / "indexes" / "mine")
    assert cli(f"index {corpus} --name mine --kind bm25").code == 0
    assert everything(workspace / "indexes" / "mine") == before


def test_index_cuts_documents_into_chunks_of_a_page(cli: CommandLine, workspace: Path) -> None:
    corpus = f"--corpus {workspace / 'corpus.tsv'} --page-map {workspace / 'pages.json'} --name cut"
    printed = cli.json(f"index {corpus} --kind bm25 --chunk-size 5 --chunk-overlap 1")
    assert printed["chunking"] == {"size": 5, "overlap": 1, "unit": "words"}
    assert printed["passages"] > len(PASSAGES)
    (found,) = cli.json("search --index cut -k 1", "telescope of his own")
    assert found["hits"][0]["doc_id"].startswith("5#")
    assert found["hits"][0]["page_id"] == "p5"


# ── search ───────────────────────────────────────────────────────────────────


def test_search_prints_hits_best_first_for_every_query_in_order(cli: CommandLine) -> None:
    queries = ["moon of Neptune", "Black Sea", "", "Wörter, die keiner kennt"]
    found = cli.json("search --index tiny -k 3", *queries)
    assert [entry["query"] for entry in found] == queries
    for entry in found:
        assert entry.keys() == {"query", "hits"}
        assert all(hit.keys() == HIT for hit in entry["hits"])
        assert [hit["rank"] for hit in entry["hits"]] == list(range(1, len(entry["hits"]) + 1))
        scores = [hit["score"] for hit in entry["hits"]]
        assert scores == sorted(scores, reverse=True)
    assert [len(entry["hits"]) for entry in found] == [3, 3, 0, 0]
    first = {key: found[0]["hits"][0][key] for key in ("doc_id", "text", "title", "page_id")}
    assert tuple(first.values()) == PASSAGES[1]


def test_search_reads_a_file_and_shows_rank_title_score(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "queries.txt").write_bytes("\ufeffTriton\r\n\r\nzwölf Flüsse, Danube\n".encode())
    found = cli.json(f"search --index tiny --queries {tmp_path / 'queries.txt'} Titan")
    assert [entry["query"] for entry in found] == ["Titan", "Triton", "", "zwölf Flüsse, Danube"]
    shown = cli("search --index tiny -k 1 Charon").out
    assert "  1. [" in shown
    assert "Charon (page p6)\n     Charon is the largest moon of Pluto." in shown


# ── render ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("dialect", "template", "prompt"),
    [
        (
            "fstring",
            "{question} | {response[1]} | {wiki_id_title[0]} | {prompt[0]}",
            "who? | r2 | T, 1 | p1",
        ),
        ("eval", "question.upper() + ' / '.join(response)", "WHO?r1 / r2"),
        ("fstring", "{documents[0][0][title]}{{}}", "Paris, Texas{}"),
    ],
)
def test_render_interprets_one_template(
    dialect: str, template: str, prompt: str, cli: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "documents.json").write_text(
        json.dumps([[{"title": "Paris, Texas", "text": "A city."}]])
    )
    earlier = ("--prompt", "p1", "--response", "r1", "--response", "r2", "--wiki-id-title", "T, 1")
    asked = ("--template", template, "--dialect", dialect, "--question", "who?", *earlier)
    printed = cli.json("render", *asked, "--documents", tmp_path / "documents.json")
    assert printed == {"prompt": prompt}


def test_render_prints_the_prompt_alone_and_half_a_pair_so_that_it_parses(cli: CommandLine) -> None:
    assert cli("render --template {question}! --question Wer").out == "Wer!\n"
    ran = cli("render --template", "{question}", "--question", "\udcff\ud83d", "--json")
    assert ran.json == {"prompt": "\udcff\ud83d"} and r"\ud83d" in ran.out


# ── ask ──────────────────────────────────────────────────────────────────────


def test_ask_prints_the_answer_and_every_step(cli: CommandLine) -> None:
    asked = ("ask", "--chain", "read", "--question", "Which moon goes round Neptune?")
    printed = cli.json(*asked)
    assert printed.keys() == {"answer", "steps", "cost"}
    assert printed["answer"] == "Titan"
    search, read = printed["steps"]
    assert search.keys() == {"kind", "target", "prompt", "response", "hits", "seconds", "cached"}
    assert (search["kind"], search["target"]) == ("retrieve", "tiny")
    assert search["prompt"] == "Which moon goes round Neptune?"
    assert [hit.keys() for hit in search["hits"]] == [HIT, HIT]
    assert search["response"] == "; ".join(
        f"{hit['title']}, {hit['text']}" for hit in search["hits"]
    )
    costs = {"seconds", "cached", "tokens", "first_token_seconds", "tokens_per_second", "usd"}
    assert read.keys() == {"kind", "target", "prompt", "response", *costs}
    assert (read["usd"], printed["cost"]["usd_unknown_for"]) == (0.0, {})
    assert (read["kind"], read["target"], read["response"]) == ("generate", "titan", "Titan")
    assert read["prompt"] == READ.format(response=[search["response"]], question=search["prompt"])
    assert read["tokens"] == {"prompt": len(read["prompt"].split()), "completion": 1}
    assert [step["cached"] for step in printed["steps"]] == [False, False]
    assert [step["cached"] for step in cli.json(*asked)["steps"]] == [True, True]


def test_ask_runs_an_identity_action(cli: CommandLine) -> None:
    printed = cli.json("ask --chain title --question", "Where is Lamar County?")
    assert printed["answer"] == "Paris, Texas"
    identity = printed["steps"][1]
    assert identity.keys() == {"kind", "target", "prompt", "response", "seconds", "cached"}
    assert (identity["kind"], identity["target"], identity["prompt"]) == (
        "identity",
        "",
        "Paris, Texas",
    )


def test_ask_takes_a_chain_file_and_overrides(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(chain("mine", retrieve(), generate())))
    more = "--llm echo --set k=3 --set 2.max_tokens=2"
    printed = cli.json(f"ask --chain {tmp_path / 'mine.json'} --question moon {more}")
    assert len(printed["steps"][0]["hits"]) == 3
    assert printed["answer"] == "Passages: Titan"


def test_ask_fails_with_the_models_own_sentence(cli: CommandLine) -> None:
    ran = cli("ask --chain closed --llm mute --question x --json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.last == "The script of 'mute' has used all its 0 replies; add more, or a default."


# ── run ──────────────────────────────────────────────────────────────────────


def test_run_prints_counts_seconds_means_and_intervals(cli: CommandLine, workspace: Path) -> None:
    printed = cli.json(f"run --chain read {ON_TINY} --name first")
    assert printed.keys() == {"run", "n", "n_errors", "seconds", "metrics", "clusters", "cost"}
    assert (printed["run"], printed["n"], printed["n_errors"]) == ("first", len(RECORDS), 0)
    for metric in printed["metrics"].values():
        assert metric.keys() == {"value", "low", "high", "n"}
        assert metric["low"] is None or metric["low"] <= metric["value"] <= metric["high"]
    metrics = printed["metrics"]
    assert metrics["em"]["value"] == 1 / len(RECORDS)
    assert metrics["recall_at_5"] == metrics["recall@5"]
    assert {
        "accuracy",
        "f1",
        "rougel",
        "has_answer",
        "KILT-em",
        "KILT-f1",
        "Rprec",
    } <= metrics.keys()
    files = {path.name for path in (workspace / "runs" / "first").iterdir()}
    ours = {
        "run.json",
        "questions.jsonl",
        "episodes.jsonl",
        "scores.jsonl",
        "report.json",
        "state.json",
    }
    ralles = {"output.jsonl", "output_reduced.jsonl", "results.json", "config.json", "prompt.txt"}
    assert ours | ralles <= files
    assert "scoring" in cli(f"run --chain read {ON_TINY}").err


def test_run_uses_the_starters_dataset_by_default(cli: CommandLine, workspace: Path) -> None:
    printed = cli.json("run --chain closed --limit 3 --no-mlflow --name first")
    assert printed["n"] == 3
    assert run_json(workspace, "first")["spec"]["dataset"] == "starter-qa"
    ran = cli("run --chain read --dataset tiny-qa --no-mlflow --name x --limit -3")
    assert (ran.code, "The number of questions is -3" in ran.err) == (2, True)
    assert not (workspace / "runs" / "x").exists()


def test_run_asks_the_first_questions_of_the_file(cli: CommandLine, workspace: Path) -> None:
    questions = workspace / "datasets" / "tiny-qa.jsonl"
    more = "--limit 3 --batch-size 2 --metrics em,recall_at_5 --no-mlflow --name x"
    printed = cli.json(f"run --chain read --dataset {questions} {more}")
    assert printed["n"] == 3
    assert printed["metrics"].keys() == {"em", "recall@5", "recall_at_5"}
    assert printed["metrics"]["em"]["value"] == 1 / 3
    rows = (workspace / "runs" / "x" / "output.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == ["q1", "q2", "q3"]
    assert run_json(workspace, "x")["batch_size"] == 2


def test_run_overrides_models_retrievers_and_settings(cli: CommandLine, workspace: Path) -> None:
    more = "--llm echo --retriever starter-bm25 --set k=3 --set max_tokens=4"
    cli.json(f"run --chain read {ON_TINY} --limit 2 --name x {more}")
    search, read = run_json(workspace, "x")["spec"]["settings"]["chain"]["actions"]
    assert (search["target"], search["k"]) == ("starter-bm25", 3)
    assert (read["target"], read["generation"]) == ("echo", {"max_tokens": 4})


def test_run_for_people_shows_a_line_per_metric(cli: CommandLine) -> None:
    ran = cli(f"run --chain read {ON_TINY} --name first --metrics em")
    assert ran.code == 0
    first, _, metric, basis, _, *cost = ran.out.splitlines()
    assert first.startswith("first: 8 questions, 0 failed, ")
    assert metric.split() == ["em", "0.1250", "[0.0000,", "0.6712]", "8"]
    assert "6 articles" in basis and cost[0].startswith("All questions (")
    assert any("prompt tokens" in line for line in cost)


def test_failed_questions_are_counted_left_out_of_the_means_and_may_end_the_run(
    cli: CommandLine, workspace: Path
) -> None:
    ran = cli(f"run --chain closed --llm mute {ON_TINY} --json")
    assert (ran.code, ran.out) == (1, "")
    stopped = "The first 5 questions all failed, so the run was stopped: The script of 'mute'"
    assert ran.last.startswith(stopped)
    write_lines(workspace / "datasets" / "mixed.jsonl", [RECORDS[3], RECORDS[6], *RECORDS[:3]])
    run = "run --chain closed --llm picky --dataset mixed --no-mlflow --metrics em"
    ran = cli(f"{run} --json --max-errors 4")
    assert (ran.code, ran.json["n"], ran.json["n_errors"]) == (0, 5, 4)
    assert ran.json["metrics"]["em"] == {"value": 0.0, "low": None, "high": None, "n": 1}
    reason = "The script of 'picky' has no pattern that matches the prompt; add one, or a default."
    assert ran.last == f"4 failed: {reason}"
    ran = cli(f"{run} --max-errors 1 --batch-size 1 --name x")
    stopped = "2 questions failed and at most 1 may, so the run was stopped. The first"
    assert ran.code == 1 and ran.last.startswith(stopped)
    assert (workspace / "runs" / "x" / "report.json").exists(), "what was answered is scored"


# ── run: a folder of chains ──────────────────────────────────────────────────


@pytest.fixture
def experiments(workspace: Path) -> Path:
    """A folder of RaLLe's experiments, one of them nested, one in our own format."""
    folder = workspace / "nightly"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "no.json").write_text("{}")
    (folder / "00_read.json").write_text(json.dumps(experiment(RALLE_RETRIEVE, RALLE_READ)))
    few = experiment(RALLE_READ | {"prompt_template": "{question}"}, num_evaluate="2", batch_size=1)
    (folder / "deep" / "er" / "01_closed.json").write_text(json.dumps(few))
    (folder / "own.json").write_text(json.dumps(chain("anything", retrieve(k=1), generate())))
    return folder


def test_every_chain_of_a_folder_runs(cli: CommandLine, workspace: Path, experiments: Path) -> None:
    found = cli.json(f"run --chain {experiments} --no-mlflow --name night --limit -1")
    assert [result["run"] for result in found] == [
        "night-00_read",
        "night-deep-er-01_closed",
        "night-own",
    ]
    assert all(
        result.keys() == {"run", "n", "n_errors", "seconds", "metrics", "clusters", "cost"}
        for result in found
    )
    made = {result["run"]: run_json(workspace, result["run"]) for result in found}
    assert [m["spec"]["dataset"] for m in made.values()] == ["tiny-qa", "tiny-qa", "starter-qa"]
    assert [m["batch_size"] for m in made.values()] == [3, 1, 20]
    names = [m["spec"]["settings"]["chain"]["name"] for m in made.values()]
    assert names == ["00_read", "deep-er-01_closed", "own"]


def test_num_evaluate_of_a_ralle_file_is_its_limit(cli: CommandLine, experiments: Path) -> None:
    found = cli.json(f"run --chain {experiments / 'deep'} --no-mlflow --name few")
    assert [(result["run"], result["n"]) for result in found] == [("few-er-01_closed", 2)]
    alone = experiments / "deep" / "er" / "01_closed.json"
    assert cli.json(f"run --chain {alone} --no-mlflow")["n"] == 2


def test_a_folder_with_runs_is_continued_or_renamed(cli: CommandLine, experiments: Path) -> None:
    again = f"run --chain {experiments / 'deep'} --no-mlflow --name few"
    cli.json(again)
    assert cli(again).last.endswith("; choose another --name, or add --resume.")


def test_runs_of_a_folder_are_titled_by_their_name_or_else_by_the_folder(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    for name in ("", " --name few"):
        cli.json(f"run --chain {experiments / 'deep'} --no-mlflow{name}")
    begun = (workspace / "experiments").glob("*/experiment.json")
    titles = [json.loads(file.read_text())["request"]["settings"]["title"] for file in begun]
    assert sorted(titles) == ["deep", "few"]


def test_overrides_apply_to_every_chain_that_has_such_an_action(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    more = "--llm echo --retriever starter-bm25 --set k=4 --batch-size 2 --limit 1"
    found = cli.json(f"run --chain {experiments} {ON_TINY} --name x {more}")
    assert [result["n"] for result in found] == [1, 1, 1]
    for result in found:
        made = run_json(workspace, result["run"])
        assert (made["batch_size"], made["spec"]["dataset"]) == (2, "tiny-qa")
        for action in made["spec"]["settings"]["chain"]["actions"]:
            if action["kind"] == "retrieve":
                assert (action["target"], action["k"]) == ("starter-bm25", 4)
            else:
                assert action["target"] == "echo"


def test_one_wrong_chain_of_a_folder_is_found_before_any_is_run(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    bad = experiment(RALLE_RETRIEVE, RALLE_READ | {"llm_name": "lama"})
    (experiments / "zz.json").write_text(json.dumps(bad))
    before = everything(workspace)
    ran = cli(f"run --chain {experiments} --no-mlflow")
    assert ran.code == 2
    assert ran.last.startswith(
        f"{experiments / 'zz.json'}: Action 2 of 'zz': There is no language model 'lama'."
    )
    assert everything(workspace) == before


def test_a_chain_that_fails_does_not_keep_the_others_from_running(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    mute = experiment(RALLE_READ | {"llm_name": "mute", "prompt_template": "{question}"})
    (experiments / "00_mute.json").write_text(json.dumps(mute))
    ran = cli(f"run --chain {experiments} {ON_TINY} --name x --json")
    assert ran.code == 1 and [result["run"] for result in ran.json] == [
        "x-00_read",
        "x-deep-er-01_closed",
        "x-own",
    ]
    assert ran.last.startswith(
        "1 of 4 chains could not be run. 00_mute: The first 5 questions all failed"
    )
    for name in ("x-00_read", "x-deep-er-01_closed", "x-own"):
        assert json.loads((workspace / "runs" / name / "report.json").read_text())["complete"]


def test_a_stopped_folder_is_resumed_with_the_chains_that_never_began(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    first = f"run --chain {experiments / '00_read.json'} --no-mlflow --name x-00_read"
    # The fingerprint covers the chain's name, so it must be the name from the folder.
    cli.json(first)
    found = cli.json(f"run --chain {experiments} --no-mlflow --name x --resume")
    assert [result["run"] for result in found] == ["x-00_read", "x-deep-er-01_closed", "x-own"]
    lines = (workspace / "runs" / "x-00_read" / "episodes.jsonl").read_text().splitlines()
    assert len(lines) == len(RECORDS), "nothing was asked again"


# ── run: stopping and continuing ─────────────────────────────────────────────


def interrupt(
    workspace: Path, signum: int, arguments: str, after: str, program: list[str] | None = None
) -> tuple[int, str]:
    """Start a run, send a signal once ``after`` appears on stderr, return (exit code, the rest of stderr)."""
    begin = program or command()
    words = [*begin, "run", "--workspace", str(workspace), "--no-mlflow", *arguments.split()]
    running = subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    seen = ""
    while after not in seen:
        line = running.stderr.readline()
        assert line, seen
        seen += line
    running.send_signal(signum)
    out, err = running.communicate(timeout=30)
    assert out == ""
    return running.returncode, seen + err


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_exits_130_and_is_continued_as_if_nothing_had_happened(
    signum: int, cli: CommandLine, workspace: Path
) -> None:
    run = "--chain read --dataset tiny-qa --llm slow --batch-size 1 --metrics em,f1"
    code, err = interrupt(workspace, signum, f"{run} --name x", after="1/8")
    assert code == 130, err
    last = err.splitlines()[-1]
    assert last.startswith("Stopped after ") and last.endswith("continue with --name x --resume.")
    report = json.loads((workspace / "runs" / "x" / "report.json").read_text())
    assert not report["complete"]
    assert 1 <= report["n_done"] < report["n"] == len(RECORDS)
    assert json.loads((workspace / "runs" / "x" / "state.json").read_text())["state"] == "stopped"
    resumed = cli.json(f"run {run} --no-mlflow --name x --resume")
    whole = cli.json(f"run {run} --no-mlflow --name y")
    assert resumed["metrics"] == whole["metrics"]
    assert (resumed["n"], resumed["n_errors"]) == (len(RECORDS), 0)
    qids = [line["qid"] for line in read_lines(workspace / "runs" / "x" / "episodes.jsonl")]
    assert len(qids) == len(set(qids)) == len(RECORDS), "no question was asked twice"


@pytest.mark.slow
def test_a_folder_of_chains_that_is_stopped_is_continued_under_its_name(
    cli: CommandLine, workspace: Path, experiments: Path
) -> None:
    folder = f"--chain {experiments} --dataset tiny-qa --llm slow --name x --batch-size 1"
    code, err = interrupt(workspace, signal.SIGINT, folder, after="00_read: 1/8")
    last = "The batch was stopped in 'x-00_read'; continue with --name x --resume."
    assert (code, err.splitlines()[-1]) == (130, last)
    found = cli.json(f"run {folder} --no-mlflow --resume")
    assert [(result["run"], result["n"]) for result in found] == [
        ("x-00_read", 8),
        ("x-deep-er-01_closed", 2),
        ("x-own", 8),
    ]
    report = json.loads((workspace / "experiments" / "x" / "report.json").read_text())
    assert [row["variant"] for row in report["variants"]] and report["sweep"] == "x"


def test_a_second_interrupt_does_not_wait_for_the_batch(workspace: Path) -> None:
    models = json.loads((workspace / "llms.json").read_text())
    models["slow"]["settings"]["delay"] = 60
    (workspace / "llms.json").write_text(json.dumps(models))
    words = command(f"run --chain closed --llm slow {ON_TINY} --name x --workspace", workspace)
    running = subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for awaited in ("running", "Stopping after the current batch"):
        while awaited not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=20)
    assert running.returncode == 130
    assert err.splitlines()[-1] == "Stopped by you; what was finished is kept."
    assert json.loads((workspace / "runs" / "x" / "state.json").read_text())["state"] == "stopped"


@pytest.mark.slow
def test_an_interrupt_while_a_model_loads_ends_at_once_and_starts_no_run(workspace: Path) -> None:
    code = (
        "import time\nfrom rallebench.llms import LLMS\n"
        "LLMS.register('never-ready')(lambda name, **settings: time.sleep(60))\n"
        "from rallebench.cli.main import main\nraise SystemExit(main())"
    )
    started = time.monotonic()
    run, after = "--chain closed --dataset tiny-qa --llm never-ready:x", "loading never-ready:x"
    ended, err = interrupt(workspace, signal.SIGINT, run, after, [sys.executable, "-c", code])
    assert ended == 130, err
    # The waiting thread may notice the interrupt before or after the load itself.
    ends = ("Loading never-ready:x was cancelled.", "Stopped by you; what was finished is kept.")
    assert err.splitlines()[-1] in ends
    assert time.monotonic() - started < 30
    assert not (workspace / "runs").exists()


# ── score, pick, track ───────────────────────────────────────────────────────


def test_score_of_a_runs_own_file_equals_the_runs_report(cli: CommandLine, workspace: Path) -> None:
    metrics = cli.json(f"run --chain title {ON_TINY} --name x")["metrics"]
    guess = workspace / "runs" / "x" / "output_reduced.jsonl"
    printed = cli.json(f"score --gold {workspace / 'datasets' / 'tiny-qa.jsonl'} --guess {guess}")
    for part in ("downstream", "kilt"):
        for name, value in printed[part].items():
            assert value == pytest.approx(metrics[name]["value"], abs=1e-12), name
    assert printed["retrieval"]["recall@5"] == metrics["recall@5"]["value"]


def test_pick_keeps_the_questions_that_the_index_can_answer(
    cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    foreign = {
        **RECORDS[0],
        "id": "far",
        "output": [{"answer": "x", "provenance": [{"wikipedia_id": "p99"}]}],
    }
    write_lines(tmp_path / "all.jsonl", [foreign, *RECORDS])
    output = tmp_path / "picked.jsonl"
    asked = f"--dataset {tmp_path / 'all.jsonl'} --index tiny --number 3 --output {output}"
    assert cli.json(f"pick {asked}") == {"output": str(output), "kept": 3, "read": 4, "without": 1}
    assert read_lines(output) == [*RECORDS[:3]]


@pytest.mark.slow
def test_track_sends_a_run_to_mlflow_and_prints_its_id(
    cli: CommandLine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    cli.json(f"run --chain read {ON_TINY} --name x")
    printed = cli.json("track x")
    assert printed.keys() == {"run", "mlflow_run_id"}
    assert printed["run"] == "x"
    remembered = json.loads((workspace / "runs" / "x" / "mlflow.json").read_text())
    assert remembered["run_id"] == printed["mlflow_run_id"]
    assert (workspace / "mlflow.db").exists()


# ── standard output and standard error ───────────────────────────────────────


@pytest.mark.slow
def test_a_process_prints_one_document_on_stdout_and_all_else_on_stderr(workspace: Path) -> None:
    calls: list[tuple[str, ...]] = [
        ("list",),
        ("search", "--index", "starter-bm25", "Titan"),
        ("run", "--chain", "read", "--dataset", "tiny-qa", "--no-mlflow"),
    ]
    for verb, *arguments in calls:
        ran = in_a_process(verb, "--workspace", workspace, "--json", *arguments)
        assert ran.returncode == 0, ran.stderr
        json.loads(ran.stdout)
        assert "Traceback" not in ran.stderr and "ResourceWarning" not in ran.stderr
    assert "scoring" in ran.stderr


def test_what_a_library_prints_meanwhile_goes_to_stderr() -> None:
    code = (
        "import os\nfrom rallebench.cli.main import main\nfrom rallebench.cli.verbs import VERBS, Result\n"
        "@VERBS.register('noisy', order=0, example='', flags=())\n"
        "def noisy(args): return [print('from Python'), os.write(1, b'from C\\n'), Result({'fine': 'yes'}, ())][2]\n"
        "raise SystemExit(main(['noisy', '--json']))"
    )
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, {"fine": "yes"}), ran.stderr
    assert sorted(ran.stderr.splitlines()) == ["from C", "from Python"]


def test_a_reader_that_goes_away_is_no_error(workspace: Path) -> None:
    process = subprocess.Popen(
        command("list --workspace", workspace, "--json"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=30) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_under_stdout_is_one_sentence(workspace: Path) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            command("list --workspace", workspace, "metrics"),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (1, "The output failed: No space left on device.\n")


# ── a wrong request ──────────────────────────────────────────────────────────

WRONG: dict[str, tuple[str, str]] = {
    "no verb": ("", "required: VERB"),
    "unknown verb": ("serch", "There is no verb 'serch'. Did you mean 'search'"),
    "unknown kind": ("list metric", "There is no kind 'metric'. Did you mean 'metrics'?"),
    "unknown flag": ("list --jsn", "Unrecognized arguments: --jsn. Did you mean '--json'?"),
    "flag of no verb": ("list --xyzzy", "Unrecognized arguments: --xyzzy. See: rallebench list"),
    "no index": ("search x", "required: --index"),
    "unknown index": ("search --index tny x", "There is no index 'tny'. Did you mean 'tiny'?"),
    "k below 1": ("search --index tiny -k 0 x", "-k is 0; it must be at least 1."),
    "k no number": ("search --index tiny -k five x", "invalid int value: 'five'"),
    "no query": ("search --index tiny", "No query was given; write one after the flags"),
    "no file of queries": ("search --index tiny --queries none.txt", "none.txt does not exist."),
    "template": ("render --template '{qestion}'", "no variable 'qestion', did you mean 'question'"),
    "attribute": ("render --template '{question.x}' --question q", "attributes are not allowed"),
    "dialect": ("render --template x --dialect jinja", "'jinja' is not one of"),
    "documents": ("render --template x --documents llms.json", "list of passages per action"),
    "unknown chain": ("ask --chain reed --question q", "no chain 'reed'. Did you mean 'read'?"),
    "chain text": (f"ask --question q --chain '{{\"actions\": [{'x' * 300}'", "There is no chain"),
    "empty question": (
        "ask --chain read --question ' '",
        "The question is empty; write it behind --question.",
    ),
    "unknown model": ("ask --chain read --llm x --question q", "no language model 'x'"),
    "misspelt setting": (
        "ask --chain read --llm misspelt --question q",
        "'misspelt': There is no setting 'dealy'. Did you mean 'delay'",
    ),
    "unknown retriever": (
        f"run --chain read --retriever x {ON_TINY}",
        "Action 1 of 'read': there is no retriever 'x'. Known: ",
    ),
    "unknown dataset": ("run --chain read --dataset tinyqa", "Did you mean 'tiny-qa'"),
    "no dataset file": (
        "run --chain read --dataset x.jsonl",
        "x.jsonl is not a file of questions.",
    ),
    "long dataset": (f"run --chain read --dataset {'x' * 300}", "There is no dataset"),
    "unknown metric": (
        f"run --chain read {ON_TINY} --metrics rougeL",
        "Did you mean 'rouge-L' or 'rougel'?",
    ),
    "cut-off": (f"run --chain read {ON_TINY} --metrics recall@0", "asks for a cut-off of 0"),
    "batch size": (f"run --chain read {ON_TINY} --batch-size 0", "The batch size is 0;"),
    "max errors": (
        f"run --chain read {ON_TINY} --max-errors -1",
        "The most failed questions are -1;",
    ),
    "set": (f"run --chain read {ON_TINY} --set k", "The setting 'k' is not key=value."),
    "set of a suite": ("suite kilt-nq --set k", "--set 'k' is not key=value."),
    "set without a key": ("suite kilt-nq --set =3", "--set '=3' is not key=value."),
    "set k": (
        f"run --chain read {ON_TINY} --set k=0",
        "k must be a whole number from 1 to 10,000.",
    ),
    "set huge k": (f"run --chain read {ON_TINY} --set k=10001", "from 1 to 10,000."),
    "set k of none": (
        f"run --chain closed {ON_TINY} --set k=5",
        "no action of this chain has this setting.",
    ),
    "set k of a model": (f"run --chain read {ON_TINY} --set 2.k=5", "'generate' and has no 'k'."),
    "set tokens of a search": (
        f"run --chain read {ON_TINY} --set 1.max_tokens=5",
        "action 1 is of the kind 'retrieve' and has no 'max_tokens'.",
    ),
    "set of no action": (f"run --chain read {ON_TINY} --set 3.k=5", "the chain has 2 actions."),
    "set odd digit": (
        f"run --chain title {ON_TINY} --set ².k=5",
        "no action of this chain has this setting.",
    ),
    "set temperature": (f"run --chain read {ON_TINY} --set temperature=9", "a number from 0 to 5."),
    "run name": (f"run --chain read {ON_TINY} --name ../x", "cannot be a folder name"),
    "long run name": (
        f"run --chain read {ON_TINY} --name {'土' * 90}",
        "is too long; use at most 100 characters",
    ),
    "limit and sample": (f"run --chain read {ON_TINY} --limit 2 --sample 2", "exclude each other"),
    "sample of none": (f"run --chain read {ON_TINY} --sample 0", "--sample is 0; it must be"),
    "resume nothing": (f"run --chain read {ON_TINY} --resume", "--resume needs --name RUN"),
    "resume unknown": (f"run --chain read {ON_TINY} --resume --name x", "There is no run 'x' in "),
    "folder of nothing": ("run --chain datasets", "holds no chains (*.json, *.yaml)."),
    "index kind": (
        "index --corpus corpus.tsv --name x --kind hsnw",
        "There is no index kind 'hsnw'; known: bm25, flat",
    ),
    "index name": ("index --corpus corpus.tsv --name a/b --kind bm25", "folder name"),
    "long index name": (f"index --corpus corpus.tsv --name {'x' * 300} --kind bm25", "folder name"),
    "corpus": ("index --corpus none.tsv --name x --kind bm25", "none.tsv does not exist."),
    "corpus name": (
        "index --corpus wikipedia --name x --kind bm25",
        "wikipedia does not exist, neither as a file nor as an imported corpus. Imported: none.",
    ),
    "index setting": (
        "index --corpus corpus.tsv --name x --kind bm25 --set k2=1",
        "The index kind 'bm25' has no setting 'k2'; it has k1, b, tokens and memory.",
    ),
    "index value": (
        "index --corpus corpus.tsv --name x --kind bm25 --set b=high",
        "b=high: b must be a number from 0 to 1.",
    ),
    "encoder": (
        "index --corpus corpus.tsv --name x --kind flat --encoder hash",
        "There is no encoder 'hash'. Did you mean 'hashing'?",
    ),
    "chunk size": (
        "index --corpus corpus.tsv --name x --kind bm25 --chunk-size 0",
        "The chunk size is 0; it must be at least 1.",
    ),
    "chunk overlap": (
        "index --corpus corpus.tsv --name x --kind bm25 --chunk-overlap 3",
        "An overlap needs a chunk size; name one with --chunk-size.",
    ),
    "taken index name": (
        "index --corpus corpus.tsv --name tiny --kind flat --encoder hashing",
        "An index 'tiny' exists already and holds something else (bm25 over corpus.tsv, 6 passages)",
    ),
    "page map": (
        "index --corpus corpus.tsv --name x --kind bm25 --page-map none.json",
        "none.json does not exist.",
    ),
    "gold": ("score --gold none.jsonl --guess none.jsonl", "none.jsonl does not exist."),
    "ks": ("score --gold a --guess b --ks 1,five", "--ks '1,five' should be whole numbers"),
    "suite": (
        "score --gold a --guess b --suite glue",
        "There is no form of predictions 'glue'. Known: crud, kilt,",
    ),
    "pick number": (
        "pick --dataset tiny-qa --index tiny --number 0 --output o.jsonl",
        "--number is 0; it must be at least 1.",
    ),
    "unknown run": ("track none", "There is no run 'none' in "),
    "base settings": ("list --base-settings none", "none"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_says_what_and_how_exits_2_and_writes_nothing(
    case: str, capfd: pytest.CaptureFixture[str], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, message = WRONG[case]
    monkeypatch.chdir(workspace)
    before = everything(workspace)
    ran = CommandLine(capfd, workspace)(*(shlex.split(words) or [""]))
    assert ran.code == 2
    assert message in (ran.last if words else message)
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert everything(workspace) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "--index", "none", "x"),
        ("index", "--corpus", "none.tsv", "--name", "x", "--kind", "bm25"),
        ("ask", "--chain", "starter", "--llm", "none", "--question", "q"),
        ("run", "--chain", "starter", "--dataset", "none"),
        ("run", "--chain", "starter", "--llm", "scripted:x", "--retriever", "starter-bm25"),
        ("track", "none"),
    ],
)
def test_a_refused_request_does_not_even_make_the_workspace(
    arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = CommandLine(capfd, tmp_path / "not" / "yet")(*arguments)
    assert ran.code == 2
    assert list((tmp_path / "not").glob("*")) == []


def test_a_file_is_no_workspace(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = CommandLine(capfd, tmp_path / "file")("list")
    assert ran.code == 2
    assert ran.last == f"The workspace {tmp_path / 'file'} is a file; give a folder."


@pytest.mark.slow
def test_an_interrupted_build_leaves_nothing(cli: CommandLine, workspace: Path) -> None:
    corpus = workspace / "long.tsv"
    corpus.write_text("".join(f"{n}\tpassage number {n}\tt\n" for n in range(40_000)))
    words = ("--corpus", corpus, "--name", "x", "--kind", "flat", "--encoder", "hashing")
    building = subprocess.Popen(
        interruptible(command("index --workspace", workspace, *words)),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert building.stderr is not None
    while "encoding passages" not in building.stderr.readline():
        assert building.poll() is None
    building.send_signal(signal.SIGINT)
    _, err = building.communicate(timeout=20)
    assert building.returncode == 130, err
    assert "Traceback" not in err
    assert [path.name for path in (workspace / "indexes").iterdir()] == ["tiny"]
    corpus.write_text("1\tshort now\tt\n")
    assert cli.json("index", *words)["passages"] == 1


def test_the_plan_of_a_dataset_builder_names_its_stages_and_writes_nothing(
    cli: CommandLine, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "article.txt").write_text("Titan is the largest moon of Saturn. " * 20)
    words = f"build-dataset barag --articles {tmp_path / 'article.txt'} --llm titan"
    before = everything(workspace)
    planned = cli.json(f"{words} --name mine --plan --probe 0")
    assert planned["rows"][0] == "1-articles" and planned["probe"] is None
    table = cli(f"{words} --name mine --plan")
    assert table.code == 0 and "unknown" in table.out, "what rows cost is not known, which is not 0"
    assert everything(workspace) == before
    assert "--probe goes with --plan" in cli(f"{words} --name mine --probe 2").last
