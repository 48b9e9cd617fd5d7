"""Prepare uploaded files and archives for an import. They are kept below ``cache/uploads`` for a day."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import time
import uuid
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import IO

from rallebench.core.archives import MAX_RATIO, MAX_UNPACKED, unpacking
from rallebench.core.errors import BadFileError, NotFoundError, UsageError
from rallebench.core.files import disk_error
from rallebench.core.streams import unpack_stream
from rallebench.hub import fetching
from rallebench.hub.fetching import Fetched
from rallebench.workspace.paths import WorkspaceFolder

FOLDER = "uploads"
AGE = 24 * 3600
"""Seconds after which an unused upload is deleted."""

ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
ZSTANDARD = (".tar.zst", ".tzst")
PIECE = 2**20
MOST_MEMBERS = 500_000


def is_archive(path: Path) -> bool:
    """Return whether the name is that of an archive; a single gzipped file is not an archive.

    >>> [is_archive(Path(name)) for name in ("a.zip", "b.TAR.GZ", "c.jsonl.gz")]
    [True, True, False]
    """
    return path.name.lower().endswith((*ARCHIVES, *ZSTANDARD))


def lay_out(workspace: WorkspaceFolder, files: Sequence[tuple[Path, str]]) -> Path:
    """Store uploaded files, each with its name or relative path, in a new folder; see ``set_name`` for its name.

    Return the file if there is only one, otherwise the folder. Raises UsageError, DiskError.
    """
    if not files:
        raise UsageError("No file was sent; drop some, or type a path.")
    folder = _new_folder(workspace, set_name([name or path.name for path, name in files]))
    try:
        for path, name in files:
            target = folder / _relative(name or path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, target)
            except OSError:
                shutil.copyfile(path, target)
    except FileNotFoundError:
        raise NotFoundError("An uploaded file is no longer there; send it again.") from None
    except OSError as error:
        raise disk_error(folder, error, "the upload") from error
    return _only(folder)


def set_name(names: Sequence[str]) -> str:
    """Name uploaded files: by their only one or their folder, otherwise by the beginning that their names share.

    >>> set_name(["a/x.md", "a/b/y.md"]), set_name(["doc1.md", "doc12.pdf"]), set_name(["seas.md", "lakes.md"])
    ('a', 'doc-files', 'files')
    """
    paths = [_relative(name) for name in names]
    tops = {path.parts[0] for path in paths}
    if len(tops) == 1:
        return tops.pop()
    stems = [path.parts[0].split(".")[0] for path in paths]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*stems))
    shared = "".join(letters[0] for letters in alike).rstrip("0123456789-_ ")
    return f"{shared}-files" if len(shared) >= 3 else "files"


def link_files(workspace: WorkspaceFolder, name: str, fetched: Fetched) -> Path:
    """Return the one file of the hub, or a new folder with links to its files. Raises DiskError."""
    if len(fetched.files) == 1:
        return fetched.files[0][1]
    folder = _new_folder(workspace, name)
    try:
        fetching.link_files(fetched, folder)
    except OSError as error:
        raise disk_error(folder, error, "the links to the files") from error
    return folder


def unpack_upload(workspace: WorkspaceFolder, source: Path) -> Path:
    """Return ``source`` unchanged unless it is an archive; then unpack it and return its only file, or a folder
    named after it.

    Links, hidden files and members outside the folder are skipped. Raises BadFileError if the archive is damaged or
    unpacks to much more than text would; DiskError.
    """
    if not source.is_file() or not is_archive(source):
        return source
    folder = _new_folder(workspace, source.name)
    try:
        _unpack(source, folder)
        return _only(folder)
    except BaseException:
        shutil.rmtree(folder.parent, ignore_errors=True)
        raise


@contextmanager
def open_upload(workspace: WorkspaceFolder, source: Path) -> Iterator[Path]:
    """Yield ``source`` or the content of an archive, which is deleted afterwards."""
    files = unpack_upload(workspace, Path(source))
    try:
        yield files
    finally:
        if files != Path(source):
            forget(workspace, files)


def _unpack(source: Path, folder: Path) -> None:
    room = max(MAX_UNPACKED, MAX_RATIO * source.stat().st_size)
    try:
        with unpacking(source.name):
            for count, (name, handle) in enumerate(_members(source), 1):
                if count > MOST_MEMBERS:
                    raise BadFileError(
                        f"{source.name} holds more than {MOST_MEMBERS:,} files; unpack it yourself if it is what you want."
                    )
                target = folder / _relative(name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with open(target, "wb") as written:
                    while piece := handle.read(PIECE):
                        room -= len(piece)
                        if room < 0:
                            raise BadFileError(
                                f"{source.name} unpacks to more than {MAX_RATIO} times its size; unpack it yourself if it is what you want."
                            )
                        written.write(piece)
    except OSError as error:
        raise disk_error(folder, error, "the files of the archive") from error


def forget(workspace: WorkspaceFolder, source: Path) -> None:
    """Delete an upload that has been imported; other files are not touched."""
    folder = workspace.cache / FOLDER
    if folder in source.parents:
        shutil.rmtree(folder / source.relative_to(folder).parts[0], ignore_errors=True)


def as_sent(workspace: WorkspaceFolder, sentence: str) -> str:
    """Restore the original names of uploaded files in a sentence."""
    folder = re.escape(str(workspace.cache / FOLDER))
    return re.sub(rf"{folder}[/\\][0-9a-f]+[/\\](?:[^/\\,\s]+[/\\])?", "", sentence)


def _new_folder(workspace: WorkspaceFolder, name: str) -> Path:
    """Create an empty folder named after a file, without its suffixes and spaces, at which ``as_sent`` would end a path."""
    parent = workspace.cache / FOLDER
    parent.mkdir(parents=True, exist_ok=True)
    for old in parent.iterdir():
        if old.stat().st_mtime < time.time() - AGE:
            shutil.rmtree(old, ignore_errors=True)
    stem = re.sub(r"[\s,]+", "-", _relative(name).name.split(".")[0])
    folder = parent / uuid.uuid4().hex[:12] / (stem or "files")
    folder.mkdir(parents=True)
    return folder


def _relative(name: str) -> Path:
    """Return a name as a path that stays inside its folder.

    >>> _relative("a/../../b c.txt"), _relative("C:\\\\x\\\\y.md")
    (PosixPath('a/b c.txt'), PosixPath('x/y.md'))
    """
    parts = [
        part
        for part in PurePosixPath(name.replace("\\", "/")).parts
        if part not in ("/", "..", ".") and not part.endswith(":")
    ]
    return Path(*(parts or ["file"]))


def _only(folder: Path) -> Path:
    """Return the only file or folder inside, otherwise the folder itself. Raises BadFileError if it is empty."""
    inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
    if not inside:
        raise BadFileError("The archive holds no file that can be read.")
    return inside[0] if len(inside) == 1 else folder


def _members(source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name, open file) of the regular files in an archive."""
    if source.name.lower().endswith(".zip"):
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and _readable(entry.filename):
                    with archive.open(entry) as handle:
                        yield entry.filename, handle
        return
    with ExitStack() as files:
        if source.name.lower().endswith(ZSTANDARD):  # Python's own since 3.14
            _, unpacked = unpack_stream(files.enter_context(open(source, "rb")))
            tar = files.enter_context(tarfile.open(fileobj=unpacked, mode="r|"))
        else:
            tar = files.enter_context(tarfile.open(source, "r:*"))
        for member in filter(tarfile.TarInfo.isfile, tar):
            content = tar.extractfile(member)
            if content is not None and _readable(member.name):
                with closing(content):
                    yield member.name, content


def _readable(name: str) -> bool:
    """Return whether a member is visible and stays inside the folder."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return (
        bool(parts)
        and parts[0] not in ("/", "__MACOSX")
        and not any(p.startswith(".") for p in parts)
    )
