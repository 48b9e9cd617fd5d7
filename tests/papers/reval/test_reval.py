"""R-Eval's systems from the command line: feasible pairs, resumed, one table with ranks; its logs written, scored and read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from full_disk import no_file_grows_beyond
from performing import plan
from small_workspace import (
    PASSAGES,
    QUESTIONS,
    CommandLine,
    everything,
    make_workspace,
    read_lines,
    scripted,
    write_lines,
)

from rallebench.cli.main import main
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.starter import STARTER
from rallebench.datasets.r_eval import as_record
from rallebench.experiments import SUITES
from rallebench.workspace.paths import WorkspaceFolder

TITLES = {page: title for _, _, title, page in PASSAGES}
SCHOLARS = read_lines(STARTER / "questions" / "starter-scholar-easy.jsonl")[:3]


def acts(question: str, action: str, finish: str) -> dict[str, str]:
    """Replies of an oracle to one question in ReAct: search first, then finish."""
    before = rf"(?s)Question: {re.escape(question)}\s*\nThought 1:.*"
    return {f"{before}Action 1:$": action, f"{before}Action 2:$": finish}


def oracle() -> dict[str, Any]:
    """A model that knows the page of every question, and its answer."""
    replies = {r"Thought \d+:$": "I think."}
    for _, question, answer, page in QUESTIONS:
        replies |= acts(question, f"Search[{TITLES[page]}]", f"Finish[{answer}]")
    for record in SCHOLARS:
        name = re.search(r"(?:of|is|does) ([\w' -]+?) (?:at|hold|of)", record["input"])
        search = f"searchPerson(name={name[1] if name else 'x'})"
        replies |= acts(record["input"], search, f"Finish({record['output'][0]['answer']})")
    return {"replies": replies, "default": "Titan"}


GUESSES = {r"Action \d+:$": "Finish[Titan]", r"Thought \d+:$": "Hm."}
MODELS: Mapping[str, Any] = {
    **scripted(
        {
            "oracle-7b": oracle(),
            "guess-13b": {"replies": GUESSES, "default": "print('Titan')"},
            "broken": {"replies": ["only one"]},
        }
    ),
    "absent": {"backend": "transformers", "settings": {"model": "/nowhere/model"}},
}


BOTH = ("tasks=hotpotqa,soay_easy", "retriever=tiny")


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("made") / "w")
    entries = json.loads((folder / "llms.json").read_text()) | dict(MODELS)
    (folder / "llms.json").write_text(json.dumps(entries))
    records = [
        {"id": q, "input": text, "output": [{"answer": a}], "environment": "wiki"}
        for q, text, a, _ in QUESTIONS
    ]
    write_lines(folder / "datasets" / "hotpotqa.jsonl", records)
    write_lines(folder / "datasets" / "starter-scholar-easy.jsonl", SCHOLARS)
    kola = folder / "kola" / "data" / "KoLA2"
    kola.mkdir(parents=True)
    theirs = {"environment": "wiki", "dataset": "hotpotqa"}
    rows = [as_record(text, [a, "Titan"], **theirs) for _, text, a, _ in QUESTIONS]
    write_lines(kola / "3-1_hotpotqa.jsonl", rows)
    systems = ("workflows=react,pal,chain-of-thought", "models=oracle-7b,guess-13b")
    flags = [word for pair in (*BOTH, *systems) for word in ("--set", pair)]
    command = ("suite", "reval", "--workspace", str(folder), "--name", "g", "--no-mlflow")
    assert main([*command, *flags]) == 0
    return folder


def reval(cli: CommandLine, *pairs: str, name: str = "n", **more: Any) -> Any:
    return cli.report("reval", *pairs, run=name, **more)


def test_a_grid_has_scores_means_and_ranks_and_says_what_is_not_feasible(cli: CommandLine) -> None:
    grid = json.loads((cli.workspace / "experiments" / "g" / "report.json").read_text())
    react = "react · oracle-7b"
    expected = ["react oracle-7b hotpotqa", "chain-of-thought oracle-7b hotpotqa"]
    assert [part["label"] for part in grid["parts"]][:2] == expected
    assert grid["means"][react] == {"wiki": 1.0, "aminer": 1.0, "all": 1.0}
    ranks = ("Wikipedia KA", "scholar KS", "wiki", "aminer", "all")
    assert grid["ranks"][react] == dict.fromkeys(ranks, 1)
    assert {row["state"] for row in grid["cells"] if row["workflow"] == "pal"} == {"not feasible"}
    sentence = "pal · oracle-7b is not feasible on hotpotqa, soay_easy: it runs programs"
    assert sum(sentence in note for note in grid["notes"]) == 1
    scores, ranks, endings, questions, tests = grid["tables"]
    assert [row[0].split(" less ")[1] for row in tests["rows"]] == [react] * 3, "the best"
    whys = {(row["table"], row["why"]) for row in grid["published"]}
    assert whys == {
        (name, "R-Eval has not published the 100 questions that it drew for each task")
        for name in ("reval_table3", "reval_table5")
    }
    tasks = ["hotpotqa", "soay_easy"]
    means = ["Wikipedia mean", "scholar mean", "all mean"]
    assert scores["columns"] == ["system", *tasks, *means]
    assert len(scores["rows"]) == 4 and ranks["rows"][0][1:] == [1, 1, 1, 1, 1]
    assert [row[2] for row in ranks["rows"]] == [
        1,
        2,
        3,
        4,
    ]  # the others know nothing about scholars
    pools = [["hotpotqa", "knowledge application", 8, 0, 8, 7400]]
    assert questions["rows"] == [*pools, ["soay_easy", "knowledge seeking", 3, 0, 3, 12700]]
    assert endings["columns"][:2] == ["system", "answered"]
    ended = sum(cell["n"] - cell["n_errors"] for cell in grid["cells"])
    assert sum(sum(row[1:]) for row in endings["rows"]) == ended
    folder = cli.workspace / "experiments" / "g"
    lines = (folder / "scores.csv").read_text().splitlines()
    assert lines[1] == "react · oracle-7b,1.0,1.0,1.0,1.0,1.0"
    assert r"hotpotqa & rank & soay\_easy & rank" in (folder / "table.tex").read_text()


def test_the_plots_of_a_grid_show_what_its_runs_scored(cli: CommandLine) -> None:
    grid = json.loads((cli.workspace / "experiments" / "g" / "report.json").read_text())
    plots = {plot["title"]: plot for plot in grid["plots"]}
    scored = {p["label"]: 100 * p["metrics"]["f1_yes_no"]["value"] for p in grid["parts"]}
    levels = {"Wikipedia KA": "hotpotqa", "scholar KS": "soay_easy"}
    by_level = plots["F1 by environment and level: react"]
    assert by_level["series"].keys() == {"oracle-7b", "guess-13b"} and by_level["high"] == 100
    for llm, points in by_level["series"].items():
        assert {axis: levels[axis] for axis, _ in points} == levels
        assert [y for _, y in points] == [
            scored[f"react {llm} {levels[axis]}"] for axis, _ in points
        ]
    rings = plots["Errors: react · guess-13b (11 questions)"]
    right = {side: share for side, share, *_ in rings["series"]["right and wrong"]}
    wrong = [scored[f"react guess-13b {task}"] < 50 for task in levels.values()]
    assert rings["kind"] == "rings" and sum(right.values()) == pytest.approx(100)
    assert wrong == [True, True] and right["WA"] > 50 and rings["labels"]["EM"]
    bubbles = plots["F1 against seconds a question: Wikipedia"]
    for system, ((x, y, *_),) in bubbles["series"].items():
        workflow, llm = system.split(" · ")
        assert y == scored[f"{workflow} {llm} hotpotqa"]
        episodes = cli.episodes(f"g {workflow} {llm} hotpotqa")
        seconds = [sum(step["seconds"] for step in line["steps"]) for line in episodes]
        assert x == pytest.approx(sum(seconds) / len(seconds))


def test_every_cell_is_an_ordinary_run_of_an_agent(cli: CommandLine) -> None:
    runs, name = cli.workspace / "runs", "react oracle-7b hotpotqa"
    agent = ("--workflow", "react", "--env", "wikipedia", "--retriever", "tiny")
    models = ("--llm", "oracle-7b", "--dataset", "hotpotqa")
    cli.json("run", *agent, *models, "--name", name, "--no-mlflow")
    of_grid, alone = (
        json.loads((runs / run / "run.json").read_text())["spec"] for run in (f"g {name}", name)
    )
    assert of_grid["settings"] == alone["settings"]


def test_one_more_model_asks_only_that_one(cli: CommandLine) -> None:
    reval(cli, *BOTH, "models=oracle-7b")
    run = cli.workspace / "runs" / "n react oracle-7b hotpotqa" / "episodes.jsonl"
    before = run.read_bytes()
    found = reval(cli, *BOTH, "models=oracle-7b,guess-13b")
    assert len(found["parts"]) == 4 and run.read_bytes() == before


def test_programs_run_only_where_they_are_allowed_and_with_their_tool(cli: CommandLine) -> None:
    pairs = ("tasks=hotpotqa", "retriever=tiny", "workflows=pal")
    first = {"llm": "guess-13b", "flags": ("--limit", "1")}
    sentence = "No system can be run: pal · guess-13b on hotpotqa: it runs programs"
    assert sentence in cli.suite("reval", *pairs, **first).last
    assert not (cli.workspace / "experiments" / "n").exists()
    allowed = {**first, "flags": (*first["flags"], "--allow-python")}
    assert reval(cli, *pairs, **allowed)["means"]["pal · guess-13b"]["all"] == 1.0


def test_a_system_that_fails_costs_the_others_nothing(cli: CommandLine) -> None:
    models = "models=broken,absent,oracle-7b"
    ran = cli.suite("reval", *BOTH, models, run="n", flags=("--json",))
    assert ran.code == 1
    assert ran.last.startswith("4 of 6 parts failed: react broken hotpotqa, react broken soay_easy")
    assert "Start the suite again with --name 'n'" in ran.last
    found = ran.json
    assert found["means"]["react · oracle-7b"]["all"] == 1.0
    states = {(row["llm"], row["task"]): row["state"] for row in found["cells"]}
    expected = ["done", "failed", "failed"]
    assert [states[llm, "soay_easy"] for llm in ("oracle-7b", "absent", "broken")] == expected
    notes = found["notes"]
    assert sum(note.startswith("react absent") and "/nowhere" in note for note in notes) == 2
    (broken,) = [note for note in notes if note.startswith("react broken soay_easy failed: ")]
    assert "has used all its 1 replies" in broken
    assert "react · absent" not in found["means"]


def test_a_full_disk_stops_the_grid_with_its_mend_and_it_goes_on_later(cli: CommandLine) -> None:
    pairs = (*BOTH, "models=oracle-7b,guess-13b")
    with no_file_grows_beyond(2_000):
        ran = cli.suite("reval", *pairs, run="n", flags=("--json",))
    assert ran.code == 1 and ran.last.startswith("Could not write"), ran.err
    assert "Traceback" not in ran.err and "No system could be run" not in ran.err
    found = reval(cli, *pairs)
    assert [cell["state"] for cell in found["cells"]] == ["done"] * 4


def test_the_tasks_of_one_environment_are_a_suite_of_their_own(cli: CommandLine) -> None:
    three = ("--limit", "3")
    found = cli.report("reval-scholar", llm="oracle-7b", run="s", flags=three)
    labels = {part["label"].removeprefix("react oracle-7b ") for part in found["parts"]}
    assert labels == {"soay_easy", "profiling", "soay_hard"}


def test_an_environment_that_does_not_fit_a_task_is_no_pair(cli: CommandLine) -> None:
    found = reval(cli, *BOTH, "env=wikipedia", llm="oracle-7b")
    assert [part["label"] for part in found["parts"]] == ["react oracle-7b hotpotqa"]
    why = "on soay_easy: it takes the environment scholar, not wikipedia"
    assert any(why in note for note in found["notes"])


def test_revals_own_files_are_drawn_from_and_their_first_answer_counts(cli: CommandLine) -> None:
    pairs = (f"data={cli.workspace / 'kola'}", "retriever=tiny", "instances=4")
    system = "react · guess-13b"
    assert reval(cli, *pairs, llm="guess-13b")["means"][system]["all"] == 1.0
    original = reval(cli, *pairs, "compat=original", llm="guess-13b", name="o")
    run = cli.workspace / "runs" / "o react guess-13b hotpotqa"
    answers = [row["output"][0]["answer"] for row in read_lines(run / "questions.jsonl")]
    assert original["parts"][0]["n"] == 4
    assert original["means"][system]["all"] == answers.count("Titan") / 4


HOTPOT = [
    {
        "_id": qid,
        "question": text,
        "answer": answer,
        "supporting_facts": [[TITLES[page], 0]],
        "context": [[TITLES[page], [f"The beginning of {TITLES[page]}."]]],
    }
    for qid, text, answer, page in QUESTIONS
]


def test_public_sets_are_read_by_their_names_with_their_demonstrations(cli: CommandLine) -> None:
    folder = cli.workspace / "public"
    folder.mkdir()
    (folder / "hotpot_dev_distractor_v1.json").write_text(json.dumps(HOTPOT))
    pairs = (f"data={folder}", "retriever=tiny", "instances=2", "demonstrations=2")
    found = reval(cli, *pairs, llm="oracle-7b")
    assert [part["label"] for part in found["parts"]] == ["react oracle-7b hotpotqa"]
    assert found["tables"][3]["rows"] == [["hotpotqa", "knowledge application", 2, 2, 8, 7400]]
    run = cli.workspace / "runs" / "n react oracle-7b hotpotqa"
    agent = json.loads((run / "run.json").read_text())["spec"]["settings"]["agent"]
    asked = {row["input"] for row in read_lines(run / "questions.jsonl")}
    assert len(agent["shots"]) == 2 == agent["settings"]["shots"]
    assert not asked & set(agent["shots"])
    steps = read_lines(run / "episodes.jsonl")[0]["steps"]
    prompt = json.dumps(steps[0], ensure_ascii=False).replace("\\n", "\n")
    shown = next(row for row in HOTPOT if row["question"] == agent["shots"][0])
    title = shown["supporting_facts"][0][0]
    assert f"Question: {shown['question']}\nThought 1: I need to find {title}.\n" in prompt
    assert f"Action 1: Search[{title}]\nObservation 1: The beginning of {title}.\n" in prompt
    assert f"Action 2: Finish[{shown['answer']}]" in prompt
    again = reval(cli, *pairs, llm="oracle-7b", name="again", flags=("--seed", "1"))
    other = cli.workspace / "runs" / "again react oracle-7b hotpotqa" / "run.json"
    drawn = json.loads(other.read_text())["spec"]["settings"]["agent"]["shots"]
    assert again["parts"][0]["n"] == 2 and drawn != agent["shots"]


def test_more_demonstrations_than_the_pool_has_are_refused(cli: CommandLine) -> None:
    pairs = ("tasks=hotpotqa", "retriever=tiny", "demonstrations=2")
    said = cli.refused("reval", *pairs, llm="oracle-7b")
    assert "of the 8 questions of hotpotqa only 0 are not asked" in said
    assert "instances=6" in said


def request(workspace: Path, **settings: str) -> ExperimentRequest:
    checked = SUITES.settings("reval", {"retriever": "tiny", **settings})
    return ExperimentRequest(WorkspaceFolder(workspace), "oracle-7b", checked)


def test_a_plan_counts_calls_and_writes_no_run(template_workspace: Path) -> None:
    (part,) = plan("reval", request(template_workspace, tasks="hotpotqa", steps="3"), "p").runs
    assert (part.questions, part.open, part.retrievers) == (8, 8, ("tiny",))
    assert part.generations.high == 48
    assert not list((template_workspace / "runs").glob("p *"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workflows": "reakt"}, "Did you mean 'react'"),
        ({"workflows": ","}, "The systems need workflows"),
        ({"workflows": "barag-basic"}, "is run by a suite of its own"),
        ({"tasks": "hotpotqua"}, "Did you mean 'hotpotqa'"),
        ({"tasks": "musique"}, "The questions of musique are not here. Fetch MuSiQue"),
        ({"models": "nobody"}, "nobody"),
        ({"env": "wikpedia"}, "Did you mean 'wikipedia'"),
        ({"more": "stepps=3"}, "Did you mean 'steps'"),
        ({"more": "steps"}, "is not key=value"),
        ({"data": "nowhere"}, "nowhere does not exist, neither as a path nor as a dataset"),
        ({"tokenizer": "WORKSPACE"}, "holds no tokenizer; give one that holds its tokenizer.json"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    settings: dict[str, str], said: str, template_workspace: Path
) -> None:
    filled = {
        key: value.replace("WORKSPACE", str(template_workspace)) for key, value in settings.items()
    }
    with pytest.raises(UsageError) as error:
        plan("reval", request(template_workspace, **{"tasks": "hotpotqa", **filled}), "p")
    assert said in str(error.value) and "\n" not in str(error.value)


# R-Eval's logs


def export_log(
    cli: CommandLine, run: str = "g react oracle-7b hotpotqa", folder: str = "react_oracle-7b_4096"
) -> Path:
    path = cli.workspace / folder / "hotpotqa_log.jsonl"
    path.parent.mkdir(exist_ok=True)
    cli.json("export", run, "--format", "r-eval", "--out", path)
    return path


def test_a_run_is_written_as_revals_log_and_scored_and_read_from_it(cli: CommandLine) -> None:
    log = export_log(cli)
    first = read_lines(log)[0]
    ended = ("prediction", "correct", "reward", "halted", "error")
    keys = ["question", "answer", *ended, "prompt", "scratchpad", "exe_time"]
    assert list(first) == keys
    assert first["answer"] == "Titan"
    assert [first[key] for key in ended] == ["Titan", True, 1.0, False, False]
    assert first["scratchpad"].startswith(
        "\nThought 1: I think.\nAction 1: Search[Titan (moon)]\nObservation 1: Titan is the largest"
    )
    assert first["prompt"].endswith("Question: Which moon of Saturn has a thick atmosphere?")
    gold = cli.workspace / "kola" / "data" / "KoLA2" / "3-1_hotpotqa.jsonl"
    scored = cli.json("score", "--suite", "reval", "--guess", log, "--gold", gold)
    assert (scored["system"], scored["dataset"]) == ("react · oracle-7b", "hotpotqa")
    assert (scored["n"], scored["missing"], scored["rewards_differ"]) == (8, 0, 0)
    means = {name: mean["value"] for name, mean in scored["metrics"].items()}
    assert means == {"reward": 1.0, "correct": 1.0, "position_match": 1.0}
    cli.json("import", log, "--kind", "predictions", "--name", "theirs")
    errors = cli.json("analyse", "theirs", "--aspect", "errors")["systems"][0]
    assert (errors["system"], errors["n"]) == ("react · oracle-7b", 8)
    ours = cli.json("analyse", "g react oracle-7b hotpotqa", "--aspect", "errors")["systems"][0]
    assert errors["counts"] == ours["counts"] and errors["percent"] == ours["percent"]


def log_row(**changed: Any) -> dict[str, Any]:
    texts = {
        "question": "Who?",
        "answer": "Ada",
        "prediction": "Ada",
        "prompt": "",
        "scratchpad": "",
    }
    ended = {"correct": True, "reward": 1.0, "halted": False, "error": False}
    return {**texts, **ended, **changed}


def test_a_log_says_itself_how_its_rows_ended(cli: CommandLine) -> None:
    steps = "".join(
        f"\nThought {n}: x\nAction {n}: Search[x]\nObservation {n}: nothing" for n in range(1, 11)
    )
    poet = "\nAction 1: Search[x]\nObservation 1: Ada was a poet.\nAction 2: Finish[Ada]"
    lost = {"prediction": "", "correct": False, "reward": 0.0}
    rows = [
        log_row(scratchpad=poet),
        log_row(question="A?", prediction="Bob", correct=False, reward=0.0),
        log_row(question="B?", halted=True, scratchpad=steps, **lost),
        log_row(question="C?", halted=True, scratchpad=steps[:60], **lost),
        log_row(question="D?", halted=True, error=True, **lost),
        log_row(question="E?", halted=True, **lost),
    ]
    path = cli.workspace / "PAL_tulu-7b_2048" / "hotpotqa_log.jsonl"
    path.parent.mkdir()
    write_lines(path, [*rows, rows[1]])
    cli.json("import", path, "--kind", "predictions", "--name", "theirs")
    found = cli.json("analyse", "theirs", "--aspect", "errors")
    (ours,) = found["systems"]
    expected = ("pal · tulu-7b", {"EM": 1, "ME": 1, "TE": 1, "SL": 1, "CL": 1, "RE": 1})
    assert (ours["system"], ours["counts"]) == expected
    as_theirs = ("theirs", "--aspect", "errors", "--compat", "original")
    (original,) = cli.json("analyse", *as_theirs)["systems"]
    assert original["counts"] == {"EM": 1, "ME": 1, "TE": 3, "RE": 1} and original["WA"] == 5
    scored = cli.json("score", "--suite", "reval", "--guess", path)
    assert scored["errors"]["original"] == {"EM": 1, "AM": 0, "GE": 0, "ME": 1, "TE": 3, "RE": 1}
    assert scored["halted"] == 4
    assert any("1 rows stand there again" in note for note in scored["notes"])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "line 1"),
        ('{"question": "?"}', "line 1 has no 'answer'"),
        (json.dumps(log_row(reward="high")), "reward is 'high'; it must be a number"),
        (json.dumps(log_row(prediction=["x"])), "prediction must be text"),
        (json.dumps(log_row(halted="yes")), "halted is 'yes'"),
        ("", "holds no row"),
    ],
)
def test_a_bad_log_is_refused_and_nothing_is_written(cli: CommandLine, row: str, said: str) -> None:
    path = cli.workspace / "bad_log.jsonl"
    path.write_text(row)
    before = everything(cli.workspace)
    for asked in (
        ("score", "--suite", "reval", "--guess", path),
        ("import", path, "--kind", "predictions", "--format", "r-eval", "--name", "n"),
    ):
        ran = cli(*asked)
        assert ran.code == 2 and said in ran.last, ran.last
    assert everything(cli.workspace) == before


def test_a_folder_in_place_of_a_log_is_called_one_and_its_files_are_named(cli: CommandLine) -> None:
    log = export_log(cli)
    (log.parent / "deeper").mkdir()
    for asked in (("--guess", log.parent), ("--guess", log, "--gold", log.parent)):
        ran = cli("score", "--suite", "reval", *asked)
        assert ran.code == 2 and f"{log.parent} is a folder; name the file that holds" in ran.last
        assert f"{log.parent / 'FILE'}. It holds hotpotqa_log.jsonl." in ran.last
    actual = "is a folder; name the file that holds"
    assert actual in cli("score", "--suite", "reval", "--guess", log.parent / "deeper").last


# the verb


def test_analyse_takes_a_whole_suite_run_and_writes_files(cli: CommandLine, tmp_path: Path) -> None:
    found = cli.json("analyse", "g", "--aspect", "matching", "--out", tmp_path / "out")
    assert [one["workflow"] for one in found["workflows"]] == ["react", "chain-of-thought"]
    assert found["workflows"][0]["axes"] == ["Wikipedia KA", "scholar KS"]
    assert found["workflows"][0]["models"]["oracle-7b"] == [1.0, 1.0]
    expected = {"matching.json", "matching.csv", "matching-2.csv", "matching.html"}
    assert {Path(file).name for file in found["files"]} == expected
    points = cli.json("analyse", "g", "--aspect", "deployment", "--size", "oracle-7b=70")["points"]
    assert {(p["system"], p["size"]) for p in points} >= {
        ("react · oracle-7b", 70.0),
        ("react · guess-13b", 13.0),
    }
    assert cli("analyse", "g", "--aspect", "combination").code == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("tiny",), "There is no run 'tiny'"),
        (("g", "--size", "x=7"), "--size goes with --aspect"),
        (("g", "--aspect", "deployment", "--size", "x"), "is not MODEL=BILLIONS"),
        (("g", "--aspect", "errors", "--reference", "x"), "--reference goes with --aspect norma"),
        (("g", "--aspect", "normalization", "--reference", "x"), "is none of the systems"),
    ],
)
def test_a_wrong_analysis_is_refused(cli: CommandLine, asked: tuple[str, ...], said: str) -> None:
    ran = cli("analyse", *asked)
    assert ran.code == 2 and said in ran.last


def test_two_runs_of_one_system_are_told_apart_by_their_names(cli: CommandLine) -> None:
    runs = cli.workspace / "runs"
    shutil.copytree(runs / "g react oracle-7b hotpotqa", runs / "again")
    value = cli.json("analyse", "g", "again", "--aspect", "errors")
    rows = [row[0] for row in value["tables"][0]["rows"]]
    assert "react (again) · oracle-7b" in rows
    assert "react (g react oracle-7b hotpotqa) · oracle-7b" in rows
    assert "chain-of-thought · oracle-7b" in rows  # runs of other systems keep their labels


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "name"), [("hotpotqa_dev.jsonl", "hotpotqa"), ("fever_paper_dev.jsonl", "fever")]
)
def test_published_questions_are_answered_by_an_oracle_that_acts(
    cli: CommandLine, shared_data: Path, file: str, name: str
) -> None:
    """Search for the entity of the question, finish with the answer, over a local corpus."""
    by_id = {row["_id"]: row for row in read_lines(shared_data / "r-eval-ish" / file)}
    rows = list(by_id.values())[:60]
    replies = {r"Thought \d+:$": "I think."}
    for row in rows:
        replies |= acts(row["input"], f"Search[{row['input']}]", f"Finish[{row['outputs'][0]}]")
    models = json.loads((cli.workspace / "llms.json").read_text())
    models |= scripted({"knows-all": {"replies": replies, "default": "Finish[?]"}})
    (cli.workspace / "llms.json").write_text(json.dumps(models))
    path = write_lines(cli.workspace / f"{name}.jsonl", rows)
    models, workflows = "models=knows-all,extractive-reader", "workflows=react,chain-of-thought"
    found = reval(cli, f"tasks={path}", "retriever=tiny", models, workflows)
    assert found["means"]["react · knows-all"] == {"wiki": 1.0, "all": 1.0}
    assert found["ranks"]["react · knows-all"]["all"] == 1
    assert found["means"]["chain-of-thought · extractive-reader"]["all"] < 0.2
    systems = cli.json("analyse", "n", "--aspect", "errors")["systems"]
    system = {each["system"]: each for each in systems}["react · knows-all"]
    assert system["ACC"] == 100 and system["n"] == 60
    assert (system["verdicts"] == 60) == (name == "fever")


def test_r_evals_prompts_have_their_own_demonstrations(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "R-Eval" / "environment" / "wiki_run"
    folder.mkdir(parents=True)
    (folder / "pre_prompt.py").write_text(
        'REACT_INSTRUCTION = """Act.\n{examples}\nQuestion: {question}{scratchpad}"""\nraise OSError\n'
    )
    (folder / "fewshots.py").write_text("REACT_EXAMPLE = 'Question: Why?\\nAction 1: Finish[So]'\n")
    pairs = ("tasks=hotpotqa", "retriever=tiny", f"prompts={tmp_path / 'R-Eval'}")
    report = reval(cli, *pairs, "workflows=react", "models=guess-13b")
    prompt = cli.episodes("n react guess-13b hotpotqa")[0]["steps"][0]["messages"][0]["content"]
    assert prompt.startswith("Act.\nQuestion: Why?\nAction 1: Finish[So]\nQuestion: ")
    assert prompt.endswith("\nThought 1:") and report["wording"]["whose"] == "original"
    data = ("reval", *pairs, "workflows=chain-of-thought", "models=guess-13b")
    ran = cli.suite(*data, run="x")
    assert ran.code == 2 and "holds none of the prompts of this request" in ran.err
