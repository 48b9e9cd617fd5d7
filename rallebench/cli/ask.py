"""``render`` and ``ask``: interpret one template, run one chain once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rallebench.chains.chain import prompt_of
from rallebench.chains.ralle import override
from rallebench.chains.template import render as render_template
from rallebench.cli.acting import agent_flags, agent_of
from rallebench.cli.verbs import VERBS, interruptible, say, settings_flag, workbench_of
from rallebench.core.errors import BackendError, BadFileError, UsageError
from rallebench.core.files import read_json
from rallebench.core.runs import FlowSpec
from rallebench.core.types import Chain, Episode, Generate, Question, Retrieve, Step, UseTool
from rallebench.engine.cost import Prices, prices_of, step_to_json, total
from rallebench.engine.record import hit_to_json, request_to_json
from rallebench.render import costs
from rallebench.services.leases import Lease
from rallebench.services.live.transcript import pieces
from rallebench.workflows import REASONS
from rallebench.workspace.checking import check_flow
from rallebench.workspace.flows import chain_flow
from rallebench.workspace.overrides import with_overrides
from rallebench.workspace.paths import parse_settings


def _render_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--template", required=True, metavar="T")
    parser.add_argument("--dialect", choices=("fstring", "eval"), default="fstring")
    parser.add_argument("--question", default="", metavar="Q")
    for flag in ("prompt", "response", "wiki-id-title"):
        parser.add_argument(
            f"--{flag}",
            action="append",
            default=[],
            metavar=flag[0].upper(),
            help="once per earlier action",
        )
    parser.add_argument(
        "--documents", type=Path, metavar="FILE", help="JSON: per action a list of passages"
    )


@VERBS.register(
    "render",
    about="interpret one template, run nothing",
    example="rallebench render --template '{question}?' --dialect fstring --question 'Who'",
    order=4,
    flags=_render_flags,
    plain=lambda value: str(value["prompt"]),
)
def render(args: argparse.Namespace) -> dict[str, str]:
    """Interpret one template."""
    documents = read_json(args.documents) if args.documents else []
    if not isinstance(documents, list) or not all(
        isinstance(passages, list) for passages in documents
    ):
        raise BadFileError(
            f"{args.documents} should hold a JSON list with one list of passages per action."
        )
    variables = {
        "question": args.question,
        "history": "",
        "prompt": args.prompt,
        "response": args.response,
        "wiki_id_title": args.wiki_id_title,
        "documents": documents,
    }
    return {"prompt": render_template(args.template, args.dialect, variables)}


def override_flags(parser: argparse.ArgumentParser) -> None:
    """Flags that change a chain before it runs."""
    parser.add_argument("--llm", metavar="L", help="use this model in every generate action")
    parser.add_argument(
        "--retriever", metavar="R", help="use this retriever in every retrieve action"
    )
    settings_flag(parser, "k=10, temperature=0.2, 2.max_tokens=32 …")


def overridden(chain: Chain, args: argparse.Namespace, *, all_fit: bool = True) -> Chain:
    """The chain with what the flags change; UsageError for what fits no action."""
    chain = override(chain, llm=args.llm, retriever=args.retriever)
    return with_overrides(chain, parse_settings(args.set), all_fit=all_fit)


def _ask_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chain", metavar="FILE|NAME")
    parser.add_argument("--question", required=True, metavar="Q")
    override_flags(parser)
    agent_flags(parser)


def _ask_plain(value: Mapping[str, Any]) -> str:
    if "said" in value:
        steps = [
            f"── {one['label']}\n{one['text']}" if one["label"] else f"   {one['text']}"
            for one in value["said"]
        ]
    else:
        steps = [_step_lines(n, step) for n, step in enumerate(value["steps"], 1)]
    cost = f"Cost: {costs.sentence(value['cost'])}"
    ended = (
        [f"Ended: {value['stop_reason']} ({REASONS.get(value['stop_reason'], '')})"]
        if "stop_reason" in value
        else []
    )
    return "\n\n".join([*steps, f"Answer: {value['answer']}", *ended, cost])


def _step_lines(number: int, step: Mapping[str, Any]) -> str:
    cost = "from memory" if step["cached"] else f"{step['seconds']:.2f} s"
    note = f"\n({step['note']})" if step.get("note") else ""
    return f"── {number} {step['kind']} {step['target']} ({cost})\n{step['prompt']}\n→ {step['response']}{note}"


@VERBS.register(
    "ask",
    about="run one chain or agent once",
    example='rallebench ask --chain starter --question "Who discovered Titan?"',
    order=5,
    flags=_ask_flags,
    plain=_ask_plain,
)
def ask(args: argparse.Namespace) -> dict[str, Any]:
    """Run one chain or agent once."""
    if not args.question.strip():
        raise UsageError("The question is empty; write it behind --question.")
    workbench = workbench_of(args)
    agent = agent_of(workbench, args)
    flow = (
        agent.flow if agent else chain_flow(overridden(workbench.workspace.chain(args.chain), args))
    )
    check_flow(workbench.workspace, flow)
    question = Question("ask", args.question)
    episode = None
    with workbench.lease("rallebench ask") as lease:
        _load(lease, flow)
        for event in (
            workbench.run_agent(agent, question)
            if agent
            else workbench.execute_chain(flow.chain, question)
        ):
            if isinstance(event, Episode):
                episode = event
    assert episode is not None
    if workbench.memo_warning:
        say(f"Warning: {workbench.memo_warning}")
    if episode.error:
        raise BackendError(episode.error)
    prices = prices_of(workbench.backends.llms)
    steps = [step_json(step, prices) for step in episode.steps]
    value = {"answer": episode.answer, "steps": steps, "cost": total(episode.steps, prices)}
    if agent is None or episode.outcome is None:
        return value
    said = [
        {"kind": one.kind, "label": one.label, "text": one.text}
        for one in pieces(episode.steps, agent.workflow)
    ]
    return {**value, "stop_reason": episode.outcome.stop_reason, "said": said}


def step_json(step: Step, prices: Prices | None = None) -> dict[str, Any]:
    """A step for people and programs: kind, target, prompt, response, hits, cost.

    Tokens and dollars are None where the backend counts none or the model has no prices.
    """
    request = step.request
    kind = {"note": "identity", "tool": "tool"}.get(
        request_to_json(request)["ask"], request_to_json(request)["ask"]
    )
    target = (
        request.retriever
        if isinstance(request, Retrieve)
        else request.llm
        if isinstance(request, Generate)
        else request.tool
        if isinstance(request, UseTool)
        else ""
    )
    value: dict[str, Any] = {
        "kind": kind,
        "target": target,
        "prompt": prompt_of(request),
        "response": step.reply.text,
    }
    if isinstance(request, Retrieve):
        value["hits"] = [
            {"rank": rank, **hit_to_json(hit)} for rank, hit in enumerate(step.reply.hits, 1)
        ]
    if step.reply.note:
        value["note"] = step.reply.note
    value |= {"seconds": step.seconds, "cached": step.cached}
    if isinstance(request, Generate):
        cost = step_to_json(step, prices or {})
        value["tokens"] = {"prompt": cost["prompt_tokens"], "completion": cost["completion_tokens"]}
        value |= {key: cost[key] for key in ("first_token_seconds", "tokens_per_second", "usd")}
    return value


def _load(lease: Lease, flow: FlowSpec) -> None:
    loading = lease.load_for(flow.llms, flow.retrievers)
    with interruptible(loading):
        for event in loading:
            say(event.message)
