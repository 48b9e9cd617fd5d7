"""Contract of every setting that names a thing of the workspace: it offers the existing names."""

from __future__ import annotations

import pytest
from small_workspace import make_workspace

from rallebench.core.registry import all as registries
from rallebench.core.settings import NAMED, PATHS, Setting, check_form
from rallebench.views import catalog
from rallebench.workspace.paths import WorkspaceFolder

FORMS = {
    f"{kind} {name}": entry.form
    for kind, registry in registries().items()
    for name in registry.names()
    if (entry := registry.entry(name)).form
}
IN_LISTS = [noun for noun in NAMED if noun not in PATHS]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceFolder:
    return WorkspaceFolder(make_workspace(tmp_path_factory.mktemp("named")))


def names_in(workspace: WorkspaceFolder) -> dict[str, list[str]]:
    form = {noun: Setting(str, "", names=noun) for noun in IN_LISTS}
    return catalog.choices(workspace, form)


@pytest.fixture(scope="module")
def names(workspace: WorkspaceFolder) -> dict[str, list[str]]:
    return names_in(workspace)


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return names_in(WorkspaceFolder(tmp_path_factory.mktemp("starter")))


@pytest.mark.parametrize("owner", FORMS)
def test_every_setting_that_names_a_thing_is_offered_the_things_of_that_kind(
    owner: str, workspace: WorkspaceFolder, names: dict[str, list[str]]
) -> None:
    offered = catalog.choices(workspace, FORMS[owner])
    for key, setting in FORMS[owner].items():
        assert setting.kind is str or not setting.names, key
        known = {name for noun in setting.kinds_named for name in names.get(noun, ())}
        worth = {*map(str, setting.sweep)} if setting.many else set()
        assert {*offered.get(key, ())} == known | worth, key


@pytest.mark.parametrize("owner", FORMS)
def test_a_setting_whose_default_is_the_name_of_a_starter_thing_says_what_it_names(
    owner: str, starter: dict[str, list[str]]
) -> None:
    everything = {name for known in starter.values() for name in known}
    for key, setting in FORMS[owner].items():
        if setting.kind is str and not setting.choices and setting.default in everything:
            assert any(setting.default in starter.get(noun, ()) for noun in setting.kinds_named), (
                key
            )


def test_what_there_is_of_each_kind_is_offered(names: dict[str, list[str]]) -> None:
    there = {
        "llm": "titan",
        "retriever": "tiny",
        "index": "starter-bm25",
        "encoder": "minilm",
        "dataset": "starter-qa",
        "table": "starter-scholars",
        "chain": "read",
        "workflow": "react",
        "environment": "wikipedia",
        "metric": "em",
    }
    assert all(name in names[noun] for noun, name in there.items())
    assert names["corpus"] == names["run"] == [], "nothing is imported, nothing was run"
    assert {*there, "corpus", "run"} == {*IN_LISTS}


def test_a_thing_that_no_setting_can_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'judge' names 'model'; it can name llm, retriever"):
        check_form("metric 'x'", {"judge": Setting(str, "", names="llm model")})
