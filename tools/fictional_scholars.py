"""Fictional scholars and publications, consistent with each other and equal for a seed on every machine.

    python -m tools.fictional_scholars FOLDER [SCHOLARS] [SEED]     # files for an import; the defaults are the starter's

Citations, h-index, g-index and relations are counted from the publications.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import string
import sys
import unicodedata
from collections import defaultdict
from pathlib import Path
from typing import Any

from rallebench.core.files import writing
from rallebench.environments.scholars.building import g_index, h_index
from tools._fiction import (
    ADJECTIVES,
    FIELDS,
    KINDS,
    NAMES,
    NOUNS,
    PATTERNS,
    PLACES,
    POSITIONS,
    VENUES,
    YEARS_IN,
)

SCHOLARS, SEED = 172, 42
MOST_PAPERS = 10
"""Of a scholar: as many as one call lists, so that all of them can be found."""

NOW = 2024
NAMESAKES = 6
"""Pairs who share a name at two organizations, on purpose; of a FEW scholars all other names are distinct."""
FEW = 400

Row = dict[str, Any]


def fictional(scholars: int = SCHOLARS, seed: int = SEED) -> dict[str, list[Row]]:
    """``scholars``, ``publications`` and ``coauthors`` in the columns of an import.

    About three publications a scholar. No name occurs twice at one organization.
    """
    rng = random.Random(seed)
    people = _people(rng, scholars)
    papers = _papers(rng, people)
    _counted(people, papers)
    for person in people:
        _described(rng, person)
    together = _relations(people, papers)
    hidden = ("field", "since", "papers", "woman")
    rows = [{key: value for key, value in person.items() if key not in hidden} for person in people]
    return {"scholars": rows, "publications": papers, "coauthors": together}


def _people(rng: random.Random, count: int) -> list[Row]:
    places = max(1, min(len(PLACES) * len(KINDS), count // 8))
    offices = [
        KINDS[(n + n // len(PLACES)) % len(KINDS)].format(PLACES[n % len(PLACES)].replace("-", " "))
        for n in range(places)
    ]
    positions = [name for name, share in POSITIONS for _ in range(math.ceil(share * count / 100))]
    rng.shuffle(positions)
    people: list[Row] = []
    pairs: set[tuple[str, str]] = set()
    names: set[str] = set()
    while len(people) < count:
        number = len(people)
        language, men, women, families = NAMES[rng.randrange(len(NAMES))]
        woman = rng.random() < 0.5
        middle = f"{rng.choice(string.ascii_uppercase)}. " if count > FEW else ""
        name = f"{rng.choice((women if woman else men).split())} {middle}{rng.choice(families.split())}"
        organization = rng.choice(offices)
        twin = number % 2 == 1 and number < 2 * NAMESAKES
        if twin:
            name, language, woman = people[-1]["name"], people[-1]["language"], people[-1]["woman"]
        if (name, organization) in pairs or (name in names and not twin and count <= FEW):
            continue
        pairs.add((name, organization))
        names.add(name)
        field = rng.randrange(len(FIELDS))
        topics = FIELDS[field][1].split(", ")
        interests = rng.sample(topics, rng.randint(2, 4))
        if rng.random() < 0.4:
            interests.append(rng.choice(FIELDS[rng.randrange(len(FIELDS))][1].split(", ")))
        position = positions[number % len(positions)]
        people.append(
            {
                "id": _id("scholar", number),
                "name": name,
                "gender": "female" if woman else "male",
                "language": language,
                "organization": organization,
                "position": position,
                "interests": list(dict.fromkeys(interests)),
                "field": field,
                "since": NOW - rng.randint(*YEARS_IN[position]),
                "papers": 0,
                "woman": woman,
            }
        )
    return people


def _papers(rng: random.Random, people: list[Row]) -> list[Row]:
    """Every scholar has one at least; those who publish longer have more."""
    near: dict[int, list[Row]] = defaultdict(list)
    offices: dict[str, list[Row]] = defaultdict(list)
    for person in people:
        near[person["field"]].append(person)
        offices[person["organization"]].append(person)
    papers: list[Row] = []
    titles: set[str] = set()
    for person in people:
        mates, own = near[person["field"]], offices[person["organization"]]
        for number in range(1 + min(7, int(rng.expovariate(1.0) * (NOW - person["since"]) / 6))):
            if number and person["papers"] >= MOST_PAPERS:
                break
            authors = [person]
            for _ in range(min(4, int(rng.expovariate(0.6)))):
                other = rng.choice(
                    own if rng.random() < 0.35 else mates if rng.random() < 0.9 else people
                )
                if other not in authors and other["papers"] < MOST_PAPERS - 1:
                    authors.append(other)
            for author in authors:
                author["papers"] += 1
            rng.shuffle(authors)
            year = rng.randint(max(author["since"] for author in authors), NOW)
            topic = rng.choice(person["interests"])
            title = _title(rng, topic, titles)
            cited = int(rng.lognormvariate(1.0 + 0.75 * math.log1p(NOW - year), 0.9))
            field = FIELDS[person["field"]][0]
            papers.append(
                {
                    "id": _id("publication", len(papers)),
                    "title": title,
                    "year": year,
                    "venue": rng.choice(VENUES).format(_cased(field)),
                    "ncitation": cited,
                    "authors": [{"id": author["id"], "name": author["name"]} for author in authors],
                    "abstract": _abstract(rng, topic, field),
                }
            )
    return papers


def _title(rng: random.Random, topic: str, titles: set[str]) -> str:
    while True:
        title = rng.choice(PATTERNS).format(
            adjective=rng.choice(ADJECTIVES), noun=rng.choice(NOUNS), topic=_cased(topic)
        )
        if len(titles) > 5000:
            title += f", Part {rng.randrange(2, 10_000)}"
        if title not in titles:
            titles.add(title)
            return title


def _abstract(rng: random.Random, topic: str, field: str) -> str:
    first = rng.choice(
        ("We study", "This paper revisits", "We propose a new view of", "Little is known about")
    )
    second = rng.choice(
        (
            f"On {rng.randint(3, 40)} data sets our method needs {rng.randint(12, 88)} percent of the time of the best known one.",
            f"We give bounds that are tight up to a factor of {rng.randint(2, 9)} and confirm them in experiments.",
            f"A study with {rng.randint(20, 900)} participants shows where current practice in {field} fails.",
        )
    )
    return f"{first} {topic}. {second} (A fictional publication.)"


def _counted(people: list[Row], papers: list[Row]) -> None:
    cited: dict[str, list[int]] = defaultdict(list)
    for paper in papers:
        for author in paper["authors"]:
            cited[author["id"]].append(paper["ncitation"])
    for person in people:
        counts = sorted(cited[person["id"]], reverse=True)
        person |= {
            "npubs": len(counts),
            "ncitation": sum(counts),
            "hindex": h_index(counts),
            "gindex": g_index(counts),
        }


def _described(rng: random.Random, person: Row) -> None:
    place = rng.choice(PLACES).replace("-", " ")
    pronoun = "She" if person["woman"] else "He"
    field, since = FIELDS[person["field"]][0], person["since"]
    person["bio"] = (
        f"{person['name']} is a fictional scholar at the {person['organization']} who works on {field}, "
        f"above all on {person['interests'][0]}. {pronoun} has published since {since}."
    )
    degree = (
        "M.Sc." if person["position"] in ("Ph.D", "Engineer", "Assistant Researcher") else "Ph.D."
    )
    person["education"] = f"{degree} in {field}, University of {place}, {since - rng.randint(0, 1)}"
    plain = (
        unicodedata.normalize("NFKD", person["name"].lower())
        .replace("ł", "l")
        .replace("ß", "ss")
        .replace("œ", "oe")
        .replace("ı", "i")
    )
    local = "".join(c for c in plain if (c.isalpha() and c.isascii()) or c in " -").replace(
        " ", "."
    )
    office = "".join(c for c in person["organization"].lower() if c.isalnum())
    person["email"] = f"{local}@{office}.example"


def _relations(people: list[Row], papers: list[Row]) -> list[Row]:
    """Both ways. At one organization a professor is the advisor of who began ten years later, and others are colleagues."""
    known = {person["id"]: person for person in people}
    pairs = {
        (first["id"], second["id"])
        for paper in papers
        for first in paper["authors"]
        for second in paper["authors"]
        if first["id"] != second["id"]
    }
    rows = []
    for first, second in sorted(pairs):
        a, b = known[first], known[second]
        relation = "coauthor"
        if a["organization"] == b["organization"]:
            relation = "advisor" if _advises(b, a) else "advisee" if _advises(a, b) else "colleague"
        rows.append({"person_id": first, "coauthor_id": second, "relation": relation})
    return rows


def _advises(senior: Row, junior: Row) -> bool:
    return (
        senior["position"] in ("Professor", "Associate Professor")
        and senior["since"] + 10 <= junior["since"]
    )


def _cased(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in text.split())


def _id(kind: str, number: int) -> str:
    """24 hex digits, as AMiner's."""
    return hashlib.sha256(f"fictional {kind} {number}".encode()).hexdigest()[:24]


def write_fictional(folder: Path, scholars: int = SCHOLARS, seed: int = SEED) -> dict[str, int]:
    """Write ``scholars.jsonl``, ``publications.jsonl``, ``coauthors.jsonl``; kind → rows. Raises BackendError if the disk is full."""
    tables = fictional(scholars, seed)
    for kind, rows in tables.items():
        with writing(folder / f"{kind}.jsonl") as handle:
            for row in rows:
                handle.write(
                    (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
                )
    return {kind: len(rows) for kind, rows in tables.items()}


if __name__ == "__main__":
    words = sys.argv[1:]
    print(write_fictional(Path(words[0]), *map(int, words[1:3])))
