"""One question at a time: templates, agents, answers, and steps as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rallebench.chains.chain import request_prompt
from rallebench.chains.template import render
from rallebench.core.backends import Backends
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.prices import Prices
from rallebench.core.types import Chain, Episode, Generate, Hit, Json, Retrieve, Step, UseTool
from rallebench.engine.cost import step_cost, total
from rallebench.engine.record import hit_to_json, request_to_json
from rallebench.engine.run_warnings import judgements, unread
from rallebench.views.transcript import pieces
from rallebench.workspace.flows import Agent


def render_template(
    template: str,
    dialect: str,
    question: str,
    earlier: Mapping[str, Sequence[str]],
    documents_file: Path | None,
) -> str:
    """A template with everything filled in. ``earlier``: ``prompt``, ``response`` and ``wiki_id_title`` of the actions before.

    ``documents_file``: a JSON list with one list of passages per action. Raises BadFileError, TemplateError.
    """
    documents = read_json(documents_file) if documents_file else []
    if not isinstance(documents, list) or not all(isinstance(row, list) for row in documents):
        raise BadFileError(
            f"{documents_file} should hold a JSON list with one list of passages per action."
        )
    variables = {"question": question, "history": "", **earlier, "documents": documents}
    return render(template, dialect, variables)


def answer_json(episode: Episode, answerer: Chain | Agent, prices: Prices) -> dict[str, Any]:
    """The answer of a chain or an agent with its steps and cost as JSON."""
    value: dict[str, Any] = {
        "answer": episode.answer,
        "steps": [step_json(step, prices) for step in episode.steps],
        "cost": total(episode.steps, prices).to_json(),
    }
    if isinstance(answerer, Agent) and episode.outcome is not None:
        value["stop_reason"] = episode.outcome.stop_reason
        value["said"] = [
            {"kind": piece.kind, "label": piece.label, "text": piece.text}
            for piece in pieces(episode.steps, answerer.workflow)
        ]
    return value


def step_json(step: Step, prices: Prices | None = None) -> dict[str, Any]:
    """A step for people and programs: kind, target, prompt, response, hits, cost.

    Tokens and dollars are None where the backend counts none or the model has no prices.
    """
    request = step.request
    target = ""
    if isinstance(request, Retrieve):
        target = request.retriever
    elif isinstance(request, Generate):
        target = request.llm
    elif isinstance(request, UseTool):
        target = request.tool
    kind = request_to_json(request)["ask"]
    value: dict[str, Any] = {
        "kind": "identity" if kind == "note" else kind,
        "target": target,
        "prompt": request_prompt(request),
        "response": step.reply.text,
    }
    if isinstance(request, Retrieve):
        value["hits"] = hits_json(step.reply.hits)
    if step.reply.thinking:
        value["thinking"] = step.reply.thinking
    if step.reply.note:
        value["note"] = step.reply.note
    value |= {"seconds": step.seconds, "cached": step.cached}
    if isinstance(request, Generate):
        cost = step_cost(step, prices or {})
        value["tokens"] = {"prompt": cost.prompt_tokens, "completion": cost.completion_tokens}
        value |= {
            "first_token_seconds": cost.first_token_seconds,
            "tokens_per_second": cost.tokens_per_second,
            "usd": cost.usd,
        }
    return value


def hits_json(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Hits with their rank, from 1."""
    return [{"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(hits, 1)]


def search_queries(
    backends: Backends, name: str, queries: Sequence[str], k: int
) -> tuple[list[tuple[Hit, ...]], tuple[str, ...]]:
    """The hits of each query from a loaded retriever, and warnings about judgements that could not be read."""
    before = judgements([name], backends)
    hits = backends.retrievers[name].search(queries, k)
    return hits, unread(before, judgements([name], backends))


def hit_json(hit: Hit) -> Json:
    """A hit with its passage and score."""
    return hit_to_json(hit)
