"""Which chain answers a set in which way: the shipped ones, unless the workspace has one of the same name."""

from __future__ import annotations

from dataclasses import replace

from rallebench.chains.overrides import override
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.types import Chain
from rallebench.experiments.papers.common import names_in
from rallebench.experiments.papers.kilt.sets import MODES, KiltSet
from rallebench.workspace.checking import check_chain


def modes_of(written: str) -> tuple[str, ...]:
    """The ways, each once, as written. Raises UsageError.

    >>> modes_of("read, closed-book")
    ('read', 'closed-book')
    """
    modes = tuple(names_in(written))
    strange = [mode for mode in modes if mode not in MODES]
    if strange or not modes:
        raise UsageError(
            f"--set mode={written}: {strange[0] if strange else 'nothing'!r} is no way to answer; choose from {', '.join(MODES)}."
        )
    return modes


def chain_of(request: ExperimentRequest, kilt_set: KiltSet, mode: str) -> Chain | None:
    """The chain, with its model and retriever in place and checked; None where this set has no such chain.

    With ``compat=original`` a title ends at its first comma, as in RaLLe's files. Raises UsageError for what it lacks, naming
    the flag.
    """
    s, workspace = request.settings, request.workspace
    name = kilt_set.chains.get(mode)
    if name is None:
        return None
    original = s["compat"] == "original" and name == "rewrite-el-titles"
    chain = workspace.chain("rewrite-el" if original else name)
    if kilt_set.task == "linking" and mode == "retrieve" and s["rewrite"]:
        search = workspace.chain("rewrite-el").actions[0]
        chain = replace(chain, name="retrieve-only-rewrite-el", actions=(search,))
    if kilt_set.task == "linking" and mode == "read" and not s["rewrite"]:
        plain = chain.replace_action(0, template="{question}", dialect="fstring")
        chain = replace(plain, name=f"{chain.name}-without-rewrite")
    kinds = {action.kind for action in chain.actions}
    where = f"To answer {kilt_set.label} with mode={mode}"
    if "retrieve" in kinds and not s["retriever"]:
        raise UsageError(f"{where} an index is needed: --set retriever=NAME.")
    if "generate" in kinds and not request.llm:
        raise UsageError(f"{where} a language model is needed; name one with --llm.")
    k = s["k"] if "retrieve" in kinds else None
    chain = override(chain, request.llm, s["retriever"], k)
    check_chain(workspace, chain)
    return chain
