"""The seven calls of R-Eval's scholar environment: their arguments, and what they answer word for word.

Searches are loose and list the most cited first; calls by id are exact.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rallebench.environments._tools import tool

MOST = 10
"""What a search lists at most, and the publications of a scholar."""

MOST_COAUTHORS = 100
NO_PERSON = "Could not find that person, please try again."
NO_PUBLICATION = "Could not find that publication, please try again."

log = logging.getLogger(__name__)

_ID = "the scholar's id, as searchPerson gives it"

TOOLS = (
    tool(
        "searchPerson",
        "Find scholars by name, organization and interest, at least one of them; the most cited come first.",
        optional=("name", "organization", "interest"),
        name="the scholar's name",
        organization="where the scholar works",
        interest="a research topic",
    ),
    tool(
        "searchPublication",
        "Find publications; the most cited come first.",
        publication_info="the title, or words of title, authors and venue",
    ),
    tool("getCoauthors", "The coauthors of a scholar, with their relation.", person_id=_ID),
    tool("getPersonPubs", "The most cited publications of a scholar.", person_id=_ID),
    tool("getPersonInterest", "The research topics of a scholar.", person_id=_ID),
    tool(
        "getPublication",
        "Abstract, authors and number of citations of a publication.",
        publication_id="the publication's id, as searchPublication gives it",
    ),
    tool(
        "getPersonBasicInfo",
        "Name, gender, organization, position, biography, education and email of a scholar.",
        person_id=_ID,
    ),
)

Record = dict[str, Any]


class Table(Protocol):
    """What the calls ask; see ``table.ScholarTable``."""

    def person(self, person_id: str) -> Record | None:
        """By id."""

    def publication(self, publication_id: str) -> Record | None:
        """By id."""

    def publications_of(self, row: int, most: int) -> list[Record]:
        """The most cited first."""

    def coauthors_of(self, row: int, most: int) -> list[tuple[str, str, str]]:
        """(id, name, relation)."""

    def people(self, wanted: Mapping[str, str], most: int) -> list[Record]:
        """Loosely, the most cited first."""

    def papers(self, info: str, most: int) -> list[Record]:
        """Loosely, the most cited first."""


def answer(table: Table, api: str, given: Mapping[str, str]) -> str:
    """The observation of a call whose arguments are checked. Whatever fails is a sentence."""
    call = _CALLS.get(api)
    if call is None:
        return f"There is no call {api[:100]!r}."
    try:
        return call(table, given)
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        log.warning("%s failed: %s", api, error)
        return NO_PUBLICATION if "Publication" in api else NO_PERSON


def _search_person(table: Table, given: Mapping[str, str]) -> str:
    columns = {"name": "name", "organization": "organization", "interest": "interests"}
    wanted = {column: given[key] for key, column in columns.items() if given.get(key, "").strip()}
    found = [_person(record) for record in table.people(wanted, MOST)] if wanted else []
    if not found:
        return NO_PERSON
    return (
        f"One person found: {_json(found[0])}"
        if len(found) == 1
        else f"{len(found)} people found: {_json(found)}"
    )


def _person(record: Record) -> Record:
    contact = {
        "affiliation": record["organization"],
        "bio": record["bio"],
        "edu": record["education"],
        "email": record["email"],
        "position": record["position"],
    }
    same = ("gender", "gindex", "hindex", "ncitation", "npubs", "language")
    return {
        "id": record["id"],
        "name": record["name"],
        "contact": contact,
        **{key: record[key] for key in same},
        "interests": record["interests"][:10],
    }


def _search_publication(table: Table, given: Mapping[str, str]) -> str:
    found = [
        {
            "id": record["id"],
            "title": record["title"],
            "year": record["year"],
            "authors": [author["name"] for author in record["authors"]],
            "venue": record["venue"],
            "pubAbstract": record["abstract"],
            "ncitation": record["ncitation"],
        }
        for record in table.papers(given["publication_info"], MOST)
    ]
    if not found:
        return NO_PUBLICATION
    if len(found) == 1:
        return f"One publication found: {_json(found[0])}"
    return f"{len(found)} publications found: {_json(found)}"


def _coauthors(table: Table, given: Mapping[str, str]) -> str:
    person = table.person(given["person_id"])
    if person is None:
        return NO_PERSON
    found = table.coauthors_of(person["row"], MOST_COAUTHORS)
    rows = [
        {"person_id": other, "name": name, "relation": relation} for other, name, relation in found
    ]
    return _json(rows) if rows else "No coauthors found"


def _publications(table: Table, given: Mapping[str, str]) -> str:
    person = table.person(given["person_id"])
    if person is None:
        return NO_PERSON
    rows = [
        {
            "pub_id": record["id"],
            "title": record["title"],
            "num_citation": record["ncitation"],
            "year": record["year"],
            "authors_name_list": [author["name"] for author in record["authors"]],
        }
        for record in table.publications_of(person["row"], MOST)
    ]
    return _json(rows) if rows else "No publication found"


def _interests(table: Table, given: Mapping[str, str]) -> str:
    person = table.person(given["person_id"])
    if person is None:
        return NO_PERSON
    return _json(person["interests"]) if person["interests"] else "No interest found"


def _publication(table: Table, given: Mapping[str, str]) -> str:
    record = table.publication(given["publication_id"])
    if record is None:
        return NO_PUBLICATION
    authors = [{"person_id": author["id"], "name": author["name"]} for author in record["authors"]]
    return _json(
        {
            "abstract": record["abstract"],
            "author_list": authors,
            "num_citation": record["ncitation"],
        }
    )


def _basic_info(table: Table, given: Mapping[str, str]) -> str:
    person = table.person(given["person_id"])
    if person is None:
        return NO_PERSON
    same = ("name", "gender", "organization", "position", "bio")
    values = {"person_id": person["id"], **{key: person[key] for key in same}}
    return _json({**values, "education_experience": person["education"], "email": person["email"]})


_CALLS: Mapping[str, Callable[[Table, Mapping[str, str]], str]] = {
    "searchPerson": _search_person,
    "searchPublication": _search_publication,
    "getCoauthors": _coauthors,
    "getPersonPubs": _publications,
    "getPersonInterest": _interests,
    "getPublication": _publication,
    "getPersonBasicInfo": _basic_info,
}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
