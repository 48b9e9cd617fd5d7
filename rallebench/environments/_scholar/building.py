"""Import of a scholar table into an SQLite file, which appears whole or not at all.

Missing figures are counted: a scholar's publications, citations, h-index (Hirsch 2005) and g-index (Egghe 2006) from
the publications of the table, and coauthors from common publications.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import disk_error
from rallebench.core.folders import beside
from rallebench.core.sources import Problem, Problems
from rallebench.environments._scholar.reading import open_tables
from rallebench.environments._scholar.table import FORMAT
from rallebench.environments._scholar.words import cuts, words

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
CREATE TABLE s (id TEXT PRIMARY KEY, ncitation INTEGER, record TEXT) WITHOUT ROWID;
CREATE TABLE p (id TEXT PRIMARY KEY, ncitation INTEGER, record TEXT) WITHOUT ROWID;
CREATE TABLE a (
  scholar TEXT, publication TEXT, ncitation INTEGER, authors INTEGER, PRIMARY KEY (scholar, publication)
) WITHOUT ROWID;
CREATE INDEX by_publication ON a (publication, scholar, authors);
CREATE TABLE c (scholar TEXT, other TEXT, relation TEXT, PRIMARY KEY (scholar, other)) WITHOUT ROWID;
"""
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


def build_table(target: Path, source: Path, *, skip_bad: bool = False) -> ImportedScholars:
    """Read ``source`` (see ``reading``) into the new file ``target``; a file with the same rows stays.

    Raises BadFileError for a table without a scholar and, unless ``skip_bad``, for the first bad row; UsageError if
    the file exists with other rows; BackendError if the disk is full.
    """
    tables = open_tables(Path(source), skip_bad=skip_bad)
    try:
        with beside(target.parent, target.stem) as half:
            file = half / target.name
            with (
                closing(sqlite3.connect(half / "staging.sqlite")) as staging,
                closing(sqlite3.connect(file)) as db,
            ):
                for connection in (staging, db):
                    connection.executescript(
                        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536;"
                    )
                sha, problems = _stage(staging, tables)
                counts = _write(db, staging, sha)
            _move(file, target, sha)
    except OSError as error:
        raise disk_error(target, error) from error
    except sqlite3.OperationalError as error:
        if "no such module" in str(error):
            raise BackendError(
                "This Python's SQLite lacks full-text search (FTS5); install one that has it."
            ) from None
        raise BackendError(
            f"Could not write {target}: {error}. Nothing was left half-written."
        ) from error
    return ImportedScholars(target.stem, target, *counts, problems.count, tuple(problems.first))


def _move(file: Path, target: Path, sha: str) -> None:
    if target.exists():
        try:
            with closing(sqlite3.connect(f"{target.resolve().as_uri()}?mode=ro", uri=True)) as db:
                same = db.execute("SELECT value FROM meta WHERE name = 'sha256'").fetchone() == (
                    sha,
                )
        except sqlite3.Error:
            same = False
        if not same:
            raise UsageError(
                f"A scholar table {target.stem!r} exists already and holds other rows; choose another name or remove {target}."
            )
        return
    os.replace(file, target)


def _stage(db: sqlite3.Connection, tables: Any) -> tuple[str, Problems]:
    """Put checked rows into the staging file; (sha256 over all rows in order, the problems)."""
    db.executescript(_STAGING)
    total = hashlib.sha256()
    problems: Problems = tables.problems

    def put(kind: str, line: int, query: str, values: Sequence[Any], row: Any) -> bool:
        total.update(
            json.dumps([kind, row], sort_keys=True, ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
            + b"\n"
        )
        if db.execute(query, tuple(values)).rowcount:
            return True
        problems.add(line, f"The {kind}, row {line}, repeat {values[0]!r}; each may occur once.")
        return False

    for line, row in tables.rows["scholars"]:
        put(
            "scholars",
            line,
            "INSERT OR IGNORE INTO s VALUES (?, ?, ?)",
            (row["id"], row["ncitation"], _dump(row)),
            row,
        )
    if not db.execute("SELECT 1 FROM s LIMIT 1").fetchone():
        raise BadFileError("The table holds no scholar.")
    names = _names(db)
    for line, row in tables.rows.get("publications", ()):
        row = {**row, "ncitation": row["ncitation"] or 0}
        row["authors"] = [_author(author, names) for author in row["authors"]]
        if put(
            "publications",
            line,
            "INSERT OR IGNORE INTO p VALUES (?, ?, ?)",
            (row["id"], row["ncitation"], _dump(row)),
            row,
        ):
            ids = {author["id"] for author in row["authors"] if author["id"]}
            values = [
                (scholar, row["id"], row["ncitation"], len(row["authors"]))
                for scholar in sorted(ids)
            ]
            db.executemany("INSERT OR IGNORE INTO a VALUES (?, ?, ?, ?)", values)
    for line, row in tables.rows.get("coauthors", ()):
        if row["person_id"] not in names or row["coauthor_id"] not in names:
            problems.add(
                line, f"The coauthors, row {line}, name a scholar who is not in the table."
            )
            continue
        pair = (row["person_id"], row["coauthor_id"], row["relation"] or COAUTHOR)
        put("coauthors", line, "INSERT OR IGNORE INTO c VALUES (?, ?, ?)", pair, row)
    if "coauthors" not in tables.rows:
        _derive(db)
    db.commit()
    return total.hexdigest(), problems


def _names(db: sqlite3.Connection) -> dict[str, str]:
    return {
        str(number): json.loads(record)["name"]
        for number, record in db.execute("SELECT id, record FROM s")
    }


def _author(author: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    """An author with the name from the table; a text that is no id is a name."""
    if author["id"] in names:
        return {"id": author["id"], "name": author["name"] or names[author["id"]]}
    return {"id": author["id"] if author["name"] else "", "name": author["name"] or author["id"]}


def _derive(db: sqlite3.Connection) -> None:
    """Coauthors from common publications."""
    db.execute(
        "INSERT INTO c SELECT DISTINCT one.scholar, two.scholar, ? FROM a one JOIN a two ON two.publication = one.publication "
        "JOIN s ON s.id = one.scholar JOIN s other ON other.id = two.scholar "
        "WHERE one.scholar != two.scholar AND one.authors <= ?",
        (COAUTHOR, MOST_AUTHORS),
    )


def _write(db: sqlite3.Connection, staging: sqlite3.Connection, sha: str) -> tuple[int, int, int]:
    db.executescript(_TABLES)
    vocabularies: dict[str, set[str]] = {"person": set(), "publication": set()}
    db.execute("CREATE TEMP TABLE rows (id TEXT PRIMARY KEY, row INTEGER) WITHOUT ROWID")
    db.execute("CREATE TEMP TABLE staged (row INTEGER PRIMARY KEY, id TEXT, record TEXT)")
    papers = 0
    db.execute("CREATE TEMP TABLE paper_rows (id TEXT PRIMARY KEY, row INTEGER) WITHOUT ROWID")
    for papers, (number, record) in enumerate(
        staging.execute("SELECT id, record FROM p ORDER BY ncitation DESC, id"), 1
    ):
        row = json.loads(record)
        more = " ".join([row["venue"], *(author["name"] for author in row["authors"])])
        db.execute("INSERT INTO publication VALUES (?, ?, ?)", (papers, number, record))
        db.execute("INSERT INTO paper_rows VALUES (?, ?)", (number, papers))
        _index(db, "publication", papers, (row["title"], more), vocabularies)
    people = 0
    for people, row in enumerate(_ranked(staging), 1):
        db.execute("INSERT INTO rows VALUES (?, ?)", (row["id"], people))
        db.execute("INSERT INTO person VALUES (?, ?, ?)", (people, row["id"], _dump(row)))
        _index(
            db,
            "person",
            people,
            (row["name"], row["organization"], " ".join(row["interests"])),
            vocabularies,
        )
        authored = staging.execute("SELECT publication FROM a WHERE scholar = ?", (row["id"],))
        db.executemany(
            "INSERT INTO authored SELECT ?, row FROM paper_rows WHERE id = ?",
            [(people, number) for (number,) in authored],
        )
    coauthors = _write_coauthors(db, staging)
    for table, vocabulary in vocabularies.items():
        pairs = ((cut, word) for word in sorted(vocabulary) for cut in cuts(word))
        db.executemany(f"INSERT OR IGNORE INTO {table}_spelling VALUES (?, ?)", pairs)
        db.execute(f"INSERT INTO {table}_words({table}_words) VALUES ('optimize')")
    meta = {
        "format": FORMAT,
        "sha256": sha,
        "scholars": people,
        "publications": papers,
        "coauthors": coauthors,
    }
    db.executemany(
        "INSERT INTO meta VALUES (?, ?)", [(name, str(value)) for name, value in meta.items()]
    )
    db.commit()
    return people, papers, coauthors


def _ranked(staging: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Scholars with the counted figures, the most cited first."""
    for number, record in staging.execute("SELECT id, record FROM s").fetchall():
        row = json.loads(record)
        cited = [
            n
            for (n,) in staging.execute(
                "SELECT ncitation FROM a WHERE scholar = ? ORDER BY ncitation DESC", (number,)
            )
        ]
        counted = {
            "npubs": len(cited),
            "ncitation": sum(cited),
            "hindex": h_index(cited),
            "gindex": g_index(cited),
        }
        row |= {name: value for name, value in counted.items() if row[name] is None}
        staging.execute(
            "UPDATE s SET ncitation = ?, record = ? WHERE id = ?",
            (row["ncitation"], _dump(row), number),
        )
    for (record,) in staging.execute("SELECT record FROM s ORDER BY ncitation DESC, id"):
        yield json.loads(record)


def h_index(cited: Sequence[int]) -> int:
    """The largest h so that h publications have at least h citations each; ``cited`` is sorted, descending.

    >>> h_index([10, 8, 5, 4, 3])
    4
    """
    return sum(count >= rank for rank, count in enumerate(cited, 1))


def g_index(cited: Sequence[int]) -> int:
    """The largest g, at most the number of publications, so that the first g have g² citations together.

    >>> g_index([10, 8, 5, 4, 3])
    5
    """
    best = total = 0
    for rank, count in enumerate(cited, 1):
        total += count
        best = rank if total >= rank * rank else best
    return best


def _write_coauthors(db: sqlite3.Connection, staging: sqlite3.Connection) -> int:
    """Each scholar's coauthors, those with the most common publications first."""
    count, person, rank = 0, "", 0
    common = (
        "SELECT c.scholar, c.other, c.relation, json_extract(s.record, '$.name'), "
        "(SELECT count(*) FROM a one JOIN a two ON two.publication = one.publication AND two.scholar = c.other "
        "WHERE one.scholar = c.scholar) AS n FROM c JOIN s ON s.id = c.other ORDER BY c.scholar, n DESC, c.other"
    )
    for scholar, other, relation, name, _ in staging.execute(common):
        rank = rank + 1 if scholar == person else 1
        person = scholar
        db.execute(
            "INSERT INTO coauthor SELECT row, ?, ?, ?, ? FROM rows WHERE id = ?",
            (rank, other, name, relation, scholar),
        )
        count += 1
    return count


def _index(
    db: sqlite3.Connection,
    table: str,
    row: int,
    texts: Sequence[str],
    vocabularies: dict[str, set[str]],
) -> None:
    marks = ", ".join("?" * len(texts))
    columns = "name, organization, interests" if table == "person" else "title, more"
    words_of = [words(text) for text in texts]
    db.execute(
        f"INSERT INTO {table}_words (rowid, {columns}) VALUES (?, {marks})",
        (row, *map(" ".join, words_of)),
    )
    vocabularies[table].update(word for part in words_of for word in part if " " not in word)


def _dump(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False)
