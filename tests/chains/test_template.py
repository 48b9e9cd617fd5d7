"""The template language: RaLLe's own templates have the same meaning, and errors name the mend."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rallebench.chains.template import VARIABLES, check, names_used, render
from rallebench.core.errors import TemplateError

laws = settings(max_examples=80, database=None, derandomize=True)

MENTION = "He flew to [START_ENT] Paris [END_ENT] for the final."
RELATION = "Ada Lovelace [SEP] place of birth"
KEYS = ("rank", "title", "text", "page_id", "doc_id", "score")
PASSAGES = [
    dict(zip(KEYS, (1, "Paris, Texas", "A film.", "71", "d7", 2.5))),
    dict(zip(KEYS, (2, "Paris", "A city.", "12", "d1", 1.25))),
]
AFTER_TWO: Mapping[str, object] = {
    "question": "who wrote emma",
    "history": "User: hello\nAssistant: désolé 😀",
    "prompt": ["who wrote emma", "Tell me."],
    "response": ["Emma is by Austen.; Emma is a name.", "Jane Austen"],
    "wiki_id_title": ["Emma, 12; Emma (name), 34", ""],
    "documents": [PASSAGES, []],
}


def with_question(question: str, **others: object) -> dict[str, object]:
    return {**AFTER_TWO, "question": question, **others}


# ── RaLLe's templates ────────────────────────────────────────────────────────

FSTRINGS = [
    ("{question}", "who wrote emma"),
    (
        'Referring to the following document, answer "{question}?" in 5 words or less.'
        "\n\n{response[0]}\n\nAnswer: ",
        'Referring to the following document, answer "who wrote emma?" in 5 words or less.\n\n'
        "Emma is by Austen.; Emma is a name.\n\nAnswer: ",
    ),
    (
        '{response[0]}\n\nAnswer IN ONE WORD if the document SUPPORTS or REFUTES "{question}".\n\nAnswer: ',
        "Emma is by Austen.; Emma is a name.\n\n"
        'Answer IN ONE WORD if the document SUPPORTS or REFUTES "who wrote emma".\n\nAnswer: ',
    ),
    (
        "Read: {response[0]} Then answer {response[1]}:",
        "Read: Emma is by Austen.; Emma is a name. Then answer Jane Austen:",
    ),
    ("{prompt[1]} {wiki_id_title[0]}", "Tell me. Emma, 12; Emma (name), 34"),
    ("{documents[0][0][title]} ({documents[0][1][score]:.1f})", "Paris, Texas (1.2)"),
    ("{history}\nUser: {question}", "User: hello\nAssistant: désolé 😀\nUser: who wrote emma"),
    ('{{"answer": "{response[1]}"}}', '{"answer": "Jane Austen"}'),
    ("{prompt}", "['who wrote emma', 'Tell me.']"),
    ("{question!r:>20}|{question:.3}", "    'who wrote emma'|who"),
    ("{history!a}", r"'User: hello\nAssistant: d\xe9sol\xe9 \U0001f600'"),
    ("no variable at all", "no variable at all"),
    ("", ""),
]


@pytest.mark.parametrize(("template", "expected"), FSTRINGS)
def test_an_fstring_template_fills_its_fields(template: str, expected: str) -> None:
    assert render(template, "fstring", AFTER_TWO) == expected == template.format(**AFTER_TWO)


REWRITE = "'What is \"' + '{}'.format(question).split('[START_ENT]')[1].split('[END_ENT]')[0][1:-1] + '\" ?'"
IN_CONTEXT = (
    "'Which title fits \"' + '{}'.format(question).split('[START_ENT] ')[1].split(' [END_ENT]')[0]"
    " + '\" in \"'"
    " + '{}'.format(question).split('[START_ENT]')[0][-100:]"
    " + '{}'.format(question).split('[START_ENT]')[1].split('[END_ENT]')[0]"
    " + '{}'.format(question).split('[END_ENT]')[1][:100] + '''...\"?\n\nTitle: '''"
)
EVALS = [
    (REWRITE, MENTION, 'What is "Paris" ?'),
    (
        IN_CONTEXT,
        MENTION,
        'Which title fits "Paris" in "He flew to  Paris  for the final...."?\n\nTitle: ',
    ),
    ("'{}'.format(wiki_id_title[0]).split('; ')[0].split(', ')[0]", "", "Emma"),
    (
        "'{}'.format(question) + ', ' + '{}'.format(wiki_id_title[0])",
        "q",
        "q, Emma, 12; Emma (name), 34",
    ),
    (
        "'''What is the ''' + '{}'.format(question).split('[SEP]')[1][1:]"
        " + ' of ' + '{}'.format(question).split(' [SEP]')[0]"
        " + '''? 5 words or less.\\n\\n''' + '{}'.format(response[0])",
        RELATION,
        "What is the place of birth of Ada Lovelace? 5 words or less.\n\nEmma is by Austen.; Emma is a name.",
    ),
    (
        "'The' + '{}'.format(question).split('[SEP]')[1]"
        " + ' of ' + '{}'.format(question).split('[SEP]')[0][:-1] + ': '",
        RELATION,
        "The place of birth of Ada Lovelace: ",
    ),
    (
        "' / '.join([part.split(',')[0] for part in '{}'.format(wiki_id_title[0]).split('; ')])",
        "",
        "Emma / Emma (name)",
    ),
    ("' / '.join(passage['title'] for passage in documents[0])", "", "Paris, Texas / Paris"),
    ("documents[0][0]['title']", "", "Paris, Texas"),
    (
        "'\\n'.join(f'[{n}] {d[\"title\"]}: {d[\"text\"]}' for n, d in enumerate(documents[0], 1))",
        "",
        "[1] Paris, Texas: A film.\n[2] Paris: A city.",
    ),
    ("response[0] if documents[0] else 'nothing found'", "", "Emma is by Austen.; Emma is a name."),
    ("'no passages' if not documents[1] else 'some'", "", "no passages"),
    ("sorted(documents[0], reverse=True) if False else question.upper()", "abc", "ABC"),
    ("len(documents[0])", "", "2"),
    ("documents[0][1]['score'] * 2", "", "2.5"),
    ("'wrote' in question", "who wrote", "True"),
    ("(\n  'a'  # the first line\n  'b' +\n  question\n)", "c", "abc"),
    ("'a' +\n\nquestion", "b", "ab"),
]


@pytest.mark.parametrize(("template", "question", "expected"), EVALS)
def test_an_eval_template_is_an_expression(template: str, question: str, expected: str) -> None:
    variables = with_question(question)
    assert render(template, "eval", variables) == expected
    assert str(eval(f"({template}\n)", dict(variables))) == expected  # and Python agrees


def test_an_escape_that_python_only_warns_about_is_kept_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert render(r"'''\Titles: ''' + question", "eval", with_question("q")) == r"\Titles: q"


@pytest.mark.parametrize(
    ("template", "dialect"),
    [
        ("Read this.\n{response[0]}\nNow answer {question}: ", "fstring"),
        ("'Read this.\\n' + '{}'.format(response[0]) + '\\nNow answer ' + question + ': '", "eval"),
        ("f'Read this.\\n{response[0].strip()}\\nNow answer {question}: '", "eval"),
    ],
)
def test_a_prompt_of_half_a_million_characters_passes(template: str, dialect: str) -> None:
    text = "long " * 99_999 + "text"
    expected = f"Read this.\n{text}\nNow answer q: "
    assert render(template, dialect, with_question("q", response=[text])) == expected


def test_forty_pieces_around_a_long_text_are_put_together_at_once() -> None:
    template = "question + " + " + ".join(["'a' + response[0] + 'b'"] + ["'c'"] * 40)
    assert render(template, "eval", with_question("q", response=["x" * 500_000])).endswith(
        "xb" + "c" * 40
    )


def test_variables_of_other_types_that_hold_plain_values_are_taken_as_plain() -> None:
    class Float(float):
        def __str__(self) -> str:
            return "not asked"

    assert (
        render("{documents[0][0][score]}", "fstring", {"documents": ([{"score": Float(0.5)}],)})
        == "0.5"
    )


def test_a_variable_that_holds_an_object_is_refused_only_where_it_is_used() -> None:
    variables = with_question("q", history=object())
    assert render("{question}", "fstring", variables) == "q"
    with pytest.raises(TemplateError, match="the variable 'history' holds a object"):
        render("{history}", "fstring", variables)


# ── errors ───────────────────────────────────────────────────────────────────

AS_TEXT = [
    'Reply as {"answer": "..."} to {question}',
    '{"a.b": 1}',
    '{"a"!x}',
    "{'answer': question}",
    "{answer: a text}",
    '{question:"x"}',
    '{"list": [1, 2]}',
    '{"a": {question}}',
    "f(x) {return x}",
    "{a[0}",
    "{}",
    "{",
    "}",
]


@pytest.mark.parametrize("template", AS_TEXT)
def test_braces_that_were_meant_as_text_are_to_be_doubled(template: str) -> None:
    with pytest.raises(TemplateError, match=r"write '(\{\{|\}\})'"):
        render(template, "fstring", with_question("q"))


ERRORS = {
    "fstring": [
        (
            "{qestion}",
            "line 1, character 1: there is no variable 'qestion', did you mean 'question'",
        ),
        ("one\ntwo {nobody}", "line 2, character 5: there is no variable 'nobody'"),
        ("one\r\ntwo {question", "line 2, character 5: this '{' is not closed: write '{{' for"),
        ("a } b", "character 3: this '}' closes nothing: write '}}'"),
        ('{"answer": 1}', "is not the name of a variable: write '{{' and '}}'"),
        ("{}", "'' is not the name of a variable"),
        ("{0}", "'0' is not the name of a variable"),
        ("{ question }", "is not the name of a variable"),
        ("{response[2]}", "so there is response[0] … response[1]"),
        ("{response[-1]}", "is indexed by whole numbers, not by '-1'"),
        ("{response[]}", "[] is empty"),
        ("{response[0}", "is not a field"),
        ("{documents[1][0][title]}", "does not exist: that action retrieved nothing"),
        ("{documents[0][2][title]}", "there is documents[0][0] … documents[0][1]"),
        ("{documents[0][0][name]}", "has no key 'name': its keys are rank, title"),
        ("{question[99]}", "question[99] does not exist: the text has 14 characters"),
        ("{question:d}", "the format spec 'd' does not fit a text"),
        ("{prompt:>9}", "a list takes no format spec"),
        ("{question.upper}", "attributes are not allowed"),
    ],
    "eval": [
        ("qestion + 'x'", "character 1: there is no variable 'qestion', did you mean 'question'"),
        ("'a' +\n  nobody", "line 2, character 3: there is no variable 'nobody'"),
        ("'é' + nobody", "line 1, character 7: there is no variable 'nobody'"),
        ("'a' + (question", "line 1, character 7: this '(' is not closed"),
        ("question]", "character 9: this ']' closes nothing"),
        ("(question]", "character 10: this ']' closes nothing"),
        ("'{' + 'a", "character 7: the quote ' is not closed"),
        ("'{'.format(question)", "in the text before .format, this '{' is not closed"),
        ("'{x}'.format(question)", "format was given no argument named 'x'"),
        ("'{} {}'.format(question)", "format was given 1 argument, and a field needs more"),
        ("question question", "character 1: this is not a Python expression"),
        ("question.split('x')[1]", "[1] does not exist: the list has 1 element"),
        ("response[2]", "so there is response[0] … response[1]"),
        ("documents[1][0]['title']", "does not exist: that action retrieved nothing"),
        ("'a' +\n1", "line 2, character 1: a text + a number is not allowed: use str(...)"),
        ("1 / 0", "1 / 0 cannot be computed: division by zero"),
        ("int('x')", "int('x') cannot be computed: invalid literal"),
        ("question.index('zz')", "substring not found"),
        ("[1, 2].index(3)", "index did not find a number"),
        ("question.split(1, 2, 3, 4)", "it was given the wrong arguments"),
        ("question.nothing()", "the attribute .nothing is not allowed"),
        ("response.upper()", "a list has no method .upper"),
        ("response", "gives a list, and a prompt must be a text: use ', '.join(...)"),
        ("None", "the template gives None, and a prompt must be a text"),
        ("','.join([1])", "join needs texts, and element 0 is a number: use str(...)"),
        ("','.join({'a', 'b'})", "so the prompt would change from run to run"),
        ("", "the template is empty"),
    ],
    "jinja": [("{{question}}", "there is no dialect 'jinja': choose 'fstring' or 'eval'")],
}


@pytest.mark.parametrize(
    ("dialect", "template", "words"),
    [(dialect, *case) for dialect, cases in ERRORS.items() for case in cases],
)
def test_an_error_names_the_place_and_the_variables_that_exist(
    dialect: str, template: str, words: str
) -> None:
    with pytest.raises(TemplateError) as caught:
        render(template, dialect, AFTER_TWO)
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.endswith(
        "the variables are question, history, prompt, response, wiki_id_title and documents."
    )
    assert "\n" not in sentence


def test_the_first_action_is_told_that_nothing_has_run() -> None:
    variables = with_question("q", response=[])
    for template, dialect in (("{response[0]}", "fstring"), ("response[-1]", "eval")):
        with pytest.raises(TemplateError, match="no action has run before this one"):
            render(template, dialect, variables)


def test_only_variables_that_were_given_exist() -> None:
    with pytest.raises(
        TemplateError, match="there is no variable 'response'; the variables are question"
    ):
        render("response[0]", "eval", {"question": "q"})


# ── checks for editors ───────────────────────────────────────────────────────


def test_checking_needs_no_values() -> None:
    for template, _ in FSTRINGS:
        check(template, "fstring")
    for template, _, _ in EVALS:
        check(template, "eval")
    late = "response[99]"  # only a run of the chain shows whether it exists
    check(late, "eval")
    with pytest.raises(TemplateError, match="no action has run before this one"):
        render(late, "eval", with_question("q", response=[]))


@pytest.mark.parametrize(
    ("template", "dialect"),
    [
        ("{nobody}", "fstring"),
        ("{question", "fstring"),
        ("{question.upper}", "fstring"),
        ("{question:>9999}", "fstring"),
        ("nobody", "eval"),
        ("'{'.format(question)", "eval"),
        ("question.upper", "eval"),
        ("lambda: question", "eval"),
        ("open(question)", "eval"),
        ("[x for x in response] + x", "eval"),
        ("[y for x in y for y in response]", "eval"),
    ],
)
def test_checking_finds_what_can_be_found_without_values(template: str, dialect: str) -> None:
    with pytest.raises(TemplateError):
        check(template, dialect)


@pytest.mark.parametrize(
    ("template", "dialect", "names"),
    [
        ("{question} {response[0]} {{history}}", "fstring", {"question", "response"}),
        ("'question' + history", "eval", {"history"}),
        ("[response for response in prompt]", "eval", {"prompt"}),
        (
            "[d['title'] for h in documents for d in h if d['rank'] < len(question)]",
            "eval",
            {"documents", "question"},
        ),
        ("f'{question:>{len(history)}}'", "eval", {"question", "history"}),
        ("'{question}'.format(question=response[0])", "eval", {"response"}),
        ("{x: y for x, (y, z) in zip(prompt, response)}", "eval", {"prompt", "response"}),
    ],
)
def test_the_names_that_a_template_reads(template: str, dialect: str, names: set[str]) -> None:
    assert names_used(template, dialect) == names


# ── laws ─────────────────────────────────────────────────────────────────────

literals = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(
    lambda text: text.replace("{", "{{").replace("}", "}}")
)
PATHS = """
question history prompt response[0] response[1] response wiki_id_title[0] documents documents[0] documents[0][1]
documents[0][0][title] documents[0][1][score] documents[0][0][rank] response[7] documents[0][0][nothing] question[3]
question[x]
"""
paths = st.sampled_from(PATHS.split())
conversions = st.sampled_from(["", "", "!r", "!s", "!a"])
specs = st.one_of(
    st.just(""),
    st.from_regex(r"\A:([^{}]?[<>=^])?[-+ ]?#?0?[0-9]{0,2}[,_]?(\.[0-9]{1,2})?[a-zA-Z%]?\Z").filter(
        lambda spec: not spec.endswith("\n")
    ),
)
fields = st.tuples(paths, conversions, specs).map(lambda parts: "{" + "".join(parts) + "}")


@laws
@given(st.lists(st.one_of(literals, fields), max_size=6).map("".join))
def test_plain_fields_mean_what_str_format_says(template: str) -> None:
    try:
        expected = template.format(**AFTER_TWO)
    except (ValueError, LookupError, TypeError):
        with pytest.raises(TemplateError):
            render(template, "fstring", AFTER_TWO)
    else:
        assert render(template, "fstring", AFTER_TWO) == expected


SCRAPS = r"""
{ } {{ }} [ ] ( ) ! : . , ' " ''' # \ ; = == := + - * ** / // % < @ $ ? ... → ｅ
lambda for in if else not or and is await yield None True inf 0x f' f'{ rb' 0 1 2.5 1e309 99999
question response history documents prompt x _ __class__ str int range sorted sum zip
.format .join .split .upper() {question} {response[0]} {question!r:>9} '{}' [0] [-1] ['title'] [::2]
"""
pieces = st.text(max_size=5) | st.sampled_from(
    [*SCRAPS.split(), " ", "\n", "\\N{DASH}", "\ud800", "\x00"]
)


@settings(laws, max_examples=300)
@given(st.lists(pieces, max_size=12).map("".join), st.sampled_from(["fstring", "eval"]))
def test_nothing_but_template_error_ever_escapes(template: str, dialect: str) -> None:
    try:
        assert isinstance(render(template, dialect, AFTER_TWO), str)
    except TemplateError as error:
        str(error).encode("utf-8")
    for ask in (check, names_used):
        try:
            ask(template, dialect)
        except TemplateError as error:
            assert str(error)


def test_the_variables_are_those_of_a_chain() -> None:
    assert tuple(AFTER_TWO) == VARIABLES
