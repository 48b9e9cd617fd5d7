"""A further paper is one folder: two suites, a judge, a printed table, a format of predictions, a required setting, only
in English."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_views import opened_page, text_of, texts
from small_workspace import CommandLine, add_llm, write_lines

import rallebench.papers
from rallebench.core.registry import Registry
from rallebench.experiments import EXPERIMENTS, SUITES
from rallebench.experiments.benchmarks import BENCHMARKS
from rallebench.experiments.scorers import SCORERS
from rallebench.metrics import METRICS
from rallebench.services.jobs import wait
from rallebench.views import designs, published
from rallebench.views.lists import line

BENCHMARK = '''
"""The entry of Tides."""

from pathlib import Path

from rallebench.experiments.benchmarks import BENCHMARKS, Benchmark
from rallebench.experiments.published.plots import Plot

TIDES = BENCHMARKS.register("tides", about="Tides: questions on moons.")(
    Benchmark(
        name="tides",
        title="Tides",
        paper="arXiv:0000.00000",
        folder=Path(__file__).parent,
        tables="tides",
        first_suite="tides-low",
        first_table="tides:1",
        ready="Without a download: any model in English.",
        plots={"tides_table1": (Plot("Right answers"),)},
    )
)
'''

SUITES_MODULE = '''
"""High tide and low tide."""

from dataclasses import dataclass

from rallebench.core.experiments import Report
from rallebench.core.runs import DatasetRef
from rallebench.core.settings import dataclass_form, declare, declare_text
from rallebench.core.tables import Table
from rallebench.core.types import Generate, Message, Outcome
from rallebench.datasets.reading import read_questions
from rallebench.experiments.common import scored_run
from rallebench.experiments.published.official import why_unverified
from rallebench.core.experiment_reports import PUBLISHED
from rallebench.experiments.published.rows import own_row
from rallebench.metrics.judges import judge_named
from rallebench.papers.common import flow_spec
from rallebench.papers.tides.benchmark import TIDES


@dataclass(frozen=True, slots=True)
class TidesSettings:
    """The settings of both suites."""

    data: str = declare(str, "", required=True, names="file", about="the questions")
    judge: str = declare_text("the model that judges", names="llm")
    tone: str = declare(str, "plain", advanced=True, about="a word before the question")


def answer(request):
    """Ask every question once, score it and judge it."""
    settings = request.read(TidesSettings)
    path = request.workspace.data(settings.data, "the questions")
    examples = tuple(read_questions(path, request.limit))

    def flow(question):
        reply = yield Generate(request.llm, (Message("user", f"{settings.tone}: {question.text}"),))
        return Outcome(reply.text)

    llm = settings.judge
    judges = (judge_named(f"tide-judge:{llm}", request.workspace.llm_mark),) if llm else ()
    result = yield scored_run(
        "all",
        flow_spec("tides", flow, {"tone": settings.tone}, (request.llm,)),
        DatasetRef(str(path)),
        examples,
        lambda example, episode: {"right": float(episode.answer in example.gold.answers)},
        {"right": "1 if the answer is an accepted one, else 0."},
        bounds={"right": (0.0, 1.0)},
        judges=judges,
    )
    right = result.means["right"]
    why = why_unverified("tides", "moons", examples)
    row = own_row("tides_table1", request.llm, {"right": right}, why)
    rows = ((request.llm, right), *([] if why else [("Tides' paper: Luna", 0.25)]))
    table = Table("Tides", ("system", "right"), rows, True, row.note)
    return Report({"headline": "right", PUBLISHED: (row,)}, tables=(table,))


@TIDES.suite("tides-low", form=dataclass_form(TidesSettings))
def low(request):
    """Tides, low water: every question once."""
    return (yield from answer(request))


@TIDES.suite("tides-high", form=dataclass_form(TidesSettings))
def high(request):
    """Tides, high water: every question once more."""
    return (yield from answer(request))
'''

JUDGE = '''
"""The judge of Tides."""

from rallebench.core.scoring import ScoreColumn
from rallebench.core.types import Generate, Message
from rallebench.metrics import METRICS
from rallebench.metrics.judges import verdict_outcome, verdict_scores


@METRICS.register_judge(
    "tide-judge",
    columns=(ScoreColumn("wet", "1 if the judge says yes, else 0."),),
    scores=verdict_scores("wet"),
)
def tide_judge(case, *, llm, prompt):
    """1 if the judge calls the answer wet, else 0."""
    reply = yield Generate(llm, (Message("user", f"Is this wet? {case.answer}"),))
    return verdict_outcome({"yes": True, "no": False}.get(reply.text))
'''

PREDICTIONS = '''
"""Predictions of Tides, one a line."""

from rallebench.experiments.scorers import SCORERS


@SCORERS.register("tides")
def score_tides(guess, gold=None):
    """One answer a line."""
    return {"suite": "tides", "n": len(guess.read_text().splitlines())}
'''

TABLE = {
    "about": "right answers",
    "source": "Tides, Table 1",
    "split": "moons",
    "n": 4,
    "columns": ["right"],
    "units": "percent",
    "decimals": 1,
    "rows": [{"system": "Luna", "settings": {}, "values": {"right": 25.0}}],
    "doubts": [],
}
REGISTRIES: tuple[Registry[object], ...] = (BENCHMARKS, EXPERIMENTS, METRICS, SCORERS)  # type: ignore[assignment]
ADDED = {
    "benchmark": BENCHMARK,
    "suites": SUITES_MODULE,
    "judge": JUDGE,
    "predictions": PREDICTIONS,
}
QUESTIONS = [("t1", "Titan"), ("t2", "Triton"), ("t3", "Titan"), ("t4", "Charon")]


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One folder beside those of the five papers, and nothing else."""
    for registry in REGISTRIES:
        registry.load()  # an entry that is imported later would be lost with the copy below
    folder = tmp_path / "rooms" / "tides"
    (folder / "published").mkdir(parents=True)
    (folder / "__init__.py").write_text('"""Tides."""\n')
    for module, text in ADDED.items():
        (folder / f"{module}.py").write_text(text)
    (folder / "published" / "tides_table1.json").write_text(json.dumps(TABLE))
    monkeypatch.setattr(
        rallebench.papers, "__path__", [*rallebench.papers.__path__, str(folder.parent)]
    )
    for registry in REGISTRIES:
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_loaded", False)
    yield folder
    for name in [name for name in sys.modules if name.startswith("rallebench.papers.tides")]:
        del sys.modules[name]
    monkeypatch.delattr(rallebench.papers, "tides", raising=False)


@pytest.fixture
def questions(workspace: Path, room: Path) -> Path:
    """Four questions, registered as the paper's own, and a judge that says yes."""
    from rallebench.experiments.published.official import ids_digest

    rows = [
        {"id": qid, "input": f"Which moon is {qid}?", "output": [{"answer": moon}]}
        for qid, moon in QUESTIONS
    ]
    digest = ids_digest(qid for qid, _ in QUESTIONS)
    (room / "official.json").write_text(json.dumps({"sets": {"moons": {"ids": digest}}}))
    add_llm(workspace, "yes", default="yes")
    path = workspace / "moons.jsonl"
    write_lines(path, rows)
    return path


def test_it_is_listed_with_its_suites_judge_predictions_and_table(cli: CommandLine) -> None:
    assert {"tides-low", "tides-high"} <= {row["name"] for row in cli.json("list suites")["suites"]}
    assert "tide-judge" in METRICS.judge_names() and "tides" in SCORERS.names()
    assert "tides:1" in {row["name"] for row in cli.json("list published")["published"]}
    assert designs.suites()["tides"] == ["tides-high", "tides-low"]
    assert designs.benchmark_title("tides") == "Tides"
    assert designs.first_suite("tides") == "tides-low", "as it declares, not the first by name"
    about = line(SUITES.entry("tides-low"))
    assert about.endswith("Without a download: any model in English.") and "Chinese" not in about


def test_its_required_setting_is_demanded_in_one_sentence(cli: CommandLine) -> None:
    ran = cli.suite("tides-low", llm="titan")
    assert ran.code == 2 and "data" in ran.last and "Traceback" not in ran.err


def test_it_is_planned_run_judged_and_stands_beside_its_printed_table(
    cli: CommandLine, questions: Path
) -> None:
    pairs = (f"data={questions}", "judge=yes")
    plan = json.loads(cli.suite("tides-low", *pairs, llm="titan", flags=("--plan", "--json")).out)
    assert [(run["label"], run["questions"]) for run in plan["plan"]] == [("all", 4)]
    report = cli.report("tides-low", *pairs, llm="titan", run="low")
    (part,) = report["parts"]
    assert part["metrics"]["right"]["value"] == 0.5
    assert part["metrics"]["wet:yes"]["value"] == 1.0, "the judge says yes to all"
    assert [row[0] for row in report["tables"][0]["rows"]] == ["titan", "Tides' paper: Luna"]
    table = cli.json("report", "--published", "tides:1", "low")
    assert [row["system"] for row in table["rows"]] == ["Luna"]
    (own,) = table["ours"]
    assert own["cells"]["right"]["value"] == 50.0 and own["why"] == ""


def test_its_predictions_are_scored(cli: CommandLine, tmp_path: Path) -> None:
    guess = tmp_path / "guess.txt"
    guess.write_text("Titan\nTriton\n")
    assert cli.json("score", "--suite", "tides", "--guess", guess) == {"suite": "tides", "n": 2}


def test_the_page_offers_its_form_runs_it_and_draws_its_table(
    workspace: Path, questions: Path
) -> None:
    with opened_page(workspace) as page:
        drawn = text_of(page, "experiments/list?kind=suite&paper=tides")
        assert "Tides" in drawn and "Tides, low water" in drawn
        form = designs.suite_about("tides-low")[2]
        assert designs.advanced_settings(form) == ["tone"], "folded away as it declares"
        fields = {
            "suite": "tides-low",
            "shown": "tides-low",
            "llm": "titan",
            "limit": "",
            "s:data": str(questions),
            "s:judge": "yes",
            "s:tone": "plain",
            "name": "low",
        }
        plan = texts(page.call("experiments.change", fields).html["x-plan"])
        assert "4" in plan and "cannot" not in plan
        page.call("experiments.run", fields)
        wait(page.workbench.jobs.list(), 60)
        assert "Tides, low" in text_of(page, "experiments/list").partition("Done")[2]
        assert "Luna" in text_of(page, "experiments/one?id=low")
        shown = text_of(page, "experiments/published?table=tides:1")
        assert "Luna" in shown and "ours: titan (low" in shown
        (figure,) = published.figures(published.open_table("tides:1"))
        assert figure.title == "Right answers" and "Luna" in figure.series
