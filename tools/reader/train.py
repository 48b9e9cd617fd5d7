"""Train the embedded reader: ``python -m tools.reader.train --data FOLDER --out FILE``.

Reads the datasets of ``training.sources`` from a folder, trains, fits the confidence, writes
the weights and the model card. A run that was interrupted goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

# Two spinning threads stall each other on a shared machine; set before torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.files import read_json, sha256_file, write_text
from rallebench.encoders.minilm import WEIGHTS_SHA256, MiniLM, model_folder
from rallebench.reader import delta
from tools.reader import calibration, overlap, packing, sources
from tools.reader.card import card
from tools.reader.examples import STAGES, Paragraphs
from tools.reader.loop import Progress, Settings, train

STARTER = Path(__file__).resolve().parents[2] / "rallebench" / "starter" / "corpus.tsv"
Parts = Mapping[sources.Part, list[sources.Context]]
UNFITTED = {
    "confidence": {"one": 0.0, "margin": 1.0},
    "refuse_below": {"short": 0.5, "plain": 0.5, "long": 0.5},
}
LONG_BELOW = 0.04
"""A long answer is whole sentences: it helps where the best span in it is wrong, so it is withheld later."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the exit code: 2 for a wrong request, 1 if the work failed."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    flags = _parser().parse_args(given)
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
    add(
        "--stage",
        default="",
        choices=("", *STAGES),
        help="short: from the base model (the default without --begin); mixed: to go on",
    )
    add(
        "--steps",
        type=int,
        metavar="N",
        help="end a stage after N steps, its rate falling to zero by then",
    )
    add(
        "--begin",
        type=Path,
        metavar="FILE",
        help="go on from these weights, and keep the mean of them and what they became",
    )
    add(
        "--mean",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="train nothing: keep the mean of these weights, which trainings of their own made",
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
    add("--seed", type=int, default=1)
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--bfloat16", action="store_true", help="faster where the processor computes it itself")
    add("--threads", type=int, default=0, help="0: as torch decides")
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


def _run(flags: argparse.Namespace) -> None:
    import torch
    from transformers import AutoTokenizer

    from rallebench.reader.network import build

    if flags.data is None:
        raise UsageError("Give the folder that holds the datasets: --data FOLDER.")
    if flags.device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "There is no CUDA device here; leave --device out to train on the processor."
        )
    if flags.threads:
        torch.set_num_threads(flags.threads)
    parts, described = contexts_of(flags.data, flags.exclude)
    if flags.mean:
        _average(flags, parts, described)
        return
    folder = model_folder()
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    base = build(folder).state_dict()
    begun, known = delta.read(flags.begin, WEIGHTS_SHA256) if flags.begin else (None, {})
    network = build(folder, begun, attention="eager")
    for values in network.parameters():
        values.data = values.data.clone()  # the base model's file stays as it is
    stage = STAGES[flags.stage or ("mixed" if flags.begin else "short")]
    if flags.steps:
        stage = replace(stage, falls=((flags.steps, max(1, flags.steps * 9 // 10)),))
    settings = Settings(
        seed=flags.seed, device=flags.device, bfloat16=flags.bfloat16, stages=(stage,)
    )
    last: dict[str, Progress] = {}
    work = flags.work or flags.out.with_suffix(".work")
    for progress in train(network, Paragraphs(parts["train"], tokenizer), settings, work):
        last[progress.stage] = progress
        print(_line(progress), flush=True)
    difference = _difference(network, base)
    if begun:
        difference = {name: (values + begun[name]) / 2 for name, values in difference.items()}
    ended = {
        "name": stage.name,
        "steps": last[stage.name].steps,
        "tokens": last[stage.name].tokens,
        "rate": stage.rate,
    }
    of = [_made(flags.begin, known)] if flags.begin else []
    _finish(
        flags, parts, described, difference, {"of": of, "stages": [*known.get("stages", []), ended]}
    )


def _average(flags: argparse.Namespace, parts: Parts, described: list[dict[str, Any]]) -> None:
    """The mean of several weights, which reads better than each (Wortsman et al. 2022, arXiv:2203.05482)."""
    read = [delta.read(path, WEIGHTS_SHA256) for path in flags.mean]
    mean = {name: sum(values[name] for values, _ in read) / len(read) for name in read[0][0]}
    made = [_made(path, about) for path, (_, about) in zip(flags.mean, read)]
    trained = sorted({article for _, about in read for article in about["trained_articles"]})
    stages: list[Any] = []
    for _, about in read:
        # What several of them went through together, at the beginning, was done once.
        together = next(
            (n for n, (a, b) in enumerate(zip(stages, about["stages"])) if a != b),
            min(len(stages), len(about["stages"])),
        )
        stages += about["stages"][together:]
    _finish(
        flags, parts, described, mean, {"of": made, "stages": stages, "trained_articles": trained}
    )


def _made(path: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Weights that others are made of, and what those were made of in turn."""
    before = (
        [{"sha256": about["begun_from"], "seed": about["seed"], "command": "", "of": []}]
        if about.get("begun_from")
        else []
    )
    return {
        "sha256": sha256_file(path),
        "seed": about["seed"],
        "command": about["command"],
        "of": about.get("of", before),
    }


def _finish(
    flags: argparse.Namespace,
    parts: Parts,
    described: list[dict[str, Any]],
    difference: dict[str, Any],
    made: Mapping[str, Any],
) -> None:
    """Fit the confidence, write weights and card. ``made``: how the weights came to be."""
    about = {
        "seed": flags.seed,
        "command": _command(flags),
        "sources": described,
        "test_articles": sorted(sources.TEST_ARTICLES),
        "development_articles": sorted(sources.DEVELOPMENT_ARTICLES),
        "trained_articles": sorted(
            {sources.plain_title(c) for c in parts["train"] if c.source != "qamr"}
        ),
        "excluded": [path.name for path in flags.exclude],
        **made,
    }
    packing.write(flags.out, difference, WEIGHTS_SHA256, {**about, **UNFITTED})
    fitted = _fitted(flags.out, parts["development"], flags.seed)
    packing.write(flags.out, difference, WEIGHTS_SHA256, {**about, **fitted})
    _write_card(flags.out, flags.figures)


def _command(flags: argparse.Namespace) -> str:
    """The command line without the places of this machine."""
    given = [
        f"--exclude {' '.join(p.name for p in flags.exclude)}" if flags.exclude else "",
        "--begin EARLIER" if flags.begin else "",
        f"--mean {' '.join('EARLIER' for _ in flags.mean)}" if flags.mean else "",
        f"--stage {flags.stage}" if flags.stage else "",
        f"--steps {flags.steps}" if flags.steps else "",
        f"--seed {flags.seed}" if flags.seed != 1 else "",
        "--bfloat16" if flags.bfloat16 else "",
    ]
    return " ".join(["python -m tools.reader.train --data FOLDER --out FILE", *filter(None, given)])


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
    # Sentences alone are no prompts to fit a confidence on.
    parts["development"] = [c for c in parts["development"] if c.source != "qamr"]
    described = []
    for source in sources.SOURCES:
        kept = [c for c in parts["train"] if c.source == source.name]
        questions = [q for c in kept for q in c.questions]
        described.append(
            {
                "name": source.name,
                "about": source.about,
                "licence": source.licence,
                "url": source.url,
                "paragraphs": len(kept),
                "left_out": sum(c.source == source.name for c in whole) - len(kept),
                "questions": len(questions),
                "answered": sum(bool(q.answers) for q in questions),
            }
        )
        print(
            "{name}: {paragraphs} paragraphs, {left_out} left out, {questions} questions".format(
                **described[-1]
            )
        )
    return parts, described


def _difference(network: Any, base: Mapping[str, Any]) -> dict[str, Any]:
    """What training changed, by the base model's names; the head as a whole."""
    found = {}
    for name, values in network.state_dict().items():
        if name.startswith("head."):
            found[name] = values.float().cpu().numpy()
        elif name.startswith("bert.encoder."):
            found[name.removeprefix("bert.")] = (values.cpu() - base[name]).float().numpy()
    return found


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
            "plain": calibration.threshold(table, calibration.KEPT_PLAIN),
            "long": LONG_BELOW,
        },
        "calibration": calibration.summary(observed, fitted),
        "trade_off": table,
    }


def _write_card(weights: Path, figures: Sequence[Path]) -> None:
    _, about = delta.read(weights, WEIGHTS_SHA256)
    reports = [read_json(path) for path in figures]
    text = card(about, WEIGHTS_SHA256, weights.stat().st_size, delta.GROUP, reports)
    write_text(weights.with_name("MODEL_CARD.md"), text)


def _line(p: Progress) -> str:
    return f"{p.stage} {p.step}/{p.steps}: loss {p.loss:.3f}, {p.tokens:,} tokens, {p.speed:.0f} a second"


if __name__ == "__main__":
    sys.exit(main())
