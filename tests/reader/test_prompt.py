"""The task and the passages of a prompt, for every kind of prompt in the chains."""

from __future__ import annotations

import time

import pytest

from rallebench.core.types import Evidence, Generate, Message, Passage, ToolSpec
from rallebench.reader import FOREIGN, REFUSAL, UNABLE, Task
from rallebench.reader.layout import split_passages
from rallebench.reader.prompt import read_prompt

PASSAGES = (
    Passage(
        "1", "Oslo is the capital of Norway. It lies on a fjord; it was founded in 1040.", "Oslo"
    ),
    Passage(
        "2",
        "Bergen is a city in Norway. Was it ever a capital? It was, in the 13th century.",
        "Bergen",
    ),
    Passage("3", "Paris is a city in Texas. It is the seat of Lamar County.", "Paris, Texas"),
)
TEXTS = [p.text for p in PASSAGES]
BARE = "; ".join(TEXTS)
TITLED = "; ".join(f"{p.title}, {p.text}" for p in PASSAGES)
QUESTION = "What is the capital of Norway?"
TALK = "I love the north.\nSo do I. Were you in Norway?\nNo. What is its capital?"
CLAIM = "Oslo is the capital of Norway."

ONE_WORD = f"Answer in one word.\n\nContext: {{docs}}\n\nQuestion: {QUESTION}\nAnswer:"

# name → (prompt with {docs}, kind, question)
READING = {
    "open question": (
        f'With the document below, answer "{QUESTION}?" in 5 words or less.\n\n{{docs}}\n\nAnswer: ',
        "short",
        QUESTION,
    ),
    "a question that quotes": (
        'Referring to the following document, answer "Who wrote "Peer Gynt" there?" in 5 words or less.'
        "\n\n{docs}\n\nAnswer: ",
        "short",
        'Who wrote "Peer Gynt" there?',
    ),
    "fact checking": (
        f'{{docs}}\n\nAnswer IN ONE WORD if the document SUPPORTS or REFUTES "{CLAIM}".\n\nAnswer: ',
        "verdict",
        CLAIM,
    ),
    "fact checking behind an instruction": (
        "Judge a claim by the following document.\n\n{docs}\n\n"
        f'Answer IN ONE WORD if the document SUPPORTS or REFUTES "{CLAIM}".\n\nAnswer: ',
        "verdict",
        CLAIM,
    ),
    "slot filling": (
        'Referring to the following document, answer "what is the country of Oslo?" in 5 words or less.'
        "\n\n{docs}\n\ncountry: ",
        "short",
        "what is the country of Oslo?",
    ),
    "slot filling by detection": (
        "Referring to the following document, detect the place of birth of Ada Lovelace in 5 words or less."
        "\n\n{docs}\n\nPick up and just spit out the place of birth of Ada Lovelace in 5 words or less."
        "\n\nThe place of birth: ",
        "short",
        "What is the place of birth of Ada Lovelace?",
    ),
    "explanation for a child": (
        f"Answer the question from the following document.\n\n{{docs}}\n\nQuestion: {QUESTION}\n\n"
        "Explain the answer as if I were five years old.\n\nAnswer: ",
        "long",
        QUESTION,
    ),
    "explanation of a quoted question": (
        f'Referring to the following document, answer "{QUESTION}"\n\n{{docs}}\n\n'
        f'Explain "{QUESTION}" as if I were five years old.\n\nAnswer: ',
        "long",
        QUESTION,
    ),
    "dialogue": (
        "Give a short and informative reply to the last turn, using the following document.\n\n{docs}\n\n"
        f"The conversation ends on your turn:\n\n{TALK}\n\nInformative and short answer:",
        "long",
        "No. What is its capital?",
    ),
    "dialogue under a label": (
        f"Reply in short, with the documents given.\n\n{{docs}}\n\nConversation:\n{TALK}\n\nInformative and short answer:",
        "long",
        "No. What is its capital?",
    ),
}


def ask(prompt: str, evidence: Evidence | None = None, system: str = "") -> Task:
    messages = ((Message("system", system),) if system else ()) + (Message("user", prompt),)
    return read_prompt(Generate("llm", messages, evidence=evidence))


def texts(task: Task) -> list[str]:
    return [p.text for p in task.passages]


@pytest.mark.parametrize("shown", [BARE, TITLED], ids=["bare passages", "titled passages"])
@pytest.mark.parametrize("as_data", [False, True], ids=["by layout", "as data"])
@pytest.mark.parametrize("name", READING)
def test_question_and_passages_are_found_in(name: str, as_data: bool, shown: str) -> None:
    template, kind, question = READING[name]
    prompt = template.format(docs=shown)
    evidence = Evidence(question if question in prompt else "", PASSAGES) if as_data else None
    task = ask(prompt, evidence)
    assert (task.kind, task.question) == (kind, question)
    assert texts(task) == TEXTS
    titles = [p.title for p in PASSAGES] if shown == TITLED else ["", "", ""]
    assert [p.title for p in task.passages] == titles


@pytest.mark.parametrize(
    "shown",
    [
        "\n".join(TEXTS),
        "\n\n".join(TEXTS),
        "\n".join(f"[{i}] {t}" for i, t in enumerate(TEXTS, 1)),
        "\n".join(f"{i}. {t}" for i, t in enumerate(TEXTS, 1)),
        "\n\n".join(f"Passage {i}: {t}" for i, t in enumerate(TEXTS, 1)),
        "\n".join(f"- {t}" for t in TEXTS),
        BARE,
    ],
    ids=["lines", "blocks", "[1]", "1.", "Passage 1:", "bullets", "semicolons"],
)
@pytest.mark.parametrize(
    "frame",
    [
        "Answer the question from the passages below.\n\n{docs}\n\nQuestion: {question}\nAnswer:",
        "Context:\n{docs}\n\nQuestion: {question}\n\nHelpful answer:",
        "Document:\n{docs} \n\nQuestion:\n{question}",
        "Question: {question}\n\nDocuments:\n{docs}\n\nAnswer:",
        "{question}\n\n{docs}",
    ],
    ids=["instruction", "labels", "RGB", "question first", "no labels"],
)
def test_passages_are_split_however_they_are_listed(frame: str, shown: str) -> None:
    task = ask(frame.format(docs=shown, question=QUESTION))
    assert (task.kind, task.question) == ("short", QUESTION)
    assert texts(task) == TEXTS


def test_passages_with_title_fields_or_headings_keep_their_titles() -> None:
    fields = "\n\n".join(f"Title: {p.title}\nText: {p.text}" for p in PASSAGES)
    headings = "\n\n".join(f"{p.title}\n{p.text}" for p in PASSAGES)
    for shown in (fields, headings):
        task = ask(f"Documents:\n\n{shown}\n\nQ: {QUESTION}\nA:")
        assert [(p.title, p.text) for p in task.passages] == [(p.title, p.text) for p in PASSAGES]


def test_a_question_with_its_passage_in_one_line_is_understood() -> None:
    assert texts(ask(f"Context: {TEXTS[0]} Question: {QUESTION} Answer:")) == [TEXTS[0]]
    for evidence in (None, Evidence(QUESTION)):
        task = ask(f"{TEXTS[0]} {QUESTION}", evidence)
        assert (texts(task), task.question) == ([TEXTS[0]], QUESTION)


def test_passages_come_from_a_system_message_or_the_user_message_before() -> None:
    told = f"You answer questions. Relevant information is provided:\n{chr(10).join(TEXTS)}"
    assert texts(ask(QUESTION, system=told)) == TEXTS
    two = Generate(
        "llm",
        (
            Message("system", "You are helpful."),
            Message("user", "\n".join(TEXTS)),
            Message("user", QUESTION),
        ),
    )
    task = read_prompt(two)
    assert (texts(task), task.question) == (TEXTS, QUESTION)


def test_earlier_turns_of_a_chat_are_not_passages() -> None:
    turns = (
        Message("user", f"Context: {BARE}"),
        Message("assistant", "Noted."),
        Message("user", QUESTION),
    )
    assert read_prompt(Generate("llm", turns)) == Task("say", REFUSAL)


def test_instructions_of_a_system_message_are_neither_question_nor_passage() -> None:
    rules = f'You are accurate. If the documents do not hold the answer, say "{REFUSAL}" and nothing else.'
    task = ask(f"Document:\n{BARE}\n\nQuestion:\n{QUESTION}", system=rules)
    assert (texts(task), task.question) == (TEXTS, QUESTION)


CLOSED = {
    "question": f'Answer "{QUESTION}?" in 5 words or less.\n\nAnswer: ',
    "claim": f'Answer IN ONE WORD if your knowledge SUPPORTS or REFUTES "{CLAIM}".\n\nAnswer: ',
    "slot": 'Answer "what is the country of Oslo?" in 5 words or less.\n\ncountry: ',
    "detection": "Just spit out the country of Oslo in 5 words or less.\n\nThe country: ",
    "explanation": f"Question: {QUESTION}\n\nExplain the answer as if I were five years old.\n\nAnswer: ",
    "dialogue": f"Give a short reply to the last turn of the conversation, which ends on your turn:\n\n{TALK}"
    "\n\nInformative and short answer:",
    "title": 'Which Wikipedia title is the most relevant to the mention "Oslo" in this text: "...they went '
    'to Oslo in the winter of that year..."?\n\nPlease answer only the Wikipedia title.\n\nAnswer: ',
    "description": 'What is "Oslo" in "...they went to Oslo in winter..."?\n\nDescribe it in one short '
    "sentence.\n\nDescription: ",
    "bare": QUESTION,
}


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("evidence", [None, Evidence("", PASSAGES)], ids=["none", "hidden"])
def test_a_closed_book_prompt_is_declined_also_beside_passages_that_it_does_not_show(
    name: str, evidence: Evidence | None
) -> None:
    assert ask(CLOSED[name], evidence) == Task("say", REFUSAL)


def test_of_several_passages_only_the_visible_ones_are_used_without_titles_that_are_not() -> None:
    for visible in TEXTS[1:]:
        task = ask(
            f"Context: {visible}\n\nQuestion: {QUESTION}\nAnswer:", Evidence(QUESTION, PASSAGES)
        )
        assert [(p.title, p.text) for p in task.passages] == [("", visible)]


def test_the_title_is_chosen_from_those_listed() -> None:
    listed = 'Choose the Wikipedia title that fits the mention "Oslo".\n\nTitles: Bergen / Oslo / Paris, Texas\n\nDescription: a capital\n\nWikipedia title: '
    task = ask(listed)
    assert (task.kind, task.question, task.titles) == (
        "title",
        "Oslo",
        ("Bergen", "Oslo", "Paris, Texas"),
    )
    pages = (
        "Pick the best title.\n\nTitles: Bergen, 12; Paris, Texas, 7\n\nMention: Paris\n\nTitle: "
    )
    assert ask(pages).titles == ("Bergen", "Paris, Texas")


def test_the_title_is_chosen_from_visible_passages() -> None:
    question = "He came to [START_ENT] Oslo [END_ENT] in winter."
    task = ask(
        f"{TITLED}\n\nText: {question}\n\nAnswer only the Wikipedia title.\n\nAnswer:",
        Evidence(question, PASSAGES),
    )
    assert (task.kind, task.question) == ("title", "Oslo")
    assert task.titles == ("Oslo", "Bergen", "Paris, Texas")


@pytest.mark.parametrize(
    ("order", "what"),
    [
        (f"Summarize the following text.\n\n{BARE}", "summarise"),
        (f"Translate the following document into French.\n\n{BARE}", "translate"),
        (
            f"Rate the answer on a scale from 1 to 5.\n\nQuestion: {QUESTION}\nAnswer: Oslo\n\nDocument: {BARE}",
            "judge",
        ),
        (f"Write a short poem about the following passage.\n\n{BARE}", "write texts"),
        (
            f"Answer with steps. Question: {QUESTION}\nThought 1:",
            "act as an agent or write programs",
        ),
    ],
)
def test_what_it_can_not_do_gets_one_plain_sentence(order: str, what: str) -> None:
    assert ask(order) == Task("say", UNABLE.format(what=what))


def test_a_question_that_speaks_of_writing_is_still_a_question() -> None:
    for question in ("Who translated the Bible into German?", "Which poem did he write in 1820?"):
        task = ask(
            f'Referring to the following document, answer "{question}" in 5 words or less.\n\n{BARE}\n\nAnswer: '
        )
        assert (task.kind, task.question) == ("short", question)


def test_a_question_to_be_rewritten_is_handed_on_unchanged() -> None:
    rewrite = f"Rewrite the following question so that it is clear.\n\n{QUESTION}?\n\nRewritten question: "
    assert ask(rewrite, Evidence(QUESTION)) == Task("say", QUESTION)
    make = 'The statement "Oslo [SEP] country" names a subject and a relation. Write it as one question.\n\nQuestion: '
    assert ask(make) == Task("say", "Oslo [SEP] country")


def test_a_slot_statement_is_read_as_a_question() -> None:
    task = ask(
        f'Referring to the following document, answer "Oslo [SEP] country" in 5 words or less.\n\n{BARE}\n\nAnswer: '
    )
    assert task.question == "What is the country of Oslo?"


def test_a_word_limit_is_kept_in_mind() -> None:
    for order, most in ((READING["open question"][0], 5), (ONE_WORD, 1)):
        assert ask(order.format(docs=BARE)).max_words == most


def test_a_third_verdict_is_known_where_the_prompt_offers_it() -> None:
    order = f'{BARE}\n\nDoes the document support it? Answer SUPPORTS or REFUTES or NOT ENOUGH INFO: "{CLAIM}"\n\nAnswer:'
    assert ask(order).labels == ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def test_tools_without_passages_are_declined() -> None:
    request = Generate("llm", (Message("user", QUESTION),), tools=(ToolSpec("search"),))
    assert read_prompt(request) == Task("say", UNABLE.format(what="call tools"))


@pytest.mark.parametrize(
    "prompt",
    [
        "文档：\n奥斯陆是挪威的首都。\n\n问题：\n挪威的首都是什么？",
        "Вопрос: Как называется столица Норвегии?",
    ],
)
def test_other_scripts_get_a_plain_sentence(prompt: str) -> None:
    assert ask(prompt) == Task("say", FOREIGN)


@pytest.mark.parametrize(
    "prompt",
    [
        *("", "   \n\n ", "?", "\x00\x01", "\ud800\udc00\ud800", ";;;", "Answer:", '"'),
        *("[START_ENT] [END_ENT]", "\u202e\ufeff", "Context:\n\nQuestion:\n\nAnswer:"),
    ],
    ids=ascii,
)
def test_prompts_without_content_are_declined(prompt: str) -> None:
    assert ask(prompt) == Task("say", REFUSAL)
    assert read_prompt(Generate("llm", ())) == Task("say", REFUSAL)


HUGE = {
    "words": "word " * 20_000,
    "one word": "x" * 100_000,
    "commas": "a, " * 33_000,
    "quotes": '"' * 100_000,
    "labels": "A: " * 33_000,
    "semicolons": "; " * 50_000,
    "brackets": "(" * 100_000,
    "lines": "\n" * 100_000,
    "numbers": "1. " * 33_000,
    "titles": "Title: " * 14_000,
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_prompt_is_read_quickly(kind: str) -> None:
    start = time.perf_counter()
    ask(f"Context: {HUGE[kind]}\n\nQuestion: {QUESTION}\nAnswer:")
    ask(f'Answer "{HUGE[kind]}?" in 5 words or less.\n\n{HUGE[kind]}\n\nAnswer: ')
    assert time.perf_counter() - start < 3


def test_every_passage_is_a_piece_of_the_prompt() -> None:
    prompt = f"Use these notes.\n\n{TITLED}\n\n- {TEXTS[0]}\n- {TEXTS[1]}\n\nQuestion: {QUESTION}\nAnswer:"
    assert all(p.text in prompt and p.title in prompt for p in ask(prompt).passages)


def test_a_sentence_with_a_comma_is_not_mistaken_for_a_titled_passage() -> None:
    assert split_passages("In 1990, Smith left Oslo.")[0].title == ""


@pytest.mark.parametrize(
    ("rule", "may"),
    [
        ("", False),
        ("Answer in at most 5 words. Do not explain your answer.", False),
        ("Use the passages below; do not include anything else.", False),
        ("If the passages do not contain the answer, say so.", True),
        ("Say 'unanswerable' if you can't find it.", True),
        ("If you don't know, say that you don't know.", True),
        ("When the information is insufficient, write that it is not mentioned.", True),
        ("If there is no answer in the text, reply with none.", True),
    ],
)
def test_a_prompt_that_says_what_to_do_unanswered_is_declined_sooner(rule: str, may: bool) -> None:
    passage = "Titan does not have a ring, and what it does not contain is unknown. Christiaan Huygens discovered Titan in 1655."
    asked = f"{passage}\n\nWho discovered Titan?"
    for prompt in (f"{rule}\n\n{asked}", f"{asked}\n{rule}\nAnswer:"):
        assert ask(prompt.strip()).may_decline is may, prompt
    spoken = Generate(
        "llm", (Message("system", rule or "You are helpful."), Message("user", asked))
    )
    assert read_prompt(spoken).may_decline is may


def test_words_of_the_question_do_not_ask_to_decline() -> None:
    asked = "Where does the unknown soldier lie, who was not found?"
    task = ask(
        f"The soldier lies in Paris under the arch since 1920.\n\nQuestion: {asked}\nAnswer:"
    )
    assert task.question == asked and not task.may_decline
