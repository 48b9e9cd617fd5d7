"""Train the embedded reader: ``python -m tools.reader.train --data FOLDER --out FILE``.

One command from the base model to the weights. Trainings of several seeds begin at the base model, and one after another joins
their mean; after each, the mean goes on with mixed windows and is kept as the mean of before and after. Averages of trainings
read unseen articles better than each of them (Wortsman et al. 2022, arXiv:2203.05482 and arXiv:2109.01903). Then the confidence
is fitted on the development articles, and weights and model card are written. An interrupted run goes on from its last
checkpoints.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

# Two spinning threads stall each other on a shared machine; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from rallebench.core.errors import BackendError, RalleError, UsageError
from rallebench.core.files import read_object, write_text
from rallebench.encoders.minilm import WEIGHTS_SHA256, MiniLM, model_folder
from rallebench.reader import delta
from tools.reader import calibration, overlap, packing, sources
from tools.reader.card import card
from tools.reader.examples import MIXED, SHORT, SIDE_BY_SIDE, Paragraphs, Stage
from tools.reader.loop import Progress, Settings, train

STARTER = Path(__file__).resolve().parents[2] / "rallebench" / "starter" / "corpus.tsv"
Parts = Mapping[sources.Part, list[sources.Context]]
Difference = dict[str, Any]
"""Name → float32 array to add to the base model."""
Training = Future[tuple[Difference, dict[str, Any]]]
SHORTS = 3
"""Number of trainings on short windows that are averaged."""
UNFITTED = {
    "confidence": {"one": 0.0, "margin": 1.0},
    "refuse_below": {"short": 0.5, "plain": 0.5, "long": 0.5},
}
LONG_BELOW = 0.04
"""A long answer is whole sentences: it helps where the best span in it is wrong, so it is withheld later."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code: 2 for a wrong request, 1 if the work failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    flags = _parser().parse_args(words)
    try:
        if flags.card_only:
            _write_card(flags.out, flags.figures)
        else:
            _run(flags)
    except RalleError as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, metavar="FOLDER", help="the datasets, NAME.jsonl.gz")
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the weights (.safetensors); the card lies beside it",
    )
    add("--work", type=Path, metavar="FOLDER", help="checkpoints (default: FILE.work)")
    add(
        "--exclude",
        type=Path,
        nargs="*",
        default=[],
        metavar="CORPUS.tsv",
        help="corpora that results are reported on: their paragraphs never enter training, but for articles that a "
        "set of questions trains on (no result may be reported on those)",
    )
    add(
        "--seed",
        type=int,
        default=1,
        help="of the first training; the others take the next ones (1)",
    )
    add("--steps", type=int, metavar="N", help="end every training after N steps, for a trial")
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--bfloat16", action="store_true", help="faster where the processor computes it itself")
    add("--threads", type=int, default=1, help="of a training (1); other numbers round otherwise")
    add("--at-once", type=int, default=1, metavar="N", help="trainings side by side (1)")
    add(
        "--figures",
        type=Path,
        nargs="*",
        default=[],
        metavar="REPORT.json",
        help="benchmarks/reader.py --json, for the card",
    )
    add("--card-only", action="store_true", help="write the card of an existing file again")
    return parser


@dataclass(frozen=True, slots=True)
class Job:
    """One training in a process of its own. ``begin``: its first weights as a difference from the base model."""

    seed: int
    stage: Stage
    begin: Difference | None
    data: Path
    exclude: tuple[Path, ...]
    work: Path
    device: str
    bfloat16: bool
    threads: int


def trained(job: Job) -> tuple[Difference, dict[str, Any]]:
    """Changes of a training to the base model, and its name, seed, rate, and numbers of steps and tokens."""
    import torch
    from transformers import AutoTokenizer

    from rallebench.reader.network import build

    torch.set_num_threads(job.threads)
    parts, _ = contexts_of(job.data, job.exclude)
    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    base = build(folder).state_dict()
    network = build(folder, job.begin, attention="eager")
    for values in network.parameters():
        values.data = values.data.clone()  # the base model's file stays as it is
    settings = Settings(
        seed=job.seed, device=job.device, bfloat16=job.bfloat16, stages=(job.stage,)
    )
    paragraphs, work = Paragraphs(parts["train"], tokenizer), job.work / f"seed-{job.seed}"
    for progress in train(network, paragraphs, settings, work):
        print(f"seed {job.seed}, {_line(progress)}", flush=True)
    about = {"name": job.stage.name, "seed": job.seed, "rate": job.stage.rate}
    about |= {"steps": progress.steps, "tokens": progress.tokens}
    return _difference(network, base), about


def _run(flags: argparse.Namespace) -> None:
    if flags.data is None:
        raise UsageError("Give the folder that holds the datasets: --data FOLDER.")
    if flags.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise UsageError(
                "There is no CUDA device here; leave --device out to train on the processor."
            )
    parts, described = contexts_of(flags.data, flags.exclude)
    for line in described:
        print(
            "{name}: {paragraphs} paragraphs, {left_out} left out, {questions} questions".format(
                **line
            )
        )
    difference, stages = _averaged(flags)
    about = {
        "seed": flags.seed,
        "command": _command(flags),
        "stages": stages,
        "sources": described,
        "test_articles": sorted(sources.TEST_ARTICLES),
        "development_articles": sorted(sources.DEVELOPMENT_ARTICLES),
        "trained_articles": sorted(
            {sources.plain_title(c) for c in parts["train"] if c.source != "qamr"}
        ),
        "excluded": [path.name for path in flags.exclude],
    }
    packing.write(flags.out, difference, WEIGHTS_SHA256, {**about, **UNFITTED})
    fitted = _fitted(flags.out, parts["development"], flags.seed)
    packing.write(flags.out, difference, WEIGHTS_SHA256, {**about, **fitted})
    _write_card(flags.out, flags.figures)


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for trainings; where one failed, the others do not go on for hours. Raises BackendError for a killed one."""
    processes = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        yield processes
    except BrokenProcessPool:
        raise BackendError(
            "A training was killed, perhaps for want of memory; run the command again: it goes on from the checkpoints."
        ) from None
    finally:
        for training in active_children():
            training.terminate()
        processes.shutdown(cancel_futures=True)


def _averaged(flags: argparse.Namespace) -> tuple[Difference, list[dict[str, Any]]]:
    """The mean of the trainings, and what each of them was."""
    trainings: list[dict[str, Any]] = []
    work = flags.work or flags.out.with_suffix(".work")
    shared = (flags.data, tuple(flags.exclude), work, flags.device, flags.bfloat16, flags.threads)
    with _processes(flags.at_once) as processes:

        def begin(stage: Stage, turn: int, of: Difference | None = None) -> Training:
            if flags.steps:
                stage = replace(stage, falls=((flags.steps, max(1, flags.steps * 9 // 10)),))
            return processes.submit(trained, Job(flags.seed + turn, stage, of, *shared))

        def ended(training: Training) -> Difference:
            difference, about = training.result()
            trainings.append(about)
            return difference

        def further(mean: Difference, number: int, turn: int) -> Difference:
            stage = replace(MIXED, name=f"mixed-{number}")
            return _mean([mean, ended(begin(stage, turn, mean))])

        first, *others = begin(SIDE_BY_SIDE, 0), *(begin(SHORT, turn) for turn in range(SHORTS))
        means = [further(ended(first), 1, 0)]
        for turn, training in enumerate(others):
            mean = _mean([means[-1], ended(training)])
            means.append(further(mean, turn + 2, turn + 2))
    return _mean(means[-2:]), trainings


def _mean(differences: Sequence[Difference]) -> Difference:
    return {name: sum(d[name] for d in differences) / len(differences) for name in differences[0]}


def _command(flags: argparse.Namespace) -> str:
    """The command line without the places of this machine."""
    parts = [
        f"--exclude {' '.join(p.name for p in flags.exclude)}" if flags.exclude else "",
        f"--seed {flags.seed}" if flags.seed != 1 else "",
        f"--steps {flags.steps}" if flags.steps else "",
        f"--threads {flags.threads}" if flags.threads != 1 else "",
        "--bfloat16" if flags.bfloat16 else "",
    ]
    return " ".join(["python -m tools.reader.train --data FOLDER --out FILE", *filter(None, parts)])


def contexts_of(folder: Path, reported: Sequence[Path]) -> tuple[Parts, list[dict[str, Any]]]:
    """(part → contexts, what was read of each set). Nothing to train on shares a sentence with an article kept
    back, with the starter, or with articles of the ``reported`` corpora that no set trains on by its name."""
    every = [c for source in sources.SOURCES for c in sources.read_source(folder, source)]
    parts = {**sources.split(every)}
    named = frozenset(sources.plain_title(c) for c in parts["train"])
    marks = overlap.excluded_marks([STARTER]) | overlap.excluded_marks(reported, named)
    marks.update(
        m for part in ("development", "test") for c in parts[part] for m in overlap.marks(c.text)
    )
    whole, parts["train"] = (
        parts["train"],
        overlap.without(parts["train"], marks, overlap.titles_of(STARTER)),
    )
    # Sentences alone are not prompts, so they cannot fit a confidence.
    parts["development"] = [c for c in parts["development"] if c.source != "qamr"]
    described = []
    for source in sources.SOURCES:
        contexts = [c for c in parts["train"] if c.source == source.name]
        questions = [q for c in contexts for q in c.questions]
        described.append(
            {
                "name": source.name,
                "about": source.about,
                "licence": source.licence,
                "url": source.url,
                "paragraphs": len(contexts),
                "left_out": sum(c.source == source.name for c in whole) - len(contexts),
                "questions": len(questions),
                "answered": sum(bool(q.answers) for q in questions),
            }
        )
    return parts, described


def _difference(network: Any, base: Mapping[str, Any]) -> Difference:
    """Return the changes made by training, by the base model's names; the head as a whole."""
    difference = {}
    for name, values in network.state_dict().items():
        if name.startswith("head."):
            difference[name] = values.float().cpu().numpy()
        elif name.startswith("bert.encoder."):
            difference[name.removeprefix("bert.")] = (values.cpu() - base[name]).float().numpy()
    return difference


def _fitted(weights: Path, contexts: Sequence[sources.Context], seed: int) -> dict[str, Any]:
    from rallebench.reader.spans import load

    reader = load("auto", weights)
    observed = calibration.observe(reader, contexts, MiniLM(), seed)
    fitted = calibration.fit(observed)
    table = calibration.trade_off(observed, fitted)
    return {
        "confidence": fitted,
        "refuse_below": {
            "short": calibration.threshold(table),
            "plain": calibration.threshold(table, calibration.RIGHT_SHARE_PLAIN),
            "long": LONG_BELOW,
        },
        "calibration": calibration.summary(observed, fitted),
        "trade_off": table,
    }


def _write_card(weights: Path, figures: Sequence[Path]) -> None:
    _, about = delta.read(weights, WEIGHTS_SHA256)
    reports = [read_object(path) for path in figures]
    text = card(about, WEIGHTS_SHA256, weights.stat().st_size, delta.GROUP, reports)
    write_text(weights.with_name("MODEL_CARD.md"), text)


def _line(p: Progress) -> str:
    return f"{p.stage} {p.step}/{p.steps}: loss {p.loss:.3f}, {p.tokens:,} tokens, {p.speed:.0f} a second"


if __name__ == "__main__":
    sys.exit(main())
