"""Text of PDFs, read in a child process that is killed at a limit of time or memory.

A PDF is a program: a few bytes can make the library loop or unpack gigabytes. One child reads file after file,
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from rallebench.core.errors import BackendError, MissingPackageError
from rallebench.corpora._documents import Document, UnreadableError

SECONDS = 60.0
"""Seconds per file; a book of a thousand pages takes about half of it."""

MEMORY = 2 * 2**30
"""Bytes of address space, if the system can limit it."""

CHARACTERS = 64 * 2**20
"""Maximum characters of text per file."""

_TOO_LONG = f"is a PDF with more than {CHARACTERS // 2**20} million characters of text; divide it."
_TOO_LARGE = f"is a PDF that needs more than {MEMORY // 2**30} GB of memory to be read; divide it, or re-save it."


class PDFReader:
    """Reads PDFs one after another in a child process, which starts with the first one. Close the reader at the end."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._child: subprocess.Popen[bytes] | None = None

    def read(self, path: Path) -> Document:
        """Return the text layer, with a blank line between pages, and the title in the PDF's metadata.

        Raises UnreadableError for a damaged or protected file, one without text, and one over the limits.
        """
        if importlib.util.find_spec("pypdf") is None:
            raise MissingPackageError("pypdf", "but is needed for PDF files")
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
            child.stdin.write(
                json.dumps([str(Path(path).resolve()), self._seconds]).encode() + b"\n"
            )
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
            return Document(value["text"], value["title"])
        self.close()
        if late.is_set() or child.returncode == -14:  # SIGALRM
            raise UnreadableError(
                f"is a PDF that takes longer than {self._seconds:g} seconds to read; divide it, or re-save it."
            )
        raise UnreadableError("is a PDF that crashed the program that reads it; re-save it.")

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
    try:
        return subprocess.Popen(
            [sys.executable, "-X", "utf8", "-m", "rallebench.corpora._pdf"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=package,
            env={**os.environ, "PYTHONPATH": path},
        )
    except OSError as error:
        raise BackendError(f"Python could not be started to read PDF files ({error}).") from None


def _read(path: str) -> dict[str, str]:
    import pypdf

    try:
        with pypdf.PdfReader(path) as reader:
            if reader.is_encrypted and not reader.decrypt(""):
                return {"error": "is protected by a password; save it without one."}
            pages, length = [], 0
            for page in reader.pages:
                pages.append(page.extract_text().strip())
                length += len(pages[-1])
                if length > CHARACTERS:
                    return {"error": _TOO_LONG}
            title = str((reader.metadata and reader.metadata.title) or "").strip()
    except MemoryError:
        return {"error": _TOO_LARGE}
    except OSError as error:
        return {"error": f"cannot be read: {error.strerror or error}."}
    except Exception as error:  # a damaged file may fail anywhere in the library
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        return {"error": f"is not a PDF that can be read ({reason})."}
    text = "\n\n".join(page for page in pages if page)
    if not text:
        return {"error": "contains only pictures, no text; run OCR on it first."}
    return {
        "text": text.encode("utf-8", "replace").decode(),
        "title": title.encode("utf-8", "replace").decode(),
    }


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
    logging.disable(logging.CRITICAL)  # pypdf logs every oddity of a file
    for line in sys.stdin.buffer:
        path, seconds = json.loads(line)
        if alarm:
            alarm[0](alarm[1], seconds + 1)
        answer = _read(path)
        if alarm:
            alarm[0](alarm[1], 0)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
