"""A real language model in its uses: a chain, a chat, agents, a re-ranker, the endpoint, a run."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from project import PROJECT
from small_workspace import CommandLine, make_workspace, read_lines
from starlette.testclient import TestClient

from rallebench.core.entries import LLMEntry
from rallebench.core.events import complete
from rallebench.core.types import Action, Chain, Episode, Generate, Message, Question
from rallebench.server.endpoint import application
from rallebench.services.data import Search
from rallebench.services.workbench import Workbench
from rallebench.tracking.connection import connect, default_uri
from rallebench.tracking.links import read_link
from rallebench.workflows._calling import FINISHING

pytestmark = pytest.mark.slow

SHORT = {"max_tokens": 12}
READ = Chain(
    "read",
    (
        Action("retrieve", "{question}", "fstring", "tiny", 2),
        Action(
            "generate",
            "Passages: {response[0]}\nQuestion: {question}\nAnswer in one word:",
            target="smollm2",
            generation=SHORT,
        ),
    ),
)
TALK = Chain(
    "talk", (Action("generate", "{history}\n{question}", target="smollm2", generation=SHORT),)
)


@pytest.fixture(scope="module")
def bench(
    smollm2_file: Path, smollm2_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    folder = make_workspace(tmp_path_factory.mktemp("real") / "workspace")
    shutil.copytree(smollm2_cache, folder / "cache", dirs_exist_ok=True, copy_function=hard_link)
    bench = Workbench(folder)
    settings = {"model": str(smollm2_file), "quantization": "4bit", "device_map": "cpu", **SHORT}
    bench.workspace.save_llm("smollm2", LLMEntry(backend="transformers", settings=settings))
    for name, kind in (("smollm2", "language model"), ("tiny", "retriever")):
        complete(bench.models.load(name, kind))
    yield bench
    bench.close()


def hard_link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def test_a_chain_answers_from_its_passages_and_the_tokens_count(bench: Workbench) -> None:
    *_, episode = bench.asking.execute_chain(READ, Question("q1", "Who discovered Titan in 1655?"))
    assert isinstance(episode, Episode) and not episode.error
    retrieved, written = episode.steps
    assert isinstance(written.request, Generate)
    assert retrieved.reply.hits[0].passage.text in written.request.messages[0].content
    assert (
        episode.answer and 0 < written.reply.completion_tokens <= 12 < written.reply.prompt_tokens
    )


def test_a_chat_of_three_turns_reads_the_earlier_ones(bench: Workbench) -> None:
    history: list[Message] = []
    for text in ("My cat is called Mia.", "I live by the Danube.", "What is my cat called?"):
        *events, episode = bench.asking.chat(TALK, history, text)
        assert isinstance(episode, Episode) and episode.answer and not episode.error
        (step,) = episode.steps
        assert isinstance(step.request, Generate)
        sent = step.request.messages[-1].content
        assert all(message.content in sent for message in history) and sent.endswith(text)
        assert "".join(getattr(event, "text", "") for event in events) == episode.answer
        history += [Message("user", text), Message("assistant", episode.answer)]
    assert len(history) == 6


@pytest.mark.parametrize("way", ["listwise", "pointwise"])
def test_it_re_ranks_passages_and_every_judgement_can_be_read(bench: Workbench, way: str) -> None:
    name = f"llm-rerank:tiny?llm=smollm2&depth=3&way={way}"
    query = "Which moon goes round Neptune backwards?"
    *_, plain = bench.data.search("tiny", query, 3)
    *_, ranked = bench.data.search(name, query, 3)
    assert isinstance(plain, Search) and isinstance(ranked, Search)
    first, second = ({hit.passage.doc_id for hit in found.hits} for found in (plain, ranked))
    assert first == second and len(first) == 3, "the same passages, in an order of its own"
    requests = 1 if way == "listwise" else 3
    assert bench.models.backends.retrievers[name].judgements == (requests, 0)


@pytest.fixture(scope="module")
def readable() -> Callable[..., list[bool]]:
    """The readable actions, as the benchmark of forced formats counts them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PROJECT / "benchmarks")
        return importlib.import_module("forced_formats").readable  # type: ignore[no-any-return]


@pytest.mark.parametrize("workflow", ["react", "function-calling", "dfsdt"])
def test_an_agent_acts_to_its_end_and_every_action_can_be_read(
    bench: Workbench, readable: Callable[..., list[bool]], workflow: str
) -> None:
    settings: dict[str, Any] = {"env.retriever": "tiny", "steps": 2, "max_tokens": 48}
    settings |= {"shots": 0} if workflow == "react" else {}
    agent = bench.asking.agent(workflow, "wikipedia", "smollm2", settings)
    question = Question("q5", "Who discovered Titan in 1655?")
    *_, episode = bench.asking.run_agent(agent, question)
    assert isinstance(episode, Episode) and not episode.error
    assert episode.outcome is not None and episode.outcome.stop_reason
    assert agent.acting is not None
    actions = readable(workflow, episode, (*agent.acting.make().tools, FINISHING))
    assert actions and all(actions)


def test_a_run_of_the_command_line_is_scored_judged_stored_and_tracked(
    bench: Workbench, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    words = "run --json --chain read --dataset tiny-qa --limit 2 --name real --llm smollm2"
    judges = ("truthfulness:smollm2", "rgb-rejection:smollm2")
    report = CommandLine(capfd, bench.workspace.path).json(
        words, "--metrics", ",".join(("f1", *judges))
    )
    assert (report["n"], report["n_errors"], report["metrics"]["f1"]["n"]) == (2, 0, 2)
    for judge in judges:
        part = report["judges"][judge]
        assert (part["judged"], part["unparsed"], part["failed"]) == (2, 0, 0)
        assert all(report["metrics"][column]["n"] == 2 for column in part["columns"])
    folder = bench.workspace.runs / "real"
    files = {path.name for path in folder.iterdir()}
    assert files >= {
        "output.jsonl",
        "output_reduced.jsonl",
        "results.json",
        "config.json",
        "prompt.txt",
    }
    for line in read_lines(folder / "episodes.jsonl"):
        assert line["answer"] and line["steps"][-1]["reply"]["completion_tokens"] > 0
    assert "/4bit/" in (folder / "run.json").read_text(), "the run records the quantised model"
    link = read_link(folder)
    assert link is not None
    logged = connect(default_uri(bench.workspace.path)).get_run(link.run_id)
    assert logged.data.metrics["f1"] == pytest.approx(report["metrics"]["f1"]["value"], abs=1e-5)


def test_the_served_chain_answers_whole_and_streamed(bench: Workbench) -> None:
    with TestClient(
        application(bench.asking, {"read": READ}), base_url="http://localhost:8001"
    ) as client:
        messages = [{"role": "user", "content": "Which moon of Saturn has a thick atmosphere?"}]
        body: dict[str, Any] = {"model": "read", "messages": messages}
        whole = client.post("/v1/chat/completions", json=body).json()
        text = whole["choices"][0]["message"]["content"]
        assert text and whole["usage"]["completion_tokens"] > 0
        stream = client.post("/v1/chat/completions", json={**body, "stream": True}).text
        assert stream.rstrip().endswith("[DONE]") and text.split()[0] in stream
