"""What every judge of the registry keeps to: prompts that are there, the answer in a prompt, values in its range."""

from __future__ import annotations

import pytest

from rallebench.core.prompts import prompt_text
from rallebench.core.types import Episode, Flow, Generate, Outcome, Reply
from rallebench.metrics import METRICS, JudgeTraits
from rallebench.metrics.judges import UNPARSED, Case, judgement_of

REPLIES = {
    "truthfulness": ["4, 5"],
    "rgb-rejection": ["No, the question is not addressed."],
    "rgb-errors": ["Yes."],
    "ragquesteval": ['{"question": ["who?"]}', *["<response>Ada</response>"] * 2],
}
"""Replies that each can read, turn by turn."""


def judged(name: str, *replies: str) -> Outcome:
    """A judge, with its shipped prompts, played to its end."""
    traits: JudgeTraits = METRICS.entry(name).traits["judge"]
    texts = [
        prompt_text(traits.folder, file, fields=fields) for file, fields in traits.prompts.items()
    ]
    case = Case("who?", "It was Ada.", "Ada\nAda wrote it.")
    flow: Flow = METRICS[name](case, llm="judge", prompt=traits.prompt(*texts))
    prompts = []
    try:
        request = next(flow)
        for reply in replies:
            assert isinstance(request, Generate)
            prompts.append(request.messages[-1].content)
            request = flow.send(Reply(reply))
    except StopIteration as end:
        assert len(prompts) == len(replies)
        assert replies == ("Hm.",) or "It was Ada." in prompts[-1]
        outcome: Outcome = end.value
        return outcome
    raise AssertionError(f"{name} asks more than {len(replies)} times")


@pytest.mark.parametrize("name", METRICS.judge_names())
def test_a_judge_gives_the_values_that_it_says_in_their_range(name: str) -> None:
    traits: JudgeTraits = METRICS.entry(name).traits["judge"]
    values = traits.scores(Episode("1", "judge", (), judged(name, *REPLIES[name])))
    assert set(values) == {column.name for column in traits.columns}
    for column in traits.columns:
        low, high = column.range
        assert low <= values[column.name] and (high is None or values[column.name] <= high)


@pytest.mark.parametrize("name", METRICS.judge_names())
def test_a_reply_that_holds_no_value_is_unparsed_and_never_a_score(name: str) -> None:
    outcome = judged(name, "Hm.")
    judgement = judgement_of(Episode("1", "judge", (), outcome))
    assert outcome.stop_reason == UNPARSED and not judgement.values and judgement.failure


def test_an_empty_answer_tells_nothing_of_the_reference_and_is_not_asked() -> None:
    questions, reference = REPLIES["ragquesteval"][:2]
    traits = METRICS.entry("ragquesteval").traits["judge"]
    texts = [prompt_text(traits.folder, f, fields=x) for f, x in traits.prompts.items()]
    flow = METRICS["ragquesteval"](
        Case("who?", " ", "Ada wrote it."), llm="judge", prompt=traits.prompt(*texts)
    )
    next(flow)
    flow.send(Reply(questions))
    with pytest.raises(StopIteration) as end:
        flow.send(Reply(reference))
    values = traits.scores(Episode("1", "judge", (), end.value.value))
    assert values == {"QA_avg_F1": 0.0, "QA_recall": 0.0, "questions": 1}
