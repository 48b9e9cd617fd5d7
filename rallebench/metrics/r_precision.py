"""KILT's R-precision over evidence sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rallebench.core.types import Episode, Gold
from rallebench.metrics import METRICS
from rallebench.metrics._reading import page_ids


@METRICS.register("Rprec", needs="provenance", reads="pages", label="R-precision")
def r_precision(episode: Episode, gold: Gold) -> float | None:
    """The share of an evidence set of R pages found among the first R pages; the best over the sets.

    Normalisation: none, ids are compared.
    Not scored: nothing was retrieved in the whole run; a question without gold pages scores 0.
    Source: KILT, Petroni et al. 2021, arXiv:2009.02252.
    Traps: Pages, not passages: five passages of one page are one page. Pages of all retrievals of a chain are
    joined in order. A question without gold pages scores 0.
    """
    return r_precision_score(page_ids(episode), gold.provenance)


def r_precision_score(ids: Sequence[str], evidence: Iterable[Collection[str]]) -> float:
    """Return R-precision. ``ids``: distinct, best first; ``evidence``: sets of ids. 0.0 without a set.

    >>> r_precision_score(["1", "9", "2"], [{"1", "2"}, {"3"}])
    0.5
    """
    shares = [
        sum(i in pages for i in ids[: len(pages)]) / len(pages) for pages in evidence if pages
    ]
    return max(shares, default=0.0)
