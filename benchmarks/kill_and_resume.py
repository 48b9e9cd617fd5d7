"""Losses of a killed run: ``python -m rallebench run`` is killed (SIGKILL) midway and resumed.

The model is a chat server in this process that writes down every prompt it is asked, so what is
asked twice is seen from outside. It kills the command itself while it is asked a certain prompt,
in full flow and by construction before the end. It refuses some questions (HTTP 400), so that
failures are part of the report. The report of the killed and resumed run has to equal that of a
undisturbed run, in a workspace of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import _report
from _report import Fact, Measure, Report

RUN = "the-run"
REFUSED_EVERY = 25
THINKING = 0.02
"""Seconds that the server takes for an answer, eight at once."""
COMMAND_SECONDS = 300
"""Seconds after which a command that does not end is given up."""

CHAIN = {
    "format": "rallebench-chain/1",
    "name": "killed",
    "actions": [
        {"kind": "retrieve", "template": "{question}", "target": "starter-bm25", "k": 3},
        {
            "kind": "generate",
            "template": "{response[0]}\n\nQuestion: {question}",
            "target": "counted",
        },
    ],
}


class ChatServer(ThreadingHTTPServer):
    """Answers chat completions with the start of the prompt, keeps all prompts, kills when told to."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, refused: Sequence[str] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refused = frozenset(refused)
        self.requests: list[str] = []
        self.victim: subprocess.Popen[str] | None = None
        self.kill_at = 0
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, prompt: str) -> tuple[int, dict[str, Any]]:
        """Status and body for a prompt; the prompt with number ``kill_at`` is the victim's last."""
        question = question_of(prompt)
        with self.lock:
            self.requests.append(question)
            if self.victim is not None and len(self.requests) >= self.kill_at:
                self.victim.kill()
                self.victim.wait()
        time.sleep(THINKING)
        if question in self.refused:
            return 400, {"error": {"message": "this question is refused"}}
        message = {"role": "assistant", "content": " ".join(prompt.split()[:40])}
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 40}
        return 200, {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a victim that hung up; print any other error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 30
    server: ChatServer

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # killed while it was sending
            self.close_connection = True
            return
        status, value = self.server.answer(json.loads(body)["messages"][-1]["content"])
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep the output clean."""


def question_of(prompt: str) -> str:
    """The question that a prompt of ``CHAIN`` asks."""
    return prompt.rpartition("Question: ")[2]


def refused_of(records: Sequence[dict[str, Any]]) -> list[str]:
    """The questions that the server refuses: every 25th, never the first, so that the run goes on."""
    return [record["input"] for record in records[10::REFUSED_EVERY]]


def make_workspace(folder: Path, records: Sequence[dict[str, Any]], url: str) -> Path:
    """A workspace with the chain, the questions and the server as a model."""
    folder.mkdir(parents=True)
    settings = {"model": "counted", "base_url": url, "concurrency": 8, "timeout": 60}
    model = {"counted": {"backend": "openai_compatible", "settings": settings}}
    (folder / "llms.json").write_text(json.dumps(model), encoding="utf-8")
    (folder / "chain.json").write_text(json.dumps(CHAIN), encoding="utf-8")
    rows = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "questions.jsonl").write_text(rows, encoding="utf-8")
    return folder


def start(workspace: Path, *more: str) -> subprocess.Popen[str]:
    """The real command line, started."""
    command = [
        sys.executable,
        "-m",
        "rallebench",
        "run",
        "--json",
        "--no-mlflow",
        "--name",
        RUN,
        *more,
    ]
    files = [
        "--chain",
        str(workspace / "chain.json"),
        "--dataset",
        str(workspace / "questions.jsonl"),
    ]
    return subprocess.Popen(
        [*command, "--workspace", str(workspace), *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=_report.child_environment(),
        cwd=workspace,
    )


def finish(command: subprocess.Popen[str]) -> dict[str, Any]:
    """The JSON that the command printed. Raises RuntimeError with its stderr if it failed."""
    out, err = command.communicate(timeout=COMMAND_SECONDS)
    if command.returncode != 0:
        raise RuntimeError(f"the command ended with {command.returncode}: {err[-2000:]}")
    value: dict[str, Any] = json.loads(out)
    return value


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file; a torn last line is left out."""
    if not path.exists():
        return []
    return [
        json.loads(line)
        for line in path.read_bytes().splitlines(keepends=True)
        if line.endswith(b"\n")
    ]


@dataclass(frozen=True)
class Run:
    """The results of a run."""

    printed: dict[str, Any]
    report: dict[str, Any]
    outputs: dict[str, str]
    episodes: list[dict[str, Any]]
    requests: list[str]

    @property
    def answered(self) -> Counter[str]:
        """Question id → how many episodes without an error the folder holds."""
        return Counter(line["qid"] for line in self.episodes if not line.get("error"))

    def result(self) -> dict[str, Any]:
        """The report without the times and the counts of cached replies, which differ between runs."""
        same = (
            "dataset",
            "workflow",
            "n",
            "n_done",
            "n_errors",
            "complete",
            "steps",
            "errors",
            "fingerprint",
        )
        metrics = {
            name: value for name, value in self.report["metrics"].items() if name != "seconds"
        }
        tokens = {name: self.report[name] for name in ("prompt_tokens", "completion_tokens")}
        return {**{name: self.report[name] for name in same}, **tokens, "metrics": metrics}


def read_run(workspace: Path, printed: dict[str, Any], requests: list[str]) -> Run:
    """The run folder, read back."""
    folder = workspace / "runs" / RUN
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    names = ("output.jsonl", "output_reduced.jsonl", "prompt.txt")
    outputs = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    return Run(printed, report, outputs, whole_lines(folder / "episodes.jsonl"), requests)


@dataclass(frozen=True)
class Outcome:
    """An undisturbed run, and one that was killed and resumed."""

    records: list[dict[str, Any]]
    undisturbed: Run
    resumed: Run
    finished_before: frozenset[str]
    """Ids of the questions that the killed command had answered and written down."""
    asked_before: int
    """Number of prompts sent by the killed command."""
    exit_code: int

    def asked_again(self) -> set[str]:
        """Ids of questions that were finished before the kill and asked after it."""
        after = set(self.resumed.requests[self.asked_before :])
        return {
            r["id"] for r in self.records if r["id"] in self.finished_before and r["input"] in after
        }

    def asked_twice(self) -> int:
        """Prompts asked beyond one per question, failed questions (tried again on purpose) left out."""
        refused = set(refused_of(self.records))
        return sum(
            n - 1 for text, n in Counter(self.resumed.requests).items() if text not in refused
        )


def kill_and_resume(folder: Path, questions: int) -> Outcome:
    """Run undisturbed; run, be killed at 40 % of the prompts, resume."""
    records = _report.starter_records(questions)
    with ChatServer(refused_of(records)) as server:
        calm = make_workspace(folder / "calm", records, server.url)
        undisturbed = read_run(calm, finish(start(calm)), list(server.requests))
        server.requests.clear()
        harried = make_workspace(folder / "harried", records, server.url)
        with server.lock:
            server.kill_at = questions * 2 // 5
            server.victim = start(harried)
        victim = server.victim
        victim.communicate(timeout=COMMAND_SECONDS)
        with server.lock:
            server.victim = None
            asked_before = len(server.requests)
        lines = whole_lines(harried / "runs" / RUN / "episodes.jsonl")
        finished = frozenset(line["qid"] for line in lines if not line.get("error"))
        resumed = read_run(harried, finish(start(harried, "--resume")), server.requests)
    return Outcome(records, undisturbed, resumed, finished, asked_before, victim.returncode)


def measure(folder: Path, questions: int, rounds: int) -> Report:
    """The requests and the time of a killed and resumed run, over those of an undisturbed one."""
    outcomes = [kill_and_resume(folder / str(number), questions) for number in range(rounds)]
    bare = [float(len(o.undisturbed.requests)) for o in outcomes]
    times = [o.resumed.report["seconds"] for o in outcomes]
    finished = [len(o.finished_before) for o in outcomes]
    twice = sum(n > 1 for o in outcomes for n in o.resumed.answered.values())
    return Report(
        "kill_and_resume",
        {
            "questions": questions,
            "killed at prompt": questions * 2 // 5,
            "retriever": "starter-bm25",
            "model": "chat server",
        },
        [
            Measure(
                "prompts asked",
                "prompts",
                [float(len(o.resumed.requests)) for o in outcomes],
                bare,
                "an undisturbed run",
            ),
            Measure(
                "time in sessions",
                "s",
                times,
                [o.undisturbed.report["seconds"] for o in outcomes],
                "an undisturbed run",
            ),
            Measure(
                "finished nowhere when it was killed, so asked twice",
                "prompts",
                [float(o.asked_twice()) for o in outcomes],
            ),
        ],
        [
            Fact("killed in the middle", all(0 < n < questions for n in finished), True),
            Fact("finished questions asked again", sum(len(o.asked_again()) for o in outcomes), 0),
            Fact("questions with more than one answer", twice, 0),
            Fact(
                "same report",
                all(o.resumed.result() == o.undisturbed.result() for o in outcomes),
                True,
            ),
            Fact(
                "same output files",
                all(o.resumed.outputs == o.undisturbed.outputs for o in outcomes),
                True,
            ),
        ],
        [
            f"answered before the kill: {finished}; refused on purpose: {len(refused_of(outcomes[0].records))}"
        ],
    )


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=2).parse_args()
    questions, rounds = (60, 1) if arguments.quick else (500, arguments.rounds)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), questions, rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
