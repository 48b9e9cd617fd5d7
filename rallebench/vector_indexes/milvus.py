"""Vectors in Milvus (Wang et al. 2021, doi:10.1145/3448016.3457550): embedded in a file, or on a server or cluster.

A collection holds only the vectors, under their row numbers. As with every kind, the passages stay in the index's own
folder: their text can have any length, is checked by its sha256, and takes no memory on the server.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Generator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import read_object, write_json
from rallebench.core.settings import Setting, dataclass_form, declare
from rallebench.vector_indexes import (
    VECTOR_INDEXES,
    Build,
    Neighbours,
    Progress,
    Vectors,
    complete_settings,
)
from rallebench.vector_indexes import _milvus as server
from rallebench.vector_indexes._milvus import VECTOR, WORK_PATIENCE, Place, readable_errors
from rallebench.vector_indexes.copies import EnteredOnce
from rallebench.vector_indexes.stored_vectors import no_neighbours, pieces

ABOUT = "milvus.json"
EF_SEARCH = 64
MAX_NEIGHBOURS = 16_384
"""Maximum neighbours per query that a server returns."""

TIES, PLACES = 16, 5
PIECE_BYTES = 8 * 2**20
ANSWER_FLOATS = 4_000_000


@dataclass(frozen=True, slots=True)
class MilvusSettings:
    """Settings of a collection."""

    uri: str = declare(
        str, "", about="http://host:19530, or a file *.db; default: a file in the index's folder"
    )
    collection: str = declare(str, "", about="default: a name made from the content")
    index_type: str = declare(
        str,
        "FLAT",
        choices=("FLAT", "HNSW", "DISKANN", "AUTOINDEX"),
        about="as the server offers it",
    )
    m: int = declare(int, 32, 2, 2048, about="HNSW: neighbours per vector in the graph")
    ef_construction: int = declare(int, 128, 1, 10_000, about="HNSW: candidates while building")


@dataclass(frozen=True, slots=True)
class MilvusRecord:
    """The file ``milvus.json`` of an index: its collection, and the size of its content."""

    uri: str
    collection: str
    key: str
    index_type: str
    count: int
    dim: int


SETTINGS = dataclass_form(MilvusSettings)
KNOBS = {
    "ef_search": Setting(
        int, EF_SEARCH, 1, 100_000, about="HNSW, DISKANN: candidates while searching, at least k"
    ),
    "rescore": Setting(bool, False, about="fetch the vectors and score exactly"),
}


class Milvus:
    """Milvus: vectors in an embedded file, on a server or a cluster, by one address."""

    exact = False  # the server chooses among equal neighbours

    @staticmethod
    def build(folder: Path, vectors: Any, **settings: Any) -> Build:
        """Fill a collection and write ``milvus.json``.

        A collection of that name is refused unless it has the same vectors and settings; then it is reused, or
        completed if an interrupted build left it incomplete. Raises UsageError or BackendError.
        """
        used = complete_settings(SETTINGS, settings)
        server.check(used)
        yield 0, len(vectors)
        chosen = MilvusSettings(**used)
        uri, index_type = chosen.uri, chosen.index_type
        graph = (chosen.m, chosen.ef_construction) if index_type == "HNSW" else ()
        key = f"rallebench_{_digest(vectors, index_type, *graph)}"
        place = server.parse_address(uri, folder)
        place = replace(place, collection=chosen.collection or key, key=key)
        with server.open_client(place) as client, readable_errors(place):
            yield from _fill(client, place, vectors, index_type, graph)
        record = MilvusRecord(
            uri=place.address if uri and place.embedded else uri,
            collection=place.collection,
            key=key,
            index_type=index_type,
            count=len(vectors),
            dim=int(vectors.shape[1]),
        )
        write_json(folder / ABOUT, asdict(record))
        return {**used, "collection": place.collection}

    @classmethod
    def load(cls, folder: Path) -> Milvus:
        """Open the collection that ``folder`` names; raises BackendError if it has changed."""
        values = read_object(folder / ABOUT)
        try:
            record = MilvusRecord(**values)
            place = server.parse_address(record.uri, folder)
            place = replace(place, collection=record.collection, key=record.key)
            index_type, count, dim = record.index_type, int(record.count), int(record.dim)
        except (TypeError, ValueError):
            raise BadFileError(f"{folder / ABOUT} is damaged; build the index again.") from None
        client = server.connect(place)
        try:
            with readable_errors(place):
                is_ours = (
                    client.has_collection(place.collection)
                    and server.primary_key(client, place.collection) == place.key
                )
                if is_ours:
                    client.load_collection(place.collection, timeout=WORK_PATIENCE)
                present = server.count_vectors(client, place) if is_ours else 0
            if present != count:
                what = f"has {present:,} of {count:,} vectors"
                what = what if is_ours else "is gone, or was replaced"
                raise BackendError(
                    f"The collection {place.collection!r} at {place.address} {what}; build the index again."
                )
        except BaseException:
            server.disconnect(client, place)
            raise
        return cls(client, place, index_type, count, dim)

    def __init__(self, client: Any, place: Place, index_type: str, count: int, dim: int) -> None:
        self._client, self._place, self._type = client, place, index_type
        self._count, self._dim = count, dim

    def search(
        self, vectors: Vectors, k: int, *, ef_search: int = EF_SEARCH, rescore: bool = False
    ) -> Neighbours:
        """Return scores (q, k) best first and rows (q, k), −1 = none; ties go to the smaller row.

        The server's last digits depend on the rest of the batch, so scores are rounded to five places. ``rescore``
        fetches a few more neighbours with their vectors and scores them exactly, which is several times slower.
        """
        scores, rows = no_neighbours(len(vectors), k)
        if min(k, self._count) > MAX_NEIGHBOURS:
            raise UsageError(
                f"Milvus returns at most {MAX_NEIGHBOURS:,} passages per query; ask for fewer than {k:,}."
            )
        most = min(k + TIES * rescore, self._count, MAX_NEIGHBOURS)
        step = max(1, min(1000, ANSWER_FLOATS // (most * (self._dim if rescore else 1))))
        for start in range(0, len(vectors), step):
            queries = vectors[start : start + step]
            for number, hits in enumerate(self._ask(queries, most, ef_search, rescore), start):
                neighbours = np.array([hit[self._place.key] for hit in hits], dtype=np.int64)
                if rescore:
                    near = np.array([hit["entity"][VECTOR] for hit in hits], dtype=np.float64)
                    near_scores = (near.reshape(-1, self._dim) * vectors[number]).sum(axis=1)
                else:
                    distances = np.array([hit["distance"] for hit in hits], dtype=np.float64)
                    near_scores = np.round(distances, PLACES)
                best = np.lexsort((neighbours, -near_scores))[:k]
                scores[number, : len(best)] = near_scores[best]
                rows[number, : len(best)] = neighbours[best]
        return scores, rows

    def _ask(self, vectors: Vectors, most: int, ef_search: int, rescore: bool) -> Any:
        wide = max(ef_search, most)
        params = {"HNSW": {"ef": wide}, "DISKANN": {"search_list": wide}}.get(self._type, {})
        with readable_errors(self._place):
            return self._client.search(
                self._place.collection,
                data=list(vectors),
                anns_field=VECTOR,
                limit=most,
                search_params={"metric_type": "IP", "params": params},
                output_fields=[VECTOR] if rescore else [self._place.key],
                consistency_level="Eventually",  # nothing is written after the build, and loading counted the rows
                timeout=WORK_PATIENCE,
            )

    def close(self) -> None:
        if self._client is not None:
            server.disconnect(self._client, self._place)
            self._client = None


def _fill(
    client: Any, place: Place, vectors: Any, index_type: str, graph: tuple[int, ...]
) -> Generator[Progress, None, None]:
    name, count, new = place.collection, len(vectors), not client.has_collection(place.collection)
    if new:
        _create(client, place, int(vectors.shape[1]), index_type, graph)
    elif server.primary_key(client, name) != place.key:
        raise server.foreign(name, place)
    else:
        client.load_collection(name, timeout=WORK_PATIENCE)
        if server.count_vectors(client, place) == count:
            yield count, count
            return
    write = client.insert if new else client.upsert  # overwrites rows of an interrupted build
    try:
        for start, piece in pieces(vectors, max(1, PIECE_BYTES // (4 * vectors.shape[1]))):
            yield start, count
            rows = [{place.key: start + i, VECTOR: vector} for i, vector in enumerate(piece)]
            write(name, rows, timeout=WORK_PATIENCE)
        yield count, count
        client.flush(name, timeout=WORK_PATIENCE)
        client.load_collection(name, timeout=WORK_PATIENCE)
    except BaseException:
        if new:
            with contextlib.suppress(Exception):
                client.drop_collection(name)
        raise


def _create(client: Any, place: Place, dim: int, index_type: str, graph: tuple[int, ...]) -> None:
    types = server.milvus().DataType
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(place.key, types.INT64, is_primary=True)
    schema.add_field(VECTOR, types.FLOAT_VECTOR, dim=dim)
    named = dict(zip(("M", "efConstruction"), graph))
    params = client.prepare_index_params()
    params.add_index(VECTOR, index_type=index_type, metric_type="IP", params=named)
    client.create_collection(
        place.collection, schema=schema, index_params=params, timeout=WORK_PATIENCE
    )


def _digest(vectors: Any, *settings: Any) -> str:
    """Return 16 hex digits over vectors and settings, so that equal content has an equal name."""
    total = hashlib.sha256(repr((tuple(vectors.shape), settings)).encode())
    for _, piece in pieces(vectors):
        total.update(piece.data)
    return total.hexdigest()[:16]


VECTOR_INDEXES.register(
    "milvus",
    form=SETTINGS,
    search_form=KNOBS,
    memory_factors=(1.0, 1.0),
    remote=lambda settings: bool(settings["uri"]),
    packages=("pymilvus", "milvus-lite", "numpy"),
    check=server.check,
)(EnteredOnce(Milvus))
