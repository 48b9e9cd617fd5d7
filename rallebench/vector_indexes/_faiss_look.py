"""Examines a Faiss file in a separate process: ``python _faiss_look.py FILE FOLDER BYTES``.

Faiss trusts its files: a damaged one can end the process, or ask for any amount of memory (here at most BYTES). Prints one
line of JSON: the facts, or ``{"error": …}``. Labels other than 0, 1, 2 … are written to ``FOLDER/labels.npy``.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import faiss
import numpy as np

AT_ONCE = 4096


class Unusable(Exception):
    """An index that cannot be searched here; the message continues "FILE ..."."""


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def parts(index: Any) -> Any:
    """Yield an index and those inside it, outermost first."""
    while index is not None:
        index = faiss.downcast_index(index)
        yield index
        index = getattr(index, "index", None) or getattr(index, "base_index", None)


def labels(index: Any) -> Any:
    """Return the labels of the vectors in any order; None for 0, 1, 2 …"""
    own = None
    for part in reversed(list(parts(index))):
        if hasattr(part, "id_map"):
            ids = faiss.vector_to_array(part.id_map)
            if len(ids) != part.ntotal or not _are_rows(own):
                raise Unusable("has an id map that does not fit its vectors")
            own = ids
        elif hasattr(part, "base_index") and not _are_rows(own):
            raise Unusable("refines by numbers of rows and has other ids inside")
        elif hasattr(part, "invlists"):
            own = _labels_of_lists(part)
    if own is None or _are_rows(own):
        return None
    if len(np.unique(own)) != len(own) or own.min() < 0:
        raise Unusable("gives two vectors one id, or a negative one")
    return own


def _are_rows(own: Any) -> bool:
    """Return whether labels are 0, 1, 2 …, which None stands for."""
    return own is None or np.array_equal(own, np.arange(len(own)))


def _labels_of_lists(index: Any) -> Any:
    lists = faiss.downcast_InvertedLists(index.invlists)
    if isinstance(lists, faiss.OnDiskInvertedLists):
        raise Unusable("keeps its lists in another file; write it as one file")
    sizes = [lists.list_size(number) for number in range(index.nlist)]
    ids = [
        faiss.rev_swig_ptr(lists.get_ids(number), size).copy()
        for number, size in enumerate(sizes)
        if size
    ]
    own = np.sort(np.concatenate(ids)) if ids else np.empty(0, dtype=np.int64)
    if len(own) != index.ntotal:
        raise Unusable(f"says {index.ntotal} vectors and its lists hold {len(own)}")
    return own


def check_graph(hnsw: Any, count: int) -> None:
    """Refuse links to vectors that do not exist, which a search would follow."""
    links = faiss.vector_to_array(hnsw.neighbors)
    starts = faiss.vector_to_array(hnsw.offsets).astype(np.int64)
    levels = faiss.vector_to_array(hnsw.levels)
    per_level = faiss.vector_to_array(hnsw.cum_nneighbor_per_level).astype(np.int64)
    fine = (
        len(levels) == count
        and len(starts) == count + 1
        and 0 <= hnsw.entry_point < count
        and ((levels > 0) & (levels < len(per_level))).all()
        and starts[0] == 0
        and starts[-1] == len(links)
        and (np.diff(starts) >= per_level[levels]).all()
        and (np.diff(per_level) >= 0).all()
        and hnsw.max_level < levels[hnsw.entry_point]
        and ((links >= -1) & (links < count)).all()
    )
    if not fine:
        raise Unusable("has a graph with links to vectors that it does not hold")


def first_odd_row(index: Any) -> int:
    """Return the number, from 1, of the first whole vector with a value that is not finite; 0 if there is none. A search in a graph
    with such a vector ends the process.
    """
    flat = faiss.downcast_index(getattr(index, "storage", None) or index)
    if not isinstance(flat, faiss.IndexFlat):
        return 0
    rows = faiss.rev_swig_ptr(flat.get_xb(), flat.ntotal * flat.d).reshape(flat.ntotal, flat.d)
    for start in range(0, len(rows), AT_ONCE):
        finite = np.isfinite(rows[start : start + AT_ONCE]).all(axis=1)
        if not finite.all():
            return start + int(np.argmin(finite)) + 1
    return 0


def look(path: str, folder: str) -> dict[str, Any]:
    """Read the index, search it once, and return its facts."""
    index = faiss.read_index(path, faiss.IO_FLAG_READ_ONLY)
    outer = faiss.downcast_index(index)
    if not index.ntotal or not index.is_trained or index.d < 1:
        raise Unusable("holds no vectors")
    facts = {
        "name": type(outer).__name__,
        "metric": index.metric_type,
        "count": index.ntotal,
        "dim": index.d,
    }
    for part in parts(index):
        if row := first_odd_row(part):
            return {**facts, "odd_row": row}
        if hasattr(part, "hnsw"):
            check_graph(part.hnsw, part.ntotal)
            facts["m"] = part.hnsw.nb_neighbors(1)
            facts["ef_construction"] = part.hnsw.efConstruction
    if (own := labels(index)) is not None:
        np.save(Path(folder) / "labels.npy", own)
    queries = np.random.default_rng(0).normal(size=(4, index.d)).astype(np.float32)
    index.search(queries, min(10, index.ntotal))
    return facts


def main() -> int:
    """Print the facts or the error."""
    path, folder, size = sys.argv[1:4]
    _limit_memory(int(size))
    try:
        facts = look(path, folder)
    except Unusable as error:
        facts = {"error": str(error)}
    except (RuntimeError, MemoryError, AssertionError, AttributeError, ValueError) as error:
        why = " ".join(str(error).split())[-160:]
        facts = {"damage": why or type(error).__name__}
    print(json.dumps(facts), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
