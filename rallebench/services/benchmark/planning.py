"""A request for a benchmark → a plan in which nothing needs to be looked up again, and its ``run.json``."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rallebench import __version__
from rallebench.core.errors import UsageError
from rallebench.core.files import sha256_file
from rallebench.core.types import Chain, Example, RunSpec
from rallebench.datasets.kilt import read_questions
from rallebench.engine.cost import prices_of
from rallebench.engine.perform import Backends
from rallebench.engine.score import choose_metrics
from rallebench.engine.store import RunFolder, checked_run_name
from rallebench.services.benchmark.checking import check_chain
from rallebench.services.name_check import refuse_taken
from rallebench.workspace.coverage import MOST_PASSAGES, coverage
from rallebench.workspace.entries import chain_to_json
from rallebench.workspace.flows import Agent
from rallebench.workspace.indexes.manifests import versions
from rallebench.workspace.paths import Workspace

PACKAGES = (
    "torch",
    "transformers",
    "bitsandbytes",
    "faiss-cpu",
    "bm25s",
    "numpy",
    "openai",
    "mlflow",
    "gradio",
    "rouge",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked benchmark: nothing in it needs to be looked up again. With an ``agent``, which then answers, ``chain``
    only names what must be loaded. ``warnings``: what the user should know before it runs."""

    chain: Chain
    dataset: str
    examples: tuple[Example, ...]
    dataset_sha256: str
    dataset_file: str
    metrics: tuple[str, ...]
    name: str
    limit: int | None = None
    batch_size: int = 20
    seed: int = 0
    max_errors: int | None = None
    resume: bool = False
    track: bool = True
    agent: Agent | None = None
    warnings: tuple[str, ...] = ()


def prepare(
    workspace: Workspace,
    chain: Chain,
    dataset: str,
    *,
    limit: int | None = None,
    metrics: tuple[str, ...] | None = None,
    name: str = "",
    batch_size: int = 20,
    seed: int = 0,
    max_errors: int | None = None,
    resume: bool = False,
    track: bool = True,
    agent: Agent | None = None,
) -> Plan:
    """Check everything that can be wrong before a model is loaded. Raises UsageError; writes nothing."""
    if limit == 0 or (limit is not None and limit < -1):
        raise UsageError(f"The number of questions is {limit}; give at least 1, or -1 for all.")
    limit = None if limit == -1 else limit
    if batch_size < 1:
        raise UsageError(f"The batch size is {batch_size}; it must be at least 1.")
    if max_errors is not None and max_errors < 0:
        raise UsageError(f"--max-errors is {max_errors}; it must be at least 0.")
    check_chain(workspace, chain)
    dataset_name, path = workspace.dataset(dataset)
    examples = read_questions(path, limit)
    if not examples:
        raise UsageError(f"{path} holds no questions.")
    chosen = choose_metrics(metrics, examples, dataset_name)
    name = checked_run_name(name or fresh_name(workspace, chain.name, dataset_name))
    plan = Plan(
        chain,
        dataset_name,
        examples,
        sha256_file(path),
        str(path) if dataset_name != dataset else "",
        chosen,
        name,
        limit,
        batch_size,
        seed,
        max_errors,
        resume,
        track,
        agent,
        missing_gold(workspace, chain, examples, at_most=MOST_PASSAGES),
    )
    exists = (workspace.runs / name).exists()
    if exists and not resume:
        raise UsageError(
            f"The run {name!r} exists already in {workspace.runs}; choose another --name, or add --resume."
        )
    refuse_taken(workspace, "run", name)
    if resume:
        RunFolder.open(workspace.runs, name).spec()
    return plan


def missing_gold(
    workspace: Workspace, chain: Chain, examples: Sequence[Example], *, at_most: int | None = None
) -> tuple[str, ...]:
    """One sentence per retriever of a chain that lacks gold pages of the questions."""
    return tuple(
        filter(None, coverage(workspace, retrievers_of(chain), examples, at_most=at_most).values())
    )


def retrievers_of(chain: Chain) -> list[str]:
    """The retrievers that a chain asks, in order, each once."""
    return list(
        dict.fromkeys(a.target for a in chain.actions if a.kind == "retrieve" and a.template)
    )


def fresh_name(workspace: Workspace, chain: str, dataset: str) -> str:
    """A free run name: chain, question set, time."""
    what = (
        re.sub(r"[^\w.\-]+", "-", f"{chain}-{dataset}")
        .encode()[:80]
        .decode("utf-8", "ignore")
        .strip("-.")
    )
    base = f"{what}-{time.strftime('%Y%m%d-%H%M%S')}"
    name, n = base, 2
    while (workspace.runs / name).exists():
        name, n = f"{base}-{n}", n + 1
    return name


def run_spec(plan: Plan, backends: Backends) -> dict[str, Any]:
    """``run.json``'s content. Its fingerprint changes whenever an episode may.

    Outside of what it covers stand ``prices`` (model → US dollars per million tokens, None where they are not
    known) and ``asks_models`` (retrievers that ask language models themselves): they change costs, no answer.
    """
    named = {a.target for a in plan.chain.actions if a.template and a.kind != "identity"}
    fingerprints = {
        f"retriever {n}": r.fingerprint for n, r in backends.retrievers.items() if n in named
    }
    fingerprints |= {f"llm {n}": m.fingerprint for n, m in backends.llms.items() if n in named}
    asked = (
        {"agent": plan.agent.as_json()}
        if plan.agent
        else {
            "chain": {
                key: value for key, value in chain_to_json(plan.chain).items() if key != "about"
            }
        }
    )
    spec = RunSpec(
        plan.dataset,
        plan.agent.workflow if plan.agent else "chain",
        {**asked, "backends": fingerprints, "dataset_sha256": plan.dataset_sha256},
        plan.metrics,
        plan.limit,
        plan.seed,
    )
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "fingerprint": spec.fingerprint(),
        "dataset_file": plan.dataset_file,
        "spec": {
            "dataset": spec.dataset,
            "workflow": spec.workflow,
            "settings": dict(spec.settings),
            "limit": spec.limit,
            "seed": spec.seed,
        },
        "metrics": list(plan.metrics),
        "batch_size": plan.batch_size,
        "prices": prices_of({n: m for n, m in backends.llms.items() if n in named}),
        "asks_models": [
            n for n, r in backends.retrievers.items() if n in named and hasattr(r, "unread")
        ],
        "versions": {
            "rallebench": __version__,
            "python": platform.python_version(),
            **versions(*PACKAGES),
        },
        "platform": platform.platform(),
    }
