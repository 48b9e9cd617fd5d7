"""RAGQuestEval: the share of a reference's information contained in an answer (CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043,
section 3.3).

A model writes questions about the reference, then answers them from the reference and from the judged answer. 无法推断 means that
a text does not answer a question.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from rallebench.core.prompts import fill_template
from rallebench.core.scoring import ScoreColumn
from rallebench.core.settings import fill
from rallebench.core.structured import json_in
from rallebench.core.types import Episode, Example, Flow, Generate, Json, Message, Reply
from rallebench.metrics import METRICS
from rallebench.metrics.judges import Case, Judgement, judgement_outcome, read_judgement
from rallebench.metrics.words import jieba_words

PRECISION, RECALL, QUESTIONS = "QA_avg_F1", "QA_recall", "questions"
COLUMNS = (
    ScoreColumn(
        PRECISION,
        "RAGQuestEval's precision: mean word F1 of the answers that the text and the reference give to the same "
        "questions, over those that both answer; 0 if there are none. Over the records whose questions and answers could be read.",
    ),
    ScoreColumn(
        RECALL,
        "RAGQuestEval's recall: of the questions that the reference answers, the share that the text answers. "
        "Over the records whose questions and answers could be read.",
    ),
    ScoreColumn(
        QUESTIONS,
        "Questions on a reference. Over the records whose questions and answers could be read.",
        (0.0, None),
    ),
)
TEMPERATURE, MAX_TOKENS = 0.1, 1280
UNKNOWN = "无法推断"
_TEXTS = {"type": "array", "maxItems": 8, "items": {"type": "string", "maxLength": 60}}
QUESTIONS_FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "questions",
        "schema": {
            "type": "object",
            "properties": {"key_info": _TEXTS, "question": {**_TEXTS, "minItems": 1}},
            "required": ["key_info", "question"],
            "additionalProperties": False,
        },
    },
}
"""The form of the reply with the questions, for backends that enforce it. Its limits keep the reply within MAX_TOKENS."""
_STRICT = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
_LOOSE = re.compile(r"<response>(.*?)</response>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestEntry:
    """The questions about a reference and their answers; None for parts that do not exist yet.

    ``answers``: from the reference; ``text_answers``: from the judged text; ``key_info``: facts from the reference, written by
    the model along with the questions.
    """

    question: Sequence[str] = ()
    key_info: Sequence[str] | None = None
    answers: Sequence[str] | None = None
    text_answers: Sequence[str] | None = None

    def to_json(self) -> Json:
        parts = {
            "key_info": self.key_info,
            "question": self.question,
            "answers": self.answers,
            "text_answers": self.text_answers,
        }
        return {name: list(texts) for name, texts in parts.items() if texts is not None}

    def scores(self, *, over_all: bool = False) -> Quest:
        """The scores of the judged text; see ``quest_scores``."""
        return quest_scores(self.answers or (), self.text_answers or (), over_all=over_all)


@dataclass(frozen=True, slots=True)
class QuestPrompts:
    """The prompts. ``ask`` contains ``{text}``, the reference; ``answer`` contains ``{text}`` and ``{questions}``."""

    ask: str
    answer: str


def reference_for(example: Example) -> str:
    """The long reference if there is one, otherwise the first gold answer."""
    gold = example.gold
    return gold.reference or (gold.answers[0] if gold.answers else "")


def judgement_values(episode: Episode) -> Mapping[str, float]:
    """Precision and recall of one judgement; {} for an unreadable judgement."""
    return read_judgement(episode).values


@METRICS.register_judge(
    "ragquesteval",
    folder="suites/crud",
    prompts={"quest-questions.txt": ("text",), "quest-answers.txt": ("text", "questions")},
    prompt=QuestPrompts,
    columns=COLUMNS,
    scores=judgement_values,
    source=reference_for,
    label="RAGQuestEval",
    wants="a reference or an accepted answer",
)
def ragquesteval(
    case: Case,
    *,
    llm: str,
    prompt: QuestPrompts,
    compat: str = "corrected",
    precision: str = "code",
    seed: int = 0,
    known: QuestEntry | None = None,
) -> Flow:
    """Precision and recall of an answer over questions that a model asks about the reference.

    An empty answer tells nothing: 0 and 0. ``known``: the reference's questions and answers, if they exist
    already; then only the text is asked. ``precision``: see ``quest_scores``. ``compat`` "original" reads replies as CRUD-RAG's code does.

    Normalisation: both answers to a question in jieba's words.
    Not scored: a reply whose questions or answers cannot be read; a question without a reference.
    Source: CRUD-RAG, Lyu et al. 2024, arXiv:2401.17043, section 3.3.
    Traps: The shipped prompts are Chinese, and the same model asks, answers and is compared with itself.
    """
    strict = compat == "original"

    def generate(template: str, form: Json, **values: str) -> Generate:
        return Generate(
            llm,
            (Message("user", fill_template(template, values)),),
            max_tokens=MAX_TOKENS,
            temperature=TEMPERATURE,
            seed=seed,
            forced={} if strict else {"response_format": form},
            roomy=True,
        )

    def ask(questions: Sequence[str], text: str) -> Generator[Any, Any, tuple[str, ...] | None]:
        form = _answers_form(len(questions))
        reply = yield generate(prompt.answer, form, text=text, questions=number_lines(questions))
        return read_answers(reply.text, len(questions), strict=strict)

    entry = known
    if entry is None:
        reply = yield generate(prompt.ask, QUESTIONS_FORM, text=case.source)
        entry = read_questions(reply.text, strict=strict)
        if entry is None:
            return judgement_outcome(
                Judgement(failure="The reply holds no questions on the reference.")
            )
        answers = yield from ask(entry.question, case.source)
        if answers is None:
            return judgement_outcome(
                Judgement(failure="The reference's answers could not be read.")
            )
        entry = replace(entry, answers=answers)
    if not entry.question:
        return judgement_outcome(Judgement(failure="There are no questions on the reference."))
    answers = (UNKNOWN,) * len(entry.question)  # an empty answer is scored without a request
    if case.answer.strip():
        answers = yield from ask(entry.question, case.answer)
    if answers is None:
        failure = Judgement(failure="The text's answers could not be read.")
        return judgement_outcome(failure, **entry.to_json())
    entry = replace(entry, text_answers=answers)
    try:
        quest = entry.scores(over_all=precision == "paper")
    except IndexError:  # the original drops such a record
        failure = Judgement(failure="The text has fewer answers than questions.")
        return judgement_outcome(failure, **entry.to_json())
    values = {PRECISION: quest.f1, RECALL: quest.recall, QUESTIONS: len(entry.question)}
    return judgement_outcome(Judgement(values), **entry.to_json())


@dataclass(frozen=True, slots=True)
class Quest:
    """Scores of a text. ``f1``: the paper's precision; ``recall``: ``answered`` / ``answerable``. The reference answers
    ``answerable`` of the questions, and the text answers ``answered`` of those."""

    f1: float
    recall: float
    answerable: int
    answered: int


def quest_scores(reference: Sequence[str], text: Sequence[str], *, over_all: bool = False) -> Quest:
    """Compare the answers from a text with the answers from the reference, question by question.

    Questions unanswered by the reference are dropped. Recall is the share of the remaining questions answered by the text.
    Precision is the mean word F1 over these answered questions (CRUD-RAG's code), or over all remaining questions
    (``over_all``: formula 2 of its paper). If the text answers none, the scores are 0. Raises IndexError if ``text`` has no
    entry for a question answered by the reference.

    >>> quest_scores(["北京", "无法推断", "3人"], ["北京", "上海", "无法推断"])
    Quest(f1=1.0, recall=0.5, answerable=2, answered=1)
    """
    answerable = [(answer, text[i]) for i, answer in enumerate(reference) if answer != UNKNOWN]
    answered = [pair for pair in answerable if pair[1] != UNKNOWN]
    if not answered:
        return Quest(0.0, 0.0, len(answerable), 0)
    total = sum(word_f1(*pair) for pair in answered)
    return Quest(
        total / len(answerable if over_all else answered),
        len(answered) / len(answerable),
        len(answerable),
        len(answered),
    )


def word_f1(first: str, second: str) -> float:
    """F1 of two bags of jieba words, including punctuation and spaces; two empty bags score 1.

    >>> word_f1("3000多家", "3000家"), word_f1("", ""), word_f1("", "北京")
    (0.5, 1.0, 0.0)
    """
    left, right = Counter(jieba_words(first)), Counter(jieba_words(second))
    if not left or not right:
        return float(left == right)
    common = sum((left & right).values())
    return 2 * common / (sum(left.values()) + sum(right.values()))


@dataclass(frozen=True, slots=True)
class QuestionsReply:
    """The JSON object with the questions in a reply, unchecked."""

    question: object = None
    key_info: object = None


def read_questions(reply: str, *, strict: bool = False) -> QuestEntry | None:
    """The questions written by a model; None without a JSON object with questions.

    ``strict``: the whole reply must be JSON, as in the original. Otherwise the last suitable object counts, and surrounding
    prose, code fences and thoughts are ignored.

    >>> read_questions('Sure:\\n{"key_info": ["a"], "question": ["b?"]}')
    QuestEntry(question=('b?',), key_info=('a',), answers=None, text_answers=None)
    """
    for value in [_whole(reply)] if strict else reversed([*_objects(reply)]):
        if isinstance(value, Mapping):
            fields = fill(QuestionsReply, value)
            if questions := texts(fields.question):
                return QuestEntry(questions, texts(fields.key_info))
    return None


def _whole(reply: str) -> Any:
    try:
        return json.loads(reply)
    except (ValueError, RecursionError):
        return None


def _objects(reply: str) -> Iterator[Any]:
    """The objects of a reply, with Python literals first and JSON last, so that JSON takes precedence."""
    yield from json_in(Reply(reply), {"type": "object", "required": ["question"]})
    for brace in re.finditer(r"\{", reply):
        with suppress(ValueError, RecursionError):
            yield json.JSONDecoder().raw_decode(reply, brace.start())[0]


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts unchanged; () for any other value."""
    return (
        tuple(value)
        if isinstance(value, list) and all(isinstance(text, str) for text in value)
        else ()
    )


def read_answers(reply: str, number: int, *, strict: bool = False) -> tuple[str, ...] | None:
    """The answers to ``number`` questions; None for any other number of answers.

    ``strict`` follows the original: each tag is on its own line, any number of answers is accepted, and 无法推断 must be the whole
    answer.

    >>> read_answers("<response>北京</response> <response> 无法推断。 </response>", 2)
    ('北京', '无法推断')
    """
    if strict:
        return tuple(_STRICT.findall(reply))
    answers = tuple(map(_answer, _LOOSE.findall(reply)))
    return answers if len(answers) == number else None


def _answers_form(number: int) -> Json:
    """The form of a reply with ``number`` answers, for models that enforce it."""
    longest = max(8, MAX_TOKENS // 2 // max(1, number))
    answer = f"<response>\\n[^<\\n]{{1,{longest}}}\\n</response>"
    return {"type": "regex", "regex": "\\n".join([answer] * number)}


def _answer(text: str) -> str:
    plain = text.strip()
    return UNKNOWN if plain.strip("。.！!“”\"' ") == UNKNOWN else plain


def number_lines(questions: Sequence[str]) -> str:
    """Number the questions for a prompt.

    >>> number_lines(["谁？", "何时？"])
    '1. 谁？\\n2. 何时？'
    """
    return "\n".join(f"{n}. {question}" for n, question in enumerate(questions, 1))
