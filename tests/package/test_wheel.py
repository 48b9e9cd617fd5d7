"""The wheel installs into a separate environment, answers offline and opens the page, from any folder."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from project import PROJECT
from wheels import build_wheel, install, pip, run

from tools.lock import read_ranges, resolve, uv_command

MOST_BYTES = 12_000_000
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(wheel, tmp_path_factory.mktemp("environment") / "env")


def test_the_wheel_is_small_and_holds_both_licences_and_every_prompt(wheel: Path) -> None:
    assert wheel.stat().st_size <= MOST_BYTES
    names = ZipFile(wheel).namelist()
    for licence in ("LICENSE", "LICENSES/CC-BY-SA-4.0.txt", "NOTICE"):
        assert any(name.endswith(f"dist-info/licenses/{licence}") for name in names)
    shipped = {
        name.split("/prompts/")[1] for name in names if ".data/" in name and "/prompts/" in name
    }
    prompts = PROJECT / "prompts"
    read = {
        path.relative_to(prompts).as_posix()
        for path in prompts.rglob("*")
        if path.is_file() and path != prompts / "README.md"
    }
    assert shipped == read
    assert not any(name.startswith(("tests/", "tools/", "benchmarks/")) for name in names)


def test_the_wheel_declares_ranges_and_extras(wheel: Path) -> None:
    archive = ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
    metadata = archive.read(name).decode()
    assert "License-Expression: Apache-2.0 AND CC-BY-SA-4.0 AND OFL-1.1 AND MIT" in metadata
    extras = set(re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE))
    assert extras == set(read_ranges().extras)
    assert not re.search(r"^Requires-Dist: pytest[^;]*$", metadata, re.MULTILINE)


def test_it_answers_a_question_offline_from_any_folder(scripts: Path, tmp_path: Path) -> None:
    words = ("ask", "--chain", "starter", "--question", "What is the capital of Georgia?", "--json")
    answered = json.loads(run(scripts / "rallebench", *words, cwd=tmp_path))
    assert "Tbilisi" in json.dumps(answered) or "Atlanta" in json.dumps(answered)


def test_it_runs_from_a_target_folder_too(wheel: Path, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel))
    elsewhere.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "rallebench", "list", "chains", "--json"],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "starter" in [row["name"] for row in json.loads(ran.stdout)["chains"]]


@pytest.fixture
def page(scripts: Path, tmp_path: Path) -> Iterator[str]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [str(scripts / "rallebench"), "ui", "--no-browser", "--port", str(port)]
    with open(tmp_path / "ui.log", "w") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, stdout=log, stderr=log, env={**os.environ, "HF_HUB_OFFLINE": "1"}
        )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(30)


def test_its_page_opens(page: str) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(page, timeout=10) as reply:
                assert reply.status == 200 and b"rallebench" in reply.read()
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
@pytest.mark.parametrize("resolution", ["highest", "lowest-direct"])
def test_the_newest_and_the_oldest_versions_go_together(python: str, resolution: str) -> None:
    if not uv_command():
        pytest.skip("uv is not installed")
    options = ["--python-version", python, "--resolution", resolution]
    options += ["--python-platform", "x86_64-manylinux_2_28"]
    options += [word for extra in ("milvus", "mcp", "ray", "gpu") for word in ("--extra", extra)]
    try:
        resolved = resolve(*options)
    except subprocess.CalledProcessError as error:
        if re.search("dns|connect|timed out", error.stderr, re.IGNORECASE):
            pytest.skip("no package index is reachable")
        raise AssertionError(error.stderr) from error
    assert re.search(r"^gradio==6\.", resolved, re.MULTILINE)


def test_pip_finds_versions_for_the_wheel(wheel: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--report", str(report)]
    ran = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=False)
    if ran.returncode and re.search("Could not find|connection", ran.stderr):
        pytest.skip("no package index is reachable")
    assert ran.returncode == 0, ran.stderr
    assert "rallebench" in report.read_text(encoding="utf-8")
