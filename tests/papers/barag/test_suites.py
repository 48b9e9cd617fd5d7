"""The boolean-agent study from the command line: modes, their run files, a judge, its agreement, and the curve."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from building import built
from loopback import Handler, Loopback, answer, send_json
from small_workspace import (
    PASSAGES,
    CommandLine,
    make_workspace,
    numbers,
    read_lines,
    scripted,
    write_lines,
)

from rallebench.core.text import tokenize
from rallebench.encoders.hashing import Hashing

QUESTIONS = (
    "Which moon of Saturn has a thick atmosphere?",
    "Which moon goes round Neptune backwards?",
    "In which state is Lamar County?",
)
GOLD = ("Titan", "Triton", "Texas")
SAYS = {
    r"queried for this question": '{"retrieve": false}',
    r"(?s)Saturn has a thick.*better with more": "Yes.",
    r"better with more information": '{"moreInfo": false}',
    r"(?s)Title: Titan.*Which moon of Saturn": "Titan",
    r"(?s)Title: .*Neptune back": "Triton",
    r"Saturn has": "I don't know.",
    r"Neptune": "Triton it is",
}
"""Pattern in a prompt → the model's reply; the first that matches counts. Without passages it knows one answer of three."""
MODELS: Mapping[str, Any] = {
    "agent": {"replies": SAYS, "default": "It is in Texas"},
    "prose": {
        "replies": {r"\? Reply with JSON|: should the database": "Well."},
        "default": "Texas",
    },
    "judge": {
        "replies": {
            r"(?s)#########.*I don't know": "truthfulness 1, relevance 1",
            r"(?s)#########\nTitan": '{"truthfulness": 5, "relevance": 5, "reason": "It is."}',
            r"(?s)Lamar County": "Hm, hard to say.",
        },
        "default": "4 and 5",
    },
    "picky": {"replies": {"Lamar": "Texas"}},
}


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = make_workspace(tmp_path_factory.mktemp("barag") / "workspace")
    models: dict[str, Any] = scripted(MODELS)
    models["tools"] = {
        "backend": "openai_compatible",
        "settings": {"model": "m", "base_url": "http://127.0.0.1:9/v1", "max_retries": 0},
    }
    (workspace / "llms.json").write_text(json.dumps(models))
    rows = [
        {"id": f"A_d-{n}", "title": PASSAGES[n][2], "content": PASSAGES[n][1], "question": question}
        for n, question in enumerate(QUESTIONS)
    ]
    bare = {"id": "A_d-8", "title": "Danube", "content": "It flows."}
    write_lines(workspace / "articles_A_d.jsonl", [*rows, bare])
    pointer = {"id": "A_f-0", "a_d_id": "A_d-0", "title": "Titan (moon)", "question": QUESTIONS[0]}
    write_lines(workspace / "articles_A_f.jsonl", [pointer])
    kilt = [
        {"id": f"q{n}", "input": q, "output": [{"answer": GOLD[n]}]}
        for n, q in enumerate(QUESTIONS)
    ]
    write_lines(workspace / "gold.jsonl", kilt)
    return workspace


def modes(cli: CommandLine, *settings: str, llm: str = "agent", run: str = "r") -> Any:
    pairs = (f"data={cli.workspace / 'articles_A_d.jsonl'}", "index=tiny", "k=2", *settings)
    return cli.report("barag-modes", *pairs, llm=llm, run=run)


def report(cli: CommandLine, suite: str, *settings: str, llm: str = "agent") -> Any:
    return cli.report(f"barag-{suite}", *settings, llm=llm, run="r")


def steps(workspace: Path, run: str) -> list[list[Any]]:
    return [line["steps"] for line in read_lines(workspace / "runs" / run / "episodes.jsonl")]


def test_every_mode_is_a_run_with_the_tokens_of_all_its_calls(cli: CommandLine) -> None:
    found = modes(cli)
    retrieved = {part["label"]: numbers(part)["retrieved"] for part in found["parts"]}
    expected = {"baseline": 0.0, "naive": 1.0, "basic": 0.0, "advanced": pytest.approx(1 / 3)}
    assert retrieved == expected and list(retrieved) == list(expected)
    asks = {
        label: [
            [step for step in of_question if step["ask"] == "generate"]
            for of_question in steps(cli.workspace, f"r {label}")
        ]
        for label in retrieved
    }
    calls = {label: {len(of_question) for of_question in asks[label]} for label in asks}
    assert calls == {"baseline": {1}, "naive": {1}, "basic": {2}, "advanced": {2, 3}}
    total = sum(s["reply"].get("prompt_tokens", 0) for each in asks["advanced"] for s in each)
    assert found["modes"]["advanced"]["n_in"] == total > 0
    table, tests = found["tables"]
    assert {row[0] for row in tests["rows"]} >= {"naive less baseline", "advanced less basic"}
    columns = "Truthfulness, Relevance, Input tokens, Output tokens, Retrieved, Perfect, Answers"
    assert table["columns"][1:] == [*columns.split(", "), "Grounded", "Declined"]
    assert [row[0] for row in table["rows"]] == list(expected) and table["rows"][1][5] == 3
    assert "1 rows of articles_A_d.jsonl have no question and were left out." in found["notes"]


def test_what_encoders_and_a_judge_read_stands_beside_the_papers_sums(cli: CommandLine) -> None:
    folder = cli.workspace
    built(folder / "indexes", "vectors", folder / "corpus.tsv", "flat", encoder=Hashing())
    found = modes(cli, "index=vectors", "modes=baseline,naive", "judge=judge")
    words = sum(len(tokenize(question)) for question in QUESTIONS)
    actual = {mode: counts["embedding_tokens"] for mode, counts in found["other_tokens"].items()}
    assert actual == {"baseline": 0, "naive": words}
    judge = found["judge of naive"]
    table = found["tables"][1]
    assert table["columns"] == ["Run", "Embedding tokens", "Judge tokens"]
    expected = ["naive", words, judge["judge_input_tokens"] + judge["judge_output_tokens"]]
    assert table["rows"][1] == expected
    by_words = modes(cli, "modes=naive", run="words")
    assert by_words["other_tokens"] == {"naive": {"embedding_tokens": 0}}
    assert len(by_words["tables"]) == 1


def test_run_files_are_in_barags_form_and_give_the_same_table_again(cli: CommandLine) -> None:
    found = modes(cli, "judge=judge", "modes=naive,baseline")
    folder = Path(found["folder"]) / "runs"
    rows = read_lines(folder / "A_d_naive.jsonl")
    keys = (
        "id title question answer n_input_tokens n_output_tokens retrieved truthfulness relevance"
    )
    assert list(rows[0]) == [*keys.split(), "context"]
    assert rows[0]["retrieved"]
    assert rows[0]["context"].startswith("\n \nTitle: Titan (moon)\nTitan is")
    assert rows[0]["truthfulness"] == 5
    again = cli.report("barag-tables", f"runs={folder}", run="t")["runs"]
    for name in ("naive", "baseline"):
        assert found["modes"][name].items() <= again[f"A_d_{name}"].items()


def test_in_the_original_a_naive_run_says_that_it_did_not_retrieve(cli: CommandLine) -> None:
    found = modes(cli, "modes=naive,baseline", "compat=original")
    rows = read_lines(Path(found["folder"]) / "runs" / "A_d_naive.jsonl")
    assert [row["retrieved"] for row in rows] == [False] * 3 and all(row["context"] for row in rows)
    messages = steps(cli.workspace, "r baseline")[0][0]["messages"]
    assert [message["content"] for message in messages][:2] == ["", ""]


def test_judgements_keep_prompt_reply_and_reason_and_failures_are_counted(cli: CommandLine) -> None:
    found = modes(cli, "modes=baseline,naive", "judge=judge")
    naive = found["parts"][1]
    assert [part["label"] for part in found["parts"]] == ["baseline", "naive"]
    scores = {name: numbers(naive)[name] for name in ("truthfulness", "relevance", "perfect")}
    assert scores == {"truthfulness": 4.5, "relevance": 5.0, "perfect": 0.5}
    assert naive["metrics"]["truthfulness"]["n"] == 2
    assert found["judge of naive"]["unparsed"] == 1
    assert found["judge of naive"]["judge_input_tokens"] > 0
    assert "naive: 1 of 3 judgements could not be read and are not scored." in found["notes"]
    (folder,) = (cli.workspace / "runs" / naive["run"] / "judges").iterdir()
    lines = {line["qid"]: line for line in read_lines(folder / "episodes.jsonl")}
    first, last = lines["A_d-0"], lines["A_d-2"]
    expected = {"values": {"truthfulness": 5.0, "relevance": 5.0}, "reason": "It is."}
    assert json.loads(first["answer"]) == expected
    assert "#########\nTitan\n#########" in first["steps"][0]["messages"][1]["content"]
    assert last["stop_reason"] == "unparsed"
    assert last["steps"][0]["reply"]["text"] == "Hm, hard to say."
    assert found["modes"]["naive"]["histogram"]["10"] == 1
    assert found["modes"]["naive"]["scored"] == 2


def test_scores_of_an_earlier_judge_are_not_those_of_one_that_failed(cli: CommandLine) -> None:
    assert modes(cli, "modes=naive", "judge=judge")["modes"]["naive"]["truthfulness"] == 4.5
    later = modes(cli, "modes=naive", "judge=tools")
    assert later["modes"]["naive"]["truthfulness"] is None and "judge of naive" not in later
    assert any("The judge 'truthfulness:tools' gave no scores" in note for note in later["notes"])
    again = modes(cli, "modes=naive", "judge=judge")
    assert again["modes"]["naive"]["truthfulness"] == 4.5


def test_the_right_article_needs_no_index_and_stands_in_the_run_file(cli: CommandLine) -> None:
    data = f"data={cli.workspace / 'articles_A_d.jsonl'}"
    found = report(cli, "modes", data, "modes=baseline,gt")
    rows = read_lines(Path(found["folder"]) / "runs" / "A_d_gt.jsonl")
    assert rows[0]["context"] == f"\n \nTitle: Titan (moon)\n{PASSAGES[0][1]}\n \n"
    assert rows[0]["answer"] == "Titan"
    assert rows[0]["retrieved"]


def test_nothing_is_asked_twice_and_other_settings_need_another_name(cli: CommandLine) -> None:
    modes(cli, "modes=naive")
    before = (cli.workspace / "runs" / "r naive" / "episodes.jsonl").read_bytes()
    found = modes(cli, "modes=naive,advanced")
    assert (cli.workspace / "runs" / "r naive" / "episodes.jsonl").read_bytes() == before
    assert len(found["parts"]) == 2
    data = f"data={cli.workspace / 'articles_A_d.jsonl'}"
    ran = cli.suite("barag-modes", data, "index=tiny", "k=1", "modes=naive", llm="agent", run="r")
    assert ran.code == 2 and "k = 2, you asked for 1" in ran.last


@pytest.mark.parametrize(
    ("settings", "llm", "values", "note"),
    [
        ("modes=basic", "prose", {"undecided": 1, "retrieved": 1}, "3 of 3 decisions could not"),
        ("modes=baseline", "picky", {"grounded": 1}, "2 of 3 questions failed; they are in no sum"),
        (
            "modes=naive judge=judge judge_swap=true",
            "agent",
            {},
            "1 of 3 judgements could not be read",
        ),
    ],
)
def test_what_could_not_be_read_or_asked_is_counted_and_repeats_have_a_spread(
    cli: CommandLine, settings: str, llm: str, values: dict[str, float], note: str
) -> None:
    found = modes(cli, *settings.split(), llm=llm)
    (part,) = found["parts"]
    assert values.items() <= numbers(part).items()
    label = part["label"]
    assert any(text.startswith(f"{label}: {note}") for text in found["notes"])
    assert found["modes"][label]["n"] == (1 if llm == "picky" else 3)
    if "judge_swap" in settings:
        assert found["judge of naive"]["replies"] == 6
        assert {"truthfulness_spread", "relevance_spread"} <= set(numbers(part))


def drops_tools(handler: Handler) -> None:
    """A llama.cpp server whose chat template has no tools."""
    told = send_json({"chat_template_caps": {"supports_tools": False}})
    (told if handler.command == "GET" else answer("Yes."))(handler)


def serve_tools(cli: CommandLine, server: Loopback) -> None:
    """The model ``tools`` is behind ``server``."""
    path = cli.workspace / "llms.json"
    models = json.loads(path.read_text())
    models["tools"]["settings"]["base_url"] = server.url
    path.write_text(json.dumps(models))


@pytest.mark.parametrize(
    ("calls", "offered", "sentence"),
    [
        ("auto", False, "so the functions are called in text"),
        ("tools", True, "so it is not told of any function"),
    ],
)
def test_decisions_are_asked_for_in_words_where_the_server_drops_tools(
    cli: CommandLine, calls: str, offered: bool, sentence: str
) -> None:
    with Loopback(drops_tools) as server:
        serve_tools(cli, server)
        found = modes(cli, "modes=naive,basic,advanced", f"calls={calls}", llm="tools")
    assert any("tools" in body for body in server.bodies) is offered
    assert sum(path.startswith("/props") for path in server.paths) == 1
    (note,) = [note for note in found["notes"] if "drops the tools" in note]
    assert sentence in note
    assert (
        found["calls"] == "tools"
    )  # the part of the settings that a fingerprint covers is unchanged


def test_a_server_is_not_asked_about_tools_by_modes_that_decide_nothing(cli: CommandLine) -> None:
    with Loopback(drops_tools) as server:
        serve_tools(cli, server)
        modes(cli, "modes=naive,baseline", llm="tools")
    assert not any(path.startswith("/props") for path in server.paths)


def test_questions_without_log_probabilities_are_counted_in_the_report(cli: CommandLine) -> None:
    for _ in range(2):  # also for a run that already has its answers
        found = modes(cli, "modes=uncertain", "signal=logprob")
        (note,) = [note for note in found["notes"] if "log-probabilities" in note]
        assert "6 of 6 replies of 'agent' hold no log-probabilities" in note
        assert "reads passages" in note and note.endswith("Questions concerned: 3.")
    other = modes(cli, "modes=uncertain", run="other")
    assert not any("log-probabilities" in note for note in other["notes"])


def test_a_set_of_pointers_takes_its_articles_from_the_set_beside_it(cli: CommandLine) -> None:
    settings = ("set=A_f", "index=tiny", "modes=naive", "judge=judge")
    found = report(cli, "modes", f"data={cli.workspace}", *settings)
    assert found["modes"]["naive"]["n"] == 1 and found["modes"]["naive"]["truthfulness"] == 5


def test_the_curve_has_a_point_for_every_threshold_from_one_run(cli: CommandLine) -> None:
    data = (f"data={cli.workspace / 'gold.jsonl'}", "index=tiny", "ask=true", "samples=2")
    found = report(cli, "curve", *data, "quality=f1")
    assert [part["label"] for part in found["parts"]] == ["both branches"]
    assert set(found["curves"]) == {"agreement", "retrieval"}
    points, ends = found["curves"]["retrieval"], found["points"]
    shares = [point["retrieved"] for point in points]
    assert shares == sorted(shares)
    for point, end in ((points[0], ends["never"]), (points[-1], ends["always"])):
        assert (point["n_in"], point["quality"]) == (end["n_in"], end["quality"])
    best = max(point["quality"] for point in (*points, *found["curves"]["agreement"]))
    assert ends["oracle"]["quality"] >= best
    assert ends["model asked"]["retrieved"] == pytest.approx(1 / 3)
    assert found["plots"][0]["kind"] == "line" and "oracle" in found["plots"][0]["series"]
    tests = cli.tests_in(found)
    assert list(tests) == [("never less always", "f1"), ("model asked less always", "f1")]
    gap = tests["never less always", "f1"][2]
    assert gap["n"] == 3
    assert gap["value"] == pytest.approx(ends["never"]["quality"] - ends["always"]["quality"])
    again = report(cli, "curve", *data, "quality=em", "thresholds=1,2")
    episodes = steps(cli.workspace, "r both branches")
    assert {step["cached"] for of_question in episodes for step in of_question} == {False}
    assert {point["threshold"] for point in again["curves"]["retrieval"]} <= {1.0, 2.0}


def test_a_threshold_is_tested_on_the_questions_that_it_was_not_chosen_on(cli: CommandLine) -> None:
    rows = [
        {"id": f"q{n}", "input": f"{QUESTIONS[k]} ({n})", "output": [{"answer": GOLD[k]}]}
        for n in range(24)
        for k in (0 if n % 4 < 2 else 2,)
    ]
    write_lines(cli.workspace / "many.jsonl", rows)
    data = f"data={cli.workspace / 'many.jsonl'}"
    found = report(cli, "curve", data, "index=tiny", "quality=f1")
    held_out, tests = found["retrieval_held_out"], cli.tests_in(found)
    row = tests["retrieval, held out, less always", "f1"]
    assert row[2]["n"] == 12 and tests["never less always", "f1"][2]["n"] == 24
    assert row[2]["value"] == pytest.approx(held_out["quality"] - held_out["always"]["quality"])


def test_a_draft_that_has_read_a_passage_is_not_called_never(cli: CommandLine) -> None:
    data = f"data={cli.workspace / 'gold.jsonl'}"
    found = report(cli, "curve", data, "index=tiny", "draft_passages=1", "quality=f1")
    assert set(found["points"]) == {"draft with 1 passage", "always", "oracle"}
    for table in found["tables"]:
        columns = table["columns"]
        assert (
            "Read all passages" in columns or "p, corrected" in columns
        ) and "Retrieved" not in columns
    assert "never" not in json.dumps([found["tables"], found["plots"]])
    assert any(note.startswith("Every draft has read 1 passage, so no") for note in found["notes"])


def test_a_judged_curve_leaves_out_what_has_no_score(cli: CommandLine) -> None:
    data = f"data={cli.workspace / 'articles_A_d.jsonl'}"
    found = report(cli, "curve", data, "index=tiny", "judge=judge")
    assert found["questions"] == 2 and found["quality"] == "both"
    assert "1 of 3 questions lack a score or a token count and are in no point." in found["notes"]
    assert found["points"]["never"]["quality"] == pytest.approx((1 + 4.5) / 2)
    (part,) = found["parts"]
    assert part["metrics"]["draft_truthfulness"]["n"] == part["metrics"]["read_perfect"]["n"] == 2
    assert len(list((cli.workspace / "runs" / part["run"] / "judges").iterdir())) == 2
    assert found["judge of draft"]["judged"] == found["judge of read"]["judged"] == 3


def test_agreement_is_reported_run_by_run_with_intervals(cli: CommandLine) -> None:
    folder = cli.workspace / "runs-given"
    folder.mkdir()
    answers = [("I don't know", 1, 1), ("Titan", 5, 4.5), ("Titan", 4, 5), ("Paris", 2, 1)]
    rows = [
        {
            "id": f"x{n}",
            "title": PASSAGES[n % 2][2],
            "question": QUESTIONS[n % 2],
            "answer": text,
            "truthfulness": truthfulness,
            "relevance": relevance,
        }
        for n, (text, truthfulness, relevance) in enumerate(answers)
    ]
    write_lines(folder / "one.jsonl", [*rows, {**rows[0], "id": "y", "title": "Nowhere"}])
    unread = {"title": PASSAGES[2][2], "question": QUESTIONS[2]}
    write_lines(folder / "two.jsonl", [{**row, **unread} for row in rows])
    found = report(cli, "agreement", f"runs={folder}", llm="judge")
    one = found["truthfulness"]["one"]
    values = [one[name]["value"] for name in ("mae", "bias", "exact")]
    assert (one["n"], one["unparsed"], values) == (4, 0, [0.75, 0.75, 0.5])
    assert one["pearson"]["low"] <= one["pearson"]["value"] <= one["pearson"]["high"]
    assert found["truthfulness"]["two"]["unparsed"] == 1 and found["truthfulness"]["all"]["n"] == 7
    assert any("1 of 5 answers have no article or no scores" in note for note in found["notes"])
    assert [table["columns"][:3] for table in found["tables"]] == [["Run", "Pairs", "Unparsed"]] * 2
    assert len(found["plots"]) == 2
    assert found["runs"]["two"]["judged"] == 4 and found["compat"] == "corrected"
    dead = cli.suite("barag-agreement", f"runs={folder}", llm="tools", run="r")
    assert dead.code == 1 and "cannot be reached" in dead.last


@pytest.mark.parametrize(
    ("suite", "settings", "said"),
    [
        ("modes", "data= index=tiny", "The setting data is empty"),
        ("modes", "data=DIR/none.jsonl index=tiny", "does not exist"),
        ("modes", "data=DIR set=A_x index=tiny", "It holds: A_d, A_f"),
        ("modes", "ARTICLES index=", "an index is needed"),
        ("modes", "ARTICLES index=tinny", "tiny"),
        ("modes", "ARTICLES modes=nave", "modes must be one of baseline, gt, naive"),
        ("modes", "GOLD judge=judge", "need the article of every question"),
        ("modes", "ARTICLES judge=jugde", "jugde"),
        ("modes", "data=DIR/bare.jsonl index=tiny", "No row of"),
        ("modes", "data=DIR/untitled.jsonl index=tiny", "has no 'title'"),
        ("modes", "ARTICLES prompts=DIR/none", "not a folder of prompts"),
        ("modes", "ARTICLES prompts=DIR", "holds none of the prompts of this request (naive-sys"),
        ("curve", "GOLD quality=both", "and a judge; give --set judge"),
        ("curve", "GOLD quality=grounded", "it can be: f1, em"),
        ("curve", "GOLD thresholds=a", "thresholds must be a number"),
        ("agreement", "runs=DIR/none", "does not exist"),
        ("agreement", "runs=DIR/datasets", "has no 'title'"),
        ("tables", "runs=", "No folder of run files"),
        ("tables", "runs=DIR LLM", "suite 'barag-tables' asks no language model; leave --llm out"),
        ("tables", "runs=DIR/chains", "holds no run file"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    cli: CommandLine, suite: str, settings: str, said: str
) -> None:
    folder = cli.workspace
    row = {"id": 1, "title": "T", "content": "", "question": "Q?"}
    write_lines(folder / "bare.jsonl", [row])
    write_lines(folder / "untitled.jsonl", [{"id": 1, "content": "C", "question": "Q?"}])
    for word, file in (("ARTICLES", "articles_A_d"), ("GOLD", "gold")):
        settings = settings.replace(word, f"data=DIR/{file}.jsonl index=tiny")
    llm = "agent" if suite != "tables" or "LLM" in settings else ""
    pairs = settings.replace(" LLM", "").replace("DIR", str(folder)).split()
    ran = cli.suite(f"barag-{suite}", *pairs, llm=llm, run="r")
    assert ran.code == 2 and said in ran.last
    assert not (folder / "runs").exists() and not (folder / "experiments").exists()


def test_behind_an_api_decisions_are_tool_calls_and_a_dead_one_stops(cli: CommandLine) -> None:
    data = f"data={cli.workspace / 'articles_A_d.jsonl'}"
    ran = cli.suite("barag-modes", data, "index=tiny", "modes=basic", llm="tools", run="r")
    assert ran.code == 1 and "cannot be reached" in ran.last
    run = json.loads((cli.workspace / "runs" / "r basic" / "run.json").read_text())
    assert run["spec"]["settings"]["calls"] == "tools"


def test_the_system_prompts_of_barags_repository_are_sent(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "prompts.py").write_text(
        "system_prompt_nrag = 'Use the extracts.'\nsystem_prompt_barag = 'Choose.'\n"
    )
    found = modes(cli, "modes=naive,basic", f"prompts={tmp_path}")
    sent = [each[-1]["messages"][0]["content"] for each in steps(cli.workspace, "r naive")]
    assert set(sent) == {"Use the extracts."}
    wording = found["wording"]
    assert wording["whose"] == "original" and "basic-decide.txt" in wording["shipped"]
