"""What every experiment owes: a place, a line about itself, settings that say what they are, its paper if it has one."""

from __future__ import annotations

import pytest

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.settings import checked
from rallebench.experiments import BUILDERS, EXPERIMENTS, SUITES
from rallebench.services.experiments import rules_of
from rallebench.views import designs
from rallebench.views.catalog import line

OWN = {"baselines", "batch", "sweep", "tradeoff"}


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_every_experiment_says_what_it_is_and_takes_its_own_defaults(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    assert entry.about.endswith((".", "?")) and rules_of(kind).noun
    assert all(setting.must_be for setting in entry.form.values())
    written = {name: str(setting.default) for name, setting in entry.form.items()}
    assert checked(kind, entry.form, written) == checked(kind, entry.form, {})


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_every_experiment_of_a_paper_names_it(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    of_a_paper = entry.traits["place"] == "suites"
    assert of_a_paper == bool(entry.traits.get("paper", ""))


@pytest.mark.parametrize("name", SUITES.names())
def test_every_suite_says_what_works_without_a_download(name: str) -> None:
    ready = SUITES.entry(name).traits["ready"]
    assert ready.startswith("Without a download: ") and ready.endswith(".") and "Chinese" in ready
    assert line(SUITES.entry(name)).endswith(ready), "the list and the manual"
    assert designs.suite_about(name)[0].endswith(ready), "the page"


def test_every_experiment_has_one_place_and_each_place_its_own_names() -> None:
    builders = {f"build-{name}" for name in BUILDERS.names()}
    assert {*SUITES.names(), *builders, *OWN} == set(EXPERIMENTS.names())
    assert "crud" in SUITES and "crud" in BUILDERS
    assert SUITES.entry("crud").value is not BUILDERS.entry("crud").value


def test_errors_name_the_noun_of_the_place() -> None:
    with pytest.raises(UsageError, match="dataset builder 'crud'"):
        BUILDERS.settings("crud", {"nonsense": "1"})
    with pytest.raises(NotFoundError, match="Did you mean 'kilt-nq'"):
        SUITES.entry("kilt-nqq")
