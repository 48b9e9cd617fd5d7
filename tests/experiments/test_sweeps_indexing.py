"""A sweep may vary the index that its chain searches: chunk size, overlap, encoder, kind and the kind's settings."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from performing import sweep
from small_workspace import CommandLine, command, environment

from rallebench.core.entries import Combination
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentResult, IndexRecipe
from rallebench.core.settings import parse_settings
from rallebench.core.types import Action, Chain
from rallebench.experiments.sweeps import expand, factor, indexing
from rallebench.retrievers.composites import check_settings, written_out
from rallebench.services.workbench import Workbench
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.indexes.recipes import lasting_settings
from rallebench.workspace.paths import WorkspaceFolder

CHAIN = Chain(
    "c",
    (
        Action("retrieve", "{question}", "fstring", "tiny", 2),
        Action("generate", "{response[0]}", "fstring", "titan"),
    ),
)
SWEEP = ("sweep", "--chain", "read", "--dataset", "tiny-qa", "--no-mlflow", "--name", "s")
DENSE = [
    "--factor",
    "index.kind=numpy-flat",
    "--factor",
    "index.encoder=hashing",
    "--strategy",
    "grid",
]


def indexes(workspace: Path, *texts: str, chain: Chain = CHAIN) -> list[IndexRecipe]:
    variants = expand(chain, [factor(text, parse_settings) for text in texts], "grid")
    return indexing.indexes(WorkspaceFolder(workspace), variants)


def test_what_is_not_varied_stays_as_in_the_chains_own_index(workspace: Path) -> None:
    (one,) = indexes(workspace, "index.chunk_size=5")
    own = read_manifest(workspace / "indexes" / "tiny")
    assert (one.kind, one.encoder, one.corpus) == ("bm25", "", workspace / "indexes" / "tiny")
    assert lasting_settings(one).items() <= own.parameters.items()
    assert one.chunking is not None and (one.chunking.size, one.chunking.overlap) == (5, 0)


def test_an_overlap_may_be_a_share_of_each_size(workspace: Path) -> None:
    found = indexes(workspace, "index.chunk_size=10,20", "index.chunk_overlap=0%,30%")
    expected = [(10, 0), (10, 3), (20, 0), (20, 6)]
    assert [(one.chunking.size, one.chunking.overlap) for one in found if one.chunking] == expected


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("index.kind=nope",), "no index kind 'nope'"),
        (("index.encoder=hashing",), "'bm25' has no encoder"),
        (("index.chunk_size=half",), "must be a whole number, or 'whole'"),
        (("index.chunk_size=5", "index.chunk_overlap=5"), "must lie between 0 and 4"),
        (("index.chunk_overlap=30%",), "give that, too"),
        (("index.nope=1",), "index.nope=1: .*nope"),
        (("index.corpus=nowhere",), "nowhere"),
        (("retriever=(rrf:tiny,starter-bm25)", "index.kind=flat"), "varies one index"),
        (("retriever=(rrf:tiny,starter-bm25)", "index.encoder=hashing"), "'bm25' has no encoder"),
    ],
)
def test_a_bad_index_is_a_sentence(workspace: Path, texts: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        indexes(workspace, *texts)


def test_every_index_of_a_hybrid_is_varied_and_combined_as_before(
    cli: CommandLine, workspace: Path
) -> None:
    assert cli("import", workspace / "corpus.tsv", "--kind", "corpus", "--name", "moons").code == 0
    for name, kind, *more in (("words", "bm25"), ("dense", "flat", "--encoder", "hashing")):
        words = ("--corpus", "moons", "--kind", kind, "--name", name, *more)
        assert cli("index", *words, "--chunk-size", "9").code == 0
    hybrid = Combination(kind="rrf", of=["words", "dense"], settings={"weights": "0.7,0.3"})
    space = WorkspaceFolder(workspace)
    space.save_retriever("both", hybrid)
    chain = Chain("c", (Action("retrieve", "{question}", "fstring", "both", 2),))
    variants = expand(chain, [factor("index.chunk_size=4,whole", parse_settings)])
    (small, whole) = indexing.retrievers(space, variants)
    assert small is not None and whole is not None
    kinds = {name: (one.kind, one.encoder) for name, one in small.recipes.items()}
    assert kinds == {"words": ("bm25", ""), "dense": ("flat", "hashing")}
    assert [one.chunking.size for one in small.recipes.values() if one.chunking] == [4, 4]
    written = small.reference({"words": "a", "dense": "b"})
    assert written == "rrf:a,b?weights=0.7,0.3"
    assert space.retriever("both").settings == check_settings("x", written_out(written)[1])  # type: ignore[union-attr,arg-type]
    ran = cli.json(*SWEEP, "--retriever", "both", "--factor", "index.chunk_size=4,whole")
    assert len(ran["variants"]) == 2
    targets = {
        json.loads((run / "run.json").read_text())["spec"]["settings"]["chain"]["actions"][0][
            "target"
        ]
        for run in (workspace / "runs").iterdir()
    }
    assert all(target.startswith("rrf:") for target in targets) and len(targets) == 2
    (dense,) = indexing.indexes(
        space, expand(chain, [factor("index.encoder=minilm", parse_settings)])
    )[1:]
    assert dense.encoder == "minilm"


def test_a_refused_index_names_every_other_once(workspace: Path, cli: CommandLine) -> None:
    words = ("--kind", "bm25", "--corpus", workspace / "corpus.tsv")
    assert cli("index", *words, "--name", "starter-bm25").code == 0
    with pytest.raises(UsageError) as refused:
        indexing._base(WorkspaceFolder(workspace), "absent", "")
    assert str(refused.value).count("starter-bm25") == 1


def test_pieces_of_an_absent_corpus_are_not_cut_again(workspace: Path, cli: CommandLine) -> None:
    words = ("--kind", "bm25", "--name", "cut", "--chunk-size", "5")
    assert cli("index", "--corpus", workspace / "corpus.tsv", *words).code == 0
    chain = Chain("c", (Action("retrieve", "{question}", "fstring", "cut", 2),))
    with pytest.raises(UsageError, match="which was not imported into this workspace"):
        indexes(workspace, "index.chunk_size=3", chain=chain)
    (one,) = indexes(
        workspace, "index.chunk_size=3", f"index.corpus={workspace / 'corpus.tsv'}", chain=chain
    )
    assert one.corpus == workspace / "corpus.tsv"


def test_every_variant_has_its_own_index_and_costs(cli: CommandLine, workspace: Path) -> None:
    planned = cli.json(*SWEEP, "--plan", "--factor", "index.chunk_size=5,7,whole", *DENSE)
    assert planned["index_builds"] == 3 and len(planned["variants"]) == 3
    assert not (workspace / "runs").exists()
    ran = cli(*SWEEP, "--factor", "index.chunk_size=5,7,whole", *DENSE, "--json")
    assert ran.code == 0, ran.err
    assert "3 indexes to build" in ran.err and len(ran.json["variants"]) == 3
    sizes = set()
    for run in (workspace / "runs").iterdir():
        spec = json.loads((run / "run.json").read_text())["spec"]
        action = spec["settings"]["chain"]["actions"][0]
        manifest = read_manifest(workspace / "indexes" / action["target"])
        sizes.add((manifest.chunking or {}).get("size"))
        assert (manifest.kind, manifest.encoder_name) == ("numpy-flat", "hashing")
    assert sizes == {5, 7, None}
    other = (*SWEEP[:-1], "t")
    again = cli.json(*other, "--plan", "--factor", "index.chunk_size=5,7,whole", *DENSE)
    assert (again["index_builds"], len(again["indexes_there"]), again["encodings"]) == (0, 3, {})


def test_the_same_sweep_again_builds_and_asks_nothing(cli: CommandLine, workspace: Path) -> None:
    def index_times() -> dict[Path, int]:
        manifests = (workspace / "indexes").glob("*/manifest.json")
        return {path: path.stat().st_mtime_ns for path in manifests}

    words = (*SWEEP, "--factor", "index.k1=0.9,1.6")
    assert cli(*words).code == 0
    before = index_times()
    assert len(before) == 2, "the index that is there already has k1 = 0.9"
    ran = cli(*words)
    assert ran.code == 0 and ran.err.count("had ended before") == 2
    assert index_times() == before


@pytest.mark.slow
def test_sigterm_ends_a_sweep_after_its_batch_and_keeps_what_was_answered(workspace: Path) -> None:
    asked = (*SWEEP, "--vary", "llm=slow,echo", "--batch-size", "1", "--workspace", str(workspace))
    going = subprocess.Popen(command(*asked), env=environment(), stderr=subprocess.PIPE, text=True)
    episodes = workspace / "runs" / "s llm=slow" / "episodes.jsonl"
    until = time.monotonic() + 30
    while time.monotonic() < until and not (
        episodes.exists() and episodes.read_text().count("\n") >= 2
    ):
        time.sleep(0.02)
    going.send_signal(signal.SIGTERM)
    _, said = going.communicate(timeout=30)
    answered = episodes.read_text().count("\n")
    assert going.returncode == 130
    assert "start it again with the same --name to continue" in said
    assert "done" not in said
    assert 2 <= answered < 8
    state = json.loads((episodes.parent / "state.json").read_text())
    assert (state["state"], state["done"]) == ("stopped", answered)


def test_a_sweep_over_sizes_does_not_hold_all_its_indexes_at_once(workspace: Path) -> None:
    bench = Workbench(workspace)
    list(bench.models.load("tiny", "retriever"))
    vary = ["index.chunk_size=5,7,whole"]
    *_, found = sweep(bench, "s", CHAIN, vary, "tiny-qa", track=False)
    assert isinstance(found, ExperimentResult) and len(found.runs) == 3
    assert [line.name for line in bench.models.status() if line.kind == "retriever"] == ["tiny"], (
        "what was loaded before stays"
    )
    bench.close()
