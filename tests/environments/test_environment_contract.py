"""Every environment, including later ones, answers any text of a model with an observation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from acted import observed, pages
from mcp_servers import MOONS, acting

from rallebench.core.backends import Tool
from rallebench.core.types import Reply
from rallebench.environments import ENVIRONMENTS, Environment, MakeEnvironment
from rallebench.environments.scholars.apis import ScholarTool
from rallebench.workspace.environments import scholar_table
from rallebench.workspace.paths import WorkspaceFolder
from rallebench.workspace.scholar_tables import STARTER_TABLE

ARGUMENTS = (
    "",
    " ",
    "x" * 10_000,
    "a, b, c, d, e",
    'name="',
    "{",
    "[" * 500,
    '{"a": {"b": 1}}',
    "Zoë 王伟 😀 \u202e",
    "None",
    "\x00",
    "';--",
    "]",
    ")(",
)


Tools = Mapping[str, Tool]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ScholarTool:
    return scholar_table(WorkspaceFolder(tmp_path_factory.mktemp("workspace")), STARTER_TABLE)


@pytest.fixture(scope="module")
def moons() -> Iterator[tuple[MakeEnvironment, Tools]]:
    """The tools of an MCP server that take arguments, and the connection to it."""
    pytest.importorskip("mcp")
    with acting(MOONS, "moon, add") as (environment, tools):
        yield (lambda: environment), tools


@pytest.fixture
def tools(make: MakeEnvironment, table: ScholarTool, request: pytest.FixtureRequest) -> Tools:
    """The tools that the environments call."""
    moons = request.getfixturevalue("moons")[1] if hasattr(make(), "explanations") else {}
    return {"scholars": table, **moons}


@pytest.fixture(params=ENVIRONMENTS.names())
def make(request: pytest.FixtureRequest, tmp_path: Path) -> MakeEnvironment:
    entry = ENVIRONMENTS.entry(request.param)
    traits = entry.traits
    if traits.get("server"):
        made: MakeEnvironment = request.getfixturevalue("moons")[0]
        return made
    values: dict[str, Any] = {name: setting.default for name, setting in entry.form.items()}
    if traits.get("retriever"):
        values["retriever"] = "words"
    if traits.get("pages"):
        values["pages"] = pages(tmp_path)
    if traits.get("table"):
        values["tool"] = "scholars"
    return ENVIRONMENTS[request.param](**values)


def verbs(environment: Environment) -> list[str]:
    return [tool.name for tool in environment.tools]


def test_its_tools_have_names_and_json_schemas_but_not_finish(make: MakeEnvironment) -> None:
    environment = make()
    assert environment.brackets in ("[]", "()")
    assert verbs(environment) and "finish" not in map(str.lower, verbs(environment))
    for tool in environment.tools:
        assert (
            tool.description
            and tool.parameters["type"] == "object"
            and tool.parameters["properties"]
        )
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"])


def test_an_unknown_verb_is_told_the_valid_actions(make: MakeEnvironment) -> None:
    for verb in ("Fly", "", "x" * 10_000, "__class__"):
        said = observed(make().act(verb, "home"))
        assert said.startswith("Invalid Action. Valid Actions are") and len(said) < 1000
        assert observed(make().call(verb, {"a": "b"})).startswith("There is no tool")


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_no_argument_raises(make: MakeEnvironment, argument: str, tools: Tools) -> None:
    for verb in verbs(make()):
        said = observed(make().act(verb, argument), tools)
        assert isinstance(said, str) and said and len(said) < 30_000


def test_a_call_with_wrong_arguments_is_told_so(make: MakeEnvironment, tools: Tools) -> None:
    environment = make()
    for tool in environment.tools:
        (name, *_) = tool.parameters["properties"]
        values = ({"a": 1}, "", None, [["x"]])
        for wrong in ({}, {"nonsense": "x"}, *({name: value} for value in values)):
            said = observed(environment.call(tool.name, wrong), tools)
            assert said and (tool.name in said or name in said), said


def test_a_call_and_its_text_form_are_alike(make: MakeEnvironment, tools: Tools) -> None:
    for tool in make().tools:
        (name, *_) = tool.parameters["properties"]
        called = observed(make().call(tool.name, {name: "Titan"}), tools)
        assert called == observed(make().act(tool.name, "Titan"), tools)


def test_two_episodes_always_act_alike(make: MakeEnvironment, tools: Tools) -> None:
    def play(environment: Environment) -> list[str]:
        return [observed(environment.act(verb, "Titan"), tools) for verb in verbs(environment) * 2]

    assert play(make()) == play(make())


def test_a_table_that_breaks_while_it_is_asked_gives_an_observation(tmp_path: Path) -> None:
    broken = scholar_table(WorkspaceFolder(tmp_path), STARTER_TABLE)
    broken.close()
    for api in ("searchPerson", "getPublication"):
        reply = broken.use({"api": api, "name": "x", "publication_id": "x"})
        assert isinstance(reply, Reply) and reply.text.startswith("Could not find that")
    json.dumps(reply.text)
