"""Milvus client: addresses of indexes, recognition of our collections, and one sentence per failure.

An address is a server (``http://host:19530``), or a file that the engine embedded in milvus-lite opens within this
process. The token is read only from the environment variable MILVUS_TOKEN.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, Hint, UsageError
from rallebench.core.types import Json
from rallebench.core.versions import optional

FILE = "milvus.db"
TOKEN = "MILVUS_TOKEN"
CONNECT_SECONDS = 10.0
"""Seconds for a server to accept a connection."""

WORK_PATIENCE = 600.0
"""Seconds for a server to complete a request."""

NO_PINGS: Mapping[str, int] = {"grpc.keepalive_time_ms": 2**31 - 1}
"""No keep-alive for an embedded engine: it closes the connection of a client that pings while idle."""

EMBEDDED_TYPES = ("FLAT", "HNSW", "AUTOINDEX")
VECTOR = "vector"

_open_files: dict[str, int] = {}
_files = threading.Lock()


@dataclass(frozen=True, slots=True)
class Place:
    """Location of an index. ``address``: a server's URI, or an embedded engine's file; ``key``: name of the primary key."""

    address: str
    embedded: bool
    collection: str = ""
    key: str = ""


def milvus() -> Any:
    """Return the package pymilvus, with its logging silenced: our one sentence is clearer than its tracebacks."""
    # gRPC prints connection errors to stderr, from C++, in addition to raising them.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    pymilvus = optional("pymilvus", "pymilvus", "and this index needs it", "pymilvus milvus-lite")
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return pymilvus


def parse_address(uri: str, folder: Path | None) -> Place:
    """Return the place that a URI names; '' is a file of the engine in ``folder``. Raises UsageError for anything else."""
    if not uri:
        return Place(str((folder or Path()) / FILE), True)
    if re.match(r"https?://|unix:", uri):
        if "@" in uri:
            raise UsageError(
                f"The Milvus address contains a name or a password; leave it out and set the environment variable {TOKEN}."
            )
        return Place(uri, False)
    path = Path(os.path.expanduser(uri)).resolve()
    if path.suffix != ".db" or not path.parent.is_dir():
        raise UsageError(
            f"uri={uri}: a Milvus address is http://host:19530, or a file in an existing folder whose name ends in .db."
        )
    return Place(str(path), True)


def check(settings: Json) -> None:
    """Raise early the errors that a build would raise after hours of encoding."""
    place = parse_address(settings["uri"], None)
    milvus()
    if settings["collection"] and not re.fullmatch(
        r"[A-Za-z_][A-Za-z0-9_]{0,254}", settings["collection"]
    ):
        raise UsageError(
            f"collection={settings['collection']}: Milvus takes letters, digits and '_', not a digit first."
        )
    if place.embedded and settings["index_type"] not in EMBEDDED_TYPES:
        raise UsageError(
            f"Milvus's embedded engine offers {', '.join(EMBEDDED_TYPES)}; {settings['index_type']} needs a server.",
            hint=Hint("set", "uri=http://127.0.0.1:19530"),
        )
    if settings["uri"] and (not place.embedded or os.path.exists(place.address)):
        with open_client(place) as client:
            name = settings["collection"]
            if (
                name
                and client.has_collection(name)
                and not primary_key(client, name).startswith("rallebench_")
            ):
                raise foreign(name, place)


def foreign(collection: str, place: Place) -> UsageError:
    """Return the error for a collection that does not belong to us."""
    return UsageError(
        f"The collection {collection!r} at {place.address} exists already with other content; "
        "remove it there, or choose another.",
        hint=Hint("set", "collection=NAME"),
    )


@contextlib.contextmanager
def open_client(place: Place) -> Iterator[Any]:
    """Open a client, and close it at the end of the block."""
    client = connect(place)
    try:
        yield client
    finally:
        disconnect(client, place)


def connect(place: Place) -> Any:
    """Open a client. Raises BackendError within seconds if no server answers, or if the file is in use elsewhere."""
    package = milvus()
    uri = _serve(place.address) if place.embedded else place.address
    more = {"grpc_options": NO_PINGS} if place.embedded else {"token": os.environ.get(TOKEN, "")}
    try:
        with readable_errors(place):
            return package.MilvusClient(uri, timeout=CONNECT_SECONDS, dedicated=True, **more)
    except BaseException:
        if place.embedded:
            _release(place.address)
        raise


def disconnect(client: Any, place: Place) -> None:
    """Close a client, and the embedded engine with its last client."""
    with contextlib.suppress(Exception):
        client.close()
    if place.embedded:
        _release(place.address)


def _manager() -> Any:
    why = "and Milvus without a server needs it (there is none for Windows: set uri=http://…)"
    return optional("milvus_lite.server_manager", "milvus-lite", why).server_manager_instance


def _serve(path: str) -> str:
    manager = _manager()
    with _files:
        uri = manager.start_and_get_uri(path)
        if uri is None:
            raise BackendError(
                f"{path} cannot be opened: another process has it open, or it is damaged. Close the other one, "
                "or keep the vectors on a server that several processes can use: uri=http://127.0.0.1:19530."
            )
        _open_files[path] = _open_files.get(path, 0) + 1
    return str(uri)


def _release(path: str) -> None:
    with _files:
        _open_files[path] = _open_files.get(path, 1) - 1
        if _open_files[path] <= 0:
            del _open_files[path]
            _manager().release_server(path)


@contextlib.contextmanager
def readable_errors(place: Place) -> Iterator[None]:
    """Turn the client's exceptions into one sentence."""
    from grpc import RpcError

    try:
        yield
    except (milvus().MilvusException, RpcError, OSError) as error:
        reason = " ".join(str(getattr(error, "message", "") or error).split())[:200]
        mend = (
            "free disk space, or build the index again"
            if place.embedded
            else "is it running, and is MILVUS_TOKEN right?"
        )
        raise BackendError(f"Milvus at {place.address} failed ({reason}); {mend}") from None


def primary_key(client: Any, collection: str) -> str:
    """Return the name of a collection's primary key. Ours contains a digest of the content, because not every engine keeps
    a collection's description."""
    fields = client.describe_collection(collection)["fields"]
    return next((str(field["name"]) for field in fields if field.get("is_primary")), "")


def count_vectors(client: Any, place: Place) -> int:
    """Return the number of vectors in a loaded collection."""
    rows = client.query(
        place.collection,
        filter="",
        output_fields=["count(*)"],
        consistency_level="Strong",
        timeout=WORK_PATIENCE,
    )
    return int(rows[0]["count(*)"])
