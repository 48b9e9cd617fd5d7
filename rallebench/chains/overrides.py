"""Overrides of a chain's settings: model, retriever, k, and ``--set``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from rallebench.chains.saved import MAX_K, checked_generation
from rallebench.core.errors import UsageError
from rallebench.core.settings import parse_settings
from rallebench.core.types import Action, ActionChanges, Chain, Json


def override(
    chain: Chain, llm: str | None = None, retriever: str | None = None, k: int | None = None
) -> Chain:
    """Replace the model, retriever or number of passages in the chain's actions.

    None (or '') keeps a setting. A chain without such an action is returned unchanged, so that one override fits a whole
    folder of chains. Raises UsageError if ``k`` is not 1 to 10,000.
    """
    if k is not None and not 1 <= k <= MAX_K:
        raise UsageError(f"k is {k}; the number of passages must be 1 to {MAX_K:,}.")
    targets = {"generate": llm, "retrieve": retriever}

    def override_action(action: Action) -> Action:
        new_k = k if k and action.kind == "retrieve" else action.k
        return replace(action, target=targets.get(action.kind) or action.target, k=new_k)

    return replace(chain, actions=tuple(map(override_action, chain.actions)))


def overridden(
    chain: Chain,
    llm: str | None,
    retriever: str | None,
    settings: Sequence[str],
    *,
    all_fit: bool = True,
) -> Chain:
    """Apply another model, retriever and ``key=value`` settings. Raises UsageError for a setting that fits no action."""
    changed = override(chain, llm=llm, retriever=retriever)
    return with_overrides(changed, parse_settings(list(settings)), all_fit=all_fit)


def with_overrides(chain: Chain, settings: Json, *, all_fit: bool = True) -> Chain:
    """Apply ``--set``: ``k``, generation settings for all generate actions, or ``N.field`` for action N (from 1).

    Raises UsageError for a setting that no action has; if ``all_fit`` is false it is ignored, so that one setting serves
    a whole folder of chains.
    """
    for key, value in settings.items():
        number, dot, name = key.partition(".")
        if dot and number.isdecimal() and len(number) < 9:
            if not 1 <= int(number) <= len(chain.actions):
                raise UsageError(f"{key}: the chain has {len(chain.actions)} actions.")
            chain = _set(chain, int(number) - 1, name, value, key)
            continue
        kind = "retrieve" if key == "k" else "generate"
        fits = [i for i, action in enumerate(chain.actions) if action.kind == kind]
        if not fits and all_fit:
            raise UsageError(f"{key}: no action of this chain has this setting.")
        for index in fits:
            chain = _set(chain, index, key, value, key)
    return chain


def _set(chain: Chain, index: int, name: str, value: Any, key: str) -> Chain:
    kind = chain.actions[index].kind
    if name in ("template", "dialect") or (name == "target" and kind != "identity"):
        return chain.replace_action(index, **cast(ActionChanges, {name: str(value)}))
    if name == "k" and kind == "retrieve":
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_K:
            raise UsageError(f"{key}={value}: k must be a whole number from 1 to {MAX_K:,}.")
        return chain.replace_action(index, k=value)
    if kind != "generate" or name in ("", "k"):
        raise UsageError(f"{key}: action {index + 1} is of the kind {kind!r} and has no {name!r}.")
    generation = {**chain.actions[index].generation, name: value}
    return chain.replace_action(index, generation=checked_generation(generation, f"{key}"))
