"""The form of the Agent tab: settings of workflows and environments. What several share is drawn once and keeps its value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from rallebench.core.settings import Setting
from rallebench.environments import ENVIRONMENTS
from rallebench.services.workbench import Workbench
from rallebench.workflows import WORKFLOWS
from rallebench.workspace.environments import scholar_tables

NAMES_DATA = ("retriever", "corpus", "table")
"""Settings of environments that name what the workspace holds; they stand beside the environment's name."""

FIRST, FIRST_ENV = "react", "wikipedia"

Known = tuple[str, str, Setting]
"""``workflow`` or ``env``, a setting's name, the setting."""


@dataclass
class AgentForm:
    """``inputs``: a component for each of ``settings``; owners with an equal setting of one name share it."""

    settings: list[Known] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)

    def of(self, workflow: str | None, env: str | None) -> list[int]:
        """Where the settings of a workflow and of its environment stand."""
        wanted = known_of("workflow", workflow) + (
            known_of("env", env) if needs_env(workflow) else []
        )
        return [i for i, known in enumerate(self.settings) if known in wanted]


def workflows() -> list[str]:
    """The workflows that can be run here; those of suites cannot."""
    return [name for name in WORKFLOWS.names() if "prompts" in WORKFLOWS.entry(name).traits]


def needs_env(workflow: str | None) -> bool:
    """Whether a workflow acts on an environment."""
    return bool(
        workflow in WORKFLOWS and workflow and WORKFLOWS.entry(workflow).traits.get("needs_env")
    )


def needs_python(workflow: str | None) -> bool:
    """Whether a workflow runs programs that a model writes."""
    return bool(
        workflow in WORKFLOWS and workflow and WORKFLOWS.entry(workflow).traits.get("needs_python")
    )


def known_of(owner: str, name: str | None) -> list[Known]:
    """The settings of a workflow or an environment, [] for one that there is not."""
    registry: Any = WORKFLOWS if owner == "workflow" else ENVIRONMENTS
    if not name or name not in registry:
        return []
    settings: Mapping[str, Setting] = registry.entry(name).form
    return [(owner, key, setting) for key, setting in settings.items()]


def in_order() -> list[Known]:
    """All settings, each once, those of one owner as far as can be in its own order."""
    found: list[Known] = []
    owners = [("env", name) for name in ENVIRONMENTS.names()] + [
        ("workflow", name) for name in workflows()
    ]
    for owner, name in owners:
        at = 0
        for known in known_of(owner, name):
            if known not in found:
                found.insert(at, known)
            at = found.index(known) + 1
    return found


def draw_settings(workbench: Workbench) -> AgentForm:
    """A component for every setting; those of the first workflow and environment are seen."""
    form = AgentForm(in_order())
    seen = form.of(FIRST, FIRST_ENV)
    drawn: dict[int, Any] = {}
    data = [i for i, (_, name, _) in enumerate(form.settings) if name in NAMES_DATA]
    with gr.Row(equal_height=True):
        drawn |= {i: _input(workbench, form.settings[i], i in seen) for i in data}
    with gr.Accordion(
        "Settings: demonstrations, limits and the like", open=False, elem_id="agent-settings"
    ):
        for owner in ("workflow", "env"):
            with gr.Row(equal_height=True):
                others = [
                    i
                    for i, known in enumerate(form.settings)
                    if known[0] == owner and i not in drawn
                ]
                drawn |= {i: _input(workbench, form.settings[i], i in seen) for i in others}
    form.inputs = [drawn[i] for i in range(len(form.settings))]
    return form


def _input(workbench: Workbench, known: Known, visible: bool) -> Any:
    owner, name, setting = known
    of = next(
        one
        for one in (ENVIRONMENTS.names() if owner == "env" else workflows())
        if known in known_of(owner, one)
    )
    shared: dict[str, Any] = {
        "label": name if owner == "workflow" or name in NAMES_DATA else f"{name} (environment)",
        "info": setting.about or setting.must_be,
        "elem_id": f"agent-set-{of}-{name}",
        "visible": visible,
        "scale": 1,
        "min_width": 210,
    }
    if setting.kind is bool:
        return gr.Checkbox(setting.default, **shared)
    if setting.choices:
        return gr.Dropdown(
            list(setting.choices), value=setting.default, allow_custom_value=True, **shared
        )
    if setting.kind is not str:
        return gr.Number(setting.default, **shared)
    if owner == "env" and name in NAMES_DATA:
        return gr.Dropdown(
            offered(workbench, name), value=setting.default, allow_custom_value=True, **shared
        )
    return gr.Textbox(setting.default, max_lines=1, **shared)


def offered(workbench: Workbench, name: str) -> list[Any]:
    """What the workspace has that a setting may name."""
    if name == "retriever":
        return list(workbench.workspace.retrievers())
    if name == "corpus":
        return [("the index's own passages", ""), *workbench.data.corpora()]
    return list(scholar_tables(workbench.workspace))


def offers(workbench: Workbench, form: AgentForm) -> list[Any]:
    """Updates that offer what can be named now; what is chosen stays chosen."""
    return [
        gr.update(choices=offered(workbench, name))
        if name in NAMES_DATA and owner == "env"
        else gr.skip()
        for owner, name, _ in form.settings
    ]


def shown(form: AgentForm, workflow: str | None, env: str | None) -> list[Any]:
    """Updates that show the settings of a workflow and its environment alone."""
    own = set(form.of(workflow, env))
    return [gr.update(visible=i in own) for i in range(len(form.settings))]


def filled(form: AgentForm, workflow: str, env: str, settings: Mapping[str, Any]) -> list[Any]:
    """Updates that put an earlier request into the form; the settings of others stay."""
    own = set(form.of(workflow, env))
    return [
        gr.update(
            value=settings.get(name if owner == "workflow" else f"env.{name}", setting.default),
            visible=True,
        )
        if i in own
        else gr.update(visible=False)
        for i, (owner, name, setting) in enumerate(form.settings)
    ]


def given(
    form: AgentForm, workflow: str | None, env: str | None, values: Sequence[Any]
) -> dict[str, Any]:
    """The settings that are not the defaults, as ``Workbench.agent`` takes them."""
    found: dict[str, Any] = {}
    for i in form.of(workflow, env):
        owner, name, setting = form.settings[i]
        if (values[i] in ("", None) and setting.default != "") or values[i] == setting.default:
            continue
        found[name if owner == "workflow" else f"env.{name}"] = values[i]
    return found
