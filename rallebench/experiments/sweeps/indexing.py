"""Sweeps over indexing: ``index.chunk_size``, ``index.encoder`` and others change the index of the chain's retriever.

The chain's retriever provides the defaults: corpus, kind, encoder, chunking and settings. A variant changes some of them;
``rallebench.workspace.indexes.ensure`` then finds or builds the index. In a combination, such as an imported hybrid, all
indexes are changed and combined as before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.core.chunking import Chunking
from rallebench.core.errors import UsageError
from rallebench.core.experiments import IndexRecipe
from rallebench.core.registry import unknown
from rallebench.core.starter import STARTER_INDEXES
from rallebench.core.types import Chain
from rallebench.corpora.cards import is_imported
from rallebench.corpora.chunking import choose
from rallebench.experiments.sweeps import Variant
from rallebench.retrievers import INDEX_KINDS, kinds, needs_encoder
from rallebench.retrievers.composites import INDEX, write_reference
from rallebench.workspace.indexes.recipes import check_settings, index_recipe, starter_recipe
from rallebench.workspace.paths import WorkspaceFolder

CHUNKING = ("chunk_size", "chunk_overlap", "chunk_unit", "chunk_how", "chunk_preset")
WHOLE = ("whole", "none", 0, None)
"""Chunk sizes that leave documents whole."""


@dataclass(frozen=True, slots=True)
class VariedRetriever:
    """A chain's retriever with its indexes replaced. ``recipes``: original index → recipe of its replacement."""

    workspace: WorkspaceFolder
    name: str
    recipes: Mapping[str, IndexRecipe]

    def reference(self, names: Mapping[str, str]) -> str:
        """The retriever's name in a chain; ``names``: original index → name of its replacement."""
        return _reference(self.workspace, self.name, names)


def _reference(workspace: WorkspaceFolder, name: str, names: Mapping[str, str]) -> str:
    entry = workspace.retriever(name)
    if entry is None:
        return names[name]
    if entry.kind == INDEX:
        return write_reference(entry, [names[entry.of[0]]])
    return write_reference(entry, [_reference(workspace, part, names) for part in entry.of])


def retrievers(
    workspace: WorkspaceFolder, variants: Sequence[Variant]
) -> list[VariedRetriever | None]:
    """The retriever of each variant; None if the variant keeps the index. Raises UsageError; builds nothing."""
    return [_retriever(workspace, variant) if variant.index else None for variant in variants]


def indexes(workspace: WorkspaceFolder, variants: Sequence[Variant]) -> list[IndexRecipe]:
    """The indexes searched by the variants. Raises UsageError; builds nothing."""
    varied = filter(None, retrievers(workspace, variants))
    return [recipe for retriever in varied for recipe in retriever.recipes.values()]


def _retriever(workspace: WorkspaceFolder, variant: Variant) -> VariedRetriever:
    name = chain_retriever(variant.chain)
    members = workspace.component_indexes(name)
    corpus = str(variant.index.get("corpus", ""))
    bases = {member: _base(workspace, member, corpus) for member in members}
    if len(members) > 1 and "kind" in variant.index:
        raise UsageError(
            f"index.kind varies one index, and {name!r} is made of {', '.join(members)}; give the chain one of them."
        )
    recipes = {}
    for member, base in bases.items():
        fitting = {
            field: value
            for field, value in variant.index.items()
            if len(members) == 1
            or _fits(field, base)
            or not any(_fits(field, b) for b in bases.values())
        }
        recipes[member] = _index(base, replace(variant, index=fitting))
    return VariedRetriever(workspace, name, recipes)


def _fits(field: str, base: IndexRecipe) -> bool:
    """Return whether indexes of this kind have the field."""
    if field == "encoder":
        return needs_encoder(base.kind)
    return field in (*CHUNKING, "corpus") or field in INDEX_KINDS.entry(base.kind).form


def _index(base: IndexRecipe, variant: Variant) -> IndexRecipe:
    varied = dict(variant.index)
    varied.pop("corpus", None)
    kind = str(varied.pop("kind", base.kind))
    if kind not in kinds():
        raise UsageError("index.kind: " + unknown("index kind", kind, list(kinds())))
    if not needs_encoder(kind) and "encoder" in varied:
        raise UsageError(
            f"index.encoder: an index of the kind {kind!r} has no encoder; vary index.kind, too."
        )
    encoder = str(varied.pop("encoder", base.encoder or "minilm"))
    cut = {name: varied.pop(name) for name in CHUNKING if name in varied}
    try:
        return index_recipe(
            base.corpus,
            kind,
            encoder=encoder,
            chunking=_chunking(base.chunking, cut),
            form=base.form,
            page_map=base.page_map,
            settings={**(base.settings if kind == base.kind else {}), **varied},
        )
    except UsageError as error:
        raise error.saying(f"{variant.label}: {error}") from None


def chain_retriever(chain: Chain) -> str:
    """The single retriever of the chain. Raises UsageError for none or several."""
    actions = [action for action in chain.actions if action.kind == "retrieve" and action.template]
    names = list(dict.fromkeys(action.target for action in actions))
    if not names:
        raise UsageError(
            "index.… varies the index that a chain searches, and this chain searches none."
        )
    if len(names) > 1:
        raise UsageError(
            f"The chain searches {', '.join(names)}; index.… can be varied where all its searches ask one index."
        )
    return names[0]


def _base(workspace: WorkspaceFolder, retriever: str, corpus: str) -> IndexRecipe:
    """The recipe to vary. ``corpus``: a different corpus, or ''."""
    manifest = workspace.manifests().get(retriever)
    if manifest is None and retriever in STARTER_INDEXES:
        own = starter_recipe(retriever)
    elif manifest is None:
        raise UsageError(
            f"index.… varies one index, and {retriever!r} is not in this workspace; give the chain an index: "
            f"{', '.join(dict.fromkeys([*STARTER_INDEXES, *workspace.manifests()]))}."
        )
    else:
        chunking = Chunking(**manifest.chunking) if manifest.chunking else None
        known = INDEX_KINDS.entry(manifest.kind).form
        settings = {key: value for key, value in manifest.parameters.items() if key in known}
        check_settings(manifest.kind, dict(settings))
        own = IndexRecipe(
            Path(corpus)
            if corpus
            else _source_documents(workspace, retriever, manifest.corpus, chunking),
            manifest.kind,
            manifest.encoder_name,
            chunking,
            settings=settings,
        )
    return replace(own, corpus=workspace.corpus(corpus), page_map=None, form="") if corpus else own


def _source_documents(
    workspace: WorkspaceFolder, index: str, corpus: str, chunking: Chunking | None
) -> Path:
    """The documents an index was made from: its own passages if they were not cut from longer texts."""
    if chunking is None:
        return workspace.indexes / index
    if is_imported(workspace.corpora / corpus):
        return workspace.corpora / corpus
    raise UsageError(
        f"The index {index!r} holds pieces of {corpus or 'a corpus'}, which was not imported into this workspace; name the "
        "whole documents: index.corpus=FILE or NAME."
    )


def _chunking(base: Chunking | None, varied: Mapping[str, Any]) -> Chunking | None:
    """The base's chunking with the changes applied. An overlap such as ``30%`` is relative to the chunk size and rounded."""
    if not varied:
        return base
    size, overlap = varied.get("chunk_size"), varied.get("chunk_overlap")
    if "chunk_size" in varied and size in WHOLE:
        return None
    names = ("chunk_preset", "chunk_unit", "chunk_how")
    preset, unit, how = (str(varied.get(name, "")) for name in names)
    if not preset and base is not None:
        size = base.size if size is None else size
        overlap = base.overlap if overlap is None else overlap
        how = how or base.how
        unit = unit or (base.unit if how == base.how else "")
    number = _whole("index.chunk_size", size, "or 'whole' for documents that are not cut")
    if preset and number is None and (chosen := choose(preset=preset)):
        number = chosen.size
    share = _overlap(overlap, number)
    chunking = choose(preset=preset, how=how, size=number, overlap=share, unit=unit)
    if chunking and base and not preset and chunking.how == base.how:
        return replace(chunking, prefix=base.prefix, compat=base.compat, tokenizer=base.tokenizer)
    return chunking


def _whole(name: str, value: Any, other: str) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise UsageError(f"{name} is {value!r}; it must be a whole number, {other}.")
    return value


def _overlap(value: Any, size: int | None) -> int | None:
    share = re.fullmatch(r"\s*(\d+)\s*%\s*", value) if isinstance(value, str) else None
    if share:
        if size is None:
            raise UsageError(
                "index.chunk_overlap in % is a share of index.chunk_size; give that, too."
            )
        return round(size * int(share[1]) / 100)
    return _whole("index.chunk_overlap", value, "or a share of the size such as 30%")
