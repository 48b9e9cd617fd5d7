"""A registry: who may own a name, what an entry may say, and files that another distribution brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from distributions import Install, installing  # noqa: F401 - a fixture

from rallebench.core import registry
from rallebench.core.errors import BadFileError
from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.metrics import METRICS

Make = Callable[..., Registry[Any]]

METRIC = """
from rallebench.metrics import METRICS

@METRICS.register(
    "always_one", needs="", higher_is_better=True, label="One", unit="fraction", range=(0, 1)
)
def always_one(episode, gold):
    \"\"\"One for every answer.\"\"\"
    return 1.0
"""


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Registries over this folder's package, which are gone after the test."""
    monkeypatch.setattr(registry, "_ALL", dict(registry._ALL))
    return lambda **more: Registry("colour", "rallebench.core", name="colours", **more)


def test_a_second_owner_of_a_name_is_refused_and_the_first_stays(make: Make) -> None:
    colours = make()
    colours.register("red")(len)
    colours.register("red")(len)
    with pytest.raises(ValueError, match="two colours claim the name 'red'"):
        colours.register("red")(max)
    assert colours._entries["red"].value is len


def test_a_trait_that_the_registry_does_not_declare_is_refused_with_the_nearest(make: Make) -> None:
    colours = make(traits={"wavelength": "nanometres"})
    with pytest.raises(ValueError, match=r"the colour 'red'.*'wavelenght'.*Did you mean 'waveleng"):
        colours.register("red", wavelenght=700)
    colours.register("red", wavelength=700)(len)
    assert colours._entries["red"].traits == {"wavelength": 700}


@pytest.mark.parametrize(
    "setting",
    [
        Setting(int, 0, 1, 9),
        Setting(float, float("nan")),
        Setting(str, "c", choices=("a", "b")),
        Setting(bool, "maybe"),
        Setting(int, 1, 1, 9, sweep=(1, 10)),
    ],
)
def test_a_form_that_refuses_its_own_default_is_refused(make: Make, setting: Setting) -> None:
    with pytest.raises(ValueError, match=r"the colour 'red': the default of 'k' is .*; it must be"):
        make().register("red", form={"k": setting})


def test_a_default_of_none_means_unset(make: Make) -> None:
    colours = make()
    colours.register("red", form={"k": Setting(int, None, 1, 9)})(len)
    assert colours._entries["red"].form["k"].reads(None) is None


def test_two_registries_cannot_have_one_name(make: Make) -> None:
    make()
    with pytest.raises(ValueError, match="two registries claim the name 'colours'"):
        Registry("paint", "rallebench.core", name="colours")


def test_all_names_every_registry_by_its_own_name() -> None:
    assert registry.all()["metrics"] is METRICS


def test_a_distribution_adds_a_metric_by_an_entry_point(install: Install) -> None:
    install(METRICS, "one_metric", METRIC)
    assert "always_one" in METRICS and "em" in METRICS
    entry = METRICS.entry("always_one")
    assert (entry.about, entry.value(None, None)) == ("One for every answer.", 1.0)


def test_a_distribution_that_cannot_be_imported_is_named_with_the_mend(install: Install) -> None:
    install(METRICS, "broken_metric", "import nothing_of_this_name")
    with pytest.raises(BadFileError) as raised:
        METRICS.names()
    assert "'broken_metric' adds a metric" in str(raised.value)
    assert "nothing_of_this_name" in str(raised.value)
    assert str(raised.value).endswith("update or uninstall broken_metric.")
