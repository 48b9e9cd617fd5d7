"""Conversations: turns, branches, and the fate of turns that are asked again."""

from __future__ import annotations

import pytest
from talking import ask, script

from rallebench.core.errors import UsageError
from rallebench.core.types import Action, Chain, Generate, Message, Note, Retrieve
from rallebench.services.asking import REWRITING
from rallebench.services.conversations import MESSAGE_CHARACTERS, Talk, Turn, answering, history
from rallebench.services.workbench import Workbench

REWRITTEN = "Who discovered Titan?"


@pytest.fixture
def read(bench: Workbench) -> Chain:
    return bench.workspace.chain("read")


def test_a_model_that_writes_rewrites_a_follow_up(bench: Workbench, read: Chain) -> None:
    llm, talk = script(bench, "Titan", REWRITTEN, "Huygens"), Talk()
    first = ask(bench, talk, read, "Which moon of Saturn has a thick atmosphere?")
    assert (first.answer, first.rewriting, llm.calls) == ("Titan", None, 1)
    second = ask(bench, talk, read, "Who discovered it?")
    assert second.rewriting is not None and isinstance(second.rewriting.request, Generate)
    prompt = second.rewriting.request.messages[0].content
    assert "User: Which moon of Saturn" in prompt and "Assistant: Titan" in prompt
    assert second.standalone == REWRITTEN and len(second.steps) == 2
    assert not first.is_rewriting_refused and not second.is_rewriting_refused
    search = second.steps[0].request
    assert isinstance(search, Retrieve) and search.query == REWRITTEN
    assert second.episode is not None and len(second.episode.steps) == 3
    question, steps = second.in_build
    assert question.text == REWRITTEN and steps == second.steps and question.history == ()


def test_a_rewriting_that_repeats_a_question_is_refused(bench: Workbench, read: Chain) -> None:
    question = "Which moon of Saturn has a thick atmosphere?"
    script(bench, "Titan", question, "Huygens")
    talk = Talk()
    ask(bench, talk, read, question)
    second = ask(bench, talk, read, "Who discovered it?")
    assert second.is_rewriting_refused
    assert second.standalone == "Who discovered it? (Saturn, Titan)"


def test_the_embedded_reader_copies_so_questions_are_joined(bench: Workbench, read: Chain) -> None:
    assert bench.asking.copies("extractive-reader") and not bench.asking.copies("titan")
    assert not bench.asking.copies("nobody")
    reader = read.replace_action(1, target="extractive-reader")
    assert bench.asking.rewriter(reader).llm == "" and bench.asking.rewriter(read).llm == "titan"


def test_without_a_model_the_joined_question_is_a_note(bench: Workbench) -> None:
    chain, talk = Chain("find", (Action("retrieve", "{question}", target="tiny", k=2),)), Talk()
    ask(bench, talk, chain, "Which moon of Saturn has a thick atmosphere?")
    second = ask(bench, talk, chain, "Who discovered it?")
    assert second.rewriting is None, "the first turn had no answer, so there is no history"
    talk.turns[0].answer = "Titan"  # as if it came from a model
    third = ask(bench, talk, chain, "Who discovered it?", talk.turns[0])
    assert third.rewriting is not None and isinstance(third.rewriting.request, Note)
    assert third.standalone == "Who discovered it? (Saturn, Titan)"


def test_the_workspace_may_have_a_prompt_of_its_own(bench: Workbench, read: Chain) -> None:
    own = bench.workspace.path / "prompts" / "chat"
    own.mkdir(parents=True)
    (own / "standalone.txt").write_text("Mine: {history} / {question}\n")
    assert bench.asking.rewriter(read).prompt == "Mine: {history} / {question}"


def test_events_have_the_indexes_of_the_actions(bench: Workbench, read: Chain) -> None:
    script(bench, REWRITTEN, "Huygens")
    told = [Message("user", "Which moon?"), Message("assistant", "Titan")]
    *events, _ = bench.asking.chat(read, told, "Who discovered it?")
    indexes = [event.index for event in events]  # type: ignore[union-attr]
    assert indexes[0] == REWRITING and max(indexes) == 1 == answering(read)


def test_a_fresh_turn_asks_past_the_reply_cache(bench: Workbench, read: Chain) -> None:
    llm, talk = script(bench, "Titan", "Rhea"), Talk()
    turn = ask(bench, talk, read, "Which moon?")
    *_, episode = bench.asking.chat(read, turn.history, turn.question)
    assert llm.calls == 1, "from the cache"
    *_, episode = bench.asking.chat(read, turn.history, turn.question, fresh=True)
    assert episode.answer == "Rhea" and llm.calls == 2  # type: ignore[union-attr]


def test_an_edited_question_begins_a_branch_and_all_stays(bench: Workbench, read: Chain) -> None:
    talk = Talk()
    first = ask(bench, talk, read, "One?")
    second = ask(bench, talk, read, "Two?")
    other = talk.ask(bench.asking, read, "Other?", first.before)
    assert talk.path == (other,) and other.history == () and talk.branches(first) == [first, other]
    with pytest.raises(UsageError, match="still being answered"):
        talk.ask(bench.asking, read, "Three?", second)
    talk.stop()
    assert other.state == "stopped"
    talk.show(first)
    assert talk.path == (first, second) and talk.branches(second) == [second]
    with pytest.raises(UsageError, match="There is no question"):
        talk.ask(bench.asking, read, " ", None)
    with pytest.raises(UsageError, match="no such turn"):
        talk.turn(7)
    assert ask(bench, talk, read, "Two?", first).number == 3 and talk.repeats(talk.turns[3])


def test_only_answered_turns_are_history_and_long_ones_are_cut(read: Chain) -> None:
    turns = [Turn(read, f"Q{n}?", answer="A" * 3000, state="done") for n in range(8)]
    turns.append(Turn(read, "Failed?", error="x", state="failed"))
    messages = history(turns)
    assert messages[-1].content.endswith(" …") and len(messages[-1].content) == MESSAGE_CHARACTERS
    assert [m.content for m in messages if m.role == "user"] == ["Q5?", "Q6?", "Q7?"]


def test_citations_are_worked_out_once_when_the_turn_ended(bench: Workbench, read: Chain) -> None:
    talk = Talk()
    turn = talk.ask(bench.asking, read, "Which moon of Saturn has a thick atmosphere?", None)
    for event in bench.asking.chat(read, (), turn.question):
        assert turn.cited_sentences == () and turn.support is None
        turn.take(event)
    (sentence,) = turn.cited_sentences
    assert (
        sentence.text == "Titan"
        and sentence.citations
        and turn.cited_sentences is turn.cited_sentences
    )
