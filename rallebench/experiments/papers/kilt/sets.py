"""KILT's eleven sets (Petroni et al. 2021, arXiv:2009.02252) as RaLLe names and scores them (arXiv:2308.10633).

``sets.json`` holds them. Rows and bytes are those of the official files. Of TriviaQA, KILT gives ids only; its script joins
the questions to a file whose size is not published. WNED's and CWEB's one file with answers serves as both splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rallebench.chains.overrides import override
from rallebench.core.errors import UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.files import read_json
from rallebench.core.types import Chain
from rallebench.experiments.papers.common import names_in
from rallebench.workspace.checking import check_chain

TASKS: Mapping[str, str] = {
    "fact": "fact checking",
    "linking": "entity linking",
    "slots": "slot filling",
    "qa": "open questions",
    "long": "long answers",
    "dialogue": "dialogue",
}
MODES = ("read", "closed-book", "retrieve", "three-action")
"""The ways to answer a set; all can be retrieved for, the others have a chain each."""


@dataclass(frozen=True, slots=True)
class KiltSet:
    """``name``: as in ``kilt-nq``; ``label``: as RaLLe prints it; ``stem``: how KILT's files begin. ``headline``: the metric
    that is reported. ``rows``, ``size`` in bytes: split → of the official file, if it is known. ``chains``: way → chain."""

    name: str
    label: str
    stem: str
    task: str
    headline: str
    rows: Mapping[str, int]
    size: Mapping[str, int]
    chains: Mapping[str, str]

    @property
    def variant(self) -> str:
        """KILT's own: as the headline, but only where the gold pages were found."""
        return f"KILT-{self.headline}"

    @property
    def short(self) -> bool:
        """Whether its answers are short, so that ``has_answer`` says something."""
        return self.task not in ("long", "dialogue")

    def file_name(self, split: str) -> str:
        """The official file of a split; of a set with one file that one.

        >>> SETS["nq"].file_name("dev"), SETS["wnwi"].file_name("train")
        ('nq-dev-kilt.jsonl', 'wned-dev-kilt.jsonl')
        """
        return f"{self.stem}-{split if split in self.rows else 'dev'}-kilt.jsonl"


SETS: Mapping[str, KiltSet] = {
    fields["name"]: KiltSet(
        **{**fields, "chains": {**fields["chains"], "retrieve": "retrieve-only"}}
    )
    for fields in read_json(Path(__file__).with_name("sets.json"))
}
"""Name → set, in RaLLe's order."""


def set_of(written: str) -> KiltSet:
    """A set by its name, RaLLe's label or KILT's stem, in any case. Raises UsageError.

    >>> set_of("T-REx").name, set_of("hotpotqa").name
    ('trex', 'hopo')
    """
    name = written.strip().lower()
    for kilt_set in SETS.values():
        if name in (kilt_set.name, kilt_set.label.lower(), kilt_set.stem):
            return kilt_set
    raise UsageError(
        f"--set datasets: KILT has no set {written.strip()!r}; it has {', '.join(SETS)}."
    )


def sets_of(written: str) -> tuple[KiltSet, ...]:
    """Several, in RaLLe's order, each once; () if none is written. Raises UsageError.

    >>> [kilt_set.label for kilt_set in sets_of("nq, FEV")]
    ['FEV', 'NQ']
    """
    if written.strip() == "all":
        return tuple(SETS.values())
    names = {set_of(part).name for part in names_in(written)}
    return tuple(kilt_set for name, kilt_set in SETS.items() if name in names)


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
