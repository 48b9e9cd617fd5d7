"""Our own time in the work of agents: ReAct episodes over instant replies, and the start of a PAL program.

ReAct episodes of six steps (five searches and a Finish, two requests to the model each) are run by the loop with tracing
on. The bare figure is the same environment and model asked in plain Python, in the same batches. A PAL program is
started, answered once and judged; the bare figure is a Python that starts and ends.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import _report
from _report import Fact, Measure, Report

from rallebench import sandbox
from rallebench.core.backends import Backends
from rallebench.core.types import (
    Episode,
    Flow,
    Generate,
    Hit,
    Message,
    Passage,
    Question,
    Retrieve,
    ToolSpec,
)
from rallebench.engine import loop
from rallebench.environments import Observed
from rallebench.llms.scripted import Scripted
from rallebench.sandbox.limits import Limits
from rallebench.sandbox.sessions import new_name
from rallebench.workflows import EpisodeLimits
from rallebench.workflows.prompts import read_shots
from rallebench.workflows.react import react
from rallebench.workspace.flows import ending_summary

STEPS, BATCH = 6, 20
TARGET_MS, PAL_TARGET_MS = 3.0, 150.0
AT_ONCE, MEMORY_MIB = 16, 128
PROMPTS = _report.PROJECT / "prompts" / "workflows"
PROMPT = (PROMPTS / "react.txt").read_text(encoding="utf-8").removesuffix("\n")
SHOTS = read_shots(PROMPTS / "pools" / "wikipedia.json")[:2]
PROGRAM = "found = Search('Titan')\nprint(found.upper())"


class World:
    """Search and Lookup over one retriever."""

    brackets = "[]"
    tools = (
        ToolSpec("Search", "Open a page.", {"properties": {"entity": {"type": "string"}}}),
        ToolSpec("Lookup", "Look in it.", {"properties": {"keyword": {"type": "string"}}}),
    )

    def act(self, verb: str, argument: str) -> Observed:
        """Search the argument."""
        reply = yield Retrieve("pages", argument, 1)
        return reply.text

    def call(self, name: str, arguments: Any) -> Observed:
        """Search the arguments of a call."""
        return (yield from self.act(name, str(arguments)))


class Pages:
    """A retriever that returns at once: a passage of two hundred characters with the query in it."""

    name, fingerprint, titled, prefix_stable = "pages", "pages/1", False, True

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """One hit each."""
        return [
            (Hit(Passage(query, f"{query} is a moon of Saturn. " * 8), 1.0),) for query in queries
        ]


def reply(request: Generate) -> str:
    """A thought, five searches, then the end."""
    prompt = request.messages[-1].content
    kind, _, number = prompt[prompt.rfind("\n") + 1 : -1].partition(" ")
    if kind == "Thought":
        return "I think that another page has to be opened before the answer is known."
    return (
        f"Finish[{number}]" if int(number) == STEPS else f"Search[moon {number} of {len(prompt)}]"
    )


def flow(question: Question) -> Flow:
    """A ReAct episode as R-Eval runs it, with two demonstrations."""
    return react(
        question,
        llm="m",
        env=World(),
        shots=SHOTS,
        limits=EpisodeLimits(),
        prompts={"react.txt": PROMPT},
    )


def by_the_loop(questions: Sequence[Question]) -> tuple[float, list[Episode], Scripted]:
    """Seconds for all episodes, the episodes, and the model."""
    llm = Scripted(reply)
    backends = Backends({"pages": Pages()}, {"m": llm})
    took, episodes = _report.timed(
        lambda: list(loop.run(flow, questions, backends, workflow="react", batch_size=BATCH))
    )
    return took.wall, episodes, llm


def directly(questions: Sequence[Question], prompts: Sequence[str]) -> float:
    """Seconds for as many requests, with as long prompts, and searches, asked in plain Python in the same batches."""
    llm, pages = Scripted(reply), Pages()

    def ask() -> None:
        for start in range(0, len(questions), BATCH):
            batch = questions[start : start + BATCH]
            for n, prompt in enumerate(prompts):
                llm.generate([Generate("m", (Message("user", prompt),)) for _ in batch])
                if n % 2 and n < 2 * STEPS - 1:
                    pages.search([question.text for question in batch], 1)

    return _report.timed(ask)[0].wall


def a_program() -> float:
    """Seconds from asking for a program until its end is known, with one call answered in between."""
    tool, name = sandbox.PythonTool(), new_name()
    started = time.perf_counter()
    call = tool.use(sandbox.begin(name, PROGRAM, {"Search": ["entity"]}))
    ending = tool.use(sandbox.answer(name, "a moon"))
    took = time.perf_counter() - started
    if not call.tool_calls or ending.text != "A MOON\n":
        raise SystemExit(f"The program did not run: {ending}")
    return took


def a_python() -> float:
    """Seconds for a Python that starts, without site-packages, and ends."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - started


def at_once() -> list[str]:
    """The endings of sixteen programs at once, each taking half of the memory it may have; every fourth takes three times as
    much."""
    tool = sandbox.PythonTool(Limits(seconds=60, memory=MEMORY_MIB))

    def run(number: int) -> str:
        most = 3 * MEMORY_MIB if number % 4 == 0 else MEMORY_MIB // 2
        return tool.use(
            sandbox.begin(new_name(), f"x = bytearray({most} * 2**20)\nprint(len(x))", {})
        ).finish_reason

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, range(AT_ONCE)))


def batches(llms: Iterable[Scripted]) -> list[float]:
    """The mean size of each model's batches."""
    return [len(llm.requests) / len(llm.batches) for llm in llms]


def measure_steps(questions: Sequence[Question], rounds: int) -> tuple[list[Measure], list[Fact]]:
    """Episodes by the loop and by direct calls, turn by turn."""
    ours: list[float] = []
    bare: list[float] = []
    models: list[Scripted] = []
    wrong = 0
    by_the_loop(questions[:BATCH])
    for _ in range(rounds):
        seconds, episodes, llm = by_the_loop(questions)
        prompts = [
            step.request.messages[-1].content
            for step in episodes[0].steps
            if isinstance(step.request, Generate)
        ]
        ours.append(seconds)
        bare.append(directly(questions, prompts))
        models.append(llm)
        wrong += sum(episode.answer != str(STEPS) for episode in episodes)
        turns = ending_summary(episodes).turns
    each = 1000 / (len(questions) * STEPS)
    return [
        Measure(
            "own time per ReAct step",
            "ms",
            [(a - b) * each for a, b in zip(ours, bare)],
            most=TARGET_MS,
        ),
        Measure(
            "a ReAct step",
            "ms",
            [a * each for a in ours],
            [b * each for b in bare],
            "direct calls",
        ),
        Measure(
            "mean batch of the model's requests", "requests", batches(models), least=0.9 * BATCH
        ),
    ], [
        Fact("wrong answers", wrong, 0),
        Fact("requests to the model in an episode", turns, 2.0 * STEPS),
    ]


def measure_programs(programs: int) -> tuple[list[Measure], Fact, list[str]]:
    """PAL programs and bare Pythons by turns, then many programs at once; what confines them, in sentences."""
    sandbox.protection()
    starts = [(a_program(), a_python()) for _ in range(programs)]
    protection = sandbox.protection()
    endings = [
        "memory_limit" if n % 4 == 0 and protection.memory else "stop" for n in range(AT_ONCE)
    ]
    measures = [
        Measure(
            "a PAL program beyond Python's own start",
            "ms",
            [(a - b) * 1000 for a, b in starts],
            most=PAL_TARGET_MS,
        ),
        Measure(
            "a PAL program, started, answered and judged",
            "ms",
            [a * 1000 for a, _ in starts],
            [b * 1000 for _, b in starts],
            "a Python that starts and ends",
        ),
    ]
    fact = Fact("16 programs at once, each within its memory", at_once(), endings)
    return measures, fact, list(protection.sentences())


def measure(episodes: int, rounds: int, programs: int) -> Report:
    """ReAct steps, then PAL programs."""
    questions = [
        Question(f"q{n}", f"Which planet does moon {n} go round?") for n in range(episodes)
    ]
    steps, facts = measure_steps(questions, rounds)
    starts, fact, sentences = measure_programs(programs)
    return Report(
        "agents",
        {"episodes": episodes, "steps": STEPS, "batch": BATCH, "window": 256, "programs": programs},
        [*steps, *starts],
        [*facts, fact],
        sentences,
    )


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=5).parse_args()
    episodes, rounds, programs = (40, 1, 3) if arguments.quick else (1000, arguments.rounds, 20)
    return measure(episodes, rounds, programs).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
