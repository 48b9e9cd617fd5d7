"""KILT's sets from the command line: every way of answering is a run of a chain, RaLLe's tables, checked files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_workspace import (
    RECORDS,
    CommandLine,
    add_llm,
    everything,
    make_workspace,
    read_lines,
    record,
    write_lines,
)

from rallebench.metrics import metric
from rallebench.papers.ralle.sets import MODES, SETS, find_sets, read
from rallebench.papers.ralle.tables import answers, printed_row, retrieval
from rallebench.workspace.paths import WorkspaceFolder

LINKED = "A moon, [START_ENT] Titan [END_ENT] , with an atmosphere of Saturn"
LINKS = [
    record("l1", LINKED, "Titan (moon)", "p1"),
    record("l2", "It lies in [START_ENT] Lamar County [END_ENT] .", "Paris, Texas", "p3"),
]
CLAIMS = [
    record("c1", "Titan is a moon of Saturn.", "SUPPORTS", "p1"),
    record("c2", "Charon is a moon of Saturn.", "REFUTES", "p6"),
]
SLOTS = [record("s1", "Titan [SEP] discoverer", "Christiaan Huygens", "p5")]
OFFICIAL = {
    "nq-dev-kilt": RECORDS,
    "fever-dev-kilt": CLAIMS,
    "aidayago2-dev-kilt": LINKS,
    "trex-dev-kilt": SLOTS,
}


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("kilt") / "workspace")
    (folder / "data").mkdir()
    for name, rows in OFFICIAL.items():
        write_lines(folder / "data" / f"{name}.jsonl", rows)
    add_llm(folder, "checker", replies={"SUPPORTS": "SUPPORTS"}, default="Titan")
    return folder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], template_workspace: Path) -> CommandLine:
    return CommandLine(capfd, template_workspace)


def suite(cli: CommandLine, name: str, run: str, *pairs: str, llm: str = "titan") -> Any:
    data = f"data={cli.workspace / 'data'}"
    return cli.report(name, data, "retriever=tiny", *pairs, llm=llm, run=run)


def value(part: Any, name: str) -> Any:
    return part["metrics"][name]["value"]


def queries(folder: Path, run: str) -> list[str]:
    return [
        line["steps"][0]["query"] for line in read_lines(folder / "runs" / run / "episodes.jsonl")
    ]


@pytest.mark.parametrize("name", SETS)
def test_every_set_has_its_chains_metrics_and_printed_figure(name: str, tmp_path: Path) -> None:
    one, workspace = SETS[name], WorkspaceFolder(tmp_path)
    assert set(one.chains) <= set(MODES) and {"read", "closed-book", "retrieve"} <= set(one.chains)
    for chain in one.chains.values():
        assert workspace.chain(chain).actions
    assert metric(one.headline).name == one.headline and metric(one.variant).name == one.variant
    printed, brackets = answers("downstream"), answers("downstream", has_answer=True)
    assert 0 < printed[one.label] < 1 and brackets.get(one.label, 1) > printed[one.label]
    assert one.file_name("dev").endswith("-dev-kilt.jsonl")


def test_the_sets_are_ralles_eleven_in_its_order() -> None:
    labels = ["FEV", "AY2", "WnWi", "WnCw", "T-REx", "zsRE", "NQ", "HoPo", "TQA", "ELI5", "WoW"]
    assert [kilt_set.label for kilt_set in find_sets("all")] == labels
    assert sum(one.rows["dev"] for one in SETS.values()) == 51_304


def test_a_set_is_a_run_of_a_chain_and_is_continued_as_any(
    cli: CommandLine, template_workspace: Path
) -> None:
    (part,) = suite(cli, "kilt-nq", "one", "k=2")["parts"]
    assert (part["label"], part["run"], part["n"]) == ("nq read", "one nq read", 8)
    assert value(part, "em") == 0.125
    assert list(part["metrics"]) == ["em", "KILT-em", "has_answer_all", "Rprec", "recall@5"]
    folder = template_workspace / "runs" / part["run"]
    spec = json.loads((folder / "run.json").read_text())["spec"]
    assert (spec["workflow"], spec["settings"]["chain"]["name"]) == ("chain", "read-qa")
    scored = [(row["qid"], row["metric"]) for row in read_lines(folder / "scores.jsonl")]
    assert len(scored) == len(set(scored)) and ("q1", "KILT-f1") in scored
    assert "Action 2: generate titan" in (folder / "prompt.txt").read_text()
    assert sum(cli.json("analyse", part["run"])["runs"][0]["waterfall"].values()) == 8
    before = (folder / "episodes.jsonl").read_bytes()
    command = "run --chain read-qa --retriever tiny --llm titan --set k=2 --resume --no-mlflow"
    data = template_workspace / "data" / "nq-dev-kilt.jsonl"
    again = cli(command, "--name", part["run"], "--dataset", data)
    assert again.code == 0, again.err
    assert (folder / "episodes.jsonl").read_bytes() == before


def test_several_sets_have_a_macro_average_beside(cli: CommandLine, like_the_papers: None) -> None:
    found = suite(cli, "kilt", "several", "datasets=NQ,fever", llm="checker")
    assert [part["label"] for part in found["parts"]] == ["fev read", "nq read"]
    fev, nq = map(value, found["parts"], ("accuracy", "em"))
    average = pytest.approx((fev + nq) / 2)
    assert (fev, nq) == (0.5, 0.125) and found["averages"]["read"]["headline"] == average
    table = found["tables"][0]
    assert table["columns"] == ["", "FEV", "NQ", "average"] and table["percent"]
    ours, _, printed, _ = table["rows"]
    assert (ours[0], ours[1]["value"], ours[3]) == ("checker, read", fev, average)
    assert printed[1:] == [0.499, 0.364, pytest.approx((0.499 + 0.364) / 2)]
    assert found["tables"][1]["rows"][-1][1:3] == [0.402, 0.277], "KILT's variant"


def test_an_average_over_eleven_sets_never_stands_in_a_column_with_ours_over_fewer(
    cli: CommandLine, like_the_papers: None
) -> None:
    alone = suite(cli, "kilt-nq", "alone", "mode=retrieve", llm="")["tables"]
    for table, printed in zip(alone, (0.652, 0.716)):
        assert table["columns"] == ["", "NQ"], "of one set there is no average"
        assert dict(row[:2] for row in table["rows"][1:])["RaLLe's paper: e5 (Flat)"] == printed
    assert not any("REWRITE-EL" in row[0] for row in alone[0]["rows"])
    two = suite(cli, "kilt", "two", "mode=retrieve", "datasets=nq,ay2", llm="")
    rows = {row[0]: row[1:] for row in two["tables"][0]["rows"]}
    assert rows["RaLLe's paper: e5 (Flat)"] == [0.516, 0.652, pytest.approx((0.516 + 0.652) / 2)]
    assert rows["RaLLe's paper: e5 (Flat), without REWRITE-EL"][0] == 0.034


def test_a_printed_average_is_over_the_sets_that_ours_is_over_or_absent() -> None:
    ours, sets = ("ours", *[0.5] * 11, 0.5), list(SETS.values())
    cells = dict(retrieval("ralle_table3", True))["e5 (DiskANN), without REWRITE-EL"]
    fewer = ("other", None, *ours[2:])
    assert printed_row("x", sets, cells, [ours])[-1] == 0.394, "of all eleven the printed average"
    mean = sum(cells[each.label] for each in sets[1:]) / 10
    assert printed_row("x", sets, cells, [fewer])[-1] == pytest.approx(mean)
    assert printed_row("x", sets, cells, [ours, fewer])[-1] is None


def test_without_datasets_all_that_are_there_are_run(
    cli: CommandLine, template_workspace: Path
) -> None:
    found = suite(cli, "kilt", "all", "mode=retrieve", llm="")
    assert [part["label"].split()[0] for part in found["parts"]] == ["fev", "ay2", "trex", "nq"]
    assert all(list(part["metrics"]) == ["Rprec", "recall@5"] for part in found["parts"])
    scores = read_lines(template_workspace / "runs" / "all nq retrieve" / "scores.jsonl")
    assert not any("accuracy" in row["metric"] for row in scores)
    expected = {
        "file": str(template_workspace / "data" / "nq-dev-kilt.jsonl"),
        "rows": 8,
        "official": False,
    }
    assert found["data"]["nq"] == expected
    differs = "nq-dev-kilt.jsonl has 8 rows and KILT's nq-dev-kilt.jsonl 2,837, so it is not"
    assert any(note.startswith(differs) for note in found["notes"])
    titles = {table["title"] for table in found["tables"]}
    assert titles == {"R-precision", "Recall@5", "Speed and memory (tiny)"}


def test_a_linked_title_stays_whole_and_only_ralles_ends_at_a_comma(cli: CommandLine) -> None:
    assert value(suite(cli, "kilt-ay2", "whole", llm="")["parts"][0], "accuracy") == 1.0
    original = suite(cli, "kilt-ay2", "cut", "compat=original", llm="")["parts"][0]
    assert value(original, "accuracy") == 0.5 and "has_answer" in original["metrics"]


def test_the_query_of_entity_linking_is_rewritten_or_not(
    cli: CommandLine, template_workspace: Path
) -> None:
    suite(cli, "kilt-ay2", "re", "mode=read,retrieve", llm="")
    suite(cli, "kilt-ay2", "plain", "mode=read,retrieve", "rewrite=false", llm="")
    for mode in ("read", "retrieve"):
        assert queries(template_workspace, f"re ay2 {mode}") == [
            'What is "Titan" ?',
            'What is "Lamar County" ?',
        ]
        assert queries(template_workspace, f"plain ay2 {mode}") == [row["input"] for row in LINKS]


def test_rows_without_rewrite_el_stand_below_with_the_change(
    cli: CommandLine, template_workspace: Path, like_the_papers: None
) -> None:
    modes = "mode=retrieve,retrieve-plain"
    found = suite(cli, "kilt", "rows", modes, "datasets=ay2,nq", llm="")
    labels = ["ay2 retrieve", "ay2 retrieve-plain", "nq retrieve"]
    assert [part["label"] for part in found["parts"]] == labels  # NQ uses the same query
    assert queries(template_workspace, "rows ay2 retrieve-plain") == [row["input"] for row in LINKS]
    rewritten, plain, change, *printed = found["tables"][0]["rows"]
    assert [row[0] for row in (rewritten, plain, change)] == [
        "tiny, retrieve",
        "tiny, retrieve-plain",
        "tiny, change without REWRITE-EL",
    ]
    assert plain[2] == rewritten[2] and change[2] is None
    gap = plain[1]["value"] - rewritten[1]["value"]
    assert change[1] == (pytest.approx(gap) if gap else None)
    assert change[3] == pytest.approx(gap / 2)
    assert "RaLLe's paper: BM25, without REWRITE-EL" in [row[0] for row in printed]
    alone = cli.suite(
        "kilt-nq", f"data={template_workspace / 'data'}", "retriever=tiny", "mode=retrieve-plain"
    )
    assert alone.code == 2 and "mode=retrieve-plain is of entity linking" in alone.last


def test_closed_book_nq_counts_has_answer_as_table_7_does(
    cli: CommandLine, like_the_papers: None
) -> None:
    found = suite(cli, "kilt-nq", "closed", "mode=closed-book", llm="checker")
    (own,) = [row for row in found["published"] if row["table"] == "ralle_table7"]
    metrics = found["parts"][0]["metrics"]
    assert own["cells"]["has_answer"]["n"] == metrics["has_answer"]["n"]
    assert metrics["has_answer"]["n"] <= metrics["has_answer_all"]["n"]


def test_the_table_of_speed_has_the_length_of_queries_and_the_peak(cli: CommandLine) -> None:
    found = suite(cli, "kilt-nq", "speed", "mode=retrieve", llm="")
    speed = next(table for table in found["tables"] if table["title"].startswith("Speed"))
    (row, *_) = speed["rows"]
    assert speed["columns"][-2:] == ["peak of the process, GB", "query, tokens"]
    assert 0.05 < row[-2] < 100 and 2 < row[-1] < 30


def test_every_way_is_a_run_and_a_set_without_such_a_chain_is_said(
    cli: CommandLine, like_the_papers: None
) -> None:
    found = suite(cli, "kilt", "ways", "datasets=fev,trex", "mode=closed-book,three-action")
    expected = ["fev closed-book", "trex closed-book", "trex three-action"]
    assert [part["label"] for part in found["parts"]] == expected
    assert "FEV has no chain for three-action and was left out there." in found["notes"]
    speed, tests = found["tables"][-2:]
    (pair,) = {row[0] for row in tests["rows"]}
    assert pair == "T-REx: three-action less closed-book", "the ways to answer one set"
    rows = {row[0]: row for row in speed["rows"]}
    assert rows["FEV, closed-book"][2] is None and rows["T-REx, three-action"][2] > 0
    fev, trex = rows["RaLLe's paper: e5 (Flat), FEV"], rows["RaLLe's paper: e5 (Flat), T-REx"]
    assert (fev[2], trex[2], fev[5]) == (0.177, 0.201, 84.8), "each of its own set"
    assert [plot["title"] for plot in found["plots"]] == ["Headline metric", "R-precision"]
    costs = [row for row in found["published"] if row["table"] == "ralle_table9"]
    by_block = {row["settings"]["block"]: row for row in costs}
    assert list(by_block) == ["closed-book", "retrieval + generation"]
    seconds = {label: mean["value"] for label, mean in by_block["closed-book"]["cells"].items()}
    assert seconds == {"FEV": rows["FEV, closed-book"][4], "T-REx": rows["T-REx, closed-book"][4]}
    assert "Avg" not in seconds, "two sets are not eleven"
    assert any("Seconds and memory are of this machine" in words for words in costs[0]["differs"])


def test_ralles_figures_stand_only_beside_its_own_files(cli: CommandLine) -> None:
    found = suite(cli, "kilt-nq", "mine", llm="checker")
    assert not any("RaLLe" in row[0] for table in found["tables"] for row in table["rows"])
    why = "nq-dev-kilt.jsonl is not KILT's file of NQ"
    assert f"RaLLe's figures of NQ are left out: {why}." in found["tables"][0]["note"]
    assert "Prompts reworded." in found["tables"][0]["note"]
    assert {row["table"]: row["why"] for row in found["published"]} == dict.fromkeys(
        ("ralle_table2", "ralle_table3", "ralle_table8", "ralle_table9", "ralle_table4"), why
    )


def test_gold_pages_that_an_index_lacks_and_failures_are_said(
    cli: CommandLine, template_workspace: Path
) -> None:
    file = write_lines(
        template_workspace / "lost.jsonl", [record("x", "Who?", "Titan", "p9"), *RECORDS]
    )
    found = suite(cli, "kilt-nq", "lost", f"file={file}", llm="picky")
    part, notes = found["parts"][0], "\n".join(found["notes"])
    assert "lost: 6 of 7 gold pages are in this index (tiny);" in notes
    assert part["n_errors"] > 0 and part["metrics"]["em"]["n"] == part["n"] - part["n_errors"]
    assert f"nq read: {part['n_errors']} of 9 questions failed" in notes


def test_gold_without_pages_is_not_scored_by_retrieval(
    cli: CommandLine, template_workspace: Path
) -> None:
    bare = [{**row, "output": [{"answer": "Titan"}]} for row in RECORDS]
    file = write_lines(template_workspace / "bare.jsonl", bare)
    found = suite(cli, "kilt-nq", "bare", f"file={file}", "mode=read,retrieve")
    (part,) = found["parts"]
    assert (part["label"], list(part["metrics"])) == ("nq read", ["em", "has_answer_all"])
    assert any("bare: its gold names no pages" in note for note in found["notes"])
    ran = cli.suite("kilt-nq", f"file={file}", "retriever=tiny", "mode=retrieve")
    assert ran.code == 2 and "nothing could be scored" in ran.last


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("kilt-nq", "", "give --set data=FOLDER"),
        ("kilt", "", "give --set data=FOLDER"),
        ("kilt", "datasets=squad", "KILT has no set 'squad'"),
        ("kilt", "datasets=nq,fev file=FILE", "file=nq=FILE,hopo=FILE"),
        ("kilt", "datasets=nq file=fev=FILE", "'fev' is not among the requested sets"),
        ("kilt-nq", "data=nowhere", "nor as a dataset; it should be the folder of KILT's files"),
        ("kilt", "datasets=nq,fev data=tiny-qa", "Say whose it is; give --set file=nq=tiny-qa"),
        ("kilt-nq", "data=tiny-qa file=FILE", "tiny-qa is one dataset"),
        ("kilt-tqa", "data=DATA", "holds no triviaqa-dev-kilt.jsonl"),
        ("kilt-nq", "data=DATA split=train", "holds no nq-train-kilt.jsonl"),
        ("kilt-nq", "file=FILE mode=guess", "mode must be one of read, closed-book"),
        ("kilt-nq", "file=FILE retriever=", "--set retriever=NAME"),
        ("kilt-nq", "file=FILE retriever=nowhere", "there is no retriever 'nowhere'"),
        ("kilt-nq", "data=DATA LLM=", "name one with --llm"),
        ("kilt-fev", "data=DATA mode=three-action", "FEV has no chain for three-action"),
        ("kilt-fev", "file=FILE", "has the answer 'Titan', where SUPPORTS or REFUTES"),
        ("kilt-ay2", "file=FILE", "lacks [START_ENT]"),
        ("kilt-trex", "file=FILE", "lacks [SEP]"),
        (
            "kilt-nq",
            "file=DATA/trex-dev-kilt.jsonl",
            "holds [SEP], as another of KILT's tasks does",
        ),
        ("kilt-nq", "file=DATA/aidayago2-dev-kilt.jsonl", "holds [START_ENT]"),
    ],
)
def test_a_wrong_request_or_file_is_one_sentence_and_writes_nothing(
    cli: CommandLine, template_workspace: Path, name: str, settings: str, sentence: str
) -> None:
    before = everything(template_workspace)
    data, file = (
        str(template_workspace / "data"),
        str(template_workspace / "datasets" / "tiny-qa.jsonl"),
    )
    pairs = settings.replace("FILE", file).replace("DATA", data).split()
    llm = "" if "LLM=" in pairs else "titan"
    ran = cli.suite(name, "retriever=tiny", *(p for p in pairs if p != "LLM="), llm=llm)
    assert ran.code == 2 and sentence in ran.last and everything(template_workspace) == before


@pytest.mark.parametrize(
    ("name", "file", "row", "sentence"),
    [
        ("kilt-tqa", "triviaqa-dev_id", {"output": []}, "get_triviaqa_input.py"),
        ("kilt-nq", "nq-dev", {"input": "Who?"}, "KILT keeps the answers of its test files"),
    ],
)
def test_triviaqas_ids_without_questions_and_a_test_file_are_refused(
    cli: CommandLine, tmp_path: Path, name: str, file: str, row: Any, sentence: str
) -> None:
    write_lines(tmp_path / f"{file}-kilt.jsonl", [{"id": "1", **row}])
    ran = cli.suite(name, f"data={tmp_path}", "retriever=tiny", llm="titan")
    assert ran.code == 2 and sentence in ran.last


def test_a_file_of_as_many_rows_but_other_bytes_is_said_to_be_changed(tmp_path: Path) -> None:
    rows = [{"id": n, "input": "Who?", "output": [{"answer": "I"}]} for n in range(2837)]
    found = read(SETS["nq"], "nq", write_lines(tmp_path / "nq-dev-kilt.jsonl", rows), "dev", 3)
    assert len(found.examples) == 3
    assert found.rows == 2837
    assert "instead of 7,936,566, so it was changed" in found.differs


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_embedded_reader_answers_published_ones(cli: CommandLine, shared_data: Path) -> None:
    data = shared_data / "kilt"
    pages = ("--page-map", data / "qed_nq_doc_id_to_wikipedia_id.json")
    corpus = ("--corpus", data / "qed_nq_corpus.tsv", *pages)
    cli.json("index", *corpus, "--name", "qed", "--kind", "bm25")
    file = f"file={data / 'qed_nq_kilt.jsonl'}"
    few = {"llm": "extractive-reader", "flags": ("--limit", "60")}
    (part,) = cli.report("kilt-nq", "retriever=qed", file, run="qed", **few)["parts"]
    assert part["n_errors"] == 0 and value(part, "Rprec") > 0.7
    assert 0.1 < value(part, "em") <= value(part, "has_answer_all")


RALLE = "scripts/configs/experiment_settings"


def ralle_copy(folder: Path, template: str) -> Path:
    """A copy of RaLLe's repository in which one chain has another wording."""
    search = {"prompt_template": "{question}", "function": "Retriever", "retriever_name": "e5"}
    read = {"prompt_template": template, "function": "LLM", "llm_name": "llama"}
    chain = [
        {**search, "npassage": 5, "f-strings_or_eval": "f-strings"},
        {**read, "f-strings_or_eval": "f-strings"},
    ]
    dataset = {"dataset_name": "NQ", "num_evaluate": -1, "batch_size": 20}
    value = {"chain_config": {"dataset": dataset, "len_chain": 2, "chain": chain}}
    path = folder / RALLE / "retrieve-read" / "06_nq.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(value))
    return path


def test_the_chains_of_ralles_repository_are_run_as_is(cli: CommandLine, tmp_path: Path) -> None:
    file = ralle_copy(tmp_path / "RaLLe", "Tell me: {question} {response[0]}")
    own = f"prompts={tmp_path / 'RaLLe'}"
    found = suite(cli, "kilt-nq", "theirs", own, llm="checker")
    steps = cli.episodes("theirs nq read")[0]["steps"]
    assert steps[1]["messages"][0]["content"].startswith("Tell me: ")
    assert found["wording"]["whose"] == "original" and len(found["wording"]["sha256"]) == 64
    assert "Original prompts (sha256 " in found["tables"][0]["note"]
    assert "read/nq a version that is not known here" in found["tables"][0]["note"]
    data = f"data={cli.workspace / 'data'}"

    def refusal(*pairs: str) -> str:
        ran = cli.suite("kilt-nq", data, "retriever=tiny", *pairs, llm="checker", run="x")
        assert ran.code == 2 and ran.err.count("\n") == 1
        return ran.err

    assert "without scripts/configs/experiment_settings/closed-book/06_nq.json" in refusal(
        own, "mode=closed-book"
    )
    assert "is not a copy of RaLLe's repository" in refusal(f"prompts={cli.workspace}")
    file.write_text(file.read_text()[:80])
    assert "06_nq.json" in refusal(own)
