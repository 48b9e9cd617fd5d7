"""KILT's precision, recall and success rate at k, over a ranking whose items are evidence sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Union

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import page_ids

Rank = list[Union[bool, int]]
"""True: an evidence set is completed here; False: a page of no set; i (an int): a part of set i."""


@METRICS.register_at_k("precision", label="Precision", needs="provenance", reads="pages")
def precision_at_k(episode: Episode, gold: Gold, k: int) -> float | None:
    """Complete evidence sets among the first k entries of the page rank, divided by k.

    Normalisation: none, ids are compared.
    Not scored: nothing was retrieved in the whole run; a question without gold pages scores 0.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Pages, not passages: five passages of one page are one page. An evidence set of several pages counts where its
    last page is found. A question without gold pages scores 0. The divisor is k
    even if fewer pages were retrieved. page_precision counts pages.
    """
    return _complete(_episode_rank(episode, gold), k) / k


@METRICS.register_at_k("recall", label="Recall", needs="provenance", reads="pages")
def recall_at_k(episode: Episode, gold: Gold, k: int) -> float | None:
    """The share of the distinct evidence sets that are complete in the first k entries of the page rank.

    Normalisation: none, ids are compared.
    Not scored: nothing was retrieved in the whole run; a question without gold pages scores 0.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Pages, not passages: five passages of one page are one page. An evidence set of several pages counts where its
    last page is found. A question without gold pages scores 0. page_recall
    counts pages.
    """
    sets = distinct_sets(gold.provenance)
    return _complete(_episode_rank(episode, gold), k) / len(sets) if sets else 0.0


@METRICS.register_at_k("success_rate", label="Success rate", needs="provenance", reads="pages")
def success_rate_at_k(episode: Episode, gold: Gold, k: int) -> float | None:
    """1 if any evidence set is complete among the first k entries of the page rank, else 0.

    Normalisation: none, ids are compared.
    Not scored: nothing was retrieved in the whole run; a question without gold pages scores 0.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Pages, not passages: five passages of one page are one page. An evidence set of several pages counts where its
    last page is found. A question without gold pages scores 0. success counts
    any page of a set.
    """
    return float(_complete(_episode_rank(episode, gold), k) > 0)


def distinct_sets(evidence: Iterable[Collection[str]]) -> list[set[str]]:
    """Return the distinct sets in order.

    >>> distinct_sets([("1", "2"), ("2", "1"), ("3",)]) == [{"1", "2"}, {"3"}]
    True
    """
    return [set(pages) for pages in dict.fromkeys(map(frozenset, evidence))]


def rank_list(ids: Sequence[str], evidence: Iterable[Collection[str]]) -> Rank:
    """Walk through ``ids`` (distinct, best first) and return the evidence set that each one completes or continues.

    An id may complete or continue several sets, and then adds an entry for each, in the order of ``evidence`` (so that
    order can matter at a cut-off, as in KILT). A continued set gives up its earlier entry, and the entries after it move
    up by one.

    >>> rank_list(["2", "5", "33", "1"], [{"1", "2"}, {"5"}])
    [True, False, True]
    """
    open_sets = distinct_sets(evidence)
    rank: Rank = []
    for page in ids:
        holders = [i for i, pages in enumerate(open_sets) if page in pages]
        for i in holders:
            open_sets[i].remove(page)
            _drop_part(rank, i)
            rank.append(i if open_sets[i] else True)
        if not holders:
            rank.append(False)
    return rank


def _drop_part(rank: Rank, part: int) -> None:
    # By identity of type: True == 1 and False == 0, so list.remove would take the wrong entry.
    for at, entry in enumerate(rank):
        if not isinstance(entry, bool) and entry == part:
            del rank[at]
            return


def _complete(rank: Rank, k: int) -> int:
    return sum(entry is True for entry in rank[:k])


def _episode_rank(episode: Episode, gold: Gold) -> Rank:
    return rank_list(page_ids(episode), gold.provenance)
