"""Write ``requirements.txt``, the lock of README's two commands, from the ranges of ``pyproject.toml``.

::

    python -m tools.lock              # keeps the pins that are within their ranges
    python -m tools.lock --upgrade    # takes the newest versions that go together

uv resolves the ranges for every platform and Python at once; only the direct dependencies are pinned.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1]
LOCK = PROJECT / "requirements.txt"
LOCKED = ("diskann", "hnswlib", "milvus", "mcp", "documents", "gpu", "dev")
"""The extras that README's two commands install."""

OLDEST_PYTHON = "3.10"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Ranges:
    """The requirements of ``pyproject.toml``: for run time, and by extra."""

    run_time: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]


def read_ranges(path: Path = PROJECT / "pyproject.toml") -> Ranges:
    """Return the requirements that a ``pyproject.toml`` declares."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    extras = {name: tuple(group) for name, group in project["optional-dependencies"].items()}
    return Ranges(tuple(project["dependencies"]), extras)


def package(requirement: str) -> str:
    """Return the normalised name of a requirement.

    >>> package("ir_measures==0.4.3; platform_machine != 'aarch64'"), package("PyYAML>=6,<7")
    ('ir-measures', 'pyyaml')
    """
    match = _NAME.match(requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def uv_command() -> list[str]:
    """Return the command that runs uv; empty where uv is not installed."""
    if find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    executable = shutil.which("uv")
    return [executable] if executable else []


def resolve(*options: str) -> str:
    """Return uv's resolution of ``pyproject.toml``, a requirement a line. Raises CalledProcessError."""
    command = [*uv_command(), "pip", "compile", str(PROJECT / "pyproject.toml"), "--no-header"]
    ran = subprocess.run(
        [*command, "--no-annotate", *options],
        cwd=PROJECT,
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout


def lock_text(ranges: Ranges, resolved: Iterable[str]) -> str:
    """Return the text of the lock: the resolved versions of direct dependencies, those of ``dev`` last.

    >>> print(lock_text(Ranges(("a>=1",), {"dev": ("t>=2",)}), ["a==1.5", "b==3", "t==2.0"]))
    # Everything that README's two commands need, pinned to versions that were run together.
    # Written by python -m tools.lock from the ranges of pyproject.toml.
    a==1.5
    <BLANKLINE>
    # For the tests and benchmarks alone.
    t==2.0
    <BLANKLINE>
    """
    lines = [line for line in resolved if _NAME.match(line)]
    development = {package(line) for line in ranges.extras["dev"]}
    extras = [line for name in LOCKED if name != "dev" for line in ranges.extras.get(name, ())]
    needed = {package(line) for line in (*ranges.run_time, *extras)}
    parts = [
        "# Everything that README's two commands need, pinned to versions that were run together.",
        "# Written by python -m tools.lock from the ranges of pyproject.toml.",
        *(line for line in lines if package(line) in needed),
        "",
        "# For the tests and benchmarks alone.",
        *(line for line in lines if package(line) in development),
    ]
    return "\n".join(parts) + "\n"


def make_lock(upgrade: bool = False) -> str:
    """Resolve the ranges for all platforms; return the lock. The pins of today's lock are kept unless ``upgrade``."""
    extras = [word for name in LOCKED for word in ("--extra", name)]
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"  # uv prefers the versions of the file that it writes
        shutil.copy(LOCK, pins)
        options = ["--universal", "--python-version", OLDEST_PYTHON, "-o", str(pins), *extras]
        resolve(*options, *(["--upgrade"] if upgrade else []))
        return lock_text(read_ranges(), pins.read_text(encoding="utf-8").splitlines())


def main(argv: Sequence[str] | None = None) -> int:
    """Write the lock; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    args = parser.parse_args(argv)
    if not uv_command():
        print("uv is not installed: pip install uv", file=sys.stderr)
        return 2
    try:
        LOCK.write_text(make_lock(args.upgrade), encoding="utf-8")
    except subprocess.CalledProcessError as error:
        print(error.stderr, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
