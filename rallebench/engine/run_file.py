"""``run.json``: the one place that assembles it, and runs whose answers came from elsewhere."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rallebench import __version__
from rallebench.chains.ralle import experiment_to_json
from rallebench.core.runs import NOTHING_LOADED, Backends, RunRequest
from rallebench.core.types import Episode
from rallebench.core.versions import RECORDED, versions
from rallebench.engine.cost import prices_of
from rallebench.engine.ralle_files import write_ralle_files
from rallebench.engine.score import score_run
from rallebench.engine.store import Answers, RunFolder


def run_json(
    request: RunRequest,
    backends: Backends = NOTHING_LOADED,
    *,
    batch_size: int = 1,
    memory: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """``run.json``'s content. Its fingerprint changes whenever an episode may.

    The fingerprint does not cover ``prices`` (model → US dollars per million tokens, None where they are not known) and
    ``asks_models`` (retrievers that ask language models themselves): they change costs, no answer.
    """
    llms = {name: backends.llms[name] for name in request.flow.llms if name in backends.llms}
    retrievers = {
        name: backends.retrievers[name]
        for name in request.flow.retrievers
        if name in backends.retrievers
    }
    fingerprints = {f"retriever {n}": r.fingerprint for n, r in retrievers.items()}
    fingerprints |= {f"llm {n}": m.fingerprint for n, m in llms.items()}
    spec = request.spec(fingerprints)
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": request.dataset.file,
        "spec": spec.as_json(),
        "metrics": [*request.metrics, *(judge.name for judge in request.judges)],
        "batch_size": batch_size,
        "prices": prices_of(llms),
        "asks_models": [n for n, r in retrievers.items() if hasattr(r, "unread")],
        **({} if memory is None else {"memory": memory}),
        "versions": {
            "rallebench": __version__,
            "python": platform.python_version(),
            **versions(*RECORDED),
        },
        "platform": platform.platform(),
    }


def write_run(
    runs: Path,
    request: RunRequest,
    episodes: Iterable[Episode],
    backends: Backends = NOTHING_LOADED,
    *,
    session: str = "import",
    seconds: float = 0.0,
    message: str = "",
) -> RunFolder:
    """A scored run of answers that came from elsewhere: imported predictions, the log of another program, a live episode.

    ``seconds``: what answering took, 0 where it is not known. Raises UsageError if a run of that name exists.
    """
    folder = RunFolder.create(
        runs,
        request.name,
        run_json(request, backends),
        (dict(example.record) for example in request.examples),
    )
    with folder.log() as log:
        for episode in episodes:
            folder.append(log, episode, session, seconds)
    report = finish(folder, request)
    end(folder, report, "done", message)
    return folder


def finish(
    folder: RunFolder,
    request: RunRequest,
    judges: Mapping[str, Any] | None = None,
    answers: Answers | None = None,
) -> dict[str, Any]:
    """Score all stored answers of a run and write RaLLe's files; the report.

    ``judges``: what it says of each judge; ``answers``: those of the folder, where the caller has read them.
    """
    more = {"judges": dict(judges)} if judges else {}
    answers = answers or folder.answers()
    report = score_run(folder, request.metrics, request.rates, request.examples, more, answers)
    chain = request.flow.chain
    config = None
    if chain is not None:
        spec = folder.spec()
        config = experiment_to_json(
            chain, spec["spec"]["dataset"], spec["spec"]["limit"] or -1, spec["batch_size"]
        )
    write_ralle_files(folder.path, folder.records(), answers.episodes, report, chain, config)
    return report


def end(folder: RunFolder, report: Mapping[str, Any], state: str, message: str) -> None:
    """Write the state in which a run has ended."""
    folder.set_state(
        state,
        done=report["n_done"],
        total=report["n"],
        errors=report["n_errors"],
        seconds=report["seconds"],
        message=message,
    )
