"""Documents in formats that can run away with a machine, read in a child process that is killed at a limit of time or memory.

A few bytes of a PDF or of a packed document can make a library loop or unpack gigabytes. One child reads file after file,
one line of JSON in and one out (this file, run as a program).
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rallebench.core.errors import BackendError, MissingPackageError
from rallebench.corpora._documents import CHARACTERS, Document, UnreadableError
from rallebench.corpora._office import read_book, read_spreadsheet, read_word
from rallebench.corpora._pdf import read_pdf

SECONDS = 60.0
"""Seconds per file; a book of a thousand pages takes about half of it."""

MEMORY = 2 * 2**30
"""Bytes of address space, if the system can limit it."""


MOST_REMEMBERED = 2**24
"""Characters of read files that are remembered, because an import reads again what its preview has read."""


class Kind(NamedTuple):
    """A kind of document. ``packages``: modules that it needs; ``install``: the words after ``pip install``, if they are not the
    name; ``mend``: of a file beyond the limits."""

    noun: str
    plural: str
    read: Callable[[Path], list[Document]]
    packages: tuple[str, ...]
    install: str = ""
    mend: str = "divide it, or re-save it"


_MARKITDOWN = ("markitdown", "mammoth", "lxml")
KINDS = {
    ".pdf": Kind("PDF", "PDF files", read_pdf, ("pypdf",)),
    ".docx": Kind("Word document", "Word documents", read_word, _MARKITDOWN, " ".join(_MARKITDOWN)),
    ".epub": Kind("book", "EPUB books", read_book, _MARKITDOWN, " ".join(_MARKITDOWN)),
    ".xlsx": Kind(
        *("spreadsheet", "spreadsheets", read_spreadsheet, ("openpyxl",)),
        mend="save its sheets as CSV",
    ),
}
"""Suffix → kind."""


def missing_package(suffix: str) -> MissingPackageError | None:
    """Return the error for a kind of document whose package is not installed."""
    kind = KINDS.get(suffix)
    absent = (
        [name for name in kind.packages if importlib.util.find_spec(name) is None] if kind else []
    )
    if kind is None or not absent:
        return None
    return MissingPackageError(kind.packages[0], f"but is needed for {kind.plural}", kind.install)


class _ReadFiles:
    """The documents of the files read last, by path, size and time of change."""

    def __init__(self) -> None:
        self._files: OrderedDict[tuple[str, int, int], list[Document]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path) -> list[Document] | None:
        with self._lock:
            return self._files.get(_version(path))

    def put(self, path: Path, documents: list[Document]) -> None:
        with self._lock:
            self._files[_version(path)] = documents
            while sum(map(_length, self._files.values())) > MOST_REMEMBERED:
                self._files.popitem(last=False)


def _version(path: Path) -> tuple[str, int, int]:
    stat = path.stat()
    return str(path), stat.st_size, stat.st_mtime_ns


def _length(documents: list[Document]) -> int:
    return sum(len(document.text) for document in documents)


_READ_FILES = _ReadFiles()


class GuardedReader:
    """Reads documents one after another in a child process, which starts with the first one. Close the reader at the end."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None

    def read(self, path: Path) -> list[Document]:
        """Return the documents in a file of one of KINDS; several for a spreadsheet.

        Raises UnreadableError for a damaged or protected file, one without text, and one over the limits.
        """
        kind = KINDS[path.suffix.lower()]
        if error := missing_package(path.suffix.lower()):
            raise error
        path = Path(path).resolve()
        documents = _READ_FILES.get(path)
        if documents is None:
            documents = self._read(path, kind)
            _READ_FILES.put(path, documents)
        return documents

    def _read(self, path: Path, kind: Kind) -> list[Document]:
        """Return the documents in a file, read by the child."""
        child = self._child = self._child or _start()
        assert child.stdin is not None and child.stdout is not None
        late = threading.Event()

        def end_late() -> None:
            late.set()
            child.kill()

        watch = threading.Timer(self._seconds, end_late)
        watch.daemon = True
        watch.start()
        try:
            child.stdin.write(json.dumps([str(path), self._seconds]).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except OSError:
            line = b""
        finally:
            watch.cancel()
        if line.endswith(b"\n"):
            value = json.loads(line)
            if "error" in value:
                raise UnreadableError(value["error"])
            return [Document(text, title, part=part) for text, title, part in value["documents"]]
        self.close()
        if late.is_set() or child.returncode == -14:  # SIGALRM
            raise UnreadableError(
                f"is a {kind.noun} that takes longer than {self._seconds:g} seconds to read; {kind.mend}."
            )
        raise UnreadableError(
            f"is a {kind.noun} that crashed the program that reads it; re-save it."
        )

    def close(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _start() -> subprocess.Popen[bytes]:
    package = Path(__file__).resolve().parents[2]
    inherited = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, [str(package), inherited]))
    # Libraries reserve memory for each thread, and one file is read at a time.
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        return subprocess.Popen(
            [sys.executable, "-X", "utf8", "-m", "rallebench.corpora._guarded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=package,
            env={**os.environ, **single, "PYTHONPATH": path},
        )
    except OSError as error:
        raise BackendError(f"Python could not be started to read documents ({error}).") from None


def _read(path: Path) -> dict[str, Any]:
    kind = KINDS[path.suffix.lower()]
    try:
        documents = kind.read(path)
    except UnreadableError as error:
        return {"error": str(error)}
    except MemoryError:
        return {
            "error": f"is a {kind.noun} that needs more than {MEMORY // 2**30} GB of memory to be read; {kind.mend}."
        }
    except Exception as error:  # a damaged file may fail anywhere in the library
        if isinstance(error, OSError) and error.strerror:
            return {"error": f"cannot be read: {error.strerror}."}
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        return {"error": f"is not a {kind.noun} that can be read ({reason})."}
    if _length(documents) > CHARACTERS:
        size = CHARACTERS // 2**20
        return {
            "error": f"is a {kind.noun} with more than {size} million characters of text; {kind.mend}."
        }
    return {
        "documents": [
            [_replace_surrogates(d.text), _replace_surrogates(d.title), _replace_surrogates(d.part)]
            for d in documents
        ]
    }


def _replace_surrogates(text: str) -> str:
    """Return a text with half surrogate pairs replaced."""
    return text.encode("utf-8", "replace").decode()


def _serve() -> None:
    """Answer requests until standard input ends. An alarm limits each file, even without a parent."""
    alarm: Any = None
    if os.name == "posix":
        import resource
        import signal

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # the parent handles Ctrl-C and ends this process
        alarm = signal.setitimer, signal.ITIMER_REAL
    logging.disable(logging.CRITICAL)  # the libraries log every oddity of a file
    answers, sys.stdout = sys.stdout, sys.stderr  # only answers belong on standard output
    for line in sys.stdin.buffer:
        path, seconds = json.loads(line)
        if alarm:
            alarm[0](alarm[1], seconds + 1)
        answer = _read(Path(path))
        if alarm:
            alarm[0](alarm[1], 0)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
