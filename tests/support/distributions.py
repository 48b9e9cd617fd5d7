"""A distribution that adds one file to a registry, as if installed by a user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from project import PROJECT

from rallebench.cli.verbs import VERBS
from rallebench.core import plugins
from rallebench.core.registry import Registry

Install = Callable[[Registry[Any], str, str], None]


@pytest.fixture(name="install")
def installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """``install(registry, module, text)``: from now on, for this test, the registry finds that module by its entry point."""
    site = tmp_path / "site-packages"
    children = filter(None, [str(PROJECT), str(site), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(children))
    monkeypatch.setattr(plugins, "_BROKEN", {})

    def add(registry: Registry[Any], module: str, text: str) -> None:
        VERBS.load()  # the help of a verb lists the names at the time of its import
        registry.load()  # an entry imported later would be lost with the copy below
        write_distribution(site, registry.name, module, text)
        monkeypatch.syspath_prepend(site)
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_loaded", False)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return add


def write_distribution(site: Path, registry: str, module: str, text: str) -> None:
    """One module, with the metadata of an installed distribution."""
    folder = site / f"{module}-1.0.dist-info"
    folder.mkdir(parents=True)
    (site / f"{module}.py").write_text(text, encoding="utf-8")
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[rallebench.{registry}]\nit = {module}\n")
