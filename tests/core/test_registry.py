"""A registry: owners of names, content of entries, and files from other distributions."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributions import Install, installing  # noqa: F401 - a fixture
from project import PROJECT

from rallebench.core import registered, registry
from rallebench.core.registered import Listed
from rallebench.core.registry import Registry
from rallebench.core.settings import Setting
from rallebench.experiments import EXPERIMENTS, SUITES
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
    """Make registries over this folder's package, and remove them after the test."""
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


FAILS_AFTER_ONE_METRIC = (
    METRIC
    + """
import nothing_of_this_name
"""
)


def test_a_broken_plug_in_is_one_warning_and_the_others_work(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(METRICS, "broken_metric", FAILS_AFTER_ONE_METRIC)
    install(METRICS, "sound_metric", METRIC.replace("always_one", "always_right"))
    names = METRICS.names()
    assert {"em", "always_right"} <= set(names) and "always_one" not in names
    assert METRICS.names() == names and "nothing" not in METRICS
    (message,) = [record.getMessage() for record in caplog.records]
    assert "'broken_metric' is left out" in message and "nothing_of_this_name" in message
    assert message.endswith("update or uninstall broken_metric.")


def test_a_plug_in_cannot_take_a_name_of_the_package(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(METRICS, "other_em", METRIC.replace("always_one", "em"))
    assert "em" in METRICS.names() and METRICS.entry("em").module != "other_em"
    assert "the metric 'em' is one of rallebench's own" in caplog.text


WHOLE = METRIC.replace("always_one", "always_right")
BROKEN = {
    "a module that is not there": ("", "ModuleNotFoundError"),
    "an import that fails": ("import nothing_of_this_name\n", "nothing_of_this_name"),
    "a syntax error": ("def broken(:\n", "SyntaxError"),
    "a program that ends": ("raise SystemExit('no licence')\n", "SystemExit: no licence"),
    "a thing of another type": (
        METRIC + "METRICS.register('seven', label='Seven')(7)\n",
        "the metric 'seven' is a function (episode, gold) → a number, or None where it does not apply; int 7 cannot be called",
    ),
    "a trait that is missing": (
        METRIC + "METRICS.register('short')(len)\n",
        "the metric 'short' lacks the trait 'label': the name as printed in papers",
    ),
    "a trait that is unknown": (
        METRIC + "METRICS.register('long', label='Long', lable='x')(len)\n",
        "There is no trait 'lable'. Did you mean 'label'?",
    ),
    "a setting that refuses its default": (
        METRIC
        + "from rallebench.core.settings import Setting\n"
        + "METRICS.register('k', label='K', form={'k': Setting(int, 0, 1, 9)})(len)\n",
        "the default of 'k' is 0; it must be a whole number from 1 to 9",
    ),
    "the name of a metric of the package": (
        METRIC + "METRICS.register('em', label='EM')(len)\n",
        "the metric 'em' is one of rallebench's own; choose another name",
    ),
    "the name of another plug-in's metric": (
        METRIC + "METRICS.register('always_right', label='R')(len)\n",
        "two metrics claim the name 'always_right': a_sound_metric and broken_metric",
    ),
}


def site_of(module: str) -> Path:
    """The folder in which a module is installed."""
    return next(path for path in map(Path, sys.path) if (path / f"{module}.py").is_file())


@pytest.mark.parametrize("case", BROKEN)
def test_a_plug_in_that_fails_is_one_warning_with_the_reason_and_leaves_no_name(
    case: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(METRICS, "a_sound_metric", WHOLE)
    text, reason = BROKEN[case]
    install(METRICS, "broken_metric", text)
    if not text:
        (site_of("broken_metric") / "broken_metric.py").unlink()
    names = METRICS.names()
    assert {"em", "always_right"} <= {*names} and not {"always_one", "seven", "short"} & {*names}
    assert METRICS.names() == names
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("The plug-in 'broken_metric' is left out: ") and reason in message


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("entry_points.txt", "its file entry_points.txt cannot be read"),
        ("METADATA", "The plug-in 'without a name' is left out"),
        ("module", "its module 7 up, which adds a metric, cannot be imported"),
    ],
)
def test_a_damaged_distribution_is_one_warning_and_keeps_no_other_out(
    damage: str, reason: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(METRICS, "broken_metric", "raise ImportError('no')\n")
    folder = site_of("broken_metric") / "broken_metric-1.0.dist-info"
    points = folder / "entry_points.txt"
    line = {"module": "it = 7 up"}.get(damage, "it")
    if damage == "METADATA":
        (folder / "METADATA").unlink()
    else:
        points.write_text(points.read_text().replace("it = broken_metric", line))
    install(METRICS, "sound_metric", WHOLE)
    names = METRICS.names()
    assert {"em", "always_right"} <= {*names}
    if damage == "entry_points.txt" and not caplog.records:
        return  # this version of Python ignores the line
    (message,) = [record.getMessage() for record in caplog.records]
    assert reason in message


def test_an_experiment_without_a_place_is_left_out_and_the_suites_are_listed(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    text = "from rallebench.experiments import EXPERIMENTS\nEXPERIMENTS.register('adrift')(len)\n"
    install(EXPERIMENTS, "adrift_suite", text)
    assert "rgb-noise" in SUITES.names() and "adrift" not in EXPERIMENTS.names()
    assert "lacks the trait 'place': where it is offered: suites, builders" in caplog.text
    install(EXPERIMENTS, "lost_suite", text.replace("('adrift')", "('lost', place='suite')"))
    assert "lost" not in EXPERIMENTS.names() and "Did you mean 'suites'?" in caplog.text


def test_a_family_of_a_plug_in_that_fails_is_left_out(install: Install) -> None:
    text = (
        "from rallebench.metrics import METRICS\n"
        "METRICS.register_at_k('rank', label='Rank')(lambda episode, gold, k: 1.0)\n"
        "raise ImportError('late')\n"
    )
    install(METRICS, "broken_family", text)
    assert not [name for name in METRICS.names() if name.startswith("rank@")]
    assert "rank" not in METRICS.families


IMPORTED = """
import sys
from rallebench.experiments import EXPERIMENTS, SUITES

assert "rgb-noise" in SUITES.names() and "noise" in SUITES.listings()["rgb-noise"].about
before = {name for name in sys.modules if name.startswith("rallebench.")}
EXPERIMENTS.entry("batch")
print(*sorted({name for name in sys.modules if name.startswith("rallebench.")} - before))
"""


def test_names_are_listed_without_importing_their_modules_and_an_entry_imports_its_own() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, cwd=PROJECT
    )
    assert ran.returncode == 0, ran.stderr
    assert "rallebench.experiments.sweeps.running" in ran.stdout.split()
    assert "papers" not in ran.stdout


def test_a_module_that_is_not_recorded_is_imported_and_one_that_is_gone_is_forgotten(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "paints"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "red.py").write_text("from paints import COLOURS\nCOLOURS.register('red')(len)\n")
    monkeypatch.syspath_prepend(tmp_path)
    recorded = {
        "paints.gone": {"blue": Listed("blue")},
        "paints.red": {"red": Listed("red", "r")},
    }
    monkeypatch.setattr(registered, "read_listings", lambda name: recorded)
    paints = Registry("paint", "paints", name="paints")
    importlib.import_module("paints").COLOURS = paints  # type: ignore[attr-defined]
    assert paints.names() == ("red",) and paints.listing("red").about == "r"
    assert "paints.red" not in sys.modules
    (package / "green.py").write_text(
        "from paints import COLOURS\nCOLOURS.register('green')(len)\n"
    )
    fresh = Registry("paint", "paints", name="paints")
    sys.modules["paints"].COLOURS = fresh  # type: ignore[attr-defined]
    assert fresh.names() == ("green", "red") and "paints.red" not in sys.modules
    assert fresh.entry("red").module == "paints.red"
    for name in ("paints", "paints.red", "paints.green"):
        monkeypatch.delitem(sys.modules, name)
