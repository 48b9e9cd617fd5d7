"""What every judge of the registry keeps to: prompts that are there, one question put, values in its range."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.prompts import prompt_text
from rallebench.core.types import Episode, Flow, Generate, Outcome, Reply
from rallebench.metrics.judges import JUDGES, UNPARSED, Case, judgement_of
from rallebench.metrics.judges.truthfulness import JudgePrompt

SAID = {
    "truthfulness": "4, 5",
    "rgb-rejection": "No, the question is not addressed.",
    "rgb-errors": "Yes.",
}
"""A reply that each can read."""


def judged(name: str, said: str) -> Outcome:
    """A judge, with its shipped prompts, played to its end."""
    traits = JUDGES.entry(name).traits
    texts = [
        prompt_text(traits["folder"], file, fields=fields)
        for file, fields in traits["prompts"].items()
    ]
    prompt: Any = JudgePrompt(*texts) if len(texts) > 1 else texts[0]
    flow: Flow = JUDGES[name](
        Case("who?", "It was Ada.", "Ada\nAda wrote it."), llm="judge", prompt=prompt
    )
    request = next(flow)
    assert isinstance(request, Generate) and "It was Ada." in request.messages[-1].content
    with pytest.raises(StopIteration) as ended:
        flow.send(Reply(said))
    found = ended.value.value
    assert isinstance(found, Outcome)
    return found


@pytest.mark.parametrize("name", JUDGES.names())
def test_a_judge_gives_the_values_that_it_says_in_their_range(name: str) -> None:
    values = judgement_of(Episode("1", "judge", (), judged(name, SAID[name]))).values
    ranges = JUDGES.entry(name).traits["values"]
    assert set(values) == set(ranges) and all(
        ranges[one][0] <= values[one] <= ranges[one][1] for one in values
    )


@pytest.mark.parametrize("name", JUDGES.names())
def test_a_reply_that_holds_no_value_is_unparsed_and_never_a_score(name: str) -> None:
    outcome = judged(name, "Hm.")
    found = judgement_of(Episode("1", "judge", (), outcome))
    assert outcome.stop_reason == UNPARSED and not found.values and found.failure
