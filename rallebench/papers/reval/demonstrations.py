"""Demonstrations in the form of a workflow. They are drawn by seed from a task's questions that the run does not ask.

The file contains no steps, so steps are made from the gold. Each gold page is searched in turn, if the file has its text and
the environment has a search. The answer ends the episode.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rallebench.core.errors import Hint, UsageError
from rallebench.core.types import Example, ToolSpec, digest
from rallebench.workflows import Shot, ShotStep
from rallebench.workflows.prompts import FINISH
from rallebench.workspace.flows import Agent

SEARCH = "Search"
MAX_PAGE_CHARACTERS = 600
"""The most characters of a page in a demonstration."""


def draw_demonstrations(
    every: Sequence[Example], questions: Sequence[Example], number: int, seed: int, task: str
) -> tuple[Example, ...]:
    """Draw ``number`` questions from the pool, excluding the questions to ask. The seed determines the draw. Raises UsageError
    if too few remain."""
    if not number:
        return ()
    ids = {example.question.qid for example in questions}
    rest = [example for example in every if example.question.qid not in ids]
    if len(rest) < number:
        raise UsageError(
            f"demonstrations={number}: of the {len(every)} questions of {task} only {len(rest)} are not asked.",
            hint=Hint("set", f"instances={max(1, len(every) - number)}"),
        )
    chosen = random.Random(int(digest([seed, task])[:16], 16))
    return tuple(chosen.sample(rest, number))


def with_shots(agent: Agent, examples: Sequence[Example]) -> Agent:
    """The agent with these demonstrations in place of its workflow's own; unchanged without demonstrations."""
    if not examples:
        return agent
    tools = agent.acting.make().tools if agent.acting else ()
    shots = tuple(make_shot(example, tools) for example in examples)
    return replace(agent, shots=shots, settings={**agent.settings, "shots": len(shots)})


def make_shot(example: Example, tools: Sequence[ToolSpec] = ()) -> Shot:
    """A question with its answer, and a step for each gold page that can be found with these tools."""
    answer = next(iter(example.gold.answers), "")
    search = next((tool for tool in tools if tool.name == SEARCH), None)
    pages = _pages(example) if search else []
    steps = [
        ShotStep(f"I need to find {title}.", SEARCH, title, {search.arguments[0]: title}, text)
        for title, text in pages
        if search
    ]
    ended = {"return_type": "give_answer", "final_answer": answer}
    steps.append(ShotStep(f"So the answer is {answer}.", FINISH, answer, ended))
    plan = [f"Search {title}." for title, _ in pages] + ["Finish with the answer."]
    lines = [f"page = {SEARCH}({title!r})" for title, _ in pages] + [f"print({answer!r})"]
    return Shot(
        example.question.text,
        answer,
        tuple(steps),
        " ".join(f"{number}. {step}" for number, step in enumerate(plan, 1)),
        " ".join([*(text for _, text in pages), f"So the answer is {answer}."]),
        "\n".join(lines),
    )


def _pages(example: Example) -> list[tuple[str, str]]:
    """(title, beginning of the text) of each gold page with a text in the record."""
    outputs: Sequence[Any] = example.record.get("output") or ()
    items = [item for output in outputs for item in output.get("provenance") or ()]
    texts = {str(item["title"]): str(item["text"]) for item in items if item.get("text")}
    plain = {title: " ".join(text.split()) for title, text in texts.items()}
    return [
        (
            title,
            text
            if len(text) <= MAX_PAGE_CHARACTERS
            else text[:MAX_PAGE_CHARACTERS].rsplit(" ", 1)[0] + " …",
        )
        for title, text in plain.items()
    ]
