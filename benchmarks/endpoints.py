"""One question asked by another program: over the services, through gradio_client, and by one HTTP request.

The page runs in a process of its own over a scripted model, so that no model's time is measured. The bare figure is an
endpoint of Gradio that returns its argument, called in the same way and in the same rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import _report
import httpx
from _report import Fact, Measure, Report, timed
from gradio_client import Client
from page import CHAIN
from start_up import free_port, page_command, serving

from rallebench.core.events import complete
from rallebench.services.workbench import Workbench

BARE = """
import sys
import gradio as gr

def ask(question: str) -> str:
    return question

with gr.Blocks(analytics_enabled=False) as page:
    gr.api(ask, api_name="ask")
page.launch(server_name="127.0.0.1", server_port=int(sys.argv[1]), quiet=True, ssr_mode=False)
"""
TARGET = 30.0

Ask = Callable[[str], Any]
"""A question → the answer."""


def workspace_in(folder: Path) -> Path:
    """A workspace whose chain needs no weights."""
    (folder / "chains").mkdir(parents=True)
    (folder / "chains" / "starter.json").write_text(json.dumps(CHAIN))
    entry = {"echo": {"backend": "scripted", "settings": {"echo": True}}}
    (folder / "llms.json").write_text(json.dumps(entry))
    return folder


def ways(port: int, *more: str) -> Mapping[str, Ask]:
    """Ways to call the endpoint ``ask`` of a page. ``more``: its arguments after the question."""
    url = f"http://127.0.0.1:{port}"
    client, unverified = (Client(url, verbose=False, ssl_verify=v) for v in (True, False))
    direct = httpx.Client(base_url=url, timeout=60)

    def post(question: str) -> Any:
        answer = direct.post("/gradio_api/run/ask", json={"data": [question, *more]})
        return answer.raise_for_status().json()["data"][0]

    return {
        "gradio_client": lambda question: client.predict(question, *more, api_name="/ask"),
        "gradio_client without certificates": lambda question: unverified.predict(
            question, *more, api_name="/ask"
        ),
        "one HTTP request": post,
    }


def ask_by_turns(calls: Mapping[str, Ask], rounds: int) -> tuple[dict[str, list[float]], bool]:
    """Milliseconds of each call on new questions; True if ours all gave the services' answers.

    The first round is not counted: it loads the index.
    """
    took: dict[str, list[float]] = {name: [] for name in calls}
    same = True
    for number in range(-1, rounds):
        question = f"Which moon has lakes of methane? {number}"
        answers = {}
        for name, ask in calls.items():
            seconds, answers[name] = timed(partial(ask, question))
            if number >= 0:
                took[name].append(1000 * seconds.wall)
        expected = answers["services"].answer
        same &= all(a["answer"] == expected for n, a in answers.items() if n.startswith("ours"))
    return took, same


def measure(folder: Path, rounds: int) -> Report:
    """Ask over the services, our endpoint and a bare one, turn by turn."""
    ours, bare = free_port(), free_port()
    served, log = workspace_in(folder / "served"), folder / "bare.log"
    bench = Workbench(workspace_in(folder / "direct"))
    chain = bench.workspace.chain("starter")
    with (
        serving(page_command(served, ours), folder, folder / "page.log", ours),
        serving([sys.executable, "-c", BARE, str(bare)], folder, log, bare),
    ):
        own, others = ways(ours, "starter", "", ""), ways(bare)
        calls: dict[str, Ask] = {
            "services": lambda question: complete(bench.asking.answer(question, chain)),
            **{f"ours {name}": ask for name, ask in own.items()},
            **{f"bare {name}": ask for name, ask in others.items()},
        }
        took, same = ask_by_turns(calls, rounds)
        bench.close()
    measures = [Measure("over the services", "ms", took["services"])]
    for name in own:
        beyond = [all_ - own for all_, own in zip(took[f"ours {name}"], took["services"])]
        bare_name = "an endpoint that returns its argument"
        measures.append(
            Measure(
                f"{name}, beyond the services",
                "ms",
                beyond,
                took[f"bare {name}"],
                bare_name,
                TARGET,
            )
        )
    return Report(
        "endpoints",
        {"question": "a new one each time", "model": "scripted"},
        measures,
        [Fact("all answers are those of the services", same, True)],
    )


def main() -> int:
    """Measure and print."""
    arguments = _report.parser(__doc__, rounds=30).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = 3 if arguments.quick else arguments.rounds
        return measure(Path(folder), rounds).tell(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
