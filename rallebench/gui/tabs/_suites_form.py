"""The form of the Suites tab: which suite, with which settings. What suites share is drawn once and keeps its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from rallebench.core.experiments import ExperimentRequest
from rallebench.core.settings import Setting, checked
from rallebench.encoders.references import encoders
from rallebench.experiments import SUITES
from rallebench.gui import views
from rallebench.gui.tabs.sweep import number_of
from rallebench.gui.wording import on_page
from rallebench.services.experiments import named, suite_name
from rallebench.services.workbench import Workbench

NO_SUITE = "Choose a suite above."
FIRST = "reval-scholar"
"""The suite that a new page shows: it needs nothing but a model, for its questions and its environment are the starter's."""
RETRIEVERS = frozenset({"index", "retriever"})
"""Settings of these names take a retriever: those of the workspace are offered."""


@dataclass
class SuiteForm:
    """``inputs``: a component for each of ``settings``, (name, Setting); suites with an equal Setting of one name share it."""

    settings: list[tuple[str, Setting]] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)

    def of(self, suite: str | None) -> list[int]:
        """Where the settings of a suite stand."""
        known = known_of(suite)
        return [i for i, (name, setting) in enumerate(self.settings) if known.get(name) == setting]


@dataclass(frozen=True, slots=True)
class Request:
    """What the form asks for; ``changed``: settings that are not the defaults."""

    suite: str
    asked: ExperimentRequest
    name: str
    changed: Mapping[str, Any]


def known_of(suite: str | None) -> Mapping[str, Setting]:
    """The settings of a suite, {} for none."""
    known: Mapping[str, Setting] = SUITES.entry(suite).form if suite and suite in SUITES else {}
    return known


def first_suite() -> str | None:
    """The suite that is chosen before anybody chose."""
    return FIRST if FIRST in SUITES else next(iter(SUITES.names()), None)


def in_order() -> list[tuple[str, Setting]]:
    """The settings of all suites, each once, those of one suite as far as can be in its own order."""
    found: list[tuple[str, Setting]] = []
    for suite in SUITES.names():
        at = 0
        for pair in known_of(suite).items():
            if pair not in found:
                found.insert(at, pair)
            at = found.index(pair) + 1
    return found


def draw_settings(workbench: Workbench, shown: str | None) -> SuiteForm:
    """A component for every setting of every suite; those of ``shown`` are seen."""
    form = SuiteForm(in_order())
    visible = [form.settings[i] for i in form.of(shown)]
    with gr.Row(equal_height=True, elem_id="suites-settings"):
        for name, setting in form.settings:
            owner = next(suite for suite in SUITES.names() if known_of(suite).get(name) == setting)
            form.inputs.append(
                _input(
                    workbench,
                    name,
                    setting,
                    f"suites-set-{owner}-{name}",
                    (name, setting) in visible,
                )
            )
    return form


def _input(workbench: Workbench, name: str, setting: Setting, part: str, visible: bool) -> Any:
    info = on_page(setting.about or setting.must_be)
    about: dict[str, Any] = {
        "label": name,
        "info": info,
        "elem_id": part,
        "visible": visible,
        "scale": 1,
        "min_width": 200,
    }
    if (
        setting.kind is bool
    ):  # Gradio gives a checkbox no width of its own, whatever min_width says: the style sheet does
        return gr.Checkbox(setting.default, elem_classes="rb-tick", **about)
    if setting.choices:
        return gr.Dropdown(
            list(setting.choices), value=setting.default, allow_custom_value=True, **about
        )
    if setting.kind is not str:
        return gr.Number(setting.default, **about)
    if (offered := _offered(workbench, name, setting)) is not None:
        return gr.Dropdown(["", *offered], value=setting.default, allow_custom_value=True, **about)
    return gr.Textbox(setting.default, max_lines=1, **{**about, "scale": 2, "min_width": 280})


def _offered(workbench: Workbench, name: str, setting: Setting) -> list[str] | None:
    """What a setting may name of the workspace now; None for one that names nothing there."""
    if setting.kind is not str or setting.choices:
        return None
    if "a language model" in setting.about:
        return list(workbench.workspace.llms())
    if name in RETRIEVERS:
        return list(workbench.workspace.retrievers())
    return list(encoders()) if setting.about.startswith("encoder") else None


def about_of(suite: str | None) -> str:
    """What a suite is, in its own words."""
    if not suite or suite not in SUITES:
        return views.empty(NO_SUITE)
    entry = SUITES.entry(suite)
    alone = (
        ""
        if entry.traits.get("needs_llm", True)
        else " It can do without the language model above."
    )
    return views.note(on_page(entry.about) + alone, "good")


def request_of(
    workbench: Workbench,
    form: SuiteForm,
    suite: str | None,
    llm: str | None,
    limit: str,
    name: str,
    values: Sequence[Any],
) -> Request:
    """What stands in the form. Raises UsageError, NotFoundError."""
    known = SUITES.entry((suite or "").strip()).form
    given = {form.settings[i][0]: values[i] for i in form.of(suite) if values[i] not in ("", None)}
    settings = checked(f"suite {suite!r}", known, given)
    assert suite is not None
    asked = ExperimentRequest(
        workbench.workspace,
        (llm or "").strip(),
        settings,
        number_of(limit),
        allow_python=workbench.allow_python,
    )
    if asked.llm:
        workbench.workspace.llm(asked.llm)
    changed = {key: value for key, value in settings.items() if value != known[key].default}
    chosen = (name or "").strip() or suite_name(suite, asked.llm, settings, asked.limit)
    return Request(suite, named(asked, suite, chosen), chosen, changed)


def filled(form: SuiteForm, suite: str, settings: Mapping[str, Any]) -> list[Any]:
    """Updates that put the settings of an earlier request into the form; other suites' stay."""
    own = set(form.of(suite))
    return [
        gr.update(value=settings.get(name, setting.default), visible=True)
        if i in own
        else gr.update(visible=False)
        for i, (name, setting) in enumerate(form.settings)
    ]


def shown(workbench: Workbench, form: SuiteForm, suite: str | None) -> list[Any]:
    """Updates that show the settings of a suite alone, with what the workspace has for them now."""
    own = set(form.of(suite))
    return [gr.update(visible=i in own, **one) for i, one in enumerate(offers(workbench, form))]


def offers(workbench: Workbench, form: SuiteForm) -> list[dict[str, Any]]:
    """For every setting the choices that there are now: an index that was built, a model that was added; {} where it has none."""
    found = [_offered(workbench, name, setting) for name, setting in form.settings]
    return [{} if one is None else {"choices": ["", *one]} for one in found]
