"""A table of a paper, recomputed from the stored answers by code that shares nothing with the suites.

BARAG's three tables are recomputed so in ``test_barag_tables``.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import jieba
import pytest
from small_workspace import CommandLine, make_workspace, read_lines, record, scripted, write_lines

from rallebench.analysis.agents import AgentTask, System
from rallebench.analysis.agents.leaderboard import board
from rallebench.datasets.tasks import TASKS
from rallebench.experiments.published import FOLDER


def models(workspace: Path, replies: dict[str, str], default: str) -> None:
    workspace.mkdir(parents=True, exist_ok=True)
    entry = scripted({"m": {"replies": replies, "default": default}})
    (workspace / "llms.json").write_text(json.dumps(entry, ensure_ascii=False), encoding="utf-8")


def table(report: Any, beginning: str) -> Any:
    return next(t for t in report["tables"] if t["title"].startswith(beginning))


# RaLLe, Tables 2 and 3: EM, KILT-EM, R-precision


def plain(text: str) -> str:
    """As the SQuAD script compares answers."""
    bare = "".join(
        " " * (c in string.whitespace) or c for c in text.lower() if c not in string.punctuation
    )
    return " ".join(word for word in bare.split() if word not in ("a", "an", "the"))


def test_ralles_headline_kilt_variant_and_r_precision(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workspace = make_workspace(tmp_path / "w")
    rows = [
        record("a", "Which moon of Saturn has an atmosphere?", "Titan", "p1"),
        record("b", "Where is the Eiffel Tower?", "Paris", "p2"),
        record("c", "Who saw Titan first?", "Huygens", "p5"),
        record("d", "Which moon has Pluto?", "Charon", "p6"),
    ]
    models(workspace, {"Saturn": "The titan.", "Eiffel": "Lyon", "Pluto": "Charon!"}, "Cassini")
    data = f"file={write_lines(tmp_path / 'nq.jsonl', rows)}"
    report = CommandLine(capfd, workspace).report(
        "kilt-nq", data, "retriever=tiny", "k=3", llm="m", run="r"
    )
    exact, ranked, both = [], [], []
    for line in read_lines(workspace / "runs" / "r nq read" / "episodes.jsonl"):
        gold = next(row for row in rows if row["id"] == line["qid"])["output"][0]
        answer = line["answer"]
        exact.append(float(plain(answer) == plain(gold["answer"])))
        hits = next(s["reply"] for s in line["steps"] if s["ask"] == "retrieve").get("hits", [])
        pages = [hit["page_id"] for hit in hits[:1]]
        ranked.append(float(pages == [gold["provenance"][0]["wikipedia_id"]]))
        both.append(exact[-1] * ranked[-1])
    assert 0 < fmean(exact) < 1, "answers of both kinds"
    for title, values in (("Headline", exact), ("KILT's variant", both), ("R-precision", ranked)):
        assert table(report, title)["rows"][0][1]["value"] == pytest.approx(fmean(values)), title


# RGB, Table 1


def is_right(prediction: str, answer: Any) -> bool:
    """A text is one answer; of a list all are required, and a list in it has their aliases."""
    required = answer if isinstance(answer, list) else [answer]
    text = prediction.replace(" ", "").lower()
    return all(
        any(str(alias).lower() in text for alias in (one if isinstance(one, list) else [one]))
        for one in required
    )


@pytest.mark.shared_data
def test_rgbs_accuracy_at_every_share_of_noise(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, shared_data: Path
) -> None:
    workspace, rows = tmp_path / "w", read_lines(shared_data / "rgb" / "zh_refine.jsonl")[:40]
    by_id = {str(row["id"]): row for row in rows}
    said = ["由于文档信息不足，因此我无法基于提供的文档回答该问题。", "答案是 {}。", "不知道"]
    replies = {}
    for number, row in enumerate(rows):
        first = [one[0] if isinstance(one, list) else one for one in row["answer"]]
        words = "、".join(first) if isinstance(row["answer"], list) else row["answer"]
        replies[row["query"].replace("?", r"\?")] = said[number % 3].format(words)
    models(workspace, replies, "没有")
    where = f"data={shared_data / 'rgb'}", "language=zh", "set=zh_refine", "noise=0,0.8"
    report = CommandLine(capfd, workspace).report(
        "rgb-noise", *where, llm="m", run="r", flags=("--limit", "40")
    )
    shown = table(report, "Accuracy over shares of noise")["rows"]
    for column, share in enumerate(("0", "0.8"), 1):
        lines = read_lines(workspace / "runs" / f"r noise={share}" / "episodes.jsonl")
        answers = [(line["answer"], by_id[line["qid"]]["answer"]) for line in lines]
        right = [is_right(*pair) for pair in answers]
        declined = ["信息不足" in prediction for prediction, _ in answers]
        assert len(lines) == 40 and 0 < fmean(right) < 1 and 0 < fmean(declined) < 1
        assert [shown[0][column]["value"], shown[1][column]["value"]] == [
            fmean(right),
            fmean(declined),
        ]


# CRUD-RAG, Table 3 and its like


def bleu(answer: Sequence[str], reference: Sequence[str]) -> float:
    logs = []
    for order in range(1, 5):
        of_answer, of_reference = (
            Counter(tuple(words[i : i + order]) for i in range(len(words) - order + 1))
            for words in (answer, reference)
        )
        shared = sum(min(n, of_reference[gram]) for gram, n in of_answer.items())
        if not shared:
            return 0.0
        logs.append(math.log(shared / sum(of_answer.values())))
    return math.exp(fmean(logs))


def rouge_l(answer: Sequence[str], reference: Sequence[str]) -> float:
    lengths = [[0] * (len(reference) + 1) for _ in range(len(answer) + 1)]
    for i, left in enumerate(answer, 1):
        for j, right in enumerate(reference, 1):
            longest = max(lengths[i - 1][j], lengths[i][j - 1])
            lengths[i][j] = lengths[i - 1][j - 1] + 1 if left == right else longest
    common = lengths[-1][-1]
    return 2 * common / (len(answer) + len(reference)) if common else 0.0


@pytest.mark.shared_data
def test_crud_rags_bleu_rouge_and_length(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, shared_data: Path
) -> None:
    workspace = tmp_path / "w"
    with open(shared_data / "crud" / "corpus.tsv", encoding="utf-8") as lines:
        next(lines)
        texts = [next(lines).split("\t")[1] for _ in range(12)]
    rows = [
        {"ID": f"r{n}", "event": text[20:50], "summary": text[50:130]}
        for n, text in enumerate(texts)
    ]
    cut = [(0, 80), (10, 60), (30, 80), (60, 75)]
    replies = {}
    for n, row in enumerate(rows[:-1]):  # the last answer is empty
        start, end = cut[n % 4]
        words = row["summary"][start:end] + "另外" * (n % 2)
        replies[re.escape(row["event"])] = f"<response>{words}</response>"
    models(workspace, replies, "<response></response>")
    data = f"data={write_lines(tmp_path / 'summary.jsonl', rows)}"
    report = CommandLine(capfd, workspace).report("crud-summary", data, "k=0", llm="m", run="r")
    scored = []
    for line in read_lines(workspace / "runs" / "r summary" / "episodes.jsonl"):
        reference = next(row for row in rows if row["ID"] == line["qid"])["summary"].strip()
        if answer := line["answer"]:
            pair = list(jieba.cut(answer)), list(jieba.cut(reference))
            scored.append((100 * bleu(*pair), 100 * rouge_l(*pair), len(answer)))
    row = dict(zip(table(report, "CRUD-RAG")["columns"], table(report, "CRUD-RAG")["rows"][0]))
    assert 8 < len(scored) == row["BLEU"]["n"] < 12, "an empty answer is in no mean"
    for head, values in zip(("BLEU", "ROUGE-L", "length"), zip(*scored)):
        assert row[head]["value"] == pytest.approx(fmean(values)), head


# R-Eval, Table 3


def test_r_evals_printed_means_follow_from_the_printed_tasks_but_for_the_doubtful_ones() -> None:
    printed: dict[str, dict[str, float]] = {}
    for name in ("reval_table3", "reval_table5"):
        document = json.loads((FOLDER / f"{name}.json").read_text())
        for row in document["rows"]:
            printed.setdefault(row["system"], {}).update(row["values"])
    tasks = [AgentTask(t.name, t.domain, t.level, t.number) for t in TASKS]
    systems = {name: System(*name.split(" + ")) for name in printed}
    scores = {
        (system, task): printed[name][task.order]
        for name, system in systems.items()
        for task in tasks
    }
    groups = tuple(dict.fromkeys(task.group for task in tasks))
    means = board(list(systems.values()), tasks, scores, groups).means
    wrong = {
        (name, head)
        for name, system in systems.items()
        for head in ("wiki", "aminer", "all")
        if abs(means[system][head] - printed[name][head]) > 0.05 + 1e-9
    }
    assert wrong == {
        ("PAL + gpt-4-1106", "wiki"),
        ("PAL + gpt-4-1106", "aminer"),
        ("ReAct + gpt-3.5-turbo", "aminer"),
        ("ReAct + vicuna-13b", "all"),
    }
    doubts = " ".join(json.loads((FOLDER / "reval_table3.json").read_text())["doubts"])
    assert all(name.partition(" + ")[2].partition("-1106")[0] in doubts for name, _ in wrong)
