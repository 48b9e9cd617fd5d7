"""Combinations by name or written out: their meaning, loading, sharing and release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from building import built
from small_workspace import CommandLine, add_llm, chain, generate, make_workspace, retrieve

from rallebench.core.entries import Combination
from rallebench.core.errors import BadFileError, NotFoundError, RalleError, UsageError
from rallebench.core.events import complete
from rallebench.encoders.hashing import Hashing
from rallebench.services.workbench import Workbench
from rallebench.workspace.checking import check_chain
from rallebench.workspace.paths import WorkspaceFolder

NAMED = {
    "both": {"kind": "rrf", "of": ["tiny", "tiny-graph"], "about": "words and vectors"},
    "careful": {"kind": "index", "of": ["tiny-graph"], "settings": {"ef_search": 40}},
    "judged": {"kind": "llm-rerank", "of": ["both"], "settings": {"llm": "titan", "depth": 3}},
    "ring": {"kind": "rrf", "of": ["tiny", "chain-link"]},
    "chain-link": {"kind": "several", "of": ["ring"]},
    "orphan": {"kind": "rrf", "of": ["tiny", "nobody"]},
    "odd": {"kind": "magic", "of": ["tiny"]},
    "voiceless": {"kind": "llm-rerank", "of": ["tiny"], "settings": {"llm": "nobody"}},
}


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = make_workspace(tmp_path_factory.mktemp("combinations") / "made")
    corpus, pages = workspace / "corpus.tsv", workspace / "pages.json"
    built(workspace / "indexes", "tiny-graph", corpus, "hnsw", encoder=Hashing(), page_map=pages)
    (workspace / "retrievers.json").write_text(json.dumps(NAMED))
    (workspace / "chains" / "hybrid.json").write_text(
        json.dumps(chain("hybrid", retrieve(target="both"), generate()))
    )
    return workspace


def load(bench: Workbench, name: str) -> Any:
    list(bench.models.load(name, "retriever"))
    return bench.models.backends.retrievers[name]


def loaded(bench: Workbench) -> list[str]:
    return [line.name for line in bench.models.status()]


# ── the meaning of a name ────────────────────────────────────────────────────


def test_an_index_is_no_combination_and_a_combination_has_all_its_settings(
    template_workspace: Path,
) -> None:
    workspace = WorkspaceFolder(template_workspace)
    assert workspace.retriever("tiny") is None
    both = workspace.retriever("both")
    assert both is not None and both.of == ["tiny", "tiny-graph"]
    assert both.settings == {"weights": "", "constant": 60.0, "depth": 100, "equal": "passage"}


@pytest.mark.parametrize(
    ("reference", "kind", "of", "settings"),
    [
        ("rrf:tiny,both?weights=0.7,0.3", "rrf", ["tiny", "both"], {"weights": "0.7,0.3"}),
        (
            "rrf: tiny , both ?depth=7&equal=text",
            "rrf",
            ["tiny", "both"],
            {"depth": 7, "equal": "text"},
        ),
        (
            "rerank:(rrf:tiny,both?depth=5)?model=/m",
            "rerank",
            ["rrf:tiny,both?depth=5"],
            {"model": "/m"},
        ),
        ("several:(both?depth=9),tiny", "several", ["both?depth=9", "tiny"], {"merge": "auto"}),
        ("both?constant=1", "rrf", ["tiny", "tiny-graph"], {"constant": 1.0}),
        ("tiny-graph?ef_search=200", "index", ["tiny-graph"], {"ef_search": 200}),
        ("index:tiny-graph?ef_search=200", "index", ["tiny-graph"], {"ef_search": 200}),
        ("careful", "index", ["tiny-graph"], {"ef_search": 40}),
    ],
)
def test_a_combination_can_be_written_out(
    template_workspace: Path, reference: str, kind: str, of: list[str], settings: dict[str, Any]
) -> None:
    entry = WorkspaceFolder(template_workspace).retriever(reference)
    assert entry is not None and (entry.kind, entry.of) == (kind, of)
    assert settings.items() <= entry.settings.items()


WRONG = {
    "an unknown name": ("tny", "There is no index 'tny'. Did you mean 'tiny'"),
    "an unknown part": ("orphan", "'orphan' contains 'nobody': There is no index 'nobody'."),
    "a ring": ("ring", "The retriever 'ring' contains itself (ring → chain-link → ring)"),
    "an unknown way": ("odd", "'odd': There is no way of combining retrievers 'magic'."),
    "an unknown model": ("voiceless", "There is no language model 'nobody'."),
    "too few parts": ("rrf:tiny", "'rrf:tiny' has 1 part; rrf takes 2 to 16."),
    "too many parts": ("rerank:tiny,both?model=x", "has 2 parts; rerank takes 1."),
    "no parts": ("rrf:", "'rrf:' lacks a retriever's name after 'rrf'; write rrf:name,name."),
    "a setting it has not": ("both?wieght=1", "has no setting 'wieght'"),
    "a setting of the wrong kind": ("both?depth=many", "depth=many: depth must be a whole number"),
    "a setting without a value": ("both?depth", "'depth' is not key=value"),
    "weights that do not fit": ("both?weights=1,2,3", "weights has 3 numbers for 2 retrievers"),
    "a knob that the kind has not": ("tiny-graph?nprobe=3", "(hnsw) has no search setting"),
    "a knob out of range": ("tiny-graph?ef_search=0", "ef_search must be a whole number from 1"),
    "a knob of words": ("tiny?k1=2", "(bm25) has no search setting 'k1'; it has none."),
    "a re-ranker without a model": (
        "rerank:tiny",
        "'rerank:tiny' (rerank) needs the setting 'model'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_reference_is_one_sentence_before_anything_is_loaded(
    template_workspace: Path, case: str
) -> None:
    reference, sentence = WRONG[case]
    bench = Workbench(template_workspace)
    with pytest.raises(UsageError) as refused:
        list(bench.models.load(reference, "retriever"))
    assert sentence in str(refused.value) and "\n" not in str(refused.value)
    assert loaded(bench) == [] and bench.models.loading() == {}
    bench.close()


def test_combinations_are_listed_with_one_line_each(template_workspace: Path) -> None:
    listed = WorkspaceFolder(template_workspace).retrievers()
    assert listed["both"] == "words and vectors"
    assert listed["ring"] == "Hybrid by rank: weighted reciprocal-rank fusion."
    assert listed["careful"] == "tiny-graph with ef_search=40"
    assert listed["starter-hybrid"] == "starter corpus, both indexes fused by rank"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[]", "should hold a JSON object: retriever name → entry"),
        ('{"x": {"kind": "rrf"}}', "retriever 'x': 'of' is wrong (field required)"),
        ('{"x": {"kind": "rrf", "of": [], "more": 1}}', "retriever 'x': 'of' is wrong"),
        ("{", "retrievers.json"),
    ],
)
def test_a_damaged_retrievers_json_is_a_sentence(
    workspace: Path, content: str, sentence: str
) -> None:
    (workspace / "retrievers.json").write_text(content)
    with pytest.raises(BadFileError) as error:
        WorkspaceFolder(workspace).retriever("x")
    assert sentence in str(error.value)
    assert WorkspaceFolder(workspace).retriever("tiny") is None  # a plain index needs no such file


def test_a_combination_is_saved_under_a_name_and_read_back(workspace: Path) -> None:
    saved: dict[str, Any] = {"kind": "scores", "of": ["tiny", "both"], "settings": {"depth": 5}}
    WorkspaceFolder(workspace).save_retriever("mine", Combination(**saved))
    entry = WorkspaceFolder(workspace).retriever("mine")
    assert entry is not None and entry.settings["depth"] == 5
    assert json.loads((workspace / "retrievers.json").read_text())["mine"] == saved


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("a:b", {"kind": "rrf", "of": ["tiny", "both"]}),
        ("tiny", {"kind": "rrf", "of": ["tiny-graph", "both"]}),
        ("titan", {"kind": "rrf", "of": ["tiny", "both"]}),
        ("mine", {"kind": "rrf", "of": ["tiny", "mine"]}),
        ("mine", {"kind": "rrf", "of": ["tiny", "nobody"]}),
        ("mine", {"kind": "rrf", "of": ["tiny", "both"], "settings": {"x": 1}}),
    ],
)
def test_a_combination_that_could_not_be_used_is_not_saved(
    workspace: Path, name: str, entry: dict[str, Any]
) -> None:
    before = (workspace / "retrievers.json").read_bytes()
    with pytest.raises(UsageError):
        WorkspaceFolder(workspace).save_retriever(name, Combination(**entry))
    assert (workspace / "retrievers.json").read_bytes() == before


# ── loading ──────────────────────────────────────────────────────────────────


def test_loading_a_combination_loads_its_parts_once_shared(bench: Workbench) -> None:
    tiny, both = load(bench, "tiny"), load(bench, "both")
    assert loaded(bench) == ["tiny", "tiny-graph", "both"] and both.parts[0] is tiny
    assert [hit.passage.doc_id for hit in both.search(["largest moon of Saturn"], 1)[0]] == ["1"]
    graph = bench.models.backends.retrievers["tiny-graph"]
    assert load(bench, "tiny-graph?ef_search=99")._index is graph._index
    bench.models.unload("tiny-graph?ef_search=99")
    assert graph.search(["moon"], 1)[0], "an index goes on without the reference with knobs"


@pytest.mark.slow
def test_the_tokens_that_encoders_read_are_those_of_all_parts(bench: Workbench) -> None:
    for name in ("tiny-graph", "both"):  # the words of "tiny" need no encoder
        assert load(bench, name).embedding_tokens(["largest moon", " "]) == [2, 0]


@pytest.mark.slow
def test_a_part_of_what_is_loaded_cannot_be_unloaded_before_it(bench: Workbench) -> None:
    load(bench, "judged")
    assert sorted(loaded(bench)) == ["both", "judged", "tiny", "tiny-graph", "titan"]
    for part, user in (("tiny", "both"), ("both", "judged"), ("titan", "judged")):
        sentence = f"'{part}' is part of '{user}', which is loaded; unload '{user}' first"
        with pytest.raises(UsageError, match=sentence):
            bench.models.unload(part)
    for name in ("judged", "both", "tiny", "titan", "tiny-graph"):
        bench.models.unload(name)
    assert loaded(bench) == []


@pytest.mark.slow
def test_a_load_that_fails_leaves_its_parts_loaded_and_free(bench: Workbench) -> None:
    with pytest.raises(RalleError, match="the folder /no/such/model does not exist"):
        load(bench, "rerank:tiny?model=/no/such/model")
    assert loaded(bench) == ["tiny"]
    bench.models.unload("tiny")


def test_knobs_reach_the_search_and_the_fingerprint(bench: Workbench) -> None:
    plain, knobbed = load(bench, "tiny-graph"), load(bench, "careful")
    asked: list[dict[str, Any]] = []

    class Index:
        def search(self, vectors: Any, k: int, **knobs: Any) -> Any:
            asked.append(knobs)
            return plain_index.search(vectors, k, **knobs)

    plain_index, knobbed._index = knobbed._index, Index()
    assert knobbed.search(["moon"], 2) == plain.search(["moon"], 2)
    assert asked == [{"ef_search": 40}]
    third = load(bench, "tiny-graph?ef_search=41")
    assert len({retriever.fingerprint for retriever in (plain, knobbed, third)}) == 3


def test_a_page_does_not_load_a_heavy_model_by_the_way(bench: Workbench, workspace: Path) -> None:
    add_llm(workspace, "heavy", "transformers", model="/no/such/model")
    hybrid = bench.workspace.chain("hybrid")
    hidden = hybrid.replace_action(0, target="llm-rerank:both?llm=heavy")
    sentence = r"The language model 'heavy' is not loaded\."
    with pytest.raises(NotFoundError, match=sentence), bench.models.lease("the test") as lease:
        complete(lease.load_for(hidden.llms, hidden.retrievers, heavy=False))


# ── chains, runs and the command line ────────────────────────────────────────


def test_a_chain_is_checked_with_what_its_combination_names(template_workspace: Path) -> None:
    workspace = WorkspaceFolder(template_workspace)
    good = workspace.chain("hybrid")
    check_chain(workspace, good)
    check_chain(workspace, good.replace_action(0, target="rrf:tiny,(tiny-graph?ef_search=9)"))
    for target, sentence in (
        ("orphan", "'orphan' contains 'nobody'"),
        ("rrf:tiny", "rrf takes 2 to 16"),
        ("x", "Known: "),
    ):
        with pytest.raises(UsageError, match=f"Action 1 of 'hybrid': .*{sentence}"):
            check_chain(workspace, good.replace_action(0, target=target))


def test_a_damaged_part_is_found_before_the_run(workspace: Path) -> None:
    (workspace / "indexes" / "tiny-graph" / "manifest.json").write_text("{")
    space = WorkspaceFolder(workspace)
    with pytest.raises(UsageError, match=r"Action 1 of 'hybrid': .*manifest\.json"):
        check_chain(space, space.chain("hybrid"))


def test_a_run_records_its_combination(cli: CommandLine) -> None:
    ran = cli.json("run --chain hybrid --dataset tiny-qa --no-mlflow --name one")
    assert ran["n"] == 8 and ran["n_errors"] == 0
    weighted = "rrf:tiny,tiny-graph?weights=0.9,0.1"
    cli.json("run --chain hybrid --dataset tiny-qa --no-mlflow --name two --retriever", weighted)
    prints = []
    for name, target in (("one", "both"), ("two", weighted)):
        spec = json.loads((cli.workspace / "runs" / name / "run.json").read_text())
        prints.append(spec["spec"]["settings"]["backends"][f"retriever {target}"])
    assert prints[0] != prints[1]


@pytest.mark.parametrize("retriever", ["judged", "several:judged,tiny"])
def test_answers_of_a_judge_that_could_not_be_read_are_told_after_the_run(
    cli: CommandLine, retriever: str
) -> None:
    ran = cli(
        "run --chain hybrid --dataset tiny-qa --no-mlflow --retriever", retriever, "--limit", 3
    )
    assert ran.code == 0, ran.err
    told = f"Warning: 3 of 3 judgements of '{retriever}' could not be read; the order stayed as it"
    assert told in ran.err
    searched = cli("search --index", retriever, "moon")
    assert searched.code == 0 and f"1 of 1 judgements of '{retriever}'" in searched.err


def test_search_and_pick_take_combinations(cli: CommandLine) -> None:
    found = cli.json("search", "--index", "both", "-k", 2, "goes round Neptune backwards")
    assert found[0]["hits"][0]["page_id"] == "p2"
    assert "both" in [row["name"] for row in cli.json("list", "retrievers")["retrievers"]]
    names = [row["name"] for row in cli.json("list", "combinations")["combinations"]]
    assert (
        " ".join(names) == "decompose gold hyde late-rerank lines llm-rerank multi-query nothing "
        "originals pages random rerank rrf scores several step-back union"
    )
    picked = cli.json(
        "pick --dataset tiny-qa --index both --output",
        cli.workspace / "picked.jsonl",
        "--number",
        5,
    )
    assert picked["kept"] == 5
    wrong = cli("search", "--index", "rrf:tiny,nobody", "moon")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.last.startswith(
        "The retriever 'rrf:tiny,nobody' contains 'nobody': There is no index 'nobody'."
    )
