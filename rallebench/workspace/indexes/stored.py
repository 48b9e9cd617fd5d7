"""What preparing indexes keeps in a workspace: corpora cut into passages, and tables of their texts. Both can be made again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from rallebench.core.errors import NotFoundError, RalleError, UsageError
from rallebench.core.files import read_json
from rallebench.core.folders import beside
from rallebench.corpora.chunking import Chunking
from rallebench.workspace.entries import Manifest
from rallebench.workspace.indexes._chunking import CUT
from rallebench.workspace.indexes._in_use import alone
from rallebench.workspace.paths import Workspace

PASSAGES, TEXTS = "passages", "texts"


@dataclass(frozen=True, slots=True)
class Stored:
    """``key``: its place below ``cache/``. ``corpus``: '' where it is not known; ``chunking``: None for whole documents, or
    where that is not known. ``passages``: how many it is about."""

    key: str
    corpus: str
    chunking: Chunking | None
    passages: int
    bytes: int

    @property
    def kind(self) -> str:
        """``passages`` or ``texts``."""
        return self.key.partition("/")[0]


def stored(workspace: Workspace) -> list[Stored]:
    """All of them, the largest first; damaged ones are listed by what is known of them."""
    cache = workspace.path / "cache"
    cuts = {
        path.parent: _read(path)
        for path in (cache / PASSAGES).glob(f"*/{CUT}")
        if not path.parent.name.startswith(".")
    }
    found = [
        Stored(f"{PASSAGES}/{folder.name}", *told[:3], _bytes(folder))
        for folder, told in cuts.items()
    ]
    known = {told[3]: told[:3] for told in cuts.values()}
    texts = list((cache / TEXTS).glob("[!.]*.npy"))
    made = _manifests(workspace) if texts else []
    names = {
        one.corpus_sha256: (one.corpus, Chunking(**one.chunking) if one.chunking else None)
        for one in made
    }
    for path in texts:
        size = path.stat().st_size
        corpus, chunking = (
            known[path.stem][:2] if path.stem in known else names.get(path.stem, ("", None))
        )
        found.append(
            Stored(f"{TEXTS}/{path.name}", corpus, chunking, max(size - 128, 0) // 24, size)
        )
    return sorted(found, key=lambda one: (-one.bytes, one.key))


def delete_stored(workspace: Workspace, key: str) -> str:
    """Delete one of them; returns a sentence. Raises NotFoundError if there is none of that key, UsageError while an index is
    being prepared."""
    one = next((one for one in stored(workspace) if one.key == key), None)
    if one is None:
        raise NotFoundError(f"There is nothing {key!r} in {workspace.path / 'cache'}.")
    path = workspace.path / "cache" / key
    with alone(workspace.path / "cache") as free:
        if not free:
            raise UsageError(
                f"{key} is in use: an index is being prepared from kept passages and texts; wait for its end or stop it."
            )
        try:
            if path.is_dir():
                with beside(path.parent, path.name) as gone:
                    os.rename(path, gone / path.name)  # from here on no name leads to it
            else:
                path.unlink()
        except OSError as error:
            raise UsageError(f"{path} could not be removed: {error.strerror or error}.") from error
    again = "cut" if one.kind == PASSAGES else "hashed"
    return f"Deleted {key}, {one.bytes / 1e6:,.1f} MB. Indexes keep what they hold; the corpus is {again} anew when it is next asked for."


def _read(path: Path) -> tuple[str, Chunking | None, int, str]:
    """(corpus, chunking, passages, sha256) of a cut."""
    with contextlib.suppress(RalleError, LookupError, TypeError, ValueError, AttributeError):
        value = read_json(path)
        made = value.get("chunking")
        return (
            str(value.get("corpus") or ""),
            Chunking(**made) if made else None,
            int(value["passages"]),
            str(value["sha256"]),
        )
    return "", None, 0, ""


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _manifests(workspace: Workspace) -> list[Manifest]:
    with contextlib.suppress(RalleError):
        return list(workspace.manifests().values())
    return []
