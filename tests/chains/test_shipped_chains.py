"""The chains in ``prompts/chains``: each one loads, and its templates work on a question of its task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import PROJECT

import rallebench
from rallebench.chains.chain import as_flow, request_prompt
from rallebench.chains.ralle import experiment_from_json, experiment_to_json, load_chain_file
from rallebench.chains.saved import chain_to_json
from rallebench.chains.template import check
from rallebench.core.errors import TemplateError
from rallebench.core.types import (
    Chain,
    Example,
    Generate,
    Hit,
    Outcome,
    Passage,
    Question,
    Reply,
    Request,
    Retrieve,
)
from rallebench.datasets.reading import read_examples

CHAINS = PROJECT / "prompts" / "chains"
QUESTIONS = Path(rallebench.__file__).parent / "starter" / "questions"
OPEN = ("qa", "multihop", "unanswerable")
TASKS = {
    "starter": OPEN,
    "retrieve-only": (*OPEN, "fact", "slot", "eli5", "dialogue"),
    "read-qa": OPEN,
    "read-fact": ("fact",),
    "read-trex": ("slot",),
    "read-zsre": ("slot",),
    "read-eli5": ("eli5",),
    "read-dialogue": ("dialogue",),
    "closed-book-qa": OPEN,
    "closed-book-fact": ("fact",),
    "closed-book-el": ("el",),
    "closed-book-slot": ("slot",),
    "closed-book-zsre": ("slot",),
    "closed-book-eli5": ("eli5",),
    "closed-book-dialogue": ("dialogue",),
    "rewrite-el": ("el",),
    "rewrite-el-titles": ("el",),
    "three-action-el": ("el",),
    "three-action-nq": OPEN,
    "hyde": OPEN,
    "multi-query": OPEN,
    "step-back": OPEN,
    "decompose": OPEN,
    "three-action-trex": ("slot",),
}
"""Every shipped chain, with the starter's datasets for it."""

WIM = Passage("7", "A film by Wim Wenders of 1984.", "Paris, Texas", "290")
CITY = Passage("8", "The capital of France; it lies on the Seine.", "Paris", "305")


def shipped(name: str) -> Chain:
    return load_chain_file(CHAINS / f"{name}.json")


def sample(task: str) -> list[Example]:
    return list(read_examples(QUESTIONS / f"starter-{task}.jsonl"))


def play(
    chain: Chain, question: str, *said: str, hits: tuple[Passage, ...] = (WIM, CITY)
) -> tuple[list[str], Outcome]:
    """Every prompt that the chain sends, and its outcome; models reply with ``said`` in turn."""
    flow = as_flow(chain, Question("q", question))
    prompts: list[str] = []
    texts = iter(said)
    try:
        request = next(flow)
        while True:
            prompts.append(request_prompt(request))
            request = flow.send(_reply(request, texts, hits))
    except StopIteration as end:
        return prompts, end.value


def _reply(request: Request, texts: object, hits: tuple[Passage, ...]) -> Reply:
    if isinstance(request, Retrieve):
        return Reply(
            "; ".join(p.text for p in hits),
            hits=tuple(Hit(p, 1.0 - n / 10) for n, p in enumerate(hits)),
        )
    return Reply(next(texts)) if isinstance(request, Generate) else Reply(request_prompt(request))  # type: ignore[call-overload]


# ── the files ────────────────────────────────────────────────────────────────


def test_every_file_is_a_chain_of_this_list():
    assert {path.stem for path in CHAINS.iterdir()} == set(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_each_file_is_a_chain_of_its_name_that_runs_on_what_the_starter_has(name: str):
    saved = json.loads((CHAINS / f"{name}.json").read_text(encoding="utf-8"))
    chain = shipped(name)
    assert chain_to_json(chain) == saved
    assert chain.name == name
    assert chain.about and "\n" not in chain.about
    targets = {"retrieve": "starter-minilm", "generate": "extractive-reader", "identity": ""}
    used = [a.target.removeprefix("lines:").removesuffix("?merge=turns") for a in chain.actions]
    assert used == [targets[a.kind] for a in chain.actions]
    assert experiment_from_json(experiment_to_json(chain)).chain.actions == chain.actions
    for action in chain.actions:
        check(action.template, action.dialect)
        with pytest.raises(TemplateError):  # the check would see superfluous braces or brackets
            check(action.template + ("{" if action.dialect == "fstring" else "["), action.dialect)


def test_the_starter_chain_reads_five_passages():
    retrieve, generate = shipped("starter").actions
    assert (retrieve.kind, retrieve.k, generate.kind) == ("retrieve", 5, "generate")


def test_the_readme_names_every_chain():
    text = (CHAINS.parent / "README.md").read_text(encoding="utf-8")
    assert [name for name in TASKS if f"`{name}`" not in text] == []


# ── the templates ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name, tasks in TASKS.items() for task in tasks]
)
def test_each_template_works_in_order_on_every_question_of_its_task(name: str, task: str):
    chain = shipped(name)
    for example in sample(task):
        prompts, outcome = play(chain, example.question.text, *(f"said {n}" for n in range(3)))

        assert len(prompts) == len(chain.actions)
        assert all(prompt.strip() for prompt in prompts)
        assert outcome.stop_reason == "answered"
        generates = sum(action.kind == "generate" for action in chain.actions)
        assert outcome.answer == (
            f"said {generates - 1}" if generates else prompts[-1] if len(prompts) > 1 else ""
        )


@pytest.mark.parametrize("name", [name for name in TASKS if name.startswith(("read-", "starter"))])
def test_a_reading_prompt_holds_the_passages_and_the_question(name: str):
    (example, *_) = sample(TASKS[name][0])
    prompt = play(shipped(name), example.question.text, "x")[0][-1]
    assert f"{WIM.text}; {CITY.text}" in prompt
    assert all(part.strip() in prompt for part in example.question.text.split("[SEP]"))


def test_each_action_of_three_sees_what_the_one_before_said():
    for name in ("three-action-nq", "three-action-trex", "three-action-el"):
        (example, *_) = sample(TASKS[name][0])
        prompts, outcome = play(shipped(name), example.question.text, "FIRST SAID", "SECOND SAID")
        assert "FIRST SAID" not in prompts[1]
        assert "FIRST SAID" in prompts[2]
        assert outcome.answer == "SECOND SAID"


# ── byte for byte ────────────────────────────────────────────────────────────


DOCUMENTS = "A film by Wim Wenders of 1984.; The capital of France; it lies on the Seine."
RELATION = "Paris, Texas [SEP] director"
READING = {
    "read-qa": (
        "who made paris, texas",
        'Referring to the following document, answer "who made paris, texas?" in 5 words or less.\n\n'
        f"{DOCUMENTS}\n\nAnswer: ",
    ),
    "read-zsre": (
        RELATION,
        "Referring to the following document, detect the director of Paris, Texas in 5 words or less.\n\n"
        f"{DOCUMENTS}\n\nPick up and just spit out the director of Paris, Texas in 5 words or less.\n\n"
        "The director: ",
    ),
    "read-trex": (
        RELATION,
        'Referring to the following document, answer "what is the director of Paris, Texas?" '
        f"in 5 words or less.\n\n{DOCUMENTS}\n\ndirector: ",
    ),
}


@pytest.mark.parametrize("name", READING)
def test_a_reading_prompt_is_ralles(name: str):
    question, prompt = READING[name]
    prompts, outcome = play(shipped(name), question, "Wim Wenders")
    assert prompts == [question, prompt] and outcome == Outcome("Wim Wenders")


def test_fact_checking_asks_for_one_word():
    prompts, _ = play(shipped("read-fact"), "Paris lies on the Seine.", "x")
    assert prompts[1].endswith(
        'Answer IN ONE WORD if the document SUPPORTS or REFUTES "Paris lies on the Seine.".\n\nAnswer: '
    )


def test_three_action_entity_linking_gives_a_hundred_characters_of_context_and_whole_titles():
    left, right = "x" * 150, "y" * 150
    prompts, outcome = play(
        shipped("three-action-el"),
        f"{left} [START_ENT] Paris [END_ENT] {right}",
        "A film.",
        "Paris, Texas",
    )
    context = f'"Paris" in "...{"x" * 99} Paris {"y" * 99}..."?'
    assert prompts == [
        f"What is {context}",
        f"What is {context}\n\nDescribe it in one short sentence.\n\nDescription: ",
        'Choose the Wikipedia title that fits the mention "Paris" best, going by the description. '
        "If none fits, propose another title.\n\nTitles: Paris, Texas / Paris\n\n"
        "Description: A film.\n\nWikipedia title: ",
    ]
    assert outcome.answer == "Paris, Texas"


def test_rewrite_el_cuts_a_title_at_its_comma_as_ralle_does_and_the_other_chain_does_not():
    question = "He saw [START_ENT] Paris [END_ENT] twice."
    cut, whole = play(shipped("rewrite-el"), question), play(shipped("rewrite-el-titles"), question)
    assert cut[0] == ['What is "Paris" ?', "Paris"]
    assert whole[0] == ['What is "Paris" ?', "Paris, Texas"]
    assert (cut[1].answer, whole[1].answer) == ("Paris", "Paris, Texas")


@pytest.mark.parametrize("name", ["rewrite-el", "rewrite-el-titles"])
def test_entity_linking_without_any_hit_answers_nothing(name: str):
    _, outcome = play(shipped(name), "[START_ENT] Paris [END_ENT]", hits=())
    assert outcome == Outcome("")
