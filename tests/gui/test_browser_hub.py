"""A dataset of the hub in a real browser: a typed name, its download, a stop, the preview and the import."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import expect, go, press, says, serving
from stand_in_hub import StandInHub

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInHub]:
    """A stand-in of the hub, which the program of the page asks."""
    with StandInHub() as stand_in, pytest.MonkeyPatch.context() as patch:
        stand_in.environ(patch, str(tmp_path_factory.mktemp("home")))
        yield stand_in


@pytest.fixture(scope="module")
def page_server(
    hub: StandInHub, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    workspace = tmp_path_factory.mktemp("workspace")
    with serving(workspace) as url:
        yield url, workspace


@pytest.fixture
def data(tab: Any) -> Any:
    go(tab, "#/data/list")
    says(tab, "#data-datasets", "100.0 %")
    return tab


def test_a_name_of_the_hub_is_fetched_previewed_and_imported(
    data: Any, hub: StandInHub, tmp_path: Path
) -> None:
    rows = "".join(f'{{"question": "Which moon {n}?", "answer": "Titan"}}\n' for n in range(9))
    files = {"moons/dev.jsonl": rows.encode(), "moons/train.jsonl": rows.encode() * 20_000}
    commit = hub.add("owner/moons", files)
    data.fill("#data-import [name=path]", "hf:owner/moons?split=dev2")
    press(data, "Preview")
    says(data, "#data-import", "has no split 'dev2'. Its splits: validation, train")
    press(data, "Back")
    hub.pace = 0.2
    data.fill("#data-import [name=path]", "hf:owner/moons?split=train")
    press(data, "Preview")
    says(data, "#data-import", "moons/train.jsonl (1 of 1)")
    data.screenshot(path=tmp_path / "download.png")
    press(data, "Stop")
    says(data, "#data-import", "stopped")
    press(data, "Back")
    hub.pace = 0.0
    data.fill("#data-import [name=path]", "hf:owner/moons?split=validation")
    data.keyboard.press("Enter")
    says(data, "#data-import", "Which moon 2?")
    expect(data.locator("#data-import [name=name]")).to_have_value("moons-validation")
    press(data, "Import")
    says(data, "#data-import", "Imported moons-validation.")
    go(data, "#/data/dataset?id=moons-validation")
    data.locator("#import-said summary").click()
    says(data, "#import-said", f"hf:owner/moons?config=moons&split=validation&revision={commit}")
