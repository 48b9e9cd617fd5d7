"""Start-up times: ``import rallebench``, ``rallebench list``, and the page.

Every start is a fresh process. The bare figures are a Python that does nothing and a Gradio page
that shows one line. What was imported when a command was through, or the page answered, is read
from the process itself: nothing heavy may be loaded before it is needed.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import _report
import psutil
from _report import Fact, Measure, Report

TARGET_IMPORT, TARGET_PAGE = 0.3, 15.0
COMMAND_SECONDS = 120.0
HEAVY = ("torch", "transformers", "faiss", "mlflow")
WATCHED = (*HEAVY, "bm25s", "sentence_transformers", "openai", "scipy", "pandas", "gradio", "numpy")
"""Packages whose import by the page is reported; only one of ``HEAVY`` is an error."""

IMPORT = """
import sys, time
started = time.perf_counter()
import rallebench
print(time.perf_counter() - started, *(name for name in {heavy} if name in sys.modules))
"""

LIST = """
import sys
from rallebench.cli.main import main
code = main(["list", "--json", "--workspace", sys.argv[1]])
print("heavy:", *(name for name in {heavy} if name in sys.modules), file=sys.stderr)
raise SystemExit(code)
"""

BARE_PAGE = """
import sys
import gradio as gr
with gr.Blocks(analytics_enabled=False) as page:
    gr.Markdown("one line")
page.launch(server_name="127.0.0.1", server_port=int(sys.argv[1]), quiet=True, ssr_mode=False)
"""


def environment() -> dict[str, str]:
    """As users have it: byte code is kept."""
    variables = _report.child_environment()
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def python(code: str, *more: str) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Wall seconds of a fresh Python that runs ``code``, and what it printed."""
    command = [sys.executable, "-c", code, *more]
    started = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
        timeout=COMMAND_SECONDS,
    )
    return time.perf_counter() - started, done


def imports(rounds: int) -> tuple[list[float], list[float], list[float], set[str]]:
    """Seconds of the import, of its process, of a process that imports nothing; the heavy packages that were imported."""
    inside, process, nothing, heavy = [], [], [], set[str]()
    for _ in range(rounds):
        seconds, _done = python("pass")
        nothing.append(seconds)
        seconds, done = python(IMPORT.format(heavy=HEAVY))
        process.append(seconds)
        own, *heavy_names = done.stdout.split()
        inside.append(float(own))
        heavy |= set(heavy_names)
    return inside, process, nothing, heavy


def listings(folder: Path, rounds: int) -> tuple[list[float], set[str]]:
    """Seconds of ``rallebench list`` as a process; the heavy packages that it imported."""
    seconds, heavy = [], set[str]()
    for _ in range(rounds):
        took, done = python(LIST.format(heavy=HEAVY), str(folder))
        if not json.loads(done.stdout)["chains"]:
            raise RuntimeError("rallebench list named no chain")
        seconds.append(took)
        heavy |= set(done.stderr.rpartition("heavy:")[2].split())
    return seconds, heavy


def free_port() -> int:
    """A port that is free now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class FirstAnswer:
    """The first answer of a page: wall and processor seconds since its start; its size in bytes."""

    seconds: float
    processor: float
    size: int


@contextmanager
def serving(command: Sequence[str], folder: Path, log: Path, port: int) -> Iterator[FirstAnswer]:
    """Start a page, yield its first answer, end it. Raises RuntimeError if none comes."""
    with open(log, "wb") as output:
        started = time.perf_counter()
        page = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment(), cwd=folder
        )
        try:
            while not (size := answer(f"http://127.0.0.1:{port}/")):
                waited = time.perf_counter() - started
                if page.poll() is not None or waited > COMMAND_SECONDS:
                    raise RuntimeError(
                        f"no answer after {waited:.0f} s: {log.read_text(errors='replace')[-2000:]}"
                    )
                time.sleep(0.02)
            seconds = time.perf_counter() - started
            used = psutil.Process(page.pid).cpu_times()
            yield FirstAnswer(seconds, used.user + used.system, size)
        finally:
            page.kill()
            page.wait()


def answer(url: str) -> int:
    """The bytes of a page that comes back whole; 0 if none does."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=COMMAND_SECONDS) as response:
            return len(response.read()) if response.status == 200 else 0
    except OSError:
        return 0


def page_command(workspace: Path, port: int, *flags: str) -> list[str]:
    """``python app.py`` on a port of its own."""
    app = str(_report.PROJECT / "app.py")
    return [
        sys.executable,
        *flags,
        app,
        "--port",
        str(port),
        "--workspace",
        str(workspace),
        "--no-browser",
    ]


def pages(folder: Path, rounds: int) -> tuple[list[FirstAnswer], list[FirstAnswer]]:
    """The first answers of the workbench and of a bare Gradio page, turn by turn."""
    ours, bare = [], []
    for number in range(rounds):
        port = free_port()
        with serving(
            [sys.executable, "-c", BARE_PAGE, str(port)], folder, folder / "bare.log", port
        ) as first:
            bare.append(first)
        port = free_port()
        with serving(
            page_command(folder / f"workspace-{number}", port), folder, folder / "page.log", port
        ) as first:
            ours.append(first)
    return ours, bare


def imported_by_the_page(folder: Path) -> tuple[list[str], FirstAnswer]:
    """Packages of ``WATCHED`` that the page had imported at its first answer, by Python's import log; that answer.

    The first question of this workspace is answered without a model, so nothing heavy is imported for it in advance.
    """
    port, log = free_port(), folder / "imports.log"
    chains = folder / "watched" / "chains"
    chains.mkdir(parents=True)
    actions = [{"kind": "retrieve", "target": "starter-bm25", "template": "{question}", "k": 5}]
    chain = {"format": "rallebench-chain/1", "name": "starter", "actions": actions}
    (chains / "starter.json").write_text(json.dumps(chain))
    with serving(
        page_command(folder / "watched", port, "-X", "importtime"), folder, log, port
    ) as first:
        lines = log.read_text(errors="replace")
    names = {
        name.split(".")[0]
        for name in re.findall(r"^import time:[^|]*\|[^|]*\|\s*(\S+)", lines, re.MULTILINE)
    }
    if "gradio" not in names:
        raise RuntimeError("Python's import log could not be read")
    return [name for name in WATCHED if name in names], first


def measure(folder: Path, rounds: int, page_rounds: int) -> Report:
    """All starts; the first of each kind is not counted, because it may have to compile byte code.

    With no ``page_rounds`` the page starts only once, with Python's import log on, which slows it.
    """
    python("import rallebench")
    inside, process, nothing, heavy = imports(rounds)
    listings(folder, 1)
    listed, heavy_list = listings(folder, rounds)
    at_answer, logged = imported_by_the_page(folder)
    ours, bare = pages(folder, page_rounds) if page_rounds else ([logged], [])
    return Report(
        "start_up",
        {"workspace": "empty", "heavy": "/".join(HEAVY)},
        [
            Measure("import rallebench", "s", inside, most=TARGET_IMPORT),
            Measure(
                "a process that imports rallebench",
                "s",
                process,
                nothing,
                "a Python that does nothing",
            ),
            Measure("rallebench list", "s", listed, nothing, "a Python that does nothing"),
            Measure(
                "app.py until its first answer",
                "s",
                [a.seconds for a in ours],
                [a.seconds for a in bare],
                "a bare Gradio page",
                most=TARGET_PAGE,
            ),
            Measure(
                "processor time of that",
                "s",
                [a.processor for a in ours],
                [a.processor for a in bare],
                "a bare Gradio page",
            ),
            Measure(
                "size of that answer",
                "MB",
                [a.size / 2**20 for a in ours],
                [a.size / 2**20 for a in bare],
                "a bare Gradio page",
            ),
        ],
        [
            Fact("heavy packages after import rallebench", sorted(heavy), []),
            Fact("heavy packages after rallebench list", sorted(heavy_list), []),
            Fact(
                "heavy packages when the page answers",
                [name for name in at_answer if name in HEAVY],
                [],
            ),
        ],
        [f"imported when the page answers, of those watched: {', '.join(at_answer)}"],
    )


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=7).parse_args()
    rounds, page_rounds = (1, 0) if arguments.quick else (arguments.rounds, 3)
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), rounds, page_rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
