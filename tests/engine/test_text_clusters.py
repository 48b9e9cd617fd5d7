"""Clusters of vectors against independent computations."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rallebench.engine.text_clusters import cluster_vectors, mean_silhouette


def bundles(
    count: int, size: int, seed: int = 0, spread: float = 0.15
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around ``count`` directions, and the direction of each."""
    rng = np.random.default_rng(seed)
    centres = np.linalg.qr(rng.normal(size=(32, count)))[0].T
    of = np.repeat(np.arange(count), size)
    vectors = centres[of] + spread * rng.normal(size=(len(of), 32))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True), of


@pytest.mark.parametrize("count", [2, 4, 7])
def test_separate_bundles_are_found_with_their_number(count: int) -> None:
    vectors, of = bundles(count, 30)
    found = cluster_vectors(vectors)
    assert {len(set(found.places[of == b])) for b in range(count)} == {1}
    assert found.places.max() + 1 == count
    assert max(found.silhouette, key=lambda k: found.silhouette[k]) == count


def test_the_silhouette_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    vectors, _ = bundles(5, 20, spread=0.4)
    places = np.random.default_rng(1).integers(0, 4, 100)
    expected = metrics.silhouette_score(vectors, places, metric="cosine")
    assert mean_silhouette(vectors, places) == pytest.approx(expected)


def test_a_cluster_of_one_counts_0() -> None:
    vectors, _ = bundles(2, 3)
    by_hand = np.array([0, 0, 0, 1, 1, 2])
    metrics = pytest.importorskip("sklearn.metrics")
    samples = metrics.silhouette_samples(vectors, by_hand, metric="cosine")
    assert samples[5] == 0 and mean_silhouette(vectors, by_hand) == pytest.approx(samples.mean())


def test_the_largest_cluster_comes_first_and_the_seed_repeats_it() -> None:
    vectors, of = bundles(3, 40)
    kept = np.concatenate(
        [np.flatnonzero(of == 0)[:20], np.flatnonzero(of == 1), np.flatnonzero(of == 2)[:30]]
    )
    first, again = cluster_vectors(vectors[kept], 3), cluster_vectors(vectors[kept], 3)
    assert np.bincount(first.places).tolist() == [40, 30, 20]
    assert (first.places == again.places).all()


@pytest.mark.parametrize("vectors", [np.zeros((0, 4)), np.eye(4), np.ones((50, 4)) / 2])
def test_few_or_equal_vectors_are_one_cluster(vectors: np.ndarray) -> None:
    assert set(cluster_vectors(vectors).places.tolist()) <= {0}


def test_5000_vectors_are_clustered_in_20_seconds() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5000, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    start = time.process_time()
    cluster_vectors(vectors)
    assert time.process_time() - start < 60
