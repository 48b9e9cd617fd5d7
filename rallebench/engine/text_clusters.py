"""Clusters of unit vectors: spherical k-means, with the number of clusters that has the highest mean silhouette.

Dhillon and Modha 2001 (Machine Learning 42), seeded as k-means++ (Arthur and Vassilvitskii 2007); silhouettes by cosine distance
(Rousseeuw 1987). The same vectors and seed give the same clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.intp]

MOST_CLUSTERS, LEAST_SIZE = 12, 15
"""The most clusters, and the mean number of vectors that a cluster holds at least."""
STARTS, STEPS, MEASURED = 4, 60, 1000
"""Seedings, steps of one, and vectors whose silhouettes are measured."""


@dataclass(frozen=True, slots=True)
class VectorClusters:
    """``places``: the cluster of each vector, 0 the largest; ``silhouette``: number of clusters → mean silhouette."""

    places: Whole
    silhouette: Mapping[int, float]


def cluster_vectors(vectors: Floats, seed: int = 0) -> VectorClusters:
    """Cluster (n, dim) unit vectors. Fewer than 2 · LEAST_SIZE vectors, or equal ones, form one cluster."""
    most = min(MOST_CLUSTERS, len(vectors) // LEAST_SIZE)
    rng = np.random.default_rng(seed)
    sample = np.sort(rng.permutation(len(vectors))[:MEASURED])
    tried: dict[int, Whole] = {}
    scores: dict[int, float] = {}
    for count in range(2, most + 1):
        places = _best_of_starts(vectors, count, rng)
        if len(np.unique(places)) < count:
            break  # fewer different vectors than clusters
        tried[count] = places
        scores[count] = mean_silhouette(vectors[sample], places[sample])
    if not scores:
        return VectorClusters(np.zeros(len(vectors), np.intp), {})
    best = max(scores, key=lambda count: (round(scores[count], 9), -count))
    return VectorClusters(_largest_first(tried[best]), scores)


def _best_of_starts(vectors: Floats, count: int, rng: np.random.Generator) -> Whole:
    runs = [_spherical_k_means(vectors, count, rng) for _ in range(STARTS)]
    return max(runs, key=lambda run: run[0])[1]


def _spherical_k_means(
    vectors: Floats, count: int, rng: np.random.Generator
) -> tuple[float, Whole]:
    """The sum of cosines with the own centre, and the clusters."""
    centres = _seed_centres(vectors, count, rng)
    places = np.argmax(vectors @ centres.T, axis=1)
    for _ in range(STEPS):
        sums = (places == np.arange(count)[:, None]).astype(np.float64) @ vectors
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1), centres)
        moved = np.argmax(vectors @ centres.T, axis=1)
        if (moved == places).all():
            break
        places = moved
    return float((vectors * centres[places]).sum()), places


def _seed_centres(vectors: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw centres far from one another: with a chance proportional to the distance from the nearest one so far."""
    chosen = [int(rng.integers(len(vectors)))]
    distance = np.maximum(0.0, 1 - vectors @ vectors[chosen[0]])
    while len(chosen) < count:
        total = float(distance.sum())
        if total <= 0:
            chosen.append(chosen[0])
            continue
        chosen.append(int(rng.choice(len(vectors), p=distance / total)))
        distance = np.minimum(distance, np.maximum(0.0, 1 - vectors @ vectors[chosen[-1]]))
    return vectors[chosen].copy()


def mean_silhouette(vectors: Floats, places: Whole) -> float:
    """Return the mean silhouette of (n, dim) unit vectors by cosine distance, from −1 to 1; a cluster of one counts 0."""
    _, numbers, sizes = np.unique(places, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return 0.0
    distances = 1 - vectors @ vectors.T
    np.fill_diagonal(distances, 0.0)
    sums = np.zeros((len(vectors), len(sizes)))
    np.add.at(sums.T, numbers, distances)
    rows = np.arange(len(vectors))
    own_size = sizes[numbers]
    inside = sums[rows, numbers] / np.maximum(1, own_size - 1)
    others = sums / sizes
    others[rows, numbers] = np.inf
    nearest = others.min(axis=1)
    widest = np.maximum(inside, nearest)
    values = np.where(widest > 0, (nearest - inside) / np.where(widest > 0, widest, 1), 0.0)
    return float(np.where(own_size > 1, values, 0.0).mean())


def _largest_first(places: Whole) -> Whole:
    """The clusters numbered by size, of equal ones by their first vector."""
    _, first, numbers, sizes = np.unique(
        places, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return rank[numbers]
