"""The files that an experiment writes for its user: a file that the user changed is never written over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rallebench.core.errors import UsageError
from rallebench.core.files import read_json, sha256_file, write_json, write_text

RECORD = "written.json"
"""{``sha256``: file → sha256 as it was written last, ``writing``: files that were being written}."""


class WrittenFiles:
    """The record of the files that an experiment in ``folder`` has written, some of them elsewhere."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORD
        value = read_json(self._path) if self._path.exists() else {}
        record = value if isinstance(value, dict) else {}
        self.sha256: dict[str, str] = dict(record.get("sha256") or {})
        self._unfinished = set(record.get("writing") or ())

    def refuse_changed(self, paths: Iterable[Path]) -> None:
        """Raise UsageError for a file that exists and is not as it was written last."""
        for path in paths:
            name = str(path)
            if not path.exists() or name in self._unfinished:
                continue
            if self.sha256.get(name) != sha256_file(path):
                reason = (
                    "was changed since it was made"
                    if name in self.sha256
                    else "exists already and was not made here"
                )
                raise UsageError(f"{path} {reason}; move it away, or choose another name.")

    def write(self, files: Mapping[Path, str | Iterable[str]]) -> None:
        """Write files, each whole or not at all. Raises UsageError as ``refuse_changed``.

        Those that are about to be written are recorded first: however it ends, the next session knows them as its own.
        """
        self.refuse_changed(files)
        self._unfinished |= {str(path) for path in files}
        self._save()
        for path, pieces in files.items():
            self.sha256[str(path)] = write_text(path, pieces)
        self._unfinished = set()
        self._save()

    def _save(self) -> None:
        write_json(self._path, {"sha256": self.sha256, "writing": sorted(self._unfinished)})
