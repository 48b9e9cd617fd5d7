"""Time to compare two runs, list their questions and write a report, and calibration of p.

Two runs of 10,000 questions with episodes of real size (5 passages of 600 characters), the second right a little
more often. Bare is SciPy's exact test on the same scores. Under a true null (both runs
equally good) the share of p < 0.05 over 1,000 simulated comparisons has to lie in 3 to 7 %.

Targets: a comparison at most 5 s, the table of all questions at most 2 s, a report of 1,000 questions under 5 MB.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import _report  # sets the environment: before numpy
from _report import Fact, Measure, Report
from mlflow_logging import CHAIN, text

from rallebench.analysis.paired import compare
from rallebench.analysis.ranking import compare_two
from rallebench.chains.saved import chain_to_json
from rallebench.core.runs import RunSpec
from rallebench.core.types import (
    Episode,
    Generate,
    Hit,
    Message,
    Outcome,
    Passage,
    Reply,
    Retrieve,
    Step,
)
from rallebench.engine.run_files import RunDescription, RunState
from rallebench.engine.score import score_run
from rallebench.engine.store import RunFolder
from rallebench.render import report
from rallebench.services.workbench import Workbench
from rallebench.views import run_questions
from rallebench.views.reports import build_report
from rallebench.workspace.paths import WorkspaceFolder

SVG = "http://www.w3.org/2000/svg"
"""The name of a namespace, which no browser fetches."""
METRICS = ("em", "f1", "accuracy", "has_answer", "Rprec", "recall@5")
SIMULATED, SIMULATED_QUESTIONS = 1000, 200
NULL = (0.03, 0.07)


def rows_of(run: RunFolder) -> int:
    """Read the list of all questions anew: what the process remembers is forgotten first."""
    for remembered in (run_questions._questions, run_questions._records):
        remembered.cache_clear()
    return len(run_questions.questions(Workbench(run.path.parent.parent).workspace, run))


def make_run(runs: Path, name: str, questions: int, right: float, seed: int) -> RunFolder:
    """A scored run in which a share of ``right`` answers is right."""
    rng = random.Random(seed)
    gold = [text(random.Random(f"gold {i}"), 14) for i in range(questions)]
    records = [
        {
            "id": f"q{i}",
            "input": f"question {i}",
            "output": [{"answer": gold[i], "provenance": [{"wikipedia_id": f"p{i}"}]}],
        }
        for i in range(questions)
    ]
    spec = RunSpec("made-up", "chain", {"chain": chain_to_json(CHAIN)})
    described = RunDescription(name, spec, "0" * 12, tuple(METRICS), 20)
    folder = RunFolder.create(runs, described, records)
    with folder.log() as log:
        for i in range(questions):
            folder.append(
                log,
                _episode(rng, i, gold[i] if rng.random() < right else "something else"),
                "1",
                0.1 * i,
            )
    score_run(folder, METRICS)
    folder.set_state(RunState("done", questions, questions))
    return folder


def _episode(rng: random.Random, number: int, answer: str) -> Episode:
    pages = [f"p{number}", *(f"x{rng.randrange(10**6)}" for _ in range(4))]
    rng.shuffle(pages)
    passages = [
        Passage(f"{number}-{i}", text(rng, 600), f"Title {i}", page) for i, page in enumerate(pages)
    ]
    context = "; ".join(passage.text for passage in passages)
    retrieval = Step(
        Retrieve("wiki-bm25", f"question {number}", 5),
        Reply(context, tuple(Hit(p, 9.0 - i) for i, p in enumerate(passages))),
        0.02,
    )
    request = Generate(
        "reader",
        (Message("user", f"{context}\n\nQuestion: question {number}\nAnswer:"),),
        max_tokens=50,
    )
    return Episode(
        f"q{number}",
        "chain",
        (retrieval, Step(request, Reply(answer, prompt_tokens=900, completion_tokens=6), 0.8)),
        Outcome(answer),
    )


def by_scipy(a: Any, b: Any) -> float:
    """p of SciPy's exact test of the changed answers alone."""
    from scipy import stats

    wins, losses = int((b > a).sum()), int((b < a).sum())
    return float(stats.binomtest(wins, wins + losses).pvalue)


def null_rate(simulations: int) -> float:
    """The share of simulated comparisons without a true difference in which p < 0.05 (F1-like scores)."""
    import numpy as np

    rng = np.random.default_rng(_report.SEED)
    significant = 0
    for _ in range(simulations):
        hard = rng.random(SIMULATED_QUESTIONS)
        a, b = (
            np.where(rng.random(SIMULATED_QUESTIONS) < hard, rng.random(SIMULATED_QUESTIONS), 0.0)
            for _ in range(2)
        )
        pair = compare("f1", *({f"q{i}": float(v) for i, v in enumerate(side)} for side in (a, b)))
        significant += pair.p is not None and pair.p < 0.05
    return significant / simulations


def measure(questions: int, rounds: int, simulations: int) -> Report:
    """Make the runs, compare them, list their questions, write a report."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="rallebench-bench-") as place:
        workspace = WorkspaceFolder(Path(place))
        a = make_run(workspace.runs, "a", questions, 0.5, 1)
        b = make_run(workspace.runs, "b", questions, 0.53, 2)
        small = make_run(workspace.runs, "small", min(1000, questions), 0.5, 3)
        compared = [
            _report.timed(lambda: compare_two(a, b, "em", every=False)) for _ in range(rounds)
        ]
        _, pair = compared[0][1]
        columns = [np.array(list(_scores(run).values())) for run in (a, b)]
        bare = [_report.timed(lambda: by_scipy(*columns)) for _ in range(rounds)]
        table = [_report.timed(lambda: rows_of(a))[0].wall for _ in range(rounds)]
        page = "".join(report.page(*build_report([small], workspace)))
        rate = null_rate(simulations)
    p = bare[0][1]
    bounds = NULL if simulations >= SIMULATED else (0.0, 0.2)
    return Report(
        "comparing",
        {"questions": questions, "simulated comparisons": simulations},
        [
            Measure(
                "comparing two runs",
                "s",
                [t.wall for t, _ in compared],
                [t.wall for t, _ in bare],
                "SciPy on scores in memory",
                most=5.0,
            ),
            Measure("the table of all questions", "s", table, most=2.0),
            Measure("a report of 1,000 questions", "MB", [len(page.encode()) / 1e6], most=5.0),
            Measure(
                "share of p < 0.05 without a difference",
                "",
                [rate],
                least=bounds[0],
                most=bounds[1],
            ),
        ],
        [
            Fact("p is SciPy's", abs((pair.p or 0) - p) < 1e-9, True),
            Fact(
                "0 lies outside the interval where p < .05",
                ((pair.p or 1) < 0.05) == ((pair.low or 0) > 0 or (pair.high or 0) < 0),
                True,
            ),
            Fact(
                "the report names an address of the network",
                "http" in page.split("</style>")[1].replace(SVG, "").replace("http-equiv", ""),
                False,
            ),
        ],
    )


def _scores(run: RunFolder) -> dict[str, float]:
    from rallebench.analysis.ranking import read_scores

    return {qid: float(value or 0.0) for qid, value in read_scores(run, ("em",))["em"].items()}


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument("--questions", type=int, default=10_000, metavar="N", help="default: 10000")
    arguments = flags.parse_args()
    size = (200, 1, 20) if arguments.quick else (arguments.questions, arguments.rounds, SIMULATED)
    return measure(*size).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
