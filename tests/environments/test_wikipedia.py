"""Search, Lookup and Finish answer as R-Eval's Wikipedia does, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from acted import act, pages

from rallebench.core.types import Note, Request
from rallebench.environments import MakeEnvironment
from rallebench.environments._pages import PageStore
from rallebench.environments.wikipedia import wikipedia

NOT_FOUND = "Could not find that page, please try again."
NO_PAGE = "The last page Searched was not found, so you cannot Lookup a keyword in it. Please try one of the similar pages given."
INVALID = "Invalid Action. Valid Actions are Lookup[<topic>] Search[<topic>] and Finish[<answer>]."


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> PageStore:
    return pages(tmp_path_factory.mktemp("pages"))


def made(
    opened: PageStore, otherwise: str = "first-hit", compat: str = "corrected"
) -> MakeEnvironment:
    return wikipedia(retriever="words", pages=opened, similar=3, otherwise=otherwise, compat=compat)


def test_a_search_opens_the_page_of_that_title_and_gives_its_first_paragraph(
    opened: PageStore,
) -> None:
    assert act(made(opened)(), "Search[Triton]") == "Triton is a moon of Neptune. It has no lakes."
    assert act(made(opened)(), "Search[ titan_(MOON) ]") == "Titan is the largest moon of Saturn."


def test_what_is_shown_of_an_opened_page_is_recorded_as_found(opened: PageStore) -> None:
    env = made(opened)()
    asked: list[Request] = []
    for action in ("Search[Titan (moon)]", "Lookup[methane]", "Lookup[xyzzy]"):
        act(env, action, asked=asked)
    shown = [request.reply().hits for request in asked if isinstance(request, Note)]
    assert [[(hit.passage.page_id, hit.passage.text) for hit in hits] for hits in shown] == [
        [("p1", "Titan is the largest moon of Saturn.")],
        [("p1", "Methane rains on Titan.")],
        [],
    ]


def test_a_title_without_what_its_brackets_say_is_found_too(opened: PageStore) -> None:
    assert act(made(opened)(), "Search[Titan]") == "Titan is the largest moon of Saturn."


def test_what_is_no_title_opens_the_page_of_the_first_hit(opened: PageStore) -> None:
    assert act(made(opened)(), "Search[second longest river]").startswith("The Danube is a river")


def test_what_is_no_title_gives_similar_titles_where_that_is_chosen_and_no_page_is_open_then(
    opened: PageStore,
) -> None:
    env = made(opened, otherwise="similar")()
    act(env, "Search[Triton]")
    assert (
        act(env, "Search[moon of Neptune.]")
        == "Could not find [moon of Neptune.]. Similar: ['Triton', 'Titan (moon)', 'Danube']"
    )
    assert act(env, "Lookup[moon]") == NO_PAGE


def test_a_disambiguation_page_is_not_opened_but_gives_similar_titles(opened: PageStore) -> None:
    env = made(opened)()
    said = act(env, "Search[Mercury]")
    assert said.startswith("Could not find [Mercury]. Similar: [") and "'Mercury (planet)'" in said
    assert act(env, "Lookup[planet]") == NO_PAGE


def test_a_search_that_finds_nothing_says_so_and_closes_the_page(opened: PageStore) -> None:
    env = made(opened)()
    act(env, "Search[Triton]")
    assert act(env, "Search[xyzzy]") == "Could not find [xyzzy]. Similar: []"
    assert act(env, "Lookup[lakes]") == NO_PAGE
    assert act(env, "Search[]") == NOT_FOUND


def test_a_lookup_before_a_search_says_that_there_is_no_page(opened: PageStore) -> None:
    assert act(made(opened)(), "Lookup[moon]") == NO_PAGE


def test_lookups_go_through_all_passages_of_the_page_one_paragraph_each(opened: PageStore) -> None:
    env = made(opened)()
    act(env, "Search[Titan]")
    assert act(env, "Lookup[ATMOSPHERE]") == "(Result 1/2) It has a thick atmosphere of nitrogen."
    assert act(env, "Lookup[atmosphere]") == "(Result 2/2) The atmosphere hides its lakes."
    assert act(env, "Lookup[atmosphere]") == "No More Results"
    assert act(env, "Lookup[methane]") == "(Result 1/1) Methane rains on Titan."
    assert act(env, "Lookup[atmosphere]") == "(Result 1/2) It has a thick atmosphere of nitrogen."
    assert act(env, "Lookup[gold]") == "No Results"
    assert act(env, "Lookup[]") == "No Results"


@pytest.mark.parametrize(
    ("compat", "said"),
    [
        ("corrected", "(Result 1/1) Triton is a moon of Neptune. It has no lakes."),
        ("original", "No More Results"),
    ],
)
def test_the_original_goes_on_counting_a_keyword_after_a_new_search(
    opened: PageStore, compat: str, said: str
) -> None:
    env = made(opened, compat=compat)()
    act(env, "Search[Titan]")
    act(env, "Lookup[lakes]")
    act(env, "Search[Triton]")
    assert act(env, "Lookup[lakes]") == said


def test_each_episode_has_an_environment_of_its_own(opened: PageStore) -> None:
    make = made(opened)
    first, second = make(), make()
    act(first, "Search[Triton]")
    assert act(second, "Lookup[moon]") == NO_PAGE


def test_an_unknown_action_names_the_valid_ones_and_finish_ends(opened: PageStore) -> None:
    assert act(made(opened)(), "Fly[home]") == INVALID
    assert act(made(opened)(), "Finish[Titan]") == "Episode finished."


def test_a_page_with_a_name_in_another_script_is_found(opened: PageStore) -> None:
    assert act(made(opened)(), "Search[卡西尼]") == "卡西尼 号 是 一 艘 飞船。"


def test_the_look_ups_of_a_damaged_folder_are_refused_in_a_sentence(
    opened: PageStore, tmp_path: Path
) -> None:
    from rallebench.core.errors import BadFileError

    with pytest.raises(BadFileError, match="is damaged"):
        PageStore(opened.store, tmp_path)
