"""Checks of a chain or an agent before a model is loaded: templates, retrievers, language models."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rallebench.chains.safe_format import Field, parse_format
from rallebench.chains.template import check
from rallebench.core.errors import TemplateError, UsageError
from rallebench.core.runs import FlowSpec
from rallebench.core.types import Action, Chain
from rallebench.workspace.entries import read_manifest
from rallebench.workspace.paths import WorkspaceFolder

_PER_ACTION = ("prompt", "response", "wiki_id_title", "documents")


def check_chain(workspace: WorkspaceFolder, chain: Chain) -> None:
    """Raise UsageError, naming the action, for an invalid template, retriever or model."""
    for number, action in enumerate(chain.actions, 1):
        if not action.template and number > 1:
            return  # an empty template ends the chain
        try:
            if not action.template:
                raise TemplateError(
                    "its template is empty, so the chain would ask nothing; write one."
                )
            check(action.template, action.dialect)
            _check_reach(action, number - 1)
            _check_target(workspace, action)
        except UsageError as error:
            raise error.saying(f"Action {number} of {chain.name!r}: {error}") from None


def check_flow(workspace: WorkspaceFolder, flow: FlowSpec) -> None:
    """Raise UsageError for an invalid chain, or for an unknown model or retriever of an agent."""
    if flow.chain is not None:
        check_chain(workspace, flow.chain)
        return
    try:
        for name in flow.llms:
            workspace.llm(name)
        for name in flow.retrievers:
            _check_retriever(workspace, name)
    except UsageError as error:
        raise error.saying(f"{flow.name}: {error}") from None


def _check_reach(action: Action, earlier: int) -> None:
    """Raise TemplateError if a field such as ``{response[1]}`` refers to an action that runs later or does not exist."""
    fields = parse_format(action.template) if action.dialect == "fstring" else ()
    for field in fields:
        if isinstance(field, Field) and field.name in _PER_ACTION and field.keys:
            number = field.keys[0]
            if isinstance(number, int) and number >= earlier:
                raise TemplateError(
                    f"its template reads {field.name}[{number}], the {field.name} of action {number + 1}, "
                    f"but {earlier or 'no'} earlier action{'s' if earlier > 1 else ''} can be read; counting starts at 0."
                )


def _check_target(workspace: WorkspaceFolder, action: Action) -> None:
    if action.kind == "retrieve":
        _check_retriever(workspace, action.target)
    if action.kind == "generate" and not action.target:
        raise UsageError(_unknown_target("language model", "", workspace.llms()))
    if action.kind == "generate":
        workspace.llm(action.target)


def _check_retriever(workspace: WorkspaceFolder, name: str) -> None:
    """Raise UsageError for an unknown or damaged index, or an impossible combination."""
    known = workspace.retrievers()
    damaged = bool(name) and os.path.exists(workspace.indexes / name / "manifest.json")
    if name not in known and not damaged and not set(name) & set("?:"):
        raise UsageError(_unknown_target("retriever", name, known))
    for index in workspace.component_indexes(name):
        folder = workspace.indexes / index
        if os.path.exists(folder / "manifest.json"):
            read_manifest(folder)  # reports the fault


def _unknown_target(kind: str, name: str, known: Mapping[str, object]) -> str:
    named = f"there is no {kind} {name!r}" if name else f"no {kind} is chosen"
    return f"{named}. Known: {', '.join(known) or 'none'}."
