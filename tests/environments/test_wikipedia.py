"""Search, Lookup and Finish answer as R-Eval's Wikipedia does, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from acted import act, pages

from rallebench.core.errors import BadFileError
from rallebench.core.types import Note, Request
from rallebench.environments import MakeEnvironment
from rallebench.environments.pages import PageStore
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


TITAN, TRITON = (
    "Titan is the largest moon of Saturn.",
    "Triton is a moon of Neptune. It has no lakes.",
)
FIRST = "(Result 1/2) It has a thick atmosphere of nitrogen."
EPISODES: dict[str, tuple[dict[str, str], list[tuple[str, str]]]] = {
    "a title opens its page": ({}, [("Search[Triton]", TRITON), ("Search[ titan_(MOON) ]", TITAN)]),
    "a title without its brackets": ({}, [("Search[Titan]", TITAN)]),
    "a title in another script": ({}, [("Search[卡西尼]", "卡西尼 号 是 一 艘 飞船。")]),
    "no title opens the first hit": (
        {},
        [
            (
                "Search[second longest river]",
                'The Danube is a river, "the second longest" of Europe.',
            )
        ],
    ),
    "no title gives similar titles where that is chosen, and closes the page": (
        {"otherwise": "similar"},
        [
            ("Search[Triton]", TRITON),
            (
                "Search[moon of Neptune.]",
                "Could not find [moon of Neptune.]. Similar: ['Triton', 'Titan (moon)', 'Danube']",
            ),
            ("Lookup[moon]", NO_PAGE),
        ],
    ),
    "nothing is like it": (
        {},
        [
            ("Search[Triton]", TRITON),
            ("Search[xyzzy]", "Could not find [xyzzy]. Similar: []"),
            ("Lookup[lakes]", NO_PAGE),
            ("Search[]", NOT_FOUND),
        ],
    ),
    "a lookup before a search": ({}, [("Lookup[moon]", NO_PAGE)]),
    "lookups go through all passages of the page, one paragraph each": (
        {},
        [
            ("Search[Titan]", TITAN),
            ("Lookup[ATMOSPHERE]", FIRST),
            ("Lookup[atmosphere]", "(Result 2/2) The atmosphere hides its lakes."),
            ("Lookup[atmosphere]", "No More Results"),
            ("Lookup[methane]", "(Result 1/1) Methane rains on Titan."),
            ("Lookup[atmosphere]", FIRST),
            ("Lookup[gold]", "No Results"),
            ("Lookup[]", "No Results"),
        ],
    ),
    "a new search counts a keyword anew": (
        {"compat": "corrected"},
        [
            ("Search[Titan]", TITAN),
            ("Lookup[lakes]", "(Result 1/1) The atmosphere hides its lakes."),
            ("Search[Triton]", TRITON),
            ("Lookup[lakes]", f"(Result 1/1) {TRITON}"),
        ],
    ),
    "the original goes on counting": (
        {"compat": "original"},
        [
            ("Search[Titan]", TITAN),
            ("Lookup[lakes]", "(Result 1/1) The atmosphere hides its lakes."),
            ("Search[Triton]", TRITON),
            ("Lookup[lakes]", "No More Results"),
        ],
    ),
    "other actions": ({}, [("Fly[home]", INVALID), ("Finish[Titan]", "Episode finished.")]),
}


@pytest.mark.parametrize("case", EPISODES)
def test_each_action_has_the_observation_of_r_evals_wikipedia(case: str, opened: PageStore) -> None:
    settings, steps = EPISODES[case]
    env = made(opened, **settings)()
    assert [act(env, action) for action, _ in steps] == [observation for _, observation in steps]


def test_what_is_shown_of_an_opened_page_is_recorded_as_found(opened: PageStore) -> None:
    env = made(opened)()
    requests: list[Request] = []
    for action in ("Search[Titan (moon)]", "Lookup[methane]", "Lookup[xyzzy]"):
        act(env, action, asked=requests)
    notes = [request.reply().hits for request in requests if isinstance(request, Note)]
    assert [[(hit.passage.page_id, hit.passage.text) for hit in hits] for hits in notes] == [
        [("p1", TITAN)],
        [("p1", "Methane rains on Titan.")],
        [],
    ]


def test_a_disambiguation_page_is_not_opened_but_gives_similar_titles(opened: PageStore) -> None:
    env = made(opened)()
    observation = act(env, "Search[Mercury]")
    assert observation.startswith("Could not find [Mercury]. Similar: [")
    assert "'Mercury (planet)'" in observation and act(env, "Lookup[planet]") == NO_PAGE


def test_each_episode_has_an_environment_of_its_own(opened: PageStore) -> None:
    make = made(opened)
    first, second = make(), make()
    act(first, "Search[Triton]")
    assert act(second, "Lookup[moon]") == NO_PAGE


def test_look_ups_of_a_damaged_folder_are_refused(opened: PageStore, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="is damaged"):
        PageStore(opened.store, tmp_path)
