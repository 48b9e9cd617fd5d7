"""A scholar table in one SQLite file, searched exactly by id and fuzzily by words; read only.

Rows are numbered by citations, the most cited first, so a search for common words stops at the first matches. An
unknown word is replaced by words with similar spelling.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.environments.scholars.words import MAX_WORDS, STOP_WORDS, cuts, near, words

FORMAT = "rallebench-scholars/1"
MAX_NEAR = 12
"""Maximum number of words that replace an unknown word."""

Record = dict[str, Any]


class ScholarTable:
    """A read-only, thread-safe scholar table. ``fingerprint`` changes with the rows."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BadFileError(f"{path} does not exist.")
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            # mapped and cached in memory: a search by title reads some 60 pages of the word index
            self._db.executescript(f"PRAGMA mmap_size={2**30}; PRAGMA cache_size=-65536;")
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        except sqlite3.Error as error:
            raise BadFileError(
                f"{path} is not a scholar table ({error}); import the scholars again."
            ) from None
        if meta.get("format") != FORMAT:
            raise BadFileError(
                f"{path} is a scholar table of another version; import the scholars again."
            )
        self.path, self.fingerprint = path, str(meta["sha256"])
        self.scholars, self.publications = int(meta["scholars"]), int(meta["publications"])

    def close(self) -> None:
        with self._lock:
            self._db.close()

    # exact

    def person(self, person_id: str) -> Record | None:
        """Return the record of a scholar with its ``row`` in the table; None for an unknown id."""
        rows = self._rows("SELECT row, record FROM person WHERE id = ?", (person_id.strip(),))
        return {**json.loads(rows[0][1]), "row": rows[0][0]} if rows else None

    def publication(self, publication_id: str) -> Record | None:
        """Return the record of a publication; None for an unknown id."""
        rows = self._rows("SELECT record FROM publication WHERE id = ?", (publication_id.strip(),))
        return json.loads(rows[0][0]) if rows else None

    def publications_by(self, row: int, most: int) -> list[Record]:
        """Return the most cited publications of a scholar, by the scholar's row."""
        query = (
            "SELECT publication.record FROM authored JOIN publication ON publication.row = authored.publication "
            "WHERE authored.person = ? ORDER BY authored.publication LIMIT ?"
        )
        return [json.loads(record) for (record,) in self._rows(query, (row, most))]

    def find_coauthors(self, row: int, most: int) -> list[tuple[str, str, str]]:
        """Return (id, name, relation) of a scholar's coauthors, sorted by joint publications, most first."""
        query = "SELECT id, name, relation FROM coauthor WHERE person = ? ORDER BY rank LIMIT ?"
        return [(str(a), str(b), str(c)) for a, b, c in self._rows(query, (row, most))]

    # all

    def rows(self, kind: str) -> Iterator[Record]:
        """Yield all rows of ``scholars``, ``publications`` or ``coauthors``, the most cited first."""
        if kind == "coauthors":
            query = "SELECT person.id, coauthor.id, relation FROM coauthor JOIN person ON person.row = coauthor.person ORDER BY person, rank"
            names = ("person_id", "coauthor_id", "relation")
            yield from (dict(zip(names, row)) for row in self._rows(query, ()))
            return
        table = "person" if kind == "scholars" else "publication"
        for (record,) in self._rows(f"SELECT record FROM {table} ORDER BY row", ()):
            yield json.loads(record)

    # fuzzy

    def people(self, query: Mapping[str, str], most: int) -> list[Record]:
        """Return the most cited scholars for any of ``name``, ``organization`` and ``interests``."""
        return self._search(
            "person", {key: words(text, MAX_WORDS) for key, text in query.items()}, most
        )

    def papers(self, info: str, most: int) -> list[Record]:
        """Return the most cited publications with these words in the title, else in title, authors and venue."""
        title_words = words(info, MAX_WORDS)
        return self._search("publication", {"title": title_words}, most) or self._search(
            "publication", {"": title_words}, most
        )

    def _search(self, table: str, queries: Mapping[str, Sequence[str]], most: int) -> list[Record]:
        columns = {
            column: [word for word in terms if word not in STOP_WORDS] or list(terms)
            for column, terms in queries.items()
        }
        if not all(columns.values()) or not columns:
            return []
        exact = {
            column: [[_term(word, column)] for word in terms] for column, terms in columns.items()
        }
        whole = [column for column in ("interests", "title") if column in exact]
        phrases: dict[str, list[list[str]]] = {
            column: [[f'"{" ".join(queries[column])}"']] for column in whole
        }
        as_phrases = {**exact, **phrases}
        records = self._matching(table, as_phrases, most) or self._matching(table, exact, most)
        if records:
            return records
        loose: dict[str, list[list[str]]] = {}
        for column, terms in columns.items():
            groups = [self._similar_terms(table, word, column) for word in terms]
            known = [group for group in groups if group]
            # all words of a name must match; elsewhere 60 percent are enough
            if len(known) < (len(groups) if column == "name" else max(1, 0.6 * len(groups))):
                return []
            loose[column] = known
        return self._matching(table, loose, most)

    def _matching(
        self, table: str, columns: Mapping[str, list[list[str]]], most: int
    ) -> list[Record]:
        """Return matching rows: column ('' is any) → groups of terms. One term of each group must match."""
        parts = []
        for column, groups in columns.items():
            fits = " AND ".join("(" + " OR ".join(group) + ")" for group in groups)
            parts.append(f"{{{column}}} : ({fits})" if column else f"({fits})")
        query = (
            f"SELECT record FROM {table} WHERE row IN "
            f"(SELECT rowid FROM {table}_words WHERE {table}_words MATCH ? ORDER BY rowid LIMIT ?) ORDER BY row"
        )
        return [json.loads(record) for (record,) in self._rows(query, (" AND ".join(parts), most))]

    def _similar_terms(self, table: str, word: str, column: str) -> list[str]:
        """Return terms for the word itself and for similarly spelled words in the table."""
        if len(word) == 1 and column == "name":
            return [_term(word, column)]
        shortened = sorted(cuts(word))
        query = f"SELECT DISTINCT word FROM {table}_spelling WHERE cut IN ({','.join('?' * len(shortened))}) LIMIT 200"
        similar = [
            str(other) for (other,) in self._rows(query, shortened) if near(word, str(other))
        ]
        best = [other for other in similar if other == word] or sorted(similar)[:MAX_NEAR]
        if best == [word] and len(word) > 3:
            best = [word, *sorted(other for other in similar if other != word)][:MAX_NEAR]
        return [f'"{other}"' for other in best] or ([f'"{word}"'] if " " in word else [])

    def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()


def _term(word: str, column: str) -> str:
    """Return a word as an FTS5 term; a single letter of a name is an initial."""
    return f'"{word}"*' if column == "name" and len(word) == 1 and word.isascii() else f'"{word}"'
