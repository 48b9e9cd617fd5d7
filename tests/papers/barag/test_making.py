"""BARAG's datasets: five stages, each a file that can be read, edited and continued; nothing is lost silently."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from small_workspace import (
    CommandLine,
    command,
    environment,
    everything,
    read_lines,
    scripted,
    write_lines,
)

from rallebench.datasets.reading import read_questions

MINE = {"name": "mine", "llm": "writer"}
FILL = "It happened in a town by the sea, and everybody who was there remembers it well. "


def article(name: str, date: str = "2022-05-01", **more: Any) -> dict[str, Any]:
    text = more.pop("content", f"The festival of {name} was first held in {date[:4]}. " + FILL * 15)
    return {
        "id": name.lower(),
        "title": name,
        "url": f"https://example.org/{name}",
        "date": date,
        "content": text,
        **more,
    }


CHECKS_OFF = ("questions=0", "recency=false", "answerable=false", "closed_book=false")
ARTICLES = (
    article("Alpha"),
    article("Beta", "2021-10-01T00:00:00Z"),  # the instant itself is not after it
    article("Gamma", "2021-10-01T00:00:01Z"),
    article("Delta", ""),
    article("Epsilon", "last week"),
    article("Zeta", content="Only three words."),
    article("alpha ", content="Another text of that title. " + FILL * 15),
    article("Eta", content="The festival of Alpha was first held in 2022. " + FILL * 15),
    article("Theta"),
    article("Iota", content="Iota is large. " + FILL * 200),
)
ASKED = "Judge what it is about[\\s\\S]*Article:\\n"
WRITTEN = "Read the text[\\s\\S]*Text:\\n"
SAID = {
    f"{ASKED}Theta": '{"recent": false, "reason": "old"}',
    f"{ASKED}Iota": "I am sorry, I cannot tell.",
    ASKED: 'Sure: {"recent": true, "reason": "new"}',
    f"{WRITTEN}Alpha": '{"questions": [{"question": "When was the festival of Alpha first held?", "answer": "2022"}]}',
    f"{WRITTEN}Gamma": "1. Where was the festival of Gamma held?\nAnswer: in a town by the sea",
    f"{WRITTEN}Iota": "I cannot help with that.",
    "answered completely": '{"answerable": true, "answer": "by the sea"}',
    "from what you know": '{"known": false, "answer": ""}',
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    models = scripted({"writer": {"replies": SAID}, "mute": {"replies": {}}})
    (folder / "llms.json").write_text(json.dumps(models))
    write_lines(tmp_path / "articles.jsonl", ARTICLES)
    return folder


def make(cli: CommandLine, *pairs: str, **more: Any) -> Any:
    place = cli.workspace.parent / "articles.jsonl"
    return cli.built("barag", *pairs, **{"articles": place, **MINE, **more})


def build_stages(cli: CommandLine, *pairs: str, **more: Any) -> Any:
    return make(cli, *pairs, **more)["counts"]["stages"]


def stage(cli: CommandLine, label: str) -> dict[str, Any]:
    rows = read_lines(cli.workspace / "experiments" / "mine" / f"{label}.jsonl")
    return {row["id"]: row for row in rows}


def rewrite(cli: CommandLine, label: str, **changes: dict[str, Any]) -> None:
    rows = [{**row, **changes.get(name, {})} for name, row in stage(cli, label).items()]
    write_lines(cli.workspace / "experiments" / "mine" / f"{label}.jsonl", rows)


def replies(cli: CommandLine, said: Mapping[str, str], **settings: Any) -> None:
    """Set the model's replies: pattern in a prompt → reply; the first pattern that matches counts."""
    models = scripted({"writer": {"replies": dict(said), **settings}})
    (cli.workspace / "llms.json").write_text(json.dumps(models))


def said_with(cli: CommandLine, **changes: str) -> None:
    replies(cli, {**changes, **{key: SAID[key] for key in SAID if key not in changes}})


def test_every_article_left_out_is_counted_and_tokens_are_by_stage(cli: CommandLine) -> None:
    made = make(cli)
    stages = made["counts"]["stages"]
    assert {label: stages[label]["left_out"] for label in stages} == {
        "1-articles": {"not longer than wanted": 1, "same title": 1, "same text": 1},
        "2-dates": {"not after the date": 1, "no date": 1, "date cannot be read": 1},
        "3-recency": {"content not recent": 1},
        "4-questions": {"no question in the reply": 1},
        "5-checks": {},
    }
    recency = stages["3-recency"]
    assert [recency[key] for key in ("inputs", "kept", "unknown", "calls")] == [4, 3, 1, 5]
    assert recency["prompt_tokens"] > 5 * 100 and recency["completion_tokens"] > 5
    assert "calls" not in stages["2-dates"] and stages["5-checks"]["calls"] == 4
    assert stages["5-checks"]["kept"] == 2 == made["counts"]["questions"]
    same = {name: row.get("same_as") for name, row in stage(cli, "1-articles").items()}
    assert (same["alpha~2"], same["eta"], same["beta"]) == ("alpha", "alpha", None)


def test_the_set_is_in_kilts_form_in_the_studys_and_beside_its_corpus(cli: CommandLine) -> None:
    questions, studys, corpus, *_ = make(cli)["files"]
    alpha, gamma = read_questions(Path(questions))
    assert (alpha.gold.answers, alpha.gold.titles) == (("2022",), {"alpha": "Alpha"})
    assert gamma.question.text == "Where was the festival of Gamma held?"
    assert gamma.gold.answers == ("in a town by the sea",)
    row = read_lines(Path(studys))[0]
    assert {"id", "title", "url", "date", "question", "content"} <= row.keys()
    assert row["content"].startswith("The festival")
    assert "mine" in {row["name"] for row in cli.json("list", "datasets")["datasets"]}
    manifest = cli.json("index", "--corpus", corpus, "--name", "made", "--kind", "bm25")
    assert manifest["passages"] == 7
    (found,) = cli.json("search", "--index", "made", "-k", "1", "festival of Gamma")
    assert found["hits"][0]["page_id"] == "gamma"


def test_a_verdict_is_kept_with_what_was_asked_and_replied(cli: CommandLine) -> None:
    make(cli)
    theta, iota = (stage(cli, "3-recency")[name] for name in ("theta", "iota"))
    recent = theta["recent"]
    assert "2021-10-01" in recent["prompt"] and "characters of theta]" in recent["prompt"]
    actual = (recent["reply"], recent["value"], recent["reason"])
    assert actual == (SAID[f"{ASKED}Theta"], False, "old")
    actual = (iota["verdict"], iota["keep"], iota["recent"]["tries"], iota["asked"]["calls"])
    assert actual == ("unknown", True, 2, 2)
    assert "first 15000 characters of iota]" in iota["recent"]["prompt"]
    check = stage(cli, "5-checks")["alpha-q1"]
    values = [check[name]["value"] for name in ("answerable", "closed_book", "without")]
    assert values == [True, "", False]


def test_an_article_of_2_megabytes_is_shown_by_its_beginning(cli: CommandLine) -> None:
    large = article("Alpha", content="Alpha is large. " + FILL * 26_000)
    place = write_lines(cli.workspace.parent / "large.jsonl", [large])
    made = make(cli, articles=place, name="large")
    assert made["counts"]["questions"] == 1
    assert made["counts"]["stages"]["3-recency"]["prompt_tokens"] < 4000


def test_a_second_run_makes_and_asks_nothing_and_new_articles_are_added(cli: CommandLine) -> None:
    make(cli)
    before = everything(cli.workspace / "experiments")
    assert all(counts["made"] == 0 for counts in build_stages(cli).values())
    after = everything(cli.workspace / "experiments")
    stages = [name for name in after if name.startswith("mine/") and name[5].isdigit()]
    assert len(stages) == 5 and all(before[name] == after[name] for name in stages)
    write_lines(cli.workspace.parent / "articles.jsonl", [*ARTICLES, article("Kappa")])
    grown = build_stages(cli)
    assert grown["1-articles"]["made"] == 1 and grown["3-recency"]["made"] == 1


def test_what_a_person_edits_is_honoured_and_what_follows_is_made(cli: CommandLine) -> None:
    make(cli)
    rewrite(cli, "2-dates", delta={"keep": True, "why": ""})
    rewrite(cli, "3-recency", theta={"keep": False, "why": "I looked: it is old"})
    another = "Which festival began in Alpha?"
    rewrite(cli, "4-questions", **{"alpha-q1": {"question": another}})
    made = make(cli)
    stages = made["counts"]["stages"]
    assert [stages[label]["made"] for label in stages] == [0, 0, 1, 1, 1]
    assert stages["4-questions"]["failed"] == 1, "nothing is said of Delta; the others are made"
    assert stages["3-recency"]["left_out"] == {"I looked: it is old": 1}
    assert stages["3-recency"]["edited"] == 1
    assert read_lines(Path(made["files"][0]))[0]["input"] == another


@pytest.mark.parametrize(
    ("settings", "stage", "expected"),
    [
        ("undated=keep", "2-dates", {"left_out": {"not after the date": 1}}),
        ("unknown=leave-out", "3-recency", {"kept": 2}),
        ("after=", "2-dates", {"kept": 7}),
        ("after=2022-01-01", "2-dates", {"made": 7, "kept": 3}),
        ("after=2022-01-01", "1-articles", {"made": 0}),
        ("after=2022-01-01", "4-questions", {"made": 0}),
        ("questions=2 near=0", "4-questions", {"kept": 6}),
    ],
)
def test_another_setting_makes_again_only_the_stages_that_depend_on_it(
    cli: CommandLine, settings: str, stage: str, expected: dict[str, Any]
) -> None:
    make(cli)
    two = '["Who began the festival?", "Why is the sea near the town cold?", "A third?"]'
    said_with(cli, **{"write 2 different questions": two})
    stages = build_stages(cli, *settings.split())
    assert {key: stages[stage][key] for key in expected} == expected
    assert ("3-recency" in stages) is (settings != "after=")


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ({"answered completely": '{"answerable": false}'}, "not answered by its article"),
        (
            {"from what you know": '{"known": true, "answer": "In 2022, I think."}'},
            "answered without its article",
        ),
        (
            {
                "from what you know": "It was held on the coast.",
                "is the answer right": '{"right": true, "reason": "same"}',
            },
            "answered without its article",
        ),
        ({f"{WRITTEN}Alpha": "According to the text, when was it?"}, "mentions its text"),
        ({f"{WRITTEN}Alpha": "Where was the festival of Gamma held?"}, "nearly the same question"),
    ],
)
def test_a_question_that_fails_a_check_is_left_out_with_the_reason(
    cli: CommandLine, replies: dict[str, str], why: str
) -> None:
    said_with(cli, **replies)
    assert build_stages(cli)["5-checks"]["left_out"].get(why)
    if "is the answer right" in replies:
        without = stage(cli, "5-checks")["gamma-q1"]["without"]
        assert "It was held on the coast." in without["prompt"] and without["reason"] == "same"


def test_checks_can_be_switched_off_and_then_need_no_model(cli: CommandLine) -> None:
    rows = [
        {**row, "question": f"What of {row['title']}, according to the text?"}
        for row in ARTICLES[:3]
    ]
    place = write_lines(cli.workspace.parent / "given.jsonl", rows)
    given = {"articles": place, "name": "given"}
    stages = cli.built("barag", *CHECKS_OFF, **given)["counts"]["stages"]
    assert stages["5-checks"]["left_out"] == {"mentions its text": 2}
    made = cli.built("barag", *CHECKS_OFF, "leaks=false", "near=0", **given)
    assert made["counts"]["questions"] == 2 and "have no answers" in made["notes"][0]


def test_what_failed_is_counted_and_tried_again_unless_all_fails(cli: CommandLine) -> None:
    failed = cli.build(
        "barag", articles=cli.workspace.parent / "articles.jsonl", name="mine", llm="mute"
    )
    assert failed.code == 1 and "The first 4 requests all failed" in failed.last
    assert not (cli.workspace / "datasets").exists()
    few = {key: SAID[key] for key in SAID if key not in (ASKED, f"{WRITTEN}Iota")}
    replies(cli, {**few, f"{ASKED}Gamma": "true"})
    stages = build_stages(cli)
    assert stages["3-recency"]["failed"] == 1
    assert stages["3-recency"]["left_out"] == {"content not recent": 1}
    assert stages["4-questions"]["left_out"] == {"the request failed": 1}
    said_with(cli)
    made = make(cli)
    assert made["counts"]["stages"]["3-recency"]["failed"] == 0 and made["counts"]["questions"] == 2
    left_out = made["counts"]["stages"]["4-questions"]["left_out"]
    assert left_out == {"no question in the reply": 1}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--llm", "extractive-reader"), "only copies from passages: it cannot write questions"),
        ((), "name one with --llm, or do without: --set questions=0 --set recency=false"),
        (("--llm", "nobody"), "There is no language model 'nobody'"),
        (("--llm", "writer", "--set", "after=soon"), "after=soon is not a date"),
        (("--llm", "writer", "--set", "afterr=2021"), "has no setting 'afterr'"),
        (("--llm", "writer", "--set", "prompts=/nowhere"), "is not a folder of prompts"),
        (("--llm", "writer", "--set", "prompts=/"), "/ holds none of the prompts of this request"),
        (("--llm", "writer", "--limit", "0"), "limit=0: limit must be at least 1"),
        (("--llm", "writer", "--name", "starter-qa"), "'starter-qa' exists already"),
        (("--llm", "writer", "--name", "a/b"), "cannot be a folder name"),
        (("--llm", "writer", "--articles", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    cli: CommandLine, more: tuple[str, ...], sentence: str
) -> None:
    place = cli.workspace.parent / "articles.jsonl"
    before = everything(cli.workspace)
    ran = cli("build-dataset", "barag", "--name", "mine", "--articles", place, *more)
    assert ran.code == 2 and sentence in ran.last, ran.err
    assert everything(cli.workspace) == before


def test_a_list_without_any_article_is_told_and_leaves_no_set(cli: CommandLine) -> None:
    place = write_lines(cli.workspace.parent / "none.jsonl", [{"title": "no text"}])
    ran = cli.build("barag", articles=place, **MINE)
    assert ran.code == 2 and "no article" in ran.last and "line 1 has no 'content'" in ran.last
    assert not (cli.workspace / "experiments").exists()


def test_other_articles_under_a_name_that_is_taken_are_refused(cli: CommandLine) -> None:
    make(cli)
    place = write_lines(cli.workspace.parent / "other.jsonl", ARTICLES[:1])
    ran = cli.build("barag", articles=place, **MINE)
    assert ran.code == 2 and "is being made with the articles" in ran.last


def test_a_dataset_that_was_edited_is_not_written_over(cli: CommandLine) -> None:
    target = Path(make(cli)["files"][0])
    target.write_text(target.read_text().replace("festival", "fair"))
    place = cli.workspace.parent / "articles.jsonl"
    ran = cli.build("barag", articles=place, **MINE)
    assert ran.code == 2
    assert "was changed since it was made" in ran.last
    assert "fair" in target.read_text()


@pytest.mark.slow
def test_killed_in_the_middle_it_continues_where_it_stood(cli: CommandLine) -> None:
    replies(cli, SAID, delay=0.4)
    place = cli.workspace.parent / "articles.jsonl"
    arguments = ("build-dataset", "barag", "--articles", place, "--name", "mine", "--llm", "writer")
    running = subprocess.Popen(
        command(*arguments, "--batch-size", "1", "--workspace", cli.workspace),
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    file = cli.workspace / "experiments" / "mine" / "3-recency.jsonl"
    deadline = time.monotonic() + 60
    while (
        not (file.exists() and len(file.read_text().splitlines()) >= 2)
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    there = len(read_lines(file))
    assert 2 <= there < 4
    said_with(cli)
    made = cli.json(*arguments, "--batch-size", "1")
    assert made["counts"]["stages"]["3-recency"]["made"] == 4 - there
    assert made["counts"]["questions"] == 2


@pytest.mark.shared_data
def test_published_articles_give_the_published_counts(cli: CommandLine, shared_data: Path) -> None:
    folder = shared_data / "barag"
    dated = read_lines(folder / "articles_A_d.jsonl")
    by_id = {row["id"]: row for row in dated}
    rows = [{**by_id[row["a_d_id"]], **row} for row in read_lines(folder / "articles_A_f.jsonl")]
    place = write_lines(cli.workspace.parent / "a_f.jsonl", rows)
    stages = cli.built("barag", *CHECKS_OFF, articles=place, name="a-f")["counts"]["stages"]
    assert stages["1-articles"]["left_out"] == {
        "same title": len(rows) - len({row["title"] for row in rows})
    }
    assert len(rows) > stages["1-articles"]["kept"]
    place = folder / "articles_A_d.jsonl"
    stages = cli.built("barag", *CHECKS_OFF, articles=place, name="a-d")["counts"]["stages"]
    assert stages["1-articles"]["kept"] == stages["2-dates"]["kept"] == len(dated), (
        "all of them are longer than 1,000 and after the date"
    )
    assert stages["5-checks"]["left_out"] == {"mentions its text": 7}


def test_without_a_maker_all_are_described(cli: CommandLine) -> None:
    makers = {one["name"]: one for one in cli.json("build-dataset")["makers"]}
    assert {"barag", "rgb"} <= makers.keys()
    assert {"after", "length", "questions"} <= {one["name"] for one in makers["barag"]["settings"]}
