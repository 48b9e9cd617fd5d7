"""Overhead of a sweep over five retrieval depths, beyond the unavoidable work.

Questions with the starter's gold are asked of a chain that retrieves k passages with the starter's BM25 and answers
from them, for k = 2, 4, 6, 8, 10. The passages of the smaller k are the first of the deepest, so the index is asked once
for each question; the prompts differ and are all asked. The model is scripted and takes ``--delay`` seconds for
a batch of 20, which is fast for a language model: the slower it is, the less the sweep's own work counts. Bare is one
retrieval at the deepest k and one generation of every prompt, called directly.

Target: at most 1.3 times the bare calls.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from functools import partial
from operator import truediv
from pathlib import Path

import _report
from _report import Fact, Measure, Report

from rallebench.core.entries import LLMEntry
from rallebench.core.events import complete
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import write_text
from rallebench.core.runs import RunOptions
from rallebench.core.types import Action, Chain, Generate, Retrieve, Step
from rallebench.engine.experiment_store import run_name
from rallebench.experiments.sweeps.running import sweep_settings, sweep_variants
from rallebench.services.workbench import Workbench
from rallebench.workspace.paths import WorkspaceFolder

RETRIEVER, MODEL, BATCH = "starter-bm25", "slow", 20
DEPTHS = (2, 4, 6, 8, 10)
CHAIN = Chain(
    "read",
    (
        Action("retrieve", "{question}", target=RETRIEVER, k=5),
        Action("generate", "{response[0]}\n\nQuestion: {question}\nAnswer:", target=MODEL),
    ),
)
TARGET = 1.3


def steps_of(workbench: Workbench, runs: Sequence[str]) -> list[Step]:
    """Every step of every episode of the runs."""
    return [
        s for run in runs for e in workbench.runs.open(run).episodes().values() for s in e.steps
    ]


def directly(workbench: Workbench, queries: Sequence[str], prompts: Sequence[Generate]) -> None:
    """The work that no sweep can save: one deep retrieval, every prompt once."""
    retriever, model = (
        workbench.models.backends.retrievers[RETRIEVER],
        workbench.models.backends.llms[MODEL],
    )
    for start in range(0, len(queries), BATCH):
        retriever.search(queries[start : start + BATCH], max(DEPTHS))
    for start in range(0, len(prompts), BATCH):
        model.generate(prompts[start : start + BATCH])


def measure(folder: Path, questions: int, rounds: int, delay: float) -> Report:
    """A sweep in a new workspace, with a new memory, in every round, and the direct calls after it."""
    records = _report.starter_records(questions)
    queries = [record["input"] for record in records]
    took: list[float] = []
    bare: list[float] = []
    searched = generated = distinct = 0
    for number in range(rounds):
        place = folder / str(number)
        workspace = WorkspaceFolder(place)
        workspace.save_llm(
            MODEL, LLMEntry(backend="scripted", settings={"echo": True, "delay": delay})
        )
        write_text(
            place / "datasets" / "asked.jsonl",
            "".join(json.dumps(record) + "\n" for record in records),
        )
        workbench = Workbench(place)
        complete(workbench.models.lease("the benchmark").load_for(CHAIN.llms, CHAIN.retrievers))
        settings = sweep_settings(CHAIN, [f"k={','.join(map(str, DEPTHS))}"], "asked")
        variants = sweep_variants(settings)
        request = ExperimentRequest(workbench.workspace, "", settings, kind="sweep", name="s")
        sweep = workbench.experiments.run(request, RunOptions(track=False))
        seconds, result = _report.timed(partial(complete, sweep))
        took.append(seconds.wall)
        assert len(result.runs) == len(variants)
        steps = steps_of(workbench, [run_name("s", cell.label) for cell in variants])
        real = [step.request for step in steps if not step.cached]
        searched += sum(isinstance(request, Retrieve) for request in real)
        generated += sum(isinstance(request, Generate) for request in real)
        prompts = {
            step.request.messages: step.request
            for step in steps
            if isinstance(step.request, Generate)
        }
        distinct += len(prompts)
        every = list(prompts.values())
        alone, _ = _report.timed(partial(directly, workbench, queries, every))
        bare.append(alone.wall)
        workbench.close()
    return Report(
        "sweeping",
        {
            "questions": questions,
            "depths": ", ".join(map(str, DEPTHS)),
            "model": f"scripted, {delay:g} s per batch of {BATCH}",
        },
        [
            Measure(
                "the sweep", "s", took, bare, "one deep retrieval and every prompt, called directly"
            ),
            Measure(
                "the sweep over the direct calls",
                "times",
                list(map(truediv, took, bare)),
                most=TARGET,
            ),
        ],
        [
            Fact(
                "questions that the index was asked beyond once", searched - questions * rounds, 0
            ),
            Fact("prompts that the model was asked beyond once", generated - distinct, 0),
        ],
    )


def main() -> int:
    """Measure and print."""
    flags = _report.parser(__doc__, rounds=3)
    flags.add_argument(
        "--delay",
        type=float,
        default=0.5,
        metavar="S",
        help="of the scripted model, per batch; default: 0.5",
    )
    arguments = flags.parse_args()
    questions, rounds, delay = 500, arguments.rounds, arguments.delay
    if arguments.quick:
        questions, rounds, delay = 40, 1, 0.1
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), questions, rounds, delay).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
