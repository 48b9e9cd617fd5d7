"""Groups of a run's questions by meaning, made once with the embedded encoder and kept in the cache."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rallebench.analysis.question_clusters import (
    FEWEST_GROUPED,
    clusters_file,
    stored_clusters,
)
from rallebench.core.errors import RalleError
from rallebench.core.events import Operation, Progress
from rallebench.core.failures import QuestionClusters
from rallebench.core.files import write_json
from rallebench.core.json_values import object_json
from rallebench.encoders import DEFAULT_ENCODER, Encoder
from rallebench.engine.score import stored_examples
from rallebench.engine.store import RunFolder
from rallebench.engine.text_clusters import cluster_vectors
from rallebench.workspace.paths import WorkspaceFolder

MOST_ENCODED, AT_ONCE = 5000, 500
"""Questions that are encoded, and those of one batch between two reports of progress."""


def group_questions(
    workspace: WorkspaceFolder, encoders: Callable[[str], Encoder], run: RunFolder, seed: int = 0
) -> Operation[QuestionClusters]:
    """Group the questions of a run by meaning, or read the groups of the same questions. At most MOST_ENCODED of them, drawn at
    random, are grouped. Does not look at answers."""
    known = stored_clusters(workspace, run)
    if known is not None:
        return known
    texts = {x.question.qid: x.question.text for x in stored_examples(run)}
    # The order of the dataset does not matter, so that two runs over the same questions have the same groups.
    qids = sorted(texts)
    if len(qids) > MOST_ENCODED:
        qids = sorted(random.Random(seed).sample(qids, MOST_ENCODED))
    clusters = QuestionClusters((tuple(qids),), len(texts) - len(qids), {}, "", seed)
    if len(texts) >= FEWEST_GROUPED:
        encoder, parts = encoders(DEFAULT_ENCODER), []
        for start in range(0, len(qids), AT_ONCE):
            yield Progress("", start, len(qids), "encoding questions")
            part = [texts[qid] for qid in qids[start : start + AT_ONCE]]
            parts.append(encoder.encode(part, role="query"))
        split = cluster_vectors(np.concatenate(parts).astype(np.float64), seed)
        groups = tuple(
            tuple(qid for qid, place in zip(qids, split.places) if place == number)
            for number in range(int(split.places.max()) + 1)
        )
        tried = {str(count): round(value, 6) for count, value in split.silhouette.items()}
        clusters = replace(clusters, groups=groups, silhouette=tried, encoder=encoder.fingerprint)
    file = clusters_file(workspace, run)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, object_json(clusters))
    except (OSError, RalleError):
        pass  # a folder that cannot be written: they are made again
    return clusters
