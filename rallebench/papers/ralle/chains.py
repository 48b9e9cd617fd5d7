"""Chains for KILT's sets: RaLLe's own, from the user's copy, or ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rallebench.chains.overrides import override
from rallebench.core.errors import BadFileError, Hint, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.originals import OriginalCopy, copy_in
from rallebench.core.prompts import ORIGINAL, SHIPPED, Wording, wording
from rallebench.core.types import Chain
from rallebench.papers.ralle.sets import PLAIN, KiltSet
from rallebench.papers.ralle.settings import KiltAskingSettings
from rallebench.workspace.checking import check_chain
from rallebench.workspace.paths import WorkspaceFolder


def prepare_chain(
    request: ExperimentRequest[WorkspaceFolder], s: KiltAskingSettings, kilt_set: KiltSet, mode: str
) -> Chain | None:
    """The checked chain of a set, with its model and retriever; None if the set has no such chain.

    With ``compat=original``, a title ends at its first comma, as in RaLLe's files. Raises UsageError for a missing part.
    """
    linking = kilt_set.task == "linking"
    if mode == PLAIN and not linking:
        return None
    chain = _chain(request, s, kilt_set, "retrieve" if mode == PLAIN else mode)
    if chain is None:
        return None
    if linking and (mode == PLAIN or (mode in ("read", "retrieve") and not s.rewrite)):
        plain = chain.replace_action(0, template="{question}", dialect="fstring")
        chain = replace(plain, name=f"{chain.name}-without-rewrite")
    kinds = {action.kind for action in chain.actions}
    where = f"To answer {kilt_set.label} with mode={mode}"
    if "retrieve" in kinds and not s.retriever:
        raise UsageError(f"{where} an index is needed.", hint=Hint("set", "retriever=NAME"))
    if "generate" in kinds and not request.llm:
        raise UsageError(f"{where} a language model is needed.", hint=Hint("choose", "llm"))
    k = s.k if "retrieve" in kinds else None
    chain = override(chain, request.llm, s.retriever, k)
    check_chain(request.workspace, chain)
    return chain


def _chain(
    request: ExperimentRequest[WorkspaceFolder], s: KiltAskingSettings, kilt_set: KiltSet, mode: str
) -> Chain | None:
    """The chain before any changes: RaLLe's own, from the user's copy, or ours."""
    workspace = request.workspace
    if (copy := open_copy(s.prompts)) is not None:
        name = f"{mode}/{kilt_set.name}"
        if name not in copy:
            return None
        copy.read(name)  # raises BadFileError for a missing file
        theirs: Chain = workspace.chain(str(copy.path(name)))
        return theirs
    written = kilt_set.chains.get(mode)
    if written is None:
        return None
    linking = kilt_set.task == "linking"
    if linking and mode == "retrieve" and s.rewrite:
        search = workspace.chain("rewrite-el").actions[0]
        plain: Chain = workspace.chain(written)
        return replace(plain, name="retrieve-only-rewrite-el", actions=(search,))
    original = s.original and written == "rewrite-el-titles"
    ours: Chain = workspace.chain("rewrite-el" if original else written)
    return ours


def open_copy(own: str) -> OriginalCopy | None:
    """The user's copy of RaLLe's repository; None if not given. Raises BadFileError for any other folder."""
    if not own:
        return None
    copy = copy_in(Path(own).expanduser().resolve(), Path(__file__).parent)
    if copy is None:
        raise BadFileError(
            f"{own} is not a copy of RaLLe's repository; it lacks scripts/configs/experiment_settings."
        )
    return copy


def wording_in(own: str, pairs: Iterable[tuple[str, str]]) -> Wording:
    """The wording of the prompts in the chains for these (set, way) pairs. ``own``: a copy of RaLLe's repository, or ''."""
    copy = open_copy(own)
    if copy is None:
        return SHIPPED
    names = [f"{'retrieve' if mode == PLAIN else mode}/{name}" for name, mode in pairs]
    read = {name: copy.read(name) for name in names}
    texts = {name: original.text for name, original in read.items()}
    return wording(ORIGINAL, texts, unknown=[n for n, of in read.items() if not of.known])
