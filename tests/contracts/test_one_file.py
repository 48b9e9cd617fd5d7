"""One file adds one thing, with no other edit: each comes from another distribution and is used from end to end."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from distributions import Install, installing, write_distribution  # noqa: F401 - a fixture
from samples import write_sample
from small_workspace import CommandLine, add_llm, command, environment

from rallebench.cli.verbs import VERBS
from rallebench.corpora import CORPORA
from rallebench.datasets import DATASETS
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.scorers import SCORERS
from rallebench.metrics import METRICS
from rallebench.retrievers import INDEX_KINDS
from rallebench.services.workbench import Workbench
from rallebench.workspace.indexes.estimate import BuildEstimate

TITLES = '''
"""Passages by the words of their titles: a first-stage retriever that needs no encoder."""

import json

from rallebench.core.errors import UsageError
from rallebench.core.settings import Setting
from rallebench.core.text import tokenize
from rallebench.core.types import Hit
from rallebench.corpora.store import PassageStore
from rallebench.corpora import CORPORA
from rallebench.datasets import DATASETS
from rallebench.retrievers import INDEX_KINDS


class Titles:
    titled, prefix_stable = True, True

    def __init__(self, name, folder, manifest, weight):
        self.name, self.fingerprint, self.weight = name, f"{manifest.fingerprint}/{weight}", weight
        self.passages = PassageStore(folder)
        self.folder, self.manifest = folder, manifest
        self.words = json.loads((folder / "titles.json").read_text())

    def search(self, queries, k):
        return [self._search(set(tokenize(query)), k) for query in queries]

    def _search(self, query, k):
        scores = {row: self.weight * len(query & set(words)) for row, words in enumerate(self.words)}
        best = sorted((row for row in scores if scores[row]), key=lambda row: -scores[row])[:k]
        return tuple(Hit(self.passages[row], float(scores[row])) for row in best)

    def with_knobs(self, name, settings):
        return Titles(name, self.folder, self.manifest, settings["weight"])

    def page_ids(self):
        return self.passages.page_ids()

    def close(self):
        self.passages.close()


class TitlesKind:
    """Words of titles."""

    def build(self, folder, passages, vectors, settings):
        assert vectors is None
        words = []
        for passage in passages:
            words.append(tokenize(passage.title)[: settings["longest"]])
            yield len(words), len(passages)
        (folder / "titles.json").write_text(json.dumps(words))
        return settings

    def open(self, name, folder, manifest, encoder=None):
        return Titles(name, folder, manifest, 1)


def check(settings):
    if settings["longest"] == 13:
        raise UsageError("Thirteen words are unlucky; set another number.")


INDEX_KINDS.register(
    "titles",
    about="Words of titles",
    form={"longest": Setting(int, 50, 1, 99, about="words of a title")},
    needs_encoder=False,
    packages=("numpy",),
    search_form={"weight": Setting(int, 1, 1, 9, about="what a word counts", sweep=(1, 4))},
    memory_factors=(3.0, 2.0),
    check=check,
)(TitlesKind())
'''

VECTORS = '''
"""A vector index that remembers numpy's."""

from rallebench.vector_indexes import VECTOR_INDEXES
from rallebench.vector_indexes.numpy_flat import NumpyFlat


@VECTOR_INDEXES.register("plain", search_form={}, packages=("numpy",))
class Plain(NumpyFlat):
    """All vectors, compared one by one."""
'''

QUIZ = '''
"""A pub quiz: one JSON document of rounds, with questions and their right answer."""

import json

from rallebench.datasets import DATASETS

SAMPLE = """{"rounds": [{"about": "Titan", "asked": [
    {"id": "s1", "text": "What is Titan?", "right": "a moon"}, {"id": "s2", "text": "Which moon?", "right": "Titan"}]}]}"""


def recognises(path):
    return path.suffix == ".json" and path.read_text()[:11] == '{"rounds": '


@DATASETS.register("quiz", recognises=recognises, sample={"quiz.json": SAMPLE})
def read_quiz(source):
    """The JSON document of a quiz."""
    rounds = json.loads(source.path.read_text())["rounds"]
    questions = [question for part in rounds for question in part["asked"]]
    for number, question in enumerate(questions, 1):
        output = [{"answer": question["right"]}]
        yield number, {"id": question["id"], "input": question["text"], "output": output}
'''

POEMS = '''
"""A text file of poems, each below a line of three stars; its first line is its title."""

from rallebench.corpora import CORPORA, CorpusRow


def recognises(path):
    return path.suffix == ".poems"


@CORPORA.register("poems", recognises=recognises, sample={"all.poems": "***\\nSea\\nWaves.\\n***\\nSky\\nStars.\\n"})
def read_poems(source):
    """Poems of a text file."""
    title, lines, begun = "", [], 0
    for number, line in [*source.lines(), (0, "***")]:
        if line != "***":
            title, lines = (title, [*lines, line]) if title else (line, lines)
            continue
        if begun:
            yield CorpusRow(begun, f"poem-{begun}", " ".join(lines), title)
        title, lines, begun = "", [], number
'''


JUDGE = '''
"""Whether an answer is polite, as a language model judges it."""

from rallebench.core.types import Generate, Message
from rallebench.core.scoring import ScoreColumn
from rallebench.metrics import METRICS
from rallebench.metrics.judges import verdict_outcome, verdict_scores


@METRICS.register_judge(
    "politeness",
    columns=(ScoreColumn("polite", "1 if the judge says yes, else 0."),),
    scores=verdict_scores("polite"),
)
def politeness(case, *, llm, prompt):
    """Whether an answer is polite."""
    reply = yield Generate(llm, (Message("user", f"Is this polite? {case.answer}"),))
    return verdict_outcome({"yes": True, "no": False}.get(reply.text))
'''

SUITE = '''
"""One question, asked as often as is set."""

from rallebench.core.experiments import Report, Table
from rallebench.core.runs import DatasetRef, FlowSpec, RunRequest
from rallebench.core.scoring import AnswerScorer, ScoreColumn
from rallebench.core.settings import Setting
from rallebench.core.types import Example, Generate, Gold, Message, Outcome, Question
from rallebench.experiments import EXPERIMENTS

EXAMPLE = Example(Question("q1", "Who discovered Titan?"), Gold(("Titan",)), {"id": "q1", "input": "Who discovered Titan?"})


def ask(llm, number):
    def flow(question):
        reply = yield Generate(llm, (Message("user", f"{number}. {question.text}"),))
        return Outcome(reply.text)

    return flow


@EXPERIMENTS.register("repeats", place="suites", form={"times": Setting(int, 2, 1, 9, about="how often")})
def repeats(request):
    """How often one question is answered right."""
    column = ScoreColumn("right", "1 if the answer is Titan, else 0.")
    scorer = AnswerScorer((column,), lambda example, episode: {"right": float(episode.answer == "Titan")})
    right = []
    for number in range(request.settings["times"]):
        spec = FlowSpec("repeats", {"number": number}, lambda backends, n=number: ask(request.llm, n), llms=(request.llm,))
        result = yield RunRequest(spec, DatasetRef("one"), (EXAMPLE,), scorers=(scorer,), label=str(number))
        right.append(result.mean("right"))
    return Report({"right": right}, tables=(Table("Right", ("try", "right"), tuple(enumerate(right))),))
'''

PREDICTIONS = '''
"""Predictions as bare lines."""

from rallebench.experiments.scorers import SCORERS


@SCORERS.register("lines")
def score_lines(guess, gold=None):
    """One answer a line; gold likewise."""
    answers, known = guess.read_text().splitlines(), gold.read_text().splitlines()
    return {"suite": "lines", "n": len(answers), "right": sum(a == k for a, k in zip(answers, known))}
'''


VERB = '''
"""High or low tide."""

from rallebench.cli.flags import flag
from rallebench.cli.verbs import VERBS, Result


@VERBS.register(
    "tide", about="high or low", example="rallebench tide", order=99, flags=(flag("--when", "TIME", "a time"),)
)
def tide(args):
    """High or low."""
    return Result({"tide": args.when}, ("high",))
'''


def last(steps: Any) -> Any:
    *_, end = steps
    return end


def test_an_index_kind_is_listed_built_searched_swept_estimated_verified_and_deleted(
    install: Install, cli: CommandLine, workspace: Path
) -> None:
    install(INDEX_KINDS, "titles_kind", TITLES)
    corpus = str(workspace / "corpus.tsv")
    kinds = {row["name"]: row["about"] for row in cli.json("list", "indexes")["indexes"]}
    assert kinds["titles"] == "Words of titles"

    build = ("index", "--corpus", corpus, "--kind", "titles", "--name")
    manifest = cli.json(*build, "by-title", "--set", "longest=7")
    assert (manifest["retriever"], manifest["kind"], manifest["encoder"]) == (
        "titles",
        "titles",
        "",
    )
    assert manifest["parameters"] == {"longest": 7} and "numpy" in manifest["versions"]
    assert cli(*build, "again", "--set", "longest=0").last.endswith("from 1 to 99.")
    assert "unlucky" in cli(*build, "again", "--set", "longest=13").last
    assert "has no encoder" in cli(*build, "again", "--encoder", "hashing").last

    (found,) = cli.json("search", "--index", "by-title", "-k", 1, "Who was Christiaan Huygens?")
    assert [(hit["doc_id"], hit["score"]) for hit in found["hits"]] == [("5", 2.0)]
    (found,) = cli.json("search", "--index", "by-title?weight=3", "-k", 1, "Christiaan Huygens")
    assert [hit["score"] for hit in found["hits"]] == [6.0]

    vary = ("--factor", "index.kind=bm25,titles", "--metrics", "Rprec", "--no-mlflow")
    swept = cli.json("sweep", "--chain", "title", "--dataset", "tiny-qa", "--name", "s", *vary)
    assert len(swept["variants"]) == 2 and not swept["failed"]

    measured = cli.json("tradeoff", "--index", "tiny,by-title", "--dataset", "tiny-qa")
    points = [(point["index"], point["knobs"]) for point in measured["points"]]
    assert points == [("tiny", {}), ("by-title", {"weight": 1}), ("by-title", {"weight": 4})]

    bench = Workbench(workspace)
    estimate = last(bench.data.estimate_build(corpus, "titles", parameters={"longest": 5}))
    assert isinstance(estimate, BuildEstimate) and 0 < estimate.ram_search < estimate.ram_build
    assert last(bench.data.verify_index("by-title")).files == len(manifest["files"])
    assert "weight" in bench.data.search_settings("by-title")
    bench.data.delete_index("by-title")
    assert not (workspace / "indexes" / "by-title").exists()
    bench.close()


def test_a_dataset_format_is_read_imported_and_run(
    install: Install, cli: CommandLine, tmp_path: Path
) -> None:
    install(DATASETS, "quiz_format", QUIZ)
    sample = write_sample(tmp_path, DATASETS.entry("quiz").traits["sample"])
    run = cli.json("run", "--chain", "closed", "--dataset", sample, "--no-mlflow", "--name", "r")
    assert run["n"] == 2 and run["metrics"]["em"]["value"] == 0.5
    imported = cli.json("import", sample, "--kind", "dataset", "--name", "mine")
    assert imported["rows"] == 2
    again = cli.json("run", "--chain", "closed", "--dataset", "mine", "--no-mlflow", "--name", "s")
    assert again["metrics"]["em"] == run["metrics"]["em"]


def test_a_corpus_format_is_recognised(install: Install, cli: CommandLine, tmp_path: Path) -> None:
    install(CORPORA, "poems_format", POEMS)
    sample = write_sample(tmp_path, CORPORA.entry("poems").traits["sample"])
    cli.json("index", "--corpus", sample, "--name", "poems", "--kind", "bm25")
    (found,) = cli.json("search", "--index", "poems", "-k", 1, "the stars")
    assert [(hit["title"], hit["text"]) for hit in found["hits"]] == [("Sky", "Stars.")]
    assert cli.json("import", sample, "--kind", "corpus", "--name", "verse")["rows"] == 2


def test_a_judge_is_a_metric_of_any_run(install: Install, cli: CommandLine) -> None:
    install(METRICS, "polite_judge", JUDGE)
    metrics = ("--metrics", "em,politeness:picky-yes")
    add_llm(cli.workspace, "picky-yes", default="yes")
    run = ("run", "--chain", "closed", "--dataset", "tiny-qa", "--no-mlflow", "--name", "r")
    means = cli.json(*run, *metrics)["metrics"]
    assert means["polite:picky-yes"]["value"] == 1.0 and means["em"]["n"] == 8


def test_a_suite_is_planned_run_resumed_and_reported(install: Install, cli: CommandLine) -> None:
    install(EXPERIMENTS, "repeats_suite", SUITE)
    suite = ("suite", "repeats", "--llm", "titan", "--set", "times=3", "--no-mlflow")
    assert [run["label"] for run in cli.json(*suite, "--plan")["plan"]] == ["0", "1", "2"]
    report = cli.json(*suite, "--name", "s")
    assert report["right"] == [1.0, 1.0, 1.0] and report["tables"][0]["title"] == "Right"
    assert cli.json(*suite, "--name", "s")["right"] == report["right"]
    assert "from 1 to 9" in cli(*suite, "--set", "times=0").last


def test_a_predictions_form_is_scored(install: Install, cli: CommandLine, tmp_path: Path) -> None:
    install(SCORERS, "line_predictions", PREDICTIONS)
    guess, gold = tmp_path / "guess.txt", tmp_path / "gold.txt"
    guess.write_text("a\nb\n")
    gold.write_text("a\nc\n")
    scored = cli.json("score", "--suite", "lines", "--guess", guess, "--gold", gold)
    assert scored == {"suite": "lines", "n": 2, "right": 1}


def test_a_verb_is_called_with_its_flags(install: Install, cli: CommandLine) -> None:
    install(VERBS, "tide_verb", VERB)
    assert cli.json("tide", "--when", "noon") == {"tide": "noon"}
    assert cli("tide", "--never").code == 2


@pytest.mark.slow
def test_a_vector_index_becomes_an_index_with_an_encoder(workspace: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    write_distribution(site, "vector_indexes", "plain_vectors", VECTORS)
    paths = os.pathsep.join([environment()["PYTHONPATH"], str(site)])

    def run(*words: str) -> Any:
        ran = subprocess.run(
            command(words[0], "--workspace", workspace, "--json", *words[1:]),
            env={**environment(), "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    corpus = str(workspace / "corpus.tsv")
    build = (
        "index",
        "--corpus",
        corpus,
        "--kind",
        "plain",
        "--name",
        "dense",
        "--encoder",
        "hashing",
    )
    manifest = run(*build)
    assert (manifest["retriever"], manifest["encoder_name"]) == ("dense", "hashing")
    (found,) = run("search", "--index", "dense", "-k", "1", "Charon is the largest moon of Pluto.")
    assert found["hits"][0]["doc_id"] == "6"
