"""Contract of every experiment: a place, a line about itself, described settings, its paper if it has one."""

from __future__ import annotations

import pytest

from rallebench.core.errors import NotFoundError, UsageError
from rallebench.core.settings import Setting, check_values
from rallebench.experiments import BUILDERS, EXPERIMENTS, SUITES
from rallebench.experiments.benchmarks import BENCHMARKS, benchmarks
from rallebench.services.experiments import experiment_rules
from rallebench.views import designs, published
from rallebench.views.lists import line

OWN = {"baselines", "batch", "sweep", "tradeoff"}
OF_BENCHMARKS = [name for name in SUITES.names() if "benchmark" in SUITES.listings()[name].traits]
REQUIRED = [
    (kind, name)
    for kind in EXPERIMENTS.names()
    for name, setting in EXPERIMENTS.entry(kind).form.items()
    if setting.required
]


def sample(setting: Setting) -> str:
    """A value that a setting accepts."""
    return str(setting.default or next(iter(setting.choices), "x"))


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_every_experiment_says_what_it_is_and_takes_its_own_defaults(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    assert entry.about.endswith((".", "?")) and experiment_rules(kind).noun
    assert all(setting.must_be for setting in entry.form.values())
    needed = {name: sample(setting) for name, setting in entry.form.items() if setting.required}
    written = {name: str(setting.default) for name, setting in entry.form.items()}
    assert check_values(kind, entry.form, written | needed) == check_values(
        kind, entry.form, needed
    )


@pytest.mark.parametrize(("kind", "name"), REQUIRED)
def test_a_required_setting_is_demanded_by_its_name(kind: str, name: str) -> None:
    form = EXPERIMENTS.entry(kind).form
    others = {key: sample(setting) for key, setting in form.items() if key != name}
    with pytest.raises(UsageError, match=f"needs the setting '{name}'"):
        check_values(
            kind, form, {key: value for key, value in others.items() if form[key].required}
        )


@pytest.mark.parametrize("kind", EXPERIMENTS.names())
def test_a_benchmark_is_named_by_suites_alone_and_is_known(kind: str) -> None:
    entry = EXPERIMENTS.entry(kind)
    if benchmark := entry.traits.get("benchmark", ""):
        assert benchmark in BENCHMARKS and entry.traits["place"] == "suites"


@pytest.mark.parametrize("name", OF_BENCHMARKS)
def test_every_suite_of_a_benchmark_says_what_works_without_a_download(name: str) -> None:
    ready = SUITES.entry(name).traits["ready"]
    assert ready.startswith("Without a download: ") and ready.endswith(".")
    languages = BENCHMARKS[SUITES.entry(name).traits["benchmark"]].languages
    assert languages and all(language in ready for language in languages)


@pytest.mark.parametrize("name", SUITES.names())
def test_a_suite_has_its_line_in_the_list_in_the_manual_and_on_the_page(name: str) -> None:
    entry = SUITES.entry(name)
    ready = entry.traits.get("ready", "")
    assert line(entry) == " ".join(filter(None, (entry.about, ready))), "the list and the manual"
    assert designs.suite_about(name)[0].endswith(ready or entry.about), "the page"


@pytest.mark.parametrize("name", benchmarks())
def test_every_benchmark_offers_one_of_its_suites_and_one_of_its_tables_first(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert benchmark.name == name and benchmark.title and benchmark.paper.startswith("arXiv:")
    assert designs.first_suite(name) == benchmark.first_suite
    assert published.benchmark_name(benchmark.first_table) == name
    assert published.open_table(benchmark.first_table).rows


def test_every_experiment_has_one_place_and_each_place_its_own_names() -> None:
    builders = {f"build-{name}" for name in BUILDERS.names()}
    others = {*EXPERIMENTS.names()} - {*SUITES.names(), *builders}
    assert others >= OWN and not builders & {*SUITES.names()}
    assert "crud" in SUITES and "crud" in BUILDERS
    assert SUITES.entry("crud").value is not BUILDERS.entry("crud").value


def test_errors_name_the_noun_of_the_place() -> None:
    with pytest.raises(UsageError, match="dataset builder 'crud'"):
        BUILDERS.settings("crud", {"nonsense": "1"})
    with pytest.raises(NotFoundError, match="Did you mean 'kilt-nq'"):
        SUITES.entry("kilt-nqq")
