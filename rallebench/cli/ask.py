"""``ask``: run one chain or agent once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.errors import UsageError
from rallebench.render import costs
from rallebench.views import agents, answers
from rallebench.views.run_requests import changed_chain


@VERBS.register(
    "ask",
    about="run one chain or agent once",
    example='rallebench ask --chain starter --question "Who discovered Titan?"',
    order=5,
    flags=(
        flag("--chain", "FILE|NAME"),
        flag("--question", "Q", required=True),
        *flags.OVERRIDES,
        *flags.AGENT,
    ),
)
def ask(args: argparse.Namespace) -> Result:
    """Run one chain or agent once."""
    if not args.question.strip():
        raise UsageError("The question is empty; write it behind --question.")
    workbench = open_workbench(args)
    agent, workspace = None, workbench.workspace
    if arguments.names_agent(args):
        parts = arguments.agent_parts(args)
        agent = workbench.asking.agent(*parts, retriever=args.retriever or "")
    answerer = agent or changed_chain(workspace, args.chain, args.llm, args.retriever, args.set)
    episode = follow(workbench.asking.answer(args.question, answerer))
    value = answers.show_answer(episode, answerer, workbench.models.prices_of_use())
    return Result(value.to_json(), ("\n\n".join(_parts(value)),))


def _parts(answer: answers.ShownAnswer) -> Iterator[str]:
    for piece in answer.pieces or ():
        yield f"── {piece.label}\n{piece.text}" if piece.label else f"   {piece.text}"
    for number, shown_step in enumerate(answer.steps, 1) if answer.pieces is None else ():
        step, note = shown_step.step, shown_step.step.reply.note
        took = "from the reply cache" if step.cached else f"{step.seconds:.2f} s"
        yield (
            f"── {number} {shown_step.kind} {shown_step.target} ({took})\n{shown_step.prompt}\n"
            f"→ {shown_step.response}" + (f"\n({note})" if note else "")
        )
    yield f"Answer: {answer.text}"
    if reason := answer.stop_reason:
        yield f"Ended: {reason} ({agents.meaning(reason)})"
    yield f"Cost: {costs.sentence(answer.cost)}"
