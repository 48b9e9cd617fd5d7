"""A setting is converted to its kind, or refused with the permitted values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rallebench.core.errors import UsageError
from rallebench.core.settings import (
    Setting,
    check_values,
    dataclass_form,
    declare,
    declare_group,
    fill,
)

KNOWN = {
    "m": Setting(int, 32, 2, 512),
    "b": Setting(float, 0.4, 0, 1),
    "at_least": Setting(int, 1, 1),
    "at_most": Setting(float, 1, high=0.5),
    "form": Setting(str, "flat", choices=("flat", "graph")),
    "text": Setting(str, ""),
    "linked": Setting(bool, False),
}


def test_what_is_not_given_has_its_default() -> None:
    assert check_values("thing", KNOWN, {}) == {
        name: setting.default for name, setting in KNOWN.items()
    }


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("m", 16, 16),
        ("m", "16", 16),
        ("m", 16.0, 16),
        ("b", 1, 1.0),
        ("b", "0.25", 0.25),
        ("form", "graph", "graph"),
        ("text", "any", "any"),
        ("linked", True, True),
        ("linked", "False", False),
    ],
)
def test_a_value_is_read_as_its_kind(name: str, value: Any, read: Any) -> None:
    found = check_values("thing", KNOWN, {name: value})[name]
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("m", 1, "m=1: m must be a whole number from 2 to 512."),
        ("m", 2.5, "m=2.5: m must be a whole number from 2 to 512."),
        ("m", True, "m=True: m must be a whole number from 2 to 512."),
        ("m", "many", "m=many: m must be a whole number from 2 to 512."),
        ("m", None, "m=None: m must be a whole number from 2 to 512."),
        ("b", float("nan"), "b=nan: b must be a number from 0 to 1."),
        ("b", "inf", "b=inf: b must be a number from 0 to 1."),
        ("at_least", 0, "at_least=0: at_least must be a whole number of at least 1."),
        ("at_most", 1, "at_most=1: at_most must be a number of at most 0.5."),
        ("form", "tree", "form=tree: form must be one of flat, graph."),
        ("text", 3, "text=3: text must be text."),
        ("linked", 1, "linked=1: linked must be true or false."),
        (
            "n",
            1,
            "The thing has no setting 'n'; it has m, b, at_least, at_most, form, text and linked.",
        ),
    ],
)
def test_what_it_cannot_take_is_refused_in_a_sentence(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_values("thing", KNOWN, {name: value})
    assert str(refused.value) == sentence


def test_a_thing_without_settings_says_so() -> None:
    with pytest.raises(UsageError, match=r"The thing has no knob .x.; it has none\."):
        check_values("thing", {}, {"x": 1}, noun="knob")


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """Settings whose key, kind, default and line are declared in one place."""

    data: str = declare(str, "", about="the questions", names="dataset", required=True)
    samples: int = declare(int, 3, 0, 100)
    extra: Any = declare(object, {})


def test_the_fields_of_a_class_are_the_declared_settings_in_their_order() -> None:
    form = dataclass_form(CurveSettings)
    assert list(form) == ["data", "samples", "extra"]
    assert form["data"].required and form["samples"].must_be == "a whole number from 0 to 100"


def test_checked_values_are_read_as_attributes_and_other_keys_are_left_to_others() -> None:
    values = check_values("thing", dataclass_form(CurveSettings), {"data": "mine", "samples": "5"})
    assert fill(CurveSettings, {**values, "articles": "news"}) == CurveSettings("mine", 5, {})
    assert fill(CurveSettings, {}).extra is not CurveSettings().extra, "no shared default"


@dataclass(frozen=True, slots=True)
class StudySettings:
    """A suite that shares settings with others."""

    first: int = declare(int, 1)
    data: CurveSettings = declare_group(CurveSettings)
    last: bool = declare(bool, False)


def test_a_group_of_settings_stands_in_the_form_at_its_place() -> None:
    assert list(dataclass_form(StudySettings)) == ["first", "data", "samples", "extra", "last"]
    settings = fill(StudySettings, {"first": 2, "data": "mine", "last": True})
    assert settings == StudySettings(2, CurveSettings("mine", 3, {}), True)
