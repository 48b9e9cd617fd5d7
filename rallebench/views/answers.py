"""Single questions: rendered templates, agents, answers, and steps as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rallebench.chains.chain import request_prompt
from rallebench.chains.template import render
from rallebench.core.backends import Backends
from rallebench.core.costs import CostTotal, StepCost
from rallebench.core.errors import BadFileError
from rallebench.core.files import read_json
from rallebench.core.json_values import as_json
from rallebench.core.prices import Prices
from rallebench.core.types import Chain, Episode, Generate, Hit, Json, Retrieve, Step, UseTool
from rallebench.engine.cost import step_cost, total
from rallebench.engine.record import hit_to_json, request_to_json
from rallebench.engine.run_warnings import judgements, unread
from rallebench.views.transcript import Piece, pieces
from rallebench.workspace.flows import Agent


def render_template(
    template: str,
    dialect: str,
    question: str,
    earlier: Mapping[str, Sequence[str]],
    documents_file: Path | None,
) -> str:
    """Render a template completely. ``earlier``: ``prompt``, ``response`` and ``wiki_id_title`` of the earlier
    actions.

    ``documents_file``: a JSON list that holds a list of passages for each action. Raises BadFileError, TemplateError.
    """
    documents = read_json(documents_file) if documents_file else []
    if not isinstance(documents, list) or not all(isinstance(row, list) for row in documents):
        raise BadFileError(
            f"{documents_file} should hold a JSON list with one list of passages per action."
        )
    variables = {"question": question, "history": "", **earlier, "documents": documents}
    return render(template, dialect, variables)


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step for display and JSON. ``cost``: for model requests only, otherwise None; tokens and dollars are None if
    unknown.
    """

    step: Step
    cost: StepCost | None = None

    @property
    def kind(self) -> str:
        """``retrieve``, ``generate``, ``choose``, ``tool`` or ``identity``."""
        kind = str(request_to_json(self.step.request)["ask"])
        return "identity" if kind == "note" else kind

    @property
    def target(self) -> str:
        """The retriever, model or tool; '' for an identity action."""
        request = self.step.request
        if isinstance(request, Retrieve):
            return request.retriever
        if isinstance(request, Generate):
            return request.llm
        return request.tool if isinstance(request, UseTool) else ""

    @property
    def prompt(self) -> str:
        return request_prompt(self.step.request)

    @property
    def response(self) -> str:
        return self.step.reply.text

    def to_json(self) -> Json:
        step, cost = self.step, self.cost
        value: dict[str, Any] = {
            "kind": self.kind,
            "target": self.target,
            "prompt": self.prompt,
            "response": self.response,
        }
        if isinstance(step.request, Retrieve):
            value["hits"] = hits_json(step.reply.hits)
        if step.reply.thinking:
            value["thinking"] = step.reply.thinking
        if step.reply.note:
            value["note"] = step.reply.note
        if step.reply.choice:
            value |= {"choice": as_json(step.reply.choice)}
        value |= {"seconds": step.seconds, "cached": step.cached}
        if cost is not None:
            tokens = {"prompt": cost.prompt_tokens, "completion": cost.completion_tokens}
            value |= {
                "tokens": tokens,
                "first_token_seconds": cost.first_token_seconds,
                "tokens_per_second": cost.tokens_per_second,
                "usd": cost.usd,
            }
        return value


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The answer to a question. ``stop_reason`` and ``pieces``: how an agent's episode ended, and its transcript;
    None for a chain.
    """

    text: str
    steps: tuple[ShownStep, ...]
    cost: CostTotal
    stop_reason: str | None = None
    pieces: tuple[Piece, ...] | None = None

    def to_json(self) -> Json:
        value: dict[str, Any] = {
            "answer": self.text,
            "steps": [step.to_json() for step in self.steps],
            "cost": self.cost.to_json(),
        }
        if self.pieces is not None:
            value["stop_reason"] = self.stop_reason
            value["said"] = [
                {"kind": piece.kind, "label": piece.label, "text": piece.text}
                for piece in self.pieces
            ]
        return value


def show_answer(episode: Episode, answerer: Chain | Agent, prices: Prices) -> ShownAnswer:
    """Return the answer of a chain or an agent with its steps and cost."""
    steps = tuple(show_step(step, prices) for step in episode.steps)
    answer = ShownAnswer(episode.answer, steps, total(episode.steps, prices))
    if not isinstance(answerer, Agent) or episode.outcome is None:
        return answer
    transcript = tuple(pieces(episode.steps, answerer.workflow))
    return replace(answer, stop_reason=episode.outcome.stop_reason, pieces=transcript)


def show_step(step: Step, prices: Prices | None = None) -> ShownStep:
    """Return a step with the cost of its model."""
    asks_model = isinstance(step.request, Generate)
    return ShownStep(step, step_cost(step, prices or {}) if asks_model else None)


def hits_json(hits: Sequence[Hit]) -> list[Json]:
    """Return hits as JSON with ranks from 1."""
    return [{"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(hits, 1)]


def search_queries(
    backends: Backends, name: str, queries: Sequence[str], k: int
) -> tuple[list[tuple[Hit, ...]], tuple[str, ...]]:
    """Return the hits of each query from a loaded retriever, and warnings about unreadable judgements."""
    before = judgements([name], backends)
    hits = backends.retrievers[name].search(queries, k)
    return hits, unread(before, judgements([name], backends))


def hit_json(hit: Hit) -> Json:
    """Return a hit's passage and score as JSON."""
    return hit_to_json(hit)
