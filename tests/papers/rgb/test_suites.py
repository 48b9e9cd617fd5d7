"""RGB from the command line: a run folder for every setting, a table, RGB's files, no question asked twice."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from digests import own_digests
from small_workspace import CommandLine, add_llm, numbers, read_lines, scripted, write_lines

from rallebench.experiments.published.official import questions_digest

REFUSES = "I can not answer the question because of the insufficient information in documents."
ERRORS = "There are factual errors in the provided documents. It was"

CITIES = ("Tampa", "Paris", "Lyon", "Rome")


def record(number: int, **more: Any) -> dict[str, Any]:
    """A question whose answer is a city: six positives, six negatives, six false copies."""
    city, other = CITIES[number], CITIES[number - 1]
    return {
        "id": number,
        "query": f"Where was game {number}?",
        "answer": city,
        "fakeanswer": other,
        "positive": [f"Game {number} was in {city}, says {i}." for i in range(6)],
        "positive_wrong": [f"Game {number} was in {other}, says {i}." for i in range(6)],
        "negative": [f"Nothing on game {number}, says {i}." for i in range(6)],
        **more,
    }


REPLIES = {
    r"game 3\?": "Rome",
    "Nothing on": REFUSES,
    "rest was": "TAMPA and roma",
    "was in Tampa": "tampa",
    "was in Paris": f"{ERRORS} Paris.",
}
"""Pattern of a prompt → reply of the model; the first match counts."""
KNOWN = {r"game 0\?": "Tampa", r"game 1\?": "Tampa", r"game 2\?": "Lyon"}
MODELS: dict[str, dict[str, Any]] = {
    "reads": {"replies": REPLIES, "default": "no idea"},
    "knows": {
        "replies": {question: f"{ERRORS} {city}." for question, city in KNOWN.items()},
        "default": "Rome",
    },
    "picky": {"replies": {r"game [013]\?": "Rome"}},
    "judge": {
        "replies": {"insufficient": "No, it is not addressed.", "Rome": "Hm."},
        "default": "Yes, it is addressed.",
    },
    "half": {"replies": {"insufficient": "No, it is not addressed."}},
    "nose": {
        "replies": {"factual errors in": "Yes, the model has identified them."},
        "default": "No.",
    },
}
GONE = {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    data = tmp_path / "workspace" / "rgb"
    data.mkdir(parents=True)
    write_lines(data / "en_fact.jsonl", [record(n) for n in range(4)])
    grouped = [[f"Half of it was in Tampa, says {i}." for i in range(4)], ["The rest was in Rome."]]
    more = {"answer": ["Tampa", ["Rome", "Roma"]], "positive": grouped, "positive_wrong": []}
    write_lines(data / "en_int.json", [record(0, **more), record(3, **more)])
    gone = {"gone": {"backend": "openai_compatible", "settings": GONE}}
    (data.parent / "llms.json").write_text(json.dumps({**scripted(MODELS), **gone}))
    return data.parent


def suite(cli: CommandLine, name: str, *pairs: str, **more: Any) -> Any:
    own = ("set=en_fact",) if name in ("noise", "rejection") else ()
    data = f"data={cli.workspace / 'rgb'}"
    return cli.report(f"rgb-{name}", data, *own, *pairs, **{"llm": "reads", "run": "r", **more})


def calls(cli: CommandLine, run: str) -> int:
    """Requests of a run's episodes that were really sent."""
    steps = [step for line in cli.episodes(run) for step in line["steps"]]
    return sum(not step["cached"] and step["ask"] == "generate" for step in steps)


def test_every_share_of_noise_is_a_run_and_a_column_above_the_papers_row(
    cli: CommandLine, workspace: Path, like_the_papers: None
) -> None:
    report = suite(cli, "noise", "noise=0,0.4,1")
    first, second, _ = report["parts"]
    assert (first["label"], first["run"], first["n"]) == ("noise=0", "r noise=0", 4)
    assert numbers(first) == {"all_rate": 0.75, "rejection_rate": 0.0}
    assert numbers(second) == {"all_rate": 0.25, "rejection_rate": 0.75}
    assert first["metrics"]["all_rate"]["low"] is None, "four questions are too few"
    assert report["headline"] == "all_rate"
    assert any("only its true positives are used" in note for note in report["notes"])
    folder = workspace / "runs" / "r noise=0.4"
    spec = json.loads((folder / "run.json").read_text())["spec"]
    assert spec["workflow"] == "rgb" and spec["settings"]["noise"] == 0.4
    own = json.loads((folder / "report.json").read_text())["suite"]
    assert own["all_rate"]["value"] == 0.25
    (table, tests), (plot,) = report["tables"], report["plots"]
    assert table["columns"] == ["", "noise 0", "noise 0.4", "noise 1"] and table["percent"]
    right, declined, printed = table["rows"]
    assert right[0] == "reads: right" and (right[1]["value"], right[1]["n"]) == (0.75, 4)
    assert declined[2]["value"] == 0.75
    assert printed == ["RGB's paper: ChatGPT", 0.9633, 0.94, None]
    row = "The paper's row: 5 documents a question, temperature 0.7."
    assert table["note"] == f"{row} Prompts reworded."
    assert [line[0] for line in tests["rows"]] == [
        "noise=0.4 less noise=0",
        "noise=1 less noise=0",
        "noise=1 less noise=0.4",
    ]
    assert "count 3 comparisons: p by Holm" in tests["note"]
    assert plot["kind"] == "line" and [x for x, _ in plot["series"]["right"]] == [0, 0.4, 1]
    assert plot["series"]["RGB's paper: ChatGPT"] == [[0, 0.9633], [0.4, 0.94]]


def test_a_suite_asks_every_question_again_with_other_seeds(
    cli: CommandLine, workspace: Path
) -> None:
    once = suite(cli, "noise", "noise=0")
    data = f"data={workspace / 'rgb' / 'en_fact.jsonl'}"
    ran = cli.suite(
        "rgb-noise", data, "noise=0", llm="reads", run="r", flags=("--repeats", "2", "--json")
    )
    assert ran.code == 0, ran.err
    assert numbers(ran.json["parts"][0]) == numbers(once["parts"][0]), "the script has one answer"
    folder = workspace / "runs" / "r noise=0"
    seeds = []
    for path in (folder, folder / "repeats" / "2"):
        steps = [step for e in read_lines(path / "episodes.jsonl") for step in e["steps"]]
        seeds.append({step["seed"] for step in steps if step["ask"] == "generate"})
    assert seeds[0].isdisjoint(seeds[1]) and all(map(len, seeds))
    spread = json.loads((folder / "report.json").read_text())["repeats"]
    assert spread["number"] == 2 and spread["metrics"]["all_rate"]["unstable"] == 0.0
    suite(cli, "noise", "noise=0,0.4")
    later = workspace / "runs" / "r noise=0.4" / "repeats" / "2"
    assert later.exists(), "a suite that is continued repeats its later runs as often"
    plan = cli.suite("rgb-noise", data, llm="reads", flags=("--repeats", "2", "--plan"))
    assert plan.code == 0 and "noise=0.8/repeat 2" in plan.out, "a plan counts every repeat"


def test_the_printed_table_has_a_line_for_every_share(cli: CommandLine) -> None:
    data, two = f"data={cli.workspace / 'rgb' / 'en_fact.jsonl'}", ("--limit", "2")
    ran = cli.suite("rgb-noise", data, "noise=0,1", llm="reads", flags=two)
    assert ran.code == 0, ran.err
    heads, first, second, note = ran.out.split("\n")[3:7]
    assert heads.split()[:3] == ["part", "all_rate", "rejection_rate"]
    assert first.startswith("noise=0  1.0000 n=2") and second.startswith("noise=1")
    assert note == "Where there is no interval: too few articles."


def test_analyse_looks_for_answers_in_the_documents_of_the_questions(cli: CommandLine) -> None:
    runs = [part["run"] for part in suite(cli, "noise", "noise=0,1")["parts"]]
    stages = [
        {stage: n for stage, n in run["waterfall"].items() if n}
        for run in cli.json("analyse", *runs)["runs"]
    ]
    assert stages == [
        {"not_in_answer": 1, "lost_by_format": 1, "right": 2},
        {"not_given": 3, "right_without_support": 1},
    ]
    text = cli("analyse", runs[1]).out
    assert "3  no passage that came with the question holds a gold answer" in text
    assert "4 questions came with passages" in text
    assert "corpus" not in text and "no gold pages" not in text
    bare = suite(cli, "noise", "noise=0", "passages=0", run="bare")["parts"][0]["run"]
    text = cli("analyse", bare).out
    assert "nothing was retrieved and no question names gold pages" in text
    assert "corpus" not in text


def test_one_more_share_asks_only_that_one_also_renamed(cli: CommandLine, workspace: Path) -> None:
    suite(cli, "noise", "noise=0,0.4")
    before = (workspace / "runs" / "r noise=0" / "episodes.jsonl").read_bytes()
    report = suite(cli, "noise", "noise=0,0.2,0.4")
    assert [part["label"] for part in report["parts"]] == ["noise=0", "noise=0.2", "noise=0.4"]
    assert (workspace / "runs" / "r noise=0" / "episodes.jsonl").read_bytes() == before
    assert calls(cli, "r noise=0.2") == 4
    suite(cli, "noise", "noise=0,0.6", run="second")
    assert [calls(cli, f"second noise={share}") for share in (0, 0.6)] == [0, 4]
    data = f"data={workspace / 'rgb' / 'en_fact.jsonl'}"
    ran = cli.suite("rgb-noise", data, "noise=0", "temperature=0", llm="reads", run="r")
    assert ran.code == 2 and "temperature = 0.7, you asked for 0" in ran.last


def test_rgbs_own_files_are_written_and_can_be_used_again(cli: CommandLine) -> None:
    report = suite(cli, "noise", "noise=0.4")
    name = "prediction_en_fact_reads_temp0.7_noise0.4_passage5_correct0.0"
    folder = Path(report["folder"])
    rows = read_lines(folder / "result-en" / f"{name}.json")
    keys = ["id", "query", "ans", "label", "prediction", "docs", "noise_rate", "factlabel"]
    assert list(rows[0]) == keys
    assert [row["label"] for row in rows] == [[-1], [-1], [-1], [1]] and len(rows[0]["docs"]) == 5
    result = json.loads((folder / "result-en" / f"{name}_result.json").read_text())
    assert result == {"all_rate": 0.25, "noise_rate": 0.4, "tt": 1, "nums": 4}
    rows[0]["prediction"], rows[1]["docs"] = "It was Tampa.", ["another"]
    rows[2]["ans"] = "Nice"
    write_lines(folder / "result-en" / f"{name}.json", rows)
    again = suite(cli, "noise", "noise=0.4", f"reuse={folder}", run="again")
    assert numbers(again["parts"][0])["all_rate"] == 0.5
    assert any("2 answers are of an earlier time" in note for note in again["notes"])
    more = (f"reuse={folder}", "compat=original")
    original = suite(cli, "noise", "noise=0.4", *more, run="o")
    assert any("3 answers are of an earlier time" in note for note in original["notes"])


def test_failed_questions_are_counted_in_no_rate_and_tried_again(cli: CommandLine) -> None:
    report = suite(cli, "noise", "noise=0", llm="picky")
    (part,) = report["parts"]
    assert (part["n"], part["n_errors"], part["metrics"]["all_rate"]["n"]) == (4, 1, 3)
    assert any("1 of 4 questions failed" in note for note in report["notes"])
    suite(cli, "noise", "noise=0", llm="picky")
    assert [line["qid"] for line in cli.episodes("r noise=0")].count("2") == 2


def test_the_papers_row_stands_only_beside_its_own_set(
    cli: CommandLine, workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = suite(cli, "noise", "noise=0,0.4")
    table, (own,) = report["tables"][0], report["published"]
    assert not any("paper" in row[0] for row in table["rows"])
    assert (
        table["note"] == "The paper's figures are left out: ours are of en_fact, the paper's of en."
    )
    assert own["why"] and own["cells"] == {} and own["table"] == "rgb_table1"
    rows = [record(i % 4, id=i) for i in range(100)]
    write_lines(workspace / "rgb" / "en_fact.jsonl", rows)
    (own,) = suite(cli, "counterfactual", run="repeated", llm="knows")["published"]
    assert own["why"] == "ours are not the questions of the paper's en_fact"
    theirs = {"questions": questions_digest(row["query"] for row in rows)}
    own_digests(monkeypatch, tmp_path, "rgb", {"en_fact": theirs})
    report = suite(cli, "counterfactual", run="hundred", llm="knows")
    (own,) = report["published"]
    assert own["why"] == "" and own["cells"]["Acc"]["n"] == 100
    assert report["tables"][0]["rows"][1][1] == 0.89
    few = suite(cli, "counterfactual", "passages=3", run="three", llm="knows")["published"][0]
    assert few["why"] == "ours are with 3 documents a question, the paper's with 5"


def test_rejections_and_lucky_hits_stand_apart(cli: CommandLine, like_the_papers: None) -> None:
    report = suite(cli, "rejection", "judge=judge")
    (part,), (table,) = report["parts"], report["tables"]
    rates = {"rejection_rate": 0.75, "lucky_rate": 0.25, "all_rate": 1.0}
    assert numbers(part) == {**rates, "rejection_rate_judge": 1.0}
    assert report["headline"] == "rejection_rate"
    assert part["metrics"]["rejection_rate_judge"]["n"] == 3
    assert (report["judged"], report["unparsed"], report["judge_failed"]) == (4, 1, 0)
    assert table["columns"][1:] == ["Rej", "Rej*", "lucky", "RGB's all_rate"]
    assert [cell["value"] for cell in table["rows"][0][1:]] == [0.75, 1.0, 0.25, 1.0]
    assert table["rows"][1][1:] == [0.2467, 0.45, None, None]
    last = cli.judgements(part["run"])[-1]
    assert (last["qid"], last["stop_reason"]) == ("3", "unparsed")
    assert last["steps"][0]["reply"]["text"] == "Hm."
    prompt = last["steps"][0]["messages"][0]["content"]
    assert prompt.endswith("Question: Where was game 3?\nAnswer: Rome")
    original = suite(cli, "rejection", "judge=judge", "compat=original", run="o")
    assert original["headline"] == "all_rate"
    assert numbers(original["parts"][0])["rejection_rate_judge"] == 0.75


def test_a_judge_that_chooses_adds_its_probabilities_and_says_so(
    cli: CommandLine, like_the_papers: None
) -> None:
    add_llm(cli.workspace, "judge", replies={"": {"Yes": 0.2, "No": 0.6}})
    report = suite(cli, "rejection", "judge=judge", "judge_form=choice")
    (part,) = report["parts"]
    assert numbers(part)["rejection_rate_judge"] == 1.0
    assert numbers(part)["rejection_probability"] == pytest.approx(0.75)
    assert any("more probable of Yes and No" in note for note in report["notes"])
    run = json.loads((cli.workspace / "runs" / part["run"] / "report.json").read_text())
    (judge,) = run["judges"].values()
    assert judge["choices"] == {
        "in_process": 0,
        "server": 4,
        "text": 0,
        "covered": pytest.approx(0.8),
    }
    step = cli.judgements(part["run"])[-1]["steps"][0]
    assert (step["ask"], step["choices"]) == ("choose", ["Yes", "No"])
    assert step["reply"]["choice"]["probabilities"] == pytest.approx([0.25, 0.75])
    add_llm(cli.workspace, "judge", default="No.")
    again = suite(cli, "rejection", "judge=judge", "judge_form=choice", run="words")
    assert (
        "rejection_probability" not in numbers(again["parts"][0])
        or numbers(again["parts"][0])["rejection_probability"] is None
    )
    assert "give no probabilities of the options" in " ".join(again["notes"])


def test_answers_that_do_not_reject_are_labelled_in_a_file_that_stays(
    cli: CommandLine, tmp_path: Path
) -> None:
    report = suite(cli, "rejection")
    file = Path(report["folder"]) / "errors-to-label.csv"
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    rejected = numbers(report["parts"][0])["rejection_rate"]
    assert len(rows) == report["not_rejected"] == (1 - rejected) * report["parts"][0]["n"]
    labels = [{"qid": rows[0]["qid"], "category": "Concept confusion"}]
    path = write_lines(tmp_path / "l.jsonl", labels)
    table = suite(cli, "rejection", f"labels={path}", run="labelled")["tables"][1]
    counts = {row[0]: row[-2] for row in table["rows"]}
    assert counts == {
        "evidence uncertainty": 0,
        "concept confusion": 1,
        "no label": len(rows) - 1,
    }
    assert table["note"].startswith(f"1 of {len(rows)} answers that do not reject have a label")


def test_a_judge_of_chinese_answers_reads_them_without_spaces_as_rules_do(cli: CommandLine) -> None:
    run = suite(cli, "rejection", "language=zh", "judge=judge")["parts"][0]["run"]
    prompt = cli.judgements(run)[0]["steps"][0]["messages"][0]["content"]
    assert prompt.endswith(f"Answer: {REFUSES.replace(' ', '')}")


def test_a_judge_that_was_named_later_judges_the_answers_that_are_there(cli: CommandLine) -> None:
    suite(cli, "rejection")
    flags = ("--plan", "--probe", "0")
    (planned,) = suite(cli, "rejection", "judge=judge", flags=flags)["plan"]
    assert planned["llms"] == ["reads", "judge"]
    assert planned["generations"] == {"low": 4, "high": 4}
    later = suite(cli, "rejection", "judge=judge")["parts"][0]
    assert numbers(later)["rejection_rate_judge"] == 1.0
    again = suite(cli, "rejection", "judge=judge", flags=flags)
    assert again["plan"][0]["left"] == 0


def test_the_plan_and_the_probe_count_the_calls_of_a_judge(cli: CommandLine) -> None:
    flags = ("--plan", "--probe", "2")
    planned = suite(cli, "counterfactual", "judge=nose", llm="knows", flags=flags)
    assert [part["generations"]["high"] for part in planned["plan"]] == [4, 8]
    costs = planned["probe"]["parts"]
    assert [part["model_calls"]["value"] for part in costs] == [4, 8]


def test_judgements_that_fail_are_in_no_rate_and_cost_that_alone(cli: CommandLine) -> None:
    report = suite(cli, "rejection", "judge=half")
    assert (report["judged"], report["unparsed"], report["judge_failed"]) == (4, 0, 1)
    assert report["parts"][0]["metrics"]["rejection_rate_judge"]["n"] == 3
    assert "1 of 4 judgements failed; they are in no rate." in report["notes"]
    report = suite(cli, "rejection", "judge=gone", run="g")
    assert "judged" not in report and report["tables"][0]["rows"][0][2] is None
    assert any("The judge 'rgb-rejection:gone' gave no scores" in note for note in report["notes"])


def test_facts_are_asked_bare_and_with_false_ones(cli: CommandLine, like_the_papers: None) -> None:
    report = suite(cli, "counterfactual", "judge=nose", llm="knows")
    (shown,), (table, _) = report["parts"][1:], report["tables"]
    assert (report["acc"], report["acc_doc"], report["reported"]) == (0.75, 0.75, True)
    two_thirds = pytest.approx(2 / 3)
    rates = numbers(shown)
    assert (rates["fact_check_rate"], rates["correct_rate"]) == (0.75, two_thirds)
    assert (rates["fact_check_rate_judge"], rates["correct_rate_judge"]) == (0.75, two_thirds)
    assert shown["metrics"]["correct_rate"]["n"] == 3
    assert shown["metrics"]["correct_rate_judge"]["n"] == 3
    first = cli.episodes("r without documents")[0]
    assert [message["role"] for message in first["steps"][0]["messages"]] == ["user"]
    (result,) = Path(report["folder"]).glob("result-en/*passage5*_result.json")
    assert json.loads(result.read_text())["fact_tt"] == 3
    columns = ["Acc", "Acc_doc", "ED", "ED*", "CR of ED", "CR of ED*", "Acc above 70%"]
    assert table["columns"][1:] == columns
    ours, printed = table["rows"]
    assert [ours[5]["n"], ours[6]["n"], ours[7]] == [3, 3, "yes"] and ours[1]["value"] == 0.75
    assert printed[1:] == [0.89, 0.09, 0.08, 0.07, None, 0.5714, "yes"]


def test_a_model_that_knows_too_little_is_not_to_be_compared(cli: CommandLine) -> None:
    report = suite(cli, "counterfactual", llm="reads")
    assert report["reported"] is False
    assert any("more than 70%" in note for note in report["notes"])
    assert report["tables"][0]["rows"][0][7] == "no: not to be compared"


def test_other_shares_do_not_ask_again_what_is_known(cli: CommandLine, workspace: Path) -> None:
    suite(cli, "counterfactual", llm="knows")
    before = (workspace / "runs" / "r without documents" / "episodes.jsonl").read_bytes()
    report = suite(cli, "counterfactual", "correct=0.4", "noise=0.2", llm="knows")
    expected = ["without documents", "noise=0.2, correct=0.4"]
    assert [part["label"] for part in report["parts"]] == expected
    assert (workspace / "runs" / "r without documents" / "episodes.jsonl").read_bytes() == before
    questions = read_lines(workspace / "runs" / report["parts"][1]["run"] / "questions.jsonl")
    kinds = [document["kind"] for document in questions[0]["rgb"]["docs"]]
    assert sorted(kinds) == ["negative", "positive", "positive", "wrong", "wrong"]


def test_records_that_lack_something_are_counted_named(cli: CommandLine, workspace: Path) -> None:
    lacking = (record(1, answer=[]), record(2, negative=[]), record(3, negative=["Nothing on it."]))
    write_lines(workspace / "rgb" / "en_fact.jsonl", [record(0), *lacking])
    report = suite(cli, "rejection")
    assert (report["parts"][0]["n"], report["without"]) == (2, {"answers": 1, "negatives": 1})
    assert report["documents"] == {"noise=1": {"asked": 5, "short": 1, "left_out": 1}}
    assert "1 of 4 records of en_fact have no answers and were left out: 1." in report["notes"]
    assert "noise=1: 1 records have no document for it and were left out: 2." in report["notes"]
    assert suite(cli, "rejection", "compat=original", run="o")["parts"][0]["n"] == 3
    few = record(1, positive=["It was in Paris."], positive_wrong=["It was in Tampa."])
    write_lines(workspace / "rgb" / "en_fact.jsonl", [record(0), few])
    report = suite(cli, "noise", "noise=0,0.8", run="few")
    assert report["tables"][0]["rows"][2] == ["noise among the documents", 0.4, 0.8]
    (note,) = [note for note in report["notes"] if note.startswith("noise=0")]
    assert note.startswith("noise=0: 1 of 2 records lack positives or negatives")
    assert "40% of all" in note


def test_chinese_has_its_own_printed_row(cli: CommandLine, like_the_papers: None) -> None:
    report = suite(cli, "noise", "noise=0,0.1", "language=zh")
    assert report["tables"][0]["rows"][2] == ["RGB's paper: ChatGPT", 0.9567, None]
    assert list(report["published"][0]["cells"]) == ["zh_0"], "noise 0.1 is in no printed column"


def test_of_integration_every_part_is_required_and_errors_are_labelled_in_a_file_that_stays(
    cli: CommandLine, like_the_papers: None
) -> None:
    report = suite(cli, "integration")
    assert [part["label"] for part in report["parts"]] == ["noise=0", "noise=0.2", "noise=0.4"]
    assert [numbers(part)["all_rate"] for part in report["parts"]] == [0.5, 0.0, 0.0]
    assert report["dataset"] == "en_int" and report["documents"]["noise=0"]["short"] == 0
    assert report["tables"][0]["rows"][-1][1:] == [0.55, 0.51, 0.34]
    path = Path(report["folder"]) / "errors-to-label.csv"
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    expected = [("noise=0", "3", ""), ("noise=0.2", "0", "")]
    assert [(row["part"], row["qid"], row["category"]) for row in rows][:2] == expected
    assert rows[0]["required"] == "Tampa + Rome / Roma"
    assert report["wrong"] == 5 and str(path) in report["files"]
    for row, category in zip(rows, ("Merging", "ignoring", "merging", "typo", "")):
        row["category"] = category
    with open(path, "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    filled = path.read_bytes()
    table = suite(cli, "integration", f"labels={path}")["tables"][1]
    assert path.read_bytes() == filled and "4 of 5 wrong answers" in table["note"]
    assert table["columns"][:2] == ["", "noise=0"]
    assert table["columns"][-1] == "RGB's paper: ChatGLM2-6B", "whose errors are printed"
    assert {row[0]: tuple(row[-3:]) for row in table["rows"]} == {
        "merging": (2, "50%", "28%"),
        "ignoring": (1, "25%", "28%"),
        "misalignment": (0, "0%", "6%"),
        "typo": (1, "25%", None),
        "no label": (1, None, None),
    }


def test_labels_as_json_lines_hold_and_others_are_told(cli: CommandLine, tmp_path: Path) -> None:
    labels = [{"qid": "0", "category": "ignoring"}, {"qid": 77, "category": "merging"}]
    path = write_lines(tmp_path / "l.jsonl", labels)
    report = suite(cli, "integration", f"labels={path}")
    assert {row[0]: row[-3] for row in report["tables"][1]["rows"]}["ignoring"] == 2
    assert "1 labels are of none of the wrong answers here: 77." in report["notes"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "there is no such file"),
        ("", "is empty"),
        ("id,kind\n1,merging\n", "line 1 has no qid or no category"),
        ("qid,category\n1,merging\n2\n", "line 3 has 1 fields where the header names 2"),
        (
            "qid,category\n1,merging\n1,ignoring\n",
            "line 3 calls '1' 'ignoring', and an earlier line 'merging'",
        ),
    ],
)
def test_a_bad_file_of_labels_is_refused_before_anything_is_run(
    cli: CommandLine, tmp_path: Path, text: str | None, sentence: str
) -> None:
    path = tmp_path / "labels.csv"
    if text is not None:
        path.write_text(text)
    data = f"data={cli.workspace / 'rgb' / 'en_fact.jsonl'}"
    assert sentence in cli.refused("rgb-noise", data, f"labels={path}", llm="reads")


@pytest.mark.parametrize("name", ["rgb-noise", "rgb-rejection"])
def test_a_folder_without_its_base_is_refused(cli: CommandLine, workspace: Path, name: str) -> None:
    data = f"data={workspace / 'rgb'}"
    sentence = "holds no en_refine or en, which this test is made for; it holds en_fact, en_int; give --set set=NAME."
    assert sentence in cli.refused(name, data, llm="reads")
    write_lines(workspace / "rgb" / "en.json", [record(n) for n in range(2)])
    assert cli.report(name, data, llm="reads")["dataset"] == "en"


@pytest.mark.parametrize(
    ("name", "pairs", "more", "sentence"),
    [
        ("noise", "", {}, "--set data=PATH"),
        ("noise", "data=FACTS noise=2", {}, "must be a number from 0 to 1"),
        ("noise", "data=DATA set=en_int", {}, "rgb-integration takes it"),
        ("integration", "data=DATA set=en_fact", {}, "rgb-noise takes it"),
        ("counterfactual", "data=DATA noise=0.6 correct=0.6", {}, "together at most 1"),
        ("counterfactual", "data=DATA passages=0", {}, "passages is 0, but false documents"),
        ("counterfactual", "data=DATA/en_int.json", {}, "holds no false copies"),
        ("rejection", "data=FACTS judge=absent", {}, "no language model 'absent'"),
        ("noise", "pasages=3", {}, "no setting 'pasages'"),
        ("nose", "", {}, "Did you mean 'rgb-noise'"),
        ("testbed", "", {}, "A testbed needs a dataset"),
        ("testbed", "data=x index=tiny prompts=/", {}, "prompts goes with articles"),
        ("noise", "data=FACTS prompts=/", {}, "of this request (system-en.txt, user-en.txt)"),
        ("noise", "data=FACTS reuse=nowhere", {}, "reuse=nowhere: there is no such folder"),
        ("noise", "data=FACTS", {"llm": ""}, "needs a language model"),
        ("noise", "data=FACTS", {"llm": "nobody"}, "no language model 'nobody'"),
        ("noise", "data=FACTS", {"flags": ("--limit", "0")}, "at least 1"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    cli: CommandLine, name: str, pairs: str, more: dict[str, Any], sentence: str
) -> None:
    data = str(cli.workspace / "rgb")
    filled = pairs.replace("FACTS", f"{data}/en_fact.jsonl").replace("DATA", data).split()
    assert sentence in cli.refused(f"rgb-{name}", *filled, **{"llm": "reads", **more})


def test_without_a_name_all_suites_and_their_settings_are_listed(cli: CommandLine) -> None:
    names = {suite["name"] for suite in cli.json("suite")["suites"]}
    tests = ("noise", "rejection", "integration", "counterfactual", "testbed")
    assert {f"rgb-{name}" for name in tests} <= names
    assert "noise=0,0.2,0.4,0.6,0.8" in cli("suite").out


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_embedded_reader_answers_published_records(cli: CommandLine, shared_data: Path) -> None:
    data = f"data={shared_data / 'rgb'}"
    few: dict[str, Any] = {"llm": "extractive-reader", "flags": ("--limit", "12")}
    report = cli.report("rgb-noise", data, "set=en_fact", "noise=0,0.8", **few)
    rates = [numbers(part)["all_rate"] for part in report["parts"]]
    assert report["dataset"] == "en_fact" and rates[0] > 0.5
    assert [part["n_errors"] for part in report["parts"]] == [0, 0]
    facts = cli.report("rgb-counterfactual", data, **few)
    assert facts["acc"] == 0.0 and facts["acc_doc"] < rates[0] and not facts["reported"]


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("test", "dataset", "parts", "n"),
    [
        ("noise", "zh_refine", 5, 210),
        ("rejection", "zh_refine", 1, 210),
        ("integration", "zh_int", 3, 70),
        ("counterfactual", "zh_fact", 2, 70),
    ],
)
def test_all_published_records_are_asked_in_chinese(
    cli: CommandLine, shared_data: Path, test: str, dataset: str, parts: int, n: int
) -> None:
    where = f"data={shared_data / 'rgb'}", "language=zh", f"set={dataset}"
    report = cli.report(f"rgb-{test}", *where, llm="reads")
    assert (report["dataset"], report["language"]) == (dataset, "zh")
    assert [(part["n"], part["n_errors"]) for part in report["parts"]] == [(n, 0)] * parts
    prompt = cli.episodes(report["parts"][-1]["run"])[0]["steps"][0]["messages"]
    assert "信息不足" in "".join(message["content"] for message in prompt)


def test_the_instructions_of_rgbs_repository_are_sent_and_recorded(
    cli: CommandLine, workspace: Path, tmp_path: Path, like_the_papers: None
) -> None:
    folder = tmp_path / "RGB" / "config"
    folder.mkdir(parents=True)
    rules = "en:\n  system: Be brief.\n  instruction: 'On {DOCS}: {QUERY}'\n"
    (folder / "instruction.yaml").write_text(rules)
    own = f"prompts={tmp_path / 'RGB'}"
    report = suite(cli, "noise", "noise=0", own)
    first = cli.episodes("r noise=0")[0]["steps"][0]["messages"]
    assert first[0]["content"] == "Be brief." and first[1]["content"].startswith("On Game 0")
    assert "Original prompts (sha256 " in report["tables"][0]["note"]
    spec = json.loads((workspace / "runs" / "r noise=0" / "run.json").read_text())["spec"]
    assert spec["settings"]["wording"]["sha256"] == report["wording"]["sha256"]
    (folder / "instruction.yaml").write_text(rules.replace("instruction:", "user:"))
    data = f"data={workspace / 'rgb'}"
    ran = cli.suite("rgb-noise", data, "set=en_fact", own, llm="reads", run="half")
    assert ran.code == 2 and ran.err.count("\n") == 1
    assert "holds no text en.instruction, so it is half a file or another version" in ran.err
