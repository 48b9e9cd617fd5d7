"""``doctor``: describe the installation, for example for a bug report."""

from __future__ import annotations

import argparse

from rallebench.cli.verbs import VERBS, Result
from rallebench.core.memory import size
from rallebench.services.doctor import Diagnosis, diagnose

NETWORK = {True: "reachable", False: "not reachable", None: "not tried: offline work is set"}


@VERBS.register(
    "doctor",
    about="examine the installation: packages, GPU, memory, disk, threads, network",
    example="rallebench doctor",
    order=97,
    flags=(),
)
def doctor(args: argparse.Namespace) -> Result:
    """Examine the installation; each missing package is listed with the command that installs it."""
    diagnosis = diagnose(args.workspace)
    problems = diagnosis.problems or ("Nothing is missing.",)
    return Result(diagnosis.to_json(), (_machine(diagnosis), _packages(diagnosis), *problems))


def _machine(diagnosis: Diagnosis) -> str:
    gpus = ", ".join(
        f"{gpu.name}, {size(gpu.bytes)}" + ("" if gpu.free is None else f", {size(gpu.free)} free")
        for gpu in diagnosis.gpus
    )
    sizes = ", ".join(f"{name} {size(count)}" for name, count in diagnosis.sizes.items())
    rows = (
        ("rallebench", diagnosis.rallebench),
        ("Python", diagnosis.python),
        ("platform", diagnosis.platform),
        ("GPU", gpus or "none"),
        ("memory", f"{size(diagnosis.memory)}, {size(diagnosis.memory_free)} free"),
        ("disk", f"{size(diagnosis.disk)}, {size(diagnosis.disk_free)} free"),
        ("workspace", sizes or "empty"),
        ("threads", f"{diagnosis.threads} on {diagnosis.cores} cores"),
        ("network", NETWORK[diagnosis.network]),
        ("variables set", ", ".join(diagnosis.variables) or "none"),
    )
    return "\n".join(("Machine:", *(f"  {name:<15}{text}" for name, text in rows)))


def _packages(diagnosis: Diagnosis) -> str:
    lines = []
    for package in diagnosis.packages:
        missing = f"not installed: {package.install}"
        extra = f"  [{package.extra}]" if package.extra else ""
        lines.append(f"  {package.name:<23}{package.version or missing}{extra}")
    return "\n".join(("Packages:", *lines))
