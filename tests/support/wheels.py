"""The built wheel, installed beside an environment with its dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from project import PROJECT

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "LICENSES", "NOTICE", "rallebench", "prompts")


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that nothing is written beside them."""
    source, out = folder / "source", folder / "wheel"
    source.mkdir()
    for name in SOURCES:
        if (PROJECT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(PROJECT / name, source / name, ignore=ignored)
        else:
            shutil.copy(PROJECT / name, source / name)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out), str(source))
    (wheel,) = out.glob("*.whl")
    return wheel


def pip(*words: str, python: str = sys.executable) -> str:
    """Run pip; return its output. A failure shows its error."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def install(wheel: Path, folder: Path) -> Path:
    """Install only the wheel into a new environment that shares this one's packages; return its scripts' folder."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    borrowed = Path(shutil.__file__).parent  # the standard library is always there
    paths = [path for path in sys.path if path.endswith("site-packages") and path != str(borrowed)]
    (packages / "borrowed.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")
    scripts = folder / "bin"
    pip("--python", str(scripts / "python"), "install", "--no-deps", "--no-index", str(wheel))
    return scripts


def run(script: Path, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Run a script of the installed wheel in ``cwd``; return its standard output."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [str(script), *words],
        cwd=cwd,
        env={**clean, "HF_HUB_OFFLINE": "1", **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
