"""The loop of ReAct and similar agents: Thought, Action and Observation on one growing page (R-Eval's agent)."""

from __future__ import annotations

from rallebench.core.types import Flow, Json, Note, Outcome, SubFlow
from rallebench.workflows import _forms
from rallebench.workflows._actions import (
    bare_verb,
    format_action,
    is_decoration,
    parse_action,
    parse_input,
    split_action,
)
from rallebench.workflows._conversation import (
    MAX_LINE_CHARACTERS,
    Conversation,
    first_line,
    too_long,
    without_imitation,
)
from rallebench.workflows.prompts import FINISH, actions, episode


def render_shots(conversation: Conversation, *, thought: bool, plan: bool = False) -> list[str]:
    return [
        episode(shot, conversation.env.brackets, thought=thought, plan=plan)
        for shot in conversation.shots
    ]


def agent(
    conversation: Conversation, prompt: str, *, thought: bool, one_call: bool = False
) -> Flow:
    """Run an agent whose page begins with ``prompt``, filled with the actions, the demonstrations and the question."""
    head = conversation.head(
        prompt, render_shots(conversation, thought=thought), actions=actions(conversation.env)
    )
    return (yield from scratchpad(conversation, head, thought=thought, one_call=one_call))


def scratchpad(
    conversation: Conversation, head: str, *, thought: bool = True, one_call: bool = False
) -> Flow:
    """Take steps on the page that begins with ``head`` until the model finishes or a limit is reached.

    Each step asks the model twice: for the Thought, then for the Action; ``one_call`` asks for both at once; without
    ``thought`` only for the Action. Raises EpisodeEnd.
    """
    pad, env = head, conversation.env
    form = _forms.action(
        _verbs(conversation), env.brackets, conversation.limits.max_tokens, _bare(conversation)
    )
    for n in range(1, conversation.limits.steps + 1):
        if one_call:
            thoughts, action = yield from _both(conversation, pad, n)
            pad += f"\nThought {n}: {thoughts}\nAction {n}: {action}"
        else:
            if thought:
                thoughts = yield from _line(conversation, f"{pad}\nThought {n}:")
                pad += f"\nThought {n}: {thoughts}"
            action = yield from _action(conversation, f"{pad}\nAction {n}:", form)
            pad += f"\nAction {n}: {action}"
        verb, argument = _parse(conversation, action)
        if finishes(verb, conversation.original):
            answer = argument if conversation.original else unquote(argument, env.brackets)
            yield Note(f"Observation {n}: Episode finished.")
            return Outcome(answer)
        observation = too_long(argument)
        if not observation:
            observation = yield from conversation.observe(env.act(verb[:200], argument))
        yield Note(f"Observation {n}: {observation}")
        pad += f"\nObservation {n}: {observation}"
    return Outcome("", "step_limit")


def finishes(verb: str, original: bool = False) -> bool:
    """Return whether a verb ends the episode."""
    return verb == FINISH if original else verb.lower() == FINISH.lower()


def unquote(argument: str, brackets: str) -> str:
    """Remove the quotes that models write around an answer in round brackets."""
    quoted = (
        brackets == "()"
        and len(argument) > 1
        and argument[0] == argument[-1]
        and argument[0] in "\"'"
    )
    return argument[1:-1] if quoted else argument


def _verbs(conversation: Conversation) -> list[str]:
    return [*(tool.name for tool in conversation.env.tools), FINISH]


def _bare(conversation: Conversation) -> list[str]:
    """Return the verbs without an argument."""
    return [tool.name for tool in conversation.env.tools if not tool.arguments]


def _line(conversation: Conversation, prompt: str, form: Json | None = None) -> SubFlow[str]:
    reply = yield from conversation.ask(prompt, ("\n",), forced=form)
    line = first_line(reply.text)
    return line if conversation.original else without_imitation(line)


def _parse(conversation: Conversation, action: str) -> tuple[str, str]:
    verbs = _verbs(conversation)
    return parse_action(
        action, conversation.env.brackets, verbs=verbs, original=conversation.original
    )


def _action(conversation: Conversation, prompt: str, form: Json) -> SubFlow[str]:
    """Ask for the action of a step. The stop at the line end may cut it off, after a fence or before an ``Action
    Input:``.

    In that case the model is asked for the next line; R-Eval's code always took the first line.
    """
    line = yield from _line(conversation, prompt, form)
    if conversation.original or conversation.env.brackets[0] in line:
        return line
    if is_decoration(line):
        prompt = f"{prompt} {line}\n"
        line = yield from _line(conversation, prompt, form)
    verb = bare_verb(line, _verbs(conversation))
    if verb is None:
        return line
    reply = yield from _line(conversation, f"{prompt} {line}\nAction Input:")
    if _parse(conversation, reply)[1]:
        return reply
    argument = parse_input(reply, conversation.env.brackets)
    return format_action(verb, argument, conversation.env.brackets) if argument else line


def _both(conversation: Conversation, pad: str, n: int) -> SubFlow[tuple[str, str]]:
    """Return thought and action from one reply, without invented observations."""
    verbs, bare = _verbs(conversation), _bare(conversation)
    form = _forms.thought_and_action(
        verbs, conversation.env.brackets, n, conversation.limits.max_tokens, bare
    )
    stop = (f"\nObservation {n}:",)
    reply = yield from conversation.ask(f"{pad}\nThought {n}:", stop, forced=form)
    thought, action = split_action(without_imitation(reply.text))
    line = first_line(action)
    if not conversation.original:
        if not action.strip():
            thought, action = _split_unlabelled(conversation, thought)
            line = first_line(action)
        if not _parse(conversation, line)[1]:
            verb, argument = _parse(conversation, action.strip())
            line = format_action(verb, argument, conversation.env.brackets) if argument else line
    return " ".join(thought.strip().rstrip("*_-# ").split())[:MAX_LINE_CHARACTERS], line[
        :MAX_LINE_CHARACTERS
    ]


def _split_unlabelled(conversation: Conversation, text: str) -> tuple[str, str]:
    """Split off an unlabelled action on its own line below the thought."""
    thought, _, line = text.rstrip().rpartition("\n")
    return (thought, line) if _parse(conversation, line)[1] else (text, "")
