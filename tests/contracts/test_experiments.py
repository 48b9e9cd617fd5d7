"""What every experiment owes: a place, a line about itself, settings that say what they are, its paper if it has one."""

from __future__ import annotations

import pytest

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.settings import check_values
from rallebench.experiments import BUILDERS, EXPERIMENTS, SUITES
from rallebench.experiments.benchmarks import BENCHMARKS, benchmarks
from rallebench.services.experiments import experiment_rules
from rallebench.views import designs, published
from rallebench.views.lists import line

OWN = {"baselines", "batch", "sweep", "tradeoff"}


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_every_experiment_says_what_it_is_and_takes_its_own_defaults(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    assert entry.about.endswith((".", "?")) and experiment_rules(kind).noun
    assert all(setting.must_be for setting in entry.form.values())
    written = {name: str(setting.default) for name, setting in entry.form.items()}
    assert check_values(kind, entry.form, written) == check_values(kind, entry.form, {})


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_every_suite_names_its_benchmark(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    is_suite = entry.traits["place"] == "suites"
    assert is_suite == (entry.traits.get("benchmark", "") in BENCHMARKS)


@pytest.mark.parametrize("name", SUITES.names())
def test_every_suite_says_what_works_without_a_download(name: str) -> None:
    ready = SUITES.entry(name).traits["ready"]
    assert ready.startswith("Without a download: ") and ready.endswith(".")
    languages = BENCHMARKS[SUITES.entry(name).traits["benchmark"]].languages
    assert languages and all(language in ready for language in languages)
    assert line(SUITES.entry(name)).endswith(ready), "the list and the manual"
    assert designs.suite_about(name)[0].endswith(ready), "the page"


@pytest.mark.parametrize("name", benchmarks())
def test_every_benchmark_offers_one_of_its_suites_and_one_of_its_tables_first(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert benchmark.name == name and benchmark.title and benchmark.paper.startswith("arXiv:")
    assert designs.first_suite(name) == benchmark.first_suite
    assert published.benchmark_name(benchmark.first_table) == name
    assert published.open_table(benchmark.first_table).rows


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
