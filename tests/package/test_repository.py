"""The files beside the code for contributors and reporters of problems."""

from __future__ import annotations

import re
import subprocess
import sys

import yaml
from project import PROJECT

from rallebench.cli.verbs import VERBS


def test_the_issue_template_asks_for_the_output_of_doctor() -> None:
    template = (PROJECT / ".github" / "ISSUE_TEMPLATE" / "problem.md").read_text(encoding="utf-8")
    _, head, text = template.split("---\n", 2)
    assert yaml.safe_load(head).keys() >= {"name", "about"}
    assert "`rallebench doctor`" in text and "doctor" in VERBS.names()


def test_every_hook_before_a_commit_runs_what_exists() -> None:
    hooks = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert {"python -m ruff format", "python -m ruff check", "python -m tools.docs"} <= set(entries)
    for entry in entries:
        for file in re.findall(r"\S+\.py", entry):
            assert (PROJECT / file).is_file()


def test_the_security_policy_says_how_to_report_in_private() -> None:
    policy = (PROJECT / "SECURITY.md").read_text(encoding="utf-8")
    assert "in private" in policy and "rallebench --version" in policy
    for linked in re.findall(r"\]\(([^)]+)\)", policy):
        assert (PROJECT / linked).is_file()


def test_readmes_program_opens_the_page() -> None:
    ran = subprocess.run(
        [sys.executable, "app.py", "--help"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("usage: rallebench ui ") and "--port" in ran.stdout
