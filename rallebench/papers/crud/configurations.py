"""CRUD-RAG's one-factor grid: a base configuration, and variants that each change one factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from rallebench.core.chunking import Chunking
from rallebench.core.errors import Hint, RalleError, UsageError
from rallebench.core.experiments import ExperimentRequest, IndexRecipe
from rallebench.core.settings import Setting
from rallebench.encoders.references import to_fetch
from rallebench.experiments.common import values_in
from rallebench.papers.crud.factors import ENCODER, FACTORS, RERANKER, WORDS
from rallebench.papers.crud.retrieval import RETRIEVERS, variant
from rallebench.papers.crud.settings import CrudGridSettings, SearchedDocuments
from rallebench.retrievers import rerank
from rallebench.workspace.indexes.recipes import index_recipe
from rallebench.workspace.paths import WorkspaceFolder


@dataclass(frozen=True, slots=True)
class Config:
    """One value for each factor. ``chunk``: in tokens; ``overlap``: in percent of a chunk; ``embedding``: '' without vector
    search; ``llm``: '' for none."""

    chunk: int
    overlap: int
    embedding: str
    retriever: str
    topk: int
    llm: str

    @property
    def index(self) -> tuple[Any, ...]:
        """The fields that determine which indexes are searched."""
        return (self.chunk, self.overlap, self.embedding, self.retriever)


@dataclass(frozen=True, slots=True)
class Grid:
    """A base configuration and its variants. ``values``: factor → its values, each with a configuration and including the base
    value. ``order``: the distinct configurations in run order. ``impossible``: (factor, value) → the reason for skipping
    it."""

    base: Config
    values: Mapping[str, Mapping[Any, Config]]
    order: tuple[Config, ...]
    impossible: Mapping[tuple[str, Any], str]

    @property
    def cells(self) -> int:
        """The number of values over all factors. As in the paper, the base counts once for each factor."""
        return sum(map(len, self.values.values())) + len(self.impossible)

    def label(self, config: Config) -> str:
        """The difference between a configuration and the base, as ``factor=value``."""
        for name, values in self.values.items():
            for value, other in values.items():
                if config == other != self.base:
                    return f"{name}={value}"
        return "base"


def make_grid(request: ExperimentRequest[WorkspaceFolder], settings: CrudGridSettings) -> Grid:
    """The requested grid, planned without loading or reading files. Raises UsageError."""
    s = settings
    setting = Setting(str, "", choices=tuple(FACTORS), required=True)
    varied = set(values_in("factors", s.factors, setting)) - (set() if request.llm else {"llm"})
    encoder = s.embedding.strip() or ENCODER
    base = Config(s.chunk, s.overlap, encoder, s.retriever, s.k, request.llm)
    values: dict[str, dict[Any, Config]] = {name: {} for name in FACTORS if name in varied}
    impossible: dict[tuple[str, Any], str] = {}
    for name, configs in values.items():
        own = getattr(base, name)
        for value in _values(name, s.values(FACTORS[name].setting), own):
            if name == "embedding" and base.retriever == WORDS and value == own:
                continue  # the base uses no encoder
            why = _refusal(request, s, name, value, base)
            if why:
                impossible[name, value] = why
                continue
            changed: dict[str, Any] = {name: value}
            if name == "chunk":  # keep the number of retrieved tokens constant
                changed["topk"] = max(1, base.topk * base.chunk // value)
            configs[value] = _plain(replace(base, **changed))
    values = {name: configs for name, configs in values.items() if configs}
    _refusal(request, s, "retriever", base.retriever, base)
    base = _plain(base)
    unlike = dict.fromkeys([base, *(config for row in values.values() for config in row.values())])
    return Grid(base, values, _run_order(list(unlike)), impossible)


def _values(name: str, text: str, base: Any) -> list[Any]:
    """The values of a factor, including the base value; numbers are sorted. Raises SettingError."""
    factor, choices = FACTORS[name], RETRIEVERS if name == "retriever" else ()
    kind = int if factor.ordered else str
    setting = Setting(kind, factor.low, factor.low, factor.high, choices)
    values = [base, *(values_in(factor.setting, text, setting) or factor.papers)]
    return sorted(set(values)) if factor.ordered else list(dict.fromkeys(values))


def _plain(config: Config) -> Config:
    """The configuration, with ``embedding`` removed if it is unused."""
    return replace(config, embedding="") if config.retriever == WORDS else config


def _refusal(
    request: ExperimentRequest[WorkspaceFolder],
    settings: CrudGridSettings,
    name: str,
    value: Any,
    base: Config,
) -> str:
    """The reason for skipping a value of a factor, or ''. Raises UsageError for an explicitly requested value."""
    listed, is_base = FACTORS[name].setting, value == getattr(base, name)
    asks = name if is_base else listed if settings.values(listed) else ""
    if name == "llm" and not asks and value not in request.workspace.llms():
        return "the workspace has no model of this name (nothing is fetched unasked; llms=… names others)."
    if name == "embedding" and base.retriever == WORDS and not asks:
        return "the base searches words, and no encoder is asked (retriever=dense)."
    try:
        if name == "llm":
            request.workspace.llm(value)
        elif name == "embedding" and base.retriever == WORDS:
            why = "The base searches words and asks no encoder."
            raise UsageError(why, hint=Hint("set", "retriever=dense"))
        elif name == "embedding" and to_fetch(value, demanded=bool(asks)) and not asks:
            return "the encoder is not on this machine (nothing is fetched unasked; embeddings=… names those to fetch)."
    except RalleError as error:
        if asks:
            raise UsageError(f"{asks}: {error}", hint=error.hint) from None
        return str(error)
    return _missing_model(settings, value, asks) if name == "retriever" and value != WORDS else ""


def _missing_model(settings: CrudGridSettings, retriever: str, asks: str) -> str:
    """The model that a retriever needs but this machine lacks, or ''. Raises UsageError if the user named the model, or named
    the retriever in the setting ``asks``."""
    for name, what, default, ask in _MODELS[: 2 if retriever == "hybrid-rerank" else 1]:
        own = settings.values(name)
        setting = name if own else asks
        try:
            missing = ask(own or default, demanded=bool(setting))
        except RalleError as error:
            raise UsageError(f"{setting}: {error}", hint=error.hint) from None
        if missing and not setting:
            return (
                f"the {what} {default} is not on this machine (nothing is fetched unasked; {name}={default} fetches it, "
                f"{name}=… names another)."
            )
    return ""


_MODELS = (
    ("embedding", "encoder", ENCODER, to_fetch),
    ("reranker", "cross-encoder", RERANKER, rerank.to_fetch),
)
"""The models used by retrievers: setting, noun, default, and a function that returns whether the model must be downloaded."""


def _run_order(configs: list[Config]) -> tuple[Config, ...]:
    """The configurations grouped by model, then by index, with the deepest retrieval first. The cache can then serve shallower
    retrievals of the same query."""
    llms = list(dict.fromkeys(config.llm for config in configs))
    indexes = list(dict.fromkeys(config.index for config in configs))

    def place(config: Config) -> tuple[int, int, int]:
        return llms.index(config.llm), indexes.index(config.index), -config.topk

    return tuple(sorted(configs, key=place))


def index_recipes(
    request: ExperimentRequest[WorkspaceFolder], documents: SearchedDocuments, config: Config
) -> dict[str, IndexRecipe]:
    """Kind of list (``dense``, ``bm25``) → the index that a configuration searches. Raises UsageError."""
    if not documents.corpus.strip():
        raise UsageError(
            "No documents are named: a file or folder of them, or an imported corpus.",
            hint=Hint("set", "corpus=PATH"),
        )
    overlap = round(config.chunk * config.overlap / 100)
    compat: Literal["", "original"] = "original" if documents.original else ""
    chunking = Chunking(config.chunk, overlap, "tokens", "sentences", compat=compat)
    corpus = request.workspace.corpus(documents.corpus)
    recipe = partial(index_recipe, corpus, chunking=chunking, form=documents.form)
    recipes = {}
    if config.retriever != WORDS:
        recipes["dense"] = recipe(documents.kind, encoder=config.embedding)
    if config.retriever != "dense":
        recipes[WORDS] = recipe(WORDS)
    return recipes


def describe(index: IndexRecipe) -> str:
    """A description of an index: encoder or kind, chunk size in tokens, and overlap in percent."""
    assert index.chunking is not None
    share = round(100 * index.chunking.overlap / index.chunking.size)
    end = f", {share} % shared" if share else ""
    return f"{index.encoder or index.kind}, chunks of {index.chunking.size}{end}"


def name_retriever(config: Config, names: Mapping[str, str], reranker: str = "") -> str:
    """The retriever of a configuration, from the names of its indexes. ``reranker``: the paper's by default."""
    dense, words = names.get("dense", ""), names.get(WORDS, "")
    return variant(config.retriever, dense, words, config.topk, reranker or RERANKER)


def candidate_retrievers(config: Config, names: Mapping[str, str]) -> tuple[str, ...]:
    """The retriever that supplies candidates for re-ranking; () without a re-ranker."""
    if config.retriever != "hybrid-rerank":
        return ()
    return (name_retriever(replace(config, retriever="hybrid"), names),)
