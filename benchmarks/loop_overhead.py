"""Overhead of the loop over calling the same retriever and model directly, with tracing and reply cache on.

A chain of three actions (retrieve, generate, generate) is asked 3,000 questions by the real runner:
every reply goes into the memory on disk and every episode is appended to a run folder. The bare
figure is the same retriever and model called in plain Python, in the same batches.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took

from rallebench.chains.chain import as_flow
from rallebench.core.backends import Backends
from rallebench.core.runs import RunSpec
from rallebench.core.types import Action, Chain, Evidence, Generate, Hit, Message, Question
from rallebench.engine.answer import answer
from rallebench.engine.reply_cache import ReplyCache
from rallebench.engine.run_files import RunDescription
from rallebench.engine.store import RunFolder
from rallebench.llms.scripted import Scripted
from rallebench.workspace.opening import Encoders, open_retriever
from rallebench.workspace.paths import WorkspaceFolder

K, BATCH = 5, 20
RETRIEVER = "starter-bm25"
REWRITE = "Rewrite the following question so that it is clear and complete.\n\n{question}?\n\nRewritten question: "
ANSWER = (
    'Referring to the following document, answer "{response[1]}" in 5 words or less.'
    "\n\n{response[0]}\n\nAnswer: "
)

TARGET_MS = 2.0


def three_actions(prompt: str = REWRITE, answer: str = ANSWER) -> Chain:
    """Retrieve, rewrite the question with one model, answer it with another."""
    return Chain(
        "three-actions",
        (
            Action("retrieve", "{question}", target=RETRIEVER, k=K),
            Action("generate", prompt, target="first"),
            Action("generate", answer, target="last"),
        ),
    )


def few_words(request: Generate) -> str:
    """A few words from near both ends of a prompt: a short answer that differs between questions."""
    words = request.messages[-1].content.split()
    return " ".join(words[6:9] + words[-6:-2])


def open_bm25(folder: Path) -> Any:
    """The starter's BM25 retriever, built in a workspace of its own."""
    *_, retriever = open_retriever(WorkspaceFolder(folder), RETRIEVER, Encoders())
    return retriever


def directly(
    texts: Sequence[str],
    retriever: Any,
    first: Any,
    last: Any,
    prompt: str = REWRITE,
    answer: str = ANSWER,
) -> list[str]:
    """Do the work of ``three_actions`` in plain Python: no flow, no loop, no trace, no cache."""
    answers: list[str] = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        results = retriever.search(batch, K)
        read = [
            "; ".join(f"{hit.passage.title}, {hit.passage.text}" for hit in hits)
            for hits in results
        ]
        prompts = [
            prompt.format(question=text, response=[passages])
            for text, passages in zip(batch, read, strict=True)
        ]
        rewritten = [
            reply.text for reply in first.generate(list(map(_request, prompts, batch, results)))
        ]
        prompts = [answer.format(response=list(pair)) for pair in zip(read, rewritten, strict=True)]
        answers += [
            reply.text for reply in last.generate(list(map(_request, prompts, batch, results)))
        ]
    return answers


def _request(prompt: str, question: str, hits: Sequence[Hit]) -> Generate:
    passages = tuple(hit.passage for hit in hits if hit.passage.text in prompt)
    return Generate(
        "",
        (Message("user", prompt),),
        evidence=Evidence(question if question in prompt else "", passages),
    )


def by_the_runner(
    folder: Path,
    name: str,
    chain: Chain,
    records: Sequence[dict[str, Any]],
    backends: Backends,
    reply_cache: ReplyCache,
) -> tuple[Took, RunFolder]:
    """(the duration of a run over all records, its new folder)."""
    run = RunFolder.create(
        folder / "runs", RunDescription(name, RunSpec("starter", "chain", {}), ""), records
    )
    questions = [Question(record["id"], record["input"]) for record in records]

    def answer_all() -> None:
        for _ in answer(
            run,
            lambda question: as_flow(chain, question),
            questions,
            backends,
            reply_cache=reply_cache,
            batch_size=BATCH,
        ):
            pass

    took, _ = _report.timed(answer_all)
    return took, run


def answers_of(run: RunFolder, records: Sequence[dict[str, Any]]) -> list[str]:
    """The stored answers in the order of the records; '' for a failed question."""
    lines = run.heads()
    return [lines[record["id"]].answer for record in records]


def measure(folder: Path, questions: int, rounds: int) -> Report:
    """Direct calls and the runner, turn by turn."""
    records = _report.starter_records(questions)
    texts = [record["input"] for record in records]
    retriever = open_bm25(folder)
    retriever.search(texts[:BATCH], K)
    bare: list[Took] = []
    ours: list[Took] = []
    wrong = on_disk = lines = 0
    for number in range(rounds):
        took, expected = _report.timed(
            lambda: directly(texts, retriever, Scripted(few_words), Scripted(few_words))
        )
        bare.append(took)
        models = {"first": Scripted(few_words, "first"), "last": Scripted(few_words, "last")}
        reply_cache = ReplyCache(folder / f"memo-{number}.sqlite")
        backends = Backends({RETRIEVER: retriever}, models)
        took, run = by_the_runner(
            folder, f"round-{number}", three_actions(), records, backends, reply_cache
        )
        reply_cache.close()
        ours.append(took)
        wrong += sum(a != b for a, b in zip(answers_of(run, records), expected, strict=True))
        lines += len(run.heads())
        on_disk += Path(folder / f"memo-{number}.sqlite").stat().st_size > 0
    each = 1000 / questions
    pairs = list(zip(ours, bare, strict=True))
    return Report(
        "loop_overhead",
        {"questions": questions, "batch": BATCH, "retriever": RETRIEVER, "k": K, "actions": 3},
        [
            Measure(
                "overhead per question",
                "ms",
                [(a.wall - b.wall) * each for a, b in pairs],
                most=TARGET_MS,
            ),
            Measure(
                "its processor time", "ms", [(a.processor - b.processor) * each for a, b in pairs]
            ),
            Measure(
                "the runner, per question",
                "ms",
                [a.wall * each for a in ours],
                [b.wall * each for b in bare],
                "direct calls",
            ),
        ],
        [
            Fact("answers that differ from the direct calls'", wrong, 0),
            Fact("episodes written", lines, questions * rounds),
            Fact("memories on disk", on_disk, rounds),
        ],
    )


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=5).parse_args()
    questions, rounds = (60, 1) if arguments.quick else (3000, arguments.rounds)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), questions, rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
