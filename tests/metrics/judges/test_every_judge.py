"""Contract of every registered judge: existing prompts, the answer in a prompt, values within its range."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rallebench.core.formats import read_format
from rallebench.core.prompts import prompt_text
from rallebench.core.types import Episode, Flow, Generate, Outcome, Reply
from rallebench.llms.scripted import Scripted
from rallebench.metrics import METRICS, JudgeTraits
from rallebench.metrics.judges import UNPARSED, Case, read_judgement
from rallebench.metrics.judges.choosing import PROBABILITY

REPLIES: dict[str, list[str] | list[dict[str, float]]] = {
    "truthfulness": ["4, 5"],
    "rgb-rejection": ["No, the question is not addressed."],
    "rgb-errors": ["Yes."],
    "rgb-errors-choice": [{"Yes": 0.9, "No": 0.1}],
    "rgb-rejection-choice": [{"Yes": 0.2, "No": 0.6}],
    "truthfulness-choice": [{"4": 0.5, "5": 0.5}] * 2,
    "ragquesteval": ['{"question": ["who?"]}', *["<response>Ada</response>"] * 2],
}
"""Replies that each judge can read, turn by turn; for a typed decision option → probability."""
CHOOSING = [name for name in METRICS.judge_names() if isinstance(REPLIES[name][0], dict)]


FORCED = {
    "truthfulness": ['{"reason": "It is so.", "truthfulness": 4, "relevance": 5}'],
    "rgb-rejection": ["No, the question is not addressed by the documents."],
    "rgb-errors": ["No, the model fails to identify the factual errors."],
    "ragquesteval": [
        '{"key_info": [], "question": ["who?", "when?"]}',
        *["<response>\nAda\n</response>\n<response>\n无法推断\n</response>"] * 2,
    ],
}
"""The same replies, in the format that a judge forces."""


def choice_reply(request: Generate, shares: Mapping[str, float]) -> Reply:
    """The reply of a model with these probabilities of the options."""
    (reply,) = Scripted([shares]).choose([request])
    return reply


def judged(name: str, *replies: str | Mapping[str, float], forms: bool = False) -> Outcome:
    """A judge with its shipped prompts, played to its end; ``forms``: every reply must have the forced format."""
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
            if forms:
                form = read_format("'judge'", request.forced["response_format"])
                assert form is not None
                assert not form.fault(reply), f"{reply!r} has not the form"
            request = flow.send(
                Reply(reply) if isinstance(reply, str) else choice_reply(request, reply)
            )
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
    judgement = read_judgement(Episode("1", "judge", (), outcome))
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


@pytest.mark.parametrize("name", CHOOSING)
def test_a_judge_that_chooses_reads_the_text_of_a_model_without_probabilities(name: str) -> None:
    texts = [max(shares, key=shares.__getitem__) for shares in REPLIES[name]]
    judgement = read_judgement(Episode("1", "judge", (), judged(name, *texts)))
    assert judgement.values and not judgement.failure
    assert PROBABILITY not in judgement.values


@pytest.mark.parametrize("name", FORCED)
def test_what_has_the_form_that_a_judge_forces_can_be_read(name: str) -> None:
    """The replies of ``FORCED`` have the formats, so a model that enforces formats may write them."""
    outcome = judged(name, *FORCED[name], forms=True)
    assert outcome.stop_reason != UNPARSED
    assert not read_judgement(Episode("1", "judge", (), outcome)).failure


@pytest.mark.parametrize("name", FORCED)
def test_a_reply_without_a_value_has_not_the_form_that_a_judge_forces(name: str) -> None:
    with pytest.raises(AssertionError, match="has not the form"):
        judged(name, "Hm.", forms=True)
