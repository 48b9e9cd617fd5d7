"""Which chain answers a set in which way: the shipped ones, unless the workspace has one of the same name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rallebench.chains.ralle import override
from rallebench.core.errors import UsageError
from rallebench.core.types import Chain
from rallebench.experiments.papers.kilt.sets import KiltSet
from rallebench.workspace.checking import check_chain
from rallebench.workspace.paths import Workspace

MODES = ("read", "closed-book", "retrieve", "three-action")


@dataclass(frozen=True, slots=True)
class Way:
    """How a set is answered. ``rewrite``: the query of entity linking is REWRITE-EL's; ``original``: as RaLLe's files have
    it, where a title ends at its first comma."""

    mode: str
    llm: str = ""
    retriever: str = ""
    k: int = 5
    rewrite: bool = True
    original: bool = False


def modes_of(written: str) -> tuple[str, ...]:
    """The ways, each once, as written. Raises UsageError.

    >>> modes_of("read, closed-book")
    ('read', 'closed-book')
    """
    found = tuple(dict.fromkeys(part.strip() for part in written.split(",") if part.strip()))
    strange = [mode for mode in found if mode not in MODES]
    if strange or not found:
        raise UsageError(
            f"--set mode={written}: {strange[0] if strange else 'nothing'!r} is no way to answer; choose from {', '.join(MODES)}."
        )
    return found


def chain_of(workspace: Workspace, one: KiltSet, way: Way) -> Chain | None:
    """The chain, with its model and retriever in place and checked; None where there is none for this set.

    Raises UsageError for what it lacks, naming the flag.
    """
    name = one.chains.get(way.mode)
    if name is None:
        return None
    chain = workspace.chain("rewrite-el" if name == "rewrite-el-titles" and way.original else name)
    if one.task == "linking":
        chain = _linking(workspace, chain, way)
    kinds = {action.kind for action in chain.actions}
    if "retrieve" in kinds and not way.retriever:
        raise UsageError(
            f"To answer {one.label} with mode={way.mode} an index is needed: --set retriever=NAME."
        )
    if "generate" in kinds and not way.llm:
        raise UsageError(
            f"To answer {one.label} with mode={way.mode} a language model is needed; name one with --llm."
        )
    chain = override(chain, way.llm, way.retriever, way.k if "retrieve" in kinds else None)
    check_chain(workspace, chain)
    return chain


def _linking(workspace: Workspace, chain: Chain, way: Way) -> Chain:
    """Entity linking asks the index for the mention, or with ``rewrite`` off for the whole text."""
    if way.mode == "retrieve" and way.rewrite:
        asking = workspace.chain("rewrite-el").actions[0]
        return replace(chain, name="retrieve-only-rewrite-el", actions=(asking,))
    if way.mode != "read" or way.rewrite:
        return chain
    plain = chain.replace_action(0, template="{question}", dialect="fstring")
    return replace(plain, name=f"{chain.name}-without-rewrite")
