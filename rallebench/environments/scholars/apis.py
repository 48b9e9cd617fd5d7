"""The seven calls of R-Eval's scholar environment: their arguments and the wording of their answers.

Searches are fuzzy and list the most cited first; calls by id are exact.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from rallebench.core.types import Reply
from rallebench.environments._tools import tool
from rallebench.environments.scholars.table import Record, ScholarTable

MAX_RESULTS = 10
"""Maximum results of a search, and maximum publications of a scholar."""

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


class ScholarTool(ScholarTable):
    """A table that answers the seven calls."""

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Answer the call ``api`` with the other arguments. An error is a sentence, never an exception."""
        values = dict(arguments)
        return Reply(answer(self, values.pop("api", ""), values))


def answer(table: ScholarTable, api: str, arguments: Mapping[str, str]) -> str:
    """Return the observation of a call with checked arguments. An error is a sentence, too."""
    try:
        if api in _CALLS:
            return _CALLS[api](table, arguments)
        if api not in _CALLS_BY_PERSON:
            return f"There is no call {api[:100]!r}."
        person = table.person(arguments["person_id"])
        return NO_PERSON if person is None else _CALLS_BY_PERSON[api](table, person)
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        log.warning("%s failed: %s", api, error)
        return NO_PUBLICATION if "Publication" in api else NO_PERSON


def _search_person(table: ScholarTable, arguments: Mapping[str, str]) -> str:
    columns = {"name": "name", "organization": "organization", "interest": "interests"}
    named = [key for key in columns if arguments.get(key, "").strip()]
    query = {columns[key]: arguments[key] for key in named}
    people = [_person(record) for record in table.people(query, MAX_RESULTS)] if query else []
    return _results("person", "people", people) or NO_PERSON


def _results(singular: str, plural: str, rows: list[Record]) -> str:
    if len(rows) == 1:
        return f"One {singular} found: {_json(rows[0])}"
    return f"{len(rows)} {plural} found: {_json(rows)}" if rows else ""


def _pick(record: Record, names: str) -> Record:
    """Select fields of a record, in this order; ``answer=field`` renames the field in the answer."""
    pairs = (name.rpartition("=") for name in names.split())
    return {answer or field: record[field] for answer, _, field in pairs}


def _named_authors(record: Record) -> list[str]:
    return [author["name"] for author in record["authors"]]


def _person(record: Record) -> Record:
    contact = "affiliation=organization bio edu=education email position"
    return {
        **_pick(record, "id name"),
        "contact": _pick(record, contact),
        **_pick(record, "gender gindex hindex ncitation npubs language"),
        "interests": record["interests"][:10],
    }


def _search_publication(table: ScholarTable, arguments: Mapping[str, str]) -> str:
    papers = [
        {
            **_pick(record, "id title year"),
            "authors": _named_authors(record),
            **_pick(record, "venue pubAbstract=abstract ncitation"),
        }
        for record in table.papers(arguments["publication_info"], MAX_RESULTS)
    ]
    return _results("publication", "publications", papers) or NO_PUBLICATION


def _coauthors(table: ScholarTable, person: Record) -> str:
    rows = [
        {"person_id": other, "name": name, "relation": relation}
        for other, name, relation in table.find_coauthors(person["row"], MOST_COAUTHORS)
    ]
    return _json(rows) if rows else "No coauthors found"


def _publications(table: ScholarTable, person: Record) -> str:
    fields = "pub_id=id title num_citation=ncitation year"
    rows = [
        {**_pick(record, fields), "authors_name_list": _named_authors(record)}
        for record in table.publications_by(person["row"], MAX_RESULTS)
    ]
    return _json(rows) if rows else "No publication found"


def _interests(table: ScholarTable, person: Record) -> str:
    return _json(person["interests"]) if person["interests"] else "No interest found"


def _publication(table: ScholarTable, arguments: Mapping[str, str]) -> str:
    record = table.publication(arguments["publication_id"])
    if record is None:
        return NO_PUBLICATION
    authors = [_pick(author, "person_id=id name") for author in record["authors"]]
    values = {**_pick(record, "abstract"), "author_list": authors}
    return _json({**values, **_pick(record, "num_citation=ncitation")})


def _basic_info(table: ScholarTable, person: Record) -> str:
    fields = (
        "person_id=id name gender organization position bio education_experience=education email"
    )
    return _json(_pick(person, fields))


_CALLS: Mapping[str, Callable[[ScholarTable, Mapping[str, str]], str]] = {
    "searchPerson": _search_person,
    "searchPublication": _search_publication,
    "getPublication": _publication,
}
_CALLS_BY_PERSON: Mapping[str, Callable[[ScholarTable, Record], str]] = {
    "getCoauthors": _coauthors,
    "getPersonPubs": _publications,
    "getPersonInterest": _interests,
    "getPersonBasicInfo": _basic_info,
}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
