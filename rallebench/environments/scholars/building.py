"""Import of a scholar table into an SQLite file, written atomically.

Missing figures are computed: a scholar's publications, citations, h-index (Hirsch 2005) and g-index (Egghe 2006) from
the publications of the table, and coauthors from common publications.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import disk_error
from rallebench.core.parts import beside, move_in
from rallebench.core.sources import Problem, Problems
from rallebench.environments.scholars.reading import Tables, open_tables
from rallebench.environments.scholars.table import FORMAT
from rallebench.environments.scholars.words import cuts, words

MOST_AUTHORS = 100
"""Coauthors are not derived from a publication with more authors."""

COAUTHOR = "coauthor"


@dataclass(frozen=True, slots=True)
class ImportedScholars:
    """An imported table: rows of each kind, skipped rows, and the first 20 problems."""

    name: str
    path: Path
    scholars: int
    publications: int
    coauthors: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()


_STAGING = """
CREATE TABLE staging.s (id TEXT PRIMARY KEY, ncitation INTEGER, record TEXT) WITHOUT ROWID;
CREATE TABLE staging.p (id TEXT PRIMARY KEY, ncitation INTEGER, record TEXT) WITHOUT ROWID;
CREATE TABLE staging.a (
  scholar TEXT, publication TEXT, ncitation INTEGER, authors INTEGER, PRIMARY KEY (scholar, publication)
) WITHOUT ROWID;
CREATE INDEX staging.by_publication ON a (publication, scholar, authors);
CREATE TABLE staging.c (scholar TEXT, other TEXT, relation TEXT, PRIMARY KEY (scholar, other)) WITHOUT ROWID;
"""
"""Scholars, publications, authorships and coauthors in any order; the final tables are numbered by citations."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE person (row INTEGER PRIMARY KEY, id TEXT UNIQUE, record TEXT);
CREATE TABLE publication (row INTEGER PRIMARY KEY, id TEXT UNIQUE, record TEXT);
CREATE TABLE authored (person INTEGER, publication INTEGER, PRIMARY KEY (person, publication)) WITHOUT ROWID;
CREATE TABLE coauthor (person INTEGER, rank INTEGER, id TEXT, name TEXT, relation TEXT, PRIMARY KEY (person, rank)) WITHOUT ROWID;
CREATE VIRTUAL TABLE person_words USING fts5(name, organization, interests, content='', detail=full, prefix='1', tokenize="unicode61 remove_diacritics 0");
CREATE VIRTUAL TABLE publication_words USING fts5(title, more, content='', detail=full, tokenize="unicode61 remove_diacritics 0");
CREATE TABLE person_spelling (cut TEXT, word TEXT, PRIMARY KEY (cut, word)) WITHOUT ROWID;
CREATE TABLE publication_spelling (cut TEXT, word TEXT, PRIMARY KEY (cut, word)) WITHOUT ROWID;
"""

_DERIVED = """
INSERT INTO c SELECT DISTINCT one.scholar, two.scholar, ? FROM a one JOIN a two ON two.publication = one.publication
JOIN s ON s.id = one.scholar JOIN s other ON other.id = two.scholar
WHERE one.scholar != two.scholar AND one.authors <= ?
"""
"""Coauthors from common publications."""

_FILL = """
INSERT INTO publication (id, record) SELECT id, record FROM p ORDER BY ncitation DESC, id;
INSERT INTO person (id, record) SELECT id, record FROM s ORDER BY ncitation DESC, id;
INSERT INTO authored SELECT person.row, publication.row FROM a
  JOIN person ON person.id = a.scholar JOIN publication ON publication.id = a.publication;
INSERT INTO coauthor
  SELECT person, row_number() OVER (PARTITION BY person ORDER BY common DESC, other), other, name, relation FROM (
    SELECT person.row AS person, c.other, json_extract(s.record, '$.name') AS name, c.relation,
      (SELECT count(*) FROM a one JOIN a two ON two.publication = one.publication AND two.scholar = c.other
       WHERE one.scholar = c.scholar) AS common
    FROM c JOIN person ON person.id = c.scholar JOIN s ON s.id = c.other);
"""
"""The most cited first; coauthors are sorted by common publications, most first."""


def build_table(target: Path, source: Path, *, skip_bad: bool = False) -> ImportedScholars:
    """Read ``source`` (see ``reading``) into the new file ``target``; a file with the same rows is kept.

    Raises BadFileError for a table without a scholar and, unless ``skip_bad``, for the first bad row; UsageError if
    the file exists with other rows; BackendError if the disk is full.
    """
    problems = Problems(skip=skip_bad, offered=True)
    tables = open_tables(Path(source), problems)
    try:
        with beside(target.parent, target.stem) as half:
            file = half / target.name
            with closing(sqlite3.connect(file)) as db:
                db.execute("ATTACH ? AS staging", (str(half / "staging.sqlite"),))
                for schema in ("main", "staging"):
                    db.executescript(
                        f"PRAGMA {schema}.journal_mode=OFF; PRAGMA {schema}.synchronous=OFF; "
                        f"PRAGMA {schema}.cache_size=-65536;"
                    )
                sha = _stage(db, tables, problems)
                counts = _write(db, sha)
            _move_in(file, target, sha)
    except OSError as error:
        raise disk_error(target, error) from error
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            raise BackendError(
                "This Python's SQLite lacks full-text search (FTS5); install one that has it."
            ) from None
        raise BackendError(
            f"Could not write {target}: {error}. No partial file was left behind."
        ) from error
    return ImportedScholars(target.stem, target, *counts, problems.count, tuple(problems.first))


def _move_in(file: Path, target: Path, sha: str) -> None:
    """Rename the file to its target, unless a table with the same rows exists there."""
    if move_in(file, target):
        return
    try:
        with closing(sqlite3.connect(f"{target.resolve().as_uri()}?mode=ro", uri=True)) as db:
            query = "SELECT value FROM meta WHERE name = 'sha256'"
            same = db.execute(query).fetchone() == (sha,)
    except sqlite3.Error:
        same = False
    if not same:
        raise UsageError(
            f"A scholar table {target.stem!r} exists already and holds other rows; choose another name or remove {target}."
        )


def _stage(db: sqlite3.Connection, tables: Tables, problems: Problems) -> str:
    """Put checked rows into the staging file; return the SHA-256 over all rows in order."""
    db.executescript(_STAGING)
    total = hashlib.sha256()

    def put(kind: str, line: int, row: Any, table: str, *values: Any) -> bool:
        text = json.dumps([kind, row], sort_keys=True, ensure_ascii=False)
        total.update(text.encode("utf-8", "surrogatepass") + b"\n")
        if db.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?, ?)", values).rowcount:
            return True
        problems.add(line, f"The {kind}, row {line}, repeat {values[0]!r}; each may occur once.")
        return False

    for line, row in tables["scholars"]:
        put("scholars", line, row, "s", row["id"], row["ncitation"], _dump(row))
    if not db.execute("SELECT 1 FROM s LIMIT 1").fetchone():
        raise BadFileError("The table holds no scholar.")
    rows = db.execute("SELECT id, record FROM s")
    names = {str(scholar): json.loads(record)["name"] for scholar, record in rows}
    for line, row in tables.get("publications", ()):
        row = {**row, "ncitation": row["ncitation"] or 0}
        row["authors"] = authors = [_author(author, names) for author in row["authors"]]
        if put("publications", line, row, "p", row["id"], row["ncitation"], _dump(row)):
            ids = sorted({author["id"] for author in authors if author["id"]})
            values = [(scholar, row["id"], row["ncitation"], len(authors)) for scholar in ids]
            db.executemany("INSERT OR IGNORE INTO a VALUES (?, ?, ?, ?)", values)
    for line, row in tables.get("coauthors", ()):
        person, other = row["person_id"], row["coauthor_id"]
        if person not in names or other not in names:
            problems.add(
                line, f"The coauthors, row {line}, name a scholar who is not in the table."
            )
        else:
            put("coauthors", line, row, "c", person, other, row["relation"] or COAUTHOR)
    if "coauthors" not in tables:
        db.execute(_DERIVED, (COAUTHOR, MOST_AUTHORS))
    _count(db)
    db.commit()
    return total.hexdigest()


def _author(author: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    """Complete an author with the name from the table; a text that is not an id counts as a name."""
    if author["id"] in names:
        return {"id": author["id"], "name": author["name"] or names[author["id"]]}
    return {"id": author["id"] if author["name"] else "", "name": author["name"] or author["id"]}


def _count(db: sqlite3.Connection) -> None:
    """Add the missing figures of each scholar."""
    for scholar, record in db.execute("SELECT id, record FROM s").fetchall():
        query = "SELECT ncitation FROM a WHERE scholar = ? ORDER BY ncitation DESC"
        cited = [citations for (citations,) in db.execute(query, (scholar,))]
        figures = {"npubs": len(cited), "ncitation": sum(cited)}
        figures |= {"hindex": h_index(cited), "gindex": g_index(cited)}
        row = json.loads(record)
        row |= {name: value for name, value in figures.items() if row[name] is None}
        values = (row["ncitation"], _dump(row), scholar)
        db.execute("UPDATE s SET ncitation = ?, record = ? WHERE id = ?", values)


def h_index(cited: Sequence[int]) -> int:
    """Return the largest h so that h publications have at least h citations each; ``cited``: sorted, descending.

    >>> h_index([10, 8, 5, 4, 3])
    4
    """
    return sum(count >= rank for rank, count in enumerate(cited, 1))


def g_index(cited: Sequence[int]) -> int:
    """Return the largest g, at most the number of publications, so that the first g have g² citations together.

    >>> g_index([10, 8, 5, 4, 3])
    5
    """
    best = total = 0
    for rank, count in enumerate(cited, 1):
        total += count
        best = rank if total >= rank * rank else best
    return best


def _write(db: sqlite3.Connection, sha: str) -> tuple[int, int, int]:
    """Fill the tables from the staged rows; return the numbers of scholars, publications and coauthors."""
    db.executescript(_TABLES + _FILL)
    _index(db, "publication", "title, more", lambda row: (row["title"], " ".join(_more_texts(row))))
    _index(db, "person", "name, organization, interests", _person_texts)
    people, papers, coauthors = (
        int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for table in ("person", "publication", "coauthor")
    )
    counts = {"scholars": people, "publications": papers, "coauthors": coauthors}
    meta = {"format": FORMAT, "sha256": sha, **{name: str(n) for name, n in counts.items()}}
    db.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
    db.commit()
    return people, papers, coauthors


def _person_texts(row: dict[str, Any]) -> tuple[str, ...]:
    return row["name"], row["organization"], " ".join(row["interests"])


def _more_texts(row: dict[str, Any]) -> list[str]:
    return [row["venue"], *(author["name"] for author in row["authors"])]


def _index(
    db: sqlite3.Connection,
    table: str,
    columns: str,
    texts_of: Callable[[dict[str, Any]], Sequence[str]],
) -> None:
    vocabulary: set[str] = set()
    marks = ", ".join("?" * (1 + len(columns.split(","))))
    for row, record in db.execute(f"SELECT row, record FROM {table} ORDER BY row"):
        parts = [words(text) for text in texts_of(json.loads(record))]
        values = (row, *map(" ".join, parts))
        db.execute(f"INSERT INTO {table}_words (rowid, {columns}) VALUES ({marks})", values)
        vocabulary.update(word for part in parts for word in part if " " not in word)
    pairs = ((cut, word) for word in sorted(vocabulary) for cut in cuts(word))
    db.executemany(f"INSERT OR IGNORE INTO {table}_spelling VALUES (?, ?)", pairs)
    db.execute(f"INSERT INTO {table}_words({table}_words) VALUES ('optimize')")


def _dump(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False)
