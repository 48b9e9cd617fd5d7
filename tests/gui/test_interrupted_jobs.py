"""Jobs that ended with an earlier program: their place says so and completes them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_views import ended, opened_page, refused, text_of, texts, view_of
from small_workspace import make_workspace

from rallebench.core.errors import NotFoundError
from rallebench.core.events import Progress
from rallebench.gui.frame import Page
from rallebench.gui.jobs import job_news
from rallebench.services import imports
from rallebench.services.job_records import JobRecords
from rallebench.workspace.indexes.build import build_index

INDEXES = {"indexes": ["bm25", "dense", "hybrid"], "encoder": "hashing", "cut": "whole"}


def cut_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stuck: str, begin: Callable[[Page], Any]
) -> None:
    """End a program while it builds the index ``stuck``."""

    def hang(indexes: Path, name: str, recipe: Any, **more: Any) -> Any:
        if name == stuck:
            while True:
                yield Progress("", message="encoding passages")
                time.sleep(0.001)
        return (yield from build_index(indexes, name, recipe, **more))

    for module in ("imports", "index_builds"):
        monkeypatch.setattr(f"rallebench.services.{module}.build_index", hang)
    with opened_page(folder) as page:
        begin(page)
        for kind in (imports.KIND, "build"):
            for job in page.workbench.jobs.list(kind):
                while job.message != "encoding passages" and not job.message.startswith(stuck):
                    assert not job.done, job.error
                    time.sleep(0.01)
    for module in ("imports", "index_builds"):
        monkeypatch.setattr(f"rallebench.services.{module}.build_index", build_index)


def import_moons(page: Page) -> None:
    place = page.workspace.path
    page.call("import.preview", {"path": str(place / "corpus.tsv")})
    fields = {"kind": "corpus", "form": "tsv", "name": "moons", "pages": str(place / "pages.json")}
    page.call("import.start", {**fields, **INDEXES})


@pytest.fixture
def after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The page of a program that was restarted while it imported moons."""
    folder = make_workspace(tmp_path / "workspace")
    cut_off(folder, monkeypatch, "moons-hashing", import_moons)
    with opened_page(folder) as page:
        yield page


def notices(page: Page) -> str:
    return texts(str(page.call("data.refresh").html["data-interrupted"]))


def test_an_interrupted_import_is_told_in_data_and_its_missing_indexes_are_built(
    after: Page,
) -> None:
    words = text_of(after, "data/list")
    assert "The import of moons began today" in words
    assert "its indexes are missing: moons-hashing, moons-hybrid." in words
    assert "Build the 2 missing indexes" in words
    after.call("import.complete", {"id": "moons"})
    ended(after, "import", "moons")
    panel = texts(str(after.call("data.refresh").html["data-import"]))
    assert "Imported moons." in panel and "moons-hybrid" in panel
    assert after.workspace.manifests()["moons-hashing"].passages
    assert not job_news(after.workbench).versions["interrupted"]
    with opened_page(after.workspace.path) as later:
        assert notices(later) == ""
    refused(after, "import.complete", {"id": "moons"}, "was continued or dismissed")


def test_the_list_of_jobs_names_it_on_every_place_until_it_is_dismissed(after: Page) -> None:
    news = job_news(after.workbench)
    assert news.any and texts(news.chip) == "1 job interrupted"
    assert "Import moons interrupted It began today" in texts(news.list)
    assert 'href="#/data/list"' in news.list
    after.call("jobs.forget", {"id": "import moons"})
    assert not job_news(after.workbench).any and notices(after) == ""


def test_an_import_whose_files_are_needed_and_gone_says_so(after: Page) -> None:
    after.workbench.data.delete_corpus("moons")
    assert "Its files were not read to the end." in notices(after)
    assert "Import it again" in notices(after)
    (after.workspace.path / "corpus.tsv").unlink()
    assert "choose them again." in notices(after) and "Import it again" not in notices(after)
    refused(
        after,
        "import.complete",
        {"id": "moons"},
        "is no longer there; choose it again.",
        NotFoundError,
    )


def test_what_was_built_meanwhile_is_no_longer_missing(after: Page) -> None:
    corpus = str(after.workspace.corpora / "moons")
    for _ in after.workbench.data.build_index("moons-hashing", corpus, "flat", encoder="hashing"):
        pass
    assert "its index is missing: moons-hybrid." in notices(after)
    after.workbench.data.combine("moons-hybrid", "rrf", ["moons-bm25", "moons-hashing"], {})
    assert notices(after) == "" and not job_news(after.workbench).versions["interrupted"]


def test_an_interrupted_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_workspace(tmp_path / "workspace")

    def begin(page: Page) -> None:
        place = str(page.workspace.path / "corpus.tsv")
        fields = {"path": place, "kind": "flat", "encoder": "hashing", "name": "own"}
        page.call("data.build", {**fields, "cut": "whole"})

    cut_off(folder, monkeypatch, "own", begin)
    with opened_page(folder) as page:
        assert "The build of own began" in text_of(page, "data/list")
        page.call("import.complete_build", {"id": "own"})
        ended(page, "build", "own")
        assert page.workspace.manifests()["own"].kind == "flat"
        assert notices(page) == ""


@pytest.mark.parametrize(
    "kind, name, address",
    [
        ("download", "hf:owner/set", "#/data/list"),
        ("run", "night", "#/runs/run?id=night"),
        ("scoring", "night", "#/runs/run?id=night"),
        ("sweep", "ks", "#/experiments/one?id=ks"),
        ("dataset builder", "own-qa", "#/data/builder?id=own-qa"),
        ("test", "titan", "#/models/one?id=titan"),
    ],
)
def test_every_kind_of_interrupted_work_leads_to_its_place(
    tmp_path: Path, kind: str, name: str, address: str
) -> None:
    folder = make_workspace(tmp_path / "workspace")
    records = JobRecords(folder / "cache")
    records.add(kind, name, {})
    records.close()
    with opened_page(folder) as page:
        news = job_news(page.workbench)
        assert texts(news.chip) == "1 job interrupted" and f'href="{address}"' in news.list
        again = re.search(
            r'data-do="import.preview"[^>]*data-path="([^"]+)"', view_of(page, "data/list")
        )
        assert (again[1] if again else "") == (name if kind == "download" else "")


def test_a_restarted_program_is_another_one(tmp_path: Path) -> None:
    folder = make_workspace(tmp_path / "workspace")
    with opened_page(folder) as page, opened_page(folder) as other:
        assert page.program != other.program
        assert job_news(page.workbench, page.program).to_json()["program"] == page.program
