"""A chain in a conversation: a question that depends on earlier turns is first rewritten so that it stands alone.

A language model rewrites it, or the names of the earlier turns are appended. The chain then answers that question like
any other, so its prompts are the same as in Build. A chain with ``{history}`` in a template reads the conversation itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rallebench.chains.chain import as_flow, history_text
from rallebench.chains.template import names_used
from rallebench.core.errors import TemplateError
from rallebench.core.prompts import fill_template
from rallebench.core.text import CJK_CHARACTER, sentences, tokenize
from rallebench.core.types import Chain, Flow, Generate, Message, Note, Question

MESSAGES, MESSAGE_CHARACTERS = 6, 400
"""Messages of the conversation, and characters of each, in the rewriter's prompt."""
MAX_TOKENS, MAX_CHARACTERS = 96, 400
"""Maximum tokens and characters of a rewritten question. A longer reply is discarded."""
SHARE, PREFIX = 1 / 3, 5
"""Minimum share of a question's content words in its rewriting, and number of letters by which words are compared."""
LONGEST_NAME, NAMES_OF_ANSWER = 40, 2
"""Maximum characters of a name (a longer answer is a sentence), and number of names taken from a sentence."""
MOST_NAMES = 6
SHORT_QUESTION, SHORT_CHINESE = 2, 8
"""Maximum words, or Chinese characters, of a question that is assumed to depend on earlier turns."""

_REFERRING = re.compile(
    r"\b(?:he|him|his|himself|she|her|hers|herself|it|its|itself|they|them|their|theirs|this|these|those)\b"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )\bthere\b|^(?:and|but|or|so|also|what about|how about)\b"
    r"|[他她它这那其该此呢]",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUOTED = re.compile(r"[\"“「『《]([^\"”」』》]{2,60})[\"”」』》]")
_WORD = re.compile(r"\w[\w.'’-]*\w|\w")
_OPENING = _words(
    "a an the and but or so of in on at by for with from to into about as than after before during since under what which "
    "who whom whose when where why how is are was were do does did has have had can could may might will would shall should "
    "must if while because there it he she they we you i my your our his her its their this that these those"
)
_DATE = re.compile(
    r"(?=.*\d)[\d ,]*(?:january|february|march|april|may|june|july|august|september|october|november|december)[\d ,]*",
    re.IGNORECASE,
)
"""A date is not used as a name, despite its capital: "he" and "it" do not refer to dates."""
_JOINING = _words("of the de da di van von der la le al and")
_LABEL = re.compile(
    r"^\s*(?:(?:the\s+)?(?:rewritten|standalone|stand-alone|new|last)?\s*question|改写后的问题|问题)\s*[:：]\s*",
    re.I,
)
_QUOTES = "\"'“”‘’`*「」"


@dataclass(frozen=True, slots=True)
class Rewriter:
    """The language model that rewrites a question, '' for none, and its prompt with ``{history}`` and ``{question}``."""

    llm: str = ""
    prompt: str = ""


def as_conversation(chain: Chain, question: Question, rewriter: Rewriter) -> Flow:
    """Return the chain as a flow over the rewritten question; without earlier turns no rewriter is asked."""
    request = rewriting(chain, question, rewriter)
    if request is not None:
        reply = yield request
        question = replace(question, text=standalone(question, reply.text), history=())
    return (yield from as_flow(chain, question))


def rewriting(chain: Chain, question: Question, rewriter: Rewriter) -> Generate | Note | None:
    """Return a request to the rewriter, or a note with the expanded question; None if the question stands alone, or if
    the chain reads the conversation itself.
    """
    if not any(message.role == "user" for message in question.history) or reads_history(chain):
        return None
    joined = with_names(question)
    if not rewriter.llm:
        return Note(joined) if joined != question.text else None
    messages = [
        replace(message, content=_cut(message.content)) for message in question.history[-MESSAGES:]
    ]
    values = {"history": history_text(messages), "question": question.text}
    prompt = Message("user", fill_template(rewriter.prompt, values))
    return Generate(rewriter.llm, (prompt,), max_tokens=MAX_TOKENS, temperature=0.0)


def reads_history(chain: Chain) -> bool:
    """Return whether a template of the chain contains the earlier turns; a malformed template does not count."""
    for action in chain.actions:
        try:
            if "history" in names_used(action.template, action.dialect):
                return True
        except TemplateError:
            continue
    return False


def standalone(question: Question, reply: str) -> str:
    """Return the rewritten question in a reply, or the question with names if the reply is unusable.

    >>> told = (Message("user", "Where was Marie Curie born?"), Message("assistant", "In Warsaw."))
    >>> standalone(Question("", "When did she die?", history=told), 'Question: "When did Marie Curie die?"')
    'When did Marie Curie die?'
    >>> standalone(Question("", "When did she die?", history=told), "In 1934.")
    'When did she die? (Marie Curie, Warsaw)'
    """
    lines = (_LABEL.sub("", line).strip().strip(_QUOTES).strip() for line in reply.splitlines())
    text = next(filter(None, lines), "")
    asks = not question.text.rstrip().endswith(("?", "？")) or text.endswith(("?", "？"))
    earlier = {message.content.strip() for message in question.history} - {question.text.strip()}
    if (
        text
        and asks
        and len(text) <= MAX_CHARACTERS
        and text not in earlier
        and _keeps(text, question)
    ):
        return text
    return with_names(question)


def _keeps(text: str, question: Question) -> bool:
    """Return whether a rewritten question keeps enough of the question's content words."""
    telling, held = (
        {word[:PREFIX] for word in tokenize(words) if word not in _OPENING}
        for words in (_REFERRING.sub(" ", question.text), text)
    )
    return len(telling & held) >= SHARE * len(telling)


def with_names(question: Question) -> str:
    """Append the names of the turns before it, newest first, back to the last question that stood alone.

    Retrievers and readers profit from names more than from whole earlier questions. If there are no names, the last
    question that stood alone is appended.

    >>> told = (Message("user", "Who wrote Hamlet?"), Message("assistant", "William Shakespeare"))
    >>> with_names(Question("", "Where was he born?", history=told))
    'Where was he born? (Hamlet, William Shakespeare)'
    >>> with_names(Question("", "他在哪里去世？", history=(Message("user", "鲁迅是哪一年出生的？"),)))
    '他在哪里去世？（鲁迅是哪一年出生的）'
    """
    earlier = [message for message in question.history if message.role in ("user", "assistant")]
    if not leans(question.text) or not any(message.role == "user" for message in earlier):
        return question.text
    collected: list[str] = []
    answer = topic = ""
    for message in reversed(earlier):
        if message.role == "assistant":
            answer = message.content
            continue
        topic = message.content.strip()
        collected += [*names(topic), *_answer_names(answer)]
        answer = ""
        if not leans(topic):
            break
    known = question.text.casefold()
    new = [
        name
        for name in dict.fromkeys(collected)
        if name.casefold() not in known and not _DATE.fullmatch(name)
    ]
    words = ", ".join(new[:MOST_NAMES]) or _cut(topic.rstrip(" ?？。.!！"))
    brackets = "（{}）" if CJK_CHARACTER.search(question.text) else " ({})"
    return question.text.strip() + brackets.format(words) if words else question.text


def leans(text: str) -> bool:
    """Return whether a question depends on earlier turns: it contains no name, refers back, or is very short.

    >>> [leans(text) for text in ("When did she die?", "And Pierre Curie?", "Where was Pierre Curie born?")]
    [True, True, False]
    """
    text = text.strip()
    if _REFERRING.search(text):
        return True
    chinese = len(CJK_CHARACTER.findall(text))
    if chinese:
        return chinese <= SHORT_CHINESE
    return not names(text) or len(_WORD.findall(text)) <= SHORT_QUESTION


def names(text: str) -> list[str]:
    """Return the names in a text: quoted phrases, and capitalised words except a single first word.

    >>> names("Who told Charles Darwin of the birds?"), names("Pierre Curie died of what?"), names("Against which pest?")
    (['Charles Darwin'], ['Pierre Curie'], [])
    """
    plain = _QUOTED.sub(" , ", text)
    matches = list(_WORD.finditer(plain))
    runs: list[list[re.Match[str]]] = []
    gap = True
    for match in matches:
        word = match[0]
        opens = word[0].isupper() and word != "I" and word.lower() not in _OPENING
        goes_on = not gap and (word[0].isupper() or word[0].isdigit() or word in _JOINING)
        if opens and gap:
            runs.append([match])
        elif goes_on:
            runs[-1].append(match)
        gap = not (opens or goes_on)
    parts = []
    for run in runs:
        while run[-1][0] in _JOINING:
            run.pop()
        alone = run == matches[:1] and len(matches) > 2 and not re.search(r"['’]s$", run[0][0])
        name = re.sub(r"['’]s$", "", " ".join(match[0] for match in run))
        parts += [] if alone else [name]
    return list(dict.fromkeys([*_QUOTED.findall(text), *parts]))


def _answer_names(answer: str) -> list[str]:
    """Return an answer that is itself a name, else the first names of its first sentence."""
    answer = answer.strip().rstrip(".。")
    named = sum(map(len, names(answer)))
    opens = set(answer.lower().split()[:1]) & _OPENING
    if 1 < len(answer) <= LONGEST_NAME and 2 * named >= len(answer) and not opens:
        return [answer]
    return names(next(iter(sentences(answer)), ""))[:NAMES_OF_ANSWER]


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 2]} …"
