"""Utilisation of a batching server: the time of a run against the sum of its latencies.

A server in a process of its own answers after a log-normal time (median 50 ms, sigma 0.5) and fails one request
in a hundred (500, 429, or it hangs up). The real loop asks it 1,000 prompts through the OpenAI-compatible
backend with 16 requests in flight. The ideal is the sum of all latencies served, those of failures and second
tries too, over 16. The bare figure is the ``openai`` client in as many threads. A second server turns away all
that comes while it works at 8: there the ideal is the sum over 8.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report, Took

from rallebench.core.backends import Backends
from rallebench.core.types import Flow, Generate, Message, Outcome, Question
from rallebench.engine.loop import run
from rallebench.llms import LLMS

WINDOW, MEDIAN, SIGMA, ERRORS = 16, 0.05, 0.5, 0.01
BEARABLE = 8
TARGET = 1.25
READ = (
    "Referring to the following document, answer the question in 5 words or less.\n\n"
    + "A line of it. " * 40
)


class Server:
    """The server's process, and what it says it served."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self._stats = f"http://127.0.0.1:{port}/stats"

    def served(self) -> dict[str, Any]:
        """See ``_slow_server.Served``."""
        open_directly = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        with open_directly(self._stats, timeout=30) as answer:
            served: dict[str, Any] = json.loads(answer.read())
        return served


@contextlib.contextmanager
def serving(seed: int, errors: float, bearable: int = 10_000) -> Iterator[Server]:
    """A server that runs meanwhile."""
    script = Path(__file__).resolve().parent / "_slow_server.py"
    command = [
        sys.executable,
        str(script),
        str(seed),
        str(MEDIAN),
        str(SIGMA),
        str(errors),
        str(bearable),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=_report.child_environment()
    )
    try:
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()))
    finally:
        process.terminate()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


def one_step(question: Question) -> Flow:
    """Ask the model once."""
    reply = yield Generate("llm", (Message("user", f"{READ}\n{question.text}"),))
    return Outcome(reply.text)


def load(server: Server) -> Any:
    """The backend at its defaults, but for the window."""
    return LLMS["openai_compatible"]("llm", model="m", base_url=server.url, concurrency=WINDOW)


def by_the_loop(server: Server, questions: Sequence[Question]) -> tuple[Took, list[Any]]:
    """(the duration of the loop over all questions, the episodes)."""
    llm = load(server)
    try:
        return _report.timed(lambda: list(run(one_step, questions, Backends({}, {"llm": llm}))))
    finally:
        llm.close()


def by_threads(server: Server, ask: Any, prompts: Sequence[str]) -> tuple[float, float]:
    """As many threads as the window ask everything, without the loop: their time over the ideal, and
    milliseconds of the processor for a request."""
    with ThreadPoolExecutor(WINDOW) as pool:
        list(pool.map(ask, prompts[:WINDOW]))  # threads and connections are there, modules imported
        before = server.served()["seconds"]
        took, _ = _report.timed(lambda: list(pool.map(ask, prompts)))
    ideal = (server.served()["seconds"] - before) / WINDOW
    return took.wall / ideal, 1000 * took.processor / len(prompts)


def bare_client(server: Server, prompts: Sequence[str]) -> tuple[float, float]:
    """The ``openai`` client, called directly."""
    import openai

    with openai.OpenAI(api_key="none", base_url=server.url) as client:

        def ask(prompt: str) -> Any:
            messages: Any = [{"role": "user", "content": prompt}]
            return client.chat.completions.create(
                model="m", messages=messages, max_tokens=256, temperature=0
            )

        return by_threads(server, ask, prompts)


def our_backend(server: Server, prompts: Sequence[str]) -> tuple[float, float]:
    """The backend, called directly."""
    llm = load(server)
    try:
        return by_threads(
            server, lambda text: llm.generate([Generate("llm", (Message("user", text),))]), prompts
        )
    finally:
        llm.close()


WRONG = {
    "lost": "questions without an answer",
    "wrong": "questions with another question's answer",
    "twice": "questions asked more often than once and once for each failure",
    "connections": "connections beyond the window and one for each that was dropped",
    "window": "requests in flight beyond the window",
    "threads": "threads left behind",
}
"""Fault → the name of the fact that counts it."""


@dataclass
class Figures:
    """A figure a round for each measure, and counts of faults."""

    wall: list[float] = field(default_factory=list)
    looped: list[float] = field(default_factory=list)
    crowded: list[float] = field(default_factory=list)
    turned_away: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    bare_wall: list[float] = field(default_factory=list)
    wrong: Counter[str] = field(default_factory=Counter)
    failed: int = 0


def measure_failing(figures: Figures, questions: Sequence[Question], seed: int) -> None:
    """The loop asks a server that fails now and then: its time, and whether each question has its own answer."""
    with serving(seed, ERRORS) as server:
        threads = threading.active_count()
        took, episodes = by_the_loop(server, questions)
        served = server.served()
        figures.wall.append(took.wall / (served["seconds"] / WINDOW))
        figures.looped.append(1000 * took.processor / len(questions))
        failures, requests = served["failed"], served["prompts"]
        figures.failed += sum(failures.values())
        answers = {episode.qid: episode.answer for episode in episodes}
        dropped = served["how"].get("dropped", 0)
        figures.wrong.update(
            lost=sum(not answers.get(q.qid) for q in questions),
            wrong=sum(
                answers.get(q.qid) not in ("", None, f"answer to {q.text}") for q in questions
            ),
            twice=sum(requests.get(q.text, 0) != 1 + failures.get(q.text, 0) for q in questions),
            connections=max(0, served["connections"] - WINDOW - dropped),
            window=max(0, served["most_in_flight"] - WINDOW),
            threads=max(0, _settled(threads) - threads),
        )


def measure_crowded(figures: Figures, questions: Sequence[Question], seed: int) -> None:
    """The loop asks a server that turns a request away while it works at ``BEARABLE`` others."""
    with serving(seed, 0.0, BEARABLE) as server:
        took, episodes = by_the_loop(server, questions)
        served = server.served()
    figures.crowded.append(took.wall / (served["seconds"] / BEARABLE))
    figures.turned_away.append(served["how"].get("429", 0) / len(questions))
    figures.wrong.update(lost=sum(not episode.answer for episode in episodes))


def measure_clients(figures: Figures, prompts: Sequence[str], seed: int) -> None:
    """Our backend and the bare client, each called directly, ask a server without failures."""
    with serving(seed, 0.0) as server:
        figures.ours.append(our_backend(server, prompts)[1])
        over, processor = bare_client(server, prompts)
    figures.bare_wall.append(over)
    figures.bare.append(processor)


def measure(count: int, rounds: int) -> Report:
    """The loop, our backend and the bare client, turn by turn."""
    records = _report.starter_records(count)
    questions = [Question(r["id"], f"{r['id']}: {' '.join(r['input'].split())}") for r in records]
    prompts = [f"{READ}\n{question.text}" for question in questions]
    figures = Figures()
    for seed in range(_report.SEED, _report.SEED + rounds):
        measure_failing(figures, questions, seed)
        measure_crowded(figures, questions, seed)
        measure_clients(figures, prompts, seed)
    return Report(
        "remote",
        {
            "prompts": count,
            "window": WINDOW,
            "median ms": 1000 * MEDIAN,
            "sigma": SIGMA,
            "errors": ERRORS,
        },
        [
            Measure(
                "time over the ideal",
                "times",
                figures.wall,
                figures.bare_wall,
                "the openai client without failures",
                most=TARGET,
            ),
            Measure(
                f"time over the ideal of a server that bears {BEARABLE}", "times", figures.crowded
            ),
            Measure("requests it turned away, per question", "", figures.turned_away),
            Measure(
                "processor time per request", "ms", figures.ours, figures.bare, "the openai client"
            ),
            Measure("processor time per question, with the loop", "ms", figures.looped),
        ],
        [Fact(name, figures.wrong[key], 0) for key, name in WRONG.items()],
        [f"{figures.failed} requests failed and were asked again"],
    )


def _settled(before: int) -> int:
    """The number of threads, after a pause for those that are ending."""
    pause = threading.Event()
    for _ in range(50):
        if threading.active_count() <= before:
            break
        pause.wait(0.02)
    return threading.active_count()


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=5).parse_args()
    count, rounds = (200, 1) if arguments.quick else (1000, arguments.rounds)
    return measure(count, rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
