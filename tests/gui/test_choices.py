"""A typed decision on the page: its options with bars, and how it was made, in a question of a run."""

from __future__ import annotations

from rallebench.core.choices import IN_PROCESS, weigh_options
from rallebench.core.choosing import choice_reply, choose, read_reply
from rallebench.core.types import Gold, Message, Reply, Step
from rallebench.gui.places._steps import folds

ASK = choose("judge", (Message("user", "Is <it> so?"),), ("yes & so", "no"))


def test_a_step_shows_its_options_with_their_probabilities() -> None:
    choice = weigh_options(ASK.choices, (-1.0, -3.0), IN_PROCESS)
    reply = choice_reply(choice, Reply("", prompt_tokens=5, completion_tokens=1))
    drawn = folds([Step(ASK, reply)], Gold(), answer="yes")
    assert "Choose · judge" in drawn
    assert drawn.index("<dt>yes &amp; so</dt>") < drawn.index("<dt>no</dt>")
    assert 'value="88"' in drawn and "88.1" in drawn and "11.9" in drawn
    assert "By log-probabilities in process; before it was normalised, 41.8 % of the" in drawn


def test_a_choice_from_text_shows_the_reason_and_no_bars() -> None:
    reply = read_reply(
        Reply("No."), ASK, "'judge' gives no log-probabilities, so its text was read."
    )
    assert isinstance(reply, Reply)
    drawn = folds([Step(ASK, reply)], Gold())
    assert "<progress" not in drawn
    assert "gives no log-probabilities, so its text was read." in drawn
