"""What every suite owes: a line about itself, settings that say what they are, runs whose names tell them apart."""

from __future__ import annotations

import pytest

from rallebench.core.settings import Setting
from rallebench.engine.experiment_store import run_name
from rallebench.experiments.papers import SUITES, settings_of
from rallebench.services.experiments import suite_name


@pytest.mark.parametrize("name", SUITES.names())
def test_every_suite_says_what_it_is_and_takes_its_own_defaults(name: str) -> None:
    entry = SUITES.entry(name)
    known = entry.form
    assert entry.about.endswith((".", "?")) and all(
        isinstance(one, Setting) for one in known.values()
    )
    written = {key: str(one.default) for key, one in known.items()}
    assert settings_of(name, written) == settings_of(name, {})


def test_labels_that_differ_give_names_that_differ_also_where_they_are_cut() -> None:
    labels = ["a/b", "a|b", "x" * 200, "x" * 201]
    names = [run_name("night", label) for label in labels]
    assert len(set(names)) == 4 and all(
        len(name.encode()) <= 100 and "/" not in name for name in names
    )


def test_the_same_request_has_the_same_name_and_another_number_of_questions_another() -> None:
    def name(llm: str, limit: int | None) -> str:
        return suite_name("rgb-noise", llm, {"set": "en"}, limit)

    assert name("m", None) == name("m", None) == "rgb-noise en m"
    assert name("m", 5) != name("m", 6)
    assert len(name("m" * 300, None)) <= 60
