"""The starter's scholar questions can be answered by calls alone: small programs of calls find every gold answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acted import act

from rallebench.core.starter import STARTER
from rallebench.workspace.environments import make_environment
from rallebench.workspace.paths import WorkspaceFolder

PEOPLE = [
    json.loads(line)
    for line in (STARTER / "scholars" / "scholars.jsonl").read_text(encoding="utf-8").splitlines()
]

Say = Callable[[str], Any]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    made = make_environment(WorkspaceFolder(tmp_path), "scholar", {})

    def ask(action: str) -> Any:
        text = act(made.make(), action, made.tools)
        return json.loads(re.sub(r"^(?:One|\d+) (?:person|people|publications?) found: ", "", text))

    return ask


def first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def person(say: Say, question: str) -> Any:
    """The scholar with the name and organization in a question."""
    named = next(
        one for one in PEOPLE if one["name"] in question and one["organization"] in question
    )
    return first(
        say(f'searchPerson(name="{named["name"]}", organization="{named["organization"]}")')
    )


def paper(say: Say, question: str) -> Any:
    """The publication with the quoted title."""
    title = question.split('"')[1]
    found = say(f'searchPublication("{title}")')
    listed = next(
        one for one in (found if isinstance(found, list) else [found]) if one["title"] == title
    )
    return listed, say(f"getPublication({listed['id']})")


def authors(say: Say, question: str) -> list[Any]:
    """Each author of the publication, as found by the search for a person."""
    found = []
    for author in paper(say, question)[1]["author_list"]:
        people = say(f'searchPerson(name="{author["name"]}")')
        found.append(
            next(
                one
                for one in (people if isinstance(people, list) else [people])
                if one["id"] == author["person_id"]
            )
        )
    return found


def coauthors(say: Say, question: str) -> list[Any]:
    found = []
    for other in say(f"getCoauthors({person(say, question)['id']})"):
        people = say(f'searchPerson(name="{other["name"]}")')
        found.append(
            {
                **next(
                    one
                    for one in (people if isinstance(people, list) else [people])
                    if one["id"] == other["person_id"]
                ),
                **other,
            }
        )
    return found


SOLVERS: dict[str, Callable[[Say, str], Any]] = {
    "most-cited": lambda say, q: say(f"getPersonPubs({person(say, q)['id']})")[0]["title"],
    "newest-venue": lambda say, q: venue(
        say,
        max(say(f"getPersonPubs({person(say, q)['id']})"), key=lambda one: one["year"])["title"],
    ),
    "first-author-office": lambda say, q: authors(say, q)[0]["contact"]["affiliation"],
    "first-author-interests": lambda say, q: ", ".join(authors(say, q)[0]["interests"]),
    "last-author-citations": lambda say, q: str(authors(say, q)[-1]["ncitation"]),
    "strongest-author": lambda say, q: max(authors(say, q), key=lambda one: one["hindex"])["name"],
    "coauthors": lambda say, q: str(len(say(f"getCoauthors({person(say, q)['id']})"))),
    "advisor": lambda say, q: next(
        one["name"] for one in coauthors(say, q) if one["relation"] == "advisor"
    ),
    "strongest-coauthor": lambda say, q: max(coauthors(say, q), key=lambda one: one["ncitation"])[
        "name"
    ],
    "coauthor-office": lambda say, q: max(coauthors(say, q), key=lambda one: one["ncitation"])[
        "contact"
    ]["affiliation"],
    "first-of-most-cited": lambda say, q: say(f"getPersonPubs({person(say, q)['id']})")[0][
        "authors_name_list"
    ][0],
    "organization": lambda say, q: say(
        f'searchPerson(name="{q[len("At which organization does the scholar ") : -len(" work?")]}")'
    )["contact"]["affiliation"],
    "h-index": lambda say, q: str(person(say, q)["hindex"]),
    "interests": lambda say, q: ", ".join(say(f"getPersonInterest({person(say, q)['id']})")),
    "email": lambda say, q: person(say, q)["contact"]["email"],
    "citations": lambda say, q: str(person(say, q)["ncitation"]),
    "publications": lambda say, q: str(person(say, q)["npubs"]),
    "gender": lambda say, q: person(say, q)["gender"],
    "year": lambda say, q: str(paper(say, q)[0]["year"]),
    "venue": lambda say, q: paper(say, q)[0]["venue"],
    "cited": lambda say, q: str(paper(say, q)[1]["num_citation"]),
    "authors": lambda say, q: ", ".join(
        author["name"] for author in paper(say, q)[1]["author_list"]
    ),
    "position": lambda say, q: say(f"getPersonBasicInfo({person(say, q)['id']})")["position"],
}


def venue(say: Say, title: str) -> str:
    return str(paper(say, f'"{title}"')[0]["venue"])


def questions() -> Iterator[dict[str, Any]]:
    for kind in ("easy", "hard", "profiling"):
        path = STARTER / "questions" / f"starter-scholar-{kind}.jsonl"
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def test_calls_alone_find_the_gold_of_every_question(say: Say) -> None:
    asked = list(questions())
    assert len(asked) == 300 and {row["template"] for row in asked} == set(SOLVERS)
    wrong = [
        (row["input"], said)
        for row in asked
        if (said := SOLVERS[row["template"]](say, row["input"])) != row["output"][0]["answer"]
    ]
    assert wrong == []
