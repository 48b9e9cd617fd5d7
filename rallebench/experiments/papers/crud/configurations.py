"""CRUD-RAG's one-factor grid: a base configuration, and every other one that differs from it in one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.errors import RalleError, UsageError
from rallebench.core.experiments import ExperimentRequest
from rallebench.core.registry import unknown
from rallebench.corpora.chunking import Chunking
from rallebench.encoders.references import check_encoder
from rallebench.experiments.papers.crud.retrieval import variant
from rallebench.workspace.indexes.ensure import Described, described

RETRIEVERS: Mapping[str, str] = {
    "dense": "base",
    "bm25": "bm25",
    "hybrid": "hybrid",
    "hybrid-rerank": "hybrid-rerank",
}
"""As the paper calls them → as CRUD-RAG's code does."""
WORDS = "bm25"


@dataclass(frozen=True, slots=True)
class Config:
    """``chunk``: tokens; ``overlap``: % of them; ``embedding``: '' where no vectors are searched; ``llm``: '' for none."""

    chunk: int
    overlap: int
    embedding: str
    retriever: str
    k: int
    llm: str


@dataclass(frozen=True, slots=True)
class Factor:
    """``name``: as it is asked for; ``field``: of Config; ``ordered``: whether its values are numbers. ``setting``: where its values
    are given, ``papers``: those of the paper."""

    name: str
    field: str
    heading: str
    setting: str
    papers: tuple[Any, ...]
    low: int = 0
    high: int = 0

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers."""
        return self.high > 0


_EMBEDDINGS = (
    "m3e-base",
    "bge-base-zh-v1.5-plain",
    "stella-base-zh-v2",
    "sentence_transformers:thenlper/gte-base-zh",
)
_LLMS = (
    "gpt-3.5-turbo",
    "gpt-4-0613",
    "gpt-4o",
    "chatglm2-6b",
    "baichuan2-13b",
    "qwen-7b",
    "qwen-14b",
    "qwen2-7b",
)
FACTORS: Mapping[str, Factor] = {
    factor.name: factor
    for factor in (
        Factor("chunk", "chunk", "chunk", "chunks", (64, 128, 256, 512), 1, 1_000_000),
        Factor("overlap", "overlap", "overlap %", "overlaps", (0, 10, 30, 50, 70), 0, 95),
        Factor("embedding", "embedding", "embedding", "embeddings", _EMBEDDINGS),
        Factor("retriever", "retriever", "retriever", "retrievers", tuple(RETRIEVERS)),
        Factor("topk", "k", "top-k", "ks", (2, 4, 6, 8, 10), 1, 1000),
        Factor("llm", "llm", "LLM", "llms", _LLMS),
    )
}
"""CRUD-RAG's section 4: what is varied, and to what."""


@dataclass(frozen=True, slots=True)
class Grid:
    """``values``: factor → its values with their configurations, the base's among them. ``order``: every different configuration
    once, as they are to be run. ``impossible``: factor, value → why it is not asked for at all."""

    base: Config
    values: Mapping[str, Mapping[Any, Config]]
    order: tuple[Config, ...]
    impossible: Mapping[tuple[str, Any], str]

    @property
    def cells(self) -> int:
        """Values of all factors together, as the paper counts them, the base once a factor."""
        return sum(map(len, self.values.values())) + len(self.impossible)

    def label(self, config: Config) -> str:
        """What a configuration differs from the base in."""
        for name, values in self.values.items():
            for value, one in values.items():
                if one == config and one != self.base:
                    return f"{name}={value}"
        return "base"


def grid_of(asked: ExperimentRequest) -> Grid:
    """The grid that is asked for; loads and reads nothing. Raises UsageError."""
    s = asked.settings
    names = _factors(s["factors"])
    if s["retriever"] not in RETRIEVERS:
        raise UsageError(
            "--set retriever: " + unknown("retriever of CRUD-RAG", s["retriever"], list(RETRIEVERS))
        )
    base = Config(s["chunk"], s["overlap"], s["embedding"], s["retriever"], s["k"], asked.llm)
    values: dict[str, dict[Any, Config]] = {}
    impossible: dict[tuple[str, Any], str] = {}
    for name in names if asked.llm else [name for name in names if name != "llm"]:
        values[name] = {}
        factor = FACTORS[name]
        for value in _values(factor, s[factor.setting], getattr(base, factor.field)):
            given = bool(s[factor.setting].strip()) or value == getattr(base, factor.field)
            why = _refused(asked, factor, value, given)
            if name == "embedding" and base.retriever == WORDS and value != base.embedding:
                why = (
                    why
                    or "the base searches words, and no encoder is asked (--set retriever=dense)."
                )
            if why:
                impossible[name, value] = why
            else:
                values[name][value] = _plain(_varied(base, factor, value))
    base = _plain(base)
    retriever_of(base, {}, s["reranker"])
    if base.embedding:
        check_encoder(base.embedding)
    unlike = dict.fromkeys([base, *(config for row in values.values() for config in row.values())])
    return Grid(base, values, _ordered(base, list(unlike)), impossible)


def _factors(text: str) -> list[str]:
    wanted = [name for part in text.split(",") if (name := part.strip())]
    for name in wanted:
        if name not in FACTORS:
            raise UsageError("--set factors: " + unknown("factor of the grid", name, list(FACTORS)))
    if not wanted:
        raise UsageError(f"--set factors={text}: name at least one of {', '.join(FACTORS)}.")
    return [name for name in FACTORS if name in wanted]


def _values(factor: Factor, text: str, base: Any) -> list[Any]:
    """The values of a factor with the base's among them, numbers in order."""
    found: list[Any] = [
        _number(factor, part.strip()) if factor.ordered else part.strip()
        for part in text.split(",")
        if part.strip()
    ]
    found = found or list(factor.papers)
    if factor.ordered:
        return sorted({*found, base})
    return list(dict.fromkeys([base, *found]))


def _number(factor: Factor, text: str) -> int:
    if not text.isdecimal() or not factor.low <= int(text) <= factor.high:
        raise UsageError(
            f"--set {factor.setting}: {text!r} must be a whole number from {factor.low} to {factor.high}."
        )
    return int(text)


def _varied(base: Config, factor: Factor, value: Any) -> Config:
    """The base with one factor changed. With chunks of another size as many tokens are read as before."""
    if factor.name == "chunk":
        return replace(base, chunk=value, k=max(1, base.k * base.chunk // value))
    return replace(base, **{factor.field: value})


def _plain(config: Config) -> Config:
    """Without what does not matter to it."""
    return replace(config, embedding="") if config.retriever == WORDS else config


def _refused(asked: ExperimentRequest, factor: Factor, value: Any, given: bool) -> str:
    """Why a value is not asked for, '' if it is. Raises UsageError for one that was ``given`` and that nobody knows."""
    try:
        if factor.name == "llm" and (given or value in asked.workspace.llms()):
            asked.workspace.llm(value)
        elif factor.name == "llm":
            return "the workspace has no model of this name (nothing is fetched unasked; --set llms=… names others)."
        elif factor.name == "embedding":
            check_encoder(value)
        elif factor.name == "retriever" and value not in RETRIEVERS:
            raise UsageError(unknown("retriever of CRUD-RAG", value, list(RETRIEVERS)))
        elif value == "hybrid-rerank" and not asked.settings["reranker"].strip():
            return "no cross-encoder is named (--set reranker=FOLDER)."
    except RalleError as error:
        if given:
            raise UsageError(f"--set {factor.setting}: {error}") from None
        return str(error)
    return ""


def _ordered(base: Config, configs: list[Config]) -> tuple[Config, ...]:
    """One model after another; of one, what searches the same index together, the deepest first: of a query the deepest retrieval
    is remembered, and what is less deep is the beginning of it."""
    llms = list(dict.fromkeys([base.llm, *(config.llm for config in configs)]))
    found: list[Config] = []
    for llm in llms:
        mine = [config for config in configs if config.llm == llm]
        made = list(dict.fromkeys([_making(base), *map(_making, mine)]))
        found += sorted(mine, key=lambda config: (made.index(_making(config)), -config.k))
    return tuple(found)


def _making(config: Config) -> tuple[Any, ...]:
    return (config.chunk, config.overlap, config.embedding, config.retriever)


# indexes


def indexes_of(asked: ExperimentRequest, config: Config) -> dict[str, Described]:
    """Kind of list (``dense``, ``bm25``) → the index that a configuration searches for it. Raises UsageError."""
    s = asked.settings
    if not s["corpus"].strip():
        raise UsageError(
            "No documents are named; give a file or folder of them, or an imported corpus, with --set corpus=…."
        )
    compat: Any = "original" if s["compat"] == "original" else ""
    chunking = Chunking(
        config.chunk,
        round(config.chunk * config.overlap / 100),
        "tokens",
        "sentences",
        compat=compat,
    )
    found = {}
    if config.retriever != WORDS:
        found["dense"] = described(
            asked.workspace,
            s["corpus"],
            s["kind"],
            encoder=config.embedding,
            chunking=chunking,
            form=s["form"],
        )
    if config.retriever != "dense":
        found[WORDS] = described(
            asked.workspace, s["corpus"], WORDS, chunking=chunking, form=s["form"]
        )
    return found


def said_of(index: Described) -> str:
    """An index in a few words."""
    assert index.chunking is not None
    share = round(100 * index.chunking.overlap / index.chunking.size)
    return f"{index.encoder or index.kind}, chunks of {index.chunking.size}" + (
        f", {share} % shared" if share else ""
    )


def retriever_of(config: Config, names: Mapping[str, str], reranker: str) -> str:
    """The retriever of a configuration, given the names of its indexes."""
    return variant(
        RETRIEVERS[config.retriever],
        names.get("dense", ""),
        names.get(WORDS, ""),
        config.k,
        reranker,
    )


def parts_of(config: Config, names: Mapping[str, str]) -> tuple[str, ...]:
    """The combination that a re-ranker's candidates come from."""
    return (
        (retriever_of(replace(config, retriever="hybrid"), names, ""),)
        if config.retriever == "hybrid-rerank"
        else ()
    )


def last_uses(order: Sequence[Config]) -> Mapping[Config, frozenset[str]]:
    """Configuration → the models that no later one asks."""
    last = {config.llm: config for config in order}
    return {
        config: frozenset(filter(None, (llm for llm, one in last.items() if one == config)))
        for config in order
    }
