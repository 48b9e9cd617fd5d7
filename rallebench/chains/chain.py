"""A chain as a flow: fill the template of each action from the steps before it, then send the request.

The template variables are RaLLe's, down to the separators: a retriever's ``response`` joins the passages with ``"; "``,
``wiki_id_title`` joins ``"title, page id"`` with ``"; "``; the reply of an identity action is its own prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rallebench.chains.template import render
from rallebench.core.errors import TemplateError, UsageError
from rallebench.core.types import (
    Action,
    Chain,
    Evidence,
    Flow,
    Generate,
    Hit,
    Json,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Request,
    Retrieve,
    Step,
)

_OWN = ("max_tokens", "temperature", "seed", "stop", "system")


def bindings(question: Question, steps: Sequence[Step]) -> dict[str, Any]:
    """Return the template variables of the next action."""
    return {
        "question": question.text,
        "history": history_text(question.history),
        "prompt": [request_prompt(step.request) for step in steps],
        "response": [step.reply.text for step in steps],
        "wiki_id_title": [wiki_id_title(step) for step in steps],
        "documents": [documents(step) for step in steps],
    }


def history_text(history: Sequence[Message]) -> str:
    """Return the earlier turns of a chat, one per line: ``User: …``, ``Assistant: …``."""
    return "\n".join(f"{message.role.capitalize()}: {message.content}" for message in history)


def request_prompt(request: Request) -> str:
    """Return the filled template of a request: the query, the last user message, or the note."""
    if isinstance(request, Retrieve):
        return request.query
    if isinstance(request, Generate):
        return request.messages[-1].content if request.messages else ""
    return request.text if isinstance(request, Note) else str(dict(request.arguments))


def wiki_id_title(step: Step) -> str:
    """Return RaLLe's ``title, id; title, id; …`` of a retrieval, '' for any other step."""
    return "; ".join(f"{hit.passage.title}, {hit.passage.page_id}" for hit in step.reply.hits)


def documents(step: Step) -> list[dict[str, Any]]:
    """Return the retrieved passages as plain mappings. Their titles may contain commas."""
    return [
        {
            "rank": rank,
            "title": hit.passage.title,
            "text": hit.passage.text,
            "page_id": hit.passage.page_id,
            "doc_id": hit.passage.doc_id,
            "score": hit.score,
        }
        for rank, hit in enumerate(step.reply.hits, 1)
    ]


def interpret(action: Action, question: Question, steps: Sequence[Step]) -> str:
    """Fill the action's template. Raises TemplateError."""
    return render(action.template, action.dialect, bindings(question, steps))


def plan(action: Action, question: Question, steps: Sequence[Step]) -> Request:
    """Return the action's request after these steps, without sending it. Raises TemplateError, UsageError."""
    prompt = interpret(action, question, steps)
    if action.kind == "retrieve":
        if not action.target:
            raise UsageError("This retrieve action names no retriever; choose one.")
        if action.k < 1:
            raise UsageError(f"k is {action.k}; a retriever needs at least 1.")
        return Retrieve(action.target, prompt, action.k)
    if action.kind == "generate":
        if not action.target:
            raise UsageError("This generate action names no language model; choose one.")
        return _generate(action, prompt, question, steps)
    return Note(prompt)


def _generate(action: Action, prompt: str, question: Question, steps: Sequence[Step]) -> Generate:
    settings: Json = action.generation
    system = settings.get("system")
    messages = ((Message("system", system),) if system else ()) + (Message("user", prompt),)
    return Generate(
        action.target,
        messages,
        max_tokens=settings.get("max_tokens"),
        temperature=settings.get("temperature"),
        seed=settings.get("seed"),
        stop=tuple(settings.get("stop") or ()),
        options={name: value for name, value in settings.items() if name not in _OWN},
        evidence=evidence(prompt, question, steps),
        explicit=True,
    )


def evidence(prompt: str, question: Question, steps: Sequence[Step]) -> Evidence:
    """Return the question and the passages that the prompt contains word for word."""
    seen: dict[str, Passage] = {}
    for passage in (
        *question.passages,
        *(hit.passage for step in steps for hit in step.reply.hits),
    ):
        if passage.text and passage.text in prompt:
            seen.setdefault(passage.doc_id, passage)
    text = question.text
    return Evidence(text if text and text in prompt else "", tuple(seen.values()))


def sources(question: str, steps: Sequence[Step]) -> list[Hit]:
    """Return the retrieved passages that the last prompt contains word for word, best first, without duplicates."""
    if len(steps) < 2:
        return list(steps[-1].reply.hits) if steps else []
    seen = evidence(request_prompt(steps[-1].request), Question("", question), steps[:-1]).passages
    hits = {
        hit.passage.doc_id: hit
        for step in reversed(steps[:-1])
        for hit in reversed(step.reply.hits)
    }
    return [hits[passage.doc_id] for passage in seen]


def as_flow(chain: Chain, question: Question) -> Flow:
    """Return the chain as a generator. An action with an empty template ends it, as in RaLLe.

    The answer is the reply to the last generate or identity action, or '' without one.
    """
    steps: list[Step] = []
    answer = ""
    for number, action in enumerate(chain.actions, 1):
        if not action.template:
            return Outcome(answer, "empty_template")
        try:
            request = plan(action, question, steps)
        except (TemplateError, UsageError) as error:
            raise error.saying(f"Action {number}: {error}") from None
        reply = yield request
        steps.append(Step(request, reply))
        if action.kind != "retrieve":
            answer = reply.text
    return Outcome(answer)
