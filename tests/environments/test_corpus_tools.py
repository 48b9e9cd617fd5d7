"""Search, read and finish over the user's own corpus."""

from __future__ import annotations

import pytest
from acted import act, pages

from rallebench.environments import MakeEnvironment
from rallebench.environments.corpus_tools import corpus_tools
from rallebench.environments.pages import PageStore


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> PageStore:
    return pages(tmp_path_factory.mktemp("pages"))


def made(opened: PageStore, k: int = 2, shown: int = 25, part: int = 1000) -> MakeEnvironment:
    return corpus_tools(retriever="words", pages=opened, k=k, shown=shown, part=part)


def test_a_search_lists_passages_by_id_with_title_and_beginning(opened: PageStore) -> None:
    assert act(made(opened)(), "Search[rains methane]").splitlines() == [
        "[2] Titan (moon): Methane rains on Titan. …"
    ]
    assert act(made(opened)(), "Search[xyzzy]") == "Nothing was found, please try other words."


def test_reading_a_passage_gives_its_whole_page(opened: PageStore) -> None:
    env = made(opened)()
    act(env, "Search[rains]")
    said = act(env, "Read[2]")
    assert said.startswith("Titan is the largest moon of Saturn.") and said.endswith(
        "The atmosphere hides its lakes."
    )


@pytest.mark.parametrize("name", ["p2", "Triton", "[p2]", "triton"])
def test_a_page_is_read_by_its_id_or_title_too(opened: PageStore, name: str) -> None:
    assert act(made(opened)(), f"Read[{name}]") == "Triton is a moon of Neptune. It has no lakes."


def test_a_long_page_is_read_in_parts_that_together_are_the_page(opened: PageStore) -> None:
    env = made(opened, part=60)()
    whole = " ".join(act(made(opened)(), "Read[p1]").split())
    parts = [act(env, "Read[p1]") for _ in range(3)]
    assert [part[:11] for part in parts] == ["(Part 1/3) ", "(Part 2/3) ", "(Part 3/3) "]
    assert all(len(part) <= 71 for part in parts)
    assert " ".join(" ".join(part[11:].split()) for part in parts) == whole
    assert act(env, "Read[p1]") == "No more parts; the next reading begins anew."
    assert act(env, "Read[p1]") == parts[0]


def test_what_is_not_there_cannot_be_read(opened: PageStore) -> None:
    for name in ("p99", "", "no such title"):
        assert (
            act(made(opened)(), f"Read[{name}]")
            == "There is no page or passage with that id, please read one that a search listed."
        )


def test_verbs_are_understood_in_small_letters(opened: PageStore) -> None:
    assert act(made(opened)(), "search[Danube]").startswith("[6] Danube: ")
    assert act(made(opened)(), "finish[x]") == "Episode finished."
