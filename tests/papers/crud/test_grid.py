"""CRUD-RAG's grid: shared parts are made once, cells that cannot run are named, and nothing is recommended without a
difference."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from performing import plan, run_suite
from small_workspace import CommandLine, everything, scripted, write_lines

from rallebench.core.comparison import PairedComparison
from rallebench.core.experiments import ExperimentRequest, ExperimentResult
from rallebench.core.forecast import as_json
from rallebench.corpora.store import PassageStore
from rallebench.engine.experiment_store import run_name
from rallebench.experiments import SUITES
from rallebench.papers.crud.configurations import (
    Config,
    Grid,
    describe,
    index_recipes,
    make_grid,
)
from rallebench.papers.crud.factors import FACTORS
from rallebench.papers.crud.recommending import (
    NONE_SHOWN,
    SCENARIOS,
    papers_row,
    recommend,
)
from rallebench.papers.crud.settings import CrudGridSettings
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.vectors import passage_text
from rallebench.workspace.paths import WorkspaceFolder

TOWNS = ("青禾市", "临江市", "云溪县", "河口镇", "东岭市", "白石县", "南屏市", "松林县")
THINGS = (
    "无人驾驶公交线路正式开通",
    "城东水厂二期工程通水",
    "屋顶光伏推广到每一个村",
    "新的图书馆向居民开放",
)

JUDGE = {
    "文本：[^\n]*\n输出": json.dumps(
        {"key_info": ["亿元"], "question": ["投资多少？"]}, ensure_ascii=False
    ),
    "文本：总投资": "<response>\n亿元\n</response>",
}


def article(number: int) -> str:
    town, thing = TOWNS[number % 8], THINGS[number % 4]
    return f"2023-08-{number + 10}，正文：{town}{thing}。总投资{number + 2}亿元，惠及约{number + 5}万居民。当地群众表示非常满意。市长出席了仪式并讲话。"


def answer(number: int) -> str:
    return f"总投资{number + 2}亿元，惠及约{number + 5}万居民。"


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    (folder / "data").mkdir()
    asks = [f"{TOWNS[n]}的{THINGS[n % 4]}投资" for n in range(8)]
    rows = [
        {"ID": f"q{n}", "questions": f"{ask}多少？", "answers": answer(n), "gold_doc_ids": [n]}
        for n, ask in enumerate(asks)
    ]
    rows.append({"ID": "bare", "questions": "哪里？", "answers": ""})
    write_lines(folder / "data" / "qa1.jsonl", rows)
    summary = {"ID": "s", "event": "水厂通水", "summary": "城东水厂通水。"}
    write_lines(folder / "data" / "summary.jsonl", [summary])
    text = "".join(f"{n}\t{article(n)}\t\n" for n in range(8)) + "8\t大雪。\t\n"
    (folder / "corpus.tsv").write_text(f"id\ttext\ttitle\n{text}", encoding="utf-8")
    known = {f"问题：{ask}": f"<response>{answer(n)}</response>" for n, ask in enumerate(asks)}
    models: dict[str, dict[str, Any]] = {
        "quiet": {"default": "<response>不知道。</response>"},
        "knows": {"replies": known, "default": "无"},
        "judge": {"replies": JUDGE, "default": "<response>\n无法推断\n</response>"},
        "broken": {"dealy": 1},
    }
    (folder / "llms.json").write_text(json.dumps(scripted(models)), encoding="utf-8")
    return folder


def small_settings(workspace: Path, *settings: str) -> dict[str, str]:
    """The settings of a small grid with the hashing encoder, changed by ``settings``."""
    base = {
        "data": str(workspace / "data"),
        "corpus": str(workspace / "corpus.tsv"),
        "tasks": "qa1",
    }
    base |= {"retriever": "dense", "embedding": "hashing", "kind": "numpy-flat"}
    base |= {"chunk": "32", "k": "2", "reranker": ""}
    return base | dict(setting.split("=", 1) for setting in settings)


def pairs(cli: CommandLine, *settings: str) -> list[str]:
    return [f"{key}={value}" for key, value in small_settings(cli.workspace, *settings).items()]


def grid(cli: CommandLine, *settings: str, llm: str = "", run: str = "g") -> Any:
    return cli.report("crud-grid", *pairs(cli, *settings), llm=llm, run=run)


def grid_request(workspace: Path, *settings: str, llm: str = "quiet") -> ExperimentRequest:
    return ExperimentRequest(
        WorkspaceFolder(workspace),
        llm,
        SUITES.settings("crud-grid", small_settings(workspace, *settings)),
    )


def read_grid(request: ExperimentRequest) -> Grid:
    return make_grid(request, request.read(CrudGridSettings))


def encoded_texts(workspace: Path) -> list[str]:
    """The texts encoded for the vector indexes, index by index."""
    texts: list[str] = []
    for name, manifest in WorkspaceFolder(workspace).manifests().items():
        if manifest.kind != "bm25":
            with closing(PassageStore(workspace / "indexes" / name)) as store:
                texts += map(passage_text, store)
    return texts


def table(report: Any, beginning: str) -> Any:
    (table,) = [table for table in report["tables"] if table["title"].startswith(beginning)]
    return table


def a_model(folder: Path) -> Path:
    """A folder with all files of a model, none of them loadable."""
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert"}')
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).write_text("damaged")
    return folder


def test_the_papers_grid_of_30_cells_needs_12_indexes(workspace: Path) -> None:
    models = scripted({name: {"default": "无"} for name in FACTORS["llm"].papers})
    (workspace / "llms.json").write_text(json.dumps(models), encoding="utf-8")
    served = [f"openai_embeddings:e{n}?base_url=http://127.0.0.1:1/v1" for n in range(4)]
    papers = {"data": "x", "corpus": str(workspace / "corpus.tsv"), "retriever": "dense"}
    papers |= {"embedding": served[0], "embeddings": ",".join(served)}
    papers["reranker"] = str(a_model(workspace / "reranker"))
    settings = SUITES.settings("crud-grid", papers)
    request = ExperimentRequest(WorkspaceFolder(workspace), "gpt-3.5-turbo", settings)
    whole = read_grid(request)
    assert whole.cells == 30 and len(whole.order) == 25 and not whole.impossible
    depths = {value: config.topk for value, config in whole.values["chunk"].items()}
    assert depths == {64: 16, 128: 8, 256: 4, 512: 2}
    recipes = [
        index_recipes(request, request.read(CrudGridSettings).documents, config).values()
        for config in whole.order
    ]
    assert len({describe(recipe) for of_config in recipes for recipe in of_config}) == 12


def test_the_deepest_retrieval_comes_first_and_one_model_after_another(workspace: Path) -> None:
    request = grid_request(workspace, "factors=topk,llm,retriever", "ks=1,4", "llms=knows")
    small = read_grid(request)
    expected = ["topk=4", "base", "topk=1", "retriever=bm25", "retriever=hybrid", "llm=knows"]
    assert [small.label(config) for config in small.order] == expected


def test_under_word_search_encoders_make_no_difference(workspace: Path) -> None:
    small = read_grid(grid_request(workspace, "retriever=bm25", "factors=embedding"))
    assert small.order == (Config(32, 0, "", "bm25", 2, "quiet"),)
    why = "the base searches words, and no encoder is asked (retriever=dense)."
    assert set(small.impossible.values()) == {why} and not small.values


def test_the_base_searches_words_unless_another_retriever_is_named(cli: CommandLine) -> None:
    given = [pair for pair in pairs(cli) if not pair.startswith(("retriever=", "embedding="))]
    factors = "factors=chunk,embedding", "chunks=16"
    report = cli.report("crud-grid", *given, *factors, llm="", run="words")
    assert [part["label"] for part in report["parts"]] == ["qa1 base", "qa1 chunk=16"]
    assert report["cells"]["failed"] == 0 and report["base"]["retriever"] == "bm25"
    assert [title for t in report["tables"] if (title := t["title"]).startswith("By ")] == [
        "By chunk"
    ]
    (left_out,) = [note for note in report["notes"] if " left out: " in note and "=" in note]
    assert left_out.startswith("embedding=m3e-base, embedding=stella") and "are" in left_out


def test_what_has_no_encoder_here_is_left_out_and_named_in_the_plan(cli: CommandLine) -> None:
    where = [pair for pair in pairs(cli) if pair.startswith(("data=", "corpus=", "tasks="))]
    planned = cli.suite("crud-grid", *where, flags=("--plan", "--json")).json
    report = cli.report("crud-grid", *where, run="plain")
    labels = [part["label"] for part in report["parts"]]
    assert labels == [run["label"] for run in planned["plan"]] and "qa1 overlap=50" in labels
    assert not any("retriever=" in label for label in labels) and report["cells"]["failed"] == 0
    sentence = (
        "retriever=dense, retriever=hybrid, retriever=hybrid-rerank are left out: the encoder bge-base-zh-v1.5-plain is not on this "
        "machine (nothing is fetched unasked; embedding=bge-base-zh-v1.5-plain fetches it, embedding=… names another)."
    )
    assert sentence in planned["notes"] and sentence in report["notes"]
    assert "By retriever" not in [of["title"] for of in report["tables"]], "it would be the base"


def test_a_named_encoder_brings_dense_and_hybrid_cells_in(cli: CommandLine) -> None:
    settings = ("retriever=bm25", "factors=retriever")
    report = grid(cli, *settings)
    labels = ["qa1 base", "qa1 retriever=dense", "qa1 retriever=hybrid"]
    assert [part["label"] for part in report["parts"]] == labels
    (left_out,) = [note for note in report["notes"] if " left out: " in note and "=" in note]
    cross_encoder = "the cross-encoder BAAI/bge-reranker-base is not on this machine"
    assert left_out.startswith(f"retriever=hybrid-rerank is left out: {cross_encoder}")


def test_the_plan_counts_builds_and_questions_and_writes_nothing(workspace: Path) -> None:
    before = everything(workspace)
    settings = ("factors=chunk,overlap,topk", "chunks=16,64", "overlaps=50", "ks=1,4")
    planned = as_json(plan("crud-grid", grid_request(workspace, *settings), "p"))
    assert planned["indexes"] == {"needed": 4, "to_build": 4} and planned["total"]["parts"] == 6
    assert planned["total"]["questions"] == planned["total"]["generations"]["high"] == 48
    assert everything(workspace) == before
    assert "It uses 4 indexes; 4 must be built first." in planned["notes"]


def test_a_plan_with_a_probe_says_how_many_texts_are_to_be_encoded(cli: CommandLine) -> None:
    settings = pairs(cli, "factors=chunk", "chunks=16")
    flags = ("--plan", "--probe", "1")
    out = cli.suite("crud-grid", *settings, llm="quiet", run="g", flags=flags).out
    assert "Indexes: 2 indexes to build" in out and "texts to encode with hashing" in out
    assert "not reached by the probe" in out, "a probe builds no index"


@pytest.mark.slow
def test_no_chunk_is_encoded_twice_and_a_second_grid_builds_nothing(cli: CommandLine) -> None:
    settings = ("factors=chunk,retriever", "chunks=16,1000,2000", "ks=1,4")
    found = grid(cli, *settings)
    expected = {"a task": 8, "different": 6, "ran": 6, "failed": 0, "not asked for": 1}
    assert found["cells"] == expected
    assert found["indexes"]["needed"] == 5 and found["indexes"]["built"] == 4, (
        "articles that are not cut are one index"
    )
    texts = encoded_texts(cli.workspace)
    assert found["indexes"]["passages encoded"] == len(set(texts)) < len(texts)
    again = grid(cli, *settings, run="other")
    assert again["indexes"] == {"needed": 5, "built": 0, "passages encoded": 0, "failed": 0}


def test_a_factor_has_a_table_and_a_plot_and_without_a_difference_nothing_is_recommended(
    cli: CommandLine, like_the_papers: None
) -> None:
    report = grid(cli, "factors=topk,llm", "ks=1,4", "llms=knows", llm="quiet")
    first, depth, models = report["tables"][0], table(report, "By top-k"), table(report, "By LLM")
    assert first["rows"][1][1:7] == [39.76, 57.24, 83.81, 52.67, 70.82, 73.3], "the paper's base"
    assert depth["columns"] == ["", "BLEU", "ROUGE-L", "length", "MRR", "asked"]
    assert [row[0] for row in depth["rows"]] == ["qa1 · 1", "qa1 · 2 (base)", "qa1 · 4"]
    assert [row[0] for row in models["rows"]] == ["qa1 · quiet (base)", "qa1 · knows"]
    assert models["rows"][1][2]["value"] == 100.0 and models["rows"][1][-1] == 8
    line, bar = report["plots"]
    assert (line["kind"], bar["kind"]) == ("line", "bar")
    assert [x for x, _ in line["series"]["qa1"]] == [1, 2, 4]
    base = {"chunk": 32, "overlap": 0, "embedding": "hashing", "retriever": "dense", "topk": 2}
    assert report["base"] == {**base, "llm": "quiet"}
    recommendations = table(report, "Recommendations")
    ours, papers = recommendations["rows"]
    assert ours[:3] == ["Read, 1 document", "too few articles", None]
    assert ours[5:] == ["too few articles", None]
    assert (papers[0], papers[1], papers[5]) == (f"{ours[0]} · paper", "larger", "Baichuan2-13B")
    doubt = "BLEU falls with the chunk size (34.20 to 30.35); Table 9 advises larger chunks"
    assert doubt in recommendations["note"]
    gaps = {(row[0], row[1]): row for row in table(report, "Differences")["rows"]}
    *_, gap, p, shown, higher, equal, lower = gaps["qa1 · LLM knows", "ROUGE-L"]
    assert gap["n"] == 8 and (p, shown) == ("too few articles", "")
    assert (higher, equal, lower) == (8, 0, 0)
    assert gaps["qa1 · top-k 4", "ROUGE-L"][3] == "too few articles"
    assert gaps["qa1 · top-k 4", "ROUGE-L"][2]["value"] == 0.0
    glance = table(report, "All tasks at a glance")
    assert glance["columns"] == ["", "qa1"]
    assert [row[0] for row in glance["rows"]] == ["top-k 1", "top-k 4", "LLM knows"]


def make_pair(difference: float, p: float) -> PairedComparison:
    low, high = difference - 0.01, difference + 0.01
    counts = (0.001, 0, 0, 0, (), (), None)
    return PairedComparison("rouge-L", 20, 0.5, 0.5 + difference, difference, low, high, *counts, p)


@pytest.mark.parametrize(
    ("gaps", "text", "value"),
    [
        ({4: (0.1, 0.9), 16: (0.2, 0.06)}, NONE_SHOWN, None),
        ({4: (0.1, 0.01), 16: (0.2, 0.02)}, "larger (16), +20.00 [19.00, 21.00]", 16),
        ({4: (0.1, 0.01), 16: (0.2, 0.5)}, "smaller (4), +10.00 [9.00, 11.00]", 4),
        (
            {4: (-0.1, 0.01), 16: (0.2, 0.5)},
            "moderate (8) (as the base; worse: 4 -10.00 [-11.00, -9.00])",
            8,
        ),
    ],
)
def test_a_recommendation_needs_a_difference_that_is_shown(
    gaps: dict[int, tuple[float, float]], text: str, value: int | None
) -> None:
    compared = {k: make_pair(gap, p) for k, (gap, p) in gaps.items()}
    assert recommend(FACTORS["topk"], 8, (4, 8, 16), compared) == (text, value)


def test_the_papers_recommendations_are_of_five_factors() -> None:
    factors = {"topk", "chunk", "overlap", "retriever", "llm"}
    assert all(set(papers_row(name)) == factors for name in SCENARIOS)


def test_without_a_model_retrievers_are_compared_by_ranks_of_gold(cli: CommandLine) -> None:
    settings = ("factors=retriever,topk,llm", "ks=1,4", "retrievers=bm25,hybrid")
    report = grid(cli, "tasks=qa1,summary", *settings)
    labels = ["topk=4", "base", "topk=1", "retriever=bm25", "retriever=hybrid"]
    assert [part["label"] for part in report["parts"]] == [f"qa1 {label}" for label in labels]
    for part in report["parts"]:
        assert set(part["metrics"]) == {"mrr", "gold_found"} and part["n_errors"] == 0
    assert report["headline"] == "mrr"
    assert report["parts"][3]["metrics"]["gold_found"]["value"] > 0.8
    assert any("summary were left out, as their gold documents" in note for note in report["notes"])
    assert "qa1: 1 of 9 records have no answers and were left out: bare." in report["notes"]
    recommendations = table(report, "Recommendations")
    names = ["Read, 1 document", "Read, 1 document · paper"]
    assert [row[0] for row in recommendations["rows"]] == names
    assert recommendations["rows"][0][1] is None
    gaps = [row[2] for row in table(report, "Differences")["rows"]]
    assert all(abs(gap[end] or 0) <= 100 for gap in gaps for end in ("low", "high"))
    assert "nothing is recommended for it by MRR" in recommendations["note"]
    assert "CRUD-RAG" not in [of["title"] for of in report["tables"]], "there are no answers"
    cached = {
        label: {step["cached"] for line in cli.episodes(f"g qa1 {label}") for step in line["steps"]}
        for label in ("topk=4", "base", "topk=1")
    }
    assert cached == {"topk=4": {False}, "base": {True}, "topk=1": {True}}, "the deepest is asked"


def test_of_cells_with_the_same_prompts_the_model_is_asked_once(cli: CommandLine) -> None:
    grid(cli, "factors=chunk", "chunks=1000,2000", llm="quiet")
    lines = cli.episodes("g qa1 chunk=2000")
    assert len(lines) == 8 and all(step["cached"] for line in lines for step in line["steps"])


def test_references_are_judged_once_for_all_cells(cli: CommandLine) -> None:
    settings = ("factors=llm,topk", "ks=1", "llms=knows", "quest=judge", "by=QA_recall")
    report = grid(cli, *settings, llm="quiet")
    new = [counts["quest_new_references"] > 0 for counts in report["counts"].values()]
    assert new == [True, *[False] * (len(new) - 1)]
    models = table(report, "By LLM")
    quiet, knows = (row[1:6] for row in models["rows"])
    assert models["columns"][3:5] == ["precision", "recall"]
    assert (quiet[3]["value"], knows[3]["value"], knows[2]["value"]) == (0.0, 100.0, 100.0)
    ours, _ = table(report, "Recommendations")["rows"]
    assert ours[5] == ours[1] == "too few articles"


@pytest.mark.slow
def test_a_cell_that_cannot_be_run_is_named_and_the_others_go_on(cli: CommandLine) -> None:
    settings = pairs(
        cli,
        "factors=embedding,retriever,llm",
        f"embeddings=sentence_transformers:{a_model(cli.workspace / 'encoder')}",
        "llms=broken,knows",
        f"reranker={a_model(cli.workspace / 'reranker')}",
    )
    ran = cli.suite("crud-grid", *settings, llm="quiet", run="g", flags=["--json"])
    assert ran.code == 1 and ran.last.startswith("3 of 7 parts failed: qa1 ")
    assert "qa1 llm=broken" in ran.last
    report = ran.json
    labels = [part["label"] for part in report["parts"]]
    assert labels == ["qa1 base", "qa1 retriever=bm25", "qa1 retriever=hybrid", "qa1 llm=knows"]
    assert report["cells"]["failed"] == 3 and report["indexes"]["failed"] == 1
    failures = [note for note in report["notes"] if note.startswith("1 cell could not be run")]
    assert len(failures) == 3
    for words in (("qa1 llm=broken", "dealy"), ("hybrid-rerank",), ("encoder", "embedding=")):
        assert any(all(word in note for word in words) for note in failures), words


def test_the_papers_values_that_are_not_at_hand_are_not_asked_for(cli: CommandLine) -> None:
    report = grid(cli, "factors=llm,retriever", llm="quiet")
    cells = {"a task": 13, "different": 3, "ran": 3, "failed": 0, "not asked for": 9}
    assert report["cells"] == cells
    no_model = "and 2 more are left out: the workspace has no model of this name"
    no_encoder = "retriever=hybrid-rerank is left out: the cross-encoder BAAI/bge-reranker-base"
    for words in (no_model, no_encoder):
        assert any(words in note for note in report["notes"]), words


def test_a_grid_that_was_stopped_goes_on_where_it_was(cli: CommandLine, workspace: Path) -> None:
    first = grid(cli, "factors=topk", "ks=1,4", llm="quiet")
    base = workspace / "runs" / run_name("g", "qa1 base") / "episodes.jsonl"
    before = base.stat().st_mtime_ns
    wider = grid(cli, "factors=topk,chunk", "ks=1,4", "chunks=16", llm="quiet")
    assert len(wider["parts"]) == len(first["parts"]) + 1
    assert base.stat().st_mtime_ns == before
    settings = ("factors=topk,chunk,overlap", "ks=1,4", "chunks=16", "overlaps=50")
    left = as_json(plan("crud-grid", grid_request(workspace, *settings), "g"))
    assert left["indexes"] == {"needed": 3, "to_build": 1} and left["total"]["left"] == 8


def test_where_no_cell_can_be_run_the_reason_ends_it(cli: CommandLine) -> None:
    settings = pairs(cli, "factors=topk", "embedding=sentence_transformers:/nowhere")
    ran = cli.suite("crud-grid", *settings, llm="quiet", run="g")
    assert ran.code == 2 and "embedding: " in ran.last and "/nowhere does not exist" in ran.last
    folder = a_model(cli.workspace / "encoder")
    settings = pairs(cli, "factors=topk", f"embedding=sentence_transformers:{folder}")
    ran = cli.suite("crud-grid", *settings, llm="quiet", run="g")
    assert ran.code in (1, 2) and str(folder) in ran.last
    assert not (cli.workspace / "runs").exists()


@pytest.mark.slow
def test_indexes_are_let_go_one_by_one_but_for_those_the_user_loaded(workspace: Path) -> None:
    bench = Workbench(workspace)
    settings = ("factors=chunk,retriever", "chunks=16,64", "retrievers=bm25,hybrid")
    request = grid_request(workspace, *settings, llm="")
    *_, end = run_suite(bench, "crud-grid", request, "g", track=False)
    assert isinstance(end, ExperimentResult)
    retrievers = {run.request.label: run.request.flow.retrievers[0] for run in end.runs}
    loaded = [line.name for line in bench.models.status()]
    assert retrievers["qa1 chunk=16"] not in loaded and retrievers["qa1 chunk=64"] not in loaded
    assert retrievers["qa1 retriever=hybrid"] in loaded, "nothing came after it"
    bench.close()
    again = Workbench(workspace)
    list(again.models.load(retrievers["qa1 chunk=16"], "retriever"))
    request = grid_request(workspace, "factors=chunk", "chunks=16,64", llm="")
    list(run_suite(again, "crud-grid", request, "other", track=False))
    assert retrievers["qa1 chunk=16"] in [line.name for line in again.models.status()]
    again.close()


@pytest.mark.parametrize(
    ("llm", "settings", "sentence"),
    [
        ("quiet", "factors=chunks", "factors must be one of chunk, overlap"),
        ("quiet", "factors=", "factors must be one of chunk, overlap"),
        ("quiet", "ks=0", "ks must be a whole number from 1 to 1000"),
        ("quiet", "overlaps=10,99", "overlaps must be a whole number from 0 to 95"),
        ("quiet", "retrievers=magic", "retrievers must be one of dense, bm25"),
        ("quiet", "embeddings=nothing", "no encoder 'nothing'"),
        ("quiet", "llms=nobody", "no language model 'nobody'"),
        ("quiet", "embedding=nothing factors=topk", "no encoder 'nothing'"),
        ("quiet", "corpus=", "--set corpus="),
        ("quiet", "corpus=/nowhere", "/nowhere does not exist"),
        ("quiet", "kind=bm25", "choose a kind of vector index"),
        (
            "quiet",
            "retriever=hybrid-rerank factors=topk",
            "retriever: BAAI/bge-reranker-base is neither a folder here nor in the local",
        ),
        (
            "quiet",
            "retriever=bm25 factors=retriever embedding=m3e-base",
            "embedding: moka-ai/m3e-base is neither a folder here nor in the local",
        ),
        (
            "quiet",
            "retriever=bm25 factors=retriever retrievers=dense embedding=",
            "retrievers: BAAI/bge-base-zh-v1.5 is neither",
        ),
        ("quiet", "embeddings=m3e-base", "embeddings: moka-ai/m3e-base is neither"),
        ("quiet", "retrievers=hybrid-rerank reranker=/none", "reranker: 'rerank': the folder"),
        (
            "quiet",
            "retriever=bm25 embeddings=minilm",
            "asks no encoder; give --set retriever=dense",
        ),
        ("quiet", "by=QA_recall", "not measured without quest; give --set quest=NAME"),
        ("quiet", "by=gold_found", "only without a language model"),
        ("quiet", "tasks=nothing", "task of CRUD-RAG"),
        ("", "by=rouge-L", "only with a language model"),
        ("", "tasks=summary", "name one with --llm"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_writes_nothing(
    cli: CommandLine, llm: str, settings: str, sentence: str
) -> None:
    assert sentence in cli.refused("crud-grid", *pairs(cli, *settings.split()), llm=llm)
