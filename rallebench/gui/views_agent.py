"""An agent's episode → HTML: how it stands, what was thought, done and seen, the tree of a search. Pure; everything escaped."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from rallebench.core.types import Episode, Example, Generate, Gold, Message, Retrieve, Step
from rallebench.engine.cost import Prices, total
from rallebench.engine.score import score_episode
from rallebench.gui import views, views_cost
from rallebench.gui.views import badge, marked
from rallebench.gui.wording import on_page
from rallebench.render import costs, numbers
from rallebench.services.episodes import EpisodeState
from rallebench.services.transcript import (
    EDITED,
    Piece,
    actions,
    beginning,
    pieces,
    was_edited,
)
from rallebench.workflows import REASONS
from rallebench.workflows.trees import Node, tree_of

NOTHING = (
    "No episode yet. Choose a workflow, what it acts on, a language model and a question, then press Run: every thought, "
    "action and observation appears here as it happens."
)
LOST = (
    "The episode that this page followed is not known here any more: the program was started anew since, which ends what goes on. "
    "Run it again: what the model had answered is remembered, so it goes quickly to where it was."
)
GOOD, BAD = frozenset({"answered"}), frozenset({"model_error", "tool_error"})
PROMPT_CHARACTERS = 6_000
"""Of a prompt on the page; the middle of a longer one is left out."""


def shown(watched: EpisodeState, prices: Prices, mark: bool) -> str:
    """A whole episode: head, tree, steps, cost."""
    gold = watched.episode_request.example.gold if mark else Gold()
    workflow = watched.episode_request.workflow
    parts = [head(watched, prices)]
    tree = tree_of_html(_nodes(watched), gold)
    if tree:
        parts.append(
            '<div class="rb-label">The tree of the search, in the order in which it was tried</div>'
            + tree
        )
    title = "Step by step"
    steps = steps_html(watched.steps, workflow, gold) + _now(watched, gold)
    if tree and not watched.going:
        parts.append(_folded(title, "steps", steps))
    elif steps:
        parts.append(f'<div class="rb-label">{title}</div>{steps}')
    if watched.steps and not watched.going:
        table = views_cost.steps_table(watched.steps, prices)
        parts.append(
            _folded("What the model was asked, request by request", "prompts", _prompts(watched))
        )
        parts.append(_folded("Cost step by step", "cost", table))
    return f'<div data-episode="{escape(watched.name, quote=True)}">{"".join(parts)}</div>'


def _folded(title: str, key: str, inside: str) -> str:
    return (
        f'<details class="rb-label" data-key="{key}"><summary>{title}</summary>{inside}</details>'
        if inside
        else ""
    )


# ── how it stands ────────────────────────────────────────────────────────────


def head(watched: EpisodeState, prices: Prices) -> str:
    """What is asked, how it stands or ended, its answer and what it took."""
    question = f'<div class="rb-agent-question" dir="auto">{escape(watched.episode_request.example.question.text)}</div>'
    spent = total(watched.steps, prices)
    requests = sum(isinstance(step.request, Generate) for step in watched.steps)
    cached = sum(step.cached for step in watched.steps)
    facts = [
        ("Requests to the model", f"{requests}"),
        (
            "Tokens read + written",
            costs.counted(spent).removesuffix(" tokens") if requests else "–",
        ),
        ("Seconds of asking", numbers.text(spent["seconds"] or 0.0, "quantity")),
        (
            "By the clock",
            views.duration(watched.seconds)
            if watched.seconds >= 10
            else numbers.text(watched.seconds, "seconds"),
        ),
    ]
    grid = "".join(f"<div><span>{name}</span><b>{escape(value)}</b></div>" for name, value in facts)
    memory = (
        f"{cached} of {len(watched.steps)} steps came from memory; their cost is that of the first time."
        if cached
        else ""
    )
    kept = len(watched.episode_request.before)
    earlier = (
        f"The first {kept} steps are those of the episode that this one goes on from, with their cost of then."
        if kept
        else ""
    )
    changed = (
        "An action was edited by you, so this is not the agent's own doing."
        if was_edited(watched.steps)
        else ""
    )
    origin = f"Read from the run {escape(watched.run)}." if watched.run else ""
    remarks = "".join(
        f'<div class="rb-label">{text}</div>' for text in (origin, earlier, memory, changed) if text
    )
    grid = (
        f'<div class="rb-facts">{grid}</div>' if watched.steps or watched.state != "failed" else ""
    )
    return f"{question}{state_line(watched)}{grid}{remarks}"


def state_line(watched: EpisodeState) -> str:
    """One sentence: it goes on, was stopped, failed, or why it ended; the answer, and whether it is the gold's."""
    wanted = watched.episode_request
    who = " · ".join(
        filter(
            None,
            [
                wanted.workflow,
                wanted.env if watched.agent is None or watched.agent.acting else "",
                wanted.llm,
            ],
        )
    )
    who = f'<div class="rb-agent-who">{escape(who)}</div>'
    if watched.state == "starting":
        return f'<div class="rb-note">{who}Getting ready what it names …</div>'
    if watched.state == "running":
        return f'<div class="rb-note">{who}Running …</div>'
    if watched.state == "stopped":
        if not actions(watched.steps, wanted.workflow):
            return f'<div class="rb-note">{who}Stopped by you before anything was done; press Run to begin anew.</div>'
        return f'<div class="rb-note">{who}Stopped by you. What was done so far is kept; continue from an action below.</div>'
    if watched.state == "failed":
        return views.error(sentence(watched.error))
    assert watched.episode is not None and watched.episode.outcome is not None
    reason = watched.episode.outcome.stop_reason
    wrong = is_right(watched.episode, wanted.example) is False
    kind = "error" if reason in BAD else "note" if wrong or reason not in GOOD else "good"
    words = badge(
        REASONS.get(reason, reason),
        "good" if reason in GOOD else "bad" if reason in BAD else "",
        about=reason,
    )
    answer = (
        f'<b class="rb-agent-answer" dir="auto">{escape(watched.episode.answer)}</b>'
        if watched.episode.answer
        else "No answer"
    )
    return f'<div class="rb-{kind}">{who}{answer} {words} {verdict(watched.episode, wanted.example)}</div>'


def is_right(episode: Episode, example: Example) -> bool | None:
    """Whether the answer equals a gold one; None for a question without gold answers, or without an answer."""
    if not example.gold.answers or not episode.answer:
        return None
    return bool(score_episode(episode, example, ("em",))[0].value)


def verdict(episode: Episode, example: Example) -> str:
    """Whether the answer is a gold one, as badges; '' for a question without gold answers, or without an answer."""
    right = is_right(episode, example)
    if right is None:
        return ""
    f1 = score_episode(episode, example, ("f1",))[0].value or 0.0
    said = badge("is a gold answer", "good") if right else badge("is no gold answer", "bad")
    return said + badge(
        f"F1 {f1:.2f}", about="Words shared with the best gold answer, as KILT counts them."
    )


def sentence(error: str) -> str:
    """An error in the words of the page, which has no flags."""
    error = on_page(
        error.replace(
            "needs an environment; name one with --env: ", "needs an environment; choose one: "
        )
    )
    before, asked, _ = error.partition("allow it with --allow-python.")
    return f"{before}allow it by opening this page with app.py --allow-python." if asked else error


def title(watched: EpisodeState) -> str:
    """An episode in a line: when it began, what it was, how it ended."""
    outcome = watched.episode.outcome if watched.episode else None
    ended = (
        f"{outcome.stop_reason.replace('_', ' ')}: {outcome.answer}"
        if outcome and outcome.answer
        else outcome.stop_reason.replace("_", " ")
        if outcome
        else watched.state
    )
    question = " ".join(watched.episode_request.example.question.text.split())
    when = time.strftime("%H:%M:%S", time.localtime(watched.began))
    changed = " (edited)" if was_edited(watched.steps) else ""
    return f"{when} {watched.episode_request.workflow} · {watched.episode_request.llm}{changed} · {_cut(ended)} · {_cut(question, 60)}"


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def kept(run: str, together: int = 1) -> str:
    """Where an episode is now, and what to do to compare it."""
    if together > 1:
        return views.note(
            f"Kept as the run {run}; Compare shows the {together} episodes of this question that were sent.",
            "good",
        )
    return views.note(
        f"Kept as the run {run}, which Runs opens and Compare can compare with any run that asked this question. Send another "
        "episode of the same question, and the two are compared at once.",
        "good",
    )


# ── step by step ─────────────────────────────────────────────────────────────


def steps_html(steps: Sequence[Step], workflow: str, gold: Gold) -> str:
    """Every piece of the steps; below a search, folded, what was found."""
    rows, last = [], -1
    for piece in pieces(steps, workflow):
        step, first = steps[piece.at], piece.at != last
        last = piece.at
        rows.append(
            _row(
                piece,
                gold,
                _badges(step) if first else "",
                _found(step, piece.at, gold) if first else "",
            )
        )
    return f'<div class="rb-agent">{"".join(rows)}</div>' if rows else ""


def _now(watched: EpisodeState, gold: Gold) -> str:
    """The step that goes on, as far as it has come."""
    if not watched.going or watched.request is None:
        return ""
    rows = []
    for piece in beginning(watched.request, watched.writing, watched.episode_request.workflow):
        rows.append(_row(piece, gold, '<span class="rb-agent-busy">…</span>', ""))
    return f'<div class="rb-agent">{"".join(rows)}</div>'


def _row(piece: Piece, gold: Gold, extra: str, below: str) -> str:
    text = (
        marked(piece.text, gold.answers, piece.kind in ("observation", "output", "action"))
        if gold.answers
        else escape(piece.text)
    )
    if not piece.text.strip():
        text = (
            ""
            if extra.startswith('<span class="rb-agent-busy"')
            else '<span class="rb-empty">nothing</span>'
        )
    return (
        f'<div class="rb-agent-row {piece.kind}"><div class="rb-agent-label">{piece.label}</div>'
        f'<div class="rb-agent-body"><div class="rb-agent-text" dir="auto">{text}</div>{below}</div><div class="rb-agent-cost">{extra}</div></div>'
    )


def _badges(step: Step) -> str:
    """What stands at the right of a step: seconds, tokens, and what is unusual about it."""
    if not isinstance(step.request, (Generate, Retrieve)):
        return ""
    parts = [badge("edited by you", "page")] if step.reply.note == EDITED else []
    parts += (
        [badge("memory", about="Nothing was asked this time; the costs are those of then.")]
        if step.cached
        else []
    )
    if isinstance(step.request, Generate):
        ended = step.reply.finish_reason
        parts += (
            [badge(f"ended: {ended}", "bad")] if ended not in ("stop", "", "tool_calls") else []
        )
        counted = total([step], {})
        parts.append(f"<span>{escape(costs.counted(counted))}</span>")
    return "".join([*parts, f"<span>{numbers.text(step.seconds, 'seconds')}</span>"])


def _found(step: Step, at: int, gold: Gold) -> str:
    if not isinstance(step.request, Retrieve):
        return ""
    found = views.ranked(step.reply.hits, gold, bool(gold.answers or gold.pages), "")
    return f'<details data-key="{at}"><summary>{len(step.reply.hits)} passages</summary>{found}</details>'


def _prompts(watched: EpisodeState) -> str:
    """Each request to the model, folded below what it answered."""
    found = []
    said = {
        piece.at: piece
        for piece in reversed(pieces(watched.steps, watched.episode_request.workflow))
    }
    for at, step in enumerate(watched.steps):
        if isinstance(step.request, Generate):
            piece = said[at]
            text = " ".join(piece.text.split())[:100]
            name = piece.label
            told = "".join(_message(message) for message in step.request.messages)
            found.append(_folded(f"{name}: {escape(text)}", f"prompt-{at}", told))
    return f'<div class="rb-agent-prompts">{"".join(found)}</div>' if found else ""


def _message(message: Message) -> str:
    text = message.content + "".join(
        f"\n{call.name}({call.arguments})" for call in message.tool_calls
    )
    left = len(text) - PROMPT_CHARACTERS
    if left > 0:
        text = f"{text[: PROMPT_CHARACTERS // 3]}\n[… {left:,} characters left out here …]\n{text[-PROMPT_CHARACTERS * 2 // 3 :]}"
    return views.text_box(message.role.capitalize(), escape(text))


# ── the tree ─────────────────────────────────────────────────────────────────

STATES: Mapping[str, tuple[str, str]] = {
    "open": ("gone on from", ""),
    "answered": ("answered", "good"),
    "gave_up": ("gave up", "bad"),
    "too_deep": ("as deep as it may go", "bad"),
    "left": ("no way on led anywhere", ""),
}


def _nodes(watched: EpisodeState) -> tuple[Node, ...]:
    return tree_of(watched.steps)


def tree_of_html(nodes: Sequence[Node], gold: Gold) -> str:
    """The turns of a search below those that led to them; the way to the answer stands out. '' without a tree. What is seen and
    done is marked where a gold answer stands in it."""
    if not nodes:
        return ""
    below: dict[int, list[Node]] = {}
    for node in nodes:
        below.setdefault(node.parent, []).append(node)
    return f'<ul class="rb-tree" role="tree">{"".join(_branch(node, below, _way(nodes), gold) for node in below.get(0, ()))}</ul>'


def _way(nodes: Iterable[Node]) -> frozenset[int]:
    """The nodes that led to the answer."""
    known = {node.number: node for node in nodes}
    at = next((node.number for node in known.values() if node.state == "answered"), 0)
    way = set()
    while at in known:
        way.add(at)
        at = known[at].parent
    return frozenset(way)


def _branch(
    node: Node, below: Mapping[int, Sequence[Node]], way: frozenset[int], gold: Gold
) -> str:
    words, kind = STATES.get(node.state, (node.state, ""))
    children = "".join(_branch(child, below, way, gold) for child in below.get(node.number, ()))
    inside = "".join(
        f'<div class="rb-agent-row {kind_}"><div class="rb-agent-label">{label}</div><div class="rb-agent-text" dir="auto">{marked(text, gold.answers, kind_ == "observation") if gold.answers else escape(text)}</div></div>'
        for kind_, label, text in (
            ("thought", "Thought", node.thought),
            ("observation", "Observation", node.observation),
        )
        if text
    )
    move = (
        f"<code>{escape(_cut(node.move, 300))}</code>"
        if node.move
        else '<span class="rb-empty">no call</span>'
    )
    return (
        f'<li role="treeitem" class="{"way" if node.number in way else ""}"><details data-key="tree-{node.number}"{" open" if node.number in way else ""}>'
        f"<summary><b>{node.number}</b> {move} {badge(words, kind)}</summary>{inside}</details>"
        f"{f'<ul>{children}</ul>' if children else ''}</li>"
    )


# ── before it runs ───────────────────────────────────────────────────────────


def about(workflow: str, env: str, paper: str) -> str:
    """What a workflow does, and what its environment is, in their own words."""
    source = f' <span class="rb-basis">({escape(paper)})</span>' if paper else ""
    acting = (
        f"<br><b>Acts on:</b> {escape(env)}"
        if env
        else "<br>It acts on nothing: no environment is needed."
    )
    return f'<div class="rb-agent-about"><b>How it answers:</b> {escape(workflow)}{source}{acting}</div>'


def programs(sentences: Sequence[str], allowed: bool) -> str:
    """What holds a program that a model wrote, and how to allow one."""
    lines = "".join(f"<li>{escape(text)}</li>" for text in sentences)
    if allowed:
        return f'<div class="rb-good">Programs that the model writes may run here.<ul class="rb-list">{lines}</ul></div>'
    how = "Programs that the model writes may <b>not</b> run here. To allow it, open the page with <code>python app.py --allow-python</code>. Then:"
    return f'<div class="rb-note">{how}<ul class="rb-list">{lines}</ul></div>'
