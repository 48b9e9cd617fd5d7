"""Files that a scorer reads."""

from __future__ import annotations

from pathlib import Path

from rallebench.core.errors import NotFoundError


def check_file(path: Path, what: str, flag: str = "--guess") -> None:
    """Raise NotFoundError unless ``path`` is a file; ``what`` it should hold."""
    if path.is_dir():
        inside = sorted(file.name for file in path.iterdir() if file.is_file())
        some = f" It holds {', '.join(inside[:3])}{' …' * (len(inside) > 3)}." if inside else ""
        raise NotFoundError(
            f"{path} is a folder; name the file that holds {what}: {flag} {path / 'FILE'}.{some}"
        )
    if not path.is_file():
        raise NotFoundError(f"{path} does not exist; it should hold {what}.")
