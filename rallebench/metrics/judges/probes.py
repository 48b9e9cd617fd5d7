"""Probes of a judge: the same answers with a change that should not change the verdict.

``order``: the blocks of the prompt in the opposite order, of a judge that has both; the order of options changes nothing where a
model weighs each by its log-probability (Zheng et al. 2023, arXiv:2306.05685). ``padded``: the answer with
a sentence that says nothing (Dubois et al. 2024, arXiv:2404.04475). ``praised``: an answer that is wrong, with a sentence that calls it right. ``seed``:
the same request with another seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rallebench.core.audits import ORDER, PADDED, PRAISED, PROBES, SEED
from rallebench.core.errors import UsageError
from rallebench.core.types import Episode, Example, Flow, Generate, Outcome, Request
from rallebench.metrics import METRICS
from rallebench.metrics.judges import JudgeScorer, MarkOf, judge_named
from rallebench.metrics.words import has_cjk

PADDING = " This is the answer to the question that was asked above, given here in full."
PRAISE = " This is certainly correct."
CHINESE = {PADDING: "以上就是对所提问题的完整回答。", PRAISE: "这肯定是正确的。"}
OTHER_SEED = 7919
"""Added to the seed of each request."""
SWAPPED = "swapped"
"""Setting of a judge whose prompt has two orders."""


def probed_judge(judge: JudgeScorer, probe: str, mark_of: MarkOf) -> JudgeScorer:
    """Return the judge under a probe; its settings name the probe.

    Raises UsageError for an unknown probe, and for the order of a judge that has one only.
    """
    if probe not in PROBES:
        raise UsageError(f"There is no probe {probe!r}; choose {', '.join(PROBES)}.")
    settings = {**judge.settings, "probe": probe}
    if probe in (PADDED, PRAISED):
        more = PADDING if probe == PADDED else PRAISE
        return replace(judge, settings=settings, judged=_add(judge.judged, more))
    if probe == SEED:
        return replace(judge, settings=settings, ask=_alter_requests(judge.ask, _with_other_seed))
    kind, _, _ = judge.name.partition(":")
    if SWAPPED in inspect.signature(METRICS.entry(kind).value).parameters:
        turned = judge_named(judge.name, mark_of, swapped=True)
        return replace(turned, settings={**turned.settings, "probe": probe})
    raise UsageError(
        f"The judge {judge.name!r} has one order only, so its order cannot be probed; leave out {ORDER!r}."
    )


def _add(judged: Callable[[Episode], str | None], more: str) -> Callable[[Episode], str | None]:
    def text(episode: Episode) -> str | None:
        answer = judged(episode)
        if answer is None:
            return None
        return answer.rstrip() + (CHINESE[more] if has_cjk(answer) else more)

    return text


def _alter_requests(
    ask: Callable[..., Flow | None], change: Callable[[Request], Request]
) -> Callable[..., Flow | None]:
    def alter(example: Example, answer: str, **known: Any) -> Flow | None:
        flow = ask(example, answer, **known)
        return None if flow is None else _changed_requests(flow, change)

    return alter


def _changed_requests(flow: Flow, change: Callable[[Request], Request]) -> Flow:
    """Play a flow with every request changed."""
    request = next(flow)
    while True:
        reply = yield change(request)
        try:
            request = flow.send(reply)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome


def _with_other_seed(request: Request) -> Request:
    if not isinstance(request, Generate):
        return request
    return replace(request, seed=(request.seed or 0) + OTHER_SEED)
