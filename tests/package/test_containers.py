"""The container files: the rules of a linter, and their commands in a clean environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from project import PROJECT
from wheels import SOURCES, build_wheel, install

from rallebench.cli.main import _parser
from tools.lock import package, read_ranges

DOCKERFILE = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text(encoding="utf-8"))
MANUAL = (PROJECT / "docs" / "containers.md").read_text(encoding="utf-8")


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, arguments) of a Dockerfile, without comments."""
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    parts = [line.strip().partition(" ") for line in lines if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in parts]


def last(name: str) -> str:
    """The arguments of the last instruction of that name, the effective one."""
    return [rest for instruction, rest in instructions(DOCKERFILE) if instruction == name][-1]


def test_every_instruction_is_dockers() -> None:
    known = {
        "FROM",
        "RUN",
        "ENV",
        "WORKDIR",
        "COPY",
        "LABEL",
        "USER",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    }
    assert {name for name, _ in instructions(DOCKERFILE)} <= known


def test_the_image_runs_as_a_user_without_rights() -> None:
    parts = instructions(DOCKERFILE)
    assert last("USER") == "rallebench" and "useradd --uid 1000" in DOCKERFILE
    after_user = parts[[name for name, _ in parts].index("USER") :]
    assert "RUN" not in {name for name, _ in after_user}


def test_base_images_have_versions_and_packages_leave_no_lists() -> None:
    for name, rest in instructions(DOCKERFILE):
        if name == "FROM":
            assert re.match(r"python:3\.\d+-slim-\w+( AS \w+)?$", rest)
        if name == "RUN" and "apt-get install" in rest:
            assert "--no-install-recommends" in rest and "rm -rf /var/lib/apt/lists" in rest
    for service in COMPOSE["services"].values():
        image = service.get("image", "rallebench")
        assert image == "rallebench" or (":" in image and not image.endswith(":latest"))


def test_no_secret_is_in_the_files() -> None:
    for text in (DOCKERFILE, (PROJECT / "compose.yaml").read_text(encoding="utf-8")):
        for name, value in re.findall(r"(\w*(?:PASSWORD|AUTH|TOKEN|KEY))[:=] *(\S+)", text):
            assert value.startswith("${"), name
    ignored = (PROJECT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*" and "**/.env" in ignored


def test_everything_that_is_copied_exists_and_is_not_ignored() -> None:
    taken = (PROJECT / ".dockerignore").read_text(encoding="utf-8").split()
    for name, rest in instructions(DOCKERFILE):
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (PROJECT / source).exists() and f"!{source}" in taken, source
    copied = " ".join(rest for name, rest in instructions(DOCKERFILE) if name == "COPY")
    assert all(source in copied for source in SOURCES)


def test_the_lock_of_the_image_is_that_of_run_time() -> None:
    cut = re.search(r"sed '(.*?)' requirements.txt", DOCKERFILE)
    assert cut is not None
    command = ["sed", cut[1], str(PROJECT / "requirements.txt")]
    kept = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {package(line) for line in kept.splitlines() if line and not line.startswith("#")}
    development = {package(line) for line in read_ranges().extras["dev"]}
    assert {package(line) for line in read_ranges().run_time} <= names
    assert not names & development and len(re.findall(r"^torch==", kept, re.MULTILINE)) == 1


def test_the_commands_of_the_files_are_understood() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["rallebench"]
    assert _parser().parse_args(json.loads(last("CMD"))).host == "0.0.0.0"
    (space,) = re.findall(r"```dockerfile\nCMD (.*)\n```", MANUAL)
    assert _parser().parse_args(json.loads(space)).spaces


def test_compose_joins_what_belongs_together() -> None:
    services = COMPOSE["services"]
    assert set(services) == {"page", "mlflow", "db", "milvus"}
    assert services["milvus"]["profiles"] == ["milvus"]
    assert services["page"]["environment"]["MLFLOW_TRACKING_URI"] == "http://mlflow:5000"
    for name, service in services.items():
        assert name == "page" or "healthcheck" in service
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "only this machine reaches a service"
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in COMPOSE["volumes"]
        for needed in service.get("depends_on", {}):
            assert needed in services
    store = next(word for word in services["mlflow"]["command"] if "backend-store" in word)
    assert store.endswith("postgresql://mlflow@db/mlflow")


def test_docker_itself_accepts_the_compose_file() -> None:
    if shutil.which("docker") is None:
        pytest.skip("Docker is not installed")
    if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        pytest.skip("Docker Compose is not installed")
    env = {**os.environ, "RALLEBENCH_AUTH": "me:secret", "POSTGRES_PASSWORD": "secret"}
    command = ["docker", "compose", "--profile", "milvus", "config", "--quiet"]
    subprocess.run(command, cwd=PROJECT, env=env, check=True)


@pytest.mark.slow
def test_the_commands_of_the_image_run_in_a_clean_environment(tmp_path: Path) -> None:
    scripts = install(build_wheel(tmp_path), tmp_path / "env")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    words = json.loads(last("CMD"))
    words[words.index("0.0.0.0")] = "127.0.0.1"
    clean = {"PATH": f"{scripts}:/usr/bin:/bin", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    clean |= {"RALLEBENCH_AUTH": "me:secret", "GRADIO_TEMP_DIR": str(tmp_path / "gradio")}
    check = json.loads(re.sub(r"^.*?CMD ", "", last("HEALTHCHECK")))
    with open(tmp_path / "log", "w") as log:
        page = subprocess.Popen(
            [str(scripts / "rallebench"), *words], cwd=workspace, env=clean, stdout=log, stderr=log
        )
    try:
        check[0] = str(scripts / check[0])
        deadline = time.monotonic() + 120
        while subprocess.run(check, env=clean, capture_output=True).returncode:
            assert page.poll() is None and time.monotonic() < deadline, (
                tmp_path / "log"
            ).read_text()
            time.sleep(0.5)
    finally:
        page.terminate()
        page.wait(30)
    assert shlex.join(words).startswith("ui --host")
