"""Fetch a dataset of the hub, as an operation that can be stopped at any moment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rallebench.core.errors import BackendError, NotFoundError, RalleError, UsageError
from rallebench.core.events import Progress
from rallebench.core.hub_names import HubName
from rallebench.core.stopping import stop_of_thread

IMPORT_PATH = "PYTHONPATH"
END_SECONDS = 5.0
"""Seconds in which the program removes what is not whole, after it was told to end."""
ERRORS: Mapping[str, type[RalleError]] = {
    kind.__name__: kind for kind in (BackendError, NotFoundError, UsageError)
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """Files of the hub in the local cache. ``files``: (path in the repository, local file); ``origin``: their name with the commit;
    ``partial``: True if the hub offers only the beginning of the split."""

    files: tuple[tuple[str, Path], ...]
    origin: str
    partial: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about rows that the hub does not offer."""
        if not self.partial:
            return ()
        return (f"The hub has converted only the beginning of {self.origin}; the rest is missing.",)


def fetch(name: HubName) -> Generator[Progress, None, Fetched]:
    """Fetch the files that a name means, yielding the bytes. A stop of the thread ends it at once, and so does closing it.

    Raises NotFoundError for an unknown name, UsageError for a dataset that cannot be read, BackendError if the hub does not
    answer.
    """
    with tempfile.TemporaryFile() as errors, _program(name, errors) as process:
        assert process.stdout is not None
        stop = stop_of_thread()
        with stop.waking(process.terminate):
            for text in process.stdout:
                match _parse(text):
                    case {"error": str(sentence), "kind": str(kind)}:
                        raise ERRORS.get(kind, BackendError)(sentence)
                    case {"files": list(files), "origin": str(origin), "partial": bool(partial)}:
                        local = tuple((str(path), Path(file)) for path, file in files)
                        return Fetched(local, origin, partial)
                    case {"message": str(message), "done": int(done), "total": int(total)}:
                        yield Progress("download", done, total or None, message)
            stop.check()
        errors.seek(0)
        last = errors.read().decode("utf-8", "replace").strip().splitlines() or ["it ended"]
        raise BackendError(f"{name} could not be fetched: {last[-1][:200]}.")


def _parse(text: str) -> object:
    """Return the value of a line; None for anything that a library prints."""
    value: object = None
    with suppress(ValueError):
        value = json.loads(text)
    return value


@contextmanager
def _program(name: HubName, errors: IO[bytes]) -> Iterator[subprocess.Popen[str]]:
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get(IMPORT_PATH, "")]))
    try:
        process = subprocess.Popen(
            [sys.executable, "-X", "utf8", "-m", "rallebench.hub.program", str(name)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env={**os.environ, IMPORT_PATH: path},
        )
    except OSError as error:
        raise BackendError(f"Python could not be started to fetch {name} ({error}).") from None
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def open_fetched(fetched: Fetched) -> Iterator[Path]:
    """The one file, or a temporary folder with links to the files, whose paths are those of the repository."""
    if len(fetched.files) == 1:
        yield fetched.files[0][1]
        return
    with tempfile.TemporaryDirectory(prefix="rallebench-hub-") as folder:
        link_files(fetched, Path(folder))
        yield Path(folder)


def link_files(fetched: Fetched, folder: Path) -> None:
    """Link the files below a folder, by their paths in the repository."""
    for path, file in fetched.files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            target.symlink_to(file.resolve())
        except OSError:  # Windows without the right to link
            shutil.copyfile(file, target)
