"""Names of runs: different requests have different names, equal requests the same."""

from __future__ import annotations

from rallebench.engine.experiment_store import run_name
from rallebench.views.experiment_requests import suite_name


def test_labels_that_differ_give_names_that_differ_also_where_they_are_cut() -> None:
    labels = ["a/b", "a|b", "x" * 200, "x" * 201]
    names = [run_name("night", label) for label in labels]
    assert len(set(names)) == 4
    assert all(len(name.encode()) <= 100 and "/" not in name for name in names)


def test_the_same_request_has_the_same_name_and_another_number_of_questions_another() -> None:
    def name(llm: str, limit: int | None) -> str:
        return suite_name("rgb-noise", llm, {"set": "en"}, limit)

    assert name("m", None) == name("m", None) == "rgb-noise en m"
    assert name("m", 5) != name("m", 6)
    assert len(name("m" * 300, None)) <= 60
