"""An agent from its names: settings, demonstrations, prompts byte for byte, and the verbs ``run`` and ``ask``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from project import GOLDEN
from small_workspace import CommandLine, add_llm, make_workspace, read_lines

from rallebench import sandbox
from rallebench.core.backends import Backends
from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Generate, Question, Reply
from rallebench.engine.single import run_one
from rallebench.environments import ENVIRONMENTS, environment_names
from rallebench.llms.scripted import Scripted
from rallebench.sandbox.sessions import new_name
from rallebench.services.workbench import Workbench
from rallebench.workflows import WORKFLOWS
from rallebench.workflows.prompts import read_shots
from rallebench.workspace.flows import Agent, pools, prepare_agent
from rallebench.workspace.paths import WorkspaceFolder

GOLDEN = GOLDEN / "workflows"
ACTING = [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]
REPLIES = {
    r"Thought \d:$": "I think.",
    r"Action 1:$": "Search[Titan (moon)]",
    r"Action 2:$": "Finish[Titan]",
}
PROGRAM = "print(Search('Titan (moon)').split()[0])"


@pytest.fixture(scope="module")
def template_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_workspace(tmp_path_factory.mktemp("made") / "w")
    add_llm(folder, "agent", replies=REPLIES, default="Finish[?]")
    add_llm(folder, "coder", default=PROGRAM)
    return folder


def on_tiny(template_workspace: Path, workflow: str, **given: str) -> Agent:
    settings = {"retriever": "tiny", **given}
    return prepare_agent(
        WorkspaceFolder(template_workspace), workflow, "wikipedia", "agent", settings
    )


ON_TINY = "--env wikipedia --retriever tiny"


def sent(workflow: str, env: str, workspace: Path, **given: Any) -> str:
    """Everything that a workflow sends the model first: messages with their roles, functions, settings."""
    agent = prepare_agent(
        WorkspaceFolder(workspace), workflow, env, "agent", given, allow_python=True
    )
    asked: list[Generate] = []

    def first(request: Generate) -> Reply:
        asked.append(request)
        return Reply("No response")

    backends, _ = agent.flow.open(Backends({}, {"agent": Scripted(first)}))
    list(run_one(agent.flows(backends)(Question("q", "Who wrote the {paper}?")), backends))
    (request,) = asked[:1]
    lines = []
    for message in request.messages:
        lines.append(f"── {message.role}\n{message.content}")
        lines += [f"── calls {call.id} {call.name} {call.arguments}" for call in message.tool_calls]
    lines += [
        f"── function {tool.name}: {tool.description} {json.dumps(tool.parameters)}"
        for tool in request.tools
    ]
    sizes = f"max_tokens {request.max_tokens}, temperature {request.temperature}"
    return "\n".join([*lines, f"── stop {list(request.stop)}, {sizes}", ""])


CASES = [
    *((name, "wikipedia", {}) for name in ACTING),
    *((name, "scholar", {}) for name in ("react", "pal", "plan-then-act")),
    *((name, "corpus-tools", {}) for name in ("react", "pal", "planner-react")),
    ("react", "wikipedia", {"shots": "0"}),
    ("react", "wikipedia", {"one_call": "true", "shots": "1"}),
    ("function-calling", "scholar", {"protocol": "text", "shots": "1"}),
    ("dfsdt", "wikipedia", {"protocol": "native", "shots": "1"}),
]


@pytest.mark.parametrize(("workflow", "env", "given"), CASES)
def test_a_workflow_sends_the_golden_prompt_byte_for_byte(
    workflow: str, env: str, given: dict[str, str], template_workspace: Path
) -> None:
    acts = (
        WORKFLOWS.entry(workflow).traits["needs_env"]
        and "retriever" in ENVIRONMENTS.entry(env).form
    )
    name = "_".join([workflow, env, *(f"{key}-{value}" for key, value in given.items())])
    file = GOLDEN / f"{name}.txt"
    found = sent(
        workflow, env, template_workspace, **({"env.retriever": "tiny"} if acts else {}), **given
    )
    if os.environ.get("UPDATE_GOLDEN"):  # the change is then reviewed as a diff
        file.write_bytes(found.encode())
    assert found.encode() == file.read_bytes()


@pytest.mark.parametrize("env", environment_names([]))
def test_every_environment_has_demonstrations_that_every_workflow_can_show(env: str) -> None:
    shots = read_shots(pools()[env])
    assert len(shots) >= 2
    for shot in shots:
        assert all((shot.question, shot.answer, shot.plan, shot.reasoning))
        assert "print(" in shot.program
        compile(shot.program, "program", "exec")
        assert shot.steps[-1].name == "Finish" and shot.steps[-1].argument == shot.answer
        assert all(step.thought for step in shot.steps)
        assert all(step.observation for step in shot.steps[:-1])


@pytest.mark.parametrize("env", environment_names([]))
def test_the_program_of_a_demonstration_runs_and_prints_its_answer(env: str) -> None:
    for shot in read_shots(pools()[env]):
        observed = {
            json.dumps(list(step.arguments.values())): step.observation for step in shot.steps[:-1]
        }
        names = {step.name: list(step.arguments) for step in shot.steps[:-1]}
        tool, name = sandbox.PythonTool(), new_name()
        reply = tool.use(sandbox.begin(name, shot.program, names | {"Lookup": ["keyword"]}))
        while reply.tool_calls:
            asked = json.dumps(list(json.loads(reply.tool_calls[0].arguments).values()))
            reply = tool.use(sandbox.answer(name, observed.get(asked, shot.steps[-2].observation)))
        assert (reply.text.strip(), reply.note) == (shot.answer, ""), shot.question


@pytest.mark.parametrize(
    ("workflow", "env", "given", "said"),
    [
        ("reakt", "wikipedia", {}, "Did you mean 'react'"),
        ("react", "wikpedia", {}, "Did you mean 'wikipedia'"),
        ("react", "", {}, "needs an environment: "),
        ("react", "wikipedia", {"sots": "1"}, "There is no setting 'sots'. Did you mean 'shots'"),
        ("react", "wikipedia", {"shots": "x"}, "shots must be a whole number from 0 to 50"),
        ("react", "wikipedia", {"shots": "9"}, "holds 3 demonstrations"),
        (
            "react",
            "wikipedia",
            {"pool": "no.json"},
            "There is no file of demonstrations no.json",
        ),
        ("react", "scholar", {"pool": str(pools()["wikipedia"])}, "its action 'Search' is none of"),
        ("react", "wikipedia", {"env.similar": "0"}, "similar must be a whole number from 1"),
        ("pal", "wikipedia", {}, "runs programs that the model writes"),
        ("barag-basic", "", {}, "is run by a suite"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_loaded(
    workflow: str, env: str, given: dict[str, str], said: str, template_workspace: Path
) -> None:
    with pytest.raises(UsageError) as error:
        prepare_agent(WorkspaceFolder(template_workspace), workflow, env, "agent", given)
    assert said in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("shots", "said"),
    [
        ("", "is not a file of demonstrations"),
        ('[{"question": "?"}]', "demonstration 1: KeyError: 'answer'"),
        (
            '[{"question": "?", "answer": "x", "steps": [{"name": "Search", "arguments": {}}]}]',
            "its last step is Search, not Finish",
        ),
    ],
)
def test_a_pool_that_is_none_is_named(shots: str, said: str, tmp_path: Path) -> None:
    pool = f'{{"format": "rallebench-shots/1", "shots": {shots}}}' if shots else "[]"
    (tmp_path / "own.json").write_text(pool)
    with pytest.raises(UsageError) as error:
        read_shots(tmp_path / "own.json")
    assert said in str(error.value)


def test_what_changes_an_answer_changes_the_fingerprint(template_workspace: Path) -> None:
    def identity(**given: str) -> str:
        return json.dumps(on_tiny(template_workspace, "react", **given).identity.to_json())

    assert identity() == identity()
    others = ({}, {"shots": "1"}, {"similar": "3"}, {"one_call": "true"})
    assert len({identity(**given) for given in others}) == 4


def test_functions_are_offered_to_models_that_can_be_told_of_them(template_workspace: Path) -> None:
    class Plain:
        calls_tools = False

    def native(llm: object, **given: str) -> bool:
        return on_tiny(template_workspace, "dfsdt", **given).calls_natively(llm)

    assert native(Scripted()) and not native(Plain()) and not native(object())
    assert native(Plain(), protocol="native") and not native(Scripted(), protocol="text")


def test_the_models_own_window_is_the_context_unless_another_is_given(
    template_workspace: Path,
) -> None:
    def reason(**given: str) -> str:
        agent = on_tiny(template_workspace, "zero-shot", **given)
        llm = Scripted(["Finish[x]"])
        llm.context_window = 20  # type: ignore[attr-defined]
        backends, _ = agent.flow.open(Backends(llms={"agent": llm}))
        *_, episode = run_one(agent.flows(backends)(Question("q", "?")), backends)
        assert isinstance(episode, Episode) and episode.outcome is not None
        return episode.outcome.stop_reason

    assert (reason(), reason(context="4000")) == ("context_limit", "answered")


def test_ask_shows_every_step_and_how_the_episode_ended(cli: CommandLine) -> None:
    ask = f"ask --workflow react {ON_TINY} --llm agent --question"
    found = cli.json(ask, "Which moon?")
    assert (found["answer"], found["stop_reason"]) == ("Titan", "answered")
    kinds = [step["kind"] for step in found["steps"] if step["kind"] != "identity"]
    assert kinds == ["generate"] * 4
    labels = [line["label"] for line in found["said"] if line["label"]]
    assert labels[:3] == ["Thought 1", "Action 1", "Observation 1"]
    plain = cli(ask, "Which moon?").out
    assert "── Observation 1\nTitan is the largest moon of Saturn" in plain
    assert "Ended: answered" in plain


def test_a_run_of_an_agent_is_a_run_folder_and_can_be_continued(cli: CommandLine) -> None:
    run = f"run --workflow react {ON_TINY} --llm agent --dataset tiny-qa --no-mlflow --name mine"
    found = cli.json(run)
    assert (found["n"], found["n_errors"]) == (8, 0)
    assert found["metrics"]["em"]["value"] == pytest.approx(1 / 8)
    assert found["agent"] == {"stop_reasons": {"answered": 8}, "turns": 4.0, "batch": 8.0}
    folder = cli.workspace / "runs" / "mine"
    spec = json.loads((folder / "run.json").read_text())["spec"]
    assert spec["workflow"] == "react" and "chain" not in spec["settings"]
    assert spec["settings"]["agent"]["environment"]["name"] == "wikipedia"
    lines = read_lines(folder / "episodes.jsonl")
    assert {(line["workflow"], line["stop_reason"]) for line in lines} == {("react", "answered")}
    assert (folder / "output.jsonl").exists() and not (folder / "config.json").exists()
    assert cli.json(run, "--resume")["n"] == 8
    other = cli(run, "--resume", "--set", "shots=1")
    assert other.code == 2 and "shots" in other.last
    workbench = Workbench(cli.workspace)
    plan = workbench.runs.resume("mine")
    assert plan.request.flow.agent.to_json() == spec["settings"]["agent"]
    workbench.close()


def test_a_program_runs_only_where_it_is_allowed(cli: CommandLine) -> None:
    ask = f"ask --workflow pal {ON_TINY} --llm coder --question"
    refused = cli(ask, "Which moon?")
    assert refused.code == 2 and "--allow-python" in refused.last and not refused.out
    assert cli.json(ask, "Which moon?", "--allow-python")["answer"] == "Titan"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("", "Name a chain with --chain, or an agent with --workflow and --env."),
        ("--chain read --workflow react", "--chain and --workflow exclude each other"),
        ("--chain read --env wikipedia", "belong to a --workflow"),
        ("--workflow react --env wikipedia", "name one with --llm"),
        ("--workflow chain-of-thought --llm agent --retriever tiny", "asks no retriever"),
        (
            "--workflow chain-of-thought --llm agent --env wikipedia",
            "acts in no environment; leave --env out",
        ),
        ("--workflow react --env wikipedia --llm agent --set x", "--set 'x' is not key=value."),
    ],
)
@pytest.mark.parametrize("verb", ["ask", "run"])
def test_wrong_flags_write_nothing(cli: CommandLine, verb: str, flags: str, said: str) -> None:
    ran = cli(
        f"{verb} {flags}".strip(),
        *(("--question", "?") if verb == "ask" else ("--dataset", "tiny-qa")),
    )
    assert ran.code == 2 and said in ran.last
    assert not (cli.workspace / "runs").exists()
