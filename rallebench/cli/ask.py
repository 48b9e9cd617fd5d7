"""``ask``: run one chain or agent once."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from rallebench.cli import arguments, flags
from rallebench.cli.flags import flag
from rallebench.cli.printing import follow
from rallebench.cli.verbs import VERBS, Result, open_workbench
from rallebench.core.costs import CostTotal
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
    value = answers.answer_json(episode, answerer, workbench.models.prices())
    return Result(value, ("\n\n".join(_parts(value)),))


def _parts(value: Mapping[str, Any]) -> Iterator[str]:
    for piece in value.get("said", ()):
        label, words = piece["label"], piece["text"]
        yield f"── {label}\n{words}" if label else f"   {words}"
    if "said" not in value:
        for number, step in enumerate(value["steps"], 1):
            took = "from the reply cache" if step["cached"] else f"{step['seconds']:.2f} s"
            note = f"\n({step['note']})" if step.get("note") else ""
            yield (
                f"── {number} {step['kind']} {step['target']} ({took})\n{step['prompt']}\n"
                f"→ {step['response']}{note}"
            )
    yield f"Answer: {value['answer']}"
    if reason := value.get("stop_reason"):
        yield f"Ended: {reason} ({agents.meaning(reason)})"
    yield f"Cost: {costs.sentence(CostTotal(**value['cost']))}"
