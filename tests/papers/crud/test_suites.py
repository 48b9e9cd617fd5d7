"""CRUD-RAG from the command line, in Chinese: a table beside the paper's, CRUD's own files, each reference asked only once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import building
import pytest
from performing import plan
from small_workspace import CommandLine, everything, numbers, read_lines, scripted, write_lines

from rallebench.core.experiments import ExperimentRequest
from rallebench.experiments import SUITES
from rallebench.papers.crud.predictions import read_earlier
from rallebench.papers.crud.records import FAILED
from rallebench.papers.crud.scoring import text_values
from rallebench.workspace.paths import WorkspaceFolder

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
LINE = json.dumps({"key_info": ["12公里"], "question": ["多长？", "几站？"]}, ensure_ascii=False)
HALF = {
    "文本：线路全长12公里，设站9座。\n输出": LINE,
    "文本：线路全长12公里": "<response>\n12公里\n</response>\n<response>\n9座\n</response>",
    "文本：全长12公里": "<response>\n12公里\n</response>\n<response>\n无法推断\n</response>",
}
MODELS = {
    "reads": {"replies": REPLIES, "default": "<response>不知道。</response>"},
    "picky": {"replies": {"问题：青禾市": "12公里"}},
    "judge": {"replies": JUDGE, "default": "没有"},
    "half": {"replies": HALF, "default": "没有"},
}


def correction(qid: str, beginning: str, wrong: str, right: str) -> dict[str, str]:
    """A record of the task hallucination."""
    texts = {
        "newsBeginning": beginning,
        "hallucinatedContinuation": wrong,
        "hallucinatedMod": right,
    }
    return {"ID": qid, **texts}


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
            {"ID": "c", "beginning": "青禾市首条无人驾驶公交", "continuing": "线路全长12公里。"}
        ],
        "hallu_modified": [
            correction("h", "水厂通水。", "惠及河北省运动员。", "惠及居民。"),
            correction("x", "开头", "续写", FAILED),
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


def suite(cli: CommandLine, name: str, *settings: str, **more: Any) -> Any:
    pairs = (f"data={cli.workspace / 'crud-data'}", "index=news", "k=2", *settings)
    return cli.report(name, *pairs, **{"llm": "reads", "run": "r", **more})


def prompts(cli: CommandLine, run: str) -> list[str]:
    """The prompts of a run, in the order of its episodes."""
    steps = [step for line in cli.episodes(run) for step in line["steps"]]
    return [step["messages"][0]["content"] for step in steps if step["ask"] == "generate"]


def results(report: Any) -> dict[str, Any]:
    """CRUD-RAG's own file of a report."""
    path = next(Path(report["folder"]).rglob("*_reads.json"))
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def test_answers_are_parsed_scored_and_printed(cli: CommandLine, like_the_papers: None) -> None:
    report = suite(cli, "crud-qa1")
    (part,), (table,) = report["parts"], report["tables"]
    whole = text_values(QA[0][2], QA[0][2])
    assert {value for name, value in whole.items() if name != "length"} == {1.0}
    half = text_values("全长12公里。", QA[1][2])["bleu-avg"] or 0
    assert (part["n"], part["n_errors"], part["metrics"]["bleu-avg"]["n"]) == (3, 0, 2)
    assert numbers(part)["bleu-avg"] == pytest.approx((1 + half) / 2)
    assert numbers(part)["length"] == (len(QA[0][2]) + 7) / 2 and numbers(part)["mrr"] == 1.0
    counts = {"asked": 3, "failed": 0, "empty": 1, "reused": 0, "without_documents": 0}
    assert report["counts"]["qa1"] == counts
    assert "qa1: 1 of 3 answers are empty; they are counted here and in no mean." in report["notes"]
    columns = "task BLEU ROUGE-L similarity precision recall length MRR answers"
    assert table["columns"] == columns.split()
    ours, papers = table["rows"]
    assert ours[1]["value"] == pytest.approx(100 * numbers(part)["bleu-avg"])
    assert ours[3] is None, "a metric that was not measured is not 0"
    assert papers[1:7] == [39.76, 57.24, 83.81, 52.67, 70.82, 73.3]
    (prompt, *_) = prompts(cli, "r qa1")
    line = f"问题：{QA[0][1]}\n检索到的新闻：\n{NEWS['1']}\n"
    assert line in prompt, "behind BM25 a document is a line"
    step = cli.episodes("r qa1")[0]["steps"][1]
    sampling = (0.1, 1280, {"top_p": 0.9, "top_k": 5})
    assert (step["temperature"], step["max_tokens"], step["options"]) == sampling


def test_all_tasks_run_in_chinese_over_ones_own_words(cli: CommandLine, workspace: Path) -> None:
    shutil.rmtree(workspace / "indexes" / "news")
    for task, row in (("2", QA[1]), ("3", QA[2])):
        pages = {f"news{i}": NEWS[str(i)] for i in range(1, int(task) + 1)}
        line = {"ID": f"d{task}", "questions": row[1], "answers": row[2], **pages}
        write_lines(workspace / "crud-data" / f"qa{task}.jsonl", [line])
    where = (f"data={workspace / 'crud-data'}", f"corpus={workspace / 'corpus.tsv'}", "k=2")
    tasks = "tasks=qa1,qa2,qa3,summary,continuation,hallucination"
    report = cli.report("crud", *where, tasks, llm="reads", run="zh")
    assert {part["label"] for part in report["parts"]} == set(tasks[6:].split(","))
    assert not any(part["n_errors"] for part in report["parts"]) and report["k"] == 2
    built = WorkspaceFolder(workspace).manifests()[report["index"]]
    assert built.kind == "bm25" and (built.chunking or {})["size"] == 128
    by_task = {part["label"]: numbers(part) for part in report["parts"]}
    assert by_task["qa1"]["mrr"] == 1.0, "each question finds its own report first"
    assert by_task["qa1"]["rouge-L"] > 0.5 and by_task["qa2"]["mrr"] == pytest.approx(0.75)
    (prompt, *_) = prompts(cli, "zh qa1")
    assert f"检索到的新闻：\n{NEWS['1']}\n" in prompt, "behind BM25 a document is a line"
    again = cli.report("crud", *where, tasks, "reuse=" + report["folder"], llm="reads", run="a")
    assert again["index"] == report["index"] and again["counts"]["qa1"]["reused"] == 2


def test_the_papers_row_stands_only_beside_the_records_that_it_measured(cli: CommandLine) -> None:
    report = suite(cli, "crud-qa1")
    (table,), (own,) = report["tables"], report["published"]
    assert len(table["rows"]) == 1 and "the paper's of split_merged" in table["note"]
    assert (own["table"], own["cells"]) == ("crud_table8", {})
    assert own["settings"] == {"task": "question answering 1-document", "llm": "reads"}


def test_a_file_only_called_as_the_papers_has_no_row(cli: CommandLine, workspace: Path) -> None:
    """A set from the builder is also called split_merged."""
    data = f"data={workspace / 'crud-data' / 'split_merged.json'}"
    report = cli.report("crud-summary", data, "index=news", llm="reads", run="own")
    (table,) = report["tables"]
    assert len(table["rows"]) == 1
    assert "ours has 2 records, the paper's about a fifth of 10,728" in table["note"]


def test_cruds_own_file_is_written_and_its_valid_rows_are_used_again(cli: CommandLine) -> None:
    first = suite(cli, "crud-qa1")
    path = Path(first["folder"]) / "output" / "news_top2_scripted" / "QuestAnswer1Doc_reads.json"
    value, rows = results(first), results(first)["results"]
    assert value["info"]["task"] == "QuestAnswer1Doc"
    assert [(row["id"], row["valid"]) for row in rows] == [
        ("q1", True),
        ("q2", True),
        ("q3", False),
    ]
    assert rows[2]["metrics"] == {}
    assert (value["overall"]["num"], value["overall"]["invalid"]) == (2, 1)
    assert "avg. bertScore" not in value["overall"]
    rows[0]["log"]["generated_text"] = "别的答案"
    rows[1]["log"]["ground_truth_text"] = "别的参考"
    path.write_text(json.dumps({**value, "results": rows}), encoding="utf-8")
    again = suite(cli, "crud-qa1", f"reuse={first['folder']}", run="again")
    assert again["counts"]["qa1"]["reused"] == 1
    assert numbers(again["parts"][0])["bleu-avg"] < numbers(first["parts"][0])["bleu-avg"]
    assert again["parts"][0]["metrics"]["mrr"]["n"] == 1, "not of an earlier answer"
    original = suite(cli, "crud-qa1", f"reuse={path}", "compat=original", run="o")
    assert original["counts"]["qa1"]["reused"] == 2
    overall = results(original)["overall"]
    assert overall["avg. bertScore"] == 0.0 and "invalid" not in overall


def test_references_are_asked_once_and_failures_counted(cli: CommandLine, workspace: Path) -> None:
    report = suite(cli, "crud-qa1", "quest=judge")
    counts = report["counts"]["qa1"]
    positive = {key: n for key, n in counts.items() if key.startswith("quest") and n}
    assert positive == {
        "quest_asked": 2,
        "quest_new_references": 2,
        "quest_no_questions": 1,
        "quest_scored": 1,
    }
    (part,) = report["parts"]
    assert (numbers(part)["QA_avg_F1"], numbers(part)["QA_recall"]) == (1.0, 1.0)
    assert part["metrics"]["QA_recall"]["n"] == 1 and part["n"] == 3
    note = "1 of 2 answers have no questions that could be read"
    assert any(note in sentence for sentence in report["notes"])
    file = workspace / "crud" / "quest_gold_QuestAnswer1Doc.json"
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert list(stored) == ["q1"]
    assert stored["q1"]["question"] == ["几枚金牌？", "什么成绩？"]
    assert stored["q1"]["answers"] == ["4枚", "历史最好"]
    row = results(report)["results"][0]
    assert row["log"]["quest_eval_save"]["answers_gm4gt"] == ["4枚", "历史最好"]
    assert row["metrics"]["QA_recall"] == 1.0
    again = suite(cli, "crud-qa1", "quest=judge", "k=1", run="other")
    assert again["counts"]["qa1"]["quest_new_references"] == 1
    assert [len(line["steps"]) for line in cli.judgements("other qa1")] == [1, 1]


def test_precision_by_the_papers_formula_stands_beside_that_of_the_code(cli: CommandLine) -> None:
    report = suite(cli, "crud-qa1", "quest=half")
    table = next(t for t in report["tables"] if t["title"] == "RAGQuestEval by both formulas")
    assert table["columns"] == ["task", "precision, code", "precision, paper", "recall", "answers"]
    ((task, *means, n),) = table["rows"]
    assert (task, n) == ("qa1", 1), "the other reference has no questions"
    assert [mean["value"] for mean in means] == [100.0, 50.0, 50.0]
    (part,) = report["parts"]
    assert numbers(part)["QA_avg_F1"] == 1.0, "the metric itself is the code's"
    plain = suite(cli, "crud-qa1", run="plain")
    assert len(plain["tables"]) == 1, "nothing is judged, so there is nothing to compare"


def test_the_plan_and_the_probe_count_a_judges_turns_and_no_failures(cli: CommandLine) -> None:
    planned = suite(cli, "crud-qa1", "quest=judge", flags=("--plan", "--probe", "3"))
    (part,), (costs,) = planned["plan"], planned["probe"]["parts"]
    assert part["llms"] == ["reads", "judge"]
    assert part["generations"]["low"] == 3, "an empty answer is not judged"
    assert costs["asked"] == 3 and costs["failed"] == 0


def test_published_questions_are_taken_but_no_empty_ones(cli: CommandLine, workspace: Path) -> None:
    rows = [
        {"crud_id": "q1", "task": "QuestAnswer1Doc", "question": ["几枚？"], "answers": ["4枚"]},
        {"crud_id": "q2", "task": "QuestAnswer1Doc", "question": [], "answers": []},
    ]
    write_lines(workspace / "quest_gold_QuestAnswer1Doc.jsonl", rows)
    judged = ("quest=judge", f"gold={workspace}")
    counts = suite(cli, "crud-qa1", *judged, "compat=original")["counts"]["qa1"]
    turns = [len(line["steps"]) for line in cli.judgements("r qa1")]
    assert turns == [1, 0], "nothing was asked of a reference"
    assert (counts["quest_no_questions"], counts["quest_scored"]) == (1, 1)
    counts = suite(cli, "crud-qa1", *judged, run="ours")["counts"]["qa1"]
    assert counts["quest_new_references"] == 1
    assert counts["quest_unparsed"] == 1, "two answers to one question cannot be matched"


def test_several_tasks_are_a_table_and_records_that_are_left_out_are_named(
    cli: CommandLine, like_the_papers: None
) -> None:
    report = suite(cli, "crud", "tasks=event_summary,continuing_writing,hallu_modified")
    labels = ["summary", "continuation", "hallucination"]
    assert [part["label"] for part in report["parts"]] == labels
    assert ["mrr" in part["metrics"] for part in report["parts"]] == [False, False, True]
    assert len(report["tables"][0]["rows"]) == 6
    for note in (
        "summary: 1 of 2 records have no event and were left out: t.",
        "hallucination: 1 of 2 records have a failed request's text for a reference and were left out: x.",
    ):
        assert note in report["notes"]
    names = ["Summary_reads.json", "ContinueWriting_reads.json", "HalluModified_reads.json"]
    assert [Path(path).name for path in report["files"]] == names
    (prompt,) = prompts(cli, "r summary")
    assert "事件：水厂通水" in prompt and NEWS["3"] in prompt


def test_the_original_looks_for_an_errors_beginning_only(cli: CommandLine, workspace: Path) -> None:
    queries = []
    for compat in ("corrected", "original"):
        suite(cli, "crud-hallucination", f"compat={compat}", run=compat)
        file = workspace / "runs" / f"{compat} hallucination" / "questions.jsonl"
        queries.append(read_lines(file)[0]["input"])
    assert queries == ["水厂通水。\n惠及河北省运动员。", "水厂通水。"]


def test_without_documents_none_is_retrieved_and_failures_are_in_no_mean(cli: CommandLine) -> None:
    report = suite(cli, "crud-qa1", "k=0", "index=", llm="picky")
    (part,) = report["parts"]
    assert (part["n"], part["n_errors"], part["metrics"]["rouge-L"]["n"]) == (3, 2, 1)
    assert "mrr" not in part["metrics"]
    assert "qa1: 2 of 3 questions failed; they are counted here and in no mean." in report["notes"]
    assert "no documents" in report["tables"][0]["rows"][0][0]


def test_planning_writes_nothing_not_even_questions_that_it_invented(workspace: Path) -> None:
    given = {"data": str(workspace / "crud-data"), "index": "news", "quest": "judge"}
    before = everything(workspace)
    settings = SUITES.settings("crud-qa1", given)
    request = ExperimentRequest(WorkspaceFolder(workspace), "reads", settings)
    (run,) = plan("crud-qa1", request, "p").runs
    assert (run.questions, run.generations.low) == (3, 3)
    assert everything(workspace) == before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ("data=", "--set data=PATH"),
        (
            "index=",
            "it needs documents, or a retriever as index=NAME; k=0 asks without any; give --set corpus=PATH",
        ),
        ("corpus=c.tsv", "index is a retriever already, so corpus is not needed; name one of them"),
        ("index= corpus=/nowhere.tsv", "/nowhere.tsv does not exist"),
        ("index=nowhere", "no index 'nowhere'"),
        ("quest=nobody", "no language model 'nobody'"),
        ("similarity=nothing", "no encoder 'nothing'"),
        ("gold=/nowhere quest=judge", "it does not exist"),
        ("reuse=/nowhere", "no such file or folder"),
        ("prompts=/nowhere", "not a folder of prompts"),
        ("prompts=/", "/ holds none of the prompts of this request (qa.txt)"),
        ("k=-1", "k must be a whole number from 0 to 1000"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    cli: CommandLine, settings: str, sentence: str
) -> None:
    pairs = (f"data={cli.workspace / 'crud-data'}", "index=news", *settings.split())
    assert sentence in cli.refused("crud-qa1", *pairs, llm="reads")


def test_a_folder_without_an_earlier_result_has_no_answers(tmp_path: Path) -> None:
    assert read_earlier(str(tmp_path), "output/none.json") == {}


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_chinese_run_finds_gold(cli: CommandLine, workspace: Path, shared_data: Path) -> None:
    """A dataset in CRUD's form from the published gold questions and the answers of their references."""
    rows = [
        {
            "ID": row["crud_id"],
            "questions": row["question"],
            "answers": "；".join(row["answers"]),
            "gold_doc_ids": row["auto_gold_doc_ids"],
        }
        for row in read_lines(shared_data / "crud" / "quest_gold_QuestAnswer1Doc.jsonl")
        if row.get("auto_gold_doc_ids") and not row["count_mismatch"]
    ]
    write_lines(workspace / "crud-data" / "qa1.jsonl", rows)
    settings = ("index=", f"corpus={shared_data / 'crud' / 'corpus.tsv'}", "k=8")
    judged = ("quest=judge", f"gold={shared_data / 'crud'}")
    (part, *_) = suite(cli, "crud-qa1", *settings, *judged)["parts"]
    assert part["n"] == len(rows) > 80 and part["n_errors"] == 0 and numbers(part)["mrr"] > 0.6
    more = {"llm": "extractive-reader", "run": "e"}
    english = suite(cli, "crud-qa1", *settings, "similarity=minilm", **more)
    assert english["parts"][0]["metrics"]["similarity"]["n"] == len(rows)
    assert any("reads English only" in note for note in english["notes"])


def test_cruds_prompts_are_sent_with_our_names_of_fields(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "CRUD_RAG" / "src" / "prompts"
    folder.mkdir(parents=True)
    (folder / "quest_answer.txt").write_text(
        "请答{question}，见{search_documents}", encoding="utf-8"
    )
    own = f"prompts={tmp_path / 'CRUD_RAG'}"
    report = suite(cli, "crud-qa1", own)
    assert prompts(cli, "r qa1")[0].startswith(f"请答{QA[0][1]}，见{NEWS['1']}")
    assert "Original prompts" in report["published"][0]["differs"][0]
    spec = json.loads((cli.workspace / "runs" / "r qa1" / "run.json").read_text())["spec"]
    expected = {"whose": "original", "sha256": report["wording"]["sha256"]}
    assert spec["settings"]["wording"] == expected
    data = f"data={cli.workspace / 'crud-data'}"
    ran = cli.suite("crud-summary", data, "index=news", own, llm="reads", run="s")
    assert ran.code == 2 and "without src/prompts/summary.txt; get the whole repository" in ran.err
