"""A scholar table in one SQLite file, searched exactly by id and loosely by words; read only.

Rows are numbered by citations, the most cited first, so that the first rows that match are the ones asked for and a
search for common words stops early. A word that nobody has is replaced by those that are spelled nearly so.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.core.errors import BadFileError
from rallebench.core.types import Reply
from rallebench.environments._scholar.apis import answer
from rallebench.environments._scholar.words import MAX_WORDS, STOP_WORDS, cuts, near, words

FORMAT = "rallebench-scholars/1"
MAX_NEAR = 12
"""Words that may stand in for one that nobody has."""

Record = dict[str, Any]


class ScholarTable:
    """See the module. Safe for several threads. ``fingerprint``: changes with the rows."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BadFileError(f"{path} does not exist.")
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
            )
            meta = dict(self._db.execute("SELECT name, value FROM meta"))
        except sqlite3.Error as error:
            raise BadFileError(
                f"{path} is no scholar table ({error}); fill it again with 'rallebench import --kind scholars'."
            ) from None
        if meta.get("format") != FORMAT:
            raise BadFileError(
                f"{path} is a scholar table of another version; fill it again with 'rallebench import'."
            )
        self.path, self.fingerprint = path, str(meta["sha256"])
        self.scholars, self.publications = int(meta["scholars"]), int(meta["publications"])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def use(self, arguments: Mapping[str, str]) -> Reply:
        """Answer a call: ``api`` names it, the rest are its arguments. Whatever fails is a sentence, never an exception."""
        given = dict(arguments)
        return Reply(answer(self, given.pop("api", ""), given))

    # exact

    def person(self, person_id: str) -> Record | None:
        """The scholar with that id."""
        found = self._rows("SELECT row, record FROM person WHERE id = ?", (person_id.strip(),))
        return {**json.loads(found[0][1]), "row": found[0][0]} if found else None

    def publication(self, publication_id: str) -> Record | None:
        """The publication with that id."""
        found = self._rows("SELECT record FROM publication WHERE id = ?", (publication_id.strip(),))
        return json.loads(found[0][0]) if found else None

    def publications_of(self, row: int, most: int) -> list[Record]:
        """The most cited publications of a scholar, by the scholar's row."""
        query = (
            "SELECT publication.record FROM authored JOIN publication ON publication.row = authored.publication "
            "WHERE authored.person = ? ORDER BY authored.publication LIMIT ?"
        )
        return [json.loads(record) for (record,) in self._rows(query, (row, most))]

    def coauthors_of(self, row: int, most: int) -> list[tuple[str, str, str]]:
        """(id, name, relation) of a scholar's coauthors, those with the most joint publications first."""
        query = "SELECT id, name, relation FROM coauthor WHERE person = ? ORDER BY rank LIMIT ?"
        return [(str(a), str(b), str(c)) for a, b, c in self._rows(query, (row, most))]

    # all

    def rows(self, kind: str) -> Iterator[Record]:
        """Every row of ``scholars``, ``publications`` or ``coauthors``, the most cited first; read at once."""
        if kind == "coauthors":
            query = "SELECT person.id, coauthor.id, relation FROM coauthor JOIN person ON person.row = coauthor.person ORDER BY person, rank"
            names = ("person_id", "coauthor_id", "relation")
            yield from (dict(zip(names, found)) for found in self._rows(query, ()))
            return
        table = "person" if kind == "scholars" else "publication"
        for (record,) in self._rows(f"SELECT record FROM {table} ORDER BY row", ()):
            yield json.loads(record)

    # loose

    def people(self, wanted: Mapping[str, str], most: int) -> list[Record]:
        """The most cited scholars who fit ``name``, ``organization`` and ``interests``, each given or not."""
        return self._search(
            "person", {key: words(text, MAX_WORDS) for key, text in wanted.items()}, most
        )

    def papers(self, info: str, most: int) -> list[Record]:
        """The most cited publications whose title holds these words; else title, authors and venue together."""
        asked = words(info, MAX_WORDS)
        return self._search("publication", {"title": asked}, most) or self._search(
            "publication", {"": asked}, most
        )

    def _search(self, table: str, asked: Mapping[str, Sequence[str]], most: int) -> list[Record]:
        kept = {column: _without_stop_words(some) for column, some in asked.items()}
        if not all(kept.values()) or not kept:
            return []
        exact = {column: [[_term(word, column)] for word in some] for column, some in kept.items()}
        as_phrases = {
            column: [['"' + " ".join(asked[column]) + '"']]
            if column in ("interests", "title")
            else groups
            for column, groups in exact.items()
        }
        found = self._matching(table, as_phrases, most) or self._matching(table, exact, most)
        if found:
            return found
        loose: dict[str, list[list[str]]] = {}
        for column, some in kept.items():
            groups = [self._spelled(table, word, column) for word in some]
            known = [group for group in groups if group]
            # A name must fit whole; of anything else a word that the table does not have at all may be too many.
            if len(known) < (len(groups) if column == "name" else max(1, 0.6 * len(groups))):
                return []
            loose[column] = known
        return self._matching(table, loose, most)

    def _matching(
        self, table: str, asked: Mapping[str, list[list[str]]], most: int
    ) -> list[Record]:
        """``asked``: column ('' is any) → groups of terms; every group needs one of its terms."""
        parts = []
        for column, groups in asked.items():
            fits = " AND ".join("(" + " OR ".join(group) + ")" for group in groups)
            parts.append(f"{{{column}}} : ({fits})" if column else f"({fits})")
        query = (
            f"SELECT record FROM {table} WHERE row IN "
            f"(SELECT rowid FROM {table}_words WHERE {table}_words MATCH ? ORDER BY rowid LIMIT ?) ORDER BY row"
        )
        return [json.loads(record) for (record,) in self._rows(query, (" AND ".join(parts), most))]

    def _spelled(self, table: str, word: str, column: str) -> list[str]:
        """Terms for the words of the table that are this one, or nearly so."""
        if len(word) == 1 and column == "name":
            return [_term(word, column)]
        asked = sorted(cuts(word))
        query = f"SELECT DISTINCT word FROM {table}_spelling WHERE cut IN ({','.join('?' * len(asked))}) LIMIT 200"
        found = [str(one) for (one,) in self._rows(query, asked) if near(word, str(one))]
        best = [one for one in found if one == word] or sorted(found)[:MAX_NEAR]
        if best == [word] and len(word) > 3:
            best = [word, *sorted(one for one in found if one != word)][:MAX_NEAR]
        return [f'"{one}"' for one in best] or ([f'"{word}"'] if " " in word else [])

    def _rows(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(query, tuple(values)).fetchall()


def _term(word: str, column: str) -> str:
    """A word as FTS5 takes it; one letter of a name is an initial."""
    return f'"{word}"*' if column == "name" and len(word) == 1 and word.isascii() else f'"{word}"'


def _without_stop_words(some: Sequence[str]) -> list[str]:
    return [word for word in some if word not in STOP_WORDS] or list(some)
