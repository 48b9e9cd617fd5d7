"""A question in a conversation is rewritten so that it stands alone. The flows get scripted replies."""

from __future__ import annotations

import pytest

from rallebench.chains.conversation import Rewriter, as_conversation, leans, names, with_names
from rallebench.core.types import (
    Action,
    Chain,
    Generate,
    Hit,
    Message,
    Note,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
)

CHAIN = Chain(
    "read",
    (
        Action("retrieve", "{question}", target="index", k=1),
        Action("generate", "{response[0]} {question}", target="llm"),
    ),
)
BORN = (Message("user", "Where was Marie Curie born?"), Message("assistant", "In Warsaw."))
REWRITER = Rewriter("llm", "{history}|{question}")
FOLLOW_UP = Question("q", "When did she die?", history=BORN)
REWRITTEN = "When did Marie Curie die?"


def played(
    question: Question, *texts: str, chain: Chain = CHAIN, rewriter: Rewriter = REWRITER
) -> tuple[list[Request], Outcome]:
    """The requests of the flow with these texts as replies, in order, and its outcome."""
    flow, requests = as_conversation(chain, question, rewriter), []
    try:
        request = next(flow)
        for text in texts:
            requests.append(request)
            hits = (Hit(Passage("d", text), 1.0),) if isinstance(request, Retrieve) else ()
            request = flow.send(Reply(text, hits))
    except StopIteration as end:
        return requests, end.value
    raise AssertionError(f"it goes on with {request}")


def test_the_first_question_is_asked_as_it_is() -> None:
    requests, outcome = played(Question("q", "When did she die?"), "a passage", "1934")
    assert requests[0] == Retrieve("index", "When did she die?", 1)
    assert len(requests) == 2 and outcome.answer == "1934"


def test_a_follow_up_is_rewritten_by_the_model_and_then_answered_like_any_question() -> None:
    requests, outcome = played(FOLLOW_UP, REWRITTEN, "a passage", "1934")
    rewriting, *rest = requests
    assert isinstance(rewriting, Generate) and rewriting.temperature == 0
    prompt = "User: Where was Marie Curie born?\nAssistant: In Warsaw.|When did she die?"
    assert rewriting.messages == (Message("user", prompt),)
    alone, _ = played(Question("q", REWRITTEN), "a passage", "1934")
    assert rest == alone, "the same requests as in Build, byte for byte"
    assert outcome == Outcome("1934")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "She died in 1934.",
        "In 1934?",
        "x" * 500 + " die?",
        "\n \n",
        "Where was Marie Curie born?",
        "Who is it?",
    ],
)
def test_a_reply_that_is_no_question_is_replaced_by_the_joined_question(reply: str) -> None:
    requests, _ = played(FOLLOW_UP, reply, "a passage", "1934")
    assert requests[1] == Retrieve("index", "When did she die? (Marie Curie, Warsaw)", 1)


def test_without_a_model_that_writes_the_joined_question_is_a_note() -> None:
    requests, _ = played(
        FOLLOW_UP, "When did she die? (Marie Curie, Warsaw)", "p", "1934", rewriter=Rewriter()
    )
    assert requests[0] == Note("When did she die? (Marie Curie, Warsaw)")
    assert requests[1] == Retrieve("index", "When did she die? (Marie Curie, Warsaw)", 1)
    other = Question("q", "Which two streams join to form the Danube?", history=BORN)
    requests, _ = played(other, "p", "Breg and Brigach", rewriter=Rewriter())
    assert requests[0] == Retrieve("index", other.text, 1), "it stands alone"


def test_a_sentence_as_answer_gives_its_first_names() -> None:
    told = (
        Message("user", "Which probe was the first to fly past Jupiter?"),
        Message("assistant", "Pioneer 10 was the first. Voyager 1 came later."),
    )
    joined = with_names(Question("q", "When was it launched?", history=told))
    assert joined == "When was it launched? (Jupiter, Pioneer 10)"


def test_a_chain_that_reads_the_history_is_left_alone() -> None:
    chain = Chain("talk", (Action("generate", "{history}\n{question}", target="llm"),))
    requests, _ = played(FOLLOW_UP, "1934", chain=chain)
    (request,) = requests
    assert isinstance(request, Generate) and request.messages[0].content.startswith("User: Where")


def test_the_names_of_the_last_question_that_stands_alone_are_joined() -> None:
    earlier = (*BORN, Message("user", "And Pierre Curie?"), Message("assistant", "in Paris"))
    question = Question("q", "When did he die?", history=earlier)
    assert with_names(question) == "When did he die? (Pierre Curie, Paris, Marie Curie, Warsaw)"
    hamlet = (Message("user", "Who wrote Hamlet?"), Message("assistant", "William Shakespeare"))
    joined = with_names(Question("q", "Where was he born?", history=hamlet))
    assert joined == "Where was he born? (Hamlet, William Shakespeare)"


def test_without_names_the_last_question_is_joined() -> None:
    told = (Message("user", "which metal is found in brass?"), Message("assistant", "zinc"))
    joined = with_names(Question("q", "Is it toxic?", history=told))
    assert joined == "Is it toxic? (which metal is found in brass)"
    chinese = (Message("user", "《红楼梦》的作者是谁？"), Message("assistant", "曹雪芹"))
    assert with_names(Question("q", "他是哪里人？", history=chinese)) == "他是哪里人？（红楼梦）"
    plain = (Message("user", "多瑙河流入哪一个海？"), Message("assistant", "黑海"))
    joined = with_names(Question("q", "它有多长？", history=plain))
    assert joined == "它有多长？（多瑙河流入哪一个海）"


@pytest.mark.parametrize("date", ["10 March 1977", "March 10, 1977", "In May 1977."])
def test_a_date_is_no_name_to_search_for(date: str) -> None:
    told = (
        Message("user", "When did James Elliot find the rings of Uranus?"),
        Message("assistant", date),
    )
    joined = with_names(Question("q", "What else did he find?", history=told))
    assert joined == "What else did he find? (James Elliot, Uranus)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When did she die?", True),
        ("And in winter?", True),
        ("What about Pierre Curie?", True),
        ("Why?", True),
        ("什么时候出生的？", True),
        ("Who wrote Hamlet?", False),
        ("Are there moons of Saturn?", False),
        ("多瑙河的源头在哪一个国家？", False),
    ],
)
def test_a_question_leans_on_the_earlier_ones_or_stands_alone(text: str, expected: bool) -> None:
    assert leans(text) is expected


def test_names_are_words_with_a_capital_and_quoted_words() -> None:
    assert names("Against which disease did Daniel Bernoulli fight?") == ["Daniel Bernoulli"]
    assert names("Which stringed instrument did Joseph Haydn's prince play?") == ["Joseph Haydn"]
    assert names('Who wrote "the bell jar"?') == ["the bell jar"]
