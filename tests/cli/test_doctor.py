"""``doctor`` reports installed packages, missing ones with their install command, and the machine; never a secret."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from small_workspace import CommandLine

from rallebench.core.extras import EXTRAS, RUN_TIME
from rallebench.services import doctor
from rallebench.services.doctor import InstalledPackage, diagnose, is_reachable, list_gpus


def test_every_package_has_a_version_or_an_install_line(cli: CommandLine, workspace: Path) -> None:
    found = cli.json("doctor")
    packages = {package["name"]: package for package in found["packages"]}
    extras = [name for names in EXTRAS.values() for name in names]
    assert list(packages) == [*RUN_TIME, *extras]
    for package in packages.values():
        assert bool(package["version"]) != bool(package["install"])
    assert packages["pymilvus"]["extra"] == "milvus"


def test_the_machine_is_told(cli: CommandLine, workspace: Path) -> None:
    found = cli.json("doctor")
    assert 0 < found["memory_free"] <= found["memory"] and 0 < found["disk_free"] <= found["disk"]
    assert found["cores"] >= 1 and found["threads"] >= 1
    assert found["sizes"]["indexes"] > 0
    text = cli("doctor").out
    for word in ("Python", "memory", "disk", "threads", "network", "torch"):
        assert word in text


def test_variables_are_named_without_their_values(
    cli: CommandLine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-shown")
    ran = cli("doctor")
    assert "OPENAI_API_KEY" in ran.out and "sk-never-shown" not in ran.out + ran.err


def test_a_missing_package_is_a_problem_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = InstalledPackage("pypdf", "", "", "pip install pypdf")
    optional = InstalledPackage("pymilvus", "", "milvus", "pip install pymilvus")
    monkeypatch.setattr(doctor, "list_packages", lambda: (absent, optional))
    assert diagnose(tmp_path).problems == ("pypdf is not installed: pip install pypdf",)


def test_the_network_is_not_tried_where_offline_work_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        hub = server.getsockname()[:2]
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        assert diagnose(tmp_path, hub=hub).network is None
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert diagnose(tmp_path, hub=hub).network is True
    assert not is_reachable(hub)


def test_gpus_are_those_that_nvidia_smi_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "*memory.total*) echo 'NVIDIA H200, 143771'; echo 'NVIDIA A10, 23028' ;;\n"
        "*) echo '0, GPU-a, 140000'; echo '1, GPU-b, 20000' ;;\n"
        "esac\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    first, second = list_gpus()
    assert (first.name, first.bytes, first.free) == ("NVIDIA H200", 143771 << 20, 140000 << 20)
    assert second.free == 20000 << 20


def test_a_broken_nvidia_smi_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'Failed to initialize NVML'\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert list_gpus() == ()
