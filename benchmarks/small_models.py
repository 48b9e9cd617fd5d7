"""Small models over the same passages: the embedded reader, and SmolLM2-135M in three quantisations.

For each set the chain of a model is chosen on questions of its own: the number of passages (1, 3, 5) and, for a model that
writes, examples in the prompt (0 or 2), by F1. The chosen chain then answers other questions. MiniLM retrieves for all. The
sets are the starter's questions and, with ``--data FOLDER`` in KILT's format, XQuAD's English ones and real search questions
(QED's Natural Questions), of articles that the embedded reader never learned from. SmolLM2 is chosen for in bfloat16; its
quantised forms take that chain, so that a row differs in the quantisation alone.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import _report
from _report import Fact, Measure, Report
from forced_formats import SMOLLM2, write_model

from rallebench.core.entries import LLMEntry
from rallebench.core.events import complete
from rallebench.core.report import Estimate
from rallebench.core.runs import RunOptions, RunResult
from rallebench.core.types import Action, Chain
from rallebench.services.workbench import Workbench
from rallebench.views.run_requests import BenchmarkOptions, of_chain
from tools.reader.sources import part_of

READER, FORMS = "extractive-reader", ("none", "8bit", "4bit")
STARTER = "starter-qa"
SETS = {"xquad_en": False, "qed_nq": True}
"""Set → whether its articles are divided by a hash of their titles."""
PASSAGES, SHOTS = (1, 3, 5), (0, 2)
METRICS = ("em", "f1", "has_answer")
MAX_TOKENS = 24
PROMPT = """Referring to the following document, answer "{question}" in 5 words or less.

{document}

Answer: """
"""Prompt of the default chain: the best of eight tried with SmolLM2, which prefers sentences."""
EXAMPLES = (
    (
        "How long is the Osk?",
        "The Osk is a river of 212 km. It rises in the Mell hills and flows into Lake Tarn.",
        "212 km",
    ),
    (
        "Who founded Vennery?",
        "The town of Vennery was founded in 1641 by Aldo Prins, a miller and its first mayor.",
        "Aldo Prins",
    ),
)


@dataclass(frozen=True)
class Size:
    """Questions of a set to choose a chain by, and to measure it by."""

    choosing: int
    measuring: int


@dataclass(frozen=True)
class Sets:
    """A set in the workspace: the names of its two parts, and its retriever."""

    name: str
    choosing: str
    measuring: str
    retriever: str


def chain(retriever: str, llm: str, passages: int, shots: int) -> Chain:
    """A chain that retrieves and reads."""
    examples = "".join(
        PROMPT.format(question=question, document=document) + f"{answer}\n\n"
        for question, document, answer in EXAMPLES[:shots]
    )
    prompt = examples + PROMPT.format(question="{question}", document="{response[0]}")
    limits = {"max_tokens": MAX_TOKENS, "stop": ["\n"]}
    retrieve = Action("retrieve", "{question}", target=retriever, k=passages)
    read = Action("generate", prompt, target=llm, generation=limits)
    return Chain(f"{llm}-{passages}-{shots}", (retrieve, read))


def make_untrained(folder: Path, name: str) -> list[str]:
    """The lines of a set's questions whose articles the embedded reader was never trained on."""
    lines = (folder / f"{name}_kilt.jsonl").read_text(encoding="utf-8").splitlines()
    titles = [
        next((p["title"] for o in json.loads(line)["output"] for p in o.get("provenance", [])), "")
        for line in lines
    ]
    return [line for line, title in zip(lines, titles) if part_of(title, SETS[name]) == "test"]


def prepare_workspace(bench: Workbench, folder: Path, data: Path | None, size: Size) -> list[Sets]:
    """The sets in the workspace, each in two parts without a common question, over an index of MiniLM's vectors."""
    starter = bench.workspace.dataset(STARTER)[1].read_text(encoding="utf-8").splitlines()
    sources = {STARTER: (starter, "starter-minilm")}
    for name in SETS if data else ():
        assert data is not None
        corpus = data / f"{name}_corpus.tsv"
        pages = data / f"{name}_doc_id_to_wikipedia_id.json"
        if f"{name}-minilm" not in bench.workspace.retrievers():
            for _ in bench.data.build_index(f"{name}-minilm", corpus, "flat", page_map=pages):
                pass
        sources[name] = (make_untrained(data, name), f"{name}-minilm")
    sets = []
    for name, (lines, retriever) in sources.items():
        drawn = random.Random(_report.SEED).sample(lines, len(lines))
        parts = {
            f"{name}-choosing": drawn[: size.choosing],
            f"{name}-measuring": drawn[size.choosing :][: size.measuring],
        }
        for part, some in parts.items():
            file = folder / f"{part}.jsonl"
            file.write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
        first, second = (str(folder / f"{part}.jsonl") for part in parts)
        sets.append(Sets(name, first, second, retriever))
    return sets


def run(bench: Workbench, value: Chain, dataset: str) -> RunResult:
    """The result of a run of a chain."""
    options = BenchmarkOptions(dataset, metrics=METRICS, run=RunOptions(track=False))
    return complete(bench.runs.run(of_chain(bench.workspace, value, options)))


def best(bench: Workbench, questions: Sets, llm: str, shots: Sequence[int]) -> tuple[int, int]:
    """(passages, examples) with the best F1 on the questions that a chain is chosen by; of equals the cheaper."""
    scores = {}
    for passages in PASSAGES:
        for number in shots:
            result = run(
                bench, chain(questions.retriever, llm, passages, number), questions.choosing
            )
            assert result.report is not None
            scores[passages, number] = result.report.metrics["f1"].value or 0.0
            print(
                f"{questions.name} {llm} k {passages}, {number} examples: F1",
                end=" ",
                file=sys.stderr,
            )
            print(f"{scores[passages, number]:.3f}", file=sys.stderr, flush=True)
    return max(scores, key=lambda cell: scores[cell])


def percent(value: Estimate) -> str:
    """A mean with its interval.

    >>> percent(Estimate(0.5, 0.4, 0.62, 90)), percent(Estimate(0.5, n=3))
    ('50.0 (40.0–62.0)', '50.0 (n 3)')
    """
    if value.low is None:
        return f"{100 * (value.value or 0.0):.1f} (n {value.n})"
    low, middle, high = (100 * (end or 0.0) for end in (value.low, value.value, value.high))
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


def measure(folder: Path, data: Path | None, model: str, size: Size) -> Report:
    """Choose and measure; the table is in the notes."""
    bench = Workbench(folder)
    report = Report("small_models", vars(size))
    writers = {f"smollm2-{form}": form for form in FORMS}
    shared = {"model": model, "device_map": "cpu", "dtype": "bfloat16", "batch_size": 1}
    for name, form in writers.items():
        entry = LLMEntry(backend="transformers", settings={**shared, "quantization": form})
        bench.models.add(name, entry, replace=True)
    for _ in bench.models.load(READER, "language model"):  # before MiniLM, whose weights it shares
        pass
    sets = prepare_workspace(bench, folder, data, size)
    chains: dict[str, tuple[int, int]] = {}
    plain: dict[str, float] = {}
    report.notes.append(
        "| set | model | passages | examples | EM | F1 | has answer | seconds | MB | n |"
    )
    for llm in (READER, *writers):
        for questions in sets:
            if llm == READER:
                passages, shots = best(bench, questions, llm, (0,))
            elif llm not in chains and FORMS[0] == writers[llm]:
                passages, shots = chains[questions.name] = best(bench, questions, llm, SHOTS)
            else:
                passages, shots = chains[questions.name]
            value = chain(questions.retriever, llm, passages, shots)
            took, result = _report.timed(partial(run, bench, value, questions.measuring))
            assert result.report is not None and result.report.cost is not None
            scores, n = result.report.metrics, result.report.n_done
            seconds = result.report.cost.per_question["generation_seconds"].median or 0.0
            report.notes.append(
                f"| {questions.name} | {llm} | {passages} | {shots} | "
                + " | ".join(percent(scores[metric]) for metric in METRICS)
                + f" | {seconds:.2f} | {result.memory.get(llm, 0) / 1e6:.0f} | {n} |"
            )
            print(report.notes[-1], file=sys.stderr, flush=True)
            each = 1000 * took.processor / max(1, n)
            plain[questions.name] = plain.get(questions.name, each)
            bare = () if llm == READER else ([plain[questions.name]], "the embedded reader")
            name = f"{questions.name}, {llm}: a question"
            report.measures.append(Measure(name, "ms", [each], *bare))
            label = f"{questions.name}, {llm}: questions that failed"
            report.facts.append(Fact(label, result.n_errors, 0))
        bench.models.unload(llm)
    bench.close()
    return report


def main() -> int:
    """Measure and print."""
    import torch

    torch.set_num_threads(_report.THREADS)
    flags = _report.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, metavar="FOLDER", help="sets in KILT's format")
    flags.add_argument("--model", default=SMOLLM2, help="a model's folder or GGUF file")
    flags.add_argument("--workspace", type=Path, help="kept, so that a second call goes on with it")
    arguments = flags.parse_args()
    size = Size(2, 2) if arguments.quick else Size(30, 60)
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.workspace or Path(folder)
        model = arguments.model
        if arguments.quick:
            model = str(write_model(Path(folder) / "random"))
        return measure(place, arguments.data, model, size).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
