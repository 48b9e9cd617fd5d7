"""Gradio's themes on the page: their hue, fonts and radius as tokens, readable in light and dark."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from rallebench.core.errors import UsageError
from rallebench.gui.themes import DARK, LIGHT, READABLE, built_in, contrast, read_theme, tokens


@pytest.mark.parametrize("name", sorted(built_in()))
def test_every_theme_of_gradio_can_be_read_in_light_and_dark(name: str) -> None:
    rules = tokens(read_theme(name))
    light, dark = (re.findall(r"(--[a-z-]+):(#[0-9a-f]+);", part) for part in rules.split("}", 1))
    for surface, values in ((LIGHT, dict(light)), (DARK, dict(dark))):
        for other in (surface, values["--acc-soft"], values["--on-acc"]):
            assert contrast(values["--acc"], other) >= READABLE
    assert "--sans:" in rules and "--mono:" in rules and "--r:" in rules


def test_a_theme_brings_its_font_and_radius_and_nothing_of_another_server() -> None:
    theme = read_theme("Ocean")
    assert "--sans:IBM Plex Sans, " in tokens(theme) and "--r:20px;" in tokens(theme)
    assert theme._stylesheets == [] and "https://" not in theme._get_theme_css()


def test_an_unknown_theme_is_one_sentence_with_the_list() -> None:
    with pytest.raises(
        UsageError, match=r"no theme 'sofd'; choose one of base, .*, soft, or owner/"
    ):
        read_theme("sofd")


def test_a_theme_of_the_hub_is_fetched_only_if_its_name_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched: list[str] = []

    def fetch(name: str) -> object:
        fetched.append(name)
        raise OSError("no network\nat all")

    monkeypatch.setattr("gradio.Theme.from_hub", fetch)
    for name in ("no-such", "https://evil.example/x/y", "../secret/x", "a b/c"):
        with pytest.raises(UsageError, match="has no theme"):
            read_theme(name)
    assert fetched == []
    with pytest.raises(
        UsageError, match=r"'me/mine' could not be .* \(no network\); choose one of"
    ):
        read_theme("me/mine")
    assert fetched == ["me/mine"]


def test_values_of_a_theme_that_are_no_plain_css_are_left_out() -> None:
    hostile = SimpleNamespace(
        _font=["};body{x", "Lora"], _font_mono=["</style>"], radius_md="1px;}", primary_500="url(x)"
    )
    assert tokens(hostile) == ":root{--sans:Lora;}:root.dark,body.dark{}"
