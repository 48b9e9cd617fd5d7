"""CRUD-RAG from the command line, in Chinese: a table beside the paper's, CRUD's own files, references asked once, ever."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import building
import pytest
from performing import plan
from small_workspace import (
    CommandLine,
    copy_workspace,
    everything,
    numbers,
    read_lines,
    scripted,
    write_lines,
)

from rallebench.core.errors import BadFileError
from rallebench.core.experiments import ExperimentRequest
from rallebench.experiments import SUITES
from rallebench.experiments.papers.crud.cells import text_values
from rallebench.experiments.papers.crud.files import read_earlier
from rallebench.experiments.papers.crud.records import FAILED
from rallebench.workspace.paths import Workspace

NEWS = {
    "1": "2023-07-28，正文：河北省运动员在2023年全国田径锦标赛中获得4枚金牌，创造了历史最好成绩。",
    "2": "2023-08-02，正文：青禾市首条无人驾驶公交线路正式开通，线路全长12公里，设站9座。",
    "3": "2023-09-14，正文：临江市城东水厂二期工程通水，总投资2.4亿元，惠及约50万居民。",
    "4": "2023-09-20，正文：云溪县推广屋顶光伏，户均年增收约2000元，农户无需首付。",
}
QA = (
    (
        "q1",
        "河北省运动员在全国田径锦标赛中获得几枚金牌？",
        "获得4枚金牌，创造了历史最好成绩。",
        "1",
    ),
    ("q2", "青禾市无人驾驶公交线路全长多少？", "线路全长12公里，设站9座。", "2"),
    ("q3", "临江市城东水厂二期工程投资多少？", "总投资2.4亿元，惠及约50万居民。", "3"),
)
REPLIES = {
    "问题：河北省运动员在全国田径锦标赛中": "想一想。<response>\n获得4枚金牌，创造了历史最好成绩。\n</response>",
    "问题：青禾市无人驾驶公交线路全长多少？\n检索": "<response>全长12公里。</response>",
    "问题：临江市城东水厂二期工程": "<response> </response>",
}
QUESTIONS = json.dumps(
    {"key_info": ["4枚", "历史"], "question": ["几枚金牌？", "什么成绩？"]}, ensure_ascii=False
)
JUDGE = {
    "文本：获得4枚金牌，创造了历史最好成绩。\n输出": f"好的：{QUESTIONS}",
    "文本：线路全长12公里，设站9座。\n输出": "我不会。",
    "文本：获得4枚金牌": "<response>\n4枚\n</response>\n<response>\n历史最好\n</response>",
    "文本：全长12公里": "<response>\n12公里\n</response>",
}
MODELS = {
    "reads": {"replies": REPLIES, "default": "<response>不知道。</response>"},
    "picky": {"replies": {"问题：青禾市": "12公里"}},
    "judge": {"replies": JUDGE, "default": "没有"},
    "mute": {"replies": []},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crud")
    (folder / "crud-data").mkdir(parents=True)
    rows = [
        {"ID": qid, "questions": q, "answers": a, "news1": NEWS[page]} for qid, q, a, page in QA
    ]
    write_lines(folder / "crud-data" / "qa1.jsonl", rows)
    whole = {
        "event_summary": [
            {"ID": "s", "event": "水厂通水", "summary": "城东水厂通水。"},
            {"ID": "t", "event": "", "summary": "无"},
        ],
        "continuing_writing": [
            {
                "ID": "c",
                "beginning": "青禾市首条无人驾驶公交线路正式开通，",
                "continuing": "线路全长12公里。",
            }
        ],
        "hallu_modified": [
            {
                "ID": "h",
                "newsBeginning": "水厂通水。",
                "hallucinatedContinuation": "惠及河北省运动员。",
                "hallucinatedMod": "惠及居民。",
            },
            {
                "ID": "x",
                "newsBeginning": "开头",
                "hallucinatedContinuation": "续写",
                "hallucinatedMod": FAILED,
            },
        ],
    }
    (folder / "crud-data" / "split_merged.json").write_text(
        json.dumps(whole, ensure_ascii=False), encoding="utf-8"
    )
    (folder / "corpus.tsv").write_text(
        "id\ttext\ttitle\n" + "".join(f"{i}\t{text}\t\n" for i, text in NEWS.items()),
        encoding="utf-8",
    )
    models: dict[str, Any] = scripted(MODELS)
    (folder / "llms.json").write_text(json.dumps(models), encoding="utf-8")
    building.built(folder / "indexes", "news", folder / "corpus.tsv", "bm25")
    return folder


@pytest.fixture
def workspace(built: Path, tmp_path: Path) -> Path:
    return copy_workspace(built, tmp_path / "workspace")


def suite(rallebench: CommandLine, name: str, *settings: str, **more: Any) -> Any:
    pairs = (f"data={rallebench.workspace / 'crud-data'}", "index=news", "k=2", *settings)
    return rallebench.report(name, *pairs, **{"llm": "reads", "run": "r", **more})


def sent(workspace: Path, run: str) -> list[str]:
    """The prompts of a run, in the order of its episodes."""
    lines = read_lines(workspace / "runs" / run / "episodes.jsonl")
    return [
        step["messages"][0]["content"]
        for line in lines
        for step in line["steps"]
        if step["ask"] == "generate"
    ]


def test_answers_are_parsed_scored_and_shown_beside_the_papers(
    rallebench: CommandLine, workspace: Path
) -> None:
    found = suite(rallebench, "crud-qa1")
    (part,) = found["parts"]
    whole, half = (text_values(said, QA[n][2]) for n, said in ((0, QA[0][2]), (1, "全长12公里。")))
    assert (part["n"], part["n_errors"], part["metrics"]["bleu-avg"]["n"]) == (3, 0, 2)
    assert numbers(part)["bleu-avg"] == pytest.approx((1 + (half["bleu-avg"] or 0)) / 2)
    assert whole["rouge-L"] == 1.0
    assert numbers(part)["length"] == (len(QA[0][2]) + 7) / 2 and numbers(part)["mrr"] == 1.0
    expected = {"asked": 3, "failed": 0, "empty": 1, "reused": 0, "without_documents": 0}
    assert found["counts"]["qa1"] == expected
    assert "qa1: 1 of 3 answers are empty; they are counted here and in no mean." in found["notes"]
    (table,) = found["tables"]
    assert table["columns"] == [
        "task",
        "BLEU",
        "ROUGE-L",
        "similarity",
        "precision",
        "recall",
        "length",
        "MRR",
        "answers",
    ]
    ours, papers = table["rows"]
    assert ours[1]["value"] == pytest.approx(100 * numbers(part)["bleu-avg"]) and ours[3] is None, (
        "what was not measured is no 0"
    )
    assert papers[1:7] == [39.76, 57.24, 83.81, 52.67, 70.82, 73.3]
    (prompt, *_) = sent(workspace, "r qa1")
    assert f"问题：{QA[0][1]}\n检索到的新闻：\n{NEWS['1']}\n" in prompt, (
        "behind BM25 a document is a line"
    )
    step = read_lines(workspace / "runs" / "r qa1" / "episodes.jsonl")[0]["steps"][1]
    expected = (0.1, 1280, {"top_p": 0.9, "top_k": 5})
    assert (step["temperature"], step["max_tokens"], step["options"]) == expected


def test_bleu_has_no_brevity_penalty_and_is_0_without_four_words_in_a_row() -> None:
    short = text_values("获得4枚金牌，", "获得4枚金牌，创造了历史最好成绩。")
    assert short["bleu-avg"] == 1.0 and short["rouge-L"] < 1.0  # type: ignore[operator]
    other = text_values("历史最好", "获得4枚金牌，创造了历史最好成绩。")
    assert (other["bleu-1"], other["bleu-avg"]) == (1.0, 0.0)
    one = text_values("线路全长9公里，设站12座。", "线路全长12公里，设站9座。")
    assert one["bleu-avg"] == pytest.approx(
        math.prod(one[f"bleu-{n}"] or 0 for n in range(1, 5)) ** 0.25
    )


def test_cruds_own_file_is_written_and_its_valid_rows_are_used_again(
    rallebench: CommandLine, workspace: Path
) -> None:
    first = suite(rallebench, "crud-qa1")
    path = Path(first["folder"]) / "output" / "news_top2_scripted" / "QuestAnswer1Doc_reads.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    assert value["info"]["task"] == "QuestAnswer1Doc"
    assert [row["id"] for row in value["results"]] == ["q1", "q2", "q3"]
    assert [row["valid"] for row in value["results"]] == [True, True, False]
    assert value["results"][2]["metrics"] == {}
    assert value["overall"]["num"] == 2
    assert value["overall"]["invalid"] == 1
    assert "avg. bertScore" not in value["overall"]
    value["results"][0]["log"]["generated_text"] = "别的答案"
    value["results"][1]["log"]["ground_truth_text"] = "别的参考"
    path.write_text(json.dumps(value), encoding="utf-8")
    again = suite(rallebench, "crud-qa1", f"reuse={first['folder']}", run="again")
    assert again["counts"]["qa1"]["reused"] == 1
    assert numbers(again["parts"][0])["bleu-avg"] < numbers(first["parts"][0])["bleu-avg"]
    assert again["parts"][0]["metrics"]["mrr"]["n"] == 1, (
        "of an answer of an earlier time nobody knows what was found"
    )
    original = suite(rallebench, "crud-qa1", f"reuse={path}", "compat=original", run="o")
    assert original["counts"]["qa1"]["reused"] == 2
    made = json.loads(
        next(Path(original["folder"]).rglob("*_reads.json")).read_text(encoding="utf-8")
    )
    assert made["overall"]["avg. bertScore"] == 0.0 and "invalid" not in made["overall"]


def judgements(workspace: Path, run: str) -> list[dict[str, Any]]:
    """The lines of the judge's pass over a run, by record id."""
    (folder,) = (workspace / "runs" / run / "judges").iterdir()
    return sorted(read_lines(folder / "episodes.jsonl"), key=lambda line: str(line["qid"]))


def test_references_are_asked_once_ever_and_what_cannot_be_read_is_counted(
    rallebench: CommandLine, workspace: Path
) -> None:
    found = suite(rallebench, "crud-qa1", "quest=judge")
    counts = found["counts"]["qa1"]
    assert {key: n for key, n in counts.items() if key.startswith("quest")} == {
        "quest_asked": 2,
        "quest_new_references": 2,
        "quest_no_questions": 1,
        "quest_unparsed": 0,
        "quest_failed": 0,
        "quest_scored": 1,
        "quest_unanswerable": 0,
        "quest_nothing_answered": 0,
    }
    (part,) = found["parts"]
    assert (numbers(part)["QA_avg_F1"], numbers(part)["QA_recall"]) == (1.0, 1.0)
    assert part["metrics"]["QA_recall"]["n"] == 1 and part["n"] == 3
    assert any(
        "1 of 2 answers have no questions that could be read" in note for note in found["notes"]
    )
    kept = json.loads(
        (workspace / "crud" / "quest_gold_QuestAnswer1Doc.json").read_text(encoding="utf-8")
    )
    assert list(kept) == ["q1"]
    assert kept["q1"]["question"] == ["几枚金牌？", "什么成绩？"]
    assert kept["q1"]["answers"] == ["4枚", "历史最好"]
    row = json.loads(next(Path(found["folder"]).rglob("*_reads.json")).read_text(encoding="utf-8"))[
        "results"
    ][0]
    assert row["log"]["quest_eval_save"]["answers_gm4gt"] == ["4枚", "历史最好"]
    assert row["metrics"]["QA_recall"] == 1.0
    again = suite(rallebench, "crud-qa1", "quest=judge", "k=1", run="other")
    assert again["counts"]["qa1"]["quest_new_references"] == 1
    assert [len(of["steps"]) for of in judgements(workspace, "other qa1")] == [1, 1]


def test_the_plan_and_the_probe_count_a_judges_turns_and_no_empty_answer_as_failed(
    rallebench: CommandLine,
) -> None:
    planned = suite(rallebench, "crud-qa1", "quest=judge", flags=("--plan", "--probe", "3"))
    (part,) = planned["plan"]
    assert part["llms"] == ["reads", "judge"]
    assert part["generations"]["low"] == 3, "an empty answer is not judged"
    (costs,) = planned["probe"]["parts"]
    assert costs["asked"] == 3 and costs["failed"] == 0


def test_published_questions_are_taken_instead_and_empty_ones_only_in_the_original(
    rallebench: CommandLine, workspace: Path
) -> None:
    rows = [
        {"crud_id": "q1", "task": "QuestAnswer1Doc", "question": ["几枚？"], "answers": ["4枚"]},
        {"crud_id": "q2", "task": "QuestAnswer1Doc", "question": [], "answers": []},
    ]
    write_lines(workspace / "quest_gold_QuestAnswer1Doc.jsonl", rows)
    found = suite(rallebench, "crud-qa1", "quest=judge", f"gold={workspace}", "compat=original")
    assert [len(of["steps"]) for of in judgements(workspace, "r qa1")] == [1, 0], (
        "nothing was asked of a reference"
    )
    assert found["counts"]["qa1"]["quest_no_questions"] == 1
    assert found["counts"]["qa1"]["quest_scored"] == 1
    ours = suite(rallebench, "crud-qa1", "quest=judge", f"gold={workspace}", run="ours")
    assert ours["counts"]["qa1"]["quest_new_references"] == 1
    assert ours["counts"]["qa1"]["quest_unparsed"] == 1, (
        "two answers to one question cannot be matched"
    )


def test_several_tasks_are_a_table_and_what_is_left_out_is_said(
    rallebench: CommandLine, workspace: Path
) -> None:
    found = suite(rallebench, "crud", "tasks=event_summary,continuing_writing,hallu_modified")
    expected = ["summary", "continuation", "hallucination"]
    assert [part["label"] for part in found["parts"]] == expected
    assert len(found["tables"][0]["rows"]) == 6
    assert "mrr" in found["parts"][2]["metrics"]
    assert "mrr" not in found["parts"][0]["metrics"]
    assert "summary: 1 of 2 records have no event and were left out: t." in found["notes"]
    assert (
        "hallucination: 1 of 2 records have a failed request's text for a reference and were left out: x."
        in found["notes"]
    )
    expected = ["Summary_reads.json", "ContinueWriting_reads.json", "HalluModified_reads.json"]
    assert [Path(path).name for path in found["files"]] == expected
    (prompt,) = sent(workspace, "r summary")
    assert "事件：水厂通水" in prompt and NEWS["3"] in prompt


def test_of_an_error_to_be_put_right_the_original_looks_for_the_beginning_only(
    rallebench: CommandLine, workspace: Path
) -> None:
    suite(rallebench, "crud-hallucination")
    suite(rallebench, "crud-hallucination", "compat=original", run="o")
    queries = [
        read_lines(workspace / "runs" / f"{run} hallucination" / "questions.jsonl")[0]["input"]
        for run in "ro"
    ]
    assert queries == ["水厂通水。\n惠及河北省运动员。", "水厂通水。"]


def test_without_documents_nothing_is_retrieved_and_failed_questions_are_in_no_mean(
    rallebench: CommandLine, workspace: Path
) -> None:
    found = suite(rallebench, "crud-qa1", "k=0", "index=", llm="picky")
    (part,) = found["parts"]
    expected = (3, 2, 1)
    assert (part["n"], part["n_errors"], part["metrics"]["rouge-L"]["n"]) == expected
    assert "mrr" not in part["metrics"]
    assert "qa1: 2 of 3 questions failed; they are counted here and in no mean." in found["notes"]
    assert "no documents" in found["tables"][0]["rows"][0][0]


def test_planning_writes_nothing_not_even_questions_that_it_invented(workspace: Path) -> None:
    given = {"data": str(workspace / "crud-data"), "index": "news", "quest": "judge"}
    before = everything(workspace)
    planned = plan(
        "crud-qa1",
        ExperimentRequest(Workspace(workspace), "reads", SUITES.settings("crud-qa1", given)),
        "p",
    )
    assert planned.runs[0].questions == 3
    assert planned.runs[0].generations.low == 3
    assert everything(workspace) == before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("data=",), "--set data=PATH"),
        (("index=",), "name a retriever with --set index=NAME"),
        (("index=nowhere",), "no index 'nowhere'"),
        (("quest=nobody",), "no language model 'nobody'"),
        (("similarity=nothing",), "no encoder 'nothing'"),
        (("gold=/nowhere", "quest=judge"), "it does not exist"),
        (("reuse=/nowhere",), "no such file or folder"),
        (("prompts=/nowhere",), "no folder of prompts"),
        (("prompts=/",), "/ holds none of the prompts of this request (qa.txt)"),
        (("k=-1",), "k must be a whole number from 0 to 1000"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    rallebench: CommandLine, workspace: Path, settings: tuple[str, ...], sentence: str
) -> None:
    before = everything(workspace)
    chosen = [f"data={workspace / 'crud-data'}", "index=news", *settings]
    ran = rallebench.suite("crud-qa1", *chosen, llm="reads")
    assert ran.code == 2 and sentence in ran.last and everything(workspace) == before


def test_a_file_that_is_no_result_of_crud_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"results": [{"id": 1}]}')
    with pytest.raises(BadFileError, match="result 1 has no id, or no generated_text"):
        read_earlier(str(tmp_path / "x.json"), "")
    assert read_earlier(str(tmp_path), "output/none.json") == {}


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_chinese_run_over_real_news_finds_the_gold_documents(
    rallebench: CommandLine, workspace: Path, shared_data: Path
) -> None:
    """A question set in CRUD's form, made of the published gold questions and the reference's own answers to them."""
    lines = (
        (shared_data / "crud" / "quest_gold_QuestAnswer1Doc.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    golds = [
        row
        for row in map(json.loads, lines)
        if row.get("auto_gold_doc_ids") and not row["count_mismatch"]
    ]
    rows = [
        {
            "ID": row["crud_id"],
            "questions": row["question"],
            "answers": "；".join(row["answers"]),
            "gold_doc_ids": row["auto_gold_doc_ids"],
        }
        for row in golds
    ]
    write_lines(workspace / "crud-data" / "qa1.jsonl", rows)
    corpus = str(shared_data / "crud" / "corpus.tsv")
    built = rallebench(
        "index", "--corpus", corpus, "--name", "real", "--kind", "bm25", "--chunk-preset", "crud"
    )
    assert built.code == 0, built.err
    found = suite(
        rallebench, "crud-qa1", "index=real", "k=8", "quest=judge", f"gold={shared_data / 'crud'}"
    )
    (part, *_) = found["parts"]
    assert part["n"] == len(rows) > 80 and part["n_errors"] == 0 and numbers(part)["mrr"] > 0.6
    english = suite(
        rallebench,
        "crud-qa1",
        "index=real",
        "k=8",
        "similarity=minilm",
        llm="extractive-reader",
        run="e",
    )
    assert english["parts"][0]["metrics"]["similarity"]["n"] == len(rows)
    assert any("reads English only" in note for note in english["notes"])
